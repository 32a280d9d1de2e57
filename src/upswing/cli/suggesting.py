"""What did a person mean who mistyped a command, an option or a variable of ours?"""

from __future__ import annotations

import argparse
import difflib
import re
from collections.abc import Iterable, Mapping
from typing import Any, NoReturn

_CHOICE = re.compile(
    r"argument (?P<where>[^:]+): invalid choice: '(?P<word>.*?)' \(choose from (?P<all>.*)\)",
    re.DOTALL,
)

VARIABLES = frozenset(
    {
        "AGENTGYM_RL_API_KEY",
        "AGENTGYM_RL_URL",
        "AGENTZERO_JETSTREAM",
        "BASE_MODEL",
        "CANARY_INITIAL_TRAFFIC",
        "CANARY_RAMP_HOURS",
        "DATABASE_URL",
        "JUDGE_MODEL",
        "MODEL_STORAGE_PATH",
        "NATS_URL",
        "NODE_ENV",
        "OPENAI_API_KEY",
        "OPENAI_BASE_URL",
        "RL_ALGORITHM",
        "RL_BASE_MODEL",
        "RL_FALLBACK_TO_BASE",
        "RL_MODEL_VERSION",
        "RL_ROLLOUT_PERCENTAGE",
        "RL_SCHEDULE_CRON",
        "RL_TRAINING_THRESHOLD",
        "ROLLBACK_ERROR_THRESHOLD",
        "ROLLBACK_REWARD_THRESHOLD",
        "TENSORZERO_ADMIN_TOKEN",
        "TENSORZERO_BASE_URL",
        "TRAIN_RL_LOCAL",
        "TRAJECTORY_STORAGE_PATH",
        "UPSWING_BACKEND_KEYS",
        "UPSWING_CHILD_ENV",
        "UPSWING_CONFIG",
        "UPSWING_DATA",
        "UPSWING_LOG_FORMAT",
        "UPSWING_ENV",
        "UPSWING_GATEWAY_KEYS",
        "UPSWING_MODEL_SERVER_KEY",
        "UPSWING_NATS_MONITOR",
        "UPSWING_PULSE_FD",
        "UPSWING_WEBHOOK_SECRET",
        "USE_RL_MODEL",
        "WANDB_API_KEY",
    }
)
"""Every variable that a process of ours reads."""
_OPEN = ("REWARD_WEIGHT_", "UPSWING_BACKEND_KEY_")
"""Beginnings whose rest is the user's own."""
_OURS = ("UPSWING_", "AGENTGYM_RL_")
"""Beginnings that nobody else has: what is unknown here is a mistake."""
_LIKELY, _SURE = 0.75, 0.87
"""How alike a name has to be that begins as ours do, and one that could be somebody else's."""


def did_you_mean(word: str, known: Iterable[str], *, cutoff: float = 0.6) -> str:
    """The end of a sentence about a word that nobody knows.

    >>> did_you_mean("statsu", ["status", "up"]), did_you_mean("zebra", ["status", "up"])
    ('; did you mean `status`?', '.')
    """
    found = difflib.get_close_matches(word, list(known), n=2, cutoff=cutoff)
    return f"; did you mean {' or '.join(f'`{each}`' for each in found)}?" if found else "."


def unknown_variables(environment: Mapping[str, str]) -> list[str]:
    """A sentence for each variable that looks like one of ours, and is none.

    >>> unknown_variables({"UPSWING_DTAA": "x", "RL_ALGORITM": "grpo", "HOME": "/", "UPSWING_DATA": "y"})
    ['RL_ALGORITM is set, which nothing reads; did you mean `RL_ALGORITHM`?', 'UPSWING_DTAA is set, which nothing reads; did you mean `UPSWING_DATA`?']
    """
    sentences = []
    for name in sorted(environment.keys() - VARIABLES):
        if name.startswith(_OPEN):
            continue
        ours = name.startswith(_OURS)
        hint = did_you_mean(name.upper(), VARIABLES, cutoff=_LIKELY if ours else _SURE)
        if ours or hint != ".":
            sentences.append(f"{name} is set, which nothing reads{hint}")
    return sentences


class Parser(argparse.ArgumentParser):
    """Says what may have been meant, instead of a list of everything."""

    def parse_args(self, args: Any = None, namespace: Any = None) -> Any:
        known, rest = self.parse_known_args(args, namespace)
        if rest:
            parser = getattr(known, "parser", self)
            parser.error(_unknown_arguments(rest, parser))
        return known

    def error(self, message: str) -> NoReturn:
        if found := _CHOICE.match(message):
            choices = re.findall(r"[^\s,'\"]+", found["all"])
            message = _unknown_choice(found["where"], found["word"], choices)
        super().error(message)


def _unknown_choice(where: str, word: str, choices: list[str]) -> str:
    hint = did_you_mean(word, choices)
    if where == "COMMAND":
        return f"there is no command {word!r}{hint} `upswing --help` lists them"
    return f"argument {where}: {word!r} is none of {', '.join(choices)}{hint}".removesuffix(".")


def _unknown_arguments(rest: list[str], parser: argparse.ArgumentParser) -> str:
    """The first word that no option or argument takes."""
    word = next((each for each in rest if each.startswith("-")), rest[0])
    name = word.partition("=")[0]
    known = [each for action in parser._actions for each in action.option_strings]  # noqa: SLF001 - argparse has no other door
    kind = "option" if word.startswith("-") else "argument"
    hint = did_you_mean(name, known) if kind == "option" else "."
    return f"there is no {kind} {name}{hint} `{parser.prog} --help` lists them"
