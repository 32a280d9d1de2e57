"""Has a model fallen, or are others at work? Models that stay what they are, among people who come and go."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from upswing.principals import Voice
from upswing.reward.core.decline import reward_drop
from upswing.reward.core.influence import fair_mean

TRIALS = 100
rewards = st.lists(
    st.tuples(
        st.sampled_from(["a", "b", "c", Voice("d", "key"), Voice("e", "other")]), st.floats(0, 1)
    ),
    max_size=30,
)


def lives(seed, users, scatter, before, drop=0.0):
    """Rewards of 0 and 1 before a promotion and after it; other users are busy then."""
    chance = random.Random(seed)
    skill = {f"user-{n}": min(0.98, max(0.02, chance.gauss(0.55, scatter))) for n in range(users)}

    def days(count, less):
        busy = [chance.paretovariate(1.0) for _ in skill]
        who = chance.choices(list(skill), busy, k=count)
        return [(name, float(chance.random() < skill[name] - less)) for name in who]

    return days(before, 0.0), days(500, drop)


def fallen(recent, before):
    found = reward_drop(recent, before)
    return found.baseline - found.mean >= max(0.10, 3 * found.error)


CROWDS = [
    (1, 0.0, 25),
    (20, 0.2, 50),
    (20, 0.3, 200),
    (5, 0.3, 100),
    (200, 0.3, 100),
    (2000, 0.3, 200),
]


@pytest.mark.parametrize(("users", "scatter", "count"), CROWDS)
def test_a_model_that_stays_what_it_is_hardly_ever_falls_whoever_is_busy(users, scatter, count):
    found = 0
    for seed in range(TRIALS):
        before, after = lives(seed, users, scatter, count)
        found += any(fallen(after[:end], before) for end in (100, 200, 350, 500))
    assert found <= TRIALS * 0.03


@pytest.mark.parametrize(
    ("users", "scatter", "count", "share"),
    [(1, 0.0, 200, 0.95), (20, 0.2, 500, 0.5), (5, 0.3, 200, 0.7)],
)
def test_a_model_that_falls_by_three_tenths_is_found(users, scatter, count, share):
    found = [fallen(*reversed(lives(seed, users, scatter, count, 0.3))) for seed in range(TRIALS)]
    assert sum(found) >= TRIALS * share


@given(rewards, rewards)
def test_who_is_compared_with_whom_has_no_direction(one, other):
    there, back = reward_drop(one, other), reward_drop(other, one)
    assert (there is None) == (back is None) == (not one or not other)
    if there is not None and {w for w, _ in one} == {w for w, _ in other}:
        assert there.mean == pytest.approx(back.baseline)
        assert there.error == pytest.approx(back.error)


@given(rewards.filter(bool))
def test_the_same_rewards_are_no_fall(told):
    found = reward_drop(told, told)
    assert found.mean == pytest.approx(found.baseline)
    assert found.error >= 0


def test_one_voice_moves_no_more_than_its_share():
    crowd = [(f"user-{n}", 0.8) for n in range(30)]
    troll = [("troll", 0.0)] * 1000
    found = reward_drop([*crowd, *troll], [*crowd, ("troll", 0.8)])
    assert found.baseline - found.mean < 0.05
    assert fair_mean([*crowd, *troll]) > 0.75
