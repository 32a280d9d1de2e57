"""What is made of a judge's answer: by id, in range, or not at all."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from upswing.reward.core.judge_verdict import (
    AnswerFlaw,
    AttemptVerdicts,
    JudgeSpend,
    UnusableAnswer,
    parse_verdicts,
)

IDS = ("AAAA", "BBBB", "CCCC", "DDDD")


def said(*pairs):
    return json.dumps({"scores": [{"id": i, "score": s, "explanation": "e"} for i, s in pairs]})


GOOD = said(*zip(IDS, (0.1, 0.2, 0.3, 0.4), strict=True))
SCORES = dict(zip(IDS, (0.1, 0.2, 0.3, 0.4), strict=True))


@pytest.mark.parametrize(
    "answer",
    [
        GOOD,
        f"Here you are:\n```json\n{GOOD}\n```\nI hope {{this}} helps [a lot].",
        f'Think {{"step": 1}} and then {GOOD}',
        f'A draft: {{"scores": [{{"id": "AAAA", "score": 1}}]}} and now {GOOD}',
        said(*reversed(SCORES.items())),
        json.dumps(json.loads(GOOD)["scores"]),
        GOOD.replace('"id"', '"trajectory_id"'),
        said(*SCORES.items(), ("AAAA", 0.1)),
    ],
)
def test_scores_are_found_by_id_wherever_they_stand(answer):
    read = parse_verdicts(answer, IDS)
    assert isinstance(read, AttemptVerdicts)
    assert read.scores == SCORES


@pytest.mark.parametrize(
    ("answer", "flaw"),
    [
        ("", AnswerFlaw.NOT_JSON),
        ("The first one deserves 0.9, the others less.", AnswerFlaw.NOT_JSON),
        (GOOD[:-20], AnswerFlaw.NO_SCORES),
        ("{" * 150_000, AnswerFlaw.NOT_JSON),
        ('{"a":' * 30_000, AnswerFlaw.NOT_JSON),
        ('[{"a":' * 30_000, AnswerFlaw.NOT_JSON),
        ('{"verdict": "fine"}', AnswerFlaw.NO_SCORES),
        ('{"scores": []}', AnswerFlaw.NO_SCORES),
        ('{"scores": [0.1, 0.2, 0.3, 0.4]}', AnswerFlaw.NO_SCORES),
        (said(("AAAA", 0.1), ("BBBB", 0.2)), AnswerFlaw.MISSING_ID),
        (said(*SCORES.items(), ("EEEE", 1.0)), AnswerFlaw.UNKNOWN_ID),
        (said(*SCORES.items(), (None, 1.0)), AnswerFlaw.UNKNOWN_ID),
        (said(*SCORES.items(), ("AAAA", 0.9)), AnswerFlaw.CONTRADICTION),
        (said(*((i, float("nan")) for i in IDS)), AnswerFlaw.NOT_A_NUMBER),
        (said(*((i, 0.5) for i in IDS)) + " " * 200_000, AnswerFlaw.TOO_LARGE),
    ],
    ids=range(15),
)
def test_an_answer_that_cannot_be_used_says_why(answer, flaw):
    read = parse_verdicts(answer, IDS)
    assert isinstance(read, UnusableAnswer)
    assert read.flaw is flaw
    assert read.sentence.endswith(".")


def test_scores_outside_the_range_are_clamped_and_counted():
    read = parse_verdicts(said(("AAAA", 7), ("BBBB", -0.2), ("CCCC", 1.0), ("DDDD", 0)), IDS)
    assert read.scores == {"AAAA": 1.0, "BBBB": 0.0, "CCCC": 1.0, "DDDD": 0.0}
    assert read.clamped == 2


@pytest.mark.parametrize(
    "bad", ["NaN", "Infinity", "-Infinity", '"0.9"', "null", "true", "1e999", "1" * 400]
)
def test_a_score_that_is_no_number_is_lacking_for_that_id_only(bad):
    read = parse_verdicts(GOOD.replace("0.3", bad), IDS)
    assert read.lacking == ("CCCC",)
    assert read.scores.keys() == set(IDS) - {"CCCC"}


@settings(max_examples=200, deadline=None)
@given(st.text(max_size=300) | st.text('{}[]":,0123456789.idscorNaN\\ ', max_size=300))
def test_no_answer_breaks_the_reader(answer):
    read = parse_verdicts(answer, IDS)
    assert isinstance(read, UnusableAnswer) or all(0 <= s <= 1 for s in read.scores.values())


@given(st.permutations(list(SCORES.items())))
def test_the_order_of_the_answer_means_nothing(pairs):
    assert parse_verdicts(said(*pairs), IDS).scores == SCORES


def test_spending_adds_up():
    assert JudgeSpend(1, 2, 3, 0.5, 1) + JudgeSpend(1, 1, 1, 0.25) == JudgeSpend(2, 3, 4, 0.75, 1)
