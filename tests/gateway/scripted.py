"""A labelled double: an OpenAI-shaped server that follows a script instead of a model.

`Scripted` answers properly: with a call of the first tool it is offered, then, once it sees the
tool's result, with a final answer that quotes it. `Misbehaving` answers as badly as it is told to.
"""

import asyncio
import contextlib
import json
import re

from tests.serving import Listening


def sse(*events, done=True):
    lines = [f"data: {json.dumps(event)}\n\n" for event in events]
    return "".join([*lines, "data: [DONE]\n\n" if done else ""]).encode()


def chunk(delta=None, finish=None, **extra):
    choice = {"index": 0, "delta": delta or {}, "finish_reason": finish}
    return {
        "id": "chatcmpl-s",
        "object": "chat.completion.chunk",
        "created": 1,
        "model": "scripted",
        "choices": [choice],
        **extra,
    }


def completion(message, finish="stop", **choice):
    return {
        "id": "chatcmpl-s",
        "object": "chat.completion",
        "created": 1,
        "model": "scripted",
        "choices": [
            {
                "index": 0,
                "message": {"role": "assistant", **message},
                "finish_reason": finish,
                "logprobs": None,
                **choice,
            }
        ],
        "usage": {"prompt_tokens": 20, "completion_tokens": 5, "total_tokens": 25},
    }


class Server:
    """HTTP/1.1 on a free port; `answer(request)` is asked for every request."""

    def __init__(self):
        self.requests = []
        self.open = 0
        self.gone = asyncio.Event()
        """A client hung up before its answer was whole."""

    async def __aenter__(self):
        self._listening = await Listening(self._serve, limit=1 << 27).__aenter__()
        self.port = self._listening.port
        self.url = f"http://127.0.0.1:{self.port}/v1"
        return self

    async def __aexit__(self, *error):
        await self._listening.__aexit__(*error)

    async def _serve(self, reader, writer):
        self.open += 1
        try:
            while request := await self._read(reader):
                self.requests.append(request)
                if not await self.answer(request, reader, writer):
                    break
        except (ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            self.gone.set()
        finally:
            self.open -= 1
            with contextlib.suppress(RuntimeError):
                writer.close()

    @staticmethod
    async def _read(reader):
        try:
            head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
        except asyncio.IncompleteReadError:
            return None
        headers = {
            name.lower(): value.strip()
            for name, _, value in (line.partition(":") for line in head.split("\r\n")[1:])
        }
        body = await reader.readexactly(int(headers.get("content-length", 0)))
        method, path, _ = head.split(" ", 2)
        return {
            "method": method,
            "path": path,
            "headers": headers,
            "body": json.loads(body or b"null"),
        }

    async def answer(self, request, reader, writer):
        raise NotImplementedError

    async def send(self, writer, body, kind="application/json", status="200 OK", extra=""):
        body = body if isinstance(body, bytes) else json.dumps(body).encode()
        writer.write(
            f"HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {len(body)}\r\n{extra}\r\n".encode()
            + body
        )
        await writer.drain()
        return True

    async def stream(self, writer, pieces, *, end=True, pause=0.0):
        writer.write(
            b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
        )
        for piece in pieces:
            writer.write(b"%x\r\n%s\r\n" % (len(piece), piece))
            await writer.drain()
            await asyncio.sleep(pause)
        if end:
            writer.write(b"0\r\n\r\n")
            await writer.drain()
        return end


class Scripted(Server):
    """Behaves like a model that can use a tool."""

    def __init__(self, name="scripted", *, tokens=False, arguments=None):
        super().__init__()
        self.name, self.tokens, self.arguments = name, tokens, arguments

    async def answer(self, request, reader, writer):
        asked = request["body"]
        message, finish = self.reply(asked)
        if asked.get("stream"):
            return await self.stream(
                writer, [sse(event, done=False) for event in self.events(message, finish)] + [sse()]
            )
        extra = {}
        answer = completion(message, finish)
        if self.tokens:
            prompt = [len(json.dumps(m)) % 50 for m in asked["messages"]]
            answer["prompt_token_ids"] = prompt
            extra = {
                "token_ids": [7, 8],
                "logprobs": {
                    "content": [{"token": "a", "logprob": -0.1}, {"token": "b", "logprob": -0.2}]
                },
            }
        answer["model"] = asked["model"]
        answer["choices"][0] |= extra
        return await self.send(writer, answer)

    def reply(self, asked):
        tools, messages = asked.get("tools") or [], asked["messages"]
        results = [
            m
            for m in messages
            if m["role"] == "tool" or _text(m.get("content") or "").startswith("Observation:")
        ]
        if tools and not results:
            return self.call(tools[0]["function"]), "tool_calls"
        seen = results[-1]["content"] if results else "nothing"
        if (final := self.final(tools)) and results:
            return final(seen), "tool_calls"
        return {"content": f"{self.name} says: the tool returned {_text(seen)}"}, "stop"

    def call(self, function):
        wanted = self.arguments or {
            name: 21 if about.get("type") in {"integer", "number"} else "Paris"
            for name, about in function["parameters"].get("properties", {}).items()
        }
        return {"content": None, "tool_calls": [tool_call(function["name"], wanted)]}

    @staticmethod
    def final(tools):
        """smolagents wants its answer through a tool of its own."""
        if any(tool["function"]["name"] == "final_answer" for tool in tools):
            return lambda seen: {
                "content": None,
                "tool_calls": [
                    tool_call(
                        "final_answer", {"answer": f"the tool returned {_text(seen)}"}, "call_2"
                    )
                ],
            }
        return None

    def events(self, message, finish):
        yield chunk({"role": "assistant", "content": ""})
        for call in message.get("tool_calls") or []:
            function = call["function"]
            yield chunk(
                {
                    "tool_calls": [
                        {
                            "index": 0,
                            "id": call["id"],
                            "type": "function",
                            "function": {"name": function["name"], "arguments": ""},
                        }
                    ]
                }
            )
            for part in re.findall(r"(?s).{1,7}", function["arguments"]):
                yield chunk({"tool_calls": [{"index": 0, "function": {"arguments": part}}]})
        for word in re.findall(r"\s*\S+\s*|\s+", message.get("content") or ""):
            yield chunk({"content": word})
        yield chunk({}, finish)
        yield chunk({}, usage={"prompt_tokens": 20, "completion_tokens": 5, "total_tokens": 25}) | {
            "choices": []
        }


class Misbehaving(Server):
    """Answers as badly as `how` says; `well` is good for a while."""

    def __init__(self, how):
        super().__init__()
        self.how = how

    async def answer(self, request, reader, writer):
        return await getattr(self, self.how)(request, reader, writer)

    async def well(self, request, reader, writer):
        if request["body"].get("stream"):
            return await self.stream(
                writer, [sse(chunk({"content": "ok"}), done=False), sse(chunk({}, "stop"))]
            )
        return await self.send(writer, completion({"content": "ok"}))

    async def garbage(self, request, reader, writer):
        writer.write(b"\x00\x01\x02 this is not HTTP at all\r\n\r\n")
        await writer.drain()
        return False

    async def html(self, request, reader, writer):
        return await self.send(writer, b"<html>It works!</html>", "text/html")

    async def garbage_stream(self, request, reader, writer):
        return await self.stream(writer, [b"\xff\xfe\x00garbage without end\n\n"])

    async def garbage_later(self, request, reader, writer):
        return await self.stream(
            writer,
            [sse(chunk({"content": "fine"}), done=False), b'data: {"choices": [{"de\n\n', sse()],
            pause=0.01,
        )

    async def half(self, request, reader, writer):
        body = json.dumps(completion({"content": "never whole"})).encode()
        writer.write(
            b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n"
            % len(body)
        )
        writer.write(body[:40])
        await writer.drain()
        return False

    async def half_stream(self, request, reader, writer):
        return await self.stream(
            writer, [sse(chunk({"content": "one"}), done=False)], end=False, pause=0.05
        )

    async def undone_stream(self, request, reader, writer):
        return await self.stream(writer, [sse(chunk({"content": "one"}), done=False)], pause=0.05)

    async def error_in_200(self, request, reader, writer):
        return await self.send(
            writer, {"error": {"message": "CUDA out of memory", "type": "server_error"}}
        )

    async def error_in_stream(self, request, reader, writer):
        return await self.stream(writer, [sse({"error": {"message": "CUDA out of memory"}})])

    async def error_500(self, request, reader, writer):
        return await self.send(
            writer, {"error": {"message": "broken"}}, status="500 Internal Server Error"
        )

    async def refuses(self, request, reader, writer):
        return await self.send(
            writer,
            {
                "error": {
                    "message": "context length exceeded",
                    "type": "invalid_request_error",
                    "code": "context_length_exceeded",
                }
            },
            status="400 Bad Request",
        )

    async def silent(self, request, reader, writer):
        await reader.read(1)  # until the other side hangs up
        self.gone.set()
        return False

    async def stalls(self, request, reader, writer):
        await self.stream(writer, [sse(chunk({"content": "one"}), done=False)], end=False)
        await reader.read(1)
        self.gone.set()
        return False

    async def never_answers(self, request, reader, writer):
        return False

    async def header_injection(self, request, reader, writer):
        body = json.dumps(completion({"content": "ok"})).encode()
        writer.write(
            b"HTTP/1.1 200 OK\r\nContent-Type: application/json\nX-Evil: 1\r\nSet-Cookie: a=b\r\nContent-Length: %d\r\n\r\n%s"
            % (len(body), body)
        )
        await writer.drain()
        return True

    async def closes_kept(self, request, reader, writer):
        """Answers once, then closes each kept connection as soon as it is used again."""
        if sum(r["path"] == request["path"] for r in self.requests) % 2 == 0:
            return False
        return await self.well(request, reader, writer)

    async def endless(self, request, reader, writer):
        writer.write(
            b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n"
        )
        while True:
            writer.write(b"10000\r\n" + b"x" * 65536 + b"\r\n")
            await writer.drain()

    async def flood(self, request, reader, writer):
        """A stream as large and as fast as the other side takes it."""
        event = sse(chunk({"content": "x" * 60_000}), done=False)
        self.sent = 0
        writer.write(
            b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
        )
        for _ in range(2000):
            writer.write(b"%x\r\n%s\r\n" % (len(event), event))
            await writer.drain()
            self.sent += len(event)
        last = sse(chunk({}, "stop"))
        writer.write(b"%x\r\n%s\r\n0\r\n\r\n" % (len(last), last))
        await writer.drain()
        return True


def tool_call(name, arguments, call_id="call_1"):
    return {
        "id": call_id,
        "type": "function",
        "function": {"name": name, "arguments": json.dumps(arguments)},
    }


def _text(content):
    if isinstance(content, list):
        content = "".join(part.get("text", "") for part in content)
    return content
