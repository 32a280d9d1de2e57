"""Several answers to one request: how do their pieces come together, as each is ready?"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing

from upswing.infra.tasks import cancel_all, start_task
from upswing.serve.core.engine import TokenChunk

Generator = AsyncGenerator[TokenChunk, None]


async def merge_choices(generators: Sequence[Generator]) -> AsyncGenerator[tuple[int, TokenChunk]]:
    """Every piece with the index of its choice. When one fails, all end, and its error is raised."""
    if len(generators) == 1:
        async with aclosing(generators[0]) as generated:
            async for chunk in generated:
                yield 0, chunk
        return
    ready: asyncio.Queue[tuple[int, TokenChunk | None]] = asyncio.Queue(maxsize=len(generators))

    async def read(index: int, generator: Generator) -> None:
        try:
            async with aclosing(generator) as generated:
                async for chunk in generated:
                    await ready.put((index, chunk))
        finally:
            await ready.put((index, None))

    tasks = [start_task(read(index, each)) for index, each in enumerate(generators)]
    try:
        left = len(tasks)
        while left:
            index, ready_chunk = await ready.get()
            if ready_chunk is not None:
                yield index, ready_chunk
            else:
                left -= 1
                await tasks[index]
    finally:
        await cancel_all(tasks)
