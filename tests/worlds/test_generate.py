"""Exact tokens with exact logprobs, whoever is in the batch."""

from random import Random

import pytest
import torch
from tests.worlds.small import model

from upswing.worlds.generate import GenerationParams, generate_completions

VOCABULARY = 40
HOW = GenerationParams(ends=frozenset({1}), max_new=6)


@pytest.fixture(scope="module")
def small():
    return model(VOCABULARY)


def prompts_of(count, *, seed=0):
    chance = Random(seed)
    return [
        tuple(chance.randrange(2, VOCABULARY) for _ in range(chance.randint(3, 9)))
        for _ in range(count)
    ]


def chances_of(count):
    return [Random(f"chance/{number}") for number in range(count)]


def logprobs_of(small, prompt, drawn):
    """By an ordinary forward pass over one sequence."""
    with torch.no_grad():
        logits = small(input_ids=torch.tensor([[*prompt, *drawn.ids]])).logits[0]
    logps = logits.log_softmax(-1)[len(prompt) - 1 : -1]
    return logps.gather(-1, torch.tensor(drawn.ids)[:, None])[:, 0].tolist()


@pytest.mark.parametrize("temperature", [0.7, 1.0])
def test_logprobs_are_those_of_a_forward_pass_without_padding(small, temperature):
    prompts = prompts_of(12) * 3
    how = GenerationParams(HOW.ends, HOW.max_new, temperature)
    drawn = generate_completions(small, prompts, chances_of(len(prompts)), how)
    assert len({len(one.ids) for one in drawn}) > 1
    for prompt, one in zip(prompts, drawn, strict=True):
        assert one.logprobs == pytest.approx(logprobs_of(small, prompt, one), abs=1e-4)


def test_what_is_said_does_not_depend_on_the_batch(small):
    prompts = prompts_of(10) * 2
    together = generate_completions(small, prompts, chances_of(20), HOW)
    in_threes = generate_completions(
        small, prompts, chances_of(20), GenerationParams(HOW.ends, HOW.max_new, batch=3)
    )
    alone = [
        generate_completions(small, [prompts[i]], [chances_of(20)[i]], HOW)[0] for i in range(20)
    ]
    assert [one.ids for one in together] == [one.ids for one in in_threes]
    assert [one.ids for one in together] == [one.ids for one in alone]


def test_a_completion_ends_with_its_end_token_or_is_cut(small):
    drawn = generate_completions(small, prompts_of(200), chances_of(200), HOW)
    assert {one.ended for one in drawn} == {True, False}
    for one in drawn:
        assert one.ended == (one.ids[-1] == 1)
        assert 1 not in one.ids[:-1]
        assert len(one.ids) == len(one.logprobs)
        assert one.ended or len(one.ids) == HOW.max_new


def test_without_chances_the_likeliest_token_is_taken(small):
    prompts = prompts_of(8)
    for prompt, one in zip(prompts, generate_completions(small, prompts, None, HOW), strict=True):
        with torch.no_grad():
            logits = small(input_ids=torch.tensor([[*prompt, *one.ids]])).logits[0]
        assert logits[len(prompt) - 1 : -1].argmax(-1).tolist() == list(one.ids)


def test_tokens_are_drawn_as_often_as_they_are_likely(small):
    prompt, count = prompts_of(1)[0], 6000
    drawn = generate_completions(
        small, [prompt] * count, chances_of(count), GenerationParams(HOW.ends, 1)
    )
    with torch.no_grad():
        likely = small(input_ids=torch.tensor([prompt])).logits[0, -1].softmax(-1)
    often = torch.bincount(torch.tensor([one.ids[0] for one in drawn]), minlength=VOCABULARY)
    assert (often / count - likely).abs().max() < 0.03


def test_the_model_is_left_in_the_mode_it_was_in(small):
    small.train()
    generate_completions(small, prompts_of(2), None, HOW)
    assert small.training
    small.eval()
    generate_completions(small, prompts_of(2), None, HOW)
    assert not small.training
