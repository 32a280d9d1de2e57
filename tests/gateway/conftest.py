"""A gateway in this process, with doubles behind it and a list in the place of the bus."""

import asyncio
import contextlib
import functools
import inspect
import json
from datetime import timedelta
from random import random
from uuid import uuid4

import pytest

from tests.support import Client
from upswing.errors import Rejected
from upswing.gateway.frames import Kept, read_batch, write_batch
from upswing.gateway.plan import Candidate, Model, Plan
from upswing.gateway.service import Gateway
from upswing.gateway.worker import clean, clean_feedback
from upswing.redact import Redactor
from upswing.runtime import now

REDACTOR = Redactor()


class ListKeeper:
    """The keeper's twin: cleans in this process and puts into lists what would be published."""

    def __init__(self):
        self.trajectories, self.feedback, self.buried = [], [], []
        self.away = False

    async def keep(self, frames):
        return [self._keep(frame) for frame in read_batch(write_batch(frames))]

    def _keep(self, frame):
        if self.away:
            return Kept(frame.trajectory_id, "later")
        try:
            self.trajectories.append(json.loads(clean(frame, REDACTOR).body))
        except Rejected as error:
            return Kept(frame.trajectory_id, "refused", error.detail, error.reason)
        return Kept(frame.trajectory_id, "published")

    async def say(self, feedback):
        if self.away:
            return Kept("", "later")
        self.feedback.append(json.loads(clean_feedback(feedback, REDACTOR).body))
        return Kept("", "published")

    async def bury(self, refusal):
        self.buried.append(refusal)
        return Kept(refusal.trajectory_id, "published")


class Handle:
    """A started gateway, and how to talk to it."""

    def __init__(self, gateway, url, keeper, plan):
        self.gateway, self.url, self.keeper, self.plan = gateway, url, keeper, plan
        self.client = Client(url)

    async def chat(self, *messages, headers=(), key="own", **fields):
        """(status, answer)"""
        body = {"model": "agent", "messages": list(messages) or [user("hi")], **fields}
        return await self.client("POST", "/v1/chat/completions", body, headers=headers, key=key)

    async def close(self, episode, body=b""):
        return await self.client("POST", f"/v1/episodes/{episode}/close", body)

    async def metrics(self):
        from tests.support import samples

        return samples((await self.client("GET", "/metrics"))[1])


def user(text):
    return {"role": "user", "content": text}


def assistant(text):
    return {"role": "assistant", "content": text}


def model(name, url, **options):
    return Model(name, url, options.pop("called", name), **options)


def plan(baseline, *candidates, **options):
    fields = {
        "fence": 1,
        "rollout": "rollout-1",
        "salt": "salt-1",
        "version": 1,
        "trained": False,
        **options,
    }
    return Plan(
        baseline=baseline, candidates=tuple(Candidate(m, s) for m, s in candidates), **fields
    )


def lease(seconds):
    return now() + timedelta(seconds=seconds)


@contextlib.asynccontextmanager
async def started(made_plan=None, *, keeper=None, **options):
    keeper = keeper or ListKeeper()
    gateway = Gateway(
        clock=now,
        new_id=uuid4,
        draw=options.pop("draw", random),
        plan=made_plan,
        keeper=keeper,
        **options,
    )
    url = await gateway.start(port=0)
    handle = Handle(gateway, url, keeper, made_plan)
    try:
        async with handle.client:
            yield handle
    finally:
        await gateway.stop(1)


def on_both_loops(test):
    """Transports differ: the gateway runs on uvloop, and on asyncio's own loop where there is none."""

    @pytest.mark.parametrize("loop", ["asyncio", "uvloop"])
    @functools.wraps(test)
    def run(loop, **arguments):
        import uvloop

        factory = uvloop.new_event_loop if loop == "uvloop" else asyncio.new_event_loop
        with asyncio.Runner(loop_factory=factory) as runner:
            runner.run(asyncio.wait_for(test(**arguments), 60))

    signature = inspect.signature(test)
    own = inspect.Parameter("loop", inspect.Parameter.POSITIONAL_OR_KEYWORD)
    run.__signature__ = signature.replace(parameters=[own, *signature.parameters.values()])
    del run.__wrapped__
    return run
