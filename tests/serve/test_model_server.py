"""The server on a real port, with the real `tiny`, asked by real clients."""

import asyncio
import json

import pytest
from serving_cases import checkpoint
from tests.support import Client, until

from upswing.gateway.core.answers import read_answer
from upswing.train.checkpoints.manifest import MANIFEST

pytestmark = pytest.mark.live
CHAT = "/v1/chat/completions"
LEAST = {"model": "tiny", "messages": [{"role": "user", "content": "zzz"}]}
LONG = {
    **LEAST,
    "messages": [{"role": "user", "content": "zzz" * 30}],
    "max_tokens": 1500,
    "temperature": 0,
}


async def stream_of(client, body):
    """The raw bytes of a streamed answer."""
    reader, writer = await asyncio.open_connection(client.host, client.port)
    raw = json.dumps({**body, "stream": True}).encode()
    writer.write(
        b"POST %s HTTP/1.1\r\nhost: x\r\nconnection: close\r\ncontent-length: %d\r\n\r\n%s"
        % (CHAT.encode(), len(raw), raw)
    )
    try:
        head = await reader.readuntil(b"\r\n\r\n")
        assert b"text/event-stream" in head
        return _unchunked(await reader.read())
    finally:
        writer.close()


def _unchunked(raw):
    body = b""
    while raw:
        size, _, rest = raw.partition(b"\r\n")
        body, raw = body + rest[: int(size, 16)], rest[int(size, 16) + 2 :]
    return body


async def metric(client, name):
    _, text = await client("GET", "/metrics")
    lines = [line for line in text.splitlines() if line.startswith(f"upswing_model_server_{name}")]
    return sum(float(line.rpartition(" ")[2]) for line in lines)


# --- answers -------------------------------------------------------------------------------------


async def test_an_answer_and_its_stream_say_the_same(server):
    body = {
        **LEAST,
        "max_tokens": 9,
        "seed": 4,
        "logprobs": True,
        "top_logprobs": 2,
        "return_token_ids": True,
    }
    status, whole = await server("POST", CHAT, body)
    assert status == 200
    streamed = read_answer([await stream_of(server, body)], stream=True)
    read = read_answer([json.dumps(whole).encode()], stream=False)
    assert (read.content, read.token_ids, read.prompt_token_ids, read.finish_reason) == (
        streamed.content,
        streamed.token_ids,
        streamed.prompt_token_ids,
        streamed.finish_reason,
    )
    assert read.logprobs == pytest.approx(streamed.logprobs, abs=1e-5)
    assert len(read.token_ids) == len(read.logprobs) == whole["usage"]["completion_tokens"]
    assert len(read.prompt_token_ids) == whole["usage"]["prompt_tokens"]


async def test_the_openai_client_understands_it(server):
    openai = pytest.importorskip("openai")
    url = f"http://{server.host}:{server.port}/v1"
    async with openai.AsyncOpenAI(base_url=url, api_key="-", max_retries=0) as client:
        assert [model.id async for model in client.models.list()] == ["tiny"]
        asked = {"model": "tiny", "messages": LEAST["messages"], "max_tokens": 6, "seed": 1}
        tools = [
            {"type": "function", "function": {"name": "add", "parameters": {"type": "object"}}}
        ]
        whole = await client.chat.completions.create(
            **asked, logprobs=True, top_logprobs=2, tools=tools
        )
        assert whole.usage.completion_tokens == len(whole.choices[0].logprobs.content)
        assert len(whole.choices[0].logprobs.content[0].top_logprobs) == 2
        stream = await client.chat.completions.create(
            **asked,
            stream=True,
            stream_options={"include_usage": True},
            extra_body={"return_token_ids": True},
        )
        chunks = [chunk async for chunk in stream]
        said = "".join(chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices)
        assert said == whole.choices[0].message.content
        assert chunks[-1].usage.completion_tokens == whole.usage.completion_tokens
        assert chunks[0].prompt_token_ids
        with pytest.raises(openai.NotFoundError):
            await client.chat.completions.create(**{**asked, "model": "gpt-5"})
        with pytest.raises(openai.BadRequestError):
            await client.chat.completions.create(**{**asked, "temperature": 9})


async def test_health_models_and_metrics_are_told(server):
    await server("POST", CHAT, {**LEAST, "max_tokens": 3})
    assert (await server("GET", "/health"))[1]["status"] == "ok"
    _, listed = await server("GET", "/v1/models")
    assert [model["id"] for model in listed["data"]] == ["tiny"]
    assert await metric(server, "requests_total") == 1
    assert await metric(server, 'tokens_total{kind="completion"') <= 3
    assert await metric(server, "running") == 0


# --- bad input -----------------------------------------------------------------------------------

BAD = [
    ("no JSON", "POST", CHAT, b"{", 400, "malformed"),
    ("not even text", "POST", CHAT, b"\xff" * 9, 400, "malformed"),
    ("a wrong type", "POST", CHAT, {**LEAST, "temperature": "hot"}, 400, "schema"),
    (
        "half a character",
        "POST",
        CHAT,
        b'{"model":"tiny","messages":[{"role":"user","content":"\\ud800"}]}',
        400,
        None,
    ),
    ("an unknown model", "POST", CHAT, {**LEAST, "model": "gpt\r\nx: y"}, 404, "model_not_found"),
    (
        "a prompt beyond the context",
        "POST",
        CHAT,
        {**LEAST, "messages": [{"role": "user", "content": "z" * 9000}]},
        400,
        "context_length_exceeded",
    ),
    ("megabytes", "POST", CHAT, b" " * (9 << 20), 413, "too_large"),
    ("another path", "GET", "/v2/models", b"", 404, "not_found"),
    ("another method", "GET", CHAT, b"", 405, "method_not_allowed"),
    (
        "an adapter that is not there",
        "POST",
        "/v1/load_lora_adapter",
        {"lora_name": "m", "lora_path": "/nowhere"},
        422,
        "schema",
    ),
    (
        "an adapter somewhere near",
        "POST",
        "/v1/load_lora_adapter",
        {"lora_name": "m", "lora_path": "../m"},
        422,
        "schema",
    ),
    (
        "an adapter with an odd name",
        "POST",
        "/v1/load_lora_adapter",
        {"lora_name": "m\n", "lora_path": "/m"},
        400,
        "schema",
    ),
    (
        "unloading what is not loaded",
        "POST",
        "/v1/unload_lora_adapter",
        {"lora_name": "m"},
        404,
        "model_not_found",
    ),
]


@pytest.fixture
async def refusals(server):
    """All of them, one after the other, on one server that stays well."""
    told = {}
    for name, method, path, body, *_ in BAD:
        told[name] = await server(method, path, body)
    status, _ = await server("POST", CHAT, {**LEAST, "max_tokens": 2})
    assert status == 200
    return told


async def test_bad_input_is_told_in_openais_words_and_does_no_harm(refusals):
    for name, _, _, _, status, code in BAD:
        got, body = refusals[name]
        assert got == status, (name, body)
        assert set(body["error"]) == {"message", "type", "param", "code"}, name
        assert code in {None, body["error"]["code"]}, (name, body)


async def test_when_too_many_are_under_way_the_next_is_asked_to_come_again(serve):
    async with Client(await serve(requests=1)) as client:
        first = asyncio.create_task(client("POST", CHAT, LONG))
        await until(lambda: _under_way(client, 1))
        reader, writer = await asyncio.open_connection(client.host, client.port)
        raw = json.dumps(LEAST).encode()
        writer.write(
            b"POST %s HTTP/1.1\r\nhost: x\r\ncontent-length: %d\r\n\r\n%s"
            % (CHAT.encode(), len(raw), raw)
        )
        head = await reader.readuntil(b"\r\n\r\n")
        writer.close()
        assert b" 429 " in head
        assert b"retry-after: 1" in head
        first.cancel()
        await until(lambda: _under_way(client, 0))
        assert (await client("POST", CHAT, {**LEAST, "max_tokens": 1}))[0] == 200
        assert await metric(client, 'requests_total{model="tiny",outcome="full"') == 1


async def _under_way(client, count):
    return (await client("GET", "/health"))[1]["under_way"] == count


# --- clients that leave --------------------------------------------------------------------------


@pytest.mark.parametrize("stream", [True, False])
async def test_when_the_client_hangs_up_the_model_stops(server, stream):
    reader, writer = await asyncio.open_connection(server.host, server.port)
    raw = json.dumps({**LONG, "stream": stream}).encode()
    writer.write(
        b"POST %s HTTP/1.1\r\nhost: x\r\ncontent-length: %d\r\n\r\n%s"
        % (CHAT.encode(), len(raw), raw)
    )
    if stream:
        await reader.readuntil(b'"content":"z"')
    else:
        await until(lambda: metric(server, "running "))
    writer.transport.abort()
    await until(lambda: _under_way(server, 0))

    async def stopped():
        return await metric(server, "cancelled_total") == 1 and not await metric(server, "running")

    await until(stopped)
    assert await metric(server, "steps_total") < 1400
    assert await metric(server, 'requests_total{model="tiny",outcome="cancelled"') == 1


# --- adapters ------------------------------------------------------------------------------------


async def test_adapters_are_loaded_named_and_unloaded_while_it_runs(server, tiny, tmp_path):
    path, _ = checkpoint(tiny, tmp_path, "v1", full=True)
    told = {"lora_name": "agent-zero-rl-v1", "lora_path": str(path)}
    for _ in range(2):
        assert (await server("POST", "/v1/load_lora_adapter", told))[0] == 200
    _, listed = await server("GET", "/v1/models")
    assert [(model["id"], model["parent"]) for model in listed["data"]] == [
        ("tiny", None),
        ("agent-zero-rl-v1", "tiny"),
    ]
    status, answer = await server(
        "POST", CHAT, {**LEAST, "model": "agent-zero-rl-v1", "max_tokens": 2}
    )
    assert (status, answer["model"]) == (200, "agent-zero-rl-v1")
    other = {**told, "lora_path": str(tmp_path)}
    assert (await server("POST", "/v1/load_lora_adapter", other))[0] == 409
    assert (await server("POST", "/v1/unload_lora_adapter", told))[0] == 200
    assert (await server("POST", CHAT, {**LEAST, "model": "agent-zero-rl-v1"}))[0] == 404


async def test_a_checkpoint_that_was_changed_is_not_served(server, tiny, tmp_path):
    path, _ = checkpoint(tiny, tmp_path, "v1", full=False)
    (path / MANIFEST).write_bytes((path / MANIFEST).read_bytes().replace(b"job-1", b"job-2"))
    told = {"lora_name": "m", "lora_path": str(path)}
    status, body = await server("POST", "/v1/load_lora_adapter", told)
    assert status == 422
    assert "seal is broken" in body["error"]["message"]


async def test_an_operators_doors_need_the_key_where_there_is_one(serve):
    load = ("POST", "/v1/load_lora_adapter", {"lora_name": "m", "lora_path": "/nowhere"})
    async with Client(await serve(key="secret")) as client:
        assert (await client(*load))[0] == 401
        assert (await client(*load, key="wrong"))[0] == 401
        assert (await client(*load, key="secret"))[0] == 422
        assert (await client("POST", CHAT, {**LEAST, "max_tokens": 1}))[0] == 200


async def test_without_a_key_paths_are_taken_from_this_machine_only(serve):
    load = ("POST", "/v1/load_lora_adapter", {"lora_name": "m", "lora_path": "/nowhere"})
    async with Client(await serve()) as client:
        assert (await client(*load, kind="text/plain"))[0] == 415
        page = ["Host: evil.example"]
        assert (await client(*load, headers=page))[0] == 403
    url = await serve(host="0.0.0.0")
    async with Client(url.replace("0.0.0.0", "127.0.0.1")) as client:
        assert (await client(*load))[0] == 403
