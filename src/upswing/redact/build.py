"""How are the built-in tables written? With three builders, one per way to recognise a value."""

from __future__ import annotations

import re
from collections.abc import Callable

from .rule import LEFT, Anchor, Rule

ALNUM = "A-Za-z0-9"
WORD = "A-Za-z0-9_"
URL64 = r"A-Za-z0-9_\-"
HEX = "0-9a-f"
_LETTERS = {
    ALNUM: "kT7bQ2mXz9RfL4wVn1Ps8HcJ5dYg3aG6uEo0iKrNtBqMpWx",
    HEX: "7c1f9e3a5b2d8064",
    "A-Z0-9": "K7Q2MX9RFL4WVN1PS8HCJ5DYG3A6UE0T",
}
GAP = r"""[A-Za-z0-9_. \-]{0,24}?[\\"'`\])]{0,4}[ \t]{0,3}(?::=|=>|==?|:)[ \t]{0,3}[\\"'`]{0,4}"""


def example_value(count: int, alphabet: str = ALNUM) -> str:
    """A made-up value for an example: varied, always the same, and written nowhere in full."""
    letters = _LETTERS.get(alphabet, _LETTERS[ALNUM])
    return "".join(letters[(i * i + 3 * i + i // 7) % len(letters)] for i in range(count))


def has_varied_characters(value: str) -> bool:
    """False for words and for dummies such as `sk-xxxxxxxx`: a real value is a mixture.

    >>> has_varied_characters("sk-" + "aB3d" * 12), has_varied_characters("sk-" + "x" * 48)
    (True, False)
    """
    different = len(set(value))
    mixed = different >= 5 and any(ch.isdigit() for ch in value)
    return mixed or different >= min(10, 3 + len(value) // 4)


def accept_any_value(_: str) -> bool:
    """A prefix that means only one thing needs no second opinion: a dummy behind it may go too."""
    return True


def prefixed_token_rule(
    name: str,
    prefixes: str | tuple[str, ...],
    body: str,
    least: int,
    limit: int = 0,
    *,
    kind: str = "",
    tail: str = "",
    example: str = "",
    about: str = "",
    priority: int = 60,
    validator: Callable[[str], bool] | None = None,
) -> Rule:
    """A value with a prefix of its own: `prefixes`, then `least` to `limit` characters of `body`."""
    if isinstance(prefixes, str):
        prefixes = (prefixes,)
    count = f"{{{least},{limit}}}" if limit else f"{{{least}}}"
    starts = "|".join(re.escape(p) for p in prefixes)
    need = min(least, 10)
    telling = all(len(p) > 3 and not p.isalnum() for p in prefixes)
    left = "" if telling else LEFT  # `task-…` is no `sk-…`, but `xoxb-…` is one wherever it stands
    return Rule(
        name=name,
        kind=kind,
        pattern=f"{left}(?:{starts})[{body}]{count}{tail}" + ("" if tail else f"(?![{body}])"),
        anchors=tuple(Anchor(p, f"[{body}]{{{need}}}", len(p) + need) for p in prefixes),
        validator=validator or (accept_any_value if telling else has_varied_characters),
        split=True,
        priority=priority,
        about=about,
        example=example or prefixes[0] + example_value(least, body),
        trusted=True,
    )


def keyword_context_rule(
    name: str,
    words: tuple[str, ...],
    value: str,
    *,
    kind: str = "",
    gap: str = GAP,
    edge: str = "",
    follow: str = "",
    example: str,
    about: str = "",
    priority: int = 55,
    validator: Callable[[str], bool] = has_varied_characters,
) -> Rule:
    """A value without a prefix of its own, known by the word before it: `DATADOG_API_KEY=`."""
    return Rule(
        name=name,
        kind=kind,
        pattern=f"{edge}(?i:{'|'.join(words)}){gap}(?P<v>{value})(?![A-Za-z0-9])",
        anchors=tuple(
            Anchor(
                w, follow, 0 if follow else len(w), len(w) + 80, caseless=True, late=bool(follow)
            )
            for w in words
        ),
        validator=validator,
        priority=priority,
        about=about,
        example=example,
        trusted=True,
    )


def fixed_shape_rule(
    name: str,
    pattern: str,
    shapes: tuple[tuple[str, int], ...],
    *,
    kind: str = "",
    validator: Callable[[str], bool] | None = None,
    example: str,
    about: str = "",
    priority: int = 40,
    core: str = "",
) -> Rule:
    """A value known by its form alone, each form of fixed width: `123-45-6789`."""
    return Rule(
        name=name,
        kind=kind,
        pattern=LEFT + r"(?<![0-9][.,])" + pattern + r"(?![A-Za-z0-9])(?!\.[0-9])",
        anchors=tuple(Anchor("", follow, width, core=core) for follow, width in shapes),
        validator=validator,
        priority=priority,
        about=about,
        example=example,
        trusted=True,
    )
