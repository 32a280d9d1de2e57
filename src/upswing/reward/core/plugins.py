"""Which further views of a trajectory did somebody install, and what do they say?

A package offers a component under the entry point group `upswing.reward`:

    [project.entry-points."upswing.reward"]
    safety = "acme.safety:component"

where `component` is a `Plugin`, or a function with a number `weight` on it. It is given the
trajectory and answers with a `Score`, or None when it has nothing to say of this one.

| the plugin                        | its component, for this trajectory         |
|-----------------------------------|--------------------------------------------|
| answers a score                   | counts                                     |
| answers None                      | is absent                                  |
| raises, or answers something else | is absent, counted, with a sentence        |
"""

from __future__ import annotations

import re
from collections.abc import Callable, Container, Iterable
from dataclasses import dataclass, field
from importlib.metadata import EntryPoint
from typing import Any, get_args

import msgspec

from upswing.contracts import Trajectory
from upswing.reward.core.score import Score, Source
from upswing.reward.core.weights import BUILT_IN

GROUP = "upswing.reward"
_NAME = re.compile(r"[a-z][a-z0-9_]{0,39}\Z")
_SOURCES = frozenset(get_args(Source))


@dataclass(frozen=True, slots=True)
class Plugin:
    """A component that is not built in."""

    name: str
    weight: float
    """0 to 1: the share of the total it asks for; the built-in ones make room."""
    score: Callable[[Trajectory], Score | None]


@dataclass(frozen=True, slots=True)
class LoadedPlugins:
    """The plugins that can be used, and a sentence for each that cannot."""

    plugins: tuple[Plugin, ...] = ()
    refused: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class PluginScores:
    """What the plugins say of one trajectory."""

    scores: dict[str, Score | None] = field(default_factory=dict)
    failures: dict[str, str] = field(default_factory=dict)
    """A sentence for each that raised or answered nonsense."""


def load_plugins(entry_points: Iterable[EntryPoint]) -> LoadedPlugins:
    """The installed plugins, in the order of their names."""
    plugins: dict[str, Plugin] = {}
    refused: list[str] = []
    for entry in sorted(entry_points, key=lambda one: one.name):
        try:
            plugin = _checked_plugin(entry.name, entry.load(), taken=plugins)
        except (Exception, SystemExit) as error:  # noqa: BLE001 - foreign code: it must not stop the loop
            refused.append(f"The reward plugin {entry.name!r} is not used: {_error_text(error)}.")
        else:
            plugins[plugin.name] = plugin
    return LoadedPlugins(tuple(plugins.values()), tuple(refused))


def score_with_plugins(plugins: Iterable[Plugin], trajectory: Trajectory) -> PluginScores:
    """What each plugin says; one that fails is absent and takes nothing else with it."""
    found = PluginScores()
    for plugin in plugins:
        found.scores[plugin.name] = None
        try:
            found.scores[plugin.name] = _checked_score(plugin.score(trajectory))
        except (Exception, SystemExit) as error:  # noqa: BLE001 - foreign code: it must not stop the loop
            found.failures[plugin.name] = (
                f"The plugin {plugin.name} gave no score: {_error_text(error)}."
            )
    return found


def _checked_plugin(name: str, found: Any, taken: Container[str]) -> Plugin:
    if not isinstance(found, Plugin):
        if not callable(found) or not hasattr(found, "weight"):
            raise TypeError("it is neither a Plugin nor a function with a `weight`")
        return _checked_plugin(name, Plugin(name, found.weight, found), taken)
    if not _NAME.match(found.name) or found.name in BUILT_IN or found.name in taken:
        raise ValueError(f"{found.name!r} is taken, or not a name of lower-case letters")
    if isinstance(found.weight, bool) or not 0 <= found.weight <= 1:
        raise ValueError(f"its weight is {found.weight!r}, not a number from 0 to 1")
    return found


def _checked_score(answer: Any) -> Score | None:
    """The answer as it is, if it can stand in a reward."""
    if answer is None:
        return None
    if not isinstance(answer, Score):
        raise TypeError(f"it answered a {type(answer).__name__}, not a Score")
    if answer.source not in _SOURCES or not isinstance(answer.reasoning, str):
        raise ValueError("its source or its reasoning is not what a reward can hold")
    if not 0 <= answer.confidence <= 1:
        raise ValueError(f"its confidence is {answer.confidence}")
    tree = msgspec.json.decode(msgspec.json.encode(answer.raw_data))
    if not isinstance(tree, dict):
        raise TypeError("its raw_data is not an object")
    return Score(
        float(answer.value), answer.source, answer.reasoning, tree, float(answer.confidence)
    )


def _error_text(error: BaseException) -> str:
    text = " ".join(str(error).split())[:200].rstrip(".")
    return f"{type(error).__name__}: {text}" if text else type(error).__name__
