"""A thousand bad requests of each of thirty kinds in every shape: is each answered, and the next one, too?"""

import copy
import json
import random
import re

import pytest

from tests.gateway.conftest import model, plan, started, user
from tests.gateway.scripted import Server, completion
from tests.storms import sized
from tests.storms.poisons import KINDS, poison
from upswing.errors import Rejected
from upswing.gateway.core.chat_request import read_chat_request
from upswing.gateway.core.shapes import ClientShape, read_shaped_request

FUNCTION = {"name": "f", "parameters": {"type": "object", "properties": {"n": {"type": "integer"}}}}
EVERY_KIND = {"start_timestamp": "", "turns": [{}]}
"""What some kinds of poison change."""
CHAT = {
    "model": "base",
    "messages": [
        {"role": "system", "content": "Be brief."},
        user([{"type": "text", "text": "hi"}]),
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [
                {"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}}
            ],
        },
        {"role": "tool", "tool_call_id": "c", "content": "1"},
    ],
    "tools": [{"type": "function", "function": FUNCTION}],
    "temperature": 0.5,
    "user": "ann",
    "metadata": {"session_id": "s", "environment": {"n": 1}},
}
ASKED = {
    ClientShape.CHAT: CHAT,
    ClientShape.RESPONSES: {
        "model": "base",
        "instructions": "Be brief.",
        "input": [
            user([{"type": "input_text", "text": "hi"}]),
            {"type": "function_call", "call_id": "c", "name": "f", "arguments": "{}"},
            {"type": "function_call_output", "call_id": "c", "output": "1"},
            {"type": "reasoning", "id": "rs_1", "summary": []},
        ],
        "tools": [{"type": "function", **FUNCTION}],
        "text": {"format": {"type": "text"}, "verbosity": "low"},
        "reasoning": {"effort": "low"},
        "include": ["message.output_text.logprobs"],
        "max_output_tokens": 9,
        "metadata": CHAT["metadata"],
    },
    ClientShape.MESSAGES: {
        "model": "base",
        "max_tokens": 9,
        "system": [{"type": "text", "text": "Be brief."}],
        "messages": [
            user([{"type": "text", "text": "hi"}]),
            {
                "role": "assistant",
                "content": [{"type": "tool_use", "id": "c", "name": "f", "input": {"n": 1}}],
            },
            user([{"type": "tool_result", "tool_use_id": "c", "content": "1"}]),
        ],
        "tools": [{"name": "f", "input_schema": FUNCTION["parameters"]}],
        "tool_choice": {"type": "auto"},
        "stop_sequences": ["."],
        "thinking": {"type": "disabled"},
        "metadata": {"user_id": "ann"},
    },
}
OTHER = {
    "/v1/episodes/e1/close": {"outcome": {"status": "completed", "score": 0.5}, "metadata": {}},
    "/v1/feedback": {"metric_name": "solved", "value": True, "episode_id": "e1", "tags": {"a": 1}},
    "/v1/completions": {"model": "base", "prompt": ["hi"], "max_tokens": 2},
    "/v1/embeddings": {"model": "base", "input": ["hi"]},
}
"""Where a body is read that is no conversation."""


class Takes(Server):
    """A labelled double: a server that reads nothing of what it is sent, and answers it."""

    @staticmethod
    async def _read(reader):
        head = await reader.readuntil(b"\r\n\r\n")
        await reader.readexactly(int(re.search(rb"(?i)content-length: (\d+)", head)[1]))
        return head

    async def answer(self, request, reader, writer):
        return await self.send(writer, {**completion({"content": "yes"}), "data": []})


@sized("each", 8, 1000)
@pytest.mark.parametrize("shape", ASKED)
@pytest.mark.parametrize("kind", KINDS)
def test_a_request_of_any_shape_is_read_or_refused_with_a_sentence(kind, shape, each, trials):
    chance, read, reasons = random.Random(f"{kind} {shape} {each}"), 0, set()
    for _ in range(each):
        body = poison(kind, {**ASKED[shape], **EVERY_KIND}, chance)
        try:
            read_chat_request(read_shaped_request(shape, body, {}).chat_body)
            read += 1
        except Rejected as refused:
            reasons.add((refused.reason, refused.detail))
        trials.add()
    assert all(reason and sentence for reason, sentence in reasons)
    assert read < each or kind not in {"noise", "cut"}


def test_what_is_poisoned_is_sound_without_it():
    for shape, example in ASKED.items():
        body = json.dumps({**example, **EVERY_KIND}).encode()
        assert read_chat_request(read_shaped_request(shape, body, {}).chat_body).model == "base"


@pytest.mark.live
@sized("each", 2, 100)
async def test_a_gateway_answers_all_of_it_and_goes_on(each, trials):
    chance = random.Random(each)
    doors = {f"/v1{shape.path}": example for shape, example in ASKED.items()} | OTHER
    async with Takes() as server, started(plan(model("base", server.url))) as gateway:
        for kind in KINDS:
            for path, example in doors.items():
                for number in range(each):
                    body = poison(kind, {**copy.deepcopy(example), **EVERY_KIND}, chance)
                    header = () if number % 2 else ("X-Episode-Id: e1",)
                    status, told = await gateway.client("POST", path, body, headers=header)
                    assert status < 500, (kind, path, body, told)
                    trials.add()
            name = f"after {kind}".replace(" ", "-")
            status, _ = await gateway.chat(user(name), headers=(f"X-Episode-Id: {name}",))
            assert status == 200
            assert (await gateway.close(name))[0] == 200
    sound = {made["metadata"]["episode_id"] for made in gateway.recorder.trajectories}
    assert {f"after {kind}".replace(" ", "-") for kind in KINDS} <= sound
