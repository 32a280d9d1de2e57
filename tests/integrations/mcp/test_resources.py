"""A resource is JSON whose texts hide nothing, however long it is."""

import json
import unicodedata

from hypothesis import given
from hypothesis import strategies as st

from upswing.dashboard.main import DEFAULT_PORT
from upswing.integrations.mcp.resources import CUT, LONGEST, NOTE, resource_text
from upswing.integrations.mcp.running import HttpOptions
from upswing.integrations.operations.reading_work import _quoted_turn

TEXTS = st.text(st.characters(codec="utf-8") | st.sampled_from("\u202e\u200b\x1b\n\U000e0041"))
TREES = st.recursive(
    TEXTS | st.none() | st.integers() | st.booleans(),
    lambda inner: st.lists(inner) | st.dictionaries(TEXTS, inner),
)


def unseen(text):
    return [
        each
        for each in text
        if each not in "\n\t" and unicodedata.category(each) in {"Cc", "Cf", "Co", "Cn", "Cs"}
    ]


def texts_of(tree):
    if isinstance(tree, str):
        yield tree
    elif isinstance(tree, dict):
        for name, value in tree.items():
            yield name
            yield from texts_of(value)
    elif isinstance(tree, list):
        for each in tree:
            yield from texts_of(each)


@given(TREES)
def test_no_text_of_a_resource_holds_what_nobody_sees(tree):
    read = json.loads(resource_text(tree))
    assert read["note"] == NOTE
    assert not [each for each in texts_of(read) if unseen(each)]


def test_what_is_too_long_is_json_still_and_says_so():
    read = resource_text({"said": ['"' * LONGEST]})
    assert len(read) <= 2 * LONGEST
    tree = json.loads(read)
    assert CUT in tree["note"]
    assert tree["beginning"].startswith('{"said": ["')


def test_arguments_of_a_call_are_shown_as_json():
    turn = {
        "turn_id": 1,
        "observation": {"type": "user_message"},
        "action": {"type": "tool_call", "tool_name": "f", "tool_args": {"deep": True, "n": None}},
        "result": {"success": True},
    }
    assert '| {"deep": true, "n": null}' in _quoted_turn(turn)


def test_the_page_and_mcp_have_ports_of_their_own():
    assert HttpOptions().port != DEFAULT_PORT
