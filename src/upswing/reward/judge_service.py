"""Who did best of those who faced the same world? Ended windows are judged, once; what could not be is asked again.

A judged group's scores stand beside the four components, as `judge` with weight 0: relative
algorithms train on them, and they are never mixed into the total.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any, Protocol

import msgspec

from upswing.aside import Burial
from upswing.contracts import Reward, decode_trajectory
from upswing.contracts.outcome import Outcome
from upswing.contracts.reward import Component
from upswing.contracts.steps import window_of
from upswing.dataset.groups import MIN_ATTEMPTS
from upswing.errors import Transient
from upswing.ports import JudgeBacklog, JudgedGroup, ScoredMember, StoredTrajectory
from upswing.reward.implicit import ImplicitSignals, implicit_signals
from upswing.reward.implicit_judge import read_verdict, resolved, turn_question
from upswing.reward.judge import Ask, Budget, Cache, Group, Policy, ask_judge, judge_group
from upswing.reward.metrics import RewardMetrics
from upswing.reward.outcomes import merge, outcome_of
from upswing.reward.prompt import Attempt
from upswing.reward.retrying import ALERT, next_try
from upswing.reward.verdict import GroupVerdict, Spend

log = logging.getLogger(__name__)
STAGE = "reward"
TURNS = "unclear turns"
"""What stands in the ledger for a window where the judge reads a single turn."""
GRACE = timedelta(minutes=5)
"""After a window's end: stragglers may still come in."""


class Ledger(Protocol):
    async def of_window(self, window_id: str) -> list[Outcome]: ...

    async def unjudged(
        self, before: str, min_agents: int, min_attempts: int, *, now: datetime, limit: int = 50
    ) -> list[tuple[str, str]]: ...

    async def tried(self, window_id: str, scenario_id: str) -> tuple[int, datetime | None]: ...

    async def backlog(self) -> JudgeBacklog: ...

    async def judged(self, group: JudgedGroup, now: datetime) -> None: ...

    async def due(self, window_id: str, *, now: datetime, limit: int = 50) -> list[str]: ...

    async def spent(self, since: datetime) -> tuple[int, int, float]: ...


class Groups(Protocol):
    async def group(self, window_id: str, scenario_id: str) -> list[ScoredMember]: ...

    async def newest(self, trajectory_id: str) -> Reward | None: ...


class FindsTrajectories(Protocol):
    async def trajectory(self, trajectory_id: str) -> StoredTrajectory | None: ...


class Changes(Protocol):
    @property
    def unclear(self) -> deque[str]: ...

    async def show(self, row: StoredTrajectory, shown: ImplicitSignals) -> None: ...

    async def change(
        self,
        reward: Reward,
        components: Mapping[str, Component],
        *,
        cause: str,
        metadata: Mapping[str, Any],
        judge_score: float | None = None,
    ) -> bool: ...


class Bench:
    """Judges groups with a model. Without one nobody judges: outcomes score their groups themselves."""

    def __init__(
        self,
        trajectories: FindsTrajectories,
        groups: Groups,
        ledger: Ledger,
        rewarder: Changes,
        metrics: RewardMetrics,
        *,
        clock: Callable[[], datetime],
        window_hours: int,
        min_agents: int,
        ask: Ask | None = None,
        policy: Policy | None = None,
        budget: Budget = Budget(),  # noqa: B008 - it is frozen
        cache: Cache | None = None,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        burial: Burial | None = None,
    ) -> None:
        self._burial, self._late = burial or Burial(), False
        self._trajectories = trajectories
        self._groups = groups
        self._ledger = ledger
        self._rewarder = rewarder
        self._metrics = metrics
        self._clock = clock
        self._window_hours = window_hours
        self._min_agents = min_agents
        self._ask = ask
        self._policy = policy
        self._budget = budget
        self._cache = cache
        self._sleep = sleep

    async def judge_ended_windows(self) -> int:
        """Deal with every group whose window is over; how many."""
        if self._ask is None or self._policy is None:
            return 0
        now = self._clock()
        open_window = window_of(now - GRACE, self._window_hours)
        due = await self._ledger.unjudged(open_window, self._min_agents, MIN_ATTEMPTS, now=now)
        await self._burial.each(STAGE, "groups", due, self._dealt_with, key="/".join)
        await self.read_unclear_turns()
        self._tell(await self._ledger.backlog())
        return len(due)

    def _tell(self, backlog: JudgeBacklog) -> None:
        """How many groups are judged, wait, or are given up; whoever waits for an hour is an alert, once."""
        for state in ("judged", "waiting", "given_up"):
            self._metrics.judge_groups.labels(state).set(getattr(backlog, state))
        late = backlog.oldest is not None and self._clock() - backlog.oldest >= ALERT
        if late and not self._late:
            log.error(
                "%d groups could not be judged for an hour and more; they are asked about again, and "
                "`upswing judge retry` asks now", backlog.waiting, extra={"action": "alert"},
            )  # fmt: skip
        self._late = late

    async def read_unclear_turns(self) -> int:
        """Ask what users mean whose turns no rule can read; how many were asked about.

        Each stands in the ledger like a group, so it is asked about again, paid and counted alike.
        """
        now = self._clock()
        while self._rewarder.unclear:
            name = self._rewarder.unclear.popleft()
            waits = JudgedGroup(TURNS, name, "none", False, "It is not asked about yet.", 0, 0, 0.0, 0, now, now)  # fmt: skip
            await self._ledger.judged(waits, now)
        due = await self._ledger.due(TURNS, now=now)
        turns = [(TURNS, name) for name in due]
        await self._burial.each(STAGE, "turns", turns, self._dealt_with, key="/".join)
        return len(due)

    async def _read_turn(self, trajectory_id: str) -> None:
        assert self._ask is not None and self._policy is not None  # noqa: S101, PT018 - nobody else asks
        row = await self._trajectories.trajectory(trajectory_id)
        shown = None if row is None else implicit_signals(decode_trajectory(row.admitted.body))
        prompt = None
        if row is not None and shown is not None and shown.undecided is not None:
            prompt = turn_question(decode_trajectory(row.admitted.body), shown.undecided)
        if row is None or shown is None or prompt is None:
            gone = "There is no such turn any more."
            await self._keep(JudgedGroup(TURNS, trajectory_id, "none", True, gone, 0, 0, 0.0))
            return
        before = await self._ledger.spent(self._clock() - timedelta(days=1))
        text, why, spend = await ask_judge(
            prompt, self._ask, self._policy, sleep=self._sleep, budget=self._budget,
            spent=Spend(0, *before),
        )  # fmt: skip
        verdict = None if text is None else read_verdict(text)
        name = self._policy.model
        if verdict is not None:
            await self._rewarder.show(row, resolved(shown, verdict, name))
            why = f"Turn {shown.undecided} shows {verdict[0] or 'neither thanks nor a correction'}."
        why = why or "The judge's answer cannot be used."
        cost = (spend.prompt_tokens, spend.completion_tokens, spend.usd)
        await self._keep(JudgedGroup(TURNS, trajectory_id, name, verdict is not None, why, *cost))
        self._count(GroupVerdict(verdict is not None, why, name, spend=spend))

    async def _keep(self, group: JudgedGroup) -> None:
        """A line in the ledger; one that could not be judged is asked about again."""
        now = self._clock()
        tries, first = await self._ledger.tried(group.window_id, group.scenario_id)
        first = first or now
        again = None if group.judged else next_try(tries + 1, first, now)
        await self._ledger.judged(replace(group, tries=tries + 1, first=first, again=again), now)

    async def _dealt_with(self, group: tuple[str, str]) -> None:
        """Judge it; one over which that breaks is not met again every half minute."""
        try:
            await (self._read_turn(group[1]) if group[0] == TURNS else self.judge(*group))
        except (Transient, OSError):
            raise
        except Exception as error:
            told = f"Judging it broke down: {type(error).__name__}."
            broken = JudgedGroup(*group, "none", False, told, 0, 0, 0.0)
            await self._keep(broken)
            raise

    async def judge(self, window_id: str, scenario_id: str) -> GroupVerdict:
        """One group: its verdict beside the rewards, and a line in the ledger."""
        members = await self._groups.group(window_id, scenario_id)
        sound = [each for each in members if not each.infra_error]
        verdict = await self._by_model(window_id, scenario_id, sound)
        for trajectory_id, score in verdict.scores.items():
            await self._beside(trajectory_id, score, verdict)
        spend = verdict.spend
        done = JudgedGroup(
            window_id, scenario_id, verdict.judge, verdict.judged, verdict.reason,
            spend.prompt_tokens, spend.completion_tokens, spend.usd,
        )  # fmt: skip
        await self._keep(done)
        self._count(verdict)
        log.info("window %s: %s", window_id, verdict.reason, extra={"action": "judge"})
        return verdict

    async def _by_model(
        self, window_id: str, scenario_id: str, members: Sequence[ScoredMember]
    ) -> GroupVerdict:
        if self._ask is None or self._policy is None:
            return GroupVerdict.unjudged("none", "No judge is configured.")
        attempts = []
        for member in members:
            stored = await self._trajectories.trajectory(member.trajectory_id)
            if stored is not None:
                attempts += self._burial.aside.sound(
                    STAGE, "trajectories", [stored], _attempt, raw=lambda row: row.admitted.body
                )
        truth = outcome_of(merge(await self._ledger.of_window(window_id)), window_id, scenario_id)
        prompt, completion, usd = await self._ledger.spent(self._clock() - timedelta(days=1))
        return await judge_group(
            Group(window_id, scenario_id, tuple(attempts), truth),
            self._ask, self._policy, sleep=self._sleep, seed=f"{window_id}/{scenario_id}", cache=self._cache,
            budget=self._budget, spent=Spend(0, prompt, completion, usd),
        )  # fmt: skip

    async def _beside(self, trajectory_id: str, score: float, verdict: GroupVerdict) -> None:
        reward = await self._groups.newest(trajectory_id)
        if reward is None:
            return
        why = verdict.explanations.get(trajectory_id, verdict.reason)
        component = Component(
            score=score,
            weight=0.0,
            source="automated",
            reasoning=why,
            raw_data={"judge": verdict.judge},
        )
        about: dict[str, Any] = {
            "judge": {"name": verdict.judge, "score": score, "reason": verdict.reason},
            "evaluation_method": "model-based",
        }
        await self._rewarder.change(
            reward, {"judge": component}, cause="judge", metadata=about, judge_score=score
        )

    def _count(self, verdict: GroupVerdict) -> None:
        self._metrics.judge_usd.inc(verdict.spend.usd)
        self._metrics.judge_tokens.labels("prompt").inc(verdict.spend.prompt_tokens)
        self._metrics.judge_tokens.labels("completion").inc(verdict.spend.completion_tokens)
        if not verdict.judged:
            self._metrics.trouble.labels("judge").inc()
        if verdict.clamped:
            self._metrics.trouble.labels("judge score out of range").inc(verdict.clamped)


def _attempt(row: StoredTrajectory) -> Attempt:
    return Attempt(row.admitted.trajectory_id, msgspec.json.decode(row.admitted.body))
