"""The smallest world: what its documentation says, computed."""

import re
from collections import Counter
from itertools import pairwise

import pytest

from upswing.worlds import triage
from upswing.worlds.triage import ACTIONS, PRODUCTS, RULE, WORDS, Triage


def score(world, answer):
    """The share of the held-out tasks that a function of the ticket does."""
    ended = [world.step(world.reset(one), answer(one)) for one in world.held_out]
    return sum(world.outcome(state).score for state in ended) / len(ended)


def documented():
    rows = re.findall(r"^\| (.+?) +\| (\d\.\d\d) +\|$", triage.__doc__, re.MULTILINE)
    return {name: float(value) for name, value in rows}


@pytest.mark.parametrize("seed", range(3))
def test_policies_score_what_the_documentation_says(seed):
    world, said = Triage(seed), documented()
    constant = {score(world, lambda _, word=word: word) for word in ACTIONS}
    assert constant == {said["always the same answer, whichever"]}
    assert sum(constant) / len(constant) == said["at random among the four"]
    assert score(world, lambda one: one.answer) == said["the table"]


def test_no_constant_policy_passes_for_one_that_has_learned():
    assert all(score(Triage(5), lambda _, word=word: word) <= 0.30 for word in ACTIONS)


def test_the_table_in_the_documentation_is_the_rule():
    for thing in PRODUCTS:
        (row,) = re.findall(rf"^\| {thing} +\| (\w+) +\|$", triage.__doc__, re.MULTILINE)
        assert row == RULE[thing]


def test_the_same_seed_makes_the_same_tickets_and_another_seed_others():
    assert Triage(3).training == Triage(3).training
    assert Triage(3).training[0].text != Triage(4).training[0].text


@pytest.mark.parametrize("check_first", [False, True])
def test_held_out_tickets_are_not_among_those_to_learn_from(check_first):
    world = Triage(0, check_first=check_first)
    cases = [(one.text, one.product) for one in (*world.training, *world.held_out)]
    ids = [one.task_id for one in (*world.training, *world.held_out)]
    assert len(cases) == len(set(cases)) == len(set(ids)) == 1328


def test_a_longer_training_list_changes_no_ticket():
    short, long = Triage(0, (96, 176)), Triage(0, (500, 176))
    assert short.held_out == long.held_out
    assert short.training == long.training[:96]


def test_every_round_of_training_tickets_has_every_product():
    world = Triage(0)
    for start, end in pairwise(range(0, 4 * 96 + 1, 96)):
        seen = Counter(one.product for one in world.training[start:end])
        assert set(seen) == set(PRODUCTS)
        assert max(seen.values()) - min(seen.values()) <= 2


def test_more_tickets_than_there_are_words_for_are_refused():
    with pytest.raises(ValueError, match="different tickets"):
        _ = Triage(0, (50_000, 176)).training


@pytest.mark.parametrize("check_first", [False, True])
def test_a_prompt_is_short_and_in_words_that_the_world_names(check_first):
    world = Triage(2, check_first=check_first)
    for one in world.held_out:
        prompt = f"{one.instructions} {one.text}".split()
        assert 13 <= len(prompt) <= 20
        assert set(prompt) <= set(WORDS)
    assert {*ACTIONS, *PRODUCTS, triage.LOOK_UP} <= set(WORDS)


def test_every_word_is_one_token_of_the_small_model():
    from upswing.train.bases.tiny.tokenizer import build_tokenizer

    tokenizer = build_tokenizer()
    spelled = tokenizer([form for word in WORDS for form in (word, f" {word}")])["input_ids"]
    assert {len(ids) for ids in spelled} == {1}


def test_the_prompt_offers_all_answers_and_favours_none():
    world = Triage(0)
    for one in world.held_out:
        assert not set(one.text.split()) & set(ACTIONS)
        assert one.instructions == world.held_out[0].instructions


@pytest.mark.parametrize("reply", ["", "refund refund", "banana", "check", "refund."])
def test_a_reply_that_the_desk_does_not_know_is_no_success(reply):
    world = Triage(0)
    state = world.step(world.reset(world.held_out[0]), reply)
    outcome = world.outcome(state)
    assert (outcome.success, outcome.score) == (False, 0.0)
    assert world.observe(state).text == "That is not something the desk can do."


def test_case_and_blanks_do_not_matter():
    world = Triage(0)
    ticket = world.held_out[0]
    assert world.outcome(world.step(world.reset(ticket), f"  {ticket.answer.title()}\n")).success


def test_an_episode_is_not_over_before_the_reply():
    world = Triage(0)
    assert world.outcome(world.reset(world.held_out[0])) is None


def test_who_checks_first_sees_the_product_and_who_does_not_can_only_guess():
    world = Triage(0, check_first=True)
    ticket = world.held_out[0]
    assert ticket.product not in ticket.text.split()
    checked = world.step(world.reset(ticket), "check")
    assert world.outcome(checked) is None
    assert world.observe(checked).kind == "tool_result"
    assert world.observe(checked).text == f"it is a {ticket.product}"
    assert world.outcome(world.step(checked, ticket.answer)).success
    assert not world.outcome(world.step(checked, "check")).success
