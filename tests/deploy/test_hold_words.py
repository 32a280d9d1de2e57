"""What is said of a hold is true: the operator's share, not the step's; one is passed over, two are."""

from datetime import UTC, datetime

import pytest

from upswing.deploy.arrival import Contender
from upswing.deploy.canary import Hold, SetWeight, next_action
from upswing.deploy.events import Begin, Decided, Pause, Resume
from upswing.deploy.health import Health, HealthVerdict
from upswing.deploy.journal import Queue, turn_of
from upswing.deploy.ramp import ramp
from upswing.deploy.rollout import plan_rollout, step
from upswing.deploy.strategy import Gradual

NOW = datetime(2026, 1, 5, 12, tzinfo=UTC)
WELL = HealthVerdict(Health.HEALTHY, "All is well.", 0)
STEPS = ramp()


def at_step(number):
    """A rollout that ramps, at this step."""
    rollout = plan_rollout("r-1", "v7", "v6", "val-1", Gradual(STEPS[0].share, "A canary."), NOW)
    rollout = step(rollout, Begin(), NOW)
    for following in range(1, number + 1):
        up = SetWeight(following, rollout.canary.steps[following].share, "Up.")
        rollout = step(rollout, Decided(up), NOW)
    return rollout


@pytest.mark.parametrize("number", range(len(STEPS)))
@pytest.mark.parametrize("percent", [None, 0, 1, 5, 12.5, 50, 99])
def test_a_hold_names_the_share_that_there_is(number, percent):
    begun = at_step(number)
    share = None if percent is None else percent / 100
    held = step(begun, Pause("ann", share), NOW)
    shown = f"{held.share * 100:g} %"
    assert held.sentence == f"ann holds it at {shown}."
    looked = next_action(held.canary, WELL, NOW)
    assert looked == Hold(f"An operator holds it at {shown}.")
    assert step(held, Decided(looked), NOW).sentence == looked.sentence
    again = step(held, Pause("bob", 0.3), NOW)
    assert next_action(again.canary, WELL, NOW) == Hold("An operator holds it at 30 %.")
    going = step(again, Resume("ann"), NOW)
    assert (going.canary.held, going.share) == (None, going.canary.now.share)


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
    waiting = tuple(Contender(f"v{each}", each) for each in versions)
    assert turn_of(Queue(waiting)).sentence == sentence
