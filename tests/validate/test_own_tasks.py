"""The user's own tasks in a validation: worlds by entry point and by URL, looks, baselines, the base."""

import asyncio
import re
from datetime import timedelta
from random import Random
from uuid import uuid4

import msgspec
import pytest

from tests.support import raw, trajectory
from tests.validate.endpoint import Endpoint
from tests.validate.prover import NOON, REDACTOR, Prover
from tests.worlds.test_agentgym import served
from upswing.collect.core.admit import AdmissionLimits, admit
from upswing.config import ValidateConfig
from upswing.contracts.validation import RecordedTask, TaskAnswer
from upswing.errors import Misuse
from upswing.infra.sql.models import Models
from upswing.infra.sql.store import open_store
from upswing.validate.player import RunPace
from upswing.validate.production import ProductionReader
from upswing.validate.sample_score_store import BaselineScores
from upswing.worlds.triage import RULE, Triage

pytestmark = pytest.mark.live
MINE = {"mine": "upswing.worlds.triage:Triage"}
OWN = ValidateConfig(suites=("world:mine", "safety_toxicity"), worlds=MINE, tasks=40)
PRODUCT = re.compile("|".join(RULE))


@pytest.fixture
async def store(tmp_path):
    made = open_store(tmp_path)
    await made.prepare()
    yield made
    made.close()


@pytest.fixture
def make(tmp_path, store):
    def made(models, config=OWN, **more):
        return Prover(tmp_path, store, models.find, config, **more)

    return made


class Learned(Endpoint):
    """A double: each model knows the rule of the world as often as it is told, by task and seed."""

    def __init__(self, skill, **more):
        super().__init__(known=tuple(skill), **more)
        self.skill = skill

    def _in_the_world(self, model, asked):
        if not str(asked["messages"][0]["content"]).startswith("answer refund"):
            return None
        text = asked["messages"][-1]["content"]
        right = RULE[PRODUCT.search(text)[0]]
        knows = Random(f"{model}/{text}/{asked['seed']}").random() < self.skill[model]
        return TaskAnswer(right if knows else "nothing")

    def in_world(self, model):
        own = [
            a for a in self.requests if str(a["messages"][0]["content"]).startswith("answer refund")
        ]
        return [each for each in own if each["model"] == model]


def suite(report, name="world:mine"):
    return next(each for each in report.suites if each.name == name)


# ── worlds of one's own ──────────────────────────────────────────────────────────────────────────


async def test_a_world_by_entry_point_is_a_suite_and_alone_counts(make):
    async def trained(model):
        return (f"Training, moved: {model} by 1.40 nats a reply.",)

    async with (
        Learned({"new": 0.9, "old": 0.3}) as models,
        make(models, training_notes=trained) as prover,
    ):
        report = await prover.runner.validate("new", "old")
    assert report.notes[0] == "Training, moved: new by 1.40 nats a reply."
    assert (report.verdict, [s.name for s in report.suites if s.counted]) == (
        "pass",
        ["world:mine"],
    )
    assert (suite(report).own, suite(report).samples, report.looks) == (True, 4, (4,))
    assert 0.2 <= suite(report).constant <= 0.35
    assert any("The best constant answer scores" in note for note in report.notes)
    assert 0.4 < report.improvement.estimate < 0.8
    assert report.improvement.lower > 0
    assert (suite(report, "safety_toxicity").samples, report.temperature) == (1, 1.0)


async def test_own_worlds_are_used_when_no_suite_is_named(make):
    config = ValidateConfig(worlds=MINE, tasks=20)
    async with Learned({"new": 0.9, "old": 0.3}) as models:
        async with make(models, config, base="smollm2") as prover:
            names = await prover.runner.suite_names(None)
    assert names[0] == "world:mine"
    assert "world:triage" not in names
    assert {"tool_usage", "regression", "safety_bias"} <= set(names)


class Practised:
    """A labelled double of the store: nothing but practice in a world of ours."""

    async def newest(self):
        return [
            RecordedTask("old", f"triage-3-{n:04}", practice=True, from_world=True)
            for n in range(50)
        ]


async def test_a_model_at_somebody_elses_server_is_never_measured_by_worlds_of_ours(make):
    async def remote(model):
        return model == "hosted"

    config = ValidateConfig(worlds=MINE, tasks=20)
    async with Learned({"new": 0.9, "old": 0.3}) as models:
        async with make(models, config, production=Practised(), is_remote=remote) as prover:
            ours = await prover.runner.suite_names(None, "new")
            theirs = await prover.runner.suite_names(None, "hosted")
            named = await prover.runner.suite_names(["world:triage"], "hosted")
    assert {"world:mine", "world:triage"} <= set(ours)
    assert set(ours) - set(theirs) == {"world:triage"}, (
        "the data came from there, and yet it is a toy"
    )
    assert {"world:mine", "tool_usage", "regression", "safety_bias"} <= set(theirs)
    assert named == ("world:triage",), "whoever names it gets it"


async def test_a_world_behind_a_url_is_a_suite(make):
    async with (
        Learned({"new": 0.9, "old": 0.3}) as models,
        served(Triage(3, sizes=(400, 48))) as url,
    ):
        config = msgspec.structs.replace(OWN, worlds={"mine": url})
        async with make(models, config) as prover:
            report = await prover.runner.validate("new", "old")
    assert (report.verdict, suite(report).own) == ("pass", True)
    assert report.improvement.lower > 0
    assert suite(report).done == suite(report).planned == 4 * 40


async def test_a_server_that_is_away_leaves_it_undecided(make):
    config = msgspec.structs.replace(OWN, worlds={"mine": "http://127.0.0.1:9"})
    async with Learned({"new": 0.9, "old": 0.3}) as models, make(models, config) as prover:
        report = await prover.runner.validate("new", "old")
    assert report.verdict == "inconclusive"
    assert any("127.0.0.1:9 is not reachable" in note for note in report.notes)


WRONG = [
    ({"mine": "nowhere"}, "`mine` in [validate.worlds]: nowhere is no world"),
    ({"mine": "no_such_module:World"}, "No module named 'no_such_module'"),
    ({"mine": "upswing.worlds.triage:RULE"}, "has no `reset`"),
    ({"mine": "http://"}, "is no address of a world"),
    ({"mine": "ftp://host/x"}, "is no world"),
    ({"desk": "upswing.worlds.triage:Triage"}, "a world of ours"),
    ({"mi ne": "upswing.worlds.triage:Triage"}, "a name has letters"),
]


@pytest.mark.parametrize(("worlds", "sentence"), WRONG)
async def test_what_is_wrong_with_a_world_is_told_at_the_start(make, worlds, sentence):
    with pytest.raises(Misuse) as caught:
        make(Endpoint(), ValidateConfig(worlds=worlds))
    assert sentence in str(caught.value)


@pytest.mark.parametrize("samples", [(), (0,), (4, 4), (8, 4), (1, 2, 3, 4, 5, 6), (100,)])
def test_looks_that_do_not_rise_are_refused(samples):
    with pytest.raises(msgspec.ValidationError):
        msgspec.convert({"samples": samples}, ValidateConfig)


async def test_a_world_that_breaks_in_a_task_spoils_it_and_blames_nobody(make):
    class Breaking(Triage):
        name = "breaking"

        def step(self, state, reply):
            raise ZeroDivisionError("oops")

    config = msgspec.structs.replace(OWN, suites=("world:b", "safety_toxicity"), worlds={})
    async with Learned({"new": 0.9, "old": 0.3}) as models:
        async with make(models, config, worlds={"b": Breaking(0)}) as prover:
            report = await prover.runner.validate("new", "old")
    assert report.verdict == "inconclusive"
    assert any("ZeroDivisionError: oops" in note for note in report.notes)


# ── looks ────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.long
async def test_what_is_not_decided_is_answered_more_often(make):
    async with Learned({"new": 0.5, "old": 0.5}) as models, make(models) as prover:
        report = await prover.runner.validate("new", "old")
    assert (report.looks, suite(report).samples) == ((4, 8, 16), 16)
    assert report.improvement.lower < 0 < report.improvement.upper
    assert report.level == pytest.approx(1 - 0.05 / 3)
    assert len({each["seed"] for each in models.in_world("new")}) == 16 * 40


async def test_no_look_is_begun_that_would_end_too_late(make):
    pace = RunPace(concurrent_pairs=8, tries=2, soft_deadline=timedelta(seconds=0.001))
    async with Learned({"new": 0.5, "old": 0.5}) as models, make(models, pace=pace) as prover:
        report = await prover.runner.validate("new", "old")
    assert report.looks == (4,)


async def test_tasks_that_are_not_needed_are_left_out_and_said(make):
    config = msgspec.structs.replace(OWN, tasks=100)
    async with Learned({"new": 0.9, "old": 0.3}) as models, make(models, config) as prover:
        report = await prover.runner.validate("new", "old")
    assert (report.looks, suite(report).planned, report.verdict) == ((4,), 4 * 64, "pass")
    assert any("36 of 100 tasks of world:mine were not done" in note for note in report.notes)


async def test_what_is_not_decided_takes_further_tasks_in(make):
    config = msgspec.structs.replace(OWN, tasks=100, samples=(2, 4))
    async with Learned({"new": 0.5, "old": 0.5}) as models, make(models, config) as prover:
        report = await prover.runner.validate("new", "old")
    assert (report.looks, suite(report).done, suite(report).planned) == ((2, 4), 400, 400)


async def test_a_greedy_answer_is_not_asked_for_twice(make):
    config = msgspec.structs.replace(OWN, temperature=0.0)
    async with Learned({"new": 0.9, "old": 0.3}) as models, make(models, config) as prover:
        report = await prover.runner.validate("new", "old")
    assert (suite(report).samples, len(models.in_world("new"))) == (1, 40)


# ── baselines ────────────────────────────────────────────────────────────────────────────────────


async def test_a_baseline_is_asked_once_and_with_seeds_of_its_own(make):
    async with Learned({"new": 0.9, "newer": 0.9, "old": 0.3}) as models, make(models) as prover:
        first = await prover.runner.validate("new", "old")
        before = len(models.in_world("old"))
        second = await prover.runner.validate("newer", "old")
        assert len(models.in_world("old")) == before == 4 * 40
        assert sum(asked["model"] == "old" for asked in models.requests) == 4 * 40 + 16
    assert suite(first).current == suite(second).current
    seeds = {model: {each["seed"] for each in models.in_world(model)} for model in ("old", "newer")}
    assert not seeds["old"] & seeds["newer"]


async def test_what_a_candidate_did_greedily_is_known_when_it_is_the_baseline(make):
    config = msgspec.structs.replace(OWN, suites=("world:mine", "data_analysis", "safety_toxicity"))
    async with (
        Learned({"new": 0.3, "newer": 0.9, "old": 0.1}) as models,
        make(models, config) as prover,
    ):
        await prover.runner.validate("new", "old")
        before = sum(asked["model"] == "new" for asked in models.requests)
        await prover.runner.validate("newer", "new")
        after = [asked for asked in models.requests if asked["model"] == "new"][before:]
    assert len(after) == 4 * 40
    assert {asked["temperature"] for asked in after} == {1.0}


async def test_another_temperature_asks_the_baseline_again(make):
    async with Learned({"new": 0.9, "old": 0.3}) as models:
        for temperature in (0.5, 0.7, 0.5):
            config = msgspec.structs.replace(OWN, temperature=temperature)
            async with make(models, config) as prover:
                await prover.runner.validate("new", "old")
    assert len(models.in_world("old")) == 2 * 4 * 40


async def test_kept_scores_hold_numbers_alone_and_survive_a_crash(tmp_path):
    scores = BaselineScores(tmp_path, "t1", "t0")
    name = scores.score_key("a task", 3, own=True)
    await scores.save_scores("old", {name: 0.5})
    (path,) = (tmp_path / "scores").iterdir()
    path.write_bytes(path.read_bytes() + b'["half a li\n["x", 7]\n["y", NaN]\n[]\n')
    await scores.save_scores("old", {scores.score_key("a task", 3, own=False): 1.0})
    assert sorted((await scores.load_scores("old")).values()) == [0.5, 1.0]
    assert await scores.load_scores("new") == {}
    for number in range(12):
        await scores.save_scores(f"m{number}", {"k": 1.0})
    assert len(list((tmp_path / "scores").iterdir())) == 8


# ── the base ─────────────────────────────────────────────────────────────────────────────────────


async def test_small_losses_do_not_add_up_below_the_base(make):
    async with Learned({"v9": 0.5, "v8": 0.5, "base": 0.9}) as models:
        async with make(models, base="base") as prover:
            report = await prover.runner.validate("v9", "v8")
    assert report.verdict == "fail"
    assert report.base == "base"
    assert report.anchor.upper < 0
    assert any("significantly worse than the base" in reason for reason in report.reasons)


async def test_the_base_is_reported_and_asked_no_more_than_the_first_look(make):
    async with Learned({"v9": 0.9, "v8": 0.6, "base": 0.3}) as models:
        async with make(models, base="base") as prover:
            report = await prover.runner.validate("v9", "v8")
            await prover.runner.validate("v9", "base")
    assert report.verdict == "pass"
    assert report.anchor.lower > 0
    assert len(models.in_world("base")) == 4 * 40


async def test_a_base_that_is_away_decides_nothing(make):
    async with Learned({"v9": 0.9, "v8": 0.3, "base": 0.9}, away=["base"]) as models:
        async with make(models, base="base", pace=RunPace(tries=1)) as prover:
            report = await prover.runner.validate("v9", "v8")
    assert (report.verdict, report.anchor) == ("pass", None)


# ── production ───────────────────────────────────────────────────────────────────────────────────


async def stored(store, count, **metadata):
    for number in range(count):
        tree = trajectory(trajectory_id=str(uuid4()))
        tree["turns"] = tree["turns"][:1]
        tree["turns"][0]["observation"] = {
            "type": "user_message",
            "content": f"What is {number} + 1?",
        }
        tree["turns"][0]["action"] = {"type": "response", "raw_response": "5"}
        tree["task_context"] |= {"task_id": f"sum-{number}", "instructions": "Add."}
        tree["metadata"] |= {"model": "old", "ground_truth": number + 1} | metadata
        tree["metadata"] = {k: v for k, v in tree["metadata"].items() if v is not None}
        row = admit(raw(tree), REDACTOR, AdmissionLimits()).admitted
        await store.take(row, door="http", now=NOON, stream_seq=None, announce=False)


class Adding(Endpoint):
    """A double: `new` can add, `old` says five."""

    async def _answer(self, asked):
        found = re.fullmatch(r"What is (\d+) \+ 1\?", str(asked["messages"][-1]["content"]))
        if not found:
            return await super()._answer(asked)
        said = str(int(found[1]) + 1) if asked["model"] == "new" else "5"
        return 200, {"choices": [{"message": {"role": "assistant", "content": said}}]}


async def test_tasks_with_a_known_answer_become_a_suite_and_are_sampled_as_in_production(
    make, store
):
    await stored(store, 60, temperature=0.6, top_p=0.9, max_tokens=20)
    config = ValidateConfig()
    async with Adding() as models:
        production = ProductionReader(store.database)
        async with make(
            models, config, production=production, is_held_out=lambda t: int(t[4:]) % 2
        ) as prover:
            names = await prover.runner.suite_names(None)
            report = await prover.runner.validate("new", "old", ["production", "safety_toxicity"])
    assert names[0] == "production"
    done = suite(report, "production")
    assert (done.candidate, done.planned, report.verdict) == (1, 4 * 30, "pass")
    assert (report.temperature, report.top_p) == (0.6, 0.9)
    sums = [
        each
        for each in models.requests
        if str(each["messages"][-1]["content"]).startswith("What is")
    ]
    drawn = {(each["temperature"], each["top_p"], each["max_tokens"]) for each in sums}
    assert drawn == {(0.6, 0.9, 20)}
    rest = [each for each in models.requests if each not in sums]
    assert {(each["temperature"], each.get("top_p")) for each in rest} == {(0.0, None)}
    assert "ground_truth" not in str(models.requests)


async def test_a_task_that_a_model_was_trained_on_measures_nothing(make, store):
    """Its job held out less than usual, or had nothing else to learn from."""
    await stored(store, 40)

    def trained(tx, job_id, upto):
        rows = tx.rows("SELECT seq, trajectory_id, task_id FROM trajectories")
        for seq, name, task_id in (row for row in rows if int(row[2][4:]) < upto):
            tx.execute(
                "INSERT INTO scored (trajectory_seq, trajectory_id, agent_id, principal, model, window_id, "
                "scenario_id, domain, complexity, turns, infra_error, revision, total, raw_total, task_id) "
                "VALUES (?, ?, 'a', 'p', 'old', 'w', 's', 'coding', 0.5, 1, 0, 1, 0.5, 0.5, ?) "
                "ON CONFLICT DO NOTHING",
                (seq, name, task_id),
            )
            tx.execute(
                "INSERT INTO trained_on (trajectory_id, job_id, revision) VALUES (?, ?, 1)",
                (name, job_id),
            )

    await store.database.write(lambda tx: trained(tx, "job-1", 30))
    await store.database.write(lambda tx: trained(tx, "job-that-failed", 40))
    await Models(store.database).register(
        job_id="job-1",
        base_model="tiny",
        parent=None,
        snapshot="s",
        path="p",
        card="c",
        samples=1,
        final_reward=None,
        now=NOON,
    )
    async with Adding() as models:
        production = ProductionReader(store.database)
        async with make(
            models, ValidateConfig(), production=production, is_held_out=bool
        ) as prover:
            report = await prover.runner.validate("new", "old", ["production", "safety_toxicity"])
    done = suite(report, "production")
    assert done.planned == 10 * done.samples


async def test_without_such_tasks_the_abilities_count(make, store):
    config = ValidateConfig(suites=("production", "data_analysis", "safety_toxicity"))
    async with Endpoint() as models:
        async with make(models, config, production=ProductionReader(store.database)) as prover:
            report = await prover.runner.validate("new", "old")
    assert [each.name for each in report.suites if each.counted] == ["data_analysis"]
    assert report.verdict == "pass"


async def test_too_few_such_tasks_are_not_used_unasked(make, store):
    await stored(store, 7)
    async with Adding() as models:
        production = ProductionReader(store.database)
        async with make(
            models, ValidateConfig(), production=production, is_held_out=bool
        ) as prover:
            assert "production" not in await prover.runner.suite_names(None)


async def test_the_worlds_that_the_agents_act_in_are_the_users_own(make, store):
    for number in range(30):
        tree = trajectory(trajectory_id=str(uuid4()))
        tree["task_context"] |= {"task_id": f"desk-0-training-{number:04d}"}
        tree["metadata"] |= {"outcome": {"status": "completed", "source": "world"}}
        row = admit(raw(tree), REDACTOR, AdmissionLimits()).admitted
        await store.take(row, door="http", now=NOON, stream_seq=None, announce=False)
    async with Endpoint() as models:
        async with make(
            models, ValidateConfig(), production=ProductionReader(store.database), base="tiny"
        ) as prover:
            names = await prover.runner.suite_names(None)
    assert names[0] == "world:desk"
    assert "world:triage" not in names


async def test_a_killed_validation_with_looks_goes_on_where_it_was(make):
    hold = asyncio.Event()
    async with Learned({"new": 0.9, "old": 0.3}) as models:
        models.hold = (100, hold)
        async with make(models) as prover:
            await prover.runner.start("new", "old")
            await models.told.wait()
        before = len(models.in_world("new"))
        hold.set()
        models.hold = None
        async with make(models) as prover:
            (run_id,) = await prover.runner.resume()
            report = await prover.runner.validate("new", "old", run_id=run_id)
    assert report.verdict == "pass"
    assert suite(report).done == suite(report).planned
    assert len(models.in_world("new")) <= 4 * 40 + 16
    assert before > 0
