"""A verdict follows from what the journal kept of it; and a suite beyond both models does not count."""

import json
import math
from datetime import UTC, datetime

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from upswing.contracts.validation import SIDES, SampleScore
from upswing.validate.core.replay import VerdictInputs, encode_inputs, replay_verdict
from upswing.validate.core.report import PlannedSuite, RunMetadata, ValidationRun, build_report
from upswing.validate.core.verdict import ValidationPolicy

AT = datetime(2026, 3, 1, tzinfo=UTC)
RUN = ValidationRun("r", "new", "old")
SUITES = [
    PlannedSuite("tool_usage", "benchmark", 20),
    PlannedSuite("world:triage", "benchmark", 20),
    PlannedSuite("safety_bias", "safety", 12),
    PlannedSuite("regression", "regression", 2),
]


def made(scores, policy=ValidationPolicy()):  # noqa: B008  it is frozen
    """A report of these scores: suite → (candidate's, current's), each for all of its tasks."""
    sample_scores = [
        SampleScore(suite.name, f"t{place}", 0, side, score, "So.")
        for suite in SUITES
        for place in range(suite.tasks)
        for side, score in zip(SIDES, scores.get(suite.name, (1.0, 1.0)), strict=True)
    ]
    return build_report(RUN, SUITES, sample_scores, policy, RunMetadata(AT, AT))


SCORE = st.sampled_from([0.0, 0.25, 0.5, 0.9, 1.0, math.nan, None])


@given(
    st.dictionaries(st.sampled_from([suite.name for suite in SUITES]), st.tuples(SCORE, SCORE)),
    st.sampled_from([None, frozenset({"tool_usage"}), frozenset({"gone"})]),
    st.sampled_from([{}, {"safety_bias": 0.5}]),
)
@settings(max_examples=40, deadline=None)
def test_what_was_kept_leads_to_the_same_verdict(scores, counted, floors):
    policy = ValidationPolicy(counted=counted, floors=floors)
    told = made(scores, policy)
    outcome, sentence = replay_verdict(encode_inputs(told, policy))
    assert json.loads(outcome)["word"] == told.verdict
    assert sentence == f"new against old: {told.verdict}. {' '.join(told.reasons)}"
    words = {each["about"]: each["word"] for each in json.loads(outcome)["findings"]}
    assert {suite.name: suite.verdict for suite in told.suites}.items() <= words.items()


def test_another_policy_leads_elsewhere():
    kept = msgspec.json.decode(
        encode_inputs(made({"tool_usage": (0.5, 0.6)}), ValidationPolicy()), type=VerdictInputs
    )
    strict, mild = (
        msgspec.structs.replace(kept, policy=ValidationPolicy(margin=margin, reach=1))
        for margin in (0.05, 0.2)
    )
    words = [
        json.loads(replay_verdict(msgspec.json.encode(each))[0])["word"] for each in (strict, mild)
    ]
    assert words == ["fail", "pass"]


def test_inputs_of_another_time_are_refused_and_not_guessed():
    with pytest.raises(msgspec.ValidationError):
        replay_verdict(b'{"run_id": "r"}')


def test_a_suite_beyond_both_models_thins_out_no_improvement():
    alone = made({"tool_usage": (0.0, 0.0), "world:triage": (0.75, 0.25)})
    assert alone.improvement.estimate == 0.5
    assert [suite.name for suite in alone.suites if suite.counted] == ["world:triage"]
    assert any("Both models score zero in tool_usage" in note for note in alone.notes)


@pytest.mark.parametrize("pair", [(0.25, 0.0), (0.0, 0.25), (1.0, 1.0)])
def test_a_suite_that_one_of_them_can_do_counts_in_full(pair):
    told = made({"tool_usage": pair, "world:triage": (0.75, 0.25)})
    assert told.improvement.estimate == pytest.approx((pair[0] - pair[1] + 0.5) / 2)
    assert sum(suite.counted for suite in told.suites) == 2
    assert not told.notes


def test_zero_everywhere_is_undecided_and_says_so():
    told = made({"tool_usage": (0.0, 0.0), "world:triage": (0.0, 0.0)})
    assert (told.verdict, told.improvement) == ("inconclusive", None)
    assert told.reasons == (
        "Both models score zero in every suite that counts: nothing measures an improvement.",
    )


def test_zero_for_safety_is_no_reason_to_look_away():
    told = made({"safety_bias": (0.0, 1.0)})
    assert told.verdict == "fail"
    assert made({"safety_bias": (0.0, 0.0)}).safety.estimate == 0
