"""What of a message is free text, and what are ids, times, words of the contract and tokens?

| part                                   | what happens to it                                      |
|----------------------------------------|---------------------------------------------------------|
| ids of trajectory, times, turn ids,    | stay: they are fixed in form, and reading them together |
| `type` and the like                    | with the texts around would only mislead                |
| `agent_id`, `session_id`, `user_id`,   | stay, or become a pseudonym when they hold something:   |
| `task_id`, `scenario_id`               | a placeholder would make two tasks the same one         |
| `metadata.tokens`                      | spell the text before redaction: kept up to the first   |
|                                        | turn that redaction changes                             |
| everything else                        | redacted                                                |
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from upswing.redact.identity import pseudonym
from upswing.redact.redactor import Redactor

Tree = dict[str, Any]
_FIXED = ("trajectory_id", "start_timestamp", "end_timestamp")
_FIXED_IN_TURN = ("turn_id", "timestamp")
_FIXED_IN_PART = {
    "observation": ("type",),
    "action": ("type",),
    "result": ("success", "execution_time_ms"),
}
_FIXED_IN_FEEDBACK = ("feedback_id", "timestamp", "trajectory_id", "type")
_NAMES = {
    "agent_id": "agent", "session_id": "session", "user_id": "user",
    "task_id": "task", "scenario_id": "task",
}  # fmt: skip
"""A scenario may be called like its task, and stays called like it."""


@dataclass(frozen=True, slots=True)
class Clean:
    """A redacted message, and how many values were replaced in it."""

    tree: Tree
    findings: int


def redact_trajectory(tree: Tree, redactor: Redactor) -> Clean:
    """The trajectory without what must not be stored. Its input is not changed."""
    metadata = dict(tree["metadata"])
    tokens = metadata.pop("tokens") if are_tokens(metadata.get("tokens")) else None
    free = {key: value for key, value in tree.items() if key not in _FIXED}
    free |= {"turns": [_free_text(turn) for turn in tree["turns"]], "metadata": metadata}

    outcome = redactor.tree(free)
    about = {**outcome.value["metadata"], **_pseudonyms(metadata, outcome.value["metadata"])}
    if tokens is not None and (kept := _still_true(tokens, tree["turns"], outcome.findings)):
        about["tokens"] = kept
    turns = [
        _whole(turn, clean)
        for turn, clean in zip(tree["turns"], outcome.value["turns"], strict=True)
    ]
    fixed = {key: tree[key] for key in _FIXED}
    names = _pseudonyms(tree, outcome.value)
    task = outcome.value["task_context"]
    context = {**task, **_pseudonyms(tree["task_context"], task)}
    return Clean(
        {
            **outcome.value,
            **fixed,
            **names,
            "turns": turns,
            "task_context": context,
            "metadata": about,
        },
        len(outcome.findings),
    )


def redact_feedback(tree: Tree, redactor: Redactor) -> Clean:
    """The feedback without what must not be stored. Its input is not changed."""
    fixed = {key: tree[key] for key in _FIXED_IN_FEEDBACK if key in tree}
    outcome = redactor.tree({key: value for key, value in tree.items() if key not in fixed})
    names = _pseudonyms(tree, outcome.value)
    return Clean({**outcome.value, **fixed, **names}, len(outcome.findings))


def _pseudonyms(before: Tree, after: Tree) -> Tree:
    """Names for the ids in which something was found."""
    return {
        key: pseudonym(kind, before[key])
        for key, kind in _NAMES.items()
        if isinstance(before.get(key), str) and before[key] != after.get(key)
    }


def _free_text(turn: Tree) -> Tree:
    """The turn without what is fixed in form."""
    return {
        key: {name: value for name, value in part.items() if name not in _FIXED_IN_PART[key]}
        if key in _FIXED_IN_PART
        else part
        for key, part in turn.items()
        if key not in _FIXED_IN_TURN
    }


def _whole(turn: Tree, clean: Tree) -> Tree:
    """The turn again, with its texts clean."""
    return {
        key: {**part, **clean[key]} if key in _FIXED_IN_PART else clean.get(key, part)
        for key, part in turn.items()
    }


def are_tokens(value: object) -> bool:
    """Numbers only, so that there is nothing to redact in them."""
    return isinstance(value, list) and all(
        isinstance(part, dict)
        and set(part) <= {"turn_id", "ids", "logprobs"}
        and isinstance(part.get("turn_id"), int)
        and all(
            isinstance(part.get(key, []), list)
            and all(isinstance(number, int | float) for number in part.get(key, []))
            for key in ("ids", "logprobs")
        )
        for part in value
    )


def _still_true(tokens: list[Any], turns: list[Tree], findings: Any) -> list[Any]:
    changed = [
        turns[finding.path[1]]["turn_id"] if finding.path[0] == "turns" else 0
        for finding in findings
        if finding.path[0] in {"turns", "task_context"} and finding.path[1:] != ("task_id",)
    ]
    first = min(changed, default=None)
    return [part for part in tokens if first is None or part["turn_id"] < first]
