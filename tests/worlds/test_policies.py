"""Players that learn nothing: their scores are those of the documentation."""

import re
from random import Random

import pytest

from upswing.worlds import policies
from upswing.worlds.desk import ServiceDesk
from upswing.worlds.policies import (
    POLICIES,
    held_out_score,
    offered_words,
    optimal_policy,
    play_task,
)
from upswing.worlds.triage import Triage
from upswing.worlds.world import UNFINISHED, Task

WORLDS = (Triage(), Triage(check_first=True), ServiceDesk())


def documented():
    rows = re.findall(r"^\| ([a-z ]+?) +((?:\| \d\.\d\d +)+)\|$", policies.__doc__, re.MULTILINE)
    return {name: [float(cell) for cell in cells.split("|")[1:]] for name, cells in rows}


def test_every_player_scores_what_the_documentation_says():
    measured = {
        name: [round(held_out_score(world, player), 2) for world in WORLDS]
        for name, player in POLICIES.items()
    }
    assert measured == documented()


@pytest.mark.parametrize("seed", range(1, 4))
@pytest.mark.parametrize("make", [Triage, lambda seed: Triage(seed, check_first=True), ServiceDesk])
def test_only_who_knows_the_rule_does_everything(make, seed):
    scores = {name: held_out_score(make(seed), player, seed) for name, player in POLICIES.items()}
    assert scores.pop("optimal") == 1.0
    assert max(scores.values()) < 0.45


def test_the_same_seed_plays_the_same_way_and_another_seed_another():
    random = POLICIES["at random"]
    assert held_out_score(ServiceDesk(), random, 1) == held_out_score(ServiceDesk(), random, 1)
    assert len({held_out_score(ServiceDesk(), random, seed) for seed in range(5)}) > 1


def test_a_fault_says_nothing_about_the_player():
    world = ServiceDesk()
    down = [case for case in world.training if case.outage == "good"]
    assert down
    for case in down:
        outcome = play_task(world, case, optimal_policy, Random(0))
        assert outcome.fault
        assert not outcome.success


def test_what_is_offered_now_goes_before_the_instructions():
    task = Task("a", "answer buy or sell")
    assert offered_words(task, "gold is up") == ("buy", "sell")
    assert offered_words(task, "oil is up\nanswer hold or wait") == ("hold", "wait")


def test_a_world_that_offers_no_words_is_refused():
    with pytest.raises(ValueError, match="offers no words"):
        offered_words(Task("a", "say something"), "hello")


def test_a_rule_that_nobody_knows_is_not_guessed():
    with pytest.raises(ValueError, match="not known here"):
        optimal_policy(Task("a", "answer buy or sell"), "gold is up", Random(0))


def test_an_episode_ends_when_the_turns_do():
    class Endless(Triage):
        def outcome(self, state):
            return None

    assert play_task(Endless(), Endless().held_out[0], optimal_policy, Random(0)) is UNFINISHED
