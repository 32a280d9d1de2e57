"""What does a request to train ask for, and what of it may be stored?

| part                                          | what happens to it                              |
|-----------------------------------------------|-------------------------------------------------|
| left out                                      | the loop's own: id, time, algorithm, base, data |
| requester, notes, metadata, names of tasks    | redacted                                        |
| id, base model, stream, storage path, targets | refused when they hold something private: a     |
|                                               | placeholder in their place would lead nowhere   |
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import msgspec

from upswing.config import Defaults
from upswing.contracts import TrainingRequest, decode, from_builtins
from upswing.contracts.field_errors import locate_mistake
from upswing.contracts.training import DATASET_SIZE, NEW
from upswing.contracts.typed import from_tree
from upswing.errors import Misuse, Reason, Rejected
from upswing.redact import RedactionFailed, Redactor
from upswing.train.core.recipe import Recipe

MAX_BYTES = 256 * 1024
"""Of a request: many times what one needs, and quickly redacted."""
_MAX_DEPTH = 64
_IDENTIFIER_FIELDS: tuple[tuple[str, ...], ...] = (
    ("training_job_id",),
    ("training_config", "base_model"),
    ("training_config", "dataset", "stream_name"),
    ("training_config", "checkpointing", "storage_path"),
    ("metadata", "recipe"),
)
"""Texts that are used as they are."""
_FREE_TEXT_FIELDS: tuple[tuple[str, ...], ...] = (
    ("requester",),
    ("metadata",),
    ("evaluation", "benchmark_tasks"),
    ("training_config", "compute", "gpu_type"),
    ("training_config", "dataset", "filter", "exclude_subordinate_profiles"),
)
"""Texts that people read."""


@dataclass(frozen=True, slots=True)
class RequestDefaults:
    """What stands in for what a request leaves out."""

    job_id: str
    now: datetime
    requester: str
    defaults: Defaults
    serving_job: str | None = None
    """The job of the model that answers: training starts from it unless the request says from what."""


@dataclass(frozen=True, slots=True)
class RedactedRequest:
    """A request fit to be stored, and whether it differs from what came in."""

    request: TrainingRequest
    changed: bool


def check_recipe_settings(
    settings: Mapping[str, Any], check_world: Callable[[str], object] = lambda _: None
) -> None:
    """`Misuse` when the config's knobs make no recipe, before anybody asks for one.

    `check_world` raises `Misuse` for a world that fresh rollouts cannot play.

    >>> check_recipe_settings({"epochs": 0})
    Traceback (most recent call last):
    upswing.errors.Misuse: [train.recipe] epochs: expected a whole number of at least 1.
    """
    try:
        recipe = from_tree(dict(settings), Recipe)
    except msgspec.ValidationError as error:
        place, what = locate_mistake(error, Recipe)
        raise Misuse(f"[train.recipe] {place}: {what}.") from None
    if recipe.rollouts is not None:
        try:
            check_world(recipe.rollouts.world)
        except Misuse as error:
            raise Misuse(f"[train.recipe.rollouts] world: {error}") from None


def decode_request(raw: bytes) -> TrainingRequest:
    """The request in `raw`, as the contract has it, or `Rejected`."""
    _check_size(raw)
    request = decode(TrainingRequest, raw)
    _check_depth(request.metadata)
    return request


def complete_request(raw: bytes, defaults: RequestDefaults) -> TrainingRequest:
    """A request, or only its config, or only some of that; an empty body asks for the usual."""
    _check_size(raw)
    try:
        tree = msgspec.json.decode(raw or b"{}")
    except RecursionError:
        raise Rejected(Reason.TOO_DEEP, "The request is nested too deeply.") from None
    except (msgspec.DecodeError, UnicodeDecodeError):
        return decode(TrainingRequest, raw)  # which says what is wrong
    if not isinstance(tree, dict):
        raise Rejected(Reason.SCHEMA, "A training request is an object.")
    alone = {"training_config": tree, "priority": "high"}  # a person waits for it
    asked = tree if "training_config" in tree else alone
    if not isinstance(asked["training_config"], dict):
        raise Rejected(Reason.SCHEMA, "`training_config` is an object.")
    request = from_builtins(TrainingRequest, _with_defaults(asked, defaults))
    _check_depth(request.metadata)
    return request


def _with_defaults(request: dict[str, Any], defaults: RequestDefaults) -> dict[str, Any]:
    usual = defaults.defaults
    config: dict[str, Any] = {
        "algorithm": usual.algorithm,
        "dataset": {"source": "local", "sample_size": usual.sample_size},
        "hyperparameters": {},
    }
    sized = "dataset" in request["training_config"]
    metadata = request.get("metadata", {})
    if isinstance(metadata, dict):
        more = {} if sized else {DATASET_SIZE: NEW}
        if "base_model" not in request["training_config"] and defaults.serving_job:
            more["previous_training_job"] = defaults.serving_job
        request = request | {"metadata": {**more, **metadata}}
    if usual.base_model is not None:
        config["base_model"] = usual.base_model
    config |= request["training_config"]
    if "base_model" not in config:
        raise Rejected(
            Reason.SCHEMA, "Name a `base_model`, or set RL_BASE_MODEL for those that name none."
        )
    return {
        "training_job_id": defaults.job_id,
        "timestamp": defaults.now,
        "requester": defaults.requester,
        "trigger_reason": "manual",
        **request,
        "training_config": config,
    }


def redact_request(request: TrainingRequest, redactor: Redactor) -> RedactedRequest:
    """The request without what must not be stored, or `Rejected`."""
    tree: dict[str, Any] = msgspec.to_builtins(request)
    try:
        for path in _IDENTIFIER_FIELDS:
            if any(redactor.text(text).changed for text in _strings_in(_value_at(tree, path))):
                name = f"`{'.'.join(path)}`"
                raise Rejected(
                    Reason.SCHEMA, f"{name} holds something private, which is not stored."
                )
        free = {
            ".".join(path): part
            for path in _FREE_TEXT_FIELDS
            if (part := _value_at(tree, path)) is not None
        }
        recipe = _value_at(tree, ("metadata", "recipe"))
        found = redactor.tree(free)
    except RedactionFailed as error:
        raise Rejected(Reason.REDACTION_FAILED, f"Nothing of it is kept: {error}") from None
    if not found.changed:
        return RedactedRequest(request, changed=False)
    for path in _FREE_TEXT_FIELDS:
        if (part := found.value.get(".".join(path))) is not None:
            _value_at(tree, path[:-1])[path[-1]] = part
    if recipe is not None:
        tree["metadata"]["recipe"] = recipe
    return RedactedRequest(from_builtins(TrainingRequest, tree), changed=True)


def _value_at(tree: Any, path: tuple[str, ...]) -> Any:
    for step in path:
        tree = tree.get(step) if isinstance(tree, Mapping) else None
    return tree


def _strings_in(part: Any) -> Iterator[str]:
    match part:
        case str():
            yield part
        case dict():
            for key, value in part.items():
                yield key
                yield from _strings_in(value)
        case list() | tuple():
            for value in part:
                yield from _strings_in(value)
        case _:
            return


def _check_size(raw: bytes) -> None:
    if len(raw) > MAX_BYTES:
        raise Rejected(Reason.TOO_LARGE, f"A training request may have {MAX_BYTES} bytes.")


def _check_depth(value: Any) -> None:
    level, depth = [value], 0
    while level:
        depth += 1
        if depth > _MAX_DEPTH:
            raise Rejected(Reason.TOO_DEEP, f"`metadata` may be nested {_MAX_DEPTH} levels deep.")
        level = [
            child
            for each in level
            if isinstance(each, dict | list)
            for child in (each.values() if isinstance(each, dict) else each)
        ]
