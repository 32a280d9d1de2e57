"""Which models has training made, from what, and which of them answers?"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import fields
from datetime import datetime

from upswing.adapters.sql.database import Database, Row, Tx, checked
from upswing.adapters.sql.store import micros, moment
from upswing.aside import Aside
from upswing.ports import ModelRow

TRAINED = "trained"
DEPLOYED = "deployed"
_READERS = "models"
_COLUMNS = tuple(
    {"created": "created_us", "deployed": "deployed_us"}.get(field.name, field.name)
    for field in fields(ModelRow)
)
SELECT = f"SELECT {', '.join(_COLUMNS)} FROM models"


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

        def unit(tx: Tx) -> str:
            known = tx.row("SELECT model_id FROM models WHERE job_id = ?", (job_id,))
            if known is not None:
                return str(known[0])
            ((version,),) = tx.rows(
                "INSERT INTO models (model_id, job_id, base_model, parent, snapshot, path, card, state, "
                "samples, final_reward, created_us, seal) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) "
                "RETURNING version",
                (
                    f"job {job_id}", job_id, base_model, parent, snapshot, path, card, TRAINED,
                    samples, final_reward, micros(now), seal,
                ),
            )  # fmt: skip
            name = f"{prefix}{version}"
            tx.execute("UPDATE models SET model_id = ? WHERE job_id = ?", (name, job_id))
            return name

        return await self._database.write(unit)

    async def get(self, model_id: str) -> ModelRow | None:
        return await self._one("model_id", model_id)

    async def by_job(self, job_id: str) -> ModelRow | None:
        return await self._one("job_id", job_id)

    async def lineage(self, model_id: str) -> list[str]:
        """The jobs that led to a model: its own first, then its parent's, and so on."""

        def unit(tx: Tx) -> list[str]:
            jobs: list[str] = []
            name: str | None = model_id
            while name and (row := tx.row(_LINK, (name,))) and row[0] not in jobs:
                jobs.append(row[0])
                name = row[1]
            return jobs

        return await self._database.read(unit)

    async def policies(self, model_id: str | None) -> tuple[list[str], list[str]]:
        """A model and those it began as, newest first; and all models that are not among them."""

        def unit(tx: Tx) -> tuple[list[str], list[str]]:
            line: list[str] = []
            name = model_id
            while name and name not in line and (row := tx.row(_LINK, (name,))):
                line.append(name)
                name = row[1]
            everybody = [row[0] for row in tx.rows("SELECT model_id FROM models ORDER BY version")]
            return line, [each for each in everybody if each not in line]

        return await self._database.read(unit)

    async def list(
        self, deployed_since: datetime | None = None, limit: int = 1000
    ) -> list[ModelRow]:
        """The newest first; with a time, only those deployed since then."""
        sql = f"{SELECT} WHERE COALESCE(deployed_us, -1) >= ? ORDER BY version DESC LIMIT ?"
        earliest = micros(deployed_since) if deployed_since else -1
        rows = await self._database.read(lambda tx: tx.rows(sql, (earliest, limit)))
        return many(rows, self._database.aside)

    async def serving(self) -> ModelRow | None:
        """The model that answers now; None: the base does."""
        return await self._database.read(deployed)

    async def _one(self, column: str, value: str) -> ModelRow | None:
        sql = f"{SELECT} WHERE {column} = ?"
        row = await self._database.read(lambda tx: tx.row(sql, (value,)))
        return self._database.aside.one(_READERS, "models", row, _model)


_LINK = "SELECT job_id, parent FROM models WHERE model_id = ?"


def deployed(tx: Tx) -> ModelRow | None:
    """The model that answers now: the one deployed last."""
    sql = f"{SELECT} WHERE state = ? ORDER BY COALESCE(deployed_us, 0) DESC, version DESC"
    found = many(tx.rows(sql, (DEPLOYED,)), tx.aside)
    return found[0] if found else None


def many(rows: Iterable[Row], aside: Aside) -> list[ModelRow]:
    return aside.sound(_READERS, "models", rows, _model)


def _model(row: Row) -> ModelRow:
    *values, created, deployed_us, seal = row
    since = moment(deployed_us) if deployed_us is not None else None
    return checked(ModelRow(*(*values, moment(created), since, seal)))
