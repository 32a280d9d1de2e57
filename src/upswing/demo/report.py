"""What does a person read afterwards? One HTML file with everything in it, its charts too."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path

from upswing.demo.bars import format_elapsed
from upswing.demo.charts import draw_charts
from upswing.demo.page import Html, html_element, html_page, html_table
from upswing.demo.record import DemoHistory, join_starts, read_views
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
    history = join_starts(read_views(folder / "views.jsonl"))
    drawn = [_read_picture(path) for path in draw_charts(folder / "charts", summary, history)]
    target = folder / "report.html"
    target.write_text(report_html(summary, history, drawn), encoding="utf-8")
    return target


def _read_picture(path: Path) -> Picture:
    dark = path.with_stem(f"{path.stem}-dark")
    return Picture(path.stem, path.read_bytes(), dark.read_bytes() if dark.exists() else None)


def report_html(summary: Summary, history: DemoHistory, pictures: Sequence[Picture] = ()) -> str:
    """The page."""
    parts = [
        html_element("h1", summary.sentence),
        html_element("p", _overview_text(summary), kind="faint"),
        _key_figures(summary),
        *map(_picture_html, pictures),
        html_element("h2", "Rolled back"),
        _rollbacks_section(summary),
        html_element("h2", "Models"),
        _models_section(summary.models),
        html_element("h2", "Time of each stage"),
        html_table(
            ["stage", "#seconds"],
            [(n.replace("_", " "), f"{s:.1f}") for n, s in summary.stages.items()],
        ),
        html_element("h2", "Decisions and their reasons"),
        html_element(
            "p",
            html_element("code", f"upswing explain ID --data {_data_directory(summary)}"),
            " shows what a decision was made from.",
            kind="faint",
        ),
        _decisions_section(history.log or summary.decisions),
        html_element("h2", "Files"),
        html_table(
            ["what", "where"],
            [(name, html_element("code", path)) for name, path in summary.files.items()],
        ),
        html_element("h2", "Go on"),
        html_element(
            "p", "The same loop for agents of your own; the promoted model answers from the start:"
        ),
        html_element("pre", f"upswing up --data {_data_directory(summary)}"),
    ]
    return html_page(f"Upswing demo: {summary.world}, seed {summary.seed}", parts)


def _overview_text(summary: Summary) -> str:
    memory = f", {summary.peak_memory_gb:.1f} GB at the peak" if summary.peak_memory_gb else ""
    return (
        f"{summary.model} in the world “{summary.world}”, seed {summary.seed}: "
        f"{summary.episodes:,} episodes in {format_elapsed(summary.seconds)} minutes{memory}."
    )


def _data_directory(summary: Summary) -> str:
    return summary.files.get("data", "DIR")


def _key_figures(summary: Summary) -> Html:
    """The result at a glance."""
    tone = "good" if summary.improved else "bad"
    shown = [
        (
            f"{summary.heldout_before:.2f}",
            "",
            f"before, {_interval_text(summary.heldout_before_interval)}",
        ),
        (
            f"{summary.heldout_after:.2f}",
            tone,
            f"after, {_interval_text(summary.heldout_after_interval)}",
        ),
        (
            _signed_number(summary.difference),
            tone,
            f"difference, {_interval_text(summary.difference_interval, signed=True)}",
        ),
    ]
    if (first := summary.stages.get("first_improved")) is not None:
        shown.append((format_elapsed(first), "", "until the first better model had all traffic"))
    boxes = [
        html_element(
            "div", html_element("b", value, kind=kind), html_element("span", about), kind="figure"
        )
        for value, kind, about in shown
    ]
    note = f"Mean score on {summary.heldout_tasks} held-out tasks, with 95 % intervals."
    return Html(html_element("div", *boxes, kind="figures") + html_element("p", note, kind="faint"))


def _signed_number(value: float) -> str:
    return f"{value:+.2f}".replace("-", "−")


def _interval_text(interval: tuple[float, float], *, signed: bool = False) -> str:
    low, high = (_signed_number(end) if signed else f"{end:.2f}" for end in interval)
    return f"{low} to {high}"


def _picture_html(picture: Picture) -> Html:
    dark = picture.dark and (
        f'<source media="(prefers-color-scheme: dark)" srcset="{_inline_image(picture.dark)}">'
    )
    alt = escape(_ALT.get(picture.name, picture.name))
    return Html(
        f'<picture>{dark or ""}<img alt="{alt}" src="{_inline_image(picture.light)}"></picture>'
    )


def _inline_image(png: bytes) -> str:
    return f"data:image/png;base64,{b64encode(png).decode()}"


def _rollbacks_section(summary: Summary) -> Html:
    if not summary.rolled_back:
        return html_element("p", "No model was rolled back.")
    reasons = {each.model_id: each.sentence for each in summary.models}
    parts = [
        html_element(
            "p",
            html_element("b", model, kind="bad"),
            f": {reasons.get(model) or 'the journal says why.'}",
        )
        for model in summary.rolled_back
    ]
    if summary.taken_back_seconds is not None:
        took = f"{summary.taken_back_seconds:.1f} seconds"
        parts.append(
            html_element(
                "p",
                f"From the sabotaged model's first answer to its rollback: {took}.",
                kind="faint",
            )
        )
    return Html("\n".join(parts))


def _models_section(models: Sequence[ModelLine]) -> Html:
    rows = [
        (
            html_element("code", each.model_id),
            html_element("code", each.parent) if each.parent else "–",
            each.state.replace("_", " "),
            "–" if each.validated is None else _signed_number(each.validated),
            each.sentence,
        )
        for each in models
    ]
    return html_table(["model", "comes from", "state", "#validated", "why"], rows)


def _decisions_section(log: Sequence[Line]) -> Html:
    rows = [
        (
            format_elapsed(line.second),
            line.stage,
            line.kind.replace("_", " "),
            line.sentence,
            html_element("code", line.decision_id) if line.decision_id else "",
        )
        for line in log
    ]
    return html_table(["#at", "stage", "kind", "reason", "id"], rows)
