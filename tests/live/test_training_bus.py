"""Training over a real bus: the quick reference's commands, garbage, and what stays on the stream."""

import json
import subprocess

import pytest
from nats.js.errors import NotFoundError
from tests.conftest import running_loop
from tests.support import Client, files_with, on_bus, until

from upswing.config import Surroundings
from upswing.contracts import TrainingStatus, decode
from upswing.contracts.topics import STATUS_ENQUIRY, TRAINING, TRAINING_REQUEST, TRAINING_STATUS
from upswing.redact import Redactor

pytestmark = pytest.mark.live
REDACTOR = Redactor()
MANUAL_TRIGGER = r"""
nats pub "agent.rl.training.request.v1" "$(cat <<EOF
{
  "training_job_id": "manual-$(uuidgen)",
  "timestamp": "$(date -u +%Y-%m-%dT%H:%M:%SZ)",
  "requester": "admin-manual",
  "trigger_reason": "manual",
  "training_config": {
    "algorithm": "ppo",
    "base_model": "qwen2.5-32b-instruct",
    "dataset": {
      "source": "nats_stream",
      "stream_name": "RL_TRAJECTORIES",
      "sample_size": 5000
    },
    "hyperparameters": {
      "learning_rate": 1e-5,
      "batch_size": 32,
      "epochs": 3
    }
  }
}
EOF
)"
"""
SHELL = """
nats() { printf '%s\\n%s' "$2" "$3"; }
uuidgen() { cat /proc/sys/kernel/random/uuid; }
"""
"""`nats` prints what it would publish: a double, because its command line is no Python package."""


def quick_reference():
    """(subject, payload) that a real shell makes of the command, word for word."""
    done = subprocess.run(
        ["bash", "-c", SHELL + MANUAL_TRIGGER], capture_output=True, check=True, timeout=60
    )
    subject, _, payload = done.stdout.partition(b"\n")
    return subject.decode(), payload


@pytest.fixture
async def loop(data):
    async with running_loop(data, redactor=REDACTOR) as made:
        yield made


@pytest.fixture
async def remote(data):
    """A loop that leaves training to other machines."""
    async with running_loop(
        data, redactor=REDACTOR, surroundings=Surroundings(train_here=False)
    ) as made:
        yield made


async def job_of(loop, job_id):
    return await until(lambda: loop.jobs.get(job_id), what=f"no job {job_id}")


async def settled(loop):
    """Every request on the stream has been taken and acknowledged."""

    async def done():
        info = await loop.bus.js.consumer_info(TRAINING, "trainer")
        return info.num_pending == 0 and info.num_ack_pending == 0

    await until(done)


async def test_the_quick_references_request_becomes_a_job(remote):
    subject, payload = quick_reference()
    assert subject == TRAINING_REQUEST
    job_id = json.loads(payload)["training_job_id"]
    async with (
        on_bus(remote.running.nats_urls["reader"]) as reader,
        on_bus(remote.running.nats_urls["requester"]) as requester,
    ):
        heard = await reader.subscribe(TRAINING_STATUS)
        await reader.flush()
        await requester.publish(subject, payload)
        status = decode(TrainingStatus, (await heard.next_msg(20)).data)
        assert (status.training_job_id, status.status) == (job_id, "queued")
        reply = await requester.request(STATUS_ENQUIRY, json.dumps({"job_id": job_id}).encode(), 10)
        assert decode(TrainingStatus, reply.data) == status
    job = await job_of(remote, job_id)
    assert (job.reason, job.request.training_config.dataset.sample_size) == ("manual", 5000)


async def test_a_base_that_is_not_here_is_told_by_the_jobs_status(loop):
    _, payload = quick_reference()
    async with (
        on_bus(loop.running.nats_urls["reader"]) as reader,
        on_bus(loop.running.nats_urls["requester"]) as requester,
    ):
        heard = await reader.subscribe(TRAINING_STATUS)
        await reader.flush()
        await requester.jetstream().publish(TRAINING_REQUEST, payload)
        status = decode(TrainingStatus, (await heard.next_msg(20)).data)
    assert status.status == "failed"
    assert "'qwen2.5-32b-instruct' is not on this machine" in status.error.message


async def test_the_same_message_many_times_is_one_job(remote):
    _, payload = quick_reference()
    async with on_bus(remote.running.nats_urls["requester"]) as requester:
        for _ in range(5):
            await requester.jetstream().publish(TRAINING_REQUEST, payload)
    await job_of(remote, json.loads(payload)["training_job_id"])
    await settled(remote)
    assert len(await remote.jobs.list()) == 1
    assert await remote.store.list_dead_letters() == []


async def test_garbage_is_buried_and_the_next_request_is_taken(remote):
    _, payload = quick_reference()
    async with (
        on_bus(remote.running.nats_urls["reader"]) as reader,
        on_bus(remote.running.nats_urls["requester"]) as requester,
    ):
        dead = await reader.subscribe("agent.rl.dead.train")
        await reader.flush()
        for garbage in (
            b"{",
            b"",
            b"\xff\xfe",
            b"[]",
            b"[" * 50_000,
            b'{"training_job_id": "x"}',
            payload,
        ):
            await requester.jetstream().publish(TRAINING_REQUEST, garbage)
        letters = [json.loads((await dead.next_msg(20)).data) for _ in range(6)]
    assert {letter["subject"] for letter in letters} == {TRAINING_REQUEST}
    assert {letter["deliveries"] for letter in letters} == {1}
    await job_of(remote, json.loads(payload)["training_job_id"])
    await settled(remote)
    assert len(await remote.jobs.list()) == 1
    async with Client(remote.running.http_url, remote.running.key) as client:
        path = f"/v1/dead/{letters[0]['dead_id']}/replay"
        status, refusal = await client("POST", path)
        assert (status, TRAINING_REQUEST in refusal["detail"]) == (422, True)


async def test_an_enquiry_is_answered_whatever_is_asked(remote):
    async with on_bus(remote.running.nats_urls["requester"]) as requester:
        for question, error in (
            (b'{"job_id": "no such"}', "not_found"),
            (b'{"job_id": 7}', "malformed"),
            (b"", "malformed"),
            (b"\xff" * 1000, "malformed"),
            (b"[" * 100_000, "malformed"),
        ):
            reply = json.loads((await requester.request(STATUS_ENQUIRY, question, 10)).data)
            assert reply["error"] == error
        await requester.publish(STATUS_ENQUIRY, b"{}")  # nobody waits for an answer
        reply = json.loads((await requester.request(STATUS_ENQUIRY, b"{}", 10)).data)
        assert reply["error"] == "malformed"


async def test_what_is_private_leaves_the_stream_and_reaches_no_file(remote, data):
    secret = "carol" + "@corp-mail.example"
    _, payload = quick_reference()
    request = json.loads(payload) | {
        "requester": secret,
        "metadata": {"notes": f"asked by {secret}"},
    }
    async with on_bus(remote.running.nats_urls["requester"]) as requester:
        ack = await requester.jetstream().publish(TRAINING_REQUEST, json.dumps(request).encode())
    job = await job_of(remote, request["training_job_id"])
    await settled(remote)
    assert job.request.requester == "<email-1>"
    with pytest.raises(NotFoundError):
        await remote.bus.js.get_msg(TRAINING, ack.seq)
    clean = await until(lambda: _next_request(remote, ack.seq))
    assert clean["requester"] == "<email-1>"
    assert len(await remote.jobs.list()) == 1
    assert files_with(data, secret) == []


async def _next_request(loop, after):
    info = await loop.bus.js.stream_info(TRAINING)
    for seq in range(after + 1, info.state.last_seq + 1):
        message = await loop.bus.js.get_msg(TRAINING, seq)
        if message.subject == TRAINING_REQUEST:
            return json.loads(message.data)
    return None


async def test_a_restart_loses_no_job(data):
    _, payload = quick_reference()
    away = Surroundings(train_here=False)
    async with running_loop(data, redactor=REDACTOR, surroundings=away) as first:
        async with on_bus(first.running.nats_urls["requester"]) as requester:
            await requester.jetstream().publish(TRAINING_REQUEST, payload)
        job = await job_of(first, json.loads(payload)["training_job_id"])
    async with running_loop(data, redactor=REDACTOR, surroundings=away) as second:
        await settled(second)
        assert await second.jobs.list() == [job]
