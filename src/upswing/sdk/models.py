"""Which model should this agent ask? A trained one where that is allowed and to be had, else the base.

Nothing here raises into the agent: what cannot be understood or reached means the base model, and
`rl_model_config()` says why. A canary is not handed out, unless RL_MODEL_VERSION names it: it gets its
share from the gateway, and no more.

An agent that talks to the gateway needs none of this: the gateway chooses, and knows the episode.
"""

from __future__ import annotations

import os
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256

from upswing.errors import UpswingError
from upswing.model_flags import RlModels, is_version, read_rl_models
from upswing.sdk.answering import RlModel, answering, gateway_url

_OFF = "Trained models are switched off here."
_LATEST = "latest"


@dataclass(frozen=True, slots=True)
class Inference:
    """What an agent asks."""

    model: str | None
    """The name to send; None: nobody has named a base model, so the agent's own holds."""
    base_url: str | None
    """The gateway, with `/v1`, when it is known."""
    is_rl: bool
    reason: str


@dataclass(frozen=True, slots=True)
class RlModelConfig:
    """Everything that decides."""

    enabled: bool
    available: bool
    model_version: str
    """The pin, or `latest`."""
    latest: str | None
    rollout_percentage: float
    fallback_to_base: bool
    base_model: str | None
    reason: str


def should_use_rl_model(environment: Mapping[str, str] | None = None) -> bool:
    """Does the environment allow a trained model? Asks nobody."""
    flags, _ = _allowed_models(_environment_or_default(environment))
    return flags.enabled and (flags.version is not None or flags.percentage > 0)


def is_rl_model_available(environment: Mapping[str, str] | None = None) -> bool:
    """Is it allowed, and is there one that answers?"""
    return should_use_rl_model(environment) and latest_rl_model(environment) is not None


def latest_rl_model(environment: Mapping[str, str] | None = None) -> RlModel | None:
    """The trained model that was promoted last, or the pinned one; None when there is none."""
    env = _environment_or_default(environment)
    pinned = _allowed_models(env)[0].version
    fitting = [
        model
        for model in answering(env).models
        if (is_version(model.model_id, pinned) if pinned else not model.canary)
    ]
    return fitting[0] if fitting else None


def model_for_inference(
    episode_id: str | None = None,
    environment: Mapping[str, str] | None = None,
    *,
    chance: Callable[[], float] = random.random,
) -> Inference:
    """The model to ask. With an `episode_id` the same episode gets the same answer."""
    env = _environment_or_default(environment)
    config = rl_model_config(env)
    gateway = gateway_url(env)
    at = f"{gateway}/v1" if gateway else None
    if config.available and config.latest:
        position = chance() if episode_id is None else _traffic_position(config.latest, episode_id)
        pinned = config.model_version != _LATEST  # then the percentage does not count
        if pinned or position * 100 < config.rollout_percentage:
            return Inference(config.latest, at, is_rl=True, reason=config.reason)
        beyond = f"This episode is beyond the {config.rollout_percentage:g} % that may."
        return Inference(config.base_model, at, is_rl=False, reason=beyond)
    return Inference(config.base_model, at, is_rl=False, reason=config.reason)


def rl_model_config(environment: Mapping[str, str] | None = None) -> RlModelConfig:
    """All of it, for a log or a person."""
    env = _environment_or_default(environment)
    flags, trouble = _allowed_models(env)
    enabled = should_use_rl_model(env)
    latest = latest_rl_model(env) if enabled else None
    if latest:
        reason = f"{latest.model_id} answers."
    elif enabled:
        known = answering(env)
        reason = known.trouble or _no_model_sentence(flags.version, known.models)
    else:
        reason = trouble or _OFF
    return RlModelConfig(
        enabled=enabled,
        available=latest is not None,
        model_version=flags.version or _LATEST,
        latest=latest.model_id if latest else None,
        rollout_percentage=flags.percentage,
        fallback_to_base=flags.fallback,
        base_model=flags.base_model,
        reason=reason,
    )


def _no_model_sentence(version: str | None, models: Sequence[RlModel]) -> str:
    """Why no trained model is asked, and which there are."""
    if version is None:
        return "No trained model answers."
    there = ", ".join(model.model_id for model in models) or "none"
    return f"No model of version {version} answers: the base model does. Trained models that answer: {there}."


def _environment_or_default(environment: Mapping[str, str] | None) -> Mapping[str, str]:
    return os.environ if environment is None else environment


def _allowed_models(env: Mapping[str, str]) -> tuple[RlModels, str]:
    """The environment's word; one that cannot be understood switches trained models off."""
    try:
        return read_rl_models(env), ""
    except UpswingError as error:
        base = env.get("RL_BASE_MODEL") or env.get("BASE_MODEL") or None
        return RlModels(enabled=False, base_model=base), str(error)


def _traffic_position(model_id: str, episode_id: str) -> float:
    """Where an episode lies in [0, 1), the same wherever it is asked.

    >>> round(_traffic_position("agent-zero-rl-v3", "episode-1"), 4)
    0.6704
    """
    digest = sha256(f"{model_id}\0{episode_id}".encode()).digest()
    return int.from_bytes(digest[:6], "big") / 2**48
