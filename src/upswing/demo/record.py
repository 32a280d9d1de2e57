"""What happened over a whole demo, also one that was stopped and went on? Its views, read as one story.

Each start counts its seconds from zero; here they follow one another.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec

from upswing.contracts.typed import from_json
from upswing.demo.view import Line, Scored, Share, View


@dataclass(frozen=True, slots=True)
class DemoHistory:
    """Everything that changes over time."""

    scored: tuple[Scored, ...] = ()
    shares: tuple[Share, ...] = ()
    log: tuple[Line, ...] = ()
    seconds: float = 0.0


def read_views(path: Path) -> list[View]:
    """The views of a run, one JSON a line; a line that was cut off by a stop is left out."""
    found: list[View] = []
    for line in path.read_bytes().splitlines() if path.exists() else []:
        try:
            found.append(from_json(line, View))
        except msgspec.DecodeError:
            continue
    return found


def split_starts(views: Iterable[View]) -> list[list[View]]:
    """The views of each start: where the seconds fall, another began."""
    found: list[list[View]] = []
    for view in views:
        if not found or view.second < found[-1][-1].second:
            found.append([])
        found[-1].append(view)
    return found


def join_starts(views: Iterable[View]) -> DemoHistory:
    """All starts, one after the other."""
    scored: list[Scored] = []
    shares: list[Share] = []
    log: list[Line] = []
    since = 0.0
    for start in split_starts(views):
        last = start[-1]
        scored += _scored_points(last, since)
        shares += _share_changes(start, since)
        log += [msgspec.structs.replace(line, second=since + line.second) for line in last.log]
        since += last.second
    return DemoHistory(tuple(scored), tuple(shares), tuple(log), since)


def _scored_points(view: View, since: float) -> list[Scored]:
    found = [
        Scored(since + second, each.model_id, score)
        for each in view.earned
        for second, score in each.points
    ]
    return sorted(found, key=lambda each: each.second)


def _share_changes(views: Sequence[View], since: float) -> list[Share]:
    """Only where they change."""
    found: list[Share] = []
    for view in views:
        if view.traffic and (not found or found[-1].traffic != view.traffic):
            found.append(Share(since + view.second, view.traffic))
    return found
