"""The cascade: its table, its laws, and its sentences."""

import math
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import product

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from upswing.dataset.groups import Learnable
from upswing.trigger.core import decide as module
from upswing.trigger.core.decide import TrainNow, Wait, WaitReason, decide_training
from upswing.trigger.core.inputs import (
    ActiveJob,
    DeployedModel,
    ManualRequest,
    TriggerInputs,
    TriggerRules,
)
from upswing.trigger.core.readiness import DataMinimums

NOW = datetime(2025, 12, 8, 2, 0, 30, tzinfo=UTC)
HOUR = timedelta(hours=1)
LEARNABLE = Learnable(trajectories=250, groups=40, usable=40, with_outcome=250, varied=True)
QUIET = TriggerInputs(NOW, new=10, newest_seq=10, last_slot=NOW, pool=LEARNABLE)
FACTS = {
    "degraded": {"deployed": DeployedModel("m-1", mean=0.55, count=200, baseline=0.7)},
    "asked": {"manual": (ManualRequest("ann"),)},
    "enough": {"new": 5000, "newest_seq": 5000},
    "due": {"last_slot": NOW - 24 * HOUR},
}
REASONS = ("performance_degradation", "manual", "threshold_reached", "scheduled")


def table():
    """The rows of the module's own docstring: (yes/no/any, …, reason, priority)."""
    rows = [line.strip("|").split("|") for line in module.__doc__.splitlines() if line[:1] == "|"]
    return [[cell.strip() for cell in row] for row in rows[2:]]


def the_row_of(facts):
    for *conditions, reason, priority in table():
        if all(
            said in {"any", "yes" if fact else "no"}
            for said, fact in zip(conditions, facts, strict=True)
        ):
            return reason, priority
    raise AssertionError(f"no row for {facts}")


@pytest.mark.parametrize("facts", list(product([True, False], repeat=4)))
def test_the_table_is_what_happens(facts):
    changes = {}
    for name, fact in zip(FACTS, facts, strict=True):
        changes |= FACTS[name] if fact else {}
    choice = decide_training(replace(QUIET, **changes))
    reason, priority = the_row_of(facts)
    if reason == "wait":
        assert isinstance(choice, Wait)
    else:
        assert isinstance(choice, TrainNow)
        assert (choice.reason, choice.priority) == (reason, priority)


# ── laws ─────────────────────────────────────────────────────────────────────────────────────────

numbers = st.none() | st.floats(allow_nan=True, allow_infinity=True) | st.floats(0, 1)
jobs = st.builds(
    ActiveJob, st.sampled_from(["a", "b"]), st.sampled_from(REASONS), st.integers(0, 20_000)
)
moments = st.integers(-5000, 5000).map(lambda minutes: NOW + timedelta(minutes=minutes))
INPUTS = st.builds(
    TriggerInputs,
    st.just(NOW),
    rules=st.builds(
        TriggerRules,
        threshold=st.integers(1, 10_000),
        schedule=st.sampled_from(["0 2 * * *", "*/5 * * * *", None]),
        min_sample=st.integers(1, 200),
        algorithm=st.sampled_from(["ppo", "grpo", None]),
        base_model=st.sampled_from(["tiny", None]),
    ),
    deployed=st.none()
    | st.builds(
        DeployedModel, st.just("m-1"), numbers, st.integers(0, 500), numbers, error=st.floats(0, 1)
    ),
    manual=st.lists(st.builds(ManualRequest, st.just("ann"), st.booleans()), max_size=2).map(tuple),
    new=st.integers(0, 20_000),
    newest_seq=st.integers(0, 20_000),
    last_slot=st.none() | moments,
    active=st.lists(jobs, max_size=3).map(tuple),
    failed=st.dictionaries(st.sampled_from(REASONS), moments),
    pool=st.none()
    | st.builds(
        Learnable,
        trajectories=st.integers(0, 500),
        groups=st.integers(0, 99),
        usable=st.integers(0, 50),
        with_outcome=st.integers(0, 300),
        varied=st.booleans(),
        thumbs_up=st.integers(0, 40),
        thumbs_down=st.integers(0, 40),
        successes=st.integers(0, 60),
    ),
    train_here=st.booleans(),
    pending=st.none() | st.just("m-2"),
)


@given(INPUTS)
def test_one_model_at_a_time_unless_a_person_insists(inputs):
    choice = decide_training(inputs)
    if isinstance(choice, TrainNow) and not choice.force:
        assert not inputs.active
        assert inputs.pending is None


@given(INPUTS)
def test_the_loop_starts_no_job_that_has_nothing_to_learn_from(inputs):
    choice = decide_training(inputs)
    if isinstance(choice, TrainNow) and choice.reason != "manual":
        assert (
            inputs.pool.usable or inputs.pool.told or inputs.pool.thumbs_up or inputs.pool.successes
        )


@given(INPUTS)
def test_a_reason_rests_after_a_failure(inputs):
    choice = decide_training(inputs)
    if (
        isinstance(choice, TrainNow)
        and choice.reason != "manual"
        and choice.reason in inputs.failed
    ):
        assert inputs.failed[choice.reason] + inputs.rules.pause <= NOW


@given(INPUTS)
def test_nothing_is_trained_on_a_number_that_is_none(inputs):
    choice = decide_training(inputs)
    if isinstance(choice, TrainNow) and choice.reason == "performance_degradation":
        assert math.isfinite(inputs.deployed.mean)
        assert math.isfinite(inputs.deployed.baseline)
        assert inputs.deployed.count >= inputs.rules.min_sample


@given(INPUTS)
def test_nothing_is_asked_for_without_a_base_model(inputs):
    if inputs.rules.base_model is None:
        assert isinstance(decide_training(inputs), Wait)


@given(INPUTS)
def test_the_journal_holds_enough_to_decide_again(inputs):
    """Also what JSON cannot say: a mean that is not a number comes back as none, to the same end."""
    again = msgspec.json.decode(msgspec.json.encode(inputs), type=TriggerInputs)
    assert decide_training(again) == decide_training(inputs)


@given(INPUTS)
def test_every_answer_is_one_sentence(inputs):
    sentence = decide_training(inputs).sentence
    assert sentence.endswith((".", "!"))
    assert "nan" not in sentence


# ── degradation ──────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("mean", "count", "baseline", "fires"),
    [
        (0.6, 100, 0.7, True),  # 0.7 - 0.6 is a little less than 0.1 in binary
        (0.601, 100, 0.7, False),
        (0.2, 99, 0.7, False),
        (math.nan, 100, 0.7, False),
        (0.2, 100, math.nan, False),
        (0.2, 100, math.inf, False),
        (-math.inf, 100, 0.7, False),
        (None, 100, 0.7, False),
        (0.2, 100, None, False),
        (0.9, 100, 0.7, False),
    ],
)
def test_a_model_has_degraded_when_enough_trajectories_say_so(mean, count, baseline, fires):
    choice = decide_training(replace(QUIET, deployed=DeployedModel("m-1", mean, count, baseline)))
    assert isinstance(choice, TrainNow) == fires


@pytest.mark.parametrize(("error", "fires"), [(0.0, True), (0.049, True), (0.051, False)])
def test_a_fall_that_chance_explains_is_none(error, fires):
    fallen = DeployedModel("m-1", 0.55, 200, 0.7, error=error)
    assert isinstance(decide_training(replace(QUIET, deployed=fallen)), TrainNow) == fires


def test_a_fall_with_nothing_to_learn_from_waits_for_it():
    choice = decide_training(replace(QUIET, **FACTS["degraded"], pool=Learnable(250)))
    assert choice.kind is WaitReason.READY
    assert choice.sentence.startswith("m-1 earns 0.550 over its last 200 trajectories")


def test_a_degraded_model_is_named_with_its_numbers():
    choice = decide_training(replace(QUIET, **FACTS["degraded"]))
    assert choice.sentence == (
        "m-1 earns 0.550 over its last 200 trajectories, 0.150 below its baseline of 0.700; "
        "grpo, because 40 groups of attempts have a difference in them."
    )


# ── by hand ──────────────────────────────────────────────────────────────────────────────────────


def test_who_asks_and_is_not_ready_is_told_what_is_missing():
    choice = decide_training(
        replace(QUIET, manual=(ManualRequest("ann"),), pool=Learnable(40, with_outcome=40, good=9))
    )
    assert choice.kind is WaitReason.READY
    assert choice.sentence == (
        "Not ready to train: 40 of 100 trajectories; 0 of 32 groups of attempts in which one did "
        "better than another; 0 of 100 single attempts that can be told apart."
    )


def test_who_insists_gets_a_job_whatever_there_is():
    busy = (ActiveJob("j-1", "manual", 99),)
    wish = ManualRequest("ann", force=True, sample_size=7)
    choice = decide_training(replace(QUIET, manual=(wish,), pool=Learnable(), active=busy))
    assert (choice.reason, choice.sample_size, choice.requester) == ("manual", 7, "ann")


def test_who_asks_for_what_a_running_job_covers_is_told_which():
    running = (ActiveJob("j-1", "scheduled", 10),)
    choice = decide_training(replace(QUIET, manual=(ManualRequest("ann"),), active=running))
    assert (choice.kind, "j-1" in choice.sentence) == (WaitReason.JOB, True)
    newer = decide_training(
        replace(QUIET, manual=(ManualRequest("ann"),), active=running, newest_seq=11)
    )
    assert newer.kind is WaitReason.JOB
    insists = ManualRequest("ann", force=True)
    assert decide_training(replace(QUIET, manual=(insists,), active=running)).reason == "manual"


# ── the schedule ─────────────────────────────────────────────────────────────────────────────────


def test_a_schedule_that_nobody_has_looked_at_yet_owes_nothing():
    assert isinstance(decide_training(replace(QUIET, last_slot=None)), Wait)


@pytest.mark.parametrize(
    ("changes", "kind"),
    [
        ({"active": (ActiveJob("j-1", "threshold_reached", 3),)}, WaitReason.JOB),
        ({"new": 0}, WaitReason.DATA),
        ({"pool": msgspec.structs.replace(LEARNABLE, trajectories=99)}, WaitReason.READY),
        ({"pending": "m-2"}, WaitReason.MODEL),
        ({"pool": None}, WaitReason.READY),
    ],
)
def test_a_time_that_is_passed_over_is_dealt_with(changes, kind):
    choice = decide_training(replace(QUIET, **FACTS["due"], **changes))
    assert (choice.kind, choice.slot) == (kind, datetime(2025, 12, 8, 2, tzinfo=UTC))
    assert "2025-12-08 02:00 UTC is passed over" in choice.sentence


@pytest.mark.parametrize(("algorithm", "fires"), [("ppo", True), ("grpo", False)])
def test_only_an_algorithm_that_compares_needs_groups(algorithm, fires):
    rules = TriggerRules(algorithm=algorithm, minimums=DataMinimums())
    choice = decide_training(
        replace(
            QUIET, **FACTS["due"], rules=rules, pool=msgspec.structs.replace(LEARNABLE, usable=0)
        )
    )
    assert isinstance(choice, TrainNow) == fires


def test_after_a_failure_the_time_is_kept_for_later():
    early = replace(QUIET, **FACTS["due"], failed={"scheduled": NOW - HOUR / 2})
    assert (decide_training(early).kind, decide_training(early).slot) == (WaitReason.PAUSE, None)
    later = replace(early, now=NOW + HOUR)
    assert decide_training(later).reason == "scheduled"


# ── what is said ─────────────────────────────────────────────────────────────────────────────────


def test_a_machine_that_does_not_train_says_who_will():
    choice = decide_training(replace(QUIET, **FACTS["enough"], train_here=False))
    assert choice.sentence.endswith(
        "this machine does not train, so the job waits for another worker."
    )


def test_waiting_says_how_far_it_is_and_when_the_schedule_comes():
    assert decide_training(QUIET).sentence == (
        "10 of 5000 new trajectories; the schedule's next time is 2025-12-09 02:00 UTC."
    )


# ── one model at a time ──────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("fact", ["degraded", "enough"])
def test_a_reason_that_comes_during_a_rollout_is_kept_and_fires_when_it_ends(fact):
    busy = replace(QUIET, **FACTS[fact], pending="m-2")
    assert (decide_training(busy).kind, "m-2" in decide_training(busy).sentence) == (
        WaitReason.MODEL,
        True,
    )
    assert isinstance(decide_training(replace(busy, pending=None)), TrainNow)


# ── what fits the data ───────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("there", "algorithm"),
    [
        (Learnable(500, usable=32), "grpo"),
        (Learnable(500, usable=31), None),
        (Learnable(500, usable=15, with_outcome=100, singles=100), "reinforce"),
        (Learnable(500, usable=15, with_outcome=400, singles=99), None),
        (Learnable(500, with_outcome=500), None),
        (Learnable(500, with_outcome=500, singles=500, successes=20, imitable=20), "rft"),
        (Learnable(500, with_outcome=500, singles=500, successes=30, imitable=30), "reinforce"),
        (Learnable(500, thumbs_up=20, thumbs_down=20), "kto"),
        (Learnable(500, thumbs_up=400, thumbs_down=19), None),
        (Learnable(500, successes=20, imitable=20), "rft"),
        (Learnable(500, with_outcome=500, good=500, successes=500), None),
    ],
)
def test_the_algorithm_follows_from_what_there_is(there, algorithm):
    choice = decide_training(replace(QUIET, **FACTS["enough"], pool=there))
    assert (choice.algorithm if isinstance(choice, TrainNow) else None) == algorithm


def test_identical_answers_are_named_with_what_to_do():
    same = Learnable(500, groups=60, flat=60, identical=60)
    choice = decide_training(replace(QUIET, **FACTS["enough"], pool=same))
    assert "temperature 0" in choice.sentence
    assert "`explore` in [gateway]" in choice.sentence


@pytest.mark.parametrize(
    ("usable", "new", "waits"),
    [(16, 1.0, True), (31, 1.99, True), (32, 1.0, False), (31, 2.0, False), (15, 1.0, False)],
)
def test_half_of_the_groups_are_worth_waiting_for_the_others(usable, new, waits):
    pool = Learnable(900, groups=60, usable=usable, with_outcome=900, singles=900, varied=True)
    enough = {**FACTS["enough"], "new": int(QUIET.rules.threshold * new)}
    choice = decide_training(replace(QUIET, **enough, pool=pool))
    assert isinstance(choice, Wait if waits else TrainNow), choice
    if waits:
        assert f"only {usable} of 32 groups" in choice.sentence
    configured = replace(QUIET.rules, algorithm="grpo")
    assert isinstance(
        decide_training(replace(QUIET, **enough, pool=pool, rules=configured)), TrainNow
    )
