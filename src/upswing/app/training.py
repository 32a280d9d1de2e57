"""How does a decision to train become a job, and who works on it? The trigger, submission and trainers."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial

from upswing.app.archive import Archive
from upswing.app.context import LoopContext
from upswing.app.supervision import RunPart
from upswing.collect.core.evaluate import refusal
from upswing.config import Settings
from upswing.contracts.backend import is_remote
from upswing.contracts.topics import STATUS_ENQUIRY, TRAINING, TRAINING_REQUEST
from upswing.errors import Misuse
from upswing.infra.nats.consumer import ConsumerFactory
from upswing.infra.nats.requests import answer_enquiries
from upswing.infra.sql.datasets import DataSets
from upswing.infra.sql.decisions import Decisions
from upswing.infra.sql.models import Models
from upswing.reward.core.decline import reward_drop
from upswing.reward.core.influence import fair_mean
from upswing.train.bases.catalog import check_base
from upswing.train.core.progress import JobState
from upswing.train.jobs.consumer import TrainingRequests
from upswing.train.jobs.data import TrainingData
from upswing.train.jobs.repository import JobRepository
from upswing.train.jobs.submission import JobSubmission, SubmissionSettings
from upswing.train.metrics import TrainMetrics
from upswing.train.wiring import TrainerPool, TrainingRuntime, TrainingStores
from upswing.trigger.core.decide import not_trainable_here
from upswing.trigger.core.policy import TriggerPolicy
from upswing.trigger.signals import SignalReader
from upswing.trigger.trigger import Trigger
from upswing.worlds.known import locate_world


class TrainingStages:
    """The trigger and train stages of this machine."""

    def __init__(
        self,
        context: LoopContext,
        policy: TriggerPolicy,
        worlds: Mapping[str, str],
        *,
        serves_models: bool,
        on_change: Callable[[], None],
        on_job_end: Callable[[JobState, float, int], None],
    ) -> None:
        """`worlds`: name → location of those that are registered. `on_change`: a job's row has changed.

        `on_job_end` hears of a job's end: how, its seconds, its trajectories.
        """
        self._context, self._policy, self._on_change = context, policy, on_change
        database = context.store.database
        self.jobs, self.models = JobRepository(database), Models(database)
        self.decisions, self.signals = Decisions(database), SignalReader(database)
        archive_path = context.installation.surroundings.storage_path
        self.archive = Archive(archive_path) if archive_path else None
        metrics = TrainMetrics(context.registry, on_job_end)
        self.submission = self._build_submission(metrics, worlds)
        self.trigger = Trigger(
            self.signals,
            self.decisions,
            self.submission,
            policy,
            mean=fair_mean,
            compare=reward_drop,
            clock=context.clock,
            new_id=context.new_id,
            deploys=serves_models,
        )
        self.trainers = self._build_trainers(metrics, serves_models=serves_models)

    def _build_submission(self, metrics: TrainMetrics, worlds: Mapping[str, str]) -> JobSubmission:
        context, policy = self._context, self._policy
        train = context.installation.settings.train
        least = {"min_agents": train.min_agents, "min_attempts": train.min_attempts}
        return JobSubmission(
            self.jobs,
            context.redactor,
            SubmissionSettings(policy.defaults, {**least, **train.recipe}, policy.train_here),
            check_base=self._check_base,
            check_world=partial(locate_world, registered=worlds),
            clock=context.clock,
            new_id=context.new_id,
            on_change=self._on_change,
            on_finished=metrics.finished,
        )

    def _build_trainers(self, metrics: TrainMetrics, *, serves_models: bool) -> TrainerPool:
        context = self._context
        installation = context.installation
        settings = installation.settings
        data = TrainingData(
            DataSets(context.store.database),
            archive=self.archive,
            bus=context.bus,
            dead_letters=context.dead_letters,
        )
        return TrainerPool(
            installation.folder,
            settings.train,
            TrainingStores(self.jobs, self.models, self.decisions, data),
            metrics,
            TrainingRuntime(context.clock, context.new_id, self._on_change, context.dead_letters),
            storage=installation.surroundings.model_storage_path,
            worlds=settings.validate.worlds,
            shares_cores=serves_models and not settings.serve.url,
        )

    async def start(self, consumers: ConsumerFactory, run: RunPart) -> None:
        """Take requests, decide, and train where training happens here."""
        context = self._context
        requests = TrainingRequests(
            context.store,
            self.submission,
            redact_rejected=lambda raw, error: refusal(raw, error, context.redactor),
            clock=context.clock,
            new_id=context.new_id,
            on_change=self._on_change,
        )
        await answer_enquiries(context.bus, STATUS_ENQUIRY, self.submission.answer_enquiry)
        consumer = consumers.make(TRAINING, TRAINING_REQUEST, "trainer", requests.handler())
        run("training requests", consumer.run)
        run("trigger", self.trigger.run)
        if self._policy.train_here:
            await self.jobs.release_orphans(context.clock())
            for number, worker in enumerate(self.trainers.workers):
                run(f"trainer {number}", worker.run)

    async def _check_base(self, name: str) -> None:
        """A model of ours, or a base that can be had here."""
        row = await self.models.get(name)
        if self._policy.rules.elsewhere and name == self._policy.defaults.base_model:
            raise Misuse(not_trainable_here(name))
        if row is not None and is_remote(row.path):
            raise Misuse(not_trainable_here(name))
        if row is None:
            await asyncio.to_thread(check_base, name)


def policy_for_base(policy: TriggerPolicy, settings: Settings) -> TriggerPolicy:
    """A base at a server of the user's own is trained here only if its weights are here, too."""
    base = policy.defaults.base_model
    if settings.serve.url is None or base is None:
        return policy
    try:
        check_base(base)
    except Misuse:
        return replace(policy, rules=replace(policy.rules, elsewhere=True))
    return policy
