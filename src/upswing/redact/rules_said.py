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
from .ordinary import is_ordinary_word
from .rule import Rule
from .rules_named import QUOTE, VALUE, word_anchors
from .said import (
    ASKED,
    COMPOUNDS,
    LOGIN,
    PLACES,
    QUALITIES,
    SETTING,
    STRONG_LOGIN,
    asks_how,
    can_be_password,
    ends_sentence,
    names_password_owner,
)
from .strength import is_strong_token
from .values import has_mixed_characters, is_dummy, is_label, is_several_words, value_and_quoted
from .words import (
    LINK,
    PASSWORD,
    PASSWORD_NAMES,
    PASSWORD_WORDS,
    PIN_NAMES,
    PIN_WORDS,
    SECRET_CODE,
    VERB,
    describes_password,
)

_REACH = 320
_LINKS = (
    r"(?:[ ](?i:is|was|are|were|will be|equals|ist|war|sind|waren|lautet|lautete|est|etait|sont|etaient|sera|es|era|son|eran|e|foi|sao|eram|sono|erano|jest|sa|bylo|byly|byl|var|ar|er|on|oli|ovat|este|sunt|era|erau|je|jsou|byla|zijn|wordt|adalah|legyen|volt|lett|(?<=hasl[oa] )to"
    r"|used to be|has always been|ha sido siempre|siempre ha sido|sempre foi|a toujours ete|zawsze bylo|bylo zawsze|should be|must be|would be|ought to be|has to be|needs to be|becomes|became|remains|reads|heist|wird|sei|bleibt|sollte|muss|musste|ware"
    r"|serait|devrait etre|doit etre|reste|devient|c'est|seria|deberia ser|debe ser|sigue siendo|queda|continua|deve ser|deveria ser|fica|ficou"
    r"|sara|sarebbe|dovrebbe essere|deve essere|rimane|resta|brzmi|brzmialo|bedzie|powinno byc|powinno brzmiec|luidt|luidde|werd|blijft|zou|moet"
    rf"|called|named|genannt|{VERB} sempre stat[ao]|{VERB})(?=[ :,])|[ ]?{LINK}{{1,16}}|(?<=[^ ])[ ]?:(?=[ ])|[ ]-(?=[ ]))"
)
_ADVERBS = (
    r"(?:[ ](?i:still|now|currently|just|simply|probably|again|always|set to|changed to|the same|as follows|the following|apparently|actually|noch|immer noch|immer|jetzt|nun"
    r"|derzeit|aktuell|einfach|ubrigens|wieder|wie folgt|folgendes|wohl|also|toujours|encore|maintenant|desormais|actuellement|simplement|ahora|todavia|aun|siempre|simplemente|actualmente"
    r"|agora|ainda|sempre|atualmente|ora|ancora|adesso|semplicemente|attualmente|teraz|nadal|obecnie|ciagle|nu|nog steeds|nog|altijd|momenteel|simdi|hala|artik|this|dies|ceci|taki|all|both|alle|beide|tous|toutes|todas|todos|ambas|tutte|tutti|allemaal|allebei|bada|begge|alla|wszystkie|vsechna|obe|stale|porad|fortfarande|ennu|fortsatt|stadig|yha|edelleen|viela|mind|meg mindig|tot|inca|toate)(?![a-z])){0,2}"
)
_GAP = r"(?P<g>(?:[ ,][^\n.!?:=;\"`<>|()\x00]{1,90}?)?)"
_NAME = rf"(?P<k>{PASSWORD_NAMES})(?:'s(?![a-z]))?(?![A-Za-z0-9_])(?:{QUOTE}|\*{{1,3}}|__){{0,2}}"
_NEXT = rf"(?:[ ]|(?<=[{PASSWORD}{LINK}\u3000-\u9fff]))"
_WORD = r"[^\s\"'`<>()\[\]{},;|\x00\\\u3000-\u9fff\uac00-\ud7af\x0e-\x15]"


def _value_pattern(name: str) -> str:
    quoted = rf"{QUOTE}(?P<{name}q>[^\"'`\n\x00]{{3,64}}){QUOTE}"
    return rf"(?:{quoted}|\*\*(?P<{name}b>[^*\n\x00]{{3,64}})\*\*|(?P<{name}u>{_WORD}{{3,64}}))"


_MODAL = frozenset(
    ("muss", "sollte", "zou", "moet", "musste", "wird", "werd", "sei", "ware", "wordt")
)
_INFINITIVE = re.compile(r"[ ](?:sein|lauten|heisen|moeten|zijn|werden|worden)\b")
_SAID = rf"{_NAME}{_GAP}(?P<l>{_LINKS}){_ADVERBS}[,:]?[ ]{{0,2}}{VALUE}"
_FROM = (
    rf"{_NAME}(?:[ ][^\n.!?:=;\"'`\x00]{{1,40}}?)?(?:[ ](?i:from|von|vom|de|da|z|van|du|c)[ ]|[ ]?{LINK}{{1,4}}[ ]?)"
    + _value_pattern("a")
    + rf"(?:[ ,]{{1,2}}(?i:to|into|auf|zu|in|a|par|para|por|na|naar|en|vers|su|with|durch)[ ]|[ ]?{LINK}{{1,6}}[ ]?)"
    + _value_pattern("b")
)
_TURKISH = rf"{_NAME}[ ](?P<au>{_WORD}{{3,64}}?)'?(?:den|dan|ten|tan)[ ](?P<bu>{_WORD}{{3,64}})"
_SET = rf"{_NAME}(?P<g>(?:[ ][^\n.!?:=;\"'`<>|()\x00]{{1,40}}?)?)[ ](?P<to>(?i:to|auf|a(?![ ](?:ete|la|le|un|une|el|o|os|as)[ ])|sur|en|como|para|pra|su|na|op|as|per|in|naar|zu))[ ]{VALUE}"
_BRACKETS = rf"{_NAME}(?:[ ][^\n.!?:=;,\"`<>|()\x00]{{1,50}})?{_NEXT}\((?P<u>[^()\n\"'`\x00]{{3,64}})\)(?![ ]?[:=])"
_BESIDE = rf"{_NAME}(?:{_ADVERBS},?[ ]|(?<=[{PASSWORD}]))(?P<u>{_WORD[:-1]}:=]{{3,64}}+)(?![(\[=]|[ ]?[:=](?![-']?[)(DP/|]))"
_QUOTED = rf"{_NAME}(?P<g>[^\n.!?:=;\"'`<>|()A-Za-z0-9\x00]{{0,24}}|[ ][^\n.!?:=;\"'`<>|()\x00]{{1,40}}?[ ]){QUOTE}(?P<v>[^\"'`\n\x00]{{2,64}}){QUOTE}"
_CJK = r"\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af"
_ADJACENT = rf"(?P<k>{PASSWORD}{{1,24}})(?P<g>[^\n.!?;A-Za-z0-9\"'`<>\x00]{{0,30}}?)(?<![\u0400-\u04ff])(?P<u>[A-Za-z0-9@#$%&*!+~^_][!-~]{{3,63}}?)(?=[\s,.{_CJK}\u3001-\u303f\x0e-\x14\"'`]|$)"
_CJK_VALUE = (
    rf"(?P<k>{PASSWORD}{{1,24}})(?P<g>(?:[*]{{0,2}}[ ]?(?:[:=>]|{LINK}{{1,8}}|,[^\n.!?,:]{{0,10}}(?=[:{LINK}])|\)|一直|已经|现在|目前|还|填|に)[*]{{0,2}}){{0,4}}[ ]?[\"']?)"
    rf"(?P<u>[{_CJK}][{_CJK}0-9A-Za-z_!@#]{{1,24}}?)"
    rf"(?=で[すし]|だ[よっ]|のはず|に(?:決|変|し|設|な)|と(?:入力|する|し)|{LINK}(?:使|試|入)|就行|就可以|即可|[了吧](?:[ ,.!?\n]|$)|[\s,.!?;*\"'|<)]|$)"
)
_SAID_IN_CJK = re.compile(
    "ません|ます|ない|くだ|した|する|れる|にで|[什么多少哪谁何聞使空聴教見没在错误錯誤不无無必过過期请請已未是为為空短长長度强忘改设設被需应應可太请を必須間違効変更設定入力正ごです的了吗嗎保存加密表示確認再管理]"
)
_OF_PASSWORDS = re.compile(
    "管理|保护|登录|验证|认证|学|本|锁|框|策略|重置|找回|器|字段|规则|泄露|安全|和|一样|往常|以前|位数|四|八|桁|同じ|書|いつも|通り|誰|何|どこ|昨日|今日|明日|前と|忘|下|上|マネージャ|リセット|フィールド|について|ありが|聞"
)
"""What else is said of passwords in Chinese and Japanese, or makes a noun with them."""
_PIN = rf"(?P<k>{PIN_NAMES})(?![A-Za-z0-9_])(?:[ ][^\n.!?:=;\"`<>|0-9\x00]{{0,60}}?)?(?:{_LINKS}{_ADVERBS}|[ ]?\(|[ ](?i:to|auf|a|en|como|su|na|op)|:)[ ]?[\"'`*]{{0,2}}(?P<v>[0-9]{{4,8}}|[0-9]{{3}}[ -][0-9]{{3}})(?![0-9A-Za-z%]|[.,:-][0-9]|[ ]?(?i:times|mal|fois|digits|stellen|chars|characters))"


_ENGLISH = re.compile(r"(?i)\b(?:the|my|your|our|his|her|their|an?|change|reset|update)\b")


def _is_said_password(match: re.Match[str]) -> bool:
    value, quoted = value_and_quoted(match)
    if match.group("y") and is_ordinary_word(value):
        return False
    gap = match.group("g").strip(" ,")
    first = re.match(r"[\w\-]+", gap)
    if first and first.group().lower() in COMPOUNDS - QUALITIES:
        return False
    if quoted:
        return _is_quoted_password(value)
    if not can_be_password(match, value):
        return False
    if has_mixed_characters(value):
        return True
    link = match.group("l").strip().lower()
    after = match.string[match.end() : match.end() + 24]
    if link in _MODAL:
        return _INFINITIVE.match(after) is not None
    if link == "e" or link[-1:] in (":", "-"):
        return ends_sentence(match) and (link != "e" or after[:1] in ("", "\n", "."))
    if link == VERB:
        return ends_sentence(match)
    return not gap or ends_sentence(match)


def _is_quoted_password(value: str) -> bool:
    if len(value) < 3 or len(value) > 64 or is_dummy(value) or is_label(value) or value[-1] in ":=":
        return False
    if " " in value.strip():
        known = sum(is_ordinary_word(word) for word in value.split()) > value.count(" ") / 2
        return not known and (is_several_words(value) or any(ch.isdigit() for ch in value))
    return value.lower() not in COMPOUNDS


def _is_set_password(match: re.Match[str]) -> bool:
    value, quoted = value_and_quoted(match)
    around = match.string[max(0, match.start() - 60) : match.end() + 50]
    first = re.match(r"[\w\-]+", match.group("g").strip(" ,"))
    if not SETTING.search(around):
        return False
    if first and first.group().lower() in COMPOUNDS and not SETTING.fullmatch(first.group()):
        return False
    if quoted:
        return _is_quoted_password(value)
    return can_be_password(match, value) and (
        has_mixed_characters(value) or not _names_a_place(match)
    )


def _names_a_place(match: re.Match[str]) -> bool:
    """`How do I change my password in …?`: the sentence names the place, not the password."""
    to, text, start = match.group("to").lower(), match.string, match.start()
    if to not in PLACES:
        return False
    line = text.rfind("\n", 0, start) + 1
    english = to == "in" and _ENGLISH.search(text, max(line, start - 40), start) is not None
    return english or asks_how(text, start)


def _is_password_in_quotes(match: re.Match[str]) -> bool:
    first = re.match(r"[\w\-]+", match.group("g").strip())
    if first and first.group().lower() in COMPOUNDS - QUALITIES:
        return False
    value = match.group("v")
    if not value.isascii() and len(value) == 2 and not _SAID_IN_CJK.search(value):
        return True
    return (
        _is_quoted_password(value)
        and not describes_password(value)
        and (
            not match.group("g").isascii()
            or "\x0f" in match.group("g")
            or has_mixed_characters(value)
            or match.group("g").strip() == ""
        )
    )


def _is_adjacent_password(match: re.Match[str]) -> bool:
    value, gap = match.group("u"), match.group("g")
    if not can_be_password(match, value) or value.lower().rstrip(".,;!?") in LATIN_NAMES:
        return False
    return has_mixed_characters(value) or len(gap) < 3 or LINK in gap or ":" in gap or "," in gap


def _is_cjk_password(match: re.Match[str]) -> bool:
    value, gap = match.group("u"), match.group("g")
    if _SAID_IN_CJK.search(value) or _OF_PASSWORDS.search(value):
        return False
    return bool(gap) or match.string[max(0, match.start() - 2) : match.start()][-1:] in (
        "用",
        ",",
        " ",
    )


def _is_bracketed_password(match: re.Match[str]) -> bool:
    value = match.group("u").strip()
    if " " in value:
        known = [word for word in value.split() if is_ordinary_word(word)]
        return is_several_words(value) and len(value.split()) > 2 and value.islower() and not known
    return can_be_password(match, value)


def _is_bare_password_beside_name(match: re.Match[str]) -> bool:
    """A bare word behind the name: in another script, or where a login is told."""
    value, text = match.group("u"), match.string
    low = value.lower().rstrip(".,;!?")
    if not can_be_password(match, value) or low in LATIN_NAMES:
        return False
    if (
        "," in match.group(0)[: match.start("u") - match.start()]
        and text[match.end() - 1 : match.end() + 1].count("?") == 0
    ):
        return False
    name = match.group("k").lower()
    if name in ("pass", "passes", "creds") and not (has_mixed_characters(low) and "_" not in low):
        before = text[max(0, match.start() - 50) : match.start()].rpartition("\n")[2]
        return ends_sentence(match) and STRONG_LOGIN.search(before) is not None
    if has_mixed_characters(low) or low.isdigit() or is_strong_token(value.rstrip(".,;:?)")):
        return len(low) >= 5
    if clause.is_passphrase(low, least=2):
        return True
    if names_password_owner(text, match.end()):
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
    return login or (ends_sentence(match) and len(before) < 3) or LOGIN.search(after) is not None


_COMPOUNDING = re.compile("pass|pw|cred")
"""Names that make a noun with the noun behind them: `password entropy`."""


def _is_changed_password(match: re.Match[str]) -> bool:
    values = [match.string[a:b] for a, b in _value_spans(match)]
    if any(is_dummy(value) or is_label(value) for value in values):
        return False
    return all(can_be_password(match, value) for value in values)


def _value_spans(match: re.Match[str]) -> list[Span]:
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
        (_FROM, _is_changed_password),
        (_TURKISH, _is_changed_password),
        (_SAID, _is_said_password),
        (_SET, _is_set_password),
        (_BRACKETS, _is_bracketed_password),
        (_QUOTED, _is_password_in_quotes),
        (_BESIDE, _is_bare_password_beside_name),
        (_ADJACENT, _is_adjacent_password),
        (_CJK_VALUE, _is_cjk_password),
    )
)


@lru_cache(maxsize=16)
def _compile_pattern(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern)


def _is_verb_pass(match: re.Match[str]) -> bool:
    """`Pass 0 to switch it off`: the verb, where no login is told."""
    if match.group("k").lower() not in ("pass", "passes", "pwd", "creds"):
        return False
    line = match.string[max(0, match.start() - 60) : match.start()].rpartition("\n")[2]
    return STRONG_LOGIN.search(line) is None


_ARGUMENTS = re.compile(r"\w\([^()]*$|0x[0-9a-f]+:'$")
"""The name is one of the arguments of a call or a definition."""


def _values_before_remark(
    text: str, position: int, search_start: int, stop: int
) -> tuple[list[Span], int]:
    """What stands before a remark in brackets, `it is … (the password, I mean)`; and how far to read on."""
    if "(" not in text[max(search_start, position - 40) : position]:
        return [], stop
    name = _compile_pattern(_NAME).match(text, position, stop)
    return (
        clause.value_before_bracketed_remark(text, position, name.end(), search_start, stop)
        if name
        else ([], stop)
    )


def find_told_passwords(
    text: str, position: int, search_start: int, search_end: int
) -> tuple[list[Span], int]:
    """The values that the sentence at `position` tells."""
    spans, end = _find_in_first_form(text, position, search_start, search_end)
    if spans and SECRET_CODE.match(text, position):
        spans = [(low, high) for low, high in spans if not text[low:high].isdigit()]
    return spans, end


def _find_in_first_form(
    text: str, position: int, search_start: int, search_end: int
) -> tuple[list[Span], int]:
    stop = min(search_end, position + _REACH)
    meant, stop = _values_before_remark(text, position, search_start, stop)
    if meant:
        return meant, position + 1
    if stop < min(search_end, position + _REACH):
        return [], stop  # a remark about what was said before
    for pattern, judge in _FORMS:
        match = _compile_pattern(pattern).match(text, position, stop)
        if match and not _is_verb_pass(match) and judge(match):
            return _value_spans(match) + clause.values_after_name(
                text, match.end(), search_end, adjacent=False
            ), match.end()
    name = _compile_pattern(_NAME).match(text, position, stop)
    if name is None or _is_verb_pass(name):
        return [], position + 1
    end = name.end()
    if _ARGUMENTS.search(text[max(search_start, position - 80) : position].rpartition("\n")[2]):
        return [], end
    alone = _COMPOUNDING.match(name.group("k").lower()) is None
    spans = clause.values_after_name(text, end, min(search_end, stop), adjacent=alone)
    spans += clause.values_before_name(text, position, search_start)
    return spans or clause.values_on_next_line(text, position, end, search_start, search_end), end


_NUMBER = r"(?P<v>[0-9]{4,8}|[0-9]{3}[ -][0-9]{3})"
_ONE_TIME = re.compile(
    rf"(?<![\w.,:/#-]){_NUMBER}[\"'`*]{{0,3}}(?:[ ](?i:is|was|ist|war|est|es|era|e|to|je|ar|er|on|este|a|as|als|comme|como|come|jako|som|ca|for)\b|[ ]?[-:(>]|[ ]?{LINK}|[ ]{VERB}|(?=[ ]{{1,2}}\Z))"
    rf"[^\n.!?;:0-9\x00]{{0,28}}\Z"
)
"""`482913 is your confirmation code`, read up to the name."""
_BEFORE_CODE = 48


def _find_code_before_purpose(
    text: str, position: int, search_start: int, search_end: int
) -> tuple[list[Span], int]:
    """The code of which the sentence says what it is for."""
    name = _compile_pattern(PIN_NAMES).match(text, position, search_end)
    if name is None or name.group().lower() in ("pin", "tan", "otp"):
        return [], position + 1
    low = max(search_start, position - _BEFORE_CODE)
    match = _ONE_TIME.search(text[low:position])
    if match is None or not _is_one_time_code(match.group("v")):
        return [], name.end()
    return [(low + match.start("v"), low + match.end("v"))], name.end()


def _is_one_time_code(value: str) -> bool:
    return len(set(value)) > 1 and not re.fullmatch("(?:19|20)[0-9]{2}", value)


_CONFIRM = (
    "to confirm", "to verify", "to activate", "to unlock", "to log in", "to login", "to sign in", "to complete your", "to authenticate",
    "zu bestatigen", "freizuschalten", "zu aktivieren", "zu entsperren", "anzumelden", "zu verifizieren", "zum anmelden", "zur bestatigung", "zur anmeldung",
    "pour confirmer", "pour valider", "pour activer", "pour deverrouiller", "pour vous connecter", "pour te connecter", "pour verifier",
    "para confirmar", "para activar", "para ativar", "para desbloquear", "para iniciar", "para entrar", "para verificar", "para acceder", "para aceder",
    "per confermare", "per attivare", "per sbloccare", "per accedere", "per verificare", "te bevestigen", "te activeren", "te ontgrendelen", "te verifieren", "in te loggen",
    "aby potwierdzic", "aby aktywowac", "aby zalogowac", "aby sie zalogowac", "aby odblokowac", "zeby potwierdzic", "zeby sie zalogowac",
)  # fmt: skip
_USED = re.compile(
    r"(?i)(?<![a-z])(?:use|enter|type|input|gib|geben sie|verwende|verwenden sie|nutzen sie|utilisez|utilise|saisissez|saisis|entrez|usa|use|utiliza|utilice|introduce|introduzca|ingresa|insira|digite|inserisci|utilizza|gebruik|voer|vul|wpisz|uzyj|podaj)"
    r"(?:[ ](?:code|the code|den code|le code|el codigo|o codigo|il codice|de code|kodu?))?[ ]{1,2}"
    rf"{_NUMBER}(?![0-9A-Za-z]|[.,:-][0-9])[^\n.!?;0-9\x00]{{0,40}}\Z"
)


def _find_code_to_confirm(
    text: str, position: int, search_start: int, _search_end: int
) -> tuple[list[Span], int]:
    """`Use 482913 to confirm your account.`"""
    low = max(search_start, position - 2 * _BEFORE_CODE)
    match = _USED.search(text[low:position])
    if match is None or not _is_one_time_code(match.group("v")):
        return [], position + 1
    return [(low + match.start("v"), low + match.end("v"))], position + 1


_LOOK = r"[A-Za-z'\x0e]{0,10}(?![A-Za-z0-9_(\[=]|\.[A-Za-z_]|[ ]?=(?![ ]{0,2}\?))"

RULES = (
    Rule(
        "password-said",
        PASSWORD_NAMES,
        anchors=word_anchors(PASSWORD_WORDS, _LOOK, 40),
        spans=find_told_passwords,
        kind="password",
        priority=40,
        trusted=True,
        about="a password told in a sentence: said, set, changed, in brackets, with a login",
        example="the password for the box that we set up together should be " + "mondschein42x",
    ),
    Rule(
        "pin-said",
        _PIN,
        anchors=word_anchors(PIN_WORDS, r"[^\n]{1,80}[0-9]{3}", 100),
        kind="pin",
        priority=39,
        trusted=True,
        validator=_is_one_time_code,
        about="a code told in a sentence",
        example="the PIN of the second card should be " + "4821",
    ),
    Rule(
        "pin-before",
        PIN_NAMES,
        anchors=word_anchors(PIN_WORDS, "", before=r"[^\n0-9]{0,40}[0-9]{3}"),
        spans=_find_code_before_purpose,
        kind="pin",
        priority=39,
        trusted=True,
        about="a code of which a sentence says what it is for",
        example="4821" + " is your confirmation code",
    ),
    Rule(
        "pin-to-use",
        "(?i:" + "|".join(_CONFIRM) + ")",
        anchors=word_anchors(_CONFIRM, "", before=r"[^\n0-9]{0,40}[0-9]{3}"),
        spans=_find_code_to_confirm,
        kind="pin",
        priority=38,
        trusted=True,
        about="a code that is to be used to confirm something",
        example="Use " + "482913" + " to confirm your account",
    ),
)
