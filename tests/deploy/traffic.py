"""Canaries under traffic as it is: users who differ, one who asks most, bursts, drift, rewards that come late.

    means of users ~ normal(0.5, sd)        who asks: any user, or one of them in 40 % of cases
    the candidate earns `drop` less         arms: by chance for each episode, or for each user

Each canary is looked at after every reward, with the package's own evidence.
"""

from dataclasses import dataclass, replace

import numpy as np

from upswing.deploy.health import earns_less
from upswing.deploy.limits import Limits
from upswing.deploy.rewards import RewardEvidence

LIMITS = Limits()
STEPS = (0.05, 0.10, 0.25, 0.50)


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


def tried(cell, runs, seed=0):
    """So many canaries under this traffic."""
    ends = [
        _one(cell, np.random.default_rng([seed, number, cell.users, int(cell.sd * 100)]))
        for number in range(runs)
    ]
    proofs = [at for word, at in ends if word == "proven"]
    return Found(
        sum(word == "failing" for word, _ in ends) / runs,
        len(proofs) / runs,
        float(np.median(proofs)) if proofs else float("inf"),
    )


def worse(cell, drop=0.05):
    return replace(cell, drop=drop)


def _one(cell, chance):
    """What became of one canary, and after how many rewards."""
    evidence, order = RewardEvidence(drop=LIMITS.reward), _traffic(cell, chance)
    for seq, (reward, candidate, step) in enumerate(order, 1):
        evidence.observe(seq, reward, candidate=candidate, step=step)
        if cell.mode == "user" and seq < LIMITS.min_users:
            continue  # too few to decide anything
        if earns_less(evidence, LIMITS):
            return "failing", seq
        if evidence.size and evidence.lower(LIMITS.promotion_chance) > -LIMITS.reward:
            return "proven", seq
    return "undecided", len(order)


def _traffic(cell, chance):
    """(reward, candidate, step), in the order in which rewards come."""
    n, t = cell.episodes, np.arange(cell.episodes)
    step = np.minimum(t * len(STEPS) // n, len(STEPS) - 1)
    share = np.array(STEPS)[step]
    means = chance.normal(0.5, cell.sd, cell.users)
    who = chance.integers(0, cell.users, n)
    if cell.shape == "one asks most":
        who = np.where(chance.random(n) < 0.4, 0, who)
    if cell.shape == "bursts":
        who = np.repeat(chance.integers(0, cell.users, n // 20 + 1), 20)[:n]
    by_user = chance.random(cell.users)[who]
    candidate = (by_user if cell.mode == "user" else chance.random(n)) < share
    mean = means[who] - cell.drop * candidate
    if cell.shape in {"drift", "late and drift"}:
        mean = mean + 0.25 * np.sin(2 * np.pi * t / (n / 2))
    reward = np.clip(_noise(cell.shape, chance, mean), 0, 1)
    came = t + (chance.exponential(n / 10, n) if "late" in cell.shape else 0)
    order = np.argsort(came, kind="stable")
    if cell.mode == "user":
        _, first = np.unique(who[order], return_index=True)
        order = order[np.sort(first)]
    return [(float(reward[i]), bool(candidate[i]), str(STEPS[step[i]])) for i in order]


def _noise(shape, chance, mean):
    if shape == "0/1":
        return (chance.random(len(mean)) < np.clip(mean, 0, 1)).astype(float)
    if shape == "heavy tails":
        return mean + 0.1 * chance.standard_t(2, len(mean))
    return chance.normal(mean, 0.2)
