"""What does a request cost the event loop before it is passed on? No more than its bytes, whatever is in it.

Work is counted in memory: an object per few bytes of a body is what makes reading one slow.
"""

import contextlib
import functools
import json
import tracemalloc

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.gateway.conftest import assistant, user
from upswing.errors import Rejected
from upswing.gateway.core.chat_request import (
    MAX_FIELD_BYTES,
    MAX_METADATA_BYTES,
    client_metadata,
    read_chat_request,
    upstream_body,
)
from upswing.gateway.core.episode_table import quotable_texts
from upswing.gateway.core.episodes import (
    continues,
    hashes_after_answer,
    identify_episode,
    opening_hash,
    transcript_hashes,
)
from upswing.gateway.core.reported_outcome import CLIENT_METADATA_KEYS, read_close

MB = 1024 * 1024
SIZE = 4 * MB
CONSTANT = 40 * MB
"""For what is read whole: at most 256 KB of contents or metadata, and 1 MB of fields."""
PARTS = {
    "objects": b'{"b":1}',
    "lists": b"[]",
    "numbers": b"1",
    "messages": b'{"role":"user","content":"a"}',
    "answers": b'{"role":"assistant","content":[{}]}',
}
MANY_FIELDS = b",".join(b'"%x":1' % number for number in range(100_000))
WHERE = {
    "content": lambda fill: b'{"messages":[{"role":"user","content":%s}]}' % fill(SIZE),
    "many contents": lambda fill: (
        b'{"messages":[%s]}' % b",".join([b'{"role":"tool","content":%s}' % fill(40_000)] * 100)
    ),
    "messages": lambda fill: b'{"messages":%s}' % fill(SIZE),
    "metadata that is kept": lambda fill: (
        b'{"metadata":{"environment":%s},"messages":[]}' % fill(SIZE)
    ),
    "metadata that is not": lambda fill: b'{"metadata":{"x":%s},"messages":[]}' % fill(SIZE),
    "an id": lambda fill: b'{"metadata":{"session_id":%s},"messages":[]}' % fill(MB - 200),
    "keys of metadata": lambda fill: (
        b'{"metadata":{%s,"x":%s},"messages":[]}' % (MANY_FIELDS, fill(9000))
    ),
    "fields": lambda fill: b'{%s,"x":%s,"messages":[]}' % (MANY_FIELDS, fill(9000)),
}


def filled(part, size):
    """A JSON list of about so many bytes."""
    return b"[" + b",".join([part] * (size // (len(part) + 1))) + b"]"


def handled(body):
    """Everything that is done with a request before it is passed on, and once more for its answer."""
    with contextlib.suppress(Rejected):
        asked = read_chat_request(body)
        identify_episode({}, asked)
        client_metadata(asked)
        transcript_hashes(bytes(asked.messages))
        hashes_after_answer(asked.messages, "fine")
        upstream_body(body, asked, "another name", {})


def peak_of(work, *given):
    tracemalloc.start()
    try:
        work(*given)
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("part", PARTS)
@pytest.mark.parametrize("where", WHERE)
def test_a_request_makes_no_more_objects_than_its_bytes_allow(where, part):
    body = WHERE[where](functools.partial(filled, PARTS[part]))
    assert peak_of(handled, body) < 4 * len(body) + CONSTANT


@given(
    st.lists(st.sampled_from(["system", "user", "assistant", "tool"]), min_size=1, max_size=12),
    st.integers(0, 12),
)
@settings(max_examples=30, deadline=None)
@example(["user", "assistant", "user"], 1)
def test_a_conversation_is_recognised_however_long_its_messages_are(roles, more):
    """Also where contents are too long to be hashed whole."""
    long = [
        {"role": role, "content": f"{number}" + "x" * 60_000 + str(number)}
        for number, role in enumerate(roles)
    ]
    first = [user("the question" + "y" * 300_000 + "!"), *long]
    raw = json.dumps(first).encode()
    later = json.dumps([*first, assistant("fine"), *([user("next")] * more)]).encode()
    assert opening_hash(raw) == opening_hash(later)
    assert transcript_hashes(later)[1][-1] in hashes_after_answer(raw, "fine")
    assert continues(later, raw)
    other = json.dumps([user("the question" + "y" * 300_000 + "?"), *long]).encode()
    assert opening_hash(other) != opening_hash(raw)


TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=20) | st.sampled_from(
    ["[{", '"', "\\", '}],"', '\\"']
)


@given(
    st.lists(
        st.builds(
            lambda role, content, more: {"name": more, "role": role, "content": content},
            st.sampled_from(["system", "user", "assistant"]),
            TEXT | st.lists(st.dictionaries(TEXT, TEXT | st.lists(TEXT)), max_size=3),
            TEXT,
        ),
        max_size=10,
    ),
    st.booleans(),
)
@settings(deadline=None)
def test_a_conversation_begins_as_it_did_when_it_was_short(first, ascii_only):
    """Of a long one only the beginning is read; it has to find there what is read in a short one."""
    opening = [*first, user("a")] if len(first) < 8 else first
    later = [*opening, assistant("x" * 100_000)]
    names = [
        opening_hash(json.dumps(each, ensure_ascii=ascii_only).encode())
        for each in (opening, later)
    ]
    assert names[0] == names[1]


@pytest.mark.parametrize(
    ("metadata", "size"),
    [("environment", MAX_METADATA_BYTES), ("unknown", MAX_FIELD_BYTES)],
)
def test_what_is_too_much_is_refused_in_a_sentence(metadata, size):
    def request(more):
        return json.dumps({"messages": [], "metadata": {metadata: "x" * (size - 100 + more)}})

    client_metadata(read_chat_request(request(0).encode()))
    with pytest.raises(Rejected, match=rf"and {size} are taken"):
        client_metadata(read_chat_request(request(200).encode()))


def test_all_that_a_client_may_give_is_read():
    given = {name: [name] for name in CLIENT_METADATA_KEYS}
    asked = read_chat_request(json.dumps({"messages": [], "metadata": given}).encode())
    assert json.loads(client_metadata(asked)) == given


def test_a_session_or_user_of_any_length_has_a_short_name():
    for fields in ({"user": "u" * 300_000}, {"metadata": {"session_id": "s" * 300_000}}):
        asked = read_chat_request(json.dumps({"messages": [], **fields}).encode())
        assert len(identify_episode({}, asked).name) <= 256


def test_of_a_long_answer_a_bounded_part_is_searched_for():
    pieces = [b'data: {"id":"c-%d","content":"word %d"}\n\n' % (n, n) for n in range(100_000)]
    assert 0 < len(quotable_texts(pieces)) <= 64
    assert quotable_texts([b'{"content":"%s"}' % (b"x" * MB)]) == set()


def test_blanks_at_the_end_of_a_list_are_no_work():
    assert continues(b'[{"a":1}\n  ,{"b":2}]', b'[{"a":1}\n  ]')
    assert not continues(b'[{"a":1},{"b":2}]', b'[{"a":1}' + b" " * MB + b"]")


def test_a_close_is_read_whole_and_bounded_before():
    """The port takes no more bytes of it than that; a byte of it may be an object."""
    from upswing.gateway.admin import _MAX_CLIENT_BYTES

    body = b'{"metadata":{"environment":%s}}' % filled(b"[]", _MAX_CLIENT_BYTES)
    assert peak_of(read_close, body) < CONSTANT
