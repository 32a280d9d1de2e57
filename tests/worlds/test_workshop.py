"""The workshop's questions are fair, apart from each other, and the first word of a reply decides."""

import pytest

from upswing.worlds.workshop import NO, YES, Workshop


def score(reply):
    world = Workshop(3)
    asked = world.held_out
    return sum(
        world.outcome(world.step(world.reset(each), reply(each))).score for each in asked
    ) / len(asked)


@pytest.mark.parametrize(
    ("reply", "value"),
    [
        (lambda _: "Yes, it should.", 0.5),
        (lambda _: "no", 0.5),
        (lambda each: f"{each.answer.upper()}! Certainly.", 1.0),
        (lambda each: f"I say {each.answer}", 0.0),
        (lambda _: "", 0.0),
    ],
)
def test_the_table_is_true(reply, value):
    assert score(reply) == value


def test_no_question_is_learned_from_and_measured_with():
    for seed in range(8):
        world = Workshop(seed)
        texts = {each.text for each in world.training}
        assert not texts & {each.text for each in world.held_out}
        assert len(world.training) == 288
        assert len(world.held_out) == 48


def test_the_seed_decides_the_order_and_nothing_gives_the_rule_away():
    assert Workshop(1).training == Workshop(1).training
    assert [each.text for each in Workshop(1).training] != [
        each.text for each in Workshop(2).training
    ]
    for each in Workshop().training:
        assert (each.answer == "yes") == any(thing in each.text for thing in YES)
        assert any(thing in each.text for thing in (*YES, *NO))
        assert each.instructions == "Answer yes or no."
