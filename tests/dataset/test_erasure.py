"""A user who is erased learns which models have seen their work."""

import asyncio

import pytest
from tests.dataset.data_cases import NOW, grouped, made_model, put
from tests.support import cli

from upswing.infra.sql.datasets import DataSets

pytestmark = pytest.mark.live


async def trained(store, *agents):
    """A model that was trained on the work of these, and a job that is about to."""
    data = DataSets(store.database)
    rows = [await put(store, grouped(1, agent), now=NOW) for agent in agents]
    for job in ("job-1", "job-2"):
        await data.note_trained(job, [(row.trajectory_id, 1) for row in rows])
    await made_model(store, "job-1", "upswing-1")
    await made_model(store, "job-2", ended=False)


async def test_the_answer_names_models_and_jobs(loop, client):
    await trained(loop.store, "ann")
    status, told = await client("DELETE", "/v1/users/user-ann/data")
    assert (status, told["trajectories"]) == (200, 1)
    assert (told["models_that_saw"], told["jobs_that_see"]) == (["upswing-1"], ["job-2"])
    _, again = await client("DELETE", "/v1/users/user-bob/data")
    assert (again["models_that_saw"], again["jobs_that_see"]) == ([], [])


async def test_the_command_prints_them(loop, data):
    await trained(loop.store, "ann", "bob")
    done = await asyncio.to_thread(cli, "erase", "user-ann", data=data)
    said = done.stdout.decode()
    assert "1 trajectory," in said
    assert "Models that were trained on some of it: upswing-1." in said
    assert "Training jobs that have some of it: job-2." in said
    nothing = await asyncio.to_thread(cli, "erase", "user-zoe", data=data)
    assert "Models" not in nothing.stdout.decode()
