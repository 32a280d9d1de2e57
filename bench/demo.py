"""Do agents get better in the demo, with any seed, and in time? Ten whole runs, as a person starts them.

A run takes four minutes on two free cores. `UPSWING_DEMO_SEEDS=3,4` measures those seeds only;
`UPSWING_DEMO_AT_ONCE=2` runs two beside each other, which makes the seconds meaningless and leaves the
scores as they are.
"""

import json
import os
import shutil
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from bench.harness import Row

SEEDS = tuple(range(10))
GAIN = 0.25
UPSWING = Path(sys.executable).parent / "upswing"


def rows():
    told = os.environ.get("UPSWING_DEMO_SEEDS")
    seeds = tuple(int(seed) for seed in told.split(",")) if told else SEEDS
    at_once = int(os.environ.get("UPSWING_DEMO_AT_ONCE", "1"))
    with ThreadPoolExecutor(at_once) as pool:
        runs = list(pool.map(_run, seeds))
    gains = [run["difference"] for run in runs]
    back = [run["taken_back_seconds"] for run in runs]
    few = f"{len(seeds)} seeds" + (f", {at_once} at once" if at_once > 1 else "")
    return [
        Row(
            name=f"demo, tiny: seeds with at least +{GAIN} on held-out tasks",
            value=sum(gain >= GAIN for gain in gains),
            target=0.9 * len(seeds),
            unit="seeds",
            peer=f"{few}; gains {', '.join(f'{gain:+.2f}' for gain in sorted(gains))}",
        ),
        Row(
            name="demo, tiny: runs that end with a worse model at 100 %",
            value=sum(run["heldout_after"] < run["heldout_before"] for run in runs),
            target=1,
            unit="runs",
            better="lower",
            peer=few,
        ),
        Row(
            name="demo, tiny: first improved model at full traffic, slowest",
            value=max(run["stages"].get("first_improved", float("nan")) for run in runs),
            target=180,
            unit="s",
            better="lower",
            peer=few,
        ),
        Row(
            name="demo, tiny: everything, slowest",
            value=max(run["seconds"] for run in runs),
            target=360,
            unit="s",
            better="lower",
            peer=few,
        ),
        Row(
            name="demo, tiny: peak memory of all processes",
            value=max(run["peak_memory_gb"] for run in runs),
            target=3,
            unit="GB",
            better="lower",
            peer=few,
        ),
        Row(
            name="demo, tiny: sabotaged model taken back after its first answer, slowest",
            value=max(float("nan") if each is None else each for each in back),
            target=60,
            unit="s",
            better="lower",
            peer=f"taken back in {sum(each is not None for each in back)} of {few}",
        ),
    ]


def _run(seed):
    home = Path(tempfile.mkdtemp(prefix="upswing-demo-bench-"))
    try:
        summary = home / "summary.json"
        done = subprocess.run(
            [UPSWING, "demo", "--data", home / "data", "--seed", str(seed), "--summary", summary],
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            raise RuntimeError(f"seed {seed}: {done.stdout[-800:]} {done.stderr[-400:]}")
        found = json.loads(summary.read_text())
        scores = ", ".join(f"{each['mean']:.2f}" for each in found["measured"])
        print(
            f"  seed {seed}: {scores}; first "
            f"improved {found['stages'].get('first_improved')} s, all {found['seconds']} s, "
            f"{found['peak_memory_gb']} GB, taken back {found['taken_back_seconds']} s",
            file=sys.stderr,
            flush=True,
        )
        return found
    finally:
        shutil.rmtree(home, ignore_errors=True)
