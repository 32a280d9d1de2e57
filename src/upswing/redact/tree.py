"""Which texts does a JSON tree hold, what stands beside them, and how is it put together again?"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import pairwise
from typing import Any

from .checks import is_payment_card
from .errors import RedactionFailed
from .layer import GAP, VOID, Builder, Chunk, Layer
from .wallet import LEAST_WORDS, count_seed_words

Path = tuple[str | int, ...]

_SEAM_WORDS = 300
_SHORT = 256
_CHAIN = 16
_KEY = 4096
_TAIL = re.compile(r"\S{0,256}(?:[ ]\S{1,32})?")
_BLANK = re.compile(r"\s")
_HEAD = re.compile(r"\S{0,256}")
_QUOTES = str.maketrans(dict.fromkeys("\"'`\\\n\r", "\x02"))
_PLAIN_KEYS = re.compile(
    r"(?i)(?:id|seq|time|timestamp|date|_at|_ns|_us|_ms|ts|seed|hash|role|model|version|type)$"
)
"""Keys whose value is never a card number, nor the rest of a value cut in two."""
_NO_TAIL = frozenset(">)]};!?")
"""A text that ends so ends nothing that goes on."""
_ORDINARY = re.compile(
    r"[A-Za-z]?[a-z_]{0,15}[.,:;!?)]{0,2}|[0-9]{4}-[0-9]{2}-[0-9]{2}.*|[0-9]{1,6}[.,:)]?"
    r"|[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}|https?://.*|<[a-z0-9-]{1,64}>.*"
)
"""First words that begin something new."""
_OPEN = re.compile(
    r"(?:^|[\s\"'`=:(])[A-Za-z0-9+/=.~]{0,80}[0-9_\-.:/][A-Za-z0-9_\-+/=.~]{0,200}$|(?:^|[\s\"'`=:(])[A-Za-z]{1,12}$"
)
"""How a text ends that could go on: with a token that has more than letters, or with few letters."""
_BEGINS = re.compile(r"<[a-z0-9-]{1,64}>|https?://")


@dataclass(slots=True)
class Leaves:
    """The texts of a tree in document order; keys that could hold something are texts too."""

    texts: list[str] = field(default_factory=list)
    paths: list[Path] = field(default_factory=list)
    keys: list[str] = field(default_factory=list)
    """The name that stands before each text, "" for none."""
    rows: list[tuple[int, ...]] = field(default_factory=list)
    """Texts at the same place in neighbouring items of a list."""
    numbers: list[tuple[Path, str]] = field(default_factory=list)
    """Numbers that must not be stored, and their kind."""
    values: list[int] = field(default_factory=list)
    """The texts that are not keys."""
    lists: dict[int, str] = field(default_factory=dict)
    """The key of the list that a text is in, where another text of it could be its name."""

    def key_of(self, i: int) -> str | None:
        """The key that a text is the value of; None for an item of a list, and for a lone text."""
        last = self.paths[i][-1] if self.paths[i] else None
        return last if isinstance(last, str) else None


def collect_leaves(tree: Any) -> Leaves:
    leaves = Leaves()
    _collect_node(tree, (), "", leaves)
    return leaves


def _collect_node(node: Any, path: Path, key: str, leaves: Leaves) -> None:
    """Note what `node` holds. Texts are noted where they are met, which saves a call for each."""
    kind = type(node)
    if kind is dict:
        _collect_dict(node, path, key, leaves)
    elif kind is list:
        _collect_list(node, path, key, leaves)
    elif kind is str:
        _collect_text(node, path, key, leaves)
    elif kind is int:
        if kind_ := private_number_kind(node, key):
            leaves.numbers.append((path, kind_))
    elif node is not None and kind is not bool and kind is not float:
        raise RedactionFailed(f"a {kind.__name__} is not a JSON value")


def _collect_text(text: str, path: Path, key: str, leaves: Leaves) -> None:
    leaves.values.append(len(leaves.texts))
    leaves.texts.append(text)
    leaves.paths.append(path)
    leaves.keys.append(key)


def _collect_list(node: list[Any], path: Path, key: str, leaves: Leaves) -> None:
    first = len(leaves.values)
    for i, item in enumerate(node):
        if type(item) is str:
            before = _name_before_item(node, i)
            if before and key:
                leaves.lists[len(leaves.texts)] = key
            _collect_text(item, (*path, i), before or key, leaves)
        elif type(item) is list and i and (heads := _column_names_of_row(node[0], item)):
            _collect_row(item, (*path, i), heads, key, leaves)
        else:
            _collect_node(item, (*path, i), key, leaves)
    if len(node) > 1 and type(node[0]) is dict:
        _collect_columns_of_items(len(path), first, leaves)
    elif len(node) > 1 and len(leaves.values) - first == len(node):
        leaves.rows.append(tuple(leaves.values[first:]))


def _name_before_item(node: list[Any], i: int) -> str:
    """The name before an item: a flag of a command line, or the first of a pair; `-p` beside `-u` is a password."""
    if i == 0 or type(node[i - 1]) is not str or len(node[i - 1]) > _LONG_NAME:
        return ""
    if node[i - 1] == "-p" and "-u" in node[: i - 1]:
        return "password"  # what a login takes; alone, it may be a port
    flag = node[i - 1].startswith("-") and not node[i].startswith("-")
    return node[i - 1].strip("-: ") if flag or len(node) == 2 else ""


def _column_names_of_row(first: Any, row: list[Any]) -> list[str]:
    """The names of columns, where the first row of a table holds nothing else."""
    named = type(first) is list and len(first) == len(row) > 1
    if not named or not all(type(h) is str and len(h) <= _LONG_NAME for h in first):
        return []
    return list(first)


def _collect_row(row: list[Any], path: Path, heads: list[str], key: str, leaves: Leaves) -> None:
    for i, item in enumerate(row):
        if type(item) is str:
            _collect_text(item, (*path, i), heads[i], leaves)
        else:
            _collect_node(item, (*path, i), key, leaves)


def _collect_dict(node: dict[Any, Any], path: Path, above: str, leaves: Leaves) -> None:
    title = _name_of_named_value(node)
    table = _columns_of_table(node)
    for name, value in node.items():
        if type(name) is not str:
            raise RedactionFailed("a key of an object is not a text")
        if not _is_harmless_name(name):
            leaves.texts.append(name)
            leaves.paths.append(path)
            leaves.keys.append("")
        key = title if title and name.lower() in _VALUES else name
        if not title and above and name.lower() in _WRAPPERS:
            key = above
        if type(value) is str:
            _collect_text(value, (*path, name), key, leaves)
        elif table and name == table[0]:
            for i, row in enumerate(value):
                _collect_row(row, (*path, name, i), table[1], key, leaves)
        elif value is not None and type(value) is not bool:
            _collect_node(value, (*path, name), key, leaves)


@lru_cache(maxsize=8192)
def _is_harmless_name(key: str) -> bool:
    """Letters and underscores only, and few: nothing private fits into such a key."""
    return len(key) <= 24 and key.isascii() and key.replace("_", "").isalpha()


_TITLES = (
    "name",
    "key",
    "k",
    "field",
    "label",
    "variable",
    "var",
    "header",
    "param",
    "parameter",
    "property",
    "option",
    "setting",
    "attribute",
    "column",
    "env",
    "title",
    "prompt",
    "question",
    "item",
    "schluessel",
    "feld",
    "selector",
    "locator",
    "element",
    "placeholder",
    "id",
    "type",
)
_VALUES = frozenset(
    [
        "value",
        "val",
        "v",
        "values",
        "wert",
        "valeur",
        "valor",
        "content",
        "data",
        "default",
        "text",
        "string",
        "secret",
        "answer",
        "input",
        "raw",
        "current",
        "entry",
        "stringvalue",
        "string_value",
    ]
)
_WRAPPERS = frozenset(("value", "val", "stringvalue", "string_value", "plaintext", "raw"))
"""Keys that only hold what the key above them names: `{"password": {"value": …}}`."""
_LONG_NAME = 96


_INPUT = re.compile(
    r"(?i)[ _-](?:input[ _-]?|text)?(?:field|input|box|textbox|feld|champ|campo|veld|pole)$"
)
"""What a title says of the place for a value: `Password field`."""


def _name_of_named_value(node: dict[Any, Any]) -> str:
    """The name in `{"name": "X-Api-Key", "value": …}`, where there is a value beside it."""
    if len(node) < 2 or len(node) > 16:
        return ""
    lower = {name.lower(): name for name in node if type(name) is str}
    if lower.keys().isdisjoint(_VALUES):
        return ""
    for name in _TITLES:
        title = node[lower[name]] if name in lower else None
        if type(title) is str and 0 < len(title) <= _LONG_NAME:
            return _INPUT.sub("", title)
    return ""


def _columns_of_table(node: dict[Any, Any]) -> tuple[str, list[str]] | None:
    """The key of the rows and the names of their columns, in `{"columns": […], "rows": [[…]]}`."""
    heads = next(
        (node[n] for n in ("columns", "header", "headers", "fields", "cols") if n in node), None
    )
    if type(heads) is not list or not all(type(h) is str and len(h) <= _LONG_NAME for h in heads):
        return None
    for name in ("rows", "data", "values", "records"):
        rows = node.get(name)
        if (
            type(rows) is list
            and rows
            and all(type(r) is list and len(r) == len(heads) for r in rows)
        ):
            return name, heads
    return None


_CODES = re.compile(
    r"(?i)(?:^|[_\- ])(?:pin|pin[_-]?code|passcode|password|passwd|pwd|passwort|otp|cvv2?|cvc|contrasena|senha|sifre)$|[a-z](?:Pin|Passcode|Password|Pwd)$"
)
_PHONES = re.compile(
    r"(?i)(?:^|[_\- ])(?:tele)?(?:phone|mobile|tel|telefon|handy|fax|celular|movil|whatsapp)(?:[_-]?(?:number|no|nr|nummer))?$|[a-z]Phone(?:Number)?$"
)


def private_number_kind(node: Any, key: str) -> str:
    """What a number must not be stored as; "" for most."""
    if isinstance(node, bool) or not isinstance(node, int) or not 100 <= node < 10**19:
        return ""
    if node < 10**13:
        if _CODES.search(key):
            return "pin"
        return "phone" if node >= 10**8 and _PHONES.search(key) else ""
    return "card" if is_payment_card(str(node)) and not _PLAIN_KEYS.search(key) else ""


def _collect_columns_of_items(depth: int, first: int, leaves: Leaves) -> None:
    """Remember, for each place inside an item, the texts there in item after item."""
    rows: dict[Path, list[int]] = {}
    for i in leaves.values[first:]:
        rows.setdefault(leaves.paths[i][depth + 1 :], []).append(i)
    leaves.rows.extend(tuple(row) for row in rows.values() if len(row) > 1)


def context_adder(
    texts: list[str],
    leaves: Leaves,
    telling: Callable[[str], bool],
    suspicious: Callable[[str], bool],
) -> Callable[[Layer, Builder], None]:
    """Adds to a layer each text behind its key, and the seams between neighbouring texts.

    Most seams hold nothing, so all are read in one go first, and added only if something shows.
    """

    def add_context(layer: Layer, into: Builder) -> None:
        for i in leaves.values:
            if leaves.keys[i] and 0 < len(texts[i]) <= 4096:
                for key in (leaves.keys[i], leaves.lists.get(i, "")):
                    if key and telling(key):
                        into.add(_text_behind_key(key, texts[i], layer.starts[i]), "")
        for run in _seed_word_runs(texts, leaves):
            into.add(_join_words(run, texts, layer.starts), "")
        seams = list(_seam_parts(texts, leaves))
        if not seams or not suspicious(
            GAP.join(["".join([texts[i][a:b] for i, a, b in parts]) for parts in seams])
        ):
            return
        starts = layer.starts
        for parts in seams:
            chunks = [Chunk(texts[i][a:b], starts[i] + a, starts[i] + b) for i, a, b in parts]
            into.add(chunks, "split", split=True)

    return add_context


def _seed_word_runs(texts: list[str], leaves: Leaves) -> Iterator[list[int]]:
    """Texts in a row that are words of a seed phrase, as items of a list, fields of a form or lines; numbers may stand between."""
    words = {i: found for i in leaves.values if (found := count_seed_words(texts[i])) is not None}
    if sum(words.values()) < LEAST_WORDS:
        return
    seen: set[tuple[int, int]] = set()
    for row in (leaves.values, *leaves.rows):
        run: list[int] = []
        for i in (*row, -1):
            if i in words:
                if words[i]:
                    run.append(i)
                continue
            if (
                len(run) > 1
                and sum(words[j] for j in run) >= LEAST_WORDS
                and (run[0], run[-1]) not in seen
            ):
                seen.add((run[0], run[-1]))
                yield run
            run = []


def _join_words(run: list[int], texts: list[str], starts: list[int]) -> list[Chunk]:
    chunks = []
    for i in run:
        chunks += [Chunk(texts[i], starts[i], starts[i] + len(texts[i])), Chunk(" ", 0, 0, VOID)]
    return chunks


def _text_behind_key(key: str, text: str, start: int) -> list[Chunk]:
    before = Chunk(f'"{key.translate(_QUOTES)}": "', 0, 0, VOID)
    return [
        before,
        Chunk(text.translate(_QUOTES), start, start + len(text)),
        Chunk('"', 0, 0, VOID),
    ]


Part = tuple[int, int, int]


def _seam_parts(texts: list[str], leaves: Leaves) -> Iterator[list[Part]]:
    """The last words of one text and the first of the next, for all kinds of neighbours."""
    values = [i for i in leaves.values if texts[i] and not _is_plain_key(leaves.keys[i])]
    long = [i for i in values if len(texts[i]) > 24]
    tails = {i: size for i in values if (size := _value_tail_length(texts[i]))}
    heads = _Heads(texts, frozenset(values))
    seen: set[tuple[int, int]] = set()
    for number, row in enumerate((values, long, *leaves.rows)):
        for n, pair in enumerate(pairwise(row)):
            if pair[0] not in tails or (pair in seen and number < 2):
                continue
            opened = number > 1 and _OPEN.search(texts[pair[0]][-_SEAM_WORDS:]) is not None
            if pair in seen and not opened:
                continue
            seen.add(pair)
            if heads[pair[1]] or opened:
                yield from _join_neighbours(texts, tails, heads, row[n : n + _CHAIN], opened=opened)
            if "-----BEGIN " in texts[pair[0]]:
                yield from _join_private_key_lines(texts, row[n : n + _CHAIN])


class _Heads(dict[int, int]):
    """How much of the beginning of each text could be the rest of a value; found when asked."""

    def __init__(self, texts: list[str], among: frozenset[int]) -> None:
        super().__init__()
        self._texts = texts
        self._among = among

    def __missing__(self, i: int) -> int:
        self[i] = _value_head_length(self._texts[i]) if i in self._among else 0
        return self[i]

    def any_word_length(self, i: int) -> int:
        """The same where the first word may be the rest of a value although it looks ordinary."""
        match = _HEAD.match(self._texts[i]) if i in self._among else None
        return match.end() if match and not _BEGINS.match(match.group()) else 0


@lru_cache(maxsize=8192)
def _is_plain_key(key: str) -> bool:
    return _PLAIN_KEYS.search(key) is not None


def _value_tail_length(text: str) -> int:
    """How much of the end of this text could be the beginning of a value?"""
    last = text[-1]
    if last in _NO_TAIL or last.isspace():
        return 0
    if len(text) < 256 and " " not in text and not _BLANK.search(text):
        return len(text)
    match = _TAIL.match(text[-_SEAM_WORDS:][::-1])
    return match.end() if match else 0


def _value_head_length(text: str) -> int:
    """How much of its beginning could be the rest of one?"""
    match = _HEAD.match(text)
    if not match or _ORDINARY.fullmatch(match.group()):
        return 0
    return match.end()


def _join_neighbours(
    texts: list[str], tails: dict[int, int], heads: _Heads, row: Sequence[int], *, opened: bool
) -> Iterator[list[Part]]:
    """Two texts, three where the second is short, and all that are short in a row.

    Where a value may have been `opened`, also those that look like words: it may be cut anywhere.
    """
    size = len(texts[row[0]])
    parts: list[Part] = [(row[0], size - tails[row[0]], size)]
    for i in row[1:]:
        head = heads[i] or (heads.any_word_length(i) if opened else 0)
        if not head:
            break
        parts.append((i, 0, head))
        if len(parts) < 4:
            yield list(parts)
        if head < len(texts[i]) or len(texts[i]) > _SHORT:
            break
    if len(parts) > 3:
        yield parts


def _join_private_key_lines(texts: list[str], row: Sequence[int]) -> Iterator[list[Part]]:
    """A private key goes over line breaks, so whole texts are joined until it ends."""
    first = texts[row[0]]
    begin = first.rfind("-----BEGIN ", -_KEY)
    if begin < 0 or "-----END " in first[begin:]:
        return
    parts: list[Part] = [(row[0], begin, len(first))]
    for i in row[1:]:
        end = min(len(texts[i]), _KEY)
        parts.append((i, 0, end))
        yield list(parts)
        if end < len(texts[i]) or "-----END " in texts[i]:
            return


def replace_texts(tree: Any, new: Iterator[str], numbers: Callable[[int, str], str]) -> Any:
    """The same tree with its texts replaced in document order; the same object if none changed."""
    return _replace_in_node(tree, "", new, numbers)


def _replace_in_node(
    node: Any, key: str, new: Iterator[str], numbers: Callable[[int, str], str]
) -> Any:
    if isinstance(node, str):
        text = next(new)
        return node if text == node else text
    if isinstance(node, list):
        items = [_replace_in_node(item, key, new, numbers) for item in node]
        return node if all(a is b for a, b in zip(items, node, strict=True)) else items
    if isinstance(node, dict):
        return _replace_in_dict(node, new, numbers)
    kind = private_number_kind(node, key)
    return numbers(node, kind) if kind else node


def _replace_in_dict(
    node: dict[str, Any], new: Iterator[str], numbers: Callable[[int, str], str]
) -> Any:
    title = _name_of_named_value(node)
    built: dict[str, Any] = {}
    same = True
    for name, value in node.items():
        renamed = name if _is_harmless_name(name) else next(new)
        item = _replace_in_node(
            value, title if title and name.lower() in _VALUES else name, new, numbers
        )
        same = same and renamed == name and item is value
        built[_unused_key(renamed, name, node, built)] = item
    return node if same else built


def _unused_key(renamed: str, name: str, node: dict[str, Any], built: dict[str, Any]) -> str:
    """Two keys with the same secret stay two keys."""
    if renamed == name:
        return name
    unique, count = renamed, 1
    while unique in built or unique in node:
        count += 1
        unique = f"{renamed}#{count}"
    return unique
