"""Who may knock? API keys, kept as hashes; a revoked one is remembered as revoked."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from hashlib import sha256

from upswing.adapters.sql.database import Database, Row, Tx, blob
from upswing.adapters.sql.store import micros, moment
from upswing.errors import Misuse

OPERATOR_ID = "operator"
"""The key of the data directory's own operator."""
_FROM_OUTSIDE, _REPLACED = "AGENTGYM_RL_API_KEY", "AGENTGYM_RL_API_KEY, replaced"
"""Names of keys that the environment gave us: today, and before."""


@dataclass(frozen=True, slots=True)
class ApiKey:
    """A key as we know it: everything but the key."""

    key_id: str
    name: str
    scope: str
    created: datetime
    revoked: datetime | None


def digest(key: str) -> bytes:
    """What is kept of a key. Our keys carry 256 random bits, so one fast hash is enough."""
    return sha256(key.encode()).digest()


class Keys:
    """The table of API keys, with a copy in memory that every request is checked against."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._by_hash: dict[bytes, ApiKey] = {}

    async def load(self) -> None:
        """Read the table anew; another process may have changed it."""
        sql = "SELECT key_hash, key_id, name, scope, created_us, revoked_us FROM api_keys"
        rows = await self._database.read(lambda tx: tx.rows(sql))
        self._by_hash = dict(
            self._database.aside.sound("keys", "api_keys", rows, _key, key=lambda row: row[1])
        )

    def find(self, key: str) -> ApiKey | None:
        return self._by_hash.get(digest(key))

    def list(self) -> list[ApiKey]:
        return sorted(self._by_hash.values(), key=lambda key: key.created)

    def working(self) -> dict[bytes, ApiKey]:
        """Hash → key, of those that are not revoked."""
        return {hashed: key for hashed, key in self._by_hash.items() if key.revoked is None}

    async def add(self, key_id: str, name: str, scope: str, key: str, now: datetime) -> None:
        """Remember a key; adding the same key again changes nothing."""
        values = (key_id, name, scope, digest(key), micros(now))

        def unit(tx: Tx) -> None:
            tx.execute(
                "INSERT INTO api_keys (key_id, name, scope, key_hash, created_us) VALUES (?, ?, ?, ?, ?) "
                "ON CONFLICT DO NOTHING",
                values,
            )

        await self._database.write(unit)
        await self.load()

    async def own(self, key_id: str, name: str, scope: str, key: str, now: datetime) -> None:
        """The key of this name in `secrets.json`: with a new one, the one before works no more."""
        hashed = digest(key)

        def unit(tx: Tx) -> None:
            tx.execute(
                "INSERT INTO api_keys (key_id, name, scope, key_hash, created_us) VALUES (?, ?, ?, ?, ?) "
                "ON CONFLICT DO NOTHING",
                (key_id, name, scope, hashed, micros(now)),
            )
            tx.execute(
                "UPDATE api_keys SET key_hash = ?, created_us = ?, revoked_us = NULL "
                "WHERE key_id = ? AND key_hash <> ?",
                (hashed, micros(now), key_id, hashed),
            )

        await self._database.write(unit)
        await self.load()

    async def from_outside(self, key_id: str, key: str | None, now: datetime) -> None:
        """The operator's key as AGENTGYM_RL_API_KEY says it; those that it said before work no more.

        One that was replaced works again when it is named again; one that was revoked by hand does not.
        """
        hashed = digest(key) if key else b""

        def unit(tx: Tx) -> None:
            tx.execute(
                "UPDATE api_keys SET revoked_us = ?, name = ? "
                "WHERE name = ? AND revoked_us IS NULL AND key_hash <> ?",
                (micros(now), _REPLACED, _FROM_OUTSIDE, hashed),
            )
            if not key:
                return
            tx.execute(
                "UPDATE api_keys SET revoked_us = NULL, name = ? WHERE name = ? AND key_hash = ?",
                (_FROM_OUTSIDE, _REPLACED, hashed),
            )
            tx.execute(
                "INSERT INTO api_keys (key_id, name, scope, key_hash, created_us) "
                "VALUES (?, ?, 'operator', ?, ?) ON CONFLICT DO NOTHING",
                (key_id, _FROM_OUTSIDE, hashed, micros(now)),
            )
            row = tx.row("SELECT scope, revoked_us FROM api_keys WHERE key_hash = ?", (hashed,))
            if row is None or row[0] != "operator" or row[1] is not None:
                why = "was revoked" if row and row[1] is not None else "is the key of somebody else"
                raise Misuse(f"AGENTGYM_RL_API_KEY {why}: choose another, or leave it out.")

        await self._database.write(unit)
        await self.load()

    async def revoke(self, key_id: str, now: datetime) -> bool:
        """True when there was such a key and it worked until now."""
        sql = "UPDATE api_keys SET revoked_us = ? WHERE key_id = ? AND revoked_us IS NULL"
        changed = await self._database.write(lambda tx: tx.execute(sql, (micros(now), key_id)))
        await self.load()
        return changed > 0


def _key(row: Row) -> tuple[bytes, ApiKey]:
    hashed, key_id, name, scope, created, revoked = row
    since = moment(revoked) if revoked is not None else None
    return blob(hashed), ApiKey(key_id, name, scope, moment(created), since)
