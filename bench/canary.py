"""How much sooner is a canary's verdict renewed than with a test that looks at the whole window again?

Ours works one reward in and judges rewards, errors and complaints together, with the sentence. The peer
is scipy's `mannwhitneyu` on the same rewards, at its quickest: arrays that are ready, the asymptotic
method, one-sided. It answers for rewards alone, and looking at it after every request would take back
far more healthy models than it says; here only the time counts. Run as a script by a peer's interpreter,
this file is the peer's side: a line of JSON in, one out.
"""

import json
import random
import sys
import time

WINDOWS = {3000: "a canary's first 300 rewards at 10 %", 7000: "a week of a thousand a day at 10 %"}
SHARE = 0.10
ROUND_S = 0.3
ROUNDS = 7
TARGET = 200.0
REQUIREMENTS = ("scipy", "numpy")


def rows():
    return [_row(size, told) for size, told in WINDOWS.items()]


def _stream(size, drop=0.0):
    """(reward, is it the candidate's) of so many requests."""
    rng = random.Random(11)
    arms = [rng.random() < SHARE for _ in range(size)]
    return [(min(1, max(0, rng.gauss(0.6 - drop * arm, 0.25))), arm) for arm in arms]


def _rate(work):
    """Calls per second; every call is the next one of its kind."""
    work(10)
    done, begin = 0, time.perf_counter()
    while True:
        work(10)
        done += 10
        took = time.perf_counter() - begin
        if took >= ROUND_S:
            return done / took


# --- our side ------------------------------------------------------------------------------------


def _row(size, told):
    from importlib.metadata import version

    from bench.harness import Row, live_peer, peer_python, side_by_side, versions

    with live_peer(peer_python("scipy", *REQUIREMENTS), __file__, size) as ask:
        known = versions(msgspec=version("msgspec"), **ask("versions"))
        for drop in (0.0, 0.2):
            worse = _evidence(size, drop).rewards.worse.rejects_null(0.01)
            assert worse is (ask(drop) < 0.01) is (drop > 0), "both must see the same"
        ratio = side_by_side(lambda: _rate(_ours(size)), lambda: ask("rate"), ROUNDS)
    return Row(
        name=f"canary verdict renewed after one reward, window of {size} ({told})",
        value=ratio,
        target=TARGET,
        peer="scipy mannwhitneyu",
        versions=known,
    )


def _evidence(size, drop=0.0):
    from upswing.deploy.core.error_rate import RequestCounts
    from upswing.deploy.core.evidence import begin_evidence
    from upswing.deploy.core.limits import RolloutLimits

    evidence = begin_evidence(RolloutLimits())
    evidence.errors.count(
        "gateway", RequestCounts(size // 10, size // 1000), RequestCounts(size, size // 100)
    )
    for seq, (reward, candidate) in enumerate(_stream(size, drop), 1):
        evidence.rewards.observe(seq, reward, candidate=candidate)
    return evidence


def _ours(size):
    from upswing.deploy.core.health import judge_health
    from upswing.deploy.core.limits import RolloutLimits

    limits, evidence, stream = RolloutLimits(), _evidence(size), _stream(size)
    seq = size

    def work(times):
        nonlocal seq
        for _ in range(times):
            seq += 1
            reward, candidate = stream[seq % size]
            evidence.rewards.observe(seq, reward, candidate=candidate)
            judge_health(evidence, limits)

    return work


# --- the peer's side -----------------------------------------------------------------------------


def _serve(size):
    from importlib.metadata import version

    import numpy as np
    from scipy.stats import mannwhitneyu

    def arms(drop):
        stream = _stream(size, drop)
        return [np.array([y for y, arm in stream if arm is which]) for which in (True, False)]

    candidate, baseline = arms(0.0)

    def work(times):
        for _ in range(times):
            mannwhitneyu(candidate, baseline, alternative="less", method="asymptotic")

    for line in sys.stdin:
        match json.loads(line):
            case "versions":
                answer = {"scipy": version("scipy"), "numpy": version("numpy")}
            case "rate":
                answer = _rate(work)
            case drop:
                test = mannwhitneyu(*arms(drop), alternative="less", method="asymptotic")
                answer = float(test.pvalue)
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    _serve(int(sys.argv[1]))
