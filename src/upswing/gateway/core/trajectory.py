"""What did the agent do? The exchanges of an episode as trajectory.v1.

Each answer of the model is a turn: what was new in the request, what the model did about it, and
what came of that, as the next request shows it. Where the server gives token ids, `metadata.tokens`
has for each turn those that are new since the turn before, prompt first, and the logprobs of the
completion, which belong to the last of them.

| the answer                       | its turn                                                                        |
|----------------------------------|---------------------------------------------------------------------------------|
| was left by its client           | what was generated until then; finish `cancelled`, and no fault. Of its tokens, |
|                                  | those whose text was sent: others would say what redaction has not read         |
| has several choices (`n`)        | the one that the next request goes on with, else the first                      |

An episode in which nothing was answered is one turn without an answer, and its infrastructure's fault.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import msgspec
from msgspec import Raw

from upswing.contracts.typed import from_json
from upswing.dataset.conversation import conversation_before, same_conversation
from upswing.dataset.model_answer import ModelAnswer
from upswing.dataset.transcript import (
    action_of,
    chosen_answer,
    instructions_of,
    observation_of,
    result_of,
)
from upswing.errors import Reason, Rejected
from upswing.gateway.core.frames import (
    ConversationFrame,
    EpisodeFrame,
    ExchangeFrame,
    TokenPrice,
    UnansweredFrame,
)
from upswing.gateway.core.keys import key_metadata
from upswing.gateway.core.native_answers import read_shaped_choices
from upswing.gateway.core.reported_outcome import CLIENT_METADATA_KEYS
from upswing.principals import Sender

Tree = dict[str, Any]
_REASON, _REASONS = 40, 8
"""Characters of a finish reason, and how many different ones are kept."""


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

    exchange: ExchangeFrame
    answer: ModelAnswer
    new_messages: Sequence[Tree]
    later_messages: Sequence[Tree]
    opens_conversation: bool
    """Of its chain."""
    request_messages: Sequence[Tree] = ()
    """All messages of its request."""
    choices: int = 1
    """How many the answer had."""


def build_trajectory(frame: EpisodeFrame) -> Tree:
    """The episode as a trajectory in JSON's types; `Rejected` when nothing of it can be read."""
    if frame.unanswered is not None and not frame.conversations:
        return _build_unanswered(frame, frame.unanswered)
    requests = [_last_request(each.request) for each in frame.conversations]
    turns = [
        turn
        for conversation, request in zip(frame.conversations, requests, strict=True)
        for turn in _answered_turns(conversation, request)
    ]
    turns.sort(key=lambda turn: turn.exchange.started_at)
    if not turns:
        raise Rejected(Reason.SCHEMA, "No answer of this episode can be read.")
    opening = msgspec.json.decode(requests[0].messages)
    ended = max(turn.exchange.started_at + turn.exchange.latency_ms / 1000 for turn in turns)
    trees = _turn_trees(turns, requests[0])
    instructions = instructions_of([m for m in opening if isinstance(m, dict)])
    rewritten = len(requests) > 1 or not same_conversation(
        conversation_before(instructions, trees), turns[-1].request_messages
    )
    return {
        "trajectory_id": frame.trajectory_id,
        "session_id": frame.session_id,
        "agent_id": frame.agent_id,
        "start_timestamp": _timestamp(turns[0].exchange.started_at),
        "end_timestamp": _timestamp(ended),
        "turns": trees,
        "task_context": {
            # Whoever names no task gets a hash of the redacted request at admission.
            "task_id": frame.task_id or frame.trajectory_id,
            "instructions": instructions,
        },
        "metadata": _metadata(frame, turns, requests, rewritten=rewritten),
    }


def _build_unanswered(frame: EpisodeFrame, unanswered: UnansweredFrame) -> Tree:
    """One turn: what was asked, and that nobody answered."""
    request = _last_request(unanswered.request)
    messages = [m for m in msgspec.json.decode(request.messages) if isinstance(m, dict)]
    kind = frame.faults[-1].kind if frame.faults else "unknown"
    started = unanswered.started_at
    turn = {
        "turn_id": 1,
        "timestamp": _timestamp(started),
        "observation": observation_of(messages, first=True),
        "action": {"type": "response", "raw_response": ""},
        "result": {
            "success": False,
            "output": None,
            "error": f"No model answered: {kind}.",
            "execution_time_ms": round(unanswered.waited_ms, 3),
        },
    }
    return {
        "trajectory_id": frame.trajectory_id,
        "session_id": frame.session_id,
        "agent_id": frame.agent_id,
        "start_timestamp": _timestamp(started),
        "end_timestamp": _timestamp(started + unanswered.waited_ms / 1000),
        "turns": [turn],
        "task_context": {
            "task_id": frame.task_id or frame.trajectory_id,
            "instructions": instructions_of(messages),
        },
        "metadata": _metadata(frame, (), [request], rewritten=False) | {"infra_error": True},
    }


def _last_request(body: bytes) -> _Request:
    try:
        return from_json(body, _Request)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise Rejected(
            Reason.SCHEMA, f"A request of this episode cannot be read: {error}."
        ) from None


def _answered_turns(conversation: ConversationFrame, request: _Request) -> list[_Turn]:
    """The answered requests of a conversation; `later_messages` reaches to the next one's end."""
    raw = bytes(request.messages)
    messages = [m if isinstance(m, dict) else {} for m in msgspec.json.decode(raw)]
    counts = [_message_count(raw, exchange.messages_size) for exchange in conversation.exchanges]
    ends = [*counts[1:], len(messages)]
    turns = []
    before = 0
    for exchange, count, end in zip(conversation.exchanges, counts, ends, strict=True):
        choices = _choices(exchange)
        if choices:
            new_messages, later_messages = messages[before:count], messages[count:end]
            turns.append(
                _Turn(
                    exchange,
                    chosen_answer(choices, later_messages),
                    new_messages,
                    later_messages,
                    before == 0,
                    messages[:count],
                    len(choices),
                )
            )
            before = count
    return turns


def _choices(exchange: ExchangeFrame) -> list[ModelAnswer]:
    choices = read_shaped_choices(exchange.answer, stream=exchange.stream, shape=exchange.shape)
    if exchange.cancelled:
        for answer in choices:
            answer.finish_reason = "cancelled"
            _keep_sent_tokens(answer)
    return choices


def _keep_sent_tokens(answer: ModelAnswer) -> None:
    """Of an answer that was left, a server may have drawn tokens whose text it still held back."""
    ids, texts, at, sent = answer.token_ids or [], answer.token_texts or [], 0, 0
    for text in texts[: len(ids)]:
        if not text or not answer.content.startswith(text, at):
            break
        at, sent = at + len(text), sent + 1
    answer.token_ids = ids[:sent] or None
    answer.logprobs = answer.logprobs[:sent] if answer.logprobs else None


def _message_count(raw: bytes, size: int) -> int:
    """How many messages a request had whose list was `size` bytes long.

    >>> _message_count(b'[{"a": 1}, {"b": 2}]', 10)
    1
    """
    whole = size >= len(raw)
    return len(from_json(raw if whole else raw[: size - 1] + b"]", list[Raw]))


def _turn_trees(turns: Sequence[_Turn], request: _Request) -> list[Tree]:
    trees = []
    ends = [turn.exchange.started_at for turn in turns[1:]]
    for number, turn in enumerate(turns, 1):
        observation = observation_of(turn.new_messages, first=turn.opens_conversation)
        if number == 1 and (tools := _tool_names(request)):
            observation["context"] = {"available_tools": tools}
        action, result = action_of(turn.answer), result_of(turn.answer, turn.later_messages)
        elapsed_ms = turn.exchange.latency_ms
        if action["type"] == "tool_call" and number <= len(ends):
            elapsed_ms = max(
                0.0, (ends[number - 1] - turn.exchange.started_at) * 1000 - turn.exchange.latency_ms
            )
        thoughts = {"thought_process": [turn.answer.reasoning]} if turn.answer.reasoning else {}
        trees.append(
            {
                "turn_id": number,
                "timestamp": _timestamp(turn.exchange.started_at),
                "observation": observation,
                **thoughts,
                "action": action,
                "result": {**result, "execution_time_ms": round(elapsed_ms, 3)},
            }
        )
    return trees


def _metadata(
    frame: EpisodeFrame, turns: Sequence[_Turn], requests: Sequence[_Request], *, rewritten: bool
) -> Tree:
    client_metadata = msgspec.json.decode(frame.about)
    outcome = msgspec.json.decode(frame.outcome)
    temperature, top_p, explored = requests[0].temperature, requests[0].top_p, False
    if (
        frame.temperature is not None
        and (1.0 if temperature is None else temperature) < frame.temperature
    ):
        temperature, explored = frame.temperature, True
    mixed, max_tokens = len(frame.models) > 1, _max_tokens(requests[0])
    return {
        **{key: client_metadata[key] for key in CLIENT_METADATA_KEYS if key in client_metadata},
        **({"outcome": outcome} if outcome is not None else {}),
        "model": frame.model_id,
        "policy_version": frame.model_id,
        "episode_id": frame.episode_id,
        **({"user_id": frame.user_id} if frame.user_id else {}),
        **(
            {"temperature": temperature}
            if temperature is not None and 0 <= temperature <= 2
            else {}
        ),
        **({"tools": tools} if (tools := requests[0].tools) else {}),
        **({"explored": True} if explored else {}),
        **({"top_p": top_p} if top_p is not None and 0 < top_p < 1 else {}),
        **({"max_tokens": max_tokens} if max_tokens is not None else {}),
        "total_tokens": sum(t.answer.prompt_tokens + t.answer.completion_tokens for t in turns),
        "total_cost_usd": sum(_cost(t, frame.prices.get(t.exchange.model_id)) for t in turns),
        "latency_ms": [round(turn.exchange.latency_ms, 3) for turn in turns],
        "inference_ids": [turn.exchange.inference_id for turn in turns],
        "answer_ids": [turn.answer.answer_id for turn in turns],
        "finish_reasons": [turn.answer.finish_reason for turn in turns],
        **(
            {"choices": [turn.choices for turn in turns]}
            if any(turn.choices > 1 for turn in turns)
            else {}
        ),
        "gateway": {
            "rollout": frame.rollout,
            "candidate": frame.candidate,
            "named": frame.named,
            **({"step": frame.step} if frame.step else {}),
            **({"switch": frame.switch} if frame.switch else {}),
            **({"unit": "user"} if frame.by_user else {}),
            **({"rewritten": True} if rewritten else {}),
            **({"cancelled": True} if frame.cancelled else {}),
            **key_metadata(Sender(frame.key, many=frame.many)),
            "failures": frame.failures,
            **_request_facts(frame, turns),
            "known_by": frame.source,
            "ended_by": frame.ended_by,
        },
        **({"mixed_models": frame.models} if mixed else {}),
        **({"withdrawn_model": frame.withdrawn} if frame.withdrawn else {}),
        **({"infra_error": True} if mixed or frame.broken else {}),
        **({"tokens": tokens} if (tokens := _token_metadata(frame, turns)) else {}),
    }


def _request_facts(frame: EpisodeFrame, turns: Sequence[_Turn]) -> Tree:
    """What is known of its requests beyond their text, of constant size: for whoever looks for causes of failures."""
    sizes = [turn.exchange.messages_size for turn in turns]
    sizes += [fault.prompt_bytes for fault in frame.faults]
    first = [t.exchange.first_token_ms for t in turns if t.exchange.first_token_ms >= 0]
    reasons = Counter(turn.answer.finish_reason[:_REASON] for turn in turns)
    errors = [
        {
            "model": fault.model_id,
            "kind": fault.kind,
            "at": _timestamp(fault.at),
            "waited_ms": round(fault.waited_ms, 3),
            "prompt_bytes": fault.prompt_bytes,
            **({"status": fault.status} if fault.status else {}),
        }
        for fault in frame.faults
    ]
    return {
        **({"prompt_bytes": max(sizes)} if sizes else {}),
        **({"first_token_ms": round(max(first), 3)} if first else {}),
        **({"finish_reasons": dict(reasons.most_common(_REASONS))} if any(reasons) else {}),
        **({"errors": errors} if errors else {}),
    }


def _max_tokens(request: _Request) -> int | None:
    """How long an answer was allowed to be, by either name."""
    for value in (request.max_completion_tokens, request.max_tokens):
        if isinstance(value, int) and not isinstance(value, bool) and value > 0:
            return value
    return None


def _cost(turn: _Turn, price: TokenPrice | None) -> float:
    if price is None:
        return 0.0
    answer = turn.answer
    return (answer.prompt_tokens * price.prompt + answer.completion_tokens * price.completion) / 1e6


def _token_metadata(frame: EpisodeFrame, turns: Sequence[_Turn]) -> list[Tree]:
    """Exact ids, as far as every prompt goes on from what came before it, token for token."""
    trees: list[Tree] = []
    known: list[int] = []
    if len(frame.conversations) > 1:
        return trees
    for number, turn in enumerate(turns, 1):
        prompt, ids, logprobs = (
            turn.answer.prompt_token_ids,
            turn.answer.token_ids,
            turn.answer.logprobs,
        )
        if prompt is None or ids is None or prompt[: len(known)] != known:
            break
        sure = logprobs is not None and len(logprobs) == len(ids)
        trees.append(
            {
                "turn_id": number,
                "ids": prompt[len(known) :] + ids,
                **({"logprobs": logprobs} if sure else {}),
            }
        )
        known = prompt + ids
    return trees


def _tool_names(request: _Request) -> list[str]:
    named = [tool.get("function") or tool for tool in request.tools or [] if isinstance(tool, dict)]
    return [tool["name"] for tool in named if isinstance(tool.get("name"), str)]


def _timestamp(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat()
