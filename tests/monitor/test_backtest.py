"""A changed policy on the journal: nothing differs where nothing is changed, and what differs is what would have."""

import asyncio
import time
from dataclasses import replace
from datetime import timedelta
from itertools import pairwise
from math import ceil
from time import process_time

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.deploy.controlling import START
from tests.monitor.journals import (
    TriggerGround,
    degraded,
    many,
    rollout_journal,
    validation_decision,
)
from upswing.app.backtest import parse_policy, replay_journal, stage_replays
from upswing.contracts.typed import from_json
from upswing.dataset.groups import Learnable
from upswing.errors import Misuse
from upswing.infra.sql.decisions import Decisions, insert_decision
from upswing.infra.sql.store import open_in_memory_store
from upswing.monitor.core.backtest import SHOWN, BacktestRun, BacktestSpan
from upswing.monitor.core.backtest_text import backtest_lines
from upswing.records import Decision
from upswing.trigger.core.decide import TrainNow, decide_training
from upswing.trigger.core.inputs import ActiveJob, TriggerInputs, TriggerRules
from upswing.trigger.core.what_if import model_jobs, rules_under, usual_cycle

MONTH = timedelta(days=30)
SAME = """
[trigger]
threshold = 5000
schedule = "0 2 * * *"
drop = 0.1
min_sample = 100
pause_minutes = 60
[train]
min_trajectories = 100
min_groups = 32
[validate]
safety_reach = 0.05
floors = {}
[deploy]
ramp_hours = 4.0
samples = 1.0
undecided_days = 7.0
newcomers = "wait"
[deploy.boldness]
strategy = "auto"
initial = 0.1
blue_green = true
approval = false
[deploy.limits]
errors = 0.05
reward = 0.05
complaints = 2.0
reward_chance = 0.01
error_chance = 0.003
min_rewards = 25
min_users = 40
"""
"""Every knob that is replayed, at its default: the policy under which the journals here were written."""


def backtest(decisions, policy):
    change = parse_policy(policy)
    run = BacktestRun(stage_replays(change))
    for decision in decisions:
        run.add(decision)
    return run.report(BacktestSpan(START, START + MONTH), change.listed())


@pytest.fixture(scope="module")
def journal_of_10_000():
    return many(asyncio.run(stories()), 10_000)


async def stories():
    """Rollouts that are promoted, rolled back by reward and by errors; a month of triggers; verdicts."""
    found = []
    for seed, story in enumerate(({}, {"reward": 0.45}, {"errors": 0.15}, {"reward": 0.7})):
        found += (await rollout_journal(seed, **story))[0]
    found += TriggerGround(1, per_hour=400).run(24 * 30)
    found += [validation_decision("val-1"), validation_decision("val-2", safety=(-0.2, -0.3, -0.1))]
    return [*found, degraded(0.5), degraded(0.65)]


def test_the_policy_of_the_time_changes_nothing(journal_of_10_000):
    for policy in ("", SAME):
        began = time.process_time()
        report = backtest(journal_of_10_000, policy)
        took = time.process_time() - began
        assert (report.decisions, report.total, report.rollouts) == (10_000, 0, ())
        assert (report.training, report.unreadable, report.ruled_otherwise) == (None, (), 0)
        assert report.summary == "10,000 decisions replayed: none would have come out otherwise."
        assert set(vars_of(report.cost).values()) == {0}
        assert took < 20, took  # of the processor; a few seconds on an idle one


def vars_of(struct):
    return {name: getattr(struct, name) for name in struct.__struct_fields__}


async def test_the_same_from_the_store_and_a_change_is_quick_too(journal_of_10_000):
    store = open_in_memory_store()
    await store.prepare()

    def fill(tx):
        for each in journal_of_10_000:
            insert_decision(tx, each)

    await store.database.write(fill)
    span = (START - MONTH, START + 40 * MONTH)
    decisions = Decisions(store.database)
    report = await replay_journal(decisions, parse_policy(SAME), *span)
    assert (report.decisions, report.total, report.truncated) == (10_000, 0, False)
    changed = "[deploy.limits]\nreward = 0.02\nerrors = 0.02\n[trigger]\nthreshold = 2500\n"
    report = await replay_journal(decisions, parse_policy(changed), *span)
    assert report.total > 100
    newest = await replay_journal(decisions, parse_policy(changed), *span, most=500)
    assert (newest.decisions, newest.truncated) == (500, True)
    assert any("newest" in note for note in newest.notes)
    store.close()


# ── rollouts: what is modelled beside what really happens ────────────────────────────────────────

CASES = [
    ({}, "ramp_hours = 2.0", {"ramp_hours": 2.0}),
    ({}, "ramp_hours = 8.0", {"ramp_hours": 8.0}),
    ({"reward": 0.7}, "ramp_hours = 2.0", {"ramp_hours": 2.0}),
    ({"reward": 0.7}, "samples = 3.0", {"samples": 3.0}),
    ({"reward": 0.7}, "[deploy.boldness]\ninitial = 0.25", {"boldness": {"initial": 0.25}}),
    ({"errors": 0.15}, "[deploy.limits]\nerrors = 0.02", {"limits": {"errors": 0.02}}),
    ({"reward": 0.45}, "[deploy.limits]\nreward_chance = 0.2", {"limits": {"reward_chance": 0.2}}),
]


@pytest.mark.parametrize(("story", "policy", "real"), CASES)
async def test_a_rollout_under_the_changed_policy_goes_as_the_backtest_says(story, policy, real):
    """The same crowd, once more under the changed policy: the controller itself is the judge."""
    journal, _ = await rollout_journal(3, **story)
    (effect,) = backtest(journal, f"[deploy]\n{policy}").rollouts
    led, _ = await rollout_journal(3, hours=24, **story, **real)
    ends = {"promote": "promoted", "roll_back": "rolled_back"}
    assert effect.then.ended == ends[journal[-1].kind]
    assert effect.then.at == journal[-1].decided
    assert effect.now.ended == ends[led[-1].kind]
    off = abs(effect.now.at - led[-1].decided)
    assert off <= timedelta(minutes=30), (effect.now.at, led[-1].decided)


async def test_laxer_limits_do_not_make_up_what_nobody_saw():
    journal, _ = await rollout_journal(3, reward=0.45)
    report = backtest(journal, "[deploy.limits]\nreward = 0.3\n")
    (difference,) = report.differences
    assert (difference.then.action, difference.now.action, difference.acts) == (
        "roll_back",
        "hold",
        True,
    )
    assert difference.then.detail == "performance_degradation"
    (effect,) = report.rollouts
    assert (effect.now.ended, effect.hours, effect.episodes) == ("open", None, None)
    assert "Each further hour would have given it about" in effect.sentence
    assert report.cost.rollbacks == -1


async def test_a_bold_policy_and_a_timid_one_begin_otherwise():
    journal, _ = await rollout_journal(3)
    report = backtest(journal, '[deploy.boldness]\nstrategy = "blue_green"\n')
    assert [(e.then.action, e.now.action) for e in report.differences] == [("canary", "blue_green")]
    report = backtest(journal, "[deploy.boldness]\napproval = true\n")
    assert report.differences[0].now.detail == "from 10 %, approval"
    assert not report.differences[0].acts


async def test_a_rollout_that_an_operator_led_is_not_modelled():
    from tests.deploy.controlling import Ground

    ground = Ground(3)
    name = ground.trained(1)
    controller = await ground.started()
    await controller.admit()
    await ground.pass_time(controller, timedelta(hours=1))
    await controller.operator.pause(name, "ann")
    await ground.pass_time(controller, timedelta(hours=1))
    await controller.operator.resume(name, "ann")
    await ground.pass_time(controller, timedelta(hours=8))
    report = backtest(ground.store.decisions, "[deploy]\nramp_hours = 1.0\n")
    assert [each.now.ended for each in report.rollouts] == ["unknown"]
    assert "an operator led it" in report.rollouts[0].sentence
    assert report.cost.hours_to_promotion == 0


# ── validation, and what follows from it ─────────────────────────────────────────────────────────


async def test_a_validation_that_passes_only_under_one_policy_changes_what_ships():
    journal, _ = await rollout_journal(3)
    safe = validation_decision("val-agent-zero-rl-v1")
    assert '"word":"inconclusive"' in safe.outcome.decode()
    lax = validation_decision("val-agent-zero-rl-v1", safety_reach=0.2)
    report = backtest([lax, *journal], "[validate]\nsafety_reach = 0.05\n")
    first, second = report.differences[:2]
    assert (first.stage, first.then.action, first.now.action) == (
        "validate",
        "pass",
        "inconclusive",
    )
    assert (second.then.action, second.now.action) == ("canary", "abort")
    (effect,) = report.rollouts
    assert (effect.then.ended, effect.now.ended) == ("promoted", "not_begun")
    assert effect.episodes == -effect.then.episodes < 0
    assert report.cost.promotions == -1


def test_a_floor_that_a_candidate_did_not_reach_fails_it():
    passed = validation_decision(score=0.6, safety_reach=0.2)
    report = backtest([passed], "[validate]\nfloors = {safety_refusal = 0.9}\n")
    assert [(e.then.action, e.now.action) for e in report.differences] == [("pass", "fail")]


# ── triggers ─────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("policy", "rules"),
    [
        ("threshold = 2500", {"threshold": 2500}),
        ("threshold = 20000", {"threshold": 20_000}),
        ('schedule = "off"', {"schedule": None}),
        ('schedule = "0 */6 * * *"', {"schedule": "0 */6 * * *"}),
        ('threshold = 1000000\nschedule = "off"', {"threshold": 1_000_000, "schedule": None}),
    ],
)
def test_as_many_jobs_are_modelled_as_the_changed_rules_really_ask_for(policy, rules):
    before = TriggerGround(2, per_hour=300)
    journal = before.run(24 * 20)
    training = backtest(journal, f"[trigger]\n{policy}\n").training
    after = TriggerGround(2, per_hour=300, **rules)
    after.run(24 * 20)
    assert training.journalled == len(before.jobs)
    assert abs(training.then - len(before.jobs)) <= 1
    slack = max(1, ceil(0.1 * len(after.jobs)))
    assert abs(training.now - len(after.jobs)) <= slack, (training, len(after.jobs))
    if after.jobs and training.now:
        assert abs(training.first_now - after.jobs[0]) <= timedelta(hours=2)


@given(
    seed=st.integers(0, 10**6),
    per_hour=st.integers(20, 6000),
    job_minutes=st.floats(1, 600),
    threshold=st.integers(5, 3000),
    changed=st.integers(1, 3000),
    known=st.booleans(),
)
@settings(max_examples=40, deadline=None)
def test_modelled_jobs_never_overlap_and_are_no_more_than_fit(
    seed, per_hour, job_minutes, threshold, changed, known
):
    length = timedelta(minutes=job_minutes)
    ground = TriggerGround(
        seed, per_hour=per_hour, job_hours=job_minutes / 60, threshold=threshold, schedule=None
    )
    entries = [(from_json(each.inputs, TriggerInputs), each.kind) for each in ground.run(12)]
    cycle = usual_cycle(entries, [length] * 3 if known else ())
    if known and ground.jobs:
        assert length - timedelta(minutes=5) <= cycle <= length + timedelta(minutes=5)
    for rules in ({}, {"trigger.threshold": changed}):
        jobs = model_jobs(entries, lambda seen, knobs=rules: rules_under(seen, knobs), cycle)
        times = [each.at for each in jobs]
        assert all(later - earlier >= cycle for earlier, later in pairwise(times))
        span = entries[-1][0].now - entries[0][0].now
        assert len(jobs) <= span / cycle + 1


async def test_a_short_history_has_no_more_jobs_than_its_minutes_hold():
    """What the journal of half an hour has: just after a job began, nothing is new, and it runs for minutes."""
    minute = timedelta(minutes=1)
    pool = Learnable(trajectories=500, groups=100, usable=80)
    rules = TriggerRules(threshold=200, schedule=None)
    first = TriggerInputs(START, rules, new=0)
    begun = TriggerInputs(START + 13 * minute, rules, new=210, pool=pool)
    going = TriggerInputs(START + 13.2 * minute, rules, new=0, active=(ActiveJob("job", "", 210),))
    later = TriggerInputs(START + 26 * minute, rules, new=215, pool=pool)
    journal = [
        _journalled(number, inputs) for number, inputs in enumerate((first, begun, going, later))
    ]
    change = parse_policy("[trigger]\nthreshold = 10\n")
    run = BacktestRun(stage_replays(change, [5.5 * minute]))
    run.add_all(journal)
    training = run.report(BacktestSpan(START, START + MONTH), change.listed()).training
    assert (training.journalled, training.then) == (2, 2)
    assert 2 < training.now <= 26 / 5.5 + 1


def _journalled(number, inputs):
    choice = decide_training(inputs)
    kind = choice.reason if isinstance(choice, TrainNow) else choice.kind.value
    encoded = msgspec.json.encode(inputs)
    return Decision(str(number), "trigger", kind, choice.sentence, encoded, b"{}", inputs.now)


def test_a_fall_that_matters_less_starts_no_job():
    report = backtest([degraded(0.55)], "[trigger]\ndrop = 0.3\n")
    (difference,) = report.differences
    assert (difference.then.action, difference.now.action) == ("train", "wait")
    assert difference.then.detail.startswith("performance_degradation")
    report = backtest([degraded(0.65)], "[trigger]\ndrop = 0.04\n")
    assert [(e.then.action, e.now.action) for e in report.differences] == [("wait", "train")]


# ── what cannot be replayed ──────────────────────────────────────────────────────────────────────


async def test_entries_that_nobody_can_read_are_counted_and_named_and_the_others_replayed():
    journal, _ = await rollout_journal(3)
    broken = [
        replace(journal[0], decision_id="cut", inputs=b'{"type": "judged", "mod'),
        replace(journal[0], decision_id="older", inputs=b'{"type": "judged", "model": "m"}'),
        replace(journal[0], decision_id="unknown", inputs=b'{"type": "guessed"}'),
        replace(journal[0], decision_id="text", inputs=b"\xff\xfe"),
        replace(journal[0], decision_id="deep", inputs=b"[" * 5000),
    ]
    trigger = replace(degraded(0.5), decision_id="trigger", inputs=b'{"now": "never"}')
    report = backtest([*broken, trigger, *journal], SAME)
    assert sum(each.count for each in report.unreadable) == len(broken) + 1
    named = {name for each in report.unreadable for name in each.examples}
    assert named == {each.decision_id for each in (*broken, trigger)}
    assert sum(each.replayed for each in report.stages) == len(journal)
    assert report.total == 0
    assert "6 entries could not be replayed." in report.notes
    text = "\n".join(backtest_lines(report))
    assert "needs other inputs today: Object missing required field" in text


async def test_a_canary_whose_step_does_not_exist_is_set_aside():
    journal, _ = await rollout_journal(3)
    hold = next(each for each in journal if each.kind == "hold")
    odd = replace(hold, inputs=hold.inputs.replace(b'"step":0', b'"step":99'))
    report = backtest([odd], SAME)
    assert [each.count for each in report.unreadable] == [1]


async def test_decisions_that_todays_rules_make_otherwise_are_no_difference_of_policy():
    journal, _ = await rollout_journal(3)
    reworded = [replace(journal[0], kind="immediate"), *journal[1:]]
    report = backtest(reworded, SAME)
    assert (report.total, report.ruled_otherwise) == (0, 1)
    assert "by today's rules alone" in report.notes[0]


def test_stages_without_a_policy_are_counted_and_left_alone():
    recovery = replace(degraded(0.5), stage="train", inputs=b"whatever")
    report = backtest([recovery], SAME)
    assert (report.decisions, report.stages, report.unreadable) == (1, (), ())


# ── the policy ───────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[deploy\n", "Expected"),
        ("[trigger]\nthreshold = 0\n", "threshold"),
        ("[trigger]\nthreshhold = 10\n", "threshhold"),
        ('[trigger]\nschedule = "61 * * * *"\n', "minute 61"),
        ("[deploy.limits]\nerrors = 0.9\n", "errors"),
        ("[deploy.limits]\nerrorz = 0.1\n", "errorz"),
        ("[nonsense]\na = 1\n", "nonsense"),
        ("deploy = 3\n", "deploy"),
        ("a." * 32_000 + "a = 1\n", "line 1"),
        ("# a policy\n[" + " . ".join(['"\u2028"'] * 6_000) + "]\n", "line 2"),
        ('"=".' + "a." * 30_000 + "a = 1\n", "line 1"),
        ("a = " + "[" * 60_000, "nested"),
        ("a = " + "{b = " * 12_000, "nested"),
    ],
)
def test_a_policy_that_is_none_is_refused_with_its_place(text, said):
    with pytest.raises(Misuse, match=said):
        parse_policy(text, "new.toml")


_MOST_BYTES = 64 * 1024
_LINES = (
    "{key}.x{number} = 1",
    "[{key}.x{number}]",
    "[[{key}]]",
    "[{key}.x{number}]\n{key} = 1",
    "x{number} = {{{key} = 1}}",
)


@settings(max_examples=20)
@given(data=st.data())
def test_no_policy_takes_long_to_read(data):
    """Of as many bytes as may be sent, whatever they are made of."""
    parts, line = data.draw(st.integers(1, 41)), data.draw(st.sampled_from(_LINES))
    key = ".".join(["a"] * parts)
    text = "\n".join(line.format(key=key, number=number) for number in range(64_000))[:_MOST_BYTES]
    began = process_time()
    with pytest.raises(Misuse):
        parse_policy(text)
    assert process_time() - began < 5, f"{parts} parts of {line!r}"


def test_knobs_that_no_journalled_decision_depends_on_say_so():
    policy = (
        "[trigger]\nrecent = 100\n[train]\nbase_model = 'x'\n[validate]\ntasks = 50\n"
        "[deploy]\nholdback = 0.1\n[deploy.limits]\nreward = 0.04\n[serve]\nthreads = 2\n"
    )
    notes = {knob.name: knob.note for knob in parse_policy(policy).listed()}
    assert notes.pop("deploy.limits.reward") == ""
    assert all(notes.values())
    assert set(notes) == {
        "trigger.recent",
        "train.base_model",
        "validate.tasks",
        "deploy.holdback",
        "serve.threads",
    }


async def test_a_report_reads_and_shows_no_more_than_it_may():
    journal = many((await rollout_journal(3, reward=0.45))[0], 2000)
    report = backtest(journal, "[deploy.limits]\nreward = 0.3\n")
    assert (report.shown, report.total) == (SHOWN, 500)
    lines = list(backtest_lines(report, most=3))
    assert any("460 more" in line or "497 more" in line for line in lines)
    assert sum("    then roll_back" in line for line in lines) == 3
