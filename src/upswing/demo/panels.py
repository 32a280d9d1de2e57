"""What does the screen say of each part of the loop? Blocks of lines, each as wide as it is told.

Colour only repeats what a sign, a texture or a word says already.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from textwrap import wrap

from rich.text import Text

from upswing.demo.bars import (
    clip_text,
    format_elapsed,
    printable_line,
    progress_bar,
    shorten_middle,
    stack_widths,
)
from upswing.demo.view import CanaryView, JobView, Line, Stage, ValidationView, View

ACCENT, ALARM = "bright_blue", "bold red"
SIGNS = {"waiting": "·", "working": "●", "done": "✓", "refused": "✗"}
STYLES = {"waiting": "dim", "working": f"bold {ACCENT}", "done": "", "refused": ALARM}
_KINDS = {"promote": f"bold {ACCENT}", "roll_back": ALARM}
_COLOURS = ("", "cyan", "yellow", "magenta", "green", "blue")
_TEXTURES = ("█", "▒", "▓", "░")
_LABEL = 10
_KIND = 17
"""Columns for a decision's kind, where there is room."""
_LAST = 18
"""Columns for the last stage's note."""
_WIDE = 116
"""From this width on, every stage has its own note."""
_WIDEST = 150
"""From this width on, a decision shows its id."""


def decision_sign(line: Line) -> str:
    """The sign of a decision that changes the course.

    >>> decision_sign(Line(9, "trigger", "threshold_reached", "")), decision_sign(Line(9, "deploy", "hold", ""))
    ('◆', '')
    """
    if line.stage == "trigger" and not line.kind.startswith("wait"):
        return "◆"
    return {"promote": "▲", "roll_back": "▼"}.get(line.kind, "")


@dataclass(frozen=True, slots=True)
class Paint:
    """How a model is told from the others."""

    colour: str
    texture: str


def model_paints(view: View) -> dict[str, Paint]:
    """Each model's own, in the order in which they came."""
    models = dict.fromkeys([*(each.model_id for each in view.earned), *view.traffic])
    return {
        model: Paint(_COLOURS[at % len(_COLOURS)], _TEXTURES[at % len(_TEXTURES)])
        for at, model in enumerate(models)
    }


def justify_line(left: Text, right: Text, width: int) -> Text:
    """One line with both; the left one gives way."""
    left = left.copy()
    left.truncate(max(0, width - right.cell_len - 2), overflow="ellipsis")
    return Text.assemble(left, " " * max(0, width - left.cell_len - right.cell_len), right)


def heading_lines(view: View, width: int) -> list[Text]:
    """What it is, how long it runs, what its own clock says, and where the story is."""
    times = Text.assemble(
        (format_elapsed(view.second), "bold"),
        f"   {printable_line(view.clock)} ",
        (f"×{view.speed}", "dim"),
    )
    page = f"page {printable_line(view.page)}" if view.page else ""
    room = width - len(page) - 2 if page and width >= 2 * len(page) else width
    where = Text(page if room < width else "", style="dim")
    return [
        justify_line(Text(printable_line(view.title), style="bold"), times, width),
        justify_line(Text(clip_text(view.chapter, room), style=ACCENT), where, width),
    ]


def pipeline_lines(stages: Sequence[Stage], width: int) -> list[Text]:
    """The stages in the data's order: name, count, seconds; below, what they do, if it fits."""
    if not stages:
        return []
    cells = [
        (printable_line(s.name), f"{SIGNS[s.state]} {s.count:,}", _seconds_of_stage(s))
        for s in stages
    ]
    widths = [max(map(len, cell)) for cell in cells]
    widths[-1] = max(widths[-1], _LAST if width >= _WIDE else 0)
    gaps = _gaps_between_stages(max(0, width - sum(widths)), len(cells) - 1)
    lines = [Text(), Text(), Text()]
    for stage, cell, wide, gap in zip(stages, cells, widths, gaps, strict=True):
        arrow = f" {'─' * (wide - len(cell[0]) + gap - 3)}▸ " if gap >= 3 else " " * gap
        style = STYLES[stage.state]
        lines[0].append(cell[0], style).append(arrow.ljust(wide - len(cell[0]) + gap), "dim")
        lines[1].append(cell[1].ljust(wide + gap), style)
        lines[2].append(cell[2].ljust(wide + gap), "dim")
    rooms = [wide + gap for wide, gap in zip(widths, gaps, strict=True)]
    timed = any(stage.seconds is not None for stage in stages)
    below = _notes_below_stages(stages, rooms) if width >= _WIDE else []
    return [*lines[: 2 + timed], *below]


def _gaps_between_stages(free: int, count: int) -> list[int]:
    """Room between the stages, as even as can be; after the last there is none.

    >>> _gaps_between_stages(20, 3), _gaps_between_stages(5, 0)
    ([7, 7, 6, 0], [0])
    """
    return [free // count + (at < free % count) for at in range(count)] + [0]


def _seconds_of_stage(stage: Stage) -> str:
    return "" if stage.seconds is None else f"{stage.seconds:.0f} s"


def _notes_below_stages(stages: Sequence[Stage], rooms: Sequence[int]) -> list[Text]:
    """Each below its stage, in two lines."""
    lines = [Text(), Text()]
    for stage, room in zip(stages, rooms, strict=True):
        text = wrap(printable_line(stage.note), max(8, room - 2), max_lines=2, placeholder=" …")
        for line, part in zip(lines, [*text, "", ""], strict=False):
            line.append(part.ljust(room), "" if stage.state == "working" else "dim")
    return lines


def progress_rows(view: View, width: int) -> list[Text]:
    """The job, the validation, the canary and the shares, a line each."""
    bar = max(20, width // 4)
    return [
        _named_row("train", _job_row(view.job, bar), width),
        _named_row("validate", _validation_row(view.proof, bar), width),
        _named_row("canary", _canary_row(view.canary, bar), width),
        _named_row("traffic", _traffic_row(view, bar), width),
    ]


def _named_row(name: str, text: Text, width: int) -> Text:
    line = Text.assemble((name.ljust(_LABEL), "dim"), text)
    line.truncate(width, overflow="ellipsis")
    return line


def _gauge_bar(share: float, width: int, style: str) -> Text:
    done, left = progress_bar(share, width)
    return Text.assemble((done, style), (left, "dim"), "  ")


def _job_row(job: JobView | None, bar: int) -> Text:
    if job is None:
        return Text("nothing to train yet", style="dim")
    known = [f"{job.percent:.0f} %"]
    if job.steps:
        known.append(f"step {job.step}/{job.steps}")
    if job.loss is not None:
        known.append(f"loss {job.loss:.3f}")
    if job.reward is not None:
        known.append(f"reward {job.reward:.2f}")
    known.append(printable_line(job.doing if job.status == "running" and job.doing else job.status))
    return _gauge_bar(job.percent / 100, bar, ACCENT).append("  ".join(known))


def _validation_row(proof: ValidationView | None, bar: int) -> Text:
    if proof is None:
        return Text("no model to prove yet", style="dim")
    verdict = printable_line(proof.verdict)
    style = {"pass": f"bold {ACCENT}", "fail": ALARM}.get(verdict, "")
    line = _gauge_bar(proof.done / proof.of if proof.of else 0.0, bar, ACCENT)
    line.append(f"{proof.done}/{proof.of}  ").append(verdict, style)
    return line.append(f"  {printable_line(proof.sentence)}" if proof.sentence else "")


def _canary_row(canary: CanaryView | None, bar: int) -> Text:
    if canary is None:
        return Text("no model is being rolled out yet", style="dim")
    line = _canary_steps(canary)
    line.append(" " * (max(0, bar - line.cell_len) + 2))
    gone = canary.state == "rolled_back"
    line.append(f"{shorten_middle(canary.model_id, 18)} ")
    line.append(printable_line(canary.state).replace("_", " "), ALARM if gone else f"bold {ACCENT}")
    line.append(f" {canary.percent:g} %")
    return line.append(f"  {printable_line(canary.sentence)}" if canary.sentence else "")


def _canary_steps(canary: CanaryView) -> Text:
    """The ramp: heavy up to where it stands, light after."""
    line = Text()
    current_step = max((step for step in canary.steps if step <= canary.percent), default=None)
    for at, step in enumerate(canary.steps):
        reached = step <= canary.percent
        if at:
            line.append(" ━━ " if reached else " ── ", ACCENT if reached else "dim")
        line.append(f"●{step}" if step == current_step else str(step), "bold" if reached else "dim")
    return line


def _traffic_row(view: View, bar: int) -> Text:
    shares = {model: share for model, share in view.traffic.items() if share > 0}
    known = model_paints(view)
    line = Text()
    for (model, _), cells in zip(
        shares.items(), stack_widths([*shares.values()], bar), strict=True
    ):
        line.append(known[model].texture * cells, known[model].colour)
    for model, share in shares.items():
        line.append(f"  {known[model].texture} ", known[model].colour)
        line.append(f"{shorten_middle(model, 18)} {share:.3g} %")
    return line if shares else Text("nobody answers yet", style="dim")


def decision_lines(log: Sequence[Line], width: int, height: int) -> list[Text]:
    """As many of the newest as there is room for, whole, the newest below."""
    chosen: list[Text] = []
    for line in reversed(log):
        entry = _decision_lines(line, width)
        if len(chosen) + len(entry) > height:
            chosen = chosen or entry[:height]
            break
        chosen = entry + chosen
    return chosen


def _decision_lines(line: Line, width: int) -> list[Text]:
    room = _KIND if width >= _WIDE else _KIND - 5
    kind = clip_text(line.kind.replace("_", " "), room)
    front = Text.assemble(
        (f"{format_elapsed(line.second):>5}  ", "dim"),
        f"{clip_text(line.stage, 8):<9}",
        (f"{decision_sign(line) or ' '} {kind:<{room}} ", _KINDS.get(line.kind, "")),
    )
    shown = f"  {line.decision_id}" if line.decision_id and width >= _WIDEST else ""
    room = max(20, width - front.cell_len)
    together = printable_line(line.sentence + shown).replace(" %", "\u00a0%")
    text = wrap(together, room) or [""]
    rest = [Text(" " * front.cell_len + clip_text(part, room)) for part in text[1:]]
    return [Text.assemble(front, clip_text(text[0], room)), *rest]
