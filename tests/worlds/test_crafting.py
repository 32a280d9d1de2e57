"""The workbench: things are made of things, step by step."""

from random import Random

import pytest

from upswing.train.bases.tiny.vocabulary import action_words, vocabulary_words
from upswing.worlds.crafting import RAW, RECIPES, SLACK, WORDS, Crafting, crafting_steps_for
from upswing.worlds.horizon import Horizon
from upswing.worlds.policies import offered_words, play_task, random_policy

WORLD = Crafting()


def knowing(task, seen, chance):
    """Knows the tables: what is missing first."""
    have = seen.partition("you have ")[2].partition(".")[0].split()

    def missing(thing):
        parts = [part for part in RECIPES.get(thing, ()) if part not in have]
        return missing(parts[0]) if parts else thing

    return WORDS[missing(task.thing)]


def order_of(thing):
    return next(order for order in WORLD.training if order.thing == thing)


def after(order, *replies):
    state = WORLD.reset(order)
    for reply in replies:
        state = WORLD.step(state, reply)
    return state


def test_who_knows_the_tables_makes_everything_in_as_many_steps_as_it_takes():
    for order in (*WORLD.held_out, *WORLD.test):
        state, replies = WORLD.reset(order), 0
        while WORLD.outcome(state) is None:
            state = WORLD.step(state, knowing(order, WORLD.observe(state).text, None))
            replies += 1
        assert WORLD.outcome(state).success
        assert replies == len(crafting_steps_for(order.thing))


def test_who_guesses_makes_simple_things_now_and_then_and_hard_ones_hardly_ever():
    made = {}
    for order in WORLD.training:
        won = play_task(WORLD, order, random_policy, Random(order.task_id)).success
        made.setdefault(len(crafting_steps_for(order.thing)), []).append(won)
    shares = {steps: sum(won) / len(won) for steps, won in made.items()}
    assert shares[2] > 0.3 > shares[3] > shares[6]
    assert shares[6] < 0.05


@pytest.mark.parametrize("thing", RECIPES)
def test_an_order_offers_everything_that_it_takes(thing):
    order = order_of(thing)
    assert {WORDS[step] for step in crafting_steps_for(thing)} <= set(offered_words(order, ""))
    assert len(offered_words(order, "")) <= 6


def test_parts_are_used_up_and_nothing_is_made_of_nothing():
    steel = order_of("hammer")
    early = after(steel, "merge")
    assert early.refused
    assert WORLD.observe(early).text.startswith("not possible yet. you have nothing")
    assert after(steel, "buy", "fetch").at_hand == ("iron", "coal")
    assert after(steel, "buy", "fetch", "merge").at_hand == ("steel",)
    assert after(steel, "get iron", "Get coal.", "make steel").at_hand == ("steel",)


def test_time_runs_out_and_what_was_done_counts_half():
    order = order_of("steel")
    idle = after(order, *["buy"] * (len(crafting_steps_for("steel")) + SLACK))
    assert WORLD.outcome(idle).score == pytest.approx(0.5 / 3)
    assert not WORLD.outcome(idle).success
    assert after(order, *["buy"] * 20) == idle


def test_a_shorter_horizon_ends_an_episode_with_what_was_done():
    order = order_of("hammer")
    short = Horizon(WORLD, 2)
    state = short.step(short.step(short.reset(order), "buy"), "fetch")
    assert short.outcome(state).score == pytest.approx(0.2)
    assert short.outcome(short.step(short.reset(order), "buy")) is None


def test_tiny_knows_every_word_of_it():
    known = set(vocabulary_words())
    assert set(WORDS.values()) <= set(action_words())
    assert {*RAW, *RECIPES} <= known
    for order in WORLD.training[:50]:
        text = f"{order.instructions} {order.text} you have nothing not possible yet"
        assert {word.strip(".,") for word in text.split()} <= known
