"""The store: what the loop remembers, in SQLite or PostgreSQL, with one schema."""

from upswing.infra.sql.store import SqlStore, open_store, open_store_read_only

__all__ = ["SqlStore", "open_store", "open_store_read_only"]
