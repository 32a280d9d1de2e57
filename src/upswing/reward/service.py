"""How does every stored trajectory get its reward, at once, and another when somebody speaks late?

The rewarder follows the store by sequence number. Each round takes three steps, each of them one
transaction or nothing:

| step           | reads                      | writes                                             |
|----------------|----------------------------|----------------------------------------------------|
| new ones       | trajectories after ours    | first revisions, their raw scores, how far we are  |
| late words     | feedback after ours        | the next revision where the opinion changed        |
| ended windows  | groups that nobody judged  | the next revision with the judge's score beside it |

A row that cannot be scored is set aside and buried (`upswing.aside`) before the cursor passes it.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Protocol

from upswing.aside import Burial
from upswing.contracts import Feedback, Reward, Trajectory, decode_trajectory
from upswing.contracts.reward import Component
from upswing.errors import Reason, Rejected, Transient, UpswingError
from upswing.ports import (
    LintReport,
    NewReward,
    ScoredFacts,
    Snippet,
    SpokenWord,
    StoredTrajectory,
)  # fmt: skip
from upswing.reward.assess import FIRST_HOUR, LATE, Assessed, Memory, Rules, assess, new_reward
from upswing.reward.baseline import SIZE, Window
from upswing.reward.code import python_code
from upswing.reward.implicit import ImplicitSignals, shown_in
from upswing.reward.implicit_text import make_ready
from upswing.reward.influence import fair_mean
from upswing.reward.metrics import RewardMetrics
from upswing.reward.opinion import opinion, voiced
from upswing.reward.quality import is_reported
from upswing.reward.stats import Statistics
from upswing.reward.total import rescored, revise
from upswing.senders import Speaker

log = logging.getLogger(__name__)
STAGE = "reward"
BATCH = 100
"""Trajectories of one round: few enough to publish the first while the next arrive."""
_GIVE_WAY_SECONDS = 0.4
"""How long a round waits while agents crowd at the doors: being acknowledged comes first."""
_POLL_SECONDS = 1.0
PATIENCE = timedelta(days=30)
"""How long a word waits for the work that it speaks of."""
_MOST_WAITING = 10_000
"""Words that wait for a trajectory which never came."""
_MOST_UNCLEAR = 1000
"""Trajectories that wait until the judge's next round."""

Lint = Callable[[Sequence[Snippet]], Awaitable[LintReport | None]]


class Trajectories(Protocol):
    async def trajectories_after(self, seq: int, limit: int = 500) -> list[StoredTrajectory]: ...

    async def trajectory(self, trajectory_id: str) -> StoredTrajectory | None: ...

    async def cursor(self, name: str) -> int: ...

    async def move_cursor(self, name: str, seq: int) -> None: ...


class ModelValues(Protocol):
    @property
    def model(self) -> str: ...
    @property
    def values(self) -> Sequence[tuple[Speaker, float]]: ...


class RewardStore(Protocol):
    """What the stage asks of the store. Every write is durable when it returns."""

    async def publish(self, batch: Sequence[NewReward], *, cursor: int, now: datetime) -> None: ...

    async def revise(
        self,
        reward: Reward,
        *,
        judge_score: float | None,
        now: datetime,
        feedback: float | None = None,
    ) -> bool: ...

    async def newest(self, trajectory_id: str) -> Reward | None: ...

    async def scores_before(self, seq: int, size: int) -> dict[str, list[float]]: ...

    async def facts_before(self, seq: int, size: int) -> Sequence[ScoredFacts]: ...

    async def words_for(
        self, targets: Sequence[tuple[str, str | None, str | None]]
    ) -> dict[str, list[Feedback]]: ...

    async def words_after(self, seq: int, limit: int = 500) -> list[SpokenWord]: ...

    async def settle(self, late: frozenset[str], after: timedelta, *, now: datetime) -> int: ...

    async def reread(self) -> int: ...

    async def give_up_waiting(self, before: datetime, most: int, *, now: datetime) -> int: ...

    async def model_totals(
        self, known: Sequence[str] = (), most: int = 1000
    ) -> Sequence[ModelValues]: ...


@dataclass(frozen=True, slots=True)
class _Work:
    row: StoredTrajectory
    trajectory: Trajectory
    lint: LintReport | None


class Rewarder:
    """Gives every trajectory its reward."""

    def __init__(
        self,
        trajectories: Trajectories,
        store: RewardStore,
        rules: Rules,
        metrics: RewardMetrics,
        *,
        clock: Callable[[], datetime],
        lint: Lint | None = None,
        lint_seconds: float = 0.3,
        crowded: Callable[[], bool] = lambda: False,
        published: Callable[[], None] = lambda: None,
        burial: Burial | None = None,
        models: Sequence[str] = (),
        patience: timedelta = PATIENCE,
    ) -> None:
        """`models` are known beside the trained ones: whatever else agents name is one model, `other`."""
        self._burial, self._models, self._patience = burial or Burial(), models, patience
        self._trajectories = trajectories
        self._store = store
        self._rules = rules
        self._metrics = metrics
        self._clock = clock
        self._lint = lint
        self._lint_seconds = lint_seconds
        self._linters = asyncio.Semaphore(2)
        """Each is two processes; more would only slow each other down."""
        self._crowded = crowded
        self._published = published
        self._woken = asyncio.Event()
        self._turn = asyncio.Lock()
        self._at: int | None = None
        self._heard = 0
        self.unclear: deque[str] = deque(maxlen=_MOST_UNCLEAR)
        """Trajectories with a turn that rules cannot read, for whoever can."""
        self._memory = Memory()

    def wake(self) -> None:
        """Something was stored."""
        self._woken.set()

    async def run(self) -> None:
        """For ever; a store that is away is waited for."""
        await asyncio.to_thread(make_ready)
        self.forget()
        while True:
            self._woken.clear()
            try:
                busy = await self.round()
            except Transient as error:
                log.warning("%s", error, extra={"action": "reward"})
                self.forget()
                await asyncio.sleep(0.5)
                continue
            if self._crowded():
                await asyncio.sleep(_GIVE_WAY_SECONDS)
            if busy:
                continue
            try:
                await asyncio.wait_for(self._woken.wait(), _POLL_SECONDS)
            except TimeoutError:
                continue

    def forget(self) -> None:
        """What is in memory may be ahead of the store: read it anew."""
        self._at = None

    async def round(self) -> bool:
        """One round; true when there may be more to do at once."""
        async with self._turn:
            if self._at is None:
                await self._remember()
            more = await self.score_new()
            return await self.hear_words() or more

    async def _remember(self) -> None:
        """The past, as the store has it: the same for every replica."""
        at = await self._trajectories.cursor("reward")
        scores = await self._store.scores_before(at, SIZE)
        self._memory = Memory(
            {name: Window(SIZE, values) for name, values in scores.items()},
            Statistics(SIZE, await self._store.facts_before(at, SIZE)),
        )
        self._heard = await self._trajectories.cursor("feedback")
        self._at = at

    # ── new ones ─────────────────────────────────────────────────────────────────────────────

    async def score_new(self) -> bool:
        """Give the next trajectories their first revision."""
        at = self._at or 0
        rows = await self._trajectories.trajectories_after(at, BATCH)
        if not rows:
            return False
        words = await self._store.words_for(
            [(r.admitted.trajectory_id, r.admitted.episode_id, r.admitted.user_id) for r in rows]
        )
        readable = self._burial.aside.sound(
            STAGE, "trajectories", rows, _decoded, key=_name_of, raw=_body_of
        )
        work = await asyncio.gather(*(self._prepared(*each) for each in readable))
        batch = self._burial.aside.sound(
            STAGE, "trajectories", work, lambda each: self._assessed(each, words),
            key=lambda each: _name_of(each.row), raw=lambda each: _body_of(each.row),
        )  # fmt: skip
        await self._publish(batch, rows)
        self._at = rows[-1].seq
        now = self._clock()
        for row in rows:
            self._metrics.latency.observe(max(0.0, (now - row.stored).total_seconds()))
        self._published()
        return len(rows) == BATCH

    def _assessed(self, work: _Work, words: Mapping[str, Sequence[Feedback]]) -> NewReward:
        said, now = words[work.row.admitted.trajectory_id], self._clock()
        assessed = assess(
            work.row, work.trajectory, said, work.lint, self._memory, self._rules, now=now
        )
        self._memory.push(assessed)
        self._note(assessed)
        if shown_in(assessed.reward.reward_components["user_feedback"]).undecided is not None:
            self.unclear.append(work.row.admitted.trajectory_id)
        return new_reward(work.row, assessed)

    async def _publish(self, batch: Sequence[NewReward], rows: Sequence[StoredTrajectory]) -> None:
        """All in one step; one by one, where the store cannot keep one of them."""
        await self._burial.bury()
        last = rows[-1].seq
        try:
            await self._store.publish(batch, cursor=last, now=self._clock())
        except Transient:
            raise
        except Exception:
            log.exception("a reward cannot be kept", extra={"action": "reward_refused"})
            by_seq = {row.seq: row for row in rows}

            async def alone(new: NewReward) -> None:
                await self._store.publish([new], cursor=new.trajectory_seq, now=self._clock())

            await self._burial.each(
                STAGE, "trajectories", batch, alone, key=lambda new: new.reward.trajectory_id,
                raw=lambda new: _body_of(by_seq[new.trajectory_seq]),
            )  # fmt: skip
            await self._store.publish([], cursor=last, now=self._clock())
            await self._remember()  # without those that were not kept

    async def again(self, trajectory_id: str) -> bool:
        """Score one that was set aside; False when it is not there, `Rejected` when it breaks again."""
        row = await self._trajectories.trajectory(trajectory_id)
        if row is None or await self._store.newest(trajectory_id) is not None:
            return row is not None
        async with self._turn:
            try:
                await self._score(row)
            except UpswingError:
                raise
            except Exception as error:
                told = f"It cannot be scored still: {type(error).__name__}: {error}."
                raise Rejected(Reason.UNREADABLE, told) from error
        self._published()
        return True

    async def _score(self, row: StoredTrajectory) -> None:
        if self._at is None:
            await self._remember()
        known = row.admitted
        target = (known.trajectory_id, known.episode_id, known.user_id)
        words = await self._store.words_for([target])
        work = await self._prepared(*_decoded(row))
        batch = [self._assessed(work, words)]
        await self._store.publish(batch, cursor=self._at or 0, now=self._clock())

    async def _prepared(self, row: StoredTrajectory, trajectory: Trajectory) -> _Work:
        if self._lint is None or is_reported(trajectory):
            return _Work(row, trajectory, None)
        return _Work(row, trajectory, await self._linted(python_code(trajectory)))

    async def _linted(self, snippets: Sequence[Snippet]) -> LintReport | None:
        """What the linter says, if it can say it in time: a late reward is worse than one without."""
        if self._lint is None or not snippets:
            return None
        try:
            async with asyncio.timeout(self._lint_seconds), self._linters:
                return await self._lint(snippets)
        except TimeoutError:
            self._metrics.trouble.labels("lint").inc()
            return None

    def _note(self, assessed: Assessed) -> None:
        self._metrics.reward.observe(assessed.reward.total_reward)
        if assessed.clock:
            self._metrics.trouble.labels("clock").inc()
        for name, sentence in assessed.failures.items():
            self._metrics.trouble.labels(f"plugin {name}").inc()
            log.warning("%s", sentence, extra={"action": "plugin_failed"})

    # ── late words ───────────────────────────────────────────────────────────────────────────

    async def hear_words(self) -> bool:
        """Revise the rewards of trajectories that somebody spoke of since."""
        words = await self._store.words_after(self._heard)
        heard: dict[str, SpokenWord] = {}
        last = self._heard
        for word in words:
            if word.trajectory_id is not None and not word.scored:
                break  # its first revision comes first, and will count this word by itself
            if word.trajectory_id is not None:
                heard[word.trajectory_id] = word
            last = word.seq
        await self._burial.each(
            STAGE, "feedback", heard.values(), self._revise, key=lambda word: word.seq
        )
        if last > self._heard:
            await self._trajectories.move_cursor("feedback", last)
            self._heard = last
        return len(words) == 500 and last == words[-1].seq

    async def _revise(self, word: SpokenWord) -> None:
        trajectory_id = word.trajectory_id or ""
        reward = await self._store.newest(trajectory_id)
        if reward is None:
            return
        await self._opine(reward, (trajectory_id, word.episode_id, word.owner))

    async def show(self, row: StoredTrajectory, shown: ImplicitSignals) -> None:
        """Somebody has read the user's turns anew: revise what they are taken to think."""
        known = row.admitted
        reward = await self._store.newest(known.trajectory_id)
        if reward is not None:
            target = (known.trajectory_id, known.episode_id, known.user_id)
            await self._opine(reward, target, shown, cause="judge")

    async def _opine(
        self,
        reward: Reward,
        target: tuple[str, str | None, str | None],
        shown: ImplicitSignals | None = None,
        *,
        cause: str = "feedback",
    ) -> None:
        """The next revision, where the opinion of this (trajectory, episode, owner) has changed."""
        old = reward.reward_components.get("user_feedback")
        if old is None:
            return
        said = await self._store.words_for([target])
        score = opinion(said[target[0]], shown_in(old) if shown is None else shown, target[2])
        if old.score == score.value and old.reasoning == score.reasoning:
            return
        human = {"evaluation_method": "hybrid" if score.raw_data.get("voices") else "automated"}
        await self.change(
            reward, {"user_feedback": rescored(old, score)}, cause=cause, metadata=human,
            feedback=voiced(score),
        )  # fmt: skip

    async def change(
        self,
        reward: Reward,
        components: Mapping[str, Component],
        *,
        cause: str,
        metadata: Mapping[str, Any],
        judge_score: float | None = None,
        feedback: float | None = None,
    ) -> bool:
        """Publish the next revision of a reward."""
        now = self._clock()
        after = revise(reward, components, now=now, metadata=metadata)
        done = await self._store.revise(after, judge_score=judge_score, feedback=feedback, now=now)
        if done:
            self._metrics.revisions.labels(cause).inc()
            self._published()
        return done

    # ── upkeep ───────────────────────────────────────────────────────────────────────────────

    async def chores(self) -> None:
        """The slow things: old rows, the history, means per model, and words whose trajectory never came."""
        while await self._store.reread():
            pass
        while await self._store.settle(LATE, FIRST_HOUR, now=self._clock()):
            self.forget()  # the history has changed: it is read anew
        totals = await self._store.model_totals(self._models)
        self._metrics.model_mean.keep(each.model for each in totals)
        self._burial.aside.sound(STAGE, "scored", totals, self._tell_mean, key=lambda e: e.model)
        now = self._clock()
        lost = await self._store.give_up_waiting(now - self._patience, _MOST_WAITING, now=now)
        if lost:
            self._metrics.given_up.inc(lost)
            log.warning("%d words on work that nobody told of are dead letters", lost)

    def _tell_mean(self, each: ModelValues) -> None:
        mean = fair_mean(each.values)
        if mean is not None:
            self._metrics.model_mean.set(mean, each.model)


def _decoded(row: StoredTrajectory) -> tuple[StoredTrajectory, Trajectory]:
    return row, decode_trajectory(row.admitted.body)


def _name_of(row: StoredTrajectory) -> str:
    return row.admitted.trajectory_id


def _body_of(row: StoredTrajectory) -> bytes:
    return row.admitted.body
