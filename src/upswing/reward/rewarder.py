"""How does every stored trajectory get its reward, at once, and another when somebody speaks late?

The rewarder follows the store by sequence number. Each round takes three steps, each of them one
transaction or nothing:

| step           | reads                      | writes                                             |
|----------------|----------------------------|----------------------------------------------------|
| new ones       | trajectories after ours    | first revisions, their raw scores, how far we are  |
| late feedback  | feedback after ours        | the next revision where the opinion changed        |
| ended windows  | groups that nobody judged  | the next revision with the judge's score beside it |

A row that cannot be scored becomes a dead letter (`upswing.infra.dead_letters`) before the cursor passes it.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from upswing.contracts import Feedback, Reward, Trajectory, decode_trajectory
from upswing.contracts.reward import Component
from upswing.errors import Reason, Rejected, Transient, UpswingError
from upswing.infra.dead_letters import DeadLetterWriter
from upswing.infra.sql.rewards import ModelTotals, Rewards
from upswing.infra.sql.store import SqlStore
from upswing.records import (
    FeedbackRow,
    LintReport,
    NewReward,
    Snippet,
    StoredTrajectory,
)
from upswing.reward.core.assess import (
    FIRST_HOUR,
    LATE_COMPONENTS,
    AssessedReward,
    RewardHistory,
    RewardRules,
    assess,
    new_reward,
)
from upswing.reward.core.baseline import SIZE, TrailingWindow
from upswing.reward.core.code import python_code
from upswing.reward.core.feedback import explicit_score, feedback_score
from upswing.reward.core.implicit import ImplicitSignals, signals_of_component
from upswing.reward.core.implicit_text import warm_up
from upswing.reward.core.influence import fair_mean
from upswing.reward.core.quality import is_reported
from upswing.reward.core.stats import StatisticsByKind
from upswing.reward.core.total import next_revision, rescore_component
from upswing.reward.metrics import RewardMetrics

log = logging.getLogger(__name__)
STAGE = "reward"
_FEEDBACK_BATCH = 500
"""Words that are read at once."""
BATCH = 100
"""Trajectories of one round: few enough to publish the first while the next arrive."""
_YIELD_SECONDS = 0.4
"""How long a round waits while many messages come in: being acknowledged comes first."""
_POLL_SECONDS = 1.0
FEEDBACK_PATIENCE = timedelta(days=30)
"""How long feedback waits for the trajectory that it is about."""
_MAX_WAITING_FEEDBACK = 10_000
"""Feedback that waits for a trajectory which never came."""
_MAX_UNCLEAR_TURNS = 1000
"""Trajectories that wait until the judge's next round."""


class CodeLinter:
    """Lints the code of trajectories, two at a time at most: each is two processes, and more would slow each other down."""

    def __init__(
        self,
        lint: Callable[[Sequence[Snippet]], Awaitable[LintReport | None]],
        timeout_seconds: float,
    ) -> None:
        self._lint, self._timeout_seconds = lint, timeout_seconds
        self._slots = asyncio.Semaphore(2)

    async def report(self, snippets: Sequence[Snippet]) -> LintReport | None:
        """What the linter finds; `TimeoutError` when that takes too long."""
        async with asyncio.timeout(self._timeout_seconds), self._slots:
            return await self._lint(snippets)


@dataclass(frozen=True, slots=True)
class _ScoringWork:
    row: StoredTrajectory
    trajectory: Trajectory
    lint: LintReport | None


class Rewarder:
    """Gives every trajectory its reward."""

    def __init__(
        self,
        trajectories: SqlStore,
        store: Rewards,
        rules: RewardRules,
        metrics: RewardMetrics,
        *,
        clock: Callable[[], datetime],
        linter: CodeLinter | None = None,
        is_busy: Callable[[], bool] = lambda: False,
        on_publish: Callable[[], None] = lambda: None,
        dead_letters: DeadLetterWriter | None = None,
        models: Sequence[str] = (),
    ) -> None:
        """`models` are known beside the trained ones: whatever else agents name is one model, `other`."""
        self._dead_letters, self._models = dead_letters or DeadLetterWriter(), models
        self._trajectories = trajectories
        self._store = store
        self._rules = rules
        self._metrics = metrics
        self._clock = clock
        self._linter = linter
        self._is_busy = is_busy
        self._on_publish = on_publish
        self._wake_event = asyncio.Event()
        self._round_lock = asyncio.Lock()
        self._cursor: int | None = None
        self._feedback_cursor = 0
        self._awaited = (0, 0)
        """The word that waits, and the newest trajectory that it waits for."""
        self.unclear_turns: deque[str] = deque(maxlen=_MAX_UNCLEAR_TURNS)
        """Trajectories with a turn that rules cannot read, for whoever can."""
        self._history = RewardHistory()

    def wake(self) -> None:
        """Something was stored."""
        self._wake_event.set()

    async def run(self) -> None:
        """For ever; a store that is away is waited for."""
        await asyncio.to_thread(warm_up)
        self.reload()
        while True:
            self._wake_event.clear()
            try:
                busy = await self.run_once()
            except Transient as error:
                log.warning("%s", error, extra={"action": "reward"})
                self.reload()
                await asyncio.sleep(0.5)
                continue
            if self._is_busy():
                await asyncio.sleep(_YIELD_SECONDS)
            if busy:
                continue
            try:
                await asyncio.wait_for(self._wake_event.wait(), _POLL_SECONDS)
            except TimeoutError:
                continue

    def reload(self) -> None:
        """What is in memory may be ahead of the store: read it anew."""
        self._cursor = None

    async def run_once(self) -> bool:
        """One round; true when there may be more to do at once."""
        async with self._round_lock:
            if self._cursor is None:
                await self._load_history()
            more = await self.score_new()
            return await self.apply_feedback() or more

    async def _load_history(self) -> None:
        """The past, as the store has it: the same for every replica."""
        at = await self._trajectories.cursor("reward")
        scores = await self._store.scores_before(at, SIZE)
        self._history = RewardHistory(
            {name: TrailingWindow(SIZE, values) for name, values in scores.items()},
            StatisticsByKind(SIZE, await self._store.facts_before(at, SIZE)),
        )
        self._feedback_cursor = await self._trajectories.cursor("feedback")
        self._cursor = at

    # ── new ones ─────────────────────────────────────────────────────────────────────────────

    async def score_new(self) -> bool:
        """Give the next trajectories their first revision."""
        at = self._cursor or 0
        rows = await self._trajectories.trajectories_after(at, BATCH)
        if not rows:
            return False
        feedback = await self._store.feedback_for(
            [(r.admitted.trajectory_id, r.admitted.episode_id, r.admitted.user_id) for r in rows]
        )
        readable = self._dead_letters.bad_rows.read_each(
            STAGE, "trajectories", rows, _decode_row, key=_trajectory_id_of_row, raw=_body_of_row
        )
        work = await asyncio.gather(*(self._prepare_scoring(*each) for each in readable))
        batch = self._dead_letters.bad_rows.read_each(
            STAGE,
            "trajectories",
            work,
            lambda each: self._assess(each, feedback),
            key=lambda each: _trajectory_id_of_row(each.row),
            raw=lambda each: _body_of_row(each.row),
        )
        await self._publish(batch, rows)
        self._cursor = rows[-1].seq
        now = self._clock()
        for row in rows:
            self._metrics.latency.observe(max(0.0, (now - row.stored).total_seconds()))
        self._on_publish()
        return len(rows) == BATCH

    def _assess(self, work: _ScoringWork, feedback: Mapping[str, Sequence[Feedback]]) -> NewReward:
        given, now = feedback[work.row.admitted.trajectory_id], self._clock()
        assessed = assess(
            work.row, work.trajectory, given, work.lint, self._history, self._rules, now=now
        )
        self._history.add(assessed)
        self._count_assessed(assessed)
        if (
            signals_of_component(assessed.reward.reward_components["user_feedback"]).undecided
            is not None
        ):
            self.unclear_turns.append(work.row.admitted.trajectory_id)
        return new_reward(work.row, assessed)

    async def _publish(self, batch: Sequence[NewReward], rows: Sequence[StoredTrajectory]) -> None:
        """All in one step; one by one, where the store cannot keep one of them."""
        await self._dead_letters.flush()
        last = rows[-1].seq
        try:
            await self._store.publish(batch, cursor=last, now=self._clock())
        except Transient:
            raise
        except Exception:
            log.exception("a reward cannot be kept", extra={"action": "reward_refused"})
            by_seq = {row.seq: row for row in rows}

            async def publish_alone(new: NewReward) -> None:
                await self._store.publish([new], cursor=new.trajectory_seq, now=self._clock())

            await self._dead_letters.process_each(
                STAGE,
                "trajectories",
                batch,
                publish_alone,
                key=lambda new: new.reward.trajectory_id,
                raw=lambda new: _body_of_row(by_seq[new.trajectory_seq]),
            )
            await self._store.publish([], cursor=last, now=self._clock())
            await self._load_history()  # without those that were not kept

    async def score_again(self, trajectory_id: str) -> bool:
        """Score one that was set aside; False when it is not there, `Rejected` when it breaks again."""
        row = await self._trajectories.trajectory(trajectory_id)
        if row is None or await self._store.newest(trajectory_id) is not None:
            return row is not None
        async with self._round_lock:
            try:
                await self._score_row(row)
            except UpswingError:
                raise
            except Exception as error:
                reason = f"It cannot be scored still: {type(error).__name__}: {error}."
                raise Rejected(Reason.UNREADABLE, reason) from error
        self._on_publish()
        return True

    async def _score_row(self, row: StoredTrajectory) -> None:
        if self._cursor is None:
            await self._load_history()
        known = row.admitted
        target = (known.trajectory_id, known.episode_id, known.user_id)
        feedback = await self._store.feedback_for([target])
        work = await self._prepare_scoring(*_decode_row(row))
        batch = [self._assess(work, feedback)]
        await self._store.publish(batch, cursor=self._cursor or 0, now=self._clock())

    async def _prepare_scoring(self, row: StoredTrajectory, trajectory: Trajectory) -> _ScoringWork:
        if self._linter is None or is_reported(trajectory):
            return _ScoringWork(row, trajectory, None)
        report = await self._lint(self._linter, python_code(trajectory))
        return _ScoringWork(row, trajectory, report)

    async def _lint(self, linter: CodeLinter, snippets: Sequence[Snippet]) -> LintReport | None:
        """What the linter finds, if it is in time: a late reward is worse than one without."""
        if not snippets:
            return None
        try:
            return await linter.report(snippets)
        except TimeoutError:
            self._metrics.trouble.labels("lint").inc()
            return None

    def _count_assessed(self, assessed: AssessedReward) -> None:
        self._metrics.reward.observe(assessed.reward.total_reward)
        if assessed.clock:
            self._metrics.trouble.labels("clock").inc()
        for name, sentence in assessed.failures.items():
            self._metrics.trouble.labels(f"plugin {name}").inc()
            log.warning("%s", sentence, extra={"action": "plugin_failed"})

    # ── late feedback ───────────────────────────────────────────────────────────────────────────

    async def apply_feedback(self) -> bool:
        """Revise the rewards of trajectories that got feedback since."""
        rows = await self._store.feedback_after(self._feedback_cursor, _FEEDBACK_BATCH)
        newest: dict[str, FeedbackRow] = {}
        last = self._feedback_cursor
        for row in rows:
            if row.waits(self._cursor or 0):
                # The first revision counts this feedback by itself; one that was stored since need not be awaited.
                if self._is_awaited(row, rows):
                    break
            elif row.trajectory_id is not None and row.scored:
                newest[row.trajectory_id] = row
            last = row.seq
        await self._dead_letters.process_each(
            STAGE, "feedback", newest.values(), self._revise_for, key=lambda row: row.seq
        )
        if last > self._feedback_cursor:
            await self._trajectories.move_cursor("feedback", last)
            self._feedback_cursor = last
        return len({row.seq for row in rows}) == _FEEDBACK_BATCH and last == rows[-1].seq

    def _is_awaited(self, row: FeedbackRow, rows: Sequence[FeedbackRow]) -> bool:
        """Was it there when this word was first met? Else an episode that goes on and on would hold up all words behind it."""
        if self._awaited[0] != row.seq:
            alike = [each.trajectory_seq for each in rows if each.seq == row.seq]
            self._awaited = row.seq, max(alike)
        return row.trajectory_seq <= self._awaited[1]

    async def _revise_for(self, feedback: FeedbackRow) -> None:
        trajectory_id = feedback.trajectory_id or ""
        reward = await self._store.newest(trajectory_id)
        if reward is None:
            return
        await self._revise_user_feedback(
            reward, (trajectory_id, feedback.episode_id, feedback.owner)
        )

    async def apply_implicit_signals(self, row: StoredTrajectory, signals: ImplicitSignals) -> None:
        """Somebody has read the user's turns anew: revise what they are taken to think."""
        known = row.admitted
        reward = await self._store.newest(known.trajectory_id)
        if reward is not None:
            target = (known.trajectory_id, known.episode_id, known.user_id)
            await self._revise_user_feedback(reward, target, signals, cause="judge")

    async def _revise_user_feedback(
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
        given = await self._store.feedback_for([target])
        score = feedback_score(
            given[target[0]], signals_of_component(old) if shown is None else shown, target[2]
        )
        if old.score == score.value and old.reasoning == score.reasoning:
            return
        human = {"evaluation_method": "hybrid" if score.raw_data.get("voices") else "automated"}
        await self.publish_revision(
            reward,
            {"user_feedback": rescore_component(old, score)},
            cause=cause,
            metadata=human,
            feedback=explicit_score(score),
        )

    async def publish_revision(
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
        after = next_revision(reward, components, now=now, metadata=metadata)
        done = await self._store.revise(after, judge_score=judge_score, feedback=feedback, now=now)
        if done:
            self._metrics.revisions.labels(cause).inc()
            self._on_publish()
        return done

    # ── upkeep ───────────────────────────────────────────────────────────────────────────────

    async def maintain(self) -> None:
        """The slow things: old rows, the history, means per model, and feedback whose trajectory never came."""
        while await self._store.reread_outcomes():
            pass
        while await self._store.settle(LATE_COMPONENTS, FIRST_HOUR, now=self._clock()):
            self.reload()  # the history has changed: it is read anew
        totals = await self._store.model_totals(self._models)
        self._metrics.model_mean.retain(each.model for each in totals)
        self._dead_letters.bad_rows.read_each(
            STAGE, "scored", totals, self._set_model_mean, key=lambda e: e.model
        )
        now = self._clock()
        lost = await self._store.give_up_waiting(
            now - FEEDBACK_PATIENCE, _MAX_WAITING_FEEDBACK, now=now
        )
        if lost:
            self._metrics.given_up.inc(lost)
            log.warning("feedback on %d trajectories that never arrived became dead letters", lost)

    def _set_model_mean(self, each: ModelTotals) -> None:
        mean = fair_mean(each.values)
        if mean is not None:
            self._metrics.model_mean.set(mean, each.model)


def _decode_row(row: StoredTrajectory) -> tuple[StoredTrajectory, Trajectory]:
    return row, decode_trajectory(row.admitted.body)


def _trajectory_id_of_row(row: StoredTrajectory) -> str:
    return row.admitted.trajectory_id


def _body_of_row(row: StoredTrajectory) -> bytes:
    return row.admitted.body
