"""Trajectories that were scored before outcomes were read: their outcome is read out of their bodies."""

import pytest
from tests.dataset.data_cases import admitted, put

from upswing.dataset.outcome import trajectory_outcome
from upswing.infra.sql.rewards import Rewards

TOLD = [
    {},
    {"outcome": True},
    {"outcome": 0.25},
    {"outcome": "failed"},
    {"outcome": {"status": "completed"}},
    {"outcome": {"status": "partial", "share": 0.3, "source": "world"}},
    {"outcome": {"score": 0.7, "source": "tests"}},
    {"outcome": "completed", "test_results": {"passed": 1, "failed": 3}},
    {"outcome": "who knows"},
]
FORGET = "UPDATE {table} SET answers = ''{more}"


async def forgotten(store):
    """As a store of an earlier version is after its migration: a status at most."""

    def unit(tx):
        tx.execute(FORGET.format(table="trajectories", more=""))
        tx.execute(FORGET.format(table="scored", more=", verified = NULL, reported = NULL"))

    await store.database.write(unit)


async def known(store):
    sql = "SELECT trajectory_id, verified, reported, answers FROM scored ORDER BY trajectory_seq"
    return await store.database.read(lambda tx: tx.rows(sql))


@pytest.mark.parametrize("step", [1, 4, 9, 500])
async def test_old_rows_say_how_well_it_went_and_who_checked_it(store, step):
    rows = [await put(store, admitted(metadata=told)) for told in TOLD]
    await forgotten(store)
    rewards, done = Rewards(store.database), 0
    while found := await rewards.reread_outcomes(step):
        done += found
    assert done == len(TOLD)
    outcomes = [trajectory_outcome(told) for told in TOLD]
    assert await known(store) == [
        (row.trajectory_id, outcome.verified, outcome.value, row.answers)
        for row, outcome in zip(rows, outcomes, strict=True)
    ]
    assert {(await store.trajectory(row.trajectory_id)).admitted.answers for row in rows} == {
        row.answers for row in rows
    }


async def test_what_is_known_is_left_alone_and_old_rows_are_read_once(store):
    rewards = Rewards(store.database)
    await put(store, admitted(metadata={"outcome": 0.25}))
    before = await known(store)
    assert not await rewards.reread_outcomes()
    assert await known(store) == before
    await forgotten(store)
    assert not await rewards.reread_outcomes()


async def test_a_body_that_cannot_be_read_holds_up_no_other(store):
    rows = [await put(store, admitted(metadata={"outcome": 0.25})) for _ in range(3)]
    await forgotten(store)
    sql = "UPDATE trajectories SET body = ? WHERE trajectory_id = ?"
    await store.database.write(lambda tx: tx.execute(sql, (b"{]", rows[1].trajectory_id)))
    assert await Rewards(store.database).reread_outcomes() == 3
    assert [row[2] for row in await known(store)] == [0.25, None, 0.25]
