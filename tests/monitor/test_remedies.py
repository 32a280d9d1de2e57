"""What is recommended: the table in the docstring is the table in the code, and every row can be reached."""

import re

import pytest

from upswing.contracts.analysis import FailureFinding, FailureShare, FailureSymptom
from upswing.monitor.core import remedies
from upswing.monitor.core.remedies import ANY, NOTHING, TABLE, remedies_for

SOME = FailureShare(10, 20)


def symptom(kind, share=0.9):
    return FailureSymptom(kind, 9, share, 0)


def finding(feature, **changes):
    fields = {"feature": feature, "value": "v", "sentence": f"{feature} v.", "lift": 9.0}
    fields |= {"p_value": 0.0, "adjusted": 0.0, "there": SOME, "elsewhere": SOME}
    fields |= {"baseline_there": SOME, "baseline_elsewhere": SOME}
    return FailureFinding(**fields | changes)


@pytest.mark.parametrize("row", TABLE, ids=lambda row: f"{row[0][0]}-{row[1][0]}")
def test_every_row_can_be_reached(row):
    kinds, features, text = row
    kind = "whatever" if kinds == (ANY,) else kinds[0]
    for feature in features:
        name = "something else" if feature == ANY else feature
        found = [] if feature == NOTHING else [finding(name)]
        told = remedies_for([symptom(kind)], found)
        assert told[0].text == text, (kind, feature)


def test_the_docstring_names_every_kind_and_place():
    words = re.sub(r"[^a-z]+", " ", (remedies.__doc__ or "").lower())
    for kinds, features, _ in TABLE:
        for name in (*kinds, *features):
            if kinds != remedies._SERVER:
                assert name.replace("_", " ").replace("-", " ") in words, name


def test_out_of_memory_on_long_inputs_leads_to_gradient_checkpointing_or_a_shorter_context():
    (told,) = remedies_for([symptom("out_of_memory")], [finding("prompt length")])
    assert "gradient checkpointing" in told.text
    assert "shorter context" in told.text
    assert told.because == "what went wrong: out_of_memory; prompt length v."


def test_what_is_shared_or_explained_by_another_leads_to_nothing():
    others = [finding("tool", shared=True), finding("agent", goes_with="prompt length v")]
    told = remedies_for([symptom("slow")], [finding("prompt length"), *others])
    assert len(told) == 1


def test_a_kind_that_few_failures_have_is_not_what_went_wrong():
    told = remedies_for(
        [symptom("slow", 0.6), symptom("out_of_memory", 0.1)], [finding("prompt length")]
    )
    assert "timeout" in told[0].text


def test_no_more_than_three_are_told():
    places = ("tool", "domain", "agent", "user", "time")
    assert len(remedies_for([], [finding(each) for each in places])) == 3
