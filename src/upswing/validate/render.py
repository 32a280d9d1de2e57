"""How does a report look to a person? A table for a terminal, and the same in Markdown."""

from __future__ import annotations

from collections.abc import Sequence

from upswing.contracts.validation import Interval, SuiteReport, ValidationReport

_HEAD = ("suite", "candidate", "current", "difference", "95 %", "compared", "verdict")
_NUMBERS = range(1, 6)
_NOTHING = "–"


def as_text(report: ValidationReport) -> str:
    """For a terminal."""
    rows = [_HEAD, *map(_row, report.suites)]
    widths = [max(len(row[column]) for row in rows) for column in range(len(_HEAD))]
    rule = "─" * (sum(widths) + 2 * (len(widths) - 1))
    lines = [_title(report), "", _line(rows[0], widths), rule]
    lines += [_line(row, widths) for row in rows[1:]]
    lines += ["", *_summaries(report), "", *(f"• {reason}" for reason in report.reasons)]
    if report.fallen:
        lines += ["", "Worse than before:"]
        lines += [f"  {each.suite} {each.task_id}: {each.sentence}" for each in report.fallen[:10]]
    if report.notes:
        lines += ["", *report.notes]
    return "\n".join(lines) + "\n"


def as_markdown(report: ValidationReport) -> str:
    """For a file or a page."""
    aligned = ["---:" if column in _NUMBERS else "---" for column in range(len(_HEAD))]
    lines = [f"# {_title(report)}", "", *(f"- {_safe(reason)}" for reason in report.reasons), ""]
    lines += [_cells(_HEAD), _cells(aligned), *(_cells(_row(suite)) for suite in report.suites), ""]
    lines += [f"{summary}  " for summary in _summaries(report)]
    if report.fallen:
        lines += ["", "## Worse than before", ""]
        lines += [_cells(("suite", "task", "difference", "what was wrong")), _cells(("---", "---", "---:", "---"))]  # fmt: skip
        lines += [
            _cells((each.suite, each.task_id, _signed(each.difference), _safe(each.sentence)))
            for each in report.fallen
        ]
    if report.notes:
        lines += ["", "## Notes", "", *(f"- {_safe(note)}" for note in report.notes)]
    return "\n".join(lines) + "\n"


def _title(report: ValidationReport) -> str:
    word = {"pass": "passes", "fail": "fails", "inconclusive": "is undecided"}[report.word]
    return f"{report.candidate} {word} against {report.current}"


def _summaries(report: ValidationReport) -> list[str]:
    counted = [suite.name for suite in report.suites if suite.counted]
    took = (report.ended - report.started).total_seconds()
    judge = report.judge or "none, rules alone"
    return [
        f"Improvement {_told(report.improvement)} ({', '.join(counted) or 'no suite counts'})",
        *([f"Beside base {_told(report.anchor)} ({report.base})"] if report.anchor else []),
        *([f"Abilities   {_told(report.abilities)} (all together)"] if report.abilities else []),
        f"Safety      {_told(report.safety)} (judge: {judge})",
        *_constants(report),
        f"Took {took:.0f} s with {_samples(report)}",
    ]


def _constants(report: ValidationReport) -> list[str]:
    told = [f"{s.name} {s.constant:.3f}" for s in report.suites if s.constant is not None]
    return [f"Best constant answer: {', '.join(told)}"] if told else []


def _samples(report: ValidationReport) -> str:
    own = {suite.samples for suite in report.suites if suite.own}
    once = f"{len(report.seeds)} seed{'s' * (len(report.seeds) != 1)} a task"
    if not own:
        return once
    warm = "" if report.temperature is None else f" at temperature {report.temperature:g}"
    return f"{max(own)} answers to each of your own tasks{warm}, {once} elsewhere"


def _row(suite: SuiteReport) -> tuple[str, ...]:
    found = suite.difference
    return (
        f"{suite.name}{' *' if suite.counted else ''}",
        _plain(suite.candidate),
        _plain(suite.current),
        _signed(found.estimate if found else None),
        _bounds(found),
        f"{suite.done}/{suite.planned}",
        suite.word,
    )


def _told(found: Interval | None) -> str:
    return f"{_signed(found.estimate)} {_bounds(found)}" if found else _NOTHING


def _bounds(found: Interval | None) -> str:
    return f"[{_signed(found.lower)}, {_signed(found.upper)}]" if found else _NOTHING


def _signed(value: float | None) -> str:
    return _NOTHING if value is None else f"{value:+.3f}".replace("-", "−")


def _plain(value: float | None) -> str:
    return _NOTHING if value is None else f"{value:.3f}"


def _line(row: Sequence[str], widths: Sequence[int]) -> str:
    cells = [
        cell.rjust(width) if column in _NUMBERS else cell.ljust(width)
        for column, (cell, width) in enumerate(zip(row, widths, strict=True))
    ]
    return "  ".join(cells).rstrip()


def _cells(row: Sequence[str]) -> str:
    return f"| {' | '.join(row)} |"


def _safe(text: str) -> str:
    """What a model said must not become part of the page."""
    flat = " ".join(text.split())
    for mark in "\\`*_{}[]<>#|!":
        flat = flat.replace(mark, f"\\{mark}")
    return flat
