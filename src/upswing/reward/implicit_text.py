"""What does one user's turn say of the answer before it? Thanks, a correction, nothing, or nobody can tell.

A message is read from its beginning, word by word, until it turns to something else:

| it begins with                                        | it is                        | confidence |
|-------------------------------------------------------|------------------------------|------------|
| "that is wrong", "it still fails", "you forgot"       | a correction                 | 0.9        |
| "I meant", "try again"                                | a correction                 | 0.7        |
| "no, …", where nothing was asked and nothing declined | a correction                 | 0.7        |
| thanks, and nothing else                              | thanks                       | 0.8        |
| thanks, and the next request                          | thanks                       | 0.6        |
| praise, and nothing else                              | thanks                       | 0.5        |
| thanks or praise, then "but", trouble or mockery      | undecided                    |            |
| thanks at the head of a long text, perhaps a letter   | undecided                    |            |

In front of a correction may stand what softens it ("thanks, but", "hm, sorry"): it costs 0.1. Code, quotations
and lines of the assistant's answer are nobody's opinion, and a message that begins with them says nothing.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass, fields
from enum import StrEnum
from functools import cache

from upswing.reward.implicit_phrases import GO_ON, LANGUAGES, WITHOUT_SPACES, Phrases

LONGEST = 400
"""Characters of a message that are read: an opinion stands at its beginning."""
_LETTER = 160
"""Characters behind thanks beyond which it may be a letter that somebody pasted."""
_COPIED = 20
"""Characters from which on a line that the answer has too is a quotation."""
_HOLE = "\ufffc"
_SURE, _LIKELY, _POLITE, _PRAISED, _SOFTENED = 0.9, 0.7, 0.6, 0.5, 0.1
_THANKED = 0.8

_STRANGE = re.compile(
    r"```.*?(?:```|\Z)|~~~.*?(?:~~~|\Z)|`[^`\n]+`|^[ \t]*(?:>|\|).*$|^(?: {4,}|\t).*$"
    r"|\"[^\"\n]+\"|“[^”\n]+”|„[^“”\n]+[“”]|«[^»\n]+»|»[^«\n]+«|「[^」\n]+」|『[^』\n]+』|(?<!\w)[‘'][^'’\n]+['’](?!\w)"
    r"|https?://\S+",
    re.DOTALL | re.MULTILINE,
)
"""Code, quoted lines, quotations, addresses."""
_MAYBE_STRANGE = re.compile("[`\"“„«»「『'‘>|~/\t]|    ")
_MARK = re.compile("[\u0300-\u036f]")
_SPACES = re.compile(r"[ \t\f\v\u00a0\u3000]{2,}|[\t\f\v\u00a0\u3000]")
_APOSTROPHES = str.maketrans({"’": "'", "‘": "'", "´": "'", "`": "'", "ı": "i", "，": ",", "。": ".", "、": ",", "！": "!", "？": "?"})  # fmt: skip
_PAUSE = r"[\s,.;:!?…~\-–—\u2600-\u27bf\U0001f300-\U0001faff\ufe0f)(*_]"
_GAP = re.compile(f"{_PAUSE}*")
_QUESTION = re.compile(r"[?？؟][\s*_)\"'”»」]*\Z")
_UP = re.compile(r"[\s]*(?:👍|🙏|❤|💯|🎉|👏)")
_DOWN = re.compile(r"[\s]*👎")


class SignalKind(StrEnum):
    """What a user's own behaviour says of an answer."""

    THANKS = "thanks"
    CORRECTION = "correction"
    REPEAT = "same request again"
    ABANDONED = "abandoned"


@dataclass(frozen=True, slots=True)
class TextReading:
    """What a message says; `kind` None with `undecided` when rules cannot tell."""

    kind: SignalKind | None = None
    confidence: float = 0.0
    language: str = ""
    undecided: bool = False


NOTHING, UNDECIDED = TextReading(), TextReading(undecided=True)


def fold(text: str) -> str:
    """Letters as they compare: no case, no accents, one kind of apostrophe and space.

    >>> fold("C’est  FAUX"), fold("Não")
    ("c'est faux", 'nao')
    """
    if not text.isascii():
        folded = unicodedata.normalize("NFKD", text.casefold())
        text = unicodedata.normalize("NFC", _MARK.sub("", folded)).translate(_APOSTROPHES)
    return _SPACES.sub(" ", text.lower())


def expression(phrase: str) -> str:
    """A phrase of the tables as a regular expression over folded text."""
    stop = "(?=\\s*(?:[,.;:!?…)\\-–—\\n]|\\Z))"
    signs = {"{": "(?:", "}": ")", "|": "|", ".": stop, " ": "[ \\n]+"}
    return "".join(signs.get(sign) or re.escape(sign) for sign in fold(phrase))


def spellings(phrase: str) -> list[str]:
    """Every way to write a phrase of the tables, without the full stop that says how it ends.

    >>> spellings("{|please }try {it|this} again")[:3]
    ['try it again', 'try this again', 'please try it again']
    """
    inner = _INNERMOST.search(phrase)
    if inner is None:
        return [phrase.replace(".", "")]
    head, tail = phrase[: inner.start()], phrase[inner.end() :]
    return [way for each in inner[1].split("|") for way in spellings(f"{head}{each}{tail}")]


_INNERMOST = re.compile(r"\{([^{}]*)\}")


def _union(phrases: Iterable[tuple[str, str]]) -> str:
    """Phrases of several languages; those of languages with spaces end where a word ends."""
    spaced = "|".join(expression(p) for lang, p in phrases if lang not in WITHOUT_SPACES)
    dense = "|".join(expression(p) for lang, p in phrases if lang in WITHOUT_SPACES)
    parts = [f"(?:{spaced})(?!\\w)"] if spaced else []
    return "(?:" + "|".join([*parts, f"(?:{dense})"] if dense else parts) + ")"


def _of(name: str) -> list[tuple[str, str]]:
    """Every phrase of a row with its language, long ones first."""
    found = [(lang, p) for lang, each in LANGUAGES.items() for p in getattr(each, name)]
    return sorted(found, key=lambda pair: -len(pair[1]))


class _Rules:
    """The tables, compiled. `at(row, …)` matches at a place and not beyond."""

    def __init__(self) -> None:
        rows = {field.name: _union(_of(field.name)) for field in fields(Phrases)}
        pause = r"\s*(?:[,;!…–—]|\.(?!\s*\d)|-\s|\Z)"
        rows["no"] = f"{rows['no']}(?={pause}|\\s+{rows['no_goes_on']})"
        rows["thanks_not"] = f"{rows['thanks']}\\s*{rows['not_thanks']}"
        self._rows = {name: re.compile(row) for name, row in rows.items()}
        spaced = "|".join(expression(p) for n, p in _of("trouble") if n not in WITHOUT_SPACES)
        dense = "|".join(expression(p) for n, p in _of("trouble") if n in WITHOUT_SPACES)
        self.trouble = re.compile(
            f"(?<!\\w)(?:{spaced})(?!\\w)|n't\\b|(?:{dense})|(?<!\\S)/s(?!\\S)"
        )
        ways = [fold(way) for row in _OPENING for _, p in _of(row) for way in spellings(p)]
        words = [found[0] for way in ways if (found := _FIRST.match(way))]
        self._first = frozenset(word[0] if word[0] >= _DENSE else word for word in words)

    def begins(self, words: str, at: int) -> bool:
        """Can any phrase stand here? Most messages are done with after this."""
        first = _FIRST.match(words, at)
        return first is not None and (first[0] in self._first or words[at] in self._first)

    def at(self, row: str, words: str, at: int) -> re.Match[str] | None:
        return self._rows[row].match(words, at)


_OPENING = ("wrong", "again", "no", "thanks", "praise", "lead", "contrast", "thanks_for", "mocking")
_FIRST = re.compile(r"\w+(?:'\w+)*")
_DENSE = "⺀"
"""From here on the letters of scripts without spaces."""


@cache
def _rules() -> _Rules:
    return _Rules()


@cache
def _of_language(lang: str, row: str) -> re.Pattern[str]:
    return re.compile(_union([(lang, phrase) for phrase in getattr(LANGUAGES[lang], row)]))


def own_words(text: str, answer: str = "") -> str:
    r"""What of a message its writer says: code, quotations and lines of `answer` leave a hole.

    >>> own_words("> No, that is wrong.\nWhat does it mean?").split("\n")[1]
    'What does it mean?'
    """
    text = text[:LONGEST]
    if answer:
        text = "\n".join(_HOLE if _is_copied(line, answer) else line for line in text.split("\n"))
    return _STRANGE.sub(_HOLE, text) if _MAYBE_STRANGE.search(text) else text


def _is_copied(line: str, answer: str) -> bool:
    line = line.strip()
    return len(line) >= _COPIED and line in answer


@dataclass(slots=True)
class _Opening:
    """What stands before the point of a message."""

    at: int = 0
    thanks: str = ""
    praise: str = ""
    no: str = ""
    led: bool = False
    contrast: bool = False


def read_text(text: str, answer: str = "") -> TextReading:
    """What a user's message says of the `answer` before it.

    >>> read_text("Thanks, but that is wrong.").kind, read_text("Nein, ich meinte Spalte B").kind
    (<SignalKind.CORRECTION: 'correction'>, <SignalKind.CORRECTION: 'correction'>)
    >>> read_text("No problem, go on."), read_text("Great, thanks for nothing.").undecided
    (TextReading(kind=None, confidence=0.0, language='', undecided=False), True)
    """
    if text.lstrip()[:1] in {"{", "[", "<"}:
        return NOTHING
    words = fold(own_words(text, answer)).strip()
    if not words:
        return NOTHING
    if _DOWN.match(words):
        return TextReading(SignalKind.CORRECTION, _SURE)
    rules = _rules()
    opening = _opening(rules, words)
    softened = _SOFTENED if opening.thanks or opening.praise else 0.0
    if rules.begins(words, opening.at):
        for row, sure in (("wrong", _SURE), ("again", _LIKELY)):
            if found := rules.at(row, words, opening.at):
                confidence = round(sure - softened, 6)
                return TextReading(SignalKind.CORRECTION, confidence, _language(row, found[0]))
    if opening.no:
        return _contradiction(rules, opening, words, answer)
    if opening.thanks or opening.praise:
        return _gratitude(rules, opening, words[opening.at :])
    return TextReading(SignalKind.THANKS, _PRAISED) if _only_up(words) else NOTHING


def _opening(rules: _Rules, words: str) -> _Opening:
    """Step over what says nothing yet, and note what it was."""
    seen = _Opening()
    while rules.begins(words, seen.at):
        found = _step(rules, words, seen)
        if found is None:
            break
        gap = _GAP.match(words, found.end())
        seen.at = gap.end() if gap else found.end()
        if seen.thanks and rules.at("mocking", words, seen.at):
            seen.contrast = True
            break
    return seen


def _step(rules: _Rules, words: str, seen: _Opening) -> re.Match[str] | None:
    """What stands here, if it is no more than an opening."""
    at = seen.at
    if seen.thanks and (found := rules.at("thanks_for", words, at)):
        return found
    if (found := rules.at("thanks", words, at)) and not rules.at("thanks_not", words, at):
        seen.thanks = seen.thanks or found[0]
        return found
    if found := rules.at("no", words, at):
        seen.no = seen.no or found[0]
        return found
    if (seen.thanks or seen.praise or seen.led) and (found := rules.at("contrast", words, at)):
        seen.contrast = True
        return found
    if found := rules.at("lead", words, at):
        seen.led = True
        return found
    if (found := rules.at("praise", words, at)) and not rules.at("wrong", words, at):
        seen.praise = seen.praise or found[0]
        return found
    return None


def _contradiction(rules: _Rules, opening: _Opening, words: str, answer: str) -> TextReading:
    """A "no" without more: an answer to a question and a polite refusal contradict nothing."""
    asked = _QUESTION.search(answer[-400:].rstrip()) is not None
    polite = any(rules.at(row, words, opening.at) for row in ("no_innocent", "thanks_not"))
    if asked or polite or opening.thanks or opening.praise:
        return NOTHING
    return TextReading(SignalKind.CORRECTION, _LIKELY, _language("no", opening.no))


def _gratitude(rules: _Rules, opening: _Opening, rest: str) -> TextReading:
    trouble = opening.contrast or rules.trouble.search(rest)
    language = _language("thanks", opening.thanks) or _language("praise", opening.praise)
    if not opening.thanks:
        if not rest:
            return TextReading(SignalKind.THANKS, _PRAISED, language)
        return UNDECIDED if trouble else NOTHING
    if trouble or len(rest) > _LETTER or rest.startswith(_HOLE):
        return UNDECIDED
    return TextReading(SignalKind.THANKS, _POLITE if rest else _THANKED, language)


def _only_up(words: str) -> bool:
    return _UP.match(words) is not None and _GAP.fullmatch(words) is not None


def _language(row: str, found: str) -> str:
    """The first language of the tables whose words these are."""
    if not found:
        return ""
    return next((lang for lang in LANGUAGES if _of_language(lang, row).fullmatch(found)), "")


def request_of(text: str) -> str:
    """A request as it compares with another; empty where the same again says nothing.

    >>> request_of("Sort the LIST!") == request_of("sort the list"), request_of("Go on.")
    (True, '')
    """
    plain = " ".join(fold(text[:10_000]).split()).strip(" .,;:!?…")
    spaced = len(plain.split()) >= 2 and len(plain) >= 8
    long_enough = spaced or (not plain.isascii() and len(plain) >= 5)
    return plain if long_enough and plain not in GO_ON else ""
