"""The demo, as a person runs it: stopped half-way, gone on with, looked through, and left behind."""

import asyncio
import json
import os
import signal
import sqlite3
import subprocess

import pytest
from tests.support import UPSWING, Client, Process, alive, cli, family, until

from upswing.demo.private_data import ground_truth_text, private_remark
from upswing.worlds.known import make_world

pytestmark = [pytest.mark.live, pytest.mark.learn, pytest.mark.slow]
SEED = 11


class Demo:
    """`upswing demo` in a process group of its own, without a terminal."""

    def __init__(self, data, *options):
        self.data, self.summary = data, data.parent / "summary.json"
        self.said = data.parent / "said.txt"
        with self.said.open("ab") as words:
            self.popen = subprocess.Popen(
                [
                    UPSWING,
                    "demo",
                    "--data",
                    str(data),
                    "--seed",
                    str(SEED),
                    "--cycles",
                    "1",
                    "--summary",
                    str(self.summary),
                    *options,
                ],
                stdout=words,
                stderr=subprocess.STDOUT,
                stdin=subprocess.DEVNULL,
                start_new_session=True,
                env=os.environ,
            )

    def told(self):
        return self.said.read_text()

    async def ended(self, seconds):
        await until(lambda: self.popen.poll() is not None, seconds, self.told()[-2000:])
        return self.popen.returncode

    def destroy(self):
        if self.popen.poll() is None:
            os.killpg(self.popen.pid, signal.SIGKILL)
            self.popen.wait()


@pytest.fixture
def demo(data, bases):
    data.mkdir(mode=0o700)
    (data / "bases").symlink_to(bases)
    started = []

    def start(*options):
        started.append(Demo(data, *options))
        return started[-1]

    yield start
    for each in started:
        each.destroy()


async def test_the_demo_goes_on_after_a_stop_and_the_loop_after_the_demo(demo, data):
    first = demo()
    await until(lambda: "There is enough to learn from" in first.told(), 300)
    await until(lambda: [*data.glob("jobs/*/samples.jsonl")], 60, "no training text is written")
    children = family(first.popen.pid)
    os.kill(first.popen.pid, signal.SIGINT)
    assert await first.ended(60) == 130, first.told()[-2000:]
    assert len(children) >= 5
    assert not [pid for pid in children if alive(pid)]
    assert "goes on" in first.told()
    the_training_text_tells_nothing(data)
    second = demo("--keep")
    await until(lambda: second.popen.poll() is not None or "stays up" in second.told(), 600)
    assert "stays up" in second.told(), second.told()[-4000:]
    os.kill(second.popen.pid, signal.SIGINT)
    assert await second.ended(60) == 0, second.told()[-4000:]
    summary = json.loads(second.summary.read_text())
    rows = Rows(data)
    the_rows_tell_the_story(rows, summary)
    nothing_private_is_left(data, rows)
    every_decision_has_its_reason(rows)
    assert (data / "demo" / "report.html").stat().st_size > 10_000
    assert "\x1b" not in second.told()
    await goes_on_with_the_promoted_model(data, rows, summary)


class Rows:
    """The store, read as it lies."""

    def __init__(self, data):
        self.database = sqlite3.connect(f"file:{data / 'upswing.db'}?mode=ro", uri=True)

    def __call__(self, sql):
        return self.database.execute(sql).fetchall()

    def states(self):
        return dict(self("SELECT model_id, state FROM models"))

    def kinds(self, stage):
        return {kind for (kind,) in self(f"SELECT kind FROM decisions WHERE stage = '{stage}'")}


def the_rows_tell_the_story(rows, summary):
    jobs = rows("SELECT state, reason FROM jobs")
    assert ("completed", "threshold_reached") in jobs, jobs
    ((model, parent),) = rows("SELECT model_id, parent FROM models WHERE state = 'deployed'")
    assert parent is None
    assert rows.states()["sabotage-1"] == "rolled_back"
    verdicts = dict(rows("SELECT candidate, word FROM validations"))
    assert verdicts[model] == "pass"
    assert verdicts["sabotage-1"] == "fail"
    assert {"canary", "begin", "set_weight", "promote", "abort", "roll_back"} <= rows.kinds(
        "deploy"
    )
    ((verified,),) = rows("SELECT COUNT(*) FROM scored WHERE verified IS NOT NULL")
    ((said,),) = rows("SELECT COUNT(*) FROM feedback")
    assert verified > 1000
    assert said > 10
    assert summary["rolled_back"] == ["sabotage-1"]
    assert summary["taken_back_seconds"] is not None
    assert summary["improved"]
    low, high = summary["heldout_after_interval"]
    assert low <= summary["heldout_after"] <= high
    assert summary["heldout_after"] > summary["heldout_before"] + 0.2
    assert {"start", "agents", "train", "validate", "canary", "take_back", "first_improved"} <= set(
        summary["stages"]
    )
    held_out = {task.task_id for task in make_world("desk", SEED).held_out}
    trained_on = {
        task
        for (task,) in rows(
            "SELECT DISTINCT t.task_id FROM trained_on o JOIN trajectories t USING (trajectory_id)"
        )
    }
    assert trained_on
    assert not trained_on & held_out


def the_training_text_tells_nothing(data):
    """What a job learns from is there while it runs: neither what was right nor what users let slip."""
    tasks = [task.task_id for task in make_world("desk", SEED).training]
    marks = [ground_truth_text(task).split()[-1].encode() for task in tasks]
    marks += [_private(task) for task in tasks if private_remark(task)]
    assert [*data.glob("jobs/*/samples.jsonl")]
    for path in data.glob("jobs/*/*"):
        content = path.read_bytes() if path.is_file() else b""
        assert not [mark for mark in marks if mark in content], path


def _private(task):
    return private_remark(task).split()[-1].rpartition("=")[2].encode()


def nothing_private_is_left(data, rows):
    """Whatever users let slip is nowhere; what was right is in the store, and in no training text."""
    done = {task for (task,) in rows("SELECT DISTINCT task_id FROM trajectories")}
    slips = [_private(task) for task in done if private_remark(task)]
    truths = [ground_truth_text(task).split()[-1].encode() for task in done]
    assert len(slips) > 3
    bodies = b"".join(bytes(body) for (body,) in rows("SELECT body FROM trajectories"))
    assert any(mark in bodies for mark in truths)
    for path in data.rglob("*"):
        if path.is_symlink() or not path.is_file() or "bases" in path.parts:
            continue
        content = path.read_bytes()
        found = [mark for mark in slips if mark in content]
        assert not found, (path, found)
        if "models" in path.parts or "jobs" in path.parts:
            told = [mark for mark in truths if mark in content]
            assert not told, (path, told)


def every_decision_has_its_reason(rows):
    decisions = rows("SELECT decision_id, sentence, inputs FROM decisions")
    assert decisions
    for decision_id, sentence, inputs in decisions:
        assert sentence.strip(), decision_id
        assert json.loads(bytes(inputs)) is not None, decision_id
    moves = rows("SELECT COUNT(*) FROM decisions WHERE stage = 'deploy'")
    assert moves[0][0] >= 6


async def goes_on_with_the_promoted_model(data, rows, summary):
    process = Process.start(data, gateway=True)
    try:
        running = await asyncio.to_thread(process.until_ready)
        ((model,),) = rows("SELECT model_id FROM models WHERE state = 'deployed'")
        async with Client(running["gateway_url"], running["gateway_key"]) as agent:

            async def answered():
                body = {
                    "model": "upswing",
                    "max_tokens": 4,
                    "messages": [{"role": "user", "content": "answer yes or no"}],
                }
                status, answer = await agent("POST", "/v1/chat/completions", body)
                return answer["model"] if status == 200 else None

            assert await until(answered, 120) == model
            token = json.loads((data / "secrets.json").read_text())["admin_token"]
            status, told = await agent("GET", "/admin/models/current/metrics", key=token)
            assert (status, told["model_id"], told["traffic_percentage"]) == (200, model, 100)
            assert (await agent("GET", "/admin/models", key="wrong"))[0] == 401
        back = rows("SELECT decision_id FROM decisions WHERE kind = 'roll_back'")[0][0]
        for words, said in (
            (("rollouts",), "rolled_back"),
            (("traffic",), model),
            (("explain", back), "Today it would come out the same."),
        ):
            assert said in (await asyncio.to_thread(cli, *words, data=data)).stdout.decode()
    finally:
        process.destroy()
