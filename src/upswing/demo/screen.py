"""What does a person see while the loop turns? One picture of a view, as large as the terminal.

```
 title                                      time   the loop's own clock
 what the story is at
 agents ─▸ collect ─▸ reward ─▸ trigger ─▸ train ─▸ validate ─▸ deploy
 score of each model over time, one below the other on one axis
 the job, the validation, the canary, the shares
 decisions with their reasons, the newest below
```

The picture lies on the terminal's second page while it moves, so that resizing never leaves debris;
at the end the first page is back, with the last picture on it.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Self, TextIO

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.text import Text

from upswing.demo.bars import (
    clip_text,
    column_at,
    draw_trace,
    format_elapsed,
    moving_mean,
    shorten_middle,
)
from upswing.demo.lines import PlainOutput
from upswing.demo.panels import (
    Paint,
    decision_lines,
    decision_sign,
    heading_lines,
    model_paints,
    pipeline_lines,
    progress_rows,
)
from upswing.demo.view import ModelScores, View

_LEAST_SECONDS = 60.0
"""The time axis is never shorter, so that a beginning does not look like a long story."""
_NUMBERS = 21
"""Columns for mean, count and share."""
_TALL = 3
"""Rows of a trace at most."""
_ROOMY = 28
"""From this height on, lines are left empty for the eye."""


def render_screen(view: View, width: int, height: int) -> RenderableType:
    """Everything, in exactly so much room."""
    inner = width - 2
    upper = [
        *heading_lines(view, inner),
        _horizontal_rule(inner),
        *pipeline_lines(view.stages, inner),
    ]
    if height >= _ROOMY:
        upper.append(Text())
    middle = [_horizontal_rule(inner), *progress_rows(view, inner), _horizontal_rule(inner)]
    free = height - len(upper) - len(middle)
    wanted = 2 + (_TALL + 1) * max(4, len(view.earned))
    chart = score_panel(view, inner, max(3, min(wanted, free - max(5, free // 2))))
    told = decision_lines(view.log, inner, max(1, free - len(chart)))
    lines = [*upper, *chart, *middle, *told][:height]
    return Group(*[_fit_line(line, width) for line in lines])


def _fit_line(line: Text, width: int) -> Text:
    whole = Text.assemble(" ", line, no_wrap=True, overflow="crop", end="\n")
    whole.truncate(width)
    return whole


def _horizontal_rule(width: int) -> Text:
    return Text("─" * width, style="dim")


def score_panel(view: View, width: int, height: int) -> list[Text]:
    """A heading, a trace for each model, and the time below; `height` lines."""
    rows = max(1, height - 2)
    shown = _shown_models(view, rows)
    label = min(20, width // 4, max([9, *(len(each.model_id) for each in shown)]))
    chart = width - label - _NUMBERS - 1
    each_has = rows // max(1, len(shown))
    tall, apart = max(1, min(_TALL, each_has)), each_has > _TALL
    end = max(_LEAST_SECONDS, view.second)
    top = max([1.0, *(value for each in shown for _, value in each.points if value < 1e9)])
    known = model_paints(view)
    lines = [_columns_named(label, chart)]
    for each in shown:
        drawn = draw_trace(moving_mean(each.points), end, (chart, tall), top)
        lines += _score_row(each, drawn, label, known[each.model_id], view.traffic)
        lines += [Text()] * apart
    lines += [Text()] * (height - 1 - len(lines))
    return [*lines[: height - 1], _time_axis(view, end, label, chart)]


def _shown_models(view: View, most: int) -> Sequence[ModelScores]:
    """The first is what the others are compared with; of the rest the newest."""
    return (
        view.earned
        if len(view.earned) <= most
        else (*view.earned[:1], *view.earned[1 - most :][: most - 1])
    )


def _columns_named(label: int, chart: int) -> Text:
    legend = "◆ trains  ▲ promoted  ▼ rolled back"
    return Text.assemble(
        ("score".ljust(label + 1), "bold"),
        (clip_text(legend, chart).ljust(chart), "dim"),
        ("   mean     n   share", "dim"),
    )


def _score_row(
    each: ModelScores, drawn: Sequence[str], label: int, paint: Paint, traffic: dict[str, float]
) -> list[Text]:
    """The name and the numbers stand on the trace's ground."""
    lines = [Text.assemble(" " * (label + 1), (row, paint.colour)) for row in drawn[:-1]]
    share = traffic.get(each.model_id, 0.0)
    name = shorten_middle(each.model_id, label).ljust(label)
    ground = Text.assemble(
        (name, "bold" if share > 0 else ""),
        " ",
        (drawn[-1], paint.colour),
        f"{each.mean:7.2f} {each.count:>5,} ",
        f"{share:5.3g} %" if share > 0 else "      –",
    )
    return [*lines, ground]


def _time_axis(view: View, end: float, label: int, chart: int) -> Text:
    cells = list("─" * chart)
    for line in view.log:
        if sign := decision_sign(line):
            cells[column_at(line.second, end, chart)] = sign
    return Text.assemble(
        ("0:00 ".rjust(label + 1), "dim"),
        ("".join(cells), "dim"),
        (f" {format_elapsed(end)}", "dim"),
    )


class Screen:
    """Shows views on a terminal, one over the other."""

    def __init__(self, out: TextIO | None = None) -> None:
        self._console = Console(file=out)
        self._live = Live(console=self._console, screen=True, auto_refresh=False)
        self._last: View | None = None

    def __enter__(self) -> Self:
        self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Give the terminal back, with the last picture on it; once."""
        if not self._live.is_started:
            return
        self._live.stop()
        if self._last is not None:
            self._console.print(self._render_view(self._last, spare=2))

    def show(self, view: View) -> None:
        """From now on this."""
        self._last = view
        self._live.update(self._render_view(view), refresh=True)

    def _render_view(self, view: View, spare: int = 0) -> RenderableType:
        width, height = self._console.size
        return render_screen(view, width, height - spare)


def make_output(out: TextIO) -> Screen | PlainOutput:
    """A screen where one can be drawn, plain lines elsewhere."""
    drawable = out.isatty() and os.environ.get("TERM", "dumb") not in {"dumb", "unknown", ""}
    encoding = (out.encoding or "").lower().replace("-", "")
    return Screen(out) if drawable and encoding == "utf8" else PlainOutput(out)
