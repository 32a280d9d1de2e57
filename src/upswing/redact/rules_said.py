"""How do people tell a password in a sentence?

| form     | example                                                |
|----------|--------------------------------------------------------|
| said     | the password for the staging box, as agreed, is …      |
| set      | set the password to …, das Passwort auf … gesetzt      |
| changed  | changed the password from … to …                       |
| brackets | the password (…) is on the note                        |
| beside   | log in as bob with password …                          |
| asked    | is the password still …?                               |
"""

from __future__ import annotations

import re
from functools import lru_cache

from . import clause
from .cues import CUES, LATIN_NAMES
from .layer import Span
from .ordinary import ordinary
from .rule import Rule
from .rules_named import QUOTE, VALUE, words
from .said import (
    ASKED,
    COMPOUNDS,
    LOGIN,
    PLACES,
    QUALITIES,
    SETTING,
    STRONG_LOGIN,
    asks_how,
    ended,
    tells,
    whose,
)
from .strength import strong
from .values import dummy, label, mixed, several_words, spoken
from .words import (
    LINK,
    PASSWORD,
    PASSWORD_NAMES,
    PASSWORD_WORDS,
    PIN_NAMES,
    PIN_WORDS,
    says_something,
)

_REACH = 320
_LINKS = (
    r"(?:[ ](?i:is|was|are|were|will be|equals|ist|war|lautet|lautete|est|etait|sera|es|era|e|foi|jest|bylo|byl|var|wordt|adalah|(?<=hasl[oa] )to"
    r"|should be|must be|would be|ought to be|has to be|needs to be|becomes|became|remains|reads|heist|wird|sei|bleibt|sollte|muss|musste|ware"
    r"|serait|devrait etre|doit etre|reste|devient|c'est|seria|deberia ser|debe ser|sigue siendo|queda|continua|deve ser|deveria ser|fica|ficou"
    r"|sara|sarebbe|dovrebbe essere|deve essere|rimane|resta|brzmi|brzmialo|bedzie|powinno byc|powinno brzmiec|luidt|luidde|werd|blijft|zou|moet"
    rf"|called|named|genannt)(?=[ :,])|[ ]?{LINK}{{1,16}}|(?<=[^ ])[ ]?:(?=[ ])|[ ]-(?=[ ]))"
)
_ADVERBS = (
    r"(?:[ ](?i:still|now|currently|just|simply|probably|again|always|set to|changed to|the same|as follows|the following|apparently|actually|noch|immer noch|immer|jetzt|nun"
    r"|derzeit|aktuell|einfach|ubrigens|wieder|wie folgt|folgendes|wohl|also|toujours|encore|maintenant|desormais|actuellement|simplement|ahora|todavia|aun|siempre|simplemente|actualmente"
    r"|agora|ainda|sempre|atualmente|ora|ancora|adesso|semplicemente|attualmente|teraz|nadal|obecnie|ciagle|nu|nog steeds|nog|altijd|momenteel|simdi|hala|artik|this|dies|ceci|taki)){0,2}"
)
_GAP = r"(?P<g>(?:[ ,][^\n.!?:=;\"`<>|()\x00]{1,90}?)?)"
_NAME = rf"(?P<k>{PASSWORD_NAMES})(?:'s(?![a-z]))?(?![A-Za-z0-9_])(?:{QUOTE}|\*{{1,3}}|__){{0,2}}"
_NEXT = rf"(?:[ ]|(?<=[{PASSWORD}{LINK}\u3000-\u9fff]))"
_WORD = r"[^\s\"'`<>()\[\]{},;|\x00\\\u3000-\u9fff\uac00-\ud7af\x0e-\x14]"


def _value(name: str) -> str:
    quoted = rf"{QUOTE}(?P<{name}q>[^\"'`\n\x00]{{3,64}}){QUOTE}"
    return rf"(?:{quoted}|\*\*(?P<{name}b>[^*\n\x00]{{3,64}})\*\*|(?P<{name}u>{_WORD}{{3,64}}))"


_MODAL = frozenset(
    ("muss", "sollte", "zou", "moet", "musste", "wird", "werd", "sei", "ware", "wordt")
)
_INFINITIVE = re.compile(r"[ ](?:sein|lauten|heisen|moeten|zijn|werden|worden)\b")
_SAID = rf"{_NAME}{_GAP}(?P<l>{_LINKS}){_ADVERBS}[,:]?[ ]{{0,2}}{VALUE}"
_FROM = (
    rf"{_NAME}(?:[ ][^\n.!?:=;\"'`\x00]{{1,40}}?)?(?:[ ](?i:from|von|vom|de|da|z|van|du|c)[ ]|[ ]?{LINK}{{1,4}}[ ]?)"
    + _value("a")
    + rf"(?:[ ,]{{1,2}}(?i:to|into|auf|zu|in|a|par|para|por|na|naar|en|vers|su|with|durch)[ ]|[ ]?{LINK}{{1,6}}[ ]?)"
    + _value("b")
)
_TURKISH = rf"{_NAME}[ ](?P<au>{_WORD}{{3,64}}?)'?(?:den|dan|ten|tan)[ ](?P<bu>{_WORD}{{3,64}})"
_SET = rf"{_NAME}(?P<g>(?:[ ][^\n.!?:=;\"'`<>|()\x00]{{1,40}}?)?)[ ](?P<to>(?i:to|auf|a|sur|en|como|para|su|na|op|as|per|in|naar|zu))[ ]{VALUE}"
_BRACKETS = rf"{_NAME}(?:[ ][^\n.!?:=;,\"`<>|()\x00]{{1,50}})?{_NEXT}\((?P<u>[^()\n\"'`\x00]{{3,64}})\)(?![ ]?[:=])"
_BESIDE = rf"{_NAME}(?:{_ADVERBS},?[ ]|(?<=[{PASSWORD}]))(?P<u>{_WORD[:-1]}:=]{{3,64}}+)(?![(\[=]|[ ]?[:=])"
_QUOTED = rf"{_NAME}(?P<g>[^\n.!?:=;\"'`<>|()A-Za-z0-9\x00]{{0,24}}|[ ][^\n.!?:=;\"'`<>|()\x00]{{1,40}}?[ ]){QUOTE}(?P<v>[^\"'`\n\x00]{{2,64}}){QUOTE}"
_CJK = r"\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af"
_ADJACENT = rf"(?P<k>{PASSWORD}{{1,8}})(?P<g>[^\n.!?;A-Za-z0-9\"'`<>\x00]{{0,30}}?)(?<![\u0400-\u04ff])(?P<u>[A-Za-z0-9@#$%&*!+~^_][!-~]{{3,63}}?)(?=[\s,.{_CJK}\u3001-\u303f\x0e-\x14\"'`]|$)"
_CJK_VALUE = rf"{_NAME}(?P<g>[*]{{0,2}}[ ]?(?:[:=]|{LINK}{{1,8}})[*]{{0,2}}[ ]?)(?P<u>[{_CJK}][{_CJK}0-9A-Za-z_!@#]{{1,24}})(?=[\s,.!?;*\"'|<]|$)"
_SAID_IN_CJK = re.compile(
    "ません|ます|ない|くだ|した|する|れる|にで|[什么多少哪谁何聞使空聴教見没在错误錯誤不无無必过過期请請已未是为為空短长長度强忘改设設被需应應可太请を必須間違効変更設定入力正ごです的了吗嗎保存加密表示確認再管理]"
)
_PIN = rf"(?P<k>{PIN_NAMES})(?![A-Za-z0-9_])(?:[ ][^\n.!?:=;\"`<>|0-9\x00]{{0,60}}?)?(?:{_LINKS}{_ADVERBS}|[ ]?\(|[ ](?i:to|auf|a|en|como|su|na|op)|:)[ ]?[\"'`*]{{0,2}}(?P<v>[0-9]{{4,8}})(?![0-9A-Za-z%]|[.,:][0-9]|[ ]?(?i:times|mal|fois|digits|stellen|chars|characters))"


_ENGLISH = re.compile(r"(?i)\b(?:the|my|your|our|his|her|their|an?|change|reset|update)\b")


def _said(match: re.Match[str]) -> bool:
    value, quoted = spoken(match)
    if match.group("y") and ordinary(value):
        return False
    gap = match.group("g").strip(" ,")
    first = re.match(r"[\w\-]+", gap)
    if first and first.group().lower() in COMPOUNDS - QUALITIES:
        return False
    if quoted:
        return _quoted(value)
    if not tells(match, value):
        return False
    if mixed(value):
        return True
    link = match.group("l").strip().lower()
    after = match.string[match.end() : match.end() + 24]
    if link in _MODAL:
        return _INFINITIVE.match(after) is not None
    if link == "e" or link[-1:] in (":", "-"):
        return ended(match) and (link != "e" or after[:1] in ("", "\n", "."))
    return not gap or ended(match)


def _quoted(value: str) -> bool:
    if len(value) < 3 or len(value) > 64 or dummy(value) or label(value) or value[-1] in ":=":
        return False
    if " " in value.strip():
        known = sum(ordinary(word) for word in value.split()) > value.count(" ") / 2
        return not known and (several_words(value) or any(ch.isdigit() for ch in value))
    return value.lower() not in COMPOUNDS


def _set(match: re.Match[str]) -> bool:
    value, quoted = spoken(match)
    around = match.string[max(0, match.start() - 60) : match.end() + 50]
    first = re.match(r"[\w\-]+", match.group("g").strip(" ,"))
    if not SETTING.search(around) or (first and first.group().lower() in COMPOUNDS):
        return False
    if quoted:
        return _quoted(value)
    return tells(match, value) and (mixed(value) or not _somewhere(match))


def _somewhere(match: re.Match[str]) -> bool:
    """`How do I change my password in …?`: the sentence names the place, not the password."""
    to, text, start = match.group("to").lower(), match.string, match.start()
    if to not in PLACES:
        return False
    line = text.rfind("\n", 0, start) + 1
    english = to == "in" and _ENGLISH.search(text, max(line, start - 40), start) is not None
    return english or asks_how(text, start)


def _in_quotes(match: re.Match[str]) -> bool:
    first = re.match(r"[\w\-]+", match.group("g").strip())
    if first and first.group().lower() in COMPOUNDS - QUALITIES:
        return False
    value = match.group("v")
    if not value.isascii() and len(value) == 2 and not _SAID_IN_CJK.search(value):
        return True
    return (
        _quoted(value)
        and not says_something(value)
        and (
            not match.group("g").isascii()
            or "\x0f" in match.group("g")
            or mixed(value)
            or match.group("g").strip() == ""
        )
    )


def _adjacent(match: re.Match[str]) -> bool:
    value, gap = match.group("u"), match.group("g")
    if not tells(match, value) or value.lower().rstrip(".,;!?") in LATIN_NAMES:
        return False
    return mixed(value) or len(gap) < 3 or LINK in gap or ":" in gap or "," in gap


def _in_cjk(match: re.Match[str]) -> bool:
    return _SAID_IN_CJK.search(match.group("u")) is None


def _in_brackets(match: re.Match[str]) -> bool:
    value = match.group("u").strip()
    if " " in value:
        known = [word for word in value.split() if ordinary(word)]
        return several_words(value) and len(value.split()) > 2 and value.islower() and not known
    return tells(match, value)


def _beside(match: re.Match[str]) -> bool:
    """A bare word behind the name: in another script, or where a login is told."""
    value, text = match.group("u"), match.string
    low = value.lower().rstrip(".,;!?")
    if not tells(match, value) or low in LATIN_NAMES:
        return False
    if (
        "," in match.group(0)[: match.start("u") - match.start()]
        and text[match.end() - 1 : match.end() + 1].count("?") == 0
    ):
        return False
    name = match.group("k").lower()
    if name in ("pass", "passes", "creds") and not (mixed(low) and "_" not in low):
        before = text[max(0, match.start() - 50) : match.start()].rpartition("\n")[2]
        return ended(match) and STRONG_LOGIN.search(before) is not None
    if mixed(low) or strong(value.rstrip(".,;:?)")):
        return len(low) >= 5
    if whose(text, match.end()):
        return False
    if PASSWORD in name and value.isascii():
        return True
    after = text[match.end() : match.end() + 40].partition("\n")[0]
    if value[-1] == "?" or after[:1] == "?" or ASKED.match(after):
        return True
    before = text[max(0, match.start() - 70) : match.start()].rpartition("\n")[2]
    if not value.isascii():
        return False
    login = LOGIN.search(before) is not None or not CUES.isdisjoint(before.lower().split()[-4:])
    return login or (ended(match) and len(before) < 3) or LOGIN.search(after) is not None


_COMPOUNDING = re.compile("pass|pw|cred")
"""Names that make a noun with the noun behind them: `password entropy`."""


def _changed(match: re.Match[str]) -> bool:
    values = [match.string[a:b] for a, b in _spans(match)]
    if any(dummy(value) or label(value) for value in values):
        return False
    return all(tells(match, value) for value in values)


def _spans(match: re.Match[str]) -> list[Span]:
    """The values of a match, without the sign that ends the sentence."""
    groups = match.groupdict()
    found = []
    for name in ("v", "w", "x", "y", "u", "aq", "ab", "au", "bq", "bb", "bu"):
        if groups.get(name):
            start, end = match.span(name)
            bare = match.string[start:end].rstrip(".,;:?)") if name.endswith("u") else groups[name]
            found.append((start, start + len(bare)))
    return found


_FORMS = tuple(
    (pattern, judge)
    for pattern, judge in (
        (_FROM, _changed),
        (_TURKISH, _changed),
        (_SAID, _said),
        (_SET, _set),
        (_BRACKETS, _in_brackets),
        (_QUOTED, _in_quotes),
        (_BESIDE, _beside),
        (_ADJACENT, _adjacent),
        (_CJK_VALUE, _in_cjk),
    )
)


@lru_cache(maxsize=16)
def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern)


def _walks_by(match: re.Match[str]) -> bool:
    """`Pass 0 to switch it off`: the verb, where no login is told."""
    if match.group("k").lower() not in ("pass", "passes", "pwd", "creds"):
        return False
    line = match.string[max(0, match.start() - 60) : match.start()].rpartition("\n")[2]
    return STRONG_LOGIN.search(line) is None


_ARGUMENTS = re.compile(r"\w\([^()]*$|0x[0-9a-f]+:'$")
"""The name is one of the arguments of a call or a definition."""


def told(text: str, at: int, floor: int, roof: int) -> tuple[list[Span], int]:
    """The values that the sentence at `at` tells, in the first form that fits."""
    stop = min(roof, at + _REACH)
    for pattern, judge in _FORMS:
        match = _compiled(pattern).match(text, at, stop)
        if match and not _walks_by(match) and judge(match):
            return _spans(match) + clause.after(
                text, match.end(), roof, adjacent=False
            ), match.end()
    name = _compiled(_NAME).match(text, at, stop)
    if name is None or _walks_by(name):
        return [], at + 1
    end = name.end()
    if _ARGUMENTS.search(text[max(floor, at - 80) : at].rpartition("\n")[2]):
        return [], end
    alone = _COMPOUNDING.match(name.group("k").lower()) is None
    spans = clause.after(text, end, roof, adjacent=alone) + clause.before(text, at, floor)
    return spans or clause.below(text, at, end, floor, roof), end


_LOOK = r"[A-Za-z'\x0e]{0,10}(?![A-Za-z0-9_(\[=]|\.[A-Za-z_]|[ ]?=(?![ ]{0,2}\?))"

RULES = (
    Rule(
        "password-said",
        PASSWORD_NAMES,
        anchors=words(PASSWORD_WORDS, _LOOK, 40), spans=told, kind="password", priority=40, trusted=True,
        about="a password told in a sentence: said, set, changed, in brackets, with a login",
        example="the password for the box that we set up together should be " + "mondschein42x",
    ),
    Rule(
        "pin-said",
        _PIN,
        anchors=words(PIN_WORDS, r"[^\n]{1,80}[0-9]{4}", 100), kind="pin", priority=39, trusted=True,
        validator=lambda v: len(set(v)) > 1 and not re.fullmatch("(?:19|20)[0-9]{2}", v),
        about="a code told in a sentence",
        example="the PIN of the second card should be " + "4821",
    ),
)  # fmt: skip
