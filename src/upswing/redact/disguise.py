"""Which other disguises are there, and how is each taken off?

form           looks like                            found by
base32         M5UHAX3L…, m5uhax3l…                  the shape of its groups; in small letters, its beginning
base85         XJ>TNd…, <~AU&;>…~>                   how known prefixes and a few words begin in it
rot13          tuc_x7Dz…                             known prefixes, turned by thirteen letters
reversed       …z2mQ7k_phg                           known prefixes, read from behind
spaced         g h p _ k 7 Q m                       single characters with the same sign between them
gzip, zlib     H4sI…, eJx…, in base64 or hex         how their headers begin
quoted         =67=68=70, a line that ends with =    its escapes
hexdump        00000000: 6768 705f …                 its lines
"""

from __future__ import annotations

import base64
import re
import zlib
from codecs import encode
from collections.abc import Iterable
from typing import NamedTuple

_E, _S = "[E-P]", "[ABEFIJMNQRUVYZ45]"
_GROUP32 = f"{_E}{_S}[A-Z2-7][C-HS-X][ACEGIKMOQSUWY246][I-Z2-7][BCDJ-LR-TZ23][A-Z2-7]"
_B85 = r"0-9A-Za-z!#$%&()*+\-;<=>?@^_`{|}~"
_RUNNING = r"A-Za-z0-9_.+/=\-"
_ONE = r"[A-Za-z0-9_+/=.:@!#$%&*\-]"

_SEED_WORD = r"(?:[A-Za-z]{4,8}|[A-Za-z](?:[A-GI-MP-Za-gi-mp-z][A-Za-z]|[Hh][Yy]|[Nn][A-CE-Za-ce-z]|[Oo][A-QS-Za-qs-z])|[Ee][Nn][Dd])"
"""Every word of a seed phrase, and hardly twelve words of prose in a row: *the*, *and* and *for* are none."""
MARKS: tuple[tuple[str, str, str], ...] = (
    ("base32", f"(?:{_GROUP32}){{2}}[A-Z2-7]{{0,7}}", "[^A-Z2-7]"),
    ("ascii85", "<~[!-uz]{10}", ""),
    ("hex", "(?:[2-7][0-9a-fA-F]00){6}", "[^0-9a-fA-F]"),
    ("hex", "(?:00[2-7][0-9a-fA-F]){6}", "[^0-9a-fA-F]"),
    ("hex", "1[fF]8[bB]08[0-9a-fA-F]{24}", ""),
    ("packed", r"(?:H4sI|eJ[w-z]|eN[o-r]|eA[EFGH]|eF[4-7])[A-Za-z0-9+/_\-]{16}", ""),
    ("spaced", rf"[ ][A-Za-z](?:[ ]{_ONE}){{9}}", ""),
    ("quoted", "(?:=[2-7][0-9A-F]){3}", ""),
    ("quoted", "=(?:3D[A-Za-z0-9]|(?:40|2D|5F)[A-Za-z])", ""),
    ("quoted", r"[A-Za-z0-9_\-]=\r?\n[A-Za-z0-9]", ""),
    ("words", rf"(?:{_SEED_WORD}[^A-Za-z<>]{{1,8}}){{11}}[A-Za-z]{{3}}", ""),
    ("dump", r"[0-9a-fA-F]{5}0(?:: |  )[0-9a-fA-F]{2} ?[0-9a-fA-F]{2} [0-9a-fA-F]{2}", ""),
)
CHEAP = frozenset({"units", "words", "spaced", "quoted", "dump"})
"""Marks that an honest text may hold by the thousand."""

_SHORT = ("sk-", "hf_", "eyJ", "SG.")
_PLAIN = (
    "pass",
    "Pass",
    "PASS",
    "pwd=",
    "toke",
    "TOKE",
    "secr",
    "SECR",
    "api_",
    "API_",
    "user",
    "USER",
    "mail",
    "DB_P",
    "AWS_",
    "auth",
    "Auth",
    "my p",
    "the ",
    "http",
    "post",
    '{"pa',
    '{"us',
    '{"to',
    '{"ap',
    '{"se',
)
"""How a text that holds a secret may begin."""
_LARGE, _SMALL = re.compile("[A-Z2-7]*"), re.compile("[a-z2-7]*")
_RUN = re.compile(rf"[{_RUNNING}]*")
_RUN85 = re.compile(rf"[{_B85}]*")
_RUN_A85 = re.compile(r"[!-uz]*")
_LINE_OF_DUMP = re.compile(
    r"[0-9a-fA-F]{4,8}:?[ \t]{1,3}((?:[0-9a-fA-F]{2,4}[ \t]{1,2}|[0-9a-fA-F]{2,4}(?=\n|$)){1,16})[^\n]{0,80}"
)
_OFFSET = re.compile(r"(?<![0-9a-fA-F])[0-9a-fA-F]{6,8}:?[ \t]{1,2}(?=[0-9a-fA-F]{2})")
_MOST_UNPACKED = 1 << 18
_MOST_85 = 1 << 14
Found = tuple[int, int, list[str]]


class Begun(NamedTuple):
    """How a disguise begins: the engine finds the literal, the rest is read where it stands."""

    name: str
    literal: str
    edge: str
    """What stands before the literal, also for the engine."""
    after: str
    width: int
    """Characters of `after` that belong to the disguise."""
    before: str = ""
    """What stands before the literal, read from behind."""


def prefix_marks(prefixes: Iterable[str]) -> tuple[Begun, ...]:
    """Marks for what begins with these, turned, reversed and in base 85."""
    known = sorted({p for p in prefixes if len(p) >= 4 or p in _SHORT})
    four = [p[:4].encode() for p in (*known, *_PLAIN) if len(p) > 3]
    turned = {encode(p, "rot13") for p in (*known, "password", "passwort")}
    small = {
        base64.b32encode(p[:5].encode()).decode()[: 8 * len(p[:5]) // 5].lower()
        for p in (*known, *_PLAIN)
    }
    return (
        *(
            Begun("rot13", w, r"(?:^|[^A-Za-z0-9])", r"[A-Za-z0-9_.: \-]{6}", 6)
            for w in sorted(turned)
        ),
        *(
            Begun("reversed", w, "", "[^A-Za-z0-9]", 0, rf"[{_RUNNING}]{{10}}")
            for w in sorted({p[::-1] for p in known})
        ),
        *(
            Begun("base85", w, "", rf"[{_B85}]{{12}}", 12)
            for w in sorted({base64.b85encode(p).decode() for p in four})
        ),
        *(Begun("base85", w, "", rf"[{_B85}]{{24}}", 24) for w in sorted(_base85_prefixes(known))),
        *(Begun("base32", w, "", "[a-z2-7]{12}", 12) for w in sorted(small)),
        *(
            Begun("ascii85", w, "", "[!-uz]{12}", 12)
            for w in sorted({base64.a85encode(p).decode() for p in four})
        ),
    )


def _base85_prefixes(prefixes: Iterable[str]) -> set[str]:
    """How prefixes of three characters begin in base 85, whatever the fourth one is."""
    ends = [
        (base64.b85encode(f"{p} ".encode()), base64.b85encode(f"{p}~".encode()))
        for p in prefixes
        if len(p) == 3
    ]
    return {low[:3].decode() for low, high in ends if low[:3] == high[:3]}


def _run_around(
    text: str, mark: int, search_start: int, search_end: int, allowed: re.Pattern[str], limit: int
) -> tuple[int, int]:
    before = text[max(search_start, mark - limit) : mark][::-1]
    start = mark - allowed.match(before).end()  # type: ignore[union-attr]
    end = allowed.match(text, mark, min(search_end, mark + limit)).end()  # type: ignore[union-attr]
    return start, end


def decode_base32_run(text: str, mark: int, search_start: int, search_end: int) -> Found:
    start, end = _run_around(text, mark, search_start, search_end, _LARGE, 1 << 16)
    if end - start < 16:
        start, end = _run_around(text, mark, search_start, search_end, _SMALL, 1 << 16)
    body, padding = (
        text[start:end].upper(),
        re.compile("=*").match(text, end, min(search_end, end + 6)),
    )
    texts: list[str] = []
    for phase in range(8):
        part = body[phase : phase + (len(body) - phase) // 8 * 8]
        rest = body[phase + len(part) :]
        if len(rest) in (2, 4, 5, 7):
            part += rest + "=" * (8 - len(rest))
        found, clean = readable_texts(base64.b32decode(part)) if part else ([], False)
        texts += found
        if clean:
            break
    return start, padding.end() if padding else end, texts


def decode_base85_run(text: str, mark: int, search_start: int, search_end: int) -> Found:
    start, end = _run_around(text, mark, search_start, search_end, _RUN85, _MOST_85)
    return start, end, _base85_readings(text, start, end, mark, base64.b85decode)


def decode_ascii85_run(text: str, mark: int, search_start: int, search_end: int) -> Found:
    start, end = _run_around(text, mark, search_start, search_end, _RUN_A85, _MOST_85)
    opened = text.rfind("<~", max(search_start, start - 2), mark)
    if opened >= 0:
        start = opened + 2
    closed = end + (1 if text[end : end + 1] == "~" else 0)
    low = opened if opened >= 0 else start
    return low, closed, _base85_readings(text, start, end, mark, base64.a85decode)


def _base85_readings(text: str, start: int, end: int, mark: int, decode: object) -> list[str]:
    """What the run holds, read from its first characters or from one of the next four."""
    texts: list[str] = []
    for phase in (*range(5), max(0, mark - 16 - start)):
        part = text[start + phase : end]
        part = part[: len(part) - (len(part) % 5 == 1)]
        try:
            data = decode(part.encode())  # type: ignore[operator]
        except ValueError:
            continue
        found, clean = readable_texts(data)
        if clean:
            return found
        texts += found
    return texts


def read_reversed_run(text: str, mark: int, search_start: int, search_end: int) -> Found:
    start, end = _run_around(text, mark, search_start, search_end, _RUN, 4096)
    return start, end, [text[start:end][::-1]]


def decode_compressed_run(text: str, mark: int, search_start: int, search_end: int) -> Found:
    start, end = _run_around(
        text, mark, search_start, search_end, re.compile(r"[A-Za-z0-9+/_\-]*"), 1 << 17
    )
    head = re.compile("H4sI|eJ[w-z]|eN[o-r]|eA[EFGH]|eF[4-7]").search(
        text, max(start, mark - 24), mark
    )
    if head is None:
        return start, end, []
    body = text[head.start() : end].replace("-", "+").replace("_", "/")
    body = body[: len(body) - (len(body) % 4 == 1)]
    data = base64.b64decode(body + "=" * (-len(body) % 4))
    while end < search_end and text[end] == "=":
        end += 1
    return head.start(), end, decompress_texts(data)


def decompress_texts(data: bytes) -> list[str]:
    """What gzip or zlib made of a text; a bounded part of it."""
    try:
        plain = zlib.decompressobj(47).decompress(data, _MOST_UNPACKED)
    except zlib.error:
        return []
    return readable_texts(plain)[0]


_PRINTABLE = re.compile(rb"[\t\n\r -~]{8,}")


def readable_texts(data: bytes) -> tuple[list[str], bool]:
    """The readable parts of some bytes, and whether they are readable as a whole."""
    if data.count(0) * 3 > len(data):
        data = data.replace(b"\0", b"")  # UTF-16 of ASCII text
    parts = _PRINTABLE.findall(data)
    if not parts:
        return [], False
    try:
        whole = data.decode()
    except UnicodeDecodeError:
        return [part.decode("ascii") for part in parts], False
    return [whole], True


def hex_dump_lines(
    text: str, mark: int, search_start: int, search_end: int
) -> tuple[int, list[tuple[int, int, str]]]:
    """The lines of a dump from the one at `mark` on: where each stands, and what it holds."""
    heads = [m.start() for m in _OFFSET.finditer(text, max(search_start, mark - 24), mark)]
    at = heads[0] if heads else mark
    lines: list[tuple[int, int, str]] = []
    while at < search_end and (line := _LINE_OF_DUMP.match(text, at, search_end)):
        digits = "".join(line.group(1).split())
        data = bytes.fromhex(digits[: len(digits) // 2 * 2])[:32]
        lines.append((line.start(), line.end(), data.replace(b"\0", b"").decode("latin-1")))
        at = line.end() + 1
        if text[line.end() : at] != "\n":
            break
    return at, lines
