"""What does the controller of rollouts need from the world? Three ports, and the values that cross them.

| port      | promises                                                                         |
|-----------|----------------------------------------------------------------------------------|
| `RolloutStore`   | a change is one transaction, and only the newest controller's is taken            |
| `PlanBoardPort`   | a plan is replaced whole, and never by an older controller's                      |
| `ModelServing` | a model answers at a URL from when `ensure` returns                               |

What a rollout is, the store does not know: it keeps JSON, and the columns beside it that are asked for.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Protocol

from upswing.contracts.traffic import Model, Plan, Switches, Tally
from upswing.errors import Transient
from upswing.records import AuditEntry, Decision, ModelRow

LEASE = timedelta(seconds=45)
"""Of a plan with a canary, in real time: the baseline answers alone when it has passed.

Whoever has not been heard of for as long leads no more.
"""


class LeadershipLost(Transient):
    """Another controller has taken over: this one writes nothing more."""


class ForeignPlan(LeadershipLost):
    """A loop with another store writes the plan on this bus: this one does not lead there."""


def check_plan_write(
    held: Plan | None, plan: Plan, age: float | None = None, lease: timedelta = LEASE
) -> None:
    """May `plan` take the place of what is held? `LeadershipLost` or `ForeignPlan` when it may not.

    | held is                       | of the same store, or nobody's | of another store |
    |-------------------------------|--------------------------------|------------------|
    | kept up, with any fence       | –                              | Foreign          |
    | of a higher fence             | Superseded                     | Superseded       |
    | anything else                 | –                              | –                |

    So of two loops on one bus the first keeps it for as long as it lives, whatever their fences are.
    `age`: the seconds since the held one was written, where the bus says so.
    """
    if held is None:
        return
    if (
        held.origin
        and plan.origin
        and held.origin != plan.origin
        and _kept_up(held, plan, age, lease)
    ):
        raise ForeignPlan(
            f"Another loop, with another store ({held.origin}), writes the traffic plan on this bus, so "
            "this one does not lead: give each loop a bus of its own (NATS_URL), or stop the other one."
        )
    if held.fence > plan.fence:
        raise LeadershipLost(
            f"A newer controller writes the traffic plan (fence {held.fence}, not {plan.fence})."
        )


def _kept_up(held: Plan, plan: Plan, age: float | None, lease: timedelta) -> bool:
    """Was it written within a lease? By the bus's clock; else by both, where one that was wrong rules nobody out."""
    if age is not None:
        return age <= lease.total_seconds()
    if held.written is None or plan.written is None:
        return False
    return abs(plan.written - held.written) <= lease


@dataclass(frozen=True, slots=True)
class RolloutRow:
    """A rollout as it is kept."""

    rollout_id: str
    model_id: str
    baseline_id: str
    state: str
    share: float
    body: bytes
    """JSON: the whole of it."""


@dataclass(frozen=True, slots=True)
class RecordRow:
    """What a rollout has shown, and what that was read from."""

    rollout_id: str
    reward_seq: int
    complaint_seq: int
    body: bytes
    """JSON: the whole of it."""


@dataclass(frozen=True, slots=True)
class ModelStateChange:
    """A model's next state, and the states that it may come from."""

    model_id: str
    state: str
    before: tuple[str, ...]
    deployed: datetime | None = None
    """When it began to answer; None: as it was."""
    reward: float | None = None
    """What it earns at its promotion; None: as it was."""


@dataclass(frozen=True, slots=True)
class RegisteredModel:
    """A model that training did not make."""

    model_id: str
    base_model: str
    path: str
    """A checkpoint's folder, or the URL of a server that has it."""


@dataclass(frozen=True, slots=True)
class Incident:
    """Something that a person has to hear of."""

    incident_id: str
    rollout_id: str | None
    model_id: str
    reason: str
    sentence: str
    metrics: bytes
    """JSON: all that was known."""
    happened: datetime


@dataclass(frozen=True, slots=True)
class EvidencePoint:
    """The evidence of a rollout at one time."""

    rollout_id: str
    at: datetime
    share: float
    rewards: int
    """Of the candidate."""
    difference: float | None
    lower: float | None
    upper: float | None
    requests: int
    errors: int


@dataclass(frozen=True, slots=True)
class TrafficStep:
    """Who gets which percentage from then on, and what happened to whom."""

    at: datetime
    shares: dict[str, float]
    events: dict[str, str]
    """Model → `deployed`, `ramped`, `promoted` or `rollback`."""
    decision_id: str = ""


@dataclass(frozen=True, slots=True)
class DeploymentChange:
    """What changes together, or not at all."""

    now: datetime
    rollouts: tuple[RolloutRow, ...] = ()
    records: tuple[RecordRow, ...] = ()
    models: tuple[ModelStateChange, ...] = ()
    newcomer: RegisteredModel | None = None
    decisions: tuple[Decision, ...] = ()
    messages: tuple[bytes, ...] = ()
    """model.deployed.v1, for the outbox."""
    incidents: tuple[Incident, ...] = ()
    audit: tuple[AuditEntry, ...] = ()
    points: tuple[EvidencePoint, ...] = ()
    traffic: TrafficStep | None = None
    """None: everybody gets what they got before."""


@dataclass(frozen=True, slots=True)
class LeaderRow:
    """Who leads, and when it was last heard of."""

    fence: int
    holder: str
    heartbeat: datetime
    """Real time."""
    held: datetime | None
    """When its plan last held, by the clock of ramps; None: never."""


MOST_WITHDRAWN = 200
"""Models that a plan names as withdrawn: nobody has an episode open with an older one."""


@dataclass(frozen=True, slots=True)
class DeploymentRows:
    """How everything stands."""

    rollouts: tuple[RolloutRow, ...]
    """Those that are not over, the oldest first; succeeded ones are not."""
    models: tuple[ModelRow, ...]
    """Those being rolled out, those that answer, and all that the rollouts name."""
    withdrawn: tuple[str, ...] = ()
    """Names of the newest that were rolled back, aborted or retired; at most `MOST_WITHDRAWN`."""


@dataclass(frozen=True, slots=True)
class ObservedReward:
    """The first reward of an episode that chance gave to a model."""

    seq: int
    model: str
    rollout: str
    """The plan's, when the episode began."""
    raw_total: float | None
    """None when it is missing or no number."""
    step: str = ""
    """The shares of the plan, when the episode began."""
    completion: float | None = None
    """How far the task itself was completed; None: nobody says."""
    segments: tuple[str, ...] = ()
    """Parts of the traffic that it belongs to, such as `domain coding`."""
    by_user: bool = False
    """Chance chose for its user, whose first episode it is."""
    key: str = ""
    """The key that it came with, where that may not speak for many users."""
    user: str = ""
    """A hash of whom it is told of."""
    lost: bool = False
    """It came back and cannot be compared: another model had to finish it, or nobody did."""


@dataclass(frozen=True, slots=True)
class ObservedComplaint:
    """The first complaint about such an episode."""

    seq: int
    model: str
    rollout: str
    started: datetime
    """When the episode began, in real time."""
    step: str = ""
    """The shares under which it was drawn, as its gateway had them."""
    key: str = ""
    user: str = ""
    """As those of a reward."""


@dataclass(frozen=True, slots=True)
class RewardBatch:
    rows: tuple[ObservedReward, ...]
    upto: int
    """Everything up to this sequence number has been looked at."""
    more: bool = False
    several: bool = False
    """Lately more than one key has spoken."""


MOST_PENDING = 500
"""Complaints that wait at once; whoever makes up more than that pushes the oldest out."""


@dataclass(frozen=True, slots=True)
class ComplaintBatch:
    rows: tuple[ObservedComplaint, ...]
    upto: int
    more: bool = False
    pending: tuple[int, ...] = ()
    """Sequence numbers up to `upto` of complaints whose trajectory may still come: ask for them again."""
    several: bool = False


@dataclass(frozen=True, slots=True)
class RewardMean:
    """What a model's newest episodes earned, raw."""

    mean: float | None
    count: int


class RolloutStore(Protocol):
    """The rows. Every write is durable when it returns, and `LeadershipLost` unless the fence is the newest."""

    async def take_over(
        self, holder: str, now: datetime, above: int = 0
    ) -> tuple[int, LeaderRow | None]:
        """The new fence, higher than any before and than `above`, and who led before."""
        ...

    async def leader(self) -> LeaderRow | None: ...

    async def origin(self, new: str) -> str:
        """The name of this store, which never changes: `new`, if it has none yet."""
        ...

    async def heartbeat(self, fence: int, now: datetime, held: datetime | None) -> None:
        """The leader lives; with `held`, its plan holds at that time of ramps."""
        ...

    async def deployment_rows(self) -> DeploymentRows: ...

    async def list_rollouts(self, limit: int = 100) -> Sequence[RolloutRow]:
        """All rollouts, the newest first."""
        ...

    async def latest_rollout(self, model_id: str) -> RolloutRow | None:
        """A model's newest rollout, over or not."""
        ...

    async def model(self, model_id: str) -> ModelRow | None: ...

    async def models(self) -> Sequence[ModelRow]: ...

    async def record(self, rollout_id: str) -> bytes | None: ...

    async def commit(self, fence: int, change: DeploymentChange) -> None:
        """All of it. `Conflict` when a model is not in a state that it may come from."""
        ...

    async def newest_sequences(self) -> tuple[int, int]:
        """The newest sequence numbers of rewards and of feedback."""
        ...

    async def rewards_after(
        self, seq: int, models: Sequence[str], limit: int = 500
    ) -> RewardBatch: ...

    async def complaints_after(
        self, seq: int, models: Sequence[str], limit: int = 500, pending: Sequence[int] = ()
    ) -> ComplaintBatch:
        """Those behind `seq`, and before them those that were put aside and are known now."""
        ...

    async def mean_reward(self, model_id: str, most: int = 200) -> RewardMean: ...

    async def incidents(self, limit: int = 100) -> Sequence[Incident]: ...

    async def audit(self, limit: int = 100) -> Sequence[AuditEntry]: ...


class PlanBoardPort(Protocol):
    """Where gateways read the plan and write their counts."""

    async def write(self, plan: Plan) -> None:
        """What `refuse` raises; `Transient` when it cannot be reached."""
        ...

    async def read(self) -> Plan | None: ...

    async def check(self, plan: Plan) -> None:
        """What `write` would raise, where nothing is written."""
        ...

    async def tallies(self) -> Mapping[str, Tally]:
        """By gateway."""
        ...

    async def gateways(self) -> Mapping[str, Switches]:
        """The gateways that live, and what each may serve."""
        ...

    async def follow(self, wake: Callable[[], None]) -> None:
        """Call `wake` whenever a gateway has counted, comes or goes, for ever."""
        ...


class ModelServing(Protocol):
    """Servers of models."""

    @property
    def platform(self) -> str:
        """As announcements call it."""
        ...

    async def ensure(self, model: ModelRow | str) -> Model:
        """Where this model, or the base of this name, answers from now on.

        `Rejected` when its checkpoint can never be served, `Transient` when it cannot be now.
        """
        ...

    async def check(self, model_id: str, path: str) -> Mapping[str, Any]:
        """What can the server do that this path leads to, if it leads to one?

        `Rejected` when the model can never be had there.
        """
        ...

    async def alive(self, model: Model) -> bool:
        """Does its server know it, right now?"""
        ...

    async def release(self, model_id: str) -> None:
        """Nobody asks for it any more; requests under way end first."""
        ...
