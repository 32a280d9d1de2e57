"""How does work recorded step by step, or kept as a table's row, become a trajectory?

The step-table layout writes its keys in camelCase; every key is read in snake_case too.

| step                                  | trajectory.v1                                          |
|---------------------------------------|--------------------------------------------------------|
| `stepNumber`, `timestamp`             | `turn_id` (from 1, in order), `timestamp`              |
| `environmentState`                    | `observation.content`, a `system_message`              |
| … with a prompt in the last LLM call  | the prompt is the content, a `user_message`; the state |
|                                       | goes to `observation.context.memory_state`             |
| `llmCalls[-1]` response               | `action.raw_response`                                  |
| `action` type, parameters             | `action.tool_name`, `tool_args`                        |
| `action` success, result, error       | `result`                                               |
| `action.reasoning`                    | `thought_process`                                      |
| `reward`                              | `metadata.step_rewards`, one per turn                  |
| numbers of the last state, final ones | `metadata.environment`                                 |
| anything else                         | `metadata.steps`, beside its `turn_id`                 |
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from decimal import Decimal
from functools import cache
from itertools import pairwise
from typing import Any
from uuid import NAMESPACE_URL, UUID, uuid5

import msgspec

from upswing.contracts.codec import from_builtins
from upswing.contracts.trajectory import DOMAINS, Trajectory
from upswing.errors import Reason, Rejected

Tree = dict[str, Any]

MOST = 1e15
"""Numbers of open parts beyond this, to either side, are mistakes: a store cannot keep all of them."""
YEARS = range(2, 9999)
"""Years of a record's times: a day or a window more, to either side, is still a time."""
SHARES = {"completed": 1.0, "success": 1.0, "failed": 0.0, "error": 0.0, "timeout": 0.0}
"""What a final status says of the share done; other statuses say nothing of it."""

COLUMNS = (
    "id", "trajectoryId", "agentId", "startTime", "endTime", "durationMs", "windowId",
    "windowHours", "episodeId", "scenarioId", "batchId", "stepsJson", "rewardComponentsJson",
    "metricsJson", "metadataJson", "totalReward", "episodeLength", "finalStatus", "finalBalance",
    "finalPnL", "tradesExecuted", "postsCreated", "aiJudgeReward", "aiJudgeReasoning", "judgedAt",
    "isTrainingData", "isEvaluation", "usedInTraining", "trainedInBatch", "createdAt", "updatedAt",
)  # fmt: skip
_FINAL = {
    "finalBalance": "balance",
    "finalPnL": "pnl",
    "tradesExecuted": "trades_executed",
    "postsCreated": "posts_created",
}
_JUDGE = {
    "aiJudgeReward": "ai_judge_reward",
    "aiJudgeReasoning": "ai_judge_reasoning",
    "judgedAt": "judged_at",
}
END = (
    "endTime", "endTimestamp", "outcome", "finalStatus", "status", "share", "source", "totalReward",
    "environment", "metadata", *_FINAL,
)  # fmt: skip
"""What is read of an end."""
_FLAGS = ("batchId", "isTrainingData", "isEvaluation", "usedInTraining", "trainedInBatch")
_PROMPTS = ("userPrompt", "prompt", "input")
_RESPONSES = ("response", "output", "rawResponse")
_TYPES = ("actionType", "type", "toolName")
_PARAMETERS = ("parameters", "params", "toolArgs")
_STEP = ("stepNumber", "timestamp", "environmentState", "providerAccesses", "llmCalls", "action",
         "reward")  # fmt: skip
_ACTION = (*_TYPES, *_PARAMETERS, "success", "result", "error", "reasoning", "executionTimeMs")
_EXACT = "trajectory_v1"
"""The key of `metadataJson` that holds what the other columns of a row of ours cannot."""


# --- small readers ---------------------------------------------------------------------------


@cache
def _snake(name: str) -> str:
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name.replace("PnL", "Pnl")).lower()


def field(part: Mapping[str, Any], *names: str) -> Any:
    """The first of these keys that is there, in camelCase or snake_case; None if none is."""
    for name in names:
        for key in (name, _snake(name)):
            if part.get(key) is not None:
                return part[key]
    return None


def rest(part: Mapping[str, Any], known: Iterable[str]) -> Tree:
    """What `part` holds beyond the known keys."""
    taken = {key for name in known for key in (name, _snake(name))}
    return {key: value for key, value in part.items() if key not in taken and value is not None}


def text(value: Any) -> str:
    """A string as it is, anything else as JSON."""
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()


def tree(value: Any) -> Tree:
    """An object as it is; nothing is `{}`; anything else is wrapped as `{"value": …}`."""
    if isinstance(value, Mapping):
        return dict(value)
    return {} if value is None else {"value": value}


def text_or_tree(value: Any) -> str | Tree:
    return value if isinstance(value, str) else tree(value)


def number(value: Any) -> float | None:
    """A number of an open part, or None: booleans, text, NaN and what is beyond `MOST` are none.

    >>> number(2), number(0.5), number(True), number("2"), number(2**63), number(float("nan"))
    (2, 0.5, None, None, None, None)
    """
    if isinstance(value, bool) or not isinstance(value, int | float | Decimal):
        return None
    if (isinstance(value, Decimal) and not value.is_finite()) or not -MOST <= value <= MOST:
        return None
    return int(value) if isinstance(value, int) else float(value)


OUTSIDE = f"In UTC its time lies outside the years {YEARS.start} to {YEARS.stop - 1}."


def moment(value: Any, default: datetime) -> datetime:
    """A time from a datetime, RFC 3339 text or epoch seconds or milliseconds. No zone means UTC."""
    try:
        match value:
            case None:
                return default
            case datetime():
                read = value
            case str():
                read = datetime.fromisoformat(value)
            case int() | float():
                read = datetime.fromtimestamp(value / 1000 if abs(value) > 1e11 else value, UTC)
            case _:
                raise Rejected(Reason.SCHEMA, "A time is text, a datetime or an epoch number.")
        read = read if read.tzinfo else read.replace(tzinfo=UTC)
        year = read.astimezone(UTC).year
    except (ValueError, OverflowError, OSError):
        raise Rejected(Reason.SCHEMA, "A time of the record cannot be read.") from None
    if year not in YEARS:
        raise Rejected(Reason.SCHEMA, OUTSIDE)
    return read


def stamp(when: datetime) -> str:
    return str(msgspec.to_builtins(when.astimezone(UTC)))


def window_of(start: datetime, hours: int = 1) -> str:
    """The window this moment falls into: UTC, on the hour, in multiples of `hours` from midnight.

    >>> window_of(datetime(2025, 11, 13, 15, 59, tzinfo=UTC))
    '2025-11-13T15:00'
    >>> window_of(datetime(2025, 11, 13, 15, 59, tzinfo=UTC), hours=4)
    '2025-11-13T12:00'
    """
    if hours < 1:
        raise Rejected(Reason.SCHEMA, "A window lasts at least one hour.")
    utc = start.astimezone(UTC)
    return f"{utc.date().isoformat()}T{utc.hour - utc.hour % hours:02d}:00"


def identity(external: str) -> str:
    """The UUID that this id is, or the one that is always made from it."""
    try:
        return str(UUID(external))
    except ValueError:
        return str(uuid5(NAMESPACE_URL, f"upswing:trajectory:{external}"))


def outcome_of(status: Any, share: Any = None, **details: Any) -> Tree:
    """`metadata.outcome`: how it ended, and how much of the task is done, where that is known.

    A share that is none stays as it is: whoever reads the outcome says so.
    """
    known = SHARES.get(status) if share is None and isinstance(status, str) else share
    return {
        **({} if status is None else {"status": status}),
        **({} if known is None else {"share": known}),
        **details,
    }


# --- a step is a turn ------------------------------------------------------------------------


def turn_of(step: Mapping[str, Any], *, default_time: datetime) -> Tree:
    """One step as a turn of trajectory.v1.

    >>> step = {"stepNumber": 1, "environmentState": {"balance": 1000}, "reward": 0.8,
    ...         "action": {"type": "trade", "params": {"side": "buy"}}}
    >>> turn_of(step, default_time=datetime(2025, 11, 13, 12, tzinfo=UTC))["action"]
    {'type': 'tool_call', 'tool_name': 'trade', 'tool_args': {'side': 'buy'}}
    """
    action = tree(field(step, "action"))
    reasoning = field(action, "reasoning")
    thoughts = reasoning if isinstance(reasoning, list) else [reasoning] if reasoning else []
    turn: Tree = {
        "turn_id": max(1, int(number(field(step, "stepNumber")) or 1)),
        "timestamp": stamp(moment(field(step, "timestamp"), default_time)),
        "observation": _observation(step),
        "action": _action(action, _last_call(step)),
        "result": result_of(action),
    }
    return {**turn, "thought_process": [text(t) for t in thoughts]} if thoughts else turn


def _calls(step: Mapping[str, Any]) -> list[Tree]:
    calls = field(step, "llmCalls")
    return [dict(c) for c in calls if isinstance(c, Mapping)] if isinstance(calls, list) else []


def _last_call(step: Mapping[str, Any]) -> Tree:
    return (_calls(step) or [{}])[-1]


def _observation(step: Mapping[str, Any]) -> Tree:
    state, accesses = field(step, "environmentState"), field(step, "providerAccesses")
    prompt = field(_last_call(step), *_PROMPTS)
    memory: Tree = {}
    if prompt is not None and state not in (None, {}):
        memory["environment_state"] = state
    if accesses:
        memory["provider_accesses"] = accesses
    return {
        "type": "system_message" if prompt is None else "user_message",
        "content": text_or_tree(state) if prompt is None else text_or_tree(prompt),
        **({"context": {"memory_state": memory}} if memory else {}),
    }


def _action(action: Tree, call: Tree) -> Tree:
    kind, response = field(action, *_TYPES), field(call, *_RESPONSES)
    said = {} if response is None else {"raw_response": text(response)}
    if kind is None:
        return {"type": "response", **said}
    arguments = tree(field(action, *_PARAMETERS))
    return {"type": "tool_call", "tool_name": text(kind), "tool_args": arguments, **said}


def result_of(action: Mapping[str, Any]) -> Tree:
    """What came of an action; without a word on success, no error means success."""
    output, error, took = (field(action, n) for n in ("result", "error", "executionTimeMs"))
    success = field(action, "success")
    made: Tree = {"success": error is None if success is None else bool(success)}
    if output is not None:
        made["output"] = text_or_tree(output)
    if error is not None:
        made["error"] = text(error)
    if (milliseconds := number(took)) is not None:
        made["execution_time_ms"] = max(0.0, milliseconds)
    return made


def _beyond(step: Mapping[str, Any], turn_id: int) -> Tree:
    """What a turn has no place for: further LLM calls, their settings, keys we do not know."""
    calls = _calls(step)
    if calls:
        calls[-1] = rest(calls[-1], (*_PROMPTS, *_RESPONSES))
    action = rest(tree(field(step, "action")), _ACTION)
    given = number(field(step, "stepNumber"))
    return {
        **rest(step, _STEP),
        **({"llm_calls": calls} if any(calls) else {}),
        **({"action": action} if action else {}),
        **({"step_number": given} if given not in (None, turn_id) else {}),
    }


# --- steps are a trajectory ------------------------------------------------------------------


def trajectory_of_steps(
    head: Mapping[str, Any], steps: Sequence[Mapping[str, Any]], end: Mapping[str, Any]
) -> Tree:
    """The steps between a head (who, what, when) and an end (how it went), as trajectory.v1."""
    if not steps or not all(isinstance(step, Mapping) for step in steps):
        raise Rejected(Reason.SCHEMA, "A trajectory needs at least one step, each an object.")
    external = text(_needed(head, "trajectoryId"))
    first = field(steps[0], "timestamp")
    start = moment(field(head, "startTime", "startTimestamp"), moment(first, _EPOCH))
    turns = _turns(steps, start)
    last = moment(turns[-1]["timestamp"], start)
    made = {
        "trajectory_id": identity(external),
        "session_id": text(field(head, "sessionId", "episodeId") or external),
        "agent_id": text(_needed(head, "agentId")),
        "start_timestamp": stamp(start),
        "end_timestamp": stamp(moment(field(end, "endTime", "endTimestamp"), last)),
        "turns": turns,
        "task_context": _task(head, external),
        "metadata": _metadata(head, steps, turns, end, start),
    }
    if (profile := field(head, "subordinateProfile", "profile")) is not None:
        made["subordinate_profile"] = text(profile)
    from_builtins(Trajectory, made)
    return made


_EPOCH = datetime.fromtimestamp(0, UTC)


def _needed(part: Mapping[str, Any], name: str) -> Any:
    if (value := field(part, name)) in (None, ""):
        raise Rejected(Reason.SCHEMA, f"The record has no `{_snake(name)}`.")
    return value


def _turns(steps: Sequence[Mapping[str, Any]], start: datetime) -> list[Tree]:
    """Turn ids follow the step numbers where those rise from 1, and count from 1 where not."""
    turns, when = [], start
    for step in steps:
        turns.append(turn_of(step, default_time=when))
        when = moment(turns[-1].get("timestamp"), when)
    ids: list[Any] = [turn.get("turn_id") for turn in turns]
    given = [number(field(step, "stepNumber")) for step in steps]
    if ids == given and all(a < b for a, b in pairwise(ids)):
        return turns
    return [{**turn, "turn_id": place} for place, turn in enumerate(turns, 1)]


def _task(head: Mapping[str, Any], external: str) -> Tree:
    domain = field(head, "domain")
    task: Tree = {
        "task_id": text(field(head, "taskId", "scenarioId") or external),
        "instructions": text(field(head, "instructions", "task") or ""),
    }
    if domain is not None:
        known = isinstance(domain, str) and domain in DOMAINS
        task |= {"domain": domain} if known else {"domain": "general", "topic": domain}
    return task


def _metadata(
    head: Mapping[str, Any],
    steps: Sequence[Mapping[str, Any]],
    turns: Sequence[Tree],
    end: Mapping[str, Any],
    start: datetime,
) -> Tree:
    hours = int(number(field(head, "windowHours")) or 1)
    window = field(head, "windowId") or window_of(start, hours)
    beyond = [(t["turn_id"], _beyond(s, t["turn_id"])) for s, t in zip(steps, turns, strict=True)]
    external = text(field(head, "trajectoryId"))
    total = number(field(end, "totalReward"))
    found = {
        "model": text(field(head, "model") or _model(steps) or "unknown"),
        "window_id": window,
        "window_hours": hours,
        "scenario_id": field(head, "scenarioId") or window,
        "episode_id": field(head, "episodeId"),
        "user_id": field(head, "userId"),
        "outcome": end_outcome(end),
        "environment": _environment(steps, end) or None,
        "step_rewards": _step_rewards(steps),
        "total_reward": total,
        "steps": [{"turn_id": turn, **more} for turn, more in beyond if more] or None,
        "external_id": None if external == identity(external) else external,
    }
    told = {**tree(field(head, "metadata")), **tree(field(end, "metadata"))}
    return {**told, **{key: value for key, value in found.items() if value is not None}}


def end_outcome(end: Mapping[str, Any]) -> Any:
    """How an end says that it went: by `outcome`, or by `final_status` with `share` and `source`.

    >>> end_outcome({"outcome": 0.7}), end_outcome({"final_status": "timeout"})
    (0.7, {'status': 'timeout', 'share': 0.0})
    """
    told, share, source = (field(end, name) for name in ("outcome", "share", "source"))
    status = field(end, "finalStatus", "status")
    if told is not None and status is not None:
        raise Rejected(
            Reason.SCHEMA, "The end says twice how it went: `outcome` or `final_status`, not both."
        )
    if told is not None or (status in (None, "") and share is None):
        return told
    if not isinstance(status, str) and share is None:
        return status
    return outcome_of(status or None, share, **({"source": source} if source else {}))


def _model(steps: Sequence[Mapping[str, Any]]) -> Any:
    return next((m for s in reversed(steps) if (m := field(_last_call(s), "model"))), None)


def _step_rewards(steps: Sequence[Mapping[str, Any]]) -> list[float | None] | None:
    rewards = [number(field(step, "reward")) for step in steps]
    return rewards if any(reward is not None for reward in rewards) else None


def _environment(steps: Sequence[Mapping[str, Any]], end: Mapping[str, Any]) -> Tree:
    last = tree(field(steps[-1], "environmentState"))
    final = {ours: field(end, theirs) for theirs, ours in _FINAL.items()}
    numbers = [*last.items(), *tree(field(end, "environment")).items(), *final.items()]
    return {key: n for key, value in numbers if (n := number(value)) is not None}


# --- a row is a trajectory, and back ---------------------------------------------------------


def is_table_row(obj: object) -> bool:
    """Whether this looks like a row of the step-table layout."""
    return isinstance(obj, Mapping) and bool({"stepsJson", "steps_json"} & obj.keys())


def trajectory_of_row(row: Mapping[str, Any]) -> Tree:
    """A row of the step-table layout as trajectory.v1, or `Rejected` with what is wrong."""
    if not is_table_row(row):
        raise Rejected(
            Reason.SCHEMA, "A row of the trajectory table is an object with `stepsJson`."
        )
    steps, told = _parsed(row, "stepsJson", list), _parsed(row, "metadataJson", dict)
    exact = told.pop(_EXACT, None)
    judged = {ours: _told(row, theirs) for theirs, ours in _JUDGE.items()}
    judged = {key: value for key, value in judged.items() if value is not None}
    if isinstance(exact, Mapping):
        made: Tree = {
            "trajectory_id": identity(text(_needed(row, "trajectoryId"))),
            "agent_id": text(_needed(row, "agentId")),
            **exact,
            "turns": [_own_turn(tree(step)) for step in steps],
            "metadata": {**told, **judged},
        }
        from_builtins(Trajectory, made)
        return made
    flags = {_snake(name): value for name in _FLAGS if (value := field(row, name)) is not None}
    kept = {
        "reward_components": _parsed(row, "rewardComponentsJson", dict),
        "metrics": _parsed(row, "metricsJson", dict),
        "row": flags,
    }
    told |= {key: value for key, value in kept.items() if value} | judged
    return trajectory_of_steps({**told, **row, "metadata": told}, steps, {**row, "metadata": None})


def _own_turn(step: Tree) -> Tree:
    return tree(step["turn"]) if "turn" in step else turn_of(step, default_time=_EPOCH)


def _told(row: Mapping[str, Any], name: str) -> Any:
    value = field(row, name)
    return stamp(value) if isinstance(value, datetime) else value


def _parsed(row: Mapping[str, Any], name: str, kind: type[Any]) -> Any:
    value = field(row, name)
    try:
        read = msgspec.json.decode(value) if isinstance(value, str | bytes) and value else value
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        raise Rejected(Reason.MALFORMED, f"`{name}` of the row is not JSON.") from None
    if read in (None, "", b""):
        return kind()
    if not isinstance(read, kind):
        raise Rejected(Reason.SCHEMA, f"`{name}` of the row does not hold a JSON {kind.__name__}.")
    return kind(read)


def row_of_trajectory(trajectory: Mapping[str, Any], *, created_at: datetime) -> Tree:
    """trajectory.v1 as a row of the step-table layout; `trajectory_of_row` reads it back whole."""
    metadata, turns = tree(trajectory.get("metadata")), trajectory["turns"]
    start, end = (moment(trajectory[f"{w}_timestamp"], created_at) for w in ("start", "end"))
    environment, now = tree(metadata.get("environment")), stamp(created_at)
    external = metadata.get("external_id")
    known = isinstance(external, str) and identity(external) == trajectory["trajectory_id"]
    elsewhere = ("trajectory_id", "agent_id", "turns", "metadata")
    exact = {key: value for key, value in trajectory.items() if key not in elsewhere}
    filled: Tree = {
        "id": trajectory["trajectory_id"],
        "trajectoryId": external if known else trajectory["trajectory_id"],
        "agentId": trajectory["agent_id"],
        "startTime": stamp(start),
        "endTime": stamp(end),
        "durationMs": round((end - start).total_seconds() * 1000),
        "windowId": metadata.get("window_id") or window_of(start),
        "windowHours": metadata.get("window_hours", 1),
        "episodeId": metadata.get("episode_id"),
        "scenarioId": metadata.get("scenario_id"),
        "stepsJson": _json(_steps(turns, metadata)),
        "rewardComponentsJson": _json(tree(metadata.get("reward_components"))),
        "metricsJson": _json(tree(metadata.get("metrics"))),
        "metadataJson": _json({**metadata, _EXACT: exact}),
        "totalReward": number(metadata.get("total_reward")) or 0.0,
        "episodeLength": len(turns),
        "finalStatus": _status(metadata.get("outcome")),
        **{theirs: number(environment.get(ours)) for theirs, ours in _FINAL.items()},
        **{theirs: metadata.get(ours) for theirs, ours in _JUDGE.items()},
        "isTrainingData": True,
        "isEvaluation": False,
        "usedInTraining": False,
        "createdAt": now,
        "updatedAt": now,
    }
    flags = tree(metadata.get("row"))
    filled |= {name: flags[_snake(name)] for name in _FLAGS if _snake(name) in flags}
    return {column: filled.get(column) for column in COLUMNS}


def _status(outcome: Any) -> Any:
    """The column's word for an outcome, whatever its form."""
    match outcome:
        case str():
            return outcome
        case bool() | int() | float():
            return "completed" if outcome == 1 else "partial" if outcome else "failed"
        case _:
            return tree(outcome).get("status", "unknown")


def _json(value: Any) -> str:
    return msgspec.json.encode(value).decode()


def _steps(turns: Sequence[Mapping[str, Any]], metadata: Tree) -> list[Tree]:
    rewards = metadata.get("step_rewards")
    if not isinstance(rewards, list) or len(rewards) != len(turns):
        rewards = [None] * len(turns)
    return [_step_of(turn, reward) for turn, reward in zip(turns, rewards, strict=True)]


def _step_of(turn: Mapping[str, Any], reward: Any) -> Tree:
    """The step of a turn. A turn that the layout cannot hold travels along whole, as `turn`."""
    content, action, result = turn["observation"]["content"], turn["action"], turn["result"]
    prompted = turn["observation"]["type"] == "user_message"
    call = {
        **({"userPrompt": content} if prompted else {}),
        **({"response": action["raw_response"]} if "raw_response" in action else {}),
    }
    done = {
        "actionType": action.get("tool_name"),
        "parameters": action.get("tool_args"),
        "success": result["success"],
        "result": result.get("output"),
        "error": result.get("error"),
        "reasoning": turn.get("thought_process"),
        "executionTimeMs": result.get("execution_time_ms"),
    }
    step: Tree = {
        "stepNumber": turn["turn_id"],
        "timestamp": turn["timestamp"],
        "environmentState": {} if prompted else content,
        "providerAccesses": [],
        "llmCalls": [call] if call else [],
        "action": {key: value for key, value in done.items() if value is not None},
        "reward": reward,
    }
    return step if turn_of(step, default_time=_EPOCH) == turn else {**step, "turn": dict(turn)}
