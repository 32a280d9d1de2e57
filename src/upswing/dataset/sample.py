"""What may training see of a trajectory? A type that has no place for what the judge knows.

`metadata.ground_truth` tells what really happened; a policy that read it would learn to cheat. So
training never gets a trajectory, only a `Sample`, and a `Sample` takes over named fields one by
one: what nobody named cannot slip in.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from upswing.contracts.steps import finite_number_or_none, object_or_wrapped
from upswing.redact.messages import is_token_list


class SampleTurn(msgspec.Struct, frozen=True, omit_defaults=True):
    """One step as the policy saw and took it."""

    observation: Any
    """Text, or an object for structured input."""
    action: Any
    """`type`, and as far as recorded `tool_name`, `tool_args` and `raw_response`."""
    success: bool
    output: Any = None
    thoughts: list[str] = []
    token_ids: list[int] | None = None
    """The ids that are new since the turn before, as the server counted them."""
    logprobs: list[float] | None = None
    observation_type: str = "user_message"
    """`user_message`, `tool_result`, `subordinate_response` or `system_message`."""
    error: str | None = None
    turn_id: int = 0
    context_only: bool = False
    """What was said is read again, and not learned."""


class Sample(msgspec.Struct, frozen=True, omit_defaults=True):
    """A trajectory as training sees it."""

    trajectory_id: str
    agent_id: str
    instructions: str
    turns: list[SampleTurn]
    reward: float
    """The score from 0 to 1: in a group by its one source, else by the best one that says anything of it."""
    raw_total: float
    window_id: str
    scenario_id: str
    model: str
    """The model that acted."""
    on_policy: bool = False
    """Whether every turn has the exact token ids that the model produced."""
    task_id: str = ""
    domain: str = "general"
    revision: int = 0
    """Of the reward."""
    held_out: bool = False
    """Measured, and not trained on."""
    turn_rewards: list[float] | None = None
    """One per turn, where turns were rewarded; a turn without one among them gained nothing."""
    group: str = ""
    """Whom it is compared with; empty: its window and scenario."""
    temperature: float | None = None
    """At which it was sampled, where that was recorded; 0 means greedily."""
    tools: list[dict[str, Any]] | None = None
    """Those the model could call, as OpenAI has them; where only names were recorded, only those."""
    score_scale: str = ""
    """Whose score the reward of a single attempt is; those of another scale say nothing about it."""


def build_sample(
    body: Mapping[str, Any],
    *,
    reward: float,
    raw_total: float,
    window_id: str,
    scenario_id: str,
    domain: str = "general",
    revision: int = 0,
    held_out: bool = False,
    group: str = "",
    score_scale: str = "",
) -> Sample:
    """The sample of a stored trajectory."""
    metadata = object_or_wrapped(body["metadata"])
    tokens = _tokens_by_turn(metadata.get("tokens"))
    turns = [_build_turn(turn, tokens.get(turn["turn_id"], {})) for turn in body["turns"]]
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
        task_id=body["task_context"]["task_id"],
        domain=domain,
        revision=revision,
        held_out=held_out,
        turn_rewards=_parse_turn_rewards(metadata.get("step_rewards"), len(turns)),
        group=group,
        temperature=_parse_temperature(metadata.get("temperature")),
        tools=_offered_tools(metadata.get("tools"), body["turns"]),
        score_scale=score_scale,
    )


def with_demonstration(sample: Sample, answer: str) -> Sample:
    """The same situation with the answer that would have been right; nobody recorded its tokens.

    The words of earlier turns are kept as what was read, and only the answer is to be learned.
    """
    *before, last = [
        msgspec.structs.replace(turn, token_ids=None, logprobs=None, context_only=True)
        for turn in sample.turns
    ]
    right = {"type": "response", "raw_response": answer}
    return msgspec.structs.replace(
        sample,
        turns=[
            *before,
            msgspec.structs.replace(
                last, action=right, success=True, error=None, context_only=False
            ),
        ],
        on_policy=False,
        turn_rewards=None,
    )


def _build_turn(turn: Mapping[str, Any], tokens: Mapping[str, Any]) -> SampleTurn:
    return SampleTurn(
        observation=turn["observation"]["content"],
        action={key: value for key, value in turn["action"].items() if key in _ACTION_FIELDS},
        success=turn["result"]["success"],
        output=turn["result"].get("output"),
        thoughts=turn.get("thought_process") or [],
        token_ids=tokens.get("ids"),
        logprobs=tokens.get("logprobs"),
        observation_type=turn["observation"]["type"],
        error=turn["result"].get("error"),
        turn_id=turn["turn_id"],
    )


_MAX_TOKEN_ID = 2**31
"""No vocabulary has as many."""
_ACTION_FIELDS = ("type", "tool_name", "tool_args", "raw_response")


def _tokens_by_turn(recorded: object) -> dict[int, dict[str, Any]]:
    """Token ids and logprobs by turn, where they are numbers that can be used.

    >>> _tokens_by_turn([{"turn_id": 1, "ids": [5, 7], "logprobs": [-0.5, 0]}, {"turn_id": 2, "ids": ["x"]}])
    {}
    >>> _tokens_by_turn([{"turn_id": 1, "ids": [5, 7], "logprobs": [-0.5, 0]}, {"turn_id": 2, "ids": [1.5]}])
    {1: {'ids': [5, 7], 'logprobs': [-0.5, 0.0]}}
    """
    if not isinstance(recorded, list) or not is_token_list(recorded):
        return {}
    return {
        part["turn_id"]: {
            "ids": part["ids"],
            "logprobs": [float(n) for n in part["logprobs"]] if "logprobs" in part else None,
        }
        for part in recorded
        if "ids" in part
        and all(type(n) is int and 0 <= n < _MAX_TOKEN_ID for n in part["ids"])
        and all(finite_number_or_none(n) is not None for n in part.get("logprobs", []))
    }


def tool_stub(name: str) -> dict[str, Any]:
    """A tool of which only the name is known."""
    schema = {"type": "object", "properties": {}}
    return {"type": "function", "function": {"name": name, "description": "", "parameters": schema}}


def _offered_tools(
    recorded: object, turns: Sequence[Mapping[str, Any]]
) -> list[dict[str, Any]] | None:
    """The schemas of a record, else the names that the first turn had at hand.

    >>> _offered_tools([{"type": "function", "function": {"name": "add"}}], [])
    [{'type': 'function', 'function': {'name': 'add'}}]
    >>> at_hand = [{"observation": {"context": {"available_tools": ["add"]}}}]
    >>> [tool["function"]["name"] for tool in _offered_tools("x", at_hand)], _offered_tools(None, [])
    (['add'], None)
    """
    if isinstance(recorded, list) and recorded and all(isinstance(each, dict) for each in recorded):
        return recorded
    context = turns[0]["observation"].get("context") if turns else None
    names = context.get("available_tools") if isinstance(context, Mapping) else None
    return [tool_stub(str(name)) for name in names] if isinstance(names, list) and names else None


def _parse_temperature(recorded: object) -> float | None:
    """The temperature of a record, where it is one.

    >>> _parse_temperature(0.7), _parse_temperature(-1), _parse_temperature("hot"), _parse_temperature(None)
    (0.7, None, None, None)
    """
    found = finite_number_or_none(recorded)
    return float(found) if found is not None and 0 <= found <= 2 else None


def _parse_turn_rewards(recorded: object, turn_count: int) -> list[float] | None:
    """What each turn earned, or None when that is not told turn by turn.

    >>> _parse_turn_rewards([0.5, None], 2), _parse_turn_rewards([0.5], 2), _parse_turn_rewards([None, None], 2)
    ([0.5, 0.0], None, None)
    """
    if (
        not isinstance(recorded, Sequence)
        or isinstance(recorded, str)
        or len(recorded) != turn_count
    ):
        return None
    rewards = [finite_number_or_none(reward) for reward in recorded]
    readable = all(
        each is None or reward is not None for each, reward in zip(recorded, rewards, strict=True)
    )
    if not readable or all(reward is None for reward in rewards):
        return None
    return [0.0 if reward is None else float(reward) for reward in rewards]
