"""A data directory that an older version wrote is opened, read, explained and led on.

`before_rooms/` was written by commit 04365b4, the last one before each stage got a room of its own: its controller
on its own store, with twins for bus and servers. `upswing.mark`, as that version left it, seals the file: not a byte
of it is another one.
"""

import gzip
import json
import sqlite3
from copy import deepcopy
from pathlib import Path
from uuid import UUID

import pytest
from tests.conftest import running_loop
from tests.deploy.controlling import BASE, Ground
from tests.support import Client

from upswing.api.explaining import same_decision
from upswing.cli import main
from upswing.config import Surroundings
from upswing.contracts import Trajectory, decode
from upswing.deploy.candidates import CandidateChecks
from upswing.deploy.controller import Controller
from upswing.deploy.core.states import RolloutState
from upswing.deploy.environment import DeployEnvironment
from upswing.deploy.repository import RolloutRepository
from upswing.infra.sql.inspection import Inspection
from upswing.infra.sql.store import open_store
from upswing.redact import Redactor

WRITTEN = Path(__file__).parent / "before_rooms"
FIRST, SECOND, THIRD = (f"agent-zero-rl-v{version}" for version in (1, 2, 3))


def restore(folder):
    (folder / "upswing.db").write_bytes(gzip.decompress((WRITTEN / "upswing.db.gz").read_bytes()))
    (folder / "upswing.mark").write_bytes((WRITTEN / "upswing.mark").read_bytes())
    return folder


def rows(folder, sql):
    database = sqlite3.connect(folder / "upswing.db")
    found = database.execute(sql).fetchall()
    database.close()
    return found


@pytest.fixture
def data(tmp_path):
    return restore(tmp_path)


@pytest.fixture
async def store(data):
    opened = open_store(data)
    await opened.prepare()
    yield opened
    opened.close()


async def test_the_store_opens_undamaged_and_keeps_its_rows(data):
    counted = "SELECT (SELECT COUNT(*) FROM trajectories), (SELECT COUNT(*) FROM decisions)"
    before = rows(data, counted)
    store = open_store(data)
    inspection = Inspection(data, store.database)
    await inspection.begin()
    assert inspection.done
    await store.prepare()
    await inspection.run()
    assert store.database.bad_rows.pending() == []
    store.close()
    assert rows(data, counted) == before == [(13, 40)]


async def test_every_trajectory_is_read(data, store):
    ids = [name for (name,) in rows(data, "SELECT trajectory_id FROM trajectories")]
    for name in ids:
        stored = await store.trajectory(name)
        assert decode(Trajectory, stored.admitted.body).trajectory_id == UUID(name)
    assert len(ids) == 13


async def test_its_rollouts_are_led_on_where_they_stood(store):
    ground = Ground()
    repository = RolloutRepository(store.database)
    env = DeployEnvironment(
        repository,
        ground.board,
        ground.serving,
        lambda: ground.now,
        lambda: ground.wall,
        ground.new_id,
    )
    controller = Controller(
        env, CandidateChecks(ground.prove), ground.policy, base=BASE, holder="new"
    )
    await controller.start()
    deployment = controller.executor.deployment
    assert deployment.baseline == SECOND
    assert [each.model_id for each in deployment.active] == [THIRD]
    assert ground.shares == {SECOND: 95.0, THIRD: 5.0}
    states = {each["model_id"]: each["state"] for each in await controller.rollouts()}
    assert states == {FIRST: "rolled_back", SECOND: "promoted", THIRD: "ramping"}
    record = await controller.executor.repository.record(deployment.active[0].rollout_id)
    assert record.evidence is not None
    assert {each.what for each in await repository.audit()} == {"pause", "resume"}
    assert [each.model_id for each in await repository.incidents()] == [FIRST]
    back = await controller.operator.rollback(None, "ann", "to see that it works")
    assert (back.model_id, back.state) == (THIRD, RolloutState.ROLLED_BACK)
    assert ground.shares == {SECOND: 100.0}


@pytest.mark.live
async def test_a_whole_loop_starts_over_it_and_shows_what_is_in_it(data):
    ids = [name for (name,) in rows(data, "SELECT trajectory_id FROM trajectories")]
    options = {"redactor": Redactor(), "surroundings": Surroundings(train_here=False)}
    async with (
        running_loop(data, **options) as loop,
        Client(loop.running.http_url, loop.running.key) as client,
    ):
        for name in ids:
            status, shown = await client("GET", f"/v1/trajectories/{name}")
            assert (status, shown["trajectory_id"]) == (200, name)
        _, health = await client("GET", "/health")
        assert health["status"] == "ok"


def explained(data, name, capsys):
    assert main(["explain", name, "--data", str(data), "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def test_every_decision_explains_though_some_are_worded_otherwise_today(data, capsys):
    decisions = rows(data, "SELECT decision_id, stage, kind, sentence FROM decisions")
    reworded = {}
    for name, stage, kind, sentence in decisions:
        view = explained(data, name, capsys)
        assert view["today"]["same"] is True, (stage, kind, view["today"])
        assert view["sentence"] == sentence, "what was said then stays"
        if "wording" in view["today"]:
            reworded[sentence] = view["today"]["wording"]
    assert {stage for _, stage, _, _ in decisions} == {"deploy", "train", "trigger", "validate"}
    assert len({kind for _, stage, kind, _ in decisions if stage == "deploy"}) == 20
    then = "10 % lasts until 2026-01-05 13:00 UTC at least."
    assert reworded[then] == "10 % lasts until 2026-01-05 13:00:00 UTC at least."


def test_a_decision_that_comes_out_otherwise_is_told_so(data, capsys):
    sql = "SELECT decision_id, outcome FROM decisions WHERE kind = 'set_weight'"
    ((name, outcome),) = rows(data, sql)
    tree = json.loads(outcome)
    tree["action"]["share"] = 0.9
    database = sqlite3.connect(data / "upswing.db")
    database.execute(
        "UPDATE decisions SET outcome = ? WHERE decision_id = ?",
        (json.dumps(tree).encode(), name),
    )
    database.commit()
    database.close()
    today = explained(data, name, capsys)["today"]
    assert today["same"] is False
    assert today["outcome"]["action"]["share"] != 0.9


# ── what counts as the same decision ─────────────────────────────────────────────────────────────


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory):
    folder = restore(tmp_path_factory.mktemp("outcomes"))
    return [json.loads(body) for (body,) in rows(folder, "SELECT outcome FROM decisions")]


def leaves(tree, path=()):
    """The paths of everything that was decided: neither words for a reader nor empty containers."""
    children = tree.items() if isinstance(tree, dict) else enumerate(tree)
    for name, value in children:
        if name in {"sentence", "refused", "not_before"}:
            continue
        if isinstance(value, dict | list):
            yield from leaves(value, (*path, name))
        else:
            yield (*path, name)


def reworded(tree):
    if isinstance(tree, dict):
        return {
            name: "Other words." if name in {"sentence", "refused"} else reworded(value)
            for name, value in tree.items()
        } | {"added_later": 1}
    return [reworded(each) for each in tree] if isinstance(tree, list) else tree


def other(value):
    match value:
        case bool():
            return not value
        case int() | float():
            return value + 0.001 + abs(value) / 1000
        case None:
            return "something"
        case _:
            return f"{value}x"


def test_other_words_and_fields_that_came_later_change_no_decision(outcomes):
    for outcome in outcomes:
        assert same_decision(outcome, reworded(outcome))


def test_whatever_else_differs_is_another_decision(outcomes):
    changes = 0
    for outcome in outcomes:
        for *path, last in leaves(outcome):
            changed = deepcopy(outcome)
            holder = changed
            for name in path:
                holder = holder[name]
            holder[last] = other(holder[last])
            assert not same_decision(outcome, changed), (path, last)
            assert not same_decision(changed, outcome), (path, last)
            changes += 1
    assert changes > 10 * len(outcomes)
