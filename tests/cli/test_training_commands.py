"""Training from the command line, on a loop that leaves the work to the test."""

import asyncio
import io
import json
import subprocess
import sys
from dataclasses import replace
from datetime import timedelta

import pytest
from tests.conftest import running_loop
from tests.support import cli, until

from upswing.cli import parser
from upswing.cli.training import training_request
from upswing.cli.watching import result_lines, status_figures, status_panel
from upswing.config import (
    Settings,
    Surroundings,
    TrainConfig,
    defaults,
    read_settings,
    read_surroundings,
)
from upswing.contracts import TrainingRequest, TrainingStatus, from_builtins
from upswing.contracts.examples import EXAMPLES
from upswing.errors import Misuse
from upswing.records import Decision
from upswing.redact import Redactor
from upswing.train.core.progress import JobProgress, apply_report, training_status
from upswing.train.core.report import StepReport, TrainingDone, TrainingStarted
from upswing.trigger.core.inputs import ManualRequest

REDACTOR = Redactor()
LEASE = timedelta(minutes=5)


def told(done):
    return json.loads(done.stdout)


@pytest.fixture
async def loop(data):
    async with running_loop(
        data, redactor=REDACTOR, surroundings=Surroundings(train_here=False)
    ) as made:
        yield made


async def run(loop, *arguments, **options):
    """A command in a process of its own, while the loop in this one goes on."""
    return await asyncio.to_thread(cli, *arguments, data=loop.folder, **options)


async def queue(loop, job_id="job-1"):
    request = EXAMPLES[TrainingRequest] | {"training_job_id": job_id}
    await loop.submission.submit_message(json.dumps(request).encode())


BEGAN = TrainingStarted(4, 2, 0, 64, 8, 1, 9000, 100, 0, {}, {"torch": "2.13"})
DONE = TrainingDone(
    4, "/m/final", "/m/c.png", "/m/tb", "/m/card.md", 0.42, 0.77, 10**9, 12.0, 64, 0.8
)


def after(step):
    stepped = StepReport(step, 1, 1 / step, 0.5, 0.2, 1.25, 0.01, 0.1, 1.0, 1e-5, 1234 * step, 3.0)
    return apply_report(apply_report(JobProgress(), BEGAN), stepped)


async def work(loop, state="completed"):
    """What a worker does, quickly: a double."""
    job = await loop.jobs.claim("w", loop._clock(), LEASE)
    for step in range(1, 5):
        status = training_status(
            job.job_id, "running", after(step), now=loop._clock(), seconds=step
        )
        await loop.jobs.save_status(job.job_id, status, announce=False)
    error = ("CONVERGENCE", "The loss is not a number.", "") if state == "failed" else None
    end = training_status(
        job.job_id,
        state,
        apply_report(after(4), DONE) if state == "completed" else after(4),
        now=loop._clock(),
        seconds=12,
        error=error,
        notes={"model_id": "agent-zero-rl-v1"},
    )
    await loop.jobs.finish(job.job_id, state, end, b"[]", loop._clock())


# ── what the options mean ────────────────────────────────────────────────────────────────────────


def asked(*options):
    return training_request(parser().parse_args(["train", *options]))


def test_the_guides_options_become_a_request():
    tree = asked(
        "--algorithm",
        "grpo",
        "--min-agents",
        "5",
        "--iterations",
        "10",
        "--learning-rate",
        "1e-5",
        "--windows-per-iteration",
        "10",
        "--samples",
        "500",
        "--base-model",
        "tiny",
        "--epochs",
        "2",
        "--batch-size",
        "16",
        "--seed",
        "7",
        "--recipe",
        "clip_high=0.3",
        "--recipe",
        "credit=turn",
        "--wait",
    )
    assert tree["training_config"] == {
        "algorithm": "grpo",
        "base_model": "tiny",
        "dataset": {"source": "local", "sample_size": 500},
        "hyperparameters": {"learning_rate": 1e-5, "batch_size": 16, "epochs": 2},
    }
    assert tree["metadata"]["recipe"] == {
        "min_agents": 5,
        "iterations": 10,
        "windows_per_iteration": 10,
        "seed": 7,
        "clip_high": 0.3,
        "credit": "turn",
    }


def test_force_takes_groups_of_any_size_unless_told_otherwise():
    assert asked("--force")["metadata"]["recipe"] == {"min_agents": 1}
    assert asked("--force", "--min-agents", "3")["metadata"]["recipe"] == {"min_agents": 3}


def test_a_knob_needs_a_name_and_a_value():
    with pytest.raises(Misuse, match="NAME=VALUE"):
        asked("--recipe", "clip_high")


@pytest.mark.live
def test_help_loads_nothing_heavy():
    code = (
        "import sys; from upswing.cli import parser; import upswing.cli.training, upswing.cli.watching; "
        "parser().format_help(); print([m for m in ('torch', 'rich', 'msgspec', 'nats') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


# ── what is shown ────────────────────────────────────────────────────────────────────────────────


def shown(status):
    from rich.console import Console

    screen = io.StringIO()
    Console(file=screen, width=120, force_terminal=True, color_system=None).print(
        status_panel(status)
    )
    return screen.getvalue()


def running(step=2, **changes):
    import msgspec

    now = from_builtins(TrainingStatus, EXAMPLES[TrainingStatus]).timestamp
    status = training_status("job-1", "running", after(step), now=now, seconds=1)
    return msgspec.to_builtins(status) | changes


def test_a_running_job_shows_its_numbers():
    assert status_figures(running()) == {
        "running": "(starting)",
        "step": "2/4",
        "epoch": "1/2",
        "loss": "0.5000",
        "reward": "0.5000",
        "KL": "0.0100",
        "entropy": "1.2500",
        "tokens": "2,468",
        "ETA": "0:00:06",
    }
    screen = shown(running())
    for part in ("job-1", "running", "50.0 %", "loss 0.5000", "tokens 2,468", "ETA 0:00:06", "━"):
        assert part in screen


@pytest.mark.parametrize("state", ["queued", "running", "completed", "failed", "cancelled"])
def test_a_job_without_progress_can_be_shown(state):
    bare = {"training_job_id": "job-1", "timestamp": "2026-01-01T00:00:00Z", "status": state}
    assert state in shown(bare)
    assert result_lines(bare) == [f"job-1 is {state}."]


def test_a_job_ends_with_how_far_it_moved_and_what_to_try_next():
    about = {
        "kl_from_parent": 0.0,
        "changed_answers": 0.0,
        "train_reward": [0.3, 0.3],
        "no_change": True,
        "advice": "Record more.\x1b[31m",
        "model_id": "v1",
    }
    told = result_lines(running(metadata=about, status="completed"))
    assert "no change Record more. [31m" in told
    assert "moved 0.00 nats a reply, 0% of greedy answers changed" in told
    assert "trained on 0.300 → 0.300, estimated from what was logged" in told


def test_what_a_job_says_cannot_steer_the_terminal():
    nasty = running(
        metadata={"doing": "a\x1b[31mb\x07[bold]"}, error={"code": "DATA", "message": "x\x1b]0;y"}
    )
    assert "\x1b[31m" not in shown(nasty)
    assert "[bold]" in shown(nasty)
    assert not any("\x1b" in line for line in result_lines(nasty | {"status": "failed"}))


# ── on a loop ────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.live
async def test_training_without_enough_says_what_is_missing_and_how_to_insist(loop):
    done = await run(loop, "train", check=False)
    assert done.returncode == 1
    assert b"Not ready to train: 0 of 100 trajectories" in done.stderr
    assert b"--force" in done.stderr
    assert await loop.jobs.list() == []


@pytest.mark.live
async def test_a_job_is_started_listed_shown_and_cancelled(loop):
    started = told(await run(loop, "train", "--force", "--algorithm", "grpo", "--json"))
    job_id = started["training_job_id"]
    assert (started["status"], "TRAIN_RL_LOCAL" in started["detail"]) == ("queued", True)
    (job,) = told(await run(loop, "jobs", "--json"))
    assert (job["training_job_id"], job["algorithm"], job["priority"]) == (job_id, "grpo", "high")
    assert job_id in (await run(loop, "jobs", "list", "--since", "1h")).stdout.decode()
    assert (await run(loop, "jobs", "--status", "failed")).stdout == b"No jobs.\n"
    detail = told(await run(loop, "jobs", "show", job_id, "--json"))
    assert (detail["recipe"]["min_agents"], detail["request"]["requester"]) == (1, "upswing train")
    assert "hyperparameters" in (await run(loop, "jobs", "show", job_id)).stdout.decode()
    assert b"is cancelled." in (await run(loop, "jobs", "cancel", job_id)).stdout
    again = await run(loop, "jobs", "cancel", job_id, check=False)
    assert (again.returncode, b"cancelled already" in again.stderr) == (1, True)


@pytest.mark.live
@pytest.mark.parametrize(("state", "code"), [("completed", 0), ("failed", 1), ("cancelled", 1)])
async def test_watching_ends_with_the_job(loop, state, code):
    await queue(loop)
    watching = asyncio.create_task(run(loop, "jobs", "watch", "job-1", check=False))
    await work(loop, state)
    done = await watching
    assert done.returncode == code
    lines = done.stdout.decode().splitlines()
    assert f"job-1 is {state}." in lines
    if state == "completed":
        assert "model agent-zero-rl-v1" in lines
        assert "held-out reward 0.770 (+0.350 over the start)" in lines
    if state == "failed":
        assert "CONVERGENCE The loss is not a number." in lines


@pytest.mark.live
async def test_the_same_works_over_the_network(loop, tmp_path):
    """AGENTGYM_RL_URL names the loop; the data directory of this machine holds nothing."""
    env = {"AGENTGYM_RL_URL": loop.running.http_url, "AGENTGYM_RL_API_KEY": loop.running.key}

    async def there(*arguments, **options):
        return await asyncio.to_thread(cli, *arguments, data=tmp_path / "no", env=env, **options)

    waiting = asyncio.create_task(there("train", "--force", "--wait", "--json"))
    await until(loop.jobs.active)
    await work(loop)
    lines = [json.loads(line) for line in (await waiting).stdout.splitlines()]
    assert lines[0]["status"] == "queued"
    assert lines[-1]["status"] == "completed"
    assert lines[-1]["artifacts"]["final_checkpoint"] == "/m/final"
    (job,) = told(await there("jobs", "--json", "--status", "completed", "--since", "1d"))
    assert told(await there("jobs", "show", job["training_job_id"]))["status"] == "completed"
    assert told(await there("models", "--json", "--deployed-since", "7d")) == []


@pytest.mark.live
async def test_models_are_listed(loop):
    assert (await run(loop, "models")).stdout == b"No models.\n"
    await loop.models.register(
        job_id="job-1",
        base_model="tiny",
        parent=None,
        snapshot="s",
        path="p",
        card="c",
        samples=64,
        final_reward=0.77,
        now=loop._clock(),
    )
    assert b"agent-zero-rl-v1" in (await run(loop, "models")).stdout
    assert told(await run(loop, "models", "--json"))[0]["samples"] == 64


@pytest.mark.live
async def test_a_decision_is_explained_and_tried_again(loop):
    asked_for = await loop.trigger.request_training(ManualRequest("ann"))
    listed = (await run(loop, "decisions", "--stage", "trigger", "--since", "1h")).stdout.decode()
    assert asked_for.decision_id in listed
    text = (await run(loop, "explain", asked_for.decision_id)).stdout.decode()
    assert "Not ready to train: 0 of 100 trajectories" in text
    assert "Today it would come out the same." in text
    known = await loop.decisions.get(asked_for.decision_id)
    changed = replace(known, decision_id="old", outcome=b'{"kind":"train"}', sentence="It trained.")
    await loop.decisions.record(changed)
    today = told(await run(loop, "explain", "old", "--json"))["today"]
    assert today["same"] is False
    assert "otherwise: Not ready to train" in today["sentence"]


@pytest.mark.live
async def test_a_recovery_is_explained_too_and_a_strange_stage_is_just_shown(loop):
    import msgspec

    from upswing.train.core.recipe import Recipe
    from upswing.train.core.recovery import Failure, decide_recovery

    now, wait = loop._clock(), timedelta(minutes=10)
    failures = [Failure("OOM", "Killed.", now)]
    word = decide_recovery(Recipe(), failures, now + LEASE, wait)
    inputs = msgspec.json.encode({"recipe": Recipe(), "failures": failures, "wait": wait})
    made = Decision(
        "r-1", "train", "recovery", word.sentence, inputs, msgspec.json.encode(word), now
    )
    for decision in (made, replace(made, decision_id="x-1", stage="elsewhere")):
        await loop.decisions.record(decision)
    assert told(await run(loop, "explain", "r-1", "--json"))["today"]["same"] is True
    assert told(await run(loop, "explain", "x-1", "--json"))["today"]["same"] is None


@pytest.mark.live
@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["jobs", "watch"], b"Say which"),
        (["jobs", "show", "nobody"], b"There is no job nobody"),
        (["jobs", "watch", "nobody"], b"There is no job nobody"),
        (["jobs", "cancel", "nobody"], b"There is no job"),
        (["explain", "nothing"], b"There is no decision nothing"),
        (["train", "--force", "--base-model", "sk"], b"is not on this machine"),
        (["train", "--force", "--recipe", "epochs=0"], b"--epochs: expected a whole number"),
        (["train", "--force", "--recipe", "surprise=1"], b"surprise"),
    ],
)
async def test_misuse_gets_one_sentence(data, arguments, sentence):
    async with running_loop(data, redactor=REDACTOR) as here:
        done = await run(here, *arguments, check=False)
    assert done.returncode == 1
    assert sentence in done.stderr
    assert b"Traceback" not in done.stderr


@pytest.mark.live
async def test_watching_a_job_that_nobody_will_run_says_so(data):
    away = Surroundings(train_here=False)
    async with running_loop(data, redactor=REDACTOR, surroundings=away) as stopped:
        await queue(stopped)
    done = await run(stopped, "jobs", "watch", "job-1", check=False)
    assert done.returncode == 1
    assert b"No loop runs in" in done.stderr


# ── the environment ──────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("RL_ALGORITHM", "magic"),
        ("RL_TRAINING_THRESHOLD", "0"),
        ("RL_TRAINING_THRESHOLD", "many"),
        ("RL_TRAINING_THRESHOLD", "-5"),
        ("TRAIN_RL_LOCAL", "maybe"),
    ],
)
def test_a_variable_that_makes_no_sense_is_named(name, value):
    with pytest.raises(Misuse, match=f"{name} is '{value}'"):
        read_surroundings({name: value})


def test_the_seeds_variables_are_read():
    found = read_surroundings(
        {
            "RL_ALGORITHM": "GRPO",
            "RL_BASE_MODEL": "qwen2.5-32b-instruct",
            "RL_TRAINING_THRESHOLD": "5000",
            "RL_SCHEDULE_CRON": "0 3 * * *",
            "TRAIN_RL_LOCAL": "false",
            "MODEL_STORAGE_PATH": "s3://models",
            "WANDB_API_KEY": "x",
            "WANDB_ENTITY": "x",
            "WANDB_PROJECT": "x",
            "BASE_MODEL": "other",
        }
    )
    assert (found.algorithm, found.base_model, found.threshold) == (
        "grpo",
        "qwen2.5-32b-instruct",
        5000,
    )
    assert (found.schedule, found.train_here) == ("0 3 * * *", False)
    assert found.model_storage_path == "s3://models"
    assert read_surroundings({"BASE_MODEL": "other", "RL_BASE_MODEL": ""}).base_model == "other"
    assert read_surroundings({}).train_here


def test_a_named_base_wins_over_the_files_and_the_files_over_ours():
    settings = Settings(train=TrainConfig(base_model="smollm2"))
    assert defaults(settings, Surroundings()).base_model == "smollm2"
    assert defaults(settings, Surroundings(base_model="x")).base_model == "x"
    assert defaults(Settings(), Surroundings(database_url="postgresql://x")).base_model is None


@pytest.mark.parametrize(
    ("config", "sentence"),
    [
        ("[train]\nworkers = -1\n", "workers"),
        ("[train]\nalgorithm = 'magic'\n", "algorithm"),
        ("[trigger]\nthreshold = 0\n", "threshold"),
        ("[train.recipe]\nepochs = 0\n", r"\[train.recipe\].*epochs"),
        ("[train.recipe]\nsurprise = 1\n", "surprise"),
        ("[trigger]\nschedule = '61 * * * *'\n", "minute 61"),
    ],
)
def test_a_config_that_makes_no_sense_is_refused_at_start(data, config, sentence):
    from upswing.app.loop import ListenAddress, Loop

    data.mkdir()
    (data / "upswing.toml").write_text(config)
    with pytest.raises(Misuse, match=sentence):
        Loop(
            data,
            read_settings(data, {}),
            Surroundings(),
            ListenAddress(port=0, gateway_port=None),
            redactor=REDACTOR,
        )
