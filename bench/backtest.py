"""How long does a changed policy take on ten thousand decisions, and is a cause that was planted found?

    python -m bench backtest

The journal is written by a real controller and a real trigger on twins (`tests/monitor/journals.py`), in the store; the
time is the processor's, of one backtest from the store's rows to the report, the least of three.
"""

import asyncio
import time
from datetime import timedelta

from bench.harness import Row
from tests.deploy.controlling import START
from tests.monitor.journals import TriggerGround, many, rollout_journal, validation_decision
from tests.monitor.planted import CAUSES, planted

from upswing.app.backtest import parse_policy, replay_journal
from upswing.infra.sql.decisions import Decisions, insert_decision
from upswing.infra.sql.store import open_in_memory_store
from upswing.monitor.core.failures import compare_failures

DECISIONS, ROUNDS, SEEDS = 10_000, 3, 100
CHANGED = """
[trigger]
threshold = 2500
[deploy]
ramp_hours = 2.0
[deploy.limits]
reward = 0.02
errors = 0.02
[validate]
safety_reach = 0.02
"""


def rows():
    return [*asyncio.run(_backtests()), *_planted()]


async def _journal():
    found = []
    for seed, story in enumerate(({}, {"reward": 0.45}, {"errors": 0.15}, {"reward": 0.7})):
        found += (await rollout_journal(seed, **story))[0]
    found += TriggerGround(1, per_hour=400).run(24 * 30)[:40]
    found.append(validation_decision())
    return many(found, DECISIONS)


async def _backtests():
    store = open_in_memory_store()
    await store.prepare()
    journal = await _journal()
    await store.database.write(lambda tx: [insert_decision(tx, each) for each in journal])
    found = []
    for name, policy in (("the policy of its time", ""), ("four tables changed", CHANGED)):
        spent, report = [], None
        for _ in range(ROUNDS):
            begin = time.process_time()
            report = await replay_journal(
                Decisions(store.database),
                parse_policy(policy),
                START - timedelta(days=1),
                START + timedelta(days=400),
            )
            spent.append(time.process_time() - begin)
        found.append(
            Row(
                name=f"backtest, {DECISIONS:,} decisions, {name}",
                value=min(spent),
                target=5.0,
                better="lower",
                unit="s",
                peer=f"{report.total} differ; {sum(map(len, (e.inputs for e in journal))) / 1e6:.0f} MB",
            )
        )
    store.close()
    return found


def _planted():
    """Shares of seeds: the planted cause comes first; where there is none, nothing is found."""
    first = min(
        sum(_is_first(planted(seed, cause), name) for seed in range(SEEDS)) / SEEDS
        for name, cause in CAUSES.items()
    )
    quiet = sum(not _found(planted(seed, usual=0.1)) for seed in range(1000, 1000 + SEEDS)) / SEEDS
    return [
        Row(
            name="failure analysis: planted cause first, worst of 8 kinds",
            value=first,
            target=0.95,
            unit="",
        ),
        Row(name="failure analysis: no cause, no finding", value=quiet, target=0.95, unit=""),
    ]


def _found(facts):
    sides = [[each for each in facts if each.candidate is side] for side in (True, False)]
    return compare_failures(*sides).findings


def _is_first(facts, name):
    findings, (feature, value) = _found(facts), name
    return bool(findings) and (
        findings[0].feature == feature and findings[0].value.startswith(value)
    )
