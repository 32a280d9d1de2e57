"""What was a model trained on? Provenance that a model card points to.

A snapshot names every trajectory with the revision of its reward, how they were chosen and what
was left out, and carries the sha256 of all that. It holds no text of a trajectory, so it can be
kept for ever. The same data set has the same hash, whenever it is made.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import datetime
from hashlib import sha256
from typing import Any

import msgspec

from upswing.contracts import canonical
from upswing.contracts.typed import from_json
from upswing.dataset.filtering import SelectionSpec, TrajectoryCandidate
from upswing.dataset.select import Selection
from upswing.errors import Reason, Rejected


class SnapshotEntry(msgspec.Struct, frozen=True, array_like=True):
    """One trajectory of the data set."""

    trajectory_id: str
    revision: int
    """Of its reward."""
    held_out: bool


class Snapshot(msgspec.Struct, frozen=True, kw_only=True):
    """The artifact `snapshot.json`."""

    source: str
    """`local`, `s3`, or `nats_stream` with the stream's name."""
    algorithm: str
    sample_size: int
    seed: int
    holdout: float
    min_agents: int
    filter: dict[str, Any]
    """As the request gave it."""
    balance: dict[str, Any]
    entries: list[SnapshotEntry]
    """In the order in which training gets them."""
    domains: dict[str, int]
    groups: dict[str, int]
    """Trajectories by group."""
    tasks: int
    held_out_tasks: int
    left_out: dict[str, int]
    """Candidates that are not in it, by reason."""
    reused: float
    """The share of the trained ones that the model's ancestors were trained on before."""
    earliest: datetime | None
    latest: datetime | None
    """When the first and the last of them ended."""
    notes: list[str]
    """What a person should know of it, in sentences."""
    made: datetime
    """Not part of the hash."""
    sha256: str = ""
    trained_groups: int = 0
    """Of the groups, those that are trained on."""
    policies: dict[str, int] = {}
    """Trained trajectories by the policy that acted."""
    off_policy: float = 0.0
    """The share of the trained ones that another policy made than the one that training starts from;
    0 when nobody knows that one."""
    sources: dict[str, int] = {}
    """Who scored the groups, and how many."""

    def trained(self) -> list[tuple[str, int]]:
        """(trajectory, revision) of what is trained on."""
        return [(each.trajectory_id, each.revision) for each in self.entries if not each.held_out]


def build_snapshot(
    selection: Selection,
    spec: SelectionSpec,
    *,
    source: str,
    requested_filter: Mapping[str, Any],
    left_out: Mapping[str, int],
    notes: Sequence[str],
    made: datetime,
) -> Snapshot:
    """The snapshot of a selection; `left_out` and `notes` are what the source adds to it."""
    members = selection.members
    trained = [member for member in members if not selection.is_held_out(member)]
    tasks = {member.task for member in members}
    ended = [member.ended for member in members]
    return with_digest(
        Snapshot(
            source=source,
            algorithm=spec.algorithm,
            sample_size=spec.sample_size,
            seed=spec.seed,
            holdout=spec.holdout,
            min_agents=spec.min_agents,
            filter=dict(requested_filter),
            balance=_balance_summary(spec),
            entries=[
                SnapshotEntry(member.trajectory_id, member.revision, selection.is_held_out(member))
                for member in members
            ],
            domains=_count_names(member.domain for member in members),
            groups=_count_names(selection.groups.values()),
            trained_groups=len({selection.groups[each.trajectory_id] for each in trained}),
            tasks=len(tasks),
            held_out_tasks=len(tasks & selection.held_out),
            left_out=_merge_counts(selection.left_out, left_out),
            policies=_count_names(member.model for member in trained),
            off_policy=round(_off_policy_share(trained, spec), 6),
            sources=dict(selection.sources),
            reused=round(_reused_share(trained), 6),
            earliest=min(ended, default=None),
            latest=max(ended, default=None),
            notes=[*notes, *selection.notes, selection.split],
            made=made,
        )
    )


def with_digest(snapshot: Snapshot) -> Snapshot:
    """The snapshot with the hash of its content."""
    return msgspec.structs.replace(snapshot, sha256=digest(snapshot))


def digest(snapshot: Snapshot) -> str:
    """The sha256 of everything but the hash itself and the time at which it was made."""
    return _digest(msgspec.to_builtins(snapshot))


def _digest(content: Mapping[str, Any]) -> str:
    return sha256(
        canonical({key: value for key, value in content.items() if key not in {"sha256", "made"}})
    ).hexdigest()


def read_snapshot(raw: bytes) -> Snapshot:
    """A snapshot that was written down, or `Rejected` when it is not what it was.

    Its hash is of what is written, so it still fits when a later version knows more fields.
    """
    try:
        snapshot = from_json(raw, Snapshot)
        written = from_json(raw, dict[str, Any])
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise Rejected(Reason.MALFORMED, f"This is no snapshot: {error}.") from None
    if _digest(written) != snapshot.sha256:
        raise Rejected(Reason.CONFLICT, "The snapshot was changed: its hash does not fit.")
    return snapshot


def _balance_summary(spec: SelectionSpec) -> dict[str, Any]:
    if spec.balance.shares is not None:
        return {"domain_shares": dict(spec.balance.shares)}
    return {"balance": "even"} if spec.balance.even else {}


def _off_policy_share(trained: Sequence[TrajectoryCandidate], spec: SelectionSpec) -> float:
    if not trained or not spec.policy_ages:
        return 0.0
    return sum(spec.policy_ages.get(member.model) != 0 for member in trained) / len(trained)


def _reused_share(trained: Sequence[TrajectoryCandidate]) -> float:
    return sum(member.seen for member in trained) / len(trained) if trained else 0.0


def _count_names(names: Any) -> dict[str, int]:
    return dict(sorted(Counter(names).items()))


def _merge_counts(*counts: Mapping[Any, int]) -> dict[str, int]:
    total: Counter[str] = Counter()
    for each in counts:
        total.update({str(reason): count for reason, count in each.items()})
    return {reason: count for reason, count in sorted(total.items()) if count}
