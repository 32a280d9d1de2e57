"""Which rows and messages in hand do several stages know?

`infra.sql` and the stages' repositories read and write the rows (an in-memory SQLite database is the twin
for tests).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum

import msgspec

from upswing.contracts import DeadLetter, Reward, TrainingRequest, TrainingStatus
from upswing.errors import Reason
from upswing.principals import NOBODY, Sender, Speaker


class Taken(StrEnum):
    """What became of something that was handed in."""

    STORED = "stored"
    KNOWN = "known"
    """The same id with the same content: nothing was to do."""
    CONFLICT = "conflict"
    """The same id with other content: the first one stays."""
    ERASED = "erased"
    """Its user had it erased; it does not come back."""
    NOT_YOURS = "not_yours"
    """It speaks of somebody else's work."""
    OPTED_OUT = "opted_out"
    """Its user does not want to be recorded: dropped and counted."""
    DRY = "dryrun"
    """It would be taken; nothing was kept."""


@dataclass(frozen=True, slots=True)
class Admitted:
    """A trajectory ready to be stored: valid, redacted, in canonical spelling, enriched."""

    trajectory_id: str
    content_hash: bytes
    body: bytes
    agent_id: str
    session_id: str
    user_id: str | None
    agent_type: str
    domain: str
    complexity: float
    window_id: str
    scenario_id: str
    episode_id: str | None
    model: str
    started: datetime
    ended: datetime
    turns: int
    infra_error: bool
    task_id: str
    """The task; a hash of the redacted first request where the recorder knows no task."""
    evaluation: bool
    """Only measured, never trained on."""
    continuous: bool = False
    """It names its window or scenario: agents of the same ones are compared."""
    answers: str = ""
    """A hash of what the agent did, to tell identical attempts."""
    practice: bool = False
    """Learned from, and no evidence of how a model does: its task was chosen for its difficulty."""
    key_id: str = ""
    """The key that it came with; empty: nobody knows. What a message says of it counts from gateways alone."""
    many: bool = True
    """Whether that key may speak for many users."""
    request: str = ""
    """A hash of what was asked and shown: attempts at one question are known, whatever it is called."""


@dataclass(frozen=True, slots=True)
class AdmittedFeedback:
    """A user's word ready to be stored."""

    feedback_id: str
    content_hash: bytes
    body: bytes
    trajectory_id: str | None
    episode_id: str | None
    inference_id: str | None
    user_id: str | None
    principal: str = ""
    """Whose key it came with; the door knows."""
    trusted: bool = False
    """Whether that key may speak for everybody."""
    many: bool = False
    """Whether it may speak for many users."""


INTAKE_ROUTES = ("http", "sdk", "steps", "nats", "otel", "gateway", "replay", "repair")
"""By which way a trajectory came into the store."""
DECIDING_STAGES = ("trigger", "train", "validate", "deploy", "monitor")
"""Stages whose decisions stand in the journal."""


@dataclass(frozen=True, slots=True)
class StoredTrajectory:
    """A trajectory as it stands in the store."""

    seq: int
    door: str
    stored: datetime
    admitted: Admitted


@dataclass(frozen=True, slots=True)
class OutboxEntry:
    """A message that follows from a commit and has not been acknowledged by the bus."""

    seq: int
    subject: str
    msg_id: str
    payload: bytes


@dataclass(frozen=True, slots=True)
class Receipt:
    """The bus took an outbox entry and keeps it there."""

    seq: int
    stream: str
    stream_seq: int


@dataclass(frozen=True, slots=True)
class StoredDeadLetter:
    """A dead letter in the store."""

    seq: int
    stage: str
    letter: DeadLetter
    replayed: datetime | None
    sender: Sender = NOBODY
    more: int = 0
    """How many were refused alike, of which no letter is kept."""


class RejectedMessage(msgspec.Struct, frozen=True, tag=True):
    """A message that can never be taken: why, and what of it may be kept."""

    reason: Reason
    detail: str
    """Redacted, as is the payload."""
    sha256: str
    payload: str | None = None
    """None when it could not be redacted."""
    user_id: str | None = None
    """Whose it seems to be, so that erasing a user finds it."""


@dataclass(frozen=True, slots=True)
class StreamMessage:
    """A message of a stream, on its way through a stage."""

    stream: str
    subject: str
    seq: int
    deliveries: int
    payload: bytes
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class OpenStep:
    """A step as it was stored: redacted, with the hash of what was sent."""

    step: int
    body: bytes
    raw_hash: bytes


@dataclass(frozen=True, slots=True)
class OpenTrajectory:
    """A trajectory that has begun and not ended."""

    head: bytes
    steps: tuple[OpenStep, ...]
    user_id: str | None = None


@dataclass(frozen=True, slots=True)
class Snippet:
    """A piece of Python that parses."""

    text: str
    origin: str
    """Where it was found, such as `turn 3`."""
    statements: int


@dataclass(frozen=True, slots=True)
class LintReport:
    """What our own tools say of the code found; a part is None when its tool could not say."""

    score: float | None
    """0 to 10, as pylint counts."""
    sentence: str
    statements: int = 0
    counts: dict[str, int] | None = None
    """error, warning, refactor, convention."""
    security: dict[str, int] | None = None
    """high, medium, low."""


@dataclass(frozen=True, slots=True)
class ScoredFacts:
    """What one trajectory took; None where nobody measured."""

    domain: str
    complexity: float
    turns: int
    seconds: float | None
    tokens: float | None


@dataclass(frozen=True, slots=True)
class NewReward:
    """The first revision of a reward, and what the past will remember of it."""

    trajectory_seq: int
    reward: Reward
    raw: dict[str, float]
    facts: ScoredFacts
    episode_id: str | None
    agent_id: str
    principal: str
    pnl: float | None
    balance: float | None
    infra_error: bool
    verified: float | None = None
    """How well it went, as something that checks it says."""
    reported: float | None = None
    """How well it went, whoever says so."""
    feedback: float | None = None
    """What users say; None when nobody has spoken."""
    task_id: str = ""
    continuous: bool = False
    answers: str = ""
    key_id: str = ""
    """The key that it came with, where that may not speak for many users."""
    gateway: bool = False
    """A gateway recorded it, so that the model that it names has answered."""


@dataclass(frozen=True, slots=True)
class ScoredMember:
    """One trajectory of a group, as far as comparing needs it."""

    window_id: str
    scenario_id: str
    trajectory_id: str
    agent_id: str
    reward: float | None = None
    """The normalised total; None until it is scored."""
    raw_total: float | None = None
    pnl: float | None = None
    balance: float | None = None
    infra_error: bool = False
    seq: int = 0
    verified: float | None = None
    judged: float | None = None
    reported: float | None = None
    feedback: float | None = None
    task_id: str = ""
    model: str = ""
    continuous: bool = True
    answers: str = ""
    compared_with: str = ""
    """The group's key; empty: its window and scenario."""
    domain: str = "general"
    key_id: str = ""
    """The key that it came with, where that may not speak for many users."""

    @property
    def group(self) -> str:
        return self.compared_with or f"{self.window_id}/{self.scenario_id}"

    @property
    def order(self) -> float:
        return float(self.seq)


@dataclass(frozen=True, slots=True)
class FeedbackRow:
    """A user's word: of which trajectory, if that is known, and is it scored yet?"""

    seq: int
    trajectory_id: str | None
    episode_id: str | None
    owner: str | None
    scored: bool
    trajectory_seq: int = 0

    def waits(self, scored_to: int) -> bool:
        """Its trajectory gets its first reward later. One that was passed and has none was set aside."""
        known = self.trajectory_id is not None
        return known and not self.scored and self.trajectory_seq > scored_to


@dataclass(frozen=True, slots=True)
class JudgedGroup:
    """A group that a judge has dealt with: what came of it, and what it cost."""

    window_id: str
    scenario_id: str
    judge: str
    judged: bool
    reason: str
    prompt_tokens: int
    completion_tokens: int
    usd: float
    tries: int = 1
    """How often it was asked about."""
    first: datetime | None = None
    """When, first."""
    again: datetime | None = None
    """When it is asked about again; None: it is judged, or given up until a person wants it."""


@dataclass(frozen=True, slots=True)
class JudgeBacklog:
    """How groups stand with the judge."""

    judged: int = 0
    waiting: int = 0
    """They could not be judged, and are asked about again."""
    given_up: int = 0
    oldest: datetime | None = None
    """When the first of those that wait was asked about first."""


@dataclass(frozen=True, slots=True)
class JudgeUse:
    """What judging has cost in the last day, beside what it may; None: no limit."""

    tokens: int
    usd: float
    max_tokens: int | None
    max_usd: float | None
    spent: bool
    """Whether the next question would cost more than is left."""


@dataclass(frozen=True, slots=True)
class RewardDrop:
    """What a model earns now, what the same principals gave it before, and how far chance sets these apart."""

    mean: float
    baseline: float
    error: float
    """The standard error of the difference."""


ACTIVE_JOBS = ("queued", "running")
"""States of a job that has not ended."""


class Renewed(StrEnum):
    """What became of a worker's claim on a job."""

    KEPT = "kept"
    CANCEL = "cancel"
    """Still its own, and somebody wishes that it ends."""
    LOST = "lost"
    """It came too late: the job is another worker's, or over."""


@dataclass(frozen=True, slots=True)
class Job:
    """A training job as it stands in the store."""

    seq: int
    job_id: str
    state: str
    """`queued`, `running`, `completed`, `failed` or `cancelled`; `status` says the same."""
    priority: int
    """Its rank; 0 is the most urgent."""
    reason: str
    request: TrainingRequest
    recipe: bytes
    """JSON: what became of the request, and of its failures."""
    status: TrainingStatus
    """The newest."""
    failures: bytes
    """JSON: the attempts that did not end well, oldest first."""
    attempt: int
    """How often somebody has begun it."""
    created: datetime
    not_before: datetime
    started: datetime | None
    ended: datetime | None
    cancel: bool
    """Somebody wishes that it ends."""
    worker: str | None
    lease: datetime
    """Until then it is its worker's; afterwards anybody's."""
    snapshot: str | None
    covers_seq: int
    """The newest trajectory when it was asked for: what came before it needs no further job."""


@dataclass(frozen=True, slots=True)
class ModelRow:
    """A model that training made."""

    version: int
    model_id: str
    job_id: str
    base_model: str
    parent: str | None
    snapshot: str
    path: str
    card: str
    state: str
    """`trained`, and what validation and deployment make of it; `deployed` while it answers."""
    samples: int
    final_reward: float | None
    baseline_reward: float | None
    """Its raw reward when it was promoted: what a fall is measured from."""
    created: datetime
    deployed: datetime | None
    seal: str = ""
    """Of the manifest that training wrote; "": nobody knows it, as of a model that training did not make."""


@dataclass(frozen=True, slots=True)
class Decision:
    """What a stage decided, on what, and why: enough to try it again."""

    decision_id: str
    stage: str
    kind: str
    sentence: str
    inputs: bytes
    """JSON."""
    outcome: bytes
    """JSON."""
    decided: datetime
    seq: int = 0
    about: str = ""
    """The model or job; empty: of an older row nobody knows it."""


@dataclass(frozen=True, slots=True)
class EpisodeFacts:
    """One episode, or one task of a validation, as far as failures are compared with successes."""

    ref: str
    """The trajectory, or the task."""
    candidate: bool
    """Of the model that is looked into; False: of the one beside it."""
    failed: bool
    kind: str = ""
    """What went wrong, in a fixed word; of a failed one."""
    labels: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Feature → the values that it has."""
    numbers: Mapping[str, float] = field(default_factory=dict)
    """Feature → its number."""


@dataclass(frozen=True, slots=True)
class Signals:
    """What the store says that bears on when to train."""

    deployed: ModelRow | None
    """The model that answers now."""
    values: tuple[tuple[Speaker, float], ...]
    """(principal, raw reward) of its newest trajectories that no job was asked for on yet."""
    new: int
    """Trajectories since the last training of the policy that the next one starts from, and of models
    that are not ours, counted up to a limit; those that running and queued jobs cover are left out."""
    newest_seq: int
    active: tuple[Job, ...]
    failed: dict[str, datetime]
    """Reason → when its newest job failed for good; absent when that one did not."""
    last_training: datetime | None
    """When the newest job that trained was begun."""
    last_slot: datetime | None
    """The newest time of the schedule that was dealt with; None: the schedule is new."""
    pending: str | None = None
    """The model that is being validated, waits for its rollout or is in it."""
    before: tuple[tuple[Speaker, float], ...] = ()
    """(principal, raw reward) of the newest trajectories that it made before its promotion."""


@dataclass(frozen=True, slots=True)
class AuditEntry:
    """What an operator did."""

    who: str
    """`key` and the key's id."""
    what: str
    about: str
    """The id of what it was done to."""
    detail: bytes
    """JSON."""
    written: datetime
    before: bytes | None = None
    """JSON: how it stood before; None: nothing that stood before was changed."""
    after: bytes | None = None
