"""Which episode is a request of? And does the table of open episodes stay within its bounds?"""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from upswing.contracts.traffic import Model
from upswing.errors import Rejected
from upswing.gateway.core.chat_request import ChatRequest, read_chat_request, upstream_body
from upswing.gateway.core.episode_table import EpisodeTable, ExchangeRecord, OpenEpisode
from upswing.gateway.core.episodes import (
    EpisodeIdentity,
    IdentitySource,
    continues,
    identify_episode,
    opening_hash,
)

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
    return read_chat_request(json.dumps({"messages": [], **fields}).encode())


GIVEN = IdentitySource.GIVEN


@pytest.mark.parametrize(
    ("headers", "fields", "wanted"),
    [
        ({b"x-episode-id": b"e"}, {"user": "u"}, EpisodeIdentity(GIVEN, "e")),
        ({b"episode_id": b"e"}, {}, EpisodeIdentity(GIVEN, "e")),
        ({}, {"episode_id": "e"}, EpisodeIdentity(GIVEN, "e")),
        ({}, {"tensorzero::episode_id": "e"}, EpisodeIdentity(GIVEN, "e")),
        ({}, {"metadata": {"episode_id": "e"}}, EpisodeIdentity(GIVEN, "e")),
        ({b"x-session-id": b"s"}, {"user": "u"}, EpisodeIdentity(IdentitySource.SESSION, "s")),
        (
            {},
            {"metadata": {"session_id": "s"}, "user": "u"},
            EpisodeIdentity(IdentitySource.SESSION, "s"),
        ),
        ({}, {"user": "u"}, EpisodeIdentity(IdentitySource.USER, "u")),
        ({}, {"safety_identifier": "u"}, EpisodeIdentity(IdentitySource.USER, "u")),
        ({b"x-user-id": b"u"}, {}, EpisodeIdentity(IdentitySource.USER, "u")),
    ],
)
def test_the_first_sign_in_the_table_counts(headers, fields, wanted):
    assert identify_episode(headers, asked(**fields)) == wanted


def test_without_a_sign_the_conversation_is_its_own():
    sign = identify_episode({}, asked(messages=[{"role": "user", "content": "hi"}]))
    assert sign.source is IdentitySource.CONVERSATION
    assert len(sign.name) == 32


@given(MESSAGES, MESSAGES)
def test_later_turns_begin_alike_however_they_are_spelt(first, more):
    opening = [*first, {"role": "user", "content": "the question"}]
    plain = json.dumps(opening).encode()
    spaced = json.dumps([*opening, *more], indent=2, ensure_ascii=False).encode()
    if len(opening) <= 8:
        assert opening_hash(plain) == opening_hash(spaced)


@given(MESSAGES, MESSAGES)
def test_messages_go_on_from_those_that_they_begin_with_and_from_no_others(first, more):
    before, after = json.dumps(first).encode(), json.dumps([*first, *more]).encode()
    assert continues(after, before) is bool(first and more)


@given(TEXT, TEXT)
def test_another_beginning_is_another_conversation(one, other):
    names = [
        opening_hash(json.dumps([{"role": "user", "content": t}]).encode()) for t in (one, other)
    ]
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
        sent = upstream_body(raw, read_chat_request(raw), name, {})
    except (Rejected, UnicodeEncodeError):  # half a surrogate pair is no text
        return
    assert json.loads(sent) == {**body, "model": name}


# --- the table ------------------------------------------------------------------------------------


def opened(number, at=0.0, source=IdentitySource.GIVEN):
    return OpenEpisode(
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
        b"{}",
    )


def heard(messages, at=0.0, answer=b'{"choices":[]}'):
    raw = json.dumps(messages).encode()
    return ExchangeRecord(at, 1.0, b'{"messages":' + raw + b"}", raw, [answer], False, MODEL, "i")


class BookMachine(RuleBasedStateMachine):
    """Whatever happens, the table stays within its bounds and counts its bytes right."""

    MOST, BYTES = 5, 20_000

    def __init__(self):
        super().__init__()
        self.episode_table = EpisodeTable(
            max_episodes=self.MOST, max_bytes=self.BYTES, idle_seconds=10.0
        )
        self.now, self.number = 0.0, 0
        self.open = []

    @rule(given_id=st.booleans())
    def opens(self, given_id):
        self.number += 1
        episode = opened(
            self.number, self.now, IdentitySource.GIVEN if given_id else IdentitySource.SESSION
        )
        for other in self.episode_table.superseded(episode.group_key, episode.source):
            self.ends(other)
        self.episode_table.open(episode)
        self.open.append(episode)

    @precondition(lambda self: self.open)
    @rule(data=st.data(), count=st.integers(1, 4), flying=st.booleans())
    def hears(self, data, count, flying):
        episode = data.draw(st.sampled_from(self.open))
        self.episode_table.touch(episode, self.now)
        episode.in_flight = int(flying)
        self.episode_table.add(
            episode, heard([{"role": "user", "content": "x" * 40}] * count, self.now)
        )

    @rule(seconds=st.floats(0, 20))
    def waits(self, seconds):
        self.now += seconds
        for episode, why in self.episode_table.due_to_end(self.now):
            assert why in {"idle", "room"}
            assert not episode.in_flight
            self.ends(episode)

    def ends(self, episode):
        self.episode_table.remove(episode)
        self.open.remove(episode)

    @invariant()
    def counts_its_bytes(self):
        assert len(self.episode_table) == len(self.open)
        assert self.episode_table.held_bytes == sum(e.held_bytes for e in self.open)
        for episode in self.open:
            held = sum(h.held_bytes for c in episode.conversations for h in c.exchanges)
            assert episode.held_bytes == episode.measure_identity() + held
        identities = sum(e.identity_bytes for e in self.open)
        assert self.episode_table.held_bytes <= self.BYTES + identities


TestBook = BookMachine.TestCase


def test_the_one_unused_for_longest_goes_when_there_are_too_many():
    table = EpisodeTable(max_episodes=2, max_bytes=1000, idle_seconds=100.0)
    episodes = [opened(n, float(n)) for n in range(3)]
    for episode in episodes:
        table.open(episode)
    table.touch(episodes[0], 5.0)
    assert [(e.episode_id, why) for e, why in table.due_to_end(6.0)][:1] == [("e1", "room")]


def test_a_chain_keeps_one_body_and_all_answers():
    table = EpisodeTable(max_episodes=9, max_bytes=10_000, idle_seconds=100.0)
    episode = opened(1)
    table.open(episode)
    messages = []
    for turn in range(5):
        messages = [*messages, {"role": "user", "content": f"turn {turn}"}]
        table.add(episode, heard(messages, float(turn)))
    (chain,) = episode.conversations
    assert [bool(each.body) for each in chain.exchanges] == [False] * 4 + [True]
    assert [each.messages_size for each in chain.exchanges] == sorted(
        {each.messages_size for each in chain.exchanges}
    )


def test_a_chat_request_knows_nothing_of_the_rest():
    assert set(ChatRequest.__struct_fields__) == {
        "messages",
        "model",
        "stream",
        "stream_options",
        "logprobs",
        "return_token_ids",
        "user",
        "safety_identifier",
        "metadata",
        "episode_id",
        "tensorzero_episode_id",
    }
