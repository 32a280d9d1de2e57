"""Which tables does validation need? The fifth migration, and a part of the sixth."""

from __future__ import annotations

VALIDATIONS: tuple[str, ...] = (
    # Whether a model may ship. `state` is `running`, `done` or `failed`; `report` is the whole of
    # it, whose copy lies at `artifact`; `sentence` says why there is none.
    """CREATE TABLE validations (
        seq {serial},
        run_id TEXT NOT NULL UNIQUE,
        candidate TEXT NOT NULL,
        against TEXT NOT NULL,
        suites {blob} NOT NULL,
        state TEXT NOT NULL,
        word TEXT,
        sentence TEXT,
        improvement DOUBLE PRECISION,
        report {blob},
        artifact TEXT,
        decision_id TEXT,
        started_us {big} NOT NULL,
        ended_us {big}
    )""",
    "CREATE INDEX validations_by_candidate ON validations (candidate, seq)",
    "CREATE INDEX validations_running ON validations (state) WHERE state = 'running'",
)

CLAIMS: tuple[str, ...] = (
    # Who does it, and until when nobody else may, in real time; nobody's at 0.
    "ALTER TABLE validations ADD COLUMN holder TEXT NOT NULL DEFAULT ''",
    "ALTER TABLE validations ADD COLUMN lease_us {big} NOT NULL DEFAULT 0",
)
