"""Does the loop improve its agents by itself, cycle after cycle? `upswing up` and test agents, and nobody.

    python -m bench learning --world desk --seed 0 --minutes 15

Both run as processes in a fresh directory, with only `RL_TRAINING_THRESHOLD` and `CANARY_RAMP_HOURS` set.
While they run, only `GET /admin/traffic` is asked, to see who answers. What every model can do is measured
afterwards from the checkpoints that were kept, on tasks that neither training nor validation saw. A run
prints one line of JSON.
"""

import argparse
import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
import urllib.request
from itertools import pairwise
from pathlib import Path

from bench.harness import _upswing

SETTINGS = {"RL_TRAINING_THRESHOLD": "800", "CANARY_RAMP_HOURS": "0.02"}
_START_SECONDS, _STOP_SECONDS, LOOK_SECONDS = 180, 60, 2.0
_ENDED = ("completed", "failed", "cancelled")


def main(words):
    parser = argparse.ArgumentParser(prog="python -m bench learning")
    parser.add_argument("--world", default="desk", choices=("desk", "market", "triage"))
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--minutes", type=float, default=15.0)
    parser.add_argument("--tasks", type=int, default=300, help="of the third split")
    parser.add_argument("--samples", type=int, default=4, help="of each task")
    parser.add_argument("--keep", type=Path, help="leave the data directory here")
    parser.add_argument("--bases", type=Path, help="bases that were made before")
    parser.add_argument("--agents", default="", help="more options of `upswing agents spawn`")
    options = parser.parse_args(words)
    with tempfile.TemporaryDirectory(
        prefix="upswing-learning-", ignore_cleanup_errors=True
    ) as name:
        home = options.keep or Path(name)
        print(json.dumps(run(home, options)), flush=True)
    return 0


def run(home, options):
    data = home / "data"
    data.mkdir(parents=True, mode=0o700)
    if options.bases:
        (data / "bases").symlink_to(options.bases.resolve())
    began = time.monotonic()
    with loop(data, home / "loop.log") as info:
        served = served_by(info)
        seen = [(served, time.monotonic() - began)]
        with _agents(data, home / "agents.json", options):
            began = time.monotonic()
            while (now := time.monotonic() - began) < options.minutes * 60:
                time.sleep(min(LOOK_SECONDS, max(0.1, options.minutes * 60 - now)))
                with contextlib.suppress(OSError, ValueError):
                    if (baseline := served_by(info)) != seen[-1][0]:
                        seen.append((baseline, time.monotonic() - began))
                        say(f"{seen[-1][1]:.0f} s: {baseline} has all traffic")
        models = {each["model_id"]: each for each in ask(info, "/models")["models"]}
        jobs = ask(info, "/jobs?limit=1000")["jobs"]
    spawned = json.loads((home / "agents.json").read_text() or "{}")
    return told(options, seen, models, jobs, spawned, data / "bases")


def told(options, seen, models, jobs, spawned, bases):
    """What a run has to say, everything rounded."""
    from upswing.worlds.known import make_world
    from upswing.worlds.measure import gain_interval, mean_interval, measure_policy

    world = make_world(options.world, options.seed)
    tasks = world.test[: options.tasks]
    scores = {}
    for name in dict.fromkeys(name for name, _ in seen):
        policy = policy_of(name, models.get(name), bases)
        scores[name] = measure_policy(
            world, policy, tasks=tasks, samples=options.samples, seed=options.seed
        )
        say(f"{name}: {mean_interval(scores[name]).to_json()}")
    cycles = [
        {
            "model": after,
            "seconds": round(at, 1),
            "score": mean_interval(scores[after]).to_json(),
            "gain": gain_interval(scores[before], scores[after]).to_json(),
        }
        for (before, _), (after, at) in pairwise(seen)
    ]
    first, last = seen[0][0], seen[-1][0]
    return {
        "world": options.world,
        "seed": options.seed,
        "minutes": options.minutes,
        "promotions": len(cycles),
        "base": mean_interval(scores[first]).to_json(),
        "cycles": cycles,
        "final": round(mean_interval(scores[last]).mean, 4),
        "gain": gain_interval(scores[first], scores[last]).to_json(),
        "rises_each_time": all(each["gain"]["mean"] > 0 for each in cycles),
        "worse_at_full_traffic": sum(each["gain"]["upper"] < 0 for each in cycles),
        "jobs": [job_said(each) for each in reversed(jobs)],
        "models": {name: each["state"] for name, each in models.items()},
        "episodes": spawned.get("episodes"),
        "faults": spawned.get("faults"),
    }


def policy_of(name, row, bases):
    """A model as it was kept; the base where there is no row of it."""
    from upswing.train.bases.catalog import resolve_base
    from upswing.train.bases.loading import load_base, make_trainable
    from upswing.train.core.recipe import Recipe
    from upswing.worlds.sampler import SamplingPolicy

    base = resolve_base(row["base_model"] if row else name, bases)
    model, tokenizer = load_base(base)
    if row is not None:
        folder = Path(row["path"].removeprefix("file://"))
        full = not (folder / "adapter_config.json").exists()
        model = make_trainable(model, Recipe(), folder, full=full)
    return SamplingPolicy(name, model.eval(), tokenizer)


def job_said(job):
    usage = job["latest"].get("resource_usage") or {}
    return {
        "job": job["training_job_id"],
        "reason": job["trigger_reason"],
        "algorithm": job["algorithm"],
        "state": job["status"],
        "seconds": usage.get("total_training_time_seconds"),
        "samples": (job["latest"].get("metadata") or {}).get("samples"),
        "error": ((job["latest"].get("error") or {}).get("message") or "")[:200] or None,
    }


def served_by(info):
    return str(ask(info, "/admin/traffic")["baseline"])


def ask(info, path):
    request = urllib.request.Request(
        f"{info['http_url']}{path}", headers={"authorization": f"Bearer {info['key']}"}
    )
    with urllib.request.urlopen(request, timeout=20) as answer:
        return json.load(answer)


@contextlib.contextmanager
def loop(data, log, settings=SETTINGS):
    with log.open("wb") as said:
        process = subprocess.Popen(
            [
                _upswing(),
                "up",
                "--data",
                str(data),
                "--port",
                "0",
                "--gateway-port",
                "0",
                "--no-dashboard",
            ],
            stdin=subprocess.DEVNULL,
            stdout=said,
            stderr=said,
            start_new_session=True,
            env={**os.environ, **settings},
        )
    try:
        yield _ready(process, data, log)
    finally:
        _stop(process, signal.SIGTERM)


def _ready(process, data, log):
    deadline = time.monotonic() + _START_SECONDS
    while time.monotonic() < deadline and process.poll() is None:
        with contextlib.suppress(OSError, ValueError, KeyError):
            info = json.loads((data / "running.json").read_text())
            served_by(info)
            return info
        time.sleep(0.2)
    raise RuntimeError(f"upswing up did not start: {log.read_text()[-1500:]}")


@contextlib.contextmanager
def _agents(data, out, options):
    with out.open("wb") as said, out.with_suffix(".log").open("wb") as complaints:
        process = subprocess.Popen(
            [
                _upswing(),
                "agents",
                "spawn",
                "--data",
                str(data),
                "--world",
                options.world,
                "--seed",
                str(options.seed),
                "--duration",
                str(options.minutes + 5),
                "--json",
                *options.agents.split(),
            ],
            stdin=subprocess.DEVNULL,
            stdout=said,
            stderr=complaints,
            start_new_session=True,
        )
    try:
        yield
    finally:
        _stop(process, signal.SIGINT)


def _stop(process, first):
    """Ask it; what does not end in its time is ended with its whole group."""
    if process.poll() is None:
        process.send_signal(first)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(_STOP_SECONDS)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def say(line):
    print(line, file=sys.stderr, flush=True)
