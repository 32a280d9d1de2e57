"""Which world is meant by an entry point, and does it fit?

    [validate.worlds]
    mine = "package.module:attribute"       # a world, or a class or function that makes one
    shop = "http://127.0.0.1:8200"          # an AgentGym server

| what is wrong                                           | `Misuse` says                         |
|---------------------------------------------------------|---------------------------------------|
| neither of the two forms                                | which forms there are                 |
| the module does not import, or has no such attribute    | what Python says of it                |
| the class or function fails, or wants arguments         | the same                              |
| a name of `World` is missing or of another type         | which one                             |
| no held-out task, two of one id, or a task is no task   | which one                             |
| the first held-out task cannot be begun                 | what the world raises                 |

The folder in which the process was started is searched as well, after all others. Packages may
offer worlds in the entry point group `upswing.worlds`.
"""

from __future__ import annotations

import contextlib
import importlib
import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any, NoReturn, cast

from upswing.errors import Misuse
from upswing.worlds.world import World

GROUP = "upswing.worlds"
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
_WHERE = re.compile(r"[^\W\d]\w*(\.[^\W\d]\w*)*:[^\W\d]\w*(\.[^\W\d]\w*)*")
_METHODS = ("reset", "observe", "step", "outcome")


def is_address(where: str) -> bool:
    """Whether it is the URL of a server.

    >>> is_address("https://worlds.example:8200"), is_address("shop.worlds:Shop")
    (True, False)
    """
    return where.startswith(("http://", "https://"))


def is_entry_point(where: str) -> bool:
    """Whether it has the form of an entry point.

    >>> is_entry_point("shop.worlds:Shop"), is_entry_point("triage"), is_entry_point("a:b:c")
    (True, False, False)
    """
    return _WHERE.fullmatch(where) is not None


def installed_worlds() -> dict[str, str]:
    """The worlds that installed packages offer: name → entry point."""
    return {point.name: point.value for point in entry_points(group=GROUP)}


def load_world(where: str) -> World[Any, Any]:
    """The world of an entry point, or `Misuse`.

    >>> load_world("nowhere")
    Traceback (most recent call last):
    upswing.errors.Misuse: nowhere is no world: write package.module:attribute, or the URL of an AgentGym server.
    """
    if not is_entry_point(where):
        raise Misuse(
            f"{where[:200]} is no world: write package.module:attribute, "
            "or the URL of an AgentGym server."
        )
    found = _import_attribute(where)
    if isinstance(found, type) or not _has_world_methods(found):
        if not callable(found):
            _refuse_world(where, f"it has no `{_missing_method(found)}`")
        with _raising_misuse(where, "it cannot be made"):
            found = cast("Callable[[], Any]", found)()
    _check_world(where, found)
    return cast("World[Any, Any]", found)


def _import_attribute(where: str) -> object:
    module, _, path = where.partition(":")
    here = str(Path.cwd())
    if here not in sys.path and "" not in sys.path:
        sys.path.append(here)
    with _raising_misuse(where, f"{module} cannot be imported"):
        found: object = importlib.import_module(module)
    for name in path.split("."):
        with _raising_misuse(where, f"{module} has no {path}"):
            found = getattr(found, name)
    return found


def _has_world_methods(found: object) -> bool:
    return all(callable(getattr(found, name, None)) for name in _METHODS)


def _missing_method(found: object) -> str:
    return next((name for name in _METHODS if not callable(getattr(found, name, None))), "held_out")


def _check_world(where: str, world: Any) -> None:
    """Whether it is a world, as far as one can tell without playing it."""
    if not _has_world_methods(world):
        _refuse_world(where, f"it has no `{_missing_method(world)}`")
    with _raising_misuse(where, "it cannot be read"):
        name, turns = world.name, world.max_turns
        _task_list(where, "training", world.training)
        held_out = _task_list(where, "held_out", world.held_out)
        tasks = [(task.task_id, task.instructions) for task in held_out]
    if not isinstance(name, str) or not name:
        _refuse_world(where, "its `name` is no text")
    if isinstance(turns, bool) or not isinstance(turns, int) or turns < 1:
        _refuse_world(where, "its `max_turns` is no number from 1 on")
    if not tasks:
        _refuse_world(where, "it has no task in `held_out` to measure with")
    seen: set[str] = set()
    for task_id, instructions in tasks:
        if not isinstance(task_id, str) or not task_id or not isinstance(instructions, str):
            _refuse_world(
                where, "a task of `held_out` has no text as its `task_id` or `instructions`"
            )
        if task_id in seen:
            _refuse_world(where, f"`held_out` has the task {task_id[:80]} twice")
        seen.add(task_id)
    with _raising_misuse(where, "its first held-out task cannot be begun"):
        text = world.observe(world.reset(world.held_out[0])).text
    if not isinstance(text, str):
        _refuse_world(where, "what `observe` shows has no text")


def _task_list(where: str, name: str, found: object) -> Sequence[Any]:
    if not isinstance(found, Sequence) or isinstance(found, str | bytes):
        _refuse_world(where, f"its `{name}` is no list of tasks")
    return found


def _refuse_world(where: str, why: str) -> NoReturn:
    raise Misuse(f"{where} is no world: {why}.")


@contextlib.contextmanager
def _raising_misuse(where: str, what: str) -> Iterator[None]:
    """Whatever a user's code raises becomes a sentence."""
    try:
        yield
    except Misuse:
        raise
    except (Exception, SystemExit) as error:  # noqa: BLE001 - foreign code: it may raise anything
        description = " ".join(f"{type(error).__name__}: {error}".split())[:300]
        raise Misuse(f"{where} is no world: {what}: {description}.") from None


def check_names(own: Mapping[str, str], ours: Sequence[str]) -> None:
    """`Misuse` when a name of `[validate.worlds]` cannot be one, or is taken.

    >>> check_names({"desk": "shop:Desk"}, ["desk"])
    Traceback (most recent call last):
    upswing.errors.Misuse: `desk` in [validate.worlds]: there is a world of ours with this name.
    """
    for name in own:
        if not NAME.fullmatch(name):
            raise Misuse(
                f"`{name[:80]}` in [validate.worlds]: a name has letters, digits, `.`, `_` and `-`."
            )
        if name in ours:
            raise Misuse(f"`{name}` in [validate.worlds]: there is a world of ours with this name.")
