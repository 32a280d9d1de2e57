"""What can one untrusted key choose of a validation? Its share of the tasks, and nothing of the sampling."""

import json
from collections import Counter
from dataclasses import replace
from uuid import uuid4

import pytest

from tests.dataset.data_cases import NOW, admitted, made_model
from tests.support import trajectory
from upswing.config import ValidateConfig
from upswing.dataset.split import is_held_out
from upswing.validate.core.sampling import observed_sampling
from upswing.validate.production import ProductionReader
from upswing.validate.suite_selection import SuiteCatalog
from upswing.worlds.recording import SOURCE

HONEST, LOUD = "honest", "loud"


class NoPins:
    async def pinned(self, *_):
        return ()


def row(task_id, question, key, *, temperature=0.5, held=True, source=None):
    """A checkable answer of one turn."""
    about = {"temperature": temperature, "model": "m", "user_id": f"user of {key}"}
    if held:
        about["ground_truth"] = "Paris"
    if source:
        about["outcome"] = {"status": "completed", "source": source}
    turn = trajectory()["turns"][0]
    made = admitted(
        trajectory_id=str(uuid4()),
        turns=[
            {
                **turn,
                "observation": {"type": "user_message", "content": question},
                "action": {"type": "response", "raw_response": "Rome."},
            }
        ],
        task_context={"task_id": task_id, "instructions": "Answer."},
        metadata=about,
    )
    return replace(made, key_id=key, many=False)


def held_out_names(count, prefix):
    names = (f"{prefix}-{n}" for n in range(100_000))
    return [name for name, _ in zip((n for n in names if is_held_out(n, 0.1)), range(count))]  # noqa: B905


async def put(store, rows, door):
    for each in rows:
        await store.take(each, door=door, now=NOW, stream_seq=None, announce=False)


def questions(tasks):
    return [json.dumps(list(task.messages)) for task in tasks]


async def honest_work(store, door="gateway"):
    names = held_out_names(30, "honest")
    await put(store, [row(name, f"{HONEST} asks {name}", HONEST) for name in names], door)


@pytest.mark.parametrize("door", ["gateway", "http"])
@pytest.mark.parametrize("store", ["memory"], indirect=True)
async def test_one_key_has_its_share_of_the_tasks_and_none_of_the_sampling(store, door):
    await honest_work(store, door)
    loud = [
        row(name, f"{LOUD} asks {name}", LOUD, temperature=2.0)
        for name in held_out_names(200, "picked")
    ]
    await put(store, loud, "http")
    newest = await ProductionReader(store.database).newest()
    tasks = SuiteCatalog(ValidateConfig(), NoPins())._harvest(newest)
    whose = Counter(HONEST if HONEST in each else LOUD for each in questions(tasks))
    assert whose[HONEST] == 30
    assert whose[LOUD] <= 30
    if door == "gateway":
        assert HONEST in questions(tasks)[0], "what gateways recorded comes first"
        assert observed_sampling(newest, "m").temperature == 0.5


@pytest.mark.parametrize("store", ["memory"], indirect=True)
async def test_however_much_one_key_sends_the_tasks_of_others_stay(store):
    await honest_work(store)
    flood = [row("flood", "nothing", LOUD, held=False) for _ in range(100)]
    await put(store, flood, "http")
    production = ProductionReader(store.database)
    newest = await production.newest(limit=60)
    assert sum(each.key_id == HONEST for each in newest) == 30
    assert len(newest) == 60


@pytest.mark.parametrize(("source", "worlds"), [(None, []), ("verifier", []), (SOURCE, ["desk"])])
@pytest.mark.parametrize("store", ["memory"], indirect=True)
async def test_a_task_named_like_one_of_our_worlds_brings_no_world(store, source, worlds):
    """Only where a world says how it went, as it does for agents of ours."""
    tasks = [row(f"desk-42-reset-password-{n}", f"q {n}", HONEST, source=source) for n in range(30)]
    await put(store, tasks, "gateway")
    repertoire = SuiteCatalog(
        ValidateConfig(), NoPins(), production=ProductionReader(store.database)
    )
    names = await repertoire.default()
    assert [name for name in names if name.startswith("world:")] == [f"world:{w}" for w in worlds]


@pytest.mark.parametrize("store", ["memory"], indirect=True)
async def test_one_question_under_many_names_is_one_task(store):
    await put(store, [row(f"order-{n}", "What is it?", HONEST) for n in range(300)], "gateway")
    newest = await ProductionReader(store.database).newest()
    assert len(SuiteCatalog(ValidateConfig(), NoPins())._harvest(newest)) == 1


@pytest.mark.parametrize("store", ["memory"], indirect=True)
async def test_a_question_that_was_trained_on_under_another_name_is_none(store):
    (held,) = held_out_names(1, "held")
    await put(store, [row(held, "What is it?", HONEST)], "gateway")
    other = row("another name", "What is it?", HONEST)
    await put(store, [other], "gateway")
    harvested = SuiteCatalog(ValidateConfig(), NoPins())._harvest
    assert len(harvested(await ProductionReader(store.database).newest())) == 1
    await made_model(store, "j", "m-1")
    sql = "INSERT INTO trained_on (trajectory_id, job_id, revision) VALUES (?, 'j', 1)"
    await store.database.write(lambda tx: tx.execute(sql, (other.trajectory_id,)))
    assert harvested(await ProductionReader(store.database).newest()) == ()
