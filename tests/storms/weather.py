"""A network between two parts that delays, resets, falls silent and comes apart, when it is told to."""

import asyncio
import contextlib
import random
import socket
import struct

from tests.serving import Listening

KINDS = ("clear", "latency", "resets", "half open", "partition")
PIECE = 1 << 16


class Link:
    """One connection through the proxy."""

    def __init__(self, near):
        self.ends = [near]
        self.silent = asyncio.Event()
        """From now on nothing passes, not even that a side has closed."""

    def reset(self):
        for writer in self.ends:
            raw = writer.get_extra_info("socket")
            if raw is not None and raw.fileno() >= 0:
                raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            writer.transport.abort()


class Proxy:
    """Listens on a port of its own; `target` says where a new connection leads just now."""

    def __init__(self, target, chance=None):
        self._target, self._chance = target, chance or random.Random(1)
        self._links, self._kind = set(), "clear"
        self.passed = 0
        """Connections so far."""

    async def __aenter__(self):
        self._listening = await Listening(self._connected).__aenter__()
        self.port = self._listening.port
        return self

    async def __aexit__(self, *error):
        await self._listening.__aexit__(*error)

    def turn(self, kind):
        """The weather changes."""
        self._kind = kind
        if kind == "resets":
            self._reset_all()
        elif kind in {"half open", "partition"}:
            for link in self._links:
                link.silent.set()

    def _reset_all(self):
        for link in list(self._links):
            link.reset()

    async def _connected(self, reader, writer):
        link = Link(writer)
        self._links.add(link)
        self.passed += 1
        try:
            await self._carry(link, reader, writer)
        except* (OSError, asyncio.IncompleteReadError):
            pass  # as a broken line does
        finally:
            self._links.discard(link)
            link.reset()
            for each in link.ends:
                with contextlib.suppress(OSError):
                    await each.wait_closed()

    async def _carry(self, link, reader, writer):
        if self._kind == "partition":
            link.silent.set()  # the packets go nowhere
            await reader.read()
            return
        host, port = self._target()
        far_reader, far_writer = await asyncio.open_connection(host, port, limit=PIECE)
        link.ends.append(far_writer)
        async with asyncio.TaskGroup() as group:
            group.create_task(self._pump(link, reader, far_writer))
            group.create_task(self._pump(link, far_reader, writer))

    async def _pump(self, link, source, sink):
        while piece := await source.read(PIECE):
            if link.silent.is_set():
                continue  # swallowed
            if self._kind == "latency":
                await asyncio.sleep(self._chance.uniform(0.02, 0.3))
            sink.write(piece)
            await sink.drain()
        if link.silent.is_set():
            return
        with contextlib.suppress(OSError):
            sink.write_eof()


def place(url):
    """(host, port) of a URL."""
    host, _, port = url.rpartition("@")[2].rpartition("//")[2].rstrip("/").partition(":")
    return host, int(port)


def through(url, proxy):
    """The same URL, led through a proxy."""
    host, port = place(url)
    return url.replace(f"{host}:{port}", f"127.0.0.1:{proxy.port}")
