"""A model's server that costs next to nothing: fixed JSON, or 20 events, each a segment of its own.

    python chat_stub.py        answers every line on stdin with its address, as JSON

It reads no more of a request than its size and whether a stream is wanted.
"""

import asyncio
import contextlib
import json
import sys

EVENTS = 20
_BODY = json.dumps(
    {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 1700000000,
        "model": "stub",
        "choices": [
            {
                "index": 0,
                "finish_reason": "stop",
                "logprobs": None,
                "message": {
                    "role": "assistant",
                    "content": "The answer is forty-two, as everybody knows.",
                },
            }
        ],
        "usage": {"prompt_tokens": 25, "completion_tokens": 12, "total_tokens": 37},
    },
    separators=(",", ":"),
).encode()
PLAIN = (
    b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(_BODY)
    + _BODY
)


def _event(delta, finish=None):
    return json.dumps(
        {
            "id": "chatcmpl-1",
            "object": "chat.completion.chunk",
            "created": 1700000000,
            "model": "stub",
            "choices": [{"index": 0, "delta": delta, "finish_reason": finish}],
        },
        separators=(",", ":"),
    ).encode()


def _chunk(data):
    return b"%x\r\n%s\r\n" % (len(data), data)


def _stream():
    deltas = [{"role": "assistant", "content": ""}] + [{"content": "word "}] * (EVENTS - 2)
    events = [_event(delta) for delta in deltas] + [_event({}, "stop")]
    pieces = [_chunk(b"data: %s\n\n" % event) for event in events]
    head = (
        b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
    )
    pieces[0] = head + pieces[0]
    pieces[-1] += _chunk(b"data: [DONE]\n\n") + b"0\r\n\r\n"
    return pieces


STREAM = _stream()


class Stub(asyncio.Protocol):
    def connection_made(self, transport):
        self._transport, self._buffer = transport, b""

    def data_received(self, data):
        data = self._buffer + data if self._buffer else data
        head = data.find(b"\r\n\r\n")
        if head < 0 or len(data) < head + 4 + _length(data[:head]):
            self._buffer = data
            return
        self._buffer = b""
        if b'"stream":true' in data or b'"stream": true' in data:
            self._send(0)
        else:
            self._transport.write(PLAIN)

    def _send(self, place):
        """One event per turn of the loop: none travels with its neighbour."""
        if not self._transport.is_closing():
            self._transport.write(STREAM[place])
            if place + 1 < len(STREAM):
                asyncio.get_running_loop().call_soon(self._send, place + 1)


def _length(head):
    at = head.lower().find(b"content-length:")
    return int(head[at + 15 :].split(b"\r\n", 1)[0]) if at >= 0 else 0


async def main():
    loop = asyncio.get_running_loop()
    server = await loop.create_server(Stub, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    reader = asyncio.StreamReader()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    while await reader.readline():
        print(json.dumps({"url": f"http://127.0.0.1:{port}/v1"}), flush=True)


if __name__ == "__main__":
    with contextlib.suppress(ImportError):
        import uvloop

        uvloop.install()
    asyncio.run(main())
