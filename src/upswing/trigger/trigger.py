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
from upswing.infra.sql.decisions import Decisions
from upswing.principals import Speaker
from upswing.records import Decision, RewardDrop, Signals
from upswing.trigger.core.decide import (
    MANUAL,
    TrainNow,
    TriggerDecision,
    Wait,
    WaitReason,
    decide_training,
    due_slot,
    has_degraded,
)
from upswing.trigger.core.inputs import ActiveJob, DeployedModel, ManualRequest, TriggerInputs
from upswing.trigger.core.policy import TriggerPolicy
from upswing.trigger.core.request import training_request_of
from upswing.trigger.learnable_cache import LearnableCache
from upswing.trigger.signals import SignalReader

log = logging.getLogger(__name__)
STAGE = "trigger"
_POLL_SECONDS = 5.0
_MIN_BASELINE_REWARDS = 25
"""Rewards before its promotion that make a baseline; a model that had fewer is held to what was noted
at its promotion, which rests on as many at least."""
_COUNT_LIMIT_FACTOR = 2
"""Times the threshold: beyond that nobody counts new trajectories, a look should stay cheap."""


class JobSubmitter(Protocol):
    async def submit_triggered(
        self,
        request: TrainingRequest,
        decision: Decision,
        *,
        covers_seq: int | None,
        slot: datetime | None = None,
        only_if_idle: bool = True,
    ) -> bool: ...


SpeakerRewards = Sequence[tuple[Speaker, float]]
"""Rewards, with whose they are."""
MeanReward = Callable[[SpeakerRewards], float | None]


CompareRewards = Callable[[SpeakerRewards, SpeakerRewards], RewardDrop | None]
"""Recent rewards beside those before."""


@dataclass(frozen=True, slots=True)
class ManualResult:
    """What became of a person's request."""

    choice: TriggerDecision
    job_id: str | None
    decision_id: str


class Trigger:
    """Decides when the loop trains."""

    def __init__(
        self,
        store: SignalReader,
        journal: Decisions,
        submission: JobSubmitter,
        policy: TriggerPolicy,
        *,
        mean: MeanReward,
        compare: CompareRewards,
        clock: Callable[[], datetime],
        new_id: Callable[[], UUID],
        deploys: bool = True,
    ) -> None:
        """`mean` takes (principal, reward) and lets nobody count for more than a fair share.

        `compare` compares recent rewards with earlier ones, as far as it can of the same principals.

        `deploys` says whether models are validated and rolled out here: only then is one waited for.
        """
        self._deploys = deploys
        self.counted = LearnableCache(self.learnable, store.learnable_version, clock=clock)
        """For who only looks."""
        self._looked: tuple[int, Learnable] | None = None
        self._store = store
        self._journal = journal
        self._submission = submission
        self.policy = policy
        self._mean, self._compare = mean, compare
        self._clock = clock
        self._new_id = new_id
        self._last_kind: str | None = None
        self._one_at_a_time = asyncio.Lock()

    async def run(self) -> None:
        """For ever; a store that is away is waited for."""
        while True:
            try:
                await self.run_once()
                await self.counted.keep_fresh()
            except Transient as error:
                log.warning("%s", error, extra={"action": "trigger"})
            except Rejected as error:
                log.error(  # noqa: TRY400 - it is a sentence
                    "the loop's own request is refused: %s",
                    error,
                    extra={"action": "alert", "reason": "own_request_refused"},
                )
            await asyncio.sleep(_POLL_SECONDS)

    async def run_once(self) -> TriggerDecision:
        """Look once, and do what follows."""
        async with self._one_at_a_time:
            return (await self._decide_and_act(())).choice

    async def request_training(self, request: ManualRequest) -> ManualResult:
        """A person wants to train now; a more urgent reason may come first."""
        async with self._one_at_a_time:
            asked = await self._decide_and_act((request,))
            while isinstance(asked.choice, TrainNow) and asked.choice.reason != MANUAL:
                urgent, asked = asked, await self._decide_and_act((request,))
                if isinstance(asked.choice, Wait):
                    return urgent
            return asked

    async def _decide_and_act(self, manual: tuple[ManualRequest, ...]) -> ManualResult:
        inputs, previous = await self._read_inputs(manual)
        choice = decide_training(inputs)
        decision = self._journal_entry(inputs, choice)
        job_id = None
        match choice:
            case TrainNow():
                job_id = f"{choice.reason.replace('_', '-')}-{self._new_id()}"
                request = training_request_of(
                    choice,
                    self.policy,
                    job_id=job_id,
                    now=inputs.now,
                    previous=previous,
                    new=inputs.new,
                )
                decision = replace(decision, about=job_id)
                asked = await self._submission.submit_triggered(
                    request,
                    decision,
                    covers_seq=inputs.newest_seq,
                    slot=choice.slot,
                    only_if_idle=not choice.force,
                )
                if not asked:
                    choice, job_id = (
                        Wait(WaitReason.JOB, "Another process has just asked for it."),
                        None,
                    )
            case Wait():
                await self._journal_wait(choice, decision, always=bool(manual))
        if job_id:
            log.info("train: %s", choice.sentence, extra={"action": "train", "job": job_id})
        self._last_kind = decision.kind
        return ManualResult(choice, job_id, decision.decision_id)

    async def _journal_wait(self, choice: Wait, decision: Decision, *, always: bool) -> None:
        if self._last_kind is None:
            newest = await self._journal.list(STAGE, limit=1)
            self._last_kind = newest[0].kind if newest else ""
        if always or choice.slot or choice.kind.value != self._last_kind:
            await self._journal.record(decision, slot=choice.slot)

    async def _read_inputs(
        self, manual: tuple[ManualRequest, ...]
    ) -> tuple[TriggerInputs, str | None]:
        """The situation, and the job of the model that answers now."""
        now, policy = self._clock(), self.policy
        rules = policy.rules
        signals = await self._store.signals(
            policy.recent, _COUNT_LIMIT_FACTOR * rules.threshold, rules.base_model
        )
        if (
            signals.last_slot is None
        ):  # the schedule begins now; it owes nothing for the time before
            await self._journal.record(None, slot=now)
        inputs = TriggerInputs(
            now,
            policy.rules,
            self._deployed_model(signals),
            manual,
            signals.new,
            signals.newest_seq,
            signals.last_training,
            signals.last_slot or now,
            tuple(ActiveJob(job.job_id, job.reason, job.covers_seq) for job in signals.active),
            signals.failed,
            train_here=policy.train_here,
            pending=signals.pending if self._deploys else None,
        )
        if manual or due_slot(inputs) or self._might_train(inputs):
            inputs = replace(inputs, pool=await self._cached_learnable(signals.newest_seq))
        return inputs, signals.deployed.job_id if signals.deployed else None

    def _might_train(self, inputs: TriggerInputs) -> bool:
        """Enough is new or a model has fallen, and nothing is unfinished: that is worth an evaluation."""
        if inputs.active or inputs.pending is not None:
            return False
        return inputs.new >= inputs.rules.threshold or has_degraded(inputs)

    async def _cached_learnable(self, newest_seq: int) -> Learnable:
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

    async def blocking_work(self) -> str | None:
        """Which job or model has to be decided first, for who asks and does not insist; None: nothing."""
        active, pending = await self._store.unfinished()
        for job in active:
            return f"Job {job.job_id} is not finished yet."
        if self._deploys and pending is not None:
            return f"It waits until {pending} is decided: one model at a time."
        return None

    def _deployed_model(self, signals: Signals) -> DeployedModel | None:
        model = signals.deployed
        if model is None:
            return None
        count = len(signals.values)
        if len(signals.before) >= _MIN_BASELINE_REWARDS and (
            found := self._compare(signals.values, signals.before)
        ):
            error = found.error if isfinite(found.error) else float_info.max
            return DeployedModel(model.model_id, found.mean, count, found.baseline, error)
        known = [value for _, value in (*signals.values, *signals.before)]
        return DeployedModel(
            model.model_id,
            self._mean(signals.values),
            count,
            model.baseline_reward,
            difference_error(known, count, _MIN_BASELINE_REWARDS),
        )

    def _journal_entry(self, inputs: TriggerInputs, choice: TriggerDecision) -> Decision:
        return Decision(
            decision_id=str(self._new_id()),
            stage=STAGE,
            kind=choice.reason if isinstance(choice, TrainNow) else choice.kind.value,
            sentence=choice.sentence,
            inputs=msgspec.json.encode(inputs),
            outcome=msgspec.json.encode(choice),
            decided=inputs.now,
        )


def difference_error(values: Sequence[float], *counts: int) -> float:
    """The standard error of a difference of two means of so many rewards, which scatter like these.

    >>> round(difference_error([0.0, 1.0] * 50, 100, 25), 3)
    0.112
    >>> difference_error([0.5] * 10, 10, 25), difference_error([], 0, 25)
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
    choice = decide_training(from_json(inputs, TriggerInputs))
    return msgspec.json.encode(choice), choice.sentence
