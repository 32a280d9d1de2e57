"""Validations in the store: begun once, ended once, with their decision."""

from datetime import UTC, datetime, timedelta

import pytest

from upswing.contracts.model import ValidationResults
from upswing.contracts.validation import DifferenceInterval, ValidationReport
from upswing.infra.sql.decisions import Decisions
from upswing.records import Decision
from upswing.validate.repository import Validations

NOON = datetime(2026, 1, 2, 12, tzinfo=UTC)
LATER = NOON + timedelta(minutes=9)
SUITES = ("data_analysis", "safety_bias")


@pytest.fixture
def rows(store):
    return Validations(store.database)


def report(run_id="r1", candidate="new", current="old", estimate=0.25, suites_=(), **more):
    return ValidationReport(
        run_id=run_id,
        candidate=candidate,
        current=current,
        verdict="pass",
        reasons=("Good.",),
        improvement=DifferenceInterval(estimate, 0.1, 0.4, 24),
        safety=None,
        suites=suites_,
        fallen=(),
        results=ValidationResults(
            benchmark_passed=True, safety_checks_passed=True, performance_regression=False
        ),
        started=NOON,
        ended=LATER,
        seed=0,
        seeds=(0,),
        judge=None,
        **more,
    )


def decision(name="d1"):
    return Decision(name, "validate", "validation", "It is good.", b"{}", b"{}", LATER)


async def done(rows, run_id, candidate="new", current="old"):
    await rows.begin(run_id, candidate, current, SUITES, NOON)
    await rows.finish(
        report(run_id, candidate, current), f"file:///{run_id}", decision(run_id), LATER
    )


async def test_a_validation_is_begun_once(rows):
    first = await rows.begin("r1", "new", "old", SUITES, NOON)
    assert (first.state, first.suites, first.started) == ("running", SUITES, NOON)
    assert await rows.begin("r1", "other", "old", ("safety_bias",), LATER) == first
    assert [row.run_id for row in await rows.unfinished()] == ["r1"]


async def test_its_end_is_one_with_its_decision(rows, store):
    await rows.begin("r1", "new", "old", SUITES, NOON)
    assert await rows.finish(report(), "s3://b/r1", decision(), LATER)
    row = await rows.get("r1")
    assert (row.state, row.verdict, row.improvement, row.ended) == ("done", "pass", 0.25, LATER)
    assert (row.report, row.artifact, row.decision_id) == (report(), "s3://b/r1", "d1")
    assert row.sentence == "It is good."
    assert (await Decisions(store.database).get("d1")).kind == "validation"
    assert await rows.unfinished() == []


async def test_it_ends_once(rows, store):
    await done(rows, "r1")
    assert not await rows.finish(report(estimate=0.5), "elsewhere", decision("d2"), LATER)
    assert (await rows.get("r1")).improvement == 0.25
    assert await Decisions(store.database).get("d2") is None
    await rows.fail("r1", "Too late.", LATER)
    assert (await rows.get("r1")).state == "done"


async def test_one_that_failed_says_why_and_may_be_begun_anew(rows):
    await rows.begin("r1", "new", "old", SUITES, NOON)
    await rows.fail("r1", "There is no Docker.", LATER)
    row = await rows.get("r1")
    assert (row.state, row.sentence, row.ended, row.report) == (
        "failed",
        "There is no Docker.",
        LATER,
        None,
    )
    again = await rows.begin("r1", "new", "old", SUITES, LATER)
    assert (again.state, again.sentence, again.ended) == ("running", None, None)


async def test_a_claim_holds_until_its_lease_ends(rows):
    await rows.begin("r1", "new", "old", SUITES, NOON)
    assert await rows.claim("r1", "one", NOON, LATER)
    assert await rows.claim("r1", "one", NOON, LATER), "it goes on"
    assert not await rows.claim("r1", "two", NOON, LATER)
    assert not await rows.claim("r1", "two", LATER - timedelta(microseconds=1), LATER)
    assert await rows.claim("r1", "two", LATER, LATER + timedelta(minutes=1))
    assert not await rows.claim("r1", "one", LATER, LATER)
    assert not await rows.claim("r9", "one", LATER, LATER)


async def test_only_its_holder_ends_it(rows, store):
    await rows.begin("r1", "new", "old", SUITES, NOON)
    await rows.claim("r1", "one", NOON, LATER)
    assert not await rows.finish(report(), "", decision(), LATER, "two")
    assert not await rows.fail("r1", "It broke.", LATER, "two")
    assert not await rows.fail("r1", "It broke.", LATER)
    assert (await rows.get("r1")).state == "running"
    assert await Decisions(store.database).get("d1") is None
    assert await rows.finish(report(), "", decision(), LATER, "one")
    assert not await rows.claim("r1", "one", LATER, LATER), "it has ended"


async def test_what_is_let_go_or_begun_anew_is_anybodys(rows):
    await rows.begin("r1", "new", "old", SUITES, NOON)
    await rows.claim("r1", "one", NOON, LATER)
    await rows.release("r1", "two")
    assert not await rows.claim("r1", "two", NOON, LATER)
    await rows.release("r1", "one")
    assert await rows.claim("r1", "two", NOON, LATER)
    await rows.fail("r1", "It broke.", NOON, "two")
    await rows.begin("r1", "new", "old", SUITES, NOON)
    assert await rows.claim("r1", "three", NOON, LATER)


async def test_after_a_restart_claims_end_where_only_one_process_can_be(rows, store):
    await rows.begin("r1", "new", "old", SUITES, NOON)
    await rows.claim("r1", "before", NOON, LATER)
    await rows.release_orphans("now")
    several = await store.database.read(lambda tx: tx.postgres)
    assert await rows.claim("r1", "now", NOON, LATER) is not several


async def test_an_improvement_that_is_no_number_is_kept_as_none(rows):
    await rows.begin("r1", "new", "old", SUITES, NOON)
    await rows.finish(report(estimate=None), "", decision(), LATER)
    assert (await rows.get("r1")).improvement is None


async def test_reports_are_found_by_their_models(rows):
    await done(rows, "r1", "v1", "old")
    await done(rows, "r2", "v2", "old")
    await done(rows, "r3", "v1", "old")
    await rows.begin("r4", "v1", "old", SUITES, NOON)
    assert (await rows.of_pair("v1", "old")).run_id == "r3"
    assert (await rows.of_pair("old", "v1")).run_id == "r3"
    assert await rows.of_pair("v1", "v2") is None
    assert (await rows.of_candidate("v2")).run_id == "r2"
    assert await rows.of_candidate("old") is None
    assert [row.run_id for row in await rows.newest(2)] == ["r3", "r2"]
    assert await rows.get("r9") is None


async def test_a_store_of_an_older_version_has_none(rows, store):
    await store.database.write(lambda tx: tx.execute("DROP TABLE validations"))
    assert await rows.of_pair("a", "b") is None
    assert await rows.newest() == []
