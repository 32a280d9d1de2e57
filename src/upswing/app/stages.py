"""What does each stage get from the loop? One function per stage that no other stage helps to build."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta

from upswing.app.context import LoopContext
from upswing.app.deployment import ModelDelivery
from upswing.app.maintenance import Maintenance, TrajectoryStores
from upswing.app.read_api import ReadApi
from upswing.app.training import TrainingStages
from upswing.collect.wiring import CollectStage
from upswing.infra.sql.keys import Keys
from upswing.infra.sql.users import Users
from upswing.monitor.failure_analyst import FailureAnalyst
from upswing.monitor.wiring import MonitorStage
from upswing.reward.wiring import RewardStage


@dataclass(frozen=True, slots=True)
class LoopStages:
    """The stages of a running loop, and who may ask them."""

    users: Users
    keys: Keys
    collect: CollectStage
    reward: RewardStage
    training: TrainingStages
    delivery: ModelDelivery | None
    """None: no model is served here."""
    analyst: FailureAnalyst
    monitor: MonitorStage
    read_api: ReadApi


def make_collect(
    context: LoopContext, users: Users, *, on_stored: Callable[[], None], in_process: bool
) -> CollectStage:
    """`in_process`: messages are admitted here, without workers."""
    return CollectStage(
        context.store,
        users,
        context.installation.settings,
        context.redactor,
        context.registry,
        clock=context.clock,
        new_id=context.new_id,
        on_stored=on_stored,
        dead_letters=context.dead_letters,
        in_process=in_process,
    )


def make_reward(
    context: LoopContext,
    base: str | None,
    *,
    on_publish: Callable[[], None],
    is_busy: Callable[[], bool],
) -> RewardStage:
    installation = context.installation
    return RewardStage(
        installation.folder,
        context.store,
        installation.settings,
        installation.surroundings,
        context.registry,
        clock=context.clock,
        on_publish=on_publish,
        is_busy=is_busy,
        dead_letters=context.dead_letters,
        models=[base] if base else [],
    )


def make_maintenance(
    context: LoopContext, stages: LoopStages, *, on_failure: Callable[[str], None]
) -> Maintenance:
    """The slow chores of all stages; `on_failure` counts those that break."""
    store, config, reward = context.store, context.installation.settings.collect, stages.reward
    stale, dead = timedelta(hours=config.stale_hours), timedelta(days=config.dead_days)
    delivery = stages.delivery
    return Maintenance(
        TrajectoryStores(
            store, stages.users, context.bus, stages.training.archive, reward.judge_cache
        ),
        stages.collect.metrics,
        clock=context.clock,
        stage_chores=[
            stages.users.load,
            stages.keys.load,
            reward.rewarder.maintain,
            reward.group_judge.judge_ended_windows,
            lambda: stages.collect.steps.end_stale(stale),
            lambda: store.prune_dead(context.clock() - dead),
            stages.training.trainers.prune,
            stages.monitor.maintain,
            stages.read_api.prune,
        ],
        forget=[delivery.validation.forget_trajectories] if delivery else [],
        dead_letters=context.dead_letters,
        failed=on_failure,
    )
