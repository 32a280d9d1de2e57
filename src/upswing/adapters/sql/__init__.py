"""The store: what the loop remembers, in SQLite or PostgreSQL, with one schema."""

from upswing.adapters.sql.store import SqlStore, open_store, read_only

__all__ = ["SqlStore", "open_store", "read_only"]
