"""What does one user's turn say of the answer before it? Thanks, a correction, nothing, or nobody can tell.

A message is read from its beginning, word by word, until it turns to something else:

| it begins with                                        | it is                        | confidence |
|-------------------------------------------------------|------------------------------|------------|
| "that is wrong", "it still fails", "you forgot"       | a correction                 | 0.9        |
| "I meant", "try again"                                | a correction                 | 0.7        |
| "no, …", where nothing was asked and nothing declined | a correction                 | 0.7        |
| "no, …" with more words, after a question             | undecided                    |            |
| "the total is wrong", "again!", "I asked for"         | undecided                    |            |
| thanks, and nothing else                              | thanks                       | 0.8        |
| thanks, and the next request                          | thanks                       | 0.6        |
| praise, and nothing else                              | thanks                       | 0.5        |
| thanks or praise, then "but", trouble or mockery      | undecided                    |            |
| thanks at the head of a long text, perhaps a letter   | undecided                    |            |

What is followed by a text to work on (a colon, a quotation, lines of code, "translate", "summarise") is undecided:
it may be that text's beginning. So is what the answer has too: it may be quoted, and it may be what the answer
proposed to say. Thanks that the answer asked for say nothing.

In front of a correction may stand what softens it ("thanks, but", "hm, sorry"): it costs 0.1. Code, quotations
and lines of the assistant's answer are nobody's opinion: whole lines of them are passed over, and a sentence that
begins with a quotation says nothing.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass, field, fields
from enum import StrEnum
from functools import cache

from upswing.reward.core.implicit_phrases import (
    GO_ON,
    LANGUAGES,
    PARTICLES,
    WITHOUT_SPACES,
    Phrases,
)

LONGEST = 240
"""Characters of a message that are read: an opinion stands at its beginning."""
_QUOTING = 4_000
"""Characters that are looked through where a message begins with what others wrote."""
_GLANCE = 40
_MARGINS = frozenset("`~>| \t")
_REQUEST = 4_000
_LETTER = 160
"""Characters behind thanks beyond which it may be a letter that somebody pasted."""
_COPIED = 20
"""Characters from which on a line that the answer has too is a quotation."""
_HOLE, _CODE, _BLOCK = "\ufffc", "\ufffb", "\ufffa"
"""What stands for a quotation, for a name in code or an address, and for lines of others."""
_SURE, _LIKELY, _POLITE, _PRAISED, _SOFTENED = 0.9, 0.7, 0.6, 0.5, 0.1
_THANKED = 0.8

_FOREIGN_LINES = re.compile(
    r"```.*?(?:```[ \t]*\n?|\Z)|~~~.*?(?:~~~[ \t]*\n?|\Z)|^(?:[ \t]*[>|]| {4,}|\t)[^\n]*(?:\n|\Z)",
    re.DOTALL | re.MULTILINE,
)
"""Code and quoted lines: at the head of a message what stands below them is the writer's again."""
_QUOTED = re.compile(
    r"`[^`\n]+`|\"[^\"\n]+\"|“[^”\n]+”|„[^“”\n]+[“”]|«[^»\n]+»|»[^«\n]+«|「[^」\n]+」|『[^』\n]+』"
    r"|(?<!\w)[‘'][^'’\n]+['’](?!\w)|https?://\S+"
)
"""In the middle of a sentence: it leaves a hole."""
_MAYBE_STRANGE = re.compile("[`\"“„«»「『'‘>|~/\t]|    ")
_MARK = re.compile("[\u0300-\u036f]")
_SPACES = re.compile(r"[ \t\f\v\u00a0\u3000]{2,}|[\t\f\v\u00a0\u3000]")
_APOSTROPHES = str.maketrans(
    {
        "’": "'",
        "‘": "'",
        "´": "'",
        "`": "'",
        "ı": "i",
        "，": ",",
        "。": ".",
        "、": ",",
        "！": "!",
        "？": "?",
    }
)
_QUESTION = re.compile(r"[?？؟][\s*_)\"'”»」]*\Z")
_UP = frozenset("👍🙏❤💯🎉👏")


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


def fold_for_comparison(text: str) -> str:
    """Letters as they compare: no case, no accents, one kind of apostrophe and space.

    >>> fold_for_comparison("C’est  FAUX"), fold_for_comparison("Não")
    ("c'est faux", 'nao')
    """
    if not text.isascii():
        folded = unicodedata.normalize("NFKD", text.casefold())
        text = unicodedata.normalize("NFC", _MARK.sub("", folded)).translate(_APOSTROPHES)
    return _SPACES.sub(" ", text.lower())


def spellings_of_phrase(phrase: str, *, stops: bool = False) -> list[str]:
    """Every way to write a phrase of the tables; the full stop that says how it ends is kept with `stops`.

    >>> spellings_of_phrase("{|please }try {it|this} again.")[:3]
    ['try it again', 'try this again', 'please try it again']
    """
    inner = _INNERMOST.search(phrase)
    if inner is None:
        return [phrase if stops else phrase.replace(".", "")]
    head, tail = phrase[: inner.start()], phrase[inner.end() :]
    ways = (f"{head}{each}{tail}" for each in inner[1].split("|"))
    return [each for way in ways for each in spellings_of_phrase(way, stops=stops)]


_INNERMOST = re.compile(r"\{([^{}]*)\}")
_WILD = "_"
"""Any one word."""
_Found = dict[str, tuple[int, tuple[str, ...]]]
"""By row of the tables: where the longest phrase of it ends, and in which languages it is one."""


class _Node:
    """A beginning of phrases, token by token."""

    __slots__ = ("ends", "next")

    def __init__(self) -> None:
        self.next: dict[str, _Node] = {}
        self.ends: list[tuple[str, str, bool]] = []
        """Rows and languages in which a phrase ends here, and whether it has to stand alone."""


class _Rules:
    """The tables as one tree: a single walk finds the longest phrase of every row."""

    def __init__(self) -> None:
        self._root = _Node()
        for lang, phrases in LANGUAGES.items():
            for row in fields(Phrases):
                for phrase in getattr(phrases, row.name):
                    for way in spellings_of_phrase(fold_for_comparison(phrase), stops=True):
                        self._add_phrase(row.name, lang, way)

    def _add_phrase(self, row: str, lang: str, way: str) -> None:
        node = self._root
        for token in _TOKEN.findall(way.rstrip(".")):
            node = node.next.setdefault(token, _Node())
        node.ends.append((row, lang, way.endswith(".")))

    def can_open_phrase(self, text: str) -> bool:
        """Can the first word open a phrase, or is it a sign? Most messages are done with after this."""
        first = _TOKEN.search(fold_for_comparison(text[:_GLANCE].lstrip()))
        return first is not None and (first[0] in self._root.next or _is_emoji(first[0]))

    def at(self, tokens: Sequence[str], position: int) -> _Found:
        """What stands at this token."""
        found: _Found = {}
        nodes = [self._root]
        while nodes and position < len(tokens):
            token = tokens[position]
            reached = [each.next[token] for each in nodes if token in each.next]
            if token.isalnum():
                reached += [each.next[_WILD] for each in nodes if _WILD in each.next]
            nodes, position = reached, position + 1
            for row, lang, alone in (each for node in nodes for each in node.ends):
                over = not alone or _is_end_of_phrase(tokens, position, lang)
                inside = row in _COMPLAINING and lang in WITHOUT_SPACES
                if over or inside:
                    name = row if over else "maybe"
                    end, langs = found.get(name, (position, ()))
                    found[name] = (position, (*langs, lang) if end == position else (lang,))
        return found

    def follows(self, tokens: Sequence[str], position: int, row: str, langs: Sequence[str]) -> bool:
        """Does a phrase of this row stand here, in one of these languages?"""
        found = self.at(tokens, position).get(row)
        return found is not None and not set(langs).isdisjoint(found[1])


_DENSE = "\u2e80-\u9fff\uf900-\ufaff\uff66-\uff9d"
"""Letters of scripts without spaces: each is a token."""
_TOKEN = re.compile(f"\\n|[{_DENSE}]|(?:[^\\W{_DENSE}]|_)+(?:'[^\\W{_DENSE}]+)*|\\S")
_STOPS = frozenset(",.;:!?…)-–—\n~")
_COMPLAINING = frozenset({"wrong", "again"})
_PAUSES = frozenset(",;!….–—\n")


def _is_emoji(sign: str) -> bool:
    return "\u2600" <= sign <= "\u27bf" or sign >= "\U0001f000" or sign == "\ufe0f"


def _is_end_of_phrase(tokens: Sequence[str], position: int, lang: str) -> bool:
    """Does nothing go on here? Where words are not separated, a particle may end the sentence."""
    while lang in WITHOUT_SPACES and position < len(tokens) and tokens[position] in PARTICLES:
        position += 1
    return position == len(tokens) or tokens[position] in _STOPS or _is_emoji(tokens[position])


def _is_pause(token: str) -> bool:
    return token in _STOPS or token in _MORE_PAUSES or _is_emoji(token)


_MORE_PAUSES = frozenset("(*_'\"")


@cache
def _build_rules() -> _Rules:
    return _Rules()


def warm_up() -> None:
    """Build the tree now, so that no message waits for it."""
    _build_rules()


def remove_quoted_text(text: str, answer: str = "") -> str:
    r"""What of a message its writer says, without code, quotations and lines of `answer`.

    >>> remove_quoted_text("> No, that is wrong.\nWhat does it mean?")
    'What does it mean?'
    """
    return _replace_quotations(_remove_copied_lines(text, _comparable_sentences(answer)))


def _replace_quotations(text: str) -> str:
    """Signs stand for what is quoted, but for lines at the head."""
    if not _MAYBE_STRANGE.search(text):
        return text
    own = _FOREIGN_LINES.sub(f"{_BLOCK}\n", text).lstrip(f"{_BLOCK} \n")
    return _QUOTED.sub(lambda found: _CODE if found[0][0] in "`h" else _HOLE, own[: 2 * LONGEST])


def _remove_copied_lines(text: str, sentences: frozenset[str]) -> str:
    if not sentences:
        return text
    return "\n".join(line for line in text.split("\n") if not _is_copied_line(line, sentences))


def _comparable_sentences(text: str) -> frozenset[str]:
    """A text's sentences, as they compare: each search for a copied line is one look-up."""
    return frozenset(filter(None, (each.strip(_FRAME) for each in _ENDS.split(text))))


_ENDS = re.compile("[\n.!?:。！？：…]+")
_FRAME = " \t\r*_#>-–•\"'“”„«»「」()[]`"


def _is_copied_line(line: str, sentences: frozenset[str]) -> bool:
    line = line.strip()
    long_enough = len(line) >= (_COPIED if line.isascii() else _COPIED // 2)
    return long_enough and _comparable_sentences(line) <= sentences


@dataclass(slots=True)
class _Opening:
    """What stands before the point of a message; the languages in which it does."""

    at: int = 0
    thanks: tuple[str, ...] = ()
    praise: tuple[str, ...] = ()
    no: tuple[str, ...] = ()
    led: bool = False
    contrast: bool = False
    polite: bool = False
    paused: bool = False
    """There was more than a space before this place."""
    here: _Found = field(default_factory=dict)
    """What stands where the opening ends."""


def read_text(text: str, answer: str = "") -> TextReading:
    """What a user's message says of the `answer` before it.

    >>> read_text("Thanks, but that is wrong.").kind, read_text("Nein, ich meinte Spalte B").kind
    (<SignalKind.CORRECTION: 'correction'>, <SignalKind.CORRECTION: 'correction'>)
    >>> read_text("No problem, go on."), read_text("Great, thanks for nothing.").undecided
    (TextReading(kind=None, confidence=0.0, language='', undecided=False), True)
    """
    begins = _build_rules().can_open_phrase(text)
    head = text[:_GLANCE].lstrip("\n")[:1] in _MARGINS
    if not begins and not head and "\n" not in text.strip():
        return NOTHING
    sentences = _comparable_sentences(answer)
    own = _remove_copied_lines(text[:_QUOTING], sentences)
    read = _read_part(own, text, answer)
    copied = len(own) < len(text[:_QUOTING])
    if copied and read == NOTHING and begins and _read_part(text, text, answer) != NOTHING:
        return UNDECIDED
    return read


def _read_part(written: str, text: str, answer: str) -> TextReading:
    """What this part of a message says."""
    own = _replace_quotations(written[:_QUOTING]).strip()
    rules, tokens = _build_rules(), _TOKEN.findall(fold_for_comparison(own[:LONGEST]))
    seen = _read_opening(rules, tokens)
    softened = _SOFTENED if seen.thanks or seen.praise else 0.0
    read = NOTHING
    for row, sure in (("again", _LIKELY), ("wrong", _SURE)):
        if row in seen.here:
            confidence = round(sure - softened, 6)
            read = TextReading(SignalKind.CORRECTION, confidence, seen.here[row][1][0])
    if read == NOTHING:
        if seen.no:
            read = _contradiction_reading(seen, answer, more=seen.at < len(tokens))
        elif seen.thanks or seen.praise:
            read = _gratitude_reading(rules, seen, tokens)
        else:
            read = UNDECIDED if "maybe" in seen.here else _gesture_reading(tokens)
    if read.kind is not None and _is_text_to_work_on(rules, tokens, text):
        return UNDECIDED
    if read.kind is SignalKind.THANKS and _asks_for_thanks(rules, answer):
        return NOTHING
    return read


def _is_text_to_work_on(rules: _Rules, tokens: Sequence[str], text: str) -> bool:
    """Is it the beginning of a text that something is to be done with? That is said at either end."""
    if not _TEXT_FOLLOWS.isdisjoint(tokens):
        return True
    end = _TOKEN.findall(fold_for_comparison(text[-LONGEST:])) if len(text) > LONGEST else []
    both = [*tokens, "\n", *end]
    return any("text_work" in rules.at(both, place) for place in range(len(both)))


_TEXT_FOLLOWS = frozenset({":", _HOLE, _BLOCK})


def _asks_for_thanks(rules: _Rules, answer: str) -> bool:
    """Thanks inside a sentence, or praise in quotation marks: what a user is to say. "Thanks for asking" is none."""
    signs = ["\n", *_TOKEN.findall(fold_for_comparison(answer))]
    tokens = ["," if sign in _MARKS else sign for sign in signs]
    place = 1
    while place < len(tokens):
        before, found = signs[place - 1], rules.at(tokens, place)
        begins = before in _BEGINNINGS
        if not begins and ("thanks" in found or ("praise" in found and before in _MARKS)):
            return True
        place = found["thanks"][0] if begins and "thanks" in found else place + 1
    return False


_BEGINNINGS = frozenset("\n.!?…")
_MARKS = frozenset("\"'“”„«»「」『』‘’`*")


def _read_opening(rules: _Rules, tokens: Sequence[str]) -> _Opening:
    """Step over what says nothing yet, and note what it was."""
    seen = _Opening()
    while True:
        seen.here = here = rules.at(tokens, seen.at)
        if seen.no and ("no_innocent" in here or _says_nothing_of_answer(rules, tokens, seen)):
            seen.polite = True
            return seen
        if seen.thanks and "mocking" in here:
            seen.contrast = True
            return seen
        end = _end_of_opening_part(rules, tokens, seen) if here else None
        if end is None:
            return seen
        seen.at = end
        while seen.at < len(tokens) and _is_pause(tokens[seen.at]):
            seen.at += 1
        seen.paused = seen.at > end


def _end_of_opening_part(rules: _Rules, tokens: Sequence[str], seen: _Opening) -> int | None:
    """Where that ends which stands here, if it is no more than an opening."""
    here = seen.here
    if seen.thanks and not (seen.paused or seen.contrast) and "thanks_for" in here:
        return here["thanks_for"][0]
    if "wrong" in here or "again" in here:
        return None
    if "thanks" in here and not _says_nothing_of_answer(rules, tokens, seen):
        seen.thanks = seen.thanks or here["thanks"][1]
        return here["thanks"][0]
    if "no" in here and _is_contradicting_no(rules, tokens, *here["no"]):
        seen.no = seen.no or here["no"][1]
        return here["no"][0]
    if "contrast" in here and (seen.thanks or seen.praise or seen.led):
        seen.contrast = True
        return here["contrast"][0]
    if "praise" in here:
        seen.praise = seen.praise or here["praise"][1]
        return here["praise"][0]
    if "lead" in here and here["lead"][0] >= here.get("maybe", (0,))[0]:
        seen.led = True
        return here["lead"][0]
    return None


def _says_nothing_of_answer(rules: _Rules, tokens: Sequence[str], seen: _Opening) -> bool:
    """Thanks for what is still to come, or a text about thanks."""
    if "thanks" not in seen.here:
        return False
    end, langs = seen.here["thanks"]
    comma = end < len(tokens) and tokens[end] == ","
    return rules.follows(tokens, end + comma, "not_thanks", langs)


def _is_contradicting_no(
    rules: _Rules, tokens: Sequence[str], end: int, langs: Sequence[str]
) -> bool:
    """Does what follows a "no" make it one, and not the beginning of "no one" or "No. 5"?"""
    if end == len(tokens) or _is_emoji(tokens[end]):
        return True
    if tokens[end] in _PAUSES:
        return not (end + 1 < len(tokens) and tokens[end] == "." and tokens[end + 1][0].isdigit())
    return rules.follows(tokens, end, "no_goes_on", langs)


def _contradiction_reading(seen: _Opening, answer: str, *, more: bool) -> TextReading:
    """A polite refusal contradicts nothing, nor does a "no" to a question; with more words, nobody can tell."""
    asked = _QUESTION.search(answer[-400:].rstrip()) is not None
    if seen.polite or seen.thanks or seen.praise:
        return NOTHING
    if asked:
        return UNDECIDED if more else NOTHING
    return TextReading(SignalKind.CORRECTION, _LIKELY, seen.no[0])


def _gratitude_reading(rules: _Rules, seen: _Opening, tokens: Sequence[str]) -> TextReading:
    rest = tokens[seen.at :]
    trouble = seen.contrast or "maybe" in seen.here or _mentions_trouble(rules, rest)
    if not seen.thanks:
        if not rest:
            return TextReading(SignalKind.THANKS, _PRAISED, seen.praise[0])
        return UNDECIDED if trouble else NOTHING
    if trouble or sum(map(len, rest)) > _LETTER or rest[:1] == [_CODE]:
        return UNDECIDED
    return TextReading(SignalKind.THANKS, _POLITE if rest else _THANKED, seen.thanks[0])


def _mentions_trouble(rules: _Rules, rest: Sequence[str]) -> bool:
    if any(token.endswith("n't") for token in rest) or list(rest[-2:]) == ["/", "s"]:
        return True
    return any("trouble" in rules.at(rest, place) for place in range(len(rest)))


def _gesture_reading(tokens: Sequence[str]) -> TextReading:
    """A message of nothing but signs."""
    if "👎" in tokens[:1]:
        return TextReading(SignalKind.CORRECTION, _SURE)
    thumbs = tokens[:1] and tokens[0] in _UP and all(map(_is_pause, tokens))
    return TextReading(SignalKind.THANKS, _PRAISED) if thumbs else NOTHING


def request_fingerprint(text: str) -> str:
    """A request as it compares with another; empty where the same again says nothing.

    >>> request_fingerprint("Sort the LIST!") == request_fingerprint("sort the list"), request_fingerprint("Go on.")
    (True, '')
    """
    if len(text) >= _REQUEST:
        return ""
    words = text.casefold().split()
    plain = " ".join(words).strip(" .,;:!?…。！？")
    long_enough = (len(words) >= 2 and len(plain) >= 8) or (len(plain) >= 5 and not plain.isascii())
    return (
        plain
        if long_enough and (len(plain) > _GLANCE or fold_for_comparison(plain) not in GO_ON)
        else ""
    )
