"""Poison: bytes that are no message, messages with one field spoilt, and columns that hold something else."""

import copy
import json
import random

from upswing.contracts.examples import EXAMPLES

GARBAGE = [
    b"",
    b"\0",
    b"\xff\xfe",
    b"{",
    b"}",
    b"null",
    b"true",
    b"1",
    b"NaN",
    b"[]",
    b"{}",
    b'"x"',
    b'{"a":',
    b'{"trajectory_id": 1}',
    b"[" * 3000,
    b'{"a":' * 3000,
    b"\xef\xbb\xbf{}",
    b'"\\ud800"',
    b"1e999",
    b"a\nb\nc",
    *(random.Random(seed).randbytes(200) for seed in range(20)),
]
BAD = [
    None,
    True,
    "",
    "\0",
    "x",
    "x" * 10_000,
    0,
    -1,
    2**63,
    10**400,
    1e308,
    [],
    ["x"],
    {},
    {"": None},
]
COLUMNS = ["x", "", b"\xff\x00", 1e308, float("inf"), 2**62, -(2**62), b"{}"]
"""What SQLite keeps in any column."""


def paths(tree, at=()):
    """Every place of a document."""
    for key in tree if isinstance(tree, dict) else range(len(tree)):
        yield (*at, key)
        if isinstance(tree[key], dict | list):
            yield from paths(tree[key], (*at, key))


def spoilt(document, path, value):
    made = copy.deepcopy(document)
    part = made
    for key in path[:-1]:
        part = part[key]
    part[path[-1]] = value
    return json.dumps(made).encode()


def poisons(kind, wrong, most=300):
    """About so many bodies of this kind that cannot be read; `wrong` tells whether one cannot."""
    example = EXAMPLES[kind]
    spoils = [spoilt(example, path, value) for path in paths(example) for value in BAD]
    bad = [body for body in spoils if wrong(body)]
    random.Random(7).shuffle(bad)
    return [*(body for body in GARBAGE if wrong(body)), *bad][:most]


def between(sound, poison):
    """Sound ones before, between and after the poison."""
    step = max(1, len(poison) // max(1, len(sound) - 2))
    mixed, rest = [sound[0]], list(sound[1:])
    for place, each in enumerate(poison):
        mixed.append(each)
        if place % step == step - 1 and len(rest) > 1:
            mixed.append(rest.pop(0))
    return [*mixed, *rest]
