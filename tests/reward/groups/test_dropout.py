"""Dropout: never more than 30 %, the same for the same seed, and every group stays a group."""

from hypothesis import given
from hypothesis import strategies as st

from upswing.dataset.dropout import apply_dropout, dropout_rate

groups = st.dictionaries(
    st.text("abcdef", min_size=1, max_size=3), st.integers(0, 30), max_size=12
).map(lambda sizes: {k: [f"{k}-{i}" for i in range(n)] for k, n in sizes.items()})
wanted = st.integers(0, 200)
seeds = st.integers(0, 5)


def test_five_thousand_when_a_thousand_are_wanted_become_3500():
    kept = apply_dropout({w: [f"{w}-{n}" for n in range(10)] for w in range(500)}, 1000, seed=1)
    assert kept.rate == 0.3
    assert sum(map(len, kept.groups.values())) == 3500
    assert kept.dropped == 1500


def test_a_small_surplus_is_dropped_and_no_more():
    kept = apply_dropout({w: [f"{w}-{n}" for n in range(10)] for w in range(100)}, 900, seed=1)
    assert kept.dropped == 100
    assert float(dropout_rate(1000, 900)) == 0.1


def test_enough_is_not_too_much():
    kept = apply_dropout({"w": list("abcdefgh")}, 8, seed=1)
    assert kept.dropped == 0
    assert kept.sentence == "All 8 trajectories are used; 8 are wanted."


def test_scores_stay_with_their_trajectories():
    scored = {"w": [(f"t{n}", n / 20) for n in range(20)]}
    kept = apply_dropout(scored, 5, seed=3, key=lambda pair: pair[0]).groups["w"]
    assert len(kept) == 14
    assert set(kept) <= set(scored["w"])


def test_another_seed_drops_others():
    given_groups = {"w": [str(n) for n in range(30)]}
    assert len({apply_dropout(given_groups, 1, seed=s).groups["w"] for s in range(10)}) > 5


@given(groups, wanted, seeds)
def test_never_more_than_thirty_percent_goes(given_groups, count, seed):
    kept = apply_dropout(given_groups, count, seed)
    for name, members in given_groups.items():
        assert len(members) - len(kept.groups[name]) <= 0.3 * len(members)


@given(groups, wanted, seeds)
def test_no_more_goes_than_is_too_much(given_groups, count, seed):
    have = sum(map(len, given_groups.values()))
    kept = apply_dropout(given_groups, count, seed)
    assert kept.dropped <= max(0, have - count)


@given(groups, wanted, seeds, st.integers(0, 8))
def test_a_group_keeps_its_minimum(given_groups, count, seed, minimum):
    kept = apply_dropout(given_groups, count, seed, minimum=minimum)
    for name, members in given_groups.items():
        assert len(kept.groups[name]) >= min(len(members), minimum)


@given(groups, wanted, seeds)
def test_nothing_is_doubled_mixed_or_reordered(given_groups, count, seed):
    kept = apply_dropout(given_groups, count, seed)
    assert kept.groups.keys() == given_groups.keys()
    for name, members in given_groups.items():
        assert list(kept.groups[name]) == [m for m in members if m in kept.groups[name]]


@given(groups, wanted, seeds, st.randoms())
def test_the_same_seed_keeps_the_same_ones_in_whatever_order_they_come(
    groups_, count, seed, chance
):
    shuffled = list(groups_.items())
    chance.shuffle(shuffled)
    moved = {name: chance.sample(members, len(members)) for name, members in shuffled}
    once, again = (
        apply_dropout(groups_, count, seed).groups,
        apply_dropout(moved, count, seed).groups,
    )
    assert {k: set(v) for k, v in once.items()} == {k: set(v) for k, v in again.items()}
