"""Journals to replay: what a real controller, trigger and verdict write down while a crowd is simulated."""

import random
from dataclasses import replace
from datetime import timedelta
from uuid import UUID

import msgspec

from tests.deploy.controlling import START, Ground
from upswing.contracts.validation import DifferenceInterval, SuiteReport
from upswing.dataset.groups import Learnable
from upswing.records import Decision
from upswing.trigger.core.decide import TrainNow, decide_training, due_slot
from upswing.trigger.core.inputs import ActiveJob, DeployedModel, TriggerInputs, TriggerRules
from upswing.validate.core.replay import encode_inputs, replay_verdict
from upswing.validate.core.verdict import ValidationPolicy

HOUR = timedelta(hours=1)


async def rollout_journal(seed=1, *, reward=0.6, errors=0.01, hours=12, per_look=80, **policy):
    """The decisions of one rollout, and the ground on which it happened."""
    ground = Ground(seed, **policy)
    name = ground.trained(1)
    ground.reward[name], ground.errors[name] = reward, errors
    controller = await ground.started()
    await controller.admit()
    for _ in range(int(hours)):
        if ground.rollout(name).ended is not None:
            break
        await ground.pass_time(controller, HOUR, per_look)
    return list(ground.store.decisions), ground


class TriggerGround:
    """Trajectories come evenly, and a real `decide_training` looks every five minutes."""

    def __init__(self, seed=1, *, per_hour=100, job_hours=3, **rules):
        self.chance = random.Random(seed)
        self.rules = TriggerRules(**rules)
        self.per_hour, self.job_hours = per_hour, job_hours
        self.now, self.new, self.seq = START, 0.0, 0.0
        self.slot, self.busy_until, self.kind = START, None, ""
        self.decisions, self.jobs = [], []

    def run(self, hours):
        for _ in range(int(hours * 12)):
            self.now += timedelta(minutes=5)
            came = self.per_hour / 12 * self.chance.uniform(0.7, 1.3)
            self.new, self.seq = self.new + came, self.seq + came
            self.look()
        return self.decisions

    def look(self):
        busy = self.busy_until is not None and self.now < self.busy_until
        inputs = TriggerInputs(
            self.now,
            self.rules,
            new=int(self.new),
            newest_seq=int(self.seq),
            last_slot=self.slot,
            active=(ActiveJob("job", "", int(self.seq)),) if busy else (),
        )
        if not busy and (due_slot(inputs) or inputs.new >= self.rules.threshold):
            pool = Learnable(trajectories=5000, groups=100, usable=80)
            inputs = replace(inputs, pool=pool)
        choice = decide_training(inputs)
        trains = isinstance(choice, TrainNow)
        kind = choice.reason if trains else choice.kind.value
        if trains or choice.slot or kind != self.kind:
            self.decisions.append(_decision("trigger", kind, choice, inputs, len(self.decisions)))
        self.kind, self.slot = kind, due_slot(inputs) or self.slot
        if trains:
            self.jobs.append(self.now)
            self.new, self.busy_until = 0.0, self.now + timedelta(hours=self.job_hours)


def _decision(stage, kind, choice, inputs, number):
    encoded, outcome = msgspec.json.encode(inputs), msgspec.json.encode(choice)
    name = str(UUID(int=number))
    return Decision(name, stage, kind, choice.sentence, encoded, outcome, inputs.now)


def degraded(mean, drop=0.10, error=0.01):
    """A decision about a model that earns `mean` and once earned 0.7."""
    deployed = DeployedModel("m", mean, 500, 0.7, error)
    pool = Learnable(trajectories=5000, groups=100, usable=80)
    inputs = TriggerInputs(START, TriggerRules(drop=drop), deployed, last_slot=START, pool=pool)
    choice = decide_training(inputs)
    kind = choice.reason if isinstance(choice, TrainNow) else choice.kind.value
    return _decision("trigger", kind, choice, inputs, 1)


def validation_decision(
    run_id="val-1", *, safety=(-0.01, -0.08, 0.06), score=0.8, at=START, **policy
):
    """A verdict over one suite of ability and one of safety."""
    difference = DifferenceInterval(0.1, 0.02, 0.2, 40)
    harm = DifferenceInterval(*safety, 40)
    report = _report(run_id, difference, harm, score)
    inputs = encode_inputs(report, ValidationPolicy(**policy))
    outcome, sentence = replay_verdict(inputs)
    return Decision(f"d-{run_id}", "validate", "validation", sentence, inputs, outcome, at)


def _report(run_id, difference, harm, score):
    from tests.deploy.controlling import report

    suites = tuple(
        SuiteReport(name, kind, kind != "safety", "pass", "", score, 0.8, each, 40, 40, {})
        for name, kind, each in (
            ("world:desk", "benchmark", difference),
            ("safety_refusal", "safety", harm),
        )
    )
    made = report("m", "base", suites=suites)
    return msgspec.structs.replace(made, run_id=run_id, improvement=difference, safety=harm)


def many(decisions, count):
    """So many, in the order of time: the same stories again, with ids and rollouts of their own."""
    found, turn = [], 0
    while len(found) < count:
        turn += 1
        for each in decisions:
            mark = f"-{turn}".encode()
            inputs = each.inputs
            for key in (b'"rollout_id":"', b'"model_id":"'):
                inputs = inputs.replace(key, key + mark)
            found.append(replace(each, decision_id=f"decision-{len(found)}", inputs=inputs))
    return found[:count]
