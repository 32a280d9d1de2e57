"""Chance gives each episode its model, whoever asks; a conversation keeps it."""

import itertools
from types import SimpleNamespace

import pytest
from nats.errors import OutboundBufferLimitError

from tests.gateway.conftest import assistant, model, plan, started, user
from tests.gateway.scripted import Scripted, chunk, completion, sse
from tests.gateway.talking import streamed
from upswing.gateway.core.episodes import hashes_after_answer, transcript_hashes
from upswing.infra.nats.traffic import Pins

pytestmark = pytest.mark.live
SIGNS = {
    "nothing": {},
    "user": {"user": "ann"},
    "session": {"metadata": {"session_id": "s1"}},
    "an id of the agent": {"headers": ("X-Agent-Id: a1",)},
}


class Board(dict):
    def put(self, key, model_id):
        self[key] = model_id


def alternating():
    return itertools.cycle([0.1, 0.9]).__next__


async def who(server, gateway, *messages, **fields):
    status, _ = await gateway.chat(*messages, **fields)
    assert status == 200
    return server.requests[-1]["body"]["model"]


@pytest.mark.parametrize("sign", SIGNS.values(), ids=SIGNS)
async def test_the_same_user_and_the_same_question_are_drawn_anew_each_time(sign):
    async with Scripted() as server:
        made = plan(model("base", server.url), (model("new", server.url), 0.5))
        async with started(made, draw=alternating(), pins=Board()) as gateway:
            found = [await who(server, gateway, user("the same"), **sign) for _ in range(6)]
    assert found == ["new", "base"] * 3


@pytest.mark.parametrize("sign", SIGNS.values(), ids=SIGNS)
@pytest.mark.parametrize("examples", [0, 2])
async def test_a_conversation_keeps_its_model_at_another_gateway(sign, examples):
    shown = [m for n in range(examples) for m in (user(f"example {n}"), assistant(f"solved {n}"))]
    board = Board()
    async with Scripted() as server:
        made = plan(model("base", server.url), (model("new", server.url), 0.5))
        talks = [[*shown, user(f"question {n}")] for n in range(4)]
        async with started(made, draw=alternating(), pins=board) as one:
            first = [await who(server, one, *talk, **sign) for talk in talks]
        assert first == ["new", "base", "new", "base"]
        for _ in range(2):  # and at a third, later in the conversation
            talks = [[*talk, assistant("hm"), user("go on")] for talk in talks]
            async with started(made, draw=lambda: pytest.fail("drawn again"), pins=board) as other:
                assert [await who(server, other, *talk, **sign) for talk in talks] == first


class Counting(Scripted):
    """Never says the same twice."""

    async def answer(self, request, reader, writer):
        self.said = getattr(self, "said", 0) + 1
        told = completion({"content": f"answer {self.said}"})
        if not request["body"].get("stream"):
            return await self.send(writer, told)
        pieces = [{"content": "answer "}, {"content": str(self.said)}]
        events = [chunk(each) for each in pieces] + [chunk({}, "stop")]
        return await self.stream(writer, [sse(*events)])


@pytest.mark.parametrize("sign", SIGNS.values(), ids=SIGNS)
@pytest.mark.parametrize("stream", [False, True])
async def test_conversations_that_open_alike_keep_their_models_at_another_gateway(sign, stream):
    board, count = Board(), 12
    async with Counting() as server:
        made = plan(model("base", server.url), (model("new", server.url), 0.5))
        async with started(made, draw=alternating(), pins=board) as one:
            first = []
            for n in range(1, count + 1):
                if stream:
                    body = {"model": "m", "messages": [user("Begin.")], "stream": True}
                    more = {k: v for k, v in sign.items() if k != "headers"}
                    await streamed(one, {**body, **more}, *sign.get("headers", ()))
                    first.append(server.requests[-1]["body"]["model"])
                else:
                    first.append(await who(server, one, user("Begin."), **sign))
                assert server.said == n
        assert first == ["new", "base"] * (count // 2)
        talks = [
            [user("Begin."), assistant(f"answer {n}"), user("go on")] for n in range(1, count + 1)
        ]
        async with started(made, draw=lambda: pytest.fail("drawn again"), pins=board) as other:
            assert [await who(server, other, *talk, **sign) for talk in talks] == first


async def test_only_what_was_drawn_is_evidence():
    board = Board()
    async with Scripted() as server:
        made = plan(model("base", server.url), (model("new", server.url), 0.25))
        async with started(made, draw=lambda: 0.1, pins=board) as one:
            await one.chat(user("hi"), headers=("X-Episode-Id: e1",))
            await one.close("e1")
        async with started(made, pins=board) as other:
            await other.chat(user("hi"), headers=("X-Episode-Id: e1",))
            await other.close("e1")
            assert other.gateway.counters.encode() == b"{}"
        (drawn,), (pinned,) = one.recorder.trajectories, other.recorder.trajectories
    assert drawn["metadata"]["gateway"]["rollout"] == "rollout-1"
    assert drawn["metadata"]["gateway"]["step"] == "0.25"
    assert pinned["metadata"]["gateway"]["rollout"] == ""
    assert pinned["metadata"]["model"] == "new"


async def test_where_users_keep_their_model_chance_chooses_for_the_user():
    async with Scripted() as server:
        made = plan(model("base", server.url), (model("new", server.url), 0.5))
        async with started(made, draw=alternating(), by_user=True) as gateway:
            found = {
                name: {await who(server, gateway, user(f"q{n}"), user=name) for n in range(4)}
                for name in map(str, range(12))
            }
            nameless = [await who(server, gateway, user(f"q{n}")) for n in range(2)]
            for n in range(2):
                await gateway.chat(user("x"), user=f"{n}", headers=(f"X-Episode-Id: e{n}",))
                await gateway.close(f"e{n}")
            units = [
                each["metadata"]["gateway"].get("unit") for each in gateway.recorder.trajectories
            ]
    assert all(len(models) == 1 for models in found.values())
    assert {model for models in found.values() for model in models} == {"base", "new"}
    assert nameless == ["new", "base"]
    assert units[-2:] == ["user", "user"]


def test_what_was_said_before_an_answer_is_what_was_asked():
    first = b'[{"role": "user", "content": "a"}]'
    later = b'[{"content":"a","role":"user"},{"role":"assistant","content":"b"},{"role":"user","content":"c"}]'
    assert transcript_hashes(later)[1][0] == transcript_hashes(first)[0]
    assert transcript_hashes(later)[1][1] in hashes_after_answer(first, "b")
    assert transcript_hashes(b"[1]") == ("", ())


async def test_a_system_prompt_that_tells_the_time_does_not_begin_a_conversation_anew():
    board = Board()
    async with Scripted() as server:
        made = plan(model("base", server.url), (model("new", server.url), 0.5))
        talk = [user("a question")]
        async with started(made, draw=lambda: 0.1, pins=board) as one:
            assert await who(server, one, {"role": "system", "content": "12:00"}, *talk) == "new"
        talk += [assistant("hm"), user("go on")]
        async with started(made, draw=lambda: 0.9, pins=board) as other:
            assert await who(server, other, {"role": "system", "content": "12:01"}, *talk) == "new"


async def test_a_client_that_echoes_who_answered_asks_for_nobody():
    async with Scripted() as server:
        made = plan(model("base", server.url), (model("new", server.url), 0.5))
        async with started(made, draw=alternating()) as gateway:
            for episode in ("e1", "e2"):
                first = await who(
                    server, gateway, user("hi"), headers=(f"X-Episode-Id: {episode}",)
                )
                body = {"model": first, "messages": [user("more")]}
                await gateway.client(
                    "POST", "/v1/chat/completions", body, headers=(f"X-Episode-Id: {episode}",)
                )
                await gateway.close(episode)
            told = [each["metadata"]["gateway"] for each in gateway.recorder.trajectories]
    assert [each["named"] for each in told] == [False, False]
    assert [each["rollout"] for each in told] == ["rollout-1"] * 2


async def test_an_id_that_is_used_again_keeps_its_model_only_for_its_time():
    class Counted(Board):
        puts = 0

        def put(self, key, model_id):
            self.puts += 1
            super().put(key, model_id)

    board = Counted()
    async with Scripted() as server:
        made = plan(model("base", server.url), (model("new", server.url), 0.5))
        async with started(made, draw=lambda: 0.1, pins=board) as gateway:
            for _ in range(5):
                await gateway.chat(user("hi"), headers=("X-Episode-Id: worker-1",))
                await gateway.close("worker-1")
    assert board.puts == 1


async def test_a_segment_is_what_was_told_at_first():
    async with Scripted() as server, started(plan(model("base", server.url))) as gateway:
        await gateway.chat(user("hi"), headers=("X-Episode-Id: e1",), metadata={"segment": "eu"})
        await gateway.close("e1", {"metadata": {"segment": "easy", "domain": "coding"}})
        (kept,) = gateway.recorder.trajectories
    assert kept["metadata"]["segment"] == "eu"
    assert "domain" not in kept["metadata"]


@pytest.mark.parametrize(
    "flag", [{"is_evaluation": True}, {"infra_error": True}, {"purpose": "curriculum"}]
)
@pytest.mark.parametrize(("key", "late"), [("gw", True), ("ann", False)])
async def test_whether_an_episode_counts_is_not_for_a_client_to_say_when_it_knows_who_answered(
    flag, key, late
):
    (name,) = flag
    keys = {"gw": "agent", "ann": "ann"}
    async with (
        Scripted() as server,
        started(plan(model("base", server.url)), client_keys=keys) as gateway,
    ):
        await gateway.chat(headers=("X-Episode-Id: e1",), key=key)
        status, _ = await gateway.client(
            "POST", "/v1/episodes/e1/close", {"metadata": flag}, key=key
        )
        assert status == (200 if late else 409)
        await gateway.chat(headers=("X-Episode-Id: e2",), key=key, metadata=flag)
        await gateway.client("POST", "/v1/episodes/e2/close", b"", key=key)
        first, second = (made["metadata"] for made in gateway.recorder.trajectories)
    assert (name in first, name in second) == (late, True)


def test_long_and_odd_conversations_are_looked_at_in_part():
    many = b"[" + b",".join([b'{"role":"assistant"}'] * 50_000) + b"]"
    assert len(transcript_hashes(many)[1]) <= 2 * 64


async def test_an_assignment_that_could_not_be_published_is_published_with_the_next():
    """A client whose buffer is full refuses to publish; that is hard to bring about with a real one."""

    class FullClient:
        published, refuses = [], True

        async def publish(self, subject, payload):
            if self.refuses:
                raise OutboundBufferLimitError
            self.published.append((subject.rpartition(".")[2], payload))

    pins, client = Pins(), FullClient()
    bus = SimpleNamespace(client=client)
    pins.put("a", "one")
    await pins.send_pending(bus)
    assert client.published == []
    client.refuses = False
    pins.put("b", "two")
    await pins.send_pending(bus)
    assert client.published == [("a", b"one"), ("b", b"two")]
