"""Jobs: what may become of them, and the rows that say so, on the twin and on both databases."""

import asyncio
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import pairwise

import msgspec
import pytest

from upswing.contracts import TrainingRequest, TrainingStatus, decode, from_builtins
from upswing.contracts.examples import EXAMPLES
from upswing.contracts.topics import TRAINING_REQUEST, TRAINING_STATUS
from upswing.contracts.training import JobError
from upswing.infra.sql.decisions import Decisions
from upswing.infra.sql.models import DEPLOYED, Models
from upswing.infra.sql.store import open_store, to_microseconds
from upswing.records import Decision, Renewed, Taken
from upswing.train.core import job_states as table
from upswing.train.core.job_states import (
    ACTIVE,
    ENDED,
    TRANSITIONS,
    predecessors,
    queued_status,
    with_state,
)
from upswing.train.jobs.repository import JobRepository

NOW = datetime(2026, 1, 2, 3, 4, 5, 678901, tzinfo=UTC)
LEASE = timedelta(seconds=60)
SECOND = timedelta(seconds=1)
STATES = ("queued", "running", "completed", "failed", "cancelled")


def request(job_id="job-1", *, reason="manual", **changes):
    tree = EXAMPLES[TrainingRequest] | {"training_job_id": job_id, "trigger_reason": reason}
    return from_builtins(TrainingRequest, tree | changes)


@pytest.fixture
def jobs(store):
    return JobRepository(store.database)


async def submit(jobs, job_id="job-1", *, now=NOW, covers_seq=0, submitting=None, **changes):
    return await jobs.submit(
        request(job_id, **changes),
        b"{}",
        queued_status(job_id, now, "waits"),
        now=now,
        covers_seq=covers_seq,
        **(submitting or {}),
    )


async def told(store, subject=TRAINING_STATUS):
    """What the outbox will publish on a subject."""
    return [entry for entry in await store.outbox(1000) if entry.subject == subject]


async def states(store):
    return [decode(TrainingStatus, entry.payload).status for entry in await told(store)]


# ── the table ────────────────────────────────────────────────────────────────────────────────────


def test_every_state_has_its_row_and_the_docstring_says_the_same():
    rows = [
        line.strip("|").split("|")[:2] for line in table.__doc__.splitlines() if line[:1] == "|"
    ]
    said = {
        state.strip(): frozenset(filter(None, (each.strip() for each in after.split(","))))
        for state, after in rows[2:]
    }
    assert said == TRANSITIONS
    assert set(TRANSITIONS) == set(STATES) == {*ACTIVE, *ENDED}


def test_nothing_leads_back_from_an_end():
    assert all(not set(predecessors(state)) & set(ENDED) for state in STATES)


def test_a_status_that_moves_on_leaves_its_error_behind():
    failed = TrainingStatus(
        training_job_id="j",
        timestamp=NOW,
        status="queued",
        error=JobError(message="oom"),
        metadata={"note": "waits", "trained_tokens": 5},
    )
    after = with_state(failed, "running", NOW + SECOND)
    assert after.error is msgspec.UNSET
    assert (after.status, after.metadata) == ("running", {"trained_tokens": 5})


# ── coming in ────────────────────────────────────────────────────────────────────────────────────


async def test_a_job_comes_back_as_it_went_in(store, jobs):
    assert await submit(jobs, priority="high", covers_seq=7) is Taken.STORED
    job = await jobs.get("job-1")
    assert (job.state, job.priority, job.reason, job.covers_seq) == ("queued", 1, "manual", 7)
    assert job.request == request(priority="high")
    assert job.status == queued_status("job-1", NOW, "waits")
    assert (job.created, job.started, job.ended, job.attempt) == (NOW, None, None, 0)
    assert await states(store) == ["queued"]
    assert await jobs.get("job-2") is None


async def test_the_same_again_is_known_and_another_body_is_a_conflict(store, jobs):
    await submit(jobs)
    assert await submit(jobs, now=NOW + SECOND) is Taken.KNOWN
    assert await submit(jobs, requester="somebody else") is Taken.CONFLICT
    assert (await jobs.get("job-1")).request == request()
    assert len(await told(store)) == 1


async def test_a_job_its_journal_entry_and_its_request_are_one_transaction(store, jobs):
    decision = Decision("d-1", "trigger", "manual", "Ann asked.", b"{}", b"{}", NOW)
    await submit(jobs, submitting={"decision": decision, "announce": True})
    assert await Decisions(store.database).get("d-1") == replace(decision, seq=1)
    (published,) = await told(store, TRAINING_REQUEST)
    assert decode(TrainingRequest, published.payload) == request()


async def test_alone_means_no_second_job_whatever_the_reason(store, jobs):
    alone = {"only_if_idle": True}
    assert await submit(jobs, "a", reason="scheduled", submitting=alone) is Taken.STORED
    assert await submit(jobs, "b", reason="scheduled", submitting=alone) is Taken.KNOWN
    assert await submit(jobs, "c", reason="threshold_reached", submitting=alone) is Taken.KNOWN
    assert await submit(jobs, "d", reason="manual") is Taken.STORED
    assert {job.job_id for job in await jobs.active()} == {"a", "d"}


async def test_a_time_of_the_schedule_is_dealt_with_once(store, jobs):
    slot = {"slot": NOW}
    assert await submit(jobs, "a", submitting=slot) is Taken.STORED
    assert await submit(jobs, "b", submitting=slot) is Taken.KNOWN
    assert await submit(jobs, "c", submitting={"slot": NOW + SECOND}) is Taken.STORED


async def test_without_a_word_a_job_covers_all_that_is_stored(store, jobs):
    await jobs.submit(request(), b"{}", queued_status("job-1", NOW, ""), now=NOW)
    assert (await jobs.get("job-1")).covers_seq == 0


# ── a worker's ───────────────────────────────────────────────────────────────────────────────────


async def test_the_most_urgent_goes_first_and_among_equals_the_oldest(store, jobs):
    for job_id, priority in (
        ("a", "low"),
        ("b", "normal"),
        ("c", "urgent"),
        ("d", "normal"),
        ("e", "high"),
    ):
        await submit(jobs, job_id, priority=priority)
    taken = [await jobs.claim("w", NOW, LEASE) for _ in range(6)]
    assert [job.job_id if job else None for job in taken] == ["c", "e", "b", "d", "a", None]


async def test_a_claimed_job_is_running_and_says_so(store, jobs):
    await submit(jobs)
    job = await jobs.claim("w", NOW + SECOND, LEASE)
    assert (job.state, job.worker, job.attempt) == ("running", "w", 1)
    assert (job.started, job.lease) == (NOW + SECOND, NOW + SECOND + LEASE)
    assert job.status.status == "running"
    assert job == await jobs.get("job-1")
    assert await states(store) == ["queued", "running"]


async def test_a_job_waits_for_its_time(store, jobs):
    await submit(jobs)
    await jobs.claim("w", NOW, LEASE)
    await jobs.requeue(
        "job-1",
        recipe=b'{"a":1}',
        failures=b"[1]",
        not_before=NOW + LEASE,
        status=queued_status("job-1", NOW, "again"),
    )
    assert await jobs.claim("w", NOW + LEASE - SECOND, LEASE) is None
    job = await jobs.claim("v", NOW + LEASE, LEASE)
    assert (job.attempt, job.recipe, job.failures, job.worker) == (2, b'{"a":1}', b"[1]", "v")
    assert job.started == NOW, "of the first attempt"
    assert await states(store) == ["queued", "running", "queued", "running"]


async def test_a_dead_workers_job_is_anybodys_when_its_lease_is_over(store, jobs):
    await submit(jobs)
    await jobs.claim("w", NOW, LEASE)
    assert await jobs.claim("v", NOW + LEASE - SECOND, LEASE) is None
    assert await jobs.renew("job-1", "w", NOW + 2 * LEASE) is Renewed.KEPT
    assert await jobs.claim("v", NOW + LEASE, LEASE) is None
    assert (await jobs.claim("v", NOW + 2 * LEASE, LEASE)).worker == "v"
    assert await jobs.renew("job-1", "w", NOW + 3 * LEASE) is Renewed.LOST
    assert await states(store) == ["queued", "running"], "it is no change of state"


async def test_who_has_lost_a_job_changes_nothing_of_it(store, jobs):
    await submit(jobs)
    await jobs.claim("w", NOW, LEASE)
    mine = await jobs.claim("v", NOW + LEASE, LEASE)
    late = with_state(mine.status, "failed", NOW + LEASE)
    await jobs.save_status("job-1", late, announce=True, worker="w")
    await jobs.finish("job-1", "failed", late, b"[]", NOW + LEASE, worker="w")
    await jobs.requeue("job-1", recipe=b"x", failures=b"x", not_before=NOW, status=late, worker="w")
    assert await jobs.get("job-1") == mine


async def test_notes_are_kept_and_announced_when_they_should_be(store, jobs):
    await submit(jobs)
    job = await jobs.claim("w", NOW, LEASE)
    for step, announce in ((1, False), (2, True)):
        await jobs.save_status(
            "job-1", with_state(job.status, "running", NOW, step=step), announce=announce
        )
        assert (await jobs.get("job-1")).status.metadata == {"step": step}
    assert len(await told(store)) == 3


async def test_a_plan_is_remembered(store, jobs):
    await submit(jobs)
    await jobs.save_plan("job-1", b'{"seed":3}', "sha")
    job = await jobs.get("job-1")
    assert (job.recipe, job.snapshot) == (b'{"seed":3}', "sha")


@pytest.mark.parametrize("state", ENDED)
async def test_a_job_ends_once(store, jobs, state):
    await submit(jobs)
    job = await jobs.claim("w", NOW, LEASE)
    await jobs.finish(
        "job-1", state, with_state(job.status, state, NOW + SECOND), b"[7]", NOW + SECOND
    )
    ended = await jobs.get("job-1")
    assert (ended.state, ended.ended, ended.failures) == (state, NOW + SECOND, b"[7]")
    assert await states(store) == ["queued", "running", state]
    for other in (*ENDED, "running"):
        await jobs.finish("job-1", other, with_state(job.status, "failed", NOW), b"[]", NOW)
    assert await jobs.get("job-1") == ended
    assert await jobs.claim("w", NOW + 99 * LEASE, LEASE) is None
    assert await jobs.renew("job-1", "w", NOW) is Renewed.LOST


async def test_after_a_restart_what_ran_is_to_be_had_at_once(store, jobs):
    await submit(jobs)
    await jobs.claim("w", NOW, LEASE)
    found = await jobs.release_orphans(NOW + SECOND)
    again = await jobs.claim("w", NOW + SECOND, LEASE)
    if store.database._postgres:  # another process may be at work on it
        assert (found, again) == ([], None)
    else:
        assert (found, again.attempt) == (["job-1"], 2)


# ── a person's ───────────────────────────────────────────────────────────────────────────────────


async def test_a_queued_job_is_cancelled_at_once(store, jobs):
    await submit(jobs)
    job = await jobs.cancel("job-1", NOW + SECOND)
    assert (job.state, job.ended, job.status.status) == ("cancelled", NOW + SECOND, "cancelled")
    assert await states(store) == ["queued", "cancelled"]
    assert await jobs.cancel("job-1", NOW) == job, "twice changes nothing"
    assert await jobs.cancel("job-2", NOW) is None


async def test_a_running_jobs_worker_is_told_of_a_cancellation(store, jobs):
    await submit(jobs)
    await jobs.claim("w", NOW, LEASE)
    job = await jobs.cancel("job-1", NOW)
    assert (job.state, job.cancel) == ("running", True)
    assert await jobs.renew("job-1", "w", NOW + LEASE) is Renewed.CANCEL


async def test_nobody_begins_a_cancelled_job_again_when_its_worker_has_died(store, jobs):
    await submit(jobs)
    await jobs.claim("w", NOW, LEASE)
    await jobs.cancel("job-1", NOW)
    assert await jobs.claim("v", NOW + LEASE, LEASE) is None
    assert (await jobs.get("job-1")).state == "cancelled"
    assert await states(store) == ["queued", "running", "cancelled"]


async def test_a_requeued_job_that_was_cancelled_meanwhile_does_not_run_again(store, jobs):
    await submit(jobs)
    await jobs.claim("w", NOW, LEASE)
    await jobs.cancel("job-1", NOW)
    again = queued_status("job-1", NOW, "again")
    await jobs.requeue("job-1", recipe=b"{}", failures=b"[]", not_before=NOW, status=again)
    assert await jobs.claim("w", NOW, LEASE) is None
    assert (await jobs.get("job-1")).state == "cancelled"


async def test_jobs_are_listed_newest_first_by_state_and_time(store, jobs):
    for place, job_id in enumerate("abc"):
        await submit(jobs, job_id, now=NOW + place * SECOND)
    await jobs.cancel("b", NOW)

    async def ids(**which):
        return "".join(job.job_id for job in await jobs.list(**which))

    assert await ids() == "cba"
    assert await ids(status="queued") == "ca"
    assert await ids(since=NOW + SECOND) == "cb"
    assert await ids(limit=1) == "c"
    assert [job.job_id for job in await jobs.active()] == ["a", "c"]


# ── two at once ──────────────────────────────────────────────────────────────────────────────────


@pytest.mark.live
async def test_two_processes_never_get_the_same_job(postgres, tmp_path):
    """Each claimer has its own connections to PostgreSQL, as two processes would."""
    stores = [open_store(tmp_path, postgres) for _ in range(4)]
    try:
        await stores[0].prepare()
        claimers = [JobRepository(store.database) for store in stores]
        for place in range(40):
            await submit(claimers[0], f"job-{place:02}")

        async def take_all(jobs, name):
            found = []
            while job := await jobs.claim(name, NOW, LEASE):
                found.append(job.job_id)
            return found

        taken = await asyncio.gather(*(take_all(jobs, f"w{n}") for n, jobs in enumerate(claimers)))
        everything = [job_id for mine in taken for job_id in mine]
        assert sorted(everything) == [f"job-{place:02}" for place in range(40)]
        assert sum(bool(mine) for mine in taken) > 1, "they did compete"
        assert all(early < late for mine in taken for early, late in pairwise(mine))
    finally:
        for store in stores:
            store.close()


@pytest.mark.live
async def test_two_triggers_ask_for_one_job(postgres, tmp_path):
    stores = [open_store(tmp_path, postgres) for _ in range(2)]
    try:
        await stores[0].prepare()
        asked = await asyncio.gather(
            *(
                submit(
                    JobRepository(store.database),
                    f"job-{place}",
                    reason="scheduled",
                    submitting={"only_if_idle": True, "slot": NOW},
                )
                for place, store in enumerate(stores)
            )
        )
        assert sorted(asked) == [Taken.KNOWN, Taken.STORED]
    finally:
        for store in stores:
            store.close()


# ── models ───────────────────────────────────────────────────────────────────────────────────────


async def register(models, job_id, parent=None):
    return await models.register(
        job_id=job_id,
        base_model="tiny",
        parent=parent,
        snapshot="sha",
        path="/m",
        card="/c",
        samples=5,
        final_reward=0.5,
        now=NOW,
    )


async def deploy(store, model_id, at, baseline=0.7):
    sql = "UPDATE models SET state = ?, deployed_us = ?, baseline_reward = ? WHERE model_id = ?"
    params = (DEPLOYED, to_microseconds(at), baseline, model_id)
    await store.database.write(lambda tx: tx.execute(sql, params))


async def test_models_are_numbered_and_a_job_has_one(store):
    models = Models(store.database)
    assert await register(models, "job-1") == "agent-zero-rl-v1"
    assert await register(models, "job-1") == "agent-zero-rl-v1"
    assert await register(models, "job-2", "agent-zero-rl-v1") == "agent-zero-rl-v2"
    model = await models.get("agent-zero-rl-v2")
    assert model == await models.by_job("job-2")
    assert (model.version, model.parent, model.state) == (2, "agent-zero-rl-v1", "trained")
    assert (model.created, model.deployed, model.baseline_reward) == (NOW, None, None)
    assert [each.version for each in await models.list()] == [2, 1]
    assert await models.get("no such") is None


async def test_models_that_were_deployed_since_then(store):
    models = Models(store.database)
    for job_id in ("a", "b", "c"):
        await register(models, job_id)
    await deploy(store, "agent-zero-rl-v1", NOW)
    await deploy(store, "agent-zero-rl-v2", NOW + SECOND)
    found = await models.list(deployed_since=NOW + SECOND)
    assert [each.model_id for each in found] == ["agent-zero-rl-v2"]


async def test_a_models_ancestors_are_found_up_to_its_base(store):
    models = Models(store.database)
    first_one = await register(models, "a", "somebody's model")
    second = await register(models, "b", first_one)
    await register(models, "elsewhere")
    third = await register(models, "c", second)
    assert await models.lineage(third) == ["c", "b", "a"]
    assert await models.lineage("unknown") == []


# ── the journal ──────────────────────────────────────────────────────────────────────────────────


async def test_decisions_come_back_newest_first(store):
    journal = Decisions(store.database)
    for place, stage in enumerate(("trigger", "train", "trigger")):
        at = NOW + place * SECOND
        made = Decision(f"d-{place}", stage, "wait", "Why.", b'{"x":1}', b"{}", at)
        await journal.record(made)
    assert [each.decision_id for each in await journal.list()] == ["d-2", "d-1", "d-0"]
    assert [each.decision_id for each in await journal.list("trigger", limit=1)] == ["d-2"]
    assert [each.decision_id for each in await journal.list(since=NOW + SECOND)] == ["d-2", "d-1"]
    found = await journal.get("d-0")
    assert (found.inputs, found.decided, found.stage) == (b'{"x":1}', NOW, "trigger")
    assert await journal.get("d-9") is None
