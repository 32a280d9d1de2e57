"""Does a token show by itself that it was made to be a secret?

| shows it                 | example          | does not            | example               |
|--------------------------|------------------|---------------------|-----------------------|
| a sign among letters     | `blue$fish1`     | a name of a thing   | `sha256`, `utf8mb4`   |
| a sign behind a number   | `Summer2024!`    | a word with a count | `user42`, `step-3`    |
| letters, digits, letters | `x9Kd2mQ`        | a path, an address  | `a/b.py`, `v1.2.3`    |
| letters no word has      | `qzkfpwtj`       | names of programs   | `PostgreSQL`          |
"""

from __future__ import annotations

import re

from .values import is_dummy, is_label

_RARE = {
    "a": "e",
    "b": "dfhkmpqvwxz",
    "c": "bdfgpqvwx",
    "d": "fhjqvx",
    "f": "chjkmnpqvwxz",
    "g": "bfjqvwxyz",
    "h": "bcdfjkpqvxyz",
    "i": "i",
    "j": "bchjmqrtwxy",
    "k": "dfhjpqvwxyz",
    "l": "jqwxz",
    "m": "fhjqrvwxz",
    "n": "jx",
    "o": "hx",
    "p": "bjkqvwxz",
    "q": "abcdefghijklmnopqrstvwxyz",
    "r": "jx",
    "s": "x",
    "t": "jqx",
    "u": "q",
    "v": "bcdfghjklmnqstwxyz",
    "w": "bfghjmqvwx",
    "x": "bdfghjklmnqrsuvwyz",
    "y": "hqvxyz",
    "z": "fhjqvx",
}
_PAIRS = frozenset(first + second for first, rest in _RARE.items() for second in rest)
"""Pairs of letters that hardly a word has, in nine languages."""

_SIGNS = frozenset("!@#$%^&*+~?=")
_NO_TOKEN = re.compile(
    r"(?ix) .*://.* | 0x[0-9a-f]+.* | (?:/|~/|\$[{(]|%[({]|[{<]).* | --?[a-z][a-z0-9-]*(?:=.*)? | \.[a-z0-9./_-]* | .*[a-z]\.[a-z]{2,4} | .*\\.* | [\w.+-]+@[\w-]+(?:\.[\w-]+)+ | \w+\(.* | .*[>] | [0-9a-f]{8}-[0-9a-f]{4}-.*"
    r"| (?:\w+/)+\w* | [\d.,:%/x-]+[a-z]{0,3} | [a-z0-9]+(?:[=][a-z0-9_.-]*)+ | .*&\w*=.* | v?\d+(?:\.\d+)+\S*"
)
"""What stands in sentences beside passwords and is none, however it is mixed: addresses, paths, flags, numbers."""
_SELDOM = re.compile(
    r"(?ix) (?:--?[a-z]|\.|\$[a-z]|\#\d+).* | .*%(?:0A|%|\d\$|[sdcu]\b).*"
    r"| (?:log4j|[il]1[80]n|k8s|x86|utf-?\d|oauth\d?|base(?:32|64|85)|sha\d|md5|ipv[46]|h26[45]|mp[34]|win(?:32|64)|amd64|arm64|aarch64|pbkdf2|argon2"
    r"|pkcs\#?\d|socks\d|rfc\d|[0m]365|office365|2fa|tls1|es\d{4}|aes-?\d|rsa-?\d|ed25519|curve25519|bip39|x509|latin\d|iso-?\d|cp125|python\d|php\d|http/?\d|web[23]|e2e|b2b|s3(?![a-z0-9])|ec2|a11y|hmac|ssh-?\d|v\d(?![a-z])|pgp|gpg|bcrypt|\d+x\d+).{0,12}"
)
"""The same, unless it is as mixed as only generated passwords are: names of algorithms, formats, variables."""
_COUNTED = re.compile(
    r"[A-Za-z]*[a-z_-][A-Za-z]*[_-]?[0-9]{1,4}|[A-Z]+[_-]?[0-9]{1,6}|[0-9]{1,4}[A-Za-z]+"
)
_HUMPS = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])")
_SWITCH = re.compile(r"[A-Za-z](?=[0-9])|[0-9](?=[A-Za-z])")
_LEAST, _MOST = 5, 64


def count_unlikely_pairs(word: str) -> int:
    """How many pairs of letters does this word have that words do not have?

    >>> count_unlikely_pairs("sunflower"), count_unlikely_pairs("qzkfpwtj") > 1
    (0, True)
    """
    low = word.lower()
    return sum(low[i : i + 2] in _PAIRS for i in range(len(low) - 1))


def is_strong_token(token: str) -> bool:
    """Would nobody write this in a sentence unless it is a secret?

    >>> [is_strong_token(t) for t in ("Summer2024!", "x9Kd2mQ", "qzkfpwtjx", "user42", "sha256sum", "swordfish")]
    [True, True, True, False, False, False]
    """
    if not _LEAST <= len(token) <= _MOST or is_dummy(token) or _NO_TOKEN.fullmatch(token):
        return False
    if _SELDOM.fullmatch(token) and not _is_generated(token):
        return False
    if token.isascii() and token.isalpha():
        return _has_random_letters(token)
    if not any(ch.isalpha() for ch in token) or (is_label(token) and token.isalpha()):
        return False
    digits = sum(ch.isdigit() for ch in token)
    if not _SIGNS.isdisjoint(token[1:] if digits else token[1:-1]):
        return bool(digits) or len(token) > 6
    return bool(digits) and _has_digits_among_letters(token, digits)


def _is_generated(token: str) -> bool:
    """Small and large letters with digits, changing often or with a sign among them: `e0%%90WLl6m9k`."""
    cased = any(ch.islower() for ch in token) and any(ch.isupper() for ch in token)
    signed = any(ch.isdigit() for ch in token) and not _SIGNS.isdisjoint(token[1:-1])
    return cased and len(token) > 7 and (signed or len(_SWITCH.findall(token)) > 2)


def _has_digits_among_letters(token: str, digits: int) -> bool:
    """Digits among letters, more often than names of things have them."""
    if _COUNTED.fullmatch(token):
        return False
    count = len(_SWITCH.findall(token))
    cased = token.lower() != token != token.upper() and not token.istitle()
    return (
        count >= 3
        or (count >= 2 and (cased or (digits > 1 and len(token) > 7)))
        or (cased and digits > 1 and len(token) > 7 and count_unlikely_pairs(token) > 0)
    )


def _has_random_letters(token: str) -> bool:
    if token.islower() or token.istitle() or token.isupper():
        return len(token) > 6 and count_unlikely_pairs(token) > 1
    humps = _HUMPS.findall(token)
    short = sum(len(hump) < 3 for hump in humps)
    return (
        len(token) > 6
        and len(humps) > 2
        and short * 3 >= len(humps)
        and count_unlikely_pairs(token) + short > 1
    )
