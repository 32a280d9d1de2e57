"""How does a report become Markdown, and a page? Blocks of plain text, escaped by whoever writes them down.

Text may come from agents: it stays text. No link, image or markup of theirs survives, in either form; what stands
between backticks is set as code.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

from upswing.logs import printable
from upswing.monitor.core.charts import ReportChart, legend, sparkline, svg_chart

_CODE = re.compile(r"(?<!`)`([^`|\\]+)`(?!`)")
"""A piece of code as everybody reads it: other backticks are no markup of ours, and stay what they are."""
_MARKDOWN = {ord(mark): f"\\{mark}" for mark in "\\[]<>!|`*~#@"}
_UNDERLINE = re.compile(r"(?<![A-Za-z0-9])_|_(?![A-Za-z0-9])")
_LINK = re.compile(r"(?i)(:(?=//)|(?<=www)\.)")
"""By which many take a text for a link, without any markup."""
_BULLET = re.compile(r"^([0-9]{1,9}(?=[.)](?:\s|$))|(?=[-+=](?![0-9])))")
"""Before what a line must not begin with."""
_LONGEST = 2000
"""Characters of one piece of text."""


@dataclass(frozen=True, slots=True)
class Heading:
    text: str


@dataclass(frozen=True, slots=True)
class Paragraph:
    text: str


@dataclass(frozen=True, slots=True)
class Bullets:
    items: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Table:
    """The first column is text, the others stand to the right."""

    head: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


Block = Heading | Paragraph | Bullets | Table | ReportChart


@dataclass(frozen=True, slots=True)
class Document:
    """A report, in the order in which it is read."""

    title: str
    blocks: tuple[Block, ...]


# ── Markdown ─────────────────────────────────────────────────────────────────────────────────────


def to_markdown(document: Document) -> str:
    """The document as CommonMark with tables; charts are lines of bars."""
    parts = [f"# {_plain(document.title)}", *(_markdown_block(block) for block in document.blocks)]
    return "\n\n".join(parts) + "\n"


def _markdown_block(block: Block) -> str:
    match block:
        case Heading(text):
            return f"## {_plain(text)}"
        case Paragraph(text):
            return _line(text)
        case Bullets(items):
            return "\n".join(f"- {_line(item)}" for item in items)
        case Table(head, rows):
            return _markdown_table(head, rows)
        case ReportChart():
            return _markdown_chart(block)


def _markdown_table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    rule = ["---", *("---:" for _ in head[1:])]
    lines = [map(_plain, head), rule, *(map(_plain, row) for row in rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _markdown_chart(chart: ReportChart) -> str:
    span = f"{chart.places[0]} to {chart.places[-1]}" if chart.places else "nothing"
    lines = [f"{_plain(chart.title)} ({_plain(span)}):"]
    lines += [f"- `{sparkline(each.values)}` {_plain(each.name)}" for each in chart.series]
    return "\n".join(lines)


def _plain(text: str) -> str:
    """One line without any markup but code."""
    line = _one_line(text)
    parts = _CODE.split(line)
    return "".join(f"`{part}`" if at % 2 else _escaped(part) for at, part in enumerate(parts))


def _line(text: str) -> str:
    """The same as a line of its own, which begins no list and no rule."""
    return _BULLET.sub(r"\1\\", _plain(text))


def _escaped(text: str) -> str:
    return _LINK.sub(r"\\\1", _UNDERLINE.sub(r"\\_", text.translate(_MARKDOWN)))


def _one_line(text: str) -> str:
    return printable(" ".join(str(text).split()))[:_LONGEST]


# ── HTML ─────────────────────────────────────────────────────────────────────────────────────────

CONTENT_SECURITY = (
    "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"
)
_STYLE = """
:root { color-scheme: light dark; --ink: #1f2430; --paper: #ffffff; --faint: #6b7280; --line: #e5e7eb; }
@media (prefers-color-scheme: dark) {
  :root { --ink: #e5e7eb; --paper: #161922; --faint: #9aa3b2; --line: #2b3040; } }
body { font: 15px/1.5 system-ui, sans-serif; color: var(--ink); background: var(--paper); margin: 2rem auto;
  max-width: 60rem; padding: 0 1rem; }
h1 { font-size: 1.5rem; } h2 { font-size: 1.1rem; margin-top: 2rem; }
table { border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums; }
.wide { overflow-x: auto; }
th, td { text-align: right; padding: .25rem .6rem; border-bottom: 1px solid var(--line); }
th:first-child, td:first-child { text-align: left; }
th { color: var(--faint); font-weight: 600; } code { font-size: .92em; }
svg { width: 100%; height: auto; } .grid { stroke: var(--line); } .tick { fill: var(--faint); font-size: 11px; }
.legend span { margin-right: 1.2rem; white-space: nowrap; } .dot { font-size: 1.2em; }
"""


def to_html(document: Document) -> str:
    """The document as a page of its own: nothing is loaded from anywhere."""
    title = escape(_one_line(document.title))
    body = "\n".join(_html_block(block) for block in document.blocks)
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{CONTENT_SECURITY}">\n'
        f"<title>{title}</title>\n<style>{_STYLE}</style>\n</head>\n<body>\n<h1>{title}</h1>\n{body}\n</body>\n</html>\n"
    )


def _html_block(block: Block) -> str:
    match block:
        case Heading(text):
            return f"<h2>{_html(text)}</h2>"
        case Paragraph(text):
            return f"<p>{_html(text)}</p>"
        case Bullets(items):
            return "<ul>" + "".join(f"<li>{_html(item)}</li>" for item in items) + "</ul>"
        case Table(head, rows):
            return _html_table(head, rows)
        case ReportChart():
            return _html_chart(block)


def _html_table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    top = "".join(f"<th>{_html(cell)}</th>" for cell in head)
    body = "".join(f"<tr>{''.join(f'<td>{_html(cell)}</td>' for cell in row)}</tr>" for row in rows)
    return (
        f'<div class="wide"><table><thead><tr>{top}</tr></thead><tbody>{body}</tbody></table></div>'
    )


def _html_chart(chart: ReportChart) -> str:
    names = "".join(
        f'<span><span class="dot" style="color:{colour}">●</span> {_html(name)}</span>'
        for name, colour in legend(chart)
    )
    return f'<h2>{_html(chart.title)}</h2>\n{svg_chart(chart)}\n<p class="legend">{names}</p>'


def _html(text: str) -> str:
    return _CODE.sub(r"<code>\1</code>", escape(_one_line(text)))
