"""What does a job learn from? Its samples, and the snapshot that says which they are.

source ─▶ candidates ─▶ select ─▶ bodies, some at a time ─▶ samples
                          ▲                 │
                          └── without those that are gone or cannot be read
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

import msgspec
from msgspec import UNSET

from upswing.contracts import decode_trajectory
from upswing.contracts.training import DATASET_SIZE, NEW, DatasetFilter, TrainingRequest
from upswing.dataset.balance import parse_balance
from upswing.dataset.filtering import (
    ExclusionReason,
    SelectionSpec,
    TrajectoryCandidate,
    describe_exclusions,
    filter_candidates,
)
from upswing.dataset.groups import Learnable, count_learnable
from upswing.dataset.sample import Sample, build_sample, with_demonstration
from upswing.dataset.select import IMITATING, UNKNOWN_POLICY_AGE, Selection, select
from upswing.dataset.snapshot import Snapshot, build_snapshot
from upswing.dataset.unstored import trajectory_id_in
from upswing.errors import Misuse, Reason, Rejected
from upswing.infra.dead_letters import DeadLetterWriter
from upswing.infra.nats.bus import Bus
from upswing.infra.sql.datasets import DataSets
from upswing.train.core.recipe import Recipe
from upswing.train.jobs.source import ArchiveReader, SourceContents, TrajectorySources

log = logging.getLogger(__name__)


class NoData(Misuse):
    """There is nothing to train on; the sentence says what became of what there is."""


@dataclass(frozen=True, slots=True)
class JobDataset:
    """The data of a job."""

    samples: list[Sample]
    """In the order of the snapshot's entries."""
    snapshot: Snapshot


@dataclass(frozen=True, slots=True)
class DataPreview:
    """What a job would find."""

    snapshot: Snapshot | None
    """None: nothing to train on."""
    learnable: Learnable
    """What can be learned from what the policy did that training starts from, and others' models."""
    no_data_reason: str = ""
    """Why there is nothing to train on."""


class TrainingData:
    """Gathers the data of jobs, and records which job was trained on what."""

    def __init__(
        self,
        store: DataSets,
        *,
        archive: ArchiveReader | None = None,
        bus: Bus | None = None,
        dead_letters: DeadLetterWriter | None = None,
    ) -> None:
        self._store, self._dead_letters = store, dead_letters or DeadLetterWriter()
        self._sources = TrajectorySources(store, archive=archive, bus=bus)

    async def gather(
        self,
        request: TrainingRequest,
        recipe: Recipe,
        *,
        ancestor_jobs: Sequence[str],
        excluded_ids: Collection[str],
        now: datetime,
        policy_ages: Mapping[str, int] | None = None,
    ) -> JobDataset:
        """The samples of a request; `NoData` when there are none.

        `ancestor_jobs` are the jobs that led to the model that training starts from, `excluded_ids` the
        trajectories that an earlier attempt found to be bad, `policy_ages` says how many versions back
        each policy is.
        """
        spec = replace(
            selection_spec(request, recipe, excluded_ids, now), policy_ages=policy_ages or {}
        )
        found = await self._sources.find(request.training_config.dataset, ancestor_jobs)
        excluded_counts = Counter(found.left_out)
        candidates, demonstrations = await self._with_demonstrations(spec, found)
        while True:
            selection = await asyncio.to_thread(select, candidates, spec)
            if reason := await asyncio.to_thread(
                _no_data_reason, selection, candidates, spec, excluded_counts
            ):
                raise NoData(reason)
            samples, useless = await self._read_samples(selection, found, demonstrations)
            if not useless:
                break
            excluded_counts.update(useless.values())
            candidates = [each for each in candidates if each.trajectory_id not in useless]
        snapshot = _build_snapshot(request, selection, spec, found, excluded_counts, now)
        log.info("gathered %d trajectories", len(samples), extra={"action": "gather"})
        return JobDataset(samples, snapshot)

    async def preview(
        self,
        request: TrainingRequest,
        recipe: Recipe,
        *,
        ancestor_jobs: Sequence[str],
        policy_ages: Mapping[str, int],
        now: datetime,
    ) -> DataPreview:
        """What `gather` would choose now; no trajectory is read and nothing is remembered."""
        spec = replace(selection_spec(request, recipe, (), now), policy_ages=policy_ages)
        found = await self._sources.find(request.training_config.dataset, ancestor_jobs)
        candidates, _ = await self._with_demonstrations(spec, found)
        selection = await asyncio.to_thread(select, candidates, spec)
        learnable_now = await asyncio.to_thread(_learnable_candidates, candidates, spec, max_age=0)
        if reason := await asyncio.to_thread(
            _no_data_reason, selection, candidates, spec, found.left_out
        ):
            return DataPreview(None, learnable_now, reason)
        return DataPreview(
            _build_snapshot(request, selection, spec, found, found.left_out, now), learnable_now
        )

    async def record_trained(self, job_id: str, snapshot: Snapshot) -> None:
        """Remember that this job is trained on what the snapshot holds."""
        await self._store.note_trained(job_id, snapshot.trained())

    async def contains_erased(self, snapshot: Snapshot) -> bool:
        """Whether something of it was erased since it was gathered."""
        known = await self._store.records_of_removed(
            [each.trajectory_id for each in snapshot.entries]
        )
        return bool(known.erased)

    async def _with_demonstrations(
        self, spec: SelectionSpec, found: SourceContents
    ) -> tuple[list[TrajectoryCandidate], dict[str, str]]:
        """The candidates, and demonstrated answers by trajectory, for algorithms that imitate."""
        if spec.algorithm not in IMITATING:
            return found.candidates, {}
        demonstrations = await self._store.demonstrations()
        return [
            replace(each, demonstrated=True) if each.trajectory_id in demonstrations else each
            for each in found.candidates
        ], demonstrations

    async def _read_samples(
        self, selection: Selection, found: SourceContents, demonstrations: Mapping[str, str]
    ) -> tuple[list[Sample], dict[str, ExclusionReason]]:
        """The samples in order, or which trajectories are of no use after all."""
        by_id = {each.trajectory_id: each for each in selection.members}
        made: dict[str, Sample] = {}
        useless: dict[str, ExclusionReason] = {}

        def read(row: tuple[str, bytes]) -> None:
            name, body = row
            useless[name] = ExclusionReason.UNREADABLE
            if not body:  # the store has quarantined it
                return
            made[name] = _build_sample(body, by_id[name], selection, demonstrations.get(name))
            del useless[name]

        def take(bodies: Iterable[tuple[str, bytes]]) -> None:
            self._dead_letters.bad_rows.read_each(
                "train", "trajectories", bodies, read, raw=lambda row: row[1]
            )

        stored = [name for name in by_id if name not in found.files]
        async for chunk in self._store.bodies(stored):
            await asyncio.to_thread(take, chunk)
        filed = by_id.keys() & found.files.keys()
        async for lines in self._sources.read_lines({found.files[name] for name in filed}):
            named = [(trajectory_id_in(line), line) for line in lines]
            await asyncio.to_thread(take, [(n, line) for n, line in named if n in filed])
        await self._dead_letters.flush()
        for name in by_id.keys() - made.keys() - useless.keys():
            useless[name] = ExclusionReason.ERASED
        return ([] if useless else [made[name] for name in by_id]), useless


def selection_spec(
    request: TrainingRequest, recipe: Recipe, excluded_ids: Collection[str], now: datetime
) -> SelectionSpec:
    """The selection that a request asks for at this time, or `Rejected`."""
    dataset = request.training_config.dataset
    given = DatasetFilter() if dataset.filter is UNSET else dataset.filter
    dates = given.date_range
    start = None if dates is UNSET or dates.start is UNSET else dates.start
    end = None if dates is UNSET or dates.end is UNSET else dates.end
    if start is not None and end is not None and start > end:
        raise Rejected(Reason.SCHEMA, "`date_range` ends before it starts.")
    windows = recipe.windows_per_iteration
    return SelectionSpec(
        algorithm=recipe.algorithm,
        sample_size=dataset.sample_size,
        seed=recipe.seed,
        holdout=recipe.holdout,
        min_agents=recipe.min_agents,
        min_attempts=recipe.min_attempts,
        max_age=recipe.max_age,
        stale_before=now - timedelta(days=recipe.max_days)
        if start is None or sized_by_new_data(request)
        else None,
        fill_up_to=recipe.fill if sized_by_new_data(request) else None,
        self_reported=recipe.self_reported,
        min_score=0.5 if given.min_reward is UNSET else given.min_reward,
        start=start,
        end=end,
        domains=() if given.task_domains is UNSET else given.task_domains,
        max_turns=None if given.max_trajectory_length is UNSET else given.max_trajectory_length,
        excluded_profiles=()
        if given.exclude_subordinate_profiles is UNSET
        else given.exclude_subordinate_profiles,
        balance=parse_balance({} if request.metadata is UNSET else request.metadata),
        max_groups=None if windows is None else windows * recipe.iterations,
        excluded_ids=frozenset(excluded_ids),
    )


def _build_snapshot(
    request: TrainingRequest,
    selection: Selection,
    spec: SelectionSpec,
    found: SourceContents,
    excluded_counts: Mapping[ExclusionReason, int],
    now: datetime,
) -> Snapshot:
    return build_snapshot(
        selection,
        spec,
        source=found.source,
        requested_filter=_requested_filter(request),
        left_out={str(reason): count for reason, count in excluded_counts.items()},
        notes=_selection_notes(request, selection, spec),
        made=now,
    )


def sized_by_new_data(request: TrainingRequest) -> bool:
    """Whether the data's size follows from what is new, because nobody asked for a size."""
    metadata = {} if request.metadata is UNSET else request.metadata
    return metadata.get(DATASET_SIZE) == NEW


def _build_sample(
    body: bytes, candidate: TrajectoryCandidate, selection: Selection, demonstration: str | None
) -> Sample:
    """Of a body that is a trajectory in every field: the child that trains would refuse the whole file."""
    decode_trajectory(body)
    sample = build_sample(
        msgspec.json.decode(body),
        reward=selection.scores[candidate.trajectory_id],
        group=selection.groups[candidate.trajectory_id],
        raw_total=candidate.raw_total,
        window_id=candidate.window_id,
        scenario_id=candidate.scenario_id,
        domain=candidate.domain,
        revision=candidate.revision,
        held_out=selection.is_held_out(candidate),
        score_scale=selection.scales.get(candidate.trajectory_id, ""),
    )
    return sample if demonstration is None else with_demonstration(sample, demonstration)


def _requested_filter(request: TrainingRequest) -> dict[str, Any]:
    given = request.training_config.dataset.filter
    return {} if given is UNSET else dict(msgspec.to_builtins(given))


def _selection_notes(
    request: TrainingRequest, selection: Selection, spec: SelectionSpec
) -> list[str]:
    config, notes = request.training_config, []
    given = config.dataset.filter
    imitates = config.algorithm in IMITATING
    if given is not UNSET and given.min_reward is not UNSET and not imitates:
        notes.append(
            f"`min_reward` was ignored: {config.algorithm} learns from the bad ones too; it is for imitation."
        )
    trained = [each for each in selection.members if not selection.is_held_out(each)]
    seen = sum(each.seen for each in trained)
    if seen:
        notes.append(f"{seen} of {len(trained)} were trained on before.")
    older = (
        sum(spec.policy_ages.get(each.model, UNKNOWN_POLICY_AGE) > 0 for each in trained)
        if spec.policy_ages
        else 0
    )
    if older:
        notes.append(f"{older} of {len(trained)} were made by other policies than the one trained.")
    return notes


def _learnable_candidates(
    candidates: Iterable[TrajectoryCandidate], spec: SelectionSpec, max_age: int
) -> Learnable:
    """What can be learned from what policies did that are no older than this, and others' models."""
    sound = filter_candidates(candidates, spec, Counter())
    return count_learnable(
        [each for each in sound if spec.policy_ages.get(each.model, 0) <= max_age],
        min_agents=spec.min_agents,
        min_attempts=spec.min_attempts,
        own_policies=[name for name, age in spec.policy_ages.items() if age == 0]
        if spec.policy_ages
        else None,
        demonstrated_ids=[each.trajectory_id for each in sound if each.demonstrated],
        self_reported=spec.self_reported,
    )


_NEEDS_VARIATION = frozenset({"grpo", "rloo", "dpo", "reinforce"})
"""Algorithms that find nothing where nobody did better than another; the others would only waste time."""


def _no_data_reason(
    selection: Selection,
    candidates: Sequence[TrajectoryCandidate],
    spec: SelectionSpec,
    excluded_counts: Mapping[ExclusionReason, int],
) -> str:
    """Why there is nothing to train on; empty when there is something."""
    found = _learnable_candidates(candidates, spec, spec.max_age)
    trained = any(not selection.is_held_out(each) for each in selection.members)
    if trained and (spec.algorithm not in _NEEDS_VARIATION or found.usable_by(spec.algorithm)):
        return ""
    counts = Counter(selection.left_out) + Counter(excluded_counts)
    if not counts and not selection.members:
        return "There is nothing to train on: the source holds no trajectory."
    reasons = "; ".join([*([describe_exclusions(counts)] if counts else []), *found.reasons()])
    return " ".join([f"There is nothing to train on: {reasons}.", *selection.notes])
