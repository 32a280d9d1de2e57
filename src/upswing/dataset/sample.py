"""What may training see of a trajectory? A type that has no place for what the judge knows.

`metadata.ground_truth` tells what really happened; a policy that read it would learn to cheat. So
training never gets a trajectory, only a `Sample`, and a `Sample` takes over named fields one by
one: what nobody named cannot slip in.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from upswing.contracts.steps import tree


class SampleTurn(msgspec.Struct, frozen=True, omit_defaults=True):
    """One step as the policy saw and took it."""

    observation: Any
    action: Any
    success: bool
    output: Any = None
    thoughts: list[str] = []
    token_ids: list[int] | None = None
    logprobs: list[float] | None = None


class Sample(msgspec.Struct, frozen=True, omit_defaults=True):
    """A trajectory as training sees it."""

    trajectory_id: str
    agent_id: str
    instructions: str
    turns: list[SampleTurn]
    reward: float
    """The judge's score where the group was judged, else the total."""
    raw_total: float
    window_id: str
    scenario_id: str
    model: str
    on_policy: bool = False
    """Whether every turn has the exact token ids that the model produced."""


def sample_of(
    body: Mapping[str, Any],
    *,
    reward: float,
    raw_total: float,
    window_id: str,
    scenario_id: str,
) -> Sample:
    """The sample of a stored trajectory."""
    metadata = tree(body["metadata"])
    tokens = {
        part["turn_id"]: part
        for part in metadata.get("tokens") or []
        if isinstance(part, Mapping) and "turn_id" in part
    }
    turns = [_turn(turn, tokens.get(turn["turn_id"], {})) for turn in body["turns"]]
    return Sample(
        trajectory_id=body["trajectory_id"],
        agent_id=body["agent_id"],
        instructions=body["task_context"]["instructions"],
        turns=turns,
        reward=reward,
        raw_total=raw_total,
        window_id=window_id,
        scenario_id=scenario_id,
        model=metadata["model"],
        on_policy=all(turn.token_ids is not None for turn in turns),
    )


def _turn(turn: Mapping[str, Any], tokens: Mapping[str, Any]) -> SampleTurn:
    return SampleTurn(
        observation=turn["observation"]["content"],
        action={key: value for key, value in turn["action"].items() if key in _ACTION},
        success=turn["result"]["success"],
        output=turn["result"].get("output"),
        thoughts=turn.get("thought_process") or [],
        token_ids=tokens.get("ids"),
        logprobs=tokens.get("logprobs"),
    )


_ACTION = ("type", "tool_name", "tool_args", "raw_response")
