"""Canaries under traffic as it is: users who differ, one who asks most, bursts, drift, rewards that come late.

    means of users ~ normal(0.5, sd)        who asks: any user, or one of them in 40 % of cases
    the candidate earns `drop` less         arms: by chance for each episode, or for each user
    means of domains ~ normal(0, 0.1)       an episode has one of 14 domains, the first with a third of
                                            all, of three agent types, and the segment of its user, of 12

Each canary is looked at after every reward, with the package's own evidence and verdict: the mean, the guards of all
these parts, of task completion and of worst outcomes, and the sample ratio. `python -m tests.deploy.traffic 100` prints
the published grid.
"""

import itertools
import sys
from dataclasses import dataclass, replace

import numpy as np

from upswing.deploy.core.error_rate import RequestCounts
from upswing.deploy.core.evidence import begin_evidence
from upswing.deploy.core.health import FailureCause, HealthStatus, earns_less, judge_health
from upswing.deploy.core.limits import RolloutLimits
from upswing.deploy.core.rows import ObservedReward

LIMITS = RolloutLimits()
STEPS = (0.05, 0.10, 0.25, 0.50)
SHAPES = (
    "plain",
    "one asks most",
    "heavy tails",
    "bursts",
    "drift",
    "late",
    "late and drift",
    "0/1",
)
USERS, SDS, MODES = (5, 20, 50, 500), (0.0, 0.05, 0.15, 0.3), ("conversation", "user")
_DOMAINS, _AGENTS, _SEGMENTS = 14, 3, 12


@dataclass(frozen=True)
class Cell:
    """One kind of traffic."""

    users: int = 50
    sd: float = 0.1
    mode: str = "conversation"
    shape: str = "plain"
    drop: float = 0.0
    episodes: int = 2400

    def __str__(self):
        return f"{self.users} users, sd {self.sd:g}, by {self.mode}, {self.shape}"


@dataclass(frozen=True)
class Found:
    """Shares of canaries."""

    failing: float
    proven: float
    """Proven before they failed."""
    median: float
    """Rewards of both sides until that, among those that were."""
    by_guards: float = 0.0
    """Of those that failed, for a guard alone."""


def tried(cell, runs, seed=0):
    """So many canaries under this traffic."""
    ends = [
        _one(cell, np.random.default_rng([seed, number, cell.users, int(cell.sd * 100)]))
        for number in range(runs)
    ]
    proofs = [at for word, at, _ in ends if word == "proven"]
    return Found(
        sum(word == "failing" for word, _, _ in ends) / runs,
        len(proofs) / runs,
        float(np.median(proofs)) if proofs else float("inf"),
        sum(word == "failing" and cause is FailureCause.SEGMENT for word, _, cause in ends) / runs,
    )


def worse(cell, drop=0.05):
    return replace(cell, drop=drop)


def _one(cell, chance):
    """What became of one canary, after how many rewards, and why."""
    evidence, order = begin_evidence(LIMITS), _traffic(cell, chance)
    evidence.by_user = cell.mode == "user"
    evidence.errors.add(RequestCounts(1000, 0), RequestCounts(1000, 0))
    for row, candidate in order:
        evidence.rewards.observe(row.seq, row.raw_total, candidate=candidate, step=row.step)
        evidence.guards.observe(row, candidate=candidate, limit=evidence.rewards.drop)
        evidence.ratio.observe(candidate=candidate, share=float(row.step))
        if _may_be_decided(evidence, row):
            verdict = judge_health(evidence, LIMITS)
            if verdict.health is HealthStatus.FAILING:
                return "failing", row.seq, verdict.cause
            if verdict.proven:
                return "proven", row.seq, None
    return "undecided", len(order), None


def _may_be_decided(evidence, row):
    """Whatever this row did not touch is as it was at the look before: a verdict on each row would be the same."""
    rewards, guards = evidence.rewards, evidence.guards
    if rewards.size and rewards.lower(LIMITS.promotion_chance) > -rewards.drop:
        return True
    if earns_less(rewards, LIMITS):
        return True
    touched = (name for name, last in guards.last.items() if last == guards.rows)
    return any(guards.tests[name].worse.wealth > 100 for name in touched)


def _traffic(cell, chance):
    """(row, candidate), in the order in which rewards come."""
    n, t = cell.episodes, np.arange(cell.episodes)
    step = np.minimum(t * len(STEPS) // n, len(STEPS) - 1)
    share = np.array(STEPS)[step]
    means = chance.normal(0.5, cell.sd, cell.users)
    who = chance.integers(0, cell.users, n)
    if cell.shape == "one asks most":
        who = np.where(chance.random(n) < 0.4, 0, who)
    if cell.shape == "bursts":
        who = np.repeat(chance.integers(0, cell.users, n // 20 + 1), 20)[:n]
    weights = 1 / np.arange(1, _DOMAINS + 1)
    domain = chance.choice(_DOMAINS, n, p=weights / weights.sum())
    agent = chance.integers(0, _AGENTS, n)
    by_user = chance.random(cell.users)[who]
    candidate = (by_user if cell.mode == "user" else chance.random(n)) < share
    mean = means[who] + chance.normal(0, 0.1, _DOMAINS)[domain] - cell.drop * candidate
    if cell.shape in {"drift", "late and drift"}:
        mean = mean + 0.25 * np.sin(2 * np.pi * t / (n / 2))
    reward = np.clip(_noise(cell.shape, chance, mean), 0, 1)
    completion = (chance.random(n) < np.clip(mean, 0, 1)).astype(float)
    came = t + (chance.exponential(n / 10, n) if "late" in cell.shape else 0)
    order = np.argsort(came, kind="stable")
    if cell.mode == "user":
        _, first = np.unique(who[order], return_index=True)
        order = order[np.sort(first)]
    return [
        (
            ObservedReward(
                seq,
                "m",
                "r",
                float(reward[i]),
                str(STEPS[step[i]]),
                float(completion[i]),
                (f"domain {domain[i]}", f"agent type {agent[i]}", f"segment {who[i] % _SEGMENTS}"),
            ),
            bool(candidate[i]),
        )
        for seq, i in enumerate(order, 1)
    ]


def _noise(shape, chance, mean):
    if shape == "0/1":
        return (chance.random(len(mean)) < np.clip(mean, 0, 1)).astype(float)
    if shape == "heavy tails":
        return mean + 0.1 * chance.standard_t(2, len(mean))
    return chance.normal(mean, 0.2)


def main(runs):
    """The published grid; 16 cells in each line."""
    for mode, shape in itertools.product(MODES, SHAPES):
        cells = [Cell(users, sd, mode, shape) for users, sd in itertools.product(USERS, SDS)]
        equal = [tried(cell, runs) for cell in cells]
        bad = [tried(worse(cell), runs) for cell in cells]
        failing, proven, worse_ones = (
            [each.failing for each in equal],
            [each.proven for each in equal],
            [each.proven for each in bad],
        )
        by_guards = float(np.mean([each.by_guards for each in equal]))
        median = np.median([each.median for each in equal])
        print(
            f"| each {'user' if mode == 'user' else 'episode'} | {shape} "
            f"| {np.mean(failing):.1%}, {max(failing):.0%} | {by_guards:.2%} "
            f"| {np.mean(proven):.0%}, {'–' if np.isinf(median) else f'{median:,.0f}'} "
            f"| {np.mean(worse_ones):.1%}, {max(worse_ones):.0%} |",
            flush=True,
        )


if __name__ == "__main__":
    main(int(sys.argv[1]))
