"""How do the parts of rewarding come together? RewardRules and plugins, the judge, and where they keep things."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from importlib.metadata import entry_points
from pathlib import Path

from prometheus_client import CollectorRegistry

from upswing.config import JudgeConfig, RewardConfig, Settings, Surroundings
from upswing.infra.completion_client import OpenAI
from upswing.infra.dead_letters import DeadLetterWriter
from upswing.infra.sql.rewards import Rewards
from upswing.infra.sql.store import SqlStore
from upswing.records import JudgeUse
from upswing.reward.budget_meter import BudgetMeter
from upswing.reward.core.assess import RewardRules
from upswing.reward.core.judge_prompt import RUBRIC
from upswing.reward.core.plugins import GROUP as PLUGINS
from upswing.reward.core.plugins import load_plugins
from upswing.reward.core.weights import component_weights
from upswing.reward.group_judge import GroupJudge
from upswing.reward.judge import Judge, JudgeBudget, JudgePolicy
from upswing.reward.judge_cache import JudgeCache
from upswing.reward.linting import lint_snippets
from upswing.reward.metrics import RewardMetrics
from upswing.reward.outcome_repository import OutcomeRepository
from upswing.reward.rewarder import CodeLinter, Rewarder

log = logging.getLogger(__name__)


class RewardStage:
    """The reward stage of this machine."""

    def __init__(
        self,
        folder: Path,
        store: SqlStore,
        settings: Settings,
        surroundings: Surroundings,
        registry: CollectorRegistry,
        *,
        clock: Callable[[], datetime],
        on_publish: Callable[[], None],
        is_busy: Callable[[], bool],
        dead_letters: DeadLetterWriter | None = None,
        models: Sequence[str] = (),
    ) -> None:
        config, judge = settings.reward, settings.judge
        metrics = RewardMetrics(registry)
        self.rewards = Rewards(store.database)
        self.outcomes = OutcomeRepository(store.database)
        self.rewarder = Rewarder(
            store,
            self.rewards,
            build_reward_rules(config, surroundings),
            metrics,
            clock=clock,
            on_publish=on_publish,
            is_busy=is_busy,
            linter=CodeLinter(lint_snippets, config.lint_seconds) if config.lint else None,
            dead_letters=dead_letters,
            models=models,
        )
        self.judge_client = build_judge_client(judge, surroundings)
        self.judge_cache = JudgeCache(folder / "judge")
        asked = _build_judge(self.judge_client, self.judge_cache, judge, surroundings)
        self.budget_meter = BudgetMeter(asked.budget, self.outcomes, clock=clock) if asked else None
        if asked and self.budget_meter:
            asked = replace(asked, on_overdrawn=self.budget_meter.refuse)
        self.group_judge = GroupJudge(
            store,
            self.rewards,
            self.outcomes,
            self.rewarder,
            asked,
            metrics,
            clock=clock,
            window_hours=settings.collect.window_hours,
            min_agents=config.min_agents,
            dead_letters=dead_letters,
        )

    async def judge_use(self) -> JudgeUse | None:
        """What the judge may still cost; None without a judge."""
        return await self.budget_meter.read() if self.budget_meter else None


def _build_judge(
    client: OpenAI | None, cache: JudgeCache, config: JudgeConfig, surroundings: Surroundings
) -> Judge | None:
    if client is None:
        return None
    name = surroundings.judge_model or config.model or ""
    budget = JudgeBudget(
        config.max_tokens_per_day,
        config.max_usd_per_day,
        config.prompt_price,
        config.completion_price,
    )
    return Judge(client, JudgePolicy(name, rubric=config.rubric or RUBRIC), budget, cache)


def build_judge_client(config: JudgeConfig, surroundings: Surroundings) -> OpenAI | None:
    """The model that judges, if one is named."""
    model = surroundings.judge_model or config.model
    if not model:
        return None
    return OpenAI(
        model,
        key=surroundings.judge_key,
        base_url=surroundings.judge_url or config.base_url,
        timeout=timedelta(seconds=config.timeout_seconds),
    )


def build_reward_rules(config: RewardConfig, surroundings: Surroundings) -> RewardRules:
    """How rewards are made here, or `Misuse` about a weight that cannot be."""
    loaded = load_plugins(entry_points(group=PLUGINS))
    for sentence in loaded.refused:
        log.warning("%s", sentence, extra={"action": "plugin_refused"})
    plugin_weights = {plugin.name: plugin.weight for plugin in loaded.plugins}
    weights = component_weights(surroundings.weights, config.weights, plugin_weights)
    return RewardRules(weights, config.method, loaded.plugins)
