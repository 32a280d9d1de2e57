"""Who did best of those who faced the same world? Ended windows are judged, once; what could not be is asked again.

A judged group's scores stand beside the four components, as `judge` with weight 0: relative
algorithms train on them, and they are never mixed into the total.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import msgspec

from upswing.contracts import decode_trajectory
from upswing.contracts.reward import Component
from upswing.contracts.steps import window_id_at
from upswing.dataset.groups import MIN_ATTEMPTS
from upswing.errors import Transient
from upswing.infra.dead_letters import DeadLetterWriter
from upswing.infra.sql.rewards import Rewards
from upswing.infra.sql.store import SqlStore
from upswing.records import JudgeBacklog, JudgedGroup, ScoredMember, StoredTrajectory
from upswing.reward.core.implicit import implicit_signals
from upswing.reward.core.implicit_judge import (
    build_turn_prompt,
    parse_turn_verdict,
    resolve_signals,
)
from upswing.reward.core.judge_prompt import JudgedAttempt
from upswing.reward.core.judge_verdict import GroupVerdict, JudgeSpend
from upswing.reward.core.retry import ALERT, next_judge_try
from upswing.reward.judge import GroupToJudge, Judge, ask_judge, judge_group
from upswing.reward.metrics import RewardMetrics
from upswing.reward.outcome_repository import OutcomeRepository
from upswing.reward.outcomes import find_outcome, merge_outcomes
from upswing.reward.rewarder import Rewarder

log = logging.getLogger(__name__)
STAGE = "reward"
TURNS = "unclear turns"
"""What stands for a window in the table of judged groups where the judge reads a single turn."""
GRACE = timedelta(minutes=5)
"""After a window's end: stragglers may still come in."""


class GroupJudge:
    """Judges groups with a model. Without one nobody judges: outcomes score their groups themselves."""

    def __init__(
        self,
        trajectories: SqlStore,
        rewards: Rewards,
        outcomes: OutcomeRepository,
        rewarder: Rewarder,
        judge: Judge | None,
        metrics: RewardMetrics,
        *,
        clock: Callable[[], datetime],
        window_hours: int,
        min_agents: int,
        dead_letters: DeadLetterWriter | None = None,
    ) -> None:
        self._dead_letters, self._alerted = dead_letters or DeadLetterWriter(), False
        self._trajectories = trajectories
        self._rewards = rewards
        self._outcomes = outcomes
        self._rewarder = rewarder
        self._metrics = metrics
        self._clock = clock
        self._window_hours = window_hours
        self._min_agents = min_agents
        self._judge = judge

    async def judge_ended_windows(self) -> int:
        """Deal with every group whose window is over; how many."""
        if self._judge is None:
            return 0
        now = self._clock()
        open_window = window_id_at(now - GRACE, self._window_hours)
        due = await self._outcomes.due_groups(open_window, self._min_agents, MIN_ATTEMPTS, now=now)
        await self._dead_letters.process_each(
            STAGE, "groups", due, self._judge_or_postpone, key="/".join
        )
        await self.read_unclear_turns()
        self._report_backlog(await self._outcomes.backlog())
        return len(due)

    def _report_backlog(self, backlog: JudgeBacklog) -> None:
        """How many groups are judged, wait, or are given up; whoever waits for an hour is an alert, once."""
        for state in ("judged", "waiting", "given_up"):
            self._metrics.judge_groups.labels(state).set(getattr(backlog, state))
        late = backlog.oldest is not None and self._clock() - backlog.oldest >= ALERT
        if late and not self._alerted:
            log.error(
                "%d groups could not be judged for an hour and more; they are asked about again, and "
                "`upswing judge retry` asks now",
                backlog.waiting,
                extra={"action": "alert", "reason": "judge_late"},
            )
        self._alerted = late

    async def read_unclear_turns(self) -> int:
        """Ask what users mean whose turns no rule can read; how many were asked about.

        Each is recorded like a group, so it is asked about again, paid and counted alike.
        """
        now = self._clock()
        while self._rewarder.unclear_turns:
            name = self._rewarder.unclear_turns.popleft()
            waiting = JudgedGroup(
                TURNS, name, "none", False, "It is not asked about yet.", 0, 0, 0.0, 0, now, now
            )
            await self._outcomes.record_judgement(waiting, now)
        due = await self._outcomes.due_turns(TURNS, now=now)
        turns = [(TURNS, name) for name in due]
        await self._dead_letters.process_each(
            STAGE, "turns", turns, self._judge_or_postpone, key="/".join
        )
        return len(due)

    async def _judge_turn(self, trajectory_id: str) -> None:
        assert self._judge is not None  # noqa: S101 - nobody else asks
        row = await self._trajectories.trajectory(trajectory_id)
        shown = None if row is None else implicit_signals(decode_trajectory(row.admitted.body))
        prompt = None
        if row is not None and shown is not None and shown.undecided is not None:
            prompt = build_turn_prompt(decode_trajectory(row.admitted.body), shown.undecided)
        if row is None or shown is None or prompt is None:
            gone = "There is no such turn any more."
            await self._record(JudgedGroup(TURNS, trajectory_id, "none", True, gone, 0, 0, 0.0))
            return
        before = await self._outcomes.spent_since(self._clock() - timedelta(days=1))
        text, why, spend = await ask_judge(prompt, self._judge, spent=JudgeSpend(0, *before))
        verdict = None if text is None else parse_turn_verdict(text)
        name = self._judge.policy.model
        if verdict is not None:
            await self._rewarder.apply_implicit_signals(row, resolve_signals(shown, verdict, name))
            why = f"Turn {shown.undecided} shows {verdict[0] or 'neither thanks nor a correction'}."
        why = why or "The judge's answer cannot be used."
        cost = (spend.prompt_tokens, spend.completion_tokens, spend.usd)
        await self._record(JudgedGroup(TURNS, trajectory_id, name, verdict is not None, why, *cost))
        self._count_spend(GroupVerdict(verdict is not None, why, name, spend=spend))

    async def _record(self, group: JudgedGroup) -> None:
        """Record what came of a group; one that could not be judged is asked about again."""
        now = self._clock()
        tries, first = await self._outcomes.count_tries(group.window_id, group.scenario_id)
        first = first or now
        again = None if group.judged else next_judge_try(tries + 1, first, now)
        await self._outcomes.record_judgement(
            replace(group, tries=tries + 1, first=first, again=again), now
        )

    async def _judge_or_postpone(self, group: tuple[str, str]) -> None:
        """Judge it; one over which that breaks is not met again every half minute."""
        try:
            await (self._judge_turn(group[1]) if group[0] == TURNS else self.judge(*group))
        except (Transient, OSError):
            raise
        except Exception as error:
            reason = f"Judging it broke down: {type(error).__name__}."
            broken = JudgedGroup(*group, "none", False, reason, 0, 0, 0.0)
            await self._record(broken)
            raise

    async def judge(self, window_id: str, scenario_id: str) -> GroupVerdict:
        """One group: its verdict beside the rewards, and a row of what came of it."""
        members = await self._rewards.group(window_id, scenario_id)
        sound = [each for each in members if not each.infra_error]
        verdict = await self._ask_about(window_id, scenario_id, sound)
        for trajectory_id, score in verdict.scores.items():
            await self._add_to_reward(trajectory_id, score, verdict)
        spend = verdict.spend
        done = JudgedGroup(
            window_id,
            scenario_id,
            verdict.judge,
            verdict.judged,
            verdict.reason,
            spend.prompt_tokens,
            spend.completion_tokens,
            spend.usd,
        )
        await self._record(done)
        self._count_spend(verdict)
        log.info("window %s: %s", window_id, verdict.reason, extra={"action": "judge"})
        return verdict

    async def _ask_about(
        self, window_id: str, scenario_id: str, members: Sequence[ScoredMember]
    ) -> GroupVerdict:
        if self._judge is None:
            return GroupVerdict.unjudged("none", "No judge is configured.")
        attempts = []
        for member in members:
            stored = await self._trajectories.trajectory(member.trajectory_id)
            if stored is not None:
                attempts += self._dead_letters.bad_rows.read_each(
                    STAGE,
                    "trajectories",
                    [stored],
                    _judged_attempt,
                    raw=lambda row: row.admitted.body,
                )
        merged = merge_outcomes(await self._outcomes.for_window(window_id))
        truth = find_outcome(merged, window_id, scenario_id)
        prompt, completion, usd = await self._outcomes.spent_since(
            self._clock() - timedelta(days=1)
        )
        return await judge_group(
            GroupToJudge(window_id, scenario_id, tuple(attempts), truth),
            self._judge,
            seed=f"{window_id}/{scenario_id}",
            spent=JudgeSpend(0, prompt, completion, usd),
        )

    async def _add_to_reward(self, trajectory_id: str, score: float, verdict: GroupVerdict) -> None:
        reward = await self._rewards.newest(trajectory_id)
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
        metadata: dict[str, Any] = {
            "judge": {"name": verdict.judge, "score": score, "reason": verdict.reason},
            "evaluation_method": "model-based",
        }
        await self._rewarder.publish_revision(
            reward, {"judge": component}, cause="judge", metadata=metadata, judge_score=score
        )

    def _count_spend(self, verdict: GroupVerdict) -> None:
        self._metrics.judge_usd.inc(verdict.spend.usd)
        self._metrics.judge_tokens.labels("prompt").inc(verdict.spend.prompt_tokens)
        self._metrics.judge_tokens.labels("completion").inc(verdict.spend.completion_tokens)
        if not verdict.judged:
            self._metrics.trouble.labels("judge").inc()
        if verdict.clamped:
            self._metrics.trouble.labels("judge score out of range").inc(verdict.clamped)


def _judged_attempt(row: StoredTrajectory) -> JudgedAttempt:
    return JudgedAttempt(row.admitted.trajectory_id, msgspec.json.decode(row.admitted.body))
