"""A scripted model server, a double: OpenAI-shaped over real HTTP, and as wrong as it is told.

It knows the references of our tasks and the rule of the smallest world; `wrong` says which tasks a
model does wrong, `away` which models do not answer, `says` what a model answers whatever is asked.
"""

import asyncio
import contextlib
import json
import re

from tests.serving import Listening
from tests.validate.scripted import Scripted
from upswing.contracts.validation import TaskAnswer
from upswing.validate.core.suite import BENCHMARKS, SAFETY
from upswing.validate.suite_loader import builtin_tasks
from upswing.worlds.triage import RULE

TASKS = tuple(task for name in (*BENCHMARKS, *SAFETY) for task in builtin_tasks(name))


class Endpoint:
    """`async with Endpoint() as models: …`; `models.find` is what `Proving` asks."""

    def __init__(self, wrong=None, *, away=(), says=None, known=("new", "old"), ignorant=()):
        self.script = Scripted(TASKS, wrong=wrong or {})
        self.away, self.says, self.known = set(away), says or {}, set(known)
        self.ignorant = set(ignorant)
        """Models that do not know the rule of the world."""
        self.early = {}
        """Model → its first requests, which find nobody."""
        self.requests, self.heads, self.found = [], [], 0
        self.hold = None
        """(count, event): after so many requests, answers wait for the event."""
        self.told = asyncio.Event()

    async def __aenter__(self):
        await self.open()
        return self

    async def __aexit__(self, *_):
        await self.close()

    async def open(self):
        self._listening = await Listening(self._serve).__aenter__()
        self.url = f"http://127.0.0.1:{self._listening.port}"

    async def close(self):
        await self._listening.__aexit__(None, None, None)

    async def find(self, model):
        """Where a model answers, as the controller's `ensure` tells it."""
        from upswing.errors import Misuse

        self.found += 1
        if model not in self.known:
            raise Misuse(f"There is no model {model}.")
        return self.url, model

    async def _serve(self, reader, writer):
        try:
            with contextlib.suppress(OSError, asyncio.IncompleteReadError, asyncio.CancelledError):
                await self._exchange(reader, writer)
        finally:
            writer.close()

    async def _exchange(self, reader, writer):
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        length = int(re.search(r"content-length: (\d+)", head, re.IGNORECASE)[1])
        asked = json.loads(await reader.readexactly(length))
        self.requests.append(asked)
        self.heads.append(head)
        if self.hold and len(self.requests) > self.hold[0]:
            self.told.set()
            await self.hold[1].wait()
        status, body = await self._answer(asked)
        raw = json.dumps(body).encode()
        writer.write(
            f"HTTP/1.1 {status} X\r\nContent-Length: {len(raw)}\r\nConnection: close\r\n\r\n".encode()
            + raw
        )
        await writer.drain()

    async def _answer(self, asked):
        model = asked["model"]
        early = self.early.get(model, 0)
        self.early[model] = max(0, early - 1)
        if model in self.away or early:
            return 503, {"error": {"message": "not now"}}
        said = self.says.get(model)
        if said is None:
            answer = self._in_the_world(model, asked) or await self.script(
                model, asked["messages"], seed=0, max_tokens=1
            )
        elif isinstance(said, tuple):
            return said
        else:
            answer = TaskAnswer(said)
        calls = [
            {
                "id": call.call_id,
                "type": "function",
                "function": {"name": call.name, "arguments": call.arguments},
            }
            for call in answer.tool_calls
        ]
        message = {"role": "assistant", "content": answer.text, "tool_calls": calls}
        return 200, {"choices": [{"message": message}]}

    def _in_the_world(self, model, asked):
        text = asked["messages"][-1]["content"]
        if not str(asked["messages"][0]["content"]).startswith("answer refund"):
            return None
        product = next(word for word in text.split() if word in RULE)
        return TaskAnswer("explain" if model in self.ignorant else RULE[product])
