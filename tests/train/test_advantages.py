"""What a trajectory is compared with, and what is left out."""

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from upswing.train.learn.advantages import compute_advantages, turn_credit

UNTIMED = settings(deadline=None)

ALGORITHMS = ["grpo", "rloo", "reinforce"]
SCALES = ["group", "batch", "none"]

rewards = st.floats(0, 1)
batches = st.lists(st.tuples(rewards, st.sampled_from("abc")), min_size=1, max_size=20)
algorithms, scales = st.sampled_from(ALGORITHMS), st.sampled_from(SCALES)


def of(batch, algorithm="grpo", scale="none", min_spread=0.02, domains=None):
    return compute_advantages(
        [reward for reward, _ in batch],
        [group for _, group in batch],
        algorithm=algorithm,
        scale=scale,
        min_spread=min_spread,
        domains=domains,
    )


def two_groups(*more):
    return [(1.0, "a"), (0.0, "a"), (0.5, "a"), (0.5, "b"), (0.5, "b"), *more]


def test_grpo_compares_with_the_group_and_leaves_flat_groups_out():
    found = of(two_groups())
    assert found.values == (0.5, -0.5, 0.0, 0.0, 0.0)
    assert found.kept == (True, True, True, False, False)
    assert found.flat_groups == 1


def test_rloo_compares_with_the_others():
    assert of(two_groups(), "rloo").values == (0.75, -0.75, 0.0, 0.0, 0.0)


SINGLES = [(0.8, "s1"), (0.2, "s2"), (0.2, "s3"), (0.1, "s4"), (0.3, "s5"), (0.9, "s6")]
DOMAINS = [*["group"] * 5, "easy", "easy", "easy", "hard", "hard", "lonely"]


def test_reinforce_compares_single_attempts_with_the_others_of_their_domain():
    """easy: 0.8 − (0.2 + 0.2)/2, 0.2 − (0.8 + 0.2)/2 twice; hard: ±0.2; of `lonely` there is one."""
    found = of(two_groups(*SINGLES), "reinforce", domains=DOMAINS)
    assert found.values[:5] == (0.5, -0.5, 0.0, 0.0, 0.0)
    assert found.values[5:] == pytest.approx((0.6, -0.3, -0.3, -0.2, 0.2, 0.0))
    assert found.kept == (True, True, True, False, False, True, True, True, True, True, False)
    assert found.flat_groups == 2
    for algorithm in ("grpo", "rloo"):
        assert not any(of(two_groups(*SINGLES), algorithm, domains=DOMAINS).kept[5:])


def test_a_single_attempt_is_scaled_by_its_domain():
    found = of(two_groups(*SINGLES), "reinforce", "group", domains=DOMAINS)
    assert found.values[5] == pytest.approx(0.6 / (0.12**0.5 + 1e-4))
    assert found.values[9] == pytest.approx(0.2 / (0.02**0.5 + 1e-4))


singles = st.lists(st.tuples(rewards, st.sampled_from(["easy", "hard"])), min_size=1, max_size=20)


@UNTIMED
@given(batch=singles, scale=scales, chance=st.randoms())
def test_single_attempts_sum_to_zero_by_domain_in_whatever_order(batch, scale, chance):
    numbered = [(reward, f"g{n}") for n, (reward, _) in enumerate(batch)]
    domains = [domain for _, domain in batch]
    found = of(numbered, "reinforce", scale, domains=domains)
    for kind in ("easy", "hard"):
        mine = [v for v, domain in zip(found.values, domains, strict=True) if domain == kind]
        assert sum(mine) == pytest.approx(0, abs=1e-6)
    order = list(range(len(batch)))
    chance.shuffle(order)
    mixed = of(
        [numbered[i] for i in order], "reinforce", scale, domains=[domains[i] for i in order]
    )
    assert mixed.values == pytest.approx(tuple(found.values[i] for i in order), abs=1e-9)
    assert mixed.flat_groups == found.flat_groups


@pytest.mark.parametrize(
    ("scale", "by"), [("none", 1.0), ("group", 0.5 + 1e-4), ("batch", 0.125**0.5 + 1e-4)]
)
def test_the_scale_is_a_standard_deviation(scale, by):
    assert of(two_groups(), scale=scale).values[0] == pytest.approx(0.5 / by)


@pytest.mark.parametrize("algorithm", ALGORITHMS)
@pytest.mark.parametrize("scale", SCALES)
def test_a_single_trajectory_has_nothing_to_be_compared_with(algorithm, scale):
    found = of([(1.0, "a")], algorithm, scale)
    assert (found.values, found.kept, found.flat_groups) == ((0.0,), (False,), 1)


@UNTIMED
@given(batch=batches, algorithm=algorithms, scale=scales)
def test_advantages_sum_to_zero_within_a_group(batch, algorithm, scale):
    found = of(batch, algorithm, scale)
    for group in "abc":
        members = [i for i, (_, name) in enumerate(batch) if name == group]
        if len(members) > 1:
            assert sum(found.values[i] for i in members) == pytest.approx(0, abs=1e-6)


@UNTIMED
@given(batch=batches, algorithm=algorithms, scale=scales, chance=st.randoms())
def test_the_order_of_the_batch_changes_nothing(batch, algorithm, scale, chance):
    order = list(range(len(batch)))
    chance.shuffle(order)
    straight, mixed = of(batch, algorithm, scale), of([batch[i] for i in order], algorithm, scale)
    assert mixed.values == pytest.approx(tuple(straight.values[i] for i in order), abs=1e-12)
    assert mixed.kept == tuple(straight.kept[i] for i in order)
    assert mixed.flat_groups == straight.flat_groups


@UNTIMED
@given(batch=batches, algorithm=algorithms, scale=scales)
def test_the_better_of_a_group_never_gets_less(batch, algorithm, scale):
    found = of(batch, algorithm, scale)
    for i, (reward, group) in enumerate(batch):
        for j, (other, name) in enumerate(batch):
            if group == name and reward >= other:
                assert found.values[i] >= found.values[j]


@pytest.mark.parametrize("wrong", [math.nan, math.inf, -math.inf])
@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_a_reward_that_is_no_number_is_refused(wrong, algorithm):
    with pytest.raises(ValueError, match=r"not finite numbers, at \[1\]"):
        of([(0.0, "a"), (wrong, "a")], algorithm)


def test_every_trajectory_has_a_group():
    with pytest.raises(ValueError, match="2 trajectories were given and 1 groups"):
        compute_advantages([0.0, 1.0], ["a"], algorithm="grpo", scale="none", min_spread=0.0)


# --- credit by turn ---------------------------------------------------------------------------


def credit(outcomes, turn_rewards, groups=None, *, turns=None, gamma=1.0, **more):
    knobs = {"algorithm": "grpo", "scale": "none", "min_spread": 0.02} | more
    turns = turns or [len(each) for each in turn_rewards]
    groups = groups or ["a"] * len(outcomes)
    return turn_credit(outcomes, turn_rewards, turns, groups, gamma=gamma, **knobs)


def test_a_turn_is_credited_with_what_came_after_it():
    """Ahead with gamma ½: (0.4 + ½·0.2 + ¼·1, …) = (0.75, 0.7, 1) against (0, 0, 0)."""
    outcomes, rewards = [1.0, 0.0], [(0.4, 0.2, 0.0), (0.0, 0.0, 0.0)]
    found = credit(outcomes, rewards, gamma=0.5)
    assert found.values[0] == pytest.approx((0.375, 0.35, 0.5))
    assert found.values[1] == pytest.approx((-0.375, -0.35, -0.5))


def test_a_turn_that_only_one_reached_takes_the_trajectorys_advantage():
    found = credit([1.0, 0.0], [(0.0,), (0.0, 0.0, 0.0)])
    assert found.values == ((0.5,), (-0.5, -0.5, -0.5))


def test_turns_can_differ_where_outcomes_do_not():
    found = credit([1.0, 1.0], [(0.5, 0.0), (0.0, 0.5)])
    assert found.kept == (True, True)
    assert found.flat_groups == 0
    flat = credit([1.0, 1.0], [(0.5, 0.5), (0.5, 0.5)])
    assert (flat.values, flat.kept, flat.flat_groups) == (((0.0, 0.0),) * 2, (False, False), 1)


def test_a_group_with_a_member_without_turn_rewards_keeps_credit_by_trajectory():
    found = credit(
        [1.0, 0.0, 1.0, 0.0],
        [(9.0, 0.0), None, (0.1, 0.1), (0.0, 0.0)],
        list("aabb"),
        turns=[2, 3, 2, 2],
    )
    assert found.values[:2] == ((0.5, 0.5), (-0.5, -0.5, -0.5))
    assert found.values[2] == pytest.approx((0.6, 0.55))


@UNTIMED
@given(batch=batches, algorithm=algorithms, scale=scales, turns=st.integers(1, 4))
def test_without_rewarded_turns_credit_by_turn_is_credit_by_trajectory(
    batch, algorithm, scale, turns
):
    plain = of(batch, algorithm, scale)
    outcomes, groups = [reward for reward, _ in batch], [group for _, group in batch]
    for told in (None, (0.0,) * turns):
        found = credit(
            outcomes,
            [told] * len(batch),
            groups,
            turns=[turns] * len(batch),
            algorithm=algorithm,
            scale=scale,
        )
        assert found.kept == plain.kept
        assert found.flat_groups == plain.flat_groups
        for row, value in zip(found.values, plain.values, strict=True):
            assert row == pytest.approx((value,) * turns, abs=1e-9)


def test_a_turns_reward_that_is_no_number_is_refused():
    with pytest.raises(ValueError, match=r"not finite numbers, at \[0\]"):
        credit([1.0, 0.0], [(math.nan, 0.0), (0.0, 0.0)])
