"""A thousand bad messages of each of thirty kinds, at the door and behind it: does every stage go on?"""

import contextlib
import json
import random
from dataclasses import replace
from datetime import timedelta

import pytest

from tests.dataset.data_cases import request as training
from tests.poison.conftest import dead_letters, store  # noqa: F401 - fixtures
from tests.poison.kinds import between
from tests.poison.test_stages import NOW, REDACTOR, admitted, hashed, letters, rewarder, rounds
from tests.storms import sized
from tests.storms.poisons import KINDS, poison
from tests.support import trajectory
from upswing.app.archive import Archive, archive_finished_hours
from upswing.collect.core.admit import AdmissionLimits
from upswing.collect.core.evaluate import MessageKind, evaluate
from upswing.contracts import Feedback
from upswing.contracts.examples import EXAMPLES
from upswing.infra.sql.datasets import DataSets
from upswing.infra.sql.rewards import Rewards
from upswing.records import RejectedMessage
from upswing.train.core.recipe import build_recipe
from upswing.train.jobs.data import NoData, TrainingData

FEEDBACK = {**EXAMPLES[Feedback], "start_timestamp": "", "turns": [{}]}
"""With what every kind of poison changes."""


def test_there_are_thirty_kinds():
    assert len(KINDS) == 30


@sized("each", 8, 1000)
@pytest.mark.parametrize("kind", KINDS)
def test_whatever_comes_is_taken_or_refused_with_a_reason(kind, each, trials):
    chance = random.Random(f"{kind} {each}")
    for _ in range(each):
        for what, example in (
            (MessageKind.TRAJECTORY, trajectory()),
            (MessageKind.FEEDBACK, FEEDBACK),
        ):
            verdict = evaluate(what, poison(kind, example, chance), REDACTOR, AdmissionLimits())
            if isinstance(verdict, RejectedMessage):
                assert verdict.reason
        trials.add()


@sized("each", 8, 1000)
@pytest.mark.parametrize("kind", KINDS)
async def test_every_stage_goes_on_over_rows_of_poison(
    kind,
    each,
    trials,
    store,  # noqa: F811 - fixture
    dead_letters,  # noqa: F811 - fixture
    tmp_path,
):
    """Behind the door, where none of it should ever come to lie."""
    chance, then = random.Random(f"{kind} {each}"), NOW - timedelta(hours=3)
    good = [admitted() for _ in range(5)]
    bad = []
    for _ in range(each):
        document = trajectory()
        body = poison(kind, document, chance)
        bad.append(replace(admitted(document), body=body, content_hash=hashed(body)))
    for row in between(good, bad):
        await store.take(row, door="nats", now=then, stream_seq=None, announce=False)
    await rounds(rewarder(store, dead_letters))
    rewards = Rewards(store.database)
    assert all([await rewards.newest(row.trajectory_id) for row in good])
    ((scored,),) = await store.database.read(lambda tx: tx.rows("SELECT COUNT(*) FROM scored"))
    assert scored - len(good) + await letters(store, "reward") == each, "scored, or a dead letter"

    archive = Archive(str(tmp_path))
    await archive_finished_hours(store, archive, NOW, dead_letters)
    lines = [line async for _, some in archive.read() for line in some]
    names = {
        json.loads(line.decode(errors="replace")).get("trajectory_id")
        for line in lines
        if line.startswith(b"{")
    }
    assert {row.trajectory_id for row in good} <= names

    asked = training()
    data = TrainingData(DataSets(store.database), dead_letters=dead_letters)
    with contextlib.suppress(NoData):  # what is sound is too little to learn from
        await data.gather(
            asked, build_recipe(asked, {}), ancestor_jobs=(), excluded_ids=(), now=NOW
        )
    await dead_letters.flush()
    trials.add(each)
