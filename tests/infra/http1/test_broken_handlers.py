"""A handler that breaks: is its client told, and does the connection go on?"""

import asyncio
import time

import pytest

from upswing.infra.http1.limits import PortLimits
from upswing.infra.http1.port import Port
from upswing.infra.http1.request import NOTHING, Refusal

pytestmark = pytest.mark.live
HALF = b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nhalf"


class Breaking:
    """Answers `/well`, breaks at `/broken`, before it at `/refused`, and in the middle of an answer at `/half`."""

    def admit(self, request):
        if request.path == b"/refused":
            raise ZeroDivisionError("planted")
        return NOTHING

    def handle(self, connection, request):
        if request.path == b"/well":
            connection.answer(request, 200, b"{}")
            return
        if request.path == b"/half":
            connection.write(HALF)
        raise ZeroDivisionError("planted")

    @staticmethod
    def refusal_for(status, reason, message):
        return Refusal(status, reason.encode())


async def statuses(port, paths):
    """Of these paths, asked one after the other on one connection; None: it was cut."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    found = []
    for path in paths:
        writer.write(f"GET {path} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
        try:
            head = await reader.readuntil(b"\r\n\r\n")
            size = int(head.lower().partition(b"content-length: ")[2].split()[0])
            await reader.readexactly(size)
            found.append(int(head.split()[1]))
        except (asyncio.IncompleteReadError, ConnectionError):
            found.append(None)
            break
    writer.close()
    return found


@pytest.mark.parametrize(
    ("paths", "expected"),
    [
        (["/broken", "/well", "/broken"], [500, 200, 500]),
        (["/refused", "/well"], [500, 200]),
        (["/well", "/half", "/well"], [200, None]),
    ],
)
async def test_whoever_asked_hears_that_it_broke_and_others_go_on(paths, expected, caplog):
    port = Port(Breaking(), PortLimits(), time.monotonic)
    url = await port.listen("127.0.0.1", 0)
    try:
        assert await statuses(int(url.rpartition(":")[2]), paths) == expected
        assert await statuses(int(url.rpartition(":")[2]), ["/well"]) == [200]
    finally:
        await port.close_all()
    assert "planted" in caplog.text
