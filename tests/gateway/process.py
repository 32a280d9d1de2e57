"""`upswing serve gateway` as a process of its own, on a free port, with the permissions of its role."""

import asyncio
import os
import subprocess

from tests.gateway.bus import GATEWAY
from tests.support import PATIENCE, UPSWING, Client, close_episode, family
from upswing.gateway.main import READY

COMMAND = (UPSWING, "serve", "gateway")
KEY, TOKEN = "gw_of-the-tests-0123456789", "adm_of-the-tests-0123456789"


def surroundings(server, **more):
    """What the environment tells it."""
    told = {"NATS_URL": server.url(GATEWAY), "UPSWING_GATEWAY_KEYS": f"tester={KEY}"}
    return {**os.environ, **told, "TENSORZERO_ADMIN_TOKEN": TOKEN, **more}


class Command:
    """The command, started; its log lies beside its spool."""

    def __init__(self, folder, server, *options, **env):
        self._folder, self._server = folder, server
        self._options, self._env = options, env

    async def __aenter__(self):
        self._folder.mkdir(exist_ok=True)
        self.log = self._folder / "gateway.log"
        with self.log.open("ab") as words:
            self.popen = subprocess.Popen(
                [*COMMAND, "--port", "0", "--spool", str(self._folder / "spool"), *self._options],
                stdout=subprocess.PIPE,
                stderr=words,
                stdin=subprocess.DEVNULL,
                env=surroundings(self._server, **self._env),
            )
        line = (await asyncio.to_thread(self.popen.stdout.readline)).decode()
        assert line.startswith(READY), self.log.read_text()
        self.url = line.removeprefix(READY).strip()
        self.client = Client(self.url, KEY)
        return self

    async def __aexit__(self, *_):
        await self.client.__aexit__()
        if self.popen.poll() is None:
            self.popen.kill()
        await asyncio.to_thread(self.popen.wait, 300)
        self.popen.stdout.close()

    async def chat(self, *messages, headers=(), **fields):
        body = {"model": "agent", "messages": list(messages), **fields}
        return await self.client("POST", "/v1/chat/completions", body, headers=headers)

    async def close(self, episode, body=b""):
        return await close_episode(self.client, episode, body)

    async def health(self):
        return (await self.client("GET", "/health"))[1]

    def family(self):
        return family(self.popen.pid)


def refused(*options, env):
    """(exit code, what it said) of a gateway that does not start."""
    done = subprocess.run(
        [*COMMAND, "--port", "0", *options],
        env={**os.environ, **env},
        capture_output=True,
        timeout=PATIENCE * 60,
        check=False,
    )
    return done.returncode, done.stderr.decode().strip()
