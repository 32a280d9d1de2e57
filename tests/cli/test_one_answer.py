"""Is it time to train? Readiness, the trigger, `windows check` and the dry run give one answer."""

import asyncio
import os

import pytest
from tests.conftest import running_loop
from tests.support import Client, cli, trajectory, until

from upswing.config import Surroundings, read_settings
from upswing.redact import Redactor

pytestmark = pytest.mark.live
REDACTOR = Redactor()


async def record(loop, client, tasks, right, says):
    """Four attempts at each task, with a verified outcome."""
    for number in range(4 * tasks):
        task, attempt = divmod(number, 4)
        outcome = ("failed", "completed")[right(task, attempt)]
        document = trajectory(
            agent_id="one",
            metadata={"model": "tiny", "outcome": {"status": outcome, "source": "tests"}},
        )
        document["task_context"]["task_id"] = f"task-{task}"
        document["turns"][-1]["action"]["raw_response"] = says(task, attempt)
        await client.send(document)

    async def scored():
        return (await loop.store.counts())["rewards"] >= 4 * tasks

    await until(scored)


async def answers(loop, client, data):
    """What each of the four says, and whether it would train."""
    _, status = await client("GET", "/api/admin/training/status")
    ready = status["readiness"]
    checked = await asyncio.to_thread(cli, "windows", "check", data=data, check=False)
    planned = await asyncio.to_thread(cli, "train", "--dry-run", data=data, check=False)
    plan = (planned.stdout + planned.stderr).decode()
    _, asked = await client("POST", "/api/admin/training/trigger", {})
    started = await asyncio.to_thread(cli, "train", data=data, check=False)
    return {
        "readiness": (ready["ready"], ready["reason"] + " ".join(ready["notes"])),
        "windows check": (checked.returncode == 0, checked.stdout.decode()),
        "dry run": (planned.returncode == 0 and "Not ready" not in plan, plan),
        "trigger": (asked["triggered"], asked["reason"]),
        "train": (started.returncode == 0, started.stderr.decode()),
    }


@pytest.mark.parametrize(
    ("right", "says", "words"),
    [
        (
            lambda task, _: task % 2,
            lambda task, _: f"always {task}",
            (
                "30 groups with the same answer again and again",
                "temperature 0",
                "`explore` in [gateway]",
            ),
        ),
        (lambda *_: False, lambda t, a: f"{t} {a}", ("nothing was solved: all 120 outcomes",)),
        (lambda *_: True, lambda t, a: f"{t} {a}", ("everything is solved already: all 120",)),
        (lambda t, a: t % 2 if t < 28 else a % 2, lambda t, a: f"{t} {a}", ("2 of 32 groups",)),
    ],
    ids=["temperature 0", "all wrong", "all right", "two usable groups"],
)
async def test_all_say_no_for_the_same_reason_and_nothing_starts(data, right, says, words):
    data.mkdir(exist_ok=True)
    (data / "upswing.toml").write_text("[trigger]\ndays = 3650\n")
    here = {
        "settings": read_settings(data, os.environ),
        "surroundings": Surroundings(train_here=False),
    }
    async with (
        running_loop(data, redactor=REDACTOR, **here) as loop,
        Client(loop.running.http_url, loop.running.key) as client,
    ):
        await record(loop, client, 30, right, says)
        found = await answers(loop, client, data)
        for who, (ready, said) in found.items():
            assert not ready, who
            for word in words:
                assert word in said, (who, said)
        assert "--force" in found["train"][1]
        assert await loop.jobs.list() == []
        if words[0].startswith("2 of"):
            assert (
                "Of 30 tasks 14 are always solved, 2 sometimes and 14 never."
                in found["readiness"][1]
            )
