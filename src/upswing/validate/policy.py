"""What has the user decided about validating?"""

from __future__ import annotations

from collections.abc import Collection

from upswing.config import ValidateConfig
from upswing.errors import Misuse
from upswing.validate.suite import SAFETY, chosen
from upswing.validate.verdict import Policy


def policy_of(config: ValidateConfig, known: Collection[str]) -> Policy:
    """What a model must reach, or `Misuse` when the config speaks of suites that are not run.

    >>> policy_of(ValidateConfig(floors={"tool_usage": 0.5}), ())
    Traceback (most recent call last):
    upswing.errors.Misuse: `floors` in [validate]: tool_usage is no safety suite.
    """
    for name in config.floors:
        if name not in SAFETY:
            raise Misuse(f"`floors` in [validate]: {name} is no safety suite.")
    if config.counted is None:
        return Policy(floors=config.floors, safety_reach=config.safety_reach)
    run = chosen(config.suites, known)
    for name in config.counted:
        if name not in run:
            raise Misuse(f"`counted` in [validate]: {name} is not among the `suites` that are run.")
    return Policy(
        counted=frozenset(config.counted), floors=config.floors, safety_reach=config.safety_reach
    )
