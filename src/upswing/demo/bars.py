"""How does a number look in a row of characters? Traces, bars and stacks, told apart without colour."""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil, floor, isfinite

from rich.cells import cell_len, set_cell_size

_BLOCKS = " ▁▂▃▄▅▆▇█"
COVERS = 2.0
"""Seconds before its own time that a point of a trace speaks for."""
NEAR = 6.0
"""Seconds to both sides that a moving mean looks at."""


def printable_line(text: str) -> str:
    r"""One line of printable characters.

    >>> printable_line("it\x1b[31m failed\nagain")
    'it [31m failed again'
    """
    return "".join(each if each.isprintable() else " " for each in text)


def format_elapsed(seconds: float) -> str:
    """Time since the begin.

    >>> format_elapsed(7.9), format_elapsed(83), format_elapsed(3723)
    ('0:07', '1:23', '1:02:03')
    """
    minutes, second = divmod(max(0, int(seconds)), 60)
    hours, minute = divmod(minutes, 60)
    return f"{hours}:{minute:02}:{second:02}" if hours else f"{minute}:{second:02}"


def shorten_middle(text: str, width: int) -> str:
    """At most so wide; the middle goes first, for names differ at their ends.

    >>> shorten_middle("agent-zero-rl-v12", 12), shorten_middle("tiny", 12)
    ('agent-…l-v12', 'tiny')
    """
    text = printable_line(text)
    if cell_len(text) <= width:
        return text
    if width < 2:
        return "…"[: max(0, width)]
    tail = (width - 1) // 2
    end = text[len(text) - tail :] if tail else ""
    head = set_cell_size(text, width - 1 - cell_len(end)).rstrip()
    return f"{head}…{end}"


def clip_text(text: str, width: int) -> str:
    """At most so wide; the end goes first.

    >>> clip_text("Nothing is failing.", 12)
    'Nothing is…'
    """
    text = printable_line(text)
    if cell_len(text) <= width:
        return text
    return set_cell_size(text, max(0, width - 1)).rstrip() + "…" if width > 0 else ""


def progress_bar(share: float, width: int) -> tuple[str, str]:
    """What is done and what is left.

    >>> progress_bar(0.5, 8), progress_bar(float("nan"), 4)
    (('━━━━', '────'), ('', '────'))
    """
    done = round(min(1.0, max(0.0, share)) * width) if isfinite(share) else 0
    return "━" * done, "─" * (width - done)


def stack_widths(shares: Sequence[float], width: int) -> list[int]:
    """How many of the cells each share gets; a share above zero gets one at least.

    >>> stack_widths([90, 10], 20), stack_widths([99, 1, 0], 20), stack_widths([0, 0], 20)
    ([18, 2], [19, 1, 0], [0, 0])
    """
    clean = [max(0.0, share) if isfinite(share) else 0.0 for share in shares]
    if not any(clean) or width < len(clean):
        return [0 for _ in clean]
    exact = [share / sum(clean) * width for share in clean]
    cells = [floor(part) for part in exact]
    nearest = sorted(range(len(cells)), key=lambda at: cells[at] - exact[at])
    for at in nearest[: width - sum(cells)]:
        cells[at] += 1
    for at, share in enumerate(clean):
        if share and not cells[at]:
            cells[cells.index(max(cells))] -= 1
            cells[at] = 1
    return cells


def draw_trace(
    points: Sequence[tuple[float, float]], end: float, size: tuple[int, int], top: float = 1.0
) -> list[str]:
    """Values over the time from 0 to `end`, `size` columns and rows; where nothing was, nothing is.

    >>> draw_trace([(2, 0.25), (4, 0.5), (8, 1.0)], 8, (8, 1))
    ['▂▂▄▄  ██']
    >>> draw_trace([(2, 0.25), (4, 1.0)], 4, (4, 2))
    ['  ██', '▄▄██']
    """
    width, height = size
    columns = [_bar_level(value, height, top) for value in _column_means(points, end, width)]
    return [
        "".join(_BLOCKS[min(8, max(0, level - 8 * row))] for level in columns)
        for row in reversed(range(height))
    ]


def moving_mean(points: Sequence[tuple[float, float]]) -> list[tuple[float, float]]:
    """The same points, each the mean of those near it, so that one odd episode is no peak.

    >>> moving_mean([(2, 0.0), (4, 1.0), (60, 0.5)])
    [(2, 0.5), (4, 0.5), (60, 0.5)]
    """
    known = [point for point in points if isfinite(point[0]) and isfinite(point[1])]
    made = []
    for second, _ in known:
        near = [value for at, value in known if abs(at - second) <= NEAR]
        made.append((second, sum(near) / len(near)))
    return made


def _bar_level(value: float | None, height: int, top: float) -> int:
    """In eighths of a cell; a zero is seen, too."""
    if value is None:
        return 0
    return max(1, round(min(1.0, max(0.0, value / top)) * 8 * height))


def _column_means(
    points: Sequence[tuple[float, float]], end: float, width: int
) -> list[float | None]:
    """The mean of what is known in each column's time."""
    known: list[list[float]] = [[] for _ in range(width)]
    scale = width / end if end > 0 else 0.0
    for second, value in points:
        if not (isfinite(value) and 0 <= second <= end + COVERS):
            continue
        last = min(width, ceil(second * scale - 1e-9))
        first = max(0, min(floor((second - COVERS) * scale + 1e-9), last - 1))
        for column in range(first, last):
            known[column].append(value)
    return [sum(each) / len(each) if each else None for each in known]


def column_at(second: float, end: float, width: int) -> int:
    """The column of a moment.

    >>> column_at(0, 60, 10), column_at(30, 60, 10), column_at(60, 60, 10)
    (0, 5, 9)
    """
    return min(width - 1, max(0, int(second / end * width))) if end > 0 else 0
