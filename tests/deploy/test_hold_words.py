"""What is said of a hold is true: the operator's share, not the step's; one is passed over, two are."""

from datetime import UTC, datetime

import pytest

from upswing.deploy.core.canary import Hold, SetWeight, next_action
from upswing.deploy.core.events import ActionDecided, BeginRollout, PauseRollout, ResumeRollout
from upswing.deploy.core.health import HealthStatus, HealthVerdict
from upswing.deploy.core.journal import QueueInputs, next_turn
from upswing.deploy.core.queueing import RolloutContender
from upswing.deploy.core.ramp import ramp_steps
from upswing.deploy.core.rollout import apply_event, new_rollout
from upswing.deploy.core.strategy import CanaryStrategy

NOW = datetime(2026, 1, 5, 12, tzinfo=UTC)
WELL = HealthVerdict(HealthStatus.HEALTHY, "All is well.", 0)
STEPS = ramp_steps()


def at_step(number):
    """A rollout that ramps, at this step."""
    rollout = new_rollout(
        "r-1", "v7", "v6", "val-1", CanaryStrategy(STEPS[0].share, "A canary."), NOW
    )
    rollout = apply_event(rollout, BeginRollout(), NOW)
    for following in range(1, number + 1):
        up = SetWeight(following, rollout.canary.steps[following].share, "Up.")
        rollout = apply_event(rollout, ActionDecided(up), NOW)
    return rollout


@pytest.mark.parametrize("number", range(len(STEPS)))
@pytest.mark.parametrize("percent", [None, 0, 1, 5, 12.5, 50, 99])
def test_a_hold_names_the_share_that_there_is(number, percent):
    begun = at_step(number)
    share = None if percent is None else percent / 100
    held = apply_event(begun, PauseRollout("ann", share), NOW)
    shown = f"{held.share * 100:g} %"
    assert held.sentence == f"ann holds it at {shown}."
    looked = next_action(held.canary, WELL, NOW)
    assert looked == Hold(f"An operator holds it at {shown}.")
    assert apply_event(held, ActionDecided(looked), NOW).sentence == looked.sentence
    again = apply_event(held, PauseRollout("bob", 0.3), NOW)
    assert next_action(again.canary, WELL, NOW) == Hold("An operator holds it at 30 %.")
    going = apply_event(again, ResumeRollout("ann"), NOW)
    assert (going.canary.held, going.share) == (None, going.canary.current_step.share)


@pytest.mark.parametrize(
    ("versions", "sentence"),
    [
        ((), "Nobody waits."),
        ((3,), "v3 is next."),
        ((2, 3), "v3 is next; v2 is passed over."),
        ((1, 2, 3), "v3 is next; v1, v2 are passed over."),
        ((1, 2, 3, 4), "v4 is next; v1, v2, v3 are passed over."),
    ],
)
def test_who_is_passed_over(versions, sentence):
    waiting = tuple(RolloutContender(f"v{each}", each) for each in versions)
    assert next_turn(QueueInputs(waiting)).sentence == sentence
