"""A validation as the loop runs it: real HTTP to a scripted model server, real store, real files."""

import asyncio
import json
import math
import signal
import sys
from datetime import timedelta
from pathlib import Path
from uuid import uuid4

import msgspec
import pytest
from prometheus_client import CollectorRegistry, generate_latest

from tests.support import files_with, samples, until
from tests.validate.endpoint import Endpoint
from tests.validate.prover import SMALL, Prover
from tests.validate.test_world_tasks import Doubling, Result
from upswing.config import ValidateConfig
from upswing.contracts.validation import ValidationReport
from upswing.errors import Conflict, Misuse, Rejected, Transient
from upswing.infra.sql.store import open_store
from upswing.openai.completions import ChatCompletion
from upswing.validate.core.replay import replay_verdict
from upswing.validate.metrics import ValidateMetrics
from upswing.validate.model_client import MAX_SILENT_ANSWERS
from upswing.validate.player import RunPace
from upswing.validate.suite_loader import builtin_tasks

pytestmark = pytest.mark.live
DATA = [task.task_id for task in builtin_tasks("data_analysis")]
ROOT = Path(__file__).parents[2]
QUICK = RunPace(concurrent_pairs=8, tries=2)


@pytest.fixture
async def store(tmp_path):
    made = open_store(tmp_path)
    await made.prepare()
    yield made
    made.close()


@pytest.fixture
def make(tmp_path, store):
    """A prover with a scripted server."""

    def made(models, config=SMALL, **more):
        return Prover(tmp_path, store, models.find, config, **more)

    return made


# ── what comes of it ─────────────────────────────────────────────────────────────────────────────


async def test_a_better_model_passes_and_the_report_is_kept_three_times(make, tmp_path):
    registry = CollectorRegistry()
    async with Endpoint({"old": DATA[:8]}) as models:
        async with make(models, metrics=ValidateMetrics(registry)) as prover:
            report = await prover.runner.validate("new", "old")
            (row,) = await prover.rows.newest()
    assert (report.verdict, row.verdict, row.report) == ("pass", "pass", report)
    assert report.improvement.estimate == pytest.approx(1 / 3)
    artifact = tmp_path / "models" / "validations" / row.run_id
    kept = msgspec.json.decode((artifact / "report.json").read_bytes(), type=ValidationReport)
    assert kept == report
    assert (artifact / "report.md").read_text().startswith("# new passes against old")
    assert row.artifact.endswith(f"validations/{row.run_id}")
    seen = samples(generate_latest(registry).decode())
    labels = (("model_version", "new"), ("task_type", "data_analysis"))
    assert seen["agent_rl_model_benchmark_score", labels] == 1
    assert prover.sample_scores() == []


async def test_its_decision_can_be_tried_again(make):
    async with Endpoint({"new": DATA[:2]}) as models, make(models) as prover:
        report = await prover.runner.validate("new", "old")
        (decision,) = await prover.journal.list("validate")
    assert (report.verdict, decision.kind) == ("fail", "validation")
    assert decision.sentence.startswith("new against old: fail. data_analysis is worse")
    assert replay_verdict(decision.inputs) == (decision.outcome, decision.sentence)
    told = json.loads(decision.inputs)
    told["policy"]["margin"] = 0.9
    outcome, _ = replay_verdict(json.dumps(told).encode())
    assert json.loads(outcome)["word"] != "fail"


@pytest.mark.long
async def test_the_usual_suites_all_run(make):
    async with Endpoint(ignorant=["old"]) as models:
        async with make(models, ValidateConfig(), base="tiny") as prover:
            report = await prover.runner.validate("new", "old")
    names = {suite.name for suite in report.suites}
    assert {"code_generation", "tool_usage", "safety_bias"} <= names
    assert not [name for name in names if name.startswith("world:")], "nobody acts in one"
    assert "regression" not in names  # nothing is pinned
    assert report.verdict == "pass"
    assert not any(suite.own for suite in report.suites)
    once = [a for a in models.requests if a["model"] == "new" and a["temperature"] == 0]
    assert sum(asked["max_tokens"] for asked in once) <= 21_000  # as the guide says


async def test_a_model_that_can_do_one_thing_only_is_measured_by_that(make):
    """As `tiny` is: it knows its world, and no other suite says anything of it."""
    config = ValidateConfig(suites=("world:triage", "data_analysis", "safety_toxicity"))
    wrong = {"new": DATA, "old": DATA}
    async with Endpoint(wrong, ignorant=["old"]) as models, make(models, config) as prover:
        report = await prover.runner.validate("new", "old")
    assert report.verdict == "pass"
    assert report.improvement.estimate == 0.75
    assert [s.name for s in report.suites if s.counted] == ["world:triage"]


async def test_models_that_can_do_nothing_are_not_told_apart(make):
    async with Endpoint({"new": DATA, "old": DATA}) as models, make(models) as prover:
        report = await prover.runner.validate("new", "old")
        (decision,) = await prover.journal.list("validate")
    assert (report.verdict, report.improvement) == ("inconclusive", None)
    assert "Both models score zero in every suite that counts" in report.reasons[0]
    assert replay_verdict(decision.inputs) == (decision.outcome, decision.sentence)


async def test_what_is_too_long_for_a_model_is_its_failure_and_no_trouble(make):
    full = (400, {"error": {"message": "no", "code": "context_length_exceeded"}})
    async with Endpoint(says={"new": full}) as models, make(models) as prover:
        report = await prover.runner.validate("new", "old")
    data = next(suite for suite in report.suites if suite.name == "data_analysis")
    assert (data.candidate, data.current, sum(data.spoiled.values())) == (0, 1, 0)
    assert report.verdict == "fail"


async def test_answers_are_as_short_as_the_config_says(make):
    config = msgspec.structs.replace(SMALL, max_tokens=50)
    async with Endpoint() as models, make(models, config) as prover:
        await prover.runner.validate("new", "old")
    assert max(asked["max_tokens"] for asked in models.requests) == 18  # only code takes all of it


async def test_a_server_of_ones_own_gets_its_key(make):
    async with Endpoint() as models, make(models, key_of=lambda url: "sk-mine") as prover:
        await prover.runner.validate("new", "old", ["safety_bias"])
    assert all("Authorization: Bearer sk-mine" in head for head in models.heads)


async def test_every_seed_is_asked(make):
    config = ValidateConfig(suites=("safety_bias",), seeds=3, temperature=0.7)
    async with Endpoint() as models, make(models, config) as prover:
        report = await prover.runner.validate("new", "old")
    assert report.seeds == (0, 1, 2)
    own = {asked["seed"] for asked in models.requests if asked["model"] == "new"}
    assert len(own) == 3 * 2 * 16  # each answer has one of its own, and a task asks for two
    assert {asked["temperature"] for asked in models.requests} == {0.7}


async def test_a_floor_of_the_config_holds(make):
    config = msgspec.structs.replace(SMALL, floors={"safety_toxicity": 0.9})
    rude = "You are such a pathetic loser."
    async with Endpoint(says={"new": rude, "old": rude}) as models, make(models, config) as prover:
        report = await prover.runner.validate("new", "old")
    assert any("below its floor 0.90" in reason for reason in report.reasons)


async def test_the_judge_of_the_rewards_is_asked_too(make):
    class Judge:
        """A double."""

        model = "gpt-4o-mini"

        async def __call__(self, messages):
            return ChatCompletion('{"unsafe": true, "reason": "It is rude."}', (), 1, 1)

    async with Endpoint() as models, make(models, judge=Judge()) as prover:
        report = await prover.runner.validate("new", "old", ["safety_toxicity"])
    assert report.judge == "gpt-4o-mini"
    assert report.suites[0].candidate == 0


async def test_what_a_model_says_is_redacted_before_it_is_written(make, tmp_path):
    secret = "jane.roe@example.org"
    hold = asyncio.Event()
    async with Endpoint(says={"new": f"ANSWER: mail {secret}"}) as models:
        models.hold = (60, hold)
        async with make(models) as prover:
            run = asyncio.create_task(prover.runner.validate("new", "old"))
            await models.told.wait()
            await until(prover.sample_scores)
            assert files_with(tmp_path, secret) == []
            hold.set()
            report = await run
    assert report.verdict == "fail"
    assert report.fallen
    assert files_with(tmp_path, secret) == []


# ── trouble ──────────────────────────────────────────────────────────────────────────────────────


async def test_a_model_that_is_away_is_undecided_and_not_bad(make):
    async with Endpoint(away=["new"]) as models, make(models, pace=QUICK) as prover:
        report = await prover.runner.validate("new", "old")
    assert report.verdict == "inconclusive"
    assert report.suites[0].candidate is None
    assert any("503" in note or "in a row" in note for note in report.notes)
    asked = sum(asked["model"] == "new" for asked in models.requests)
    assert asked <= 2 * (
        MAX_SILENT_ANSWERS + QUICK.concurrent_pairs
    )  # in two rounds, each of which gives up


async def test_a_server_that_nobody_reaches_is_undecided(make):
    async with Endpoint() as models:
        pass
    async with make(models, pace=QUICK) as prover:
        report = await prover.runner.validate("new", "old")
    assert (report.verdict, report.improvement) == ("inconclusive", None)


async def test_a_server_that_moves_is_found_again(make):
    async with Endpoint() as models:
        models.hold = (20, asyncio.Event())
        async with make(models) as prover:
            run = asyncio.create_task(prover.runner.validate("new", "old"))
            await models.told.wait()
            before = models.url
            await models.close()
            models.hold = None
            await models.open()
            report = await run
    assert models.url != before
    assert report.verdict == "pass"
    assert all(suite.done == suite.planned for suite in report.suites)


async def test_what_trouble_spoiled_is_tried_once_more(make):
    async with Endpoint() as models:
        models.early = {"new": QUICK.tries * (24 + 16)}  # back in the second round
        async with make(models, pace=QUICK) as prover:
            report = await prover.runner.validate("new", "old")
    assert report.verdict == "pass"
    assert all(suite.done == suite.planned for suite in report.suites)


async def test_a_deadline_that_comes_leaves_it_undecided(make):
    async with Endpoint() as models:
        models.hold = (10, asyncio.Event())
        async with make(models, pace=RunPace(deadline=timedelta(seconds=0.3))) as prover:
            report = await prover.runner.validate("new", "old")
    assert report.verdict == "inconclusive"
    assert any("deadline" in note for note in report.notes)


async def test_a_score_that_is_no_number_fails_and_is_told_so_again(make):
    class Broken(Doubling):
        name = "broken"

        def outcome(self, state):
            return Result(False, math.nan, "?") if state.replies else None

    config = ValidateConfig(suites=("world:broken", "safety_toxicity"))
    async with Endpoint(says={"new": "x", "old": "x"}) as models:
        async with make(models, config, worlds={"broken": Broken()}) as prover:
            report = await prover.runner.validate("new", "old")
            (decision,) = await prover.journal.list("validate")
    assert (report.verdict, report.improvement.estimate) == ("fail", None)
    assert "not a number" in decision.sentence
    assert replay_verdict(decision.inputs) == (decision.outcome, decision.sentence)


async def test_a_suite_that_cannot_be_had_fails_and_can_be_tried_again(make, tmp_path):
    path = tmp_path / "mine.jsonl"
    config = ValidateConfig(suites=("mine", "safety_toxicity"), files={"mine": str(path)})
    task = msgspec.json.encode(builtin_tasks("data_analysis")[0])
    path.write_bytes(task)
    async with Endpoint() as models, make(models, config) as prover:
        path.unlink()
        with pytest.raises(Transient, match="cannot be read"):
            await prover.runner.validate("new", "old", run_id="run-1")
        row, _ = await prover.runner.status("run-1")
        assert (row.state, row.report) == ("failed", None)
        assert "cannot be read" in row.sentence
        path.write_bytes(task)
        report = await prover.runner.validate("new", "old", run_id="run-1")
    assert report.suites[0].name == "mine"


async def test_a_place_for_artifacts_that_is_away_is_waited_for(make):
    class Flaky:
        """A double: away twice."""

        tries = 0

        async def attach(self, folder, prefix):
            self.tries += 1
            if self.tries < 3:
                raise Transient("MODEL_STORAGE_PATH cannot be written just now.")
            return f"s3://bucket/{prefix}"

    async with Endpoint() as models, make(models, attach_files=Flaky().attach) as prover:
        await prover.runner.validate("new", "old", run_id="r")
        assert (await prover.rows.get("r")).artifact == "s3://bucket/validations/r"


# ── who asks ─────────────────────────────────────────────────────────────────────────────────────


async def test_two_who_ask_for_the_same_get_the_same(make):
    async with Endpoint() as models, make(models) as prover:
        one, other = await asyncio.gather(*(prover.runner.validate("new", "old") for _ in range(2)))
        assert one == other
        assert len(await prover.rows.newest()) == 1
    assert len(models.requests) == 2 * (24 + 16)


async def test_whoever_stops_waiting_does_not_stop_it(make):
    hold = asyncio.Event()
    async with Endpoint() as models:
        models.hold = (10, hold)
        async with make(models) as prover:
            waits = asyncio.create_task(prover.runner.validate("new", "old", run_id="r"))
            await models.told.wait()
            waits.cancel()
            await asyncio.gather(waits, return_exceptions=True)
            hold.set()
            assert (await prover.runner.validate("new", "old", run_id="r")).verdict == "pass"


async def test_other_suites_of_the_same_models_wait_for_their_turn(make):
    async with Endpoint() as models, make(models) as prover:
        one, other = await asyncio.gather(
            prover.runner.validate("new", "old", ["safety_bias"]),
            prover.runner.validate("new", "old"),
        )
    assert one.run_id != other.run_id
    assert {suite.name for suite in one.suites} == {"safety_bias"}
    assert one.ended <= other.started


async def test_the_same_models_are_not_compared_twice_at_once(make):
    async with Endpoint() as models:
        models.hold = (5, asyncio.Event())
        async with make(models) as prover:
            first = await prover.runner.start("new", "old")
            with pytest.raises(Conflict, match=first.run_id):
                await prover.runner.start("new", "old", ["safety_bias"])
            other = await prover.runner.start("old", "new")
            assert other.run_id != first.run_id
            await models.told.wait()
            row, progress = await prover.runner.status(first.run_id)
            assert row.state == "running"
            assert {each.suite for each in progress} == {"data_analysis", "safety_toxicity"}
            assert await prover.runner.status("nothing") is None


async def test_a_finished_validation_is_not_done_again(make):
    async with Endpoint() as models, make(models) as prover:
        first = await prover.runner.validate("new", "old", run_id="rollout-7")
        asked = len(models.requests)
        assert await prover.runner.validate("new", "old", run_id="rollout-7") == first
        assert len(models.requests) == asked
        with pytest.raises(Conflict, match="rollout-7 is the validation of new against old"):
            await prover.runner.validate("old", "new", run_id="rollout-7")


@pytest.mark.parametrize("run_id", ["", "../x", "a b", ".x", "x" * 129, "a\n"])
async def test_an_id_that_is_no_name_is_refused(make, run_id):
    async with Endpoint() as models, make(models) as prover:
        with pytest.raises(Rejected, match="cannot be the id"):
            await prover.runner.validate("new", "old", run_id=run_id)


@pytest.mark.parametrize(
    ("suites", "said"),
    [
        (["gaia"], "There is no suite gaia"),
        ([], "at least one"),
        (["world:mars"], "world:mars"),
        (["inspect:/tmp/evil.py@task"], "runs code"),  # whoever has a key cannot choose what runs
    ],
)
async def test_an_unknown_suite_is_refused_before_anything_happens(make, suites, said):
    async with Endpoint() as models, make(models) as prover:
        for ask in (prover.runner.validate, prover.runner.start):
            with pytest.raises(Rejected, match=said):
                await ask("new", "old", suites)
        assert await prover.rows.unfinished() == []


async def test_an_unknown_model_is_refused(make):
    async with Endpoint() as models, make(models) as prover:
        for pair in (("who", "old"), ("new", "who")):
            with pytest.raises(Misuse, match="no model who"):
                await prover.runner.validate(*pair)
        assert await prover.rows.unfinished() == []


@pytest.mark.parametrize(
    ("config", "said"),
    [
        (ValidateConfig(suites=("nowhere",)), "no suite nowhere"),
        (ValidateConfig(floors={"tool_usage": 0.5}), "no safety suite"),
        (ValidateConfig(suites=("safety",), counted=("tool_usage",)), "tool_usage is not among"),
    ],
)
async def test_a_config_that_makes_no_sense_stops_the_start(make, config, said):
    async with Endpoint() as models:
        with pytest.raises(Misuse, match=said):
            make(models, config)


def test_a_number_that_is_none_is_no_config():
    for tree in ({"floors": {"safety_bias": math.nan}}, {"deadline_minutes": math.nan}):
        with pytest.raises(msgspec.ValidationError):
            msgspec.convert(tree, ValidateConfig)


# ── killed ───────────────────────────────────────────────────────────────────────────────────────

CHILD = """
import asyncio, sys
from pathlib import Path
from tests.validate.prover import Prover
from upswing.infra.sql.store import open_store

async def main(folder, url):
    store = open_store(folder)
    await store.prepare()
    async def find(model):
        return url, model
    await Prover(folder, store, find).runner.validate("new", "old")

asyncio.run(main(Path(sys.argv[1]), sys.argv[2]))
"""


@pytest.mark.parametrize("after", [3, 30])
async def test_killed_half_way_it_goes_on_with_the_same_id(tmp_path, after):
    folder = tmp_path / "data"
    folder.mkdir()
    async with Endpoint({"old": DATA[:8]}) as models:
        hold = asyncio.Event()
        models.hold = (after, hold)
        child = await asyncio.create_subprocess_exec(
            sys.executable, "-c", CHILD, str(folder), models.url, cwd=ROOT
        )
        await models.told.wait()
        child.send_signal(signal.SIGKILL)
        await child.wait()
        hold.set()
        store = open_store(folder)
        try:
            async with Prover(folder, store, models.find) as prover:
                (left,) = await prover.rows.unfinished()
                kept = len(await prover.runner._reports.sample_scores.load(left.run_id))
                models.requests.clear()
                models.hold = None
                assert await prover.runner.resume() == [left.run_id]
                report = await prover.runner.validate("new", "old")
                assert report.run_id == left.run_id
                assert len(models.requests) == 2 * (24 + 16) - kept
                assert (report.verdict, (await prover.rows.get(left.run_id)).state) == (
                    "pass",
                    "done",
                )
                assert await prover.runner.resume() == []
        finally:
            store.close()


async def test_stopped_in_order_it_goes_on_too(make):
    async with Endpoint() as models:
        models.hold = (20, asyncio.Event())
        async with make(models) as prover:
            row = await prover.runner.start("new", "old")
            await models.told.wait()
        assert (await prover.rows.get(row.run_id)).state == "running"
        models.hold = None
        async with make(models) as prover:
            report = await prover.runner.validate("new", "old")
    assert (report.run_id, report.verdict) == (row.run_id, "pass")


# ── pins ─────────────────────────────────────────────────────────────────────────────────────────


async def test_what_is_pinned_runs_until_its_user_is_erased(make):
    from tests.validate.test_pin import failed

    async with Endpoint(
        says={"new": "It is closed.", "old": "The shop is open on Sunday."}
    ) as models:
        async with make(models) as prover:
            trajectory = failed()
            task, new = await prover.runner.pin(trajectory)
            assert new
            assert (await prover.runner.pin(trajectory)) == (task, False)
            report = await prover.runner.validate("new", "old", ["regression"])
            assert (report.suites[0].candidate, report.suites[0].current) == (1, 0)
            with pytest.raises(Rejected, match="no turn 9"):
                await prover.runner.pin(trajectory, turn_id=9)
            assert await prover.runner.forget_trajectories({str(uuid4())}) == 0
            assert await prover.runner.forget_trajectories({str(trajectory.trajectory_id)}) == 1
            assert await prover.runner.pins.pinned() == ()
