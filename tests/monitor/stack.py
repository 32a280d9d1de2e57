"""The real Prometheus and Alertmanager on files that we generate, and a receiver of their webhook."""

import asyncio
import contextlib
import json
import shutil
import socket
import urllib.parse

import pytest

from tests.serving import Listening
from tests.support import until
from upswing.errors import Transient
from upswing.infra.http import exchange
from upswing.monitor.ops.files import write_ops_files
from upswing.monitor.ops.targets import OpsLimits, OpsSetup, OpsTargets

PATIENCE = 240
"""Seconds for what takes two when nobody else computes."""
SHORT = OpsLimits(
    scrape=1,
    evaluate=1,
    reward_window=20,
    errors_window=20,
    least_messages=10,
    event_window=15,
    bus_away=2,
    server_away=2,
    settled=1,
    group_wait=1,
)
"""As short as scraping once a second allows."""
PROMETHEUS, PROMTOOL = shutil.which("prometheus"), shutil.which("promtool")
ALERTMANAGER = shutil.which("prometheus-alertmanager") or shutil.which("alertmanager")
AMTOOL = shutil.which("amtool")
needs_prometheus = pytest.mark.skipif(
    not (PROMETHEUS and PROMTOOL and ALERTMANAGER and AMTOOL),
    reason="Prometheus and Alertmanager are not installed: apt-get install prometheus prometheus-alertmanager",
)


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Receiver:
    """Hears what Alertmanager sends: {alert: the states that it had, one after the other}."""

    def __init__(self):
        self.bodies = []

    async def __aenter__(self):
        self._listening = await Listening(self._serve).__aenter__()
        self.url = f"http://127.0.0.1:{self._listening.port}/alerts"
        return self

    async def __aexit__(self, *_):
        await self._listening.__aexit__(None, None, None)

    async def _serve(self, reader, writer):
        try:
            with contextlib.suppress(OSError, asyncio.IncompleteReadError, asyncio.CancelledError):
                head = (await reader.readuntil(b"\r\n\r\n")).decode().lower()
                length = int(head.partition("content-length:")[2].split()[0])
                self.bodies.append(json.loads(await reader.readexactly(length)))
                writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
                await writer.drain()
        finally:
            writer.close()

    def alerts(self, name):
        return [
            alert
            for body in self.bodies
            for alert in body["alerts"]
            if alert["labels"]["alertname"] == name
        ]

    def states(self, name):
        return [alert["status"] for alert in self.alerts(name)]

    async def heard(self, name, status):
        await until(
            lambda: status in self.states(name)[-1:],
            PATIENCE,
            f"nobody heard that {name} is {status}: {self.states(name)}",
        )


class Stack:
    """`async with Stack(folder, loop=URL, …) as stack: await stack.value("up")`"""

    def __init__(self, folder, *, limits=SHORT, **targets):
        self.folder, self.limits, self._targets = folder, limits, targets
        self.receiver = Receiver()
        self._processes, self._exits = [], contextlib.AsyncExitStack()

    async def __aenter__(self):
        await self._exits.enter_async_context(self.receiver)
        self.url, alerts = (f"http://127.0.0.1:{free_port()}" for _ in range(2))
        targets = OpsTargets(
            alertmanager=alerts, prometheus=self.url, webhook=self.receiver.url, **self._targets
        )
        write_ops_files(self.folder, OpsSetup(targets, self.limits))
        try:
            await self._start(ALERTMANAGER, "alertmanager", alerts, "--cluster.listen-address=")
            await self._start(PROMETHEUS, "prometheus", self.url, "--log.level=warn")
        except BaseException:
            await self.__aexit__()
            raise
        return self

    async def __aexit__(self, *_):
        for process in self._processes:
            with contextlib.suppress(ProcessLookupError):
                process.kill()
            await process.wait()
        await self._exits.aclose()

    async def _start(self, program, name, url, *options):
        home = self.folder / name
        with (home / "log").open("wb") as log:
            process = await asyncio.create_subprocess_exec(
                program,
                f"--config.file={home / name}.yml",
                f"--storage{'.tsdb' if name == 'prometheus' else ''}.path={home / 'data'}",
                f"--web.listen-address={url.removeprefix('http://')}",
                *options,
                stdout=log,
                stderr=log,
                cwd=home,
            )
        self._processes.append(process)

        async def ready():
            assert process.returncode is None, (home / "log").read_text()
            with contextlib.suppress(Transient):
                return (await exchange("GET", f"{url}/-/ready", seconds=30)).status == 200

        await until(ready, PATIENCE, f"{name} is not ready: {(home / 'log').read_text()}")

    async def query(self, expr):
        """[(labels, value)]"""
        data = await self._ask(f"query?{urllib.parse.urlencode({'query': expr})}")
        if data["resultType"] == "scalar":
            return [({}, float(data["result"][1]))]
        return [(each["metric"], float(each["value"][1])) for each in data["result"]]

    async def has_value(self, expr):
        """Whether the query answers with a number."""
        return any(value == value for _, value in await self.query(expr))  # noqa: PLR0124 - not NaN

    async def answered(self, exprs):
        """Wait until every one of these queries has a number."""
        left = dict.fromkeys(exprs)

        async def all_of_them():
            for expr in list(left):
                if await self.has_value(expr):
                    del left[expr]
            return not left

        with contextlib.suppress(AssertionError):
            await until(all_of_them, PATIENCE)
        assert not left, "these have no value:\n" + "\n".join(left)

    async def rules(self):
        """Every rule as Prometheus has it: {name: its tree}."""
        groups = (await self._ask("rules"))["groups"]
        return {each["name"]: each for group in groups for each in group["rules"]}

    async def _ask(self, path):
        reply = await exchange("GET", f"{self.url}/api/v1/{path}", seconds=60)
        answer = json.loads(reply.body)
        assert (reply.status, answer["status"]) == (200, "success"), answer
        return answer["data"]
