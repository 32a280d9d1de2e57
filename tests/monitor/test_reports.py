"""Reports over real rows: every figure worked out by hand, on all databases; and over an empty store."""

import re
from collections import Counter
from datetime import timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.monitor.report_cases import (
    ANSWERS,
    BAD,
    BASE,
    END,
    START,
    end_job,
    fill_week,
    make_model,
    score,
)
from upswing.contracts import ReportNotice, decode
from upswing.contracts.topics import REPORT
from upswing.monitor.core.costs import PriceList
from upswing.monitor.core.document import Bullets, Document, Paragraph, Table, to_markdown
from upswing.monitor.core.model_figures import MOST_MODELS, OTHER
from upswing.monitor.core.report_periods import ReportSchedule, day_until, week_until
from upswing.monitor.deliveries import DeliveryQueue, Recipient
from upswing.monitor.figure_reader import FigureReader
from upswing.monitor.report_builder import ReportBuilder, html_of_report
from upswing.monitor.report_repository import ReportRepository
from upswing.monitor.reporter import Reporter, ReportPolicy
from upswing.monitor.usage import CostReader, UsageRecorder

PRICES = PriceList(training_hour=4.0, million_tokens=5.0)


async def requests():
    return {ANSWERS: (200, 3)}


def builder(store):
    return ReportBuilder(store.database, PRICES, BASE, requests=requests)


@pytest.fixture
async def week(store):
    await fill_week(store)
    await UsageRecorder(store.database, clock=lambda: END + timedelta(hours=1)).record()
    return store


async def test_the_weekly_report_says_what_the_rows_say(week):
    built = await builder(week).period(week_until(END))
    figures = built.figures
    assert (figures.trajectories, figures.jobs_completed, figures.jobs_failed) == (23, 2, 1)
    # twenty of 0.4 and 0.8, and one of 0.1
    assert figures.reward_mean == pytest.approx(12.1 / 21)
    models = {each.model_id: each for each in figures.models}
    assert list(models) == [ANSWERS, BAD]
    mine = models[ANSWERS]
    assert (mine.trajectories, mine.faults, mine.outcomes, mine.voices) == (22, 2, 20, 20)
    assert mine.reward_mean == pytest.approx(0.6)
    assert mine.reward_deviation == pytest.approx(0.2)
    assert mine.completion_rate == pytest.approx(0.75)
    assert mine.satisfaction == pytest.approx((10 + 2 * 0.25 + 8 * 0.5) / 20)
    assert (mine.complaints, mine.complaint_rate) == (2, pytest.approx(0.1))
    assert (mine.turns, mine.lint_score, mine.linted) == (8, pytest.approx(0.54), 20)
    assert (mine.pnl_mean, mine.pnl_total, mine.win_rate) == (10, 200, pytest.approx(0.6))
    assert mine.error_rate == pytest.approx(2 / 22)
    assert (mine.requests, mine.request_error_rate) == (200, pytest.approx(0.015))
    assert figures.current.model_id == ANSWERS
    assert figures.current.delta == pytest.approx(0.1)
    assert figures.current.against == "what it earned when it was promoted"
    assert [(each.model_id, each.outcome, each.seconds) for each in figures.deployments] == [
        (BAD, "rolled back", 30.0),
        (ANSWERS, "promoted", None),
    ]


SCORES = {
    "Improvement per training cycle": (0.05, "met"),
    "Training success rate": (2 / 3, "missed"),
    "Deployment success rate": (0.5, "missed"),
    "Mean time to rollback": (30.0, "met"),
    "False rollback rate": (0.0, "met"),
    "Task completion rate": ((0.75 - 0.5) / 0.5, "met"),
    "User satisfaction": ((0.725 - 0.4) / 0.4, "met"),
    "Turns of a trajectory": (-0.2, "met"),
    "Linter score": ((0.54 - 0.5) / 0.5, "missed"),
    "Complaints": (-0.5, "met"),
}


async def test_the_scorecard_holds_every_metric_against_its_target(week):
    card = (await builder(week).period(week_until(END))).figures.scorecard
    assert {each.name: (each.value, each.verdict) for each in card} == {
        name: (pytest.approx(value), verdict) for name, (value, verdict) in SCORES.items()
    }
    assert [each.group for each in card] == ["technical"] * 5 + ["business"] * 5
    assert all(each.evidence and each.target for each in card)


async def test_a_version_has_one_cost_figure_of_three_parts(week):
    figures = (await builder(week).period(week_until(END))).figures
    costs = {each.model_id: each for each in figures.costs.models}
    mine, bad = costs[ANSWERS], costs[BAD]
    # judge: 1.5 paid, one group with three members of v1 and one of v2
    assert (mine.training_usd, mine.judge_usd, mine.serving_usd) == (3.0, 1.125, 0.18)
    assert mine.total_usd == pytest.approx(4.305)
    assert (bad.training_usd, bad.judge_usd, bad.total_usd) == (2.0, 0.375, 2.375)
    assert figures.costs.without_model == {"training_usd": 1.5, "judge_usd": 0.0}
    assert figures.costs.total_usd == pytest.approx(4.305 + 2.375 + 1.5)
    assert (mine.tokens, mine.uncounted) == (36_000, 4)
    whole = {each.model_id: each for each in figures.lifetime.models}
    assert whole[BASE].serving_usd == pytest.approx(20 * 1000 * 5 / 1e6)
    assert whole[ANSWERS].judge_usd == pytest.approx(1.125)
    assert whole[ANSWERS].total_usd == pytest.approx(4.305)


async def test_costs_are_added_up_once_however_often_and_by_days(week):
    recorder = UsageRecorder(week.database, clock=lambda: END + timedelta(hours=1))
    before = await CostReader(week.database, PRICES).table()
    assert await recorder.record() == 0
    assert await CostReader(week.database, PRICES).table() == before
    later = await CostReader(week.database, PRICES).table(since=START)
    assert BASE not in {each.model_id for each in later.models}
    assert later.total_usd == pytest.approx(before.total_usd - 0.1 - 0.0, abs=1e-6)


async def test_recommendations_name_the_figure_that_they_rest_on(week):
    found = (await builder(week).period(week_until(END))).figures.recommendations
    by_rule = {each.rule: each for each in found}
    assert set(by_rule) == {"training_failed", "rolled_back"}
    assert by_rule["training_failed"].evidence == "1 of 3 jobs failed, 1 of them with OOM."
    assert by_rule["training_failed"].sentence.startswith("Training ran out of memory")
    assert by_rule["rolled_back"].evidence == "8 % failed."


async def test_the_text_and_the_page_show_the_same(week):
    built = await builder(week).period(week_until(END))
    row = built.row("weekly-2026-W02", "weekly", (START, END), END)
    text, page = row.text.decode(), html_of_report(row)
    for part in (
        "# Weekly report, 5 January 2026 to 12 January 2026",
        "| Training success rate | \\> 90 % | 66.7 % | missed |",
        "| v1 | $4.30 | $3.00 | $1.12 | $0.18 | 36,000 |",
    ):
        assert part in text, text
    assert "`▁▁▁▁`" in text or "`" in text.split("Reward of each model by day")[1].split("\n")[1]
    assert page.count("<svg ") == 2
    assert "<td>Training success rate</td><td>&gt; 90 %</td><td>66.7 %</td><td>missed</td>" in page
    assert "http" not in page.replace("http-equiv", "")  # nothing is loaded from anywhere


async def test_the_daily_summary_has_every_line_of_the_profile(week):
    built = await builder(week).period(day_until(START + timedelta(days=5)))
    text = built.row("daily-2026-01-10", "daily", (START, END), END).text.decode()
    for line in (
        "- Trajectories collected: 3",
        "- Average reward: 0.100 ± 0.000",
        "- Training jobs: 1 completed, 1 failed",
        "- Current model: v1 (deployed 2026-01-05 10:00)",
        "- Model performance: –",
        "## Issues",
        "## Recommendations",
    ):
        assert line in text, text


async def test_a_job_report_has_every_line_of_the_profile(week):
    built = await builder(week).job("job-1")
    text = built.row("job-job-1", "job", (START, END), END).text.decode()
    for line in (
        "- Training job ID: job-1",
        "- Model: v1",
        "- Duration: 1.00 h, 1 attempt",
        "- Samples used: 100",
        "- Final reward: 0.600",
        "- Improvement: +20.0 %",
        "- Validation: passed",
        "- Deployment: promoted",
        "- Cost: $3.00",
    ):
        assert line in text, text
    failed = (await builder(week).job("job-3")).figures
    assert (failed.state, failed.error, failed.deployment) == ("failed", "OOM", "none")
    assert failed.recommendations[0].rule == "training_failed"
    assert await builder(week).job("nobody") is None


async def test_an_empty_store_has_reports_that_say_so(store):
    for period in (day_until(END), week_until(END)):
        built = await builder(store).period(period)
        row = built.row(period.report_id, period.kind, (period.start, period.end), END)
        text, page = row.text.decode(), html_of_report(row)
        assert "Trajectories collected: 0" in text
        assert "Average reward: none was earned" in text
        assert "Current model: tiny (the base)" in text
        assert "No model did any work." in text
        assert "None: no alert was open." in text
        assert "upswing doctor" in text
        assert page.startswith("<!doctype html>")
        if period.kind == "weekly":
            assert {each.verdict for each in built.figures.scorecard} == {"unknown"}


async def test_a_period_of_very_many_counts_the_newest_and_says_so(store):
    for number in range(6):
        await score(store, BASE, number / 10, START + timedelta(hours=number))
    sums = await FigureReader(store.database, most=4).period(START, END)
    assert sums.truncated
    (counted,) = sums.by_model().values()
    assert (counted.trajectories, counted.reward.total) == (4, pytest.approx(0.2 + 0.3 + 0.4 + 0.5))


# ── once ─────────────────────────────────────────────────────────────────────────────────────────


class Bench:
    """A reporter with a clock that the test sets."""

    def __init__(self, store, folder, now, **policy):
        self.now, self.store = now, store
        self.reports = ReportRepository(
            store.database, [Recipient("ops"), Recipient("p", reports=False)]
        )
        self.policy = ReportPolicy(**policy)
        self.folder = folder

    async def make(self):
        """A new process each time."""
        reporter = Reporter(
            builder(self.store), self.reports, self.folder, self.policy, clock=lambda: self.now
        )
        return await reporter.make_due()


async def test_a_period_has_one_report_across_restarts_and_whatever_the_clock_does(store, tmp_path):
    bench = Bench(store, tmp_path, START - timedelta(hours=3))  # Monday 05:00, the first start
    assert await bench.make() == []
    bench.now = START  # 08:00
    assert await bench.make() == ["daily-2026-01-05", "weekly-2026-W01"]
    assert await bench.make() == []
    bench.now = START + timedelta(
        days=3, hours=5
    )  # it was away: what was missed is made up for once
    assert await bench.make() == ["daily-2026-01-08"]
    bench.now = START - timedelta(days=1)  # the clock is set back
    assert await bench.make() == []
    bench.now = START + timedelta(days=365)  # and far ahead
    assert await bench.make() == ["daily-2027-01-05", "weekly-2026-W53"]
    bench.now = START + timedelta(days=4)  # and right again
    assert await bench.make() == ["daily-2026-01-09"]
    assert await bench.make() == []
    messages = [each for each in await store.outbox() if each.subject == REPORT]
    names = [decode(ReportNotice, each.payload).report_id for each in messages]
    assert names == [
        "daily-2026-01-05",
        "weekly-2026-W01",
        "daily-2026-01-08",
        "daily-2027-01-05",
        "weekly-2026-W53",
        "daily-2026-01-09",
    ]
    assert len(await DeliveryQueue(store.database).of_notice("daily-2026-01-05")) == 1
    assert (
        (tmp_path / "daily-2026-01-05.md").read_text().startswith("# Daily summary, 5 January 2026")
    )
    assert (tmp_path / "daily-2026-01-05.html").exists()


async def test_a_first_start_by_a_clock_that_was_ahead_owes_reports_from_now_on(store, tmp_path):
    bench = Bench(store, tmp_path, START + timedelta(days=3650))
    assert await bench.make() == []
    bench.now = START + timedelta(hours=1)
    assert await bench.make() == []
    bench.now = START + timedelta(days=1)
    assert await bench.make() == ["daily-2026-01-06"]


async def test_a_jobs_report_waits_for_its_model_and_comes_once(week, tmp_path):
    none = ReportSchedule(None, None)
    bench = Bench(week, tmp_path, START, schedule=none, job_waits=timedelta(hours=6))
    assert await bench.make() == ["job-job-1", "job-job-2", "job-job-3"]
    bench.now = END
    assert await bench.make() == []
    await end_job(week, "job-4", "completed", END + timedelta(hours=1))
    await make_model(week, "job-4", END + timedelta(hours=1))
    bench.now = END + timedelta(hours=2)
    assert await bench.make() == []  # its model is not validated yet
    bench.now = END + timedelta(hours=8)
    assert await bench.make() == ["job-job-4"]
    (row,) = await bench.reports.list(kind="job", job_id="job-4")
    assert "- Validation: pending" in row.text.decode()


async def test_reports_are_listed_by_pages_and_forgotten_when_old(store, tmp_path):
    bench = Bench(store, tmp_path, START)
    await bench.make()
    for day in range(1, 6):
        bench.now = START + timedelta(days=day)
        await bench.make()
    first = await bench.reports.list(kind="daily", limit=3)
    rest = await bench.reports.list(kind="daily", before_seq=first[-1].seq, limit=3)
    assert [each.report_id[-2:] for each in (*first, *rest)] == ["10", "09", "08", "07", "06"]
    assert await bench.reports.prune(START + timedelta(days=3)) == 2


async def test_models_that_anybody_made_up_are_told_together(store):
    """One key can name a new model in each trajectory: the report stays as small, and says what the others did."""
    for number in range(MOST_MODELS + 60):
        await score(
            store, f"made-up-{number}", 0.5, START + number * timedelta(hours=1), tokens=1000
        )
    for _ in range(3):
        await score(store, BASE, 0.9, START + timedelta(hours=2), tokens=1000)
    await UsageRecorder(store.database, clock=lambda: END + timedelta(hours=1)).record()
    built = await builder(store).period(week_until(END))
    figures, text = built.figures, to_markdown(built.document)
    assert (
        sum(each.trajectories for each in figures.models)
        == figures.trajectories
        == MOST_MODELS + 63
    )
    assert (figures.models[0].model_id, figures.models[0].trajectories) == (OTHER, 61)
    assert (len(figures.models), figures.models[1].model_id) == (MOST_MODELS + 1, BASE)
    assert text.count("made-up-") < 150
    for table in (figures.costs, figures.lifetime):
        assert len(table.models) <= MOST_MODELS + 1
        assert sum(each.trajectories for each in table.models) == figures.trajectories
        assert abs(sum(each.total_usd for each in table.models) - table.total_usd) < 0.01


# ── hostile text ─────────────────────────────────────────────────────────────────────────────────

_SIGNS = [*"`*_~[]()!<>|#\\-+=1. :@x&\n\t$", "``", "`|`", "---", "1. ", "&lt;", "\u202e", "<b>"]
_LINKS = ["<img src=x>", "[a](http://e.example)", "![a](b)", "www.e.example", "http://e.example"]
_PIECES = st.lists(st.sampled_from([*_SIGNS, *_LINKS, "a@e.example"]), max_size=14).map("".join)
_OURS = {"text", "text_special", "code_inline"}


@settings(max_examples=400)
@given(_PIECES)
def test_no_text_becomes_markup_in_markdown(text):
    reader = pytest.importorskip("markdown_it", reason="markdown-it-py is not installed")
    blocks = (
        Paragraph(text),
        Bullets((text, text)),
        Table((text, "b"), ((text, text), ("c", "d"))),
    )
    tokens = (
        reader.MarkdownIt("commonmark")
        .enable(["table", "strikethrough"])
        .parse(to_markdown(Document("t", (Paragraph("x"), *blocks, Paragraph("x")))))
    )
    kinds = Counter(each.type for each in tokens)
    inline = {part.type for each in tokens for part in each.children or ()}
    assert inline <= _OURS, text
    assert (kinds["heading_open"], kinds["list_item_open"], kinds["table_open"]) == (1, 2, 1), text
    assert (kinds["th_open"], kinds["td_open"], kinds["hr"], kinds["html_block"]) == (2, 4, 0, 0), (
        text
    )


@given(_PIECES)
def test_nothing_in_markdown_looks_like_a_link(text):
    """Many readers take an address for a link without any markup; in code they do not."""
    said = re.sub(r"(?<!\\)`[^`]*`", "", to_markdown(Document("t", (Paragraph(text),))))
    assert not re.search(r"(?i)[^\\]://|www\.|[^\\]@", said), said
