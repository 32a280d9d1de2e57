"""What has the user decided about validating?"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from upswing.config import ValidateConfig
from upswing.errors import Misuse
from upswing.validate.core.default_suites import default_safety_reach, is_own_suite
from upswing.validate.core.suite import SAFETY, expand_suite_names
from upswing.validate.core.verdict import ValidationPolicy


def check_validate_config(config: ValidateConfig, known: Collection[str]) -> None:
    """`Misuse` when the config speaks of suites that are not there, or not run.

    >>> check_validate_config(ValidateConfig(floors={"tool_usage": 0.5}), ())
    Traceback (most recent call last):
    upswing.errors.Misuse: `floors` in [validate]: tool_usage is no safety suite.
    """
    for name in config.floors:
        if name not in SAFETY:
            raise Misuse(f"`floors` in [validate]: {name} is no safety suite.")
    run = expand_suite_names(config.suites, known) if config.suites is not None else tuple(known)
    for name in config.counted or ():
        if name not in run:
            raise Misuse(f"`counted` in [validate]: {name} is not among the `suites` that are run.")


def validation_policy(
    config: ValidateConfig, names: Sequence[str], base_model: str = ""
) -> ValidationPolicy:
    """What a model must reach in these suites.

    >>> sorted(validation_policy(ValidateConfig(), ["world:mine", "tool_usage", "safety_bias"]).counted)
    ['world:mine']
    """
    own = frozenset(name for name in names if is_own_suite(name, config.files))
    counted = frozenset(config.counted) if config.counted is not None else own or None
    reach = default_safety_reach(base_model) if config.safety_reach is None else config.safety_reach
    return ValidationPolicy(counted=counted, floors=config.floors, safety_reach=reach)
