"""How far apart are the models that the default recipe makes, over slices of data and seeds of training?

    python -m bench recipe-spread --world desk --slices 3 --seeds 3

Each slice is recorded by the base at other tasks of the world and with other chances, in a loop of its own;
on each, one job for every seed trains from the base, with no knob set but the seed. Every model is measured
on the third split, which neither training nor validation sees. With more `--rounds`, each model's own
episodes are recorded and trained on again. A run prints one line of JSON; `spread` is the best score
less the worst.
"""

import argparse
import asyncio
import contextlib
import json
import statistics
import sys
import tempfile
import time
from pathlib import Path

from tests.conftest import running_loop
from tests.learn.school import School, batch
from tests.support import Client

TARGET = 0.15
GROUP = 8


def main(words):
    parser = argparse.ArgumentParser(prog="python -m bench recipe-spread")
    parser.add_argument("--world", default="desk", choices=("desk", "market", "triage"))
    parser.add_argument("--seed", type=int, default=0, help="makes the world's tasks")
    parser.add_argument("--slices", type=int, default=3)
    parser.add_argument("--seeds", type=int, default=3, help="of training, on each slice")
    parser.add_argument("--rounds", type=int, default=1, help="of recording and training, each")
    parser.add_argument("--episodes", type=int, default=768, help="of one round")
    parser.add_argument("--tasks", type=int, default=300, help="of the third split")
    parser.add_argument("--samples", type=int, default=4, help="of each task")
    parser.add_argument("--bases", type=Path, help="bases that were made before")
    options = parser.parse_args(words)
    with tempfile.TemporaryDirectory(prefix="upswing-spread-", ignore_cleanup_errors=True) as name:
        print(json.dumps(asyncio.run(run(Path(name), options))), flush=True)
    return 0


async def run(home, options):
    bases = options.bases or home / "bases"
    began = time.monotonic()
    cells = [
        cell
        for number in range(options.slices)
        for cell in await slice_of(home / f"slice-{number}", bases, number, options)
    ]
    scores = [cell["scores"][-1] for cell in cells]
    return {
        "world": options.world,
        "seed": options.seed,
        "rounds": options.rounds,
        "episodes": options.episodes,
        "cells": cells,
        "median": round(statistics.median(scores), 4),
        "worst": min(scores),
        "best": max(scores),
        "spread": round(max(scores) - min(scores), 4),
        "target": TARGET,
        "seconds": round(time.monotonic() - began, 1),
    }


async def slice_of(data, bases, number, options):
    """The scores of every seed on one slice, after each round."""
    cells = []
    async with classroom(data, bases, options.world, options.seed, number) as school:
        await record(school, number, options.episodes)
        before = score(school, options)
        for seed in range(options.seeds):
            school.model_id, school.rounds = None, 1  # what the base did is the first window
            school.seed = 1000 + 100 * number + seed
            scores, seconds = [before], []
            for round_ in range(options.rounds):
                if round_:
                    await record(school, number + round_ * options.slices, options.episodes)
                status = await school.train("grpo", seed=seed, name=f"{number}-{seed}-{round_}")
                if status["status"] != "completed":
                    raise RuntimeError(f"{status['training_job_id']}: {status.get('error')}")
                seconds.append(round(status["resource_usage"]["total_training_time_seconds"], 1))
                scores.append(score(school, options))
            cells.append({"slice": number, "seed": seed, "scores": scores, "seconds": seconds})
            print(f"  slice {number}, seed {seed}: {scores}", file=sys.stderr, flush=True)
    return cells


@contextlib.asynccontextmanager
async def classroom(data, bases, world, seed, number=0):
    """A loop that trains only when it is asked to, and who records and asks."""
    from upswing.config import Settings, TriggerConfig
    from upswing.train.bases.catalog import resolve_base
    from upswing.worlds.known import make_world

    resolve_base("tiny", bases)
    data.mkdir(mode=0o700)
    (data / "bases").symlink_to(bases.resolve())
    settings = Settings(trigger=TriggerConfig(threshold=10**9, schedule="off"))
    async with (
        running_loop(data, settings=settings) as loop,
        Client(loop.running.http_url, loop.running.key) as client,
    ):
        yield School(client, make_world(world, seed), bases, seed=number)


async def record(school, number, episodes):
    """Attempts of the school's newest model at the next tasks."""
    return await school.record(batch(school.world, number, max(1, episodes // GROUP)), group=GROUP)


def score(school, options):
    from upswing.worlds.measure import mean_interval, measure_policy
    from upswing.worlds.world import third_split

    tasks = third_split(school.world)[: options.tasks]
    found = measure_policy(school.world, school.policy(), tasks=tasks, samples=options.samples)
    return round(mean_interval(found).mean, 4)
