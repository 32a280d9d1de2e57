"""What has the user decided about validating?"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from upswing.config import ValidateConfig
from upswing.errors import Misuse
from upswing.validate.suite import SAFETY, chosen
from upswing.validate.usual import is_own, safety_reach
from upswing.validate.verdict import Policy


def check_config(config: ValidateConfig, known: Collection[str]) -> None:
    """`Misuse` when the config speaks of suites that are not there, or not run.

    >>> check_config(ValidateConfig(floors={"tool_usage": 0.5}), ())
    Traceback (most recent call last):
    upswing.errors.Misuse: `floors` in [validate]: tool_usage is no safety suite.
    """
    for name in config.floors:
        if name not in SAFETY:
            raise Misuse(f"`floors` in [validate]: {name} is no safety suite.")
    run = chosen(config.suites, known) if config.suites is not None else tuple(known)
    for name in config.counted or ():
        if name not in run:
            raise Misuse(f"`counted` in [validate]: {name} is not among the `suites` that are run.")


def policy_of(config: ValidateConfig, names: Sequence[str], base: str = "") -> Policy:
    """What a model must reach in these suites.

    >>> sorted(policy_of(ValidateConfig(), ["world:mine", "tool_usage", "safety_bias"]).counted)
    ['world:mine']
    """
    own = frozenset(name for name in names if is_own(name, config.files))
    counted = frozenset(config.counted) if config.counted is not None else own or None
    reach = safety_reach(base) if config.safety_reach is None else config.safety_reach
    return Policy(counted=counted, floors=config.floors, safety_reach=reach)
