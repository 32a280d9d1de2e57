"""What did the agent do? The exchanges of an episode as trajectory.v1.

Each answer of the model is a turn: what was new in the request, what the model did about it, and
what came of that, as the next request tells it. Where the server gives token ids, `metadata.tokens`
has for each turn those that are new since the turn before, prompt first, and the logprobs of the
completion, which belong to the last of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import msgspec
from msgspec import Raw

from upswing.contracts.typed import from_json
from upswing.dataset.conversation import alike, asked
from upswing.errors import Reason, Rejected
from upswing.gateway.answers import Answer, read_answer
from upswing.gateway.frames import ChainFrame, EpisodeFrame, HeardFrame, Price
from upswing.gateway.keys import key_told
from upswing.gateway.said import FROM_CLIENT
from upswing.gateway.talk import action_of, instructions_of, observation_of, result_of
from upswing.senders import Sender

Tree = dict[str, Any]


class _Request(msgspec.Struct):
    messages: Raw
    temperature: float | None = None
    top_p: float | None = None
    max_tokens: Any = None
    max_completion_tokens: Any = None
    tools: list[Any] | None = None


@dataclass(frozen=True, slots=True)
class _Turn:
    """An answer with everything around it."""

    heard: HeardFrame
    answer: Answer
    news: Sequence[Tree]
    later: Sequence[Tree]
    first: bool
    """Of its chain."""
    heard_before: Sequence[Tree] = ()
    """All messages of its request."""


def trajectory_of(frame: EpisodeFrame) -> Tree:
    """The episode as a trajectory in JSON's types; `Rejected` when nothing was answered in it."""
    requests = [_request(chain) for chain in frame.chains]
    turns = [
        turn
        for chain, request in zip(frame.chains, requests, strict=True)
        for turn in _turns(chain, request)
    ]
    turns.sort(key=lambda turn: turn.heard.at)
    if not turns:
        raise Rejected(Reason.SCHEMA, "No answer of this episode can be read.")
    opening = msgspec.json.decode(requests[0].messages)
    ended = max(turn.heard.at + turn.heard.ms / 1000 for turn in turns)
    told = _told(turns, requests[0])
    instructions = instructions_of([m for m in opening if isinstance(m, dict)])
    rewritten = len(requests) > 1 or not alike(asked(instructions, told), turns[-1].heard_before)
    return {
        "trajectory_id": frame.trajectory_id,
        "session_id": frame.session_id,
        "agent_id": frame.agent_id,
        "start_timestamp": _time(turns[0].heard.at),
        "end_timestamp": _time(ended),
        "turns": told,
        "task_context": {
            # Whoever names no task gets a hash of the redacted request at the door.
            "task_id": frame.task_id or frame.trajectory_id,
            "instructions": instructions,
        },
        "metadata": _metadata(frame, turns, requests, rewritten=rewritten),
    }


def _request(chain: ChainFrame) -> _Request:
    try:
        return from_json(chain.request, _Request)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise Rejected(
            Reason.SCHEMA, f"A request of this episode cannot be read: {error}."
        ) from None


def _turns(chain: ChainFrame, request: _Request) -> list[_Turn]:
    """The answered requests of a chain; `later` reaches to the next one's end."""
    raw = bytes(request.messages)
    messages = [m if isinstance(m, dict) else {} for m in msgspec.json.decode(raw)]
    counts = [_count(raw, heard.messages) for heard in chain.heard]
    ends = [*counts[1:], len(messages)]
    turns = []
    before = 0
    for heard, count, end in zip(chain.heard, counts, ends, strict=True):
        answer = read_answer(heard.answer, stream=heard.stream)
        if answer is not None:
            news, later = messages[before:count], messages[count:end]
            turns.append(_Turn(heard, answer, news, later, before == 0, messages[:count]))
            before = count
    return turns


def _count(raw: bytes, size: int) -> int:
    """How many messages a request had whose list was `size` bytes long.

    >>> _count(b'[{"a": 1}, {"b": 2}]', 10)
    1
    """
    whole = size >= len(raw)
    return len(from_json(raw if whole else raw[: size - 1] + b"]", list[Raw]))


def _told(turns: Sequence[_Turn], request: _Request) -> list[Tree]:
    told = []
    ends = [turn.heard.at for turn in turns[1:]]
    for number, turn in enumerate(turns, 1):
        observation = observation_of(turn.news, first=turn.first)
        if number == 1 and (tools := _tools(request)):
            observation["context"] = {"available_tools": tools}
        action, result = action_of(turn.answer), result_of(turn.answer, turn.later)
        took = turn.heard.ms
        if action["type"] == "tool_call" and number <= len(ends):
            took = max(0.0, (ends[number - 1] - turn.heard.at) * 1000 - turn.heard.ms)
        thoughts = {"thought_process": [turn.answer.reasoning]} if turn.answer.reasoning else {}
        told.append({
            "turn_id": number, "timestamp": _time(turn.heard.at), "observation": observation,
            **thoughts, "action": action, "result": {**result, "execution_time_ms": round(took, 3)},
        })  # fmt: skip
    return told


def _metadata(
    frame: EpisodeFrame, turns: Sequence[_Turn], requests: Sequence[_Request], *, rewritten: bool
) -> Tree:
    said = msgspec.json.decode(frame.about)
    outcome = msgspec.json.decode(frame.outcome)
    temperature, top_p, explored = requests[0].temperature, requests[0].top_p, False
    if (
        frame.temperature is not None
        and (1.0 if temperature is None else temperature) < frame.temperature
    ):
        temperature, explored = frame.temperature, True
    mixed, most = len(frame.models) > 1, _most_tokens(requests[0])
    return {
        **{key: said[key] for key in FROM_CLIENT if key in said},
        **({"outcome": outcome} if outcome is not None else {}),
        "model": frame.model_id,
        "policy_version": frame.model_id,
        "episode_id": frame.episode_id,
        **({"user_id": frame.user_id} if frame.user_id else {}),
        **({"temperature": temperature} if temperature is not None and 0 <= temperature <= 2 else {}),
        **({"tools": tools} if (tools := requests[0].tools) else {}),
        **({"explored": True} if explored else {}),
        **({"top_p": top_p} if top_p is not None and 0 < top_p < 1 else {}),
        **({"max_tokens": most} if most is not None else {}),
        "total_tokens": sum(t.answer.prompt_tokens + t.answer.completion_tokens for t in turns),
        "total_cost_usd": sum(_cost(t, frame.prices.get(t.heard.model_id)) for t in turns),
        "latency_ms": [round(turn.heard.ms, 3) for turn in turns],
        "inference_ids": [turn.heard.inference_id for turn in turns],
        "answer_ids": [turn.answer.answer_id for turn in turns],
        "gateway": {
            "rollout": frame.rollout, "candidate": frame.candidate, "named": frame.named,
            **({"step": frame.step} if frame.step else {}),
            **({"switch": frame.switch} if frame.switch else {}),
            **({"unit": "user"} if frame.by_user else {}),
            **({"rewritten": True} if rewritten else {}),
            **({"cancelled": True} if frame.cancelled else {}),
            **key_told(Sender(frame.key, many=frame.many)),
            "failures": frame.failures, "known_by": frame.source, "ended_by": frame.ended_by,
        },
        **({"mixed_models": frame.models} if mixed else {}),
        **({"withdrawn_model": frame.withdrawn} if frame.withdrawn else {}),
        **({"infra_error": True} if mixed or frame.broken else {}),
        **({"tokens": tokens} if (tokens := _tokens(frame, turns)) else {}),
    }  # fmt: skip


def _most_tokens(request: _Request) -> int | None:
    """How long an answer was allowed to be, by either name."""
    for told in (request.max_completion_tokens, request.max_tokens):
        if isinstance(told, int) and not isinstance(told, bool) and told > 0:
            return told
    return None


def _cost(turn: _Turn, price: Price | None) -> float:
    if price is None:
        return 0.0
    answer = turn.answer
    return (answer.prompt_tokens * price.prompt + answer.completion_tokens * price.completion) / 1e6


def _tokens(frame: EpisodeFrame, turns: Sequence[_Turn]) -> list[Tree]:
    """Exact ids, as far as every prompt goes on from what came before it, token for token."""
    told: list[Tree] = []
    known: list[int] = []
    if len(frame.chains) > 1:
        return told
    for number, turn in enumerate(turns, 1):
        prompt, ids, logprobs = turn.answer.prompt_ids, turn.answer.ids, turn.answer.logprobs
        if prompt is None or ids is None or prompt[: len(known)] != known:
            break
        sure = logprobs is not None and len(logprobs) == len(ids)
        told.append({
            "turn_id": number, "ids": prompt[len(known) :] + ids,
            **({"logprobs": logprobs} if sure else {}),
        })  # fmt: skip
        known = prompt + ids
    return told


def _tools(request: _Request) -> list[str]:
    named = [tool.get("function") or tool for tool in request.tools or [] if isinstance(tool, dict)]
    return [tool["name"] for tool in named if isinstance(tool.get("name"), str)]


def _time(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).isoformat()
