"""How is the report laid out? Its frame and its style; everything in it comes escaped.

Nothing is loaded from anywhere: no script, no font, no picture that is not in the file.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

STYLE = """
:root { color-scheme: light dark; --paper: #ffffff; --ink: #1f2430; --faint: #5b6472; --line: #e5e7eb;
  --card: #f6f7f9; --good: #00617f; --bad: #b93a08; }
@media (prefers-color-scheme: dark) { :root { --paper: #161922; --ink: #e5e7eb; --faint: #9aa3b2;
  --line: #2b3040; --card: #1d212c; --good: #6cc4ee; --bad: #f58a5a; } }
* { box-sizing: border-box; }
body { margin: 0; background: var(--paper); color: var(--ink);
  font: 16px/1.55 system-ui, -apple-system, "Segoe UI", Roboto, "DejaVu Sans", sans-serif; }
main { max-width: 880px; margin: 0 auto; padding: 40px 24px 56px; }
h1 { font-size: 30px; line-height: 1.25; margin: 0 0 6px; letter-spacing: -0.01em; }
h2 { font-size: 19px; margin: 44px 0 10px; }
p { margin: 0 0 12px; } .faint { color: var(--faint); } .good { color: var(--good); }
.bad { color: var(--bad); } .nowrap { white-space: nowrap; }
.figures { display: flex; flex-wrap: wrap; gap: 12px; margin: 26px 0 8px; }
.figure { flex: 1 1 180px; background: var(--card); border-radius: 10px; padding: 14px 18px; }
.figure b { display: block; font-size: 28px; line-height: 1.2; font-variant-numeric: tabular-nums; }
.figure span { color: var(--faint); font-size: 14px; }
img { display: block; width: 100%; height: auto; margin: 18px 0 0; }
.wide { overflow-x: auto; }
table { border-collapse: collapse; width: 100%; font-size: 14.5px; }
th { text-align: left; color: var(--faint); font-weight: 500; }
th, td { padding: 7px 14px 7px 0; border-bottom: 1px solid var(--line); vertical-align: top;
  overflow-wrap: break-word; }
td.number, th.number { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; }
code, pre { font: 13.5px/1.5 ui-monospace, "SF Mono", Menlo, Consolas, "DejaVu Sans Mono", monospace; }
td code { white-space: nowrap; }
pre { background: var(--card); border-radius: 10px; padding: 14px 18px; overflow-x: auto; }
@media print { main { max-width: none; padding: 0; } }
"""
_POLICY = "default-src 'none'; img-src data:; style-src 'unsafe-inline'"


class Html(str):
    """Text that is markup already: made here, from escaped parts."""

    __slots__ = ()


def escape_html(value: object) -> Html:
    """Anything else is escaped.

    >>> escape_html("<b>"), escape_html(Html("<b>"))
    ('&lt;b&gt;', '<b>')
    """
    return value if isinstance(value, Html) else Html(escape(str(value)))


def html_element(name: str, *inside: object, kind: str = "") -> Html:
    """An element; `kind` is its class.

    >>> html_element("p", "1 < 2 ", html_element("b", "yes"), kind="faint")
    '<p class="faint">1 &lt; 2 <b>yes</b></p>'
    """
    marked = f' class="{escape(kind)}"' if kind else ""
    return Html(f"<{name}{marked}>{''.join(map(escape_html, inside))}</{name}>")


def html_table(heads: Sequence[str], rows: Iterable[Sequence[object]]) -> Html:
    """A table; a heading that begins with `#` is a column of numbers."""
    kinds = ["number" if head.startswith("#") else "" for head in heads]
    top = [
        html_element("th", head.lstrip("#"), kind=kind)
        for head, kind in zip(heads, kinds, strict=True)
    ]
    body = [
        html_element(
            "tr",
            *(html_element("td", cell, kind=kind) for cell, kind in zip(row, kinds, strict=True)),
        )
        for row in rows
    ]
    inner = html_element(
        "table", html_element("thead", html_element("tr", *top)), html_element("tbody", *body)
    )
    return html_element("div", inner, kind="wide")


def html_page(title: str, parts: Iterable[Html]) -> str:
    """The whole file."""
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escape(title)}</title>\n<style>{STYLE}</style>\n</head>\n<body>\n<main>\n"
        + "\n".join(parts)
        + "\n</main>\n</body>\n</html>\n"
    )
