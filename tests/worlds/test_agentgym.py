"""A world over HTTP is the world itself, and whoever is at fault is told apart."""

import asyncio
import contextlib
import re
import signal
import subprocess
from datetime import timedelta
from random import Random

import httpx
import pytest
from tests.support import UPSWING

from upswing.api.router import JSON, Response, Route, answer
from upswing.api.server import HttpServer
from upswing.api.world_server import WorldServerOptions, serve
from upswing.errors import Misuse, Reason, Rejected, Transient
from upswing.infra.instance import open_listening_socket
from upswing.worlds.agentgym_client import AgentGymClient
from upswing.worlds.agentgym_sessions import SessionLimits
from upswing.worlds.attempt import LocalAttempt, begin_numbered_task
from upswing.worlds.known import WORLDS, make_world
from upswing.worlds.triage import Triage
from upswing.worlds.world import UNFINISHED, WorldObservation, WorldOutcome

pytestmark = pytest.mark.live
WORDS = ("refund", "repair", "replace", "explain", "check", "lookup", "buy", "sell", "hold")


@contextlib.asynccontextmanager
async def served(world, limits=None):
    """The world on a port of its own."""
    told, url = asyncio.Event(), asyncio.get_running_loop().create_future()
    options = WorldServerOptions(limits=limits or SessionLimits())
    running = asyncio.create_task(serve(world, options, url.set_result, told))
    try:
        yield await url
    finally:
        told.set()
        await running


class InProcess:
    """A world of this process, with numbered tasks as a server has them."""

    def __init__(self, world):
        self.world = world

    async def begin(self, number):
        return LocalAttempt(self.world, begin_numbered_task(self.world, number))


async def played(place, number, chance):
    """Everything that an agent who guesses saw, and how it ended."""
    attempt = await place.begin(number)
    seen = [attempt.task.task_id, attempt.task.instructions]
    while attempt.outcome is None:
        seen.append(attempt.observation)
        await attempt.step(chance.choice(WORDS))
    await attempt.close()
    return seen, attempt.outcome


# ── the same world ───────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("name", sorted(WORLDS))
async def test_a_world_over_http_is_the_world_itself(name):
    world = make_world(name, 5)
    numbers = [*range(25), *range(len(world.training), len(world.training) + 15)]
    async with served(world) as url:
        there, here = AgentGymClient(url), InProcess(world)
        for number in numbers:
            far = await played(there, number, Random(number))
            near = await played(here, number, Random(number))
            assert far == near
        await there.close()
    assert (await here.begin(numbers[-1])).task.task_id == world.held_out[14].task_id


async def test_many_agents_play_side_by_side_and_do_not_mix():
    world = Triage(seed=2, check_first=True)
    async with served(world) as url:
        there, here = AgentGymClient(url), InProcess(world)
        far = await asyncio.gather(*(played(there, n, Random(n)) for n in range(40)))
        near = [await played(here, n, Random(n)) for n in range(40)]
        await there.close()
    assert far == near


async def test_the_server_tells_which_world_it_is():
    async with served(Triage(sizes=(16, 8))) as url:
        told = await AgentGymClient(url).world_info()
        async with httpx.AsyncClient(base_url=url) as client:
            hello = await client.get("/")
            spec = await client.get("/openapi.json")
    assert (told.world, told.max_turns, told.training, told.held_out) == ("triage", 1, 16, 8)
    assert hello.json() == "This is environment triage."
    assert set(spec.json()["paths"]) >= {"/create", "/step", "/reset", "/observation", "/close"}


async def test_sessions_are_used_again_and_closed_at_the_end():
    world = Triage()
    async with served(world, SessionLimits(sessions=1)) as url:
        there = AgentGymClient(url)
        for number in range(5):
            await played(there, number, Random(0))
        with pytest.raises(Transient, match="All 1 sessions are in use"):
            await AgentGymClient(url).begin(0)
        await there.close()
        await played(AgentGymClient(url), 0, Random(0))


async def test_a_session_that_the_server_dropped_is_made_anew():
    async with served(Triage()) as url:
        there = AgentGymClient(url)
        await played(there, 0, Random(0))
        async with httpx.AsyncClient(base_url=url) as client:
            await client.post("/close", json={"id": 0})
        attempt = await there.begin(3)
        assert attempt.task.task_id == Triage().training[3].task_id


# ── AgentGym's own client ────────────────────────────────────────────────────────────────────────


class StandInEnvClient:
    """Written by us after AgentGym's guide for new environments: what its clients send and read.

    They get an id from /create, name it `id` in every call, take the action from behind `Action:`,
    and assert that each answer is a 200 with `observation`, `reward` and `done`.
    """

    def __init__(self, base):
        self.base = base
        made = httpx.post(f"{base}/create")
        assert made.status_code == 200
        self.env_id = made.json()["id"]
        self.info = {}

    def _post(self, path, data):
        told = httpx.post(f"{self.base}/{path}", json={**data, "id": self.env_id})
        assert told.status_code == 200
        return told.json()

    def observe(self):
        told = httpx.get(f"{self.base}/observation?id={self.env_id}")
        assert told.status_code == 200
        return told.json()

    def step(self, text):
        found = re.findall(r"Action:\s*(.*?)(?=\n|$)", text, re.DOTALL)
        told = self._post("step", {"action": found[-1] if found else ""})
        return told["observation"], told["reward"], told["done"]

    def reset(self, number):
        told = self._post("reset", {"data_idx": number})
        self.info = {name: told[name] for name in ("observation", "reward", "score", "done")}

    def close(self):
        return self._post("close", {})


async def test_a_client_of_agentgyms_kind_can_play():
    world = Triage(check_first=True)
    ticket = world.training[7]

    def whole():
        client = StandInEnvClient(url)
        client.reset(7)
        first = client.observe()
        assert first == client.info["observation"]
        looked = client.step("Thought:\nWhat is it?\n\nAction:\ncheck")
        ended = client.step(f"Thought:\nI know.\n\nAction:\n{ticket.answer}")
        client.reset(8)
        again = client.observe()
        return first, looked, ended, again, client.close()

    async with served(world) as url:
        first, looked, ended, again, closed = await asyncio.to_thread(whole)
    assert first == f"{ticket.instructions}\n{ticket.text}"
    assert looked == (f"it is a {ticket.product}", 0.0, False)
    assert ended == ("The case is closed.", 1.0, True)
    assert again.endswith(world.training[8].text)
    assert closed == {"closed": True}


async def test_nothing_on_the_wire_tells_the_answer_before_the_end():
    world = Triage(check_first=True)
    async with served(world) as url, httpx.AsyncClient(base_url=url) as client:
        for number, ticket in enumerate(world.training[:8]):
            told = await client.post("/create", json={"data_idx": number})
            assert ticket.product not in told.text
            assert told.json()["info"]["task"] == {
                "task_id": ticket.task_id,
                "instructions": ticket.instructions,
            }


# ── what is wrong is said ────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("path", "body", "status", "word"),
    [
        ("/step", "{", 400, "malformed"),
        ("/step", '"hello"', 400, "schema"),
        ("/step", "{}", 400, "schema"),
        ("/step", '{"id": "0", "action": "x"}', 400, "schema"),
        ("/step", '{"id": 0}', 400, "schema"),
        ("/step", '{"id": 0, "action": 7}', 400, "schema"),
        ("/step", '{"id": 99, "action": "x"}', 404, "not_found"),
        ("/step", '{"id": -1, "action": "x"}', 404, "not_found"),
        ("/step", '{"id": 0, "action": "%s"}' % ("x" * 70_000), 413, "too_large"),
        ("/reset", '{"id": 0, "data_idx": -1}', 400, "schema"),
        ("/reset", '{"id": 0, "data_idx": 24}', 400, "schema"),
        ("/reset", '{"id": 1}', 404, "not_found"),
        ("/create", '{"data_idx": 1e300}', 400, "schema"),
        ("/close", '{"id": 5}', 404, "not_found"),
        ("/nowhere", "{}", 404, "not_found"),
    ],
)
async def test_a_bad_request_gets_a_sentence(path, body, status, word):
    async with (
        served(Triage(sizes=(16, 8), tests=0)) as url,
        httpx.AsyncClient(base_url=url) as client,
    ):
        await client.post("/create")
        said = await client.post(path, content=body, headers={"content-type": JSON})
        assert (said.status_code, said.json()["error"]) == (status, word)
        assert said.json()["detail"].endswith(".")
        still = await client.post("/step", json={"id": 0, "action": "refund"})
        assert still.status_code == 200


@pytest.mark.parametrize("query", ["", "?id=", "?id=x", "?id=-1", "?id=" + "9" * 5000, "?env=0"])
async def test_an_observation_of_nobody_is_refused(query):
    async with served(Triage()) as url, httpx.AsyncClient(base_url=url) as client:
        said = await client.get(f"/observation{query}")
    assert said.status_code == 400


async def test_a_step_after_the_end_is_a_conflict_and_a_reset_helps():
    async with served(Triage()) as url, httpx.AsyncClient(base_url=url) as client:
        await client.post("/create")
        codes = [
            (await client.post(path, json={"id": 0, "action": "refund"})).status_code
            for path in ("/step", "/step", "/reset", "/step")
        ]
    assert codes == [200, 409, 200, 200]


async def test_beyond_the_limit_a_session_has_to_wait():
    async with (
        served(Triage(), SessionLimits(sessions=2)) as url,
        httpx.AsyncClient(base_url=url) as client,
    ):
        for _ in range(2):
            await client.post("/create")
        said = await client.post("/create")
        assert said.status_code == 429
        assert said.headers["retry-after"]
        await client.post("/close", json={"id": 0})
        assert (await client.post("/create")).json()["id"] == 2


# ── the other side ───────────────────────────────────────────────────────────────────────────────


class Foreign:
    """Written by us after AgentGym's SQLGym, WebShop and tool servers: the other family of names."""

    def __init__(self, *steps, resets=("Count the rows.", None)):
        self.steps, self.resets, self.asked = list(steps), resets, []

    def routes(self):
        def route(path, run):
            async def handled(request):
                import json

                self.asked.append((path, json.loads(request.body)))
                return run(self.asked[-1][1])

            return Route("POST", path, path, handled, frozenset(), takes={JSON: {}})

        return [
            route("/create", lambda body: answer(200, 4)),
            route("/reset", lambda body: answer(200, self.resets)),
            route("/step", lambda body: self.steps.pop(0)),
        ]


@contextlib.asynccontextmanager
async def fronted(routes):
    front = HttpServer(routes, None, "127.0.0.1", 0)
    running = asyncio.create_task(front.run())
    try:
        yield front.url
    finally:
        await front.close()
        await running


async def test_a_server_of_the_other_family_is_understood():
    foreign = Foreign(
        answer(200, {"state": "no such table", "reward": 0.0, "done": False, "info": None}),
        answer(200, {"state": "3", "reward": 1.0, "done": True, "info": None}),
    )
    async with fronted(foreign.routes()) as url:
        place = AgentGymClient(url)
        attempt = await place.begin(17)
        assert attempt.observation == WorldObservation("Count the rows.")
        await attempt.step("select")
        assert (attempt.observation.text, attempt.outcome) == ("no such table", None)
        await attempt.step("select 3")
        await attempt.close()
        await place.close()
    assert (attempt.outcome.success, attempt.outcome.score, attempt.outcome.fault) == (
        True,
        1.0,
        False,
    )
    told = dict(foreign.asked)
    assert (told["/reset"]["env_idx"], told["/reset"]["item_id"]) == (4, 17)
    assert (told["/reset"]["session_id"], told["/reset"]["id"]) == (17, 17)
    assert told["/step"] == {"env_idx": 4, "action": "select 3"}


BROKEN = [
    answer(200, {"error": "the task has been deleted"}),
    answer(200, {"reward": 1.0}),
    answer(200, {"state": "3", "reward": None, "done": True}),
    answer(200, 7),
    answer(422, {"detail": [{"loc": ["body"], "msg": "field required"}]}),
    answer(404, {"detail": "Not Found"}),
    answer(500, "Internal Server Error"),
    Response(200, b"<html>"),
    Response(502, b""),
]


@pytest.mark.parametrize("said", BROKEN, ids=lambda said: f"{said.status} {said.body[:24]}")
async def test_what_fails_over_there_is_not_the_agents_failure(said):
    async with fronted(Foreign(said).routes()) as url:
        attempt = await AgentGymClient(url).begin(0)
        await attempt.step("select")
        await attempt.close()
    assert (attempt.outcome.fault, attempt.outcome.success) == (True, False)


async def test_a_server_that_goes_away_in_the_middle_is_not_the_agents_failure():
    async with served(Triage(check_first=True)) as url:
        attempt = await AgentGymClient(url).begin(0)
        await attempt.step("check")
        assert attempt.outcome is None
    await attempt.step("refund")
    assert attempt.outcome.fault
    await attempt.close()


async def test_a_server_that_never_answers_is_given_up():
    with contextlib.closing(open_listening_socket("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}"
        with pytest.raises(Transient, match="did not answer"):
            await AgentGymClient(url, timeout=timedelta(seconds=0.2)).begin(0)


async def test_an_agent_that_says_too_much_has_itself_to_blame():
    async with served(Triage()) as url:
        attempt = await AgentGymClient(url).begin(0)
        await attempt.step("refund " * 20_000)
        await attempt.close()
    assert (attempt.outcome.success, attempt.outcome.fault) == (False, False)


async def test_a_broken_character_is_taken():
    async with served(Triage()) as url:
        attempt = await AgentGymClient(url).begin(0)
        await attempt.step("\ud800")
    assert attempt.outcome == WorldOutcome(False, 0.0, "That is not something the desk can do.")


async def test_a_foreign_world_that_does_not_end_is_left():
    goes_on = answer(200, {"observation": "hm", "reward": 0, "done": False})
    async with fronted(Foreign(goes_on, goes_on).routes()) as url:
        attempt = await AgentGymClient(url, max_turns=2).begin(0)
        for _ in range(2):
            assert attempt.outcome is None
            await attempt.step("on")
    assert attempt.outcome == UNFINISHED


async def test_a_task_that_cannot_begin_is_an_error_and_not_an_outcome():
    async with served(Triage(sizes=(16, 8), tests=0)) as url:
        with pytest.raises(Rejected, match="from 0 to 23") as refused:
            await AgentGymClient(url).begin(24)
        with pytest.raises(Misuse):
            await AgentGymClient(f"{url}/elsewhere").begin(0)
    with pytest.raises(Transient, match="not reachable"):
        await AgentGymClient(url).begin(0)
    with pytest.raises(Misuse, match="no address"):
        AgentGymClient("triage")
    assert refused.value.reason is Reason.SCHEMA


async def test_a_foreign_server_need_not_tell_its_tasks():
    async with fronted(Foreign().routes()) as url:
        with pytest.raises(Misuse):
            await AgentGymClient(url).world_info()


def test_the_command_serves_until_it_is_told_to_stop():
    words = [UPSWING, "worlds", "serve", "triage", "--port", "0", "--seed", "4"]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as process:
        url = process.stdout.readline().removeprefix("ready ").strip()
        told = httpx.post(f"{url}/create", json={"data_idx": 2}).json()
        process.send_signal(signal.SIGTERM)
        assert process.wait(300) == 0
    assert told["info"]["task"]["task_id"] == Triage(4).training[2].task_id


async def test_a_reply_after_the_end_is_misuse():
    async with served(Triage()) as url:
        for place in (AgentGymClient(url), InProcess(Triage())):
            attempt = await place.begin(0)
            await attempt.step("refund")
            with pytest.raises(Misuse, match="begin another"):
                await attempt.step("refund")
