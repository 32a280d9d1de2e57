"""A whole validation against a scripted model: side by side, with trouble, cut short, taken up."""

import asyncio
import math
from datetime import UTC, datetime, timedelta
from functools import partial

import msgspec
import pytest

from tests.validate.scripted import Scripted
from tests.validate.test_world_tasks import Doubling, Result
from upswing.app.analysis import analyse_validation
from upswing.contracts.validation import (
    Program,
    ProgramRun,
    SampleScore,
    TaskAnswer,
    ToolCall,
    ValidationReport,
)
from upswing.errors import Denied, Transient
from upswing.validate.core.moves import InfraError, PlayableTask, TaskResult
from upswing.validate.core.play import next_move
from upswing.validate.core.report import ValidationRun
from upswing.validate.core.stopping import SAFETY_ANSWERS
from upswing.validate.core.suite import SAFETY, TaskSuite
from upswing.validate.core.verdict import ValidationPolicy
from upswing.validate.core.world_tasks import make_world_suite
from upswing.validate.player import RunPace
from upswing.validate.sample_score_store import FileSampleScores, MemorySampleScores
from upswing.validate.suite_loader import builtin_tasks, load_suites
from upswing.validate.validator import ModelClients, Validator

NAMES = ("data_analysis", "tool_usage", "safety")
TASKS = tuple(
    task for name in ("data_analysis", "tool_usage", *SAFETY) for task in builtin_tasks(name)
)
DATA = [task.task_id for task in builtin_tasks("data_analysis")]
JAIL = [task.task_id for task in builtin_tasks("safety_jailbreak")]
RUN = ValidationRun("run-1", "new", "old")


class Clock:
    """Moves a second with every look."""

    def __init__(self):
        self.now = datetime(2025, 3, 1, tzinfo=UTC)

    def __call__(self):
        self.now += timedelta(seconds=1)
        return self.now


async def no_wait(_):
    await asyncio.sleep(0)


@pytest.fixture(params=["memory", "files"])
def kept(request, tmp_path):
    return MemorySampleScores() if request.param == "memory" else FileSampleScores(tmp_path)


POLICY = ValidationPolicy()


async def validated(ask, run=RUN, names=NAMES, policy=POLICY, kept=None, progress=None, **more):
    pace = more.pop("pace", RunPace(tries=2))
    made = more.pop("made", None) or await load_suites(names)
    models = ModelClients(ask, resampled=more.pop("resampled", None))
    validator = Validator(
        models, kept or MemorySampleScores(), clock=Clock(), sleep=no_wait, pace=pace, **more
    )
    return await validator.run(run, made, policy, progress or (lambda _: None))


async def test_a_model_that_is_better_passes():
    report = await validated(Scripted(TASKS, wrong={"old": DATA[:10]}))
    assert report.verdict == "pass"
    assert report.improvement.estimate == pytest.approx(10 / len(DATA) / 2)
    assert report.improvement.lower > 0
    assert report.results.benchmark_passed
    assert report.results.safety_checks_passed
    assert not report.results.performance_regression


async def test_a_model_that_is_worse_at_one_suite_fails_and_the_report_shows_where():
    report = await validated(Scripted(TASKS, wrong={"new": DATA[:3]}))
    assert report.verdict == "fail"
    assert report.reasons[0].startswith("data_analysis is worse: −0.12")
    assert {each.task_id for each in report.fallen} == set(DATA[:3])
    assert "no clear answer" in report.fallen[0].sentence
    assert report.results.performance_regression


async def test_a_failed_validation_is_looked_into_and_a_passed_one_is_not():
    analyse = partial(analyse_validation, clock=Clock())
    report = await validated(Scripted(TASKS, wrong={"new": DATA[:12]}), analyse=analyse)
    assert (report.verdict, report.analysis.source) == ("fail", "validation")
    first = report.analysis.findings[0]
    assert (first.feature, first.value) == ("suite", "data_analysis")
    assert set(first.examples) <= {f"data_analysis/{each}" for each in DATA[:12]}
    assert report.analysis.remedies
    passed = await validated(Scripted(TASKS, wrong={"old": DATA[:10]}), analyse=analyse)
    assert (passed.verdict, passed.analysis) == ("pass", None)


async def test_a_model_that_is_better_and_less_safe_fails():
    wrong = {"old": DATA, "new": JAIL[:8]}
    report = await validated(Scripted(TASKS, wrong=wrong))
    assert report.verdict == "fail"
    assert report.improvement.estimate > 0.4
    assert not report.results.safety_checks_passed
    assert any("Safety is significantly worse" in reason for reason in report.reasons)


@pytest.mark.parametrize("fewer", [3, 5], ids=["undecided", "beyond the margin"])
async def test_a_few_greedy_answers_that_changed_are_no_reason_to_give_a_model_up(fewer):
    glance = Scripted(TASKS, wrong={"old": DATA[:10], "new": JAIL[:fewer]})
    once = await validated(glance)
    assert once.verdict != "pass"
    assert not once.results.safety_checks_passed
    sampled = Scripted(TASKS)
    report = await validated(glance, resampled=sampled)
    assert report.verdict == "pass"
    assert report.results.safety_checks_passed
    safety = [each for each in report.suites if each.kind == "safety"]
    assert {each.samples for each in safety} <= {1 + each for each in SAFETY_ANSWERS}
    assert {model for model, *_ in sampled.asked} == {"new", "old"}
    assert {task for _, task, _ in sampled.asked}.isdisjoint(DATA)


async def test_safety_is_sampled_for_as_long_as_there_is_time_and_whole_rounds_count():
    """A slow backend answers the safety tasks twice before the time for it is over, and not four times."""
    glance = Scripted(TASKS, wrong={"old": DATA[:10], "new": JAIL[:3]})
    sampled, loop = Scripted(TASKS, wrong={"new": JAIL[:3]}), asyncio.get_running_loop()
    pace = RunPace(tries=2, concurrent_pairs=1, deadline=timedelta(hours=10))
    await validated(glance, names=("safety",))
    a_round, clock = len(glance.asked), loop.time

    async def drawn(*words, **more):
        if len(sampled.asked) == 2 * a_round + 10:  # in the midst of the third round
            loop.time = lambda: clock() + 21 * 3600
        return await sampled(*words, **more)

    report = await validated(glance, resampled=drawn, pace=pace)
    assert {each.samples for each in report.suites if each.kind == "safety"} == {3}
    assert 2 * a_round + 10 < len(sampled.asked) < 3 * a_round


async def test_a_model_that_is_less_safe_is_found_out_by_more_answers():
    wrong = {"old": DATA[:10], "new": JAIL[:5]}
    report = await validated(Scripted(TASKS, wrong=wrong), resampled=Scripted(TASKS, wrong=wrong))
    assert report.verdict == "fail"
    assert not report.results.safety_checks_passed


async def test_nothing_is_sampled_where_safety_passes_or_is_significantly_worse():
    for wrong in ({"old": DATA[:10]}, {"old": DATA[:10], "new": JAIL[:8]}):
        sampled = Scripted(TASKS)
        await validated(Scripted(TASKS, wrong=wrong), resampled=sampled)
        assert not sampled.asked


async def test_a_run_that_was_killed_while_safety_was_sampled_samples_the_rest(kept):
    wrong = {"old": DATA[:10], "new": JAIL[:3]}
    whole = Scripted(TASKS)
    expected = await validated(Scripted(TASKS, wrong=wrong), resampled=whole)
    dying = Scripted(TASKS)

    async def dies(*words, **more):
        if len(dying.asked) == 100:
            raise Dying
        return await dying(*words, **more)

    with pytest.raises(ExceptionGroup):
        await validated(
            Scripted(TASKS, wrong=wrong),
            kept=kept,
            resampled=dies,
            pace=RunPace(concurrent_pairs=1),
        )
    rest = Scripted(TASKS)
    report = await validated(Scripted(TASKS, wrong=wrong), kept=kept, resampled=rest)
    assert (report.verdict, report.safety) == (expected.verdict, expected.safety)
    assert 0 < len(rest.asked) < len(whole.asked)


async def test_only_the_suites_that_the_deployment_names_improve_it():
    scripted = Scripted(TASKS, wrong={"old": DATA[:12]})
    counted = ValidationPolicy(counted=frozenset({"tool_usage"}))
    assert (await validated(scripted, policy=counted)).improvement.estimate == 0
    assert (await validated(scripted)).improvement.estimate > 0.2


async def test_a_floor_holds_whatever_the_current_model_does():
    wrong = {"new": JAIL[:6], "old": JAIL[:6]}
    floored = ValidationPolicy(floors={"safety_jailbreak": 0.9})
    report = await validated(Scripted(TASKS, wrong=wrong), policy=floored)
    assert report.reasons == ("safety_jailbreak reaches 0.75, below its floor 0.90.",)
    assert (await validated(Scripted(TASKS, wrong=wrong))).verdict == "pass"


async def test_candidate_and_current_are_asked_side_by_side():
    scripted = Scripted(TASKS)
    await validated(
        scripted, names=["data_analysis", "safety_toxicity"], pace=RunPace(concurrent_pairs=1)
    )
    pairs = list(zip(scripted.asked[::2], scripted.asked[1::2], strict=True))
    assert all(one[1:] == other[1:] for one, other in pairs)
    assert all({one[0], other[0]} == {"new", "old"} for one, other in pairs)
    first = [one[0] for one, _ in pairs]
    assert first == ["new", "old"] * (len(pairs) // 2)
    half = [one[1].partition("-")[0] for one, _ in pairs[: len(pairs) // 2]]
    assert half.count("toxicity") == 8  # the suites go at the same pace


async def test_every_seed_is_asked_once_for_each_model():
    scripted = Scripted(TASKS)
    report = await validated(
        scripted, ValidationRun("r", "new", "old", seeds=(3, 4)), ["data_analysis"]
    )
    assert len(set(scripted.asked)) == len(scripted.asked) == 4 * len(DATA)
    assert {model for model, *_ in scripted.asked} == {"new", "old"}
    assert report.suites[0].planned == 2 * len(DATA)
    assert report.suites[0].difference.tasks == len(DATA)


async def test_a_model_is_never_compared_worse_with_itself():
    report = await validated(
        Scripted(TASKS, wrong={"same": DATA[::2]}), ValidationRun("r", "same", "same")
    )
    assert report.verdict == "pass"
    assert report.improvement.estimate == report.safety.estimate == 0


async def test_trouble_that_passes_leaves_no_trace():
    away = {("new", DATA[0]): 1, ("old", DATA[1]): 1}
    report = await validated(Scripted(TASKS, away=away), names=["data_analysis"])
    assert report.suites[0].done == report.suites[0].planned
    assert report.suites[0].candidate == 1


async def test_trouble_that_stays_is_left_out_and_not_a_zero():
    away = {("new", name): 99 for name in DATA[:2]}
    report = await validated(Scripted(TASKS, away=away))
    suite = next(suite for suite in report.suites if suite.name == "data_analysis")
    assert report.verdict == "pass"
    assert (suite.done, suite.planned) == (22, 24)
    assert suite.candidate == suite.current == 1
    assert suite.spoiled == {"candidate": 2, "current": 0}
    assert any("The backend is away" in note for note in report.notes)


async def test_too_much_trouble_decides_nothing():
    away = {("new", name): 99 for name in DATA[:4]}
    report = await validated(Scripted(TASKS, away=away, wrong={"new": DATA[4:]}))
    assert report.verdict == "inconclusive"
    assert "only 20 of 24 comparisons" in report.reasons[0]


async def test_a_backend_that_refuses_is_not_asked_again():
    asked = []

    async def refuses(model, messages, **_):
        asked.append(model)
        raise Denied("The key is wrong.")

    report = await validated(refuses, names=["data_analysis"], pace=RunPace(tries=5))
    assert len(asked) == 2 * len(DATA)
    assert report.verdict == "inconclusive"
    assert report.suites[0].difference is None


async def test_an_answer_that_never_comes_is_trouble():
    async def silent(*_, **__):
        await asyncio.Event().wait()

    pace = RunPace(tries=1, answer_timeout=timedelta(milliseconds=1), concurrent_pairs=30)
    report = await validated(silent, names=["data_analysis"], pace=pace)
    assert report.suites[0].spoiled == {"candidate": len(DATA), "current": len(DATA)}


async def test_the_deadline_ends_it_undecided():
    scripted = Scripted(TASKS)

    async def slow(model, messages, **more):
        if len(scripted.asked) > 20:
            await asyncio.Event().wait()
        return await scripted(model, messages, **more)

    report = await validated(slow, pace=RunPace(deadline=timedelta(seconds=1)))
    assert report.verdict == "inconclusive"
    assert 0 < sum(suite.done for suite in report.suites) <= 12
    assert "deadline" in report.notes[0]


class Dying(Exception):
    """Stands for the end of the process."""


@pytest.mark.parametrize("after", [1, 7, 40])
async def test_a_run_that_was_killed_goes_on_where_it_was(kept, after):
    scripted = Scripted(TASKS, wrong={"old": DATA[:5]})

    async def dies(model, messages, **more):
        if len(scripted.asked) >= after:
            raise Dying
        return await scripted(model, messages, **more)

    with pytest.raises(ExceptionGroup):
        await validated(dies, kept=kept, pace=RunPace(concurrent_pairs=3))
    before = len(await kept.load("run-1"))
    whole = await validated(Scripted(TASKS, wrong={"old": DATA[:5]}))
    scripted.asked.clear()
    again = await validated(scripted, kept=kept)
    done = {(model, task) for model, task, _ in scripted.asked}
    assert len(done) == 2 * len(TASKS) - before
    assert results(again) == results(whole)


def results(report):
    return (
        report.verdict,
        report.reasons,
        report.suites,
        report.improvement,
        report.safety,
        report.fallen,
    )


async def test_a_finished_run_is_only_reported_again(kept):
    first = await validated(Scripted(TASKS), kept=kept)
    scripted = Scripted(TASKS)
    assert results(await validated(scripted, kept=kept)) == results(first)
    assert scripted.asked == []
    await kept.delete("run-1")
    await validated(scripted, kept=kept)
    assert scripted.asked


async def test_cells_of_tasks_that_are_no_longer_there_are_left_alone(kept):
    await kept.append("run-1", [SampleScore("data_analysis", "gone", 0, "candidate", 0.0)])
    assert (await validated(Scripted(TASKS), kept=kept)).verdict == "pass"


async def test_progress_counts_up_to_the_end():
    told = []
    await validated(Scripted(TASKS), progress=told.append)
    last = {each.suite: (each.done, each.total) for each in told}
    assert all(done == total for done, total in last.values())
    assert last["data_analysis"] == (2 * len(DATA), 2 * len(DATA))
    for name in last:
        counts = [each.done for each in told if each.suite == name]
        assert counts == sorted(counts)
        assert counts[0] == 0


async def test_a_world_that_gives_no_number_fails_and_is_not_kept(kept):
    class Broken(Doubling):
        def outcome(self, state):
            return Result(False, math.nan, "?") if state.replies else None

    async def says(*_, **__):
        return TaskAnswer("x")

    report = await validated(
        says,
        made=(make_world_suite(Broken()),),
        kept=kept,
        policy=ValidationPolicy(needs_safety=False),
    )
    assert report.verdict == "fail"
    assert report.improvement.estimate is None
    assert await kept.load("run-1") == ()
    assert msgspec.json.decode(msgspec.json.encode(report), type=ValidationReport) == report


async def test_scores_stay_between_0_and_1():
    task = PlayableTask("t", lambda _: TaskResult(7.0, "Great."))
    made = (TaskSuite("odd", "benchmark", (task,)),)
    report = await validated(Scripted(TASKS), made=made)
    assert report.suites[0].candidate == 1


async def test_a_task_that_never_ends_is_ended():
    task = builtin_tasks("data_analysis")[0]
    endless = PlayableTask("t", lambda _: next_move(task, []))
    report = await validated(Scripted(TASKS), made=(TaskSuite("odd", "benchmark", (endless,)),))
    assert report.suites[0].candidate == 0
    assert report.suites[0].done == 1


async def test_half_characters_of_a_model_do_no_harm(kept):
    async def odd(*_, **__):
        return TaskAnswer("\ud800 ANSWER: \udc00", (ToolCall("\ud800", "\ud800"),))

    report = await validated(odd, kept=kept)
    assert msgspec.json.encode(report)
    assert await kept.load("run-1")


async def test_a_foreign_suite_that_breaks_is_trouble():
    async def perform(*_):
        raise Transient("Docker is not running.")

    made = (TaskSuite("inspect:x", "benchmark", external_task_ids=("f0",), run_external=perform),)
    report = await validated(Scripted(TASKS), made=made)
    assert any("Docker is not running" in note for note in report.notes)


class Double:
    """A judge, a double: it plays its script."""

    name = "double"

    def __init__(self, said):
        self.said, self.asked = said, 0

    async def __call__(self, messages):
        self.asked += 1
        if isinstance(self.said, Exception):
            raise self.said
        return self.said


@pytest.mark.parametrize(
    ("said", "candidate", "noted"),
    [
        ('{"unsafe": false, "reason": "Fine."}', 1.0, False),
        ('{"unsafe": true, "reason": "It is rude."}', 0.0, False),
        ("I like it.", 1.0, True),
        (InfraError("away"), 1.0, True),
        (Denied("no"), 1.0, True),
    ],
)
async def test_a_judge_is_heard_where_one_is_configured(said, candidate, noted):
    judge = Double(said)
    report = await validated(Scripted(TASKS), names=["safety_toxicity"], judge=judge)
    assert report.suites[0].candidate == candidate
    assert report.judge == "double"
    assert any("no usable answer" in note for note in report.notes) is noted
    assert judge.asked >= 32


async def test_code_needs_a_sandbox_and_says_what_held_it():
    tasks = builtin_tasks("code_generation")
    scripted = Scripted(tasks)
    report = await validated(scripted, names=["code_generation"])
    assert report.suites[0].done == 0
    assert any("no sandbox" in note for note in report.notes)

    async def runs(program: Program):
        return ProgramRun("done", fences=("limits", "hooks"))

    report = await validated(scripted, names=["code_generation"], sandbox=runs)
    assert report.suites[0].done == len(tasks)
    assert any("limits, hooks. Code was not held in by the kernel" in note for note in report.notes)


async def test_a_sandbox_that_cannot_start_is_trouble_and_not_a_zero():
    async def broken(_):
        raise Transient("no processes left")

    scripted = Scripted(builtin_tasks("code_generation"))
    report = await validated(scripted, names=["code_generation"], sandbox=broken)
    assert report.suites[0].candidate is None
    assert any("no processes left" in note for note in report.notes)


async def test_a_foreign_suite_is_performed_in_chunks():
    performed = []

    async def perform(task_ids, model, seed, ask):
        performed.append((model, tuple(task_ids)))
        return {each: TaskResult(1.0, "") for each in task_ids if each != "f3"}

    made = (
        TaskSuite(
            "inspect:x",
            "benchmark",
            external_task_ids=("f0", "f1", "f2", "f3"),
            run_external=perform,
            chunk=3,
        ),
    )
    report = await validated(Scripted(TASKS), made=made, pace=RunPace(concurrent_pairs=1))
    assert performed == [
        ("new", ("f0", "f1", "f2")),
        ("old", ("f0", "f1", "f2")),
        ("old", ("f3",)),
        ("new", ("f3",)),
    ]
    assert (report.suites[0].done, report.suites[0].planned) == (3, 4)


@pytest.mark.long
@pytest.mark.live
async def test_a_whole_validation_with_real_code():
    from upswing.validate.sandbox.sandbox import Sandbox

    tasks = builtin_tasks("code_generation")
    wrong = {"old": [task.task_id for task in tasks[:9]]}
    report = await validated(
        Scripted(tasks, wrong=wrong), names=["code_generation"], sandbox=Sandbox()
    )
    assert report.suites[0].candidate == 1
    assert report.suites[0].current == pytest.approx(20 / 29)


async def test_half_a_line_in_a_file_is_done_again(tmp_path):
    kept = FileSampleScores(tmp_path)
    await kept.append(
        "r", [SampleScore("s", "a", 0, "current", 1.0), SampleScore("s", "b", 0, "current", 1.0)]
    )
    (path,) = (tmp_path / "runs").iterdir()
    path.write_bytes(path.read_bytes()[:-9])
    assert [sample_score.task_id for sample_score in await kept.load("r")] == ["a"]
    await kept.append("r", [SampleScore("s", "b", 0, "current", 0.5)])
    assert [
        (sample_score.task_id, sample_score.score) for sample_score in await kept.load("r")
    ] == [("a", 1), ("b", 0.5)]
    assert await kept.load("other") == ()
