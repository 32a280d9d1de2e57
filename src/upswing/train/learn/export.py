"""What can somebody else fine-tune with? Samples as other trainers read them, one line each.

| layout   | a line                                                      | read by                          |
|----------|-------------------------------------------------------------|----------------------------------|
| `sft`    | `messages`, `tools`                                         | TRL, Axolotl, most trainers      |
| `openai` | the same; `weight` 0 for what is only read, not learned     | OpenAI's fine-tuning             |
| `dpo`    | `prompt`, `chosen`, `rejected`, `tools`                     | TRL's DPO                        |
| `hf`     | `prompt`, `completion`, `reward`, `label` and where it is from | `datasets.load_dataset("json")` |

Held-out tasks are in none of them: they are what the result is measured with.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Literal

from upswing.dataset.attempts import SUCCESS_SCORE
from upswing.dataset.conversation import (
    Message,
    action_message,
    as_text,
    observation_messages,
    recorded_calls,
    with_instructions,
)
from upswing.dataset.sample import Sample, SampleTurn
from upswing.train.core.recipe import Recipe
from upswing.train.core.spec import group_key
from upswing.train.learn.pairs import preference_pairs

Layout = Literal["sft", "openai", "dpo", "hf"]
ALGORITHMS: dict[Layout, str] = {"sft": "sft", "openai": "sft", "dpo": "dpo", "hf": "ppo"}
"""By whose rules the trajectories of a layout are chosen."""
_CALL_MARKERS = "<tool_call>"
_FOREIGN = "foreign"
"""Marks the words of an assistant that were in the first request."""


def export_lines(
    samples: Sequence[Sample], layout: Layout, recipe: Recipe
) -> Iterator[dict[str, Any]]:
    """The data set in a layout; what was held out is left out."""
    trained = [each for each in samples if not each.held_out]
    if layout == "dpo":
        yield from _preference_lines(trained, recipe)
        return
    for sample in trained:
        messages = conversation_messages(sample)
        if messages:
            yield (
                _text_line(sample, messages)
                if layout == "hf"
                else _chat_line(sample, messages, layout)
            )


def conversation_messages(sample: Sample) -> list[Message]:
    """A trajectory as chat messages, up to the last word of the model; empty if it never spoke."""
    messages: list[Message] = []
    waiting: tuple[str, ...] = ()
    before: SampleTurn | None = None
    for number, turn in enumerate(sample.turns):
        kind = turn.observation_type
        by_tool = "tool_result" if waiting and kind == "subordinate_response" else kind
        seen = [
            _without_training(each)
            for each in observation_messages(turn.observation, by_tool, waiting)
        ]
        seen = (
            _tool_results(seen, waiting, before)
            if before
            else with_instructions(sample.instructions, seen)
        )
        replies, waiting = _assistant_messages(turn, number)
        messages += [*seen, *replies]
        before = turn
    while messages and (messages[-1]["role"] != "assistant" or _FOREIGN in messages[-1]):
        messages.pop()
    return messages


def _without_training(message: Message) -> Message:
    """An assistant's words from before the first request are not what was done here."""
    return message | {"weight": 0, _FOREIGN: True} if message["role"] == "assistant" else message


def _tool_results(seen: list[Message], waiting: Sequence[str], before: SampleTurn) -> list[Message]:
    """Every call is answered: by what the tool said, or by what is known of it."""
    answered = {each.get("tool_call_id") for each in seen}
    result = as_text(before.error or before.output or "")
    alone = len(waiting) == 1
    missing = [
        {"role": "tool", "tool_call_id": each, "content": result if alone else ""}
        for each in waiting
        if each not in answered
    ]
    return (
        [
            *(each for each in seen if each["role"] == "tool"),
            *missing,
            *(each for each in seen if each["role"] != "tool"),
        ]
        if waiting
        else seen
    )


def _assistant_messages(turn: SampleTurn, number: int) -> tuple[list[Message], tuple[str, ...]]:
    action = turn.action if isinstance(turn.action, dict) else {}
    raw = action.get("raw_response")
    words = raw if isinstance(raw, str) else ""
    if not recorded_calls(action):
        return (
            [{"role": "assistant", "content": words} | _training_weight(turn)] if words else []
        ), ()
    reply, waiting = action_message({**action, "type": "tool_call"}, None, number)
    return [reply | {"content": _text_before_call(words)} | _training_weight(turn)], waiting


def _training_weight(turn: SampleTurn) -> Message:
    return {"weight": 0} if turn.context_only else {}


def _text_before_call(words: str) -> str:
    """What was said beside a call: where the call is spelled in the words, what stands before it."""
    if _CALL_MARKERS in words:
        return words.partition(_CALL_MARKERS)[0].strip()
    return "" if words.lstrip().startswith("{") else words


def _chat_line(sample: Sample, conversation: Sequence[Message], layout: Layout) -> dict[str, Any]:
    weighed = [_without_keys(each, _FOREIGN) for each in conversation]
    messages = weighed if layout == "openai" else _without_weights(conversation)
    return {"messages": messages, **_tools_field(sample)}


def _text_line(sample: Sample, messages: Sequence[Message]) -> dict[str, Any]:
    """The same columns with the same types in every line, as Arrow wants them."""
    prompt, completion = _split_prompt(messages)
    return {
        "id": sample.trajectory_id,
        "prompt": prompt,
        "completion": completion,
        "reward": float(sample.reward),
        "label": sample.reward >= SUCCESS_SCORE,
        "task": sample.task_id,
        "domain": sample.domain,
        "model": sample.model,
        "tools": as_text(sample.tools or []),
    }


def _preference_lines(samples: Sequence[Sample], recipe: Recipe) -> Iterator[dict[str, Any]]:
    """The better one and the worse one of each pair, where both began with the same words."""
    groups = [each.group or group_key(each.window_id, each.scenario_id) for each in samples]
    found = preference_pairs(
        [each.reward for each in samples],
        groups,
        [each.task_id for each in samples],
        max_pairs=recipe.max_pairs,
        min_spread=recipe.min_spread,
        seed=recipe.seed,
    )
    for pair in found:
        better, worse = samples[pair.chosen], samples[pair.rejected]
        prompt, chosen = _split_prompt(conversation_messages(better))
        same, rejected = _split_prompt(conversation_messages(worse))
        if prompt == same and chosen and rejected and chosen != rejected:
            yield {"prompt": prompt, "chosen": chosen, "rejected": rejected, **_tools_field(better)}


def _split_prompt(messages: Sequence[Message]) -> tuple[list[Message], list[Message]]:
    """Before the model first speaks, and from there on; solved examples are before."""
    speaks = (
        n for n, each in enumerate(messages) if each["role"] == "assistant" and _FOREIGN not in each
    )
    at = next(speaks, len(messages))
    return _without_weights(messages[:at]), _without_weights(messages[at:])


def _without_weights(messages: Sequence[Message]) -> list[Message]:
    return [_without_keys(each, "weight", _FOREIGN) for each in messages]


def _without_keys(message: Message, *names: str) -> Message:
    return {key: value for key, value in message.items() if key not in names}


def _tools_field(sample: Sample) -> dict[str, Any]:
    return {"tools": sample.tools} if sample.tools else {}
