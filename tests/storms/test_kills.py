"""Two hundred deaths of every process, in bad weather: is what was acknowledged there, and once?

    clients ─▶ weather ─▶ loop · its gateway · bus            agents at three doors
    clients ─▶ weather ─▶ outpost ─▶ weather ─▶ bus, loop     a gateway of its own

Each death comes with other weather on one of the lines; then everybody waits for an answer.
"""

import asyncio
import collections
import contextlib
import json
import os
import random
import signal
from pathlib import Path

import pytest

from tests.storms import sized
from tests.storms.load import Load, while_it_gets_less
from tests.storms.weather import KINDS, Proxy, place, through
from tests.support import UPSWING, Client, Process, alive, family, rows, until

pytestmark = [
    pytest.mark.live,
    # nats-py drops the socket of an attempt to connect that nobody answered.
    pytest.mark.filterwarnings("ignore:unclosed:ResourceWarning"),
]
PARTS = {
    "gateway": "upswing.gateway.main",
    "admission worker": "upswing.collect.worker",
    "recorder": "upswing.gateway.recorder.child",
    "model server": "upswing.serve.main",
    "trainer": "upswing.train.child",
}
TARGETS = ("main", "bus", *PARTS, "outpost")


def command(pid):
    try:
        return Path(f"/proc/{pid}/cmdline").read_text().split("\0")
    except OSError:
        return []


class Town:
    """A loop with its gateway and model server, a gateway of its own far off, and the weather between."""

    def __init__(self, data, chance):
        self.data, self._chance = data, chance
        self.kills = collections.Counter()
        self.turns = collections.Counter()
        self.process = self._outpost = None

    async def __aenter__(self):
        async with contextlib.AsyncExitStack() as exits:
            await self._build(exits)
            self._exits = exits.pop_all()
        return self

    async def __aexit__(self, *error):
        return await self._exits.__aexit__(*error)

    async def _build(self, exits):
        exits.callback(self._end)
        await self._begin()
        targets = {
            "http": lambda: place(self.process.info["http_url"]),
            "gateway": lambda: place(self.process.info["gateway_url"]),
            "bus": lambda: place(self.process.info["nats_url"]),
            "outpost": lambda: place(self.outpost_url),
            "bus of the outpost": lambda: place(self.process.info["nats_url"]),
            "loop of the outpost": lambda: place(self.process.info["http_url"]),
        }
        self.lines = {
            name: await exits.enter_async_context(Proxy(target, self._chance))
            for name, target in targets.items()
        }
        exits.push_async_callback(self._close_outpost)
        await self._open_outpost()

    async def _begin(self):
        last, self.process = self.process, Process.start(self.data, gateway=True)
        if last:
            self.process.info = last.info  # until it is ready, clients ask where they asked before
        await asyncio.to_thread(self.process.until_ready, 240)

    async def _open_outpost(self):
        info, folder = self.process.info, self.data.parent / "outpost"
        folder.mkdir(exist_ok=True)
        bus, loop = self.lines["bus of the outpost"], self.lines["loop of the outpost"]
        with (folder / "log").open("ab") as words:
            self._outpost = await asyncio.create_subprocess_exec(
                UPSWING,
                "serve",
                "gateway",
                "--port",
                "0",
                "--data",
                self.data,
                "--spool",
                folder / "spool",
                "--nats-url",
                through(info["nats_urls"]["gateway"], bus),
                "--loop-url",
                through(info["http_url"], loop),
                stdout=asyncio.subprocess.PIPE,
                stderr=words,
                stdin=asyncio.subprocess.DEVNULL,
                env={**os.environ, "AGENTGYM_RL_API_KEY": self._gateway_key()},
            )
        line = (await asyncio.wait_for(self._outpost.stdout.readline(), 120)).decode()
        assert "http" in line, (folder / "log").read_text()[-2000:]
        self.outpost_url = line.split()[-1]

    def _gateway_key(self):
        return json.loads((self.data / "secrets.json").read_text())["gateway_loop_key"]

    async def _close_outpost(self):
        if self._outpost is not None and self._outpost.returncode is None:
            self._outpost.kill()
            await self._outpost.wait()

    def _end(self):
        self.process.destroy()
        for pid in self.model_servers():
            os.kill(pid, signal.SIGKILL)

    def model_servers(self):
        told = self.data / "serve" / "server.json"
        with contextlib.suppress(OSError, ValueError, KeyError):
            pid = json.loads(told.read_text())["pid"]
            return [pid] if alive(pid) and PARTS["model server"] in command(pid) else []
        return []

    def doors(self, outpost):
        """What a client is told of the doors: all of them through the weather."""
        info = self.process.info
        gateway = self.lines["outpost" if outpost else "gateway"]
        return info | {
            "http_url": through(info["http_url"], self.lines["http"]),
            "gateway_url": f"http://127.0.0.1:{gateway.port}",
            "nats_urls": {"agent": through(info["nats_urls"]["agent"], self.lines["bus"])},
        }

    def blow(self):
        """Other weather on one of the lines, and clear again on the others."""
        kind, unlucky = self._chance.choice(KINDS), self._chance.choice(list(self.lines))
        for name, line in self.lines.items():
            line.turn(kind if name == unlucky else "clear")
        self.turns[kind] += 1

    async def kill(self, target):
        match target:
            case "main":
                self.process.kill()
                await self._begin()
            case "outpost":
                self._outpost.kill()
                await self._outpost.wait()
                await self._open_outpost()
            case _:
                if target == "trainer" and not self._pids(target):
                    await self._train()
                pids = await until(lambda: self._pids(target), 240, f"no {target} came")
                os.kill(self._chance.choice(pids), signal.SIGKILL)
        self.kills[target] += 1

    async def _train(self):
        """A job that does not end by itself, on work that was recorded once."""
        from tests.learn.school import School, batch
        from upswing.worlds.triage import Triage

        async with Client(self.process.info["http_url"], self.process.info["key"]) as client:
            school = School(client, Triage(), self.data / "bases")
            if not self.kills["trainer"]:
                await school.record(batch(school.world, 0, 16))
            school.rounds = 1
            name = f"storm-{self.kills.total()}"
            await school.ask(
                "grpo", name=name, epochs=100_000, save_interval=1_000_000, holdout=0.0
            )

    def _pids(self, target):
        if target == "bus":
            return [self.process.nats_pid] if alive(self.process.nats_pid) else []
        if target == "model server":
            return self.model_servers()
        relatives = [*family(self.process.popen.pid), *family(self._outpost.pid)]
        return [pid for pid in relatives if PARTS[target] in command(pid)]

    def clear(self):
        for line in self.lines.values():
            line.turn("clear")


@pytest.mark.long
@sized("kills", 4, 200)
async def test_kills_of_every_process_in_bad_weather_lose_and_double_nothing(
    tmp_path, bases, kills, trials
):
    chance = random.Random(kills)
    order = (
        (TARGETS * (kills // len(TARGETS) + 1))[:kills]
        if kills > 8
        else ("bus", "recorder", "admission worker", "outpost")
    )
    data = tmp_path / "data"
    data.mkdir(mode=0o700)
    (data / "bases").symlink_to(bases)
    (data / "upswing.toml").write_text("[train]\nretry_minutes = 0\n")
    async with Town(data, chance) as town:
        near = Load(lambda: town.doors(outpost=False), ("http", "nats", "gateway"))
        far = Load(lambda: town.doors(outpost=True), ("gateway",))
        sending = [asyncio.create_task(each.run()) for each in (near, far)]
        for target in chance.sample(order, len(order)):
            before = [*near.heard(), *far.heard()]

            def answered(before=before):
                for each in sending:
                    assert not each.done(), each
                now = [*near.heard(), *far.heard()]
                return all(one > other for one, other in zip(now, before, strict=True))

            try:
                await until(
                    answered, 60, patience=1
                )  # it may storm for longer than anybody is answered
            except AssertionError:
                town.clear()
                await until(answered, 240, f"no answers before the death of {target}: {before}")
            town.blow()
            await town.kill(target)
            trials.add()
            print(trials.tried, target, dict(town.turns), [*near.heard(), *far.heard()], flush=True)
        town.clear()
        before = [*near.heard(), *far.heard()]
        await until(answered, 240, "no answers after the storm")
        for load in (near, far):
            load.end()
        await asyncio.gather(*sending)
        promised = near.promised() | far.promised()
        known = "SELECT trajectory_id FROM trajectories"
        await while_it_gets_less(
            lambda: len(promised.keys() - {row[0] for row in rows(data, known)}),
            "what was acknowledged is not stored",
            180,
        )
    stored = {
        name: json.loads(body)
        for name, body in rows(data, "SELECT trajectory_id, body FROM trajectories")
    }
    assert all(stored[name] == made for name, made in promised.items() if made)
    episodes = [
        made["metadata"]["episode_id"]
        for made in stored.values()
        if "episode_id" in made["metadata"]
    ]
    assert len(episodes) == len(set(episodes)), "an episode was recorded twice"
    assert rows(data, "SELECT COUNT(*) FROM dead") == [(0,)]
    print(dict(town.kills), dict(town.turns), near.statuses | far.statuses)
