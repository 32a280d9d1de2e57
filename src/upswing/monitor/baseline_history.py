"""Does the model that answers earn less than it did at first, though nobody replaced it?

Its newest rewards are compared with the first ones after its promotion (of a base: with its first of all), principal
by principal as far as they were there both times. Both are the same model's: what differs is the world around it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from upswing.infra.sql.database import Database, Row, Tx
from upswing.infra.sql.models import deployed_model
from upswing.infra.sql.moments import first_seq_since
from upswing.infra.sql.practice_tables import EVIDENCE
from upswing.infra.sql.rewards import rewards_by_principal
from upswing.infra.sql.store import to_microseconds
from upswing.monitor.core.conditions import RewardDrift
from upswing.principals import Speaker, fair_newest
from upswing.records import RewardDrop

SpeakerRewards = Sequence[tuple[Speaker, float]]
_READ_FACTOR = 10
"""Times the sample: rows that are read so that nobody counts for more than a fair share of it."""


@dataclass(frozen=True, slots=True)
class DriftRules:
    """When a fall counts, in the trigger's own measures."""

    sample: int
    """Rewards of each side at most."""
    least_sample: int
    """Rewards of each side below which a fall is noise."""
    least_drop: float
    """Of raw reward, 0 to 1: smaller falls do not matter."""


class BaselineHistory:
    """Reads the baseline's rewards; never writes."""

    def __init__(
        self,
        database: Database,
        base: str | None,
        rules: DriftRules,
        *,
        compare: Callable[[SpeakerRewards, SpeakerRewards], RewardDrop | None],
    ) -> None:
        """`base` answers while no model is deployed; `compare` compares recent rewards with earlier ones."""
        self._database, self._base, self._rules = database, base, rules
        self._compare = compare

    async def drift(self) -> RewardDrift | None:
        """How far the baseline has fallen; None while too little is known."""
        return await self._database.read(self._drift_in_transaction)

    def _drift_in_transaction(self, tx: Tx) -> RewardDrift | None:
        rules, model = self._rules, deployed_model(tx)
        name = model.model_id if model else self._base
        if not name:
            return None
        deployed = model.deployed if model else None
        since = first_seq_since(tx, to_microseconds(deployed)) if deployed else 0
        first = self._rewards(tx, name, since, newest=False)
        recent = self._rewards(tx, name, since, newest=True)
        last = max((row[0] for row in first), default=0)
        recent = [row for row in recent if row[0] > last]
        if min(len(first), len(recent)) < rules.least_sample:
            return None
        found = self._compare(_by_principal(recent), _by_principal(first))
        if found is None:
            return None
        return RewardDrift(name, found.mean, found.baseline, found.error, rules.least_drop)

    def _rewards(self, tx: Tx, model: str, since: int, *, newest: bool) -> list[Row]:
        """Rows of (sequence number, principal, raw reward, key), of no key more than its share.

        Where a gateway serves the model, what names it by another door is no evidence: anybody can name a model.
        """
        served = tx.row("SELECT 1 FROM scored WHERE model = ? AND gateway = 1 LIMIT 1", (model,))
        sql = (
            "SELECT trajectory_seq, principal, raw_total, key_id FROM scored WHERE model = ? "
            f"AND {EVIDENCE} {'AND gateway = 1' if served else ''} "
            f"AND trajectory_seq >= ? ORDER BY trajectory_seq {'DESC' if newest else 'ASC'} LIMIT ?"
        )
        rows = tx.rows(sql, (model, since, _READ_FACTOR * self._rules.sample))
        ordered = rows[::-1]  # what is wanted most comes last
        return fair_newest(ordered, lambda row: row[3] or ("user", row[1]), self._rules.sample)


def _by_principal(rows: Sequence[Row]) -> SpeakerRewards:
    return rewards_by_principal([row[1:] for row in rows])
