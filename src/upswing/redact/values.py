"""A value stands behind the name of a secret: is it one, or code, a dummy, a reference?

written as          stays                                    goes
password, quoted    types, dummies, references, prompts      everything else of 4 or more
password, bare      names and calls of code, plain words     a digit or a sign, 6 or more
UPPER=bare          the same, but plain words go             4 or more
token and the like  words, paths, short or even values       mixed and varied, 12 or more
"""

from __future__ import annotations

import math
import re
from collections import Counter

_DUMMY = re.compile(
    r"""(?ix)
    <[^<>]{0,80}>                                     # a placeholder, ours or another's
    |\$[a-z_]+|\$[({].*|%(?:\(\w+\))?s|%\w+%|\{[^}]*\}?|.*\$\{.*|.*\{\{.*   # a reference to be filled in
    |[*•x.\-_#?0]{3,}[^0-9]{0,4}|\W+                 # masked already
    |(?:your|my|some|the|a|an|enter|insert|replace|put|add)[-_ ][^0-9]*|[^0-9]*[-_ ](?:here|goes|placeholder)
    |(?:pass(?:w(?:or)?d|phrase)?|pwd|secret|token|api[-_]?key|string|str|bytes|bool|int|float|any|object
      |none|null|nil|true|false|undefined|required|optional|hidden|redacted|removed|masked|filtered
      |change[-_]?me|change[-_]?it|example|sample|dummy|placeholder|default|empty|unknown|unset|todo|n/?a
      |text|varchar|char|self|value|field|input|type|invalid|missing|new|old|mypassword|mysecret)\d{0,3}[?!;,.]{0,2}
    |os\.environ.*|process\.env.*|getenv.*|env[.:].*|vault:.*|secret(?:s|manager)?[:/].*|file:.*|https?://.*
    """
)
_WORDS = re.compile(r"[A-Za-z]{0,14}[0-9]{0,3}(?:[_\-.:/ ][A-Za-z]{0,14}[0-9]{0,4})+")
_NAME = re.compile(r"[A-Za-z_][A-Za-z_]*[0-9]{0,1}|[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)+")
_SIGN = re.compile(r"[^A-Za-z_.\-:/\\]")


def entropy(value: str) -> float:
    """Bits per character.

    >>> entropy("aaaa"), entropy("abcd")
    (0.0, 2.0)
    """
    size = len(value)
    return -sum(n / size * math.log2(n / size) for n in Counter(value).values()) + 0.0


def dummy(value: str) -> bool:
    return bool(_DUMMY.fullmatch(value)) or len(set(value)) <= 2


def random_looking(value: str) -> bool:
    """Would a person have typed this as a word, a path or a sentence?"""
    if len(value) < 12 or dummy(value) or _WORDS.fullmatch(value):
        return False
    has_digit = any(ch.isdigit() for ch in value)
    mixed = has_digit and any(ch.isalpha() for ch in value)
    if len(value) < 16:
        mixed = mixed and value.lower() != value != value.upper()
    return mixed and entropy(value) >= 2.9


def spoken(match: re.Match[str]) -> tuple[str, bool]:
    """The value, and whether it stood in quotes."""
    value = match.group("v")
    return (match.group("u"), False) if value is None else (value, True)


def password(match: re.Match[str]) -> bool:
    value, quoted = spoken(match)
    if len(value) < 4 or dummy(value):
        return False
    signs = bool(_SIGN.search(value))
    if quoted:
        loose = match.group("op") in (",", "(")
        typed = not loose or any(ch.isdigit() for ch in value)
        return typed and _quoted_password(value, phrase="phrase" in match.group(0).lower())
    after = match.string[match.end() : match.end() + 1]
    if after in ("(", "[", "{") or match.group("op") in (",", "("):
        return False
    if match.group("op") == "=" and match.group("k").isupper():
        return not (value.isupper() and "_" in value)
    return len(value) >= 6 and signs and not _NAME.fullmatch(value)


def _quoted_password(value: str, *, phrase: bool) -> bool:
    if " " not in value:
        return value[-1] not in ":=" and not value.startswith(("--", "/", "./"))
    return phrase or (any(ch.isdigit() for ch in value) and value.count(" ") < 4)


def secret(match: re.Match[str]) -> bool:
    value, quoted = spoken(match)
    after = match.string[match.end() : match.end() + 1]
    if not quoted and (after in ("(", "[") or _NAME.fullmatch(value)):
        return False
    return not set("{ ") & set(value) and random_looking(value)


def flag_password(value: str) -> bool:
    value = value.rstrip(".,;:)")
    return len(value) >= 4 and not dummy(value) and bool(_SIGN.search(value))
