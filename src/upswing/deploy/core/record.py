"""What is remembered of a rollout beside how it stands, and how is what was seen worked in?

| while it is        | is remembered                                                        |
|--------------------|----------------------------------------------------------------------|
| ramping, or held   | the evidence of candidate and baseline, side by side                  |
| promoted           | the watch: errors against the limit, rewards against what was frozen  |
|                    | and against the holdback's                                            |

Everything that is read carries a number that only rises: rewards and complaints their sequence, counts
the counts themselves. So whatever is worked in twice changes nothing, and a crash between reading and
writing costs nothing but the reading.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime

import msgspec
from msgspec import Struct, field

from upswing.contracts.traffic import HOLDBACK, Counts, Tally
from upswing.contracts.typed import json_decoder
from upswing.deploy.core.error_rate import GatewayCounts, RequestCounts
from upswing.deploy.core.evidence import CanaryEvidence, begin_evidence
from upswing.deploy.core.holdback import HoldbackEvidence, begin_holdback
from upswing.deploy.core.limits import RolloutLimits
from upswing.deploy.core.rollout import Rollout
from upswing.deploy.core.rows import (
    ComplaintBatch,
    ObservedComplaint,
    ObservedReward,
    RecordRow,
    RewardBatch,
)
from upswing.deploy.core.watch import PromotionWatch, begin_watch

_SHARES = 200
"""Changes of the share that are remembered: complaints come late, but not that late."""
NONE = Counts()
Tallies = Mapping[str, Tally]
"""By gateway."""


class ShareSince(Struct, frozen=True):
    """From then on, in real time, the candidate had this share of what it and the baseline got."""

    at: datetime
    share: float


class RolloutRecord(Struct):
    """It changes in place, like the evidence in it."""

    evidence: CanaryEvidence | None = None
    watch: PromotionWatch | None = None
    sources: list[str] = field(default_factory=list)
    """The rollouts whose name the plan bore while this one had traffic."""
    shares: list[ShareSince] = field(default_factory=list)
    hold: str = ""
    """What it waited for when that was last journalled."""
    alerted: str = ""
    """What a person was last called for."""
    drawn: int = 0
    """Rewards at the newest point of its history."""
    drawn_share: float = -1.0


_DECODER = json_decoder(RolloutRecord)


def read_record(body: bytes | None) -> RolloutRecord:
    return _DECODER.decode(body) if body else RolloutRecord()


def record_row(rollout_id: str, record: RolloutRecord) -> RecordRow:
    """The record as it is kept, with what it was read from."""
    rewards = complaints = 0
    if record.evidence is not None:
        rewards, complaints = record.evidence.rewards.seq, record.evidence.complaints.seq
    if record.watch is not None:
        rewards = max(rewards, record.watch.fall.seq)
    return RecordRow(rollout_id, rewards, complaints, msgspec.json.encode(record))


# ── beginnings ───────────────────────────────────────────────────────────────────────────────────


def begin_record(
    rollout: Rollout, limits: RolloutLimits, tallies: Tallies, *, lead: str, newest: tuple[int, int]
) -> RolloutRecord:
    """Nothing seen yet: what was counted and stored up to now belongs to the time before."""
    evidence = begin_evidence(limits, reward_seq=newest[0], complaint_seq=newest[1])
    sources = list(dict.fromkeys((rollout.rollout_id, lead)))
    for gateway, source, models in _counted(tallies, sources):
        candidate, beside = _both(models, rollout.model_id, rollout.baseline_id)
        evidence.errors.seen[f"{gateway}/{source}"] = GatewayCounts(candidate, beside)
    return RolloutRecord(evidence=evidence, sources=sources)


def begin_watching(
    record: RolloutRecord,
    rollout: Rollout,
    limits: RolloutLimits,
    tallies: Tallies,
    *,
    frozen: float | None,
    newest: int,
    error: float = 0.0,
) -> RolloutRecord:
    """From its promotion on; the evidence stays, for whoever asks why."""
    watch = begin_watch(limits, frozen, reward_seq=newest, error=error)
    for gateway, source, models in _counted(tallies):
        candidate, beside = _both(models, rollout.model_id, _held_by(rollout))
        watch.errors.seen[f"{gateway}/{source}"] = GatewayCounts(candidate, beside)
    if (held := rollout.holdback) is not None:
        watch.held = begin_holdback(held.model_id, limits, reward_seq=newest)
    record.watch, record.hold, record.alerted = watch, "", ""
    return record


def note_share(record: RolloutRecord, at: datetime, share: float) -> bool:
    """Remember the share that holds from now on; False when it is the same."""
    if record.shares and record.shares[-1].share == share:
        return False
    record.shares = [*record.shares[1 - _SHARES :], ShareSince(at, share)]
    return True


def share_at(record: RolloutRecord, at: datetime) -> float:
    """The share at that time; 0 before the first."""
    return next((held.share for held in reversed(record.shares) if held.at <= at), 0.0)


# ── working in ───────────────────────────────────────────────────────────────────────────────────


def add_rewards(record: RolloutRecord, rollout: Rollout, seen: RewardBatch) -> None:
    """Rewards of candidate and baseline, in their order; of each voice no more than its share."""
    if record.evidence is None:
        return
    rewards = record.evidence.rewards
    for row in seen.rows:
        if row.rollout in record.sources and row.seq > rewards.seq:
            record.evidence.by_user |= row.by_user
            if _counts(record.evidence, row, seen.several):
                _take_reward(record.evidence, row, rollout)
    rewards.seq = max(rewards.seq, seen.upto)


def _counts(evidence: CanaryEvidence, row: ObservedReward, several: bool) -> bool:
    voices = evidence.voices
    if row.by_user and row.user and not row.key and row.user in voices.users:
        return False  # a user is counted once
    return voices.count_if_fair(row.key, row.user, several=several)


def _take_reward(evidence: CanaryEvidence, row: ObservedReward, rollout: Rollout) -> None:
    rewards, candidate = evidence.rewards, row.model == rollout.model_id
    if row.lost:
        evidence.lost.observe(candidate=candidate)
        if (share := _drawn_with(row, rollout)) is not None:
            evidence.ratio.observe(candidate=candidate, share=share)
        return
    if rewards.observe(row.seq, row.raw_total, candidate=candidate, step=row.step):
        evidence.others += not row.by_user
        evidence.guards.observe(row, candidate=candidate, limit=rewards.drop)
        if (share := _drawn_with(row, rollout)) is not None:
            evidence.ratio.observe(candidate=candidate, share=share)


def add_complaints(record: RolloutRecord, rollout: Rollout, seen: ComplaintBatch) -> None:
    """Complaints, each with the share that the candidate had when the episode began."""
    if record.evidence is None:
        return
    complaints = record.evidence.complaints
    for row in seen.rows:
        new = row.seq > complaints.seq or row.seq in complaints.pending
        if (
            new
            and row.rollout in record.sources
            and record.evidence.complainers.count_if_fair(row.key, row.user, several=seen.several)
        ):
            share = _drawn_with(row, rollout) or share_at(record, row.started)
            complaints.observe(row.seq, candidate=row.model == rollout.model_id, share=share)
    complaints.seq = max(complaints.seq, seen.upto)
    complaints.pending = list(seen.pending)


def _drawn_with(row: ObservedReward | ObservedComplaint, rollout: Rollout) -> float | None:
    """The candidate's share when an episode was drawn, where it was the one candidate.

    A gateway may be allowed less than the plan says. Under another rollout's name the share is another model's.
    """
    return _share_of(row.step) if row.rollout == rollout.rollout_id else None


def _share_of(step: str) -> float | None:
    """The one share that a step names.

    >>> _share_of("0.05"), _share_of("0.05+0.1"), _share_of("")
    (0.05, None, None)
    """
    try:
        share = float(step)
    except ValueError:
        return None
    return share if 0 < share < 1 else None


def add_tallies(record: RolloutRecord, rollout: Rollout, tallies: Tallies) -> bool:
    """What gateways have counted; False when nothing of it is new."""
    if record.evidence is None:
        return False
    new = False
    for gateway, source, models in _counted(tallies, record.sources):
        candidate, beside = _both(models, rollout.model_id, rollout.baseline_id)
        new |= record.evidence.errors.count(f"{gateway}/{source}", candidate, beside)
    return new


def add_watch_rewards(record: RolloutRecord, rollout: Rollout, seen: RewardBatch) -> None:
    """Rewards of the promoted model, and of the holdback where chance chose between the two."""
    if record.watch is None:
        return
    fall, voices = record.watch.fall, record.watch.voices
    for row in seen.rows:
        held = _beside(record.watch, row, rollout)
        own = row.model == rollout.model_id
        if not (own or held) or row.seq <= fall.seq:
            continue
        if not voices.count_if_fair(row.key, row.user, several=seen.several):
            continue
        if own and not row.lost:
            fall.observe(row.seq, row.raw_total)
        if held and row.lost:
            held.lost.observe(candidate=not own)
        elif held:
            held.observe(row.seq, row.raw_total, held=not own, step=row.step, by_user=row.by_user)
        if held and (share := _share_of(row.step.removeprefix(HOLDBACK))) is not None:
            held.ratio.observe(candidate=not own, share=share)
    fall.seq = max(fall.seq, seen.upto)


def _beside(
    watch: PromotionWatch, row: ObservedReward, rollout: Rollout
) -> HoldbackEvidence | None:
    """What a reward is worked into where chance chose between the promoted model and its holdback."""
    held = watch.held
    if held is None or row.rollout != rollout.rollout_id or not row.step.startswith(HOLDBACK):
        return None
    return held if row.model in {rollout.model_id, held.model_id} else None


def add_watch_tallies(record: RolloutRecord, rollout: Rollout, tallies: Tallies) -> bool:
    """Its requests, whatever rollouts go on beside it, and those of its holdback."""
    if record.watch is None:
        return False
    new = False
    for gateway, source, models in _counted(tallies):
        promoted, beside = _both(models, rollout.model_id, _held_by(rollout))
        new |= record.watch.errors.count(f"{gateway}/{source}", promoted, beside)
    return new


def _held_by(rollout: Rollout) -> str:
    return rollout.holdback.model_id if rollout.holdback else ""


def total_counts(tallies: Tallies, model_id: str) -> Counts:
    """All that gateways have counted for a model."""
    found = [models[model_id] for _, _, models in _counted(tallies) if model_id in models]
    return Counts(
        sum(one.requests for one in found),
        sum(one.errors for one in found),
        sum(one.fallbacks for one in found),
        sum(one.latency_ms_sum for one in found),
    )


def _counted(
    tallies: Tallies, sources: Iterable[str] | None = None
) -> Iterable[tuple[str, str, Mapping[str, Counts]]]:
    """(gateway, rollout, its models), always in the same order."""
    for gateway in sorted(tallies):
        by_source = tallies[gateway]
        for source in sorted(by_source) if sources is None else sources:
            if source in by_source:
                yield gateway, source, by_source[source]


def _both(
    models: Mapping[str, Counts], candidate: str, baseline: str
) -> tuple[RequestCounts, RequestCounts]:
    return _tally(models.get(candidate, NONE)), _tally(models.get(baseline, NONE))


def _tally(counts: Counts) -> RequestCounts:
    return RequestCounts(counts.requests, min(counts.errors, counts.requests))
