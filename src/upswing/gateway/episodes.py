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
from typing import Any

import msgspec
from msgspec import Raw

from upswing.contracts.typed import json_decoder
from upswing.errors import Reason, Rejected
from upswing.gateway.asked import Asked

Headers = Mapping[bytes, bytes]
_ID = re.compile(r"[\x21-\x7e]{1,256}")
_MESSAGES = json_decoder(list[Raw])
_SPOKEN, _ANSWERS = 2000, 64
"""Messages that a conversation is known by, and answers before which it may have begun."""
_FRAME = frozenset({"system", "developer"})
_OPENING = 8
"""Messages that are looked through for the first one of the user."""


class Source(StrEnum):
    """How the episode is known."""

    GIVEN = "given"
    SESSION = "session"
    USER = "user"
    CONVERSATION = "conversation"


@dataclass(frozen=True, slots=True)
class Sign:
    """What a request is recognised by."""

    source: Source
    name: str
    """The episode's id, the session's, the user's, or the hash of the beginning."""


class _Message(msgspec.Struct, gc=False):
    role: str = ""
    content: Raw = Raw(b"")


_MESSAGE = json_decoder(_Message)


def sign_of(headers: Headers, asked: Asked) -> Sign:
    """What this request is recognised by."""
    about = asked.metadata or {}
    given = (
        headers.get(b"x-episode-id")
        or headers.get(b"episode_id")
        or headers.get(b"episode-id")
        or asked.their_episode_id
        or asked.episode_id
        or _word(about, "episode_id")
    )
    if given:
        return Sign(Source.GIVEN, id_of(given))
    if session := headers.get(b"x-session-id") or _word(about, "session_id"):
        return Sign(Source.SESSION, text_of(session))
    if user := user_of(headers, asked):
        return Sign(Source.USER, user)
    return Sign(Source.CONVERSATION, beginning(asked.messages))


def user_of(headers: Headers, asked: Asked) -> str | None:
    """Whom the request names as its user."""
    user = (
        headers.get(b"x-user-id")
        or asked.user
        or asked.safety_identifier
        or _word(asked.metadata or {}, "user_id")
    )
    return text_of(user) if user else None


def id_of(given: bytes | str) -> str:
    r"""An id that can stand in a header, a path and a log; `Rejected` when it cannot.

    >>> id_of("run-7\r\nset-cookie: a=b")
    Traceback (most recent call last):
    upswing.errors.Rejected: An episode id has 1 to 256 visible ASCII characters.
    """
    text = text_of(given)
    if not _ID.fullmatch(text):
        raise Rejected(Reason.SCHEMA, "An episode id has 1 to 256 visible ASCII characters.")
    return text


def beginning(messages: Raw | bytes) -> str:
    """A hash of the conversation up to the user's first message.

    Later turns of the same conversation have the same, however their JSON is spaced.
    """
    digest = sha256()
    try:
        for raw in _MESSAGES.decode(messages)[:_OPENING]:
            message = _MESSAGE.decode(raw)
            digest.update(f"{message.role}\0".encode())
            digest.update(_canonical(message.content))
            if message.role == "user":
                break
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise Rejected(Reason.SCHEMA, f"`messages` cannot be read: {error}.") from None
    return digest.hexdigest()[:32]


def spoken(messages: Raw | bytes) -> tuple[str, tuple[str, ...]]:
    """A hash of all that was said, and of what had been said before and after each answer, in this order.

    The first request of a conversation is among the latter in each that follows. Solved examples in a prompt
    are answers too, but nobody ever asked just what stands before them. What frames a conversation does not
    count: many a system prompt tells the time. Conversations that open alike are told apart by their answers.
    """
    digest, beside = sha256(), []
    try:
        for raw in _MESSAGES.decode(messages)[:_SPOKEN]:
            message = _MESSAGE.decode(raw)
            if message.role in _FRAME:
                continue
            answer = message.role == "assistant"
            before = digest.hexdigest()[:32] if answer else ""
            digest.update(f"{message.role}\0".encode())
            digest.update(_canonical(message.content))
            if answer:
                beside.append((before, digest.hexdigest()[:32]))
    except (msgspec.DecodeError, UnicodeDecodeError):
        return "", ()  # its model may know better
    half = _ANSWERS // 2
    some = beside if len(beside) <= _ANSWERS else [*beside[:half], *beside[-half:]]
    return digest.hexdigest()[:32], tuple(each for pair in some for each in pair)


def answered(messages: Raw | bytes, content: str) -> tuple[str, ...]:
    """What `spoken` will know these messages by once this answer stands behind them.

    Whoever calls tools says nothing, which clients send back as null, as nothing or as an empty text.

    >>> asked, told = b'[{"role":"user","content":"a"}]', b'{"role":"assistant","content":"b"}'
    >>> spoken(asked[:-1] + b"," + told + b"]")[1][1] in answered(asked, "b")
    True
    """
    try:
        whole = _MESSAGES.decode(messages)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return ()
    forms = ("", ',"content":null', ',"content":""')
    said = (f',"content":{msgspec.json.encode(content).decode()}',) if content else forms
    ends = (f'{{"role":"assistant"{each}}}'.encode() for each in said)
    return tuple(spoken(msgspec.json.encode([*whole, Raw(end)]))[0] for end in ends)


def goes_on(messages: bytes, earlier: bytes) -> bool:
    """Do these messages begin with all of the earlier ones, and go on?

    >>> goes_on(b'[{"a":1},{"b":2}]', b'[{"a":1}]'), goes_on(b'[{"a":1}]', b'[{"a":1}]')
    (True, False)
    >>> goes_on(b'[{"a":12}]', b'[{"a":1}]')
    False
    """
    begun = earlier[:-1].rstrip()
    return (
        len(begun) > 1
        and messages.startswith(begun)
        and messages[len(begun) : len(begun) + 8].lstrip()[:1] == b","
    )


def _canonical(content: Raw) -> bytes:
    r"""The content whatever its spelling: `"\u0061"` is `"a"`."""
    return msgspec.json.encode(msgspec.json.decode(content)) if content else b""


def _word(about: Mapping[str, Any], key: str) -> str | None:
    value = about.get(key)
    return value if isinstance(value, str) and value else None


def text_of(value: bytes | str) -> str:
    r"""A header's text: UTF-8 where it is that, else Latin-1, which every byte is.

    >>> text_of("Kühe".encode()), text_of(b"K\xfche")
    ('Kühe', 'Kühe')
    """
    if isinstance(value, str):
        return value
    try:
        return value.decode()
    except UnicodeDecodeError:
        return value.decode("latin-1")
