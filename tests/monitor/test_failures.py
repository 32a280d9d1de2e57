"""Planted causes are found, and where there is none nothing is."""

import random

import pytest

from tests.monitor.planted import CAUSES, planted
from upswing.monitor.core.failures import WENT_WRONG, compare_failures, symptoms_of
from upswing.records import EpisodeFacts

SEEDS = 40
"""Of each cause, and of none; `make test-all` has more."""


def sides(facts):
    return [each for each in facts if each.candidate], [
        each for each in facts if not each.candidate
    ]


def found(facts):
    return compare_failures(*sides(facts)).findings


def is_first(findings, cause):
    feature, value = cause
    return bool(findings) and (
        findings[0].feature == feature and findings[0].value.startswith(value)
    )


@pytest.mark.parametrize("cause", CAUSES)
def test_a_planted_cause_comes_first(cause):
    hits = sum(is_first(found(planted(seed, CAUSES[cause])), cause) for seed in range(SEEDS))
    assert hits >= 0.95 * SEEDS, hits


def test_where_there_is_no_cause_nothing_is_found():
    usual = (0.03, 0.1, 0.3)
    facts = (planted(seed, usual=usual[seed % 3]) for seed in range(1000, 1000 + 2 * SEEDS))
    quiet = sum(not found(each) for each in facts)
    assert quiet >= 0.95 * 2 * SEEDS, quiet


@pytest.mark.slow
def test_false_findings_are_as_rare_as_they_may_be():
    alarms = sum(bool(found(planted(seed, usual=0.1))) for seed in range(2000, 2400))
    assert alarms <= 0.05 * 400, alarms


@pytest.mark.slow
@pytest.mark.parametrize("cause", CAUSES)
def test_a_weaker_cause_comes_first_too(cause):
    facts = (
        planted(seed, CAUSES[cause], candidates=600, baselines=1200, there=0.25)
        for seed in range(100)
    )
    assert sum(is_first(found(each), cause) for each in facts) >= 95


def test_a_finding_tells_its_numbers_and_has_examples():
    (first, *_) = found(planted(7, CAUSES["tool", "mail"]))
    assert (first.there.share > 0.3, first.elsewhere.share < 0.1) == (True, True)
    assert first.baseline_there.share < 0.1
    assert (first.lift > 5, first.adjusted < 0.001, len(first.examples)) == (True, True, 5)
    assert first.sentence.startswith(
        f"tool mail: {first.there.failed} of {first.there.seen} failed"
    )


def test_of_cuts_that_tell_the_same_the_highest_is_told():
    sizes = [300, 310, 320, 9055] * 20
    facts = [
        EpisodeFacts(str(n), True, size == 9055, "x", {}, {"prompt length": float(size)})
        for n, size in enumerate(sizes)
    ]
    (first,) = found(facts)
    assert first.value == "≥ 9,000 bytes"


def test_what_the_baseline_fails_at_alike_is_marked_and_comes_last():
    chance = random.Random(3)
    facts = []
    for number in range(1200):
        candidate = number % 2 == 0
        hard, mail = chance.random() < 0.2, candidate and chance.random() < 0.2
        failed = chance.random() < (0.6 if hard else 0.3 if mail else 0.02)
        labels = {"domain": ("maths" if hard else "other",), "tool": ("mail",) if mail else ()}
        facts.append(EpisodeFacts(str(number), candidate, failed, "wrong", labels, {}))
    findings = found(facts)
    assert [(each.feature, each.shared) for each in findings] == [("tool", False), ("domain", True)]


def test_what_another_finding_explains_is_marked():
    chance = random.Random(5)
    facts = []
    for number in range(900):
        length = chance.choice((1000, 2000, 20_000))
        domain = "research" if length == 20_000 and chance.random() < 0.8 else "coding"
        failed = chance.random() < (0.5 if length == 20_000 else 0.02)
        labels, numbers = {"domain": (domain,)}, {"prompt length": float(length)}
        facts.append(EpisodeFacts(str(number), number % 2 == 0, failed, "slow", labels, numbers))
    findings = [each for each in found([e for e in facts if e.candidate]) if not each.shared]
    assert findings[0].feature == "prompt length"
    assert {each.goes_with for each in findings[1:]} == {f"prompt length {findings[0].value}"}


def test_a_kind_of_failure_that_only_the_candidate_has_is_found():
    chance = random.Random(9)
    facts = [
        EpisodeFacts(
            str(number),
            number % 2 == 0,
            chance.random() < 0.2,
            "out_of_memory" if number % 2 == 0 and chance.random() < 0.8 else "slow",
        )
        for number in range(600)
    ]
    (first,) = found(facts)
    assert (first.feature, first.value) == (WENT_WRONG, "out_of_memory")
    assert "of the baseline's" in first.sentence
    assert symptoms_of(*sides(facts))[0].kind == "out_of_memory"


@pytest.mark.parametrize("failed", [0, 1, 4, 100])
def test_too_few_failures_or_no_successes_are_not_compared(failed):
    facts = [
        EpisodeFacts(str(n), True, n < failed, "x", {"tool": ("a" if n < failed else "b",)})
        for n in range(100)
    ]
    assert compare_failures(facts, []) == compare_failures([], [])


def test_the_same_facts_in_another_order_give_the_same_findings():
    facts = planted(11, CAUSES["agent", "a3"])
    shuffled = random.Random(1).sample(facts, len(facts))

    def told(findings):
        return [(e.feature, e.value, e.there, e.elsewhere, e.adjusted) for e in findings]

    assert told(found(facts)) == told(found(shuffled))
