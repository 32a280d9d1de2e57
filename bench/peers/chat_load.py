"""Agents that never pause: how many answers per second, and how long does each take?

    python chat_load.py URL KEY CLIENTS SECONDS plain|stream [chat|responses|messages]

Each client leads conversations of four turns, every turn with all messages before it; a
conversation is an episode and says so in a header that only some gateways read. Nothing is parsed
but where an answer ends: a generator that does more measures itself.
"""

import asyncio
import contextlib
import json
import sys
import time
from urllib.parse import urlsplit

TURNS = 4
SYSTEM = {"role": "system", "content": "You are a helpful assistant who answers in one sentence."}
ANSWER = {"role": "assistant", "content": "The answer is forty-two, as everybody knows."}


PATHS = {"chat": "/chat/completions", "responses": "/responses", "messages": "/messages"}
ENDS = {"chat": b"[DONE]", "responses": b"response.completed", "messages": b"message_stop"}


def asked_in(shape, messages):
    """The same question in each shape."""
    _, *said = messages
    if shape == "responses":
        asked = {"instructions": SYSTEM["content"], "input": said}
    elif shape == "messages":
        asked = {"system": SYSTEM["content"], "messages": said, "max_tokens": 100}
    else:
        asked = {"messages": messages}
    return {"model": "agent", **asked, "temperature": 0.7}


def bodies(stream, shape):
    """The requests of one conversation."""
    messages, made = [SYSTEM], []
    for turn in range(TURNS):
        messages = [*messages, {"role": "user", "content": f"Question {turn}: what is the answer?"}]
        asked = asked_in(shape, messages)
        if stream:
            asked["stream"] = True
        made.append(json.dumps(asked).encode())
        messages = [*messages, ANSWER]
    return made


class Client(asyncio.Protocol):
    def __init__(self, name, head, conversation, end, deadline):
        """`end` is in every whole stream; None: answers come whole."""
        self._name, self._head, self._bodies = name, head, conversation
        self._stream, self._end, self._deadline = end is not None, end or b"", deadline
        self._count = 0
        self._buffer = b""
        self.times, self.wrong = [], ""
        self.done = asyncio.get_running_loop().create_future()

    def connection_made(self, transport):
        self._transport = transport
        self._send()

    def _send(self):
        self._sent = time.perf_counter()
        if self._sent >= self._deadline:
            self._finish("")
            return
        body = self._bodies[self._count % TURNS]
        episode = b"%s-%d" % (self._name, self._count // TURNS)
        self._count += 1
        self._transport.write(
            b"%sX-Episode-Id: %s\r\nContent-Length: %d\r\n\r\n%s"
            % (self._head, episode, len(body), body)
        )

    def data_received(self, data):
        data = self._buffer + data if self._buffer else data
        if not self._whole(data):
            self._buffer = data
            return
        self._buffer = b""
        self.times.append(time.perf_counter() - self._sent)
        if data[9:12] != b"200" or self._end not in data:
            self._finish(f"an answer was {data[:300]!r}")
            return
        self._send()

    def _whole(self, data):
        if self._stream and data[9:12] == b"200":
            return data.endswith(b"0\r\n\r\n")
        head = data.find(b"\r\n\r\n")
        if head < 0:
            return False
        top = data[:head].lower()
        at = top.find(b"content-length:")
        if at < 0:
            return data.endswith(b"0\r\n\r\n")
        return len(data) >= head + 4 + int(top[at + 15 :].split(b"\r\n", 1)[0])

    def connection_lost(self, exc):  # noqa: ARG002 - asyncio's form
        self._finish("the connection was closed")

    def _finish(self, wrong):
        if not self.done.done():
            self.wrong = wrong
            self.done.set_result(None)
            self._transport.close()


async def drive(url, key, clients, seconds, stream, shape="chat"):
    at = urlsplit(url)
    head = (
        f"POST {at.path}{PATHS[shape]} HTTP/1.1\r\nHost: {at.netloc}\r\n"
        f"Authorization: Bearer {key}\r\nContent-Type: application/json\r\n"
    ).encode()
    conversation, end = bodies(stream, shape), ENDS[shape] if stream else None
    loop = asyncio.get_running_loop()
    begin = time.perf_counter()
    run = b"%d" % time.time_ns()
    made = [
        (
            await loop.create_connection(
                lambda n=n: Client(b"%s-%d" % (run, n), head, conversation, end, begin + seconds),
                at.hostname,
                at.port,
            )
        )[1]
        for n in range(clients)
    ]
    await asyncio.gather(*(client.done for client in made))
    took = time.perf_counter() - begin
    times = sorted(t for client in made for t in client.times)
    wrong = next((client.wrong for client in made if client.wrong), "")
    return {
        "requests": len(times),
        "per_second": len(times) / took,
        "wrong": wrong,
        "p50_ms": times[len(times) // 2] * 1000 if times else 0.0,
        "p99_ms": times[len(times) * 99 // 100] * 1000 if times else 0.0,
    }


if __name__ == "__main__":
    url, key, clients, seconds, kind, *shape = sys.argv[1:]
    with contextlib.suppress(ImportError):
        import uvloop

        uvloop.install()
    driven = drive(url, key, int(clients), float(seconds), kind == "stream", *shape)
    print(json.dumps(asyncio.run(driven)))
