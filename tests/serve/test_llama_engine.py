"""llama.cpp answers as PyTorch does: the same tokens, the same logprobs, each model its own."""

import asyncio
import json
import os
import signal
import sys
import urllib.error
import urllib.request
from contextlib import aclosing
from datetime import timedelta

import msgspec
import pytest
import torch
from peft import PeftModel
from tests.serve import gguf_cases as cases
from tests.support import alive, freeze, samples, until
from transformers import AutoTokenizer

from upswing.errors import Conflict, Misuse, Reason, Rejected, Transient
from upswing.serve.core.engine import GenerationRequest
from upswing.serve.engines.llama_child import LlamaServerSpec, LlamaStartup
from upswing.serve.engines.llama_engine import LlamaEngine, LlamaOptions
from upswing.train.chat.tokenizer import ChatTokenizer
from upswing.train.chat.turns import ChatTurn

pytest.importorskip("xllamacpp", reason="llama.cpp is not installed: pip install '.[llama]'")
pytestmark = pytest.mark.live
torch.set_num_threads(1)
SMALL = LlamaOptions(slots=2, context=8192, threads=1)
ENDS = {258, 259}
LONG = {"temperature": 0.0, "max_tokens": 8000}
"""Of an answer that takes longer than to do something about it."""
MESSAGES = [{"role": "user", "content": "the thin thread 😀"}]


@pytest.fixture(scope="module")
def base(tmp_path_factory):
    return cases.make_base(tmp_path_factory.mktemp("base"), endless=True)


@pytest.fixture(scope="module")
def cache(tmp_path_factory):
    return tmp_path_factory.mktemp("cache")


@pytest.fixture
async def engine(base, cache):
    made = await LlamaEngine.start(base, cache, SMALL)
    yield made
    await made.close()


def asked(base, **changes):
    settings = {"messages": MESSAGES, "temperature": 0.0, "max_tokens": 12, "top_logprobs": 3}
    return GenerationRequest(**{"model": base.name, **settings, **changes})


async def answer(engine, prompt):
    async with aclosing(engine.generate(prompt)) as pieces:
        return [piece async for piece in pieces]


def joined(pieces, field):
    return tuple(each for piece in pieces for each in getattr(piece, field))


def text_of(pieces):
    return "".join(piece.text for piece in pieces)


def torchs_logprobs(model, prompt_ids, ids):
    """What PyTorch says of each token that was drawn, and what it would have said itself."""
    with torch.no_grad():
        logits = model(torch.tensor([[*prompt_ids, *ids]])).logits[0]
    logps = logits[len(prompt_ids) - 1 : -1].log_softmax(-1)
    drawn = logps.gather(1, torch.tensor(ids)[:, None])[:, 0]
    return drawn, logps.argmax(-1).tolist()


# ── the same as PyTorch ──────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("kind", "spelled"),
    [("llama", "gpt2"), ("llama", "llama"), ("qwen2", "gpt2"), ("qwen3", "gpt2")],
)
async def test_base_and_adapter_are_pytorchs_own(kind, spelled, tmp_path):
    base = cases.make_base(tmp_path / "base", kind, spelled=spelled)
    tuned = cases.with_adapter(base, kind)
    path = cases.checkpoint(tmp_path, "a", tuned, base)
    engine = await LlamaEngine.start(base, tmp_path / "cache", SMALL)
    try:
        await engine.load("tuned", path)
        assert engine.model_names() == (base.name, "tuned")
        plain = await answer(engine, asked(base))
        adapted = await answer(engine, asked(base, model="tuned"))
    finally:
        await engine.close()
    assert_agrees(tuned, adapted)
    with tuned.disable_adapter():
        assert_agrees(tuned, plain)
        other, _ = torchs_logprobs(tuned, adapted[0].prompt_token_ids, joined(adapted, "token_ids"))
    assert (other - torch.tensor(joined(adapted, "logprobs"))).abs().max() > 1


def assert_agrees(model: PeftModel, pieces):
    ids = joined(pieces, "token_ids")
    expected, likeliest = torchs_logprobs(model, pieces[0].prompt_token_ids, ids)
    assert sum(ours == theirs for ours, theirs in zip(ids, likeliest, strict=True)) >= len(ids) - 1
    assert torch.allclose(torch.tensor(joined(pieces, "logprobs")), expected, atol=0.02)


async def test_logprobs_are_of_the_raw_distribution_whatever_the_taste(base, engine):
    model = cases.with_adapter(base).unload()
    pieces = await answer(engine, asked(base, temperature=1.7, top_p=0.8, seed=5, max_tokens=40))
    ids = joined(pieces, "token_ids")
    expected, likeliest = torchs_logprobs(model, pieces[0].prompt_token_ids, ids)
    assert list(ids) != likeliest
    assert torch.allclose(torch.tensor(joined(pieces, "logprobs")), expected, atol=0.02)


async def test_the_temperature_comes_first_and_then_the_nucleus(base, engine):
    model = cases.with_adapter(base).unload()
    pieces = await answer(engine, asked(base, temperature=3.0, top_p=0.5, seed=2, max_tokens=60))
    prompt_ids, ids = pieces[0].prompt_token_ids, joined(pieces, "token_ids")
    with torch.no_grad():
        logits = model(torch.tensor([[*prompt_ids, *ids]])).logits[0, len(prompt_ids) - 1 : -1]

    def likelier(temperature):
        """How much probability the tokens have that are likelier than those that were drawn."""
        shares = (logits / temperature).softmax(-1)
        return (shares * (shares > shares.gather(1, torch.tensor(ids)[:, None]))).sum(-1)

    assert (likelier(3.0) < 0.52).all()
    assert (likelier(1.0) > 0.6).any()


async def test_the_prompts_ids_are_those_that_training_reads(base, engine):
    speech = ChatTokenizer(AutoTokenizer.from_pretrained(base.folder))
    first = ChatTurn((("system", "be brief"), ("user", "the 😀")), "so")
    [heard] = speech.tokenize_turns([first])
    messages = [{"role": role, "content": content} for role, content in first.prompt_messages]
    [piece, *_] = await answer(engine, asked(base, messages=messages, max_tokens=1))
    assert piece.prompt_token_ids == heard.prompt_ids


# ── tokens and text ──────────────────────────────────────────────────────────────────────────────


async def test_every_token_is_reported_also_parts_of_characters(base, engine):
    pieces = await answer(engine, asked(base, temperature=2.0, seed=3, max_tokens=200))
    ids = joined(pieces, "token_ids")
    tokenizer = AutoTokenizer.from_pretrained(base.folder)
    assert any(128 <= number < 256 for number in ids)
    assert len(joined(pieces, "logprobs")) == len(joined(pieces, "top_logprobs")) == len(ids)
    assert text_of(pieces) == tokenizer.decode(ids, skip_special_tokens=True)
    assert joined(pieces, "tokens") == tuple(tokenizer.decode([number]) for number in ids)
    assert all(len(top) == 3 for top in joined(pieces, "top_logprobs"))
    assert pieces[-1].finish_reason == ("stop" if ids[-1] in ENDS else "length")
    assert [piece.prompt_token_ids is None for piece in pieces][:2] == [False, True]


async def test_bytes_of_the_other_kind_of_tokenizer_are_reported_too(cache, tmp_path):
    base = cases.make_base(tmp_path, spelled="llama", endless=True)
    engine = await LlamaEngine.start(base, cache, SMALL)
    try:
        pieces = await answer(engine, asked(base, temperature=2.0, seed=3, max_tokens=200))
    finally:
        await engine.close()
    ids = joined(pieces, "token_ids")
    assert any(128 <= number < 256 for number in ids)
    assert len(joined(pieces, "logprobs")) == len(ids)


async def test_without_logprobs_there_are_none(base, engine):
    pieces = await answer(engine, asked(base, top_logprobs=None))
    assert len(joined(pieces, "token_ids")) == 12
    assert joined(pieces, "logprobs") == joined(pieces, "top_logprobs") == ()


async def test_the_same_seed_says_the_same_and_another_does_not(base, engine):
    drawn = [
        joined(await answer(engine, asked(base, temperature=1.0, seed=seed)), "token_ids")
        for seed in (7, 7, 2**32 + 8)
    ]
    assert drawn[0] == drawn[1] != drawn[2]


async def test_a_stop_text_ends_the_answer_and_is_not_shown(base, engine):
    whole = await answer(engine, asked(base, max_tokens=30))
    words = text_of(whole)
    stop = words[8:10]
    pieces = await answer(engine, asked(base, max_tokens=30, stop=(stop,)))
    assert text_of(pieces) == words[: words.index(stop)]
    assert pieces[-1].finish_reason == "stop"
    ids = joined(pieces, "token_ids")
    assert ids == joined(whole, "token_ids")[: len(ids)]
    assert len(ids) < 30


async def test_the_end_token_is_reported_and_not_shown(cache, tmp_path):
    base = cases.make_base(tmp_path)
    engine = await LlamaEngine.start(base, cache, SMALL)
    try:
        pieces = await answer(engine, asked(base, temperature=1.5, seed=1, max_tokens=None))
    finally:
        await engine.close()
    ids = joined(pieces, "token_ids")
    assert ids[-1] in ENDS
    assert pieces[-1].finish_reason == "stop"
    assert len(joined(pieces, "logprobs")) == len(ids)
    assert "<|" not in text_of(pieces)


async def test_a_full_context_ends_the_answer(base, cache):
    tight = LlamaOptions(slots=1, context=256, threads=1)
    engine = await LlamaEngine.start(base, cache, tight)
    try:
        pieces = await answer(engine, asked(base, temperature=0.0, max_tokens=None))
        room = 256 - len(pieces[0].prompt_token_ids)
        assert pieces[-1].finish_reason == "length"
        assert room - 1 <= len(joined(pieces, "token_ids")) <= room
        with pytest.raises(Rejected, match="context is 256 tokens") as refused:
            await answer(engine, asked(base, messages=[{"role": "user", "content": "a" * 300}]))
        assert refused.value.reason is Reason.TOO_LARGE
    finally:
        await engine.close()


# ── models come and go ───────────────────────────────────────────────────────────────────────────


async def test_loading_is_idempotent_and_refuses_what_it_must(base, engine, tmp_path):
    path = cases.checkpoint(tmp_path, "a", cases.with_adapter(base), base)
    await engine.load("tuned", path)
    [pid] = pids_but_of_base(engine)
    await engine.load("tuned", path)
    assert pids_but_of_base(engine) == [pid]
    with pytest.raises(Conflict):
        await engine.load("tuned", tmp_path / "b")
    with pytest.raises(Conflict):
        await engine.load(base.name, path)
    with pytest.raises(Rejected):
        await engine.load("broken", tmp_path / "nowhere")
    with pytest.raises(Misuse):
        await engine.unload(base.name)
    with pytest.raises(Misuse):
        await answer(engine, asked(base, model="unknown"))
    assert engine.model_names() == (base.name, "tuned")


async def test_a_request_under_way_ends_before_its_model_is_unloaded(base, engine, tmp_path):
    path = cases.checkpoint(tmp_path, "a", cases.with_adapter(base), base)
    await engine.load("tuned", path)
    [pid] = pids_but_of_base(engine)
    pieces = engine.generate(asked(base, model="tuned", temperature=0.0, max_tokens=500))
    first = await anext(pieces)
    leaving = asyncio.create_task(engine.unload("tuned"))
    await until(lambda: engine.model_names() == (base.name,))
    with pytest.raises(Misuse):
        await answer(engine, asked(base, model="tuned"))
    rest = [piece async for piece in pieces]
    assert rest[-1].finish_reason is not None
    assert first.token_ids
    await leaving
    assert not alive(pid)
    assert len(joined(await answer(engine, asked(base)), "token_ids")) == 12


async def test_models_answer_side_by_side_and_keep_to_themselves(base, engine, tmp_path):
    tuned = cases.with_adapter(base)
    await engine.load("tuned", cases.checkpoint(tmp_path, "a", tuned, base))
    alone = {
        name: joined(await answer(engine, asked(base, model=name)), "token_ids")
        for name in engine.model_names()
    }
    assert alone[base.name] != alone["tuned"]
    names = [*engine.model_names()] * 4
    together = await asyncio.gather(*(answer(engine, asked(base, model=name)) for name in names))
    assert [joined(pieces, "token_ids") for pieces in together] == [alone[name] for name in names]


# ── what goes wrong ──────────────────────────────────────────────────────────────────────────────


async def test_a_request_that_is_left_stops_generating(base, engine):
    pieces = engine.generate(asked(base, **LONG))
    await anext(pieces)
    assert sum(slot["is_processing"] for slot in told(engine, "slots")) == 1
    await pieces.aclose()
    await until(lambda: not any(slot["is_processing"] for slot in told(engine, "slots")))
    counts = samples(told(engine, "metrics"))
    assert counts["llamacpp:tokens_predicted_total", ()] < LONG["max_tokens"]


async def test_a_death_fails_what_was_under_way_and_nothing_after_it(base, engine, tmp_path):
    await engine.load("tuned", cases.checkpoint(tmp_path, "a", cases.with_adapter(base), base))
    expected = joined(await answer(engine, asked(base, model="tuned")), "token_ids")
    [pid] = pids_but_of_base(engine)
    pieces = engine.generate(asked(base, model="tuned", **LONG))
    await anext(pieces)
    os.kill(pid, signal.SIGKILL)
    with pytest.raises(Transient):
        [piece async for piece in pieces]
    assert joined(await answer(engine, asked(base, model="tuned")), "token_ids") == expected
    assert pids_but_of_base(engine) != [pid]


async def test_many_see_it_die_and_it_is_started_anew_once(base, engine):
    process = engine._processes[base.name]
    under_way = [engine.generate(asked(base, **LONG)) for _ in range(2)]
    await asyncio.gather(*(anext(pieces) for pieces in under_way))
    os.kill(process.pid, signal.SIGKILL)

    async def again(pieces):
        with pytest.raises(Transient):
            [piece async for piece in pieces]
        await answer(engine, asked(base))
        return process.pid

    assert len(set(await asyncio.gather(*map(again, under_way)))) == 1


async def test_a_process_that_hangs_is_ended_and_started_anew(base, cache):
    hasty = LlamaOptions(slots=2, context=512, threads=1, silence_timeout=timedelta(seconds=2))
    engine = await LlamaEngine.start(base, cache, hasty)
    try:
        expected = joined(await answer(engine, asked(base)), "token_ids")
        freeze(engine._processes[base.name].pid)
        with pytest.raises(Transient, match="silent for too long"):
            await answer(engine, asked(base))
        assert joined(await answer(engine, asked(base)), "token_ids") == expected
    finally:
        await engine.close()


async def test_a_process_that_is_frozen_is_replaced_and_whoever_waits_is_answered(base, cache):
    options = LlamaOptions(slots=2, context=512, threads=1, frozen_timeout=timedelta(seconds=2))
    engine = await LlamaEngine.start(base, cache, options)
    try:
        expected = joined(await answer(engine, asked(base)), "token_ids")
        pid = engine._processes[base.name].pid
        freeze(pid)
        assert joined(await answer(engine, asked(base)), "token_ids") == expected
        assert engine._processes[base.name].pid != pid
    finally:
        await engine.close()


async def test_a_child_ends_by_itself_when_nobody_is_left_to_ask_it(base):
    task = LlamaServerSpec(
        model=str(base.folder / "model.gguf"), slots=1, context=256, threads=1, key="k" * 32
    )
    child = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "upswing.serve.engines.llama_child",
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
    )
    child.stdin.write(msgspec.json.encode(task) + b"\n")
    told = msgspec.json.decode(await child.stdout.readline(), type=LlamaStartup)
    assert told.address.startswith("http://127.0.0.1:")
    child.stdin.close()
    assert await child.wait() == 0


async def test_closing_ends_every_process_and_what_is_under_way(base, cache):
    engine = await LlamaEngine.start(base, cache, SMALL)
    pid, folder = engine._processes[base.name].pid, engine._folder
    pieces = engine.generate(asked(base, **LONG))
    await anext(pieces)
    await engine.close()
    with pytest.raises(Transient):
        [piece async for piece in pieces]
    with pytest.raises(Transient):
        await answer(engine, asked(base))
    assert not alive(pid)
    assert not folder.exists()


async def test_an_adapter_that_llama_cpp_refuses_is_rejected_in_its_words(engine, tmp_path):
    odd = engine._folder / "odd.gguf"
    odd.write_bytes(b"GGUF" + bytes(100))
    process = engine._new_process(odd)
    with pytest.raises(Rejected, match="refuses to serve it"):
        await process.start()
    assert process.pid is None
    await process.stop()
    assert not odd.exists()


async def test_without_llama_cpp_the_sentence_says_how_to_get_it(base, cache):
    with pytest.raises(Misuse, match=r"pip install '\.\[llama\]'"):
        await LlamaEngine.start(base, cache, is_installed=lambda package: False)


async def test_a_stranger_on_this_machine_is_not_answered(base, engine):
    with pytest.raises(urllib.error.HTTPError, match="401"):
        urllib.request.urlopen(f"{engine._processes[base.name].address}/slots")


def pids_but_of_base(engine):
    return [process.pid for name, process in engine._processes.items() if name != engine.base]


def told(engine, path):
    """What the base's own server says of itself."""
    process = engine._processes[engine.base]
    request = urllib.request.Request(
        f"{process.address}/{path}", headers={"Authorization": f"Bearer {process.key}"}
    )
    with urllib.request.urlopen(request) as answer:
        body = answer.read().decode()
    return json.loads(body) if path == "slots" else body


COLOURS = {
    "type": "object",
    "properties": {"colour": {"enum": ["red", "blue"]}, "bright": {"type": "boolean"}},
    "required": ["colour", "bright"],
    "additionalProperties": False,
}


@pytest.mark.parametrize("temperature", [0.0, 2.0])
async def test_an_answer_follows_its_schema_whatever_the_model_would_say(base, engine, temperature):
    """A model of random weights, which has never seen JSON, writes what the grammar lets it write."""
    prompt = asked(base, output_schema=COLOURS, max_tokens=800, temperature=temperature)
    pieces = await answer(engine, prompt)
    written = json.loads(text_of(pieces))
    assert written["colour"] in {"red", "blue"}
    assert isinstance(written["bright"], bool)
    assert pieces[-1].finish_reason == "stop"
    ids = joined(pieces, "token_ids")
    assert len(joined(pieces, "logprobs")) == len(ids)


async def test_logprobs_under_a_schema_are_the_models_own(base, engine):
    model = cases.with_adapter(base).unload()
    pieces = await answer(engine, asked(base, output_schema=COLOURS, max_tokens=40))
    ids = joined(pieces, "token_ids")
    expected, _ = torchs_logprobs(model, pieces[0].prompt_token_ids, ids)
    assert torch.allclose(torch.tensor(joined(pieces, "logprobs")), expected, atol=0.02)


@pytest.mark.parametrize(
    "schema",
    [
        {"$ref": "#/$defs/nowhere"},
        {"type": "nonsense"},
        {"type": "array", "uniqueItems": True},
        {"not": {"type": "string"}},
        {"type": "string", "pattern": "^(?=a)b$"},
        {"type": "string", "format": "of-our-own"},
    ],
)
async def test_a_schema_that_llama_cpp_would_ignore_is_refused_before_anything_is_said(
    base, engine, schema
):
    with pytest.raises(Rejected, match="cannot hold an answer to this schema") as found:
        await answer(engine, asked(base, output_schema=schema))
    hard = {"$ref", "uniqueItems", "not", "pattern", "format"} & schema.keys()
    assert all(f"`{each}`" in str(found.value) for each in hard)
    assert text_of(await answer(engine, asked(base)))
