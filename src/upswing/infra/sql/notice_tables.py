"""Which tables hold alerts, reports, what waits for webhooks, and what models have used? One migration."""

from __future__ import annotations

INCIDENTS_READ, VALIDATIONS_READ = "monitor incidents", "monitor validations"
"""How far the monitor has read: the last incident's number, and when the last validation ended."""

NOTICES: tuple[str, ...] = (
    # One open alert for each cause, whoever sees it how often; `times` counts that.
    """CREATE TABLE alerts (
        seq {serial},
        alert_id TEXT NOT NULL UNIQUE,
        cause TEXT NOT NULL,
        name TEXT NOT NULL,
        severity TEXT NOT NULL,
        state TEXT NOT NULL,
        summary TEXT NOT NULL,
        labels {blob} NOT NULL,
        evidence {blob} NOT NULL,
        times {big} NOT NULL,
        began_us {big} NOT NULL,
        changed_us {big} NOT NULL,
        seen_us {big} NOT NULL,
        acknowledged_by TEXT,
        acknowledged_us {big},
        note TEXT,
        over TEXT,
        resolved_us {big}
    )""",
    "CREATE UNIQUE INDEX alerts_open ON alerts (cause) WHERE state <> 'resolved'",
    "CREATE INDEX alerts_by_state ON alerts (state, seq)",
    # A report of each period, once.
    """CREATE TABLE reports (
        seq {serial},
        report_id TEXT NOT NULL UNIQUE,
        kind TEXT NOT NULL,
        job_id TEXT,
        title TEXT NOT NULL,
        start_us {big} NOT NULL,
        end_us {big} NOT NULL,
        made_us {big} NOT NULL,
        figures {blob} NOT NULL,
        text {blob} NOT NULL
    )""",
    "CREATE INDEX reports_by_kind ON reports (kind, seq)",
    # Deliveries to webhooks. `state` is `waiting`, `sent` or `given_up`; `ref` is the alert or the report.
    """CREATE TABLE deliveries (
        seq {serial},
        delivery_id TEXT NOT NULL UNIQUE,
        target TEXT NOT NULL,
        kind TEXT NOT NULL,
        ref TEXT NOT NULL,
        body {blob} NOT NULL,
        state TEXT NOT NULL,
        tries INTEGER NOT NULL DEFAULT 0,
        error TEXT NOT NULL DEFAULT '',
        queued_us {big} NOT NULL,
        next_us {big} NOT NULL,
        ended_us {big}
    )""",
    "CREATE INDEX deliveries_waiting ON deliveries (target, seq) WHERE state = 'waiting'",
    "CREATE INDEX deliveries_by_ref ON deliveries (ref)",
    # What models have used, by day: sums, so that a price list can be applied to all of it at any time.
    """CREATE TABLE model_usage (
        day_us {big} NOT NULL,
        model TEXT NOT NULL,
        trajectories {big} NOT NULL DEFAULT 0,
        uncounted {big} NOT NULL DEFAULT 0,
        tokens DOUBLE PRECISION NOT NULL DEFAULT 0,
        judge_tokens DOUBLE PRECISION NOT NULL DEFAULT 0,
        judge_usd DOUBLE PRECISION NOT NULL DEFAULT 0,
        PRIMARY KEY (day_us, model)
    )""",
    "CREATE INDEX judge_spend_by_time ON judge_spend (asked_us)",
    "CREATE INDEX validations_by_end ON validations (ended_us)",
    # What happened before there were alerts calls nobody.
    (
        f"INSERT INTO cursors (name, seq) SELECT '{INCIDENTS_READ}', COALESCE(MAX(seq), 0) "
        "FROM incidents WHERE TRUE ON CONFLICT (name) DO NOTHING"
    ),
    (
        f"INSERT INTO cursors (name, seq) SELECT '{VALIDATIONS_READ}', COALESCE(MAX(ended_us), 0) "
        "FROM validations WHERE TRUE ON CONFLICT (name) DO NOTHING"
    ),
)
