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
    "id",
    "trajectoryId",
    "agentId",
    "startTime",
    "endTime",
    "durationMs",
    "windowId",
    "windowHours",
    "episodeId",
    "scenarioId",
    "batchId",
    "stepsJson",
    "rewardComponentsJson",
    "metricsJson",
    "metadataJson",
    "totalReward",
    "episodeLength",
    "finalStatus",
    "finalBalance",
    "finalPnL",
    "tradesExecuted",
    "postsCreated",
    "aiJudgeReward",
    "aiJudgeReasoning",
    "judgedAt",
    "isTrainingData",
    "isEvaluation",
    "usedInTraining",
    "trainedInBatch",
    "createdAt",
    "updatedAt",
)
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
    "endTime",
    "endTimestamp",
    "outcome",
    "finalStatus",
    "status",
    "share",
    "source",
    "totalReward",
    "environment",
    "metadata",
    *_FINAL,
)
"""What is read of an end."""
_FLAGS = ("batchId", "isTrainingData", "isEvaluation", "usedInTraining", "trainedInBatch")
_PROMPTS = ("userPrompt", "prompt", "input")
_RESPONSES = ("response", "output", "rawResponse")
_TYPES = ("actionType", "type", "toolName")
_PARAMETERS = ("parameters", "params", "toolArgs")
_STEP = (
    "stepNumber",
    "timestamp",
    "environmentState",
    "providerAccesses",
    "llmCalls",
    "action",
    "reward",
)
_ACTION = (*_TYPES, *_PARAMETERS, "success", "result", "error", "reasoning", "executionTimeMs")
_EXACT = "trajectory_v1"
"""The key of `metadataJson` that holds what the other columns of a row of ours cannot."""


# --- small readers ---------------------------------------------------------------------------


@cache
def _to_snake_case(name: str) -> str:
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name.replace("PnL", "Pnl")).lower()


def first_present_field(part: Mapping[str, Any], *names: str) -> Any:
    """The first of these keys that is there, in camelCase or snake_case; None if none is."""
    for name in names:
        for key in (name, _to_snake_case(name)):
            if part.get(key) is not None:
                return part[key]
    return None


def copy_unknown_fields(part: Mapping[str, Any], known: Iterable[str]) -> Tree:
    """What `part` holds beyond the known keys."""
    taken = {key for name in known for key in (name, _to_snake_case(name))}
    return {key: value for key, value in part.items() if key not in taken and value is not None}


def text_or_json(value: Any) -> str:
    """A string as it is, anything else as JSON."""
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()


def object_or_wrapped(value: Any) -> Tree:
    """An object as it is; nothing is `{}`; anything else is wrapped as `{"value": …}`."""
    if isinstance(value, Mapping):
        return dict(value)
    return {} if value is None else {"value": value}


def text_or_object(value: Any) -> str | Tree:
    return value if isinstance(value, str) else object_or_wrapped(value)


def finite_number_or_none(value: Any) -> float | None:
    """A number of an open part, or None: booleans, text, NaN and what is beyond `MOST` are none.

    >>> finite_number_or_none(2), finite_number_or_none(0.5), finite_number_or_none(True), finite_number_or_none("2"), finite_number_or_none(2**63), finite_number_or_none(float("nan"))
    (2, 0.5, None, None, None, None)
    """
    if isinstance(value, bool) or not isinstance(value, int | float | Decimal):
        return None
    if (isinstance(value, Decimal) and not value.is_finite()) or not -MOST <= value <= MOST:
        return None
    return int(value) if isinstance(value, int) else float(value)


def check_numbers(part: Mapping[str, Any], *names: str, where: str = "") -> None:
    """`Rejected` with its path where one of these is there and is no number: nothing is left out in silence.

    >>> check_numbers({"reward": "0.5"}, "reward", where="steps[2].")
    Traceback (most recent call last):
    upswing.errors.Rejected: `steps[2].reward` is a number from -1e15 to 1e15, not a string.
    """
    for name in names:
        for key in dict.fromkeys((name, _to_snake_case(name))):
            if (value := part.get(key)) is not None and finite_number_or_none(value) is None:
                kind = _JSON_KINDS.get(type(value), "another one")
                raise Rejected(
                    Reason.SCHEMA, f"`{where}{key}` is a number from -1e15 to 1e15, not {kind}."
                )


def check_step(step: Mapping[str, Any], where: str = "") -> None:
    """`Rejected` where a number of a step is none."""
    check_numbers(step, "reward", where=where)
    check_numbers(
        object_or_wrapped(first_present_field(step, "action")),
        "executionTimeMs",
        where=f"{where}action.",
    )


def check_end(end: Mapping[str, Any], where: str = "") -> None:
    """`Rejected` where a number of an end is none."""
    check_numbers(end, "totalReward", *_FINAL, where=where)


_JSON_KINDS = {
    str: "a string",
    bool: "a boolean",
    dict: "an object",
    list: "an array",
}


OUTSIDE = f"In UTC its time lies outside the years {YEARS.start} to {YEARS.stop - 1}."


def parse_time(value: Any, default: datetime) -> datetime:
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


def format_time(when: datetime) -> str:
    return str(msgspec.to_builtins(when.astimezone(UTC)))


def window_id_at(start: datetime, hours: int = 1) -> str:
    """The window this moment falls into: UTC, on the hour, in multiples of `hours` from midnight.

    >>> window_id_at(datetime(2025, 11, 13, 15, 59, tzinfo=UTC))
    '2025-11-13T15:00'
    >>> window_id_at(datetime(2025, 11, 13, 15, 59, tzinfo=UTC), hours=4)
    '2025-11-13T12:00'
    """
    if hours < 1:
        raise Rejected(Reason.SCHEMA, "A window lasts at least one hour.")
    utc = start.astimezone(UTC)
    return f"{utc.date().isoformat()}T{utc.hour - utc.hour % hours:02d}:00"


def uuid_for_external_id(external: str, key_id: str = "") -> str:
    """The UUID that this id is, or the one that is always made from it, for each key another.

    >>> uuid_for_external_id("run-1", "k1") == uuid_for_external_id("run-1", "k1"), uuid_for_external_id("run-1", "k1") == uuid_for_external_id("run-1", "k2")
    (True, False)
    """
    try:
        return str(UUID(external))
    except ValueError:
        name = f"{key_id}:{external}" if key_id else external
        return str(uuid5(NAMESPACE_URL, f"upswing:trajectory:{name}"))


def outcome_metadata_of(status: Any, share: Any = None, **details: Any) -> Tree:
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


def turn_from_step(step: Mapping[str, Any], *, default_time: datetime) -> Tree:
    """One step as a turn of trajectory.v1.

    >>> step = {"stepNumber": 1, "environmentState": {"balance": 1000}, "reward": 0.8,
    ...         "action": {"type": "trade", "params": {"side": "buy"}}}
    >>> turn_from_step(step, default_time=datetime(2025, 11, 13, 12, tzinfo=UTC))["action"]
    {'type': 'tool_call', 'tool_name': 'trade', 'tool_args': {'side': 'buy'}}
    """
    action = object_or_wrapped(first_present_field(step, "action"))
    reasoning = first_present_field(action, "reasoning")
    thoughts = reasoning if isinstance(reasoning, list) else [reasoning] if reasoning else []
    turn: Tree = {
        "turn_id": max(1, int(finite_number_or_none(first_present_field(step, "stepNumber")) or 1)),
        "timestamp": format_time(parse_time(first_present_field(step, "timestamp"), default_time)),
        "observation": _observation_of_step(step),
        "action": _action_with_call(action, _last_llm_call(step)),
        "result": result_of_action(action),
    }
    return {**turn, "thought_process": [text_or_json(t) for t in thoughts]} if thoughts else turn


def _llm_calls_of_step(step: Mapping[str, Any]) -> list[Tree]:
    calls = first_present_field(step, "llmCalls")
    return [dict(c) for c in calls if isinstance(c, Mapping)] if isinstance(calls, list) else []


def _last_llm_call(step: Mapping[str, Any]) -> Tree:
    return (_llm_calls_of_step(step) or [{}])[-1]


def _observation_of_step(step: Mapping[str, Any]) -> Tree:
    state, accesses = (
        first_present_field(step, "environmentState"),
        first_present_field(step, "providerAccesses"),
    )
    prompt = first_present_field(_last_llm_call(step), *_PROMPTS)
    memory: Tree = {}
    if prompt is not None and state not in (None, {}):
        memory["environment_state"] = state
    if accesses:
        memory["provider_accesses"] = accesses
    return {
        "type": "system_message" if prompt is None else "user_message",
        "content": text_or_object(state) if prompt is None else text_or_object(prompt),
        **({"context": {"memory_state": memory}} if memory else {}),
    }


def _action_with_call(action: Tree, call: Tree) -> Tree:
    kind, response = first_present_field(action, *_TYPES), first_present_field(call, *_RESPONSES)
    said = {} if response is None else {"raw_response": text_or_json(response)}
    if kind is None:
        return {"type": "response", **said}
    arguments = object_or_wrapped(first_present_field(action, *_PARAMETERS))
    return {"type": "tool_call", "tool_name": text_or_json(kind), "tool_args": arguments, **said}


def result_of_action(action: Mapping[str, Any]) -> Tree:
    """What came of an action; without a word on success, no error means success."""
    output, error, took = (
        first_present_field(action, n) for n in ("result", "error", "executionTimeMs")
    )
    success = first_present_field(action, "success")
    made: Tree = {"success": error is None if success is None else bool(success)}
    if output is not None:
        made["output"] = text_or_object(output)
    if error is not None:
        made["error"] = text_or_json(error)
    if (milliseconds := finite_number_or_none(took)) is not None:
        made["execution_time_ms"] = max(0.0, milliseconds)
    return made


def _step_fields_without_turn_field(step: Mapping[str, Any], turn_id: int) -> Tree:
    """What a turn has no place for: further LLM calls, their settings, keys we do not know."""
    calls = _llm_calls_of_step(step)
    if calls:
        calls[-1] = copy_unknown_fields(calls[-1], (*_PROMPTS, *_RESPONSES))
    action = copy_unknown_fields(object_or_wrapped(first_present_field(step, "action")), _ACTION)
    given = finite_number_or_none(first_present_field(step, "stepNumber"))
    return {
        **copy_unknown_fields(step, _STEP),
        **({"llm_calls": calls} if any(calls) else {}),
        **({"action": action} if action else {}),
        **({"step_number": given} if given not in (None, turn_id) else {}),
    }


# --- steps are a trajectory ------------------------------------------------------------------


def trajectory_from_steps(
    head: Mapping[str, Any],
    steps: Sequence[Mapping[str, Any]],
    end: Mapping[str, Any],
    trajectory_id: str = "",
) -> Tree:
    """The steps between a head (who, what, when) and an end (how it went), as trajectory.v1.

    `trajectory_id` is its id where that does not follow from the head's own alone.
    """
    if not steps or not all(isinstance(step, Mapping) for step in steps):
        raise Rejected(Reason.SCHEMA, "A trajectory needs at least one step, each an object.")
    external = text_or_json(_required_field(head, "trajectoryId"))
    first = first_present_field(steps[0], "timestamp")
    start = parse_time(
        first_present_field(head, "startTime", "startTimestamp"), parse_time(first, _EPOCH)
    )
    turns = _turns_from_steps(steps, start)
    last = parse_time(turns[-1]["timestamp"], start)
    made = {
        "trajectory_id": trajectory_id or uuid_for_external_id(external),
        "session_id": text_or_json(first_present_field(head, "sessionId", "episodeId") or external),
        "agent_id": text_or_json(_required_field(head, "agentId")),
        "start_timestamp": format_time(start),
        "end_timestamp": format_time(
            parse_time(first_present_field(end, "endTime", "endTimestamp"), last)
        ),
        "turns": turns,
        "task_context": _task_of_head(head, external),
        "metadata": _metadata_of_trajectory(head, steps, turns, end, start),
    }
    if (profile := first_present_field(head, "subordinateProfile", "profile")) is not None:
        made["subordinate_profile"] = text_or_json(profile)
    from_builtins(Trajectory, made)
    return made


_EPOCH = datetime.fromtimestamp(0, UTC)


def _required_field(part: Mapping[str, Any], name: str) -> Any:
    if (value := first_present_field(part, name)) in (None, ""):
        raise Rejected(Reason.SCHEMA, f"The record has no `{_to_snake_case(name)}`.")
    return value


def _turns_from_steps(steps: Sequence[Mapping[str, Any]], start: datetime) -> list[Tree]:
    """Turn ids follow the step numbers where those rise from 1, and count from 1 where not."""
    turns, when = [], start
    for step in steps:
        turns.append(turn_from_step(step, default_time=when))
        when = parse_time(turns[-1].get("timestamp"), when)
    ids: list[Any] = [turn.get("turn_id") for turn in turns]
    given = [finite_number_or_none(first_present_field(step, "stepNumber")) for step in steps]
    if ids == given and all(a < b for a, b in pairwise(ids)):
        return turns
    return [{**turn, "turn_id": place} for place, turn in enumerate(turns, 1)]


def _task_of_head(head: Mapping[str, Any], external: str) -> Tree:
    domain = first_present_field(head, "domain")
    task: Tree = {
        "task_id": text_or_json(first_present_field(head, "taskId", "scenarioId") or external),
        "instructions": text_or_json(first_present_field(head, "instructions", "task") or ""),
    }
    if domain is not None:
        known = isinstance(domain, str) and domain in DOMAINS
        task |= {"domain": domain} if known else {"domain": "general", "topic": domain}
    return task


def _metadata_of_trajectory(
    head: Mapping[str, Any],
    steps: Sequence[Mapping[str, Any]],
    turns: Sequence[Tree],
    end: Mapping[str, Any],
    start: datetime,
) -> Tree:
    hours = int(finite_number_or_none(first_present_field(head, "windowHours")) or 1)
    window = first_present_field(head, "windowId") or window_id_at(start, hours)
    beyond = [
        (t["turn_id"], _step_fields_without_turn_field(s, t["turn_id"]))
        for s, t in zip(steps, turns, strict=True)
    ]
    external = text_or_json(first_present_field(head, "trajectoryId"))
    total = finite_number_or_none(first_present_field(end, "totalReward"))
    found = {
        "model": text_or_json(
            first_present_field(head, "model") or _model_of_steps(steps) or "unknown"
        ),
        "window_id": window,
        "window_hours": hours,
        "scenario_id": first_present_field(head, "scenarioId") or window,
        "episode_id": first_present_field(head, "episodeId"),
        "user_id": first_present_field(head, "userId"),
        "outcome": outcome_of_end(end),
        "environment": _environment_of_steps(steps, end) or None,
        "step_rewards": _step_rewards(steps),
        "total_reward": total,
        "steps": [{"turn_id": turn, **more} for turn, more in beyond if more] or None,
        "external_id": None if external == uuid_for_external_id(external) else external,
    }
    told = {
        **object_or_wrapped(first_present_field(head, "metadata")),
        **object_or_wrapped(first_present_field(end, "metadata")),
    }
    return {**told, **{key: value for key, value in found.items() if value is not None}}


def outcome_of_end(end: Mapping[str, Any]) -> Any:
    """How an end says that it went: by `outcome`, or by `final_status` with `share` and `source`.

    >>> outcome_of_end({"outcome": 0.7}), outcome_of_end({"final_status": "timeout"})
    (0.7, {'status': 'timeout', 'share': 0.0})
    """
    told, share, source = (
        first_present_field(end, name) for name in ("outcome", "share", "source")
    )
    status = first_present_field(end, "finalStatus", "status")
    if told is not None and status is not None:
        raise Rejected(
            Reason.SCHEMA, "The end says twice how it went: `outcome` or `final_status`, not both."
        )
    if told is not None or (status in (None, "") and share is None):
        return told
    if not isinstance(status, str) and share is None:
        return status
    return outcome_metadata_of(status or None, share, **({"source": source} if source else {}))


def _model_of_steps(steps: Sequence[Mapping[str, Any]]) -> Any:
    return next(
        (m for s in reversed(steps) if (m := first_present_field(_last_llm_call(s), "model"))), None
    )


def _step_rewards(steps: Sequence[Mapping[str, Any]]) -> list[float | None] | None:
    rewards = [finite_number_or_none(first_present_field(step, "reward")) for step in steps]
    return rewards if any(reward is not None for reward in rewards) else None


def _environment_of_steps(steps: Sequence[Mapping[str, Any]], end: Mapping[str, Any]) -> Tree:
    last = object_or_wrapped(first_present_field(steps[-1], "environmentState"))
    final = {ours: first_present_field(end, theirs) for theirs, ours in _FINAL.items()}
    numbers = [
        *last.items(),
        *object_or_wrapped(first_present_field(end, "environment")).items(),
        *final.items(),
    ]
    return {key: n for key, value in numbers if (n := finite_number_or_none(value)) is not None}


# --- a row is a trajectory, and back ---------------------------------------------------------


def is_table_row(obj: object) -> bool:
    """Whether this looks like a row of the step-table layout."""
    return isinstance(obj, Mapping) and bool({"stepsJson", "steps_json"} & obj.keys())


def trajectory_from_row(row: Mapping[str, Any]) -> Tree:
    """A row of the step-table layout as trajectory.v1, or `Rejected` with what is wrong."""
    if not is_table_row(row):
        raise Rejected(
            Reason.SCHEMA, "A row of the trajectory table is an object with `stepsJson`."
        )
    steps, told = _parse_field(row, "stepsJson", list), _parse_field(row, "metadataJson", dict)
    exact = told.pop(_EXACT, None)
    judged = {ours: _field_value(row, theirs) for theirs, ours in _JUDGE.items()}
    judged = {key: value for key, value in judged.items() if value is not None}
    if isinstance(exact, Mapping):
        made: Tree = {
            "trajectory_id": uuid_for_external_id(
                text_or_json(_required_field(row, "trajectoryId"))
            ),
            "agent_id": text_or_json(_required_field(row, "agentId")),
            **exact,
            "turns": [_embedded_turn(object_or_wrapped(step)) for step in steps],
            "metadata": {**told, **judged},
        }
        from_builtins(Trajectory, made)
        return made
    for place, step in enumerate(steps):
        check_step(object_or_wrapped(step), f"stepsJson[{place}].")
    check_end(row)
    flags = {
        _to_snake_case(name): value
        for name in _FLAGS
        if (value := first_present_field(row, name)) is not None
    }
    kept = {
        "reward_components": _parse_field(row, "rewardComponentsJson", dict),
        "metrics": _parse_field(row, "metricsJson", dict),
        "row": flags,
    }
    told |= {key: value for key, value in kept.items() if value} | judged
    return trajectory_from_steps(
        {**told, **row, "metadata": told}, steps, {**row, "metadata": None}
    )


def _embedded_turn(step: Tree) -> Tree:
    return (
        object_or_wrapped(step["turn"])
        if "turn" in step
        else turn_from_step(step, default_time=_EPOCH)
    )


def _field_value(row: Mapping[str, Any], name: str) -> Any:
    value = first_present_field(row, name)
    return format_time(value) if isinstance(value, datetime) else value


def _parse_field(row: Mapping[str, Any], name: str, kind: type[Any]) -> Any:
    value = first_present_field(row, name)
    try:
        read = msgspec.json.decode(value) if isinstance(value, str | bytes) and value else value
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        raise Rejected(Reason.MALFORMED, f"`{name}` of the row is not JSON.") from None
    if read in (None, "", b""):
        return kind()
    if not isinstance(read, kind):
        raise Rejected(Reason.SCHEMA, f"`{name}` of the row does not hold a JSON {kind.__name__}.")
    return kind(read)


def row_from_trajectory(trajectory: Mapping[str, Any], *, created_at: datetime) -> Tree:
    """trajectory.v1 as a row of the step-table layout; `trajectory_from_row` reads it back whole."""
    metadata, turns = object_or_wrapped(trajectory.get("metadata")), trajectory["turns"]
    start, end = (parse_time(trajectory[f"{w}_timestamp"], created_at) for w in ("start", "end"))
    environment, now = object_or_wrapped(metadata.get("environment")), format_time(created_at)
    external = metadata.get("external_id")
    known = (
        isinstance(external, str) and uuid_for_external_id(external) == trajectory["trajectory_id"]
    )
    elsewhere = ("trajectory_id", "agent_id", "turns", "metadata")
    exact = {key: value for key, value in trajectory.items() if key not in elsewhere}
    filled: Tree = {
        "id": trajectory["trajectory_id"],
        "trajectoryId": external if known else trajectory["trajectory_id"],
        "agentId": trajectory["agent_id"],
        "startTime": format_time(start),
        "endTime": format_time(end),
        "durationMs": round((end - start).total_seconds() * 1000),
        "windowId": metadata.get("window_id") or window_id_at(start),
        "windowHours": metadata.get("window_hours", 1),
        "episodeId": metadata.get("episode_id"),
        "scenarioId": metadata.get("scenario_id"),
        "stepsJson": _to_json(_steps_from_turns(turns, metadata)),
        "rewardComponentsJson": _to_json(object_or_wrapped(metadata.get("reward_components"))),
        "metricsJson": _to_json(object_or_wrapped(metadata.get("metrics"))),
        "metadataJson": _to_json({**metadata, _EXACT: exact}),
        "totalReward": finite_number_or_none(metadata.get("total_reward")) or 0.0,
        "episodeLength": len(turns),
        "finalStatus": _status_column_value(metadata.get("outcome")),
        **{theirs: finite_number_or_none(environment.get(ours)) for theirs, ours in _FINAL.items()},
        **{theirs: metadata.get(ours) for theirs, ours in _JUDGE.items()},
        "isTrainingData": True,
        "isEvaluation": False,
        "usedInTraining": False,
        "createdAt": now,
        "updatedAt": now,
    }
    flags = object_or_wrapped(metadata.get("row"))
    filled |= {
        name: flags[_to_snake_case(name)] for name in _FLAGS if _to_snake_case(name) in flags
    }
    return {column: filled.get(column) for column in COLUMNS}


def _status_column_value(outcome: Any) -> Any:
    """The column's word for an outcome, whatever its form."""
    match outcome:
        case str():
            return outcome
        case bool() | int() | float():
            return "completed" if outcome == 1 else "partial" if outcome else "failed"
        case _:
            return object_or_wrapped(outcome).get("status", "unknown")


def _to_json(value: Any) -> str:
    return msgspec.json.encode(value).decode()


def _steps_from_turns(turns: Sequence[Mapping[str, Any]], metadata: Tree) -> list[Tree]:
    rewards = metadata.get("step_rewards")
    if not isinstance(rewards, list) or len(rewards) != len(turns):
        rewards = [None] * len(turns)
    return [_step_from_turn(turn, reward) for turn, reward in zip(turns, rewards, strict=True)]


def _step_from_turn(turn: Mapping[str, Any], reward: Any) -> Tree:
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
    return (
        step if turn_from_step(step, default_time=_EPOCH) == turn else {**step, "turn": dict(turn)}
    )
