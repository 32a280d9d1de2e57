"""A request that its model did not answer is kept with its episode: who failed, how, and how much was asked for."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.gateway.conftest import lease, model, plan, started, user
from tests.gateway.scripted import Misbehaving, Scripted
from tests.support import until
from upswing.contracts import Trajectory, decode
from upswing.gateway.core.episode_table import EpisodeTable, OpenEpisode, UnansweredRequest
from upswing.gateway.core.episodes import IdentitySource
from upswing.gateway.core.fault_records import MOST_FAULTS, FaultRecord, fault_kind
from upswing.gateway.core.faults import Fault
from upswing.gateway.core.serving_policy import ServingPolicy

FAILING = {
    "error_500": "status",
    "error_in_200": "out_of_memory",
    "html": "garbage",
    "never_answers": "stale",
    "half": "cut_short",
}


async def recorded(gateway, count=1):
    await gateway.gateway.recorder.flush(60)
    await until(lambda: len(gateway.recorder.trajectories) == count, 60)
    for tree in gateway.recorder.trajectories:
        decode(Trajectory, json.dumps(tree).encode())  # what is published is a trajectory.v1
    return gateway.recorder.trajectories


@pytest.mark.parametrize(("how", "kind"), FAILING.items())
async def test_an_episode_in_which_nothing_was_answered_is_recorded_as_one_turn(how, kind):
    async with Misbehaving(how) as server, started(plan(model("base", server.url))) as gateway:
        status, _ = await gateway.chat(
            {"role": "system", "content": "Be brief."},
            user("a long story"),
            metadata={"domain": "coding"},
            user="ann",
        )
        assert status >= 500
        (made,) = await recorded(gateway)
    (turn,) = made["turns"]
    assert turn["observation"]["content"] == "a long story"
    assert (turn["result"]["success"], turn["result"]["error"]) == (
        False,
        f"No model answered: {kind}.",
    )
    assert made["task_context"]["instructions"] == "Be brief."
    about = made["metadata"]
    assert (about["infra_error"], about["model"], about["domain"]) == (True, "base", "coding")
    (error,) = about["gateway"]["errors"]
    assert (error["model"], error["kind"]) == ("base", kind)
    assert about["gateway"]["prompt_bytes"] == error["prompt_bytes"] > len("Be brief.a long story")
    assert about["gateway"]["failures"] == 1


async def test_a_candidate_that_fails_is_named_though_the_baseline_answered():
    async with Scripted() as good, Misbehaving("error_in_200") as bad:
        made_plan = plan(
            model("base", good.url), (model("new", bad.url), 1.0), lease_until=lease(600)
        )
        async with started(made_plan) as gateway:
            status, _ = await gateway.chat(user("x" * 5000))
            assert status == 200
            (made,) = await recorded(gateway)
    about = made["metadata"]
    assert (about["model"], about["mixed_models"]) == ("new", ["new", "base"])
    (error,) = about["gateway"]["errors"]
    assert (error["model"], error["kind"]) == ("new", "out_of_memory")
    assert error["prompt_bytes"] > 5000


async def test_without_fallback_the_candidates_failure_is_recorded_too():
    async with Scripted() as good, Misbehaving("error_500") as bad:
        made_plan = plan(
            model("base", good.url), (model("new", bad.url), 1.0), lease_until=lease(600)
        )
        async with started(made_plan, policy=ServingPolicy(fallback=False)) as gateway:
            assert (await gateway.chat(user("hi")))[0] == 500
            (made,) = await recorded(gateway)
    assert made["metadata"]["model"] == "new"
    assert made["metadata"]["gateway"]["errors"][0]["status"] == 500


async def test_an_error_in_a_stream_says_what_it_was():
    async with Misbehaving("error_in_stream") as server:
        async with started(plan(model("base", server.url))) as gateway:
            status, _ = await gateway.chat(user("hi"), stream=True)
            assert status == 502
            (made,) = await recorded(gateway)
    assert made["metadata"]["gateway"]["errors"][0]["kind"] == "out_of_memory"


async def test_what_was_answered_has_its_finish_reason_its_size_and_its_first_token():
    async with Scripted() as server, started(plan(model("base", server.url))) as gateway:
        await gateway.client(
            "POST",
            "/v1/chat/completions",
            {"model": "m", "messages": [user("one")]},
        )
        await gateway.gateway.recorder.flush(60)
        whole = gateway.recorder.trajectories[0]["metadata"]["gateway"]
        assert whole["finish_reasons"] == {"stop": 1}
        assert whole["prompt_bytes"] == len(json.dumps([user("one")]))
        assert "first_token_ms" not in whole
        assert "errors" not in whole
        reader, writer = await connected(
            gateway, {"model": "m", "messages": [user("two")], "stream": True}
        )
        await reader.read()
        writer.close()
        await gateway.gateway.recorder.flush(60)
        streamed = gateway.recorder.trajectories[1]["metadata"]
        assert 0 <= streamed["gateway"]["first_token_ms"] <= streamed["latency_ms"][0]


async def connected(gateway, body):
    from tests.gateway.talking import connect, request

    reader, writer = await connect(gateway)
    writer.write(request(body, close=True))
    await writer.drain()
    return reader, writer


async def test_a_request_that_is_itself_wrong_or_given_up_is_no_failure_of_a_model():
    async with Misbehaving("refuses") as server:
        async with started(plan(model("base", server.url))) as gateway:
            assert (await gateway.chat(user("hi")))[0] == 400
            await gateway.gateway.recorder.flush(60)
            assert gateway.recorder.trajectories == []
            assert gateway.gateway.recorder.counts.empty == 1


async def test_after_a_second_try_only_the_answer_is_a_turn():
    async with Misbehaving("error_500") as server:
        async with started(plan(model("base", server.url))) as gateway:
            await gateway.chat(user("one"))
            server.how = "well"
            assert (await gateway.chat(user("one")))[0] == 200
            (made,) = await recorded(gateway)
    assert [turn["action"]["raw_response"] for turn in made["turns"]] == ["ok"]
    assert [each["kind"] for each in made["metadata"]["gateway"]["errors"]] == ["status"]
    assert "infra_error" not in made["metadata"]


async def test_whoever_goes_on_asking_a_dead_model_adds_nothing():
    async with Misbehaving("error_500") as server:
        async with started(plan(model("base", server.url))) as gateway:
            for _ in range(MOST_FAULTS + 5):
                await gateway.chat(user("one"), headers=("X-Episode-Id: e",))
            (made,) = await recorded(gateway)
    assert len(made["metadata"]["gateway"]["errors"]) == MOST_FAULTS
    assert made["metadata"]["gateway"]["failures"] == MOST_FAULTS + 5


SECRET = "sk-proj-" + "Ab1" * 16


async def test_what_is_kept_of_a_failed_request_is_redacted_and_a_servers_words_are_not_kept():
    class Quoting(Misbehaving):
        async def quotes(self, request, reader, writer):
            words = request["body"]["messages"][0]["content"]
            error = {"error": {"message": f"out of memory for: {words}"}}
            return await self.send(writer, error, status="500 Internal Server Error")

    async with Quoting("quotes") as server, started(plan(model("base", server.url))) as gateway:
        await gateway.chat(user(f"my key is {SECRET}"))
        (made,) = await recorded(gateway)
    assert SECRET not in json.dumps(made)
    assert made["metadata"]["gateway"]["errors"][0]["kind"] == "out_of_memory"


@pytest.mark.parametrize(
    ("fault", "status", "message", "kind"),
    [
        (Fault.STATUS, 500, "torch.OutOfMemoryError: CUDA out of memory", "out_of_memory"),
        (Fault.STATUS, 500, "Failed to allocate KV cache", "out_of_memory"),
        (Fault.STATUS, 400, "This model's maximum context length is 4096 tokens", "context_length"),
        (Fault.STATUS, 400, "This model's context is 512 tokens, and …", "context_length"),
        (Fault.STATUS, 429, "", "busy"),
        (Fault.ERROR_BODY, 0, "Rate limit reached", "busy"),
        (
            Fault.STATUS,
            400,
            "triggering our content management policy: content_filter",
            "content_filter",
        ),
        (Fault.STATUS, 500, "broken", "status"),
        (Fault.SLOW, 0, "", "slow"),
        (Fault.STATUS, 500, "the room is full", "status"),
    ],
)
def test_a_servers_words_become_a_kind(fault, status, message, kind):
    assert fault_kind(fault, status, message) == kind


@given(st.sampled_from(list(Fault)), st.integers(0, 599), st.text())
def test_a_kind_is_one_of_a_few_words(fault, status, message):
    known = {"out_of_memory", "context_length", "content_filter", "busy"}
    assert fault_kind(fault, status, message) in known | {each.info.code for each in Fault}


def opened(number):
    return OpenEpisode(
        "key",
        IdentitySource.GIVEN,
        "g",
        f"e{number}",
        f"t{number}",
        0.0,
        0.0,
        "a",
        "s",
        None,
        None,
        b"{}",
    )


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 5000)), max_size=40))
def test_what_unanswered_requests_take_is_counted_and_given_back(asked):
    table = EpisodeTable(max_episodes=100, max_bytes=40_000, idle_seconds=10.0)
    episodes = [opened(number) for number in range(4)]
    for each in episodes:
        table.open(each)
    empty = table.held_bytes
    for number, size in asked:
        table.add_unanswered(episodes[number], UnansweredRequest(b"x" * size, 0.0, 1.0))
        kept = sum(len(e.unanswered.body) for e in episodes if e.unanswered)
        assert table.held_bytes == empty + kept
    for each in episodes:
        table.remove(each)
    assert table.held_bytes == 0


def test_an_episode_keeps_its_first_faults():
    episode = opened(0)
    for number in range(2 * MOST_FAULTS):
        episode.note_fault(FaultRecord("m", f"k{number}", 0.0, 1.0, 10))
    assert [each.kind for each in episode.faults] == [f"k{n}" for n in range(MOST_FAULTS)]
