"""A model acts in a world, and what it did can be told token by token."""

from dataclasses import dataclass

import pytest
import torch
from tests.worlds.small import model, policy, tokenizer

from upswing.worlds.chat import Chat
from upswing.worlds.sampler import SamplingPolicy, play_episodes, success_rate
from upswing.worlds.triage import ACTIONS, WORDS, Triage
from upswing.worlds.world import Task, WorldObservation, WorldOutcome


@pytest.fixture(scope="module")
def small():
    return policy()


def always(words, said):
    """A policy that says the same token every time and then stops."""
    made = model(len(words))
    token, end = words.convert_tokens_to_ids([said, "<end>"])
    cue = words.convert_tokens_to_ids("<agent>")
    with torch.no_grad():
        for layer in made.model.layers:
            layer.self_attn.o_proj.weight.zero_()
            layer.mlp.down_proj.weight.zero_()
        made.model.embed_tokens.weight.zero_()
        made.model.embed_tokens.weight[cue, 0] = 1.0
        made.model.embed_tokens.weight[token, 1] = 1.0
        made.lm_head.weight.zero_()
        made.lm_head.weight[token, 0] = 9.0
        made.lm_head.weight[end, 1] = 9.0
    return SamplingPolicy(f"always-{said}", made, words)


def test_every_task_is_played_as_often_as_asked(small):
    world = Triage(0)
    episodes = play_episodes(world, world.training[:5], small, group=3)
    assert [one.task for one in episodes] == [t for t in world.training[:5] for _ in range(3)]
    assert [one.member for one in episodes] == [0, 1, 2] * 5
    assert all(len(one.steps) == 1 for one in episodes)


def test_the_same_seed_plays_the_same_episodes(small):
    world = Triage(0)
    once, again, other = (
        play_episodes(world, world.training[:6], small, group=4, seed=seed) for seed in (1, 1, 2)
    )
    assert [one.ids for one in once] == [one.ids for one in again]
    assert [one.ids for one in once] != [one.ids for one in other]


def test_an_episode_does_not_depend_on_the_others(small):
    world = Triage(0)
    many = play_episodes(world, world.training[:6], small, group=4, seed=1)
    few = play_episodes(world, world.training[4:5], small, group=2, seed=1)
    assert [one.ids for one in many[16:18]] == [one.ids for one in few]


def test_attempts_at_one_task_differ_and_greedy_ones_do_not(small):
    world = Triage(0)
    assert len({one.ids for one in play_episodes(world, world.training[:1], small, group=8)}) > 1
    assert (
        len(
            {
                one.ids
                for one in play_episodes(world, world.training[:1], small, group=8, greedy=True)
            }
        )
        == 1
    )


def test_success_is_the_share_of_tasks_done():
    world, words = Triage(0), tokenizer()
    assert [success_rate(world, world.held_out, always(words, one)) for one in ACTIONS] == [
        0.25
    ] * 4
    assert success_rate(world, world.held_out, always(words, "phone")) == 0.0


def test_a_second_turn_goes_on_where_the_first_ended():
    world, words = Triage(0, check_first=True), tokenizer()
    (episode,) = play_episodes(world, world.training[:1], always(words, "check"), greedy=True)
    ticket = world.training[0]
    assert [step.reply for step in episode.steps] == ["check", "check"]
    assert words.decode(episode.ids) == (
        f"<system> {ticket.instructions} <end> <user> {ticket.text} <end> <agent> check <end>"
        f" <user> it is a {ticket.product} <end> <agent> check <end>"
    )
    assert not episode.outcome.success


def test_logprobs_of_every_turn_are_those_of_the_whole_conversation(small):
    world = Triage(0, check_first=True)
    words = tokenizer()
    for actor in (small, always(words, "check")):
        for one in play_episodes(world, world.training[:8], actor, group=2, seed=3):
            with torch.no_grad():
                logps = actor.model(input_ids=torch.tensor([one.ids])).logits[0].log_softmax(-1)
            at = 0
            for step in one.steps:
                at += len(step.prompt_ids)
                for token, logp in zip(step.completion_ids, step.logprobs, strict=True):
                    assert logp == pytest.approx(logps[at - 1, token].item(), abs=1e-4)
                    at += 1


def test_a_reply_that_was_cut_is_closed_by_the_next_prompt():
    chat, words = Chat(tokenizer()), tokenizer()
    end = words.eos_token_id
    closed = chat.next_prompt("answer", ["hello", "well"], end)
    cut = chat.next_prompt("answer", ["hello", "well"], None)
    assert cut == (end, *closed)
    assert words.decode(closed) == "<user> well <end> <agent>"


def test_a_template_without_a_system_gets_the_instructions_in_the_first_message():
    words = tokenizer()
    words.chat_template = (
        "{% if messages[0].role == 'system' %}{{ raise_exception('no system here') }}{% endif %}"
        + words.chat_template
    )
    assert words.decode(Chat(words).first_prompt("answer", "hello")) == (
        "<user> answer hello <end> <agent>"
    )


def test_a_tokenizer_without_a_template_is_refused():
    words = tokenizer()
    words.chat_template = None
    with pytest.raises(ValueError, match="no chat template"):
        Chat(words)


@dataclass(frozen=True)
class Echo:
    """A world of one's own: it never ends by itself, and counts what it was told."""

    name: str = "echo"
    max_turns: int = 3
    training: tuple[Task, ...] = (Task("echo-1", ""), Task("echo-2", ""))
    held_out: tuple[Task, ...] = ()

    def reset(self, task):
        return 0

    def observe(self, state):
        return WorldObservation(WORDS[state])

    def step(self, state, reply):
        return state + 1

    def outcome(self, state):
        return WorldOutcome(True, 1.0, "") if state > 9 else None


def test_an_episode_that_does_not_end_has_failed(small):
    for one in play_episodes(Echo(), Echo.training, small):
        assert len(one.steps) == 3
        assert [step.observation.text for step in one.steps] == list(WORDS[:3])
        assert not one.outcome.success
