"""Test agents work in a running loop: is all of it there, in its groups, with what users said?"""

import asyncio
import json
import signal
import subprocess
import sys
from collections import Counter

import pytest
from tests.gateway.scripted import Server, completion
from tests.support import UPSWING, Client, Process, cli, rows, until

from upswing.worlds.agent_pool import AgentEndpoint, AgentPool, AgentSettings
from upswing.worlds.triage import RULE, Triage

pytestmark = [pytest.mark.live]
WINDOW, LATER = "2026-01-05T12:00", "2026-01-05T13:00"
SHORT = ("--agents", "2", "--tasks", "3", "--pause", "0", "--feedback", "1")


@pytest.fixture(scope="module")
def house(tmp_path_factory, bases):
    """A loop with gateway and model server, in processes of its own."""
    data = tmp_path_factory.mktemp("agents") / "data"
    data.mkdir(mode=0o700)
    (data / "bases").symlink_to(bases)
    process = Process.start(data, gateway=True)
    process.until_ready(120)
    yield process
    assert process.stop() == 0, process.log.read_text()
    process.destroy()


async def served(house):
    async def ok():
        async with Client(house.info["gateway_url"]) as gateway:
            return (await gateway("GET", "/health"))[1]["status"] == "ok"

    await until(ok, 180, "the base is not served")


def stored(house, prefix, count):
    """The rows of these agents, once there are so many; body first."""
    sql = (
        "SELECT body, agent_id, window_id, scenario_id, task_id, model, turns, evaluation, "
        "trajectory_id FROM trajectories WHERE agent_id LIKE ? ORDER BY seq"
    )

    def there():
        found = rows(house.data, sql, f"{prefix}%")
        return found if len(found) >= count else None

    return until(there, 60, f"not all of {prefix} is stored")


async def trainable(house):
    async with Client(house.info["http_url"], house.info["key"]) as admin:
        _, told = await admin("GET", "/api/admin/training/status")
    return told["readiness"]["stats"]["totalTrajectories"]


def spawned(house, *options):
    return json.loads(cli("agents", "spawn", "--json", *options, data=house.data).stdout)


@pytest.mark.long
async def test_what_agents_do_is_stored_in_groups_with_outcomes_and_what_users_said(house):
    await served(house)
    world, before = Triage(), await trainable(house)
    url, key = house.info["gateway_url"], house.info["gateway_key"]
    settings = AgentSettings(agents=5, prefix="bee", feedback=0.6)
    async with AgentPool(AgentEndpoint(url, key), world, settings) as pool:
        played = await pool.play(world.training[:4], window=WINDOW)
        played += await pool.play(world.training[4:6], window=LATER)
        measured = await pool.play(world.held_out[:3], window=LATER, temperature=0, evaluation=True)
    found = await stored(house, "bee", 33)
    trained = [row for row in found if not row[7]]
    groups = Counter((row[2], row[3]) for row in trained)
    at = [WINDOW] * 4 + [LATER] * 2
    assert groups == {(w, t.task_id): 5 for w, t in zip(at, world.training, strict=False)}
    assert all(row[3] == row[4] and row[5] == "tiny" and row[6] == 1 for row in found)
    scores = {(row[4], row[1]): json.loads(row[0])["metadata"]["outcome"]["share"] for row in found}
    assert scores == {(each.task_id, each.agent): each.score for each in played + measured}
    assert {row[4] for row in found if row[7]} == {task.task_id for task in world.held_out[:3]}
    await users_were_heard(house, pool, found)
    await until(lambda: counted(house, before + 30), 60, "not all is scored")


async def counted(house, count):
    """Exactly so many: evaluations never come to it."""
    return await trainable(house) == count


async def users_were_heard(house, pool, found):
    assert pool.counts.late > 0
    ids = {row[8]: json.loads(row[0])["metadata"]["outcome"]["status"] for row in found}

    def there():
        said = rows(house.data, "SELECT trajectory_id, body FROM feedback")
        mine = {
            trajectory: json.loads(body)["type"] for trajectory, body in said if trajectory in ids
        }
        return mine if len(mine) == pool.counts.feedback else None

    said = await until(there, 60, "not all feedback is stored")
    for trajectory, word in said.items():
        assert word == ("thumbs_up" if ids[trajectory] == "completed" else "thumbs_down")


async def test_spawned_agents_play_rounds_and_tell_what_came_of_it(house):
    await served(house)
    before = len(rows(house.data, "SELECT 1 FROM trajectories WHERE agent_id LIKE 'agent-%'"))
    told = await asyncio.to_thread(spawned, house, "--world", "triage", "--rounds", "2", *SHORT)
    assert (told["rounds"], told["episodes"], told["faults"]) == (2, 12, 0)
    assert told["models"]["tiny"]["episodes"] == 12
    assert told["feedback"] == 12
    found = (await stored(house, "agent-", before + 12))[before:]
    assert len({row[3] for row in found}) == 6


async def test_the_market_s_windows_are_its_own_and_the_loop_is_told_what_happened_in_them(house):
    await served(house)
    told = await asyncio.to_thread(spawned, house, "--world", "market", "--rounds", "1", *SHORT)
    assert (told["episodes"], told["outcomes"]) == (6, 3)
    windows = {row[0] for row in rows(house.data, "SELECT window_id FROM outcomes")}
    found = await stored(house, "agent-conservative", 2)
    assert {row[2] for row in found} <= windows


async def test_agents_act_in_a_world_behind_agentgym_s_form(house):
    await served(house)
    server = await asyncio.create_subprocess_exec(
        UPSWING, "worlds", "serve", "triage", "--seed", "5", "--port", "0", stdout=subprocess.PIPE
    )
    try:
        url = (await server.stdout.readline()).decode().split()[1]
        told = await asyncio.to_thread(spawned, house, "--world", url, "--rounds", "1", *SHORT)
    finally:
        server.terminate()
        await server.communicate()
    assert (told["episodes"], told["faults"], told["feedback"]) == (6, 0, 6)
    sql = "SELECT body FROM trajectories WHERE task_id LIKE '127.0.0.1%'"
    found = await until(lambda: len(found := rows(house.data, sql)) == 6 and found, 60)
    shown = {json.loads(body)["turns"][0]["observation"]["content"] for (body,) in found}
    assert shown == {task.text for task in Triage(5).training[:3]}


async def test_ctrl_c_ends_cleanly_with_a_summary(house):
    await served(house)
    process = await asyncio.create_subprocess_exec(
        UPSWING,
        "agents",
        "spawn",
        "--data",
        str(house.data),
        "--world",
        "triage",
        *SHORT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    first = await process.stdout.readline()
    process.send_signal(signal.SIGINT)
    rest, complaint = await process.communicate()
    assert (process.returncode, complaint) == (0, b"")
    assert b"6 episodes, mean score: tiny" in first
    assert b"rounds and" in rest
    assert b"Users said something of" in rest


class Guessing(Server):
    """A labelled double: a model's own server, which nobody records but the agents themselves."""

    async def answer(self, request, reader, writer):
        words = request["body"]["messages"][-1]["content"].split()
        known = [RULE[word] for word in words if word in RULE]
        return await self.send(writer, completion({"content": (known or ["explain"])[0]}))


async def test_with_a_curriculum_half_of_the_tasks_are_practice_and_marked(house):
    await served(house)
    options = ("--world", "triage", "--seed", "3", "--rounds", "2", "--curriculum")
    many = ("--agents", "2", "--tasks", "6", "--feedback", "0")
    told = await asyncio.to_thread(spawned, house, *options, *many)
    assert (told["rounds"], told["episodes"]) == (2, 24)
    sql = "SELECT practice, COUNT(*), COUNT(DISTINCT task_id) FROM trajectories WHERE task_id LIKE ? GROUP BY practice"

    def there():
        found = rows(house.data, sql, "triage-3-%")
        return found if sum(row[1] for row in found) == 24 else None

    found = await until(there, 60, "not all is stored")
    assert [(row[0], row[1]) for row in found] == [(0, 12), (1, 12)]
    assert all(row[2] >= 4 for row in found)


async def test_agents_that_ask_a_server_of_their_own_record_themselves(house):
    async with Guessing() as server:
        told = await asyncio.to_thread(
            spawned,
            house,
            "--record",
            "sdk",
            "--base-url",
            server.url,
            "--world",
            "triage",
            "--seed",
            "7",
            "--rounds",
            "1",
            *SHORT,
        )
    assert (told["episodes"], told["feedback"], told["models"]["scripted"]["score"]) == (6, 6, 1.0)
    sql = "SELECT body, window_id, scenario_id FROM trajectories WHERE model = 'scripted'"
    found = await until(lambda: rows(house.data, sql), 60)
    assert len(found) == 6
    assert {row[2] for row in found} == {task.task_id for task in Triage(7).training[:3]}
    for body, *_ in found:
        kept = json.loads(body)
        assert kept["metadata"]["outcome"] == {
            "status": "completed",
            "share": 1.0,
            "source": "world",
        }
        assert kept["turns"][0]["action"]["raw_response"] in RULE.values()


# ── said in a sentence ───────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ((), b"No loop is running in"),
        (("--record", "sdk"), b"name a model's own server"),
        (("--agents", "0"), b"--agents: give a whole number from 1 to 10000"),
        (("--feedback", "nan"), b"--feedback: give a number from 0 to 1"),
        (("--duration", "nan"), b"--duration: give a number above 0"),
        (("--base-url", "http://127.0.0.1:9/v1", "--world", "moon"), b"There is no world 'moon'"),
    ],
)
def test_what_is_wrong_is_said_in_a_sentence(tmp_path, options, sentence):
    done = cli("agents", "spawn", *options, data=tmp_path / "none", check=False)
    assert done.returncode in {1, 2}
    assert sentence in done.stderr


def test_without_the_client_package_it_is_said_how_to_get_it(tmp_path):
    code = (
        "import sys; sys.modules['openai'] = None; from upswing.cli import main; "
        "sys.exit(main(['agents', 'spawn', '--base-url', 'http://127.0.0.1:9/v1']))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, cwd=tmp_path, check=False
    )
    assert done.returncode == 1
    assert b"pip install '.[agents]'" in done.stderr


def test_a_loop_without_a_gateway_is_said_too(start, data):
    start()
    done = cli("agents", "spawn", data=data, check=False)
    assert done.returncode == 1
    assert b"has no gateway for agents" in done.stderr
