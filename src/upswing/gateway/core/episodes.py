"""Which episode is this request of?

| what the request says                                         | the episode                     |
|---------------------------------------------------------------|---------------------------------|
| `x-episode-id`, `episode_id` (header, body, body's metadata),  | that one, with all its requests |
| `tensorzero::episode_id`                                      |                                 |
| `x-session-id`, `metadata.session_id`                         | the session's conversations,    |
| `user`, `safety_identifier`, `x-user-id`, `metadata.user_id`  | one after the other; the user's |
| nothing                                                       | the conversation that begins so |

Without an id of its own a request belongs to the episode whose messages it goes on from, and else
begins another. A conversation that another gateway answered before finds its model again by what its
first request said: that stands in every later one, before an answer.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from hashlib import sha256

import msgspec
from msgspec import Raw

from upswing.contracts.typed import json_decoder
from upswing.errors import Reason, Rejected
from upswing.gateway.core.chat_request import ChatRequest, metadata_text
from upswing.redact.identity import shorten_identity

Headers = Mapping[bytes, bytes]
_EPISODE_ID = re.compile(r"[\x21-\x7e]{1,256}")
_MAX_MESSAGES, _MAX_ANSWERS = 2000, 64
"""Messages that a conversation is known by, and answers before which it may have begun."""
_FRAMING_ROLES = frozenset({"system", "developer"})
_OPENING_MESSAGES = 8
"""Messages that are looked through for the first one of the user."""
_MANY_OBJECTS = 65_536
"""Objects in `messages`, beyond which they are not read one by one: a conversation is then known by its first
bytes, and other gateways do not recognise it."""
_FEW_BYTES = 3 * _MANY_OBJECTS
"""So many bytes cannot hold more objects than that."""
_PREFIX_BYTES = 1024 * 1024
_WINDOW_BYTES = 32 * 1024
"""In which the user's first message is looked for before all messages are read."""
_TOKEN = re.compile(rb'"(?:[^"\\]++|\\.)*+(?:"|\\?\Z)|[\[\]{}]', re.DOTALL)
_OPENS, _CLOSES = frozenset(b"[{"), frozenset(b"]}")
_WHOLE_BYTES = 256 * 1024
"""Of contents that are hashed whole, whatever their spelling, in one conversation; of what is beyond it, the
length and the edges are."""
_EDGE_BYTES = 512
_TAIL_BYTES = 64
"""In which the end of a list of messages is looked for."""


class IdentitySource(StrEnum):
    """How the episode is known."""

    GIVEN = "given"
    SESSION = "session"
    USER = "user"
    CONVERSATION = "conversation"


@dataclass(frozen=True, slots=True)
class EpisodeIdentity:
    """What a request is recognised by."""

    source: IdentitySource
    name: str
    """The episode's id, the session's, the user's, or the hash of the beginning."""


class _Message(msgspec.Struct, gc=False):
    role: str = ""
    content: Raw = Raw(b"")


_MESSAGE = json_decoder(_Message)
_MESSAGES = json_decoder(list[_Message])


class _ConversationHash:
    """A hash of one message after another. What it costs is bounded, however much they say."""

    __slots__ = ("_left", "_sha256")

    def __init__(self) -> None:
        self._sha256, self._left = sha256(), _WHOLE_BYTES

    def add(self, message: _Message) -> None:
        self._sha256.update(f"{message.role}\0".encode())
        view = memoryview(message.content)
        if view.nbytes <= self._left:
            self._left -= view.nbytes
            self._sha256.update(_canonical_content(message.content))
        else:
            self._sha256.update(b"%d\0" % view.nbytes)
            self._sha256.update(view[:_EDGE_BYTES])
            self._sha256.update(view[-_EDGE_BYTES:])

    def copy(self) -> _ConversationHash:
        other = _ConversationHash()
        other._sha256, other._left = self._sha256.copy(), self._left
        return other

    def hexdigest(self) -> str:
        return self._sha256.hexdigest()[:32]


def identify_episode(headers: Headers, chat: ChatRequest) -> EpisodeIdentity:
    """What this request is recognised by."""
    given = (
        headers.get(b"x-episode-id")
        or headers.get(b"episode_id")
        or headers.get(b"episode-id")
        or chat.tensorzero_episode_id
        or chat.episode_id
        or metadata_text(chat, "episode_id")
    )
    if given:
        return EpisodeIdentity(IdentitySource.GIVEN, parse_episode_id(given))
    if session := headers.get(b"x-session-id") or metadata_text(chat, "session_id"):
        return EpisodeIdentity(
            IdentitySource.SESSION, shorten_identity("session", header_text(session))
        )
    if user := user_id_of(headers, chat):
        return EpisodeIdentity(IdentitySource.USER, user)
    return EpisodeIdentity(IdentitySource.CONVERSATION, opening_hash(chat.messages))


def user_id_of(headers: Headers, chat: ChatRequest) -> str | None:
    """Whom the request names as its user."""
    user = (
        headers.get(b"x-user-id")
        or chat.user
        or chat.safety_identifier
        or metadata_text(chat, "user_id")
    )
    return shorten_identity("user", header_text(user)) if user else None


def parse_episode_id(given: bytes | str) -> str:
    r"""An id that can stand in a header, a path and a log; `Rejected` when it cannot.

    >>> parse_episode_id("run-7\r\nset-cookie: a=b")
    Traceback (most recent call last):
    upswing.errors.Rejected: An episode id has 1 to 256 visible ASCII characters.
    """
    text = header_text(given)
    if not _EPISODE_ID.fullmatch(text):
        raise Rejected(Reason.SCHEMA, "An episode id has 1 to 256 visible ASCII characters.")
    return text


def opening_hash(messages: Raw | bytes) -> str:
    """A hash of the conversation up to the user's first message.

    Later turns of the same conversation have the same, however their JSON is spaced.
    """
    digest = _ConversationHash()
    try:
        if (read := _opening(messages) or _read_messages(messages)) is None:
            return sha256(memoryview(messages)[:_PREFIX_BYTES]).hexdigest()[:32]
        for message in read[:_OPENING_MESSAGES]:
            digest.add(message)
            if message.role == "user":
                break
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise Rejected(Reason.SCHEMA, f"`messages` cannot be read: {error}.") from None
    return digest.hexdigest()


def transcript_hashes(messages: Raw | bytes) -> tuple[str, tuple[str, ...]]:
    """A hash of all that was said, and of what had been said before and after each answer, in this order.

    The first request of a conversation is among the latter in each that follows. Solved examples in a prompt
    are answers too, but nobody ever asked just what stands before them. What frames a conversation does not
    count: many a system prompt tells the time. Conversations that open alike are told apart by their answers.
    """
    digest, around_answers = _ConversationHash(), []
    try:
        read = _read_messages(messages)
        for message in (read or ())[:_MAX_MESSAGES]:
            if message.role in _FRAMING_ROLES:
                continue
            answer = message.role == "assistant"
            before = digest.hexdigest() if answer else ""
            digest.add(message)
            if answer:
                around_answers.append((before, digest.hexdigest()))
    except (msgspec.DecodeError, UnicodeDecodeError):
        return "", ()  # its model may know better
    if read is None:
        return opening_hash(messages), ()
    half = _MAX_ANSWERS // 2
    some = (
        around_answers
        if len(around_answers) <= _MAX_ANSWERS
        else [*around_answers[:half], *around_answers[-half:]]
    )
    return digest.hexdigest(), tuple(each for pair in some for each in pair)


def hashes_after_answer(messages: Raw | bytes, content: str) -> tuple[str, ...]:
    """What `transcript_hashes` will know these messages by once this answer stands behind them.

    Whoever calls tools says nothing, which clients send back as null, as nothing or as an empty text.

    >>> chat, answer = b'[{"role":"user","content":"a"}]', b'{"role":"assistant","content":"b"}'
    >>> transcript_hashes(chat[:-1] + b"," + answer + b"]")[1][1] in hashes_after_answer(chat, "b")
    True
    """
    digest = _ConversationHash()
    try:
        read = _read_messages(messages)
        for message in (read or ())[:_MAX_MESSAGES]:
            if message.role not in _FRAMING_ROLES:
                digest.add(message)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return ()
    if read is None or len(read) >= _MAX_MESSAGES:
        return () if read is None else (digest.hexdigest(),)
    forms = (msgspec.json.encode(content),) if content else (b"", b"null", b'""')
    names = []
    for form in forms:
        whole = digest.copy()
        whole.add(_Message("assistant", Raw(form)))
        names.append(whole.hexdigest())
    return tuple(names)


def _opening(messages: Raw | bytes) -> list[_Message] | None:
    """The messages up to the user's first, where that is found without reading them all.

    >>> long = b'[{"role":"system","content":"[{"}, {"role":"user","content":"a"}, {"content":"%s"}]'
    >>> [message.role for message in _opening(long % (b"x" * 100_000))]
    ['system', 'user']
    >>> _opening(long % b"short")
    """
    view = memoryview(messages)
    if view.nbytes <= _WINDOW_BYTES:
        return None
    window = bytes(view[:_WINDOW_BYTES])
    found: list[_Message] = []
    depth = start = 0
    for token in _TOKEN.finditer(window):
        mark = window[token.start()]
        if mark in _OPENS:
            depth += 1
            start = token.start() if depth == 2 else start
        elif mark in _CLOSES:
            depth -= 1
            if depth == 1:
                found.append(_MESSAGE.decode(window[start : token.end()]))
                if found[-1].role == "user" or len(found) == _OPENING_MESSAGES:
                    return found
    return None


def _read_messages(messages: Raw | bytes) -> list[_Message] | None:
    """The messages; None when they are so many small ones that each would cost more than its bytes."""
    if memoryview(messages).nbytes > _FEW_BYTES and bytes(messages).count(b"{") > _MANY_OBJECTS:
        return None
    return _MESSAGES.decode(messages)


def transcript_pin(owner: str, identity: EpisodeIdentity, content_hash: str) -> str:
    """The pin of a conversation that is known by a hash of what was said in it."""
    known_by = "" if identity.source is IdentitySource.CONVERSATION else identity.name
    return pin_for(f"{owner}\0{identity.source}\0{known_by}\0{content_hash}")


def pin_for(name: str) -> str:
    """What gateways know an episode by: a name of fixed form."""
    return sha256(name.encode()).hexdigest()[:40]


def continues(messages: bytes, earlier: bytes) -> bool:
    """Do these messages begin with all of the earlier ones, and go on?

    >>> continues(b'[{"a":1},{"b":2}]', b'[{"a":1}]'), continues(b'[{"a":1}]', b'[{"a":1}]')
    (True, False)
    >>> continues(b'[{"a":12}]', b'[{"a":1}]')
    False
    """
    last = earlier[-_TAIL_BYTES:-1]
    tail = last.rstrip()
    size = len(earlier) - 1 - (len(last) - len(tail))
    return (
        size > 1
        and bool(tail)
        and messages[size : size + 8].lstrip()[:1] == b","
        and messages.startswith(memoryview(earlier)[:size])
    )


def _canonical_content(content: Raw) -> bytes:
    r"""The content whatever its spelling: `"\u0061"` is `"a"`."""
    return msgspec.json.encode(msgspec.json.decode(content)) if content else b""


def header_text(value: bytes | str) -> str:
    r"""A header's text: UTF-8 where it is that, else Latin-1, which every byte is.

    >>> header_text("Kühe".encode()), header_text(b"K\xfche")
    ('Kühe', 'Kühe')
    """
    if isinstance(value, str):
        return value
    try:
        return value.decode()
    except UnicodeDecodeError:
        return value.decode("latin-1")
