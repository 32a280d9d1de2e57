"""What else could this text be, if it were decoded?

The engine marks places; each mark grows to the whole run around it (the same run whatever the
mark), the run is decoded, and the result becomes a piece of the next layer. Base64 and hex are
replaced as a whole; escapes keep their positions, so that only the value itself is replaced.
"""

from __future__ import annotations

import binascii
import html
import re
from codecs import encode
from collections import Counter
from functools import lru_cache

from . import disguise
from .fold import HIDDEN
from .layer import WHOLE, Builder, Chunk, Layer

_B64 = re.compile(r"[A-Za-z0-9+/_\-]*")
_HEX = re.compile(r"[0-9a-fA-F]*")
_HEX_DIGITS = re.compile("[0-9a-fA-F]+")
_HEX_LINE = 32
_HEX_ABOVE = re.compile(r"[ \t]{0,8}\n\r?[0-9a-fA-F]{32,120}(?![0-9a-zA-Z_\-])")
_HEX_BELOW = re.compile(r"\r?\n[ \t]{0,8}(?:[0-9a-fA-F]{2}){1,60}(?![0-9a-zA-Z_\-])")
_SPACED = re.compile(r"[0-9a-fA-F :,x\-]*")
_PAIR = re.compile(r"(?:0x)?([0-9a-fA-F]{2})")
_BREAK = r"(?:\r?\n|(?:\\{1,3}r)?\\{1,3}n)[ \t]{0,8}"
_BREAKS = re.compile(_BREAK)
_BREAK_BACK = re.compile(r"[ \t]{0,8}(?:\n\r?|n\\{1,3}(?:r\\{1,3})?)")
_WRAPPED = re.compile(
    rf"[A-Za-z0-9+/_\-]{{16,}}+(?:{_BREAK}[A-Za-z0-9+/_\-]{{16,}}+)*+(?:{_BREAK}[A-Za-z0-9+/_\-]+)?={{0,2}}"
    r"|[A-Za-z0-9+/_\-]+={0,2}"
)
_URL_SAFE = str.maketrans("-_", "+/")
_UNIT = re.compile(
    r"(?=[%\\&\"'\x1b])(?:(?P<percent>(?:%[0-9a-fA-F]{2})+)|(?P<u>(?:\\u[0-9a-fA-F]{4})+)|(?P<x>(?:\\x[0-9a-fA-F]{2})+)"
    r"|(?P<U>(?:\\U0000[0-9a-fA-F]{4})+)|(?P<o>(?:\\[01][0-7]{2})+)|(?P<brace>\\u\{[0-9a-fA-F]{1,4}\})"
    r"|(?P<back>\\[/\\\"'])|(?P<entity>&(?:#[0-9]{1,6}|#[xX][0-9a-fA-F]{1,6}|[a-z]{2,8});)"
    r"|(?P<concat>[\"'][ \t]{0,8}(?:\+[ \t]{0,8}\\?\n?[ \t]{0,32}|\\?\n[ \t]{0,32}\+?[ \t]{0,8})[\"'])"
    r"|(?P<ansi>\x1b\[[0-9;]{0,16}[mK]))"
)
_STRIDES = {"u": (6, 2, 16), "x": (4, 2, 16), "U": (10, 2, 16), "o": (4, 1, 8)}
"""Characters per escape, those before its digits, and their base."""
_FORMS = {name: name for name in ("percent", "entity", "concat", "ansi", "quoted")} | {
    "soft": "quoted"
}
_BEFORE, _AFTER = 400, 800
"""Characters around an escape that are read with it."""
_MOST_UNITS = 16_384
_MOST_UNPACKED = 1 << 20
"""Characters that all compressed parts of a layer may hold together."""
_QUOTED = re.compile(
    r"(?P<quoted>(?:=[0-9A-F]{2}){2,}|=3D(?=[A-Za-z0-9])|=(?:40|2D|5F)(?=[A-Za-z]))|(?P<soft>=\r?\n)"
)
_TURN_BEFORE, _TURN_AFTER = 64, 400
_SPREAD = re.compile(
    r"\S(?:([ .\-])\S(?=\1|[\s\"'`,;)<\x00]|$)(?:\1\S(?=\1|[\s\"'`,;)<\x00]|$))*+)?(?:[ ]{2,3}\S(?:\1\S(?=\1|[\s\"'`,;)<\x00]|$))++)*+"
)


class Dense(Exception):
    """One region holds more escapes than an honest text; `at` lies inside it."""

    def __init__(self, position: int) -> None:
        super().__init__(position)
        self.at = position


def decode(layer: Layer, marks: dict[str, list[int]], into: Builder) -> None:
    """Add to `into` everything that the marked places of `layer` may stand for."""
    for name in _FINDERS:
        if name in marks:
            _decode_runs(layer, marks[name], name, into)
    _unescape_regions(layer, marks.get("units", []), into, _UNIT)
    _unescape_regions(layer, marks.get("quoted", []), into, _QUOTED)
    _add_rot13_lines(layer, marks.get("rot13", []), into)
    _add_spread_letters(layer, marks.get("spaced", []), into)
    _decode_hex_dumps(layer, marks.get("dump", []), into)
    if HIDDEN in layer.text:
        _add_without_invisible_characters(layer, into)


def _nested_form_name(layer: Layer, piece: int, form: str) -> str:
    return f"{layer.forms[piece]}+{form}" if layer.forms[piece] else form


def _decode_runs(layer: Layer, marks: list[int], name: str, into: Builder) -> None:
    done, unpacked = -1, 0
    for mark in marks:
        if mark < done:
            continue
        piece = layer.piece(mark)
        floor, roof = max(layer.starts[piece], done), layer.ends[piece]
        if not floor <= mark < roof:
            continue
        start, end, texts = _FINDERS[name](layer.text, mark, floor, roof)
        done = max(end, mark + 1)
        form = _nested_form_name(layer, piece, name.partition("-")[0])
        unpacked += sum(map(len, texts)) if name == "packed" else 0
        if unpacked > _MOST_UNPACKED:
            raise Dense(mark)
        for text in texts:
            into.add([Chunk(text, start, end, WHOLE)], form, split=layer.split[piece])


def _run_start(text: str, position: int, search_start: int, allowed: re.Pattern[str]) -> int:
    """Where does the run of allowed characters that ends at `position` begin?"""
    step = 128
    while position > search_start:
        low = max(search_start, position - step)
        length = allowed.match(text[low:position][::-1]).end()  # type: ignore[union-attr]
        position -= length
        if position > low:
            break
        step *= 4
    return position


def _decode_base64_run(
    text: str, mark: int, search_start: int, search_end: int
) -> tuple[int, int, list[str]]:
    start = _base64_token_start(text, mark, search_start)
    while True:  # over the line breaks of a wrapped block
        gap = _BREAK_BACK.match(text[max(search_start, start - 20) : start][::-1])
        stop = start - gap.end() if gap else start
        earlier = _base64_token_start(text, stop, search_start)
        if not gap or stop - earlier < 16:
            break
        start = earlier
    run = _WRAPPED.match(text, start, search_end)
    if run is None:
        return mark, mark + 1, []
    body = run.group(0)
    if "\n" in body or "\\" in body:
        body = _BREAKS.sub("", body)
    return start, run.end(), _base64_readings(body.rstrip("=").translate(_URL_SAFE))


def _base64_token_start(text: str, position: int, search_start: int) -> int:
    start = _run_start(text, position, search_start, _B64)
    if search_start < start < position and text[start - 1] == "\\" and text[start] in "nrt":
        start += 1
    return start


def _base64_readings(body: str) -> list[str]:
    """Every text the run may hold; its first characters may belong to something else."""
    texts: list[str] = []
    for phase in range(4):
        part = body[phase : len(body) - ((len(body) - phase) % 4 == 1)]
        data = binascii.a2b_base64(part + "=" * (-len(part) % 4))
        found, clean = _readable_texts(data)
        if clean:
            return found
        texts += found
    return texts


def _readable_texts(data: bytes) -> tuple[list[str], bool]:
    if data[:2] == b"\x1f\x8b" and (texts := disguise.decompress_texts(data)):
        return texts, True
    return disguise.readable_texts(data)


def _decode_hex_run(
    text: str, mark: int, search_start: int, search_end: int
) -> tuple[int, int, list[str]]:
    start, end = _hex_run_over_lines(text, mark, search_start, search_end)
    digits, texts = "".join(_HEX_DIGITS.findall(text, start, end)), []
    for phase in (0, 1):
        size = (len(digits) - phase) // 2 * 2
        found, clean = _readable_texts(bytes.fromhex(digits[phase : phase + size]))
        texts += found
        if clean:
            break
    return start, end, texts


def _hex_run_over_lines(
    text: str, mark: int, search_start: int, search_end: int
) -> tuple[int, int]:
    """The run around `mark`, over the line breaks of a plain dump (`xxd -p`)."""
    start = _run_start(text, mark, search_start, _HEX)
    while gap := _HEX_ABOVE.match(text[max(search_start, start - 136) : start][::-1]):
        start -= gap.end()
    end = _HEX.match(text, mark, search_end).end()  # type: ignore[union-attr]
    if end - start >= _HEX_LINE:
        while below := _HEX_BELOW.match(text, end, search_end):
            end = below.end()
    return start, end


def _decode_spaced_bytes(
    text: str, mark: int, search_start: int, search_end: int
) -> tuple[int, int, list[str]]:
    start = _run_start(text, mark, search_start, _SPACED)
    end = _SPACED.match(text, mark, search_end).end()  # type: ignore[union-attr]
    first, last = _PAIR.search(text, start, end), end
    start = first.start() if first else start
    while last > start and text[last - 1] in " :,x-":
        last -= 1
    return start, last, _readable_texts(bytes.fromhex("".join(_PAIR.findall(text, start, last))))[0]


_FINDERS = {
    "base64": _decode_base64_run,
    "hex": _decode_hex_run,
    "hex-spaced": _decode_spaced_bytes,
    "base32": disguise.decode_base32_run,
    "base85": disguise.decode_base85_run,
    "ascii85": disguise.decode_ascii85_run,
    "reversed": disguise.read_reversed_run,
    "packed": disguise.decode_compressed_run,
}


def _unescape_regions(
    layer: Layer, marks: list[int], into: Builder, units: re.Pattern[str]
) -> None:
    """Unescape the surroundings of the marks, each region once."""
    i = 0
    while i < len(marks):
        piece = layer.piece(marks[i])
        floor, roof = layer.starts[piece], layer.ends[piece]
        low = max(floor, marks[i] - _BEFORE)
        while i + 1 < len(marks) and marks[i + 1] < min(roof, marks[i] + _AFTER + _BEFORE):
            i += 1
        high = min(roof, marks[i] + _AFTER)
        i += 1
        chunks, form = unescape(layer.text, low, high, units)
        if len(chunks) > 1 or chunks[0].stride != 1:
            into.add(chunks, _nested_form_name(layer, piece, form), split=layer.split[piece])


def unescape(
    text: str, low: int, high: int, units: re.Pattern[str] = _UNIT
) -> tuple[list[Chunk], str]:
    """One level of escapes undone; chunks know where they came from.

    >>> chunks, form = unescape("a%40b", 0, 5)
    >>> "".join(chunk.text for chunk in chunks), form
    ('a@b', 'percent')
    """
    chunks: list[Chunk] = []
    forms: Counter[str] = Counter()
    at = low
    for match in units.finditer(text, low, high):
        if len(chunks) > _MOST_UNITS + (high - low) // 16:
            raise Dense(low)
        if match.start() > at:
            chunks.append(Chunk(text[at : match.start()], at, match.start()))
        name = match.lastgroup or ""
        forms[_FORMS.get(name, "escape")] += 1
        chunks.append(_escape_chunk(match, name))
        at = match.end()
    if at < high:
        chunks.append(Chunk(text[at:high], at, high))
    return chunks, forms.most_common(1)[0][0] if forms else "escape"


def _escape_chunk(match: re.Match[str], name: str) -> Chunk:
    unit, start, end = match.group(), match.start(), match.end()
    if name in ("percent", "quoted"):
        return Chunk(bytes.fromhex(unit.replace(unit[0], "")).decode("latin-1"), start, end, 3)
    if name in _STRIDES:
        stride, skip, base = _STRIDES[name]
        codes = (unit[i + skip : i + stride] for i in range(0, len(unit), stride))
        return Chunk("".join(chr(int(code, base)) for code in codes), start, end, stride)
    return Chunk(_unescaped_unit(unit, name), start, end, WHOLE)


@lru_cache(maxsize=1024)
def _unescaped_unit(unit: str, name: str) -> str:
    if name == "back":
        return unit[1]
    if name == "entity":
        return html.unescape(unit)[:1]
    return chr(int(unit[3:-1], 16)) if name == "brace" else ""


def _add_without_invisible_characters(layer: Layer, into: Builder) -> None:
    """The pieces that hold invisible characters, without them."""
    at = layer.text.find(HIDDEN)
    while at >= 0:
        piece = layer.piece(at)
        start, end = layer.starts[piece], layer.ends[piece]
        count = layer.text.count(HIDDEN, start, end)
        if count > _MOST_UNITS + (end - start) // 16:
            raise Dense(start)
        chunks = []
        for part in layer.text[start:end].split(HIDDEN):
            if part:
                chunks.append(Chunk(part, start, start + len(part)))
            start += len(part) + 1
        into.add(chunks, _nested_form_name(layer, piece, "unicode"), split=layer.split[piece])
        at = layer.text.find(HIDDEN, end)


def _add_rot13_lines(layer: Layer, marks: list[int], into: Builder) -> None:
    """The line around each mark with its letters turned by thirteen."""
    done = -1
    for mark in marks:
        piece = layer.piece(mark)
        floor, roof = layer.starts[piece], layer.ends[piece]
        if mark < done or not floor <= mark < roof:
            continue
        low = max(layer.text.rfind("\n", floor, mark) + 1, floor, mark - _TURN_BEFORE)
        done = min(roof, mark + _TURN_AFTER)
        text = encode(layer.text[low:done], "rot13")
        into.add(
            [Chunk(text, low, done)],
            _nested_form_name(layer, piece, "rot13"),
            split=layer.split[piece],
        )


def _add_spread_letters(layer: Layer, marks: list[int], into: Builder) -> None:
    """Letters that stand apart, closed up; wider gaps are spaces."""
    done = -1
    for mark in marks:
        piece = layer.piece(mark)
        floor, roof = layer.starts[piece], layer.ends[piece]
        if mark < done or not floor <= mark < roof:
            continue
        at = _spread_letters_start(layer.text, mark, floor)
        run = _SPREAD.match(layer.text, at, roof)
        done = run.end() if run else mark + 1
        if run and run.group(1):
            chunks, forms = _close_up_letters(layer.text, at, done, run.group(1)), "spaced"
            into.add(chunks, _nested_form_name(layer, piece, forms), split=layer.split[piece])


def _spread_letters_start(text: str, mark: int, search_start: int) -> int:
    """The first of the single characters around `mark`; a word before them is none of them."""
    sign = text[mark - 1] if not text[mark - 1].isalnum() else text[mark + 1 : mark + 2]
    at = mark
    while at - 2 >= search_start and text[at - 1] == sign and not text[at - 2].isspace():
        if at - 3 >= search_start and text[at - 3].isalnum():
            break
        at -= 2
    return at


def _close_up_letters(text: str, position: int, end: int, sign: str) -> list[Chunk]:
    chunks = []
    while position < end:
        stop = position + 1
        while stop < end and text[stop] == sign and stop + 1 < end and text[stop + 1] != " ":
            stop += 2
        chunks.append(Chunk(text[position:stop:2], position, stop, 2))
        position = stop
        while position < end and text[position] == " ":
            position += 1
        if position < end:
            chunks.append(Chunk(" ", stop, position, WHOLE))
    return chunks


def _decode_hex_dumps(layer: Layer, marks: list[int], into: Builder) -> None:
    done = -1
    for mark in marks:
        piece = layer.piece(mark)
        floor, roof = layer.starts[piece], layer.ends[piece]
        if mark < done or not floor <= mark < roof:
            continue
        done, lines = disguise.hex_dump_lines(layer.text, mark, floor, roof)
        chunks = [Chunk(text, start, end, WHOLE) for start, end, text in lines if text]
        if chunks:
            into.add(chunks, _nested_form_name(layer, piece, "hexdump"), split=layer.split[piece])
