"""A controller on twins: a clock that is handed in, simulated traffic, and what came of it."""

import random
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from uuid import UUID

import msgspec
from tests.faulty import Faulty

from upswing.contracts import ModelDeployed, decode
from upswing.contracts.model import ValidationResults
from upswing.contracts.traffic import Counts, read_plan
from upswing.contracts.validation import DifferenceInterval, SuiteReport, ValidationReport
from upswing.deploy.candidates import CandidateChecks
from upswing.deploy.controller import Controller
from upswing.deploy.core.deployment_state import decode_rollout
from upswing.deploy.core.policy import DeployPolicy
from upswing.deploy.core.rows import ObservedReward
from upswing.deploy.environment import DeployEnvironment, DeployTimeouts
from upswing.deploy.in_memory import MemoryBoard, MemoryRollouts, MemoryServing
from upswing.records import ModelRow

START = datetime(2026, 1, 5, 12, tzinfo=UTC)
BASE = "tiny"
LOOK = timedelta(minutes=5)
TICK = timedelta(seconds=8)
"""Real time between two looks: a fast clock of ramps leaves leases alone."""
PASSED = ValidationResults(
    benchmark_passed=True, safety_checks_passed=True, performance_regression=False
)


def model(version, state="trained", **changes):
    fields = {
        "version": version,
        "model_id": f"agent-zero-rl-v{version}",
        "job_id": f"job-{version}",
        "base_model": BASE,
        "parent": None,
        "snapshot": "s",
        "path": f"/models/{version}/final",
        "card": "",
        "state": state,
        "samples": 100,
        "final_reward": 0.7,
        "baseline_reward": None,
        "created": START,
        "deployed": None,
    }
    return ModelRow(**fields | changes)


OWN = SuiteReport(
    "production",
    "benchmark",
    True,
    "pass",
    "",
    0.9,
    0.8,
    DifferenceInterval(0.1, -0.2, 0.4, 9),
    9,
    9,
    {},
    own=True,
)


def report(candidate, current, improvement=0.08, word="pass", lower=None, suites=()):
    """`lower` of the improvement's interval; by default it shows whatever the estimate says."""
    shows = improvement is not None and improvement > 0
    lower = (improvement / 2 if shows else None) if lower is None else lower
    return ValidationReport(
        run_id=f"val-{candidate}",
        candidate=candidate,
        current=current,
        verdict=word,
        reasons=("So it is.",),
        improvement=DifferenceInterval(improvement, lower, None, 40),
        safety=None,
        suites=suites,
        fallen=(),
        results=PASSED,
        started=START,
        ended=START,
        seed=0,
        seeds=(0,),
        judge=None,
    )


class Ground:
    """What outlives a controller: rows, plan, servers, time, and the traffic of a crowd."""

    def __init__(self, seed=1, **policy):
        self.chance = random.Random(seed)
        self.now = self.wall = START
        """The clock of ramps, which runs fast, and the wall's."""
        self.store, self.board = Faulty(MemoryRollouts()), Faulty(MemoryBoard())
        self.serving = Faulty(MemoryServing())
        self.timeouts = DeployTimeouts()
        # Most stories are about one model at a time: those about a holdback ask for it.
        self.policy = msgspec.convert({"holdback": 0.0} | policy, DeployPolicy)
        self.improvement, self.word = 0.08, "pass"
        self.lower = None
        """Of the improvement's interval; None: it shows what the estimate says."""
        self.unmoved = set()
        """Models that training says it has not changed."""
        self.suites = ()
        """What its reports tell of."""
        self.estimated = None
        """What training estimated from logged episodes."""
        self.proved = []
        self.trouble = None
        self.meanwhile = lambda: None
        """What happens while a model is validated."""
        self.reward = {}
        """Model → its mean reward; 0.6 for the others."""
        self.errors = {}
        self.ids = 0

    def new_id(self):
        self.ids += 1
        return UUID(int=self.ids)

    async def prove(self, candidate, current):
        self.proved.append((candidate, current))
        if self.trouble:
            raise self.trouble
        self.meanwhile()
        return report(candidate, current, self.improvement, self.word, self.lower, self.suites)

    async def unchanged(self, row):
        return "Record more." if row.model_id in self.unmoved else None

    async def logged(self, row):
        return self.estimated

    def controller(self, holder="one"):
        env = DeployEnvironment(
            self.store,
            self.board,
            self.serving,
            lambda: self.now,
            lambda: self.wall,
            self.new_id,
            timeouts=self.timeouts,
        )
        return Controller(
            env,
            CandidateChecks(self.prove, self.unchanged, self.logged),
            self.policy,
            base=BASE,
            holder=holder,
        )

    async def started(self, **options):
        made = self.controller(**options)
        await made.start()
        return made

    def trained(self, version, **changes):
        """A new model, trained from whoever answers now."""
        serving = [row for row in self.store.registry.values() if row.state == "deployed"]
        newest = max(serving, key=lambda row: row.deployed or START, default=None)
        parent = newest.model_id if newest else None
        row = model(version, **{"parent": parent} | changes)
        self.store.registry[row.model_id] = row
        return row.model_id

    # ── traffic ──────────────────────────────────────────────────────────────────────────────

    @property
    def plan(self):
        return read_plan(self.board.plan)

    @property
    def shares(self):
        """As a gateway sees them: model → percent."""
        told = {each.model.model_id: each.share for each in self.plan.candidates}
        if self.plan.lease_until is not None and self.plan.lease_until <= self.wall:
            told = {}
        if (held := self.plan.holdback) is not None:
            told[held.model.model_id] = held.share
        rest = 1 - sum(told.values())
        return {
            self.plan.baseline.model_id: round(100 * rest, 6),
            **{name: round(100 * share, 6) for name, share in told.items()},
        }

    def serve(self, episodes, sd=0.2):
        """So many episodes under the plan that holds, scored at once."""
        shares, plan = self.shares, self.plan
        seq = self.store.rewards[-1].seq if self.store.rewards else 0
        tally = self.board.counts.setdefault("gw", {}).setdefault(plan.rollout, {})
        for name in self.chance.choices(list(shares), list(shares.values()), k=episodes):
            seq += 1
            failed = self.chance.random() < self.errors.get(name, 0.01)
            counts = tally.get(name, Counts())
            tally[name] = Counts(counts.requests + 1, counts.errors + failed, 0, 0.0)
            value = self.chance.gauss(self.reward.get(name, 0.6), sd)
            step = f"holdback:{plan.holdback.share:g}" if plan.holdback else ""
            self.store.rewards.append(ObservedReward(seq, name, plan.rollout, value, step))

    async def pass_time(self, controller, spent, per_look=80):
        """Looks every five minutes, with traffic in between; the lease is renewed meanwhile."""
        until = self.now + spent
        while self.now < until:
            self.now += LOOK
            self.wall += TICK
            if self.plan.lease_until is not None:
                await controller.renew()
            self.serve(per_look)
            await controller.tick()

    # ── what came of it ──────────────────────────────────────────────────────────────────────

    def rollout(self, model_id):
        found = [row for row in self.store.rollouts.values() if row.model_id == model_id]
        return decode_rollout(found[-1])

    def state(self, model_id):
        return self.store.registry[model_id].state

    @property
    def events(self):
        told = [decode(ModelDeployed, body) for body in self.store.messages]
        return [
            SimpleNamespace(
                model=each.model_info.model_id,
                event=each.metadata["event"],
                share=each.deployment_config.traffic_percentage,
                about=each.metadata,
                whole=each,
            )
            for each in told
        ]

    @property
    def kinds(self):
        return [decision.kind for decision in self.store.decisions]
