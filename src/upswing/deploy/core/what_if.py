"""What would a journalled decision about a rollout have been under another policy?

The policy of its time stands in a decision's inputs. What the changed policy names takes its place, and the decision is
made again. Evidence was gathered under the limits of its time; it is read under the changed ones like this:

| changed              | what is read anew                                                                    |
|----------------------|--------------------------------------------------------------------------------------|
| `limits.reward`      | the fall that matters, also of guards; the bets against "no worse" stay as they were |
| `limits.complaints`  | the factor that matters; the bets stay                                               |
| `limits.errors`      | the bets against the limit, made again from the counts between journal entries       |
| `ramp_hours`, `samples` | how long each step lasts, and how much it has to see                              |
| `undecided_days`     | the deadline                                                                         |

A bet is fair whatever its stake was, so each of these readings keeps its chance of a false alarm. What the journal
does not hold, such as episodes that the candidate would have had, `what_if_rollout` models.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, assert_never

from msgspec import Struct
from msgspec.structs import replace

from upswing.contracts.backtest import PolicyReplay, ReplayedDecision, RolloutEffect
from upswing.contracts.typed import from_json
from upswing.deploy.core.canary import Canary, RollBack, SetWeight
from upswing.deploy.core.error_rate import ErrorEvidence, RequestCounts
from upswing.deploy.core.evidence import CanaryEvidence
from upswing.deploy.core.guards import guard_drop
from upswing.deploy.core.journal import (
    CanaryEvaluation,
    CanaryInputs,
    DecisionInputs,
    DecisionOutcome,
    QueueInputs,
    QueueTurn,
    RefusedTransition,
    StartInputs,
    StrategyInputs,
    TransitionInputs,
    WatchInputs,
    decide,
    decision_kind,
    outcome_sentence,
)
from upswing.deploy.core.limits import RolloutLimits
from upswing.deploy.core.ramp import CanaryStep, ramp_knobs, ramp_steps
from upswing.deploy.core.rollout import Rollout
from upswing.deploy.core.sequential_test import SequentialTest
from upswing.deploy.core.strategy import AbortStrategy, CanaryStrategy
from upswing.deploy.core.watch import ModelDegraded
from upswing.deploy.core.what_if_rollout import RolloutTimeline, rollout_effect, skipped_effect
from upswing.records import Decision

_LIMITS, _BOLDNESS = "deploy.limits.", "deploy.boldness."
REPLAYED = frozenset(
    {
        *(_LIMITS + name for name in RolloutLimits.__struct_fields__),
        *(_BOLDNESS + name for name in ("strategy", "initial", "blue_green", "approval")),
        "deploy.ramp_hours",
        "deploy.samples",
        "deploy.undecided_days",
        "deploy.newcomers",
    }
)
"""Knobs of the config that a journalled decision about a rollout depends on."""


@dataclass(slots=True)
class _ErrorHistory:
    """The bets against an error limit of a rollout, made again from the counts that journal entries have."""

    counts: RequestCounts = field(default_factory=RequestCounts)
    test: SequentialTest = field(default_factory=SequentialTest)

    def follow(self, errors: ErrorEvidence, limit: float) -> SequentialTest:
        now = errors.candidate
        more = RequestCounts(now.requests - self.counts.requests, now.errors - self.counts.errors)
        if more.requests > 0 and more.is_valid:
            self.test.bet(ErrorEvidence(limit=limit).growth_against_limit(more), more.requests)
            self.counts = now
        return replace(self.test)


class DeployBacktest:
    """Takes the journal in its order."""

    def __init__(self, knobs: Mapping[str, Any], verdicts: Mapping[str, str]) -> None:
        """`verdicts`: validation → its verdict under the changed policy, where that is another one."""
        self._verdicts = verdicts
        self._limits = _named(knobs, _LIMITS)
        self._boldness = _named(knobs, _BOLDNESS)
        self._hours, self._samples = knobs.get("deploy.ramp_hours"), knobs.get("deploy.samples")
        self._days = knobs.get("deploy.undecided_days")
        self._newcomers = knobs.get("deploy.newcomers")
        self._errors: dict[str, _ErrorHistory] = {}
        self._patience: dict[str, timedelta] = {}
        self._histories: dict[str, RolloutTimeline] = {}
        self._strategies: dict[str, tuple[DecisionOutcome, DecisionOutcome]] = {}
        """Model → its strategy under both policies."""

    def replay(self, decision: Decision) -> PolicyReplay:
        """One decision under both policies."""
        raw = decision.inputs
        inputs: DecisionInputs = from_json(raw, DecisionInputs)
        then = decide(inputs)
        now = then
        changed = self._under_change(raw, inputs)
        if changed is not None:
            now = decide(changed)
        self._remember(inputs, then, changed or inputs, now)
        as_journalled = decision_kind(inputs, then) == decision.kind
        return PolicyReplay(_model_id_of(inputs), _replayed(then), _replayed(now), as_journalled)

    def effects(self) -> list[RolloutEffect]:
        """What would have become of each rollout that the changed policy touches."""
        found: list[RolloutEffect] = []
        for model_id, (then, now) in self._strategies.items():
            skipped = isinstance(now, AbortStrategy) and not isinstance(then, AbortStrategy)
            begun = isinstance(then, AbortStrategy) and not isinstance(now, AbortStrategy)
            if skipped or begun:
                history = next(
                    (each for each in self._histories.values() if each.model_id == model_id), None
                )
                found.append(skipped_effect(model_id, history, outcome_sentence(now), begun=begun))
        skipped_models = {each.model_id for each in found}
        for history in self._histories.values():
            if history.model_id not in skipped_models:
                effect = rollout_effect(history, self._steps_now(history))
                found += [effect] if effect is not None else []
        return found

    # ── the changed policy ───────────────────────────────────────────────────────────────────

    def _under_change(self, raw: bytes, inputs: DecisionInputs) -> DecisionInputs | None:
        """The inputs as the changed policy has them; None: it changes nothing about them."""
        match inputs:
            case StrategyInputs():
                verdict = self._verdicts.get(inputs.validation_id, inputs.verdict)
                changed: DecisionInputs = replace(
                    inputs, verdict=verdict, boldness=replace(inputs.boldness, **self._boldness)
                )
            case StartInputs():
                changed = replace(inputs, policy=self._newcomers or inputs.policy)
            case CanaryInputs():
                return self._canary_under_change(raw, inputs)
            case WatchInputs():
                return self._watch_under_change(raw, inputs)
            case QueueInputs() | TransitionInputs():
                return None
            case _:
                assert_never(inputs)
        return None if changed == inputs else changed

    def _canary_under_change(self, raw: bytes, inputs: CanaryInputs) -> CanaryInputs | None:
        limits = replace(inputs.limits, **self._limits)
        canary = self._ramp_under_change(inputs.rollout_id, inputs.canary)
        errors = self._error_test(inputs.rollout_id, inputs.evidence.errors, limits.errors)
        same_limits = limits == inputs.limits and not self._gathered_otherwise(inputs.evidence)
        if same_limits and canary == inputs.canary and errors is None:
            return None
        again: CanaryInputs = from_json(raw, DecisionInputs)  # evidence changes in place
        if self._gathered_otherwise(again.evidence):
            _read_anew(again.evidence, limits)
        if errors is not None:
            again.evidence.errors.limit, again.evidence.errors.above_limit = limits.errors, errors
        return replace(again, limits=limits, canary=canary)

    def _gathered_otherwise(self, evidence: CanaryEvidence) -> bool:
        """Whether evidence was gathered under another fall or factor than the changed policy names."""
        drop = self._limits.get("reward", evidence.rewards.drop)
        factor = self._limits.get("complaints", evidence.complaints.factor)
        return bool(drop != evidence.rewards.drop or factor != evidence.complaints.factor)

    def _watch_under_change(self, raw: bytes, inputs: WatchInputs) -> WatchInputs | None:
        limits = replace(inputs.limits, **self._limits)
        errors = self._error_test(f"watch {inputs.rollout_id}", inputs.watch.errors, limits.errors)
        if limits == inputs.limits and errors is None:
            return None
        again: WatchInputs = from_json(raw, DecisionInputs)
        if errors is not None:
            again.watch.errors.limit, again.watch.errors.above_limit = limits.errors, errors
        if again.watch.held is not None and "reward" in self._limits:
            again.watch.held.rewards.drop = limits.reward
        return replace(again, limits=limits)

    def _error_test(self, name: str, errors: ErrorEvidence, limit: float) -> SequentialTest | None:
        """The bets against the changed limit; None: it is the limit of that time."""
        if "errors" not in self._limits or limit == errors.limit:
            return None
        return self._errors.setdefault(name, _ErrorHistory()).follow(errors, limit)

    def _ramp_under_change(self, rollout_id: str, canary: Canary) -> Canary:
        """The same step of the same shares, with the changed hours, samples and patience."""
        if canary.step == 0:
            self._patience.setdefault(rollout_id, canary.deadline - canary.since)
        deadline, patience = canary.deadline, self._patience.get(rollout_id)
        if self._days is not None and patience is not None:
            deadline += timedelta(days=self._days) - patience
        return replace(canary, steps=self._ramp(canary.steps), deadline=deadline)

    def _ramp(
        self, steps: tuple[CanaryStep, ...], initial: float | None = None
    ) -> tuple[CanaryStep, ...]:
        """These steps under the changed knobs; steps that no ramp makes stay as they are."""
        known = ramp_knobs(steps)
        if known is None or (self._hours is self._samples is initial is None):
            return steps
        first, hours, samples = known
        return ramp_steps(
            first if initial is None else initial,
            hours if self._hours is None else self._hours,
            samples if self._samples is None else self._samples,
        )

    def _steps_now(self, history: RolloutTimeline) -> tuple[CanaryStep, ...]:
        """The whole ramp under the changed policy, from its own first share."""
        then, now = self._strategies.get(history.model_id, (None, None))
        moved = (
            isinstance(then, CanaryStrategy)
            and isinstance(now, CanaryStrategy)
            and then.share != now.share
        )
        return self._ramp(
            history.steps, now.share if moved and isinstance(now, CanaryStrategy) else None
        )

    # ── what is remembered for the effects ───────────────────────────────────────────────────

    def _remember(
        self,
        inputs: DecisionInputs,
        then: DecisionOutcome,
        changed: DecisionInputs,
        now: DecisionOutcome,
    ) -> None:
        if isinstance(inputs, StrategyInputs):
            self._strategies[inputs.model_id] = (then, now)
        elif isinstance(inputs, CanaryInputs) and isinstance(changed, CanaryInputs):
            assert isinstance(then, CanaryEvaluation)  # noqa: S101 - `decide` gives one
            assert isinstance(now, CanaryEvaluation)  # noqa: S101
            history = self._histories.get(inputs.rollout_id)
            if history is None:
                history = RolloutTimeline(inputs.rollout_id, inputs.model_id, inputs.canary)
                self._histories[inputs.rollout_id] = history
            history.add(inputs, changed, then, now)
        elif isinstance(inputs, TransitionInputs):
            found = self._histories.get(inputs.rollout.rollout_id)
            if found is not None:
                found.note_events(inputs.events)


def _read_anew(evidence: CanaryEvidence, limits: RolloutLimits) -> None:
    """Evidence under changed limits, as the table says. It changes in place."""
    evidence.rewards.drop = limits.reward
    for guard in evidence.guards.tests.values():
        guard.drop = guard_drop(limits.reward)
    evidence.complaints.factor = limits.complaints


def _named(knobs: Mapping[str, Any], prefix: str) -> dict[str, Any]:
    return {
        name.removeprefix(prefix): value
        for name, value in knobs.items()
        if name in REPLAYED and name.startswith(prefix)
    }


def _model_id_of(inputs: DecisionInputs) -> str:
    match inputs:
        case StartInputs():
            return inputs.newcomer.model_id
        case QueueInputs():
            return inputs.waiting[-1].model_id if inputs.waiting else ""
        case TransitionInputs():
            return inputs.rollout.model_id
        case StrategyInputs() | CanaryInputs() | WatchInputs():
            return inputs.model_id
        case _:
            assert_never(inputs)


def _replayed(outcome: DecisionOutcome) -> ReplayedDecision:
    return ReplayedDecision(_action(outcome), _detail(outcome), outcome_sentence(outcome))


def _action(outcome: DecisionOutcome) -> str:
    match outcome:
        case CanaryEvaluation():
            return _tag(outcome.action)
        case QueueTurn():
            return "turn"
        case RefusedTransition():
            return "refused"
        case Rollout():
            return outcome.state.value
        case _:
            return _tag(outcome)


def _detail(outcome: DecisionOutcome) -> str:
    match outcome:
        case CanaryEvaluation(action=SetWeight() as action):
            return f"{action.share * 100:g} %"
        case CanaryEvaluation(action=RollBack() as action):
            return action.reason
        case CanaryStrategy():
            return f"from {outcome.share * 100:g} %" + (", approval" if outcome.approval else "")
        case RollBack() | ModelDegraded():
            return outcome.reason
        case QueueTurn():
            return outcome.next or ""
        case _:
            return ""


def _tag(value: Struct) -> str:
    return str(value.__struct_config__.tag)
