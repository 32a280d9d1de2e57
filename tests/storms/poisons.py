"""Thirty ways in which a message can be bad, each with as many faces as there are seeds."""

import copy
import json

from tests.poison.kinds import paths


def _spot(tree, chance):
    """Some place of the document: the part it is in, and its key."""
    *way, key = chance.choice(list(paths(tree)))
    part = tree
    for each in way:
        part = part[each]
    return part, key


def _text(tree):
    return json.dumps(tree)


def _put(value):
    """A document in which something else stands at some place."""

    def made(tree, chance):
        part, key = _spot(tree, chance)
        part[key] = value(chance, part[key]) if callable(value) else value
        return _text(tree)

    return made


def _removed(tree, chance):
    part, key = _spot(tree, chance)
    del part[key]
    return _text(tree)


def _added(tree, chance):
    part, _ = _spot(tree, chance)
    if isinstance(part, dict):
        part["".join(chance.choices('abc\u0000\u202e é"\\', k=chance.randrange(1, 40)))] = (
            chance.random()
        )
    else:
        part.append(chance.random())
    return _text(tree)


def _deep(one, other):
    def made(tree, chance):
        depth = chance.choice([50, 600, 3000])
        return _text(tree)[:-1] + f', "metadata": {one * depth}1{other * depth}}}'

    return made


def _cut(tree, chance):
    text = _text(tree)
    return text[: chance.randrange(len(text))]


def _flipped(tree, chance):
    body = bytearray(_text(tree).encode())
    body[chance.randrange(len(body))] ^= 1 << chance.randrange(8)
    return bytes(body)


def _twice(tree, chance):
    """A key that stands there twice, with another value."""
    key = chance.choice(list(tree))
    return _text(tree)[:-1] + f", {json.dumps(key)}: {chance.choice(['null', '1', '{}', '[]'])}}}"


def _times(*words):
    def made(tree, chance):
        tree[chance.choice(["start_timestamp", "end_timestamp"])] = chance.choice(words)
        tree["turns"][0]["timestamp"] = chance.choice(words)
        return _text(tree)

    return made


def _turns(change):
    def made(tree, chance):
        tree["turns"] = change(tree["turns"], chance)
        return _text(tree)

    return made


def _literal(word):
    """What Python writes and JSON does not know."""

    def made(tree, chance):
        part, key = _spot(tree, chance)
        part[key] = "here it stands"
        return _text(tree).replace('"here it stands"', word)

    return made


KINDS = {
    "noise": lambda tree, chance: chance.randbytes(chance.randrange(300)),
    "cut": _cut,
    "flipped": _flipped,
    "removed": _removed,
    "added": _added,
    "null": _put(None),
    "a number": _put(lambda chance, _: chance.choice([0, -1, 2**31, 2**53 + 1])),
    "a large number": _put(lambda chance, _: chance.choice([2**63, -(2**63) - 1, 10**400])),
    "a fraction": _put(lambda chance, _: chance.choice([1e308, -1e308, 5e-324, 0.1])),
    "a truth": _put(lambda chance, _: chance.random() < 0.5),
    "an empty text": _put(""),
    "a long text": _put(lambda chance, _: "x" * chance.choice([300, 10_000, 200_000])),
    "NUL": _put(lambda chance, _: "\0" * chance.randrange(1, 5)),
    "half a character": _put(lambda chance, _: chr(chance.randrange(0xD800, 0xE000))),
    "a list": _put(lambda chance, was: [was] * chance.randrange(4)),
    "an object": _put(lambda chance, was: {"": was, "x": {}}),
    "as a text": _put(lambda chance, was: json.dumps(was)),
    "lists in lists": _deep("[", "]"),
    "objects in objects": _deep('{"a":', "}"),
    "twice": _twice,
    "NaN": _literal("NaN"),
    "infinite": _literal("1e999"),
    "at the calendar's edge": _times(
        "0001-01-01T00:00:00Z", "9999-12-31T23:59:59Z", "2025-02-30T00:00:00Z"
    ),
    "time without a zone": _times("2025-12-08T13:00:00", "2025-12-08", "13:00", "1e9", ""),
    "no turns": _turns(lambda turns, chance: []),
    "turns out of order": _turns(
        lambda turns, chance: [turns[0] | {"turn_id": chance.randrange(-5, 5)} for _ in range(5)]
    ),
    "many turns": _turns(lambda turns, chance: turns * chance.choice([50, 300])),
    "UTF-16": lambda tree, chance: _text(tree).encode(
        chance.choice(["utf-16", "utf-16-le", "utf-32"])
    ),
    "two documents": lambda tree, chance: (
        _text(tree) + chance.choice(["", "\n", ","]) + _text(tree)
    ),
    "marked": lambda tree, chance: b"\xef\xbb\xbf" * chance.randrange(1, 3) + _text(tree).encode(),
}


def poison(kind, example, chance):
    """One message of this kind, as bytes."""
    made = KINDS[kind](copy.deepcopy(example), chance)
    return made if isinstance(made, bytes) else made.encode(errors="surrogatepass")
