"""Hands of the page's tests: a real loop with a page, models behind labelled doubles, and a real Chromium."""

import asyncio
import contextlib
import json
import os
import shutil
from pathlib import Path

import pytest

from tests.conftest import running_loop
from tests.gateway.profiles import Profile, Profiled
from tests.gateway.scripted import chunk, completion, sse
from tests.support import UPSWING, Client, family, raw, trajectory, until
from upswing.config import Settings, Surroundings
from upswing.contracts.typed import from_tree

BROWSER = next(
    filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None
)
FLAGS = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking"]
SECONDS = 90_000
"""Milliseconds that Playwright waits for a fact: the machine may be busy."""
WIDE, NARROW = {"width": 1280, "height": 900}, {"width": 390, "height": 844}


class Saying(Profiled):
    """A labelled double: a server whose model says the same to everybody."""

    def __init__(self, name, text):
        super().__init__(Profile(logprobs=False, token_ids=False), name)
        self.text = text

    async def _completed(self, asked, writer):
        if asked.get("stream"):
            pieces = [chunk({"role": "assistant", "content": self.text}), chunk({}, "stop")]
            return await self.stream(writer, [sse(*pieces)])
        return await self.send(writer, completion({"content": self.text}))


def settings_for(server, folder):
    """A base at a server; every new model is validated with forty tasks, and rolled out when somebody approves."""
    tasks = [
        {
            "task_id": f"greet-{n}",
            "messages": [{"role": "user", "content": f"greet visitor {n}"}],
            "check": {"kind": "exact", "any_of": ["hello"]},
            "reference": "hello",
        }
        for n in range(40)
    ]
    file = folder / "greet.jsonl"
    file.write_text("".join(json.dumps(task) + "\n" for task in tasks))
    tree = {
        "serve": {"url": server.url},
        "train": {"base_model": server.name},
        "validate": {
            "suites": ["greet", "safety_toxicity"],
            "files": {"greet": str(file)},
            "seeds": 1,
        },
        "deploy": {"boldness": {"strategy": "canary", "approval": True}},
    }
    return from_tree(tree, Settings)


class Stage:
    """A loop, its page, and a browser that looks at it."""

    def __init__(self, loop, candidate, browser):
        self.loop, self.candidate, self.browser = loop, candidate, browser
        self.url, self.key = loop.running.dashboard_url, loop.running.key

    def client(self):
        return Client(self.loop.running.http_url, self.key)

    async def ask(self, method, path, body=b"", key=None):
        async with self.client() as client:
            return await client(method, path, body, key=key or self.key)

    async def record(self, **changes):
        """A trajectory, stored and scored; its id."""
        made = trajectory(**changes)
        async with self.client() as client:
            status, answer = await client.send(made)
            assert status == 202, answer

            async def scored():
                return (await client("GET", f"/v1/rewards/{made['trajectory_id']}"))[0] == 200

            await until(scored, 60, "it was not scored")
        return made["trajectory_id"]

    async def make_key(self, scope):
        status, made = await self.ask("POST", "/v1/keys", raw({"name": scope, "scope": scope}))
        assert status == 201, made
        return made["key"]

    @contextlib.asynccontextmanager
    async def tab(self, path="/", *, key=None, size=WIDE, log_in=True, **options):
        """A tab of a fresh browser profile; what its console complains of is an error of the test."""
        context = await self.browser.new_context(viewport=size, **options)
        context.set_default_timeout(SECONDS)
        page = await context.new_page()
        complaints = []
        page.on(
            "console", lambda said: complaints.append(said.text) if said.type == "error" else None
        )
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.complaints = complaints
        try:
            if log_in:
                await self.log_in(page, key or self.key, path)
            else:
                await page.goto(self.url + path)
            yield page
            assert complaints == []
        finally:
            await context.close()

    def page_pid(self):
        """The process of the page beside the loop."""
        for pid in family(os.getpid()):
            with contextlib.suppress(OSError):
                if b"upswing.dashboard.main" in Path(f"/proc/{pid}/cmdline").read_bytes():
                    return pid
        raise AssertionError("no page runs")

    @contextlib.asynccontextmanager
    async def standing_alone(self):
        """The same loop in a page of its own, `upswing dashboard`, which reaches it through a network that can fail."""
        async with Network(self.loop.running.http_url) as network:
            process = await asyncio.create_subprocess_exec(
                UPSWING,
                "dashboard",
                "--port",
                "0",
                "--loop-url",
                network.url,
                "--data",
                "/nonexistent",
                stdout=asyncio.subprocess.PIPE,
            )
            try:
                line = (await process.stdout.readline()).decode()
                alone = Stage(self.loop, self.candidate, self.browser)
                alone.url, alone.network = line.split()[-1], network
                yield alone
            finally:
                process.terminate()
                await process.wait()

    async def log_in(self, page, key, path="/"):
        await page.goto(self.url + path)
        await page.fill("#key", key)
        await page.click("text=Log in")
        await page.wait_for_selector("h1:not(.login-card h1)")


class Network:
    """A labelled double of a network: passes bytes on, until it is told to fail."""

    def __init__(self, url):
        self.target = url.removeprefix("http://").split(":")
        self.fails, self.writers = False, set()

    async def __aenter__(self):
        self.server = await asyncio.start_server(self._pass_on, "127.0.0.1", 0)
        self.url = f"http://127.0.0.1:{self.server.sockets[0].getsockname()[1]}"
        return self

    async def __aexit__(self, *_):
        self.server.close()
        self.cut()

    def fail(self):
        self.fails = True
        self.cut()

    def cut(self):
        for writer in self.writers:
            writer.transport.abort()

    async def _pass_on(self, reader, writer):
        if self.fails:
            writer.transport.abort()
            return
        there, back = await asyncio.open_connection(*self.target)
        self.writers |= {writer, back}
        try:
            await asyncio.gather(self._copy(reader, back), self._copy(there, writer))
        finally:
            for each in (writer, back):
                self.writers.discard(each)
                each.close()

    @staticmethod
    async def _copy(reader, writer):
        with contextlib.suppress(OSError):
            while data := await reader.read(65536):
                writer.write(data)
                await writer.drain()
            writer.write_eof()


@contextlib.asynccontextmanager
async def staged(folder):
    """Everything, for the tests of a module."""
    if BROWSER is None:
        pytest.skip("no Chromium on this machine: apt-get install chromium")
    driver = pytest.importorskip("playwright.async_api", reason="playwright is not installed")
    data = Path(folder) / "data"
    data.mkdir(mode=0o700)
    async with Saying("theirs", "hi") as base, Saying("candidate", "hello") as candidate:
        settings = settings_for(base, Path(folder))
        async with (
            running_loop(
                data,
                settings=settings,
                surroundings=Surroundings(),
                gateway_port=0,
                dashboard_port=0,
            ) as loop,
            driver.async_playwright() as playwright,
        ):
            browser = await playwright.chromium.launch(executable_path=BROWSER, args=FLAGS)
            try:
                yield Stage(loop, candidate, browser)
            finally:
                await browser.close()
