"""Validating, comparing and pinning over HTTP."""

import asyncio

import pytest

from tests.faulty import Faulty
from tests.support import files_with, until
from tests.trigger.test_trigger import Bench
from tests.validate.desk import ValidationPort
from tests.validate.endpoint import Endpoint
from tests.validate.test_runner import DATA
from upswing.infra.sql.store import open_store
from upswing.infra.sql.users import Users

pytestmark = pytest.mark.live
MINE = '{"task_id": "a", "messages": [{}], "check": {"kind": "exact", "any_of": ["x"]}}'


@pytest.fixture
async def store(tmp_path):
    made = open_store(tmp_path)
    await made.prepare()
    yield made
    made.close()


@pytest.fixture
async def desk(tmp_path, store):
    async with ValidationPort(tmp_path, Faulty(store)) as made:
        yield made


async def ended(desk, run_id):
    """The last word on a validation."""

    async def over():
        _, info = await desk.ask("GET", f"/v1/validations/{run_id}")
        return info if info["state"] != "running" else None

    return await until(over)


async def test_a_validation_goes_on_in_the_background_and_is_told(tmp_path, store):
    hold = asyncio.Event()
    async with ValidationPort(tmp_path, store, Endpoint({"old": DATA[:8]})) as desk:
        desk.models.hold = (20, hold)
        status, started = await desk.ask("POST", "/v1/validations", {"model_id": "new"})
        assert (status, started["against"]) == (202, "old")
        await desk.models.told.wait()
        where = f"/v1/validations/{started['validation_id']}"
        _, info = await desk.ask("GET", where, key="up_reader")
        assert (info["state"], info["report"], info["word"]) == ("running", None, None)
        (data,) = [each for each in info["progress"] if each["suite"] == "data_analysis"]
        assert data["total"] == 48
        hold.set()
        info = await ended(desk, started["validation_id"])
    assert (info["state"], info["word"], info["progress"]) == ("done", "pass", [])
    assert info["report"]["improvement"]["estimate"] == pytest.approx(1 / 3)
    assert info["artifact"].endswith(started["validation_id"])
    assert info["decision_id"]


async def test_models_that_take_their_time_hold_nobody_up(tmp_path, store):
    """However many answers are waited for, the store can be read."""
    from upswing.config import ValidateConfig

    hold, config = asyncio.Event(), ValidateConfig(suites=("data_analysis",), at_once=64)
    async with ValidationPort(tmp_path, store, config=config) as desk:
        desk.models.hold = (0, hold)
        _, started = await desk.ask("POST", "/v1/validations", {"model_id": "new"})
        await until(lambda: len(desk.models.requests) == 24)
        async with asyncio.timeout(60):
            assert (await desk.ask("GET", f"/v1/validations/{started['validation_id']}"))[0] == 200
        hold.set()
        await ended(desk, started["validation_id"])


async def test_the_same_two_models_are_compared_once_at_a_time(desk):
    desk.models.hold = (5, asyncio.Event())
    wish = {"model_id": "new", "against": "old"}
    status, started = await desk.ask("POST", "/v1/validations", wish)
    assert status == 202
    status, problem = await desk.ask("POST", "/v1/validations", wish | {"suites": ["safety_bias"]})
    assert (status, problem["error"]) == (409, "conflict")
    assert started["validation_id"] in problem["detail"]


@pytest.mark.parametrize(
    ("body", "status", "said"),
    [
        ({"model_id": "who"}, 404, "no model who"),
        ({"model_id": "new", "against": "who"}, 404, "no model who"),
        ({"model_id": "new", "suites": ["gaia"]}, 422, "no suite gaia"),
        ({"model_id": "new", "suites": []}, 422, "at least one suite"),
        ({"model_id": "new", "suites": "safety"}, 422, "array"),
        ({"model_id": ""}, 422, "length"),
        ({}, 422, "model_id"),
        ({"model_id": "new", "seeds": 3}, 422, "seeds"),
        (b"{", 400, ""),
        (b"\xff", 400, ""),
        (b'{"model_id": NaN}', 400, ""),
    ],
)
async def test_what_is_wrong_is_refused_with_a_sentence(desk, body, status, said):
    got, problem = await desk.ask("POST", "/v1/validations", body)
    assert got == status
    assert said in problem["detail"]
    assert await desk.prover.rows.unfinished() == []


async def test_where_no_model_answers_one_has_to_be_named(desk):
    desk.current = None
    status, problem = await desk.ask("POST", "/v1/validations", {"model_id": "new"})
    assert (status, "against" in problem["detail"]) == (422, True)


async def test_only_an_operator_may_start_and_pin(desk):
    for path, body in (
        ("/v1/validations", {"model_id": "new"}),
        ("/v1/pins", {"trajectory_id": "t"}),
    ):
        assert (await desk.ask("POST", path, body, key="up_reader"))[0] == 403
        assert (await desk.ask("POST", path, body, key=None))[0] == 401


async def test_an_unknown_validation_is_not_found(desk):
    assert (await desk.ask("GET", "/v1/validations/nothing"))[0] == 404


async def test_a_model_that_is_away_is_inconclusive(tmp_path, store):
    async with ValidationPort(tmp_path, store, Endpoint(away=["new"])) as desk:
        _, started = await desk.ask("POST", "/v1/validations", {"model_id": "new"})
        info = await ended(desk, started["validation_id"])
    assert (info["state"], info["word"]) == ("done", "inconclusive")


async def test_one_without_a_report_says_why(tmp_path, store):
    from upswing.config import ValidateConfig

    (path := tmp_path / "gone.jsonl").write_text(MINE)
    config = ValidateConfig(suites=("mine",), files={"mine": str(path)})
    async with ValidationPort(tmp_path, store, config=config) as desk:
        path.unlink()
        _, started = await desk.ask("POST", "/v1/validations", {"model_id": "new"})
        info = await ended(desk, started["validation_id"])
    assert (info["state"], info["word"], info["report"]) == ("failed", None, None)
    assert "cannot be read" in info["sentence"]


# ── compare ──────────────────────────────────────────────────────────────────────────────────────


async def test_two_models_are_compared_by_what_they_earned(desk, store):
    bench = Bench(store)
    for _ in range(100):
        await bench.score(model="new", raw=0.8)
        await bench.score(model="old", raw=0.5)
    status, found = await desk.ask("GET", "/v1/compare?a=new&b=old", key="up_reader")
    assert status == 200
    assert found["production"]["difference"] == pytest.approx(0.3)
    assert found["sentence"] == "new earns more."
    assert (found["a"]["trajectories"], found["suites"]) == (100, [])


async def test_the_suites_of_their_validation_are_there_too(desk):
    _, started = await desk.ask("POST", "/v1/validations", {"model_id": "new"})
    await ended(desk, started["validation_id"])
    _, found = await desk.ask("GET", "/v1/compare?a=old&b=new")
    assert {each["suite"] for each in found["suites"]} == {"data_analysis", "safety_toxicity"}
    assert found["reports"] == [started["validation_id"]]
    assert found["production"] is None


@pytest.mark.parametrize(
    ("query", "status"),
    [
        ("", 422),
        ("?a=new", 422),
        ("?a=new&b=new", 422),
        ("?a=new&b=who", 404),
        ("?a=%00&b=%ff", 404),
    ],
)
async def test_a_comparison_needs_two_models(desk, query, status):
    assert (await desk.ask("GET", f"/v1/compare{query}"))[0] == status


# ── pins ─────────────────────────────────────────────────────────────────────────────────────────


async def test_a_stored_failure_becomes_a_task(desk):
    name = await desk.store_one()
    status, pinned = await desk.ask("POST", "/v1/pins", {"trajectory_id": name})
    assert (status, pinned["new"], pinned["pinned"]) == (201, True, 1)
    assert name in pinned["task_id"]
    _, again = await desk.ask("POST", "/v1/pins", {"trajectory_id": name})
    assert (again["new"], again["pinned"]) == (False, 1)
    wish = {"trajectory_id": name, "contains": ["closed"], "excludes": ["open"], "turn_id": 1}
    _, other = await desk.ask("POST", "/v1/pins", wish)
    assert (other["new"], other["pinned"]) == (True, 2)


@pytest.mark.parametrize(
    ("wish", "status"),
    [
        ({"trajectory_id": "nothing"}, 404),
        ({"turn_id": 99}, 422),
        ({"turn_id": 0}, 422),
        ({"contains": [""]}, 422),
        ({"contains": ["write to jane.roe@example.org"]}, 422),
        ({"expect": 1}, 422),
    ],
)
async def test_what_cannot_be_pinned_is_refused(desk, tmp_path, wish, status):
    name = await desk.store_one()
    got, problem = await desk.ask("POST", "/v1/pins", {"trajectory_id": name} | wish)
    assert (got, problem["detail"][-1]) == (status, ".")
    assert await desk.prover.runner.pins.pinned() == ()
    assert files_with(tmp_path / "validation", "jane.roe") == []


async def test_a_pin_of_what_is_erased_meanwhile_does_not_stay(desk, store):
    name = await desk.store_one(metadata={"user_id": "u1"})
    users, whole = Users(store.database), store.trajectory

    async def erased_after_the_look(trajectory_id):
        found = await whole(trajectory_id)
        await users.erase("u1", desk.prover.now)
        return found

    desk.store.instead["trajectory"] = erased_after_the_look
    status, _ = await desk.ask("POST", "/v1/pins", {"trajectory_id": name})
    assert status == 404
    assert await desk.prover.runner.pins.pinned() == ()
