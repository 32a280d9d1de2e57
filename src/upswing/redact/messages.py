"""What of a message is free text, and what are ids, times, words of the contract and tokens?

| part                                   | what happens to it                                      |
|----------------------------------------|---------------------------------------------------------|
| ids of trajectory, times, turn ids,    | stay: they are fixed in form, and reading them together |
| `type` and the like                    | with the texts around would only mislead                |
| words of a closed list (`domain`, a    | stay for the same reason, where they are on their list: |
| known profile, an outcome's status)    | anything else in their place is free text               |
| `agent_id`, `session_id`, `user_id`,   | stay, or become a pseudonym when they hold something:   |
| `task_id`, `scenario_id`, `episode_id`,| a placeholder would make two tasks the same one         |
| `inference_id`, `feedback_id`          |                                                         |
| `metadata.tokens`                      | spell the text before redaction: kept up to the first   |
|                                        | turn that redaction changes                             |
| everything else                        | redacted                                                |
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from upswing.contracts.outcome import WINDOW_PATTERN
from upswing.contracts.trajectory import DOMAINS, PROFILES
from upswing.contracts.words import SOURCES, STATUSES
from upswing.redact.identity import LONGEST, pseudonym_for, redact_identity
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
    "agent_id": "agent",
    "session_id": "session",
    "user_id": "user",
    "task_id": "task",
    "scenario_id": "task",
    "episode_id": "episode",
    "inference_id": "inference",
}
"""A scenario may be called like its task, and stays called like it."""
_WINDOW = re.compile(WINDOW_PATTERN)
Path = tuple[str, ...]


def _is_window_name(word: str) -> bool:
    return _WINDOW.search(word) is not None


CLOSED: dict[Path, Callable[[str], bool]] = {
    ("subordinate_profile",): PROFILES.__contains__,
    ("task_context", "domain"): DOMAINS.__contains__,
    ("metadata", "window_id"): _is_window_name,
    ("metadata", "scenario_id"): _is_window_name,
    ("metadata", "outcome"): STATUSES.__contains__,
    ("metadata", "outcome", "status"): STATUSES.__contains__,
    ("metadata", "outcome", "source"): SOURCES.__contains__,
}
"""Where words of a closed list stand: nothing private fits into one, and a reader depends on it."""
CLOSED_IN_HEAD: dict[Path, Callable[[str], bool]] = {
    ("domain",): DOMAINS.__contains__,
    **{
        (key,): PROFILES.__contains__
        for key in ("profile", "subordinateProfile", "subordinate_profile")
    },
    **{(key,): _is_window_name for key in ("windowId", "window_id", "scenarioId", "scenario_id")},
}
"""The same in the head of a trajectory that comes in steps."""


@dataclass(frozen=True, slots=True)
class Clean:
    """A redacted message, and how many values were replaced in it."""

    tree: Tree
    findings: int


def redact_trajectory(tree: Tree, redactor: Redactor) -> Clean:
    """The trajectory without what must not be stored. Its input is not changed."""
    metadata = dict(tree["metadata"])
    tokens = metadata.pop("tokens") if is_token_list(metadata.get("tokens")) else None
    free = {key: value for key, value in tree.items() if key not in _FIXED}
    free |= {"turns": [_free_text_of_turn(turn) for turn in tree["turns"]], "metadata": metadata}
    free, words = remove_listed_words(free, CLOSED)

    outcome = redactor.tree(free)
    clean = restore_listed_words(outcome.value, words)
    about = {**clean["metadata"], **_replace_private_ids(metadata, clean["metadata"])}
    if tokens is not None and (
        kept := _clear_stale_tokens(tokens, tree["turns"], outcome.findings)
    ):
        about["tokens"] = kept
    turns = [
        _restore_turn(turn, read) for turn, read in zip(tree["turns"], clean["turns"], strict=True)
    ]
    fixed = {key: tree[key] for key in _FIXED}
    names = _replace_private_ids(tree, clean)
    task = clean["task_context"]
    context = {**task, **_replace_private_ids(tree["task_context"], task)}
    return Clean(
        {
            **clean,
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
    names, found = _replace_private_ids(tree, outcome.value), len(outcome.findings)
    if isinstance(name := tree.get("feedback_id"), str):  # read alone: it belongs to no text
        fixed["feedback_id"] = redact_identity(redactor, "feedback", name)
        found += fixed["feedback_id"] != name
    return Clean({**outcome.value, **fixed, **names}, found)


def remove_listed_words(
    tree: Tree, closed: Mapping[Path, Callable[[str], bool]]
) -> tuple[Tree, list[tuple[Path, str]]]:
    """The tree without the words of closed lists, and those words with their places."""
    found = []
    for path, known in closed.items():
        word = _value_at_path(tree, path)
        if isinstance(word, str) and known(word):
            found.append((path, word))
            tree = _copy_with_word(tree, path, None)
    return tree, found


def restore_listed_words(tree: Tree, words: Sequence[tuple[Path, str]]) -> Tree:
    """The words in their places again."""
    for path, word in words:
        tree = _copy_with_word(tree, path, word)
    return tree


def _value_at_path(tree: Any, path: Path) -> Any:
    for key in path:
        tree = tree.get(key) if isinstance(tree, dict) else None
    return tree


def _copy_with_word(tree: Tree, path: Path, word: str | None) -> Tree:
    """A copy in which another word, or none, stands at this place."""
    key, *below = path
    return {**tree, key: _copy_with_word(tree[key], tuple(below), word) if below else word}


def _replace_private_ids(before: Tree, after: Tree) -> Tree:
    """Names for the ids in which something was found, and for those that are too long to be one."""
    return {
        key: pseudonym_for(kind, before[key])
        for key, kind in _NAMES.items()
        if isinstance(before.get(key), str)
        and (before[key] != after.get(key) or len(before[key]) > LONGEST)
    }


def _free_text_of_turn(turn: Tree) -> Tree:
    """The turn without what is fixed in form."""
    return {
        key: {name: value for name, value in part.items() if name not in _FIXED_IN_PART[key]}
        if key in _FIXED_IN_PART
        else part
        for key, part in turn.items()
        if key not in _FIXED_IN_TURN
    }


def _restore_turn(turn: Tree, clean: Tree) -> Tree:
    """The turn again, with its texts clean."""
    return {
        key: {**part, **clean[key]} if key in _FIXED_IN_PART else clean.get(key, part)
        for key, part in turn.items()
    }


def is_token_list(value: object) -> bool:
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


def _clear_stale_tokens(tokens: list[Any], turns: list[Tree], findings: Any) -> list[Any]:
    changed = [
        turns[finding.path[1]]["turn_id"] if finding.path[0] == "turns" else 0
        for finding in findings
        if finding.path[0] in {"turns", "task_context"} and finding.path[1:] != ("task_id",)
    ]
    first = min(changed, default=None)
    return [part for part in tokens if first is None or part["turn_id"] < first]
