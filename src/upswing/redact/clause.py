"""A sentence speaks of a password: where in it does the password stand?

after    the password that you asked for is …     a strong token anywhere behind the name
before   use … as the password; … ist das Passwort
below    Password? / …                            a line of its own, below a line that ends with the name
"""

from __future__ import annotations

import re

from .cues import ADVERBS, CUES, LATIN_NAMES, OF, SERVICES
from .layer import Span
from .ordinary import ordinary
from .said import PLACES, asks_how, whose
from .strength import strong, unlikely
from .values import DOTTED, dummy, label
from .words import LINK, PASSWORD

_REACH, _BACK, _SHORT_LINE = 110, 80, 60
_SHORT_ANSWER = 4
"""Words of an answer that is the value, and no sentence of its own."""
_CJK = r"\u3001-\u30ff\u3400-\u9fff\uac00-\ud7af"
_TOKEN = re.compile(
    rf"[\"`]([^\"`\n\x00]{{3,64}})[\"`]|([^\s\"'`<>()\[\]{{}},;|\x00\\{_CJK}\x0e-\x14]{{3,64}})"
)
_END = re.compile(r"[.!?](?=\s|$)|[\n\x00]")
_PROGRAM = re.compile(r"[={}()\[\];<>$]|::|->|\\")
_TRAIL = ".,;:?)*_~"
_CONNECTIVES = frozenset(
    "is was as that are were ist war als est etait comme es era como foi come jest jako wordt that's thats c'est olarak".split()  # noqa: SIM905
)
"""Between a value and the name behind it: `… is the password`, `… als Passwort`."""
_BACKWARD = re.compile(rf"[{LINK}]+|[{_CJK}]+|[^\s\"'`,{_CJK}\x0e-\x14]+")
_QUESTION = re.compile(
    r"[\"'`*_)\]]{0,4}[^\n\x00.!?:=;]{0,24}\?[ ]{0,2}(?:[\-A>–]{1,2}:?[ ])?([^\s\"'`]{4,64})[ \t]{0,3}(?=\n|$)"
)
_BELOW = re.compile(
    r"[\"'`*_)\]]{0,4}(?:[ ][^\n\x00=(){}]{1,60}[?:.]|[ ]?[:?.]|(?:</[a-z1-6]{1,6}>))?[ \t]{0,3}\r?\n(?:[ \t]{0,8}\r?\n|[ \t]{0,4}```[a-z]{0,8}\r?\n){0,2}"
    r"[ \t>*\-]{0,8}(?:[\"`]{0,3})([^\s\"`|]{4,64})[\"`]{0,3}[ \t]{0,3}(?=\r?\n|$)"
)
_GOES_ON = re.compile(r"'[a-z]|[ ](?:zu|to|than|als|que|che|om|te|[a-z]+er als|ou|oder|or)\b")
"""Behind an adjective, or a name: `is easy to guess`, `is Ann's`."""
_ASIDE = frozenset(
    "if unless whether because falls wenn sofern weil damit obwohl si puisque parce car porque aunque caso se perche siccome qualora als omdat indien jesli bo gdyby eger".split()  # noqa: SIM905
)  # fmt: skip
"""Words that begin a clause which tells why or when: `…, falls du es brauchst`."""
_CODE = re.compile(r"[={};<$]|::|(?<![ ])->|(?<![ \-])>|\\")
_COUNTED = re.compile(r"([A-Za-z]{5,20})[_-]?[0-9]{1,4}")
_LATIN = re.compile(r"[\t\n\r -~]*")
_RULE = re.compile(r"[\W_]+")


def after(text: str, start: int, roof: int, *, adjacent: bool) -> list[Span]:
    """The value behind the name, in the same sentence of prose or in the answer to it.

    A strong token counts anywhere, any other that no sentence needs right behind a cue. `adjacent`
    tells that the name itself is one.
    """
    if _PROGRAM.match(text, start):
        return []
    stop, asked = _end_of_clause(text, start, min(roof, start + _REACH))
    short = text[asked:stop].count(" ") < _SHORT_ANSWER
    found: list[Span] = []
    cue, at, last, aside = adjacent, start, "", False
    other = text[start - 1 : start] == PASSWORD
    how = asks_how(text, start)
    foreign = _LATIN.fullmatch(text, max(0, start - 60), start) is not None
    for token in _TOKEN.finditer(text, start, stop):
        between = text[at : token.start()]
        if _CODE.search(between) or text[token.end() : token.end() + 1] in ("(", "[", "="):
            break
        at_first = at == start
        low, high = _trimmed(text, *token.span(token.lastindex or 2))
        word, answer = text[low:high], short and at <= asked < token.start()
        if at <= asked < token.start():
            cue = answer
        cue = cue or other or any(sign in between for sign in (LINK, "(", ">"))
        cue = cue or ("," in between and text[high : high + 1] == ",")
        at = token.end()
        aside = aside or word.lower() in _ASIDE
        if strong(word) or (_counted(word) and last not in OF) or (cue and not aside and (candidate(word) or (foreign and _script(word))) and not _GOES_ON.match(text, high) and not (at_first and whose(text, high)) and not (how and not PLACES.isdisjoint((last, between.strip())))):  # fmt: skip
            found.append((low, high))
            cue = False
        else:
            last = word.lower()
            cue = last in CUES or text[high : high + 1] == ":" or (cue and last in ADVERBS)
    return found[:3]


def _end_of_clause(text: str, start: int, stop: int) -> tuple[int, int]:
    """Where the sentence ends, or its answer if it is a question; and where the question ends."""
    end = _END.search(text, start, stop)
    if end is None:
        return stop, -1
    if end.group() != "?":
        return end.end(), -1
    answer = _END.search(text, end.end(), stop)
    return (answer.end() if answer else stop), end.start()


def _script(word: str) -> bool:
    """A word of another script in a sentence of Latin letters."""
    return len(word) > 3 and not word.isascii() and word.isalnum()


def _counted(word: str) -> bool:
    """A word of no sentence with a number: `Butterfly77`."""
    match = _COUNTED.fullmatch(word)
    return match is not None and not ordinary(match.group(1))


def candidate(word: str) -> bool:
    """A word, digits or words with digits that no sentence needs beside the name of a password."""
    if word.isdigit():
        return len(word) > 4
    low = word.lower()
    if not word.isascii() or len(word) < 5 or low in LATIN_NAMES or low in SERVICES:
        return False
    return _plain(word)


def before(text: str, at: int, floor: int) -> list[Span]:
    """The value of which the sentence says that it is the password."""
    low = max(floor, at - _BACK)
    line = text.rfind("\n", low, at)
    low = line + 1 if line >= 0 else low
    words = list(_BACKWARD.finditer(text, low, at))
    said = text.startswith(("sifre", "parola"), at)
    for word in reversed(words[-7:]):
        piece = word.group()
        close = word is words[-1] and piece.lower() in ("to", "de", "e")
        if piece[0] == LINK or close or piece.lower() in _CONNECTIVES:
            said = True
            continue
        if not piece[0].isascii() and len(piece) < 5:
            said = said or piece in ("という", "って", "との")
            continue
        if piece[-1] in ".?;:" or (piece[-1] == "!" and not strong(piece)):
            return []  # another sentence
        a, b = _trimmed(text, word.start(), word.end())
        if strong(text[a:b]) or (
            said and candidate(text[a:b]) and text[at : at + 40].partition("\n")[0].count("?") == 0
        ):
            quoted = text[max(low, a - 1) : a] in ("`", '"', "'")
            return [(a, b)] if said or quoted else []
        if not ordinary(piece):
            return []
    return []


def below(text: str, start: int, end: int, floor: int, roof: int) -> list[Span]:
    """The answer to the question for a password, or the line below its name."""
    line = max(text.rfind("\n", floor, start) + 1, floor)
    if start - line > _SHORT_LINE or _PROGRAM.search(text[line:start].lstrip("> ")):
        return []
    match = _QUESTION.match(text, end, roof) or _BELOW.match(text, end, min(roof, end + 160))
    if match is None or _RULE.fullmatch(match.group(1)):
        return []
    low, high = _trimmed(text, *match.span(1))
    value = text[low:high]
    taken = strong(value) or _plain(value) or (value.isdigit() and len(value) > 4)
    return [(low, high)] if taken else []


def _trimmed(text: str, low: int, high: int) -> Span:
    while low < high and text[low] in "*_~([":
        low += 1
    while high > low and text[high - 1] in _TRAIL:
        high -= 1
    return low, high


def _plain(value: str) -> bool:
    """A word, or a word with a number, that no sentence needs beside the name of a password."""
    if len(value) < 5 or dummy(value) or label(value) or DOTTED.fullmatch(value):
        return False
    odd = (
        not value.replace("-", "").isalnum()
        or (value.isupper() and (len(value) < 6 or not unlikely(value)))
        or value[0] in "-/"
    )
    return not odd and not ordinary(value.rstrip("0123456789"))
