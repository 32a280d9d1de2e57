"""A training job alone: samples in a folder, a session, its reports; no loop or process around it."""

from datetime import UTC, datetime
from pathlib import Path
from uuid import NAMESPACE_URL

import msgspec

from upswing.adapters.bases import resolve
from upswing.adapters.models import load, trainable
from upswing.dataset.sample import sample_of
from upswing.dataset.snapshot import Snapshot
from upswing.train.learner import Diverged
from upswing.train.recipe import _DEFAULTS, Recipe
from upswing.train.report import Began, Done, Failed, Stepped
from upswing.train.spec import JobSpec
from upswing.training.__main__ import kind_of
from upswing.training.data import Unlearnable
from upswing.training.session import Session
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
    """The reports of a job."""
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
        filter={}, balance={}, entries=[], domains={}, groups={}, policies={}, tasks=1, held_out_tasks=0,
        left_out={}, reused=0.0, off_policy=0.0, sources={}, earliest=None, latest=None, notes=[], made=WINDOW,
    )  # fmt: skip
    (folder / "artifacts" / "snapshot.json").write_bytes(encode(empty))
    heard = Heard()
    try:
        Session(folder, spec, heard).run()
    except (Unlearnable, Diverged) as error:
        heard.tell(Failed(kind_of(error)[0], str(error), "", heard.step))
    kinds = (Began, Stepped, Done, Failed)
    return {kind: [each for each in heard.reports if isinstance(each, kind)] for kind in kinds}


class Heard:
    """Stands for the pipe to the parent: keeps what is told."""

    def __init__(self):
        self.reports, self.doing, self.step = [], "", 0

    def tell(self, report):
        self.reports.append(report)
