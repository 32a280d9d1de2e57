"""Who may change the traffic, close an episode, or say what a user thought?"""

import json

import pytest

from tests.gateway.conftest import model, plan, started, user
from tests.gateway.scripted import Scripted, Server
from tests.gateway.talking import raw, request
from upswing.errors import Misuse, Rejected, Transient
from upswing.gateway.limits import GatewayLimits

pytestmark = pytest.mark.live
TOKEN = "admin-token-of-the-test"
KEYS = {"sk-ann": "ann", "sk-bob": "bob"}


class AdminClientTwin:
    """The controller's twin: remembers what it was asked."""

    def __init__(self):
        self.asked = []
        self.problem = None

    async def register_model(self, model_id, base_model, checkpoint_path):
        return self._note("register", model_id, base_model, checkpoint_path)

    async def set_traffic(self, model_id, percentage):
        return self._note("traffic", model_id, percentage)

    async def model_metrics(self, model_id):
        return self._note("metrics", model_id)

    async def models(self):
        return [{"model_id": "base"}]

    async def check_feedback(self, feedback):
        self._note("feedback", json.loads(feedback).get("user_id"))

    def _note(self, *what):
        if self.problem:
            raise self.problem
        self.asked.append(what)
        return {"model_id": what[1]}


def at(server, admin_client=None, **options):
    both = plan(model("base", server.url), (model("new", server.url), 0.25))
    return started(both, admin_client=admin_client, admin_token=TOKEN, **options)


NEW = {
    "model_id": "agent-zero-rl-v2.3",
    "base_model": "qwen2.5-32b-instruct",
    "checkpoint_path": "s3://m/c",
}
SHARE = {"model_id": "agent-zero-rl-v2.3", "traffic_percentage": 50}


async def test_an_admin_registers_a_model_sets_its_share_and_sees_its_metrics():
    admin_client = AdminClientTwin()
    async with Scripted() as server, at(server, admin_client) as gateway:
        ask = gateway.client
        assert (await ask("POST", "/admin/models", NEW, key=TOKEN))[0] == 201
        assert (await ask("PUT", "/admin/traffic", SHARE, key=TOKEN))[0] == 200
        for name in ("agent-zero-rl-v2.3", "current"):
            assert (await ask("GET", f"/admin/models/{name}/metrics", key=TOKEN))[0] == 200
        assert (await ask("GET", "/admin/models", key=TOKEN))[1] == {
            "models": [{"model_id": "base"}]
        }
        _, told = await ask("GET", "/admin/traffic", key=TOKEN)
        assert told["traffic"] == {"base": 75.0, "new": 25.0}
        assert admin_client.asked == [
            ("register", "agent-zero-rl-v2.3", "qwen2.5-32b-instruct", "s3://m/c"),
            ("traffic", "agent-zero-rl-v2.3", 50.0),
            ("metrics", "agent-zero-rl-v2.3"),
            ("metrics", "current"),
        ]


async def test_an_admin_registers_a_model_at_a_server_of_their_own():
    admin_client = AdminClientTwin()
    theirs = {"model_id": "hosted", "backend": "https://api.example/v1", "name": "org/large"}
    async with Scripted() as server, at(server, admin_client) as gateway:
        for more in ({}, {"probe": False}, {"base_model": "large"}):
            assert (await gateway.client("POST", "/admin/models", theirs | more, key=TOKEN))[
                0
            ] == 201
    assert admin_client.asked == [
        ("register", "hosted", "org/large", "https://api.example/v1#org/large"),
        ("register", "hosted", "org/large", "https://api.example/v1#org/large;probe=false"),
        ("register", "hosted", "large", "https://api.example/v1#org/large"),
    ]


@pytest.mark.parametrize("key", [None, "wrong", TOKEN[:-1], TOKEN + "x", "sk-ann"])
async def test_without_the_token_nothing_is_seen_or_changed(key):
    admin_client = AdminClientTwin()
    async with Scripted() as server, at(server, admin_client, client_keys=KEYS) as gateway:
        for method, path, body in (
            ("POST", "/admin/models", NEW),
            ("PUT", "/admin/traffic", SHARE),
            ("GET", "/admin/models", b""),
            ("GET", "/admin/traffic", b""),
            ("GET", "/admin/models/current/metrics", b""),
        ):
            status, answer = await gateway.client(method, path, body, key=key)
            assert (status, answer["error"]["type"]) == (401, "authentication_error")
        assert admin_client.asked == []
        assert (await gateway.metrics())[
            "upswing_gateway_refused_total", (("reason", "admin_token"),)
        ] == 5


async def test_where_no_token_is_set_nobody_is_admin():
    async with (
        Scripted() as server,
        started(plan(model("base", server.url)), admin_client=AdminClientTwin()) as gateway,
    ):
        for key in (None, "", "anything"):
            assert (await gateway.client("PUT", "/admin/traffic", SHARE, key=key))[0] in {401, 403}


@pytest.mark.parametrize(
    ("path", "body", "status", "said"),
    [
        ("/admin/traffic", {"model_id": "m", "traffic_percentage": 101}, 422, "<= 100"),
        ("/admin/traffic", {"model_id": "m", "traffic_percentage": -1}, 422, ">= 0"),
        ("/admin/traffic", {"model_id": "m", "traffic_percentage": "50"}, 422, "float"),
        ("/admin/traffic", {"model_id": "m", "traffic_percentage": True}, 422, "float"),
        ("/admin/traffic", b'{"model_id": "m", "traffic_percentage": NaN}', 400, "not JSON"),
        ("/admin/traffic", {"traffic_percentage": 5}, 422, "model_id"),
        ("/admin/traffic", {"model_id": "a\r\nb", "traffic_percentage": 5}, 422, "letters, digits"),
        ("/admin/traffic", b"{", 400, "not JSON"),
        ("/admin/traffic", b"x" * 70_000, 413, "65536"),
        ("/admin/models", {"model_id": "m"}, 422, "`checkpoint_path` or `backend`"),
        ("/admin/models", {"model_id": "m", "checkpoint_path": "/m"}, 422, "base_model"),
        ("/admin/models", {**NEW, "probe": False}, 422, "belong to a `backend`"),
        ("/admin/models", {**NEW, "backend": "https://h"}, 422, "either"),
        ("/admin/models", {"model_id": "m", "backend": "https://u:p@h"}, 422, "no address"),
        ("/admin/models", {"model_id": "m", "backend": "https://h", "key": "sk"}, 422, "key"),
        ("/admin/models", {**NEW, "surprise": 1}, 422, "surprise"),
    ],
)
async def test_what_an_admin_asks_is_checked_before_the_desk_hears_of_it(path, body, status, said):
    admin_client = AdminClientTwin()
    async with Scripted() as server, at(server, admin_client) as gateway:
        method = "PUT" if path == "/admin/traffic" else "POST"
        got, answer = await gateway.client(method, path, body, key=TOKEN)
        assert (got, said in answer["error"]["message"]) == (status, True), answer
        assert admin_client.asked == []


@pytest.mark.parametrize(
    ("trouble", "status"),
    [
        (Misuse("No such model."), 404),
        (Rejected("schema", "Not so."), 422),
        (Transient("Later."), 503),
    ],
)
async def test_what_the_desk_refuses_is_said_clearly(trouble, status):
    admin_client = AdminClientTwin()
    admin_client.problem = trouble
    async with Scripted() as server, at(server, admin_client) as gateway:
        got, answer = await gateway.client("PUT", "/admin/traffic", SHARE, key=TOKEN)
        assert (got, answer["error"]["message"]) == (status, str(trouble))


async def test_without_a_controller_the_admin_is_told_so():
    async with Scripted() as server, at(server) as gateway:
        assert (await gateway.client("PUT", "/admin/traffic", SHARE, key=TOKEN))[0] == 503


# --- clients -------------------------------------------------------------------------------------


async def test_clients_need_a_key_where_keys_are_set():
    async with Scripted() as server, at(server, client_keys=KEYS) as gateway:
        for key in (None, "sk-eve"):
            status, answer = await gateway.chat(user("hi"), key=key)
            assert (status, answer["error"]["type"]) == (401, "authentication_error")
            assert (await gateway.client("GET", "/v1/models", key=key))[0] == 401
            assert (await gateway.client("POST", "/feedback", b"{}", key=key))[0] == 401
        assert (await gateway.chat(user("hi"), key="sk-ann"))[0] == 200
        assert (await gateway.client("GET", "/health", key=None))[0] == 200
        assert "authorization" not in server.requests[0]["headers"]


async def test_one_client_cannot_close_or_join_anothers_episode():
    async with Scripted() as server, at(server, client_keys=KEYS) as gateway:
        episode = ("X-Episode-Id: e1",)
        await gateway.chat(user("ann's"), headers=episode, key="sk-ann")
        gateway.client.key = "sk-bob"
        assert (await gateway.close("e1"))[0] == 404
        await gateway.chat(user("bob's"), headers=episode, key="sk-bob")
        assert (await gateway.close("e1"))[1]["recorded"]
        (kept,) = gateway.recorder.trajectories
        assert kept["turns"][0]["observation"]["content"] == "bob's"
        assert kept["agent_id"] == "bob"


async def test_an_end_is_acknowledged_only_when_it_is_durable():
    async with Scripted() as server, at(server, limits=GatewayLimits(close_seconds=0.2)) as gateway:
        await gateway.chat(user("hi"), headers=("X-Episode-Id: e1",))
        gateway.recorder.away = True
        assert (await gateway.close("e1"))[0] == 503
        gateway.recorder.away = False
        for _ in range(50):
            status, answer = await gateway.close("e1")
            if status == 200:
                break
        assert answer["recorded"] is True
        assert len(gateway.recorder.trajectories) == 1


async def test_an_episode_that_nobody_opened_cannot_be_closed():
    async with Scripted() as server, at(server) as gateway:
        assert (await gateway.close("nobody"))[0] == 404
        assert (await gateway.close("a%0d%0ab"))[0] == 422
        assert (await gateway.client("POST", "/v1/episodes/e1/close", b"{"))[0] == 400


async def test_paths_and_methods_that_do_not_exist_are_said_so():
    async with Scripted() as server, at(server) as gateway:
        assert (await gateway.client("GET", "/nothing"))[0] == 404
        assert (await gateway.client("GET", "/v1/chat/completions"))[0] == 405
        assert (await gateway.client("DELETE", "/admin/models", key=TOKEN))[0] == 405
        assert (await raw(gateway, request(b"", path="/%00%ff?x=%zz", method="GET")))[
            :12
        ] == b"HTTP/1.1 404"


# --- feedback ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("feedback", "wanted"),
    [
        ({"metric_name": "task_success", "value": True}, {"type": "thumbs_up"}),
        ({"metric_name": "task_success", "value": False}, {"type": "thumbs_down"}),
        ({"metric_name": "helpfulness", "value": 0.75}, {"type": "rating", "rating": 4}),
        ({"metric_name": "helpfulness", "value": 1}, {"type": "rating", "rating": 5}),
        ({"metric_name": "rating", "value": 1}, {"type": "rating", "rating": 1}),
        ({"metric_name": "comment", "value": "nice"}, {"type": "comment", "comment": "nice"}),
        (
            {"metric_name": "demonstration", "value": "do this"},
            {"type": "demonstration", "comment": "do this"},
        ),
        ({"type": "thumbs_up", "feedback_id": "f-1"}, {"type": "thumbs_up", "feedback_id": "f-1"}),
    ],
)
async def test_feedback_is_understood_in_both_shapes(feedback, wanted):
    async with Scripted() as server, at(server) as gateway:
        status, answer = await gateway.client("POST", "/feedback", {**feedback, "episode_id": "e1"})
        assert status == 200, answer
        (kept,) = gateway.recorder.feedback
        assert kept["episode_id"] == "e1"
        assert kept.items() >= wanted.items()
        assert kept["feedback_id"] == answer["feedback_id"]


@pytest.mark.parametrize(
    "feedback",
    [
        {"metric_name": "m", "value": 7},
        {"metric_name": "m", "value": None},
        {"metric_name": "m"},
        {"metric_name": "rating", "value": 0},
        {"metric_name": "", "value": True},
        {"type": "thumbs_up", "trajectory_id": "no-uuid"},
        {"type": "cheers"},
        {},
        [],
        7,
    ],
)
async def test_feedback_that_means_nothing_is_refused(feedback):
    async with Scripted() as server, at(server) as gateway:
        if isinstance(feedback, dict) and "trajectory_id" not in feedback:
            feedback = {**feedback, "episode_id": "e1"}
        status, answer = await gateway.client("POST", "/feedback", json.dumps(feedback).encode())
        assert (status, answer["error"]["type"]) == (422, "invalid_request_error")
        assert gateway.recorder.feedback == []


async def test_feedback_on_an_inference_finds_its_trajectory():
    async with Scripted() as server, at(server) as gateway:
        whole = await raw(
            gateway, request({"model": "m", "messages": [user("hi")]}, "X-Episode-Id: e1")
        )
        inference = whole.partition(b"x-inference-id: ")[2].partition(b"\r\n")[0].decode()
        feedback = {"metric_name": "ok", "value": True, "inference_id": inference}
        assert (await gateway.client("POST", "/feedback", feedback))[0] == 200
        _, closed = await gateway.close("e1")
        assert gateway.recorder.feedback[0]["trajectory_id"] == closed["trajectory_id"]


async def test_feedback_without_a_bus_is_not_acknowledged():
    async with Scripted() as server, at(server) as gateway:
        gateway.recorder.away = True
        feedback = {"metric_name": "ok", "value": True, "episode_id": "e1"}
        assert (await gateway.client("POST", "/feedback", feedback))[0] == 503


# --- the training service ------------------------------------------------------------------------


async def test_the_training_services_paths_answer_here_too():
    class Training(Server):
        async def answer(self, request, reader, writer):
            return await self.send(
                writer, {"path": request["path"], "key": request["headers"].get("authorization")}
            )

    async with Training() as training, Scripted() as server:
        async with at(server, training_url=f"http://127.0.0.1:{training.port}") as gateway:
            status, told = await gateway.client("GET", "/api/admin/training/status", key="theirs")
            assert (status, told) == (
                200,
                {"path": "/api/admin/training/status", "key": "Bearer theirs"},
            )
            status, _ = await gateway.client("POST", "/api/admin/training/trigger", {"force": True})
            assert training.requests[-1]["body"] == {"force": True}
    async with Scripted() as server, at(server, training_url="http://127.0.0.1:1") as gateway:
        assert (await gateway.client("GET", "/api/admin/training/status"))[0] == 503
