"""Ids of tasks, agents, sessions and users as they reach a trajectory: whole, and two stay two."""

import pytest

from tests.gateway.conftest import model, plan, started, user
from tests.gateway.scripted import Scripted
from tests.gateway.talking import raw, request
from upswing.dataset.task import short_id, task_key
from upswing.redact.identity import pseudonym_for

LONG = ["x" * 256, "x" * 257, "x" * 300, "x" * 3000, "x" * 299 + "y", "ü" * 3000]
IDS = ["order-1", "Kühe", "注文-7", "заказ", *LONG]
WORDS = {"x-task-id": "task_id", "x-agent-id": "agent_id", "x-session-id": "session_id"}


@pytest.fixture
async def gateway():
    async with Scripted() as server, started(plan(model("base", server.url))) as made:
        yield made


async def heard(gateway, place, *headers, **fields):
    """The trajectory of one request; headers are bytes."""
    body = {"model": "m", "messages": [user("hi")], **fields}
    whole = request(body, f"X-Episode-Id: e{place}", "X-Mark: here")
    answer = await raw(
        gateway, whole.replace(b"X-Mark: here", b"\r\n".join((b"X-Mark: here", *headers)))
    )
    assert answer.startswith(b"HTTP/1.1 200"), answer
    assert (await gateway.close(f"e{place}"))[0] == 200
    return gateway.recorder.trajectories[-1]


@pytest.mark.parametrize("coding", ["utf-8", "latin-1"])
@pytest.mark.parametrize("header", WORDS)
async def test_a_header_is_text_in_utf_8_or_else_in_latin_1(gateway, header, coding):
    made = await heard(gateway, 0, header.encode() + b": " + "Kühe".encode(coding))
    where = made["task_context"] if header == "x-task-id" else made
    assert where[WORDS[header]] == "Kühe"


async def test_a_user_is_named_in_utf_8_and_whole(gateway):
    made = await heard(gateway, 0, "x-user-id: Grün".encode())
    assert made["metadata"]["user_id"] == "Grün"
    made = await heard(gateway, 1, user="u" * 256)
    assert made["metadata"]["user_id"] == "u" * 256
    made = await heard(gateway, 2, user="u" * 300)
    assert made["metadata"]["user_id"] == pseudonym_for("user", "u" * 300)


@pytest.mark.parametrize("way", ["header", "metadata"])
async def test_different_task_ids_stay_different_however_long(gateway, way):
    found = []
    for place, name in enumerate(IDS):
        given = {"metadata": {"task_id": name}} if way == "metadata" else {}
        headers = (b"x-task-id: " + name.encode(),) if way == "header" else ()
        found.append(task_key(await heard(gateway, place, *headers, **given)))
    assert found == [short_id(name) for name in IDS]
    assert len(set(found)) == len(IDS)


async def test_a_task_id_that_is_a_number_is_one(gateway):
    assert task_key(await heard(gateway, 0, metadata={"task_id": 7})) == "7"


async def test_task_ids_that_hold_something_private_stay_two_tasks(gateway):
    addresses = [f"{name}@example.org" for name in ("ann", "bob")]
    found = [
        task_key(await heard(gateway, place, b"x-task-id: " + each.encode()))
        for place, each in enumerate(addresses)
    ]
    assert len(set(found)) == 2
    assert not any("@" in each for each in found)
