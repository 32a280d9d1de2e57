"""How does a report look to a person? A table for a terminal, and the same in Markdown."""

from __future__ import annotations

from collections.abc import Sequence

from upswing.contracts.analysis import FailureAnalysis
from upswing.contracts.validation import DifferenceInterval, SuiteReport, ValidationReport

_HEAD = ("suite", "candidate", "current", "difference", "95 %", "compared", "verdict")
_NUMBERS = range(1, 6)
_NOTHING = "–"


def as_text(report: ValidationReport) -> str:
    """For a terminal."""
    rows = [_HEAD, *map(_suite_row, report.suites)]
    widths = [max(len(row[column]) for row in rows) for column in range(len(_HEAD))]
    rule = "─" * (sum(widths) + 2 * (len(widths) - 1))
    lines = [_title(report), "", _aligned_line(rows[0], widths), rule]
    lines += [_aligned_line(row, widths) for row in rows[1:]]
    lines += ["", *_summary_lines(report), "", *(f"• {reason}" for reason in report.reasons)]
    if report.fallen:
        lines += ["", "Worse than before:"]
        lines += [f"  {each.suite} {each.task_id}: {each.sentence}" for each in report.fallen[:10]]
    if report.analysis:
        lines += ["", *_analysis_sentences(report.analysis)]
    if report.notes:
        lines += ["", *report.notes]
    return "\n".join(lines) + "\n"


def as_markdown(report: ValidationReport) -> str:
    """For a file or a page."""
    aligned = ["---:" if column in _NUMBERS else "---" for column in range(len(_HEAD))]
    lines = [
        f"# {_title(report)}",
        "",
        *(f"- {_escape_markdown(reason)}" for reason in report.reasons),
        "",
    ]
    lines += [
        _markdown_row(_HEAD),
        _markdown_row(aligned),
        *(_markdown_row(_suite_row(suite)) for suite in report.suites),
        "",
    ]
    lines += [f"{summary}  " for summary in _summary_lines(report)]
    if report.fallen:
        lines += ["", "## Worse than before", ""]
        lines += [
            _markdown_row(("suite", "task", "difference", "what was wrong")),
            _markdown_row(("---", "---", "---:", "---")),
        ]
        lines += [
            _markdown_row(
                (
                    each.suite,
                    each.task_id,
                    _signed(each.difference),
                    _escape_markdown(each.sentence),
                )
            )
            for each in report.fallen
        ]
    if report.analysis:
        lines += ["", "## What they have in common", ""]
        lines += [f"- {_escape_markdown(each)}" for each in _analysis_sentences(report.analysis)]
    if report.notes:
        lines += ["", "## Notes", "", *(f"- {_escape_markdown(note)}" for note in report.notes)]
    return "\n".join(lines) + "\n"


def _analysis_sentences(analysis: FailureAnalysis) -> list[str]:
    """What the tasks that it does worse have in common, and what to do about it."""
    findings = [each.sentence for each in analysis.findings if not each.goes_with]
    return [analysis.summary, *findings[:3], *(each.text for each in analysis.remedies)]


def _title(report: ValidationReport) -> str:
    predicate = {"pass": "passes", "fail": "fails", "inconclusive": "is undecided"}[report.verdict]
    return f"{report.candidate} {predicate} against {report.current}"


def _summary_lines(report: ValidationReport) -> list[str]:
    counted = [suite.name for suite in report.suites if suite.counted]
    took = (report.ended - report.started).total_seconds()
    judge = report.judge or "none, rules alone"
    return [
        f"Improvement {_estimate_and_bounds(report.improvement)} ({', '.join(counted) or 'no suite counts'})",
        *(
            [f"Beside base {_estimate_and_bounds(report.anchor)} ({report.base})"]
            if report.anchor
            else []
        ),
        *(
            [f"Abilities   {_estimate_and_bounds(report.abilities)} (all together)"]
            if report.abilities
            else []
        ),
        f"Safety      {_estimate_and_bounds(report.safety)} (judge: {judge})",
        *_constant_lines(report),
        f"Took {took:.0f} s with {_sample_text(report)}",
    ]


def _constant_lines(report: ValidationReport) -> list[str]:
    listed = [f"{s.name} {s.constant:.3f}" for s in report.suites if s.constant is not None]
    return [f"Best constant answer: {', '.join(listed)}"] if listed else []


def _sample_text(report: ValidationReport) -> str:
    own = {suite.samples for suite in report.suites if suite.own}
    once = f"{len(report.seeds)} seed{'s' * (len(report.seeds) != 1)} a task"
    if not own:
        return once
    warm = "" if report.temperature is None else f" at temperature {report.temperature:g}"
    return f"{max(own)} answers to each of your own tasks{warm}, {once} elsewhere"


def _suite_row(suite: SuiteReport) -> tuple[str, ...]:
    found = suite.difference
    return (
        f"{suite.name}{' *' if suite.counted else ''}",
        _plain(suite.candidate),
        _plain(suite.current),
        _signed(found.estimate if found else None),
        _bounds_text(found),
        f"{suite.done}/{suite.planned}",
        suite.verdict,
    )


def _estimate_and_bounds(found: DifferenceInterval | None) -> str:
    return f"{_signed(found.estimate)} {_bounds_text(found)}" if found else _NOTHING


def _bounds_text(found: DifferenceInterval | None) -> str:
    return f"[{_signed(found.lower)}, {_signed(found.upper)}]" if found else _NOTHING


def _signed(value: float | None) -> str:
    return _NOTHING if value is None else f"{value:+.3f}".replace("-", "−")


def _plain(value: float | None) -> str:
    return _NOTHING if value is None else f"{value:.3f}"


def _aligned_line(row: Sequence[str], widths: Sequence[int]) -> str:
    cells = [
        cell.rjust(width) if column in _NUMBERS else cell.ljust(width)
        for column, (cell, width) in enumerate(zip(row, widths, strict=True))
    ]
    return "  ".join(cells).rstrip()


def _markdown_row(row: Sequence[str]) -> str:
    return f"| {' | '.join(row)} |"


def _escape_markdown(text: str) -> str:
    """What a model said must not become part of the page."""
    escaped = " ".join(text.split())
    for mark in "\\`*_{}[]<>#|!":
        escaped = escaped.replace(mark, f"\\{mark}")
    return escaped
