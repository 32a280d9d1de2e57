"""What does a person read afterwards? One HTML file with everything in it, its charts too."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path

from upswing.demo.bars import passed
from upswing.demo.charts import charts
from upswing.demo.page import Html, page, table, tag
from upswing.demo.record import Record, read, record
from upswing.demo.summary import ModelLine, Summary
from upswing.demo.view import Line

_ALT = {
    "scores": "What the agents earned over time, by model",
    "heldout": "Scores on held-out tasks with their intervals",
    "traffic": "Share of each model over time",
}


@dataclass(frozen=True, slots=True)
class Picture:
    """A PNG, and the same for dark pages if there is one."""

    name: str
    light: bytes
    dark: bytes | None = None


def write_report(folder: Path, summary: Summary) -> Path:
    """Draw the charts and write the page of a finished run, from the views beside it."""
    told = record(read(folder / "views.jsonl"))
    drawn = [_picture(path) for path in charts(folder / "charts", summary, told)]
    target = folder / "report.html"
    target.write_text(report(summary, told, drawn), encoding="utf-8")
    return target


def _picture(path: Path) -> Picture:
    dark = path.with_stem(f"{path.stem}-dark")
    return Picture(path.stem, path.read_bytes(), dark.read_bytes() if dark.exists() else None)


def report(summary: Summary, told: Record, pictures: Sequence[Picture] = ()) -> str:
    """The page."""
    parts = [
        tag("h1", summary.sentence),
        tag("p", _about(summary), kind="faint"),
        _figures(summary),
        *map(_shown, pictures),
        tag("h2", "Taken back"),
        _taken_back(summary),
        tag("h2", "Models"),
        _models(summary.models),
        tag("h2", "Time of each stage"),
        table(["stage", "#seconds"], [(n.replace("_", " "), f"{s:.1f}") for n, s in summary.stages.items()]),
        tag("h2", "Decisions and their reasons"),
        tag("p", tag("code", f"upswing explain ID --data {_data(summary)}"),
            " shows what a decision was made from.", kind="faint"),
        _decisions(told.log or summary.decisions),
        tag("h2", "Files"),
        table(["what", "where"], [(name, tag("code", path)) for name, path in summary.files.items()]),
        tag("h2", "Go on"),
        tag("p", "The same loop for agents of your own; the promoted model answers from the start:"),
        tag("pre", f"upswing up --data {_data(summary)}"),
    ]  # fmt: skip
    return page(f"Upswing demo: {summary.world}, seed {summary.seed}", parts)


def _about(summary: Summary) -> str:
    memory = f", {summary.peak_memory_gb:.1f} GB at the peak" if summary.peak_memory_gb else ""
    return (
        f"{summary.model} in the world “{summary.world}”, seed {summary.seed}: "
        f"{summary.episodes:,} episodes in {passed(summary.seconds)} minutes{memory}."
    )


def _data(summary: Summary) -> str:
    return summary.files.get("data", "DIR")


def _figures(summary: Summary) -> Html:
    """The result at a glance."""
    tone = "good" if summary.improved else "bad"
    shown = [
        (f"{summary.heldout_before:.2f}", "", f"before, {_span(summary.heldout_before_interval)}"),
        (f"{summary.heldout_after:.2f}", tone, f"after, {_span(summary.heldout_after_interval)}"),
        (_signed(summary.difference), tone, f"difference, {_span(summary.difference_interval, signed=True)}"),
    ]  # fmt: skip
    if (first := summary.stages.get("first_improved")) is not None:
        shown.append((passed(first), "", "until the first better model had all traffic"))
    boxes = [
        tag("div", tag("b", value, kind=kind), tag("span", about), kind="figure")
        for value, kind, about in shown
    ]
    note = f"Mean score on {summary.heldout_tasks} held-out tasks, with 95 % intervals."
    return Html(tag("div", *boxes, kind="figures") + tag("p", note, kind="faint"))


def _signed(value: float) -> str:
    return f"{value:+.2f}".replace("-", "−")


def _span(interval: tuple[float, float], *, signed: bool = False) -> str:
    low, high = (_signed(end) if signed else f"{end:.2f}" for end in interval)
    return f"{low} to {high}"


def _shown(picture: Picture) -> Html:
    dark = picture.dark and (
        f'<source media="(prefers-color-scheme: dark)" srcset="{_inline(picture.dark)}">'
    )
    alt = escape(_ALT.get(picture.name, picture.name))
    return Html(f'<picture>{dark or ""}<img alt="{alt}" src="{_inline(picture.light)}"></picture>')


def _inline(png: bytes) -> str:
    return f"data:image/png;base64,{b64encode(png).decode()}"


def _taken_back(summary: Summary) -> Html:
    if not summary.rolled_back:
        return tag("p", "No model was taken back.")
    reasons = {each.model_id: each.sentence for each in summary.models}
    parts = [
        tag("p", tag("b", model, kind="bad"), f": {reasons.get(model) or 'the journal says why.'}")
        for model in summary.rolled_back
    ]
    if summary.taken_back_seconds is not None:
        took = f"{summary.taken_back_seconds:.1f} seconds"
        parts.append(tag("p", f"From the sabotaged model's first answer to the last share taken from it: {took}.", kind="faint"))  # fmt: skip
    return Html("\n".join(parts))


def _models(models: Sequence[ModelLine]) -> Html:
    rows = [
        (
            tag("code", each.model_id), tag("code", each.parent) if each.parent else "–",
            each.state.replace("_", " "), "–" if each.validated is None else _signed(each.validated),
            each.sentence,
        )
        for each in models
    ]  # fmt: skip
    return table(["model", "comes from", "state", "#validated", "why"], rows)


def _decisions(log: Sequence[Line]) -> Html:
    rows = [
        (
            passed(line.second), line.stage, line.kind.replace("_", " "), line.sentence,
            tag("code", line.decision_id) if line.decision_id else "",
        )
        for line in log
    ]  # fmt: skip
    return table(["#at", "stage", "kind", "reason", "id"], rows)
