"""Which tables hold rollouts, what they have shown, and who leads? Two migrations of `schema`."""

from __future__ import annotations

ROLLOUTS: tuple[str, ...] = (
    # Ways out of models. `body` is the whole rollout, the columns are what is asked for.
    """CREATE TABLE rollouts (
        seq {serial},
        rollout_id TEXT NOT NULL UNIQUE,
        model_id TEXT NOT NULL,
        baseline_id TEXT NOT NULL,
        state TEXT NOT NULL,
        share DOUBLE PRECISION NOT NULL,
        body {blob} NOT NULL,
        changed_us {big} NOT NULL
    )""",
    "CREATE INDEX rollouts_by_model ON rollouts (model_id, seq)",
    "CREATE INDEX rollouts_by_state ON rollouts (state, seq)",
    # What a rollout has shown, with the newest sequence numbers that it was read from.
    """CREATE TABLE evidence (
        rollout_id TEXT PRIMARY KEY,
        reward_seq {big} NOT NULL,
        complaint_seq {big} NOT NULL,
        body {blob} NOT NULL,
        written_us {big} NOT NULL
    )""",
    # What a person has to hear of, with all that was known at that moment.
    """CREATE TABLE incidents (
        seq {serial},
        incident_id TEXT NOT NULL UNIQUE,
        rollout_id TEXT,
        model_id TEXT NOT NULL,
        reason TEXT NOT NULL,
        sentence TEXT NOT NULL,
        metrics {blob} NOT NULL,
        happened_us {big} NOT NULL
    )""",
    # Every write of an operator.
    """CREATE TABLE audit (
        seq {serial},
        who TEXT NOT NULL,
        what TEXT NOT NULL,
        about TEXT NOT NULL,
        detail {blob} NOT NULL,
        written_us {big} NOT NULL
    )""",
    # Who leads. `fence` rises with every controller that takes over; `beat_us` is when it was last
    # heard of, in real time; `held_us` when its plan last held, by the clock of ramps.
    """CREATE TABLE controller (
        id INTEGER PRIMARY KEY,
        fence {big} NOT NULL,
        holder TEXT NOT NULL,
        beat_us {big} NOT NULL,
        held_us {big}
    )""",
)

ORIGIN: tuple[str, ...] = (
    # The name of this store, made when a controller first leads on it: plans bear it.
    """CREATE TABLE origin (
        id INTEGER PRIMARY KEY,
        name TEXT NOT NULL
    )""",
)
