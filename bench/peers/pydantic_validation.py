"""How quickly does pydantic turn bytes into a checked trajectory?

    python pydantic_validation.py TRAJECTORIES.jsonl

The same fields, enums, bounds and types as trajectory.v1; `model_validate_json`
parses and checks in one step, which is its quickest use.
"""

import json
import sys
from importlib.metadata import version
from pathlib import Path
from typing import Annotated, Any, Literal
from uuid import UUID

from pydantic import AwareDatetime, BaseModel, ConfigDict, Field, ValidationError
from rounds import answer_rounds

Json = dict[str, Any]
NonNegative = Annotated[float, Field(ge=0)]
Count = Annotated[int, Field(ge=0)]


class Closed(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Open(BaseModel):
    model_config = ConfigDict(extra="allow", frozen=True)


class Context(Closed):
    memory_state: Json | None = None
    available_tools: list[str] | None = None
    subordinates_active: Count | None = None


class Observation(Closed):
    type: Literal["user_message", "tool_result", "subordinate_response", "system_message"]
    content: str | Json
    context: Context | None = None


class Action(Closed):
    type: Literal["tool_call", "subordinate_call", "response", "memory_update"]
    tool_name: str | None = None
    tool_args: Json | None = None
    raw_response: str | None = None


class Result(Closed):
    success: bool
    output: str | Json | None = None
    error: str | None = None
    execution_time_ms: NonNegative | None = None


class Turn(Closed):
    turn_id: Annotated[int, Field(ge=1)]
    timestamp: AwareDatetime
    observation: Observation
    thought_process: list[str] | None = None
    action: Action
    result: Result


class TaskContext(Open):
    task_id: str
    instructions: str
    complexity_score: Annotated[float, Field(ge=0, le=1)] | None = None
    domain: (
        Literal["coding", "research", "data_analysis", "general", "debugging", "writing"] | None
    ) = None


class Metadata(Open):
    model: str
    temperature: Annotated[float, Field(ge=0, le=2)] | None = None
    total_tokens: Count | None = None
    total_cost_usd: NonNegative | None = None


class Trajectory(Closed):
    trajectory_id: UUID
    session_id: str
    agent_id: str
    subordinate_profile: str | None = None
    start_timestamp: AwareDatetime
    end_timestamp: AwareDatetime
    turns: Annotated[list[Turn], Field(min_length=1)]
    task_context: TaskContext
    metadata: Metadata


def main() -> None:
    items = Path(sys.argv[1]).read_bytes().splitlines()
    broken = json.loads(items[0])
    broken["turns"][-1]["turn_id"] = 0
    try:
        Trajectory.model_validate_json(json.dumps(broken))
    except ValidationError:
        pass
    else:
        sys.exit("pydantic accepts a broken trajectory: nothing would be compared.")
    told = {"pydantic": version("pydantic"), "pydantic-core": version("pydantic-core")}
    answer_rounds(Trajectory.model_validate_json, items, told)


if __name__ == "__main__":
    main()
