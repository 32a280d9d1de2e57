"""Models, traffic and rollouts over HTTP, with a controller on twins behind it."""

import asyncio
from types import SimpleNamespace

import pytest
from tests.deploy.controlling import BASE, Ground
from tests.support import Client

from upswing.api.deployment import DeploymentRoutes
from upswing.api.openapi import openapi_document
from upswing.api.server import HttpServer
from upswing.redact import Redactor

NEW = {"model_id": "ours-v9", "base_model": BASE, "checkpoint_path": "/models/9"}


class Keys:
    """Knows two keys."""

    def find(self, key):
        scope = {"op": "operator", "rd": "reader"}.get(key)
        return SimpleNamespace(key_id=key, scope=scope, revoked=None, many=False) if scope else None


@pytest.fixture
def ground():
    return Ground()


@pytest.fixture
async def ask(ground):
    controller = await ground.started()
    front = HttpServer(DeploymentRoutes(controller, Redactor()).routes(), Keys(), "127.0.0.1", 0)
    running = asyncio.create_task(front.run())
    ground.controlling = controller
    async with Client(front.url, "op") as client:

        async def call(method, path, body=b"", key="op"):
            return await client(method, path, body, key=key)

        yield call
    await front.close()
    await running


async def test_a_model_is_registered_seen_and_given_traffic(ask, ground):
    status, made = await ask("POST", "/admin/models", NEW)
    assert (status, made["model_id"], made["state"]) == (201, "ours-v9", "trained")
    await ground.controlling.admit()
    status, told = await ask(
        "PUT", "/admin/traffic", {"model_id": "ours-v9", "traffic_percentage": 10}
    )
    assert (status, told["traffic"]) == (200, {BASE: 90.0, "ours-v9": 10.0})
    assert (await ask("GET", "/admin/traffic", key="rd"))[1] == told
    status, told = await ask("GET", "/admin/models", key="rd")
    assert [each["model_id"] for each in told["models"]] == ["ours-v9", BASE]
    for name in ("ours-v9", "current"):
        status, told = await ask("GET", f"/admin/models/{name}/metrics", key="rd")
        assert (status, {"requests", "error_rate", "reward_mean"} <= told.keys()) == (200, True)
    assert [row.who for row in ground.store.audit_rows] == ["key op", "key op"]


TOKEN = "gh" + "p_" + "a1B2c3D4e5" * 3 + "f6G7h8"
"""Put together here, so that no credential stands in the source."""


@pytest.mark.parametrize(
    "field", ["model_id", "base_model", "checkpoint_path", "backend", "name", "a part of a path"]
)
async def test_a_credential_in_a_models_names_or_place_is_refused_and_stored_nowhere(
    ask, ground, field
):
    remote = {"model_id": "m", "backend": "https://api.example/v1"}
    asked = {
        "backend": remote | {"backend": f"https://api.example/{TOKEN}/v1"},
        "name": remote | {"name": TOKEN},
        "a part of a path": {**NEW, "checkpoint_path": f"/models/{TOKEN}/final"},
    }.get(field, {**NEW, field: TOKEN})
    status, told = await ask("POST", "/admin/models", asked)
    assert status == 422
    assert "holds something private" in told["detail"]
    assert TOKEN not in str(told) + str(vars(ground.store))


@pytest.mark.parametrize("host", ["34.120.5.6:8000", "10.0.0.5", "[::1]:8000", "gpu.example"])
async def test_a_server_at_any_address_is_registered(ask, host):
    asked = {"model_id": "hosted", "backend": f"http://{host}/v1", "probe": False}
    assert (await ask("POST", "/admin/models", asked))[0] == 201


async def test_a_model_at_a_server_of_the_users_own_is_registered(ask, ground):
    theirs = {
        "model_id": "hosted",
        "backend": "https://api.example/v1",
        "name": "org/large",
        "probe": False,
    }
    status, made = await ask("POST", "/admin/models", theirs)
    assert (status, made["base_model"]) == (201, "org/large")
    assert made["checkpoint_path"] == "https://api.example/v1#org/large;probe=false"
    for wrong in (
        {"key": "sk-1"},
        {"checkpoint_path": "/m"},
        {"backend": "https://u:p@h"},
        {"backend": "ftp://h"},
    ):
        status, told = await ask("POST", "/admin/models", theirs | wrong)
        assert status == 422, told
    ground.serving.broken.add("absent")
    status, told = await ask("POST", "/admin/models", theirs | {"model_id": "absent"})
    assert (status, "does not serve" in str(told)) == (422, True)
    status, told = await ask("GET", "/admin/models", key="rd")
    assert "absent" not in [each["model_id"] for each in told["models"]], (
        "what is refused is not kept"
    )


async def test_a_rollout_is_approved_held_let_go_and_taken_back(ask, ground):
    name = ground.trained(1)
    await ground.controlling.admit()
    for word, state in (
        ("pause", "paused"),
        ("resume", "ramping"),
        ("approve", "ramping"),
        ("rollback", "rolled_back"),
    ):
        status, told = await ask("POST", f"/v1/rollouts/{name}/{word}", {"reason": "so"})
        assert (status, told["state"], told["model_id"]) == (200, state, name)
    status, told = await ask("GET", "/v1/rollouts?limit=5", key="rd")
    assert (status, [each["state"] for each in told["rollouts"]]) == (200, ["rolled_back"])
    assert (await ask("POST", f"/v1/rollouts/{name}/pause"))[0] == 409
    status, told = await ask("POST", f"/v1/rollouts/{name}/override", {"reason": "it must be"})
    assert (status, told["traffic_percentage"]) == (200, 5.0)
    assert (await ask("POST", "/v1/rollback"))[1]["state"] == "rolled_back"
    assert (await ask("POST", "/v1/rollback"))[0] == 409


async def test_several_models_get_fixed_shares_at_once(ask, ground):
    ground.improvement = 0.2
    names = []
    for version in (1, 2, 3):
        names.append(ground.trained(version))
        await ground.controlling.admit()
    shares = {names[0]: 20, names[1]: 15}
    status, told = await ask("PUT", "/admin/traffic", {"shares": shares})
    assert (status, told["traffic"]) == (200, {names[2]: 65.0, names[0]: 20.0, names[1]: 15.0})
    assert told["operator"] is True
    status, told = await ask("PUT", "/admin/traffic", {"shares": {names[0]: 60, names[1]: 60}})
    assert (status, "sum to" in told["detail"]) == (422, True)
    status, told = await ask(
        "PUT", "/admin/traffic", {"model_id": names[0], "traffic_percentage": 90}
    )
    assert (status, "sum to 105 %" in told["detail"]) == (409, True)


@pytest.mark.parametrize(
    ("method", "path", "body", "status"),
    [
        ("PUT", "/admin/traffic", {"model_id": "nobody", "traffic_percentage": 5}, 404),
        ("PUT", "/admin/traffic", {"model_id": BASE, "traffic_percentage": 101}, 422),
        ("PUT", "/admin/traffic", {"model_id": BASE, "traffic_percentage": -0.1}, 422),
        ("PUT", "/admin/traffic", b'{"model_id": "tiny", "traffic_percentage": NaN}', 422),
        ("PUT", "/admin/traffic", {"model_id": BASE, "traffic_percentage": True}, 422),
        ("PUT", "/admin/traffic", {"model_id": BASE, "traffic_percentage": 10}, 409),
        ("PUT", "/admin/traffic", {"shares": {}}, 422),
        ("PUT", "/admin/traffic", {"shares": {"a": "b"}}, 422),
        ("PUT", "/admin/traffic", b"{", 400),
        ("PUT", "/admin/traffic", b"[]", 422),
        ("PUT", "/admin/traffic", b"x" * 70_000, 413),
        ("POST", "/admin/models", {**NEW, "surprise": 1}, 422),
        ("POST", "/admin/models", {**NEW, "model_id": "a\r\nb"}, 422),
        ("POST", "/admin/models", {**NEW, "model_id": BASE}, 409),
        ("GET", "/admin/models/nobody/metrics", b"", 404),
        ("POST", "/v1/rollouts/nobody/rollback", b"", 404),
        ("POST", f"/v1/rollouts/{BASE}/approve", b"", 409),
        ("POST", f"/v1/rollouts/{BASE}/override", {"reason": "x"}, 404),
        ("POST", f"/v1/rollouts/{BASE}/override", b"{}", 422),
        ("GET", "/v1/rollouts?limit=0", b"", 422),
    ],
)
async def test_what_cannot_be_is_refused_with_a_sentence(ask, ground, method, path, body, status):
    before = len(ground.board.plans)
    got, told = await ask(method, path, body)
    assert (got, bool(told["detail"])) == (status, True), told
    assert len(ground.board.plans) == before


@pytest.mark.parametrize("name", ["a b", "", "ä", "-x", "x" * 201])
async def test_a_wrong_name_is_answered_with_what_a_name_may_be(ask, name):
    status, told = await ask("POST", "/admin/models", {**NEW, "model_id": name})
    assert status == 422
    assert "up to 199 letters, digits, dots, colons, dashes and underscores" in told["detail"]
    assert "regex" not in told["detail"]


async def test_only_operators_change_anything(ask):
    for method, path in (
        ("POST", "/admin/models"),
        ("PUT", "/admin/traffic"),
        ("POST", "/v1/rollback"),
    ):
        assert (await ask(method, path, key="rd"))[0] == 403
        assert (await ask(method, path, key="eve"))[0] == 401


async def test_every_route_is_in_the_document(ask, ground):
    made = openapi_document(DeploymentRoutes(ground.controlling, Redactor()).routes())
    assert len(made["paths"]) == 11
    names = [one["operationId"] for each in made["paths"].values() for one in each.values()]
    assert len(names) == len(set(names))
