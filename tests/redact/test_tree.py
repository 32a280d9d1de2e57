"""Trees: keys give context, seams are read across, and the rest stays the same object."""

from __future__ import annotations

import copy
import json

import pytest

from upswing.redact import Names, RedactionFailed, Redactor, explain

REDACTOR = Redactor()
TOKEN = "ghp_" + "k7Qm2XzR" * 5


def test_a_clean_tree_comes_back_as_the_same_object():
    tree = {"a": [1, 2.5, None, True, "text"], "b": {"c": "more text"}, "turn_id": 4539148803436467}
    out = REDACTOR.tree(tree)
    assert out.value is tree
    assert not out.changed


def test_the_input_is_not_changed_and_clean_branches_are_shared():
    tree = {"dirty": [TOKEN, "x"], "clean": {"deep": ["y"]}}
    before = copy.deepcopy(tree)
    out = REDACTOR.tree(tree)
    assert tree == before
    assert out.value == {"dirty": ["<github-token-1>", "x"], "clean": {"deep": ["y"]}}
    assert out.value["clean"] is tree["clean"]
    assert out.findings[0].path == ("dirty", 0)


@pytest.mark.parametrize(
    ("tree", "left"),
    [
        ({"password": "hunter2!"}, {"password": "<password-1>"}),
        ({"user": {"passwd": 'it\'s-"me"'}}, {"user": {"passwd": "<password-1>"}}),
        (
            {"authorization": "Bearer abcdef0123456789ABCDEF"},
            {"authorization": "Bearer <bearer-token-1>"},
        ),
        ({"api_keys": ["a8Kd93jfQ0lsPx71mZ5t"]}, {"api_keys": ["<secret-1>"]}),
        (
            {"name": "X-Api-Key", "value": "a8Kd93jfQ0lsPx71mZ5t"},
            {"name": "X-Api-Key", "value": "<secret-1>"},
        ),
        ({"ssn": "536228726"}, {"ssn": "<us-ssn-1>"}),
        ({"phone": "030 901820 44"}, {"phone": "<phone-1>"}),
        ({"card": 4539148803436467}, {"card": "<card-1>"}),
        ({"bob@x.org": 1}, {"<email-1>": 1}),
        ({"password": "string", "token": "abc", "secret": None}, None),
        ({"password": {"type": "string", "description": "The password of the user"}}, None),
        ({"trace_id": 4539148803436467, "n": 4539148803436468}, None),
    ],
)
def test_a_key_says_what_its_value_is(tree, left):
    assert REDACTOR.tree(tree).value == (tree if left is None else left)


def test_a_card_in_a_number_gets_a_name_of_its_own():
    tree = {"text": "paid with <card-1>", "number": 4539148803436467}
    assert REDACTOR.tree(tree).value == {"text": "paid with <card-1>", "number": "<card-2>"}


def test_two_keys_with_the_same_value_stay_two():
    tree = {"bob@x.org": 1, "bob%40x.org": 2}
    assert REDACTOR.tree(tree).value == {"<email-1>": 1, "<email-1>#2": 2}


@pytest.mark.parametrize(
    "cut",
    [
        lambda a, b: [{"observation": {"content": a}, "action": {"raw_response": b}}],
        lambda a, b: [{"role": "tool", "out": a, "n": 1}, {"role": "tool", "out": b, "n": 2}],
        lambda a, b: [
            {"r": {"o": a}, "z": "a long text in between, of some length"},
            {"r": {"o": b}},
        ],
        lambda a, b: {"chunks": [a, b]},
        lambda a, b: {"chunks": ["so: " + a, b + " ok"]},
    ],
)
def test_a_value_cut_by_a_seam_is_found(cut):
    for at in (6, 20, 40):
        out = REDACTOR.tree(cut(TOKEN[:at], TOKEN[at:]))
        text = json.dumps(out.value)
        assert TOKEN[:at] not in text
        assert TOKEN[at:] not in text
        assert {f.form for f in out.findings} <= {"split", "plain"}


def test_neighbours_that_only_touch_are_left_alone():
    tree = [
        {"say": "ask the desk-"},
        {"say": "organization2024 now"},
        {"say": "mail me@"},
        {"say": "noon"},
    ]
    assert REDACTOR.tree(tree).value is tree


def test_a_long_list_of_short_ids_is_left_alone():
    tree = {"ids": [f"a{i:04x}Q7" for i in range(3000)]}
    assert REDACTOR.tree(tree).value is tree


def test_names_are_shared_and_go_on():
    names = Names()
    assert REDACTOR.text("bob@x.org", names).value == "<email-1>"
    assert REDACTOR.tree(["eve@x.org", "bob@x.org"], names).value == ["<email-2>", "<email-1>"]
    later = Names.numbered_after({"turns": ["<email-2> wrote"]})
    assert REDACTOR.text("new@x.org", later).value == "<email-3>"
    assert "x.org" not in repr(names)


def test_the_lines_for_a_person_never_quote_the_value():
    lines = explain(REDACTOR.tree({"a": [f"key {TOKEN}"]}).findings)
    assert lines == ["<github-token-1>: rule github-token at a.0, characters 4 to 48"]


def test_a_tree_too_deep_is_not_stored():
    tree: list = []
    for _ in range(5000):
        tree = [tree]
    with pytest.raises(RedactionFailed):
        REDACTOR.tree(tree)


@pytest.mark.parametrize(
    "token", ["hvs." + "k7Qm2XzR" * 9, "sk-ant-api03-" + "k7Qm2XzR" * 11 + "abcdeAA"]
)
def test_a_token_in_three_pieces_is_found_wherever_it_is_cut(token):
    for first in range(1, len(token) - 9, 7):
        for second in range(first + 8, len(token), 5):
            pieces = token[:first], token[first:second], token[second:]
            tree = [
                {"output": f"so: {pieces[0]}"},
                {"output": pieces[1]},
                {"output": f"{pieces[2]} ok"},
            ]
            stored = str(REDACTOR.tree(tree).value)
            assert not [p for p in pieces if len(p) > 9 and p in stored], (first, second)
