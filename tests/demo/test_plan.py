"""A plan is kept, goes on, and never writes into somebody's own loop."""

from datetime import UTC, datetime

import pytest
from tests.support import cli

from upswing.config import read_settings
from upswing.demo.ending import summarise_demo
from upswing.demo.heldout import Measured, held_out_interval, measured_improvement
from upswing.demo.plan import SIZES, DemoPlan, accelerated_clock, load_plan, save_plan
from upswing.demo.private_data import PrivateDataWorld, ground_truth_text, private_remark
from upswing.deploy.core.policy import deploy_policy_of
from upswing.errors import Misuse
from upswing.train.core.request import check_recipe_settings
from upswing.worlds.triage import Triage


@pytest.fixture
def folder(tmp_path):
    tmp_path.chmod(0o700)
    return tmp_path


def test_a_new_folder_gets_what_is_asked_for(folder):
    assert load_plan(folder, None, None) == DemoPlan("tiny", "desk", 0)
    assert load_plan(folder, "smollm2", 7) == DemoPlan("smollm2", "workshop", 7)


def test_what_was_begun_goes_on(folder):
    save_plan(folder, DemoPlan(seed=5))
    assert load_plan(folder, None, None).seed == 5
    assert load_plan(folder, "tiny", 5).seed == 5


@pytest.mark.parametrize(("model", "seed"), [("smollm2", None), (None, 6), (None, 0)])
def test_another_plan_in_the_same_folder_is_refused(folder, model, seed):
    save_plan(folder, DemoPlan(seed=5))
    with pytest.raises(Misuse, match="was made with"):
        load_plan(folder, model, seed)


def test_a_loop_of_one_s_own_is_left_alone(folder):
    (folder / "secrets.json").write_text("{}")
    with pytest.raises(Misuse, match="a loop of your own"):
        load_plan(folder, None, None)


def test_a_plan_that_cannot_be_read_is_said_so(folder):
    save_plan(folder, DemoPlan())
    (folder / "demo" / "plan.json").write_text("{")
    with pytest.raises(Misuse, match="cannot be read"):
        load_plan(folder, None, None)


@pytest.mark.parametrize("model", SIZES)
def test_the_settings_are_the_loop_s(folder, model):
    save_plan(folder, DemoPlan(model=model, seed=3))
    settings = read_settings(folder, {})
    assert settings.train.base_model == model
    assert settings.trigger.threshold == SIZES[model].threshold
    check_recipe_settings(settings.train.recipe)
    policy = deploy_policy_of({}, settings.deploy)
    assert not policy.boldness.blue_green


def test_settings_that_somebody_changed_stay(folder):
    (folder / "upswing.toml").write_text("# mine\n")
    save_plan(folder, DemoPlan())
    assert (folder / "upswing.toml").read_text() == "# mine\n"


def test_four_hours_take_twenty_four_seconds():
    ticks = iter([0.0, 24.0])
    clock = accelerated_clock(datetime(2026, 1, 5, tzinfo=UTC), lambda: next(ticks))
    assert clock() == datetime(2026, 1, 5, 4, tzinfo=UTC)


def measured(model, score, tasks=60):
    return Measured(model, {f"t{number}": score for number in range(tasks)})


def test_an_interval_holds_its_mean_and_stays_between_nought_and_one():
    for score in (0.0, 0.4, 1.0):
        found = held_out_interval(measured("tiny", score), 0)
        assert 0 <= found.low <= found.mean <= found.high <= 1


def test_tasks_that_only_one_model_has_done_are_not_compared():
    before, after = measured("tiny", 0.2, 40), measured("new", 0.8, 60)
    assert measured_improvement(before, after, 0).tasks == 40


@pytest.mark.parametrize(("after", "improved"), [(0.8, True), (0.2, False), (0.1, False)])
def test_a_run_that_did_not_help_says_so(after, improved):
    summary = summarise_demo(
        DemoPlan(),
        [measured("tiny", 0.2), measured("new", after)],
        models=(),
        rollouts=(),
        validations=(),
        stages={},
        seconds=1.0,
        episodes=1,
        rollback_seconds=None,
        memory_gb=None,
        files={},
        log=(),
    )
    assert summary.improved == improved
    assert ("did not help" in summary.sentence) != improved


def test_some_users_let_something_slip_at_the_beginning_only():
    world = PrivateDataWorld(Triage())
    task = next(task for task in world.training if private_remark(task.task_id))
    state = world.reset(task)
    assert world.observe(state).text.endswith(private_remark(task.task_id))
    after = world.step(state, "refund")
    assert private_remark(task.task_id) not in world.observe(after).text
    assert world.outcome(after).truth == ground_truth_text(task.task_id)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--cycles", "0"), "give a whole number from 1 to 100"),
        (("--cycles", "many"), "give a whole number from 1 to 100"),
        (("--seed", "x"), "give a whole number"),
        (("--model", "gpt"), "'gpt' is none of tiny, smollm2"),
        (("--summary", "/nowhere/at/all.json"), "cannot be written"),
    ],
)
def test_what_cannot_be_done_is_said_before_anything_starts(tmp_path, words, said):
    done = cli("demo", *words, data=tmp_path / "data", check=False)
    assert done.returncode in {1, 2}
    assert said in done.stderr.decode()
    assert not (tmp_path / "data").exists()
