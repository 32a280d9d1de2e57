"""Keys that name episodes alike: does what one stores hide, delay or change another's words?"""

import random
import uuid
from dataclasses import replace

import pytest

from tests.poison.test_stages import NOW, REDACTOR, admitted, rewarder, rounds
from tests.support import raw
from upswing.collect.core.admit import AdmissionLimits, admit_feedback
from upswing.contracts import Feedback
from upswing.contracts.examples import EXAMPLES
from upswing.infra.sql.datasets import DataSets
from upswing.infra.sql.feedback_targets import MOST_ALIKE
from upswing.infra.sql.rewards import Rewards
from upswing.records import Taken


async def record(store, key, episode="e1", *, many=False):
    row = replace(admitted(), key_id=key, many=many, episode_id=episode, user_id=None)
    await store.take(row, door="http", now=NOW, stream_seq=None, announce=False)
    return row


async def speak(store, key, episode="e1", *, many=False, **fields):
    said = {
        **{name: value for name, value in EXAMPLES[Feedback].items() if name != "trajectory_id"},
        "feedback_id": str(uuid.uuid4()),
        "episode_id": episode,
        **fields,
    }
    said.pop("user_id", None)
    word, _ = admit_feedback(raw(said), REDACTOR, AdmissionLimits())
    word = replace(word, principal=key, many=many)
    return await store.take_feedback(word, now=NOW, announce=False)


async def opinion_of(store, row):
    reward = await Rewards(store.database).newest(row.trajectory_id)
    return reward.reward_components["user_feedback"].score


async def test_trajectories_of_another_key_hide_no_word(store, dead_letters):
    stage = rewarder(store, dead_letters)
    for _ in range(600):
        await record(store, "bob")
    mine = await record(store, "ann")
    while await Rewards(store.database).newest(mine.trajectory_id) is None:
        await rounds(stage)
    assert await speak(store, "ann") is Taken.STORED
    await rounds(stage)
    assert await opinion_of(store, mine) > 0.5


@pytest.mark.parametrize("seed", range(4))
async def test_an_episode_that_goes_on_and_on_holds_up_no_word(store, dead_letters, seed):
    """At every look there is something of that name that is not scored yet."""
    rng, busy = random.Random(seed), []

    class Streaming(Rewards):
        """Trajectories go on coming between scoring and feedback."""

        async def feedback_after(self, *arguments):
            for _ in range(rng.choice([1, 3, MOST_ALIKE + 20]) if busy else 0):
                await record(store, "bob")
            return await super().feedback_after(*arguments)

    stage = rewarder(store, dead_letters, Streaming(store.database))
    mine = await record(store, "ann", "mine")
    await record(store, "bob")
    await rounds(stage)
    await speak(store, "bob")
    await speak(store, "ann", "mine")
    busy.append(True)
    for _ in range(4):
        await stage.score_new()
        await stage.apply_feedback()
    assert await opinion_of(store, mine) > 0.5


async def test_a_key_that_speaks_for_many_means_its_own_episode(store, dead_letters):
    stage = rewarder(store, dead_letters)
    mine, theirs = await record(store, "gateway", many=True), await record(store, "bob")
    await rounds(stage)
    await speak(store, "gateway", many=True, type="thumbs_down")
    await rounds(stage)
    assert await opinion_of(store, mine) < 0.5
    assert await opinion_of(store, theirs) == 0.5


async def test_what_is_shown_to_be_right_is_about_the_own_episode_and_bounded(store):
    mine = await record(store, "ann")
    theirs = [await record(store, "bob") for _ in range(MOST_ALIKE + 50)]
    shown = {"type": "demonstration", "comment": "so"}
    await speak(store, "ann", **shown)
    assert await DataSets(store.database).demonstrations() == {mine.trajectory_id: "so"}
    await speak(store, "bob", **shown)
    found = await DataSets(store.database).demonstrations()
    newest = {row.trajectory_id for row in theirs[-MOST_ALIKE:]}
    assert found.keys() == newest | {mine.trajectory_id}
