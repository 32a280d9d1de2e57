"""A job in one process: it stops by itself, ships its best, and says how far it moved."""

from datetime import UTC, datetime
from uuid import UUID

import msgspec
import pytest

from upswing.dataset.sample import build_sample
from upswing.dataset.snapshot import Snapshot
from upswing.train.core.recipe import Lora, Recipe
from upswing.train.core.report import CheckpointSaved, StepReport, TrainingDone, TrainingStarted
from upswing.train.core.spec import JobSpec
from upswing.worlds.recording import to_trajectories
from upswing.worlds.triage import Triage

AT = datetime(2026, 11, 15, 10, tzinfo=UTC)
SNAPSHOT = Snapshot(
    source="local",
    algorithm="grpo",
    sample_size=1,
    seed=0,
    holdout=0.0,
    min_agents=2,
    filter={},
    balance={},
    entries=[],
    domains={},
    groups={},
    tasks=0,
    held_out_tasks=0,
    left_out={},
    policies={},
    off_policy=0.0,
    sources={},
    reused=0.0,
    earliest=None,
    latest=None,
    notes=[],
    made=AT,
)
RECIPE = Recipe(  # gentle: what is drawn differs from processor to processor, and no draw may end a job early
    learning_rate=1e-4, batch_size=32, epochs=4, scale_rewards="none", warmup=0.1, micro_tokens=8192
)


class Listener:
    """Stands in for the pipe to the parent."""

    def __init__(self):
        self.heard, self.activity, self.step = [], "", 0

    def send(self, report):
        self.heard.append(report)

    def of(self, kind):
        return [report for report in self.heard if isinstance(report, kind)]


@pytest.fixture(scope="module")
def samples(bases):
    """Sixteen tasks, eight attempts at each, by `tiny`; every fourth task is held out."""
    from upswing.train.bases.catalog import resolve_base
    from upswing.train.bases.loading import load_base
    from upswing.worlds.sampler import SamplingPolicy, play_episodes

    world = Triage()
    model, tokenizer = load_base(resolve_base("tiny", bases))
    tasks = world.training[:16]
    held = {task.task_id for task in tasks[::4]}
    played = play_episodes(world, tasks, SamplingPolicy("tiny", model.eval(), tokenizer), group=8)
    trees = to_trajectories(played, namespace=UUID(int=1), window_id="2026-11-15T10:00", started=AT)
    return [
        build_sample(
            tree,
            reward=episode.outcome.score,
            raw_total=0.0,
            window_id="w",
            scenario_id=episode.task.task_id,
            held_out=episode.task.task_id in held,
        )
        for tree, episode in zip(trees, played, strict=True)
    ]


def run(home, samples, bases, recipe=RECIPE, *, play=None, **spec):
    from upswing.train.child.session import TrainingSession

    (home / "artifacts").mkdir(parents=True, exist_ok=True)
    lines = b"".join(msgspec.json.encode(sample) + b"\n" for sample in samples)
    (home / "samples.jsonl").write_bytes(lines)
    (home / "artifacts" / "snapshot.json").write_bytes(msgspec.json.encode(SNAPSHOT))
    listener = Listener()
    job = JobSpec("job", recipe, "tiny", cache=str(bases), threads=1, **spec)
    TrainingSession(home, job, listener, play=play).run()
    return listener


def only_done(listener):
    (done,) = listener.of(TrainingDone)
    return done


def test_a_job_says_how_far_it_moved_and_what_that_brought(tmp_path, samples, bases):
    gentle = msgspec.structs.replace(RECIPE, learning_rate=2e-4)  # so few tasks are soon one answer
    listener = run(tmp_path, samples, bases, gentle)
    done = only_done(listener)
    assert done.kl > 1e-3
    assert done.train_before < done.train_after
    assert done.holdout_before is not None
    assert not done.no_change
    assert len(listener.of(CheckpointSaved)) >= 4
    (began,) = listener.of(TrainingStarted)
    assert began.policy_versions == {"tiny": 1.0}
    card = (tmp_path / "artifacts" / "card.md").read_text()
    assert "KL from the parent" in card
    assert "tiny 100.0%" in card


def test_a_job_beyond_its_kl_budget_stops_and_ships_the_last_within_it(tmp_path, samples, bases):
    wild = msgspec.structs.replace(
        RECIPE, learning_rate=7e-4, epochs=12, kl_budget=0.5, evaluations=36
    )
    listener = run(tmp_path, samples, bases, wild)
    done = only_done(listener)
    assert done.stopped == "kl_budget"
    assert done.step < done.last_step == listener.of(StepReport)[-1].step
    assert 0.05 < done.kl <= 0.5
    assert done.last_step < listener.of(TrainingStarted)[0].total_steps


def test_the_checkpoint_that_plays_best_ships_and_its_weights_are_those(tmp_path, samples, bases):
    from safetensors.torch import load_file

    scores = iter([0.2, 0.5, 0.9, 0.6, 0.4, 0.3, 0.2, 0.2, 0.2])
    kept = msgspec.structs.replace(RECIPE, kl_budget=100.0, max_checkpoints=20)
    listener = run(tmp_path, samples, bases, kept, play=lambda _model: (next(scores), 100))
    done = only_done(listener)
    best = listener.of(CheckpointSaved)[1]
    assert (done.stopped, done.step, done.measured_by) == ("no_gain", best.step, "fresh")
    assert (done.holdout_before, done.holdout_after) == (0.2, 0.9)
    final = load_file(tmp_path / "checkpoints" / "final" / "model.safetensors")
    wanted = load_file(tmp_path / "checkpoints" / f"step-{best.step:06d}" / "model.safetensors")
    assert all((final[name] == wanted[name]).all() for name in wanted)


def test_a_job_that_moves_nothing_says_so_and_what_to_try(tmp_path, samples, bases):
    done = only_done(
        run(tmp_path, samples, bases, msgspec.structs.replace(RECIPE, learning_rate=1e-9))
    )
    assert done.no_change
    assert done.changed_answers == 0
    assert "learning rate" in done.advice
    assert "Nothing changed" in (tmp_path / "artifacts" / "card.md").read_text()


def test_a_job_that_was_stopped_stays_stopped_after_a_crash(tmp_path, samples, bases):
    wild = msgspec.structs.replace(
        RECIPE, learning_rate=7e-4, epochs=12, kl_budget=0.5, evaluations=36
    )
    first = only_done(run(tmp_path, samples, bases, wild))
    (tmp_path / "done.json").unlink()
    second = run(tmp_path, samples, bases, wild)
    assert not second.of(StepReport)
    again = only_done(second)
    assert (again.step, again.stopped, again.kl) == (first.step, first.stopped, first.kl)


def test_a_child_goes_on_with_its_parents_adapter(tmp_path, samples, bases):
    from upswing.train.bases.loading import saved_lora

    lora = msgspec.structs.replace(RECIPE, full=False, lora=Lora(rank=4), learning_rate=3e-3)
    parent = only_done(run(tmp_path / "parent", samples, bases, lora))
    other = msgspec.structs.replace(
        lora, lora=Lora(rank=32, targets=("q_proj",)), learning_rate=1e-9
    )
    child = only_done(
        run(tmp_path / "child", samples, bases, other, start=parent.final, parent="m-1")
    )
    assert child.no_change
    before, after = (
        saved_lora(tmp_path / name / "checkpoints" / "final") for name in ("parent", "child")
    )
    assert (after.r, set(after.target_modules)) == (4, set(before.target_modules))
    assert child.train_before == pytest.approx(parent.train_after, abs=0.02)


def test_where_all_weights_train_the_base_stays_the_reference_of_later_jobs(
    tmp_path, samples, bases
):
    from safetensors.torch import load_file

    parent = only_done(run(tmp_path / "parent", samples, bases))
    held = msgspec.structs.replace(RECIPE, reference="base", kl_beta=0.02)
    run(tmp_path / "child", samples, bases, held, start=parent.final, parent="m-1")
    known = load_file(tmp_path / "child" / "logprobs.safetensors")
    said = [sum(sample.turns[0].logprobs) for sample in samples if not sample.held_out]
    assert float(known["ref.0"].sum()) == pytest.approx(said[0], abs=1e-3)
    assert float(known["start.0"].sum()) != pytest.approx(said[0], abs=1e-3)
