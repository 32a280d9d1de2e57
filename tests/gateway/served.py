"""A gateway with the scripted backend, in a thread of its own: real clients may block, or be other processes."""

import asyncio
import json
import threading
from random import random
from uuid import uuid4

from tests.gateway.conftest import ListRecorder, gateway_options, model, now, plan
from tests.gateway.scripted import Scripted
from upswing.gateway.gateway import Gateway

KEY = "sk-test-of-the-clients"


class Served:
    """A gateway with the scripted backend, in a thread of its own: clients may block."""

    def __init__(self, backend=Scripted):
        self._backend, self.recorder = backend, ListRecorder()
        self._ready, self._stop = threading.Event(), None
        self._thread = threading.Thread(target=lambda: asyncio.run(self._run()), daemon=True)

    async def _run(self):
        self._loop, self._stop = asyncio.get_running_loop(), asyncio.Event()
        async with self._backend() as server:
            self.backend = server
            gateway = Gateway(
                draw=random,
                clock=now,
                new_id=uuid4,
                options=gateway_options(
                    plan(model("base", server.url)), client_keys={KEY: "tester"}
                ),
                recorder_client=self.recorder,
            )
            self.url = await gateway.start(port=0) + "/v1"
            self._ready.set()
            await self._stop.wait()
            await gateway.stop(2)

    def __enter__(self):
        self._thread.start()
        assert self._ready.wait(300)
        return self

    def __exit__(self, *_):
        if self._thread.is_alive():
            self._loop.call_soon_threadsafe(self._stop.set)
            self._thread.join(300)

    def trajectories(self):
        """Everything that was recorded; ends the gateway."""
        self.__exit__()
        return self.recorder.trajectories


def check(served, answer, tool="double", output="42"):
    """The agent used its tool, and the gateway recorded that as one episode."""
    assert output in str(answer)
    told = served.trajectories()
    turns = [turn for trajectory in told for turn in trajectory["turns"]]
    calls = [turn for turn in turns if turn["action"].get("tool_name") == tool]
    assert len(told) == 1, [t["turns"] for t in told]
    assert len(calls) == 1
    assert output in json.dumps(calls[0]["result"]["output"])
    assert told[0]["metadata"]["model"] == "base"
