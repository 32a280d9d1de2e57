"""Which episodes are open, who answers each, and what was exchanged in them?

The table is bounded in three ways: episodes that nobody continues end, the one unused for longest ends
when there are too many, and beyond a number of bytes nothing more is kept (the episode then has a
gap and is not recorded, while its model stays the same). Bytes are those of all that an episode holds:
requests, answers, ids, metadata, and what the objects around them take. Where several keys want the room, it is
an episode of the key that holds most (`key_shares`).
"""

from __future__ import annotations

import re
from collections import OrderedDict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

from upswing.contracts.traffic import Model
from upswing.gateway.core.episodes import EpisodeIdentity, IdentitySource, continues
from upswing.gateway.core.fault_records import MOST_FAULTS, FaultRecord
from upswing.gateway.core.key_shares import KeyShares
from upswing.gateway.core.routing import RouteTarget, RoutingTable

_TOOL_CALL = re.compile(
    rb'"tool_calls"\s*:\s*\[\s*\{|"function_call"\s*:\s*\{|"type"\s*:\s*"(?:function_call|tool_use)"'
)
_QUOTED = re.compile(rb'"(?:content|text|id|call_id)"\s*:\s*"((?:[^"\\]|\\.)+)"')
_QUOTE_BYTES, _MAX_QUOTES = 64 * 1024, 64
"""Of an answer and of the messages behind it, where one is searched for in the other; and texts of the answer."""
_EPISODE_BYTES, _EXCHANGE_BYTES, _TEXT_BYTES, _PIECE_BYTES = 2048, 1024, 64, 64
"""What an open episode, an exchange, a text and a piece of an answer take beside what is in them."""
_CHARACTER_BYTES = 4
"""At most, in memory."""
_LEAST_BYTES = 16 * 1024 * 1024
"""Open episodes may take so much in any case, so that each keeps its model where nothing is recorded."""
_EASED = 7 / 8
"""Of all bytes: above it, the key that holds most ends open episodes while another can keep nothing."""
MAX_OPEN_PER_GROUP = 64
"""Open episodes of one session, user or beginning; beyond it the oldest ends."""


@dataclass(slots=True)
class ExchangeRecord:
    """One request and its answer, as they came."""

    started_at: float
    latency_ms: float
    body: bytes
    messages: bytes
    answer: list[bytes]
    stream: bool
    model: Model
    inference_id: str
    first_token_ms: float = -1.0
    """Until the first event of a stream; negative: it came whole."""
    cancelled: bool = False
    """Its client stopped reading before the answer was whole."""
    shape: str = "chat"
    """In which the server answered."""
    messages_size: int = 0
    """Bytes of the request's messages, once a later request holds them."""
    calls_tool: bool | None = None
    """None: nobody has looked yet."""

    @property
    def held_bytes(self) -> int:
        """What it takes while its request is kept."""
        return self.request_bytes + self.answer_bytes

    @property
    def answer_bytes(self) -> int:
        """What it takes without its request."""
        return _EXCHANGE_BYTES + sum(map(len, self.answer)) + _PIECE_BYTES * len(self.answer)

    @property
    def request_bytes(self) -> int:
        return len(self.body) + len(self.messages)


@dataclass(frozen=True, slots=True)
class UnansweredRequest:
    """A request that got no answer, as it came."""

    body: bytes
    started_at: float
    waited_ms: float


@dataclass(slots=True)
class Conversation:
    """Requests of which each goes on from the one before: only the last one's body is needed."""

    exchanges: list[ExchangeRecord] = field(default_factory=list)

    def is_continued_by(self, messages: bytes) -> bool:
        return continues(messages, self.exchanges[-1].messages)

    def added_bytes(self, record: ExchangeRecord) -> int:
        """How many bytes more would be held."""
        return record.held_bytes - (self.exchanges[-1].request_bytes if self.exchanges else 0)

    def add(self, record: ExchangeRecord) -> None:
        if self.exchanges:
            before = self.exchanges[-1]
            before.messages_size, before.body, before.messages = len(before.messages), b"", b""
        record.messages_size = len(record.messages)
        self.exchanges.append(record)


@dataclass(slots=True, eq=False)
class OpenEpisode:
    """An open episode."""

    principal: str
    source: IdentitySource
    group_key: str
    """The key of the session, user or opening that it shares with others."""
    episode_id: str
    trajectory_id: str
    opened: float
    last_used: float
    agent_id: str
    session_id: str
    user_id: str | None
    task_id: str | None
    metadata: bytes
    """JSON: what its client says for the trajectory's metadata."""
    model_id: str = ""
    candidate: bool = False
    rollout: str = ""
    requested_by_name: bool = False
    withdrawn: str = ""
    """A model that was asked for, or had this episode, and answers nobody any more."""
    first_model_id: str = ""
    """The model of its first request, whose evidence it is."""
    step: str = ""
    """The shares when chance chose; empty where it did not."""
    switch: str = ""
    """The switch because of which its model answers; empty: chance chose by the plan's shares."""
    by_user: bool = False
    """Chance chose for the user, not for this episode."""
    identity: EpisodeIdentity | None = None
    """What its first request was recognised by."""
    pin: str = ""
    """What other gateways know its conversation by."""
    practice: bool = False
    """Its task was chosen for its difficulty, so it is no evidence."""
    ambiguous: bool = False
    """Another conversation opened just so and got another model: this one is known by its first answer."""
    earlier_pins: tuple[str, ...] = ()
    """What they may know it by from before."""
    models: list[str] = field(default_factory=list)
    conversations: list[Conversation] = field(default_factory=list)
    failed_messages: tuple[int, int] | None = None
    """Length and hash of the messages of a request that got no whole answer: the same again is a second try."""
    broken: bool = False
    """Its last request got no whole answer, by a server's fault."""
    cancelled: bool = False
    """Its client gave up waiting for the answer to its last request."""
    unrecorded: int = 0
    """Requests in it that their client did not want recorded."""
    failures: int = 0
    faults: list[FaultRecord] = field(default_factory=list)
    """The first requests that a model did not answer."""
    unanswered: UnansweredRequest | None = None
    """The last request, as long as nothing was answered."""
    errored: bool = False
    """An error of its model is in the evidence: it has one voice there, however often it asks."""
    succeeded: bool = False
    """An answer of its model is in the evidence, once for the same reason."""
    in_flight: int = 0
    inferences: int = 0
    held_bytes: int = 0
    identity_bytes: int = 0
    """Of these, what is not an exchange: ids, metadata and pins."""
    has_gap: bool = False
    """Something was answered and not kept."""
    ended: bool = False
    outcome: Any = None
    temperature: float | None = None
    """What it explores at; None: as its client wants it."""
    assignment: tuple[RoutingTable, RouteTarget] | None = None
    """Who answers while this table holds."""

    def is_continued_by(self, messages: bytes) -> bool:
        """Is a request with these messages the next of this episode?"""
        if self.failed_messages is not None:
            size, hashed = self.failed_messages
            if len(messages) == size and hash(messages) == hashed:
                return True
        return bool(self.conversations) and any(
            conversation.is_continued_by(messages) for conversation in self.conversations
        )

    def fail(self, messages: bytes, *, broken: bool, cancelled: bool) -> None:
        """A request with these messages got no whole answer: by a server's fault, or as its client gave up waiting."""
        self.failed_messages = len(messages), hash(messages)
        self.broken, self.cancelled = broken, cancelled
        self.failures += broken

    def note_fault(self, record: FaultRecord) -> None:
        """A model did not answer a request; the first of them are kept."""
        if len(self.faults) < MOST_FAULTS:
            self.faults.append(record)

    def measure_identity(self) -> int:
        """How many bytes its ids, metadata and pins take."""
        texts = (
            *(self.principal, self.group_key, self.episode_id, self.trajectory_id, self.agent_id),
            *(self.session_id, self.user_id or "", self.task_id or "", self.pin),
            *self.earlier_pins,
        )
        characters = _CHARACTER_BYTES * sum(map(len, texts))
        return _EPISODE_BYTES + len(self.metadata) + _TEXT_BYTES * len(texts) + characters

    def awaits_tool_result(self) -> bool:
        """Does its last answer call a tool, so that the agent will come back with the result?"""
        last = max(
            (conversation.exchanges[-1] for conversation in self.conversations),
            key=lambda exchange: exchange.started_at,
            default=None,
        )
        if last is None:
            return False
        if last.calls_tool is None:
            last.calls_tool = _TOOL_CALL.search(b"".join(last.answer)) is not None
        return last.calls_tool

    def quoted_in(self, messages: bytes) -> bool:
        """Do these messages quote the last answer? Tells apart those that began alike."""
        last = self.conversations[-1].exchanges[-1]
        later = messages[last.messages_size : last.messages_size + _QUOTE_BYTES]
        return any(text in later for text in quotable_texts(last.answer))


def quotable_texts(answer: Iterable[bytes]) -> set[bytes]:
    """Texts and ids of an answer that a later request may repeat, as they are written; of a long one, the first.

    >>> sorted(quotable_texts([b'{"id": "c1", "content"', b': "Hi"}']))
    [b'Hi', b'c1']
    """
    begin, messages_size = [], 0
    for piece in answer:
        begin.append(piece[:_QUOTE_BYTES])
        messages_size += len(piece)
        if messages_size > _QUOTE_BYTES:
            break
    found = (match[1] for match in _QUOTED.finditer(b"".join(begin)[:_QUOTE_BYTES]))
    return set(islice(found, _MAX_QUOTES))


class EpisodeTable:
    """The open episodes."""

    def __init__(self, *, max_episodes: int, max_bytes: int, idle_seconds: float) -> None:
        self._max_episodes, self._max_bytes, self._idle_seconds = (
            max_episodes,
            max_bytes,
            idle_seconds,
        )
        self._open: OrderedDict[str, OpenEpisode] = OrderedDict()
        """By principal and id, the one unused for longest first."""
        self._groups: dict[str, list[OpenEpisode]] = {}
        self._trajectories: dict[str, OpenEpisode] = {}
        self._of_key: dict[str, OrderedDict[str, OpenEpisode]] = {}
        """Those of each principal, in the same order."""
        self._recorded: dict[str, dict[str, OpenEpisode]] = {}
        """Of these, those of which something is kept, the newest last."""
        self._starved = False
        """A key could keep nothing, because of another that has nothing but open episodes."""
        self._counts, self._bytes, self._identities = KeyShares(), KeyShares(), KeyShares()
        self.held_bytes = 0
        self._identity_bytes = 0
        self.gaps = 0

    def __len__(self) -> int:
        return len(self._open)

    def get(self, principal: str, episode_id: str) -> OpenEpisode | None:
        return self._open.get(f"{principal}\0{episode_id}")

    def by_trajectory(self, trajectory_id: str) -> OpenEpisode | None:
        return self._trajectories.get(trajectory_id)

    def find(
        self, principal: str, identity: EpisodeIdentity, messages: bytes
    ) -> OpenEpisode | None:
        """The open episode that this request belongs to."""
        if identity.source is IdentitySource.GIVEN:
            return self._open.get(f"{principal}\0{identity.name}")
        group = self._groups.get(group_key_of(principal, identity), ())
        found = [episode for episode in group if episode.is_continued_by(messages)]
        if len(found) > 1:
            quoted = [e for e in found if e.conversations and e.quoted_in(messages)]
            found = quoted or found
        return found[-1] if found else None

    def open(self, episode: OpenEpisode) -> None:
        key = f"{episode.principal}\0{episode.episode_id}"
        self._open[key] = episode
        self._of_key.setdefault(episode.principal, OrderedDict())[key] = episode
        self._recorded.setdefault(episode.principal, {})[key] = episode
        episode.identity_bytes = episode.measure_identity()
        self._identity_bytes += episode.identity_bytes
        self._identities.add(episode.principal, episode.identity_bytes)
        self._counts.add(episode.principal, 1)
        self._hold(episode, episode.identity_bytes)
        self._trajectories[episode.trajectory_id] = episode
        if episode.source is not IdentitySource.GIVEN:
            self._groups.setdefault(episode.group_key, []).append(episode)

    def touch(self, episode: OpenEpisode, now: float) -> None:
        episode.last_used = now
        key = f"{episode.principal}\0{episode.episode_id}"
        self._open.move_to_end(key)
        self._of_key[episode.principal].move_to_end(key)

    def add(self, episode: OpenEpisode, record: ExchangeRecord) -> None:
        """Keep an answered request."""
        if episode.ended:
            self.gaps += 1
            return
        episode.failed_messages, episode.broken, episode.cancelled = None, False, False
        name = record.model.model_id
        if name not in episode.models:
            episode.models.append(name)
        if episode.has_gap:
            return
        conversation = next(
            (
                conversation
                for conversation in reversed(episode.conversations)
                if conversation.is_continued_by(record.messages)
            ),
            None,
        )
        added_bytes = (conversation or Conversation()).added_bytes(record)
        if not self._make_room(episode.principal, added_bytes):
            self._drop_records(episode)
            return
        if conversation is None:
            conversation = Conversation()
            episode.conversations.append(conversation)
        self._drop_unanswered(episode)
        conversation.add(record)
        self._hold(episode, added_bytes)

    def add_unanswered(self, episode: OpenEpisode, request: UnansweredRequest) -> None:
        """Keep the last request of an episode in which nothing was answered, where there is room."""
        if episode.ended or episode.has_gap or episode.conversations:
            return
        self._drop_unanswered(episode)
        if self._make_room(episode.principal, len(request.body)):
            episode.unanswered = request
            self._hold(episode, len(request.body))

    def _drop_unanswered(self, episode: OpenEpisode) -> None:
        if episode.unanswered is not None:
            self._hold(episode, -len(episode.unanswered.body))
            episode.unanswered = None

    def _hold(self, episode: OpenEpisode, more: int) -> None:
        episode.held_bytes += more
        self.held_bytes += more
        self._bytes.add(episode.principal, more)

    def _make_room(self, principal: str, wanted: int) -> bool:
        """Can so much more be held? The key that holds most gives way, one episode after the other."""
        while self.held_bytes + wanted > self._max_bytes:
            if (heaviest := self._bytes.key_to_evict(principal, wanted)) is None:
                return False
            if not self._recorded.get(heaviest):
                self._starved = True
                return False
            self._drop_records(next(reversed(self._recorded[heaviest].values())))
        return True

    def remove(self, episode: OpenEpisode) -> None:
        """Take it out of the table; its records are the caller's now."""
        key = f"{episode.principal}\0{episode.episode_id}"
        if self._open.pop(key, None) is not None:
            self._counts.add(episode.principal, -1)
            self._of_key[episode.principal].pop(key)
            if not self._of_key[episode.principal]:
                del self._of_key[episode.principal]
            self._forget_recorded(episode)
        self._trajectories.pop(episode.trajectory_id, None)
        if group := self._groups.get(episode.group_key):
            if episode in group:
                group.remove(episode)
            if not group:
                del self._groups[episode.group_key]
        self._hold(episode, -episode.held_bytes)
        self._identity_bytes -= episode.identity_bytes
        self._identities.add(episode.principal, -episode.identity_bytes)
        episode.identity_bytes = 0
        episode.ended = True

    def due_to_end(self, now: float) -> Iterator[tuple[OpenEpisode, str]]:
        """Episodes that have to end, and why; the caller removes each before it asks on."""
        for _ in range(len(self._open)):
            episode = next(iter(self._open.values()))
            if episode.in_flight:
                self.touch(episode, now)
            elif episode.last_used + self._idle_seconds <= now:
                yield episode, "idle"
            elif (surplus := self._surplus()) is not None:
                yield surplus, "room"
            else:
                return

    def _surplus(self) -> OpenEpisode | None:
        """Where there are too many, the one unused for longest of the key that has most."""
        if len(self._open) > self._max_episodes:
            heaviest = self._counts.heaviest()
        elif self._identity_bytes > max(self._max_bytes, _LEAST_BYTES):
            heaviest = self._identities.heaviest()
        elif self._starved and self.held_bytes > self._max_bytes * _EASED:
            heaviest = self._bytes.heaviest()
        else:
            self._starved = False
            return None
        theirs = self._of_key.get(heaviest or "")
        return next((e for e in theirs.values() if not e.in_flight), None) if theirs else None

    def superseded(self, group_key: str, source: IdentitySource) -> list[OpenEpisode]:
        """Episodes that end because another begins beside them.

        A session's or a user's next conversation ends the one before, unless that one waits for a
        tool: then the new one is probably the tool's own.
        """
        siblings = self._groups.get(group_key, [])
        if source in {IdentitySource.SESSION, IdentitySource.USER}:
            ended = [
                e
                for e in siblings
                if not e.in_flight and e.conversations and not e.awaits_tool_result()
            ]
        else:
            ended = []
        surplus = [e for e in siblings if e not in ended and not e.in_flight]
        return ended + surplus[: max(0, len(siblings) - len(ended) - MAX_OPEN_PER_GROUP + 1)]

    def open_episodes(self) -> list[OpenEpisode]:
        return list(self._open.values())

    def _drop_records(self, episode: OpenEpisode) -> None:
        """Nothing more of it is kept, and it is not recorded."""
        episode.has_gap, self.gaps = True, self.gaps + 1
        episode.conversations.clear()
        episode.unanswered = None
        episode.metadata = b"{}"
        identity = episode.measure_identity()
        self._identity_bytes += identity - episode.identity_bytes
        self._identities.add(episode.principal, identity - episode.identity_bytes)
        episode.identity_bytes = identity
        self._hold(episode, identity - episode.held_bytes)
        self._forget_recorded(episode)

    def _forget_recorded(self, episode: OpenEpisode) -> None:
        recorded = self._recorded.get(episode.principal, {})
        recorded.pop(f"{episode.principal}\0{episode.episode_id}", None)
        if not recorded:
            self._recorded.pop(episode.principal, None)


def group_key_of(principal: str, identity: EpisodeIdentity) -> str:
    """What episodes of the same session, user or beginning have in common."""
    return f"{principal}\0{identity.source}\0{identity.name}"
