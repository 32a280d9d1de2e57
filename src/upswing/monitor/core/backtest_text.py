"""How does a backtest read in a terminal?"""

from __future__ import annotations

from collections.abc import Iterator

from upswing.contracts.backtest import BacktestReport, DecisionDifference, ReplayedDecision
from upswing.errors import count_phrase


def backtest_lines(report: BacktestReport, most: int = 40) -> Iterator[str]:
    """The report, line by line; `most` of its differences."""
    yield f"{report.since:%Y-%m-%d %H:%M} to {report.until:%Y-%m-%d %H:%M} UTC, {count_phrase(report.decisions, 'journal entry', 'journal entries')}"
    yield report.summary
    yield from _knob_lines(report)
    yield from _stage_lines(report)
    yield from _difference_lines(report, most)
    yield from _effect_lines(report)
    if report.unreadable:
        yield "\nnot replayed"
        for each in report.unreadable:
            yield f"  {each.count:,} × {each.sentence} ({', '.join(each.examples)})"
    for note in report.notes:
        yield f"\n{note}"


def _knob_lines(report: BacktestReport) -> Iterator[str]:
    if report.knobs:
        yield "\npolicy"
    for knob in report.knobs:
        yield f"  {knob.name} = {knob.value}" + (
            f"   not replayed: {knob.note}" if knob.note else ""
        )


def _stage_lines(report: BacktestReport) -> Iterator[str]:
    if report.stages:
        yield "\nstage       replayed   differ   do something else"
    for each in report.stages:
        yield f"{each.stage:<10} {each.replayed:>9,} {each.differ:>8,} {each.acts:>19,}"


def _difference_lines(report: BacktestReport, most: int) -> Iterator[str]:
    if not report.differences:
        return
    yield "\ndifferences"
    for each in report.differences[:most]:
        yield from _one_difference(each)
    if report.total > most:
        yield f"  … {report.total - min(most, report.shown):,} more"


def _one_difference(each: DecisionDifference) -> Iterator[str]:
    about = f" {each.about}" if each.about else ""
    yield f"  {each.decided:%Y-%m-%d %H:%M:%S} {each.stage}{about}  {each.decision_id}"
    yield f"    then {_words(each.then)}"
    yield f"    now  {_words(each.now)}"


def _words(decision: ReplayedDecision) -> str:
    detail = f" ({decision.detail})" if decision.detail else ""
    return f"{decision.action}{detail}: {decision.sentence}"


def _effect_lines(report: BacktestReport) -> Iterator[str]:
    if report.training is not None or report.rollouts:
        yield "\nwhat would have followed, modelled"
    if report.training is not None:
        yield f"  {report.training.sentence}"
    for each in report.rollouts:
        yield f"  {each.sentence}"
