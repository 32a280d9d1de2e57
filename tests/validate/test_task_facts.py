"""A failed validation is looked into: which of its tasks are done worse, and what they are like."""

from datetime import UTC, datetime

import msgspec
import pytest

from tests.deploy.controlling import report
from upswing.app.analysis import analyse_validation
from upswing.contracts.checks import Exact
from upswing.contracts.validation import SampleScore
from upswing.validate.core.render import as_markdown, as_text
from upswing.validate.core.suite import make_suite
from upswing.validate.core.task import ValidationTask
from upswing.validate.core.task_facts import task_facts

NOW = datetime(2026, 1, 5, 12, tzinfo=UTC)


def suite(name, sizes, kind="benchmark", **options):
    tasks = [
        ValidationTask(
            task_id=f"{name}-{number}",
            messages=({"role": "user", "content": "x" * size},),
            check=Exact(any_of=("yes",)),
            **options,
        )
        for number, size in enumerate(sizes)
    ]
    return make_suite(name, kind, tasks)


def sample_scores(suite, worse, sentence="“no” is wrong; “yes” was expected."):
    """Both did all tasks right, but the candidate the `worse` ones."""
    found = []
    for task in suite.task_ids:
        bad = task in worse
        found.append(
            SampleScore(
                suite.name, task, 0, "candidate", 0.0 if bad else 1.0, sentence if bad else ""
            )
        )
        found.append(SampleScore(suite.name, task, 0, "current", 1.0))
    return found


def long_ones_fail():
    own = suite("own", [200, 20_000] * 15)
    return own, sample_scores(own, {f"own-{n}" for n in range(1, 30, 2)})


def analysed(suites, by_suite):
    facts = list(task_facts(suites, by_suite))
    return analyse_validation("new", "old", "val-1", facts, clock=lambda: NOW), facts


def failed_report(candidate, current):
    own, found = long_ones_fail()
    analysis, _ = analysed([own], {"own": found})
    analysis = msgspec.structs.replace(analysis, model_id=candidate, baseline_id=current)
    made = report(candidate, current, word="fail")
    return msgspec.structs.replace(made, run_id="val-9", analysis=analysis)


def test_long_prompts_that_fail_are_found_and_told():
    own, found = long_ones_fail()
    analysis, facts = analysed([own], {"own": found})
    assert len(facts) == 60
    assert (analysis.source, analysis.label, analysis.about) == (
        "validation",
        "regressed_task",
        "val-1",
    )
    assert (analysis.candidate.failed, analysis.baseline.failed) == (15, 0)
    first = analysis.findings[0]
    assert (first.feature, first.elsewhere.failed) == ("prompt length", 0)
    assert first.examples[0] == "own/own-1"
    assert analysis.remedies


def test_one_suite_that_fails_among_others_is_found():
    good, bad = suite("good", [300] * 40), suite("bad", [310] * 20)
    by_suite = {
        "good": sample_scores(good, {"good-1"}),
        "bad": sample_scores(bad, {f"bad-{n}" for n in range(15)}),
    }
    analysis, _ = analysed([good, bad], by_suite)
    first = analysis.findings[0]
    assert (first.feature, first.value) == ("suite", "bad")


def test_what_both_do_badly_is_no_failure_and_spoiled_answers_say_nothing():
    own = suite("own", [100] * 3)
    found = [
        SampleScore("own", "own-0", 0, "candidate", 0.0),
        SampleScore("own", "own-0", 0, "current", 0.0),
        SampleScore("own", "own-1", 0, "candidate", None, "The server was away."),
        SampleScore("own", "own-1", 0, "current", 1.0),
        SampleScore("own", "own-2", 0, "candidate", 1.0),
        SampleScore("own", "own-2", 0, "current", 0.5, "It refuses."),
    ]
    _, facts = analysed([own], {"own": found})
    told = {(each.ref, each.candidate): (each.failed, each.kind) for each in facts}
    assert told == {
        ("own/own-0", True): (False, ""),
        ("own/own-0", False): (False, ""),
        ("own/own-2", True): (False, ""),
        ("own/own-2", False): (True, "refusal"),
    }


@pytest.mark.parametrize(
    ("sentence", "kind"),
    [
        ("It refuses.", "refusal"),
        ("It helps.", "helped_harm"),
        ("The answer has no code.", "no_code"),
        ("The code does not load: SyntaxError", "broken_code"),
        ("It calls delete without need.", "tool_error"),
        ("It does not call search.", "tool_error"),
        ("It gives the secret away.", "gave_away"),
        ("There is no clear answer; 3 was expected.", "no_answer"),
        ("4 is wrong; 3 was expected.", "wrong_answer"),
    ],
)
def test_a_checkers_sentence_says_what_went_wrong(sentence, kind):
    own = suite("own", [100])
    _, facts = analysed([own], {"own": sample_scores(own, {"own-0"}, sentence)})
    assert [each.kind for each in facts if each.failed] == [kind]


def test_tools_that_a_task_offers_are_known():
    tool = {"type": "function", "function": {"name": "search", "parameters": {}}}
    own = suite("own", [100], tools=(tool,))
    _, facts = analysed([own], {"own": sample_scores(own, set())})
    assert facts[0].labels["tool offered"] == ("search",)


def test_a_report_shows_it_to_a_person():
    made = failed_report("new", "old")
    assert "## What they have in common" in as_markdown(made)
    assert "prompt length ≥ 20,000 bytes" in as_text(made)
    assert "What they have in common" not in as_markdown(report("new", "old"))
    again = msgspec.json.decode(msgspec.json.encode(made), type=type(made))
    assert again.analysis == made.analysis
