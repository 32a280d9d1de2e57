"""A training child alone: samples in a folder, one process, its reports; no loop around it."""

import os
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path
from uuid import NAMESPACE_URL

import msgspec

from upswing.adapters.bases import resolve
from upswing.adapters.models import load, trainable
from upswing.dataset.sample import sample_of
from upswing.dataset.snapshot import Snapshot
from upswing.train.recipe import _DEFAULTS, Recipe
from upswing.train.report import DECODER, Began, Done, Failed, Stepped
from upswing.train.spec import JobSpec
from upswing.worlds.recording import trajectories_of
from upswing.worlds.sampler import Policy, play

WINDOW = datetime(2026, 11, 15, 10, tzinfo=UTC)


def policy(bases, start=None, name="tiny", **options):
    model, tokenizer = load(resolve("tiny", bases))
    if start is not None:
        model = trainable(model, Recipe(), Path(start), full=True)
    return Policy(name, model.eval(), tokenizer, **options)


def samples_of(world, tasks, player, *, group=8, seed=0, window="w1", single=False):
    """What the player did, as training gets it: one group a task, or all in windows of their own."""
    played = play(world, tasks, player, group=group, seed=seed)
    trees = trajectories_of(played, namespace=NAMESPACE_URL, window_id=window, started=WINDOW)
    return [
        sample_of(
            tree,
            reward=episode.outcome.score,
            raw_total=episode.outcome.score,
            window_id=f"{window}-{number}" if single else window,
            scenario_id=episode.task.task_id,
        )
        for number, (tree, episode) in enumerate(zip(trees, played, strict=True))
    ]


def run(folder, bases, samples, algorithm="grpo", *, start=None, parent="", **knobs):
    """The reports of a job, without heartbeats."""
    (folder / "artifacts").mkdir(parents=True)
    usual = {"learning_rate": 3e-4, "epochs": 4, "micro_tokens": 8192, "save_interval": 1000}
    recipe = Recipe(**{"algorithm": algorithm, **usual, **_DEFAULTS[algorithm], **knobs})
    spec = JobSpec(
        "job", recipe, "tiny", start=str(start) if start else None, parent=parent,
        snapshot="s", cache=str(bases),
    )  # fmt: skip
    encode = msgspec.json.encode
    (folder / "job.json").write_bytes(encode(spec))
    (folder / "samples.jsonl").write_bytes(b"".join(encode(each) + b"\n" for each in samples))
    empty = Snapshot(
        source="local", algorithm=algorithm, sample_size=1, seed=0, holdout=0.1, min_agents=1,
        filter={}, balance={}, entries=[], domains={}, groups={}, tasks=1, held_out_tasks=0,
        left_out={}, reused=0.0, earliest=None, latest=None, notes=[], made=WINDOW,
    )  # fmt: skip
    (folder / "artifacts" / "snapshot.json").write_bytes(encode(empty))
    done = subprocess.run(
        [sys.executable, "-m", "upswing.training", str(folder)],
        capture_output=True, check=False, env=os.environ | {"OMP_NUM_THREADS": "1"},
    )  # fmt: skip
    reports = [DECODER.decode(line) for line in done.stdout.splitlines()]
    kinds = (Began, Stepped, Done, Failed)
    found = {kind: [each for each in reports if isinstance(each, kind)] for kind in kinds}
    assert found[Done] or found[Failed], done.stderr.decode()[-2000:]
    return found
