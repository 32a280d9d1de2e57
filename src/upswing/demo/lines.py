"""What does a log say of the demo? A plain line for whatever is new, and one every few seconds."""

from __future__ import annotations

from typing import Self, TextIO

from upswing.demo.bars import format_elapsed, printable_line
from upswing.demo.summary import Summary
from upswing.demo.view import Line, Stage, View

EVERY = 5.0
"""Seconds without a line at most, as long as views come."""
_EARLY = 4.0
"""From here on the next view may be too late for `EVERY`."""
_LOT = 50
"""A count that has grown by this, and by half, is worth a line."""


class PlainOutput:
    """Tells of views, one after the other; nothing is said twice."""

    def __init__(self, out: TextIO) -> None:
        self._out = out
        self._printed: set[Line] = set()
        self._chapter = self._page = ""
        self._states: dict[str, str] = {}
        self._counts: dict[str, int] = {}
        self._last_line = 0.0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Nothing is left to undo."""

    def show(self, view: View) -> None:
        """Print what the last view did not have."""
        for line in self._new_lines(view):
            self._print_line(line)
            self._last_line = view.second

    def _new_lines(self, view: View) -> list[str]:
        at = format_elapsed(view.second)
        lines = []
        if view.page != self._page:
            self._page = view.page
            lines.append(f"{at} == The page is at {view.page}; `upswing info` has the key.")
        if view.chapter != self._chapter:
            self._chapter = view.chapter
            if all(line.sentence != view.chapter for line in view.log):
                lines.append(f"{at} == {view.chapter}")
        lines += [f"{at} {stage}" for stage in map(self._state_change, view.stages) if stage]
        for line in view.log:
            if line not in self._printed:
                self._printed.add(line)
                lines.append(_decision_line(line))
        if self._has_grown(view) or (not lines and view.second - self._last_line >= _EARLY):
            self._counts = {stage.name: stage.count for stage in view.stages}
            lines.append(f"{at} {status_line(view)}")
        return lines

    def _state_change(self, stage: Stage) -> str:
        """What to say of a stage that is in another state than before."""
        before = self._states.get(stage.name, "waiting")
        self._states[stage.name] = stage.state
        if stage.state == before:
            return ""
        return f"{stage.name}: {stage.state}" + (f" ({stage.note})" if stage.note else "")

    def _has_grown(self, view: View) -> bool:
        return any(
            stage.count >= max(before + _LOT, before * 3 // 2)
            for stage in view.stages
            for before in (self._counts.get(stage.name, 0),)
        )

    def _print_line(self, line: str) -> None:
        encoding = self._out.encoding or "utf-8"
        encodable = printable_line(line).encode(encoding, "replace").decode(encoding)
        self._out.write(f"{encodable}\n")
        self._out.flush()


def _decision_line(line: Line) -> str:
    known = f" [{line.decision_id}]" if line.decision_id else ""
    return f"{format_elapsed(line.second)} {line.stage} {line.kind}: {line.sentence}{known}"


def status_line(view: View) -> str:
    """How everything stands, in one line."""
    parts = [", ".join(f"{stage.name} {stage.count}" for stage in view.stages if stage.count)]
    parts += [f"{e.model_id} scores {e.mean:.2f} over {e.count}" for e in view.earned if e.count]
    if view.job is not None and view.job.status == "running":
        parts.append(f"job {view.job.percent:.0f} %, step {view.job.step}/{view.job.steps}")
    if view.proof is not None and view.proof.verdict == "running":
        parts.append(f"validation {view.proof.done}/{view.proof.of}")
    if view.canary is not None and view.canary.state == "ramping":
        parts.append(f"canary {view.canary.model_id} at {view.canary.percent:g} %")
    return " | ".join(part for part in parts if part) or "nothing yet"


def result_lines(summary: Summary) -> list[str]:
    """The result, for the end of the terminal's output."""
    low, high = summary.heldout_before_interval
    after_low, after_high = summary.heldout_after_interval
    lines = [
        summary.sentence,
        "",
        f"held-out tasks   {summary.heldout_tasks}",
        f"  before         {summary.heldout_before:.3f}  ({low:.3f} to {high:.3f})",
        f"  after          {summary.heldout_after:.3f}  ({after_low:.3f} to {after_high:.3f})",
        f"  difference     {summary.difference:+.3f}  ({_interval_text(summary)})",
        f"episodes         {summary.episodes:,}",
        f"time             {format_elapsed(summary.seconds)}",
    ]
    lines += [f"  {name:<14} {seconds:.1f} s" for name, seconds in summary.stages.items()]
    if summary.peak_memory_gb is not None:
        lines.append(f"peak memory      {summary.peak_memory_gb:.2f} GB")
    lines += [f"{each.state:<16} {each.model_id}: {each.sentence}" for each in summary.models]
    lines += [f"{name:<16} {where}" for name, where in summary.files.items()]
    return [printable_line(line) for line in lines]


def _interval_text(summary: Summary) -> str:
    low, high = summary.difference_interval
    return f"{low:+.3f} to {high:+.3f}"
