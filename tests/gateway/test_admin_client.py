"""Does an operator's wish reach the loop, and is its answer understood?"""

import asyncio

import pytest

from tests.gateway.conftest import model, plan, started
from tests.gateway.scripted import Scripted, Server
from upswing.errors import Conflict, Misuse, Reason, Rejected, Transient
from upswing.gateway.admin_client import AdminClient

pytestmark = pytest.mark.live
KEY, TOKEN = "up_of-the-loop", "the-admins-own-token"


class Loop(Server):
    """A labelled double of the loop's HTTP address: says what it is told to say."""

    def __init__(self, said=None, status="200 OK"):
        super().__init__()
        self.said, self.status = {"model_id": "m"} if said is None else said, status

    async def answer(self, request, reader, writer):
        return await self.send(writer, self.said, status=self.status)

    @property
    def address(self):
        return f"http://127.0.0.1:{self.port}"


async def test_each_wish_goes_to_its_path_with_the_loops_key():
    async with Loop({"models": [{"model_id": "m"}]}) as loop:
        client = AdminClient(loop.address + "/", KEY)
        await client.register_model("m/1", "tiny", "s3://models/m")
        await client.set_traffic("m/1", 12.5)
        await client.model_metrics("m/1?x=y")
        assert await client.models() == [{"model_id": "m"}]
        told = [(r["method"], r["path"], r["body"]) for r in loop.requests]
        assert told == [
            (
                "POST",
                "/admin/models",
                {"model_id": "m/1", "base_model": "tiny", "checkpoint_path": "s3://models/m"},
            ),
            ("PUT", "/admin/traffic", {"model_id": "m/1", "traffic_percentage": 12.5}),
            ("GET", "/admin/models/m%2F1%3Fx%3Dy/metrics", None),
            ("GET", "/admin/models", None),
        ]
        assert {r["headers"]["authorization"] for r in loop.requests} == {f"Bearer {KEY}"}


@pytest.mark.parametrize(
    ("status", "said", "error", "sentence"),
    [
        ("404 Not Found", {"error": "not_found", "detail": "No model m."}, Misuse, "No model m."),
        ("422 Unprocessable", {"error": "schema", "detail": "Not so."}, Rejected, "Not so."),
        ("409 Conflict", {"error": "conflict", "detail": "Taken."}, Rejected, "Taken."),
        ("400 Bad Request", b"<html>", Rejected, "answers 400"),
        ("401 Unauthorized", {"detail": "Who?"}, Transient, "refuses the gateway's key"),
        ("403 Forbidden", b"", Transient, "refuses the gateway's key"),
        ("429 Too Many", {"detail": "Later."}, Transient, "Later."),
        ("503 Away", {"error": "unavailable", "detail": "Starting."}, Transient, "Starting."),
        ("500 Broken", b"\xff", Transient, "answers 500"),
        ("302 Found", b"", Transient, "answers 302"),
        ("200 OK", b"not json", Transient, "is not the loop"),
        ("200 OK", b"[]", Transient, "is not the loop"),
    ],
)
async def test_every_answer_has_its_meaning(status, said, error, sentence):
    async with Loop(said, status) as loop:
        with pytest.raises(error, match=sentence) as told:
            await AdminClient(loop.address, KEY).set_traffic("m", 5)
        assert KEY not in str(told.value)


async def test_a_reason_of_the_loops_is_kept():
    async with Loop({"error": "conflict", "detail": "Taken."}, "409 Conflict") as loop:
        with pytest.raises(Rejected) as told:
            await AdminClient(loop.address, KEY).register_model("m", "b", "p")
        assert told.value.reason is Reason.CONFLICT is Conflict("x").reason


async def test_a_loop_that_is_away_silent_or_endless_costs_a_bounded_time():
    with pytest.raises(Transient, match="not reachable"):
        await AdminClient("http://127.0.0.1:1", KEY).models()

    class Silent(Loop):
        async def answer(self, request, reader, writer):
            await reader.read(1)
            self.gone.set()
            return False

    async with Silent() as loop:
        with pytest.raises(Transient, match="did not answer"):
            await AdminClient(loop.address, KEY, seconds=0.2).models()
        await asyncio.wait_for(loop.gone.wait(), 300)
    async with Loop(b" " * (5 * 1024 * 1024)) as loop:
        with pytest.raises(Transient, match="too large"):
            await AdminClient(loop.address, KEY).models()


@pytest.mark.parametrize(
    ("url", "key"),
    [("loop:8100", KEY), ("ftp://loop", KEY), ("http://", KEY), ("http://loop", "a\r\nb: c")],
)
def test_an_address_or_key_that_cannot_be_used_is_refused(url, key):
    with pytest.raises(Misuse):
        AdminClient(url, key)


async def test_an_admin_at_the_gateway_hears_the_loops_own_words():
    async with Scripted() as server, Loop({"detail": "No model m.", "error": "x"}, "404 N") as loop:
        client = AdminClient(loop.address, KEY)
        made = plan(model("base", server.url))
        async with started(made, admin_client=client, admin_token=TOKEN) as gateway:
            share = {"model_id": "m", "traffic_percentage": 50}
            status, told = await gateway.client("PUT", "/admin/traffic", share, key=TOKEN)
            assert (status, told["error"]["message"]) == (404, "No model m.")
            loop.said, loop.status = {"model_id": "m", "traffic_percentage": 50}, "200 OK"
            assert await gateway.client("PUT", "/admin/traffic", share, key=TOKEN) == (200, share)
            assert TOKEN not in str(loop.requests)


# --- whose keys work -----------------------------------------------------------------------------

HASH = "ab" * 32


async def test_the_loops_keys_are_known_by_their_hash_and_name():
    async with Loop({"keys": [{"name": "ann", "sha256": HASH}]}) as loop:
        assert await AdminClient(loop.address, KEY).fetch_keys() == {bytes.fromhex(HASH): "ann"}
        assert [r["path"] for r in loop.requests] == ["/v1/keys/hashes"]


@pytest.mark.parametrize(
    "said",
    [
        {},
        {"keys": {}},
        {"keys": [{"name": "ann"}]},
        {"keys": [{"name": "", "sha256": HASH}]},
        {"keys": [{"name": "ann", "sha256": "short"}]},
    ],
)
async def test_a_list_of_keys_that_cannot_be_read_is_asked_for_again(said):
    async with Loop(said) as loop:
        with pytest.raises(Transient, match="list of keys"):
            await AdminClient(loop.address, KEY).fetch_keys()
