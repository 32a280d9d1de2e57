"""`upswing train --dry-run`: what would be trained on and how, and nothing is trained."""

import asyncio
import json
from dataclasses import replace

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.conftest import running_loop
from tests.dataset.data_cases import NOW, crowd
from tests.deploy.controlling import OWN, report
from tests.support import Client, cli, trajectory, until

from upswing.cli.learn_report import _compared_on, _decision_reasons, gather
from upswing.cli.learn_view import Cycle, History, ModelEarnings, draw_chart, render
from upswing.config import Settings, TriggerConfig
from upswing.dataset.filtering import SelectionSpec
from upswing.dataset.select import select
from upswing.dataset.snapshot import build_snapshot
from upswing.deploy.core.journal import StrategyInputs
from upswing.deploy.core.strategy import StrategyPolicy
from upswing.infra.sql.decisions import Decisions
from upswing.records import Decision
from upswing.train.core.fit import FittedRecipe
from upswing.train.core.plan import CompletedJob, build_plan
from upswing.train.core.plan import plan_lines as plan_text
from upswing.train.core.policy_change import PolicyChange, policy_change
from upswing.train.core.recipe import Recipe


def snapshot(people):
    spec = SelectionSpec("grpo", 1000, policy_ages={"tiny": 0})
    return build_snapshot(
        select(people, spec),
        spec,
        source="local",
        requested_filter={},
        left_out={},
        notes=[],
        made=NOW,
    )


@pytest.mark.parametrize(
    ("earlier", "seconds", "told"),
    [
        ([], 10 + 240 * (0.004 + 1.3e-9 * 1e6), "roughly"),
        ([CompletedJob("j", 120, 30.0, 0.5)], 60.0, "job j"),
        ([CompletedJob("odd", 0, 0.0, 0.0), CompletedJob("k", 240, 7.0, 0.5)], 7.0, "job k"),
    ],
)
def test_time_and_memory_are_those_of_an_earlier_job_or_a_guess(earlier, seconds, told):
    fit = FittedRecipe(Recipe(epochs=3), {"epochs": "measured"})
    plan = build_plan(
        snapshot(crowd(80)),
        fit,
        base_model="tiny",
        starts_from="v2",
        parameters=1_000_000,
        full=True,
        earlier=earlier,
    )
    assert (plan.trajectories, plan.usable_groups, plan.policies) == (80, 10, {"tiny": 80})
    assert plan.seconds == pytest.approx(seconds, rel=0.05)
    assert told in plan.estimated_from
    text = "\n".join(plan_text(plan))
    assert "grpo would train v2 on 80 trajectories in 10 groups" in text
    assert "epochs         3  (measured)" in text


@pytest.mark.live
async def test_a_dry_run_says_what_a_job_would_do_and_makes_none(data):
    reaching = Settings(trigger=TriggerConfig(days=3650))  # to the example's date
    async with (
        running_loop(data, settings=reaching) as loop,
        Client(loop.running.http_url, loop.running.key) as client,
    ):
        early = await asyncio.to_thread(cli, "train", "--dry-run", data=data, check=False)
        assert early.returncode == 1
        assert b"Not ready to train" in early.stderr
        for number in range(160):
            document = trajectory(
                agent_id="one",
                metadata={
                    "model": "tiny",
                    "outcome": {"status": ("failed", "completed")[number % 2], "source": "tests"},
                },
            )
            document["task_context"]["task_id"] = f"task-{number // 4}"
            await client.send(document)

        async def scored():
            return (await loop.store.counts())["rewards"] >= 160

        await until(scored)
        done = await asyncio.to_thread(cli, "train", "--dry-run", "--json", data=data)
        plan = json.loads(done.stdout)
        assert (plan["algorithm"], plan["starts_from"]) == ("grpo", "tiny")
        assert plan["trajectories"] + plan["held_out"] == 160
        assert plan["sources"] == {"verified": 40}
        assert plan["off_policy"] == 0.0
        assert plan["why"]["learning_rate"]
        assert not (await client("GET", "/jobs"))[1]["jobs"]
        _, told = await client("GET", "/api/admin/training/status")
        assert told["readiness"]["stats"]["usableGroups"] == 40
        assert told["readiness"]["ready"]
        report = await asyncio.to_thread(cli, "learn-report", data=data)
        assert b"Nothing was trained yet" in report.stdout


STATUS = {
    "stopped": "kl_budget",
    "kl_from_parent": 1.4,
    "changed_answers": 0.25,
    "train_reward": [0.31, 0.52],
    "holdout_reward": [0.3, 0.5],
    "holdout_measured_by": "logged",
    "off_policy_share": 0.1,
    "importance_mean": 0.98,
    "importance_truncated": 0.001,
    "effective_sample": 0.9,
    "mismatch_kl": 0.00021,
    "no_change": False,
}
"""Of a completed job."""


def test_a_learn_report_tells_each_cycle_and_draws_it(tmp_path):
    def cycle(number, state, why=()):
        return Cycle(
            number,
            f"job-{number}",
            NOW,
            "grpo",
            "completed",
            60.0,
            {"tiny": 0.25, "v1": 0.75},
            800,
            90,
            f"v{number}",
            "tiny",
            state,
            policy_change("grpo", STATUS),
            (0.1, 0.05, 0.15),
            "pass",
            why,
            ModelEarnings(500, 0.5, 0.6),
        )

    history = History(
        {"tiny": ModelEarnings(900, 0.3, None)},
        (cycle(1, "retired"), cycle(2, "rolled_back", ("It is worse.",))),
    )
    text = "\n".join(render(history))
    assert "tiny: 900 trajectories, reward 0.300" in text
    assert "25% tiny, 75% v1" in text
    assert "why not      It is worse." in text
    assert (
        "moved        1.40 nats a reply, 25% of greedy answers changed, stopped by kl_budget"
        in text
    )
    assert "trained on   0.310 → 0.520" in text
    assert "held out     0.300 → 0.500, estimated from logged episodes" in text
    assert "off-policy   10% of tokens, weights 0.98 on the mean, 0.1% cut, worth 90%" in text
    assert "server and trainer 2.1e-04 nats a token apart" in text
    assert "learned on   800 trajectories, 90 groups with a difference" in text
    assert "validation   pass, +0.100 [+0.050, +0.150]" in text
    draw_chart(history, tmp_path / "chart.png")
    assert (tmp_path / "chart.png").read_bytes()[:4] == b"\x89PNG"


async def test_a_learn_report_counts_neither_practice_nor_evaluations(store):
    """Their tasks were chosen for their difficulty, or to measure."""

    def unit(tx):
        kinds = [(0, 0, 0.75)] * 4 + [(1, 0, 0.0)] * 30 + [(0, 1, 1.0)] * 30
        for seq, (practice, evaluation, raw) in enumerate(kinds, 1):
            key = f"t-{seq}"
            tx.execute(
                "INSERT INTO trajectories (trajectory_id, content_hash, body, agent_id, session_id, "
                "agent_type, domain, complexity, window_id, scenario_id, model, started_us, ended_us, "
                "turns, infra_error, door, stored_us, evaluation, practice) "
                "VALUES (?, ?, ?, 'a', 's', 'x', 'coding', 0.5, 'w', 'w', 'tiny', 0, 0, 1, 0, 'http', 0, ?, ?)",
                (key, key.encode(), b"{}", evaluation, practice),
            )
            tx.execute(
                "INSERT INTO scored (trajectory_seq, trajectory_id, agent_id, principal, model, window_id, "
                "scenario_id, domain, complexity, turns, infra_error, revision, total, raw_total) "
                "VALUES (?, ?, 'a', 'p', 'tiny', 'w', 'w', 'coding', 0.5, 1, 0, 1, ?, ?)",
                (seq, key, raw, raw),
            )

    await store.database.write(unit)
    assert (await gather(store.database)).base == {"tiny": ModelEarnings(4, 0.75, None)}


def cycle_of(algorithm="grpo", state="completed", model_id="v1", **changes):
    made = Cycle(
        1,
        "job-1",
        NOW,
        algorithm,
        state,
        60.0,
        {"tiny": 1.0},
        428,
        428,
        model_id,
        "tiny",
        "deployed" if model_id else None,
        PolicyChange(kl=1.4),
        None,
        "",
        (),
    )
    return replace(made, **changes)


@pytest.mark.parametrize(
    ("held_out", "played", "earned", "note"),
    [
        ((0.293, 0.817), False, ModelEarnings(400, 0.489, None), "0.328 above the 0.489 in use"),
        ((0.3, 0.817), True, ModelEarnings(400, 0.4, 0.489), "played by the trainer, 0.328 above"),
        ((0.3, 0.2), False, ModelEarnings(400, 0.6, None), "0.400 below the 0.600 in use"),
        ((0.3, 0.5), False, ModelEarnings(400, 0.45, None), None),
        ((0.3, 0.9), False, ModelEarnings(400, 0.5, 0.88), None),
        ((0.3, 0.9), False, ModelEarnings(10, 0.2, None), None),
        ((None, None), False, ModelEarnings(400, 0.2, None), None),
    ],
    ids=repr,
)
def test_an_estimate_far_from_what_was_earned_in_use_is_remarked(held_out, played, earned, note):
    moved = PolicyChange(kl=1.4, held_out=held_out, played=played)
    text = "\n".join(render(History(cycles=(cycle_of(movement=moved, earned=earned),))))
    assert ("  note  " in text) == (note is not None)
    assert note is None or note in text


@pytest.mark.parametrize(
    ("kl", "changed", "said"), [(1.4, 0.0, True), (1.4, 0.2, False), (0.001, 0.0, False)]
)
def test_a_moved_policy_whose_greedy_answers_stay_says_that_agents_sample(kl, changed, said):
    ((_, text),) = PolicyChange(kl=kl, changed=changed).lines()
    assert ("agents sample" in text) == said


def test_a_verdict_says_which_tasks_were_compared():
    uncounted = msgspec.structs.replace(OWN, name="safety", counted=False)
    assert _compared_on(report("v2", "v1", suites=(OWN, uncounted))) == "40 tasks of production"
    assert _compared_on(report("v2", "v1", suites=(uncounted,))) == ""
    cycle = cycle_of(
        verdict="pass", improvement=(0.01, -0.01, 0.03), compared_on="21 tasks of production"
    )
    text = "\n".join(render(History(cycles=(cycle,))))
    assert "pass, +0.010 [-0.010, +0.030] over 21 tasks of production" in text


def test_a_job_that_goes_on_is_not_one_that_made_nothing():
    running = "\n".join(render(History(cycles=(cycle_of(state="running", model_id=None),))))
    assert "cycle 1: grpo is running" in running
    assert "no model" not in running
    failed = "\n".join(render(History(cycles=(cycle_of(state="failed", model_id=None),))))
    assert "grpo is failed and made no model" in failed


def test_single_attempts_are_no_groups_and_a_verdict_says_what_decided():
    shipped = cycle_of(
        "reinforce",
        verdict="inconclusive",
        decided=("By 80 logged held-out episodes it earns 0.63 instead of 0.36.",),
    )
    tasks = "Of 9 tasks 1 are always solved, 3 sometimes and 5 never."
    text = "\n".join(render(History(cycles=(shipped,), tasks=tasks)))
    assert "learned on   428 attempts: 100% tiny" in text
    assert "validation   inconclusive" in text
    assert "decided by   By 80 logged held-out episodes" in text
    assert text.endswith(tasks)


def test_a_mean_of_what_was_selected_for_success_is_no_reward():
    about = {"holdout_reward": [1.0, 1.0], "holdout_measured_by": "logged"}
    assert policy_change("rft", about).held_out == (None, None)
    assert policy_change("rft", about | {"holdout_measured_by": "fresh"}).held_out == (1.0, 1.0)
    assert policy_change("grpo", about).held_out == (1.0, 1.0)


def test_what_moved_nothing_is_a_result_with_what_to_try_next():
    about = {
        "kl_from_parent": 0.0,
        "changed_answers": 0.0,
        "no_change": True,
        "advice": "Record more.",
    }
    text = "\n".join(render(History(cycles=(cycle_of(movement=policy_change("grpo", about)),))))
    assert "no change    Record more." in text
    assert "moved        0.00 nats a reply, 0% of greedy answers changed" in text


FIGURES = st.none() | st.booleans() | st.floats() | st.lists(st.floats(), max_size=3)


@given(st.dictionaries(st.sampled_from([name for name in STATUS if name != "stopped"]), FIGURES))
def test_no_figure_that_is_none_is_told(about):
    for _, told in policy_change("grpo", about).lines():
        assert "nan" not in told
        assert "inf" not in told


def test_a_plan_says_what_it_counts_and_what_it_leaves_out():
    plan = build_plan(
        snapshot(crowd(80)),
        FittedRecipe(Recipe(), {}),
        base_model="tiny",
        starts_from="tiny",
        parameters=1,
        full=True,
        earlier=[],
    )
    plan = msgspec.structs.replace(plan, left_out={"not_needed": 3, "stale": 2})
    text = "\n".join(plan_text(plan))
    assert "scored by    verified 10 groups" in text
    assert "2 stale (of policies too far back" in text
    assert "3 not needed (more than was asked for)" in text
    single = msgspec.structs.replace(plan, algorithm="reinforce", ready=False, verdict="Few.")
    told = "\n".join(plan_text(single))
    assert "reinforce would train tiny on 80 attempts;" in told
    assert "verified 10 attempts" in told
    assert told.endswith("Not ready to train: Few. `upswing train --force` trains anyway.")


async def test_what_decided_is_read_from_the_journal(store):
    judged = StrategyInputs(
        "v1", "tiny", "run", "pass", ("By 80 logged episodes.",), 0.2, StrategyPolicy()
    )
    inputs = msgspec.json.encode(judged)
    await Decisions(store.database).record(
        Decision("d-1", "deploy", "canary", "It ships.", inputs, b"{}", NOW)
    )
    assert await _decision_reasons(store.database) == {"v1": ("By 80 logged episodes.",)}
