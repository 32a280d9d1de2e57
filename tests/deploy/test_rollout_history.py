"""What is kept for who looks back: who had which share when, evidence as it grew, and what operators changed."""

import asyncio
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace

import msgspec
import pytest
from tests.deploy.controlling import BASE, Ground
from tests.support import Client

from upswing.api.rollout_views import RolloutRoutes
from upswing.api.series import SeriesRoutes
from upswing.api.server import HttpServer
from upswing.deploy.core.limits import RolloutLimits
from upswing.deploy.core.rollout import new_rollout
from upswing.deploy.core.rows import (
    DeploymentChange,
    EvidencePoint,
    Incident,
    RecordRow,
    RolloutRow,
    TrafficStep,
)
from upswing.deploy.core.strategy import CAUTIOUS, CanaryStrategy
from upswing.deploy.history import RolloutHistory
from upswing.deploy.repository import RolloutRepository
from upswing.infra.sql.decisions import Decisions, insert_decision
from upswing.infra.sql.models import Models
from upswing.infra.sql.paging import PageWanted
from upswing.infra.sql.reward_series import RewardSeriesReader
from upswing.records import Decision

HOUR = timedelta(hours=1)
NOW = datetime(2026, 1, 5, 12, tzinfo=UTC)


@pytest.fixture
def ground():
    return Ground()


async def promoted(ground):
    name = ground.trained(1)
    controller = await ground.started()
    await controller.admit()
    await ground.pass_time(controller, 9 * HOUR)
    assert ground.shares[name] > 90
    return name, controller


async def test_a_promotion_leaves_its_steps_and_a_rollback_the_last_one(ground):
    name, controller = await promoted(ground)
    await controller.operator.rollback(name, "ann", "it is rude")
    steps = ground.store.traffic_steps
    told = [step.events[name] for step in steps if name in step.events]
    assert told[0] == "deployed"
    assert told[-2:] == ["promoted", "rollback"]
    assert set(told[1:-2]) <= {"ramped"}
    shares = [step.shares.get(name, 0.0) for step in steps]
    assert shares[-1] == 0.0
    assert shares[:-1] == sorted(shares[:-1])
    assert [step.at for step in steps] == sorted(step.at for step in steps)
    known = {each.decision_id for each in ground.store.decisions}
    assert all(step.decision_id in known for step in steps if step.events)


async def test_evidence_is_drawn_as_it_grows_and_seldom(ground):
    name, _ = await promoted(ground)
    points = ground.store.evidence_points
    assert {point.rollout_id for point in points} == {ground.rollout(name).rollout_id}
    counts = [point.rewards for point in points]
    assert counts == sorted(counts)
    looks = counts[-1]
    assert 3 <= len(points) <= 60 + looks / 5
    drawn = [point for point in points if point.lower is not None and point.upper is not None]
    widths = [point.upper - point.lower for point in drawn]
    assert widths[-1] < widths[0], "it shrinks"
    assert {point.share for point in points} > {0.1}


async def test_an_operators_action_says_how_it_stood_before_and_after(ground):
    name = ground.trained(1)
    controller = await ground.started()
    await controller.admit()
    await controller.set_traffic(name, 33, "ann")
    await controller.operator.rollback(name, "ann")
    first, last = ground.store.audit_rows
    before, after = map(msgspec.json.decode, (first.before, first.after))
    assert before["traffic"] == {BASE: 90.0, name: 10.0}
    assert after["traffic"] == {BASE: 67.0, name: 33.0}
    before, after = map(msgspec.json.decode, (last.before, last.after))
    assert (before["rollout"], before["model"]) == ("paused", "canary")
    assert (after["traffic"], after["model"]) == ({BASE: 100.0}, "rolled_back")


async def test_a_decision_names_the_model_that_it_is_about(ground):
    name, _ = await promoted(ground)
    about = {each.about for each in ground.store.decisions}
    assert about <= {name, ""}
    assert name in about


# ── in the store, and over HTTP ──────────────────────────────────────────────────────────────────


def rollout_row(state="ramping"):
    made = new_rollout("r-1", "m-1", BASE, "val-1", CanaryStrategy(CAUTIOUS, "So."), NOW)
    return RolloutRow("r-1", "m-1", BASE, state, 0.1, msgspec.json.encode(made))


async def filled(store):
    rows = RolloutRepository(store.database)
    fence, _ = await rows.take_over("one", NOW)
    for number in range(20):
        at = NOW + number * HOUR
        share = 0.1 * (number // 5 + 1)
        point = EvidencePoint("r-1", at, share, number, 0.01, -0.5 / (number + 1), None, 9, 1)
        step = TrafficStep(
            at, {BASE: 100 - share * 100, "m-1": share * 100}, {"m-1": "ramped"}, "d"
        )
        incident = Incident(f"i-{number}", "r-1", "m-1", "slow", "It is slow.", b'{"n": 1}', at)
        await rows.commit(
            fence,
            DeploymentChange(
                at,
                rollouts=(rollout_row(),),
                records=(RecordRow("r-1", 0, 0, b"{}"),),
                incidents=(incident,),
                points=(point,),
                traffic=step if number % 5 == 0 else None,
            ),
        )
    made = Decision("d", "deploy", "set_weight", "It goes on.", b"{}", b"{}", NOW, about="m-1")
    await store.database.write(lambda tx: insert_decision(tx, made))
    return RolloutHistory(store.database)


async def test_what_went_in_comes_back(store):
    history = await filled(store)
    points = await history.points("r-1")
    assert [point.rewards for point in points] == list(range(20))
    steps = await history.traffic(NOW + 6 * HOUR, NOW + 12 * HOUR)
    assert [step.at for step in steps] == [NOW + 5 * HOUR, NOW + 10 * HOUR]
    assert (steps[1].events, steps[1].decision_id) == ({"m-1": "ramped"}, "d")
    found, position = await history.incidents(PageWanted(15))
    assert [each.incident_id for each in found] == [f"i-{n}" for n in range(19, 4, -1)]
    rest, end = await history.incidents(PageWanted(15, position))
    assert (len(rest), end) == (5, None)
    assert (await history.find("r-1")) == (await history.find("m-1")) == (await history.live())[0]
    assert await history.find("none") is None


async def test_it_is_told_over_http(store):
    history, decisions = await filled(store), Decisions(store.database)

    async def shares():
        return {BASE: 100.0}

    def now():
        return NOW + 24 * HOUR

    rewards, models = RewardSeriesReader(store.database), Models(store.database)
    routes = [
        *RolloutRoutes(history, decisions, RolloutLimits(), clock=now).routes(),
        *SeriesRoutes(rewards, history, models, decisions, shares=shares, clock=now).routes(),
    ]
    keys = SimpleNamespace(
        find=lambda _: SimpleNamespace(key_id="k", scope="reader", revoked=None, many=False)
    )
    front = HttpServer(routes, keys, "127.0.0.1", 0)
    running = asyncio.create_task(front.run())
    async with Client(front.url, "k") as ask:
        _, detail = await ask("GET", "/v1/rollouts/m-1")
        assert detail["rollout"]["rollout_id"] == "r-1"
        assert len(detail["evidence"]) == 20
        assert [step["decision_id"] for step in detail["steps"]] == ["d"]
        assert len(detail["incidents"]) == 20
        _, thin = await ask("GET", "/v1/rollouts/r-1/evidence?points=5")
        assert [point["rewards"] for point in thin["history"]] == [0, 5, 10, 14, 19]
        assert (await ask("GET", "/v1/rollouts/none"))[0] == 404
        _, traffic = await ask("GET", "/v1/traffic/series?since=12h")
        assert [step["shares"]["m-1"] for step in traffic["planned"]] == pytest.approx([30.0, 40.0])
        assert traffic["planned"][0]["at"] == traffic["since"]
        _, series = await ask("GET", "/v1/rewards/series")
        assert {(mark["kind"], mark["sentence"]) for mark in series["marks"]} == {
            ("canary", "It goes on.")
        }
        _, page = await ask("GET", "/v1/incidents?limit=3&model=m-1")
        assert len(page["incidents"]) == 3
        assert page["next"]
    await front.close()
    await running
