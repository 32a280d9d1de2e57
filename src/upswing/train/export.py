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

from upswing.dataset.conversation import Message, calls_of, heard, opened, said, text
from upswing.dataset.sample import Sample, SampleTurn
from upswing.dataset.teaching import SUCCESS
from upswing.train.pairs import preference_pairs
from upswing.train.recipe import Recipe
from upswing.train.spec import group_key

Layout = Literal["sft", "openai", "dpo", "hf"]
ALGORITHMS: dict[Layout, str] = {"sft": "sft", "openai": "sft", "dpo": "dpo", "hf": "ppo"}
"""By whose rules the trajectories of a layout are chosen."""
_CALL = "<tool_call>"
_FOREIGN = "foreign"
"""Marks the words of an assistant that were in the first request."""


def lines(samples: Sequence[Sample], layout: Layout, recipe: Recipe) -> Iterator[dict[str, Any]]:
    """The data set in a layout; what was held out is left out."""
    trained = [each for each in samples if not each.held_out]
    if layout == "dpo":
        yield from _pairs(trained, recipe)
        return
    for sample in trained:
        talk = conversation(sample)
        if talk:
            yield _flat(sample, talk) if layout == "hf" else _told(sample, talk, layout)


def conversation(sample: Sample) -> list[Message]:
    """A trajectory as chat messages, up to the last word of the model; empty if it never spoke."""
    talk: list[Message] = []
    waiting: tuple[str, ...] = ()
    before: SampleTurn | None = None
    for number, turn in enumerate(sample.turns):
        kind = turn.observation_type
        by_tool = "tool_result" if waiting and kind == "subordinate_response" else kind
        seen = [_only_read(each) for each in heard(turn.observation, by_tool, waiting)]
        seen = _answered(seen, waiting, before) if before else opened(sample.instructions, seen)
        told, waiting = _said(turn, number)
        talk += [*seen, *told]
        before = turn
    while talk and (talk[-1]["role"] != "assistant" or _FOREIGN in talk[-1]):
        talk.pop()
    return talk


def _only_read(message: Message) -> Message:
    """An assistant's words from before the first request are not what was done here."""
    return message | {"weight": 0, _FOREIGN: True} if message["role"] == "assistant" else message


def _answered(seen: list[Message], waiting: Sequence[str], before: SampleTurn) -> list[Message]:
    """Every call is answered: by what the tool said, or by what is known of it."""
    told = {each.get("tool_call_id") for each in seen}
    result = text(before.error or before.output or "")
    alone = len(waiting) == 1
    missing = [
        {"role": "tool", "tool_call_id": each, "content": result if alone else ""}
        for each in waiting
        if each not in told
    ]
    return [*(each for each in seen if each["role"] == "tool"), *missing,
            *(each for each in seen if each["role"] != "tool")] if waiting else seen  # fmt: skip


def _said(turn: SampleTurn, number: int) -> tuple[list[Message], tuple[str, ...]]:
    action = turn.action if isinstance(turn.action, dict) else {}
    raw = action.get("raw_response")
    words = raw if isinstance(raw, str) else ""
    if not calls_of(action):
        return ([{"role": "assistant", "content": words} | _weight(turn)] if words else []), ()
    told, waiting = said({**action, "type": "tool_call"}, None, number)
    return [told | {"content": _before(words)} | _weight(turn)], waiting


def _weight(turn: SampleTurn) -> Message:
    return {"weight": 0} if turn.context_only else {}


def _before(words: str) -> str:
    """What was said beside a call: where the call is spelled in the words, what stands before it."""
    if _CALL in words:
        return words.partition(_CALL)[0].strip()
    return "" if words.lstrip().startswith("{") else words


def _told(sample: Sample, talk: Sequence[Message], layout: Layout) -> dict[str, Any]:
    weighed = [_without(each, _FOREIGN) for each in talk]
    messages = weighed if layout == "openai" else _unweighed(talk)
    return {"messages": messages, **_tools(sample)}


def _flat(sample: Sample, talk: Sequence[Message]) -> dict[str, Any]:
    """The same columns with the same types in every line, as Arrow wants them."""
    prompt, completion = _split(talk)
    return {
        "id": sample.trajectory_id, "prompt": prompt, "completion": completion,
        "reward": float(sample.reward), "label": sample.reward >= SUCCESS, "task": sample.task_id,
        "domain": sample.domain, "model": sample.model, "tools": text(sample.tools or []),
    }  # fmt: skip


def _pairs(samples: Sequence[Sample], recipe: Recipe) -> Iterator[dict[str, Any]]:
    """The better one and the worse one of each pair, where both began with the same words."""
    groups = [each.group or group_key(each.window_id, each.scenario_id) for each in samples]
    found = preference_pairs(
        [each.reward for each in samples], groups, [each.task_id for each in samples],
        max_pairs=recipe.max_pairs, min_spread=recipe.min_spread, seed=recipe.seed,
    )  # fmt: skip
    for pair in found:
        better, worse = samples[pair.chosen], samples[pair.rejected]
        prompt, chosen = _split(conversation(better))
        same, rejected = _split(conversation(worse))
        if prompt == same and chosen and rejected and chosen != rejected:
            yield {"prompt": prompt, "chosen": chosen, "rejected": rejected, **_tools(better)}


def _split(talk: Sequence[Message]) -> tuple[list[Message], list[Message]]:
    """Before the model first speaks, and from there on; solved examples are before."""
    speaks = (
        n for n, each in enumerate(talk) if each["role"] == "assistant" and _FOREIGN not in each
    )
    at = next(speaks, len(talk))
    return _unweighed(talk[:at]), _unweighed(talk[at:])


def _unweighed(talk: Sequence[Message]) -> list[Message]:
    return [_without(each, "weight", _FOREIGN) for each in talk]


def _without(message: Message, *names: str) -> Message:
    return {key: value for key, value in message.items() if key not in names}


def _tools(sample: Sample) -> dict[str, Any]:
    return {"tools": sample.tools} if sample.tools else {}
