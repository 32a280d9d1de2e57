"""A value cut into pieces at any places is found in all of them, and fields are not joined."""

from __future__ import annotations

import random

import pytest

from upswing.redact import Redactor, default_rules

REDACTOR = Redactor()
_WHOLE = {"private-key", "bearer-token", "url-password", "email", "azure-client-secret-alone"}
"""Values of several words or lines, and those whose ends look like something else."""
TOKENS = [
    rule.example
    for rule in default_rules()
    if rule.split and rule.name not in _WHOLE and len(rule.example) >= 30 and rule.example.isascii()
]
_LEAST = 6
"""Letters of a piece that tell something: shorter ones are in any text."""


def cut(value: str, count: int, rng: random.Random) -> list[str]:
    places = sorted(rng.sample(range(4, len(value) - 1), count - 1))
    return [value[a:b] for a, b in zip([0, *places], [*places, len(value)], strict=True)]


def carriers(pieces: list[str]) -> list[object]:
    turns = [
        {"turn_id": i, "role": "tool", "result": {"output": piece}}
        for i, piece in enumerate(pieces)
    ]
    return [{"turns": turns}, {"chunks": list(pieces)}, [{"delta": piece} for piece in pieces]]


@pytest.mark.parametrize("count", [2, 3, 4, 5])
def test_a_value_in_any_number_of_pieces_is_found(count):
    rng = random.Random(count)
    for _ in range(40):
        value = rng.choice(TOKENS)
        pieces = cut(value, count, rng)
        for tree in carriers(pieces):
            stored = str(REDACTOR.tree(tree).value)
            left = [piece for piece in pieces if len(piece) >= _LEAST and piece in stored]
            assert not left, (value, pieces)


def test_fields_of_a_contract_are_not_joined():
    tree = {
        "turns": [
            {
                "turn_id": 0,
                "action": {"type": "tool_call", "tool_name": "search-1"},
                "result": {"output": "found node_7"},
            },
            {
                "turn_id": 1,
                "action": {"type": "tool_call", "tool_name": "open"},
                "result": {"output": "internal"},
            },
            {
                "turn_id": 2,
                "action": {"type": "message", "tool_name": "organisation"},
                "result": {"output": "done"},
            },
        ],
        "tags": ["sk-", "organisation", "internationalisation", "search"],
    }
    assert REDACTOR.tree(tree).value is tree
