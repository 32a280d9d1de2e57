"""How does a reason to train become a job? Look at the store, decide, write it down, ask.

A decision that acts is journalled with its inputs in the transaction that makes the job. A decision
to wait is journalled when what is waited for changes, so that the journal tells a story and not the
time of day.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from math import fsum, isfinite, sqrt
from sys import float_info
from typing import Protocol
from uuid import UUID

import msgspec

from upswing.contracts import TrainingRequest
from upswing.contracts.typed import from_json
from upswing.dataset.groups import Learnable
from upswing.errors import Rejected, Transient
from upswing.ports import Decision, Signals
from upswing.senders import Speaker
from upswing.trigger.decide import MANUAL, Choice, Train, Wait, Why, decide, due_slot, has_fallen
from upswing.trigger.inputs import Active, Deployed, Inputs, Manual
from upswing.trigger.policy import Policy
from upswing.trigger.request import request_of

log = logging.getLogger(__name__)
STAGE = "trigger"
_POLL_SECONDS = 5.0
_FEW = 25
"""Rewards before its promotion that make a baseline; a model that had fewer is held to what was noted
at its promotion, which rests on as many at least."""
_COUNTED = 2
"""Times the threshold: beyond that nobody counts new trajectories, a look should stay cheap."""


class ReadsSignals(Protocol):
    async def signals(self, recent: int, most: int, base: str | None = None) -> Signals: ...

    async def learnable(
        self, base: str | None = None, *, min_agents: int, min_attempts: int,
        max_turns: int | None = None, since: datetime | None = None, self_reported: bool = False,
    ) -> Learnable: ...  # fmt: skip


class Journal(Protocol):
    async def record(self, decision: Decision | None, *, slot: datetime | None = None) -> None: ...

    async def list(self, stage: str | None = None, since: datetime | None = None, limit: int = 100) -> Sequence[Decision]: ...  # fmt: skip


class Desk(Protocol):
    async def ask(
        self, request: TrainingRequest, decision: Decision, *, covers_seq: int | None,
        slot: datetime | None = None, alone: bool = True,
    ) -> bool: ...  # fmt: skip


Values = Sequence[tuple[Speaker, float]]
"""Rewards, with whose they are."""
Mean = Callable[[Values], float | None]


class Fall(Protocol):
    """What a model earns now, what it earned before, and how far chance sets these apart."""

    @property
    def mean(self) -> float: ...
    @property
    def baseline(self) -> float: ...
    @property
    def error(self) -> float: ...


Beside = Callable[[Values, Values], Fall | None]
"""Recent rewards beside those before."""


@dataclass(frozen=True, slots=True)
class Asked:
    """What became of a person's wish."""

    choice: Choice
    job_id: str | None
    decision_id: str


class Trigger:
    """Decides when the loop trains."""

    def __init__(
        self,
        store: ReadsSignals,
        journal: Journal,
        desk: Desk,
        policy: Policy,
        *,
        mean: Mean,
        beside: Beside,
        clock: Callable[[], datetime],
        new_id: Callable[[], UUID],
        deploys: bool = True,
    ) -> None:
        """`mean` takes (principal, reward) and lets nobody count for more than a fair share.

        `beside` compares recent rewards with earlier ones, as far as it can of the same principals.

        `deploys` says whether models are validated and rolled out here: only then is one waited for.
        """
        self._deploys = deploys
        self._looked: tuple[int, Learnable] | None = None
        self._store = store
        self._journal = journal
        self._desk = desk
        self.policy = policy
        self._mean, self._beside = mean, beside
        self._clock = clock
        self._new_id = new_id
        self._kind: str | None = None
        self._one_at_a_time = asyncio.Lock()

    async def run(self) -> None:
        """For ever; a store that is away is waited for."""
        while True:
            try:
                await self.round()
            except Transient as error:
                log.warning("%s", error, extra={"action": "trigger"})
            except Rejected as error:
                log.error("the loop's own request is refused: %s", error, extra={"action": "alert"})  # noqa: TRY400 - it is a sentence
            await asyncio.sleep(_POLL_SECONDS)

    async def round(self) -> Choice:
        """Look once, and do what follows."""
        async with self._one_at_a_time:
            return (await self._round(())).choice

    async def ask(self, wish: Manual) -> Asked:
        """A person wants to train now; a more urgent reason may come first."""
        async with self._one_at_a_time:
            asked = await self._round((wish,))
            while isinstance(asked.choice, Train) and asked.choice.reason != MANUAL:
                urgent, asked = asked, await self._round((wish,))
                if isinstance(asked.choice, Wait):
                    return urgent
            return asked

    async def _round(self, manual: tuple[Manual, ...]) -> Asked:
        inputs, previous = await self._look(manual)
        choice = decide(inputs)
        decision = self._decision(inputs, choice)
        job_id = None
        match choice:
            case Train():
                job_id = f"{choice.reason.replace('_', '-')}-{self._new_id()}"
                request = request_of(
                    choice, self.policy, job_id=job_id, now=inputs.now, previous=previous,
                    new=inputs.new,
                )  # fmt: skip
                asked = await self._desk.ask(
                    request, decision, covers_seq=inputs.newest_seq, slot=choice.slot,
                    alone=not choice.force,
                )  # fmt: skip
                if not asked:
                    choice, job_id = Wait(Why.JOB, "Another process has just asked for it."), None
            case Wait():
                await self._wait(choice, decision, always=bool(manual))
        if job_id:
            log.info("train: %s", choice.sentence, extra={"action": "train", "job": job_id})
        self._kind = decision.kind
        return Asked(choice, job_id, decision.decision_id)

    async def _wait(self, choice: Wait, decision: Decision, *, always: bool) -> None:
        if self._kind is None:
            newest = await self._journal.list(STAGE, limit=1)
            self._kind = newest[0].kind if newest else ""
        if always or choice.slot or choice.kind.value != self._kind:
            await self._journal.record(decision, slot=choice.slot)

    async def _look(self, manual: tuple[Manual, ...]) -> tuple[Inputs, str | None]:
        """The situation, and the job of the model that answers now."""
        now, policy = self._clock(), self.policy
        rules = policy.rules
        seen = await self._store.signals(
            policy.recent, _COUNTED * rules.threshold, rules.base_model
        )
        if seen.last_slot is None:  # the schedule begins now; it owes nothing for the time before
            await self._journal.record(None, slot=now)
        inputs = Inputs(
            now, policy.rules, self._deployed(seen), manual, seen.new, seen.newest_seq,
            seen.last_training, seen.last_slot or now,
            tuple(Active(job.job_id, job.reason, job.covers_seq) for job in seen.active),
            seen.failed, train_here=policy.train_here,
            pending=seen.pending if self._deploys else None,
        )  # fmt: skip
        if manual or due_slot(inputs) or self._might_train(inputs):
            inputs = replace(inputs, pool=await self._learnable(seen.newest_seq))
        return inputs, seen.deployed.job_id if seen.deployed else None

    def _might_train(self, inputs: Inputs) -> bool:
        """Enough is new or a model has fallen, and nothing is on its way: that is worth a look."""
        if inputs.active or inputs.pending is not None:
            return False
        return inputs.new >= inputs.rules.threshold or has_fallen(inputs)

    async def _learnable(self, newest_seq: int) -> Learnable:
        """The same, looked at again when something came in since."""
        if self._looked is None or self._looked[0] != newest_seq:
            self._looked = newest_seq, await self.learnable()
        return self._looked[1]

    async def learnable(self) -> Learnable:
        """What a job of the trigger's would learn from."""
        rules = self.policy.rules
        return await self._store.learnable(
            rules.base_model,
            min_agents=rules.minimums.agents,
            min_attempts=rules.minimums.attempts,
            max_turns=self.policy.max_turns,
            since=self._clock() - timedelta(days=self.policy.days),
            self_reported=self.policy.self_reported,
        )

    async def on_its_way(self) -> str | None:
        """Which job or model has to be decided first, for who asks and does not insist; None: nothing."""
        seen = await self._store.signals(1, 1, self.policy.rules.base_model)
        for job in seen.active:
            return f"Job {job.job_id} is on its way."
        if self._deploys and seen.pending is not None:
            return f"It waits until {seen.pending} is decided: one model at a time."
        return None

    def _deployed(self, seen: Signals) -> Deployed | None:
        model = seen.deployed
        if model is None:
            return None
        count = len(seen.values)
        if len(seen.before) >= _FEW and (found := self._beside(seen.values, seen.before)):
            error = found.error if isfinite(found.error) else float_info.max
            return Deployed(model.model_id, found.mean, count, found.baseline, error)
        known = [value for _, value in (*seen.values, *seen.before)]
        return Deployed(
            model.model_id, self._mean(seen.values), count, model.baseline_reward,
            error_of(known, count, _FEW),
        )  # fmt: skip

    def _decision(self, inputs: Inputs, choice: Choice) -> Decision:
        return Decision(
            decision_id=str(self._new_id()),
            stage=STAGE,
            kind=choice.reason if isinstance(choice, Train) else choice.kind.value,
            sentence=choice.sentence,
            inputs=msgspec.json.encode(inputs),
            outcome=msgspec.json.encode(choice),
            decided=inputs.now,
        )


def error_of(values: Sequence[float], *counts: int) -> float:
    """The standard error of a difference of two means of so many rewards, which scatter like these.

    >>> round(error_of([0.0, 1.0] * 50, 100, 25), 3)
    0.112
    >>> error_of([0.5] * 10, 10, 25), error_of([], 0, 25)
    (0.0, 0.0)
    """
    if not values or not all(counts):
        return 0.0
    mean = fsum(values) / len(values)
    found = sqrt(fsum((each - mean) * (each - mean) for each in values) / len(values))
    error = found * sqrt(fsum(1 / count for count in counts))
    return error if isfinite(error) else float_info.max


def replay(inputs: bytes) -> tuple[bytes, str]:
    """What today's rules of deciding make of journalled inputs: the outcome and its sentence."""
    choice = decide(from_json(inputs, Inputs))
    return msgspec.json.encode(choice), choice.sentence
