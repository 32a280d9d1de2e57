"""What goes wrong with training really goes wrong here: memory, kills, NaN, bad data, time, storage."""

import asyncio
import copy
import os
import signal
from pathlib import Path

import msgspec
import pytest
from tests.conftest import running_loop
from tests.learn.school import School, batch
from tests.support import Client, alive, family, freeze, sized, small, until

from upswing.config import Settings, Surroundings, TrainConfig
from upswing.train.core.recipe import Recipe
from upswing.train.core.recovery import Failure
from upswing.worlds.triage import Triage

pytestmark = [pytest.mark.live, pytest.mark.learn]
QUICK = {
    "learning_rate": 3e-4,
    "epochs": 2,
    "batch_size": 16,
    "save_interval": 4,
    "evaluations": 1,
    "holdout": 0.0,
}
JOB = "round-1-grpo"
GOING_ON = QUICK | {"learning_rate": 1e-6, "epochs": 40}
"""A job that takes its time, and does not end before its last step."""
LONG = {"epochs": 100_000, "save_interval": 1_000_000}
"""A job that does not end by itself."""


@pytest.fixture
def folder(data, bases):
    """A data directory that finds its bases ready."""
    data.mkdir(mode=0o700)
    (data / "bases").symlink_to(bases)
    return data


class Bench:
    """A loop with some recorded work to train on."""

    def __init__(self, folder, *, storage=None, **train):
        self.folder = folder
        knobs = {"status_seconds": 0, "retry_minutes": 0, **train}
        self.options = {
            "settings": Settings(train=TrainConfig(**knobs)),
            "surroundings": Surroundings(model_storage_path=storage),
        }

    async def __aenter__(self):
        self._loop = running_loop(self.folder, **self.options)
        self.loop = await self._loop.__aenter__()
        self.client = Client(self.loop.running.http_url, self.loop.running.key)
        self.school = School(self.client, Triage(), self.folder / "bases")
        return self

    async def __aexit__(self, *error):
        await self.client.__aexit__(*error)
        await self._loop.__aexit__(*error)

    async def recorded(self, tasks=8):
        await self.school.record(batch(self.school.world, 0, tasks))
        return self

    def train(self, **recipe):
        """Begin a job; what it becomes is awaited."""
        return asyncio.create_task(self.school.train("grpo", seconds=240, **{**QUICK, **recipe}))

    async def until_step(self, step):
        async def fact():
            jobs = await self.loop.jobs.active()
            progress = jobs[0].status.progress if jobs else None
            return bool(progress) and progress.current_step >= step

        await until(fact, 120, f"training did not come to step {step}")

    async def failures(self):
        job = await self.loop.jobs.get(JOB)
        return msgspec.json.decode(job.failures, type=list[Failure])

    async def recipe(self):
        return msgspec.json.decode((await self.loop.jobs.get(JOB)).recipe, type=Recipe)


def training_children(pid=None):
    """The processes below this one that train."""
    return [each for each in family(pid or os.getpid()) if "upswing.train.child" in command(each)]


def command(pid):
    try:
        return Path(f"/proc/{pid}/cmdline").read_text().split("\0")
    except OSError:
        return []


async def child(pid=None):
    [found] = await until(lambda: training_children(pid), 120, "no training process came")
    return found


def saved_steps(home):
    return [int(path.name[5:]) for path in (home / "checkpoints").glob("step-*")]


@pytest.mark.long
async def test_a_killed_child_is_followed_by_another_that_goes_on_from_its_checkpoint(folder):
    async with Bench(folder) as bench:
        await bench.recorded()
        job = bench.train(epochs=16)
        await bench.until_step(6)
        os.kill(await child(), signal.SIGKILL)
        status = await job
        assert status["status"] == "completed", status
        [failure] = await bench.failures()
        assert failure.cause == "LOST"
        assert failure.saved_step >= 4
        assert status["metadata"]["attempt"] == 2
        assert status["progress"]["current_step"] == status["progress"]["total_steps"]
        taken = status["metadata"]["steps_taken"]
        assert taken <= status["progress"]["total_steps"] - failure.saved_step
        await until(lambda: not (folder / "jobs" / f"job-{JOB}").exists())
    assert not training_children()


@pytest.mark.long
@sized("times", 1, 3)
async def test_a_real_nan_halves_the_rate_and_at_the_third_time_a_person_is_called(
    folder, caplog, times
):
    async with Bench(folder) as bench:
        await bench.recorded()
        job = bench.train(learning_rate=1e32, max_grad_norm=0)
        if times < 3:
            await until(lambda: first_failure(bench), 120)
            await child()  # the next one has begun
            assert (await bench.client("POST", f"/training/{JOB}/cancel"))[0] == 200
        status = await job
        assert [failure.cause for failure in await bench.failures()] == ["CONVERGENCE"] * times
        journal = await bench.loop.decisions.list("train")
        assert [each.kind for each in journal] == ["recovery"] * times
        assert await bench.loop.models.list() == []
        if times < 3:
            assert (await bench.recipe()).learning_rate == pytest.approx(5e31)
            return
        assert (status["status"], status["error"]["code"]) == ("failed", "CONVERGENCE")
        assert (await bench.recipe()).learning_rate == pytest.approx(2.5e31)
        assert any(getattr(record, "action", "") == "alert" for record in caplog.records)


@pytest.mark.slow
async def test_memory_that_runs_out_is_answered_by_smaller_passes(folder):
    async with Bench(folder, memory_gb=2.0) as bench:
        await bench.school.post(long_ones())
        bench.school.rounds = 1
        status = await bench.train(
            micro_tokens=131072, batch_size=64, epochs=1, max_tokens=4096, min_agents=2
        )
        assert status["status"] == "completed", status
        failures = await bench.failures()
        assert {failure.cause for failure in failures} == {"OOM"}
        recipe = await bench.recipe()
        assert recipe.micro_tokens == 131072 >> len(failures)
        assert recipe.batch_size == 64


@pytest.mark.long
async def test_bad_data_is_named_left_out_and_training_goes_on_without_it(folder):
    async with Bench(folder) as bench:
        await bench.recorded()
        world_ones = await bench.loop.store.trajectories_after(0)
        bad = absurd_ones(world_ones[:3])
        await bench.school.post(bad)
        status = await bench.train()
        assert status["status"] == "completed", status
        [failure] = await bench.failures()
        assert failure.cause == "DATA"
        assert set(failure.bad) == {tree["trajectory_id"] for tree in bad}


async def test_a_job_with_nothing_to_learn_fails_with_data_and_makes_no_model(folder):
    async with Bench(folder) as bench:
        await bench.school.post(equal_ones())
        bench.school.rounds = 1
        status = await bench.train()
        assert (status["status"], status["error"]["code"]) == ("failed", "DATA")
        assert "nobody did better than another" in status["error"]["message"]
        assert await bench.loop.models.list() == []


@pytest.mark.long
async def test_a_job_that_takes_too_long_is_ended_and_after_three_times_given_up(folder):
    async with Bench(folder, timeout_hours=3 / 3600) as bench:
        await bench.recorded()
        status = await bench.train(**LONG)
        assert (status["status"], status["error"]["code"]) == ("failed", "TIMEOUT")
        assert len(await bench.failures()) == 3
    assert not training_children()


async def stand_still(bench, step):
    """Freeze the child at this step, or at 0 as soon as it is there: its pid, and the job."""
    job = bench.train(epochs=16)
    if step:
        await bench.until_step(step)
    freeze(pid := await child())
    return pid, job


async def is_followed(bench, pid, job, step):
    """Another child comes; one that found a checkpoint goes on to the end."""
    await until(lambda: pid not in training_children() and training_children(), 120)
    if not step:
        assert (await bench.client("POST", f"/training/{JOB}/cancel"))[0] == 200
    status = await job
    assert status["status"] == ("completed" if step else "cancelled"), status


@pytest.mark.long
@sized("step", 0, 6)
async def test_a_child_that_hangs_is_noticed_by_its_silence(folder, step):
    async with Bench(folder, heartbeat_seconds=5) as bench:
        await bench.recorded()
        pid, job = await stand_still(bench, step)
        failure = await until(lambda: first_failure(bench), 60)
        assert (failure.cause, "no sign of life" in failure.message) == ("TIMEOUT", True)
        await is_followed(bench, pid, job, step)


@pytest.mark.long
@sized("step", 0, 6)
async def test_a_child_that_is_frozen_is_replaced_at_once(folder, step):
    async with Bench(folder, retry_minutes=60) as bench:
        await bench.recorded()
        pid, job = await stand_still(bench, step)
        failure = await until(lambda: first_failure(bench), 60)
        assert (failure.cause, "frozen" in failure.message) == ("LOST", True)
        await is_followed(bench, pid, job, step)


@pytest.mark.long
async def test_storage_that_is_away_is_waited_for_and_nothing_is_trained_twice(
    folder, s3, s3_server
):
    async with Bench(folder, storage=s3, retry_minutes=1 / 60) as bench:
        await bench.recorded()
        await asyncio.to_thread(s3_server.stop)
        try:
            job = bench.train()
            failure = await until(lambda: first_failure(bench), 120)
            assert failure.cause == "INFRA"
        finally:
            await asyncio.to_thread(s3_server.start)  # seconds, in which the loop has to answer
        status = await job
        assert status["status"] == "completed", status
        assert status["artifacts"]["final_checkpoint"].startswith("s3://")
        assert status["metadata"]["steps_taken"] == 0  # the last attempt only kept what was there


async def first_failure(bench):
    return next(iter(await bench.failures()), None) if await bench.loop.jobs.get(JOB) else None


@pytest.mark.long
async def test_a_cancelled_job_ends_and_leaves_nothing(folder):
    async with Bench(folder) as bench:
        await bench.recorded()
        job = bench.train(**LONG)
        await bench.until_step(1)
        pid = await child()
        code, answer = await bench.client("POST", f"/training/{JOB}/cancel")
        assert code == 200, answer
        assert (await job)["status"] == "cancelled"
        assert not alive(pid)
        await until(lambda: not (folder / "jobs" / f"job-{JOB}").exists())


@pytest.mark.long
async def test_a_loop_that_is_killed_goes_on_with_its_job(folder, start):
    first = start(folder)
    async with Client(first.info["http_url"], first.info["key"]) as client:
        school = School(client, Triage(), folder / "bases")
        await school.record(batch(school.world, 0, 8))
        job = asyncio.create_task(school.train("grpo", seconds=240, **GOING_ON))
        pid = await child(first.popen.pid)
        await until(lambda: saved_steps(folder / "jobs" / f"job-{JOB}"), 120)
        first.kill_group()
        await until(lambda: not alive(pid), 60, "the training process outlived the loop")
        job.cancel()
        await asyncio.gather(job, return_exceptions=True)
    second = start(folder)
    async with Client(second.info["http_url"], second.info["key"]) as client:
        school.client = client
        status = await until(lambda: school.ended(JOB), 240, "the job did not end")
    assert status["status"] == "completed", status
    assert status["metadata"]["first_step"] >= 2


# ── trajectories that make trouble ───────────────────────────────────────────────────────────────


def group_of(name, rewards, window="2026-11-15T10:00", words=1):
    """Attempts at one task by different agents; its text is `words` times five words long."""
    told = f"{name} " + "please look at the case " * words
    made = []
    for number, reward in enumerate(rewards):
        status = "completed" if reward else "failed"
        tree = small(window_id=window, scenario_id=name, outcome={"status": status})
        tree["turns"][0]["action"]["raw_response"] = f"answer {number}"
        tree |= {
            "agent_id": f"agent-{number}",
            "task_context": {"task_id": name, "instructions": told},
        }
        tree |= {"start_timestamp": f"{window}:00Z", "end_timestamp": f"{window}:30Z"}
        made.append(tree)
    return made


def long_ones():
    """Long prompts that have nothing in common, so that a pass over all of them is large."""
    return [tree for case in range(24) for tree in group_of(f"case{case}", (1, 0), words=600)]


def equal_ones():
    return [tree for case in range(4) for tree in group_of(f"case{case}", (1,) * 6)]


def absurd_ones(rows):
    """Copies of recorded work whose logprobs nobody can have sampled."""
    made = []
    for number, row in enumerate(rows):
        tree = msgspec.json.decode(row.admitted.body)
        tree = copy.deepcopy(tree) | {"trajectory_id": f"00000000-0000-4000-8000-{number:012d}"}
        for part in tree["metadata"]["tokens"]:
            part["logprobs"] = [-1e9 for _ in part["logprobs"]]
        made.append(tree)
    return made
