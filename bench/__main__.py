"""Are the promised numbers true on this machine?

python -m bench             every bench
python -m bench validation  only that one
python -m bench learning --world desk --seed 0 --minutes 15
                            the unattended loop: one line of JSON
python -m bench reasoning --seed 0
                            a user's own tasks and `smollm2`: an hour, one line of JSON
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
    "ingest",
    "catchup",
    "latency",
    "memory",
    "step",
    "recovery",
    "canary",
    "gateway",
    "doors",
    "learning",
    "rollouts",
    "grpo",
    "demo",
)


def _rows_of(name: str) -> list[Row]:
    try:
        return importlib.import_module(f"bench.{name}").rows()
    except Exception as error:  # noqa: BLE001 - one bench that fails must not hide the others
        sentence = " ".join(str(error).split()) or "no reason given"
        failure = f"{type(error).__name__}: {sentence}"
        return [Row(name=name, value=math.nan, target=math.nan, failure=failure)]


def main(names: list[str]) -> int:
    if names[:1] == ["learning"] and any(name.startswith("-") for name in names):
        from bench.unattended import main as unattended

        return unattended(names[1:])
    if names[:1] == ["reasoning"]:
        from bench.reasoning import main as reasoning

        return reasoning(names[1:])
    unknown = [name for name in names if name not in MODULES]
    if unknown:
        print(f"No bench is called {', '.join(unknown)}; there are {', '.join(MODULES)}.")
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
