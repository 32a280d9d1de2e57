"""What is known of a trajectory that the store does not hold, but a stream or an archive does?"""

from __future__ import annotations

from collections.abc import Collection
from datetime import UTC
from uuid import UUID

import msgspec

from upswing.contracts import Trajectory
from upswing.contracts.typed import json_decoder
from upswing.dataset.evaluation import is_evaluation
from upswing.dataset.filtering import TrajectoryCandidate, TrajectoryRecords
from upswing.dataset.task import actions_digest, is_continuous, request_digest, task_key


class _TrajectoryId(msgspec.Struct):
    trajectory_id: UUID


_ID_DECODER = json_decoder(_TrajectoryId)


def trajectory_id_in(raw: bytes) -> str | None:
    """The id of the trajectory in these bytes; nothing else of them is read.

    >>> trajectory_id_in(b'{"turns": [1], "trajectory_id": "0D4C7A52-7F2E-4C39-9A4E-6F8D2F0B8A11"}')
    '0d4c7a52-7f2e-4c39-9a4e-6f8d2f0b8a11'
    >>> trajectory_id_in(b"[]") is trajectory_id_in(b"{") is None
    True
    """
    try:
        return str(_ID_DECODER.decode(raw).trajectory_id)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None


def missing_ranges(known: Collection[int], first: int, last: int) -> list[tuple[int, int]]:
    """The ranges from `first` to `last` that hold no known number.

    >>> missing_ranges({2, 3, 7, 99}, 1, 9)
    [(1, 1), (4, 6), (8, 9)]
    >>> missing_ranges(set(), 1, 0)
    []
    """
    found, start = [], first
    for seq in sorted(seq for seq in known if first <= seq <= last):
        if seq > start:
            found.append((start, seq - 1))
        start = seq + 1
    return [*found, (start, last)] if start <= last else found


def build_candidate(trajectory: Trajectory, records: TrajectoryRecords) -> TrajectoryCandidate:
    """A trajectory of the archive as a candidate, with what the store remembers of it.

    Its reward is the store's; without one it is a candidate that will be left out.
    """
    key = str(trajectory.trajectory_id)
    scored = records.scored.get(key)
    body = msgspec.to_builtins(trajectory)
    metadata, profile = trajectory.metadata, trajectory.subordinate_profile
    user = metadata.get("user_id")
    return TrajectoryCandidate(
        trajectory_id=key,
        agent_id=trajectory.agent_id,
        profile=profile if isinstance(profile, str) and profile else "main",
        domain=scored.domain if scored else trajectory.task_context.get("domain", "general"),
        task_id=task_key(body),
        window_id=scored.window_id if scored else "",
        scenario_id=scored.scenario_id if scored else "",
        ended=trajectory.end_timestamp.astimezone(UTC),
        turns=len(trajectory.turns),
        infra_error=bool(metadata.get("infra_error"))
        or (scored is not None and scored.infra_error),
        evaluation=is_evaluation(metadata),
        opted_out=isinstance(user, str) and user in records.optouts,
        seen=key in records.seen,
        revision=scored.revision if scored else 0,
        reward=scored.reward if scored else None,
        raw_total=scored.raw_total if scored else 0.0,
        model=metadata["model"],
        continuous=is_continuous(body),
        answers=actions_digest(body),
        request=request_digest(body),
        verified=scored.verified if scored else None,
        pnl=scored.pnl if scored else None,
        judged=scored.judged if scored else None,
        reported=scored.reported if scored else None,
        feedback=scored.feedback if scored else None,
    )
