"""The store's side of data sets, on its twin, on SQLite and on PostgreSQL."""

from dataclasses import replace
from datetime import timedelta

import pytest
from tests.dataset.data_cases import NOW, grouped, made_model, put

from upswing.infra.sql.datasets import DataSets
from upswing.infra.sql.users import Users


@pytest.fixture
def data(store):
    return DataSets(store.database)


async def by_id(data, *ancestors):
    return {each.trajectory_id: each for each in await data.candidates(ancestors)}


async def test_a_candidate_is_known_without_its_body(store, data):
    row = await put(store, grouped(1, "a", subordinate_profile="hacker"), total=0.75)
    (found,) = await data.candidates()
    assert found.trajectory_id == row.trajectory_id
    assert (found.agent_id, found.profile, found.domain) == ("agent-a", "hacker", "coding")
    assert (found.task_id, found.scenario_id, found.window_id) == ("task-1", "s1", row.window_id)
    assert (found.ended, found.turns) == (row.ended, 1)
    assert (found.revision, found.reward, found.raw_total) == (1, 0.75, 0.375)
    assert not any([found.infra_error, found.evaluation, found.opted_out, found.seen])


async def test_the_judges_score_stands_beside_the_total_and_the_newest_revision_counts(store, data):
    await put(store, grouped(1, "a"), total=0.25, judge=0.875)
    (found,) = await data.candidates()
    assert (found.revision, found.reward, found.raw_total) == (2, 0.25, 0.125)
    assert (found.judged, found.feedback) == (0.875, None)


async def test_what_speaks_against_a_candidate_is_told(store, data):
    unscored = await put(store, grouped(1, "a"), score=False)
    broken = await put(store, grouped(1, "b", metadata={"infra_error": True}))
    measured = await put(store, grouped(1, "c", metadata={"is_evaluation": True}))
    private = await put(store, grouped(1, "d"))
    seen = await put(store, grouped(1, "e"))
    await Users(store.database).opt_out("user-d", NOW)
    await data.note_trained("job-1", [(seen.trajectory_id, 1)])
    found = await by_id(data, "job-0", "job-1")
    assert found[unscored.trajectory_id].reward is None
    assert found[broken.trajectory_id].infra_error
    assert found[measured.trajectory_id].evaluation
    assert found[private.trajectory_id].opted_out
    assert [name for name, each in found.items() if each.seen] == [seen.trajectory_id]
    assert not (await by_id(data, "another-job"))[seen.trajectory_id].seen
    assert not (await by_id(data))[seen.trajectory_id].seen


async def test_bodies_come_some_at_a_time(store):
    data = DataSets(store.database, chunk_size=2)
    rows = [await put(store, grouped(1, agent)) for agent in "abcde"]
    names = [row.trajectory_id for row in rows]
    chunks = [chunk async for chunk in data.bodies([*names, "no-such-one"])]
    assert [len(chunk) for chunk in chunks] == [2, 2, 1]
    assert dict(pair for chunk in chunks for pair in chunk) == {
        row.trajectory_id: row.body for row in rows
    }


async def test_noting_again_adds_and_does_not_double(store):
    data = DataSets(store.database, chunk_size=2)
    await data.note_trained("job-1", [("a", 1), ("b", 1), ("c", 1)])
    await data.note_trained("job-1", [("a", 2), ("d", 1)])
    await data.note_trained("job-1", [])
    rows = await store.database.read(
        lambda tx: tx.rows("SELECT trajectory_id, revision FROM trained_on ORDER BY 1")
    )
    assert rows == [("a", 2), ("b", 1), ("c", 1), ("d", 1)]


async def test_what_remains_of_a_trajectory_that_is_gone(store, data):
    erased = await put(store, grouped(1, "a"))
    pruned = await put(store, grouped(1, "b"), total=0.5)
    await Users(store.database).erase("user-a", NOW)
    await Users(store.database).opt_out("user-z", NOW)
    await data.note_trained("job-1", [(pruned.trajectory_id, 1)])
    sql = "DELETE FROM trajectories WHERE trajectory_id = ?"
    await store.database.write(lambda tx: tx.execute(sql, (pruned.trajectory_id,)))
    remains = await data.records_of_removed(
        [erased.trajectory_id, pruned.trajectory_id, "x"], ["job-1"]
    )
    assert remains.erased == {erased.trajectory_id}
    assert remains.scored.keys() == remains.seen == {pruned.trajectory_id}
    assert remains.scored[pruned.trajectory_id].reward == 0.5
    assert remains.optouts == {"user-z"}


async def test_messages_of_a_stream_lead_to_their_trajectories(store, data):
    for seq, agent in enumerate("abc", 5):
        row = grouped(1, agent)
        await store.take(row, door="nats", now=NOW, stream_seq=seq, announce=False)
    assert (await data.carried("RL_TRAJECTORIES", 6)) == {
        6: grouped(1, "b").trajectory_id,
        7: grouped(1, "c").trajectory_id,
    }
    assert await data.carried("ANOTHER", 0) == {}


async def test_a_model_has_seen_what_its_ancestors_saw(store, data):
    await data.note_trained("job-1", [("a", 1), ("b", 1)])
    await data.note_trained("job-2", [("c", 1)])
    await data.note_trained("job-9", [("a", 1)])
    await made_model(store, "job-1", "model-1")
    await made_model(store, "job-2", "model-2", parent="model-1")
    await made_model(store, "job-3", "model-3", parent="model-2")
    await made_model(store, "job-9", ended=False)
    assert await data.models_trained_on(["a"]) == ["model-1", "model-2", "model-3"]
    assert await data.models_trained_on(["c", "nobody"]) == ["model-2", "model-3"]
    assert await data.models_trained_on([]) == []


async def test_erasure_names_the_models_that_have_seen_it_and_the_jobs_that_see_it(store, data):
    mine, theirs = await put(store, grouped(1, "a")), await put(store, grouped(1, "b"))
    await data.note_trained("job-1", [(mine.trajectory_id, 1), (theirs.trajectory_id, 1)])
    await data.note_trained("job-2", [(theirs.trajectory_id, 1)])
    await data.note_trained("job-3", [(mine.trajectory_id, 1)])
    await made_model(store, "job-1", "model-1")
    await made_model(store, "job-2", "model-2")
    await made_model(store, "job-3", ended=False)
    gone = await Users(store.database).erase("user-a", NOW)
    assert (gone.models_that_saw, gone.jobs_that_see) == (("model-1",), ("job-3",))
    assert (await by_id(data)).keys() == {theirs.trajectory_id}
    assert await data.models_trained_on([mine.trajectory_id]) == ["model-1"], (
        "known by the id alone"
    )
    nothing = await Users(store.database).erase("user-z", NOW)
    assert (nothing.models_that_saw, nothing.jobs_that_see) == ((), ())


async def test_moments_are_compared_to_the_microsecond(store, data):
    row = grouped(1, "a")
    await put(store, replace(row, ended=row.ended + timedelta(microseconds=1)))
    (found,) = await data.candidates()
    assert found.ended - row.ended == timedelta(microseconds=1)
