"""Can somebody who sends messages make up series? Whatever they call things, `/metrics` stays its size."""

import random
import string
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client import CollectorRegistry

from tests.deploy.scoring import NOW, scored
from tests.support import small, until
from upswing.collect.metrics import CollectMetrics
from upswing.contracts.trajectory import DOMAINS, PROFILES
from upswing.deploy.core.health import CanaryFigures
from upswing.deploy.metrics import DeployMetrics
from upswing.errors import Reason
from upswing.gateway.counters import GatewayCounters
from upswing.gateway.metrics import GatewayCollector, GatewayGauges
from upswing.infra.metric_labels import MOST_MODELS, OTHER, LabelValues
from upswing.infra.sql.models import Models
from upswing.infra.sql.rewards import Rewards
from upswing.reward.core.assess import RewardRules
from upswing.reward.core.weights import component_weights
from upswing.reward.metrics import RewardMetrics
from upswing.reward.rewarder import Rewarder
from upswing.serve.metrics import ModelServerCollector
from upswing.serve.metrics import ServerCounters as ServedTally

MANY = 1000


def values(registry, name, label):
    """The values of a label in one metric."""
    return {
        sample.labels[label]
        for family in registry.collect()
        for sample in family.samples
        if sample.name == name
    }


def total(registry, name):
    return sum(s.value for family in registry.collect() for s in family.samples if s.name == name)


@given(st.sets(st.text(max_size=6), max_size=20), st.lists(st.text(max_size=6)), st.integers(0, 5))
def test_a_label_has_the_known_values_a_few_others_and_other(known, said, most):
    made = LabelValues(known, most_others=most)
    shown = [made.label_for(each) for each in said]
    assert len(set(shown) - known - {OTHER}) <= most
    assert all(after in {before, OTHER} for before, after in zip(said, shown, strict=True))
    assert all(made.label_for(each) == each for each in known)


def test_agents_invent_profiles_and_ours_keep_their_series():
    registry, chance = CollectorRegistry(), random.Random(5)
    metrics = CollectMetrics(registry)
    for _ in range(MANY):
        word = "".join(chance.choices(string.ascii_letters, k=9))
        metrics.stored(word, word, 1)
    for profile in ("main", *PROFILES):
        metrics.stored(profile, "coding", 1)
    name = "agent_rl_trajectories_collected_total"
    kinds, domains = values(registry, name, "agent_type"), values(registry, name, "task_domain")
    assert {"main", *PROFILES, OTHER} <= kinds
    assert len(kinds) <= 51
    assert domains <= {*DOMAINS, OTHER}
    assert total(registry, name) == MANY + 1 + len(PROFILES)


async def test_a_models_mean_is_told_of_models_that_are_known(store):
    models = Models(store.database)
    name = await models.register(
        job_id="j",
        base_model="tiny",
        parent=None,
        snapshot="s",
        path="p",
        card="c",
        samples=1,
        final_reward=None,
        now=NOW,
    )
    for number in range(60):
        await scored(store, model=f"made-up-{number}", total=0.25, door="nats")
    for model, value in ((name, 0.75), ("tiny", 0.5), ("mine", 1.0), (OTHER, 0.25)):
        await scored(store, model=model, total=value)
    registry = CollectorRegistry()
    rewarder = Rewarder(
        store,
        Rewards(store.database),
        RewardRules(component_weights({})),
        RewardMetrics(registry),
        clock=lambda: NOW,
        models=["mine"],
    )
    await rewarder.maintain()
    seen = {
        sample.labels["model_version"]: sample.value
        for family in registry.collect()
        for sample in family.samples
        if sample.name == "agent_rl_model_reward_mean"
    }
    assert seen == pytest.approx({name: 0.75, "tiny": 0.5, "mine": 1.0, OTHER: 0.25})


def test_a_gateway_remembers_the_models_that_answered_last_and_loses_no_count():
    registry, counters = CollectorRegistry(), GatewayCounters()
    gauges = GatewayGauges({}, 0, 0, 0, 0, 0, {}, None)
    registry.register(GatewayCollector(counters, lambda: gauges))
    for number in range(MANY):
        counters.count_fault(f"m{number}", "refused")
        for model in (f"m{number}", "base"):
            counters.count_request(
                "r", model, "answered", 3, error=True, fallback=False, evidence=False
            )
    for name in (
        "agent_rl_model_errors_total",
        "agent_rl_model_error_rate",
        "upswing_gateway_latency_seconds_count",
        "upswing_gateway_faults_total",
    ):
        shown = values(registry, name, "model_version")
        assert len(shown) <= MOST_MODELS + 1
        assert {f"m{MANY - 1}", OTHER} <= shown
    assert "base" in values(registry, "agent_rl_model_errors_total", "model_version")
    assert total(registry, "agent_rl_model_errors_total") == 2 * MANY
    assert total(registry, "upswing_gateway_latency_seconds_count") == 2 * MANY
    assert total(registry, "upswing_gateway_faults_total") == MANY


def test_models_that_are_long_gone_leave_no_series():
    registry = CollectorRegistry()
    metrics = DeployMetrics(registry)
    for number in range(MANY):
        metrics.traffic({"base": 0.9, f"m{number}": 0.1})
        metrics.error_rate("base", 0.0)
        metrics.error_rate(f"m{number}", 0.5)
    for name in ("agent_rl_model_traffic_percentage", "agent_rl_model_error_rate"):
        shown = values(registry, name, "model_version")
        assert len(shown) == MOST_MODELS
        assert {"base", f"m{MANY - 1}"} <= shown
    assert total(registry, "agent_rl_model_traffic_percentage") == pytest.approx(100)


def test_a_model_server_tells_of_the_models_that_it_serves():
    registry, counters = CollectorRegistry(), ServedTally()
    registry.register(
        ModelServerCollector(counters, lambda: 0, lambda: ["base", "new"], lambda: None)
    )
    for model in ("", "base", "new", *(f"m{number}" for number in range(MANY))):
        counters.requests[model, "answered"] += 1
        counters.prompt_tokens[model] += 1
    for name in ("upswing_model_server_requests_total", "upswing_model_server_tokens_total"):
        assert values(registry, name, "model") == {"", "base", "new", OTHER}
        assert total(registry, name) == MANY + 3


def test_a_counter_begins_at_zero_so_that_its_first_event_is_an_increase():
    registry = CollectorRegistry()
    CollectMetrics(registry)
    DeployMetrics(registry)
    name = "agent_rl_model_deployments_total"
    assert values(registry, name, "status") == {
        "deployed",
        "ramped",
        "promoted",
        "rollback",
        "aborted",
    }
    assert values(registry, "upswing_refused_total", "reason") == {each.value for each in Reason}
    assert total(registry, name) == total(registry, "upswing_refused_total") == 0


def test_a_gateway_tells_of_models_that_nobody_asked_yet():
    registry = CollectorRegistry()
    gauges = GatewayGauges({"base": 0.9, "new": 0.1}, 0, 0, 0, 0, 0, {}, None)
    registry.register(GatewayCollector(GatewayCounters(), lambda: gauges))
    name = "agent_rl_model_errors_total"
    assert values(registry, name, "model_version") == {"base", "new"}
    assert total(registry, name) == 0


def test_a_canary_has_series_until_it_is_none():
    registry = CollectorRegistry()
    metrics = DeployMetrics(registry)
    figures = CanaryFigures(10, 0.1, 0.0, 8, 80, 0, -0.5, -float("inf"), 0.25, 2, 1, {})
    metrics.set_canary(SimpleNamespace(model_id="m", canary=None, steps=(1, 2, 3)), figures)
    seen = {
        sample.name.removeprefix("upswing_canary_"): sample.value
        for family in registry.collect()
        for sample in family.samples
        if sample.name.startswith("upswing_canary_")
    }
    assert seen == {
        "steps": 3,
        "rewards": 8,
        "reward_difference": -0.5,
        "reward_difference_upper": 0.25,
        "error_ratio": 0.1,
        "baseline_error_ratio": 0,
        "complaints": 2,
        "baseline_complaints": 1,
    }
    metrics.retain_canaries({"another"})
    assert values(registry, "upswing_canary_steps", "model_version") == set()


@pytest.mark.live
async def test_whatever_agents_call_things_the_metrics_stay_their_size(loop, client):
    """Every free word of a message is a new one, in message after message."""

    async def send(numbers):
        for number in numbers:
            word = f"invented-{number}"
            made = small(
                word,
                model=word,
                policy_version=word,
                episode_id=word,
                user_id=word,
                scenario_id=word,
                outcome=0.5,
            )
            made |= {"agent_id": word, "session_id": word, "subordinate_profile": word}
            made["task_context"] |= {"task_id": word}
            assert (await client.send(made))[0] == 202
            said = {
                "feedback_id": word,
                "timestamp": "2026-01-01T00:00:00Z",
                "trajectory_id": made["trajectory_id"],
                "type": "thumbs_up",
                "user_id": word,
            }
            told = await client("POST", "/v1/feedback", said)
            assert told[0] == 202, told
            assert (await client("POST", "/v1/trajectories", {word: word}))[0] == 422

    async def lines():
        counts = await loop.store.counts()
        await until(lambda: _all_scored(loop, counts["trajectories"]))
        await loop.rewarder.maintain()
        return (await client("GET", "/metrics"))[1].splitlines()

    await send(range(60))
    before = await lines()
    await send(range(60, 120))
    after = await lines()
    assert len(after) == len(before)
    mine = [line for line in after if "invented-" in line]
    assert len(mine) <= 45
    assert all(line.startswith("agent_rl_trajectories_collected_total") for line in mine)


async def _all_scored(loop, count):
    return (await loop.store.counts())["rewards"] >= count
