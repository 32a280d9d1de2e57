"""What has the user decided about training by itself?"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

from upswing.config import Defaults, Settings, Surroundings, defaults
from upswing.errors import Misuse
from upswing.trigger.core.cron import parse_cron
from upswing.trigger.core.inputs import TriggerRules
from upswing.trigger.core.readiness import DataMinimums

_OFF = frozenset({"off", "none", "never", ""})


@dataclass(frozen=True, slots=True)
class TriggerPolicy:
    """The rules, and what an automatic request asks for."""

    rules: TriggerRules
    defaults: Defaults
    recent: int
    """Newest trajectories of the deployed model that its mean is taken of."""
    days: int
    max_turns: int
    train_here: bool
    self_reported: bool = False
    """Imitation: whether a success by the agent's own word counts."""


def trigger_policy_of(settings: Settings, surroundings: Surroundings) -> TriggerPolicy:
    """The config's word and the environment's, which wins; `Misuse` when it makes no sense."""
    trigger, train = settings.trigger, settings.train
    usual = defaults(settings, surroundings)
    rules = TriggerRules(
        threshold=surroundings.threshold or trigger.threshold,
        schedule=parse_schedule(surroundings.schedule, trigger.schedule),
        drop=trigger.drop,
        min_sample=trigger.min_sample,
        pause=timedelta(minutes=trigger.pause_minutes),
        minimums=DataMinimums(
            train.min_trajectories, train.min_groups, train.min_agents, train.min_attempts
        ),
        algorithm=usual.configured,
        base_model=usual.base_model,
    )
    if trigger.recent < trigger.min_sample:
        raise Misuse(
            f"[trigger] looks at {trigger.recent} `recent` trajectories, but `min_sample` asks for "
            f"{trigger.min_sample}: raise the one or lower the other."
        )
    here = surroundings.train_here and train.workers > 0
    own_word = train.recipe.get("self_reported") is True
    return TriggerPolicy(
        rules, usual, trigger.recent, trigger.days, trigger.max_turns, here, own_word
    )


def parse_schedule(variable: str | None, configured: str) -> str | None:
    text = variable or configured
    if text.strip().lower() in _OFF:
        return None
    try:
        return parse_cron(text).text
    except Misuse as error:
        source = "RL_SCHEDULE_CRON" if variable else "`schedule` in [trigger]"
        raise Misuse(f"{source}: {error}") from None
