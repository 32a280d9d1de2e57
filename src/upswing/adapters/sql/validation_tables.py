"""Which tables does validation need? The fifth migration."""

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
