"""The helper functions of the rl-trainer's profile do what their names say, over the real parts."""

import asyncio
import json
import math
import threading
import uuid
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from tests.support import trajectory, until

from upswing import rl_trainer
from upswing.contracts import Feedback, TrainingRequest
from upswing.contracts.examples import EXAMPLES
from upswing.errors import Misuse, Rejected

SECRET = "sk-proj-abcdefghijklmnopqrstuvwxyz0123456789ABCD"


def test_the_module_has_the_functions_that_the_profile_names():
    for name in (
        "subscribe_nats",
        "publish_nats",
        "validate_trajectory",
        "redact_sensitive_info",
        "compute_reward",
        "download_checkpoint",
        "run_benchmarks",
        "deploy_to_tensorzero",
    ):
        assert getattr(rl_trainer, name).__doc__


def test_a_trajectory_is_checked_by_its_schemas_name():
    given = trajectory()
    assert rl_trainer.validate_trajectory(given)["trajectory_id"] == given["trajectory_id"]
    assert rl_trainer.validate_trajectory(given, schema="trajectory.v1.schema.json")
    with pytest.raises(Rejected, match="turns"):
        rl_trainer.validate_trajectory({**given, "turns": []})
    with pytest.raises(Misuse, match=r"reward\.v1"):
        rl_trainer.validate_trajectory(given, schema="nonsense.json")


def test_other_messages_are_checked_by_theirs():
    assert rl_trainer.validate_trajectory(
        EXAMPLES[TrainingRequest], "training.request.v1.schema.json"
    )
    assert rl_trainer.validate_trajectory(EXAMPLES[Feedback], "feedback.v1.schema.json")


def test_everything_is_redacted_whatever_the_caller_counts_on():
    given = trajectory()
    given["turns"][0]["observation"]["content"] = f"key {SECRET}, mail bob@example.com"
    clean = json.dumps(
        rl_trainer.redact_sensitive_info(given, patterns=["api_key", "password", "email"])
    )
    assert SECRET not in clean
    assert "bob@example.com" not in clean
    assert "<email-1>" in clean
    with pytest.raises(Misuse, match="horoscope"):
        rl_trainer.redact_sensitive_info(given, patterns=["horoscope"])


def test_a_reward_is_what_the_loop_would_make():
    good = trajectory(metadata={"outcome": {"status": "completed", "share": 1.0}})
    bad = trajectory(metadata={"outcome": {"status": "failed", "share": 0.0}})
    before = [trajectory() for _ in range(20)]
    better, worse = (rl_trainer.compute_reward(each, before) for each in (good, bad))
    for made in (better, worse):
        assert rl_trainer.validate_trajectory(made, "reward.v1.schema.json")
        weights = [part["weight"] for part in made["reward_components"].values()]
        assert math.isclose(sum(weights), 1.0)
    assert better["metadata"]["raw_total"] > worse["metadata"]["raw_total"]
    assert better["trajectory_id"] == good["trajectory_id"]


def test_weights_and_feedback_count():
    given = trajectory()
    word = {
        "feedback_id": "f1",
        "timestamp": "2026-01-01T00:00:00Z",
        "trajectory_id": given["trajectory_id"],
        "type": "thumbs_down",
    }
    only = {"task_completion": 0.0, "efficiency": 0.0, "code_quality": 0.0, "user_feedback": 1.0}
    made = rl_trainer.compute_reward(given, weights=only, feedback=[word])
    assert made["reward_components"]["user_feedback"]["score"] == 0.0
    assert made["metadata"]["raw_total"] == 0.0
    assert pytest.approx(1.0) == sum(rl_trainer.REWARD_WEIGHTS.values())
    with pytest.raises(Misuse, match="sum"):
        rl_trainer.compute_reward(given, weights={"task_completion": 0.9})


def test_a_checkpoint_that_is_not_there_is_a_sentence(tmp_path):
    with pytest.raises(Misuse, match="no checkpoint"):
        rl_trainer.download_checkpoint(str(tmp_path / "models/job-1"), tmp_path / "here")
    with pytest.raises(Misuse, match="such as"):
        rl_trainer.download_checkpoint("job-1")
    (tmp_path / "here" / "job-1").mkdir(parents=True)
    with pytest.raises(Misuse, match="there already"):
        rl_trainer.download_checkpoint(str(tmp_path / "models/job-1"), tmp_path / "here")


def test_a_checkpoint_comes_whole_and_verified(tmp_path):
    """The helpers that make one stand with the tests of training."""
    from tests.train.checkpoint_cases import make_base, make_checkpoint

    from upswing.train.checkpoints.checking import verify
    from upswing.train.checkpoints.storage import CheckpointStore

    made = make_checkpoint(tmp_path, "final", make_base(tmp_path / "base"), "adapter")
    kept = asyncio.run(CheckpointStore(str(tmp_path / "kept")).upload(made, "job-1"))
    here = rl_trainer.download_checkpoint(kept, tmp_path / "here")
    assert here == tmp_path / "here" / "job-1"
    verify(here)
    weights = tmp_path / "kept/job-1/adapter_model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-1] + b"x")
    with pytest.raises(Rejected):
        rl_trainer.download_checkpoint(kept, tmp_path / "elsewhere")


class LoopPort:
    """A double of the loop's port: validations that take two looks, and a registry."""

    def __init__(self):
        self.asked, self.looks = [], 0
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def log_message(self, *_):
                pass

            def do_GET(self):
                outer.asked.append(("GET", self.path, None))
                if self.path == "/admin/models":
                    rows = [{"model_id": "m7", "checkpoint_path": "/models/job-7/"}]
                    return self.reply({"models": rows})
                outer.looks += 1
                report = {"suites": [{"name": "code_generation", "candidate": 0.9, "current": 0.8}]}
                done = {"state": "done", "word": "pass", "sentence": "Better.", "report": report}
                return self.reply({"state": "running"} if outer.looks == 1 else done)

            def do_POST(self):
                body = json.loads(self.rfile.read(int(self.headers["content-length"])))
                outer.asked.append(("POST", self.path, body))
                self.reply({"validation_id": "v1", "model_id": "m7", "state": "validating"})

            def reply(self, tree):
                raw = json.dumps(tree).encode()
                self.send_response(200)
                self.send_header("content-length", str(len(raw)))
                self.end_headers()
                self.wfile.write(raw)

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}"
        threading.Thread(target=self.server.serve_forever, args=(0.01,), daemon=True).start()


@pytest.fixture
def port(monkeypatch):
    made = LoopPort()
    monkeypatch.setenv("AGENTGYM_RL_URL", made.url)
    monkeypatch.setenv("AGENTGYM_RL_API_KEY", "k")
    yield made
    made.server.shutdown()
    made.server.server_close()


def test_benchmarks_are_a_validation_of_the_suites_that_the_profile_names(port):
    found = rl_trainer.run_benchmarks(
        "/models/job-7", tasks=["code_gen", "data_analysis", "research"]
    )
    assert found["verdict"] == "pass"
    assert found["scores"] == {"code_generation": 0.9}
    (asked,) = [body for method, _, body in port.asked if method == "POST"]
    assert asked == {
        "model_id": "m7",
        "suites": ["code_generation", "data_analysis", "research_synthesis"],
    }
    with pytest.raises(Misuse, match="No model has the checkpoint"):
        rl_trainer.run_benchmarks("/models/other")


def test_a_deployment_is_a_registration(port):
    rl_trainer.deploy_to_tensorzero("agent-zero-rl-v2.3", "s3://models/job-7", base_model="tiny")
    assert port.asked == [
        (
            "POST",
            "/admin/models",
            {
                "model_id": "agent-zero-rl-v2.3",
                "checkpoint_path": "s3://models/job-7",
                "base_model": "tiny",
            },
        )
    ]


def test_nobody_puts_a_model_before_all_users_by_a_call():
    with pytest.raises(Misuse, match="by request"):
        rl_trainer.deploy_to_tensorzero("m", "/x", rollout_strategy="immediate")


def test_without_a_loop_or_a_bus_the_sentence_says_what_to_set(monkeypatch, tmp_path):
    monkeypatch.setenv("UPSWING_DATA", str(tmp_path / "nothing"))
    for call in (
        lambda: rl_trainer.publish_nats("agent.rl.trajectory.v1", trajectory()),
        lambda: rl_trainer.subscribe_nats("agent.rl.trajectory.v1"),
        lambda: rl_trainer.run_benchmarks("m"),
        lambda: rl_trainer.deploy_to_tensorzero("m", "/x"),
    ):
        with pytest.raises(Misuse):
            call()
    with pytest.raises(Misuse, match="There is no subject"):
        rl_trainer.publish_nats("agent.rl.nonsense", {})
    with pytest.raises(Misuse, match="stream"):
        rl_trainer.subscribe_nats("agent.rl.stored")


@pytest.mark.live
async def test_what_is_published_is_stored_and_heard(loop, client, data, monkeypatch):
    monkeypatch.setenv("UPSWING_DATA", str(data))
    given = trajectory()
    given["turns"][0]["observation"]["content"] = f"key {SECRET}"
    number = await asyncio.to_thread(rl_trainer.publish_nats, "agent.rl.trajectory.v1", given)
    assert number >= 1

    async def stored():
        return (await client("GET", f"/v1/trajectories/{given['trajectory_id']}"))[0] == 200

    await until(stored)

    def hear():
        with rl_trainer.subscribe_nats("agent.rl.trajectory.v1", idle_seconds=5) as messages:
            return next(iter(messages))

    heard = await asyncio.to_thread(hear)
    assert heard["trajectory_id"] == given["trajectory_id"]
    assert SECRET not in json.dumps(heard), "redacted before it reached the stream"

    def again():
        with rl_trainer.subscribe_nats(
            "agent.rl.trajectory.v1", "others", idle_seconds=1
        ) as messages:
            return [each["trajectory_id"] for each in messages]

    assert await asyncio.to_thread(again) == [given["trajectory_id"]], "each group hears all"
    assert await asyncio.to_thread(again) == [], "and what was acknowledged does not come again"


@pytest.mark.live
async def test_a_message_that_is_none_is_refused_before_it_leaves(loop, data, monkeypatch):
    monkeypatch.setenv("UPSWING_DATA", str(data))
    with pytest.raises(Rejected):
        await asyncio.to_thread(
            rl_trainer.publish_nats, "agent.rl.training.request.v1", {"training_job_id": "x"}
        )


@pytest.mark.live
async def test_a_training_request_on_the_bus_becomes_a_job(loop, client, data, monkeypatch):
    monkeypatch.setenv("UPSWING_DATA", str(data))
    given = {**EXAMPLES[TrainingRequest], "training_job_id": f"manual-{uuid.uuid4()}"}
    await asyncio.to_thread(rl_trainer.publish_nats, "agent.rl.training.request.v1", given)

    async def known():
        _, found = await client("GET", "/jobs")
        return any(job["training_job_id"] == given["training_job_id"] for job in found["jobs"])

    await until(known)
