"""Several processes train together, and make the model that one would have made."""

from datetime import UTC, datetime
from uuid import UUID

import msgspec
import pytest

from upswing.dataset.sample import build_sample
from upswing.dataset.snapshot import Snapshot
from upswing.train.core.recipe import Recipe
from upswing.train.core.report import TrainingDone, TrainingStarted
from upswing.train.core.spec import JobSpec
from upswing.train.jobs.child_process import launch_training
from upswing.worlds.recording import to_trajectories
from upswing.worlds.sampler import SamplingPolicy, play_episodes
from upswing.worlds.triage import Triage

pytestmark = [pytest.mark.live, pytest.mark.learn, pytest.mark.slow]
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
    reused=0.0,
    earliest=None,
    latest=None,
    notes=[],
    made=AT,
)


def samples(bases):
    from upswing.train.bases.catalog import resolve_base
    from upswing.train.bases.loading import load_base

    world = Triage()
    model, tokenizer = load_base(resolve_base("tiny", bases))
    played = play_episodes(
        world, world.training[:16], SamplingPolicy("tiny", model.eval(), tokenizer), group=6
    )
    trees = to_trajectories(played, namespace=UUID(int=1), window_id="2026-11-15T10:00", started=AT)
    return [
        build_sample(
            tree,
            reward=episode.outcome.score,
            raw_total=0.0,
            window_id="w",
            scenario_id=episode.task.task_id,
        )
        for tree, episode in zip(trees, played, strict=True)
    ]


async def trained(home, given, bases, processes):
    """The final weights of a job that so many processes share."""
    from safetensors.torch import load_file

    (home / "artifacts").mkdir(parents=True)
    lines = b"".join(msgspec.json.encode(sample) + b"\n" for sample in given)
    (home / "samples.jsonl").write_bytes(lines)
    (home / "artifacts" / "snapshot.json").write_bytes(msgspec.json.encode(SNAPSHOT))
    recipe = Recipe(learning_rate=3e-4, epochs=2, batch_size=48, micro_tokens=64, holdout=0.0)
    spec = JobSpec("together", recipe, "tiny", cache=str(bases), processes=processes, threads=1)
    (home / "job.json").write_bytes(msgspec.json.encode(spec))
    process = await launch_training(home, spec)
    heard = []
    while (report := await process.next_report()) is not None:
        heard.append(report)
    assert await process.wait() == 0, process.log_tail()
    assert sum(isinstance(report, TrainingStarted) for report in heard) == 1  # one speaks for all
    assert any(isinstance(report, TrainingDone) for report in heard)
    return load_file(home / "checkpoints" / "final" / "model.safetensors")


async def test_two_processes_make_the_model_that_one_makes(tmp_path, bases):
    given = samples(bases)
    alone = await trained(tmp_path / "one", given, bases, 1)
    together = await trained(tmp_path / "two", given, bases, 2)
    for name, weights in alone.items():
        assert (weights - together[name]).abs().max() < 1e-5, name
