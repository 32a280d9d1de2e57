"""Does a job of the tenth cycle take as long as one of the second?

    python -m bench cycle-time --world desk --cycles 10

In each cycle the newest model's episodes are recorded, and a job is asked for as the trigger asks: from
that model, with a size that follows from what is new, and with no knob set. The store keeps everything, so
what a job must look through grows from cycle to cycle. Seconds are those of the whole job: gathering,
loading, training, measuring. A run prints one line of JSON.
"""

import argparse
import asyncio
import json
import os
import sys
import tempfile
import time
from pathlib import Path

from bench.recipe_spread import classroom, record
from tests.support import until

TARGET = 1.5
_LEAST = 512
"""Trajectories that the trigger's request may take at least, however little is new."""


def main(words):
    parser = argparse.ArgumentParser(prog="python -m bench cycle-time")
    parser.add_argument("--world", default="desk", choices=("desk", "market", "triage"))
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--cycles", type=int, default=10)
    parser.add_argument("--episodes", type=int, default=800, help="of one cycle")
    parser.add_argument("--bases", type=Path, help="bases that were made before")
    options = parser.parse_args(words)
    with tempfile.TemporaryDirectory(prefix="upswing-cycles-", ignore_cleanup_errors=True) as name:
        print(json.dumps(asyncio.run(run(Path(name), options))), flush=True)
    return 0


async def run(home, options):
    bases = options.bases or home / "bases"
    cycles = []
    async with classroom(home / "data", bases, options.world, options.seed) as school:
        for number in range(options.cycles):
            success = await record(school, number, options.episodes)
            cycles.append({"success": round(success, 4), **await job(school, number, options)})
            print(f"  cycle {number + 1}: {cycles[-1]}", file=sys.stderr, flush=True)
    seconds = [cycle["seconds"] for cycle in cycles if cycle["state"] == "completed"]
    return {
        "world": options.world,
        "seed": options.seed,
        "episodes": options.episodes,
        "cycles": cycles,
        "second": seconds[1] if len(seconds) > 1 else None,
        "last": seconds[-1] if seconds else None,
        "ratio": round(seconds[-1] / seconds[1], 3) if len(seconds) > 1 else None,
        "target": TARGET,
    }


async def job(school, number, options):
    """One job as the trigger would ask for it; where nothing is left to learn, the model stays."""
    from upswing.contracts.training import DATASET_SIZE, NEW

    name = f"cycle-{number + 1}"
    size = max(_LEAST, 2 * options.episodes)
    asked = {
        "training_job_id": name,
        "training_config": {
            "algorithm": "grpo",
            "base_model": school.model_id or school.base,
            "dataset": {"source": "local", "sample_size": size},
            "hyperparameters": {},
        },
        "metadata": {DATASET_SIZE: NEW, "recipe": {"seed": number}},
    }
    began, load = time.monotonic(), os.getloadavg()[0]
    status, answer = await school.client("POST", "/training/start", asked)
    if status != 202:
        raise RuntimeError(f"{name}: {answer}")
    ended = await until(lambda: school.ended(name), 3600, f"{name} did not end")
    if ended["status"] == "completed":
        school.model_id = ended["metadata"]["model_id"]
        school.path = ended["artifacts"]["final_checkpoint"]
    about = ended["metadata"]
    return {
        "state": ended["status"],
        "seconds": round(ended["resource_usage"]["total_training_time_seconds"], 1),
        "wall": round(time.monotonic() - began, 1),
        "load": round(load, 1),
        "trajectories": about.get("examples"),
        "groups": about.get("groups"),
        "off_policy": about.get("off_policy_share"),
        "error": (ended.get("error") or {}).get("message"),
    }
