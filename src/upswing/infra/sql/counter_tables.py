"""How much is there, and what was earned when, without a look at the rows? Tables that triggers keep, and indexes.

| table            | a row says                                                             | is changed by              |
|------------------|------------------------------------------------------------------------|----------------------------|
| `counts`         | how many rows another table has                                        | every insert and delete     |
| `reward_buckets` | how many trajectories a model had in 10 s or an hour, and their rewards | every first reward, revision and erasure |

Both change in the transaction that changes the rows, so they are as exact as a count. A bucket rests on evidence
alone, as metrics and comparisons do: no evaluation, no practice, no fault of the infrastructure. They can be made
again from the rows (`DERIVED`), so a repair leaves them to the triggers.
"""

from __future__ import annotations

COUNTED = (
    "trajectories",
    "rewards",
    "judged",
    "dead",
    "jobs",
    "models",
    "feedback",
    "outbox",
    "optouts",
)
DERIVED = ("counts", "reward_buckets")
FINE, COARSE = 10, 3600
"""Seconds of a bucket."""
_LARGEST = "1e6"
"""Raw rewards beyond it are none that anybody earned; they would drown all others of their bucket."""
_SOUND = "{row}.infra_error = 0 AND {row}.raw_total BETWEEN -" + _LARGEST + " AND " + _LARGEST
_WIDTHS = (
    f"(SELECT {FINE} AS width_s, CAST({FINE * 1_000_000} AS BIGINT) AS width_us "
    f"UNION ALL SELECT {COARSE} AS width_s, CAST({COARSE * 1_000_000} AS BIGINT) AS width_us)"
)
_START = "t.stored_us / w.width_us * w.width_us"
_BUCKETS = (
    f"SELECT w.width_s, {_START} FROM trajectories t CROSS JOIN {_WIDTHS} w "
    "WHERE t.seq = {row}.trajectory_seq AND t.evaluation = 0 AND t.practice = 0"
)
_NEW_BUCKETS = (
    "INSERT {ignore} INTO reward_buckets (width_s, start_us, model, n, served, total, squares) "
    f"SELECT w.width_s, {_START}, {{row}}.model, 0, 0, 0, 0 FROM trajectories t CROSS JOIN {_WIDTHS} w "
    "WHERE t.seq = {row}.trajectory_seq AND t.evaluation = 0 AND t.practice = 0 AND {sound} {nothing}"
)
_CHANGE_BUCKETS = (
    "UPDATE reward_buckets SET n = n {sign} 1, served = served {sign} {row}.gateway, "
    "total = total {sign} {row}.raw_total, squares = squares {sign} {row}.raw_total * {row}.raw_total "
    f"WHERE model = {{row}}.model AND (width_s, start_us) IN ({_BUCKETS}) AND {{sound}}"
)


def _add_statements(row: str, *, postgres: bool) -> str:
    """A trajectory enters its buckets."""
    sound = _SOUND.format(row=row)
    ignore, nothing = ("", "ON CONFLICT DO NOTHING") if postgres else ("OR IGNORE", "")
    new = _NEW_BUCKETS.format(row=row, sound=sound, ignore=ignore, nothing=nothing)
    return f"{new}; {_CHANGE_BUCKETS.format(row=row, sound=sound, sign='+')};"


def _remove_statements(row: str) -> str:
    return f"{_CHANGE_BUCKETS.format(row=row, sound=_SOUND.format(row=row), sign='-')};"


def _sqlite_statements() -> dict[str, str]:
    words = {"count_functions_in": "SELECT 1", "count_functions_out": "SELECT 1"}
    for table in COUNTED:
        for event, sign, name in (("INSERT", "+", "in"), ("DELETE", "-", "out")):
            words[f"count_{table}_{name}"] = (
                f"CREATE TRIGGER count_{table}_{name} AFTER {event} ON {table} BEGIN "
                f"UPDATE counts SET n = n {sign} 1 WHERE name = '{table}'; END"
            )
    bodies = {
        "in": ("INSERT", _add_statements("NEW", postgres=False)),
        "out": ("DELETE", _remove_statements("OLD")),
        "change": (
            "UPDATE OF raw_total",
            _remove_statements("OLD") + " " + _add_statements("NEW", postgres=False),
        ),
    }
    for name, (event, body) in bodies.items():
        words[f"bucket_function_{name}"] = "SELECT 1"
        words[f"bucket_{name}"] = (
            f"CREATE TRIGGER bucket_{name} AFTER {event} ON scored BEGIN {body} END"
        )
    return words


def _postgres_function(name: str, body: str) -> str:
    return (
        f"CREATE FUNCTION {name}() RETURNS trigger LANGUAGE plpgsql AS "
        f"$body$ BEGIN {body} RETURN NULL; END $body$"
    )


def _postgres_statements() -> dict[str, str]:
    words: dict[str, str] = {}
    for event, sign, name, rows in (("INSERT", "+", "in", "NEW"), ("DELETE", "-", "out", "OLD")):
        changed = (
            "IF EXISTS (SELECT 1 FROM changed) THEN UPDATE counts "
            f"SET n = n {sign} (SELECT COUNT(*) FROM changed) WHERE counts.name = TG_TABLE_NAME; END IF;"
        )
        words[f"count_functions_{name}"] = _postgres_function(f"count_rows_{name}", changed)
        for table in COUNTED:
            words[f"count_{table}_{name}"] = (
                f"CREATE TRIGGER count_{table}_{name} AFTER {event} ON {table} REFERENCING {rows} TABLE "
                f"AS changed FOR EACH STATEMENT EXECUTE FUNCTION count_rows_{name}()"
            )
    bodies = {
        "in": ("INSERT", _add_statements("NEW", postgres=True)),
        "out": ("DELETE", _remove_statements("OLD")),
        "change": (
            "UPDATE OF raw_total",
            _remove_statements("OLD") + " " + _add_statements("NEW", postgres=True),
        ),
    }
    for name, (event, body) in bodies.items():
        words[f"bucket_function_{name}"] = _postgres_function(f"bucket_reward_{name}", body)
        words[f"bucket_{name}"] = (
            f"CREATE TRIGGER bucket_{name} AFTER {event} ON scored FOR EACH ROW "
            f"EXECUTE FUNCTION bucket_reward_{name}()"
        )
    return words


SQLITE_STATEMENTS, POSTGRES_STATEMENTS = _sqlite_statements(), _postgres_statements()
_EVIDENCE = _SOUND.format(row="s") + " AND t.evaluation = 0 AND t.practice = 0"

COUNTERS: tuple[str, ...] = (
    "CREATE TABLE counts (name TEXT PRIMARY KEY, n {big} NOT NULL)",
    *(f"INSERT INTO counts (name, n) SELECT '{table}', COUNT(*) FROM {table}" for table in COUNTED),
    "{count_functions_in}",
    "{count_functions_out}",
    *(f"{{count_{table}_{name}}}" for table in COUNTED for name in ("in", "out")),
    # `served` are those that a gateway recorded; `total` and `squares` are of raw rewards.
    """CREATE TABLE reward_buckets (
        width_s INTEGER NOT NULL,
        start_us {big} NOT NULL,
        model TEXT NOT NULL,
        n {big} NOT NULL,
        served {big} NOT NULL,
        total DOUBLE PRECISION NOT NULL,
        squares DOUBLE PRECISION NOT NULL,
        PRIMARY KEY (width_s, start_us, model)
    )""",
    (
        "INSERT INTO reward_buckets (width_s, start_us, model, n, served, total, squares) "
        f"SELECT w.width_s, {_START} AS start_us, s.model, COUNT(*), SUM(s.gateway), SUM(s.raw_total), "
        f"SUM(s.raw_total * s.raw_total) FROM scored s JOIN trajectories t ON t.seq = s.trajectory_seq "
        f"CROSS JOIN {_WIDTHS} w WHERE {_EVIDENCE} GROUP BY 1, 2, 3"
    ),
    *(
        f"{{{word}_{name}}}"
        for name in ("in", "out", "change")
        for word in ("bucket_function", "bucket")
    ),
    # Lists by one of these begin at the newest and read no other row.
    "CREATE INDEX trajectories_by_model ON trajectories (model, seq)",
    "CREATE INDEX trajectories_by_agent ON trajectories (agent_id, seq)",
    "CREATE INDEX trajectories_by_domain ON trajectories (domain, seq)",
    "CREATE INDEX trajectories_by_task ON trajectories (task_id, seq)",
    "CREATE INDEX trajectories_of_user ON trajectories (user_id, seq) WHERE user_id IS NOT NULL",
    "DROP INDEX IF EXISTS trajectories_by_user",
    # How many came since a moment is known without a look at the large rows.
    "CREATE INDEX trajectories_by_arrival ON trajectories (stored_us, seq)",
)
