"""Who answers an episode? The laws of routing, as properties."""

import math

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from upswing.contracts.traffic import Candidate, Model, Plan, check_plan, read_plan, write_plan
from upswing.errors import Misuse, Rejected
from upswing.gateway.core.routing import (
    build_routing_table,
    continuing_target,
    draw_target,
    retired_baselines,
    traffic_shares,
    user_bucket,
)
from upswing.gateway.core.serving_policy import (
    ServingPolicy,
    allowed_candidates,
    read_serving_policy,
)

EPISODES = [f"episode-{number}" for number in range(10_000)]
"""A fixed set: a share is exact when it is met on these."""
ALL = ServingPolicy()
BASE = Model("base", "http://127.0.0.1:1", "base")


def some(name):
    return Model(name, "http://127.0.0.1:1", name)


def plan_with(*parts, salt="rollout-7", baseline=BASE):
    candidates = tuple(Candidate(some(name), share) for name, share in parts)
    return Plan(1, "r", salt, baseline, candidates, trained=False)


def counted(plan, policy=ALL):
    table = build_routing_table(plan, policy)
    counts = {}
    for episode in EPISODES:
        name = draw_target(table, user_bucket(plan.salt, episode)).model.model_id
        counts[name] = counts.get(name, 0) + 1
    return counts


def placed(plan, episodes=EPISODES[:500], policy=ALL):
    table = build_routing_table(plan, policy)
    return {
        episode: draw_target(table, user_bucket(plan.salt, episode)).model.model_id
        for episode in episodes
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
        place = user_bucket(salt, episode)
    except UnicodeEncodeError:  # half a surrogate pair is no text
        return
    assert 0 <= place < 1
    assert user_bucket(salt, episode) == place


def test_another_rollout_draws_anew():
    first = placed(plan_with(("new", 0.5), salt="a"))
    second = placed(plan_with(("new", 0.5), salt="b"))
    same = sum(first[e] == second[e] for e in first)
    assert 200 < same < 300


@given(
    st.lists(st.floats(0, 0.25), min_size=1, max_size=4),
    st.floats(0, 1),
    st.booleans(),
    st.booleans(),
)
def test_what_is_allowed_is_never_more_than_the_plan_or_the_cap(parts, most, enabled, leased):
    plan = plan_with(*((f"m{n}", share) for n, share in enumerate(parts)))
    policy = ServingPolicy(enabled=enabled, max_share=most)
    table = build_routing_table(plan, policy, leased=leased)
    told = traffic_shares(table)
    assert math.fsum(told.values()) == pytest.approx(1)
    given_away = 1 - told["base"]
    assert given_away <= min(most if enabled and leased else 0, math.fsum(parts)) + 1e-9
    if not enabled or not leased:
        assert draw_target(table, 0.0).model is BASE


def test_a_cap_keeps_the_proportion_of_two():
    plan = plan_with(("m1", 0.6), ("m2", 0.3))
    one, two = allowed_candidates(plan, ServingPolicy(max_share=0.3))
    assert (one.share, two.share) == (pytest.approx(0.2), pytest.approx(0.1))


def test_a_pinned_version_answers_alone():
    plan = plan_with(("agent-zero-rl-v3", 0.2), ("agent-zero-rl-v13", 0.3))
    for version in ("v3", "3", "agent-zero-rl-v3"):
        assert allowed_candidates(plan, ServingPolicy(pinned_version=version)) == ()
        assert traffic_shares(build_routing_table(plan, ServingPolicy(pinned_version=version))) == {
            "agent-zero-rl-v3": 1.0
        }
    assert traffic_shares(build_routing_table(plan, ServingPolicy(pinned_version="v9"))) == {
        "base": 1.0
    }


@pytest.mark.parametrize(
    ("environment", "production", "wanted"),
    [
        ({}, False, ServingPolicy()),
        ({}, True, ServingPolicy(enabled=False)),
        ({"USE_RL_MODEL": "true"}, True, ServingPolicy()),
        ({"USE_RL_MODEL": "off"}, False, ServingPolicy(enabled=False)),
        ({"RL_ROLLOUT_PERCENTAGE": "10"}, False, ServingPolicy(max_share=0.1)),
        ({"RL_ROLLOUT_PERCENTAGE": "12.5%"}, False, ServingPolicy(max_share=0.125)),
        ({"RL_MODEL_VERSION": "v1.2.3"}, False, ServingPolicy(pinned_version="v1.2.3")),
        ({"RL_MODEL_VERSION": "latest"}, False, ServingPolicy()),
        ({"RL_FALLBACK_TO_BASE": "false"}, False, ServingPolicy(fallback=False)),
    ],
)
def test_the_environment_is_read(environment, production, wanted):
    assert read_serving_policy(environment, production=production) == wanted


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("RL_ROLLOUT_PERCENTAGE", "nan"),
        ("RL_ROLLOUT_PERCENTAGE", "101"),
        ("RL_ROLLOUT_PERCENTAGE", "-1"),
        ("RL_ROLLOUT_PERCENTAGE", "ten"),
        ("USE_RL_MODEL", "perhaps"),
        ("RL_FALLBACK_TO_BASE", "2"),
    ],
)
def test_a_word_that_cannot_be_understood_is_refused(name, value):
    with pytest.raises(Misuse, match=name):
        read_serving_policy({name: value})


# --- the life of an episode ----------------------------------------------------------------------


def test_an_episode_stays_with_its_model_while_that_is_in_the_plan():
    plan = plan_with(("new", 0.1))
    table = build_routing_table(plan, ServingPolicy())
    assert continuing_target(table, "new", {}).model.model_id == "new"
    assert continuing_target(table, "base", {}).model is BASE


def test_a_promotion_leaves_episodes_of_the_old_baseline_where_they_are():
    before, after = plan_with(("new", 0.5)), plan_with(baseline=some("new"))
    retired = retired_baselines(before, after, {})
    table = build_routing_table(after, ServingPolicy())
    assert continuing_target(table, "base", retired).model is BASE
    assert continuing_target(table, "new", retired).candidate is False


def test_a_rollback_moves_episodes_of_the_candidate():
    before, after = plan_with(("new", 0.5)), plan_with()
    table = build_routing_table(after, ServingPolicy())
    assert continuing_target(table, "new", retired_baselines(before, after, {})) is None


def test_a_rollback_after_promotion_moves_episodes_of_the_promoted_model():
    first, promoted, back = plan_with(("new", 0.5)), plan_with(baseline=some("new")), plan_with()
    retired = retired_baselines(first, promoted, {})
    retired = retired_baselines(promoted, back, retired)
    table = build_routing_table(back, ServingPolicy())
    assert continuing_target(table, "new", retired) is None
    assert continuing_target(table, "base", retired).model.model_id == "base"


# --- plans on the wire ---------------------------------------------------------------------------


def test_a_plan_survives_its_journey():
    plan = plan_with(("new", 0.25))
    assert read_plan(write_plan(plan)) == plan


def model(model_id, **fields):
    """A model of a plan, as it is on the wire."""
    return {"model_id": model_id, "backend": "http://h", "name": "n"} | fields


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"candidates": [{"model": model("n"), "share": 1.5}]}, "<= 1.0"),
        ({"candidates": [{"model": model("n"), "share": -0.1}]}, ">= 0.0"),
        ({"candidates": [{"model": model(m), "share": 0.6} for m in "ab"]}, "sum to 1.2"),
        ({"candidates": [{"model": model("base"), "share": 0.1}]}, "twice"),
        ({"baseline": model("a\r\nb")}, "regex"),
        ({"baseline": model("b", backend="file:///etc/passwd")}, "regex"),
        ({"baseline": model("b", backend="http://user:pw@h")}, "regex"),
        ({"baseline": model("b", backend="http://h/\r\nx: y")}, "regex"),
        ({"baseline": model("b", timeout_seconds=0)}, "> 0"),
        ({"salt": ""}, "length"),
        ({"lease_until": "tomorrow"}, "RFC3339"),
        ({"lease_until": "2025-01-01T00:00:00"}, "timezone"),
    ],
)
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
