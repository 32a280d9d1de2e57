"""Is this the key of a wallet? Base58 with its checksum, and seed phrases with theirs."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from hashlib import sha256
from typing import cast

from .bip39 import WORDS
from .rule import Anchor, Rule

_BASE58 = {
    ch: i for i, ch in enumerate("123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz")
}
_LETTERS = re.compile("[a-z]+")
_WORD = re.compile(r"[A-Za-z]{3,8}")
_RUN = re.compile(r"(?:[A-Za-z]{3,8}(?:[^\w<>]|[\d_]){1,8}){11,}[A-Za-z]{3,8}")
"""Words with nothing but spaces, commas or numbers between them; our own placeholders, `<seed-phrase-1>`, end it."""
_ONLY_WORDS = re.compile(
    r"(?:(?:[^\w<>]|[\d_]){0,8}+[A-Za-z]{3,8}+(?![^\W\d_])){0,24}+(?:[^\w<>]|[\d_]){0,8}"
)
"""A text that holds nothing but such words, and their numbers."""
_LENGTHS = (24, 21, 18, 15, 12)
_LONGEST = 24 * 16
_BITS = 11
"""Of a word's place in the list."""


LEAST_WORDS = _LENGTHS[-1]


def is_wif_private_key(value: str) -> bool:
    """A private key in the wallet import format, of either network.

    >>> is_wif_private_key("5HueCGU8rMjxEXxiPuD5BDku4MkFqeZyd4dZ1jvhTVqvbTLvyTJ")
    True
    >>> is_wif_private_key("5HueCGU8rMjxEXxiPuD5BDku4MkFqeZyd4dZ1jvhTVqvbTLvyTK")
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
def _word_indices() -> dict[str, int]:
    return {word: i for i, word in enumerate(WORDS)}


def count_seed_words(text: str) -> int | None:
    """How many words of the list this text holds, if it holds nothing else but their numbers.

    >>> [count_seed_words(text) for text in ("zoo", "3. zoo", "legal winner thank", "7", "zoo keeper")]
    [1, 1, 3, 0, None]
    """
    if len(text) > _LONGEST or not _ONLY_WORDS.fullmatch(text):
        return None
    words = _LETTERS.findall(text.lower())
    return len(words) if _word_indices().keys() >= set(words) else None


def is_seed_phrase(words: list[str]) -> bool:
    """Twelve to twenty-four words whose last bits are the checksum of the others.

    >>> is_seed_phrase("legal winner thank year wave sausage worth useful legal winner thank yellow".split())
    True
    """
    index = _word_indices()
    if len(words) not in _LENGTHS or any(word not in index for word in words):
        return False
    number = 0
    for word in words:
        number = number << _BITS | index[word]
    return _has_valid_checksum(number, len(words))


def _has_valid_checksum(number: int, count: int) -> bool:
    """Whether so many words, side by side as one number, end with their checksum."""
    check = count // 3
    entropy = (number >> check).to_bytes(check * 4)
    return sha256(entropy).digest()[0] >> (8 - check) == number & ((1 << check) - 1)


def listed(text: str, marks: Iterable[int]) -> list[int]:
    """The marks whose own word is in the list.

    A mark lies on the third letter of its word, and of any twelve words in a row at least one is marked, so that no
    phrase is lost.
    """
    match, index = _WORD.match, _word_indices()
    return [m for m in marks if (word := match(text, m - 2)) and word[0].lower() in index]


def regions(marks: Iterable[int], search_start: int, search_end: int) -> Iterator[tuple[int, int]]:
    """Where the words around sorted marks lie; regions that meet are one, so that no word is read twice.

    >>> list(regions([400, 500, 2000], 100, 2100))
    [(100, 884), (1616, 2100)]
    """
    low = high = -1
    for mark in marks:
        if high >= 0 and mark - _LONGEST > high:
            yield low, high
            high = -1
        low = low if high >= 0 else max(search_start, mark - _LONGEST)
        high = min(search_end, mark + _LONGEST)
    if high >= 0:
        yield low, high


def phrases(text: str, low: int, high: int) -> Iterator[tuple[int, int]]:
    """The seed phrases between two places of a text, as spans.

    All words are looked up first, which most texts do not survive; only where enough of them in a row are in the
    list is it read what stands between them.
    """
    numbers = list(map(_word_indices().get, _LETTERS.findall(text[low:high].lower())))
    if not any(_runs_of_twelve_words(numbers)):
        return
    for match in _RUN.finditer(text, low, high):
        known = list(map(_word_indices().get, _WORD.findall(match.group().lower())))
        found = [
            (start + first, start + last)
            for start, end in _runs_of_twelve_words(known)
            for first, last in _seed_phrases_in_run(cast("Sequence[int]", known[start:end]))
        ]
        if found:
            spans = [word.span() for word in _WORD.finditer(text, *match.span())]
            yield from ((spans[first][0], spans[last][1]) for first, last in found)


def _runs_of_twelve_words(numbers: Sequence[int | None]) -> Iterator[tuple[int, int]]:
    """Where at least twelve words in a row are in the list; every twelfth word tells whether it is worth looking."""
    at = LEAST_WORDS - 1
    while at < len(numbers):
        if numbers[at] is None:
            at += LEAST_WORDS
            continue
        start = end = at
        while start > 0 and numbers[start - 1] is not None:
            start -= 1
        while end < len(numbers) and numbers[end] is not None:
            end += 1
        if end - start >= LEAST_WORDS:
            yield start, end
        at = end + LEAST_WORDS


def _seed_phrases_in_run(run: Sequence[int]) -> Iterator[tuple[int, int]]:
    """In words of the list that follow each other; up to 24 of them are held as one number.

    Every sixteenth run of twelve words has a sound checksum by chance, and may begin before a real phrase and
    reach into it. So phrases that overlap are all taken, as one. Words in the order of the alphabet are a list of words:
    one phrase in five hundred million is in that order.
    """
    if len(set(run)) == len(run) and list(run) == sorted(run):
        return
    number = held = 0
    first, last = 0, -1
    for at in range(len(run) - _LENGTHS[-1] + 1):
        while held < _LENGTHS[0] and at + held < len(run):
            number = number << _BITS | run[at + held]
            held += 1
        size = next(
            (
                n
                for n in _LENGTHS
                if n <= held and _has_valid_checksum(number >> _BITS * (held - n), n)
            ),
            0,
        )
        if size:
            if last >= 0 and at > last:
                yield first, last
            first = at if at > last else first
            last = max(last, at + size - 1)
        held -= 1
        number &= (1 << _BITS * held) - 1
    if last >= 0:
        yield first, last


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
