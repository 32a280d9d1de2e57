"""A gateway in this process, with doubles behind it and a list in the place of the bus."""

import asyncio
import contextlib
import functools
import gc
import inspect
import json
import warnings
from dataclasses import fields
from datetime import timedelta
from random import random
from uuid import uuid4

import pytest

from tests.support import Client
from upswing.app.loop import now
from upswing.contracts.traffic import Candidate, Model, Plan
from upswing.errors import Rejected
from upswing.gateway.core.episode_redaction import redact_episode, redact_feedback_message
from upswing.gateway.core.frames import RecordOutcome, decode_batch, encode_batch
from upswing.gateway.gateway import Gateway
from upswing.gateway.limits import GatewayLimits
from upswing.gateway.options import GatewayAuth, GatewayOptions, RoutingOptions
from upswing.redact import Redactor

REDACTOR = Redactor()


class ListRecorder:
    """The recorder client's twin: redacts in this process and puts into lists what would be published."""

    def __init__(self):
        self.trajectories, self.feedback, self.dead_letters = [], [], []
        self.away = False

    async def record_episodes(self, frames):
        return [self._record(frame) for frame in decode_batch(encode_batch(frames))]

    def _record(self, frame):
        if self.away:
            return RecordOutcome(frame.trajectory_id, "later")
        try:
            self.trajectories.append(json.loads(redact_episode(frame, REDACTOR).body))
        except Rejected as error:
            return RecordOutcome(frame.trajectory_id, "refused", error.detail, error.reason)
        return RecordOutcome(frame.trajectory_id, "published")

    async def record_feedback(self, feedback):
        if self.away:
            return RecordOutcome("", "later")
        self.feedback.append(json.loads(redact_feedback_message(feedback, REDACTOR).body))
        return RecordOutcome("", "published")

    async def record_dead_letter(self, refusal):
        self.dead_letters.append(refusal)
        return RecordOutcome(refusal.trajectory_id, "published")


class Handle:
    """A started gateway, and how to talk to it."""

    def __init__(self, gateway, url, recorder, plan):
        self.gateway, self.url, self.recorder, self.plan = gateway, url, recorder, plan
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
    named = {
        "fence": 1,
        "rollout": "rollout-1",
        "salt": "salt-1",
        "version": 1,
        "trained": False,
        **options,
    }
    return Plan(
        baseline=baseline, candidates=tuple(Candidate(m, s) for m, s in candidates), **named
    )


def lease(seconds):
    return now() + timedelta(seconds=seconds)


PATIENT = GatewayLimits(close_seconds=300.0)
"""On a busy machine a recorder takes its time until it answers for the first time."""


def gateway_options(made_plan=None, **given):
    """`GatewayOptions` from flat arguments: those of its parts go to them."""
    given.setdefault("limits", PATIENT)

    def part(kind):
        return kind(**{f.name: given.pop(f.name) for f in fields(kind) if f.name in given})

    auth, routing = part(GatewayAuth), part(RoutingOptions)
    return GatewayOptions(plan=made_plan, auth=auth, routing=routing, **given)


@contextlib.asynccontextmanager
async def started(
    made_plan=None,
    *,
    recorder=None,
    records=True,
    pins=None,
    draw=random,
    exporter=None,
    **options,
):
    recorder = recorder or ListRecorder()
    gateway = Gateway(
        clock=now,
        new_id=uuid4,
        draw=draw,
        options=gateway_options(made_plan, **options),
        recorder_client=recorder if records else None,
        pins=pins,
        exporter=exporter,
    )
    url = await gateway.start(port=0)
    handle = Handle(gateway, url, recorder, made_plan)
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
            runner.run(asyncio.wait_for(test(**arguments), 300))

    signature = inspect.signature(test)
    own = inspect.Parameter("loop", inspect.Parameter.POSITIONAL_OR_KEYWORD)
    run.__signature__ = signature.replace(parameters=[own, *signature.parameters.values()])
    del run.__wrapped__
    return run


@pytest.fixture
def quiet(monkeypatch):
    """Nothing is sent to anybody's tracing, and other people's packages may warn of their affairs."""
    for name in ("OPENAI_AGENTS_DISABLE_TRACING", "LANGSMITH_TRACING", "LANGCHAIN_TRACING_V2"):
        monkeypatch.setenv(name, "1" if name.startswith("OPENAI") else "false")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield
        gc.collect()  # what they leave open is closed here, and not in somebody else's test


@pytest.fixture
def served(quiet):
    """A gateway for real clients."""
    from tests.gateway.served import Served

    with Served() as made:
        yield made
