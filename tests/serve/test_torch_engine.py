"""The real engine with the real `tiny`: what it says together is what each says alone."""

import asyncio
import threading
from contextlib import aclosing
from random import Random

import pytest
import torch
from serving_cases import ask, checkpoint, ids_of, logprobs_of, said, text_of
from tests.support import until

from upswing.errors import Conflict, Misuse, Reason, Rejected, Transient
from upswing.serve.core.engine import GenerationRequest, InferenceEngine
from upswing.serve.engines.batch_check import eos_token_ids
from upswing.serve.engines.torch_engine import TorchEngine
from upswing.train.bases.catalog import resolve_base
from upswing.train.bases.loading import load_base
from upswing.worlds.generate import GenerationParams, generate_completions

TEXTS = (
    "Which is it: refund or sell?",
    "zzz" * 20,
    "a",
    "the red lamp broke, what do you say? " * 9,
    "Choose one: hold, wait, buy.",
    "😀 é ß",
    "\n\n\n",
    "sell " * 300,
)
ENDLESS = ask("zzz" * 30, max_tokens=1500)
"""The answer to this does not end soon."""


@pytest.fixture(scope="module")
def loaded(bases):
    """`tiny` once more, and by itself; so small that a second thread would only wait for the first."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield load_base(resolve_base("tiny", bases))
    torch.set_num_threads(before)


@pytest.fixture
def alone(loaded):
    """What the model says when nobody else is there."""

    def say(ids, most, seed=None, temperature=1.0, model=loaded[0]):
        how = GenerationParams(eos_token_ids(*loaded), most, temperature)
        return generate_completions(model, [ids], None if seed is None else [Random(seed)], how)[0]

    return say


# --- together as alone ---------------------------------------------------------------------------


async def test_greedy_answers_in_a_batch_are_those_given_alone(engine, alone):
    together = await asyncio.gather(*(said(engine, ask(text, max_tokens=30)) for text in TEXTS))
    assert engine.stats().generated_tokens > engine.stats().steps, "they did share a batch"
    for pieces in together:
        lonely = alone(pieces[0].prompt_token_ids, 30)
        assert ids_of(pieces) == lonely.ids
        assert pieces[-1].finish_reason == ("stop" if lonely.ended else "length")
        assert logprobs_of(pieces) == pytest.approx(lonely.logprobs, abs=1e-4)


async def test_what_is_drawn_depends_on_the_seed_and_not_on_the_neighbours(engine, alone):
    prompts = [
        ask(text, seed=number, temperature=0.8, max_tokens=20) for number, text in enumerate(TEXTS)
    ]
    together = await asyncio.gather(*(said(engine, prompt) for prompt in prompts))
    for number, pieces in enumerate(together):
        assert ids_of(pieces) == alone(pieces[0].prompt_token_ids, 20, number, 0.8).ids


async def test_logprobs_are_those_of_a_plain_forward_at_temperature_one(engine, loaded):
    pieces = await said(engine, ask(TEXTS[1], temperature=1.7, top_p=0.8, seed=5, top_logprobs=3))
    prompt, drawn = pieces[0].prompt_token_ids, ids_of(pieces)
    model, _ = loaded
    with torch.no_grad():
        logits = model(input_ids=torch.tensor([prompt + drawn])).logits[0].float()
    plain = logits.log_softmax(-1)[len(prompt) - 1 : -1]
    taken = plain.gather(-1, torch.tensor(drawn)[:, None])[:, 0]
    assert logprobs_of(pieces) == pytest.approx(taken.tolist(), abs=1e-4)
    best = plain.topk(3, dim=-1)
    for row, piece in enumerate(pieces):
        assert [token for token, _, _ in piece.top_logprobs[0]] == best.indices[row].tolist()
        assert [number for *_, number in piece.top_logprobs[0]] == pytest.approx(
            best.values[row].tolist(), abs=1e-4
        )


async def test_a_prompt_read_in_portions_is_the_prompt_read_at_once(tiny, alone):
    engine = await TorchEngine.start(tiny, prefill_budget=16, threads=1)
    try:
        texts = (TEXTS[3], TEXTS[7], TEXTS[1])
        together = await asyncio.gather(*(said(engine, ask(text, max_tokens=20)) for text in texts))
        for pieces in together:
            lonely = alone(pieces[0].prompt_token_ids, 20)
            assert ids_of(pieces) == lonely.ids
            assert logprobs_of(pieces) == pytest.approx(lonely.logprobs, abs=1e-4)
    finally:
        await engine.close()


async def test_rows_that_come_and_go_leave_the_others_as_they_are(tiny, alone):
    """Few seats and answers of many lengths: everybody moves, nobody is changed."""
    engine = await TorchEngine.start(tiny, slots=3, prefill_budget=8, threads=1)
    chance = Random(0)
    prompts = [
        ask(
            "zzz" * chance.randint(1, 30),
            max_tokens=chance.randint(1, 40),
            seed=number,
            temperature=1.0,
        )
        for number in range(16)
    ]
    try:
        together = await asyncio.gather(*(said(engine, prompt) for prompt in prompts))
        assert engine.stats().waiting == 0
    finally:
        await engine.close()
    for prompt, pieces in zip(prompts, together, strict=True):
        lonely = alone(pieces[0].prompt_token_ids, prompt.max_tokens, prompt.seed)
        assert ids_of(pieces) == lonely.ids


# --- what an answer is ---------------------------------------------------------------------------


async def test_the_end_token_is_told_but_not_shown(engine, loaded):
    pieces = await said(engine, ask())
    assert pieces[-1].finish_reason == "stop"
    _, tokenizer = loaded
    assert ids_of(pieces)[-1] == tokenizer.eos_token_id
    assert text_of(pieces) == tokenizer.decode(ids_of(pieces), skip_special_tokens=True)


async def test_a_stop_text_ends_the_answer_and_is_not_part_of_it(engine):
    whole = text_of(await said(engine, ask(TEXTS[1])))
    assert whole.startswith("zzz")
    pieces = await said(engine, ask(TEXTS[1], stop=("zzz",)))
    assert (text_of(pieces), pieces[-1].finish_reason) == ("", "stop")
    assert len(ids_of(pieces)) == 3


async def test_the_context_ends_an_answer_that_would_go_on(engine):
    pieces = await said(engine, ask("z" * 2040, max_tokens=None))
    assert pieces[-1].finish_reason == "length"
    assert len(pieces[0].prompt_token_ids) + len(ids_of(pieces)) == 2048


async def test_a_prompt_that_leaves_no_room_is_refused(engine):
    for text in ("zz " * 1500, "x" * 3_000_000):
        with pytest.raises(Rejected, match="2048 tokens") as caught:
            await said(engine, ask(text))
        assert caught.value.reason is Reason.TOO_LARGE


async def test_a_later_turn_goes_on_exactly_where_the_model_ended(engine):
    """Drawn tokens are not always those that a tokenizer would choose for the same text."""
    messages, known = [{"role": "user", "content": "zzz"}], ()
    for turn in range(4):
        prompt = GenerationRequest(
            model="tiny", messages=messages, max_tokens=25, temperature=1.6, seed=turn
        )
        pieces = await said(engine, prompt)
        assert pieces[0].prompt_token_ids[: len(known)] == known
        if pieces[-1].finish_reason != "stop":
            break
        known = pieces[0].prompt_token_ids + ids_of(pieces)
        reply = {"role": "assistant", "content": text_of(pieces)}
        messages = [*messages, reply, {"role": "user", "content": "and then?"}]


async def test_a_tools_words_reach_a_model_that_knows_no_tools(engine, loaded):
    call = {"id": "c", "type": "function", "function": {"name": "add", "arguments": {"a": 1}}}
    messages = [
        {"role": "user", "content": "add"},
        {"role": "assistant", "content": "", "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c", "content": "two"},
    ]
    prompt = GenerationRequest(
        model="tiny", messages=messages, tools=[call], max_tokens=2, temperature=0
    )
    pieces = await said(engine, prompt)
    _, tokenizer = loaded
    read = tokenizer.decode(pieces[0].prompt_token_ids)
    assert '{"tool_name":"add","tool_args":{"a":1}}' in read
    assert "<|user|>two" in read


# --- leaving -------------------------------------------------------------------------------------


async def test_an_answer_that_nobody_waits_for_is_not_computed_further(engine):
    async with aclosing(engine.generate(ENDLESS)) as pieces:
        await anext(pieces)
        await until(lambda: engine.stats().running == 1)
    await until(lambda: engine.stats().running == 0)
    load = engine.stats()
    assert load.cancelled == 1
    assert load.generated_tokens < 1000
    await said(engine, ask())  # and the seat can be had again
    assert engine.stats().cancelled == 1


async def test_one_who_leaves_takes_nobody_along(engine, alone):
    async with aclosing(engine.generate(ENDLESS)) as pieces:
        await anext(pieces)
        stays = asyncio.create_task(said(engine, ask(TEXTS[1], max_tokens=400)))
        await until(lambda: engine.stats().running == 2)
    assert ids_of(await stays) == alone((await stays)[0].prompt_token_ids, 400).ids


async def test_one_who_leaves_the_queue_never_has_a_seat(tiny):
    engine = await TorchEngine.start(tiny, slots=1, threads=1)
    try:
        async with aclosing(engine.generate(ENDLESS)) as first:
            await anext(first)
            waiting = asyncio.create_task(said(engine, ask()))
            await until(lambda: engine.stats().waiting == 1)
            waiting.cancel()
            await until(lambda: engine.stats().waiting == 0)
            assert engine.stats().cancelled == 1
    finally:
        await engine.close()


async def test_who_waits_when_it_closes_is_told(tiny):
    engine = await TorchEngine.start(tiny, slots=1, threads=1)
    running = asyncio.create_task(said(engine, ENDLESS))
    waiting = asyncio.create_task(said(engine, ENDLESS))
    await until(lambda: engine.stats().waiting == 1)
    await engine.close()
    for task in (running, waiting):
        with pytest.raises(Transient):
            await task
    with pytest.raises(Transient):
        await said(engine, ask())
    assert "upswing-engine" not in {thread.name for thread in threading.enumerate()}


# --- models --------------------------------------------------------------------------------------


def test_it_is_an_engine(tiny):
    engine = TorchEngine(tiny, threads=1)
    promised: InferenceEngine = engine
    assert promised.stats() is not None
    assert list(engine.model_names()) == ["tiny"]
    asyncio.run(engine.close())


@pytest.mark.parametrize("full", [False, True], ids=["an adapter", "all weights"])
async def test_a_checkpoint_says_what_its_model_said(engine, tiny, tmp_path, full, alone):
    path, trained = checkpoint(tiny, tmp_path, "v1", full=full)
    await engine.load("agent-zero-rl-v1", path)
    assert list(engine.model_names()) == ["tiny", "agent-zero-rl-v1"]
    mine, base = await asyncio.gather(
        said(engine, ask(TEXTS[1], "agent-zero-rl-v1")), said(engine, ask(TEXTS[1]))
    )
    prompt = mine[0].prompt_token_ids
    expected = alone(prompt, 12, model=trained)
    assert ids_of(mine) == expected.ids
    assert logprobs_of(mine) == pytest.approx(expected.logprobs, abs=1e-4)
    assert ids_of(base) == alone(prompt, 12).ids
    assert logprobs_of(base) != pytest.approx(logprobs_of(mine), abs=1e-3)


async def test_adapters_take_turns_and_none_disturbs_another(engine, tiny, tmp_path, alone):
    names = []
    for seed in (1, 2, 3):
        path, model = checkpoint(tiny, tmp_path, f"v{seed}", full=seed == 3, seed=seed)
        await engine.load(f"m.{seed}", path)
        names.append((f"m.{seed}", model))
    prompts = [
        (ask(text, name, max_tokens=15), model) for name, model in names for text in TEXTS[:4]
    ]
    together = await asyncio.gather(*(said(engine, prompt) for prompt, _ in prompts))
    for (_, model), pieces in zip(prompts, together, strict=True):
        assert ids_of(pieces) == alone(pieces[0].prompt_token_ids, 15, model=model).ids


async def test_models_come_and_go_again_and_again(engine, tiny, tmp_path):
    before = ids_of(await said(engine, ask(TEXTS[1])))
    one, _ = checkpoint(tiny, tmp_path, "one", full=False)
    two, _ = checkpoint(tiny, tmp_path, "two", full=False, seed=2)
    for _ in range(2):
        await engine.load("one", one)
        await engine.load("two", two)
        await engine.unload("one")
        with pytest.raises(Misuse, match="no model one"):
            await said(engine, ask(model="one"))
        await said(engine, ask(model="two"))
        await engine.unload("two")
        assert list(engine.model_names()) == ["tiny"]
    assert ids_of(await said(engine, ask(TEXTS[1]))) == before


async def test_loading_the_same_again_is_nothing_and_another_is_a_conflict(engine, tiny, tmp_path):
    path, _ = checkpoint(tiny, tmp_path, "v1", full=True)
    other, _ = checkpoint(tiny, tmp_path, "v2", full=True, seed=2)
    await asyncio.gather(*(engine.load("m", path) for _ in range(3)))
    assert list(engine.model_names()) == ["tiny", "m"]
    with pytest.raises(Conflict):
        await engine.load("m", other)
    with pytest.raises(Conflict):
        await engine.load("tiny", other)


async def test_a_model_goes_when_its_last_request_has_ended(engine, tiny, tmp_path, alone):
    path, model = checkpoint(tiny, tmp_path, "v1", full=False)
    await engine.load("m", path)
    last = asyncio.create_task(said(engine, ask(TEXTS[1], "m", max_tokens=400)))
    await until(lambda: engine.stats().running == 1)
    await engine.unload("m")
    assert "m" not in engine.model_names()
    pieces = await last
    assert ids_of(pieces) == alone(pieces[0].prompt_token_ids, 400, model=model).ids


async def test_what_is_not_a_checkpoint_of_this_base_is_refused(engine, tiny, tmp_path):
    path, _ = checkpoint(tiny, tmp_path, "v1", full=False)
    weights = path / "adapter_model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-1] + b"\x01")
    for bad in (path, tmp_path / "nothing", tmp_path, tiny.folder):
        with pytest.raises(Rejected):
            await engine.load("m", bad)
    assert list(engine.model_names()) == ["tiny"]
    with pytest.raises(Misuse):
        await engine.unload("m")
    with pytest.raises(Misuse):
        await engine.unload("tiny")
    await said(engine, ask())


async def test_a_model_whose_numbers_are_none_fails_alone(engine, tiny, tmp_path):
    path, _ = checkpoint(tiny, tmp_path, "v1", full=True)
    await engine.load("ill", path)
    with torch.no_grad():
        engine._models.activate("ill").lm_head.weight.fill_(float("nan"))
    well = asyncio.create_task(said(engine, ask(TEXTS[1], max_tokens=100)))
    with pytest.raises(Transient, match="no number"):
        await said(engine, ask(model="ill"))
    assert len(ids_of(await well)) > 1


async def test_a_turn_that_breaks_fails_its_requests_and_nobody_elses(engine, tiny, tmp_path):
    path, _ = checkpoint(tiny, tmp_path, "v1", full=True)
    await engine.load("ill", path)
    engine._models.activate("ill").forward = None
    with pytest.raises(Transient):
        await said(engine, ask(model="ill"))
    await said(engine, ask())
