"""Does a job take what the trigger counts? By the same dates, whatever the clocks of the agents say."""

import random
from dataclasses import replace
from datetime import timedelta
from uuid import uuid4

import pytest
from tests.dataset.data_cases import NOW, admitted, put

from upswing.config import Settings, Surroundings
from upswing.infra.sql.datasets import DataSets
from upswing.trigger.core.decide import TrainNow
from upswing.trigger.core.policy import trigger_policy_of
from upswing.trigger.core.request import training_request_of
from upswing.trigger.signals import SignalReader

DAYS = 30


def asked_for(now):
    """The dates of an automatic request."""
    choice = TrainNow("threshold_reached", "normal", "There is enough.")
    request = training_request_of(
        choice,
        trigger_policy_of(Settings(), Surroundings(base_model="tiny")),
        job_id="j",
        now=now,
        previous=None,
        new=10,
    )
    return request.training_config.dataset.filter.date_range


@pytest.mark.parametrize("seed", range(6))
async def test_the_trigger_counts_what_its_own_request_finds(store, seed):
    """Stored in order, each by a clock that is right, slow, or hours to months ahead."""
    rng = random.Random(seed)
    row, rows = admitted(), {}
    moments = sorted(NOW - timedelta(days=rng.uniform(0, 2 * DAYS)) for _ in range(40))
    clocks = [rng.choice([0, 0, -1, -500, 2, 14, 1000]) for _ in moments]
    for stored, hours in zip([*moments, NOW], [*clocks, 2], strict=True):
        off = timedelta(hours=hours)
        made = replace(
            row,
            trajectory_id=str(uuid4()),
            started=stored + off - timedelta(seconds=5),
            ended=stored + off,
        )
        await put(store, made, now=stored)
        rows[made.trajectory_id] = made
    dates = asked_for(NOW)
    counted, _ = await SignalReader(store.database).pool("tiny", since=dates.start)
    found = {
        each.trajectory_id
        for each in await DataSets(store.database).candidates()
        if dates.start <= each.ended <= dates.end
    }
    assert {each.trajectory_id for each in counted} == found
    ahead = {key for key, each in rows.items() if each.ended > NOW}
    assert found & ahead
