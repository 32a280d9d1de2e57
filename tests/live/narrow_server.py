"""A labelled double that really runs out of memory: an OpenAI-shaped server in a process with little of it.

Like attention without tricks, it takes room for every pair of tokens, so long prompts need too much. It prints its
address: `python -m tests.live.narrow_server`.
"""

import asyncio
import resource
from pathlib import Path

from tests.gateway.scripted import Server, completion

SPARE = 300 * 1024 * 1024
"""Bytes that it may take beyond what it has at its start."""
PER_PAIR = 16


class Narrow(Server):
    """Knows one model, `narrow`."""

    async def answer(self, request, reader, writer):
        self.requests.clear()
        if request["method"] == "GET":
            return await self.send(writer, {"object": "list", "data": [{"id": "narrow"}]})
        if not request["path"].endswith("/chat/completions"):
            return await self.send(writer, {"error": "no such path"}, status="404 Not Found")
        tokens = sum(len(str(each.get("content"))) for each in request["body"]["messages"])
        try:
            bytearray(PER_PAIR * tokens * tokens)
        except MemoryError:
            error = {"error": {"message": f"out of memory: {tokens} tokens at once"}}
            return await self.send(writer, error, status="500 Internal Server Error")
        return await self.send(writer, completion({"content": "hi"}))


async def main():
    async with Narrow() as server:
        pages = int(Path("/proc/self/statm").read_text().split()[0])
        limit = pages * resource.getpagesize() + SPARE
        resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
        print(server.url, flush=True)
        await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(main())
