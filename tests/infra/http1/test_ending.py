"""When a port ends, is every connection closed that ever came in?"""

import asyncio
import contextlib
import itertools
import socket
import struct

import pytest

from tests.gateway.conftest import on_both_loops
from tests.infra.http1.ports import KINDS, head, opened, whole
from tests.transports import open_transports

pytestmark = pytest.mark.live
TURNS = range(7)
"""So many turns of the event loop a client is ahead of the end: unaccepted, accepted, a task, a connection, read."""
SENDS = {
    "nothing": lambda _: b"",
    "half a head": lambda door: head(door)[:30],
    "half a body": lambda door: whole(door)[:-5],
    "a request": whole,
    "two requests": lambda door: whole(door) * 2,
    "no HTTP": lambda _: b"\0\r\n\r\n",
    "a wrong key": lambda door: whole(door, key="sk-wrong"),
}


def _line(door):
    return socket.create_connection((door.host, door.number), timeout=60)


def _reset(line):
    line.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    line.close()


def _closed(line):
    """The other side has closed it: whatever it wrote before comes, and then the end."""
    try:
        while line.recv(65_536):
            pass
    except TimeoutError:
        return False
    except ConnectionError:
        pass
    return True


@pytest.mark.parametrize("kind", KINDS)
@on_both_loops
async def test_whoever_came_before_the_end_is_closed_when_it_is_over(kind):
    """At each turn between a client's coming and its answer; nothing turns between the end and the look."""
    for turns, sent in itertools.product(TURNS, SENDS):
        with contextlib.ExitStack() as stack:
            async with opened(kind) as door:
                lines = [stack.enter_context(_line(door)) for _ in range(3)]
                for line in lines:
                    line.sendall(SENDS[sent](door))
                _reset(_line(door))
                for _ in range(turns):
                    await asyncio.sleep(0)
            assert [_closed(line) for line in lines] == [True] * 3, (turns, sent)


@pytest.mark.parametrize("kind", KINDS)
async def test_no_transport_is_open_when_it_is_over(kind):
    """Also those whose client is gone: nobody would see them but the garbage collector."""
    for turns in TURNS:
        async with opened(kind) as door:
            _reset(_line(door))
            for _ in range(turns):
                await asyncio.sleep(0)
        assert not open_transports(orphaned=False), turns


@pytest.mark.parametrize("kind", KINDS)
async def test_whoever_comes_while_it_ends_is_closed_or_refused(kind):
    """One client for each turn of the event loop, until nobody listens."""

    async def arrive():
        with contextlib.suppress(ConnectionRefusedError):
            for _ in range(500):
                lines.append(stack.enter_context(_line(door)))
                await asyncio.sleep(0)

    with contextlib.ExitStack() as stack:
        lines = []
        async with opened(kind) as door:
            arriving = asyncio.create_task(arrive())
            await asyncio.sleep(0)
        assert [_closed(line) for line in lines] == [True] * len(lines)
        await arriving
        assert 0 < len(lines) < 500
    assert not open_transports(orphaned=False)
