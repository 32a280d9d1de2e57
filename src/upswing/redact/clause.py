"""A sentence speaks of a password: where in it does the password stand?

after    the password that you asked for is …     a strong token anywhere behind the name
before   use … as the password; … ist das Passwort
aside    it is … (the password, I mean)
below    Password? / …                            a line of its own, below a line that ends with the name
"""

from __future__ import annotations

import re
from itertools import pairwise

from .cues import ADVERBS, CUES, LATIN_NAMES, OF, SERVICES, SHORT_CUES, TYPING
from .fold import fold
from .layer import Span
from .ordinary import is_ordinary_word
from .said import PLACES, asks_how, names_password_owner
from .strength import count_unlikely_pairs, is_strong_token
from .values import DOTTED, is_dummy, is_label
from .words import LINK, PASSWORD, VERB, describes_password

_REACH, _BACK, _SHORT_LINE = 110, 80, 60
_SHORT_ANSWER = 4
"""Words of an answer that is the value, and no sentence of its own."""
_CJK = r"\u3001-\u30ff\u3400-\u9fff\uac00-\ud7af"
_TOKEN = re.compile(
    rf"[\"`]([^\"`\n\x00]{{3,64}})[\"`]|([^\s\"'`<>()\[\]{{}},;|\x00\\{_CJK}\x0e-\x15]{{3,64}})|([{_CJK}][{_CJK}\w\-]{{1,30}})"
)
_END = re.compile(r"[.!?](?=\s|$)|[\n\x00]")
_PROGRAM = re.compile(r"[={}()\[\];<>$]|::|->|\\")
_TRAIL = ".,;:?)*_~"
_CONNECTIVES = frozenset(
    """
    is be was as that are were that's thats ist war als ware musste durfte wordt zou est etait etre comme c'est c'etait tant que es era ser como foi
    come essere jest bylo byc jako ar er var som ca drept este erau on oli legyen volt olarak je jsou bude bolo
    """.split()  # noqa: SIM905
)
"""Between a value and the name behind it: `… is the password`, `… als Passwort`."""
_BACKWARD = re.compile(rf"[{LINK}{VERB}]+|[{_CJK}]+|[^\s\"'`,{_CJK}\x0e-\x15]+")
_QUESTION = re.compile(
    r"[\"'`*_)\]]{0,4}[^\n\x00.!?:=;]{0,24}\?[ ]{0,2}(?:[\-A>–]{1,2}:?[ ])?([^\s\"'`]{4,64})[ \t]{0,3}(?=\n|$)"
)
_BELOW = re.compile(
    r"[\"'`*_)\]]{0,4}(?:[ ][^\n\x00=(){}]{1,60}[?:.]|[ ]?[:?.]|(?:</[a-z1-6]{1,6}>))?[ \t]{0,3}\r?\n(?:[ \t]{0,8}\r?\n|[ \t]{0,4}```[a-z]{0,8}\r?\n){0,2}"
    r"[ \t>*\-]{0,8}(?:[\"`]{0,3})([^\s\"`|]{4,64})[\"`]{0,3}[ \t]{0,3}(?=\r?\n|$)"
)
_ANSWER = re.compile(
    r"[^\n\x00=(){}?]{0,60}\?[ ]{0,2}\r?\n[ \t>*\-]{0,4}(?:\[[0-9:., /apmAPM\-]{3,20}\][ ]?)?[*_<@]{0,3}[^\s\x00:<>*_]{1,24}[*_>]{0,3}:[*_]{0,2}[ ]?[\"`]?([^\s\"`|]{2,64})[\"`]?[ \t]{0,3}(?=\r?\n|$)"
)
"""What somebody else answers in a chat: one word, behind the name of who says it."""
_GOES_ON = re.compile(r"'[a-z]|[ ](?:zu|to|than|als|que|che|om|te|[a-z]+er als|ou|oder|or)\b")
"""Behind an adjective, or a name: `is easy to guess`, `is Ann's`."""
_ASIDE = frozenset(
    "if unless whether because falls wenn sofern weil damit obwohl si puisque parce car porque aunque caso se perche siccome qualora als omdat indien jesli bo gdyby eger".split()  # noqa: SIM905
)
"""Words that begin a clause which tells why or when: `…, falls du es brauchst`."""
_CODE = re.compile(r"[={};<$]|::|(?<![ ])->|(?<![ \-])>|\\")
_SURE_ONLY = frozenset(["for", "-", "pour", "para", "per", "fur", "de", "dla", "till", "til"])
"""Between a value and a name where only a value that shows itself is one: `go with … for the password`."""
_DETERMINERS = frozenset(
    """
    a an the this these those some any each every another something anything
    ein eine einen einem eines einer der die das den dem des diese diesen dieser dieses jede jeden jeder kein keine keinen etwas irgendwas
    un une le la les des ce cet cette quelque aucun aucune una el los las algo este esta ese esa unos unas ningun ninguna um uma os isto
    uno il lo gli questo questa qualcosa nessuna een het dit deze iets geen jakis jakies jakas cos nejaky nejake neco
    ett nagot noget et jokin jotain egy valami bir bu
    """.split()  # noqa: SIM905
)
"""Words before a thing that is spoken of: `a birthday as password`, `etwas Langes als Passwort`."""
_ARTICLES = frozenset("an the ein eine einen einem un une una um uma een ett egy etwas".split())  # noqa: SIM905
"""Those that no other language writes, so that an adjective may stand between: `a long phrase`."""
_POLISH_OWN = frozenset("moje twoje nasze wasze nowe stare jego jej ich".split())  # noqa: SIM905
_THE_WORD = frozenset(
    [
        "szot",
        "szo",
        "szoval",
        "wort",
        "word",
        "palabra",
        "mot",
        "palavra",
        "woord",
        "slowo",
        "slovo",
        "ordet",
        "sanaa",
        "kelimesini",
    ]
)
_BY_CASE = re.compile(
    r"(?i)(?:sala|tunnus)san(?:ana|aksi)|jelsz(?:onak|oval|ot|avam|o(?![a-z]))|sifre|parola|jelszavunk|jelszava"
)
"""Names whose ending says that the value stands before them."""
_TAKING = frozenset(
    """
    use take put set try go with pick choose make add enter nimm nimmt nehmen setz setze gib verwende benutz benutze trag hab habe mach du wir ich
    prends mets utilise choisis mettre prendre utiliser usa pon poner usar ponle elige toma usi metti prendi mettere usare prendere use coloca poe por
    nehmt verwendet benutzt setzt tragt macht prenez mettez utilisez choisissez usad usen pongan tomen elijan usem coloquem ponham usate mettete prendete scegliete
    wezcie uzyjcie wpiszcie ustawcie vezmete pouzijte nastavte zadejte hasznaljatok folositi puneti kullanin yazin girin
    neem gebruik zet nemen gebruiken zetten wez uzyj wpisz ustaw uzyc vezmi pouzij nastav ta anvand satt brug bruk tag sett kayta laita ottaa vedd hasznald legyen
    pune foloseste kullan yaz
    """.split()  # noqa: SIM905
)
"""Verbs right before a value that is to be taken as a password, also in a question."""
_TYPING = TYPING | {
    fold(word).lower() for word in ("набери", "наберите", "введи", "введите", "ввести", "вводи")
}
_POLISH = re.compile(r"(?i)hasl|dostepu")
_COUNTED = re.compile(
    r"([A-Za-z]{5,20}|[^\W\d_a-zA-Z][^\W\d_]{2,20}|[^\W\d_]{1,20}[^\W\d_a-zA-Z][^\W\d_]{0,20})[_-]?[0-9]{1,4}"
)
_LATIN = re.compile(r"[\t\n\r -~]*")
_RULE = re.compile(r"[\W_]+")
_JOINED = re.compile(r"[^\W\d_]{4,24}(?:[-_.][^\W\d_]{4,24}){1,6}(?:[-_.]?[0-9]{1,4})?")


def values_after_name(text: str, start: int, search_end: int, *, adjacent: bool) -> list[Span]:
    """The value behind the name, in the same sentence of prose or in the answer to it.

    A strong token counts anywhere, any other that no sentence needs right behind a cue. `adjacent`
    tells that the name itself is one.
    """
    if _PROGRAM.match(text, start):
        return []
    stop, asked = _clause_end(text, start, min(search_end, start + _REACH))
    short = text[asked:stop].count(" ") < _SHORT_ANSWER
    found: list[Span] = []
    cue, at, last, aside = adjacent, start, "", False
    other = text[start - 1 : start] == PASSWORD
    polish = _POLISH.search(text, max(0, start - 12), start) is not None
    how = asks_how(text, start)
    foreign = _LATIN.fullmatch(text, max(0, start - 60), start) is not None
    for token in _TOKEN.finditer(text, start, stop):
        between = text[at : token.start()]
        if _CODE.search(between) or text[token.end() : token.end() + 1] in ("(", "[", "="):
            break
        at_first = at == start
        low, high = _trim_span(text, *token.span(token.lastindex or 2))
        word, answer = text[low:high], short and at <= asked < token.start()
        if at <= asked < token.start():
            cue = answer
        cue = (
            _announces_value(between, cue=cue, polish=polish)
            or other
            or any(sign in between for sign in (LINK, "(", ">"))
        )
        cue = cue or ("," in between and text[high : high + 1] == ",")
        at = token.end()
        aside = aside or word.lower() in _ASIDE
        told = (
            foreign
            and _is_other_script_word(word)
            and (cue or at_first or between.strip().isalpha())
        )
        if (
            told
            or is_strong_token(word)
            or ((_is_word_with_number(word) or is_passphrase(word)) and last not in OF)
            or (
                cue
                and not aside
                and (
                    is_password_candidate(word)
                    or (
                        is_cyrillic_or_greek_candidate(word)
                        and _is_set_off_word(text, between, low, high, last=last, adjacent=at_first)
                    )
                )
                and not _GOES_ON.match(text, high)
                and not (at_first and names_password_owner(text, high))
                and not (how and not PLACES.isdisjoint((last, between.strip())))
            )
        ):
            found.append((low, high))
            cue = False
        else:
            last = word.lower()
            cue = last in CUES or text[high : high + 1] == ":" or (cue and last in ADVERBS)
    return found[:3]


def _announces_value(between: str, *, cue: bool, polish: bool) -> bool:
    """Short words between two tokens: the last decides. `the password of …`, `the password, it's …`."""
    words = between.lower().replace(",", " ").split()
    if words and words[-1] == VERB:
        return cue or "," in between
    if not words or not words[-1][-1].isalpha():
        return cue
    if (polish and words[-1] == "to") or words[-2:] == ["to", "be"]:
        return True
    again = "," in between or (len(words) > 1 and words[0] in ("it", "es", "het"))
    return (again and words[-1] in SHORT_CUES) or words[-1] in ("it's", "that's", "c'est")


def _is_set_off_word(
    text: str, between: str, start: int, end: int, *, last: str, adjacent: bool
) -> bool:
    """Is a word of the sentence's own script set off: by a sign or a verb before it, or by the end of its line?"""
    if any(sign in between for sign in (LINK, ":", "(", "-")):
        return True
    if last in RUSSIAN_CUES:
        return True
    if between != " ":
        return False
    if text[end : end + 1] in ("", "\n", ",", ")", ";", "!") or text[start].isupper():
        return True
    follows = _NEXT.match(text, end)
    if not adjacent or follows is None:
        return False
    return is_ordinary_word(follows.group(1)) or _VERB.fullmatch(follows.group(1)) is not None


RUSSIAN_CUES = frozenset(
    fold(word)
    for word in """
    введи введите ввести вводи вводите набери наберите набрать напиши напишите используй используйте использовать
    использую используем попробуй попробуйте поставь поставил поставила поставили поставьте сделал сделала сделай
    выбрал выбрала придумал придумала задал задала взял взяла слово слова словом фраза звучит называется остаётся
    остался стоит оказался оказалось стал стало подойдёт подходит работает через вроде типа например именно типо
    точно просто тоже же теперь снова опять обратно прежний старый новый временный такой
    """.split()  # noqa: SIM905
)
"""Russian words right before a value, as folding leaves them."""
_NEXT = re.compile(r"[ ]([^\W\d]{1,20})\b")


def _clause_end(text: str, start: int, stop: int) -> tuple[int, int]:
    """Where the sentence ends, or its answer if it is a question; and where the question ends."""
    end = _END.search(text, start, stop)
    if end is None:
        return stop, -1
    if end.group() != "?":
        return end.end(), -1
    answer = _END.search(text, end.end(), stop)
    return (answer.end() if answer else stop), end.start()


def _is_other_script_word(word: str) -> bool:
    """A word of another script in a sentence of Latin letters; Chinese says much in two signs."""
    least = 2 if word[:1] > "\u3000" else 4
    return len(word) >= least and not word.isascii() and word.replace("-", "").isalnum()


_NATIVE = re.compile("[\u0370-\u04ff]")
_VERB = re.compile(
    r"[^\W\d]{2,}(?:[еиe]шь|[еиюуаяёeya][тt]|[аaияeуы]л[иоаao]?|[уyю]|[оo]г[оo]|[еe]м[уy]|[ыи][хx]|[ыиoо]й|[ыиoо]м|[ыи]ми|[тt]ь|[cс]ь|[cс]я)"
)
"""How verbs and adjectives of Russian end, as folding leaves them; a name may end so too."""


def is_cyrillic_or_greek_candidate(word: str) -> bool:
    """A Cyrillic or Greek word that no sentence needs beside the name of a password."""
    bare = word.replace("-", "").rstrip("0123456789")
    if len(bare) < 4 or bare.isascii() or not bare.isalpha() or not _NATIVE.search(bare):
        return False
    if is_ordinary_word(bare) or describes_password(bare) or is_dummy(word) or is_label(word):
        return False
    return word != bare or word[0].isupper() or not _VERB.fullmatch(bare)


def _is_word_with_number(word: str) -> bool:
    """A word of no sentence with a number: `Butterfly77`."""
    match = _COUNTED.fullmatch(word)
    return match is not None and not is_ordinary_word(match.group(1))


def is_passphrase(word: str, least: int = 3) -> bool:
    """So many words or more, joined, most of which no sentence needs: `lavendel-pumpernickel-waterfall`."""
    if not _JOINED.fullmatch(word):
        return False
    words = [part.lower() for part in re.split(r"[-_.]", word) if not part.isdigit()]
    known = [
        part for part in words if part in SERVICES or is_ordinary_word(part.rstrip("0123456789"))
    ]
    return len(words) >= least and len(known) * 2 < len(words)


def is_password_candidate(word: str) -> bool:
    """A word, digits or words with digits that no sentence needs beside the name of a password."""
    if word.isdigit():
        return len(word) > 4
    low = word.lower()
    if not word.isascii() or len(word) < 5 or low in LATIN_NAMES or low in SERVICES or low in CUES:
        return False
    return _is_plain_candidate(word)


def values_before_name(text: str, position: int, search_start: int) -> list[Span]:
    """The value of which the sentence says that it is the password.

    Read from the name backwards: small words, the word that joins them (*is*, *as*), adverbs, the value.
    """
    low = max(search_start, position - _BACK)
    line = text.rfind("\n", low, position)
    low = line + 1 if line >= 0 else low
    words = list(_BACKWARD.finditer(text, low, position))
    if typed := _span_after_typing_verb(text, words):
        return [typed]
    return _Backwards(text, position, low, words).find_value()


class _Backwards:
    """The words before a name, read from the last to the first until one is the value."""

    def __init__(self, text: str, position: int, low: int, words: list[re.Match[str]]) -> None:
        self._text, self._low, self._words = text, low, words
        self._latin = text[position] != PASSWORD
        self._hungarian = text[position : position + 5].lower() == "jelsz"
        self._asked = text[position : position + 40].partition("\n")[0].count("?") > 0
        self._said = _BY_CASE.match(text, position) is not None
        """Whether something said that the value comes: *is*, *as*, the ending of the name."""
        self._plain = True
        """Whether a word that does not show itself may still be the value."""

    def find_value(self) -> list[Span]:
        for number in range(len(self._words) - 1, max(-1, len(self._words) - 9), -1):
            word = self._words[number]
            piece = word.group()
            if self._is_connecting_word(number, piece):
                continue
            if self._said and self._latin and _is_other_script_word(piece):
                return [word.span()]
            if not piece[0].isascii() and len(piece) < 5:
                self._said = self._said or piece in ("という", "って", "との")
                continue
            if piece[-1] in ".;:" or (piece[-1] in "!?" and not self._goes_on(word)):
                return []  # another sentence
            a, b = _trim_span(self._text, word.start(), word.end())
            if self._is_value(number, a, b):
                return [(a, b)]
            if (len(piece) > 4 or not piece.isalpha()) and not is_ordinary_word(piece):
                return []
            begins = self._text[self._low : word.start()].rstrip()[-1:] == ","
            if self._said and piece.lower() in _DETERMINERS and not begins:
                self._plain = False  # but not in `…, das war das Passwort`
        return []

    def _is_connecting_word(self, number: int, piece: str) -> bool:
        """Does this word only stand between the value and the name?"""
        small, behind = piece.lower(), self._lowercase_word(number + 1)
        to = (not behind and small in ("to", "de", "e")) or (
            small == "to" and behind in _POLISH_OWN
        )
        if piece[0] in (LINK, VERB) or to or small in _CONNECTIVES:
            self._said = True
            return True
        if small in _SURE_ONLY:
            opens = small == "-" and number == 1 and not self._latin  # the line begins with it
            self._plain = self._plain and (self._said or opens)
            self._said = True
            return True
        return small in _THE_WORD or (self._hungarian and small in ("a", "az"))

    def _goes_on(self, word: re.Match[str]) -> bool:
        """Does the sign at the end of this token belong to it: `… Summer77? as the password`?"""
        piece, rest = word.group(), self._text[word.end() : word.end() + 3].lstrip("`\"' ")
        shown = is_strong_token(piece) or _is_word_with_number(piece[:-1])
        return shown and (piece[-1] == "!" or rest[:1].islower())

    def _is_value(self, number: int, a: int, b: int) -> bool:
        """A token that shows itself; a plain word where no article makes it a thing, nor a question."""
        word = self._text[a:b]
        if _is_evident_secret(word):
            return self._said or self._text[max(self._low, a - 1) : a] in ("`", '"', "'")
        if not (
            self._said
            and self._plain
            and (is_password_candidate(word) or is_cyrillic_or_greek_candidate(word))
        ):
            return False
        earlier, further = self._lowercase_word(number - 1), self._lowercase_word(number - 2)
        thing = earlier in _DETERMINERS or (further in _ARTICLES and is_ordinary_word(earlier))
        return (not self._asked or earlier in _TAKING) and (self._hungarian or not thing)

    def _lowercase_word(self, number: int) -> str:
        return self._words[number].group().lower() if 0 <= number < len(self._words) else ""


_OPENED = re.compile(
    r"(?:(?P<v>[^\s\"'`<>()\[\]{},;|\x00\\]{3,64})|[^\n(])[\"'`*]{0,2}[ ]{1,2}\((?:[^\s()\d:=]{1,12}[ ]){0,4}\Z"
)
_CLOSED = re.compile(r"[^()\n:=\x00]{0,40}\)")
_TAIL = re.compile(
    r"(?i)[ ]?[,)]|[ ](?:i|ich|ik|je|jag|jeg|ja|meine|mein|bedoel|menar|mener|myslim|mam|digo|quero|intendo|tarkoitan|adica|tudniillik|of course|naturlich)\b"
)
"""What may follow the name where a remark says of what was meant: `(das Passwort meine ich)`."""


def value_before_bracketed_remark(
    text: str, position: int, end: int, search_start: int, stop: int
) -> tuple[list[Span], int]:
    """The value right before a remark in brackets that says what it is; and how far the name may look ahead."""
    low = max(search_start, position - _BACK)
    opened = _OPENED.search(text[low:position])
    closed = _CLOSED.match(text, end, stop)
    if opened is None or closed is None:
        return [], stop
    tokens = _TOKEN.finditer(text, end, closed.end() - 1)
    inside = [text[slice(*_trim_span(text, *m.span()))] for m in tokens]
    remark = _TAIL.match(text, end)
    named = not remark and len(inside) == 1 and is_password_candidate(inside[0])
    if named or any(_is_evident_secret(word) for word in inside):
        return [], stop
    if opened.group("v"):
        a, b = _trim_span(text, low + opened.start("v"), low + opened.end("v"))
        word = text[a:b]
        plain = (
            is_password_candidate(word)
            or is_cyrillic_or_greek_candidate(word)
            or (_is_other_script_word(word) and text[position] != PASSWORD)
        )
        if _is_evident_secret(word) or (plain and remark):
            return [(a, b)], stop
    return [], end if remark and remark.group()[-1] != ")" else stop


def _is_evident_secret(word: str) -> bool:
    """A token that shows itself: made to be a secret, or a word with a number."""
    if is_strong_token(word) or _is_word_with_number(word) or is_passphrase(word):
        return True
    digits = sum(ch.isdigit() for ch in word)
    told = is_password_candidate(word) or is_cyrillic_or_greek_candidate(word)
    return 0 < digits < len(word) - 2 and told and not _VERSION.fullmatch(word)


_VERSION = re.compile(
    r"(?i)[a-z]{1,6}-?[0-9]{1,4}|[0-9]+[a-z]{1,4}|.*[-_][0-9]{1,4}(?<![a-z]{4}-[0-9])(?<![a-z]{4}-[0-9]{2})"
)


def _span_after_typing_verb(text: str, words: list[re.Match[str]]) -> Span | None:
    """The word right behind a verb of typing, where the password is asked for later."""
    for verb, value in pairwise(words):
        if verb.group().lower() in _TYPING:
            a, b = _trim_span(text, value.start(), value.end())
            taken = text[a:b]
            if value.end() - b < 2 and (
                is_password_candidate(taken)
                or is_strong_token(taken)
                or is_cyrillic_or_greek_candidate(taken)
            ):
                return a, b
    return None


def values_on_next_line(
    text: str, start: int, end: int, search_start: int, search_end: int
) -> list[Span]:
    """The answer to the question for a password, or the line below its name."""
    line = max(text.rfind("\n", search_start, start) + 1, search_start)
    if start - line > _SHORT_LINE or _PROGRAM.search(text[line:start].lstrip("> ")):
        return []
    match = (
        _QUESTION.match(text, end, search_end)
        or _ANSWER.match(text, end, min(search_end, end + 200))
        or _BELOW.match(text, end, min(search_end, end + 160))
    )
    if match is None or _RULE.fullmatch(match.group(1)):
        return []
    low, high = _trim_span(text, *match.span(1))
    value = text[low:high]
    taken = (
        is_strong_token(value)
        or _is_plain_candidate(value)
        or is_cyrillic_or_greek_candidate(value)
        or (value.isdigit() and len(value) > 4)
    )
    taken = taken or (
        len(value) < 9
        and value[:1] > "\u3000"
        and value.isalnum()
        and not describes_password(value)
    )
    return [(low, high)] if taken else []


def _trim_span(text: str, low: int, high: int) -> Span:
    while low < high and text[low] in "*_~([":
        low += 1
    while high > low and text[high - 1] in _TRAIL:
        high -= 1
    return low, high


def _is_plain_candidate(value: str) -> bool:
    """A word, or a word with a number, that no sentence needs beside the name of a password."""
    if len(value) < 5 or is_dummy(value) or is_label(value) or DOTTED.fullmatch(value):
        return False
    odd = (
        not value.replace("-", "").isalnum()
        or (value.isupper() and (len(value) < 6 or not count_unlikely_pairs(value)))
        or value[0] in "-/"
    )
    return not odd and not is_ordinary_word(value.rstrip("0123456789"))
