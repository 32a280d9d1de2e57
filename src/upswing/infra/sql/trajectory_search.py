"""Which trajectories are like this? The newest first, with bounded work for each page.

    filters ─▶ one index, the newest first ─▶ at most 5,000 rows looked at ─▶ those that match ─▶ a page
                                                                └─▶ how far it came, to go on from there

Whoever is looked for by user, agent, task, model or domain is found by an index. What no index answers (a range of
rewards, an outcome, a text) is looked for in a bounded number of rows: a page may be short, or empty, and say where the
next one begins. A text is looked for in at most 1,000 bodies and 16 MB a page.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal

import msgspec

from upswing.contracts.typed import from_json
from upswing.infra.sql.database import Database, Row, Tx, check_row_types
from upswing.infra.sql.store import from_microseconds, to_microseconds

SCANNED = 5000
"""Rows of an index that a page looks at."""
SCANNED_WIDE = 1000
"""The same where whole rows have to be read."""
TEXT_BYTES = 16 * 1024 * 1024
"""Of bodies that a page looks through for a text."""
EXCERPT = 80
"""Characters before and behind a text that was found."""
SUCCESS, FAILURE = 0.999, 0.001
"""How well it went, from which on and up to which it is a success or a failure."""
OUTCOMES = ("success", "partial", "failure", "unknown")
OutcomeWord = Literal["success", "partial", "failure", "unknown"]
_FIELD = re.compile(r"\s*:")
"""What follows the name of a field."""
_FIRST = -1
"""No row has this number or a lower one."""
_STAGE = "store"
_ANY = "1 = 1"
"""Every row matches."""
_COLUMNS = (
    "t.trajectory_id, t.stored_us, t.started_us, t.ended_us, t.agent_id, t.agent_type, t.user_id, t.model, "
    "t.domain, t.task_id, t.door, t.turns, t.evaluation, t.practice, t.infra_error, s.verified, s.reported, "
    "s.raw_total, s.total, s.revision, s.feedback, s.judge_score, t.window_id, t.scenario_id, t.episode_id"
)
_WELL = "COALESCE(s.verified, s.reported)"
_OUTCOME_SQL = {
    "success": f"{_WELL} >= {SUCCESS}",
    "partial": f"{_WELL} > {FAILURE} AND {_WELL} < {SUCCESS}",
    "failure": f"{_WELL} <= {FAILURE}",
    "unknown": f"{_WELL} IS NULL",
}
_INDEXED = (
    ("user", "user_id"),
    ("agent", "agent_id"),
    ("task", "task_id"),
    ("model", "model"),
    ("domain", "domain"),
)
"""Filters that an index answers, the rarest first: the first one that is said is looked up."""


@dataclass(frozen=True, slots=True)
class TrajectoryFilter:
    """Which trajectories; None: any."""

    since: datetime | None = None
    """When they were stored."""
    until: datetime | None = None
    model: str | None = None
    agent: str | None = None
    user: str | None = None
    domain: str | None = None
    task: str | None = None
    door: str | None = None
    outcome: str | None = None
    min_reward: float | None = None
    """The raw total; what has no reward yet has none that is high enough."""
    max_reward: float | None = None
    min_turns: int | None = None
    evaluation: bool | None = None
    text: str | None = None


@dataclass(frozen=True, slots=True)
class FoundTrajectory:
    """A trajectory as a list shows it."""

    trajectory_id: str
    stored: datetime
    started: datetime
    ended: datetime
    agent_id: str
    agent_type: str
    user_id: str | None
    model: str
    domain: str
    task_id: str
    door: str
    turns: int
    evaluation: bool
    practice: bool
    infra_error: bool
    verified: float | None
    """How well it went, as something that checks it says."""
    reported: float | None
    """How well it went, whoever says so."""
    reward: float | None
    """The raw total; None until it is scored."""
    total: float | None
    revision: int | None
    feedback: float | None
    judge: float | None
    window_id: str
    scenario_id: str
    episode_id: str | None
    seq: int = 0
    excerpt: str | None = None

    @property
    def outcome(self) -> OutcomeWord:
        well = self.verified if self.verified is not None else self.reported
        if well is None:
            return "unknown"
        if well >= SUCCESS:
            return "success"
        return "failure" if well <= FAILURE else "partial"


@dataclass(frozen=True, slots=True)
class TrajectoryPage:
    """A part of the list."""

    found: list[FoundTrajectory]
    scanned: int
    """Rows that were looked at."""
    position: int | None
    """The row before which the next page begins; None: there is none."""


_BY_TRAJECTORY = "trajectories t LEFT JOIN scored s ON s.trajectory_seq = t.seq"
_BY_SCORE = "scored s LEFT JOIN trajectories t ON t.seq = s.trajectory_seq"
"""In this order, so that narrow rows decide which large ones are read."""


@dataclass(frozen=True, slots=True)
class _Candidates:
    """Rows that an index names, the newest first."""

    table: str
    key: str
    where: str
    params: tuple[Any, ...]
    most: int
    """Rows at most; what stands behind them is for the next page."""

    def span(self, tx: Tx) -> tuple[int, int]:
        """How many there are, and the number of the last one."""
        inner = f"SELECT {self.key} AS seq FROM {self.table} WHERE {self.where} ORDER BY {self.key} DESC"
        count, last = tx.rows(
            f"SELECT COUNT(*), MIN(seq) FROM ({inner} LIMIT {self.most}) c", self.params
        )[0]
        return int(count), int(last or 0)

    @property
    def source(self) -> str:
        return _BY_SCORE if self.table.startswith("scored") else _BY_TRAJECTORY


class TrajectorySearch:
    """Reads; never writes."""

    def __init__(
        self, database: Database, *, scanned: int = SCANNED, wide: int = SCANNED_WIDE
    ) -> None:
        """`scanned` and `wide`: rows that a page looks at, narrow and whole ones."""
        self._database, self._scanned, self._wide = database, scanned, wide

    async def page(
        self, wanted: TrajectoryFilter, *, before: int | None, limit: int
    ) -> TrajectoryPage:
        """The newest that match, of those stored before row `before`."""

        def page_in_transaction(tx: Tx) -> TrajectoryPage:
            candidates = self._candidates(tx, wanted, before, limit)
            if wanted.text is not None:
                return _search_text(tx, wanted, candidates, limit)
            return _search_columns(tx, wanted, candidates, limit)

        return await self._database.view(page_in_transaction)

    def _candidates(
        self, tx: Tx, wanted: TrajectoryFilter, before: int | None, limit: int
    ) -> _Candidates:
        span: tuple[Any, ...] = _bounds(tx, wanted, before)
        most = self._wide if _reads_whole_rows(wanted) else self._scanned
        if _conditions(wanted)[0] == _ANY and wanted.text is None:
            most = limit + 1
        for name, column in _INDEXED:
            if (value := getattr(wanted, name)) is not None:
                where = f"t.{column} = ? AND t.seq >= ? AND t.seq < ?"
                return _Candidates("trajectories t", "t.seq", where, (value, *span), most)
        if _needs_score(wanted):
            where = "s.trajectory_seq >= ? AND s.trajectory_seq < ?"
            return _Candidates("scored s", "s.trajectory_seq", where, span, most)
        most = self._wide if most == self._scanned else most
        return _Candidates("trajectories t", "t.seq", "t.seq >= ? AND t.seq < ?", span, most)


def find_trajectory(tx: Tx, trajectory_id: str) -> FoundTrajectory | None:
    """One trajectory, as a list shows it."""
    row = tx.row(
        f"SELECT t.seq, {_COLUMNS} FROM {_BY_TRAJECTORY} WHERE t.trajectory_id = ?",
        (trajectory_id,),
    )
    return tx.bad_rows.read_one(_STAGE, "trajectories", row, _found_from_row)


def _needs_score(wanted: TrajectoryFilter) -> bool:
    """Only what has a reward can match."""
    by_reward = wanted.min_reward is not None or wanted.max_reward is not None
    return by_reward or wanted.outcome in {"success", "partial", "failure"}


def _reads_whole_rows(wanted: TrajectoryFilter) -> bool:
    """What it asks for stands behind the body in each row."""
    return any(
        each is not None for each in (wanted.door, wanted.min_turns, wanted.evaluation, wanted.text)
    )


def _bounds(tx: Tx, wanted: TrajectoryFilter, before: int | None) -> tuple[int, int]:
    """From which row on, and before which. Times rise with the numbers of rows, so a time is a number."""
    low = _FIRST if wanted.since is None else _first_since(tx, wanted.since)
    high = 2**62 if wanted.until is None else _first_since(tx, wanted.until)
    return low, high if before is None else min(high, before)


def _first_since(tx: Tx, moment: datetime) -> int:
    sql = "SELECT seq FROM trajectories WHERE stored_us >= ? ORDER BY stored_us, seq LIMIT 1"
    row = tx.row(sql, (to_microseconds(moment),))
    return int(row[0]) if row else 2**62


def _conditions(wanted: TrajectoryFilter) -> tuple[str, list[Any]]:
    """What the index does not answer. The narrow row of a score is read before the large one."""
    parts, params = [_ANY], []
    first = next((name for name, _ in _INDEXED if getattr(wanted, name) is not None), None)
    exact = {
        "agent": "COALESCE(s.agent_id, t.agent_id) = ?",
        "task": "t.task_id = ?",
        "model": "COALESCE(s.model, t.model) = ?",
        "domain": "COALESCE(s.domain, t.domain) = ?",
        "door": "t.door = ?",
        "min_reward": "s.raw_total >= ?",
        "max_reward": "s.raw_total <= ?",
        "min_turns": "COALESCE(s.turns, t.turns) >= ?",
    }
    for name, sql in exact.items():
        if name != first and (value := getattr(wanted, name)) is not None:
            parts.append(sql)
            params.append(value)
    if wanted.evaluation is not None:
        parts.append("t.evaluation = ?")
        params.append(int(wanted.evaluation))
    if wanted.outcome is not None:
        parts.append(_OUTCOME_SQL[wanted.outcome])
    return " AND ".join(parts), params


def _search_columns(
    tx: Tx, wanted: TrajectoryFilter, candidates: _Candidates, limit: int
) -> TrajectoryPage:
    count, last = candidates.span(tx)
    conditions, params = _conditions(wanted)
    rows = tx.rows(
        f"SELECT t.seq, {_COLUMNS} FROM {candidates.source} WHERE {candidates.where} "
        f"AND {candidates.key} >= ? AND t.seq IS NOT NULL AND {conditions} "
        f"ORDER BY {candidates.key} DESC LIMIT ?",
        (*candidates.params, last, *params, limit + 1),
    )
    shown = rows[:limit]
    position = last if count >= candidates.most else None
    if len(rows) > limit:
        position = int(shown[-1][0])
    found = tx.bad_rows.read_each(_STAGE, "trajectories", shown, _found_from_row)
    return TrajectoryPage(found, count, position)


# ── texts ────────────────────────────────────────────────────────────────────────────────────────


def _search_text(
    tx: Tx, wanted: TrajectoryFilter, candidates: _Candidates, limit: int
) -> TrajectoryPage:
    count, last = candidates.span(tx)
    conditions, params = _conditions(wanted)
    sizes = tx.rows(
        f"SELECT t.seq, LENGTH(t.body) FROM {candidates.source} WHERE {candidates.where} "
        f"AND {candidates.key} >= ? AND t.seq IS NOT NULL AND {conditions} "
        f"ORDER BY {candidates.key} DESC",
        (*candidates.params, last, *params),
    )
    position = last if count >= candidates.most else None
    found: list[FoundTrajectory] = []
    scanned, read = 0, 0
    needle = (wanted.text or "").lower()
    for seq, size in sizes:
        if scanned and (read + int(size) > TEXT_BYTES or len(found) == limit):
            return TrajectoryPage(found, scanned, int(seq) + 1)
        scanned, read = scanned + 1, read + int(size)
        if (match := _match(tx, int(seq), needle)) is not None:
            found.append(match)
    return TrajectoryPage(found, max(scanned, count), position)


def _match(tx: Tx, seq: int, needle: str) -> FoundTrajectory | None:
    """The trajectory of this row, if its text has the needle."""
    row = tx.row("SELECT body FROM trajectories WHERE seq = ?", (seq,))
    body = bytes(row[0]) if row and isinstance(row[0], bytes | bytearray | memoryview) else b""
    excerpt = find_excerpt(body, needle)
    if excerpt is None:
        return None
    sql = (
        f"SELECT t.seq, {_COLUMNS} FROM trajectories t LEFT JOIN scored s ON s.trajectory_seq = t.seq "
        "WHERE t.seq = ?"
    )
    row = tx.row(sql, (seq,))
    return tx.bad_rows.read_one(
        _STAGE, "trajectories", row, lambda it: _found_from_row(it, excerpt)
    )


def find_excerpt(body: bytes, needle: str) -> str | None:
    r"""What stands around the needle, which is in small letters; None: no text of the body has it.

    >>> find_excerpt(b'{"turns": ["Say \\"Yes\\" now"]}', 'say "yes"')
    'Say "Yes" now'
    >>> find_excerpt(b'{"turns": ["no"]}', "turns") is None
    True
    """
    escaped = msgspec.json.encode(needle)[1:-1].decode()
    for text in _texts_with(body.decode(errors="replace"), escaped):
        if (at := text.lower().find(needle)) >= 0:
            start, end = max(0, at - EXCERPT), at + len(needle) + EXCERPT
            return f"{'…' if start else ''}{text[start:end]}{'…' if end < len(text) else ''}"
    return None


def _texts_with(document: str, needle: str) -> Iterator[str]:
    """The texts of a JSON document that have the needle, without names of fields; both are escaped as JSON is.

    From find to find, and never value by value: a body may have millions of values, and nobody waits for that.
    """
    lowered = document.lower()
    if needle not in lowered:
        return
    if len(lowered) != len(document):  # of all letters, one becomes two when it is small
        lowered = document.replace("\u0130", "\ue000").lower()
        needle = needle.replace("\u0130".lower(), "\ue000")
    quotes = document.replace("\\\\", "__").replace('\\"', "__")
    """In which each quotation mark begins or ends a text."""
    at, seen, inside = 0, 0, False
    while (at := lowered.find(needle, at)) >= 0:
        inside ^= bool(quotes.count('"', seen, at) % 2)
        begin, end = (quotes.rfind('"', 0, at), quotes.find('"', at)) if inside else (-1, -1)
        at = seen = end + 1 if inside else quotes.find('"', at)
        if at <= 0:
            return
        if inside:
            inside = False
            if not _FIELD.match(document, at):
                yield from _decoded(document[begin:at])


def _decoded(text: str) -> Iterator[str]:
    with contextlib.suppress(msgspec.DecodeError):
        yield from_json(text.encode(errors="replace"), str)


def _found_from_row(row: Row, excerpt: str | None = None) -> FoundTrajectory:
    seq, name, stored, started, ended, *rest = row
    flags = [bool(each) for each in rest[8:11]]
    times = map(from_microseconds, (stored, started, ended))
    values = (name, *times, *rest[:8], *flags, *rest[11:], seq, excerpt)
    return check_row_types(FoundTrajectory(*values))
