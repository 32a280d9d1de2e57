"""Two models in production: which earns more, and how sure is that?"""

import random

import pytest
from tests.trigger.test_trigger import Bench
from tests.validate.test_validation_rows import decision, report

from upswing.api.comparison import compare, load_comparison, side_by_side
from upswing.contracts.validation import DifferenceInterval, SuiteReport
from upswing.infra.sql.earnings import Earnings, ModelReward
from upswing.validate.repository import Validations


def production(count, difference=0.0, *, share=0.5, spread=0.25, drift=0.0, seed=0):
    """Rewards of `a` and `b`, drawn at random; both drift together."""
    chance = random.Random(seed)
    made = []
    for seq in range(1, count + 1):
        model = "a" if chance.random() < share else "b"
        mean = 0.5 + drift * seq / count + (difference if model == "a" else 0.0)
        raw = min(1.0, max(0.0, chance.gauss(mean, spread)))
        made.append(ModelReward(seq, model, f"u{chance.randrange(50)}", raw))
    return made


def test_a_model_that_earns_more_is_told():
    found = compare("a", "b", production(4000, 0.1))
    assert found.sentence == "a earns more."
    assert found.production.lower > 0
    assert found.a.mean - found.b.mean == pytest.approx(0.1, abs=0.03)


def test_the_question_the_other_way_round_has_the_opposite_answer():
    earned = production(4000, 0.1, share=0.3)
    one, other = side_by_side("a", "b", earned), side_by_side("b", "a", earned)
    assert (one.difference, one.lower, one.upper) == (-other.difference, -other.upper, -other.lower)
    assert compare("b", "a", earned).sentence == "a earns more."


def test_more_rewards_give_narrower_bounds():
    widths = []
    for count in (200, 2000, 20_000):
        found = side_by_side("a", "b", production(count))
        assert found.lower < 0 < found.upper
        widths.append(found.upper - found.lower)
    assert widths[0] > 2 * widths[1] > 4 * widths[2]


def test_alike_is_not_told_apart_however_often_one_looks():
    wrong = 0
    for seed in range(40):
        earned = production(1500, seed=seed, share=0.3)
        looks = (side_by_side("a", "b", earned[:end]) for end in range(300, 1501, 300))
        wrong += any(found and (found.lower > 0 or found.upper < 0) for found in looks)
    assert wrong <= 2


def test_a_day_that_is_better_for_both_is_nobodys_merit():
    found = side_by_side("a", "b", production(4000, drift=0.4))
    assert found.lower < 0 < found.upper
    assert abs(found.difference) < 0.04


def test_models_that_answered_one_after_the_other_are_not_told_apart():
    earned = [
        ModelReward(n, "a" if n <= 500 else "b", "u", 0.9 if n <= 500 else 0.1)
        for n in range(1, 1001)
    ]
    found = compare("a", "b", earned)
    assert found.a.mean > 0.8 > found.b.mean
    assert found.production is None or found.production.lower < 0
    assert found.sentence != "a earns more."


def test_one_without_trajectories_is_named():
    found = compare("a", "c", production(50))
    assert found.sentence == "No trajectory of c is scored."
    assert (found.b.mean, found.production) == (None, None)


def test_one_loud_user_does_not_make_the_mean():
    crowd = [ModelReward(n, "ab"[n % 2], f"u{n}", 0.8) for n in range(1, 101)]
    troll = [ModelReward(n, "a", "troll", 0.0) for n in range(101, 2101)]
    assert compare("a", "b", crowd + troll).a.mean > 0.7


def suite(name, candidate, current):
    found = DifferenceInterval(
        candidate - current, candidate - current - 0.1, candidate - current + 0.1, 24
    )
    return SuiteReport(name, "benchmark", True, "pass", "", candidate, current, found, 24, 24, {})


def test_a_report_of_both_gives_the_suites_with_their_bounds():
    made = report(candidate="a", current="b", suites_=(suite("tool_usage", 0.75, 0.5),))
    (one,) = compare("a", "b", [], [made]).suites
    assert (one.a, one.b, one.difference, one.lower, one.upper) == pytest.approx(
        (0.75, 0.5, 0.25, 0.15, 0.35)
    )
    (other,) = compare("b", "a", [], [made]).suites
    assert (other.a, other.b, other.difference, other.lower, other.upper) == pytest.approx(
        (0.5, 0.75, -0.25, -0.35, -0.15)
    )


def test_two_reports_give_the_suites_that_both_have_without_bounds():
    one = report("r1", "a", "base", suites_=(suite("tool_usage", 0.75, 0.5), suite("x", 1, 1)))
    other = report("r2", "b", "base", suites_=(suite("tool_usage", 0.5, 0.5),))
    found = compare("a", "b", [], [one, other])
    (each,) = found.suites
    assert (each.suite, each.difference, each.lower) == ("tool_usage", 0.25, None)
    assert found.reports == ("r1", "r2")


# ── from the store ───────────────────────────────────────────────────────────────────────────────


async def test_what_counts_is_scored_sound_and_no_evaluation(store):
    bench = Bench(store)
    await bench.score(3, model="a", raw=0.7)
    await bench.score(2, model="b", raw=0.4, principal="q")
    await bench.score(5, model="a", raw=0.0, evaluation=1)
    await bench.score(5, model="b", raw=0.0, infra_error=1)
    await bench.score(5, model="c", raw=0.0)
    earned = await Earnings(store.database).newest_rewards("a", "b")
    assert [(each.seq, each.model, each.raw) for each in earned] == [
        (1, "a", 0.7),
        (2, "a", 0.7),
        (3, "a", 0.7),
        (4, "b", 0.4),
        (5, "b", 0.4),
    ]
    assert earned[-1].principal == "q"
    newest = await Earnings(store.database).newest_rewards("a", "b", limit=2)
    assert [each.seq for each in newest] == [4, 5]


async def test_the_newest_reports_are_looked_up(store):
    rows, earnings = Validations(store.database), Earnings(store.database)
    assert (await load_comparison("a", "b", earnings, rows)).suites == ()

    async def keep(run_id, candidate, current):
        made = report(run_id, candidate, current, suites_=(suite("tool_usage", 0.75, 0.5),))
        await rows.begin(run_id, candidate, current, ("tool_usage",), made.started)
        await rows.finish(made, "", decision(run_id), made.ended)

    await keep("r1", "a", "base")
    assert (await load_comparison("a", "b", earnings, rows)).reports == ()
    await keep("r2", "b", "base")
    assert (await load_comparison("a", "b", earnings, rows)).reports == ("r1", "r2")
    await keep("r3", "b", "a")
    found = await load_comparison("a", "b", earnings, rows)
    assert found.reports == ("r3",)
    assert found.suites[0].difference == -0.25
