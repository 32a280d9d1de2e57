"""How many samples, and how many seconds, to the same held-out score as trl's GRPOTrainer?

    UPSWING_GRPO_SEEDS=0 python -m bench grpo

The same world (`triage`), base (`tiny`), sampling (temperature 1, eight tokens), groups, steps, passes and
learning rate. Ours are fresh rollouts (`train.child.rollouts`). After every round of 384 samples, 300 tasks of
the third split are measured with four samples each; that is taken out of the seconds of both.
"""

import json
import math
import os
import shutil
import sys
import tempfile
import time
from importlib.metadata import version
from pathlib import Path
from statistics import median

from bench.harness import Row, run_peer

SEEDS = range(5)
TARGET, MOST = 0.75, 8192
KNOBS = {"tasks": 48, "attempts": 8, "steps": 12, "passes": 12, "learning_rate": 3e-4}


def rows():
    told = os.environ.get("UPSWING_GRPO_SEEDS")
    seeds = tuple(int(seed) for seed in told.split(",")) if told else tuple(SEEDS)
    bases = Path(tempfile.mkdtemp(prefix="upswing-grpo-"))
    try:
        runs = [(ours(seed, bases), theirs(seed, bases)) for seed in seeds]
    finally:
        shutil.rmtree(bases, ignore_errors=True)
    peer = "; ".join(f"{_said(mine)} against {_said(other)}" for mine, other in runs)
    names = {"trl": version("trl")}
    return [
        Row(
            name=f"grpo, triage: samples to {TARGET} held out, median of {len(seeds)} seeds",
            value=_ratio(runs, 0),
            target=1.0 + 1e-9,
            better="lower",
            peer=peer,
            versions=names,
        ),
        Row(
            name=f"grpo, triage: seconds to {TARGET} held out, median of {len(seeds)} seeds",
            value=_ratio(runs, 1),
            target=0.5,
            better="lower",
            peer="trl's GRPOTrainer",
            versions=names,
        ),
    ]


def ours(seed, bases):
    """The last (samples, seconds, score), and whether the score is high enough."""
    from upswing.train.bases.catalog import resolve_base
    from upswing.train.bases.loading import load_base, set_threads
    from upswing.train.child.rollouts import FreshRollouts
    from upswing.train.core.recipe import Recipe
    from upswing.train.core.rollout_plan import RolloutSettings
    from upswing.worlds.measure import mean_interval, measure_policy
    from upswing.worlds.sampler import SamplingPolicy
    from upswing.worlds.triage import Triage

    world = Triage(seed)
    model, tokenizer = load_base(resolve_base("tiny", bases))
    set_threads(model, None)
    tasks, attempts = KNOBS["tasks"], KNOBS["attempts"]
    plan = RolloutSettings(
        "triage",
        seed,
        MOST // (tasks * attempts),
        tasks,
        attempts,
        KNOBS["passes"],
        minutes=60,
        episodes=MOST,
    )
    recipe = Recipe(
        seed=seed,
        learning_rate=KNOBS["learning_rate"],
        batch_size=tasks * attempts // KNOBS["steps"],
        micro_tokens=8192,
    )
    trail, took, clock = [], [0.0], [time.monotonic()]

    def note(played):
        took[0] += time.monotonic() - clock[0]
        found = measure_policy(world, SamplingPolicy("ours", model, tokenizer), seed=seed)
        score = round(mean_interval(found).mean, 4)
        trail.append((played.round * tasks * attempts, round(took[0], 2), score))
        print(trail[-1], file=sys.stderr, flush=True)
        if score >= TARGET:
            raise _Reached
        clock[0] = time.monotonic()

    rounds = FreshRollouts(
        model, tokenizer, recipe, plan, world, clock=time.monotonic, on_round=note
    )
    try:
        for _ in rounds.run():
            pass
    except _Reached:
        return *trail[-1], True
    return *trail[-1], False


class _Reached(Exception):
    """The score is high enough."""


def theirs(seed, bases):
    from upswing.train.bases.catalog import resolve_base

    folder = resolve_base("tiny", bases).folder
    told = run_peer(
        Path(sys.executable), "trl_grpo.py", folder, seed, TARGET, MOST, json.dumps(KNOBS)
    )
    return *told["trail"][-1], told["reached"]


def _ratio(runs, place):
    """A seed that we do not reach has no number; one that only they do not reach counts as they stopped."""
    if not all(mine[3] for mine, _ in runs):
        return math.nan
    return median(mine[place] / other[place] for mine, other in runs)


def _said(run):
    samples, seconds, score, reached = run
    return f"{samples} samples, {seconds:.0f} s, {score:.2f}{'' if reached else ' (not reached)'}"
