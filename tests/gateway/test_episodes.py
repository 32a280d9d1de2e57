"""Which episode is a request of? And does the book of open episodes stay within its bounds?"""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from upswing.errors import Rejected
from upswing.gateway.asked import Asked, forwarded, read_asked
from upswing.gateway.book import Book, Episode, Heard
from upswing.gateway.episodes import Sign, Source, beginning, goes_on, sign_of
from upswing.gateway.plan import Model

MODEL = Model("base", "http://127.0.0.1:1", "base")
TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=30)
MESSAGES = st.lists(
    st.builds(
        lambda role, content: {"role": role, "content": content},
        st.sampled_from(["system", "user", "assistant", "tool"]),
        TEXT,
    ),
    max_size=6,
)


def asked(**fields):
    return read_asked(json.dumps({"messages": [], **fields}).encode())


GIVEN = Source.GIVEN


@pytest.mark.parametrize(
    ("headers", "fields", "wanted"),
    [
        ({b"x-episode-id": b"e"}, {"user": "u"}, Sign(GIVEN, "e")),
        ({b"episode_id": b"e"}, {}, Sign(GIVEN, "e")),
        ({}, {"episode_id": "e"}, Sign(GIVEN, "e")),
        ({}, {"tensorzero::episode_id": "e"}, Sign(GIVEN, "e")),
        ({}, {"metadata": {"episode_id": "e"}}, Sign(GIVEN, "e")),
        ({b"x-session-id": b"s"}, {"user": "u"}, Sign(Source.SESSION, "s")),
        ({}, {"metadata": {"session_id": "s"}, "user": "u"}, Sign(Source.SESSION, "s")),
        ({}, {"user": "u"}, Sign(Source.USER, "u")),
        ({}, {"safety_identifier": "u"}, Sign(Source.USER, "u")),
        ({b"x-user-id": b"u"}, {}, Sign(Source.USER, "u")),
    ],
)
def test_the_first_sign_in_the_table_counts(headers, fields, wanted):
    assert sign_of(headers, asked(**fields)) == wanted


def test_without_a_sign_the_conversation_is_its_own():
    sign = sign_of({}, asked(messages=[{"role": "user", "content": "hi"}]))
    assert sign.source is Source.CONVERSATION
    assert len(sign.name) == 32


@given(MESSAGES, MESSAGES)
def test_later_turns_begin_alike_however_they_are_spelt(first, more):
    opening = [*first, {"role": "user", "content": "the question"}]
    plain = json.dumps(opening).encode()
    spaced = json.dumps([*opening, *more], indent=2, ensure_ascii=False).encode()
    if len(opening) <= 8:
        assert beginning(plain) == beginning(spaced)


@given(MESSAGES, MESSAGES)
def test_messages_go_on_from_those_that_they_begin_with_and_from_no_others(first, more):
    before, after = json.dumps(first).encode(), json.dumps([*first, *more]).encode()
    assert goes_on(after, before) is bool(first and more)


@given(TEXT, TEXT)
def test_another_beginning_is_another_conversation(one, other):
    names = [beginning(json.dumps([{"role": "user", "content": t}]).encode()) for t in (one, other)]
    assert (names[0] == names[1]) is (one == other)


@given(
    st.dictionaries(
        st.text(max_size=5),
        st.recursive(
            st.none() | st.booleans() | st.floats(allow_nan=False, allow_infinity=False) | TEXT,
            lambda c: st.lists(c, max_size=3),
        ),
        max_size=4,
    ),
    st.text(min_size=1, max_size=8),
)
def test_only_the_models_name_changes_on_the_way_to_its_server(fields, name):
    body = {"model": "asked", **fields, "messages": [{"role": "user", "content": "hi"}]}
    for own in (
        "episode_id",
        "tensorzero::episode_id",
        "stream",
        "user",
        "metadata",
        "safety_identifier",
    ):
        body.pop(own, None)
    try:
        raw = json.dumps(body).encode()
        sent = forwarded(raw, read_asked(raw), name, {})
    except (Rejected, UnicodeEncodeError):  # half a surrogate pair is no text
        return
    assert json.loads(sent) == {**body, "model": name}


# --- the book ------------------------------------------------------------------------------------


def opened(number, at=0.0, source=Source.GIVEN):
    return Episode(
        "me",
        source,
        f"line-{number % 3}",
        f"e{number}",
        f"t{number}",
        at,
        at,
        "a",
        "s",
        None,
        None,
        {},
    )


def heard(messages, at=0.0, answer=b'{"choices":[]}'):
    raw = json.dumps(messages).encode()
    return Heard(at, 1.0, b'{"messages":' + raw + b"}", raw, [answer], False, MODEL, "i")


class BookMachine(RuleBasedStateMachine):
    """Whatever happens, the book stays within its bounds and counts its bytes right."""

    MOST, BYTES = 5, 2000

    def __init__(self):
        super().__init__()
        self.book = Book(most=self.MOST, most_bytes=self.BYTES, idle=10.0)
        self.now, self.number = 0.0, 0
        self.open = []

    @rule(given_id=st.booleans())
    def opens(self, given_id):
        self.number += 1
        episode = opened(self.number, self.now, Source.GIVEN if given_id else Source.SESSION)
        for other in self.book.followed(episode.line, episode.source):
            self.ends(other)
        self.book.open(episode)
        self.open.append(episode)

    @precondition(lambda self: self.open)
    @rule(data=st.data(), count=st.integers(1, 4), flying=st.booleans())
    def hears(self, data, count, flying):
        episode = data.draw(st.sampled_from(self.open))
        self.book.touch(episode, self.now)
        episode.flights = int(flying)
        self.book.add(episode, heard([{"role": "user", "content": "x" * 40}] * count, self.now))

    @rule(seconds=st.floats(0, 20))
    def waits(self, seconds):
        self.now += seconds
        for episode, why in self.book.ending(self.now):
            assert why in {"idle", "room"}
            assert not episode.flights
            self.ends(episode)

    def ends(self, episode):
        self.book.remove(episode)
        self.open.remove(episode)

    @invariant()
    def counts_its_bytes(self):
        assert len(self.book) == len(self.open)
        assert self.book.size == sum(e.size for e in self.open)
        for episode in self.open:
            held = sum(
                len(h.body) + sum(map(len, h.answer)) for c in episode.chains for h in c.heard
            )
            assert episode.size == held
        assert self.book.size <= self.BYTES + 400


TestBook = BookMachine.TestCase


def test_the_one_unused_for_longest_goes_when_there_are_too_many():
    book = Book(most=2, most_bytes=1000, idle=100.0)
    episodes = [opened(n, float(n)) for n in range(3)]
    for episode in episodes:
        book.open(episode)
    book.touch(episodes[0], 5.0)
    assert [(e.episode_id, why) for e, why in book.ending(6.0)][:1] == [("e1", "room")]


def test_a_chain_keeps_one_body_and_all_answers():
    book = Book(most=9, most_bytes=10_000, idle=100.0)
    episode = opened(1)
    book.open(episode)
    messages = []
    for turn in range(5):
        messages = [*messages, {"role": "user", "content": f"turn {turn}"}]
        book.add(episode, heard(messages, float(turn)))
    (chain,) = episode.chains
    assert [bool(each.body) for each in chain.heard] == [False] * 4 + [True]
    assert [each.size for each in chain.heard] == sorted({each.size for each in chain.heard})


def test_asked_knows_nothing_of_the_rest():
    assert set(Asked.__struct_fields__) == {
        "messages", "model", "stream", "user", "safety_identifier", "metadata", "episode_id",
        "their_episode_id",
    }  # fmt: skip
