"""Which tables are there? One schema for both databases, grown by numbered migrations.

Words in braces are the dialects' own: `{serial}` a key that counts up and is never reused,
`{blob}` bytes, `{big}` a 64-bit integer. Times are microseconds since 1970, UTC.
"""

from __future__ import annotations

from typing import Protocol

from upswing.infra.sql.audit_tables import AUDIT
from upswing.infra.sql.counter_tables import COUNTERS, POSTGRES_STATEMENTS, SQLITE_STATEMENTS
from upswing.infra.sql.dead_tables import LETTERS
from upswing.infra.sql.feedback_targets import EPISODES
from upswing.infra.sql.history_tables import HISTORY
from upswing.infra.sql.key_tables import (
    GATEWAY_KEY_INDEX,
    KEY_COLUMNS,
    KEYS,
    RECORDED,
    REQUESTS,
    SOURCES,
)
from upswing.infra.sql.learning_columns import LEARNING
from upswing.infra.sql.notice_tables import NOTICES
from upswing.infra.sql.practice_tables import PRACTICE
from upswing.infra.sql.rollout_tables import ORIGIN, ROLLOUTS
from upswing.infra.sql.validation_tables import CLAIMS, VALIDATIONS

_TRUE, _FALSE = "('true', 't', '1')", "('false', 'f', '0')"
_EVALUATION = {
    "metadata.is_evaluation": _TRUE,
    "metadata.isEvaluation": _TRUE,
    "metadata.row.is_evaluation": _TRUE,
    "metadata.row.isEvaluation": _TRUE,
    "metadata.row.is_training_data": _FALSE,
    "metadata.row.isTrainingData": _FALSE,
}
"""What in a body makes its trajectory an evaluation."""


def _backfill_sql(part: str) -> str:
    """Read `task_id` and `evaluation` out of the bodies that are there; `part` reads one value."""
    flags = [
        f"LOWER(CAST({part.replace('PATH', path)} AS TEXT)) IN {words}"
        for path, words in _EVALUATION.items()
    ]
    return (
        f"UPDATE trajectories SET task_id = COALESCE({part.replace('PATH', 'task_context.task_id')}, ''), "
        f"evaluation = CASE WHEN {' OR '.join(flags)} THEN 1 ELSE 0 END"
    )


# JSON may spell a null character, which a text of PostgreSQL cannot hold. A backslash that is
# itself escaped is put aside first: what follows it is no escape.
_POSTGRES_PART = (
    r"(REPLACE(REPLACE(REPLACE(CONVERT_FROM(body, 'UTF8'), '\\', CHR(1)), '\u0000', '\ufffd'), "
    r"CHR(1), '\\')::json #>> STRING_TO_ARRAY('PATH', '.'))"
)

DIALECTS = {
    "sqlite": {
        "serial": "INTEGER PRIMARY KEY AUTOINCREMENT",
        "blob": "BLOB",
        "big": "INTEGER",
        "backfill_tasks": _backfill_sql("json_extract(CAST(body AS TEXT), '$.PATH')"),
        "status": "json_extract(CAST(body AS TEXT), '$.metadata.outcome.status')",
        "scenario": "json_extract(CAST(body AS TEXT), '$.metadata.scenario_id')",
        **SQLITE_STATEMENTS,
    },
    "postgres": {
        "serial": "BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY",
        "blob": "BYTEA",
        "big": "BIGINT",
        "backfill_tasks": _backfill_sql(_POSTGRES_PART),
        "status": _POSTGRES_PART.replace("PATH", "metadata.outcome.status"),
        "scenario": _POSTGRES_PART.replace("PATH", "metadata.scenario_id"),
        **POSTGRES_STATEMENTS,
    },
}

MIGRATIONS: tuple[tuple[str, ...], ...] = (
    (
        # What agents did. `body` is the redacted message in canonical spelling, `content_hash`
        # its sha256; what enrichment found stands beside it in columns.
        """CREATE TABLE trajectories (
            seq {serial},
            trajectory_id TEXT NOT NULL UNIQUE,
            content_hash {blob} NOT NULL,
            body {blob} NOT NULL,
            agent_id TEXT NOT NULL,
            session_id TEXT NOT NULL,
            user_id TEXT,
            agent_type TEXT NOT NULL,
            domain TEXT NOT NULL,
            complexity DOUBLE PRECISION NOT NULL,
            window_id TEXT NOT NULL,
            scenario_id TEXT NOT NULL,
            episode_id TEXT,
            model TEXT NOT NULL,
            started_us {big} NOT NULL,
            ended_us {big} NOT NULL,
            turns INTEGER NOT NULL,
            infra_error INTEGER NOT NULL,
            door TEXT NOT NULL,
            stored_us {big} NOT NULL
        )""",
        "CREATE INDEX trajectories_by_hash ON trajectories (content_hash)",
        "CREATE INDEX trajectories_by_user ON trajectories (user_id) WHERE user_id IS NOT NULL",
        "CREATE INDEX trajectories_by_window ON trajectories (window_id, scenario_id)",
        # Which messages of which stream carry a row (`ref` is its id), so that erasure finds
        # them all; a doomed one is to be erased as soon as the bus can be reached.
        """CREATE TABLE carried (
            stream TEXT NOT NULL,
            stream_seq {big} NOT NULL,
            ref TEXT NOT NULL,
            doomed INTEGER NOT NULL DEFAULT 0,
            PRIMARY KEY (stream, stream_seq)
        )""",
        "CREATE INDEX carried_by_ref ON carried (ref)",
        "CREATE INDEX carried_doomed ON carried (doomed) WHERE doomed = 1",
        # Deliveries that began and have not ended: whoever took them may have died of them.
        """CREATE TABLE attempts (
            stream TEXT NOT NULL,
            stream_seq {big} NOT NULL,
            count INTEGER NOT NULL,
            PRIMARY KEY (stream, stream_seq)
        )""",
        # Ids of trajectories and feedback that were erased on a user's wish, so that no late copy
        # brings them back; `archived` while a copy may still lie in the archive of its hour.
        """CREATE TABLE erased (
            ref TEXT PRIMARY KEY,
            erased_us {big} NOT NULL,
            stored_us {big} NOT NULL,
            archived INTEGER NOT NULL
        )""",
        """CREATE TABLE feedback (
            seq {serial},
            feedback_id TEXT NOT NULL UNIQUE,
            content_hash {blob} NOT NULL,
            body {blob} NOT NULL,
            trajectory_id TEXT,
            episode_id TEXT,
            inference_id TEXT,
            user_id TEXT,
            principal TEXT NOT NULL,
            stored_us {big} NOT NULL
        )""",
        "CREATE INDEX feedback_by_trajectory ON feedback (trajectory_id)",
        "CREATE INDEX feedback_by_hash ON feedback (content_hash)",
        """CREATE TABLE dead (
            seq {serial},
            dead_id TEXT NOT NULL UNIQUE,
            stage TEXT NOT NULL,
            reason TEXT NOT NULL,
            user_id TEXT,
            body {blob} NOT NULL,
            created_us {big} NOT NULL,
            replayed_us {big}
        )""",
        # Messages that follow from a commit; `ref` is the id of the row they tell of. A
        # trajectory's bytes are not written twice: `payload` is empty, its row has them.
        """CREATE TABLE outbox (
            seq {serial},
            subject TEXT NOT NULL,
            msg_id TEXT NOT NULL,
            ref TEXT,
            payload {blob}
        )""",
        """CREATE TABLE open_trajectories (
            trajectory_id TEXT PRIMARY KEY,
            head {blob} NOT NULL,
            user_id TEXT,
            updated_us {big} NOT NULL
        )""",
        """CREATE TABLE open_steps (
            trajectory_id TEXT NOT NULL,
            step INTEGER NOT NULL,
            body {blob} NOT NULL,
            raw_hash {blob} NOT NULL,
            PRIMARY KEY (trajectory_id, step)
        )""",
        "CREATE TABLE optouts (user_id TEXT PRIMARY KEY, since_us {big} NOT NULL)",
        """CREATE TABLE api_keys (
            key_id TEXT PRIMARY KEY,
            name TEXT NOT NULL,
            scope TEXT NOT NULL,
            key_hash {blob} NOT NULL UNIQUE,
            created_us {big} NOT NULL,
            revoked_us {big}
        )""",
        "CREATE TABLE settings (name TEXT PRIMARY KEY, value {blob} NOT NULL)",
        "CREATE TABLE cursors (name TEXT PRIMARY KEY, seq {big} NOT NULL)",
    ),
    (
        # Every revision of every reward, as it was published.
        """CREATE TABLE rewards (
            seq {serial},
            trajectory_id TEXT NOT NULL,
            revision INTEGER NOT NULL,
            body {blob} NOT NULL,
            created_us {big} NOT NULL,
            UNIQUE (trajectory_id, revision)
        )""",
        # The newest reward of each trajectory, with what comparing and counting need of it.
        """CREATE TABLE scored (
            trajectory_seq {big} PRIMARY KEY,
            trajectory_id TEXT NOT NULL UNIQUE,
            episode_id TEXT,
            agent_id TEXT NOT NULL,
            principal TEXT NOT NULL,
            model TEXT NOT NULL,
            window_id TEXT NOT NULL,
            scenario_id TEXT NOT NULL,
            domain TEXT NOT NULL,
            complexity DOUBLE PRECISION NOT NULL,
            turns INTEGER NOT NULL,
            seconds DOUBLE PRECISION,
            tokens DOUBLE PRECISION,
            pnl DOUBLE PRECISION,
            balance DOUBLE PRECISION,
            infra_error INTEGER NOT NULL,
            revision INTEGER NOT NULL,
            total DOUBLE PRECISION NOT NULL,
            raw_total DOUBLE PRECISION NOT NULL,
            judge_score DOUBLE PRECISION
        )""",
        "CREATE INDEX scored_by_window ON scored (window_id, scenario_id)",
        "CREATE INDEX scored_by_kind ON scored (domain, trajectory_seq)",
        "CREATE INDEX scored_by_model ON scored (model, trajectory_seq)",
        "CREATE INDEX scored_by_episode ON scored (episode_id) WHERE episode_id IS NOT NULL",
        # The raw scores that a baseline is made of: of first revisions, and of what comes late an hour after.
        """CREATE TABLE component_scores (
            name TEXT NOT NULL,
            trajectory_seq {big} NOT NULL,
            score DOUBLE PRECISION NOT NULL,
            PRIMARY KEY (name, trajectory_seq)
        )""",
        # What really happened in a window, by source.
        """CREATE TABLE outcomes (
            window_id TEXT NOT NULL,
            scenario_id TEXT NOT NULL,
            source TEXT NOT NULL,
            body {blob} NOT NULL,
            stored_us {big} NOT NULL,
            PRIMARY KEY (window_id, scenario_id, source)
        )""",
        # Groups that a judge has dealt with, or could not deal with and why.
        """CREATE TABLE judged (
            window_id TEXT NOT NULL,
            scenario_id TEXT NOT NULL,
            judge TEXT NOT NULL,
            judged INTEGER NOT NULL,
            reason TEXT NOT NULL,
            prompt_tokens {big} NOT NULL,
            completion_tokens {big} NOT NULL,
            usd DOUBLE PRECISION NOT NULL,
            judged_us {big} NOT NULL,
            PRIMARY KEY (window_id, scenario_id)
        )""",
        # Whether the key that a user's word came with may speak for any user.
        "ALTER TABLE feedback ADD COLUMN trusted INTEGER NOT NULL DEFAULT 0",
        "CREATE INDEX feedback_by_episode ON feedback (episode_id) WHERE episode_id IS NOT NULL",
    ),
    (
        # Which task it was, for a held-out split by task; and whether it was only an evaluation.
        "ALTER TABLE trajectories ADD COLUMN task_id TEXT NOT NULL DEFAULT ''",
        "ALTER TABLE trajectories ADD COLUMN evaluation INTEGER NOT NULL DEFAULT 0",
        "{backfill_tasks}",
        # They are few, and counting leaves them out without a look at the large rows.
        "CREATE INDEX trajectories_evaluation ON trajectories (seq) WHERE evaluation = 1",
        # Training jobs. `request` is training.request.v1, `recipe` what became of it and of its
        # failures, `status` the newest training.status.v1.
        """CREATE TABLE jobs (
            seq {serial},
            job_id TEXT NOT NULL UNIQUE,
            state TEXT NOT NULL,
            priority INTEGER NOT NULL,
            reason TEXT NOT NULL,
            request {blob} NOT NULL,
            recipe {blob} NOT NULL,
            status {blob} NOT NULL,
            failures {blob} NOT NULL,
            attempt INTEGER NOT NULL DEFAULT 0,
            created_us {big} NOT NULL,
            not_before_us {big} NOT NULL,
            started_us {big},
            ended_us {big},
            cancel INTEGER NOT NULL DEFAULT 0,
            worker TEXT,
            lease_us {big} NOT NULL DEFAULT 0,
            snapshot TEXT,
            covers_seq {big} NOT NULL DEFAULT 0
        )""",
        "CREATE INDEX jobs_by_state ON jobs (state, priority, seq)",
        # What a data set was made of: provenance, and what the next one prefers to leave out.
        """CREATE TABLE trained_on (
            trajectory_id TEXT NOT NULL,
            job_id TEXT NOT NULL,
            revision INTEGER NOT NULL,
            PRIMARY KEY (trajectory_id, job_id)
        )""",
        "CREATE INDEX trained_on_by_job ON trained_on (job_id)",
        # What training made. `state` grows with validation and deployment.
        """CREATE TABLE models (
            version {serial},
            model_id TEXT NOT NULL UNIQUE,
            job_id TEXT NOT NULL UNIQUE,
            base_model TEXT NOT NULL,
            parent TEXT,
            snapshot TEXT NOT NULL,
            path TEXT NOT NULL,
            card TEXT NOT NULL,
            state TEXT NOT NULL,
            samples INTEGER NOT NULL,
            final_reward DOUBLE PRECISION,
            baseline_reward DOUBLE PRECISION,
            created_us {big} NOT NULL,
            deployed_us {big}
        )""",
        # Every decision with its inputs, so that it can be explained and tried again.
        """CREATE TABLE decisions (
            seq {serial},
            decision_id TEXT NOT NULL UNIQUE,
            stage TEXT NOT NULL,
            kind TEXT NOT NULL,
            sentence TEXT NOT NULL,
            inputs {blob} NOT NULL,
            outcome {blob} NOT NULL,
            decided_us {big} NOT NULL
        )""",
        "CREATE INDEX decisions_by_stage ON decisions (stage, seq)",
    ),
    ROLLOUTS,
    VALIDATIONS,
    (*ORIGIN, *CLAIMS),
    LEARNING,
    PRACTICE,
    # What is too old for a job is known without a look at the large rows.
    ("CREATE INDEX trajectories_ended ON trajectories (ended_us)",),
    KEYS,
    # The seal of the checkpoint that training wrote: another one in its place is not served.
    ("ALTER TABLE models ADD COLUMN seal TEXT NOT NULL DEFAULT ''",),
    # Groups that could not be judged are asked about again; each asking has its own price.
    (
        "ALTER TABLE judged ADD COLUMN tries INTEGER NOT NULL DEFAULT 1",
        "ALTER TABLE judged ADD COLUMN first_us {big} NOT NULL DEFAULT 0",
        "ALTER TABLE judged ADD COLUMN next_us {big}",
        """CREATE TABLE judge_spend (
            asked_us {big} NOT NULL,
            prompt_tokens {big} NOT NULL,
            completion_tokens {big} NOT NULL,
            usd DOUBLE PRECISION NOT NULL
        )""",
        (
            "INSERT INTO judge_spend (asked_us, prompt_tokens, completion_tokens, usd) "
            "SELECT judged_us, prompt_tokens, completion_tokens, usd FROM judged"
        ),
        "UPDATE judged SET first_us = judged_us",
    ),
    KEY_COLUMNS,
    GATEWAY_KEY_INDEX,
    LETTERS,
    RECORDED,
    SOURCES,
    REQUESTS,
    EPISODES,
    COUNTERS,
    AUDIT,
    HISTORY,
    NOTICES,
)


class Executes(Protocol):
    """Whatever can run a statement: a transaction."""

    def execute(self, sql: str, params: tuple[object, ...] = ()) -> object: ...

    def rows(self, sql: str, params: tuple[object, ...] = ()) -> list[tuple[object, ...]]: ...


def migrate_schema(tx: Executes, dialect: str) -> int:
    """Bring the schema to the newest version, and say which that is."""
    tx.execute("CREATE TABLE IF NOT EXISTS migrations (version INTEGER PRIMARY KEY)")
    done = {row[0] for row in tx.rows("SELECT version FROM migrations")}
    for version, statements in enumerate(MIGRATIONS, start=1):
        if version in done:
            continue
        for statement in statements:
            tx.execute(statement.format(**DIALECTS[dialect]))
        tx.execute("INSERT INTO migrations (version) VALUES (?)", (version,))
    return len(MIGRATIONS)
