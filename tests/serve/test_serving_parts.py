"""The pure parts: spelling, sampling, who joins, and how an answer looks."""

import json
from collections import Counter
from random import Random

import torch
from hypothesis import given
from hypothesis import strategies as st

from upswing.serve.core.chat_request import parse_chat_request
from upswing.serve.core.chat_response import CompletionInfo, StreamEncoder, completion_body
from upswing.serve.core.detokenizer import Detokenizer
from upswing.serve.core.engine import TokenChunk
from upswing.serve.core.sampling import SamplingParams, logprobs, sample_tokens, top_tokens
from upswing.serve.core.scheduler import select_for_batch
from upswing.serve.core.token_cache import TokenCache
from upswing.worlds.generate import _sample_by_inversion

WORDS = st.lists(
    st.sampled_from(["a", "b", "é", "😀", "\n", " the", "ST", "OP", "STOP"]), max_size=12
)


def in_bytes(ids):
    return bytes(ids).decode(errors="replace")


# --- spelling ------------------------------------------------------------------------------------


@given(st.binary(max_size=40))
def test_what_is_shown_piece_by_piece_is_what_the_tokens_spell(drawn):
    spelling = Detokenizer(in_bytes)
    shown = [spelling.add(token) for token in drawn]
    assert "".join(shown) + spelling.finish() == in_bytes(drawn)


@given(st.text(max_size=20))
def test_whole_characters_are_shown_as_soon_as_they_are_whole(text):
    spelling, shown, drawn = Detokenizer(in_bytes), "", text.replace("\ufffd", "").encode()
    for at, token in enumerate(drawn, 1):
        shown += spelling.add(token)
        assert shown == drawn[:at].decode(errors="ignore")


@given(WORDS, st.lists(st.sampled_from(["STOP", "b", "😀a", "\n"]), max_size=2))
def test_nothing_from_a_stop_text_on_is_shown(words, stops):
    text = "".join(words)
    spelling, shown = Detokenizer(in_bytes, stops), ""
    for token in text.encode():
        shown += spelling.add(token)
        if spelling.stopped:
            break
    shown += spelling.finish()
    ends = [at for stop in stops if (at := text.find(stop)) >= 0]
    assert spelling.stopped == bool(ends)
    assert shown == (text[: min(ends)] if ends else text)


# --- sampling ------------------------------------------------------------------------------------


def test_a_token_is_drawn_as_the_worlds_draw_it():
    logps = logprobs(torch.randn(64, 300, generator=torch.Generator().manual_seed(0)))
    chances = [Random(row).random() for row in range(64)]
    drawn = sample_tokens(logps, [SamplingParams(0.7)] * 64, chances)
    assert drawn == _sample_by_inversion(logps / 0.7, chances).tolist()


def test_rows_with_different_tastes_do_not_disturb_each_other():
    logps = logprobs(torch.randn(3, 50, generator=torch.Generator().manual_seed(1)))
    tastes, chances = (
        [SamplingParams(0.0), SamplingParams(1.3), SamplingParams(0.5, 0.3)],
        [0.9, 0.4, 0.99],
    )
    together = sample_tokens(logps, tastes, chances)
    alone = [
        sample_tokens(logps[row : row + 1], [tastes[row]], [chances[row]])[0] for row in range(3)
    ]
    assert together == alone
    assert together[0] == int(logps[0].argmax())


@given(st.floats(0.01, 1.0), st.floats(0.0, 1.0, exclude_max=True), st.integers(0, 1000))
def test_only_the_likeliest_tokens_are_drawn_under_top_p(top_p, chance, seed):
    logps = logprobs(torch.randn(1, 20, generator=torch.Generator().manual_seed(seed)) * 3)
    (token,) = sample_tokens(logps, [SamplingParams(1.0, top_p)], [chance])
    likelier = logps[0].exp()[logps[0] > logps[0, token]].sum()
    assert float(likelier) < top_p + 1e-6


def test_what_is_likeliest_comes_first():
    logps = logprobs(torch.tensor([[0.0, 2.0, 1.0]]))[0]
    assert [token for token, _ in top_tokens(logps, 2)] == [1, 2]
    assert top_tokens(logps, 0) == []
    assert len(top_tokens(logps, 20)) == 3


# --- who joins -----------------------------------------------------------------------------------


@given(
    st.lists(st.sampled_from("abc"), max_size=20),
    st.dictionaries(st.sampled_from("abc"), st.integers(0, 5)),
    st.integers(1, 12),
)
def test_seats_are_filled_and_no_model_is_kept_out_by_anothers_crowd(waiting, running, seats):
    joined = select_for_batch(waiting, running, seats)
    free = max(0, seats - sum(running.values()))
    assert len(joined) == len(set(joined)) == min(free, len(waiting))
    for model in "abc":
        places = [place for place in joined if waiting[place] == model]
        assert places == sorted(places), "the longest waiting first"
    after = Counter(running) + Counter(waiting[place] for place in joined)
    left = {model for place, model in enumerate(waiting) if place not in joined}
    for kept_out in left:
        for seated in {waiting[place] for place in joined}:
            assert after[seated] <= max(after[kept_out] + 1, running.get(seated, 0))


# --- how an answer looks -------------------------------------------------------------------------

STAMP = CompletionInfo("chatcmpl-1", 1_700_000_000, "tiny")
PIECES = [
    TokenChunk(
        text="so",
        token_ids=(5,),
        logprobs=(-0.5,),
        tokens=("so",),
        top_logprobs=(((5, "so", -0.5), (6, "é", -1.0)),),
        prompt_token_ids=(1, 2),
    ),
    TokenChunk(
        token_ids=(7,), logprobs=(-0.1,), tokens=("\ufffd",), top_logprobs=(((7, "\ufffd", -0.1),),)
    ),
    TokenChunk(
        text=".",
        token_ids=(1,),
        logprobs=(-0.2,),
        tokens=("<|end|>",),
        top_logprobs=(((1, "<|end|>", -0.2),),),
        finish_reason="stop",
    ),
]


def asked(**changes):
    least = {"model": "tiny", "messages": [{"role": "user", "content": "hi"}]}
    return parse_chat_request(json.dumps({**least, **changes}).encode())


def events(chunks):
    raw = b"".join([*(chunks.encode(piece) for piece in PIECES), chunks.encode_end()])
    lines = raw.decode().split("\n\n")
    assert lines[-2:] == ["data: [DONE]", ""]
    return [json.loads(line.removeprefix("data: ")) for line in lines[:-2]]


def test_a_whole_answer_has_what_was_asked_for():
    plain = json.loads(completion_body(STAMP, asked(), PIECES))
    assert plain["choices"][0]["message"] == {"role": "assistant", "content": "so."}
    assert plain["choices"][0]["finish_reason"] == "stop"
    assert plain["usage"] == {"prompt_tokens": 2, "completion_tokens": 3, "total_tokens": 5}
    assert plain["choices"][0]["logprobs"] is None
    assert "prompt_token_ids" not in plain
    rich = json.loads(
        completion_body(STAMP, asked(logprobs=True, top_logprobs=2, return_token_ids=True), PIECES)
    )
    assert rich["prompt_token_ids"] == [1, 2]
    assert rich["choices"][0]["token_ids"] == [5, 7, 1]
    listed = rich["choices"][0]["logprobs"]["content"]
    assert [each["logprob"] for each in listed] == [-0.5, -0.1, -0.2]
    assert listed[0]["top_logprobs"][1] == {"token": "é", "logprob": -1.0, "bytes": [195, 169]}
    assert listed[1]["bytes"] is None


def test_a_stream_adds_up_to_the_whole_answer():
    rich = asked(
        logprobs=True, return_token_ids=True, stream=True, stream_options={"include_usage": True}
    )
    first, *middle, last = events(StreamEncoder(STAMP, rich))
    assert first["choices"][0]["delta"] == {"role": "assistant", "content": ""}
    assert first["prompt_token_ids"] == [1, 2]
    choices = [event["choices"][0] for event in middle]
    assert "".join(choice["delta"].get("content", "") for choice in choices) == "so."
    assert [token for choice in choices for token in choice["token_ids"]] == [5, 7, 1]
    assert [part["logprob"] for choice in choices for part in choice["logprobs"]["content"]] == [
        -0.5,
        -0.1,
        -0.2,
    ]
    assert choices[-1]["finish_reason"] == "stop"
    assert last["choices"] == []
    assert last["usage"]["total_tokens"] == 5


def test_a_piece_that_shows_nothing_makes_no_event():
    plain = events(StreamEncoder(STAMP, asked(stream=True)))
    assert [event["choices"][0]["delta"].get("content") for event in plain] == ["", "so", "."]


def test_memory_forgets_the_oldest_first():
    memory = TokenCache(max_entries=2, max_tokens=10)
    memory.put("a", (1,))
    memory.put("b", (2,))
    assert memory.get("a") == (1,)
    memory.put("c", (3,))
    assert [memory.get(text) for text in "abc"] == [(1,), None, (3,)]
    memory.put("d", tuple(range(10)))
    assert [memory.get(text) for text in "acd"] == [None, None, tuple(range(10))]
