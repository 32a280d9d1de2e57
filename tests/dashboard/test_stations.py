"""The stations of the loop as the overview says them."""

from datetime import UTC, datetime

import pytest

from upswing.dashboard.answers import ApiDecision, ApiOverview, ApiReadiness
from upswing.dashboard.core.stations import stations_of, trigger_words
from upswing.dashboard.core.text import page_markdown

NOW = datetime(2026, 1, 1, tzinfo=UTC)
WAITS = "77 of 200 new trajectories."


def seen(*, ready, job_id=None):
    decision = ApiDecision("d", NOW, "trigger", "data", WAITS, None, job_id)
    reason = "Ready to train!" if ready else "Only 3 of 32 groups."
    return ApiOverview(readiness=ApiReadiness(ready=ready, reason=reason), decisions=[decision])


def test_the_trigger_is_ready_only_where_its_newest_decision_says_so():
    ready, sentence = trigger_words(seen(ready=True))
    assert not ready
    assert sentence.startswith(WAITS)
    assert "Ready" not in sentence
    assert trigger_words(seen(ready=True, job_id="job-1")) == (True, "Ready to train!")
    assert trigger_words(seen(ready=False)) == (False, "Only 3 of 32 groups.")


@pytest.mark.parametrize(("number", "job", "model"), [(1, "job", "model"), (2, "jobs", "models")])
def test_what_is_counted_agrees_with_its_number(number, job, model):
    shown = stations_of(ApiOverview(), {"jobs": number, "models": number})
    assert shown["train"].sentence == f"{job} so far"
    assert shown["validate"].sentence == f"{model} trained"


def test_a_card_is_shown_without_what_only_a_file_can_show():
    text = "# M\n![Reward](curves.svg)\n\n<details><summary>The whole recipe</summary>\n\nx\n\n</details>\n"
    shown = page_markdown(text)
    assert "<" not in shown
    assert "![" not in shown
    assert "**The whole recipe**" in shown
