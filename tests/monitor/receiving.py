"""A double of somebody's webhook: a real HTTP server that keeps what it hears, and answers as it is told."""

import asyncio
import json

from tests.serving import Listening


class Receiver:
    """`status` is what it answers; None: it never does."""

    def __init__(self, status=200, headers=""):
        self.status, self.headers = status, headers
        self.heard, self.arrived = [], asyncio.Event()

    async def __aenter__(self):
        self._listening = await Listening(self._serve).__aenter__()
        self.url = f"http://127.0.0.1:{self._listening.port}"
        return self

    async def __aexit__(self, *error):
        await self._listening.__aexit__(*error)

    async def _serve(self, reader, writer):
        top = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
        headers = dict(line.lower().split(": ", 1) for line in top[1:] if line)
        body = await reader.readexactly(int(headers.get("content-length", 0)))
        raw = dict(line.split(": ", 1) for line in top[1:] if line)
        self.heard.append(Heard(top[0].split()[1], raw, body))
        self.arrived.set()
        if self.status is None:
            await asyncio.Event().wait()
        writer.write(
            f"HTTP/1.1 {self.status} Fine\r\n{self.headers}Content-Length: 2\r\n\r\nok".encode()
        )
        await writer.drain()
        writer.close()

    def alerts(self, name=None):
        """(name, state) of the alerts that were heard of, in their order."""
        trees = [each.tree for each in self.heard]
        found = [each["alert"] for each in trees if each.get("event") == "alert"]
        return [(each["name"], each["state"]) for each in found if name in {None, each["name"]}]


class Heard:
    def __init__(self, path, headers, body):
        self.path, self.headers, self.body = path, headers, body

    @property
    def tree(self):
        return json.loads(self.body)
