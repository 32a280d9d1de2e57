"""References to earlier answers: does a small request stay a small one?"""

import re
import tracemalloc

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.gateway.conftest import model, plan, started, user
from tests.gateway.scripted import Server, completion
from tests.gateway.test_shapes import ask
from upswing.contracts.traffic import Model
from upswing.errors import Reason, Rejected
from upswing.gateway.core.answer_references import MAX_REFERENCED_BYTES, AnswerReferences
from upswing.gateway.core.episode_table import Conversation, ExchangeRecord

MB = 1024 * 1024


class Episode:
    """A labelled double: an open episode with answers of these sizes."""

    def __init__(self, sizes):
        answer = b'{"choices":[{"message":{"content":"%s"}}]}'
        asked = Model("m", "http://127.0.0.1:1", "m")
        records = [
            ExchangeRecord(0, 0, b"", b"[]", [answer % (b"x" * size)], False, asked, f"t.{n}")
            for n, size in enumerate(sizes)
        ]
        self.conversations = [Conversation(records)]


@settings(max_examples=20, deadline=None)
@given(
    sizes=st.lists(st.sampled_from([10, 1000, MB, 6 * MB]), min_size=1, max_size=3),
    picks=st.lists(st.integers(0, 4), max_size=40),
)
def test_what_references_bring_together_is_bounded_and_right(sizes, picks):
    episode = Episode(sizes)
    references = AnswerReferences({"t": episode}.get)
    brought = 0
    for pick in picks:
        try:
            text = references.text(f"msg_t.{pick}")
        except Rejected:
            break
        assert (text is None) == (pick >= len(sizes))
        assert text is None or len(text) == sizes[pick]
        brought += len(text or "")
    assert brought <= MAX_REFERENCED_BYTES


def refer_often(references):
    for _ in range(10_000):
        references.text("msg_t.0")


def test_many_references_to_one_long_answer_take_no_memory():
    references = AnswerReferences({"t": Episode([MB])}.get)
    tracemalloc.start()
    with pytest.raises(Rejected, match="send the items themselves") as refused:
        refer_often(references)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert refused.value.reason is Reason.TOO_LARGE
    assert peak < 8 * MB


class Long(Server):
    """A labelled double: answers at length."""

    async def answer(self, request, reader, writer):
        return await self.send(writer, completion({"content": "x" * (MB // 4)}))


@pytest.mark.live
async def test_a_request_of_many_references_is_refused_and_one_is_answered():
    async with Long() as server, started(plan(model("base", server.url))) as gateway:
        told = (await ask(gateway, "/v1/responses"))[2]
        reference = {"type": "item_reference", "id": re.search(r"msg_[^']+", str(told))[0]}
        for count, expected in ((1, 200), (20, 200), (2000, 413)):
            items = [user("hi"), *[reference] * count]
            status = (await ask(gateway, "/v1/responses", input=items))[0]
            assert status == expected
