"""Who answers an episode? The laws of routing, as properties."""

import math

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from upswing.errors import Misuse, Rejected
from upswing.gateway.allowance import Allowance, allowed, read_allowance
from upswing.gateway.plan import Candidate, Model, Plan, check_plan, read_plan, write_plan
from upswing.gateway.route import bucket, choose, retire, shares, stay, table_of

EPISODES = [f"episode-{number}" for number in range(10_000)]
"""A fixed set: a share is exact when it is met on these."""
ALL = Allowance()
BASE = Model("base", "http://127.0.0.1:1", "base")


def some(name):
    return Model(name, "http://127.0.0.1:1", name)


def plan_with(*parts, salt="rollout-7", baseline=BASE):
    candidates = tuple(Candidate(some(name), share) for name, share in parts)
    return Plan(1, "r", salt, baseline, candidates, trained=False)


def counted(plan, allowance=ALL):
    table = table_of(plan, allowance)
    counts = {}
    for episode in EPISODES:
        name = choose(table, bucket(plan.salt, episode)).model.model_id
        counts[name] = counts.get(name, 0) + 1
    return counts


def placed(plan, episodes=EPISODES[:500], allowance=ALL):
    table = table_of(plan, allowance)
    return {
        episode: choose(table, bucket(plan.salt, episode)).model.model_id for episode in episodes
    }


@pytest.mark.parametrize("share", [0.0, 0.05, 0.1, 0.25, 0.5, 0.75, 1.0])
def test_a_share_is_met_within_one_percent(share):
    assert counted(plan_with(("new", share))).get("new", 0) == pytest.approx(
        10_000 * share, abs=100
    )


@pytest.mark.parametrize("parts", [(0.5, 0.5), (0.3, 0.3), (0.2, 0.3, 0.5), (0.1, 0.1, 0.1, 0.1)])
def test_models_side_by_side_get_their_shares(parts):
    plan = plan_with(*((f"m{n}", share) for n, share in enumerate(parts)))
    counts = counted(plan)
    for number, share in enumerate(parts):
        assert counts[f"m{number}"] == pytest.approx(10_000 * share, abs=100)
    left = 1 - math.fsum(parts)
    assert counts.get("base", 0) == pytest.approx(10_000 * left, abs=100)


@given(st.floats(0, 1), st.floats(0, 1), st.text(min_size=1, max_size=20))
def test_raising_a_share_moves_episodes_toward_the_candidate_and_nowhere_else(one, other, salt):
    low, high = sorted((one, other))
    before = placed(plan_with(("new", low), salt=salt))
    after = placed(plan_with(("new", high), salt=salt))
    moved = {(before[e], after[e]) for e in before if before[e] != after[e]}
    assert moved <= {("base", "new")}


@given(st.floats(0, 0.5), st.floats(0, 0.5), st.floats(0, 0.5))
def test_raising_the_first_of_two_takes_nothing_from_the_other(one, other, fixed):
    low, high = sorted((one, other))
    before = placed(plan_with(("new", low), ("rival", fixed)))
    after = placed(plan_with(("new", high), ("rival", fixed)))
    moved = {(before[e], after[e]) for e in before if before[e] != after[e]}
    assert moved <= {("base", "new")}


@given(st.text(min_size=1), st.text())
def test_a_bucket_lies_in_the_unit_interval_and_does_not_move(salt, episode):
    try:
        place = bucket(salt, episode)
    except UnicodeEncodeError:  # half a surrogate pair is no text
        return
    assert 0 <= place < 1
    assert bucket(salt, episode) == place


def test_another_rollout_draws_anew():
    first = placed(plan_with(("new", 0.5), salt="a"))
    second = placed(plan_with(("new", 0.5), salt="b"))
    same = sum(first[e] == second[e] for e in first)
    assert 200 < same < 300


@given(
    st.lists(st.floats(0, 0.25), min_size=1, max_size=4), st.floats(0, 1), st.booleans(),
    st.booleans(),
)  # fmt: skip
def test_what_is_allowed_is_never_more_than_the_plan_or_the_cap(parts, most, enabled, leased):
    plan = plan_with(*((f"m{n}", share) for n, share in enumerate(parts)))
    allowance = Allowance(enabled=enabled, most=most)
    table = table_of(plan, allowance, leased=leased)
    told = shares(table)
    assert math.fsum(told.values()) == pytest.approx(1)
    given_away = 1 - told["base"]
    assert given_away <= min(most if enabled and leased else 0, math.fsum(parts)) + 1e-9
    if not enabled or not leased:
        assert choose(table, 0.0).model is BASE


def test_a_cap_keeps_the_proportion_of_two():
    plan = plan_with(("m1", 0.6), ("m2", 0.3))
    one, two = allowed(plan, Allowance(most=0.3))
    assert (one.share, two.share) == (pytest.approx(0.2), pytest.approx(0.1))


def test_a_pinned_version_answers_alone():
    plan = plan_with(("agent-zero-rl-v3", 0.2), ("agent-zero-rl-v13", 0.3))
    for version in ("v3", "3", "agent-zero-rl-v3"):
        assert allowed(plan, Allowance(version=version)) == ()
        assert shares(table_of(plan, Allowance(version=version))) == {"agent-zero-rl-v3": 1.0}
    assert shares(table_of(plan, Allowance(version="v9"))) == {"base": 1.0}


@pytest.mark.parametrize(
    ("environment", "production", "wanted"),
    [
        ({}, False, Allowance()),
        ({}, True, Allowance(enabled=False)),
        ({"USE_RL_MODEL": "true"}, True, Allowance()),
        ({"USE_RL_MODEL": "off"}, False, Allowance(enabled=False)),
        ({"RL_ROLLOUT_PERCENTAGE": "10"}, False, Allowance(most=0.1)),
        ({"RL_ROLLOUT_PERCENTAGE": "12.5%"}, False, Allowance(most=0.125)),
        ({"RL_MODEL_VERSION": "v1.2.3"}, False, Allowance(version="v1.2.3")),
        ({"RL_MODEL_VERSION": "latest"}, False, Allowance()),
        ({"RL_FALLBACK_TO_BASE": "false"}, False, Allowance(fallback=False)),
    ],
)
def test_the_environment_is_read(environment, production, wanted):
    assert read_allowance(environment, production=production) == wanted


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("RL_ROLLOUT_PERCENTAGE", "nan"), ("RL_ROLLOUT_PERCENTAGE", "101"),
        ("RL_ROLLOUT_PERCENTAGE", "-1"), ("RL_ROLLOUT_PERCENTAGE", "ten"),
        ("USE_RL_MODEL", "perhaps"), ("RL_FALLBACK_TO_BASE", "2"),
    ],
)  # fmt: skip
def test_a_word_that_cannot_be_understood_is_refused(name, value):
    with pytest.raises(Misuse, match=name):
        read_allowance({name: value})


# --- the life of an episode ----------------------------------------------------------------------


def test_an_episode_stays_with_its_model_while_that_is_in_the_plan():
    plan = plan_with(("new", 0.1))
    table = table_of(plan, Allowance())
    assert stay(table, "new", {}).model.model_id == "new"
    assert stay(table, "base", {}).model is BASE


def test_a_promotion_leaves_episodes_of_the_old_baseline_where_they_are():
    before, after = plan_with(("new", 0.5)), plan_with(baseline=some("new"))
    retired = retire(before, after, {})
    table = table_of(after, Allowance())
    assert stay(table, "base", retired).model is BASE
    assert stay(table, "new", retired).candidate is False


def test_a_rollback_moves_episodes_of_the_candidate():
    before, after = plan_with(("new", 0.5)), plan_with()
    table = table_of(after, Allowance())
    assert stay(table, "new", retire(before, after, {})) is None


def test_a_rollback_after_promotion_moves_episodes_of_the_promoted_model():
    first, promoted, back = plan_with(("new", 0.5)), plan_with(baseline=some("new")), plan_with()
    retired = retire(first, promoted, {})
    retired = retire(promoted, back, retired)
    table = table_of(back, Allowance())
    assert stay(table, "new", retired) is None
    assert stay(table, "base", retired).model.model_id == "base"


# --- plans on the wire ---------------------------------------------------------------------------


def test_a_plan_survives_its_journey():
    plan = plan_with(("new", 0.25))
    assert read_plan(write_plan(plan)) == plan


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"candidates": [{"model": {"model_id": "n", "backend": "http://h", "name": "n"}, "share": 1.5}]}, "<= 1.0"),
        ({"candidates": [{"model": {"model_id": "n", "backend": "http://h", "name": "n"}, "share": -0.1}]}, ">= 0.0"),
        ({"candidates": [{"model": {"model_id": m, "backend": "http://h", "name": "n"}, "share": 0.6} for m in "ab"]}, "sum to 1.2"),
        ({"candidates": [{"model": {"model_id": "base", "backend": "http://h", "name": "n"}, "share": 0.1}]}, "twice"),
        ({"baseline": {"model_id": "a\r\nb", "backend": "http://h", "name": "n"}}, "regex"),
        ({"baseline": {"model_id": "b", "backend": "file:///etc/passwd", "name": "n"}}, "regex"),
        ({"baseline": {"model_id": "b", "backend": "http://user:pw@h", "name": "n"}}, "regex"),
        ({"baseline": {"model_id": "b", "backend": "http://h/\r\nx: y", "name": "n"}}, "regex"),
        ({"baseline": {"model_id": "b", "backend": "http://h", "name": "n", "timeout_seconds": 0}}, "> 0"),
        ({"salt": ""}, "length"),
        ({"lease_until": "tomorrow"}, "RFC3339"),
        ({"lease_until": "2025-01-01T00:00:00"}, "timezone"),
    ],
)  # fmt: skip
def test_a_plan_that_makes_no_sense_is_refused(change, said):
    tree = msgspec.json.decode(write_plan(plan_with())) | change
    with pytest.raises(Rejected, match=said):
        read_plan(msgspec.json.encode(tree))


def test_a_share_that_is_no_number_is_refused():
    raw = write_plan(plan_with(("new", 0.5))).replace(b"0.5", b"NaN")
    with pytest.raises(Rejected):
        read_plan(raw)
    with pytest.raises(Rejected, match="sum"):
        check_plan(plan_with(("new", math.nan)))
