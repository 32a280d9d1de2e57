"""Did this episode fail, how, and under which circumstances? A stored trajectory as facts to compare.

| failed as        | when                                                                                   |
|------------------|----------------------------------------------------------------------------------------|
| `error`          | its model did not answer one of its requests, whoever answered in its place             |
| `low_reward`     | it earned less than three in four of the baseline's episodes did                        |
| `complaint`      | its users say that it was bad                                                          |
| `any`            | any of these                                                                           |

| what went wrong  | told by                                                                                |
|------------------|----------------------------------------------------------------------------------------|
| the fault's kind | the gateway, for an error (`out_of_memory`, `slow`, …)                                  |
| `content_filter` | the finish reason                                                                      |
| `cut_off`        | the finish reason `length`                                                             |
| `refusal`        | the words of the last answer                                                           |
| `tool_error`     | a tool call that failed                                                                |
| `low_reward`, `complaint` | none of these                                                                 |

What a client or a server wrote into metadata may be anything: what is not of the expected type is not there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from hashlib import sha256
from typing import Any

import msgspec
from msgspec import Struct

from upswing.contracts.analysis import FailureLabel
from upswing.contracts.typed import json_decoder
from upswing.records import EpisodeFacts

_NAME = 80
"""Characters of a tool's, agent's or user's name."""
_TOOLS = 40
"""Of an episode that are looked at."""
_ANSWER = 10_000
"""Characters of its last words that are kept: whether it refuses is said at the beginning."""
_UNREADABLE = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError)
_QUARTER = 0.25
_BY_REASON: dict[str, FailureLabel] = {
    "high_error_rate": "error",
    "hard_failure": "error",
    "backend_dead": "error",
    "performance_degradation": "low_reward",
    "segment_degradation": "low_reward",
    "user_dissatisfaction": "complaint",
}
IsRefusal = Callable[[str], bool]


class _Metadata(Struct, frozen=True):
    gateway: Any = None


class _Trajectory(Struct, frozen=True):
    turns: tuple[Any, ...] = ()
    metadata: _Metadata = _Metadata()


_DECODER = json_decoder(_Trajectory)


@dataclass(frozen=True, slots=True)
class StoredEpisode:
    """A trajectory with what its row and its reward say."""

    trajectory_id: str
    model: str
    agent_id: str
    user_id: str | None
    domain: str
    started: datetime
    infra_error: bool
    raw_total: float | None
    feedback: float | None
    """0 to 1, what users say; None: nobody has."""
    body: bytes


@dataclass(frozen=True, slots=True)
class EpisodeReading:
    """What its body says."""

    rollout: str = ""
    named: bool = False
    prompt_bytes: int = 0
    first_token_ms: float | None = None
    finish_reasons: tuple[str, ...] = ()
    error: str = ""
    """The kind of the first request that its own model did not answer; empty: it answered all."""
    tools: tuple[str, ...] = ()
    offered: tuple[str, ...] = ()
    tool_failed: bool = False
    answer: str = ""
    """Its last words."""


def label_for(reason: str) -> FailureLabel:
    """What counts as a failure after a rollback for this reason.

    >>> label_for("high_error_rate"), label_for("operator")
    ('error', 'any')
    """
    return _BY_REASON.get(reason, "any")


def read_episode(episode: StoredEpisode) -> EpisodeReading:
    """What can be read of its body; nothing where it cannot."""
    try:
        tree = _DECODER.decode(episode.body)
    except _UNREADABLE:
        return EpisodeReading()
    gateway = _object(tree.metadata.gateway)
    turns = [_object(turn) for turn in tree.turns]
    actions = [_object(turn.get("action")) for turn in turns]
    calls = [a for a in actions if a.get("type") == "tool_call"]
    named = (name for call in calls for name in _text(call.get("tool_name")).split("+"))
    reasons = _object(gateway.get("finish_reasons"))
    return EpisodeReading(
        rollout=_text(gateway.get("rollout"))[:_NAME],
        named=gateway.get("named") is True,
        prompt_bytes=int(_number(gateway.get("prompt_bytes")) or 0) or _observed(turns),
        first_token_ms=_number(gateway.get("first_token_ms")),
        finish_reasons=tuple(sorted(str(name)[:_NAME] for name in reasons if name))[:_TOOLS],
        error=_own_error(gateway, episode),
        tools=tuple(sorted({name[:_NAME] for name in named if name}))[:_TOOLS],
        offered=_offered(turns),
        tool_failed=any(_failed_call(turn) for turn in turns),
        answer=_text(actions[-1].get("raw_response"))[:_ANSWER] if actions else "",
    )


def _own_error(gateway: dict[str, Any], episode: StoredEpisode) -> str:
    errors = gateway.get("errors")
    for each in errors if isinstance(errors, list) else ():
        record = _object(each)
        if record.get("model") == episode.model:
            return _text(record.get("kind"))[:_NAME] or "unknown"
    failures = _number(gateway.get("failures")) or 0
    return "unknown" if failures > 0 and not errors else ""


def _failed_call(turn: dict[str, Any]) -> bool:
    calls = _object(turn.get("action")).get("type") == "tool_call"
    return calls and _object(turn.get("result")).get("success") is False


def _offered(turns: Sequence[dict[str, Any]]) -> tuple[str, ...]:
    first = _object(turns[0].get("observation")) if turns else {}
    tools = _object(first.get("context")).get("available_tools")
    names = (_text(name)[:_NAME] for name in tools) if isinstance(tools, list) else ()
    return tuple(sorted({name for name in names if name}))[:_TOOLS]


def _observed(turns: Sequence[dict[str, Any]]) -> int:
    """How long its prompt grew, where nobody measured it: all that it saw."""
    return sum(
        len(msgspec.json.encode(_object(t.get("observation")).get("content"))) for t in turns
    )


def low_reward_limit(baseline: Sequence[StoredEpisode]) -> float | None:
    """What three in four of the baseline's episodes earn at least; None: nobody knows."""
    earned = sorted(e.raw_total for e in baseline if e.raw_total is not None and not e.infra_error)
    return earned[int(_QUARTER * len(earned))] if earned else None


def facts_of(
    episodes: Sequence[tuple[StoredEpisode, EpisodeReading]],
    candidate: str,
    label: FailureLabel,
    limit: float | None,
    is_refusal: IsRefusal,
) -> Iterator[EpisodeFacts]:
    """Those that can be compared under this label."""
    for episode, reading in episodes:
        if label in {"low_reward", "complaint"} and episode.infra_error:
            continue
        failed = _failure(episode, reading, label, limit)
        kind = _kind(failed, reading, is_refusal) if failed else ""
        yield EpisodeFacts(
            episode.trajectory_id,
            episode.model == candidate,
            bool(failed),
            kind,
            _labels(episode, reading),
            _numbers(episode, reading),
        )


def _failure(
    episode: StoredEpisode, reading: EpisodeReading, label: FailureLabel, limit: float | None
) -> str:
    """By what it counts as failed; empty: it did not fail."""
    if label in {"error", "any"} and reading.error:
        return "error"
    earned = episode.raw_total
    low = limit is not None and earned is not None and not episode.infra_error and earned < limit
    if label in {"low_reward", "any"} and low:
        return "low_reward"
    bad = episode.feedback is not None and episode.feedback < 0.5
    return "complaint" if label in {"complaint", "any"} and bad else ""


def _kind(failed: str, reading: EpisodeReading, is_refusal: IsRefusal) -> str:
    if failed == "error":
        return reading.error
    if "content_filter" in reading.finish_reasons:
        return "content_filter"
    if "length" in reading.finish_reasons:
        return "cut_off"
    if is_refusal(reading.answer):
        return "refusal"
    return "tool_error" if reading.tool_failed else failed


def _labels(episode: StoredEpisode, reading: EpisodeReading) -> dict[str, tuple[str, ...]]:
    found = {
        "domain": (episode.domain,),
        "agent": (episode.agent_id[:_NAME],),
        "user": (_told_apart(episode.user_id),) if episode.user_id else (),
        "tool": reading.tools,
        "tool offered": reading.offered,
        "finish reason": reading.finish_reasons,
        "hour of day": (f"{episode.started:%H}:00 UTC",),
    }
    return {feature: values for feature, values in found.items() if values}


def _told_apart(user: str) -> str:
    """Enough to tell users apart, and to tell nobody who they are: an analysis outlives an erasure."""
    return sha256(user.encode("utf-8", "replace")).hexdigest()[:10]


def _numbers(episode: StoredEpisode, reading: EpisodeReading) -> dict[str, float]:
    found = {"prompt length": float(reading.prompt_bytes), "time": episode.started.timestamp()}
    if reading.first_token_ms is not None:
        found["first-token latency"] = reading.first_token_ms
    return found


def _object(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""


def _number(value: Any) -> float | None:
    sound = isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < 1e12
    return float(value) if sound else None
