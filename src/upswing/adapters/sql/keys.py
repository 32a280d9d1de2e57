"""Who may knock? API keys, kept as hashes; a revoked one is remembered as revoked."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, replace
from datetime import datetime
from hashlib import sha256

from upswing.adapters.sql.database import Database, Row, Tx, blob
from upswing.adapters.sql.revoked import Revoked
from upswing.adapters.sql.store import micros, moment
from upswing.errors import Misuse

OPERATOR_ID = "operator"
"""The key of the data directory's own operator."""
_FROM_OUTSIDE, _REPLACED = "AGENTGYM_RL_API_KEY", ", replaced"
"""The name of a key that the environment gave us, and how the name of one ends that another took the place of."""
_UNUSABLE = "AGENTGYM_RL_API_KEY {}: choose another, or leave it out."
_OPERATORS = "(key_id = 'operator' OR key_id LIKE 'env-%')"
"""Where the operator's own key has been: of these, one works. Ids that `upswing keys` makes are hexadecimal."""


@dataclass(frozen=True, slots=True)
class ApiKey:
    """A key as we know it: everything but the key."""

    key_id: str
    name: str
    scope: str
    created: datetime
    revoked: datetime | None
    many: bool = False
    """It may speak for many users."""


def digest(key: str) -> bytes:
    """What is kept of a key. Our keys carry 256 random bits, so one fast hash is enough."""
    return sha256(key.encode()).digest()


class Keys:
    """The table of API keys, with a copy in memory that every request is checked against."""

    def __init__(self, database: Database, revoked: Revoked | None = None) -> None:
        """`revoked`: what was taken back, whatever the table says."""
        self._database, self._revoked = database, revoked or Revoked(None)
        self._by_hash: dict[bytes, ApiKey] = {}

    async def load(self) -> None:
        """Read the table anew; another process may have changed it."""
        sql = (
            "SELECT k.key_hash, k.key_id, k.name, k.scope, k.created_us, k.revoked_us, t.key_id "
            "FROM api_keys k LEFT JOIN trusted_keys t ON t.key_id = k.key_id"
        )
        rows = await self._database.read(lambda tx: tx.rows(sql))
        found = dict(
            self._database.aside.sound("keys", "api_keys", rows, _key, key=lambda row: row[1])
        )
        for hashed, at in self._revoked.known().items():
            if hashed in found and found[hashed].revoked is None:
                found[hashed] = replace(found[hashed], revoked=at)
        self._by_hash = found

    def find(self, key: str) -> ApiKey | None:
        return self._by_hash.get(digest(key))

    def list(self) -> list[ApiKey]:
        return sorted(self._by_hash.values(), key=lambda key: key.created)

    def working(self) -> dict[bytes, ApiKey]:
        """Hash → key, of those that are not revoked."""
        return {hashed: key for hashed, key in self._by_hash.items() if key.revoked is None}

    async def add(
        self, key_id: str, name: str, scope: str, key: str, now: datetime, *, many: bool = False
    ) -> None:
        """Remember a key; adding the same key again changes nothing."""
        values = (key_id, name, scope, digest(key), micros(now))

        def unit(tx: Tx) -> None:
            tx.execute(
                "INSERT INTO api_keys (key_id, name, scope, key_hash, created_us) VALUES (?, ?, ?, ?, ?) "
                "ON CONFLICT DO NOTHING",
                values,
            )
            if many:
                sql = "INSERT INTO trusted_keys (key_id) VALUES (?) ON CONFLICT DO NOTHING"
                tx.execute(sql, (key_id,))

        await self._database.write(unit)
        await self.load()

    async def own(self, key_id: str, name: str, scope: str, key: str, now: datetime) -> bool:
        """The key of this name in `secrets.json`: with a new one, the one before works no more.

        True when there was another before.
        """
        hashed = digest(key)

        def unit(tx: Tx) -> bool:
            tx.execute(
                "INSERT INTO api_keys (key_id, name, scope, key_hash, created_us) VALUES (?, ?, ?, ?, ?) "
                "ON CONFLICT DO NOTHING",
                (key_id, name, scope, hashed, micros(now)),
            )
            changed = tx.execute(
                "UPDATE api_keys SET key_hash = ?, name = ?, created_us = ?, revoked_us = NULL "
                "WHERE key_id = ? AND key_hash <> ?",
                (hashed, name, micros(now), key_id, hashed),
            )
            return changed > 0

        replaced = await self._database.write(unit)
        await self.load()
        return replaced

    async def operator(self, key_id: str, made: str, given: str | None, now: datetime) -> None:
        """The operator's one key: AGENTGYM_RL_API_KEY where it is `given`, else the one that we `made`.

        Others that were it before work no more. One that was replaced works again when it is named
        again; one that was revoked by hand does not.
        """
        hashed = digest(given or made)

        def unit(tx: Tx) -> None:
            tx.execute(
                f"UPDATE api_keys SET revoked_us = ?, name = name || ? "
                f"WHERE {_OPERATORS} AND revoked_us IS NULL AND key_hash <> ?",
                (micros(now), _REPLACED, hashed),
            )
            tx.execute(
                f"UPDATE api_keys SET revoked_us = NULL, name = substr(name, 1, length(name) - ?) "
                f"WHERE {_OPERATORS} AND name LIKE ? AND key_hash = ?",
                (len(_REPLACED), f"%{_REPLACED}", hashed),
            )
            if given:
                _take_from_outside(tx, key_id, hashed, now)

        if given and hashed in self._revoked.known():
            raise Misuse(_UNUSABLE.format("was revoked"))

        await self._database.write(unit)
        await self.load()

    def was_revoked(self, key: str) -> bool:
        """By hand, and not because another took its place."""
        found = self.find(key)
        return digest(key) in self._revoked.known() or bool(
            found and found.revoked and not found.name.endswith(_REPLACED)
        )

    def revoked_by_hand(self) -> dict[bytes, datetime]:
        """Hash → when."""
        return {
            hashed: key.revoked
            for hashed, key in self._by_hash.items()
            if key.revoked is not None and not key.name.endswith(_REPLACED)
        }

    async def revoke(self, key_id: str, now: datetime) -> bool:
        """True when there was such a key and it worked until now, or might again after another replaced it.

        It is written down first: where the table then refuses, the key is revoked all the same, and asking again
        completes it.
        """
        sql = (
            f"UPDATE api_keys SET revoked_us = ?, name = CASE WHEN {_OPERATORS} THEN replace(name, ?, '') "
            f"ELSE name END WHERE key_id = ? AND (revoked_us IS NULL OR ({_OPERATORS} AND name LIKE ?))"
        )
        values = (micros(now), _REPLACED, key_id, f"%{_REPLACED}")
        mine = "SELECT key_hash FROM api_keys WHERE key_id = ?"
        rows = await self._database.read(lambda tx: tx.rows(mine, (key_id,)))
        try:
            await asyncio.to_thread(self._revoked.add, {blob(row[0]): now for row in rows})
            changed = await self._database.write(lambda tx: tx.execute(sql, values))
        finally:
            await self.load()
        return changed > 0

    async def write_down_revoked(self) -> None:
        """What was revoked by hand and stands in the table alone; after `load`."""
        await asyncio.to_thread(self._revoked.add, self.revoked_by_hand())


def _take_from_outside(tx: Tx, key_id: str, hashed: bytes, now: datetime) -> None:
    tx.execute(
        "INSERT INTO api_keys (key_id, name, scope, key_hash, created_us) "
        "VALUES (?, ?, 'operator', ?, ?) ON CONFLICT DO NOTHING",
        (key_id, _FROM_OUTSIDE, hashed, micros(now)),
    )
    row = tx.row("SELECT scope, revoked_us FROM api_keys WHERE key_hash = ?", (hashed,))
    if row is None or row[0] != "operator" or row[1] is not None:
        why = "was revoked" if row and row[1] is not None else "is the key of somebody else"
        raise Misuse(_UNUSABLE.format(why))


def _key(row: Row) -> tuple[bytes, ApiKey]:
    hashed, key_id, name, scope, created, revoked, many = row
    since = moment(revoked) if revoked is not None else None
    return blob(hashed), ApiKey(key_id, name, scope, moment(created), since, many is not None)
