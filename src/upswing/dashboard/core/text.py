r"""How is a text shown that anybody may have written? As text, whole lines of it, with nothing hidden in it.

    a trajectory's text ──▶ cut to what a person reads ──▶ pieces: plain, placeholder, escape, cut

| in the text                              | piece         | shown as                                       |
|------------------------------------------|---------------|------------------------------------------------|
| `<email-1>`, what redaction put there     | `placeholder` | marked                                          |
| control and direction characters (U+202E) | `escape`      | spelled out, `\u202e`: none of them acts        |
| what lies beyond the limit                | `cut`         | how much it is                                  |
| everything else, `<script>` as well       | `plain`       | as it is: pieces become text, never markup      |
"""

from __future__ import annotations

import re
from typing import Any

import msgspec

from upswing.logs import printable

_FRONT_MATTER = re.compile(r"\A---\n.*?\n---\n", re.DOTALL)
"""What a model card tells to programs."""
_FOLDED = re.compile(r"^<details><summary>(.*)</summary>$", re.MULTILINE)
_FOLD_END = re.compile(r"^</details>$", re.MULTILINE)
_PICTURE = re.compile(r"^!\[[^\]\n]*\]\([^)\n]*\)\n?", re.MULTILINE)
"""Of a folder that the page does not have; the page draws curves itself."""
Piece = tuple[str, str]
"""Its kind and its text."""
SHOWN = 4_000
"""Characters of a text that are shown at first: some two screens."""
_MOST_PIECES = 2_000
"""Beyond it, the rest of a text is one plain piece: a browser draws each piece."""
_PIECE = re.compile(
    r"(?P<placeholder><[a-z][a-z0-9-]{0,60}-[0-9]{1,6}>)|(?P<escape>[\x00-\x08\x0b-\x1f\x7f-\x9f"
    "\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff\ufff9-\ufffb]|[\U000e0000-\U000e007f])"
)


def pieces_of(text: str, limit: int = SHOWN) -> list[Piece]:
    r"""The pieces of a text, at most `limit` characters of it.

    >>> pieces_of("mail <email-1>\u202e now")
    [('plain', 'mail '), ('placeholder', '<email-1>'), ('escape', '\\u202e'), ('plain', ' now')]
    >>> pieces_of("x" * 5000, 3)
    [('plain', 'xxx'), ('cut', '… 4,997 characters more')]
    """
    shown, place = text[:limit], 0
    pieces: list[Piece] = []
    for found in _PIECE.finditer(shown):
        if len(pieces) >= _MOST_PIECES:
            break
        if found.start() > place:
            pieces.append(("plain", shown[place : found.start()]))
        kind = found.lastgroup or "plain"
        pieces.append((kind, found[0] if kind == "placeholder" else _spelled(found[0])))
        place = found.end()
    if place < len(shown):
        pieces.append(("plain", _visible(shown[place:])))
    if len(text) > limit:
        pieces.append(("cut", f"… {len(text) - limit:,} characters more"))
    return pieces


def one_line(text: str, limit: int = 120) -> str:
    r"""The beginning of a text for a list: one line, nothing hidden.

    >>> one_line("a\n  b\u202ec"), one_line("x" * 9, 5)
    ('a b\\u202ec', 'xxxx…')
    """
    flat = _visible(" ".join(text[: 4 * limit].split()))
    return flat if len(flat) <= limit else f"{flat[: limit - 1]}…"


def as_text(value: Any) -> str:
    """What a field of a trajectory holds, a string or a tree, as text."""
    if isinstance(value, str):
        return value
    if value is None:
        return ""
    return msgspec.json.format(msgspec.json.encode(value), indent=2).decode()


def _visible(text: str) -> str:
    return _PIECE.sub(lambda found: found[0] if found["placeholder"] else _spelled(found[0]), text)


def _spelled(character: str) -> str:
    shown = printable(character)
    if shown != character:
        return shown
    code = ord(character)
    return (
        f"\\x{code:02x}"
        if code < 0x100
        else f"\\u{code:04x}"
        if code < 0x10000
        else f"\\U{code:08x}"
    )


def page_markdown(text: str) -> str:
    """A document of the loop's as the page shows it: without what only a file beside its pictures can show.

    >>> print(page_markdown(chr(10).join(["# M", "![Curves](c.svg)", "<details><summary>All</summary>", "x"])))
    # M
    **All**
    x
    """
    text = _FRONT_MATTER.sub("", text)
    return _PICTURE.sub("", _FOLD_END.sub("", _FOLDED.sub(r"**\1**", text)))
