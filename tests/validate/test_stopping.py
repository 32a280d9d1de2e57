"""Looks: when more answers are taken, and how seldom luck is taken for an improvement."""

import math
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from upswing.contracts.validation import SIDES, SampleScore
from upswing.validate.core.compare import Difference, bootstrap_difference, confidence_level
from upswing.validate.core.report import PlannedSuite, ValidationRun, score_run
from upswing.validate.core.stopping import SAFETY_ANSWERS, TimeLeft, decide_after_look
from upswing.validate.core.verdict import SEVERITY, SuiteScore, ValidationPolicy, decide_verdict

LOOKS = (4, 8, 16)
POLICY = ValidationPolicy(counted=frozenset({"world:mine"}), needs_safety=False)
NAN = math.nan


def score(found, done=100, name="world:mine", own=True):
    return SuiteScore(name, "benchmark", found, done, 100, candidate=0.5, current=0.5, own=own)


ALL = TimeLeft(own=True, safety=True)


def step(found, *, room=ALL, other=None, done=100, anchor=None, safety=None):
    scores = [score(found, done)] + ([score(other, name="tool_usage", own=False)] if other else [])
    if safety:
        scores.append(
            SuiteScore("safety_bias", "safety", safety, 84, 84, candidate=0.5, current=0.5)
        )
    reached = decide_verdict(scores, safety, found, POLICY, anchor)
    return decide_after_look(reached, scores, POLICY, room)


EVEN = Difference(0.0, -0.04, 0.04, 100)
TABLE = [
    ("undecided", step(EVEN), False),
    ("slightly below zero", step(Difference(-0.006, -0.066, 0.054, 100)), False),
    ("far below zero, but uncertain", step(Difference(-0.08, -0.17, 0.01, 100)), False),
    ("too wide to say", step(Difference(0.1, -0.3, 0.5, 100)), False),
    ("better", step(Difference(0.1, 0.01, 0.2, 100)), True),
    ("worse", step(Difference(-0.1, -0.2, -0.01, 100)), True),
    ("the last look", step(EVEN, room=TimeLeft(own=False, safety=True)), True),
    ("not a number", step(Difference(NAN, NAN, NAN, 100)), True),
    ("an ability is worse", step(EVEN, other=Difference(-0.2, -0.3, -0.1, 24)), True),
    ("an ability is the same", step(EVEN, other=Difference(0.0, -0.1, 0.1, 24)), False),
    ("parts were away", step(EVEN, done=80), True),
    ("below the base", step(EVEN, anchor=Difference(-0.2, -0.3, -0.1, 60)), True),
    ("hardly below the base", step(EVEN, anchor=Difference(-0.1, -0.3, 0.1, 60)), False),
]


BETTER = Difference(0.1, 0.01, 0.2, 100)
HARMLESS = Difference(0.01, -0.06, 0.08, 84)
UNDECIDED = Difference(-0.02, -0.09, 0.05, 84)
"""Slightly below the current model's, and nobody can say how much."""
BEYOND = Difference(-0.07, -0.15, 0.01, 84)
"""Below by more than the margin, and luck may be why."""
HARMFUL = Difference(-0.1, -0.18, -0.02, 84)
NO_ROOM = TimeLeft(own=True, safety=False)
SAFETY_TABLE = [
    ("harmless, better", step(BETTER, safety=HARMLESS), (False, False)),
    ("harmless, undecided", step(EVEN, safety=HARMLESS), (True, False)),
    ("undecided, better", step(BETTER, safety=UNDECIDED), (False, True)),
    ("undecided, undecided", step(EVEN, safety=UNDECIDED), (True, True)),
    ("beyond the margin by luck", step(BETTER, safety=BEYOND), (False, True)),
    ("significantly worse", step(BETTER, safety=HARMFUL), (False, False)),
    ("undecided, worse", step(Difference(-0.1, -0.2, -0.01, 9), safety=UNDECIDED), (False, False)),
    ("undecided, no time", step(BETTER, safety=UNDECIDED, room=NO_ROOM), (False, False)),
    ("undecided, no time, own open", step(EVEN, safety=UNDECIDED, room=NO_ROOM), (False, False)),
    ("undecided, an ability worse", step(BETTER, safety=UNDECIDED, other=HARMFUL), (False, False)),
    ("not a number", step(BETTER, safety=Difference(NAN, NAN, NAN, 84)), (False, False)),
]


@pytest.mark.parametrize(
    ("row", "taken", "more"), SAFETY_TABLE, ids=[row for row, _, _ in SAFETY_TABLE]
)
def test_safety_is_sampled_before_a_model_is_given_up_for_it(row, taken, more):
    assert (taken.own, taken.safety) == more
    assert taken.stop is (more == (False, False))


def safety_cells(seed, gap, sampled):
    """Both models on 84 tasks: a greedy answer that few tasks change, and sampled ones."""
    chance = random.Random(seed)
    made = []
    for place in range(84):
        safe = chance.betavariate(0.8, 0.5)
        for side, level in zip(SIDES, (max(0.0, safe - gap), safe), strict=True):
            greedy = float(min(1.0, max(0.0, level + chance.gauss(0, 0.08))) > 0.5)
            drawn = [float(chance.random() < level) for _ in range(sampled)]
            seeds = [0, *range(1000, 1000 + sampled)]
            made += [
                SampleScore("safety_bias", f"t{place}", at, side, value)
                for at, value in zip(seeds, [greedy, *drawn], strict=True)
            ]
    return made


def safety_word(seed, gap):
    """What becomes of safety over all its looks."""
    policy, run = ValidationPolicy(counted=frozenset({"x"})), ValidationRun("r", "new", "old")
    word = "inconclusive"
    for place, sampled in enumerate((0, *SAFETY_ANSWERS)):
        planned = [PlannedSuite("safety_bias", "safety", 84, samples=1 + sampled)]
        weighed = score_run(run, planned, safety_cells(seed, gap, sampled), policy)
        found = {each.about: each.verdict for each in weighed.verdict.findings}
        word = max(found["safety"], found["safety_bias"], key=SEVERITY.__getitem__)
        if word == "pass" or not weighed.verdict.safety.upper >= 0 or place == len(SAFETY_ANSWERS):
            return word, place
    return word, place


def test_sampling_saves_models_that_are_as_safe_and_finds_those_that_are_not():
    """At a glance a third of the equal ones is undecided; of those worse by 0.10 few get through."""
    equal = [safety_word(run, 0.0) for run in range(30)]
    at_once = sum(word == "pass" and place == 0 for word, place in equal)
    assert at_once < 0.8 * len(equal) < sum(word == "pass" for word, _ in equal)
    worse = [safety_word(run, 0.10) for run in range(20)]
    assert sum(word == "pass" for word, _ in worse) <= 2


@pytest.mark.parametrize(("row", "taken", "stops"), TABLE, ids=[row for row, _, _ in TABLE])
def test_the_table(row, taken, stops):
    assert taken.stop is stops
    assert taken.sentence


def draws(seed, tasks, gain=0.0):
    """Task → both models' sixteen answers; tasks differ in difficulty."""
    chance = random.Random(seed)
    made = {}
    for place in range(tasks):
        easy = chance.uniform(0.05, 0.85)
        better = [float(chance.random() < easy + gain) for _ in range(LOOKS[-1])]
        made[f"t{place:03d}"] = better, [float(chance.random() < easy) for _ in better]
    return made


def seen(made, samples, resamples=200, seed=0):
    table = {
        task: tuple(math.fsum(each[:samples]) / samples for each in both)
        for task, both in made.items()
    }
    return bootstrap_difference(
        [table], seed, resamples=resamples, level=confidence_level(len(LOOKS))
    )


def test_luck_is_seldom_taken_for_an_improvement_however_often_one_looks():
    """Two equal models: over all looks, at most one in twenty is called better."""
    runs = 400
    lucky = sum(
        any(seen(made, samples, seed=run).lower > 0 for samples in LOOKS)
        for run in range(runs)
        for made in [draws(run, 40)]
    )
    assert lucky / runs <= 0.05


def test_a_model_that_is_better_by_little_is_not_given_up_at_the_first_look():
    """+0.04 over 200 tasks: now and then the first estimate is below zero, and nobody stops there."""
    found = [seen(draws(run, 200, gain=0.04), 4) for run in range(60)]
    assert any(each.estimate < 0.01 for each in found)
    assert not any(step(each).stop and each.lower <= 0 for each in found)


def test_more_answers_show_what_a_few_could_not():
    shown = {
        samples: sum(seen(draws(run, 200, gain=0.06), samples).lower > 0 for run in range(20))
        for samples in LOOKS
    }
    assert shown[4] < shown[16]
    assert shown[16] >= 16


def sample_scores(made, samples):
    return [
        SampleScore("world:mine", task, seed, side, answers[seed])
        for task, both in made.items()
        for side, answers in zip(SIDES, both, strict=True)
        for seed in range(samples)
    ]


def validated(made, looks=(1, 2)):
    """All looks of a validation, from answers to the last verdict."""
    run = ValidationRun("r", "new", "old", samples=looks)
    for place, samples in enumerate(looks):
        planned = [PlannedSuite("world:mine", "benchmark", len(made), own=True, samples=samples)]
        weighed = score_run(run, planned, sample_scores(made, samples), POLICY)
        room = TimeLeft(own=place < len(looks) - 1, safety=False)
        if decide_after_look(weighed.verdict, weighed.scores, POLICY, room).stop:
            return weighed.verdict
    raise AssertionError("The last look always ends it.")


answers = st.tuples(*[st.sampled_from([0.0, 0.5, 1.0])] * 2)
tables = st.lists(st.tuples(answers, answers), min_size=20, max_size=30).map(
    lambda both: {f"t{place:02d}": pair for place, pair in enumerate(both)}
)


@settings(max_examples=25, deadline=None)
@given(tables, st.data())
def test_the_verdict_over_all_looks_never_gets_worse_when_answers_get_better(table, data):
    chosen = data.draw(st.lists(st.sampled_from(sorted(table)), max_size=8))
    better = dict(table)
    for task in chosen:
        candidate, current = table[task]
        raised = tuple(max(each, data.draw(st.sampled_from([0.5, 1.0]))) for each in candidate)
        better[task] = raised, current
    assert SEVERITY[validated(better).status] <= SEVERITY[validated(table).status]


def test_a_single_look_has_the_usual_level():
    assert confidence_level(1) == 0.95
    assert 1 - confidence_level(3) == pytest.approx(0.05 / 3)
