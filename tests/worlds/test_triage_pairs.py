"""The world in which two words make the answer: what its documentation says, computed."""

import re
from collections import Counter
from itertools import pairwise, product

import pytest

from upswing.worlds import triage_pairs
from upswing.worlds.triage_pairs import ACTIONS, MOODS, PRODUCTS, RULE, WORDS, PairTriage


def score(world, answer):
    """The share of the held-out tasks that a function of the ticket does."""
    ended = [world.step(world.reset(one), answer(one)) for one in world.held_out]
    return sum(world.outcome(state).score for state in ended) / len(ended)


def best(world, *seen):
    """The most that a policy can reach which sees only these fields of a ticket."""
    answers: dict[tuple, Counter] = {}
    for one in world.held_out:
        key = tuple(getattr(one, name) for name in seen)
        answers.setdefault(key, Counter())[one.answer] += 1
    return sum(max(each.values()) for each in answers.values()) / len(world.held_out)


def documented():
    rows = re.findall(r"^\| (.+?) +\| (\d\.\d\d) +\|$", triage_pairs.__doc__, re.MULTILINE)
    return {name: float(value) for name, value in rows}


@pytest.mark.parametrize("seed", range(3))
def test_policies_score_what_the_documentation_says(seed):
    world, said = PairTriage(seed), documented()
    constant = {score(world, lambda _, word=word: word) for word in ACTIONS}
    assert constant == {said["always the same answer, whichever"]}
    assert sum(constant) / len(constant) == said["at random among the four"]
    assert best(world, "mood") == pytest.approx(said["the best that sees only the mood"], abs=0.005)
    assert best(world, "product") == said["the best that sees only the product"]
    assert score(world, lambda one: one.answer) == said["the table"]


def test_the_table_in_the_documentation_is_the_rule():
    for thing in PRODUCTS:
        (row,) = re.findall(
            rf"^\| {thing} +\| (\w+) +\| (\w+) +\|$", triage_pairs.__doc__, re.MULTILINE
        )
        assert row == RULE[thing]
    assert ", ".join(MOODS[:3]) in triage_pairs.__doc__
    assert ", ".join(MOODS[3:]) in triage_pairs.__doc__


def test_held_out_tickets_are_not_among_those_to_learn_from():
    world = PairTriage(0)
    both = (*world.training, *world.held_out)
    assert len({one.text for one in both}) == len({one.task_id for one in both}) == 1332
    assert PairTriage(0).training == world.training
    assert PairTriage(1).training != world.training


def test_a_longer_training_list_changes_no_ticket():
    short, long = PairTriage(0, (96, 180)), PairTriage(0, (500, 180))
    assert short.held_out == long.held_out
    assert short.training == long.training[:96]


def test_every_round_of_training_tickets_has_every_pair():
    world = PairTriage(0)
    for start, end in pairwise(range(0, 4 * 96 + 1, 96)):
        seen = Counter((one.product, one.mood) for one in world.training[start:end])
        assert set(seen) == set(product(PRODUCTS, MOODS))


def test_a_prompt_is_short_and_in_words_that_are_one_token_of_the_small_model():
    from upswing.adapters.tiny.tokenizer import build_tokenizer

    for one in PairTriage(2).held_out:
        prompt = f"{one.instructions} {one.text}".split()
        assert 13 <= len(prompt) <= 20
        assert set(prompt) <= set(WORDS)
        assert not set(one.text.split()) & set(ACTIONS)
    spelled = build_tokenizer()([form for word in WORDS for form in (word, f" {word}")])
    assert {len(ids) for ids in spelled["input_ids"]} == {1}


@pytest.mark.parametrize("reply", ["", "refund refund", "banana", "refund."])
def test_a_reply_that_the_desk_does_not_know_is_no_success(reply):
    world = PairTriage(0)
    state = world.step(world.reset(world.held_out[0]), reply)
    assert (world.outcome(state).success, world.outcome(state).score) == (False, 0.0)
    assert world.observe(state).text == "That is not something the desk can do."
