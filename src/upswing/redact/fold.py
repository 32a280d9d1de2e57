"""Which characters only look like others, and which cannot be seen at all?

Folding keeps positions: every character becomes exactly one. A look-alike becomes the ASCII
character it resembles, a letter loses its accent, an invisible character becomes DEL, the words of
other scripts that announce a secret become signs, everything else stays.
"""

from __future__ import annotations

import codecs
import re
import unicodedata
from functools import cache, lru_cache

from .words import LINK, LINK_SIGNS, VERB, replace_foreign_words

HIDDEN = "\x7f"
"""Stands for an invisible character after folding; a real DEL is no less invisible."""

_KEPT = "\x1a"
"""Holds the place of a character that stays, while the others are folded."""
_KEPT_RUNS = re.compile(f"{_KEPT}+")
_VERBS, _IS_ALONE = "èéÈÉ", r"(?<![^ \n\t,(]){}(?=[ :\n\t])"
_IS = re.compile(_IS_ALONE.format(f"[{_VERBS}]"))
"""The verb of Italian and Portuguese, which would become the word for *and* without its accent."""

_LOOK_ALIKES = (
    (
        "АаВСсЕеНһІіЈјКкМоОРрЅѕТтУуХхԁԛԜԝҮүᴦѴѵԌӀӏɡɑıｌ",
        "AaBCcEeHhIiJjKkMoOPpSsTtYyXxdqWwYyrVvGllgail",
    ),
    ("ΑΒΕΖΗΙΚΜΝΟΡΤΥΧαικνορτυχϲϳ", "ABEZHIKMNOPTYXaiкvoptuxcj".replace("к", "k")),
    ("‐‑‒–—−﹣⁃․‚⁄∕⧸∶꞉ː﹕＿ˍ", "-------" + "-.,///::::__"),
    ("ꓐꓑꓒꓓꓔꓖꓗꓙꓚꓜꓝꓠꓡꓢꓣꓦꓧꓪꓫꓬꓮꓰꓲꓳꓴ", "BPdDTGKJCZFNLSRVHWXYAEIOU"),
    ("\x85\u2028\u2029", "\n\n\n"),
    ("“”„‟«»「」『』〝〞＂‘’‛＇→⇒、。", '"' * 13 + "'" * 4 + ">>,."),
    ("łŁøØđĐßæÆœŒ", "lLoOdDsaAoO"),
    (
        "\u00a0\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u202f\u205f\u3000",
        " " * 15,
    ),
)
_INVISIBLE = (
    (0xAD, 0xAD),
    (0x300, 0x36F),
    (0x61C, 0x61C),
    (0x115F, 0x1160),
    (0x17B4, 0x17B5),
    (0x180B, 0x180F),
    (0x200B, 0x200F),
    (0x202A, 0x202E),
    (0x2060, 0x206F),
    (0x3164, 0x3164),
    (0xFE00, 0xFE0F),
    (0xFEFF, 0xFEFF),
    (0xFFA0, 0xFFA0),
    (0xE0001, 0xE0001),
    (0xE0100, 0xE01EF),
)
_ACCENTED = ((0xC0, 0x24F), (0x1E00, 0x1EFF))
_COMPATIBLE = (
    (0xAA, 0xBA),
    (0x1D2C, 0x1D6A),
    (0x2070, 0x209C),
    (0x2100, 0x214F),
    (0x2160, 0x2188),
    (0x2460, 0x24FF),
    (0xFE30, 0xFE6B),
    (0xFF01, 0xFF5E),
    (0x1D400, 0x1D7FF),
    (0x1F130, 0x1F149),
)


class _Fold(dict[int, int]):
    """Remembers characters that stay, so that `translate` raises no error for them twice."""

    def __missing__(self, key: int) -> int:
        if len(self) < 20_000:
            self[key] = key
        return key


@cache
def _fold_table() -> _Fold:
    table = _Fold()
    for first, last in _COMPATIBLE:
        for code in range(first, last + 1):
            plain = unicodedata.normalize("NFKC", chr(code))
            if len(plain) == 1 and plain.isascii():
                table[code] = ord(plain)
    for first, last in _ACCENTED:
        for code in range(first, last + 1):
            plain = unicodedata.normalize("NFD", chr(code))[0]
            if plain.isascii():
                table[code] = ord(plain)
    for strange, plain in _LOOK_ALIKES:
        table.update(zip(map(ord, strange), map(ord, plain), strict=True))
    for first, last in _INVISIBLE:
        table.update(dict.fromkeys(range(first, last + 1), ord(HIDDEN)))
    table.update(dict.fromkeys(map(ord, LINK_SIGNS), ord(LINK)))
    table.update({0xE0000 + code: code for code in range(0x20, 0x7F)})
    table.update({code: code for code in range(0x80)})
    return table


_BLOCK, _BLOCKS = 512, 32
"""Characters that are looked at together, and how often: they tell whether a text is mostly ASCII."""
_FREQUENT = "—–‐‑−“”„«»‘’‚→⇒、。\u00a0\u202f\u3000łŁøØđßæœáàâäãåçéèêëíìîïñóòôöõúùûüýÿÁÀÂÄÃÅÇÉÈÊËÍÌÎÏÑÓÒÔÖÕÚÙÛÜąćęńśźżĄĆĘŃŚŹŻğışĞİŞčďěňřšťůžČŠŽőű…·•°§"


@cache
def _build_frequent_codec() -> tuple[object, bytes, list[tuple[bytes, re.Pattern[bytes]]]]:
    """A codec of one byte for ASCII and the characters of ordinary prose; what its bytes are folded to; the verbs."""
    rest = [ch for ch in dict.fromkeys(_FREQUENT) if ord(chr(_fold_table()[ord(ch)])) < 0x80]
    used = "".join(map(chr, range(128))) + "".join(rest[:128])
    folded = bytes(_fold_table()[ord(ch)] for ch in used)
    verbs = [bytes([used.index(verb)]) for verb in _VERBS]
    alone = [re.compile(_IS_ALONE.format("\0").encode().replace(b"\0", verb)) for verb in verbs]
    codec = codecs.charmap_build(used.ljust(256, "\ufffe"))
    return codec, folded.ljust(256, b"?"), list(zip(verbs, alone, strict=True))


def _is_mostly_ascii(text: str) -> bool:
    """Which way of folding costs less? The result is the same."""
    size = len(text)
    if size > _BLOCK * _BLOCKS:
        step = size // _BLOCKS
        text = "".join([text[at : at + _BLOCK] for at in range(0, size, step)])
    return len(text.encode("ascii", "ignore")) * 16 > len(text) * 15


def fold(text: str) -> str:
    r"""The text as a reader sees it, in ASCII where it looks like ASCII.

    >>> fold("ѕk-Ａ\u200bb")
    'sk-A\x7fb'
    """
    if text.isascii():
        return text
    if _is_mostly_ascii(text):
        codec, folded, verbs = _build_frequent_codec()
        coded, _ = codecs.charmap_encode(text, _HANDLER, codec)  # type: ignore[arg-type]
        for verb, alone in verbs:
            if verb in coded:
                coded = alone.sub(VERB.encode(), coded)
        plain = coded.translate(folded).decode("ascii")
        return _restore_foreign_letters(plain, text) if _KEPT in plain else plain
    return replace_foreign_words(_IS.sub(VERB, text)).translate(_fold_table())


def _restore_foreign_letters(plain: str, text: str) -> str:
    """The letters of other scripts in their places again: a value may be written in them."""
    parts, at = [], 0
    for run in _KEPT_RUNS.finditer(plain):
        parts += [plain[at : run.start()], text[run.start() : run.end()]]
        at = run.end()
    return "".join([*parts, plain[at:]])


def _fold_run(error: UnicodeError) -> tuple[bytes, int]:
    """Few foreign characters: the codec runs over the others at full speed and asks for these."""
    assert isinstance(error, UnicodeEncodeError)  # noqa: S101 - only `fold` uses this handler
    return _folded_bytes(error.object[error.start : error.end]), error.end


@lru_cache(maxsize=4096)
def _folded_bytes(run: str) -> bytes:
    folded = replace_foreign_words(run).translate(_fold_table())
    return "".join([ch if ch.isascii() else _KEPT for ch in folded]).encode("ascii")


_HANDLER = "upswing-fold"
codecs.register_error(_HANDLER, _fold_run)
