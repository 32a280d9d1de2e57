"""The whole loop turns once, at a small size: record, train, validate, canary, promote, roll back."""

import logging

import pytest
from tests.support import rows

from upswing.demo.plan import DemoPlan, DemoSizes, settings_text
from upswing.demo.runner import Demo

pytestmark = [pytest.mark.live, pytest.mark.learn, pytest.mark.slow]
SIZES = DemoSizes(threshold=600, agents=8, held_out=40, at_once=8, round=3, stage_seconds=900.0)
VALIDATION = """
[validate]
suites = ["world:desk", "safety"]
samples = [4, 8]
tasks = 100
"""


class ShortPlan(DemoPlan, frozen=True):
    """The demo's plan with less of everything."""

    @property
    def sizes(self):
        return SIZES


@pytest.fixture
def _own_log():
    """The demo logs to a file of its own; nobody else does afterwards."""
    root = logging.getLogger()
    before, level = root.handlers[:], root.level
    yield
    root.handlers[:] = before
    root.setLevel(level)


@pytest.mark.usefixtures("_own_log")
async def test_the_loop_turns_once_and_a_worthless_model_is_rolled_back(data, bases):
    data.mkdir(mode=0o700)
    (data / "bases").symlink_to(bases)
    plan = ShortPlan(seed=11)
    (data / "upswing.toml").write_text(settings_text(plan) + VALIDATION)
    views, ended = [], []
    summary = await Demo(data, plan, cycles=1).run(
        views.append, lambda info, result: ended.append(result)
    )
    assert ended == [summary]
    assert ("completed", "threshold_reached") in rows(data, "SELECT state, reason FROM jobs")
    states = dict(rows(data, "SELECT model_id, state FROM models"))
    # A model whose improvement may be chance waits for a word, and the next one takes its place.
    assert {"deployed", "rolled_back"} <= set(states.values()), states
    verdicts = {word for (word,) in rows(data, "SELECT word FROM validations")}
    assert {"pass", "fail"} <= verdicts
    kinds = {kind for (kind,) in rows(data, "SELECT kind FROM decisions WHERE stage = 'deploy'")}
    assert {"canary", "begin", "set_weight", "promote", "abort", "roll_back"} <= kinds
    assert summary.rolled_back == ("sabotage-1",)
    assert summary.heldout_after > summary.heldout_before
