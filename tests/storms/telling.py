"""How would somebody tell a secret at a gateway, at the page, to an assistant, or in any field of the API?"""

import time
import uuid
from urllib.parse import quote, urlencode

import httpx
from mcp.client import Client as Assistant

from tests.live.test_secrets import pieces
from tests.storms.doors import ENDLESS, fill, operations
from tests.support import close_episode
from upswing.integrations.mcp.access import open_access
from upswing.integrations.mcp.confirmation import ConfirmationCheck
from upswing.integrations.mcp.server import AssistantServer
from upswing.integrations.operations.catalog import OPERATIONS
from upswing.integrations.operations.operation import schema_of

ANSWERED = {200, 201, 202, 204, 303, 400, 401, 403, 404, 405, 409, 413, 415, 422, 429, 431, 503}
"""Whatever is answered to whoever told it, also by who is busy. 500 is not among them."""


async def say(client, method, path, body=b"", **options):
    status, answer = await client(method, path, body, **options)
    assert status in ANSWERED, (method, path, body, status, answer)
    return answer


# ── a gateway ────────────────────────────────────────────────────────────────────────────────────


def _user(content):
    return {"role": "user", "content": content}


CHAT, RESPONSES, MESSAGES = "/v1/chat/completions", "/v1/responses", "/v1/messages"


def conversation(path, texts):
    """What a client of this shape sends when its user and its tool said this."""
    first, *rest = texts
    rest = rest or texts
    match path:
        case "/v1/chat/completions":
            call = {"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}}
            told = [{"role": "tool", "tool_call_id": "c", "content": text} for text in rest]
            asks = {"role": "assistant", "content": None, "tool_calls": [call]}
            return {"model": "m", "messages": [_user(first), asks, *told]}
        case "/v1/responses":
            call = {"type": "function_call", "call_id": "c", "name": "f", "arguments": "{}"}
            told = [
                {"type": "function_call_output", "call_id": "c", "output": text} for text in rest
            ]
            return {"model": "m", "input": [_user(first), call, *told]}
        case _:
            call = {"type": "tool_use", "id": "c", "name": "f", "input": {}}
            told = [{"type": "tool_result", "tool_use_id": "c", "content": text} for text in rest]
            asks = {"role": "assistant", "content": [call]}
            return {"model": "m", "max_tokens": 9, "messages": [_user(first), asks, _user(told)]}


SHAPES = (CHAT, RESPONSES, MESSAGES)
FIELDS = {
    "model": lambda v: {"model": v},
    "user": lambda v: {"user": v},
    "metadata": lambda v: {
        "metadata": {v: v, "user_id": v, "session_id": v, "environment": {v: v}}
    },
    "name of a field": lambda v: {v: v},
    "stop": lambda v: {"stop": [v], "stop_sequences": [v]},
    "a tool": lambda v: {
        "tools": [
            {"type": "function", "name": v, "function": {"name": v, "parameters": {}}},
            {"name": v, "description": v, "input_schema": {"type": "object"}},
        ]
    },
    "system": lambda v: {"system": v, "instructions": v},
    "reference": lambda v: {"previous_response_id": v},
    "not a body": lambda v: {"messages": v, "input": {v: v}},
}
EPISODE_HEADERS = ("X-Episode-Id", "X-Session-Id", "X-Agent-Id", "User-Agent", "anthropic-version")


async def at_a_gateway(gateway, plants):
    """In texts of every shape; the model repeats them, and the episode is recorded.

    What is cut comes in results of one tool, as in trajectories. Cut between speakers it is not.
    """
    for path in SHAPES:
        for value, form in plants(f"gateway {path}"):
            name = str(uuid.uuid4())
            texts = pieces(value, form)
            body = conversation(path, texts if len(texts) == 1 else ["go on", *texts])
            await say(gateway, "POST", path, body, headers=(f"X-Episode-Id: {name}",))
            assert (await close_episode(gateway, name))[0] == 200
    for value, form in plants("feedback at a gateway"):
        first, *rest = pieces(value, form)
        word = {"type": "comment", "episode_id": "e", "comment": first, "metadata": {"more": rest}}
        await say(gateway, "POST", "/v1/feedback", word)


async def in_names_at_a_gateway(gateway, names):
    for path in SHAPES:
        for field, change in FIELDS.items():
            for value in names(f"gateway {path}, {field}"):
                await say(gateway, "POST", path, conversation(path, ["hi"]) | change(value))
        for header in EPISODE_HEADERS:
            for value in names(f"gateway {path}, header {header}"):
                line = (f"{header}: {value}",)
                await say(gateway, "POST", path, conversation(path, ["hi"]), headers=line)
                await say(gateway, "POST", f"/v1/episodes/{quote(value, safe='')}/close")
    await _elsewhere_at_a_gateway(gateway, names)


async def _elsewhere_at_a_gateway(gateway, names):
    for value in names("gateway, wrong key"):
        await say(gateway, "POST", CHAT, conversation(CHAT, ["hi"]), key=value)
    for path in ("/{}", "/v1/models/{}", "/admin/models/{}/metrics", "/v1/responses/{}"):
        for value in names(f"gateway, path {path}"):
            await say(gateway, "GET", path.format(quote(value, safe="")))
    for value in names("gateway, outcome"):
        outcome = {"outcome": {"status": value, "source": value, value: 1}, "metadata": {value: 1}}
        await say(gateway, "POST", "/v1/episodes/e-1/close", outcome)
    for value in names("gateway, feedback"):
        word = {"metric_name": value, "value": value, "episode_id": value, "tags": {value: value}}
        await say(gateway, "POST", "/feedback", word)


# ── every path and every field that the API's document names ─────────────────────────────────────


async def in_every_path_and_query(client, document, names):
    for method, path, inside, behind in operations(document, "GET", "POST", "PUT", "DELETE"):
        if path in ENDLESS:
            continue
        for value in names(f"{method} {path}") if inside else ():
            await say(client, method, fill(path, inside, lambda _, v=value: v), b"")
        for name in behind:
            for value in names(f"{method} {path}?{name}="):
                place = fill(path, inside, lambda _: "x")
                await say(client, method, f"{place}?{urlencode({name: value})}")


async def in_every_field(client, document, names):
    """Each alone, and as the name of one that there is not."""
    for method, path, inside, _ in operations(document, "POST", "PUT"):
        place = fill(path, inside, lambda _: "x")
        for field in (*_fields(document, method, path), None):
            for value in names(f"{method} {path}, {field or 'another field'}"):
                await say(client, method, place, {field or value: value})


def _fields(document, method, path):
    taken = document["paths"][path][method.lower()].get("requestBody", {}).get("content", {})
    schema = taken.get("application/json", {}).get("schema", {})
    if "$ref" in schema:
        schema = document["components"]["schemas"][schema["$ref"].rpartition("/")[2]]
    return sorted(schema.get("properties", ()))


# ── the page, and an assistant ───────────────────────────────────────────────────────────────────


async def at_the_page(url, names):
    """Whoever has no session, and whoever tries to get one."""
    own = {"Origin": url, "Accept": "text/html"}
    async with httpx.AsyncClient(base_url=url, headers=own, timeout=300) as page:

        async def ask(method, path, **options):
            answer = await page.request(method, path, **options)
            assert answer.status_code in ANSWERED, (path, answer)

        for value in names("key at the page"):
            await ask("POST", "/login", data={"key": value, "next": f"/{value}"})
        for path in ("/{}", "/login?next=/{}", "/static/{}", "/trajectories/{}", "/session?x={}"):
            for value in names(f"page, {path}"):
                await ask("GET", path.format(quote(value, safe="")))
        for header in ("Cookie", "Referer", "User-Agent"):
            for value in names(f"page, header {header}"):
                await ask("GET", "/models", headers={header: value})


async def to_an_assistant(data, names):
    """As arguments of every tool; what a person has to confirm is asked for, and not done."""

    async def access_of(_):
        return await open_access(data, {})

    server = AssistantServer(access_of, ConfirmationCheck(time.time), believe_forms=True).build()
    async with Assistant(server) as client:
        for operation in OPERATIONS:
            schema = schema_of(operation.arguments)
            for argument in schema["properties"]:
                for value in names(f"assistant, {operation.name} {argument}"):
                    wanted = dict.fromkeys([*schema.get("required", ()), argument], value)
                    await client.call_tool(operation.name, wanted)
