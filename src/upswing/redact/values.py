"""A value stands behind the name of a secret: is it one, or code, a dummy, a reference?

written as                 stays                                     goes
password, in quotes        types, dummies, references, labels        everything else of 3 or more
password, after : or =     names and calls of code                   everything else of 4 or more
password, after `is`       what is said of passwords: wrong, set     a digit or sign, or a last word
password, after a space    words                                     letters with digits or signs
secret, in quotes          the same, and paths                       words too
token and the like         words, paths, short or even values        mixed and varied, 8 or more
PIN, code                  words, other numbers                      3 to 8 digits
"""

from __future__ import annotations

import math
import re
from collections import Counter

from .cues import ADVERBS
from .ordinary import is_ordinary_word
from .words import IDENTIFIERS, PASSWORD, SECRET, SECRET_CODE, describes_password

_DUMMY = re.compile(
    r"""(?ix)
    <[^<>]{0,80}>                                     # a placeholder, ours or another's
    |\$[a-z_]+|\$[0-9@*]|\$[({].*|%(?:\(\w+\))?s|%\w+%|\{[^}]*\}?|.*\$\{.*|.*\{\{.*   # to be filled in
    |[*•x.\-_#?0]{3,}[^0-9]{0,4}|\W+                 # masked already
    |(?:your|my|some|the|a|an|enter|insert|replace|put|add|dein|ihr|votre|tu|sua)[-_ ][^0-9]*|[^0-9]*[-_ ](?:here|goes|placeholder|hier|ici|aqui)
    |(?:pass(?:w(?:or)?d|phrase)?|pwd|secret|token|api[-_]?key|string|str|bytes|bool|int|float|any|object
      |none|null|nil|true|false|undefined|required|optional|hidden|redacted|removed|masked|filtered
      |change[-_]?me|change[-_]?it|example|sample|dummy|placeholder|default|empty|unknown|unset|todo|n/?a
      |text|varchar|char|self|value|field|input|type|invalid|missing|new|old|mypassword|mysecret)[?!;,.]{0,2}
    |(?:string|str|value|field|input|type|token|api[-_]?key|int|float|char|varchar|text)\d{1,3}
    |!\[?[a-z]+|os\.environ.*|process\.env.*|getenv.*|env[.:].*|vault:.*|secret(?:s|manager)?[:/].*|file:.*|https?://.*
    """
)
_WORDS = re.compile(r"[A-Za-z]{0,14}[0-9]{0,3}(?:[_\-.:/ ][A-Za-z]{0,14}[0-9]{0,4})+")
DOTTED = re.compile(r"[A-Za-z_]\w*(?:(?:\.|::|->)[A-Za-z_]\w*)+")
IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z_]*[0-9]?")
_SNAKE = re.compile(
    r"_?[A-Za-z]+(?:_[A-Za-z0-9]+)+|[a-z]+(?:[A-Z][a-z]{2,})+|(?:[A-Z][a-z]{2,}){2,}"
)
LETTERS = re.compile(r"[^\W\d_]+")
_SIGN = re.compile(r"[^A-Za-z_.\-:/\\\x80-\U0010ffff]")
_LABEL = re.compile(
    rf"(?i)pass(?:wor[dt]|phrase|code|e\b)|kennwort|contrase|senha|parola|wachtwoord|haslo|sifre|token|secret|api.?key|[{PASSWORD}{SECRET}]"
)
_CODE = re.compile(
    r"\b(?:self|this|const|let|var|val|def|func|fn|return|if|elif|while|assert|lambda|await|private|public|static|final|yield)\b|::|=>"
)
_PROPERTY = re.compile(r"[ \t]{0,8}[a-z][\w\-]*(?:[.\-][\w\-\[\]]+)*\.")
"""What stands before the last part of a key in a file of properties."""
_GIVEN = re.compile(
    r"(?i)(?:define|property|put|set|env|with|add|append|option|param|config|-)\(?\W{0,3}[\w.\-]{0,40}$|\.(?:set|with)?$"
)
_FIRST_OF_CALL = re.compile(r"[\w\]]\(\W{0,3}[\w.\-#\[=]{0,40}$")
"""The name is the first argument of a call: `fill("#password", …`."""
_CALLED = re.compile(r"[\w\]>]\(")
_FUNCTION = frozenset(
    "the a an of to is in on at be must not and or for with your you my it if no are was will should this that"  # noqa: SIM905
    " can please from by as der die das ist ein eine und oder nicht le la les un une est et ou pas de du des el"
    " los una es y o no il lo di e non per que para com".split()
)
_RULES = re.compile(r"[a-z_]+(?::[\w,]+)?(?:\|[a-z_]+(?::[\w,]+)?)+|min:\d+|max:\d+")
"""How a form checks a password: `required|min:8`."""
_TEST = re.compile(r"(?i)tests?[A-Z_./:]?.*|ok\b.*")
ALGORITHM = re.compile(
    r"(?i)(?:[a-z]{1,5}[-_]?[0-9]{1,3}|[0-9]{1,3}[a-z+]{1,10})[.,;:!?)]{0,2}|[0-9.,:%/x\-]+"
)
_STRONG = re.compile(
    r"(?i).*(?:secret|geheimnis|secreto|segredo|segreto|recovery code|backup code)s?"
)


def entropy_per_character(value: str) -> float:
    """Bits per character.

    >>> entropy_per_character("aaaa"), entropy_per_character("abcd")
    (0.0, 2.0)
    """
    size = len(value)
    return -sum(n / size * math.log2(n / size) for n in Counter(value).values()) + 0.0


def is_dummy(value: str) -> bool:
    return bool(_DUMMY.fullmatch(value)) or len(set(value)) <= 2


def random_looking(value: str) -> bool:
    """Would a person have typed this as a word, a path or a sentence?"""
    if len(value) < 12 or is_dummy(value) or _WORDS.fullmatch(value):
        return False
    has_digit = any(ch.isdigit() for ch in value)
    mixed = has_digit and any(ch.isalpha() for ch in value)
    if len(value) < 16:
        mixed = mixed and value.lower() != value != value.upper()
    return mixed and entropy_per_character(value) >= 2.9


def value_and_quoted(match: re.Match[str]) -> tuple[str, bool]:
    """The value, and whether it stood in quotes, bold or an element of its own."""
    for name in ("v", "w", "x", "y"):
        if match.group(name) is not None:
            return match.group(name), True
    return match.group("u"), False


def joining_of_name_and_value(match: re.Match[str]) -> str:
    """How name and value are joined: sign, is, space, list, pair or line."""
    groups = match.groupdict()
    for name in ("pair", "line", "is", "sp"):
        if groups.get(name) is not None:
            return {"sp": "space"}.get(name, name)
    return "list" if groups["op"] in (",", "(") else "sign"


def is_label(value: str) -> bool:
    """The name again, as in translations: `"password": "Mot de passe"`."""
    return bool(_LABEL.search(value)) and not any(ch.isdigit() for ch in value)


def is_in_code(match: re.Match[str]) -> bool:
    """Is this a line of a program, where a bare word is the name of a variable?"""
    text, start = match.string, match.start()
    before = text[max(text.rfind("\n", 0, start) + 1, start - 160) : start]
    after = text[match.end() : match.end() + 2]
    if after[:1] in ("(", "[", "{", ";", "}") or (after[:1] == ")" and _CALLED.search(before)):
        return True
    if _PROPERTY.fullmatch(before) and after[:1] in ("", "\n", "\r"):
        return False
    inside = before.count("(") > before.count(")") and _CALLED.search(before) is not None
    return inside or before.endswith(".") or _CODE.search(before) is not None


def is_password(match: re.Match[str]) -> bool:
    value, quoted = value_and_quoted(match)
    if len(value) < 3 or is_dummy(value) or is_label(value) or _is_test_output(match, value):
        return False
    if value.rstrip(".,;!?").isdigit() and SECRET_CODE.match(match.group("k")):
        return False
    how = joining_of_name_and_value(match)
    if how == "line" and match.group("q") in ('"""', "'''"):
        return False  # the text that describes a function
    if match.groupdict().get("y"):
        return how == "sign" and not is_ordinary_word(value.rstrip("0123456789"))
    if quoted:
        return _is_quoted_password(match, value, how)
    after = match.string[match.end() : match.end() + 1]
    if after in ("(", "[", "{") or how == "list":
        return False
    if how == "line":
        ends = match.string[match.end() : match.end() + 1] in ("", "\n", "\r")
        word = LETTERS.fullmatch(value) and len(value) > 4 and value.lower() not in IDENTIFIERS
        told = (
            has_mixed_characters(value)
            or (value.isdigit() and len(value) > 4)
            or ("-" in value and not is_ordinary_word(value))
            or (word and not describes_password(value) and not is_in_code(match))
        )
        return bool(ends and told) and value[-1] not in ":=," and not DOTTED.fullmatch(value)
    if how == "space":
        return _is_password_after_space(match, value)
    return (
        _is_password_after_is(match, value) if how == "is" else _is_assigned_password(match, value)
    )


def _is_test_output(match: re.Match[str], value: str) -> bool:
    """`PASS: TestLogin`, `pass: 12`: what test runners print."""
    if match.group("k").lower() not in ("pass", "passes"):
        return False
    return (
        (value.isdigit() and len(value) < 5)
        or bool(_TEST.fullmatch(value))
        or "::" in value
        or "/" in value
    )


def _is_quoted_password(match: re.Match[str], value: str, how: str) -> bool:
    if value[-1] in ":=" or value.startswith(("--", "/", "./")) or _RULES.fullmatch(value):
        return False
    flag = match.string[max(0, match.start() - 1) : match.start()] == "-"
    if how == "list" and not flag and not any(ch.isdigit() for ch in value):
        before = match.string[max(0, match.start() - 48) : match.start()].rpartition("\n")[2]
        plain = len(value) > 5 and not _SNAKE.fullmatch(value) and value.lower() not in IDENTIFIERS
        if not plain or " " in value:
            return False
        called = _FIRST_OF_CALL.search(before) is not None and not is_ordinary_word(value)
        return called or _GIVEN.search(before) is not None
    if " " not in value:
        verb = how == "space" and match.group("k").lower() == "pass" and is_ordinary_word(value)
        return how not in ("is", "space") or not (verb or describes_password(value))
    if "phrase" in match.group("k").lower():
        return True
    if any(ch.isdigit() for ch in value):
        return value.count(" ") < 4
    called = how == "list" and (flag or match.group("op") == "(") and _has_unusual_words(value)
    return (
        is_several_words(value)
        and (called or how != "list")
        and (how != "space" or value.count(" ") > 1)
    )


def _has_unusual_words(value: str) -> bool:
    """Several words, most of which no message has."""
    return sum(is_ordinary_word(word) for word in value.split()) <= value.count(" ") / 2


def is_several_words(value: str) -> bool:
    """Two to seven words that make no sentence."""
    words = value.lower().split()
    return 2 <= len(words) <= 7 and not _FUNCTION & set(words) and "," not in value


_PAIR, _LONG = 2, 10
"""Two words; a stem says little of a word so long, which may be two words joined."""


def is_passphrase(match: re.Match[str]) -> bool:
    """Words that make no sentence, and do not speak of passwords."""
    value = match.group("v")
    parts = value.lower().replace("-", " ").split()
    spoken_of = [word for word in parts if describes_password(word)]
    small = [word for word in parts if word in _FUNCTION]
    known = sum(is_ordinary_word(word) for word in parts)
    if len(parts) == _PAIR:
        named = "phrase" in match.group("k").lower()
        usual = [
            word for word in parts if is_ordinary_word(word) and not (named and len(word) > _LONG)
        ]
        return not usual and not spoken_of and not is_label(value) and value == value.lower()
    return (
        len(small) <= len(parts) // 4
        and len(spoken_of) < 2
        and known < len(parts)
        and not is_label(value)
    )


def is_token_like(value: str) -> bool:
    """Random, and no path, address, date or number of a version."""
    plain = value.rstrip(".")
    if re.fullmatch("[0-9a-f-]+", plain) or plain.lower() == plain.upper():
        return False
    return (
        random_looking(plain)
        and not re.search(r"\.[a-z]{2,5}$|^[a-z]+/|//|^[0-9a-f]{8}-[0-9a-f]{4}-", plain)
        and count_digits(plain) > 1
    )


_HEX = re.compile("[0-9a-f]{32}|[0-9a-f]{40}|[0-9a-f]{64}|[0-9a-f]{48}")
_OTHER_HEX = re.compile(
    "(?i)commit|sha|hash|digest|checksum|fingerprint|revision|md5|etag|trace|span|id$"
)


def is_told_token(match: re.Match[str]) -> bool:
    """A token in a sentence; in hexadecimal unless the sentence speaks of hashes."""
    value = match.group("v")
    if _HEX.fullmatch(value.rstrip(".")):
        line = match.string[max(0, match.start() - 40) : match.start("v")]
        return len(set(value)) > 6 and _OTHER_HEX.search(line) is None
    return is_token_like(value)


def _is_assigned_password(match: re.Match[str], value: str) -> bool:
    low = value.lower().rstrip(".,;:!?)")
    if low in IDENTIFIERS or (DOTTED.fullmatch(value) and not count_digits(value)):
        return False
    if len(value) < 4 and not (has_mixed_characters(value) and not IDENTIFIER.fullmatch(value)):
        return False
    upper = match.group("op") == "=" and match.group("k").isupper()
    if upper:
        return not (value.isupper() and "_" in value)
    coded = is_in_code(match)
    if coded and (
        IDENTIFIER.fullmatch(value) or DOTTED.fullmatch(value) or _SNAKE.fullmatch(value)
    ):
        return False
    if LETTERS.fullmatch(value.rstrip(".!?")):
        return (
            not describes_password(value)
            and not (is_ordinary_word(value.rstrip(".!?")) and _is_in_sentence(match))
            and not (coded or _SNAKE.fullmatch(value))
            and (match.group("op") == "=" or _ends_statement(match))
        )
    if not _SIGN.search(value):
        return (
            (_is_told_after_colon(match) or ("-" in value and not is_ordinary_word(value)))
            and not coded
            and value[0] not in "/.-"
            and not ALGORITHM.fullmatch(value)
        )
    return value[0] != "/" or value.count("/") < 2


def _is_told_after_colon(match: re.Match[str]) -> bool:
    """A colon, or an arrow behind several words: `password for the guests -> …`."""
    if match.group("op") in ("->", ">"):
        return " " in match.string[match.end("k") : match.start("op")].strip()
    return match.group("op") == ":"


def _is_in_sentence(match: re.Match[str]) -> bool:
    """Do several words stand before the name on its line?"""
    text, start = match.string, match.start()
    return text[max(text.rfind("\n", 0, start) + 1, start - 80) : start].count(" ") > 2


def _ends_statement(match: re.Match[str]) -> bool:
    """Is nothing said after this word that makes a sentence of it?"""
    rest = match.string[match.end() : match.end() + 24]
    word = re.match(r"[ \t]{1,2}([A-Za-z]{1,20})\b(?![=:])", rest)
    closed = match.group(0)[-1] in ".!?" or (word is not None and word.group(1)[0].isupper())
    return (
        word is None
        or closed
        or word.group(1).lower()
        in (
            "and",
            "und",
            "et",
            "y",
            "e",
            "for",
            "on",
            "but",
            "user",
            "http",
            "https",
            "url",
            "host",
            "from",
            "login",
        )
    )


def _is_password_after_is(match: re.Match[str], value: str) -> bool:
    plain = value.rstrip(".,;:!?)")
    if (
        len(plain) < 3
        or describes_password(plain)
        or (DOTTED.fullmatch(plain) and not count_digits(plain))
    ):
        return False
    if count_digits(plain) or _SIGN.search(plain):
        return (
            len(plain) >= 4
            and (count_digits(plain) >= 4 or not ALGORITHM.fullmatch(plain))
            and "(" not in plain
        )
    link = (match.group("is") or "").strip().lower()
    return (
        len(plain) >= 4
        and link not in ("to", "on", "now")
        and LETTERS.fullmatch(plain) is not None
        and not is_ordinary_word(plain)
        and plain.lower() not in ADVERBS
        and _ends_statement(match)
    )


def _is_password_after_space(match: re.Match[str], value: str) -> bool:
    plain = value.rstrip(".,;:!?)")
    before = match.string[max(0, match.start() - 160) : match.start()]
    if re.search(
        r"(?:^|\s)(?:machine|login|default)\s[^\n]{0,120}$|\blogin\s+\S+\s+$", before
    ):  # netrc
        return not describes_password(plain)
    if match.group("k").lower() in ("pass", "pw", "passes", "passe", "clave", "parola"):
        return False
    return (
        len(plain) >= 5
        and has_mixed_characters(plain)
        and not ALGORITHM.fullmatch(plain)
        and not _WORDS.fullmatch(plain)
    )


def count_digits(value: str) -> int:
    return sum(ch.isdigit() for ch in value)


def has_mixed_characters(value: str) -> bool:
    """Letters with digits, or with signs that no word has."""
    signs = count_digits(value) or any(ch in "!@#$%^&*+~" for ch in value[:-1])
    return bool(signs) and any(ch.isalpha() for ch in value)


def is_secret(match: re.Match[str]) -> bool:
    value, quoted = value_and_quoted(match)
    after = match.string[match.end() : match.end() + 1]
    if set("{ ") & set(value) or is_dummy(value) or is_label(value):
        return False
    if not quoted and (
        after in ("(", "[")
        or DOTTED.fullmatch(value)
        or (IDENTIFIER.fullmatch(value) and count_digits(value) and len(value) < 16)
    ):
        return False
    if random_looking(value):
        return True
    how, strong = joining_of_name_and_value(match), bool(_STRONG.fullmatch(match.group("k")))
    if how in ("list", "line") or "/" in value or len(value) < 5:
        return False
    if has_mixed_characters(value):
        enough = len(value) >= (6 if strong else 8) and not _WORDS.fullmatch(value)
        return enough and how != "space" and (strong or not ALGORITHM.fullmatch(value))
    return how in ("sign", "pair") and _is_word_secret(match, value, quoted=quoted, strong=strong)


def _is_word_secret(match: re.Match[str], value: str, *, quoted: bool, strong: bool) -> bool:
    """A word as a secret: `secret: "swordfish"`. In JSON, a token may be any word of a text."""
    plain = value.rstrip(".,;!?")
    if not LETTERS.fullmatch(plain) or plain.lower() in IDENTIFIERS or describes_password(plain):
        return False
    if match.group("op") not in ("=", ":", None) or not re.fullmatch(
        r"(?i).*(?:secret|token)", match.group("k")
    ):
        return False
    if strong:
        return quoted or (
            not is_in_code(match) and not _SNAKE.fullmatch(plain) and _ends_statement(match)
        )
    named_in_json = match.string[match.end("k") : match.end("k") + 1] in ('"', "\\")
    return quoted and len(plain) >= 8 and not named_in_json and not _SNAKE.fullmatch(plain)


def is_pin(match: re.Match[str]) -> bool:
    value, _ = value_and_quoted(match)
    count = count_digits(value)
    if not 3 <= count <= 8 or not re.fullmatch(r"[0-9][0-9 \-]{1,9}[0-9][.,;:!?]?", value):
        return False
    how, name = joining_of_name_and_value(match), match.group("k")
    if how == "space" and name.islower() and name in ("pin", "tan", "cvc") and count < 5:
        return False  # the pin of a board
    short = name.lower().startswith(("cv", "security", "sicher", "code de sec", "codigo de seg"))
    return count >= (3 if short else 4) and len(set(value)) > 1


def is_flag_password(value: str) -> bool:
    plain = value.rstrip(".,;:)")
    if (
        len(plain) < 3
        or is_dummy(plain)
        or is_label(plain)
        or (plain.isupper() and plain.isalpha() and is_ordinary_word(plain))
    ):
        return False
    return not describes_password(plain) and plain.lower() not in IDENTIFIERS
