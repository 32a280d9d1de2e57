"""Which settings are in force, and who set them? Never a secret: of a key it is shown whether it is set.

| source         | means                                                               |
|----------------|---------------------------------------------------------------------|
| `environment`  | the variable that is named beside it                                |
| `upswing.toml` | the file says something else than the default                       |
| `default`      | nobody has said anything, or the file says the same                 |
"""

from __future__ import annotations

import ast
import inspect
from collections.abc import Iterator, Mapping
from functools import cache
from itertools import pairwise
from types import ModuleType
from typing import Any
from urllib.parse import urlsplit

import msgspec
from msgspec import Struct

from upswing import config
from upswing.api.router import Request, Response, Route, answer
from upswing.api.scopes import READER
from upswing.config import VARIABLES, Settings, Surroundings
from upswing.deploy.core import limits, policy, strategy
from upswing.deploy.core.policy import DeployPolicy, deploy_policy_of
from upswing.redact import Redactor

FILE, ENVIRONMENT, DEFAULT = "upswing.toml", "environment", "default"
SET = "set"
"""What is shown of a secret that there is."""
_SECRETS = frozenset({"api_key", "judge_key", "serve_key", "webhook_secret"})
_WEBHOOKS = ("alerts", "webhooks")
"""Their addresses are secrets: whoever knows one can write to the chat behind it."""
_DEPLOY_VARIABLES = {
    "boldness.initial": "CANARY_INITIAL_TRAFFIC",
    "ramp_hours": "CANARY_RAMP_HOURS",
    "limits.errors": "ROLLBACK_ERROR_THRESHOLD",
    "limits.reward": "ROLLBACK_REWARD_THRESHOLD",
}
_OVERRIDES = {
    ("trigger", "threshold"): ("threshold", "RL_TRAINING_THRESHOLD"),
    ("trigger", "schedule"): ("schedule", "RL_SCHEDULE_CRON"),
    ("train", "algorithm"): ("algorithm", "RL_ALGORITHM"),
    ("train", "base_model"): ("base_model", "RL_BASE_MODEL"),
    ("judge", "model"): ("judge_model", "JUDGE_MODEL"),
    ("judge", "base_url"): ("judge_url", "OPENAI_BASE_URL"),
}
"""Section and name of a setting → the surroundings that win over it, and their variable."""
_NOTHING_SAID = Surroundings()
_LONGEST = 2000
"""Characters of a value that are shown."""


class SettingInForce(Struct, frozen=True):
    """One setting."""

    section: str
    name: str
    value: Any
    source: str
    variable: str | None
    """The environment variable that sets it, where there is one."""
    doc: str | None


class SettingList(Struct, frozen=True):
    settings: list[SettingInForce]


class SettingRoutes:
    """The handler."""

    def __init__(self, settings: Settings, surroundings: Surroundings, redactor: Redactor) -> None:
        self._settings, self._surroundings, self._redactor = settings, surroundings, redactor

    def routes(self) -> list[Route]:
        return [
            Route(
                "GET",
                "/v1/settings",
                "The settings in force, and who set them; never a secret.",
                self.list,
                READER,
                answers={200: ("They.", SettingList)},
            )
        ]

    async def list(self, _: Request) -> Response:
        found = [
            *settings_in_force(self._settings, self._surroundings),
            *deploy_settings(self._settings, self._surroundings),
            *surroundings_in_force(self._surroundings),
        ]
        return answer(200, SettingList([self._clean(each) for each in found]))

    def _clean(self, setting: SettingInForce) -> SettingInForce:
        """Without anything private: a URL may hold a password, a rule somebody's name."""
        return msgspec.structs.replace(setting, value=self._clean_value(setting.value))

    def _clean_value(self, value: Any) -> Any:
        if isinstance(value, str):
            return self._redactor.text(value[:_LONGEST]).value
        if isinstance(value, dict):
            return {str(name): self._clean_value(each) for name, each in value.items()}
        return [self._clean_value(each) for each in value] if isinstance(value, list) else value


def settings_in_force(settings: Settings, surroundings: Surroundings) -> Iterator[SettingInForce]:
    """What the file may say, with what the environment says instead."""
    default = Settings()
    for section in Settings.__struct_fields__:
        part, usual = getattr(settings, section), getattr(default, section)
        if not isinstance(part, Struct):
            continue
        docs = field_docs(type(part))
        for name in part.__struct_fields__:
            value, before = getattr(part, name), getattr(usual, name)
            source = DEFAULT if value == before else FILE
            other, variable = _OVERRIDES.get((section, name), ("", None))
            if other and getattr(surroundings, other) is not None:
                value, source = getattr(surroundings, other), ENVIRONMENT
            shown = msgspec.to_builtins(value)
            if (section, name) == _WEBHOOKS:
                shown = [each | {"url": SET} for each in shown]
            yield SettingInForce(section, name, shown, source, variable, docs.get(name))


def deploy_settings(settings: Settings, surroundings: Surroundings) -> Iterator[SettingInForce]:
    """The policy of rollouts, which the file and the environment decide together."""
    found = _flat(deploy_policy_of(surroundings.deploy, settings.deploy))
    usual, said = _flat(DeployPolicy()), _flat_tree(settings.deploy)
    docs = _deploy_docs()
    for name, value in found.items():
        variable = _DEPLOY_VARIABLES.get(name)
        source = FILE if name in said and value != usual[name] else DEFAULT
        if variable in surroundings.deploy:
            source = ENVIRONMENT
        yield SettingInForce("deploy", name, value, source, variable, docs.get(name))


def surroundings_in_force(surroundings: Surroundings) -> Iterator[SettingInForce]:
    """What only the environment says."""
    docs = field_docs(Surroundings)
    taken = {other for other, _ in _OVERRIDES.values()}
    for name in Surroundings.__struct_fields__:
        if name in {*taken, "deploy"}:
            continue
        value = getattr(surroundings, name)
        source = DEFAULT if value == getattr(_NOTHING_SAID, name) else ENVIRONMENT
        variable = VARIABLES.get(name)
        shown = _shown_value(name, value)
        yield SettingInForce("environment", name, shown, source, variable, docs.get(name))


def _shown_value(name: str, value: Any) -> Any:
    if name in _SECRETS:
        return SET if value else None
    if name == "backend_keys":
        return dict.fromkeys(value, SET)
    if name.endswith("_url") and value:
        return ",".join(map(_address, value.split(",")))
    return msgspec.to_builtins(value)


def _address(url: str) -> str:
    """A URL without its password.

    >>> _address("postgresql://ann:secret@db.example:5432/loop?sslmode=require")
    'postgresql://db.example:5432/loop'
    """
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"


def _flat(value: Struct) -> dict[str, Any]:
    return _flat_tree(msgspec.to_builtins(value))


def _flat_tree(tree: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Name with its dots → value."""
    found: dict[str, Any] = {}
    for name, value in tree.items():
        nested = isinstance(value, dict) and value
        found |= _flat_tree(value, f"{prefix}{name}.") if nested else {f"{prefix}{name}": value}
    return found


@cache
def _deploy_docs() -> dict[str, str]:
    parts = {
        "": field_docs(DeployPolicy, policy),
        "boldness.": field_docs(strategy.StrategyPolicy, strategy),
        "limits.": field_docs(limits.RolloutLimits, limits),
    }
    return {f"{prefix}{name}": doc for prefix, docs in parts.items() for name, doc in docs.items()}


_SOURCES = {
    module: ast.parse(inspect.getsource(module)) for module in (config, limits, policy, strategy)
}
"""Read while there is one thread: before CPython 3.11.8, two that parse at once break each other."""


@cache
def field_docs(kind: type, module: ModuleType = config) -> dict[str, str]:
    """Field → the sentence that stands under it in the code.

    >>> field_docs(Surroundings)["nats_url"]
    'NATS_URL: use this server or cluster instead of an embedded one.'
    """
    for node in _SOURCES[module].body:
        if isinstance(node, ast.ClassDef) and node.name == kind.__name__:
            return dict(_documented(node.body))
    return {}


def _documented(body: list[ast.stmt]) -> Iterator[tuple[str, str]]:
    for field, below in pairwise(body):
        match field, below:
            case ast.AnnAssign(target=ast.Name(id=name)), ast.Expr(
                value=ast.Constant(value=str(doc))
            ):
                yield name, " ".join(doc.split())
            case _:
                continue
