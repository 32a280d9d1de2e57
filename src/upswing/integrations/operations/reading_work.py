"""What did agents do, and what was it worth?"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Annotated, Any, Literal

from msgspec import Meta

from upswing.integrations.operations.formatting import (
    Identifier,
    Limit,
    Name,
    Span,
    figure,
    lines,
    more_page,
    value_text,
)
from upswing.integrations.operations.loop_port import LoopPort, path_of
from upswing.integrations.operations.operation import (
    LONGEST,
    Arguments,
    Link,
    Operation,
    OperationAnswer,
    bounded,
)
from upswing.integrations.operations.quoting import (
    WARNING,
    one_line,
    quoted,
    sentence,
    short_answer,
)

_CUT_NOTE = 100
"""Characters for the note that a list was cut short: how to go on stands behind it."""


class TrajectoriesArgs(Arguments, frozen=True):
    """Which ones."""

    since: Span | None = None
    model: Name | None = None
    agent: Identifier | None = None
    domain: Identifier | None = None
    outcome: Literal["success", "partial", "failure", "unknown"] | None = None
    min_reward: float | None = None
    max_reward: float | None = None
    text: Annotated[str, Meta(min_length=2, max_length=200)] | None = None
    limit: Limit = 10
    cursor: Annotated[str, Meta(max_length=2000)] | None = None


async def trajectories(loop: LoopPort, asked: TrajectoriesArgs) -> OperationAnswer:
    query = {name: getattr(asked, name) for name in asked.__struct_fields__}
    found = await loop.get("/v1/trajectories", **query)
    rows = found["trajectories"]
    told = lines((_trajectory_line(row) for row in rows), "No trajectory fits.")
    links = [_trajectory_link(row["trajectory_id"]) for row in rows[:5]]
    more = more_page(found)
    text = short_answer(told, LONGEST - len(more) - _CUT_NOTE) + more
    return OperationAnswer(text, links, {"next": found.get("next")})


def _trajectory_line(row: Mapping[str, Any]) -> str:
    excerpt = f"\n{quoted('match', row['excerpt'])}" if row.get("excerpt") else ""
    return (
        f"{row['trajectory_id']}  {row['stored'][:16]}  {one_line(row['agent_id'], 40)}  {one_line(row['model'], 60)}  "
        f"{row['domain']}  {row['turns']} turns  {row['outcome']}  reward {figure(row['reward'])}{excerpt}"
    )


def _trajectory_link(trajectory_id: str) -> Link:
    return Link(f"upswing://trajectories/{trajectory_id}", "The whole trajectory")


class TrajectoryArgs(Arguments, frozen=True):
    """Which one."""

    trajectory_id: Identifier
    turns: Annotated[int, Meta(ge=1, le=20, description="How many of its last turns, 1 to 20.")] = 4


async def trajectory(loop: LoopPort, asked: TrajectoryArgs) -> OperationAnswer:
    body = await loop.get(path_of("/v1/trajectories/{id}", id=asked.trajectory_id))
    turns = body["turns"]
    about = body["metadata"]
    told = [
        f"{len(turns)} turns of {one_line(body['agent_id'])}, model {one_line(about.get('model'))}, {body['start_timestamp']} to {body['end_timestamp']}.",
        WARNING,
        quoted("instructions", str(body["task_context"].get("instructions", ""))),
        *(_quoted_turn(turn) for turn in turns[-asked.turns :]),
    ]
    links = [
        _trajectory_link(asked.trajectory_id),
        Link(f"upswing://rewards/{asked.trajectory_id}", "Its reward, term by term"),
    ]
    return OperationAnswer(bounded("\n".join(told)), links, {"turns": len(turns)})


def _quoted_turn(turn: Mapping[str, Any]) -> str:
    action, result = turn["action"], turn["result"]
    tool = f" {one_line(action['tool_name'], 60)}" if action.get("tool_name") else ""
    head = f"turn {turn['turn_id']}: {turn['observation']['type']} → {action['type']}{tool} → {'ok' if result['success'] else 'failed'}"
    parts = [
        (f"turn {turn['turn_id']} saw", turn["observation"].get("content")),
        (f"turn {turn['turn_id']} said", action.get("raw_response") or action.get("tool_args")),
        (f"turn {turn['turn_id']} got", result.get("error") or result.get("output")),
    ]
    return "\n".join(
        [head, *(quoted(label, _short_text(value)) for label, value in parts if value)]
    )


def _short_text(value: Any) -> str:
    """Of several messages the last one: a system prompt says nothing of this turn."""
    messages = value.get("messages") if isinstance(value, Mapping) else None
    if isinstance(messages, list) and messages and isinstance(messages[-1], Mapping):
        value = messages[-1].get("content")
    return bounded(value if isinstance(value, str) else json.dumps(value, ensure_ascii=False), 700)


class RewardArgs(Arguments, frozen=True):
    """Whose."""

    trajectory_id: Identifier


async def reward(loop: LoopPort, asked: RewardArgs) -> OperationAnswer:
    found = await loop.get(path_of("/v1/rewards/{id}", id=asked.trajectory_id))
    about = found["metadata"]
    told = [
        f"Total {figure(found['total_reward'])} (raw {figure(about.get('raw_total'))}), {found['reward_type']}, revision {about.get('revision', 1)}.",
        WARNING,
        *(
            f"{one_line(name, 40)}: {figure(part['score'])} × {figure(part['weight'])} ({part['source']}) "
            + quoted("reason", bounded(str(part.get("reasoning", "")), 300))
            for name, part in found["reward_components"].items()
        ),
    ]
    return OperationAnswer(bounded("\n".join(told)), [_trajectory_link(asked.trajectory_id)])


class RewardsArgs(Arguments, frozen=True):
    """Of which time."""

    since: Span = "24h"
    model: Name | None = None


async def rewards(loop: LoopPort, asked: RewardsArgs) -> OperationAnswer:
    found = await loop.get("/v1/rewards/series", since=asked.since, model=asked.model, points=20)
    told = []
    for series in found["series"]:
        points = series["points"]
        count = sum(point["count"] for point in points)
        mean = sum(point["mean"] * point["count"] for point in points) / count if count else None
        last = f", lately {figure(points[-1]['mean'])}" if points else ""
        told.append(f"{one_line(series['model'])}: mean {figure(mean)} of {count}{last}")
    marks = [
        f"{mark['at'][:16]} {mark['kind']} {one_line(mark['model_id'])}: {sentence(mark['sentence'])}"
        for mark in found.get("marks", [])[-10:]
    ]
    return OperationAnswer(lines([*told, *marks], "Nothing was scored in this time."))


class WindowsArgs(Arguments, frozen=True):
    """Since when."""

    since: Span | None = None


async def windows(loop: LoopPort, asked: WindowsArgs) -> OperationAnswer:
    found = await loop.get("/v1/windows", since=asked.since)
    told = [
        f"{name}: {value_text(value)}"
        for name, value in found.items()
        if not isinstance(value, list)
    ]
    return OperationAnswer(bounded("\n".join(told)))


class DeadLettersArgs(Arguments, frozen=True):
    """How many."""

    limit: Limit = 10


async def dead_letters(loop: LoopPort, asked: DeadLettersArgs) -> OperationAnswer:
    found = (await loop.get("/v1/dead", limit=asked.limit))["dead"]
    told = [WARNING] if found else []
    for row in found:
        letter = row["letter"]
        told.append(f"{letter['dead_id']}  {row['stage']}  {letter['reason']}")
        told.append(quoted("why", bounded(str(letter["detail"]), 300)))
    return OperationAnswer(bounded(lines(told, "There are no dead letters.")))


WORK = (
    Operation(
        "trajectories",
        "Find recorded work by model, agent, domain, outcome, reward, time or text.",
        TrajectoriesArgs,
        trajectories,
    ),
    Operation(
        "trajectory",
        "What one agent saw, said and got in one piece of work, as quoted data.",
        TrajectoryArgs,
        trajectory,
    ),
    Operation("reward", "What one trajectory was worth, term by term.", RewardArgs, reward),
    Operation("rewards", "What models earn over time.", RewardsArgs, rewards),
    Operation("windows", "Which groups of attempts can be trained on.", WindowsArgs, windows),
    Operation(
        "dead_letters", "Messages that could not be taken, and why.", DeadLettersArgs, dead_letters
    ),
)
