"""Who may knock? API keys, kept as hashes; a revoked one is remembered as revoked."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, replace
from datetime import datetime
from hashlib import sha256

from upswing.errors import Misuse
from upswing.infra.sql.audit import append_audit, log_audit
from upswing.infra.sql.database import Database, Row, Tx, bytes_of_column
from upswing.infra.sql.revoked import Revoked
from upswing.infra.sql.store import from_microseconds, to_microseconds
from upswing.records import AuditEntry

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


def digest_of_key(key: str) -> bytes:
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
            self._database.bad_rows.read_each(
                "keys", "api_keys", rows, _key_from_row, key=lambda row: row[1]
            )
        )
        for hashed, at in self._revoked.known_keys().items():
            if hashed in found and found[hashed].revoked is None:
                found[hashed] = replace(found[hashed], revoked=at)
        self._by_hash = found

    def find(self, key: str) -> ApiKey | None:
        return self._by_hash.get(digest_of_key(key))

    def list(self) -> list[ApiKey]:
        return sorted(self._by_hash.values(), key=lambda key: key.created)

    def unrevoked_keys(self) -> dict[bytes, ApiKey]:
        """Hash → key, of those that are not revoked."""
        return {hashed: key for hashed, key in self._by_hash.items() if key.revoked is None}

    async def add(
        self,
        key_id: str,
        name: str,
        scope: str,
        key: str,
        now: datetime,
        *,
        many: bool = False,
        audit: AuditEntry | None = None,
    ) -> None:
        """Remember a key; adding the same key again changes nothing."""
        values = (key_id, name, scope, digest_of_key(key), to_microseconds(now))

        def add_in_transaction(tx: Tx) -> str:
            tx.execute(
                "INSERT INTO api_keys (key_id, name, scope, key_hash, created_us) VALUES (?, ?, ?, ?, ?) "
                "ON CONFLICT DO NOTHING",
                values,
            )
            if many:
                sql = "INSERT INTO trusted_keys (key_id) VALUES (?) ON CONFLICT DO NOTHING"
                tx.execute(sql, (key_id,))
            return append_audit(tx, audit) if audit is not None else ""

        digest = await self._database.write(add_in_transaction)
        if audit is not None:
            log_audit(audit, digest)
        await self.load()

    async def set_instance_key(
        self, key_id: str, name: str, scope: str, key: str, now: datetime
    ) -> bool:
        """The key of this name in `secrets.json`: with a new one, the one before works no more.

        True when there was another before.
        """
        hashed = digest_of_key(key)

        def own_in_transaction(tx: Tx) -> bool:
            tx.execute(
                "INSERT INTO api_keys (key_id, name, scope, key_hash, created_us) VALUES (?, ?, ?, ?, ?) "
                "ON CONFLICT DO NOTHING",
                (key_id, name, scope, hashed, to_microseconds(now)),
            )
            changed = tx.execute(
                "UPDATE api_keys SET key_hash = ?, name = ?, created_us = ?, revoked_us = NULL "
                "WHERE key_id = ? AND key_hash <> ?",
                (hashed, name, to_microseconds(now), key_id, hashed),
            )
            return changed > 0

        replaced = await self._database.write(own_in_transaction)
        await self.load()
        return replaced

    async def set_operator_key(
        self, key_id: str, made: str, given: str | None, now: datetime
    ) -> None:
        """The operator's one key: AGENTGYM_RL_API_KEY where it is `given`, else the one that we `made`.

        Others that were it before work no more. One that was replaced works again when it is named
        again; one that was revoked by hand does not.
        """
        hashed = digest_of_key(given or made)

        def operator_in_transaction(tx: Tx) -> None:
            tx.execute(
                f"UPDATE api_keys SET revoked_us = ?, name = name || ? "
                f"WHERE {_OPERATORS} AND revoked_us IS NULL AND key_hash <> ?",
                (to_microseconds(now), _REPLACED, hashed),
            )
            tx.execute(
                f"UPDATE api_keys SET revoked_us = NULL, name = substr(name, 1, length(name) - ?) "
                f"WHERE {_OPERATORS} AND name LIKE ? AND key_hash = ?",
                (len(_REPLACED), f"%{_REPLACED}", hashed),
            )
            if given:
                _replace_operator_key(tx, key_id, hashed, now)

        if given and hashed in self._revoked.known_keys():
            raise Misuse(_UNUSABLE.format("was revoked"))

        await self._database.write(operator_in_transaction)
        await self.load()

    def was_revoked(self, key: str) -> bool:
        """By hand, and not because another took its place."""
        found = self.find(key)
        return digest_of_key(key) in self._revoked.known_keys() or bool(
            found and found.revoked and not found.name.endswith(_REPLACED)
        )

    def revoked_by_hand(self) -> dict[bytes, datetime]:
        """Hash → when."""
        return {
            hashed: key.revoked
            for hashed, key in self._by_hash.items()
            if key.revoked is not None and not key.name.endswith(_REPLACED)
        }

    async def revoke(self, key_id: str, now: datetime, audit: AuditEntry | None = None) -> bool:
        """True when there was such a key and it worked until now, or might again after another replaced it.

        It is written down first: where the table then refuses, the key is revoked all the same, and asking again
        completes it.
        """
        sql = (
            f"UPDATE api_keys SET revoked_us = ?, name = CASE WHEN {_OPERATORS} THEN replace(name, ?, '') "
            f"ELSE name END WHERE key_id = ? AND (revoked_us IS NULL OR ({_OPERATORS} AND name LIKE ?))"
        )
        values = (to_microseconds(now), _REPLACED, key_id, f"%{_REPLACED}")
        mine = "SELECT key_hash FROM api_keys WHERE key_id = ?"

        def revoke_in_transaction(tx: Tx) -> tuple[bool, str]:
            changed = tx.execute(sql, values) > 0
            return changed, append_audit(tx, audit) if changed and audit is not None else ""

        rows = await self._database.read(lambda tx: tx.rows(mine, (key_id,)))
        try:
            await asyncio.to_thread(
                self._revoked.add, {bytes_of_column(row[0]): now for row in rows}
            )
            changed, digest = await self._database.write(revoke_in_transaction)
        finally:
            await self.load()
        if audit is not None and digest:
            log_audit(audit, digest)
        return changed

    async def write_down_revoked(self) -> None:
        """What was revoked by hand and stands in the table alone; after `load`."""
        await asyncio.to_thread(self._revoked.add, self.revoked_by_hand())


def _replace_operator_key(tx: Tx, key_id: str, hashed: bytes, now: datetime) -> None:
    tx.execute(
        "INSERT INTO api_keys (key_id, name, scope, key_hash, created_us) "
        "VALUES (?, ?, 'operator', ?, ?) ON CONFLICT DO NOTHING",
        (key_id, _FROM_OUTSIDE, hashed, to_microseconds(now)),
    )
    row = tx.row("SELECT scope, revoked_us FROM api_keys WHERE key_hash = ?", (hashed,))
    if row is None or row[0] != "operator" or row[1] is not None:
        why = "was revoked" if row and row[1] is not None else "is the key of somebody else"
        raise Misuse(_UNUSABLE.format(why))


def _key_from_row(row: Row) -> tuple[bytes, ApiKey]:
    hashed, key_id, name, scope, created, revoked, many = row
    since = from_microseconds(revoked) if revoked is not None else None
    return bytes_of_column(hashed), ApiKey(
        key_id, name, scope, from_microseconds(created), since, many is not None
    )
