"""Thousands of canaries at once: the evidence of `upswing.deploy`, a column for each canary.

The arithmetic is the package's own, written for numpy; `test_crowd.py` holds both side by side.
"""

from types import SimpleNamespace

import numpy as np

from upswing.deploy.core import rewards as module
from upswing.deploy.core.limits import RolloutLimits
from upswing.deploy.core.sequential_test import FIRST, MOST, SPREAD


class Suspicions:
    def __init__(self, runs):
        self.wealth, self.turns, self.run = np.zeros((3, runs))

    def bet(self, growth, who, turns=1):
        """Bet where `who`; where a new run begins."""
        done = self.turns
        fresh = (1 - FIRST) * SPREAD * (1 / (done + SPREAD) - 1 / (done + turns + SPREAD))
        fresh += np.where(done == 0, FIRST, 0)
        anew = who & (self.run <= 1)
        factor = np.exp(growth)
        self.wealth = np.where(who, np.minimum((self.wealth + fresh) * factor, MOST), self.wealth)
        self.run = np.where(who, np.minimum(np.where(anew, 1, self.run) * factor, MOST), self.run)
        self.turns = done + who * turns
        return anew


class Rewards:
    def __init__(self, runs, drop):
        self.drop, self.worse = drop, Suspicions(runs)
        self.candidates, self.baselines, self.settled, self.difference_sum = np.zeros((4, runs))
        self.run_settled, self.run_sum, self.centre, self.size, self.width = np.zeros((5, runs))
        self.mean_candidate, self.mean_baseline = np.full((2, runs), 0.5)
        self.variance, self.pace = np.full(runs, 0.1), np.full(runs, 1 / 3)
        self.stake, self.calm, self.middle, self.share, self.most, self.open = np.zeros((6, runs))
        self.full = np.zeros(runs, bool)
        self.growth, self.n, self.difference, self.noise, self.beside = np.zeros((5, runs))

    def observe(self, y, arm):
        self._begin_rounds()
        full = arm & (self.full | (self.open > module._WAITING - 1))
        self.full |= full
        self.share = np.where(full, np.minimum(2 * self.share, self.most), self.share)
        bets = arm & ~full
        room = np.where(self.open > 0, self.open, self.open + 1)
        part = np.where(arm, 0, np.minimum(self.share, room))
        off = y - self.middle
        self.growth += np.log1p(self.stake * np.where(bets, -1, part) * off)
        self.difference += np.where(bets, y, -part * y)
        self.noise += bets * off**2
        self.beside += (part * off) ** 2
        self.n += bets
        level = ~arm & (part >= room)
        after = np.where(level, np.where(self.open > 0, 0.0, -1.0), self.open + bets - part)
        self.open = after
        self._settle((self.open == 0) & (self.n > 0))
        self._remember(y, arm)

    def _begin_rounds(self):
        new = self.open == 0
        ratio = self.pace / np.maximum(1 - self.pace, 1e-6)
        share = np.clip(module._SPREAD * ratio, 0.02, module._LARGEST)
        middle, spread, aim = self.mean_baseline, self.variance * (1 + share), 2 * self.drop
        most = np.maximum(1.0, share)
        far = module._FAR / np.maximum(1 - middle, most * middle)
        self.most = np.where(new, most, self.most)
        self.stake = np.where(new, np.minimum(aim / (spread + aim * aim), far), self.stake)
        calm = np.minimum(self.drop / (spread + self.drop * self.drop), module._CALM)
        self.calm = np.where(new, calm, self.calm)
        self.share = np.where(new, share, self.share)
        self.middle = np.where(new, middle, self.middle)

    def _settle(self, who):
        anew = self.worse.bet(self.growth, who)
        n, difference = np.where(who, self.n, 0), np.where(who, self.difference, 0)
        self.run_settled = np.where(anew, 0, self.run_settled) + n
        self.run_sum = np.where(anew, 0, self.run_sum) + difference
        self.settled += n
        self.difference_sum += difference
        self.centre += self.calm * difference
        self.size += self.calm * n
        noise = price(self.calm) * self.noise
        noise += price(self.calm * self.share) / self.share**2 * self.beside
        self.width += np.where(who, noise, 0)
        for held in (self.growth, self.n, self.difference, self.noise, self.beside, self.full):
            held[who] = 0

    def _remember(self, y, arm):
        self.candidates += arm
        self.baselines += ~arm
        off = y - np.where(arm, self.mean_candidate, self.mean_baseline)
        self.mean_candidate += arm * off / _counted(self.candidates, 3, module.MEMORY)
        self.mean_baseline += ~arm * off / _counted(self.baselines, 3, module.MEMORY)
        seen = self.candidates + self.baselines
        self.variance += (off * off - self.variance) / _counted(seen, 10, module._LONG)
        self.pace += (arm - self.pace) / _counted(seen, 3, module.MEMORY)

    def failing(self, limits):
        fall = self.run_sum / np.maximum(self.run_settled, 1)
        ruled_out = self.worse.wealth * limits.reward_chance >= 1
        return ruled_out & (self.run_settled > 0) & (fall <= -self.drop)

    def lower(self, chance):
        return (self.centre - self.width + np.log(chance)) / np.maximum(self.size, 1e-12)

    def upper(self, chance):
        return (self.centre + self.width - np.log(chance)) / np.maximum(self.size, 1e-12)


def _counted(seen, prior, most):
    return np.where(seen < most, seen + prior, most)


def price(stake):
    return -np.log1p(-stake) - stake


class Errors:
    """One request at a time."""

    def __init__(self, runs, limit):
        self.limit = limit
        self.above_limit, self.above_baseline = Suspicions(runs), Suspicions(runs)
        self.requests, self.errors, self.beside, self.beside_errors = np.zeros((4, runs))
        self.n, self.e, self.m, self.f = np.zeros((4, runs))
        self.recent, self.recent_beside = np.zeros((2, 2, runs))

    def observe(self, failed, arm):
        low, high = self.limit, min(3 * self.limit, (1 + self.limit) / 2)
        self.requests += arm
        self.errors += arm & failed
        growth = np.where(failed, np.log(high / low), np.log((1 - high) / (1 - low)))
        self.above_limit.bet(growth, arm)
        for recent, who in ((self.recent, arm), (self.recent_beside, ~arm)):
            recent[:, who] *= 0.95
            recent[0] += who
            recent[1] += who & failed
        self.n += arm
        self.e += arm & failed
        self.m += ~arm
        self.f += ~arm & failed
        self.beside += ~arm
        self.beside_errors += ~arm & failed
        self._bet_beside((self.n > 0) & (self.m > 0))

    def _bet_beside(self, who):
        guess = (self.beside_errors - self.f + 20 * self.limit / 5) / (self.beside - self.m + 20)
        usual = np.clip(guess, self.limit / 10, 0.9)
        feared = np.minimum(usual + 2 * self.limit, (1 + usual) / 2)
        common = (self.n * feared + self.m * usual) / np.maximum(self.n + self.m, 1)
        growth = _growth(self.n, self.e, feared, common) + _growth(self.m, self.f, usual, common)
        self.above_baseline.bet(growth, who, self.n)
        for held in (self.n, self.e, self.m, self.f):
            held[who] = 0

    def failing(self, limits):
        tests = (self.above_limit, self.above_baseline)
        ruled_out = np.all([test.wealth * limits.error_chance >= 1 for test in tests], axis=0)
        share, beside = (r[1] / np.maximum(r[0], 1e-9) for r in (self.recent, self.recent_beside))
        hard = (self.requests >= limits.hard_requests) & (share >= limits.hard_share)
        beside = np.maximum(beside, self.beside_errors / np.maximum(self.beside, 1))
        return ruled_out | (hard & (beside < share / 5))


def _growth(requests, errors, of, against):
    return errors * np.log(of / against) + (requests - errors) * np.log((1 - of) / (1 - against))


class Complaints:
    def __init__(self, runs, factor):
        self.factor, self.more = factor, Suspicions(runs)
        self.run_candidate, self.run_expected = np.zeros((2, runs))

    def observe(self, complains, arm, share):
        odds = 1.5 * self.factor
        feared = odds * share / (1 - share + odds * share)
        growth = np.where(arm, np.log(feared / share), np.log((1 - feared) / (1 - share)))
        anew = self.more.bet(growth, complains)
        self.run_candidate = np.where(anew, 0, self.run_candidate) + (complains & arm)
        expected = np.where(complains & ~arm, share / (1 - share), 0)
        self.run_expected = np.where(anew, 0, self.run_expected) + expected

    def failing(self, limits):
        ratio = (self.run_candidate + 1) / (self.run_expected + 1)
        return (self.more.wealth * limits.complaint_chance >= 1) & (ratio >= self.factor)


# --- worlds --------------------------------------------------------------------------------------


def zero_one(rng, runs, t, drop):
    return (rng.random(runs) < 0.5 - drop).astype(float)


def beta(sd):
    """Rewards between 0 and 1 around 0.5 with exactly this deviation."""

    def draw(rng, runs, t, drop):
        mean = 0.5 - drop
        size = mean * (1 - mean) / sd**2 - 1
        return rng.beta(mean * size, (1 - mean) * size, runs)

    return draw


def skewed(rng, runs, t, drop):
    return np.clip(rng.beta(5, 2, runs) - drop, 0, 1)


def clipped_normal(rng, runs, t, drop):
    return np.clip(rng.normal(0.5 - drop, 0.3, runs), 0, 1)


def waves(rng, runs, t, drop):
    """Days and nights: both arms' mean swings between 0.25 and 0.75."""
    return np.clip(rng.normal(0.5 + 0.25 * np.sin(t / 200) - drop, 0.2, runs), 0, 1)


def decline(rng, runs, t, drop):
    """The whole world gets worse, from 0.8 to 0.3."""
    return np.clip(rng.normal(0.8 - 0.5 * min(1, t / 3000) - drop, 0.2, runs), 0, 1)


WORLDS = {
    "0/1": zero_one,
    "beta, sd 0.3": beta(0.3),
    "beta(5, 2)": skewed,
    "normal, sd 0.3, clipped": clipped_normal,
    "waves": waves,
    "decline": decline,
}


def simulate(
    worlds, share, requests, *, runs=2000, drop=0.0, seed=1, limits=None, until=None, **more
):
    """`runs` canaries for each world, looked at after every request.

    `share` is the candidate's share of traffic, or a function of the time that tells it.
    `errors` and `beside` are the error shares of candidate and baseline, `complaints` likewise.
    Answers: candidate requests at the first alarm of each kind and at the first proof (inf: never).
    """
    limits, rng, total = limits or RolloutLimits(), np.random.default_rng(seed), runs * len(worlds)
    error_shares = np.array([more.get("beside", 0.01), more.get("errors", 0.01)])
    rates = np.array([more.get("complaints_beside", 0.05), more.get("complaints", 0.05)])
    tests = {
        "reward": Rewards(total, limits.reward),
        "errors": Errors(total, limits.errors),
        "complaints": Complaints(total, limits.complaints),
    }
    first = {name: np.full(total, np.inf) for name in (*tests, "proof")}
    seen = np.zeros(total)
    for t in range(requests):
        now = share(t) if callable(share) else share
        arm = rng.random(total) < now
        y = np.empty(total)
        for i, draw in enumerate(worlds):
            part = slice(i * runs, (i + 1) * runs)
            y[part] = draw(rng, runs, t, 0.0)
            if drop:
                y[part] = np.where(arm[part], draw(rng, runs, t, drop), y[part])
        chance = rng.random(total)
        seen += arm
        tests["reward"].observe(y, arm)
        if more.get("only") != "reward":
            tests["errors"].observe(chance < error_shares[arm.astype(int)], arm)
            tests["complaints"].observe(1 - chance < rates[arm.astype(int)], arm, now)
        for name, test in tests.items():
            first[name] = np.where(test.failing(limits), np.minimum(first[name], seen), first[name])
        proof = tests["reward"]
        proven = (proof.size > 0) & (proof.lower(limits.promotion_chance) > -limits.reward)
        first["proof"] = np.where(proven, np.minimum(first["proof"], seen), first["proof"])
        if until and seen.min() >= until:
            break
    alarm = np.minimum.reduce([first[name] for name in tests])
    return SimpleNamespace(first=first, alarm=alarm, seen=seen, tests=tests, runs=runs)
