"""Which models has training made, from what, and which of them answers?"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import fields
from datetime import datetime

from upswing.infra.dead_letters import BadRows
from upswing.infra.sql.database import Database, Row, Tx, check_row_types
from upswing.infra.sql.paging import PageWanted, TableList
from upswing.infra.sql.practice_tables import EVIDENCE
from upswing.infra.sql.store import from_microseconds, to_microseconds
from upswing.records import ModelRow

TRAINED = "trained"
DEPLOYED = "deployed"
_READERS = "models"
_GENERATIONS = 100
"""Of a lineage that are followed."""
_RECENT = (
    "SELECT AVG(raw_total), COUNT(*) FROM (SELECT raw_total FROM scored WHERE model = ? "
    f"AND {EVIDENCE} ORDER BY trajectory_seq DESC LIMIT 200) n"
)
_COLUMNS = tuple(
    {"created": "created_us", "deployed": "deployed_us"}.get(field.name, field.name)
    for field in fields(ModelRow)
)
SELECT = f"SELECT {', '.join(_COLUMNS)} FROM models"
_LIST = TableList("models", ", ".join(_COLUMNS[1:]), "created_us", key="version")


class Models:
    """The registry. Every write is durable when it returns."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def register(
        self,
        *,
        job_id: str,
        base_model: str,
        parent: str | None,
        snapshot: str,
        path: str,
        card: str,
        samples: int,
        final_reward: float | None,
        now: datetime,
        prefix: str = "agent-zero-rl-v",
        seal: str = "",
    ) -> str:
        """The name of this job's model; a job has one, however often it is registered."""

        def register_in_transaction(tx: Tx) -> str:
            known = tx.row("SELECT model_id FROM models WHERE job_id = ?", (job_id,))
            if known is not None:
                return str(known[0])
            ((version,),) = tx.rows(
                "INSERT INTO models (model_id, job_id, base_model, parent, snapshot, path, card, state, "
                "samples, final_reward, created_us, seal) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) "
                "RETURNING version",
                (
                    f"job {job_id}",
                    job_id,
                    base_model,
                    parent,
                    snapshot,
                    path,
                    card,
                    TRAINED,
                    samples,
                    final_reward,
                    to_microseconds(now),
                    seal,
                ),
            )
            name = f"{prefix}{version}"
            tx.execute("UPDATE models SET model_id = ? WHERE job_id = ?", (name, job_id))
            return name

        return await self._database.write(register_in_transaction)

    async def get(self, model_id: str) -> ModelRow | None:
        return await self._find_by_column("model_id", model_id)

    async def by_job(self, job_id: str) -> ModelRow | None:
        return await self._find_by_column("job_id", job_id)

    async def lineage(self, model_id: str) -> list[str]:
        """The jobs that led to a model: its own first, then its parent's, and so on."""

        def lineage_in_transaction(tx: Tx) -> list[str]:
            jobs: list[str] = []
            name: str | None = model_id
            while name and (row := tx.row(_LINK, (name,))) and row[0] not in jobs:
                jobs.append(row[0])
                name = row[1]
            return jobs

        return await self._database.read(lineage_in_transaction)

    async def policies(self, model_id: str | None) -> tuple[list[str], list[str]]:
        """A model and those it began as, newest first; and all models that are not among them."""

        def policies_in_transaction(tx: Tx) -> tuple[list[str], list[str]]:
            line: list[str] = []
            name = model_id
            while name and name not in line and (row := tx.row(_LINK, (name,))):
                line.append(name)
                name = row[1]
            everybody = [row[0] for row in tx.rows("SELECT model_id FROM models ORDER BY version")]
            return line, [each for each in everybody if each not in line]

        return await self._database.read(policies_in_transaction)

    async def list(
        self, deployed_since: datetime | None = None, limit: int = 1000
    ) -> list[ModelRow]:
        """The newest first; with a time, only those deployed since then."""
        sql = f"{SELECT} WHERE COALESCE(deployed_us, -1) >= ? ORDER BY version DESC LIMIT ?"
        earliest = to_microseconds(deployed_since) if deployed_since else -1
        rows = await self._database.read(lambda tx: tx.rows(sql, (earliest, limit)))
        return models_from_rows(rows, self._database.bad_rows)

    async def page(self, wanted: PageWanted) -> tuple[Sequence[ModelRow], int | None]:
        """The newest first, and the version before which the next page begins."""
        page = await self._database.view(lambda tx: _LIST.read(tx, wanted))
        return models_from_rows(page.rows, self._database.bad_rows), page.position

    async def family(self, model_id: str) -> tuple[Sequence[ModelRow], Sequence[str]]:
        """A model and those it began as, itself first; and those that began as it."""

        def family_in_transaction(tx: Tx) -> tuple[list[ModelRow], list[str]]:
            line: list[ModelRow] = []
            name: str | None = model_id
            while name and len(line) < _GENERATIONS and name not in {row.model_id for row in line}:
                row = tx.row(f"{SELECT} WHERE model_id = ?", (name,))
                found = models_from_rows([row] if row else [], tx.bad_rows)
                line += found
                name = found[0].parent if found else None
            sql = "SELECT model_id FROM models WHERE parent = ? ORDER BY version LIMIT 200"
            return line, [str(row[0]) for row in tx.rows(sql, (model_id,))]

        return await self._database.view(family_in_transaction)

    async def recent_rewards(self, model_ids: Iterable[str]) -> dict[str, tuple[float, int]]:
        """Model → the mean of its newest raw rewards, and of how many; models without any are left out."""

        def rewards_in_transaction(tx: Tx) -> dict[str, tuple[float, int]]:
            found = {name: tx.row(_RECENT, (name,)) for name in model_ids}
            return {
                name: (float(row[0]), int(row[1]))
                for name, row in found.items()
                if row and row[0] is not None
            }

        return await self._database.view(rewards_in_transaction)

    async def serving(self) -> ModelRow | None:
        """The model that answers now; None: the base does."""
        return await self._database.read(deployed_model)

    async def _find_by_column(self, column: str, value: str) -> ModelRow | None:
        sql = f"{SELECT} WHERE {column} = ?"
        row = await self._database.read(lambda tx: tx.row(sql, (value,)))
        return self._database.bad_rows.read_one(_READERS, "models", row, _model_from_row)


_LINK = "SELECT job_id, parent FROM models WHERE model_id = ?"


def deployed_model(tx: Tx) -> ModelRow | None:
    """The model that answers now: the one deployed last."""
    sql = f"{SELECT} WHERE state = ? ORDER BY COALESCE(deployed_us, 0) DESC, version DESC"
    found = models_from_rows(tx.rows(sql, (DEPLOYED,)), tx.bad_rows)
    return found[0] if found else None


def models_from_rows(rows: Iterable[Row], bad_rows: BadRows) -> list[ModelRow]:
    return bad_rows.read_each(_READERS, "models", rows, _model_from_row)


def _model_from_row(row: Row) -> ModelRow:
    *values, created, deployed_us, seal = row
    since = from_microseconds(deployed_us) if deployed_us is not None else None
    return check_row_types(ModelRow(*(*values, from_microseconds(created), since, seal)))
