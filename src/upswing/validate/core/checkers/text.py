"""Do two texts say the same, as far as spelling goes?"""

from __future__ import annotations

import re
import unicodedata

_MARKS = str.maketrans(
    {
        "’": "'",
        "‘": "'",
        "“": '"',
        "”": '"',
        "–": "-",
        "—": "-",
        "−": "-",
        "*": None,
        "`": None,
        "_": " ",
    }
)
_THOUSANDS = re.compile(r"(?<=\d),(?=\d{3}(?!\d))")
_NUMBER = re.compile(r"[-+]?(?:\d[\d,]*\.?\d*|\.\d+)(?:[eE][-+]?\d+)?")
_ANSWER = re.compile(
    r"^[ \t>#*]*(?:the )?(?:final )?answer[ \t*]*(?:is|:|=)[ \t:*]*(\S.*)$",
    re.IGNORECASE | re.MULTILINE,
)
LIMIT = 100_000
"""Characters of an answer that are looked at."""


def normalized(text: str) -> str:
    r"""Without the differences that do not matter: case, quotes, emphasis, spaces, 1,000 or 1000.

    >>> normalized("The **Total** is\n“1,200”")
    'the total is "1200"'
    """
    folded = unicodedata.normalize("NFKC", text[:LIMIT]).translate(_MARKS).casefold()
    return " ".join(_THOUSANDS.sub("", folded).split())


def phrase_positions(text: str, phrase: str) -> list[int]:
    """Where the phrase stands in the text, as whole words; both as `normalized` has them.

    >>> phrase_positions("in 1912, not 19120", "1912")
    [3]
    """
    pattern = rf"(?<![\w.]){re.escape(phrase)}(?!\w|\.\d)"
    return [found.start() for found in re.finditer(pattern, text)]


def final_answer(text: str) -> str | None:
    r"""What stands behind the last `ANSWER:`.

    >>> final_answer("So 3 + 4 is seven.\n**ANSWER: 7**"), final_answer("Seven.")
    ('7', None)
    """
    found = _ANSWER.findall(text[:LIMIT])
    return found[-1].strip().strip("*`_ ").strip() if found else None


def numbers(text: str) -> list[float]:
    """The numbers in a text.

    >>> numbers("from $1,200.50 to −3 %")
    [1200.5, -3.0]
    """
    found = _NUMBER.findall(unicodedata.normalize("NFKC", text[:LIMIT]).translate(_MARKS))
    return [float(each.replace(",", "")) for each in found]
