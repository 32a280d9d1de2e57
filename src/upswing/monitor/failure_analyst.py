"""A model was rolled back: why, and what is done about it? Looked into by itself, once, and on request.

    incident ─▶ are enough failures stored? ─▶ facts ─▶ analysis ─▶ the journal, with the incident's id
                     └─ not yet: again soon, for ten minutes at most: episodes are stored when they end

The journal has it as a decision of the stage `monitor`. Where the loop stops in between, it is made after the next start.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from uuid import UUID

import msgspec

from upswing.contracts.analysis import AnalysisSource, FailureAnalysis, FailureLabel
from upswing.contracts.typed import from_json
from upswing.errors import Misuse, Transient
from upswing.infra.dead_letters import DeadLetterWriter
from upswing.infra.sql.database import Database, Tx
from upswing.infra.sql.decisions import Decisions, insert_decision
from upswing.monitor.core.analysis import AnalysisSubject, analyse_failures
from upswing.monitor.core.episode_facts import (
    IsRefusal,
    StoredEpisode,
    facts_of,
    label_for,
    low_reward_limit,
)
from upswing.monitor.core.failures import LEAST
from upswing.monitor.failure_reader import (
    AnalysedIncident,
    FailureReader,
    ReadEpisode,
    RolloutSubject,
)
from upswing.records import Decision, EpisodeFacts

log = logging.getLogger(__name__)
STAGE, KIND = "monitor", "failure_analysis"
_CURSOR = "failure analysis"
_NO_FAILURE = frozenset({"emergency_override", "not_servable"})
"""Reasons of incidents that tell of no failure."""
_SAME_ROLLOUT = 50
"""Episodes of the baseline that make those of the same rollout enough to compare with."""
_STORED = 200
"""Journalled analyses that are looked through for a model's."""


@dataclass(frozen=True, slots=True)
class AnalystTimes:
    """How often is looked, and how long is waited."""

    poll_seconds: float = 5.0
    retry: timedelta = timedelta(seconds=30)
    """Until an incident is looked into again of which too little was known."""
    settle: timedelta = timedelta(minutes=10)
    """How long failures may take to be stored: an episode that nobody closes is stored when it is idle."""


class AnalysisInputs(msgspec.Struct, frozen=True):
    """What an analysis was made for; the journal keeps it."""

    model_id: str
    baseline_id: str
    rollout_id: str
    reason: str
    incident_id: str


class FailureAnalyst:
    """Compares failures with successes."""

    def __init__(
        self,
        database: Database,
        *,
        clock: Callable[[], datetime],
        new_id: Callable[[], UUID],
        is_refusal: IsRefusal = lambda _: False,
        dead_letters: DeadLetterWriter | None = None,
        times: AnalystTimes = AnalystTimes(),  # noqa: B008 - it is frozen
    ) -> None:
        self._database, self._reader = database, FailureReader(database)
        self._clock, self._new_id, self._is_refusal = clock, new_id, is_refusal
        self._dead_letters = dead_letters or DeadLetterWriter()
        self._times = times
        self._not_before = datetime.min.replace(tzinfo=UTC)

    # ── on request ───────────────────────────────────────────────────────────────────────────

    async def analyse(
        self,
        model_id: str,
        rollout_id: str | None = None,
        *,
        source: AnalysisSource = "request",
        about: str = "",
        reason: str = "",
    ) -> FailureAnalysis:
        """What this model's failures have in common; `Misuse` when it was never rolled out."""
        rollout = await self._reader.rollout(model_id, rollout_id)
        if rollout is None:
            raise Misuse(
                f"{model_id} has had no rollout, so nothing of it can be compared; `upswing rollouts` lists those that "
                "have, and `upswing validate` compares it with the model that answers."
            )
        candidates = await self._reader.episodes(model_id)
        baselines = await self._reader.episodes(rollout.baseline_id)
        return await asyncio.to_thread(
            self._compare, rollout, reason or rollout.reason, (candidates, baselines), source, about
        )

    def _compare(
        self,
        rollout: RolloutSubject,
        reason: str,
        episodes: tuple[list[ReadEpisode], list[ReadEpisode]],
        source: AnalysisSource,
        about: str,
    ) -> FailureAnalysis:
        candidates, baselines = (
            [each for each in side if _in_time(each[0], rollout)] for side in episodes
        )
        chosen = [each for each in candidates if not each[1].named]
        beside = _beside(baselines, rollout)
        limit = low_reward_limit([episode for episode, _ in beside])
        label, notes = label_for(reason), []
        facts = self._facts(chosen, beside, rollout, label, limit)
        if label != "any" and sum(each.failed and each.candidate for each in facts) < LEAST:
            notes = [f"Too few of its episodes failed as `{label}`; any failure counts here."]
            label = "any"
            facts = self._facts(chosen, beside, rollout, label, limit)
        starts = sorted(episode.started for episode, _ in chosen)
        since, until = (starts[0], starts[-1]) if starts else (rollout.began, rollout.ended)
        subject = AnalysisSubject(
            rollout.model_id,
            rollout.baseline_id,
            source,
            label,
            rollout.rollout_id,
            about,
            since,
            until,
            self._clock(),
        )
        return analyse_failures(subject, facts, notes)

    def _facts(
        self,
        candidates: list[ReadEpisode],
        baselines: list[ReadEpisode],
        rollout: RolloutSubject,
        label: FailureLabel,
        limit: float | None,
    ) -> list[EpisodeFacts]:
        both = [*candidates, *baselines]
        return list(facts_of(both, rollout.model_id, label, limit, self._is_refusal))

    async def stored(self, model_id: str, limit: int = 10) -> list[FailureAnalysis]:
        """What was journalled of a model, the newest first."""
        journal = await Decisions(self._database).list(STAGE, limit=_STORED)
        found = self._database.bad_rows.read_each(
            STAGE, "decisions", journal, _analysis_of, key=lambda each: each.decision_id
        )
        return [each for each in found if each.model_id == model_id][:limit]

    # ── by itself ────────────────────────────────────────────────────────────────────────────

    async def run(self) -> None:
        """Follow the incidents, for ever; a store that is away is waited for."""
        while True:
            try:
                await self.run_once()
            except Transient as error:
                log.warning("%s", error, extra={"action": KIND})
            await asyncio.sleep(self._times.poll_seconds)

    async def run_once(self) -> int:
        """Look into what is new; how many incidents were dealt with."""
        cursor = await self._cursor()
        done = 0
        for incident in await self._reader.incidents_after(cursor):
            if not self._is_settled(incident) and self._clock() < self._not_before:
                break
            analysis = await self._look_into(incident)
            waits = analysis is not None and analysis.candidate.failed < LEAST
            if waits and not self._is_settled(incident):
                self._not_before = self._clock() + self._times.retry
                break
            await self._write(incident, analysis)
            done += 1
        await self._dead_letters.flush()
        return done

    async def _look_into(self, incident: AnalysedIncident) -> FailureAnalysis | None:
        """The analysis; None: the incident is not about how a model did in a rollout."""
        if incident.rollout_id is None or incident.reason in _NO_FAILURE:
            return None
        try:
            return await self.analyse(
                incident.model_id,
                incident.rollout_id,
                source="rollback",
                about=incident.incident_id,
                reason=incident.reason,
            )
        except Misuse:  # its rollout cannot be read
            return None

    def _journal_row(self, incident: AnalysedIncident, analysis: FailureAnalysis) -> Decision:
        inputs = AnalysisInputs(
            incident.model_id,
            analysis.baseline_id,
            incident.rollout_id or "",
            incident.reason,
            incident.incident_id,
        )
        return Decision(
            str(self._new_id()),
            STAGE,
            KIND,
            analysis.summary,
            msgspec.json.encode(inputs),
            msgspec.json.encode(analysis),
            self._clock(),
        )

    def _is_settled(self, incident: AnalysedIncident) -> bool:
        return self._clock() - incident.happened >= self._times.settle

    async def _cursor(self) -> int:
        """How far incidents were looked into; on a store that never was, those before now are not."""
        row = await self._database.read(
            lambda tx: tx.row("SELECT seq FROM cursors WHERE name = ?", (_CURSOR,))
        )
        if row is not None:
            return int(row[0])
        newest = await self._reader.newest_incident()
        await self._database.write(lambda tx: _advance(tx, newest))
        return newest

    async def _write(self, incident: AnalysedIncident, analysis: FailureAnalysis | None) -> None:
        """The analysis and that its incident is dealt with, in one transaction."""
        decision = self._journal_row(incident, analysis) if analysis is not None else None

        def write_in_transaction(tx: Tx) -> None:
            if decision is not None:
                insert_decision(tx, decision)
            _advance(tx, incident.seq)

        await self._database.write(write_in_transaction)
        if analysis is not None:
            log.info("%s", analysis.summary, extra={"action": KIND, "model": incident.model_id})


def _advance(tx: Tx, seq: int) -> None:
    tx.execute(
        "INSERT INTO cursors (name, seq) VALUES (?, ?) ON CONFLICT (name) DO UPDATE "
        "SET seq = excluded.seq WHERE cursors.seq < excluded.seq",
        (_CURSOR, seq),
    )


def _in_time(episode: StoredEpisode, rollout: RolloutSubject) -> bool:
    """Whether it began while the candidate had traffic, or before; not after it was withdrawn."""
    return rollout.ended is None or episode.started <= rollout.ended


def _beside(baselines: list[ReadEpisode], rollout: RolloutSubject) -> list[ReadEpisode]:
    """Episodes that chance gave to the baseline in this rollout; where these are few, its newest."""
    same = [
        each for each in baselines if each[1].rollout == rollout.rollout_id and not each[1].named
    ]
    return same if len(same) >= _SAME_ROLLOUT else baselines


def _analysis_of(decision: Decision) -> FailureAnalysis:
    return from_json(decision.outcome, FailureAnalysis)
