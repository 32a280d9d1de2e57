"""What really happened while the agents acted, and who tells us?

A source is anything with a name and a `fetch`. Packages announce theirs in the entry point group
`upswing.outcomes`; a file of JSON lines is built in. Several sources may tell of one window: their
assets and events are joined, and where two disagree on a number the first one given is believed
and the other is named.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from importlib.metadata import EntryPoint, entry_points
from typing import Any, Protocol

import msgspec
from msgspec import UNSET, UnsetType

from upswing.contracts.codec import decode
from upswing.contracts.outcome import AssetMove, Event, Outcome
from upswing.contracts.steps import format_time, text_or_json, window_id_at
from upswing.errors import Misuse, Rejected

GROUP = "upswing.outcomes"
Key = tuple[str, str | None]
"""A window and a scenario; None tells of every scenario of the window."""


class OutcomeSource(Protocol):
    """Knows what happened in some windows; those it does not know it leaves out."""

    name: str

    async def fetch(self, window_ids: Sequence[str]) -> list[Outcome]: ...


@dataclass(frozen=True, slots=True)
class OutcomeLines:
    """What a file of JSON lines holds: the outcomes, and a sentence for each line that is none."""

    outcomes: list[Outcome]
    problems: list[str]


class OutcomeFileSource:
    """Outcomes in JSON lines; `read` is usually a path's `read_bytes`."""

    def __init__(self, read: Callable[[], bytes], name: str = "file") -> None:
        self.name = name
        self._read = read

    async def fetch(self, window_ids: Sequence[str]) -> list[Outcome]:
        wanted = set(window_ids)
        return [
            each for each in parse_outcome_lines(self._read()).outcomes if each.window_id in wanted
        ]


def parse_outcome_lines(raw: bytes) -> OutcomeLines:
    """Every line that is an outcome; a bad line is reported and does not spoil the others."""
    outcomes, problems = [], []
    for number, line in enumerate(raw.splitlines(), 1):
        if not line.strip():
            continue
        try:
            outcomes.append(decode(Outcome, line))
        except Rejected as error:
            problems.append(f"Line {number}: {error.detail}")
    return OutcomeLines(outcomes, problems)


def discover_sources(found: Iterable[EntryPoint] | None = None) -> list[OutcomeSource]:
    """The sources that installed packages offer; each entry point is a source or makes one."""
    sources: list[OutcomeSource] = []
    for point in entry_points(group=GROUP) if found is None else found:
        try:
            loaded = point.load()
            source = loaded() if isinstance(loaded, type) else loaded
        except Exception as error:
            raise Misuse(
                f"The outcome source {point.name} cannot be loaded: {type(error).__name__}."
            ) from error
        if not callable(getattr(source, "fetch", None)):
            raise Misuse(f"The outcome source {point.name} has no `fetch(window_ids)`.")
        sources.append(source)
    return sources


def windows_of_last_hours(now: datetime, hours: int, window_hours: int = 1) -> list[str]:
    """The windows that the last `hours` touch, oldest first, the running one included.

    >>> from datetime import UTC
    >>> windows_of_last_hours(datetime(2025, 1, 15, 1, 30, tzinfo=UTC), 2)
    ['2025-01-14T23:00', '2025-01-15T00:00', '2025-01-15T01:00']
    """
    moments = [now - timedelta(hours=back) for back in range(hours, -1, -1)]
    return list(dict.fromkeys(window_id_at(moment, window_hours) for moment in moments))


def merge_outcomes(outcomes: Iterable[Outcome]) -> dict[Key, Outcome]:
    """One outcome per window and scenario, whoever added it."""
    merged: dict[Key, Outcome] = {}
    for each in outcomes:
        key = (
            each.window_id,
            None if isinstance(each.scenario_id, UnsetType) else each.scenario_id,
        )
        merged[key] = _join_outcomes(merged[key], each) if key in merged else each
    return merged


def find_outcome(merged: dict[Key, Outcome], window_id: str, scenario_id: str) -> Outcome | None:
    """What is known of this scenario, with what is known of its whole window."""
    own, whole = merged.get((window_id, scenario_id)), merged.get((window_id, None))
    if own is None or whole is None:
        return own or whole
    return _join_outcomes(own, whole)


def ground_truth_text(outcome: Outcome | None, ground_truth: Any = None) -> str:
    """What the agents did not know, in lines; empty when nothing is known.

    >>> from upswing.contracts.outcome import EXAMPLE
    >>> print(ground_truth_text(msgspec.convert(EXAMPLE, Outcome), {"answer": 42}))
    TRUMP: opened at 12.5, closed at 10.5, changed by -16.0 %
    2025-01-15T10:41:00Z: SEC investigation announced
    {"answer":42}
    """
    lines: list[str] = []
    if outcome is not None:
        lines += [f"{name}: {_move_text(move)}" for name, move in _assets_by_name(outcome).items()]
        lines += [_event_text(event) for event in _events_of_outcome(outcome)]
        lines += [
            f"{key}: {text_or_json(value)}" for key, value in _metadata_of_outcome(outcome).items()
        ]
    if ground_truth not in (None, "", {}, []):
        lines.append(text_or_json(ground_truth))
    return "\n".join(lines)


def _join_outcomes(first: Outcome, other: Outcome) -> Outcome:
    known, added = _assets_by_name(first), _assets_by_name(other)
    disputed = sorted(name for name in known.keys() & added.keys() if known[name] != added[name])
    metadata = {**_metadata_of_outcome(other), **_metadata_of_outcome(first)}
    if disputed:
        metadata |= {"disputed": _merge_without_duplicates(metadata.get("disputed", []), disputed)}
    sources = _merge_without_duplicates(first.source.split(" + "), other.source.split(" + "))
    return msgspec.structs.replace(
        first,
        assets={**added, **known} or UNSET,
        events=_sorted_by_time([*_events_of_outcome(first), *_events_of_outcome(other)]) or UNSET,
        source=" + ".join(sources),
        metadata=metadata or UNSET,
    )


def _merge_without_duplicates(first: Collection[str], other: Collection[str]) -> list[str]:
    return list(dict.fromkeys([*first, *other]))


def _sorted_by_time(events: Sequence[Event]) -> list[Event]:
    """Each once, in the order of time; those without a time come first."""
    return sorted(dict.fromkeys(events), key=_event_time)


def _event_time(event: Event) -> str:
    return "" if isinstance(event.time, UnsetType) else format_time(event.time)


def _event_text(event: Event) -> str:
    return f"{_event_time(event)}: {event.text}" if _event_time(event) else event.text


def _move_text(move: AssetMove) -> str:
    parts = []
    if not isinstance(move.open, UnsetType):
        parts.append(f"opened at {move.open:g}")
    if not isinstance(move.close, UnsetType):
        parts.append(f"closed at {move.close:g}")
    if not isinstance(move.change, UnsetType):
        parts.append(f"changed by {move.change:+.1%}".replace("%", " %"))
    return ", ".join(parts)


def _assets_by_name(outcome: Outcome) -> dict[str, AssetMove]:
    return {} if isinstance(outcome.assets, UnsetType) else outcome.assets


def _events_of_outcome(outcome: Outcome) -> list[Event]:
    return [] if isinstance(outcome.events, UnsetType) else outcome.events


def _metadata_of_outcome(outcome: Outcome) -> dict[str, Any]:
    return {} if isinstance(outcome.metadata, UnsetType) else outcome.metadata
