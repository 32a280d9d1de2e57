"""A real engine with `tiny`, and a real server around it, in this process."""

import asyncio
import contextlib

import pytest
from tests.support import Client, until


@pytest.fixture
def tiny(bases):
    from upswing.train.bases.catalog import resolve_base

    return resolve_base("tiny", bases)


@pytest.fixture
async def engine(tiny):
    from upswing.serve.engines.torch_engine import TorchEngine

    made = await TorchEngine.start(tiny, threads=1)
    yield made
    await made.close()


@pytest.fixture
async def serve(bases, tmp_path):
    """Start a model server on a free port; its URL."""
    from upswing.serve.main import ModelServerOptions
    from upswing.serve.main import serve as run

    async with contextlib.AsyncExitStack() as exits:

        async def begin(**changes):
            told = asyncio.Event()
            options = {"base": "tiny", "cache": bases, "threads": 1, **changes}
            ready = tmp_path / f"ready-{id(told)}"
            task = asyncio.create_task(run(ModelServerOptions(ready_file=ready, **options), told))

            async def end():
                told.set()
                await task

            exits.push_async_callback(end)
            await until(lambda: ready.exists() or task.done(), what="the server was not ready")
            if task.done():
                task.result()
            return ready.read_text()

        yield begin


@pytest.fixture
async def server(serve):
    async with Client(await serve()) as made:
        yield made
