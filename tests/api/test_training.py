"""Jobs and models over HTTP, on a whole loop."""

import json

import pytest
from tests.conftest import running_loop
from tests.support import Client, samples, trajectory, until

from upswing.config import Settings, Surroundings, TrainConfig, TriggerConfig
from upswing.contracts import TrainingRequest, TrainingStatus, from_builtins
from upswing.contracts.examples import EXAMPLES
from upswing.redact import Redactor
from upswing.train.core.job_states import with_state

pytestmark = pytest.mark.live
LONG = 3650
"""Days that a job reaches back: the example's trajectories are of 2025."""
HERE = Settings(
    trigger=TriggerConfig(days=LONG),
    train=TrainConfig(min_trajectories=6, min_agents=3, min_groups=1),
)
REMOTE = Surroundings(train_here=False)
"""Jobs stay queued, so that what is asked of them does not depend on who runs them."""
REDACTOR = Redactor()


@pytest.fixture
async def loop(data):
    async with running_loop(data, settings=HERE, surroundings=REMOTE, redactor=REDACTOR) as made:
        yield made


def request(**changes):
    return EXAMPLES[TrainingRequest] | {"training_job_id": "job-1"} | changes


async def fill(loop, client, agents=3, each=2):
    for place in range(agents * each):
        told = {"outcome": ("failed", "completed")[place % 2], "scenario_id": "s"}
        await client.send(trajectory(agent_id=f"agent-{place % agents}", metadata=told))

    async def scored():
        return (await loop.store.counts())["rewards"] >= agents * each

    await until(scored)


# ── starting ─────────────────────────────────────────────────────────────────────────────────────


async def test_a_request_is_taken_once(client):
    status, started = await client("POST", "/training/start", request())
    assert (status, started["result"], started["status"]) == (202, "stored", "queued")
    assert "TRAIN_RL_LOCAL" in started["detail"]
    status, again = await client("POST", "/training/start", request())
    assert (status, again["result"], again["training_job_id"]) == (202, "known", "job-1")
    status, refusal = await client("POST", "/training/start", request(requester="x"))
    assert (status, refusal["error"]) == (409, "conflict")


async def test_only_a_config_is_enough(client):
    _, started = await client("POST", "/training/start", request()["training_config"])
    _, listed = await client("GET", "/jobs")
    (job,) = listed["jobs"]
    assert job["training_job_id"] == started["training_job_id"]
    assert (job["requester"], job["priority"], job["trigger_reason"]) == (
        "key operator",
        "high",
        "manual",
    )


@pytest.mark.parametrize(
    ("body", "status"),
    [(b"{", 400), (b"[]", 422), ({"algorithm": "magic"}, 422), (b"x" * 300_000, 413)],
)
async def test_what_is_wrong_is_refused_with_a_sentence(client, body, status):
    got, answer = await client("POST", "/training/start", body)
    assert got == status
    assert answer["detail"].endswith(".")
    assert (await client("GET", "/jobs"))[1] == {"jobs": []}


async def test_a_base_that_is_not_here_is_refused_where_jobs_run_here(data):
    async with (
        running_loop(data, redactor=REDACTOR) as loop,
        Client(loop.running.http_url, loop.running.key) as client,
    ):
        for name in ("qwen2.5-32b-instruct", "/etc", "..", "", "x" * 5000, "nul\0", "a\nb"):
            status, answer = await client("POST", "/training/start", {"base_model": name})
            assert (status, answer["error"]) == (422, "schema"), name
            assert len(answer["detail"]) <= 1000


# ── looking and ending ───────────────────────────────────────────────────────────────────────────


async def test_a_status_is_the_contracts_own(client, loop):
    await client("POST", "/training/start", request())
    status, told = await client("GET", "/training/job-1/status")
    assert (status, told["status"]) == (200, "queued")
    assert from_builtins(TrainingStatus, told) == (await loop.jobs.get("job-1")).status
    assert (await client("GET", "/training/no-such/status"))[0] == 404


async def test_a_queued_job_is_cancelled_and_counted(client):
    await client("POST", "/training/start", request())
    status, job = await client("POST", "/training/job-1/cancel")
    assert (status, job["status"], job["cancelling"]) == (200, "cancelled", False)
    assert (await client("POST", "/training/job-1/cancel"))[0] == 409
    assert (await client("POST", "/training/no-such/cancel"))[0] == 404
    _, text = await client("GET", "/metrics", key=None)
    assert samples(text)["agent_rl_training_jobs_total", (("status", "cancelled"),)] == 1


async def test_a_running_job_is_told_to_end(client, loop):
    await client("POST", "/training/start", request())
    await loop.jobs.claim("w", loop._clock(), loop.policy.rules.pause)
    _, job = await client("POST", "/training/job-1/cancel")
    assert (job["status"], job["cancelling"], job["attempt"]) == ("running", True, 1)


async def test_jobs_are_filtered_as_the_guides_ask(client):
    for place in range(3):
        await client("POST", "/training/start", request(training_job_id=f"job-{place}"))
    await client("POST", "/training/job-1/cancel")

    async def ids(query):
        status, listed = await client("GET", f"/jobs{query}")
        assert status == 200
        return [job["training_job_id"] for job in listed["jobs"]]

    assert await ids("?status=queued&limit=10") == ["job-2", "job-0"]
    assert await ids("?status=cancelled&since=7d") == ["job-1"]
    assert await ids("?limit=1") == ["job-2"]
    assert await ids("?since=0s") == []
    assert await ids("?status=&limit=2") == ["job-2", "job-1"]


@pytest.mark.parametrize(
    "path",
    [
        "/jobs?since=yesterday",
        "/jobs?since=7",
        "/jobs?status=lost",
        "/jobs?limit=0",
        "/jobs?limit=%C2%B2",
        "/models?deployed_since=d",
    ],
)
async def test_a_parameter_that_makes_no_sense_is_refused(client, path):
    status, answer = await client("GET", path)
    assert (status, answer["error"]) == (422, "schema")


async def test_models_are_listed_and_by_when_they_were_deployed(client, loop):
    for job_id in ("a", "b"):
        await loop.models.register(
            job_id=job_id,
            base_model="tiny",
            parent=None,
            snapshot="s",
            path="p",
            card="c",
            samples=5,
            final_reward=0.5,
            now=loop._clock(),
        )
    _, listed = await client("GET", "/models")
    assert [model["model_id"] for model in listed["models"]] == [
        "agent-zero-rl-v2",
        "agent-zero-rl-v1",
    ]
    assert (await client("GET", "/models?deployed_since=7d"))[1] == {"models": []}


# ── the second guide ─────────────────────────────────────────────────────────────────────────────


async def test_the_status_has_the_guides_shape(client, loop):
    status, told = await client("GET", "/api/admin/training/status")
    assert status == 200
    assert told["readiness"].pop("asOf"), "when it was counted"
    assert told == {
        "status": "healthy",
        "automation": {
            "dataCollection": {"last24h": 0, "ratePerHour": 0.0},
            "training": {"currentJob": None, "lastCompleted": None},
            "models": {"latest": None, "deployed": 0},
        },
        "readiness": {
            "ready": False,
            "reason": "0 of 6 trajectories; 0 of 1 group of attempts in which one did better than "
            "another; 0 of 100 single attempts that can be told apart.",
            "stats": {
                "totalTrajectories": 0,
                "scenarioGroups": 0,
                "usableGroups": 0,
                "flatGroups": 0,
                "identicalGroups": 0,
                "statedOutcomes": 0,
                "singleAttempts": 0,
                "newSuccesses": 0,
                "tasks": {"always": 0, "sometimes": 0, "never": 0},
            },
            "algorithm": None,
            "why": "",
            "notes": [],
        },
    }


@pytest.mark.parametrize(
    ("states", "latest"),
    [
        (["trained"], None),
        (["passed", "validating"], "agent-zero-rl-v1"),
        (["deployed", "failed", "undecided"], "agent-zero-rl-v1"),
        (["retired", "canary", "rolled_back"], "agent-zero-rl-v2"),
        (["deployed", "passed"], "agent-zero-rl-v2"),
        (["passed", "aborted"], "agent-zero-rl-v1"),
    ],
)
async def test_the_latest_model_is_the_newest_that_was_trained_and_validated(
    client, loop, states, latest
):
    for number, state in enumerate(states):
        name = await loop.models.register(
            job_id=f"j{number}",
            base_model="tiny",
            parent=None,
            snapshot="s",
            path="p",
            card="c",
            samples=5,
            final_reward=0.5,
            now=loop._clock(),
        )
        await put_state(loop, name, state)
    _, told = await client("GET", "/api/admin/training/status")
    assert told["automation"]["models"]["latest"] == latest


async def put_state(loop, name, state):
    sql = "UPDATE models SET state = ? WHERE model_id = ?"
    await loop.store.database.write(lambda tx: tx.execute(sql, (state, name)))


async def test_the_status_tells_what_there_is_and_what_was_done(client, loop):
    await fill(loop, client)
    await client("POST", "/training/start", request())
    _, told = await client("GET", "/api/admin/training/status")
    assert told["automation"]["dataCollection"] == {"last24h": 6, "ratePerHour": 0.25}
    assert told["automation"]["training"]["currentJob"] == "job-1"
    ready = told["readiness"]
    assert (ready["ready"], ready["reason"], ready["algorithm"]) == (
        True,
        "Ready to train!",
        "grpo",
    )
    assert "Job job-1 is not finished yet." in ready["notes"]
    assert ready["stats"]["totalTrajectories"] == 6
    assert (ready["stats"]["scenarioGroups"], ready["stats"]["usableGroups"]) == (1, 1)
    now = loop._clock()
    job = await loop.jobs.claim("w", now, loop.policy.rules.pause)
    await loop.jobs.finish(
        "job-1", "completed", with_state(job.status, "completed", now), b"[]", now
    )
    _, told = await client("GET", "/api/admin/training/status")
    assert told["automation"]["training"]["currentJob"] is None
    assert told["automation"]["training"]["lastCompleted"].startswith(f"{now:%Y-%m-%dT%H:%M}")


@pytest.mark.parametrize(
    ("asked", "status"),
    [
        ({"algorithm": "grpo"}, 409),
        ({"algorithm": "ppo"}, 202),
        (
            {"training_config": {"algorithm": "grpo"}, "metadata": {"recipe": {"min_agents": 2}}},
            202,
        ),
    ],
    ids=["compares", "compares nobody", "is content with two"],
)
async def test_a_start_can_depend_on_whether_there_is_enough(client, loop, asked, status):
    await fill(loop, client, agents=2, each=3)
    got, answer = await client("POST", "/training/start?only_if_ready=true", asked)
    assert got == status
    if status == 409:
        assert answer["detail"].startswith(
            "Not ready to train: 0 of 1 group of attempts in which one did better than another;"
        )
        assert "6 with too few others to compare" in answer["detail"]
        assert (await client("POST", "/training/start", asked))[0] == 202, "without the condition"
        return
    again, held = await client("POST", "/training/start?only_if_ready=true", asked)
    assert (again, "is not finished yet" in held["detail"]) == (409, True), "one model at a time"
    assert (await client("POST", "/training/start", asked))[0] == 202, "who insists gets a job"


async def test_a_plan_is_ready_when_a_start_would_be(client, loop):
    await fill(loop, client)
    asked = {"algorithm": "grpo"}
    _, plan = await client("POST", "/training/plan", asked)
    assert (plan["ready"], plan["verdict"].startswith("Ready to train!")) == (True, True)
    assert (await client("POST", "/training/start?only_if_ready=true", asked))[0] == 202
    _, held = await client("POST", "/training/start?only_if_ready=true", asked)
    _, plan = await client("POST", "/training/plan", asked)
    assert not plan["ready"]
    assert held["detail"].removeprefix("Not ready to train: ") in plan["verdict"]
    assert "Ready to train!" not in plan["verdict"]


async def test_three_failures_in_a_row_show(client, loop):
    for place in range(3):
        await client("POST", "/training/start", request(training_job_id=f"job-{place}"))
        now = loop._clock()
        job = await loop.jobs.claim("w", now, loop.policy.rules.pause)
        await loop.jobs.finish(
            job.job_id, "failed", with_state(job.status, "failed", now), b"[]", now
        )
        _, told = await client("GET", "/api/admin/training/status")
        assert told["status"] == ("degraded" if place == 2 else "healthy")


async def test_the_trigger_says_what_is_missing(client, loop):
    status, told = await client(
        "POST", "/api/admin/training/trigger", {"force": False, "batchSize": 100}
    )
    assert (status, told["triggered"], told["jobId"]) == (200, False, None)
    assert "0 of 6 trajectories" in told["reason"]
    assert (await loop.decisions.get(told["decisionId"])).kind == "wait_until_ready"


async def test_the_trigger_trains_when_there_is_enough(client, loop):
    await fill(loop, client)
    _, told = await client("POST", "/api/admin/training/trigger", {"batchSize": 5})
    assert told["triggered"]
    job = await loop.jobs.get(told["jobId"])
    assert job.request.training_config.dataset.sample_size == 5
    assert (job.reason, job.request.priority) == ("manual", "high")
    _, again = await client("POST", "/api/admin/training/trigger", {})
    assert (again["triggered"], told["jobId"] in again["reason"]) == (False, True)


@pytest.mark.parametrize("body", [{"force": True}, {"force": True, "batchSize": None}])
async def test_force_trains_anyway(client, loop, body):
    _, told = await client("POST", "/api/admin/training/trigger", body)
    assert told["triggered"]
    assert (await loop.jobs.get(told["jobId"])).request.metadata["recipe"] == {
        "min_agents": 1,
        "min_attempts": 2,
    }


@pytest.mark.parametrize(
    ("body", "status"),
    [(b"{", 400), ({"batchSize": 0}, 422), ({"force": "yes"}, 422), ({"x": 1}, 422), (b"[]", 422)],
)
async def test_a_trigger_that_makes_no_sense_is_refused(client, body, status):
    assert (await client("POST", "/api/admin/training/trigger", body))[0] == status


async def test_an_empty_body_asks_politely(client):
    status, told = await client("POST", "/api/admin/training/trigger")
    assert (status, told["triggered"]) == (200, False)


# ── on its own ───────────────────────────────────────────────────────────────────────────────────


async def test_a_loop_asks_for_training_by_itself_and_tells_everybody(data):
    settings = Settings(
        trigger=TriggerConfig(threshold=3, days=LONG),
        train=TrainConfig(min_trajectories=3, min_agents=3, min_groups=1),
    )
    async with (
        running_loop(data, settings=settings, surroundings=REMOTE, redactor=REDACTOR) as loop,
        Client(loop.running.http_url, loop.running.key) as client,
    ):
        await fill(loop, client, agents=3, each=1)
        await loop.trigger.run_once()
        _, listed = await client("GET", "/jobs?status=queued")
        (job,) = listed["jobs"]
        assert job["trigger_reason"] == "threshold_reached"
        stream = await until(lambda: _messages(loop, 2))
        subjects = [
            (message.subject, json.loads(message.data)["training_job_id"]) for message in stream
        ]
        assert subjects == [
            ("agent.rl.training.request.v1", job["training_job_id"]),
            ("agent.rl.training.status.v1", job["training_job_id"]),
        ]
        consumer = await until(lambda: _settled(loop))
        assert consumer.num_pending == 0
        assert len((await client("GET", "/jobs"))[1]["jobs"]) == 1, "its own request came back"


async def _messages(loop, count):
    state = (await loop.bus.js.stream_info("RL_TRAINING")).state
    if state.messages < count:
        return None
    return [await loop.bus.js.get_msg("RL_TRAINING", seq) for seq in range(1, count + 1)]


async def _settled(loop):
    info = await loop.bus.js.consumer_info("RL_TRAINING", "trainer")
    return info if info.delivered.consumer_seq and not info.num_ack_pending else None
