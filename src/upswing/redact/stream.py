"""How is a text redacted that is longer than memory? Through a window that looks both ways.

    | context, written already | block, written now | what comes next |

The window is redacted as a whole and only the block is written, so a value is found wherever the
input was cut: its name may stand in the context, its end in what comes next. A block never ends
inside a finding.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from .names import Names
from .redactor import Finding, Redacted, Redactor


@dataclass(frozen=True, slots=True)
class StreamWindow:
    """Characters of each part of the window."""

    context: int = 1 << 12
    block: int = 1 << 20
    ahead: int = 1 << 16


_WINDOW = StreamWindow()


def filter_text(
    chunks: Iterable[str], redactor: Redactor, window: StreamWindow = _WINDOW
) -> Iterator[Redacted[str]]:
    """The stream in redacted blocks, however it was cut into chunks.

    >>> redactor = Redactor(engine="python")
    >>> [block.value for block in filter_text(["mail bo", "b@x.or", "g now"], redactor)]
    ['mail <email-1> now']
    """
    names = Names()
    held, written = "", 0
    for chunk in chunks:
        held += chunk
        while len(held) - written > window.block + window.ahead:
            block, cut = _redact_block(redactor, names, held, written, written + window.block)
            yield block
            written = min(cut, window.context)
            held = held[cut - written :]
    if len(held) > written:
        yield _redact_block(redactor, names, held, written, len(held))[0]


def _redact_block(
    redactor: Redactor, names: Names, window: str, start: int, stop: int
) -> tuple[Redacted[str], int]:
    """The block from `start` to `stop`, or to the end of what `stop` would cut; and that end."""
    parts, inside, at = [], [], start
    for found in _outermost_findings(redactor.text(window, names).findings):
        if found.end <= at or found.start >= stop:
            continue
        parts += [window[at : found.start], found.placeholder]
        inside.append(replace(found, start=max(found.start, start) - start, end=found.end - start))
        at = found.end
    stop = max(at, stop)
    parts.append(window[at:stop])
    return Redacted("".join(parts), tuple(inside)), stop


def _outermost_findings(findings: tuple[Finding, ...]) -> list[Finding]:
    """Findings of later rounds may cover earlier ones: the widest at each place."""
    kept: list[Finding] = []
    for found in sorted(findings, key=lambda f: (f.start, -f.end)):
        if not kept or found.start >= kept[-1].end:
            kept.append(found)
    return kept
