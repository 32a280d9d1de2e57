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

from upswing.aside import Burial
from upswing.contracts import decode_trajectory
from upswing.contracts.training import DATASET_SIZE, NEW, DatasetFilter, TrainingRequest
from upswing.dataset.balance import balance_of
from upswing.dataset.groups import Learnable, learnable
from upswing.dataset.sample import Sample, sample_of, shown
from upswing.dataset.select import FOREIGN, IMITATING, Selection, select
from upswing.dataset.sift import Candidate, LeftOut, Wish, said, sift
from upswing.dataset.snapshot import Snapshot, snapshot_of
from upswing.dataset.stray import name_of
from upswing.errors import Misuse, Reason, Rejected
from upswing.train.recipe import Recipe
from upswing.train.source_service import Found, Shelves, Sources, Store, Streams

log = logging.getLogger(__name__)


class NoData(Misuse):
    """There is nothing to train on; the sentence says what became of what there is."""


@dataclass(frozen=True, slots=True)
class Gathered:
    """The data of a job."""

    samples: list[Sample]
    """In the order of the snapshot's entries."""
    snapshot: Snapshot


@dataclass(frozen=True, slots=True)
class Preview:
    """What a job would find."""

    snapshot: Snapshot | None
    """None: nothing to train on."""
    there: Learnable
    """What can be learned from what the policy did that training starts from, and others' models."""
    nothing: str = ""
    """Why there is nothing to train on."""


class Data:
    """Gathers the data of jobs, and remembers who was trained on what."""

    def __init__(
        self, store: Store, *, archive: Shelves | None = None, bus: Streams | None = None,
        burial: Burial | None = None,
    ) -> None:  # fmt: skip
        self._store, self._burial = store, burial or Burial()
        self._sources = Sources(store, archive=archive, bus=bus)

    async def gather(
        self,
        request: TrainingRequest,
        recipe: Recipe,
        *,
        ancestors: Sequence[str],
        drop: Collection[str],
        now: datetime,
        ages: Mapping[str, int] | None = None,
    ) -> Gathered:
        """The samples of a request; `NoData` when there are none.

        `ancestors` are the jobs that led to the model that training starts from, `drop` the
        trajectories that an earlier attempt found to be bad, `ages` says how many versions back
        each policy is.
        """
        wish = replace(wish_of(request, recipe, drop, now), ages=ages or {})
        found = await self._sources.find(request.training_config.dataset, ancestors)
        lost = Counter(found.left_out)
        candidates, right = await self._offered(wish, found)
        while True:
            selection = await asyncio.to_thread(select, candidates, wish)
            if nothing := await asyncio.to_thread(_nothing, selection, candidates, wish, lost):
                raise NoData(nothing)
            samples, useless = await self._samples(selection, found, right)
            if not useless:
                break
            lost.update(useless.values())
            candidates = [each for each in candidates if each.trajectory_id not in useless]
        snapshot = _snapshot(request, selection, wish, found, lost, now)
        log.info("gathered %d trajectories", len(samples), extra={"action": "gather"})
        return Gathered(samples, snapshot)

    async def preview(
        self,
        request: TrainingRequest,
        recipe: Recipe,
        *,
        ancestors: Sequence[str],
        ages: Mapping[str, int],
        now: datetime,
    ) -> Preview:
        """What `gather` would choose now; no trajectory is read and nothing is remembered."""
        wish = replace(wish_of(request, recipe, (), now), ages=ages)
        found = await self._sources.find(request.training_config.dataset, ancestors)
        candidates, _ = await self._offered(wish, found)
        selection = await asyncio.to_thread(select, candidates, wish)
        there = await asyncio.to_thread(_learnable, candidates, wish, oldest=0)
        if nothing := await asyncio.to_thread(
            _nothing, selection, candidates, wish, found.left_out
        ):
            return Preview(None, there, nothing)
        return Preview(_snapshot(request, selection, wish, found, found.left_out, now), there)

    async def note_trained(self, job_id: str, snapshot: Snapshot) -> None:
        """Remember that this job is trained on what the snapshot holds."""
        await self._store.note_trained(job_id, snapshot.trained())

    async def erased(self, snapshot: Snapshot) -> bool:
        """Whether something of it was erased since it was gathered."""
        known = await self._store.remains([each.trajectory_id for each in snapshot.entries])
        return bool(known.erased)

    async def _offered(self, wish: Wish, found: Found) -> tuple[list[Candidate], dict[str, str]]:
        """The candidates, and what people showed to be right, for algorithms that imitate."""
        if wish.algorithm not in IMITATING:
            return found.candidates, {}
        right = await self._store.demonstrations()
        return [
            replace(each, demonstrated=True) if each.trajectory_id in right else each
            for each in found.candidates
        ], right

    async def _samples(
        self, selection: Selection, found: Found, right: Mapping[str, str]
    ) -> tuple[list[Sample], dict[str, LeftOut]]:
        """The samples in order, or which trajectories are of no use after all."""
        by_id = {each.trajectory_id: each for each in selection.members}
        made: dict[str, Sample] = {}
        useless: dict[str, LeftOut] = {}

        def read(told: tuple[str, bytes]) -> None:
            name, body = told
            useless[name] = LeftOut.UNREADABLE
            if not body:  # the store has set it aside
                return
            made[name] = _sample(body, by_id[name], selection, right.get(name))
            del useless[name]

        def take(bodies: Iterable[tuple[str, bytes]]) -> None:
            self._burial.aside.sound(
                "train", "trajectories", bodies, read, raw=lambda told: told[1]
            )

        stored = [name for name in by_id if name not in found.files]
        async for chunk in self._store.bodies(stored):
            await asyncio.to_thread(take, chunk)
        filed = by_id.keys() & found.files.keys()
        async for lines in self._sources.lines({found.files[name] for name in filed}):
            named = [(name_of(line), line) for line in lines]
            await asyncio.to_thread(take, [(n, line) for n, line in named if n in filed])
        await self._burial.bury()
        for name in by_id.keys() - made.keys() - useless.keys():
            useless[name] = LeftOut.ERASED
        return ([] if useless else [made[name] for name in by_id]), useless


def wish_of(request: TrainingRequest, recipe: Recipe, drop: Collection[str], now: datetime) -> Wish:
    """What a request asks for now, or `Rejected`."""
    dataset = request.training_config.dataset
    given = DatasetFilter() if dataset.filter is UNSET else dataset.filter
    dates = given.date_range
    start = None if dates is UNSET or dates.start is UNSET else dates.start
    end = None if dates is UNSET or dates.end is UNSET else dates.end
    if start is not None and end is not None and start > end:
        raise Rejected(Reason.SCHEMA, "`date_range` ends before it starts.")
    windows = recipe.windows_per_iteration
    return Wish(
        algorithm=recipe.algorithm,
        sample_size=dataset.sample_size,
        seed=recipe.seed,
        holdout=recipe.holdout,
        min_agents=recipe.min_agents,
        min_attempts=recipe.min_attempts,
        max_age=recipe.max_age,
        stale_before=now - timedelta(days=recipe.max_days)
        if start is None or is_fresh(request)
        else None,
        fill=recipe.fill if is_fresh(request) else None,
        self_reported=recipe.self_reported,
        min_score=0.5 if given.min_reward is UNSET else given.min_reward,
        start=start,
        end=end,
        domains=() if given.task_domains is UNSET else given.task_domains,
        max_turns=None if given.max_trajectory_length is UNSET else given.max_trajectory_length,
        excluded_profiles=()
        if given.exclude_subordinate_profiles is UNSET
        else given.exclude_subordinate_profiles,
        balance=balance_of({} if request.metadata is UNSET else request.metadata),
        most_groups=None if windows is None else windows * recipe.iterations,
        drop=frozenset(drop),
    )


def _snapshot(
    request: TrainingRequest, selection: Selection, wish: Wish, found: Found,
    lost: Mapping[LeftOut, int], now: datetime,
) -> Snapshot:  # fmt: skip
    return snapshot_of(
        selection,
        wish,
        source=found.source,
        given_filter=_given(request),
        left_out={str(reason): count for reason, count in lost.items()},
        notes=_notes(request, selection, wish),
        made=now,
    )


def is_fresh(request: TrainingRequest) -> bool:
    """Whether the data's size follows from what is new, because nobody asked for a size."""
    metadata = {} if request.metadata is UNSET else request.metadata
    return metadata.get(DATASET_SIZE) == NEW


def _sample(body: bytes, member: Candidate, selection: Selection, right: str | None) -> Sample:
    """Of a body that is a trajectory in every field: the child that trains would refuse the whole file."""
    decode_trajectory(body)
    sample = sample_of(
        msgspec.json.decode(body),
        reward=selection.scores[member.trajectory_id],
        group=selection.groups[member.trajectory_id],
        raw_total=member.raw_total,
        window_id=member.window_id,
        scenario_id=member.scenario_id,
        domain=member.domain,
        revision=member.revision,
        held_out=selection.is_held_out(member),
    )
    return sample if right is None else shown(sample, right)


def _given(request: TrainingRequest) -> dict[str, Any]:
    given = request.training_config.dataset.filter
    return {} if given is UNSET else dict(msgspec.to_builtins(given))


def _notes(request: TrainingRequest, selection: Selection, wish: Wish) -> list[str]:
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
    older = sum(wish.ages.get(each.model, FOREIGN) > 0 for each in trained) if wish.ages else 0
    if older:
        notes.append(f"{older} of {len(trained)} were made by other policies than the one trained.")
    return notes


def _learnable(candidates: Iterable[Candidate], wish: Wish, oldest: int) -> Learnable:
    """What can be learned from what policies did that are no older than this, and others' models."""
    sound = sift(candidates, wish, Counter())
    return learnable(
        [each for each in sound if wish.ages.get(each.model, 0) <= oldest],
        min_agents=wish.min_agents,
        min_attempts=wish.min_attempts,
        own=[name for name, age in wish.ages.items() if age == 0] if wish.ages else None,
        shown=[each.trajectory_id for each in sound if each.demonstrated],
        self_reported=wish.self_reported,
    )


_FAILS = frozenset({"grpo", "rloo", "dpo", "reinforce"})
"""Algorithms that find nothing where nobody did better than another; the others would only waste time."""


def _nothing(
    selection: Selection, candidates: Sequence[Candidate], wish: Wish, lost: Mapping[LeftOut, int]
) -> str:
    """Why there is nothing to train on; empty when there is something."""
    there = _learnable(candidates, wish, wish.max_age)
    trained = any(not selection.is_held_out(each) for each in selection.members)
    if trained and (wish.algorithm not in _FAILS or there.teaches(wish.algorithm)):
        return ""
    counts = Counter(selection.left_out) + Counter(lost)
    if not counts and not selection.members:
        return "There is nothing to train on: the source holds no trajectory."
    words = "; ".join([*([said(counts)] if counts else []), *there.reasons()])
    return " ".join([f"There is nothing to train on: {words}.", *selection.notes])
