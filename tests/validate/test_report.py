"""How a report reads."""

from datetime import UTC, datetime, timedelta

import msgspec
import pytest

from upswing.contracts.validation import SIDES, SampleScore, ValidationReport
from upswing.validate.core.render import as_markdown, as_text
from upswing.validate.core.report import PlannedSuite, RunMetadata, ValidationRun, build_report
from upswing.validate.core.verdict import ValidationPolicy

START = datetime(2025, 3, 1, tzinfo=UTC)
HOW = RunMetadata(START, START + timedelta(seconds=90), None, ("Code ran behind fences.",))
SUITES = [PlannedSuite("tool_usage", "benchmark", 20), PlannedSuite("safety_bias", "safety", 20)]
NASTY = "It says “<script>alert(1)</script> | `x` [y](z)\n# big”."


def sample_scores(lost=0, spoiled=0):
    made = []
    for suite in SUITES:
        for place in range(suite.tasks):
            for side in SIDES:
                score, said = 1.0, "Right."
                if suite.kind == "benchmark" and side == "candidate" and place < lost:
                    score, said = 0.0, NASTY
                if suite.kind == "benchmark" and side == "candidate" and place >= 20 - spoiled:
                    score, said = None, "The backend is away."
                made.append(SampleScore(suite.name, f"t{place:02d}", 0, side, score, said))
    return made


def made(**changes):
    return build_report(
        ValidationRun("r", "agent-v2", "agent-v1"),
        SUITES,
        sample_scores(**changes),
        ValidationPolicy(),
        HOW,
    )


def test_the_text_is_one_table_with_its_verdict():
    text = as_text(made())
    assert text.startswith("agent-v2 passes against agent-v1\n")
    lines = [line for line in text.splitlines() if line.startswith(("suite", "tool_usage"))]
    assert lines == [
        "suite         candidate  current  difference              95 %  compared  verdict",
        "tool_usage *      1.000    1.000      +0.000  [−0.136, +0.136]     20/20  pass",
    ]
    assert "judge: none, rules alone" in text
    assert "Took 90 s with 1 seed a task" in text


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"lost": 3}, "agent-v2 fails against agent-v1"),
        ({"spoiled": 5}, "agent-v2 is undecided against agent-v1"),
    ],
)
def test_the_title_says_the_verdict(changes, words):
    assert as_text(made(**changes)).splitlines()[0] == words
    assert as_markdown(made(**changes)).splitlines()[0] == f"# {words}"


def test_what_got_worse_is_listed_with_the_reason():
    text = as_text(made(lost=2))
    assert "Worse than before:" in text
    assert "tool_usage t00: It says" in text


def test_what_a_model_said_cannot_become_part_of_a_page():
    page = as_markdown(made(lost=1))
    assert "<script>" not in page.replace("\\<script\\>", "")
    (row,) = [line for line in page.splitlines() if "t00" in line]
    assert row.replace("\\|", "").count("|") == 5
    assert "\n# big" not in page


def test_a_report_survives_its_journey_as_json():
    one = made(lost=2, spoiled=1)
    assert msgspec.json.decode(msgspec.json.encode(one), type=ValidationReport) == one


def test_the_same_cells_in_another_order_make_the_same_report():
    one, other = sample_scores(lost=2), sample_scores(lost=2)[::-1]
    run = ValidationRun("r", "a", "b")
    assert build_report(run, SUITES, one, ValidationPolicy(), HOW) == build_report(
        run, SUITES, other, ValidationPolicy(), HOW
    )


def test_a_report_without_a_single_result_can_be_shown():
    empty = build_report(ValidationRun("r", "a", "b"), SUITES, [], ValidationPolicy(), HOW)
    assert empty.verdict == "inconclusive"
    assert "–" in as_text(empty)
    assert "0/20" in as_markdown(empty)
