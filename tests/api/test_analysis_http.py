"""Failures and changed policies over HTTP: who may ask, what is answered, and what is refused with a sentence."""

import asyncio
from datetime import UTC, datetime, timedelta
from functools import partial
from types import SimpleNamespace
from uuid import uuid4

import pytest
from tests.deploy.controlling import START
from tests.monitor.journals import rollout_journal
from tests.monitor.test_failure_analyst import NEW, Clock, analyst, episodes, rolled_back
from tests.support import Client

from upswing.api.analysis import AnalysisRoutes
from upswing.api.openapi import openapi_document
from upswing.api.server import HttpServer
from upswing.app.backtest import run_backtest
from upswing.infra.sql.decisions import Decisions, insert_decision
from upswing.infra.sql.store import open_in_memory_store
from upswing.validate.repository import Validations

CHANGED = "[deploy.limits]\nreward = 0.3\n"


class Keys:
    """Knows three keys."""

    def find(self, key):
        scope = {"op": "operator", "rd": "reader", "ag": "agent"}.get(key)
        return SimpleNamespace(key_id=key, scope=scope, revoked=None, many=False) if scope else None


@pytest.fixture
async def store():
    made = open_in_memory_store()
    await made.prepare()
    yield made
    made.close()


@pytest.fixture
async def ask(store):
    clock = Clock()
    clock.now = START + timedelta(days=1)
    looking = analyst(store, clock)
    store.looking = looking
    routes = AnalysisRoutes(
        looking,
        Validations(store.database),
        partial(run_backtest, Decisions(store.database)),
        clock=clock,
    )
    store.routes = routes
    front = HttpServer(routes.routes(), Keys(), "127.0.0.1", 0)
    running = asyncio.create_task(front.run())
    async with Client(front.url, "rd") as client:
        yield client
    await front.close()
    await running


async def fill(store, decisions):
    await store.database.write(lambda tx: [insert_decision(tx, each) for each in decisions])


async def test_a_policy_is_tried_as_text_and_as_tables_alike(ask, store):
    await fill(store, (await rollout_journal(3, reward=0.45))[0])
    status, text = await ask("POST", "/v1/backtest", {"policy": CHANGED, "since": "7d"})
    assert (status, text["total"], text["cost"]["rollbacks"]) == (200, 1, -1)
    tables = {"deploy": {"limits": {"reward": 0.3}}}
    assert (await ask("POST", "/v1/backtest", {"policy": tables, "since": "7d"}))[1] == text
    same = {"policy": {"deploy": {"limits": {"reward": 0.05}}}}
    assert (await ask("POST", "/v1/backtest", same))[1]["total"] == 0
    assert text["differences"][0]["now"]["action"] == "hold"


async def test_only_what_lies_in_the_time_is_replayed(ask, store):
    await fill(store, (await rollout_journal(3))[0])
    begin = {"policy": "", "since": (START - timedelta(minutes=1)).isoformat()}
    assert (await ask("POST", "/v1/backtest", begin))[1]["decisions"] == 9
    later = {"policy": "", "since": (START + timedelta(hours=2, minutes=2)).isoformat()}
    status, report = await ask("POST", "/v1/backtest", later)
    assert (status, report["decisions"]) == (200, 3)


@pytest.mark.parametrize(
    ("body", "status", "said"),
    [
        (b"not json", 400, ""),
        (b"[]", 422, "object"),
        ({"policy": 3}, 422, "policy"),
        ({"policy": "", "sinse": "7d"}, 422, "sinse"),
        ({"policy": "", "since": "7 parsecs"}, 422, "since"),
        ({"policy": "", "since": "2026-13-45T00:00:00Z"}, 422, "since"),
        ({"policy": "", "since": "2126-01-01T00:00:00Z"}, 422, "since"),
        ({"policy": "[deploy"}, 422, "policy"),
        ({"policy": "[deploy]\nramp_hours = -1\n"}, 422, "ramp_hours"),
        ({"policy": {"nonsense": {}}}, 422, "nonsense"),
        ({"policy": "x" * 70_000}, 413, ""),
    ],
)
async def test_what_is_no_policy_is_refused_with_a_sentence(ask, body, status, said):
    got, told = await ask("POST", "/v1/backtest", body)
    assert (got, said in told["detail"]) == (status, True), told


async def test_one_backtest_at_a_time(ask, store):
    async with store.routes._backtesting:
        status, told = await ask("POST", "/v1/backtest", {"policy": ""})
    assert (status, told["error"]) == (503, "unavailable")


async def test_readers_and_operators_may_ask_and_agents_may_not(ask):
    for path, method, body in (
        ("/v1/backtest", "POST", {"policy": ""}),
        (f"/v1/analysis/{NEW}", "GET", b""),
    ):
        codes = [(await ask(method, path, body, key=key))[0] for key in ("op", "rd", "ag", None)]
        assert codes[0] == codes[1] in {200, 404}
        assert codes[2:] == [403, 401]


async def test_an_analysis_is_shown_as_it_was_made_and_made_anew_on_request(ask, store):
    status, told = await ask("GET", f"/v1/analysis/{NEW}")
    assert (status, "has had no rollout" in told["detail"]) == (404, True)
    await store.looking.run_once()
    await episodes(store, 40)
    await rolled_back(store, happened=datetime(2026, 1, 6, 12, tzinfo=UTC))
    status, told = await ask("GET", f"/v1/analysis/{NEW}")
    assert (status, told["analyses"], told["fresh"]["source"]) == (200, [], "request")
    await store.looking.run_once()
    status, told = await ask("GET", f"/v1/analysis/{NEW}")
    assert (told["fresh"], told["analyses"][0]["findings"][0]["feature"]) == (None, "prompt length")
    status, told = await ask("GET", f"/v1/analysis/{NEW}?fresh=true")
    assert told["fresh"]["candidate"] == told["analyses"][0]["candidate"]
    for query in ("fresh=maybe", "frish=true"):
        assert (await ask("GET", f"/v1/analysis/{NEW}?{query}"))[0] == 422


async def test_that_of_a_failed_validation_is_shown_too(ask, store):
    from tests.validate.test_task_facts import failed_report

    validations = Validations(store.database)
    report = failed_report("lone-v9", "base")
    await validations.begin("val-9", "lone-v9", "base", ["world:desk"], START)
    from upswing.records import Decision

    decision = Decision(str(uuid4()), "validate", "validation", "It fails.", b"{}", b"{}", START)
    assert await validations.finish(report, "a", decision, START)
    status, told = await ask("GET", "/v1/analysis/lone-v9")
    assert (status, told["analyses"][0]["source"], told["fresh"]) == (200, "validation", None)
    assert (await ask("GET", "/v1/analysis/lone-v9?fresh=true"))[1]["fresh"] is None


async def test_both_stand_in_the_openapi_document(store, ask):
    paths = openapi_document(store.routes.routes())["paths"]
    assert set(paths) == {"/v1/analysis/{model_id}", "/v1/backtest"}
