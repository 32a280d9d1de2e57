"""How quickly does a score find its place in a history, and a trajectory its reward?

The trailing z-score is measured one number at a time, as a reward stage meets it: push, then ask.
Peers are used as their documentation shows: river keeps one rolling variance, and the mean is
read from it instead of being kept a second time; numpy recomputes from the history, once kept as a deque (what
one writes first) and once as a preallocated array (the best it can do). Run as a script by a
peer's interpreter, this file is the peer's side: a line of JSON in, one out.
"""

import json
import random
import sys
import time
from collections import deque

SIZE = 1000
ROUND_S = 0.3
REQUIREMENTS = {"river": ("river",), "numpy": ("numpy",)}
FORMS = {
    "river": ("river", "rolling variance", 4.0),
    "deque": ("numpy", "recomputed from a deque", 60.0),
    "array": ("numpy", "recomputed in a preallocated array", 15.0),
}
ITEMS = 20
TRAJECTORIES_PER_SECOND = 2000.0


def rows():
    return [*map(_z_scores, FORMS), _rewards()]


def _numbers(count=20_000):
    rng = random.Random(11)
    return [rng.random() for _ in range(count)]


def _rate(run, numbers):
    """Numbers per second, over as many thousands as the round holds."""
    run(numbers[:SIZE])
    done, at = 0, 0
    begin = time.perf_counter()
    while True:
        run(numbers[at : at + 1000])
        done, at = done + 1000, (at + 1000) % len(numbers)
        took = time.perf_counter() - begin
        if took >= ROUND_S:
            return done / took


# --- our side ------------------------------------------------------------------------------------


def _z_scores(form):
    from bench.harness import Row, live_peer, peer_python, side_by_side, versions

    peer, how, target = FORMS[form]
    numbers = _numbers()
    with live_peer(peer_python(peer, *REQUIREMENTS[peer]), __file__, form) as ask:
        told = versions(**ask("versions"))
        assert abs(_ours()(numbers[: 3 * SIZE]) - ask("last")) < 1e-9, "both must compute the same"
        ratio = side_by_side(lambda: _rate(_ours(), numbers), lambda: ask("rate"), rounds=7)
    return Row(
        name=f"z-score in the trailing {SIZE}, beside {peer} ({how})",
        value=ratio,
        target=target,
        peer=peer,
        versions=told,
    )


def _ours():
    from upswing.reward.core.baseline import TrailingWindow

    window = TrailingWindow(SIZE)

    def run(numbers):
        z = 0.0
        for x in numbers:
            window.push(x)
            z = window.z(x)
        return z

    return run


def _rewards():
    """Stored bytes → decoded → four components → combined → encoded, on one core."""
    import statistics
    from datetime import UTC, datetime

    from bench.corpus import SIZE_BYTES, TURNS, trajectory
    from bench.corpus import encode as as_bytes
    from bench.harness import Row, versions

    from upswing.contracts import decode_trajectory, encode
    from upswing.reward.core.baseline import TrailingWindow
    from upswing.reward.core.completion import completion_score
    from upswing.reward.core.efficiency import efficiency_score
    from upswing.reward.core.feedback import feedback_score
    from upswing.reward.core.implicit import implicit_signals
    from upswing.reward.core.quality import quality_score
    from upswing.reward.core.stats import StatisticsByKind, facts_of
    from upswing.reward.core.total import RAW_TOTAL, build_reward, combine_scores
    from upswing.reward.core.weights import component_weights

    now = datetime(2025, 1, 6, 10, tzinfo=UTC)
    items = [as_bytes(_with_reports(trajectory(seed=seed), seed)) for seed in range(ITEMS)]
    counted, seen = component_weights({}), StatisticsByKind()
    windows = {name: TrailingWindow(numbers=_numbers(SIZE)) for name in (*counted, RAW_TOTAL)}
    for _ in range(100):
        for raw in items:
            seen.push(facts_of(decode_trajectory(raw)))

    def reward(raw):
        told = decode_trajectory(raw)
        facts = facts_of(told)
        shown = implicit_signals(told)
        scores = {
            "task_completion": completion_score(told, shown.complaints_before()),
            "efficiency": efficiency_score(told, seen.of(facts.domain, facts.complexity)),
            "code_quality": quality_score(told, None),
            "user_feedback": feedback_score((), shown),
        }
        total = combine_scores(scores, counted, windows)
        for term in total.terms:
            windows[term.name].push(term.score.value)
        windows[RAW_TOTAL].push(total.raw_total)
        seen.push(facts)
        return encode(build_reward(total, told, now=now))

    rates = []
    for _ in range(5):
        begin, done = time.perf_counter(), 0
        while (took := time.perf_counter() - begin) < ROUND_S:
            for raw in items:
                reward(raw)
            done += len(items)
        rates.append(done / took)
    return Row(
        name=f"stored bytes → reward, on one core ({SIZE_BYTES // 1000} KB, {TURNS} turns)",
        value=statistics.median(rates),
        target=TRAJECTORIES_PER_SECOND,
        unit="/s",
        versions=versions(),
    )


def _with_reports(document, seed):
    """Half of the agents report an outcome and a linter's score; of the others both are derived."""
    if seed % 2:
        document["metadata"] |= {
            "outcome": {"status": "partial", "share": 0.5},
            "linter_results": {"pylint": 9.0},
        }
    return document


# --- the peers' side -----------------------------------------------------------------------------


def _river():
    from river import stats, utils

    rolling = utils.Rolling(stats.Var, window_size=SIZE, ddof=0)
    rolling.update(0.0)  # so that there is a deviation to divide by from the first number on

    def run(numbers):
        z = 0.0
        for x in numbers:
            rolling.update(x)
            z = (x - rolling.mean.get()) / rolling.get() ** 0.5
        return z

    return run


def _deque():
    import numpy as np

    history = deque([0.0], maxlen=SIZE)

    def run(numbers):
        z = 0.0
        for x in numbers:
            history.append(x)
            z = (x - np.mean(history)) / np.std(history)
        return z

    return run


def _array():
    import numpy as np

    history = np.zeros(SIZE)
    at = 0

    def run(numbers):
        nonlocal at
        z = 0.0
        for x in numbers:
            history[at] = x
            at = (at + 1) % SIZE
            z = (x - history.mean()) / history.std()
        return z

    return run


def _serve(form):
    from importlib.metadata import version

    make, numbers = {"river": _river, "deque": _deque, "array": _array}[form], _numbers()
    peer = FORMS[form][0]
    for line in sys.stdin:
        match json.loads(line):
            case "versions":
                answer = {peer: version(peer)}
            case "last":
                answer = float(make()(numbers[: 3 * SIZE]))
            case _:
                answer = _rate(make(), numbers)
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    _serve(sys.argv[1])
