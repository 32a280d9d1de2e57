"""What would have become of a rollout under another policy, and what would that have cost or saved?

Both policies are led through the same past (`what_if_lead`) and compared with each other, so the same policy gives no
difference. Where the model of the past does not end as the past did, or an operator led the rollout, nothing is said of
how it would have gone.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import timedelta

from upswing.contracts.backtest import ModelledEnd, RolloutEffect
from upswing.deploy.core.canary import Canary, Promote, RollBack
from upswing.deploy.core.events import ActionDecided, BeginRollout, RolloutEvent, SuccessorPromoted
from upswing.deploy.core.journal import CanaryEvaluation, CanaryInputs
from upswing.deploy.core.ramp import CanaryStep
from upswing.deploy.core.what_if_lead import PROJECTED, CanaryEntry, lead_canary, read_canary


@dataclass(slots=True)
class RolloutTimeline:
    """What the journal has of one canary."""

    rollout_id: str
    model_id: str
    begin: Canary
    entries: list[CanaryEntry] = field(default_factory=list)
    by_hand: bool = False
    """An operator held it, let it go on or took it back."""
    ended: str = ""
    """The action that ended it; empty: it goes on."""

    @property
    def steps(self) -> tuple[CanaryStep, ...]:
        return self.begin.steps

    @property
    def episodes(self) -> int:
        return self.entries[-1].episodes if self.entries else 0

    @property
    def difference(self) -> float | None:
        return self.entries[-1].difference if self.entries else None

    def add(
        self,
        seen: CanaryInputs,
        changed: CanaryInputs,
        then: CanaryEvaluation,
        now: CanaryEvaluation,
    ) -> None:
        """One more entry, as both policies read it."""
        rewards, canary = seen.evidence.rewards, seen.canary
        readings = (
            read_canary(each.evidence, each.limits, each.canary.deadline, evaluation.verdict)
            for each, evaluation in ((seen, then), (changed, now))
        )
        self.entries.append(
            CanaryEntry(
                seen.now,
                rewards.candidates,
                rewards.baselines,
                seen.evidence.errors.candidate.requests,
                canary.current_step.share,
                rewards.difference,
                *readings,
            )
        )
        self.by_hand |= canary.paused or canary.approved or bool(seen.blocked) or seen.override
        if isinstance(then.action, Promote | RollBack):
            self.ended = "promoted" if isinstance(then.action, Promote) else "rolled_back"

    def note_events(self, events: Iterable[RolloutEvent]) -> None:
        """What happened to it beside the canary's own decisions: most of that an operator does."""
        usual = BeginRollout | ActionDecided | SuccessorPromoted
        self.by_hand |= any(not isinstance(event, usual) for event in events)


# ── effects ──────────────────────────────────────────────────────────────────────────────────────


def rollout_effect(history: RolloutTimeline, steps: tuple[CanaryStep, ...]) -> RolloutEffect | None:
    """What the changed policy would have made of it, with these steps; None: nothing else."""
    touched = steps != history.steps or any(each.then != each.now for each in history.entries)
    if not touched or not history.entries:
        return None
    begin, entries = history.begin, history.entries
    then = lead_canary(begin, entries, history.steps, [each.then for each in entries])
    now = lead_canary(begin, entries, steps, [each.now for each in entries])
    if then == now:
        return None
    if history.by_hand or history.begin.step != 0 or then.ended != (history.ended or "open"):
        return _unknown(history, then)
    return _effect(history, then, now)


def skipped_effect(
    model_id: str, history: RolloutTimeline | None, sentence: str, *, begun: bool
) -> RolloutEffect:
    """A model that only one of the two policies ships; `begun`: the changed one does."""
    if begun:
        now = ModelledEnd("unknown")
        said = f"{model_id} would have been rolled out; nobody knows how that would have gone. {sentence}"
        return RolloutEffect("", model_id, ModelledEnd("not_begun"), now, None, None, None, said)
    ended = history.ended if history else ""
    episodes = history.episodes if history else 0
    then = ModelledEnd(
        "promoted" if ended == "promoted" else "rolled_back" if ended else "open",
        history.entries[-1].at if history and history.entries else None,
        episodes,
    )
    said = f"{model_id} would not have been rolled out, which {_past(then)}. {sentence}"
    return RolloutEffect(
        history.rollout_id if history else "",
        model_id,
        then,
        ModelledEnd("not_begun", episodes=0),
        None,
        -episodes,
        history.difference if history else None,
        said,
    )


def _effect(history: RolloutTimeline, then: ModelledEnd, now: ModelledEnd) -> RolloutEffect:
    hours = episodes = None
    if then.ended == now.ended and then.at and now.at:
        hours = (now.at - then.at) / timedelta(hours=1)
    if "open" not in {then.ended, now.ended} and then.episodes is not None:
        episodes = (now.episodes or 0) - then.episodes
    return RolloutEffect(
        history.rollout_id,
        history.model_id,
        then,
        now,
        hours,
        episodes,
        history.difference,
        _sentence(history, then, now, hours, episodes),
    )


def _unknown(history: RolloutTimeline, then: ModelledEnd) -> RolloutEffect:
    why = (
        "an operator led it"
        if history.by_hand
        else "it began before the time that is replayed"
        if history.begin.step != 0
        else "the model of the past does not end as the past did"
    )
    said = f"{history.model_id}: how it would have gone is not modelled, because {why}."
    return RolloutEffect(
        history.rollout_id,
        history.model_id,
        then,
        ModelledEnd("unknown"),
        None,
        None,
        history.difference,
        said,
    )


def _sentence(
    history: RolloutTimeline,
    then: ModelledEnd,
    now: ModelledEnd,
    hours: float | None,
    episodes: int | None,
) -> str:
    name = history.model_id
    like_this = ", had everything gone on like that" if now.reason == PROJECTED else ""
    if hours is not None:
        word = "promoted" if now.ended == "promoted" else "rolled back"
        when = f"{abs(hours):.1f} h {'later' if hours > 0 else 'earlier'}"
        said = f"{name} would have been {word} {when if abs(hours) >= 0.05 else 'at the same time'}{like_this}"
        return f"{said}, after {abs(episodes or 0)} {'more' if (episodes or 0) > 0 else 'fewer'} of its episodes."
    if now.ended == "open":
        return f"{name} {_past(then)} and would not have been by then. {_rate(history)}"
    if now.ended == "promoted":
        return f"{name} would have been promoted at {_time(now)}{like_this}; it {_past(then)}."
    return f"{name} would have been rolled back at {_time(now)} ({now.reason}); it {_past(then)}."


def _rate(history: RolloutTimeline) -> str:
    """What each further hour would have meant, as far as the journal tells."""
    first, last = history.entries[0], history.entries[-1]
    hours = (last.at - first.at) / timedelta(hours=1)
    if not hours > 0 or last.difference is None:
        return "Nobody saw what would have followed."
    pace = last.episodes / hours
    worth = f"{abs(last.difference):.3f} {'less' if last.difference < 0 else 'more'}"
    return f"Each further hour would have given it about {pace:.0f} episodes, which earned {worth} each than the baseline's."


def _past(end: ModelledEnd) -> str:
    match end.ended:
        case "promoted":
            return f"was promoted at {_time(end)}"
        case "rolled_back":
            return f"was rolled back at {_time(end)}"
        case _:
            return "goes on"


def _time(end: ModelledEnd) -> str:
    return f"{end.at:%Y-%m-%d %H:%M} UTC" if end.at else "an unknown time"
