"""A training job alone: samples in a folder, a session, its reports; no loop or process around it."""

from datetime import UTC, datetime
from pathlib import Path
from uuid import NAMESPACE_URL

import msgspec

from upswing.dataset.sample import build_sample
from upswing.dataset.snapshot import Snapshot
from upswing.train.bases.catalog import resolve_base
from upswing.train.bases.loading import load_base, make_trainable
from upswing.train.child.__main__ import classify_error
from upswing.train.child.data import UnusableData
from upswing.train.child.session import TrainingSession
from upswing.train.core.recipe import _DEFAULTS, Recipe
from upswing.train.core.report import StepReport, TrainingDone, TrainingFailed, TrainingStarted
from upswing.train.core.spec import JobSpec
from upswing.train.learn.learner import Diverged
from upswing.worlds.recording import to_trajectories
from upswing.worlds.sampler import SamplingPolicy, play_episodes

WINDOW = datetime(2026, 11, 15, 10, tzinfo=UTC)


def policy(bases, start=None, name="tiny", **options):
    model, tokenizer = load_base(resolve_base("tiny", bases))
    if start is not None:
        model = make_trainable(model, Recipe(), Path(start), full=True)
    return SamplingPolicy(name, model.eval(), tokenizer, **options)


def samples_of(world, tasks, player, *, group=8, seed=0, window="w1", single=False):
    """What the player did, as training gets it: one group a task, or all in windows of their own."""
    played = play_episodes(world, tasks, player, group=group, seed=seed)
    trees = to_trajectories(played, namespace=NAMESPACE_URL, window_id=window, started=WINDOW)
    return [
        build_sample(
            tree,
            reward=episode.outcome.score,
            raw_total=episode.outcome.score,
            window_id=f"{window}-{number}" if single else window,
            scenario_id=episode.task.task_id,
        )
        for number, (tree, episode) in enumerate(zip(trees, played, strict=True))
    ]


def run(folder, bases, samples, algorithm="grpo", *, start=None, parent="", **knobs):
    """The reports of a job."""
    (folder / "artifacts").mkdir(parents=True)
    usual = {"learning_rate": 3e-4, "epochs": 4, "micro_tokens": 8192, "save_interval": 1000}
    recipe = Recipe(**{"algorithm": algorithm, **usual, **_DEFAULTS[algorithm], **knobs})
    spec = JobSpec(
        "job",
        recipe,
        "tiny",
        start=str(start) if start else None,
        parent=parent,
        snapshot="s",
        cache=str(bases),
    )
    encode = msgspec.json.encode
    (folder / "job.json").write_bytes(encode(spec))
    (folder / "samples.jsonl").write_bytes(b"".join(encode(each) + b"\n" for each in samples))
    empty = Snapshot(
        source="local",
        algorithm=algorithm,
        sample_size=1,
        seed=0,
        holdout=0.1,
        min_agents=1,
        filter={},
        balance={},
        entries=[],
        domains={},
        groups={},
        policies={},
        tasks=1,
        held_out_tasks=0,
        left_out={},
        reused=0.0,
        off_policy=0.0,
        sources={},
        earliest=None,
        latest=None,
        notes=[],
        made=WINDOW,
    )
    (folder / "artifacts" / "snapshot.json").write_bytes(encode(empty))
    heard = RecordedChannel()
    try:
        TrainingSession(folder, spec, heard).run()
    except (UnusableData, Diverged) as error:
        heard.send(TrainingFailed(classify_error(error)[0], str(error), "", heard.step))
    kinds = (TrainingStarted, StepReport, TrainingDone, TrainingFailed)
    return {kind: [each for each in heard.reports if isinstance(each, kind)] for kind in kinds}


class RecordedChannel:
    """Stands for the pipe to the parent: keeps what is told."""

    def __init__(self):
        self.reports, self.activity, self.step = [], "", 0

    def send(self, report):
        self.reports.append(report)
