"""How much is learned, from what agents did to a better model? Through a real loop, per algorithm.

Rounds of recording (96 tasks, 8 attempts each) and training on the world `triage`, five seeds each.
Greedy and sampled success are those on held-out tasks. `python -m bench learning --world …` measures the
unattended loop instead (see `unattended`).
"""

import asyncio
import shutil
import statistics
import sys
import tempfile
from pathlib import Path

from bench.harness import Row
from tests.learn.recipes import ROUNDS
from tests.learn.school import learn

SEEDS = range(5)
TARGETS = {"grpo": 0.85, "ppo": 0.25, "rloo": 0.25, "reinforce": 0.25, "dpo": 0.25}
"""GRPO: greedy success at the end. The others: what they gain at least."""


async def learned(folder, bases, algorithm, seed):
    """(greedy before, greedy after, sampled after, seconds of training)"""

    def told(scores):
        trail = " ".join(f"{score:.2f}" for score in scores)
        print(f"  {algorithm} seed {seed}: {trail}", file=sys.stderr, flush=True)

    scores, school = await learn(folder, bases, algorithm, seed=seed, told=told)
    return scores[0], scores[-1], school.success(greedy=False), school.seconds


def rows():
    from upswing.train.bases.catalog import resolve_base

    home = Path(tempfile.mkdtemp(prefix="upswing-learning-"))
    try:
        resolve_base("tiny", home / "bases")
        return [_row(home, algorithm) for algorithm in TARGETS]
    finally:
        shutil.rmtree(home, ignore_errors=True)


def _row(home, algorithm):
    found = [
        asyncio.run(learned(home / f"{algorithm}-{seed}", home / "bases", algorithm, seed))
        for seed in SEEDS
    ]
    before, after, sampled, seconds = (list(each) for each in zip(*found, strict=True))
    worst = (
        min(after)
        if algorithm == "grpo"
        else min(a - b for a, b in zip(after, before, strict=True))
    )
    what = "greedy success" if algorithm == "grpo" else "gain in greedy success"
    return Row(
        name=f"learning, {algorithm}: {what}, worst of {len(SEEDS)} seeds",
        value=worst,
        target=TARGETS[algorithm],
        unit="",
        peer=(
            f"greedy {statistics.mean(before):.2f} → {statistics.mean(after):.2f}, "
            f"sampled {statistics.mean(sampled):.2f}, {statistics.mean(seconds):.0f} s, {ROUNDS} rounds"
        ),
    )
