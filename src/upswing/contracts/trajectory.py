"""What did the agent do? trajectory.v1: one task from the first observation to the last result."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal, get_args

from msgspec import UNSET, Meta, Struct, UnsetType

from upswing.contracts.wire import (
    Count,
    Id,
    Json,
    Known,
    Message,
    NonNegative,
    Share,
    Timestamp,
    Wire,
)

Domain = Literal["coding", "research", "data_analysis", "general", "debugging", "writing"]
DOMAINS = frozenset(get_args(Domain))
PROFILES = frozenset({"researcher", "developer", "hacker", "rl-trainer"})
"""The profiles we write. Readers accept any string: agents invent profiles."""


class Context(Wire, frozen=True, kw_only=True):
    """What the agent had at hand when it observed."""

    memory_state: Json | UnsetType = UNSET
    available_tools: list[str] | UnsetType = UNSET
    subordinates_active: Count | UnsetType = UNSET


class Observation(Wire, frozen=True, kw_only=True):
    """What the agent saw."""

    type: Literal["user_message", "tool_result", "subordinate_response", "system_message"]
    content: Annotated[str | Json, Meta(description="Text, or an object for structured input.")]
    context: Context | UnsetType = UNSET


class Action(Wire, frozen=True, kw_only=True):
    """What the agent did about it."""

    type: Literal["tool_call", "subordinate_call", "response", "memory_update"]
    tool_name: str | UnsetType = UNSET
    tool_args: Json | UnsetType = UNSET
    raw_response: Annotated[str, Meta(description="The full LLM text.")] | UnsetType = UNSET


class Result(Wire, frozen=True, kw_only=True):
    """What came of it."""

    success: bool
    output: str | Json | UnsetType | None = UNSET
    error: str | UnsetType | None = UNSET
    execution_time_ms: NonNegative | UnsetType = UNSET


class Turn(Wire, frozen=True, kw_only=True):
    """One step: observation, action, result."""

    turn_id: Annotated[int, Meta(ge=1, description="Rises from turn to turn.")]
    timestamp: Timestamp
    observation: Observation
    thought_process: list[str] | UnsetType = UNSET
    action: Action
    result: Result


class TaskContext(Known, frozen=True, kw_only=True):
    """What was asked; open to more keys."""

    task_id: str
    instructions: str
    complexity_score: Share | UnsetType = UNSET
    domain: Domain | UnsetType = UNSET


class TrajectoryMetadata(Known, frozen=True, kw_only=True):
    """Which model, how warm, at what price; open to more keys.

    Upswing's own keys live here too: window_id, window_hours, scenario_id, episode_id,
    policy_version, user_id, outcome, test_results, linter_results, security_scan, environment,
    ground_truth, infra_error and tokens. They are read where they have the expected shape.
    """

    model: str
    temperature: Annotated[float, Meta(ge=0, le=2)] | UnsetType = UNSET
    total_tokens: Count | UnsetType = UNSET
    total_cost_usd: NonNegative | UnsetType = UNSET


class Trajectory(Message, frozen=True, kw_only=True):
    """A multi-turn interaction of one agent with one task."""

    OPEN: ClassVar[dict[str, type[Struct]]] = {
        "task_context": TaskContext,
        "metadata": TrajectoryMetadata,
    }

    trajectory_id: Id
    session_id: str
    agent_id: str
    subordinate_profile: (
        Annotated[
            str,
            Meta(description="`researcher`, `developer`, `hacker`, `rl-trainer`, or any other."),
        ]
        | UnsetType
        | None
    ) = UNSET
    start_timestamp: Timestamp
    end_timestamp: Timestamp
    turns: Annotated[list[Turn], Meta(min_length=1)]
    task_context: Json
    metadata: Json


__all__ = [
    "DOMAINS",
    "PROFILES",
    "Action",
    "Context",
    "Domain",
    "Observation",
    "Result",
    "TaskContext",
    "Trajectory",
    "TrajectoryMetadata",
    "Turn",
]
