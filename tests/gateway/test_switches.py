"""Do the switches mean what their table says? Every combination, against a small oracle of the table."""

import itertools
import re
from collections import Counter
from pathlib import Path

import msgspec
import pytest

from tests.gateway.conftest import model, plan, started, user
from tests.gateway.scripted import Misbehaving, Scripted
from tests.gateway.talking import raw, request
from upswing import model_flags
from upswing.contracts.traffic import Candidate, Model, Plan, read_plan
from upswing.errors import Transient
from upswing.gateway.core.routing import (
    build_routing_table,
    continuing_target,
    draw_target,
    shares_label,
    traffic_shares,
)
from upswing.gateway.core.serving_policy import ServingPolicy, read_serving_policy

BASE, OLD, NEW, ASIDE, GONE = "tiny", "agent-rl-v1", "agent-rl-v2", "agent-rl-v3", "agent-rl-v4"
PLACES = [(number + 0.5) / 1000 for number in range(1000)]
STATES = {
    "none": {BASE: 1.0},
    "canary": {BASE: 0.5, NEW: 0.5},
    "canary beside a promoted one": {OLD: 0.9, NEW: 0.1},
    "promoted": {NEW: 1.0},
    "promoted, the base held back": {NEW: 0.95, BASE: 0.05},
    "promoted, a trained one held back": {NEW: 0.95, OLD: 0.05},
    "rolled back": {OLD: 1.0},
}
"""Rollout → what the plan gives to whom, its baseline first."""
VERSIONS = {None: None, "v2": NEW, "v3": ASIDE, "v4": None, "v99": None, "latest": None}
"""RL_MODEL_VERSION → the model that can be had by it, in a plan that has all but `v4`, withdrawn."""
CASES = list(
    itertools.product(
        (None, "true", "false"),
        (False, True),
        VERSIONS,
        (None, "0", "30", "100"),
        STATES,
        (None, "false"),
    )
)


def some(name):
    return Model(name, "http://127.0.0.1:1", name)


def plan_in(state):
    given = STATES[state]
    baseline, *others = given
    parts = tuple(Candidate(some(name), given[name]) for name in others)
    held = "held back" in state
    known = {*given, BASE}
    gone = (GONE, NEW) if state == "rolled back" else (GONE,)
    return Plan(
        1,
        "rollout",
        "salt",
        some(baseline),
        () if held else parts,
        holdback=parts[0] if held else None,
        base=None if baseline == BASE else some(BASE),
        trained=baseline != BASE,
        pinned=tuple(some(name) for name in (NEW, ASIDE) if name not in known and name not in gone),
        withdrawn=gone,
    )


def environment(use, version, percentage, fallback):
    told = {
        "USE_RL_MODEL": use,
        "RL_MODEL_VERSION": version,
        "RL_ROLLOUT_PERCENTAGE": percentage,
        "RL_FALLBACK_TO_BASE": fallback,
    }
    return {name: value for name, value in told.items() if value is not None}


def oracle(use, production, version, percentage, state):
    """(model, does a switch choose it) → share. The table of `docs/gateway.md`, row by row."""
    if use == "false" or (use is None and production):
        return {(BASE, True): 1.0}
    if version not in {None, "latest"}:
        found = VERSIONS[version]
        if state == "rolled back" and found == NEW:
            found = None
        return {(found or BASE, True): 1.0}
    max_share, given = float(percentage or 100) / 100, STATES[state]
    if max_share == 0:
        return {(BASE, True): 1.0}
    trained = sum(share for name, share in given.items() if name != BASE)
    scale = min(1.0, max_share / trained) if trained else 1.0
    told = {(name, False): share * (1 if name == BASE else scale) for name, share in given.items()}
    return told | ({(BASE, True): trained - max_share} if trained > max_share else {})


@pytest.mark.parametrize("state", STATES)
def test_the_table_holds_in_every_combination(state):
    for use, production, version, percentage, _, fallback in (c for c in CASES if c[4] == state):
        told = environment(use, version, percentage, fallback)
        policy = read_serving_policy(told, production=production)
        table = build_routing_table(plan_in(state), policy)
        found = Counter(
            (choice.model.model_id, bool(choice.switch))
            for choice in (draw_target(table, place) for place in PLACES)
        )
        wanted = oracle(use, production, version, percentage, state)
        about = (told, production)
        assert {key: found[key] / 1000 for key in wanted} == pytest.approx(wanted, abs=2e-3), about
        assert set(found) <= set(wanted), about
        assert policy.fallback is (fallback is None)
        told_shares = Counter()
        for (name, _), share in wanted.items():
            told_shares[name] += share
        assert {k: v for k, v in traffic_shares(table).items() if v} == pytest.approx(
            {k: v for k, v in told_shares.items() if v}
        ), about


@pytest.mark.parametrize("state", STATES)
def test_where_trained_models_are_off_nobody_gets_one_by_any_way(state):
    plan, off = plan_in(state), ({"USE_RL_MODEL": "false"}, {"RL_ROLLOUT_PERCENTAGE": "0"})
    for told in off:
        table = build_routing_table(plan, read_serving_policy(told, production=False))
        assert {each.model_id for each in table.listed_models()} == {BASE}
        for name in (OLD, NEW, ASIDE, GONE):
            assert continuing_target(table, name, {name: some(name)}) is None
        assert table.fallback_for(table.baseline) is None


def test_the_fallback_of_a_pinned_model_is_the_base_and_of_the_base_nobody():
    for state in STATES:
        plan = plan_in(state)
        table = build_routing_table(plan, ServingPolicy(pinned_version="v3"))
        assert table.fallback_for(table.baseline).model.model_id == BASE
        capped = build_routing_table(plan, ServingPolicy(max_share=0.3))
        for place in PLACES:
            choice = draw_target(capped, place)
            instead = capped.fallback_for(choice, choice.switch)
            if choice.model.model_id == BASE:
                assert instead is None
            elif choice.candidate:
                assert instead == capped.baseline


def test_episodes_are_compared_by_their_share_among_those_that_no_switch_decides():
    canary = plan_in("canary")
    assert shares_label(build_routing_table(canary, ServingPolicy())) == "0.5"
    assert (
        shares_label(build_routing_table(canary, ServingPolicy(max_share=0.3))) == "0.375"
    )  # 0.3 beside 0.5
    beside = plan_in("canary beside a promoted one")
    assert shares_label(build_routing_table(beside, ServingPolicy(max_share=0.3))) == "0.1"
    held = plan_in("promoted, the base held back")
    assert shares_label(build_routing_table(held, ServingPolicy())) == "holdback:0.05"


def test_a_base_that_nobody_serves_is_not_replaced_by_a_trained_model():
    plan = msgspec.structs.replace(plan_in("promoted"), base=None)
    for policy in (
        ServingPolicy(enabled=False),
        ServingPolicy(max_share=0.3),
        ServingPolicy(pinned_version="v99"),
    ):
        with pytest.raises(Transient, match="no server has it"):
            build_routing_table(plan, policy)
    assert traffic_shares(build_routing_table(plan, ServingPolicy())) == {NEW: 1.0}


# --- the same in words ---------------------------------------------------------------------------


def rows_of(text):
    return [
        tuple(re.sub(r"\s+", " ", cell).strip() for cell in line.strip("|").split("|"))
        for line in text.splitlines()
        if line.startswith(("| `USE_RL", "| `RL_MODEL_V", "| `RL_ROLL", "| `RL_FALL"))
    ]


def test_the_docs_have_the_table_of_the_code():
    docs = Path(__file__).parents[2] / "docs"
    assert rows_of((docs / "gateway.md").read_text()) == rows_of(model_flags.__doc__)
    assert [row[0].split("=")[0].strip("`") for row in rows_of(model_flags.__doc__)] == [
        "USE_RL_MODEL",
        "RL_MODEL_VERSION",
        "RL_ROLLOUT_PERCENTAGE",
        "RL_FALLBACK_TO_BASE",
    ]


# --- a gateway that answers ----------------------------------------------------------------------


async def who(gateway, episode, *headers, **fields):
    body = {"model": "m", "messages": [user("hi")], **fields}
    whole = await raw(gateway, request(body, f"X-Episode-Id: {episode}", *headers))
    return whole.partition(b"x-model-id: ")[2].partition(b"\r\n")[0].decode()


def promoted(server, **more):
    return plan(
        model(NEW, server.url),
        base=model(BASE, server.url),
        trained=True,
        withdrawn=(GONE,),
        **more,
    )


async def recorded(gateway, episode):
    await gateway.close(episode)
    return gateway.recorder.trajectories[-1]["metadata"]


def counted(gateway):
    return msgspec.json.decode(gateway.gateway.counters.encode())


@pytest.mark.live
@pytest.mark.parametrize("told", [{"USE_RL_MODEL": "false"}, {"UPSWING_ENV": "production"}])
async def test_the_base_answers_although_a_trained_model_was_promoted_and_that_is_nobodys_evidence(
    told,
):
    async with Scripted() as server:
        async with started(promoted(server), policy=read_serving_policy(told)) as gateway:
            assert await who(gateway, "e1") == BASE
            about = await recorded(gateway, "e1")
            assert (about["model"], about["gateway"]["switch"]) == (BASE, "USE_RL_MODEL")
            assert about["gateway"]["rollout"] == ""
            assert counted(gateway) == {}
            assert await who(gateway, "e2", model=NEW) == BASE
            status, _ = await gateway.client("GET", "/v1/models", key="own")
            assert status == 200
            assert gateway.gateway.health()["shares"] == {BASE: 1.0}


@pytest.mark.live
async def test_a_pinned_gateway_is_not_touched_by_rollouts():
    async with Scripted() as server:
        old, new = model(OLD, server.url), model(NEW, server.url)
        first = plan(old, base=model(BASE, server.url), trained=True)
        async with started(first, policy=ServingPolicy(pinned_version="v1")) as gateway:
            changes = (
                {"candidates": (Candidate(new, 0.5),)},
                {"baseline": new, "candidates": (), "pinned": (old,)},
                {"baseline": new, "candidates": (), "holdback": Candidate(old, 0.05)},
            )
            for number, change in enumerate(changes, 2):
                gateway.gateway.apply(msgspec.structs.replace(first, version=number, **change))
                assert {await who(gateway, f"e{number}-{n}") for n in range(8)} == {OLD}
            about = await recorded(gateway, "e2-0")
            assert about["gateway"]["switch"] == "RL_MODEL_VERSION"
            assert counted(gateway) == {}


@pytest.mark.live
async def test_a_pin_that_is_withdrawn_later_means_the_base_and_an_alert(caplog):
    async with Scripted() as server:
        first = promoted(server)
        async with started(first, policy=ServingPolicy(pinned_version="v2")) as gateway:
            assert await who(gateway, "e1") == NEW
            back = msgspec.structs.replace(
                first,
                version=2,
                baseline=model(BASE, server.url),
                base=None,
                trained=False,
                withdrawn=(NEW,),
            )
            gateway.gateway.apply(back)
            assert {await who(gateway, "e1"), await who(gateway, "e2")} == {BASE}
            (alert,) = [r for r in caplog.records if getattr(r, "reason", "") == "pin_missing"]
            assert f"{NEW} is withdrawn" in alert.message
            assert gateway.gateway.health()["alert"] == alert.message


@pytest.mark.live
async def test_a_cap_holds_for_who_answers_and_for_who_is_asked_for_by_name():
    async with Scripted() as server:
        draws = itertools.cycle([0.1, 0.9])
        async with started(
            promoted(server), policy=ServingPolicy(max_share=0.3), draw=lambda: next(draws)
        ) as gateway:
            assert [await who(gateway, f"e{n}") for n in range(4)] == [NEW, BASE, NEW, BASE]
            assert [await who(gateway, f"e{n}") for n in range(4)] == [NEW, BASE, NEW, BASE]
            named = [await who(gateway, f"n{n}", f"X-Model-Id: {NEW}") for n in range(2)]
            assert named == [NEW, BASE]
            assert await who(gateway, "n1", f"X-Model-Id: {NEW}") == BASE
            by_chance, by_switch = await recorded(gateway, "e0"), await recorded(gateway, "e1")
            assert by_chance["gateway"]["rollout"] == "rollout-1"
            assert by_switch["gateway"]["switch"] == "RL_ROLLOUT_PERCENTAGE"
            assert set(counted(gateway)["rollout-1"]) == {NEW}


@pytest.mark.live
@pytest.mark.parametrize("how", ["garbage", "error_500"])
@pytest.mark.parametrize("fallback", [True, False])
async def test_a_pinned_model_that_fails_is_answered_for_by_the_base_if_that_is_allowed(
    fallback, how
):
    async with Scripted() as server, Misbehaving(how) as broken:
        made = plan(model(BASE, server.url), pinned=(model(ASIDE, broken.url),))
        policy = ServingPolicy(pinned_version="v3", fallback=fallback)
        async with started(made, policy=policy) as gateway:
            status, _ = await gateway.chat(user("hi"))
            assert (status == 200) is fallback


@pytest.mark.live
@pytest.mark.parametrize("how", ["garbage", "error_500"])
@pytest.mark.parametrize("policy", [ServingPolicy(enabled=False), ServingPolicy(max_share=0.0)])
async def test_no_trained_model_answers_for_a_base_that_fails(policy, how):
    async with Scripted() as server, Misbehaving(how) as broken:
        made = plan(model(NEW, server.url), base=model(BASE, broken.url), trained=True)
        async with started(made, policy=policy) as gateway:
            assert (await gateway.chat(user("hi")))[0] >= 500
            gateway.gateway.apply(msgspec.structs.replace(made, version=2, base=None))
            status, answer = await gateway.chat(user("hi"))
            assert (status, "no server has it" in answer["error"]["message"]) == (503, True)


@pytest.mark.parametrize(
    "environment",
    [
        {"USE_RL_MODEL": "false"},
        {"RL_MODEL_VERSION": "v5"},
        {"RL_ROLLOUT_PERCENTAGE": "0"},
        {"RL_ROLLOUT_PERCENTAGE": "10"},
    ],
)
def test_where_a_plan_does_not_say_who_is_trained_a_switch_gives_nobody_a_trained_model(
    environment,
):
    """As a controller wrote it that knew neither `base` nor `trained`."""
    told = {"fence": 3, "rollout": "r", "salt": "s", "version": 9}
    baseline = {"model_id": "agent-zero-rl-v7", "backend": "http://h", "name": "v7"}
    old = read_plan(msgspec.json.encode({**told, "baseline": baseline}))
    with pytest.raises(Transient, match="wants the base model"):
        build_routing_table(old, read_serving_policy(environment))
    assert traffic_shares(build_routing_table(old, ServingPolicy())) == {"agent-zero-rl-v7": 1.0}
