"""An error names the field that the client wrote, in the shape that the client reads."""

import json

import pytest

from tests.gateway.conftest import model, plan, started
from tests.gateway.scripted import Server
from tests.gateway.talking import raw, request
from tests.gateway.test_shapes import ASKED, ask

pytestmark = pytest.mark.live
PARAM = {
    "/v1/responses": {"max_tokens": "max_output_tokens", "messages": "input"},
    "/v1/messages": {"response_format": "output_config.format", "stop": "stop_sequences"},
    "/v1/chat/completions": {"max_tokens": "max_tokens", "messages": "messages"},
}


class Refusing(Server):
    """A labelled double: refuses each request with one sentence about a field of chat."""

    def __init__(self, field, status=400):
        super().__init__()
        self.field, self.status = field, status

    async def answer(self, request, reader, writer):
        message = f"Expected something else - at `$.{self.field}`."
        error = {"message": message, "type": "invalid_request_error", "code": "schema"}
        if self.status == 404:
            error |= {"message": "There is no such path.", "code": "not_found"}
        await self.send(writer, {"error": error | {"param": None}}, status=f"{self.status} Refused")


@pytest.mark.parametrize(
    ("path", "chat", "own"),
    [(path, chat, own) for path, names in PARAM.items() for chat, own in names.items()],
)
async def test_a_servers_refusal_names_the_clients_own_field(path, chat, own):
    async with Refusing(chat) as server, started(plan(model("base", server.url))) as gateway:
        status, _, told = await ask(gateway, path)
    assert status == 400
    assert f"`$.{own}`" in told["error"]["message"]
    if path != "/v1/messages":
        assert told["error"]["param"] in (own, None if path.endswith("completions") else own)


@pytest.mark.parametrize(
    ("path", "fields", "param"),
    [
        ("/v1/chat/completions", {"messages": 5}, "messages"),
        ("/v1/chat/completions", {"stream": "yes"}, "stream"),
        ("/v1/responses", {"input": 5}, "input"),
        ("/v1/responses", {"model": 5}, "model"),
        ("/v1/responses", {"previous_response_id": "r"}, "previous_response_id"),
    ],
)
async def test_a_refusal_of_the_gateways_own_says_which_field(path, fields, param):
    async with Refusing("x") as server, started(plan(model("base", server.url))) as gateway:
        status, _, told = await ask(gateway, path, **fields)
    assert (status, told["error"]["param"]) == (400, param)


async def test_a_system_prompt_of_anthropics_may_be_a_text_or_blocks():
    async with Refusing("x") as server, started(plan(model("base", server.url))) as gateway:
        status, _, told = await ask(gateway, "/v1/messages", system=5)
    assert status == 400
    assert "a text or a list" in told["error"]["message"]


@pytest.mark.parametrize(
    "path",
    ["/v1/models/nope", "/v1/messages/count_tokens", "/v1/messages/batches", "/nowhere"],
)
@pytest.mark.parametrize("method", ["GET", "POST", "DELETE"])
async def test_anthropics_clients_read_every_error_in_their_shape(path, method):
    async with Refusing("x") as server, started(plan(model("base", server.url))) as gateway:
        asked = request(b"", "anthropic-version: 2023-06-01", path=path)
        asked = asked.replace(b"POST ", f"{method} ".encode(), 1)
        told = json.loads((await raw(gateway, asked)).partition(b"\r\n\r\n")[2])
    assert told["type"] == "error"
    assert set(told["error"]) == {"type", "message"}


@pytest.mark.parametrize(
    ("path", "fields"), [("/v1/completions", {"prompt": "a"}), ("/v1/embeddings", {"input": "a"})]
)
async def test_a_path_that_the_models_server_lacks_is_said_to_be_its(path, fields):
    async with (
        Refusing("x", status=404) as server,
        started(plan(model("base", server.url))) as gateway,
    ):
        status, _, told = await ask(gateway, path, model="base", **fields)
    assert path not in ASKED
    assert status == 404
    assert told["error"]["message"].startswith(f"The model's server has no path {path}")
