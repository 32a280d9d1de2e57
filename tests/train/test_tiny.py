"""The model that the project makes itself: its words, how it is made, and how it speaks."""

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from random import Random
from threading import Barrier

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from transformers import AutoModelForCausalLM, AutoTokenizer

from upswing.infra.once import make_folder_once
from upswing.train.bases.catalog import resolve_base
from upswing.train.bases.tiny.building import ensure_tiny
from upswing.train.bases.tiny.corpus import make_conversation
from upswing.train.bases.tiny.recipe import PretrainingSettings
from upswing.train.bases.tiny.tokenizer import build_tokenizer
from upswing.train.bases.tiny.vocabulary import SPECIALS, action_words, vocabulary_words
from upswing.worlds.triage import ACTIONS, LOOK_UP, WORDS, Triage

TOKENIZER = build_tokenizer()
COLD = PretrainingSettings(steps=0)


def ids_of(text):
    return TOKENIZER(text, add_special_tokens=False)["input_ids"]


def prompt_of(instructions, text):
    messages = [{"role": "system", "content": instructions}, {"role": "user", "content": text}]
    return TOKENIZER.apply_chat_template(messages, add_generation_prompt=True, return_dict=False)


# ── words ────────────────────────────────────────────────────────────────────────────────────────


@given(st.text())
def test_any_text_comes_back_as_it_was(text):
    assert TOKENIZER.decode(ids_of(text)) == text


@given(
    st.lists(
        st.one_of(
            st.sampled_from([*vocabulary_words(), *SPECIALS, " ", "\n", "'s", "7"]), st.text()
        )
    )
)
def test_words_in_any_surroundings_come_back(parts):
    assert TOKENIZER.decode(ids_of("".join(parts))) == "".join(parts)


@given(st.text(), st.text())
def test_the_chat_template_keeps_every_character(asked, answered):
    messages = [{"role": "user", "content": asked}, {"role": "assistant", "content": answered}]
    text = TOKENIZER.apply_chat_template(messages, tokenize=False)
    assert text == f"<|user|>{asked}<|end|><|assistant|>{answered}<|end|>"


@pytest.mark.parametrize("before", ["", " "])
def test_every_word_is_one_token(before):
    assert [word for word in vocabulary_words() if len(ids_of(before + word)) != 1] == []


def test_the_words_of_the_world_are_known():
    assert set(WORDS) <= set(vocabulary_words())
    assert {*ACTIONS, LOOK_UP} <= set(action_words())


def test_a_prompt_of_the_world_is_short():
    world = Triage()
    sizes = {len(prompt_of(task.instructions, task.text)) for task in world.held_out}
    assert sizes <= set(range(13, 31))


def test_json_and_code_need_no_bytes_for_their_marks():
    text = '{"tool": "buy", "args": [1, 20]}\n\n    return x_1\n'
    assert len(ids_of(text)) < len(text) * 2 / 3


def test_what_is_read_has_the_form_of_the_template():
    chance = Random(1)
    for _ in range(50):
        text = make_conversation(chance, 1.0).text
        parts = [part.partition("|>") for part in text.split("<|end|>")[:-1]]
        messages = [{"role": role[2:], "content": said} for role, _, said in parts]
        assert TOKENIZER.apply_chat_template(messages, tokenize=False) == text


def test_every_answer_that_is_read_was_offered():
    chance = Random(2)
    for _ in range(200):
        read = make_conversation(chance, chance.random())
        answers = [part.partition("<|end|>")[0] for part in read.text.split("<|assistant|>")[1:]]
        assert answers
        assert set(answers) <= set(read.options)
        assert all(option in read.text.partition("<|assistant|>")[0] for option in read.options)


# ── made ─────────────────────────────────────────────────────────────────────────────────────────


def test_the_same_seed_makes_the_same_model(tmp_path):
    little = PretrainingSettings(steps=3, batch=8)
    one, two, other = (
        ensure_tiny(tmp_path / name, seed, pretraining=little)
        for name, seed in (("one", 0), ("two", 0), ("other", 1))
    )
    assert one.name == two.name != other.name
    weights = [(folder / "model.safetensors").read_bytes() for folder in (one, two, other)]
    assert weights[0] == weights[1] != weights[2]


def test_chance_outside_is_not_touched_and_does_not_matter(tmp_path):
    torch.manual_seed(5)
    before = torch.random.get_rng_state(), torch.get_num_threads()
    one = ensure_tiny(tmp_path / "one", pretraining=COLD)
    assert torch.equal(before[0], torch.random.get_rng_state())
    assert torch.get_num_threads() == before[1]
    torch.manual_seed(6)
    two = ensure_tiny(tmp_path / "two", pretraining=COLD)
    assert (one / "model.safetensors").read_bytes() == (two / "model.safetensors").read_bytes()


def test_it_is_an_ordinary_model_folder_of_about_a_million_weights(tmp_path):
    folder = ensure_tiny(tmp_path, pretraining=COLD)
    names = {
        "config.json",
        "model.safetensors",
        "tokenizer.json",
        "tokenizer_config.json",
        "chat_template.jinja",
        "generation_config.json",
    }
    assert names == {path.name for path in folder.iterdir()} - {".sha256"}
    model = AutoModelForCausalLM.from_pretrained(folder, local_files_only=True)
    tokenizer = AutoTokenizer.from_pretrained(folder, local_files_only=True)
    assert type(model).__name__ == "LlamaForCausalLM"
    assert model.lm_head.weight is model.get_input_embeddings().weight
    assert 700_000 < model.num_parameters() < 1_500_000
    assert model.generation_config.eos_token_id == tokenizer.eos_token_id
    assert tokenizer.get_vocab() == TOKENIZER.get_vocab()
    assert tokenizer.chat_template == TOKENIZER.chat_template
    text = "  the red lamp's\n\tzürich 😀 <|user|> 12 "
    assert tokenizer.decode(tokenizer(text)["input_ids"]) == text


def test_of_many_who_ask_at_once_one_makes_it(tmp_path):
    made, ready = [], Barrier(8)

    def make(folder):
        made.append(folder)
        (folder / "a").write_text("whole")

    def ask(_):
        ready.wait()
        return make_folder_once(tmp_path / "cache" / "thing", make)

    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(ask, range(8)))
    assert len(made) == 1
    assert {(place / "a").read_text() for place in found} == {"whole"}


@pytest.mark.live
def test_a_maker_that_dies_leaves_nothing_half_made(tmp_path):
    code = (
        "import os, sys; from pathlib import Path; from upswing.infra.once import make_folder_once\n"
        "def die(folder): (folder / 'half').write_text('x'); os._exit(9)\n"
        "make_folder_once(Path(sys.argv[1]), die)"
    )
    place = tmp_path / "thing"
    assert subprocess.run([sys.executable, "-c", code, place], check=False).returncode == 9
    assert not place.exists()
    make_folder_once(place, lambda folder: (folder / "a").write_text("whole"))
    assert {path.name for path in place.iterdir()} == {"a", ".sha256"}


def test_a_maker_that_fails_leaves_nothing(tmp_path):
    def fail(folder):
        (folder / "half").write_text("x")
        raise OSError("the disk is full")

    with pytest.raises(OSError, match="full"):
        make_folder_once(tmp_path / "thing", fail)
    assert [path.name for path in tmp_path.iterdir() if path.suffix != ".lock"] == []


# ── spoken ───────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture(scope="module")
def tiny(bases):
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield AutoModelForCausalLM.from_pretrained(resolve_base("tiny", bases).folder).eval()
    torch.set_num_threads(before)


def next_words(model, prompts):
    """What comes next, as a distribution, after each of these."""
    longest = max(map(len, prompts))
    ids_BT = torch.tensor([prompt + [0] * (longest - len(prompt)) for prompt in prompts])
    ends_B = torch.tensor([len(prompt) - 1 for prompt in prompts])
    with torch.no_grad():
        hidden_BTH = model.model(ids_BT).last_hidden_state
        return model.lm_head(hidden_BTH[torch.arange(len(prompts)), ends_B]).softmax(-1)


@pytest.mark.learn
def test_it_answers_with_one_of_the_offered_words_and_stops(tiny):
    chance = Random(77)
    read = [make_conversation(chance, 1.0) for _ in range(120)]
    read = [one for one in read if set(one.options) <= set(action_words())]
    prompts = [ids_of(one.text.rpartition("<|assistant|>")[0] + "<|assistant|>") for one in read]
    said = next_words(tiny, prompts)
    offered = [[number for word in one.options for number in ids_of(word)] for one in read]
    valid = [float(row[own].sum()) for row, own in zip(said, offered, strict=True)]
    likeliest = said.argmax(-1).tolist()
    right = [word in own for word, own in zip(likeliest, offered, strict=True)]
    after = [[*prompt, word] for prompt, word in zip(prompts, likeliest, strict=True)]
    ended = next_words(tiny, after)[:, TOKENIZER.eos_token_id]
    assert sum(valid) / len(read) > 0.8
    assert sum(right) / len(read) > 0.9
    assert ended.mean() > 0.95


@pytest.mark.learn
@pytest.mark.parametrize("check_first", [False, True])
def test_it_knows_the_protocol_of_a_world_but_not_its_rule(tiny, check_first):
    world = Triage(check_first=check_first)
    choices = [*ACTIONS, LOOK_UP] if check_first else list(ACTIONS)
    numbers = [number for word in choices for number in ids_of(word)]
    said = next_words(tiny, [prompt_of(task.instructions, task.text) for task in world.held_out])
    shares = said[:, numbers].mean(0)
    assert shares.sum() > 0.85
    assert shares.min() > 0.03
    answers = [TOKENIZER.decode(int(row.argmax())) for row in said]
    right = sum(a == task.answer for a, task in zip(answers, world.held_out, strict=True))
    assert right / len(answers) < 0.45
