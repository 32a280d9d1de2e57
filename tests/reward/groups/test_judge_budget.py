"""Is the judge's budget spent? From the question that it did not allow, until such a one fits again."""

from datetime import UTC, datetime, timedelta

import pytest

from upswing.records import JudgedGroup
from upswing.reward.budget_meter import BudgetMeter
from upswing.reward.core.judge_verdict import JudgeSpend
from upswing.reward.judge import JudgeBudget
from upswing.reward.outcome_repository import OutcomeRepository

NOW = datetime(2026, 1, 5, 12, tzinfo=UTC)


async def judged(outcomes, name, tokens, usd, at):
    group = JudgedGroup("w", name, "m", True, "Judged.", tokens, 0, usd, 1, at, None)
    await outcomes.record_judgement(group, at)


@pytest.mark.parametrize(
    ("budget", "price"),
    [
        (JudgeBudget(max_tokens=1000), JudgeSpend(0, 300, 0, 0.0)),
        (JudgeBudget(max_usd=1.0), JudgeSpend(0, 0, 0, 0.3)),
    ],
)
async def test_it_is_spent_while_the_question_that_was_refused_does_not_fit(store, budget, price):
    outcomes, time = OutcomeRepository(store.database), [NOW]
    meter = BudgetMeter(budget, outcomes, clock=lambda: time[0])
    assert not (await meter.read()).spent
    await judged(outcomes, "a", 800, 0.8, NOW)
    found = await meter.read()
    assert (found.tokens, found.usd, found.spent) == (800, pytest.approx(0.8), False)
    meter.refuse(price)
    assert (await meter.read()).spent
    time[0] = NOW + timedelta(hours=25)
    assert not (await meter.read()).spent, "a day later there is a new budget"
    time[0] = NOW
    assert not (await meter.read()).spent, "it was asked about anew meanwhile"


async def test_without_a_limit_it_is_never_spent(store):
    outcomes = OutcomeRepository(store.database)
    meter = BudgetMeter(JudgeBudget(), outcomes, clock=lambda: NOW)
    await judged(outcomes, "a", 10**9, 10.0**6, NOW)
    meter.refuse(JudgeSpend(0, 10**9, 0, 0.0))
    found = await meter.read()
    assert (found.spent, found.max_tokens, found.max_usd) == (False, None, None)
