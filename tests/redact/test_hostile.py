"""Hostile texts end soon, and end clean."""

from __future__ import annotations

import base64

import pytest

from upswing.redact import Redactor

REDACTOR = Redactor()
TOKEN = "ghp_" + "k7Qm2XzR" * 5
SIZE = 200_000
UNITS = [
    "a@",
    "bob.smith@example.org, ",
    "-----BEGIN PRIVATE KEY-----",
    "%25",
    "%25abcdefgh ",
    "sk-",
    " sk-abcdefghijk",
    "eyJ",
    "eyJhbGciOiJ.",
    "4539148803436467",
    "1 ",
    "4539 1488 ",
    "password=",
    'password="a ',
    "\u200b",
    "a\u200b",
    "\\u00",
    "\\u0073",
    "\\u0073a",
    "AKIA",
    "6a",
    "73 6b 2d ",
    "://:@",
    ' "-----END ',
    "-----END PRIVATE KEY-----",
    "привет мир ",
    "раѕѕ",
    " ",
    "\n",
    "token: ",
    "Zm9vYmFyYmF6cXV4 ",
    "cookie: a=",
    "<email-1>",
    '"a" + ',
    "&#65;",
    "\x1b[0m",
    "a\\/",
    "\\",
    '"',
    "GB29 NWBK 6016 ",
    "QUJDREVGR0hJSktM\n",
    "\0",
    "curl -u ",
    "пароль ",
    "密码是",
    "password is ",
    "=3D",
    "81.2.3.4 ",
    " g h p _",
    "00000000: 6768 705f 6b37\n",
    "| password |\n",
    "<tr><td>password</td>",
    "call 0171 ",
    "eJxabcdefghijklmnopqrstu ",
    "AU&;>",
    "wifi key ",
    "ldapwhoami -w ",
    "mysql --p",
    "your code is ",
    "password for -> ",
    "ordinary words ",
    "abandon ability able about above absent absorb abstract absurd abuse access accident to ",
]


@pytest.mark.parametrize("unit", UNITS)
def test_a_flood_hides_nothing(unit):
    flood = unit * (SIZE // len(unit))
    out = REDACTOR.text(f"{flood} {TOKEN} {flood}")
    assert TOKEN not in out.value
    assert REDACTOR.text(out.value).value == out.value


def test_a_flood_in_one_leaf_costs_that_leaf_alone():
    tree = {"good": "ordinary text", "bad": "bob@x.org " * 40_000, "also": f"key {TOKEN}"}
    out = REDACTOR.tree(tree)
    assert out.value == {
        "good": "ordinary text",
        "bad": "<overflow-1>",
        "also": "key <github-token-1>",
    }


def test_many_small_hostile_leaves_end_too():
    out = REDACTOR.tree(["a@b.org " * 20 for _ in range(1000)] + [TOKEN])
    assert TOKEN not in str(out.value)


def test_base64_in_base64_is_followed_for_four_levels():
    text = f"x {TOKEN}"
    for _ in range(4):
        text = base64.b64encode(text.encode()).decode()
    assert REDACTOR.text(text).value == "<github-token-1>"
