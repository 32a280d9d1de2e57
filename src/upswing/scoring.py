"""How do the parts of rewarding come together? Rules and plugins, the judge, and where they keep things."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from importlib.metadata import entry_points
from pathlib import Path

from prometheus_client import CollectorRegistry

from upswing.adapters.judge_cache import JudgeCache
from upswing.adapters.lint import lint
from upswing.adapters.openai import OpenAI
from upswing.adapters.sql.outcomes import Outcomes
from upswing.adapters.sql.rewards import Rewards
from upswing.adapters.sql.store import SqlStore
from upswing.aside import Burial
from upswing.config import JudgeConfig, RewardConfig, Settings, Surroundings
from upswing.reward.assess import Rules
from upswing.reward.judge import Budget, Policy
from upswing.reward.judge_service import Bench
from upswing.reward.metrics import RewardMetrics
from upswing.reward.plugins import GROUP as PLUGINS
from upswing.reward.plugins import load as load_plugins
from upswing.reward.prompt import RUBRIC
from upswing.reward.service import Rewarder
from upswing.reward.weights import weights as reward_weights

log = logging.getLogger(__name__)


class Scoring:
    """The reward stage of this machine."""

    def __init__(
        self, folder: Path, store: SqlStore, settings: Settings, surroundings: Surroundings,
        registry: CollectorRegistry, *, clock: Callable[[], datetime],
        published: Callable[[], None], crowded: Callable[[], bool], burial: Burial | None = None,
        models: Sequence[str] = (),
    ) -> None:  # fmt: skip
        config, judge = settings.reward, settings.judge
        metrics = RewardMetrics(registry)
        self.rewards, self.outcomes = Rewards(store.database), Outcomes(store.database)
        self.rewarder = Rewarder(
            store, self.rewards, rules_of(config, surroundings), metrics, clock=clock,
            published=published, crowded=crowded,
            lint=lint if config.lint else None, lint_seconds=config.lint_seconds, burial=burial,
            models=models,
        )  # fmt: skip
        self.judge = judge_of(judge, surroundings)
        name = surroundings.judge_model or judge.model
        policy = Policy(name, rubric=judge.rubric or RUBRIC) if name else None
        self.judge_cache = JudgeCache(folder / "judge")
        self.bench = Bench(
            store, self.rewards, self.outcomes, self.rewarder, metrics, clock=clock,
            window_hours=settings.collect.window_hours, min_agents=config.min_agents,
            ask=self.judge, policy=policy, cache=self.judge_cache, burial=burial,
            budget=Budget(
                judge.max_tokens_per_day, judge.max_usd_per_day, judge.prompt_price, judge.completion_price
            ),
        )  # fmt: skip


def judge_of(config: JudgeConfig, surroundings: Surroundings) -> OpenAI | None:
    """The model that judges, if one is named."""
    model = surroundings.judge_model or config.model
    if not model:
        return None
    return OpenAI(
        model, key=surroundings.judge_key, base_url=surroundings.judge_url or config.base_url,
        timeout=timedelta(seconds=config.timeout_seconds),
    )  # fmt: skip


def rules_of(config: RewardConfig, surroundings: Surroundings) -> Rules:
    """How rewards are made here, or `Misuse` about a weight that cannot be."""
    loaded = load_plugins(entry_points(group=PLUGINS))
    for sentence in loaded.refused:
        log.warning("%s", sentence, extra={"action": "plugin_refused"})
    asked = {plugin.name: plugin.weight for plugin in loaded.plugins}
    weights = reward_weights(surroundings.weights, config.weights, asked)
    return Rules(weights, config.method, loaded.plugins)
