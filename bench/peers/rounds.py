"""How many items per second, right now? Shared by both sides; the standard library alone."""

import json
import sys
import time
from collections.abc import Callable, Sequence
from typing import Any


def rate(work: Callable[[Any], object], items: Sequence[Any], seconds: float) -> float:
    """Items per second, over as many whole passes as `seconds` holds."""
    done = 0
    begin = time.perf_counter()
    while True:
        for item in items:
            work(item)
        done += len(items)
        took = time.perf_counter() - begin
        if took >= seconds:
            return done / took


def answer_rounds(
    work: Callable[[Any], object], items: Sequence[Any], versions: dict[str, str]
) -> None:
    """Measure one round for each line of stdin until it closes."""
    for item in items:  # warm: caches and lazily compiled validators belong to no round
        work(item)
    for line in sys.stdin:
        measured = rate(work, items, json.loads(line)["seconds"])
        print(json.dumps({"per_second": measured, "versions": versions}), flush=True)
