"""Is the judge's budget spent? What the last day cost, and the question that it did not allow any more."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta

from upswing.records import JudgeUse
from upswing.reward.core.judge_verdict import JudgeSpend
from upswing.reward.judge import JudgeBudget
from upswing.reward.outcome_repository import OutcomeRepository

DAY = timedelta(days=1)


class BudgetMeter:
    """Measures the budget of one judge."""

    def __init__(
        self, budget: JudgeBudget, outcomes: OutcomeRepository, *, clock: Callable[[], datetime]
    ) -> None:
        self._budget, self._outcomes, self._clock = budget, outcomes, clock
        self._refused = JudgeSpend()

    def refuse(self, price: JudgeSpend) -> None:
        """A question of this price was not asked."""
        self._refused = price

    async def read(self) -> JudgeUse:
        """Spent until a question like the last that was refused fits into it again."""
        prompt, completion, usd = await self._outcomes.spent_since(self._clock() - DAY)
        spent = JudgeSpend(0, prompt, completion, usd)
        over = self._budget.overdrawn(spent + self._refused)
        if over is None:
            self._refused = JudgeSpend()
        return JudgeUse(
            tokens=prompt + completion,
            usd=usd,
            max_tokens=self._budget.max_tokens,
            max_usd=self._budget.max_usd,
            spent=over is not None,
        )
