"""What would another policy have decided?"""

from __future__ import annotations

from nicegui.element import Element

from upswing.contracts.backtest import BacktestReport, DecisionDifference
from upswing.dashboard.core.text import one_line
from upswing.dashboard.core.wording import count, moment, signed
from upswing.dashboard.widgets.actions import notify
from upswing.dashboard.widgets.context import PageContext
from upswing.dashboard.widgets.elements import Field, Rows, Tag, box, button, fact_list
from upswing.dashboard.widgets.frame import page_head
from upswing.errors import UpswingError

_SINCE = (("7d", "last week"), ("30d", "last month"), ("13w", "last quarter"))
_EXAMPLE = "[deploy.limits]\nreward = 0.03\n\n[trigger]\nthreshold = 2000\n"
_COLUMNS = (
    ("what", "Decision"),
    ("then", "Then"),
    ("now", "With the changed policy"),
    ("when", "When", "slim"),
)


def backtest_page(page: PageContext) -> None:
    with page.begin():
        lead = "Every decision of the journal under a changed policy. Nothing is changed by it."
        page_head("Backtest", lead)
        with box("card stack"):
            policy = Field(
                "Policy, as in upswing.toml; only what it names is changed",
                "area",
                _EXAMPLE,
                most=20_000,
            )
            with box("row"):
                since = Field("Since", "select", "30d", options=_SINCE)

                async def replay() -> None:
                    await _replay(page, policy.text, since.text, place)

                button("Try it", replay, "primary").style("align-self:end")
        place = box("stack wide")


async def _replay(page: PageContext, policy: str, since: str, place: Element) -> None:
    body = {"policy": policy, "since": since}
    try:
        found = await page.loop.act("POST", "/v1/backtest", BacktestReport, body)
    except UpswingError as error:
        notify(str(error), good=False)
        return
    place.clear()
    with place:
        draw_backtest(found)


def draw_backtest(found: BacktestReport) -> None:
    cost = found.cost
    with box("card stack"):
        Tag("p", found.summary, "strong wrap-anywhere")
        fact_list(
            (
                ("Decisions replayed", count(found.decisions)),
                ("Would differ", count(found.total)),
                ("Training jobs", signed(cost.training_jobs, 0)),
                ("Promotions", signed(cost.promotions, 0)),
                ("Rollbacks", signed(cost.rollbacks, 0)),
                ("Hours to promotion", signed(cost.hours_to_promotion, 1)),
                ("Episodes of worse models", signed(cost.worse_episodes, 0)),
            )
        )
        for sentence in (*(each.sentence for each in found.rollouts), *found.notes):
            Tag("p", sentence, "small soft wrap-anywhere")
    if found.differences:
        with box("card stack"):
            Tag("h2", "What would have differed")
            Rows("Differences", _COLUMNS).show([_row(each) for each in found.differences])


def _row(each: DecisionDifference) -> dict[str, object]:
    return {
        "id": each.decision_id,
        "what": {
            "text": f"{each.stage}: {each.about or each.kind}",
            "href": f"/decisions/{each.decision_id}",
        },
        "then": {"text": one_line(each.then.action, 40), "sub": one_line(each.then.sentence, 200)},
        "now": {"text": one_line(each.now.action, 40), "sub": one_line(each.now.sentence, 200)},
        "when": moment(each.decided),
    }
