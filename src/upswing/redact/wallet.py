"""Is this the key of a wallet? Base58 with its checksum, and seed phrases with theirs."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from hashlib import sha256

from .bip39 import WORDS
from .rule import Anchor, Rule

_BASE58 = {
    ch: i for i, ch in enumerate("123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz")
}
_WORD = re.compile(r"[A-Za-z]{3,8}")
_LENGTHS = (24, 21, 18, 15, 12)
_LONGEST = 24 * 16


def wif(value: str) -> bool:
    """A private key in the wallet import format, of either network.

    >>> wif("5HueCGU8rMjxEXxiPuD5BDku4MkFqeZyd4dZ1jvhTVqvbTLvyTJ")
    True
    >>> wif("5HueCGU8rMjxEXxiPuD5BDku4MkFqeZyd4dZ1jvhTVqvbTLvyTK")
    False
    """
    number = 0
    for ch in value:
        number = number * 58 + _BASE58[ch]
    for size in (37, 38):
        if number < 1 << (8 * size):
            data = number.to_bytes(size)
            body, check = data[:-4], data[-4:]
            if data[0] in (0x80, 0xEF) and sha256(sha256(body).digest()).digest()[:4] == check:
                return True
    return False


@cache
def _index() -> dict[str, int]:
    return {word: i for i, word in enumerate(WORDS)}


def seed_phrase(words: list[str]) -> bool:
    """Twelve to twenty-four words whose last bits are the checksum of the others.

    >>> seed_phrase("legal winner thank year wave sausage worth useful legal winner thank yellow".split())
    True
    """
    index = _index()
    if len(words) not in _LENGTHS or any(word not in index for word in words):
        return False
    number = 0
    for word in words:
        number = number << 11 | index[word]
    check = len(words) // 3
    entropy = (number >> check).to_bytes(check * 4)
    return sha256(entropy).digest()[0] >> (8 - check) == number & ((1 << check) - 1)


def phrases(text: str, mark: int, floor: int, roof: int) -> Iterator[tuple[int, int]]:
    """The seed phrases in the words around `mark`, as spans."""
    index = _index()
    low = max(floor, mark - _LONGEST)
    found = list(_WORD.finditer(text, low, min(roof, mark + _LONGEST)))
    run: list[re.Match[str]] = []
    for match in [*found, None]:
        apart = not run or match is None or _apart(text[run[-1].end() : match.start()])
        if match is not None and not apart and match.group().lower() in index:
            run.append(match)
            continue
        yield from _in_run(run)
        run = [match] if match is not None and match.group().lower() in index else []


def _apart(between: str) -> bool:
    return len(between) > 8 or any(ch.isalpha() for ch in between)


def _in_run(run: list[re.Match[str]]) -> Iterator[tuple[int, int]]:
    at = 0
    while len(run) - at >= _LENGTHS[-1]:
        words = [match.group().lower() for match in run[at : at + 24]]
        size = next((n for n in _LENGTHS if n <= len(words) and seed_phrase(words[:n])), 0)
        if size:
            yield run[at].start(), run[at + size - 1].end()
        at += size or 1


SEED = Rule(
    "seed-phrase",
    r"(?!)",
    anchors=(Anchor("\x1cseed-phrase", width=12),),
    priority=63,
    trusted=True,
    about="seed phrases of wallets, by their words and their checksum",
    example="legal winner thank year wave sausage worth useful legal winner thank yellow",
)
"""Found by `phrases`, which needs more than a pattern; here for its name."""
