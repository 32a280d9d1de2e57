"""Are the promised numbers true on this machine?

python -m bench             every bench
python -m bench validation  only that one
python -m bench learning --world desk --seed 0 --minutes 15
                            the unattended loop: one line of JSON
python -m bench reasoning --seed 0
                            a user's own tasks and `smollm2`: an hour, one line of JSON
python -m bench recipe-spread --slices 3 --seeds 3
                            how far the default recipe's models scatter: one line of JSON
python -m bench dashboard --trajectories 2000 --rounds 3
                            what ten open pages cost, in small: one line of JSON
python -m bench cycle-time --cycles 10
                            seconds of a job in each cycle: one line of JSON
python -m bench read-api --rows 10000,1000000
                            what pages and tools ask, in stores of these sizes: a table of milliseconds
"""

import importlib
import math
import sys

from bench.harness import HERE, Row, print_table, write_results

MODULES = (
    "validation",
    "redaction",
    "redaction_recall",
    "reward",
    "recorder",
    "agent_zero",
    "ingest",
    "traces",
    "catchup",
    "latency",
    "memory",
    "step",
    "recovery",
    "canary",
    "gateway",
    "shapes",
    "doors",
    "read_api",
    "learning",
    "rollouts",
    "backtest",
    "grpo",
    "dashboard",
    "demo",
)

COMMANDS = {
    "reasoning": "reasoning",
    "recipe-spread": "recipe_spread",
    "cycle-time": "cycle_time",
    "read-api": "read_api",
}
"""Benches with options of their own, which print one line of JSON; they take long, and run only when named."""


def _rows_of(name: str) -> list[Row]:
    try:
        return importlib.import_module(f"bench.{name}").rows()
    except Exception as error:  # noqa: BLE001 - one bench that fails must not hide the others
        sentence = " ".join(str(error).split()) or "no reason given"
        failure = f"{type(error).__name__}: {sentence}"
        return [Row(name=name, value=math.nan, target=math.nan, failure=failure)]


def main(names: list[str]) -> int:
    if names[:1] in (["-h"], ["--help"]):
        print(f"{__doc__}\nBenches: {', '.join((*MODULES, *COMMANDS))}")
        return 0
    if names[:1] == ["learning"] and any(name.startswith("-") for name in names):
        from bench.unattended import main as unattended

        return unattended(names[1:])
    if names[:1] == ["dashboard"] and len(names) > 1:
        from bench.dashboard import main as dashboard

        return dashboard(names[1:])
    if names and names[0] in COMMANDS:
        command = importlib.import_module(f"bench.{COMMANDS[names[0]]}")
        return int(command.main(names[1:]))
    unknown = [name for name in names if name not in MODULES]
    if unknown:
        print(
            f"No bench is called {', '.join(unknown)}; there are {', '.join((*MODULES, *COMMANDS))}."
        )
        return 2
    rows: list[Row] = []
    for name in names or MODULES:
        print(f"measuring {name} …", file=sys.stderr)
        rows += _rows_of(name)
    print_table(rows)
    write_results(rows, HERE / "results.json")
    return 1 if any(row.failure for row in rows) else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
