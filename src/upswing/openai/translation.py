"""A request of another shape as a chat completion's: what do all shapes have in common there?

Texts pass as the bytes they came in, so a conversation that goes on begins with the same bytes as before,
and a long one costs no more than its length.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import islice
from typing import Any, TypeVar

import msgspec
from msgspec import Raw, Struct

from upswing.contracts.typed import from_json, json_decoder
from upswing.errors import Reason, Rejected
from upswing.openai.requests import unreadable_body

ABSENT = Raw(b"")
NULL = b"null"
MAX_TOKENS = 400_000
"""Texts, commas and opening brackets of JSON in a conversation of another shape: each may become an object of ours while
it is translated. 50,000 short messages have as many; more is refused."""
MAX_OTHER_BYTES = 1024 * 1024
"""Of everything beside the conversation: tools, formats, metadata. More is refused."""
Fields = dict[str, Any]
T = TypeVar("T", bound=Struct)
_TOKEN = re.compile(rb'"(?:[^"\\]++|\\.)*+"|[\[{,]', re.DOTALL)
_FIELDS = json_decoder(dict[str, Raw])
_LIST = json_decoder(list[Raw])
_ENCODER = msgspec.json.Encoder()


@dataclass(frozen=True, slots=True)
class ChatTranslation:
    """A request of another shape, as a chat completion's."""

    body: bytes
    native_only: str = ""
    """What a chat completion cannot say of it: only a server that speaks the shape itself can answer. Empty: nothing."""


class ChatMessages:
    """Chat messages in the making: calls of tools join the answer that they belong to."""

    def __init__(self) -> None:
        self.made: list[Fields] = []
        self.native_only = ""

    def add(self, role: str, content: Any) -> None:
        last = self.made[-1] if self.made else None
        if role == "assistant" and last and last.get("tool_calls") and last["content"] is None:
            last["content"] = content
        else:
            self.made.append({"role": role, "content": content})

    def add_call(self, call_id: Any, name: Any, arguments: Any) -> None:
        if not self.made or self.made[-1]["role"] != "assistant":
            self.made.append({"role": "assistant", "content": None})
        function = {"name": name, "arguments": arguments}
        call = {"id": call_id, "type": "function", "function": function}
        self.made[-1].setdefault("tool_calls", []).append(call)

    def add_result(self, call_id: Any, content: Any) -> None:
        self.made.append({"role": "tool", "tool_call_id": call_id, "content": content})

    def needs_native(self, what: str) -> None:
        self.native_only = self.native_only or what


def read_body(body: bytes, kind: type[T]) -> T:
    """The fields of a request that its shape knows, or `Rejected` with what is wrong."""
    found: T = _read(body, kind, "")
    return found


def read_part(raw: Raw, kind: Any, where: str) -> Any:
    """A part of a request as this type; `where` names its field."""
    return _read(raw, kind, f" - in `{where}`")


def _read(raw: Raw | bytes, kind: Any, where: str) -> Any:
    try:
        return from_json(memoryview(raw), kind)
    except msgspec.ValidationError as error:
        raise Rejected(Reason.SCHEMA, f"{error}{where}.") from None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise unreadable_body(error) from None


def check_size(body: bytes, conversation: tuple[tuple[str, Raw], ...]) -> None:
    """`Rejected` when there is too much beside the conversation, or too many values in it."""
    beside = len(body) - sum(len(raw) for _, raw in conversation)
    if beside > MAX_OTHER_BYTES:
        names = " and ".join(f"`{name}`" for name, _ in conversation)
        message = f"The fields beside {names} have {beside} bytes, and {MAX_OTHER_BYTES} are taken."
        raise Rejected(Reason.TOO_LARGE, message)
    for name, raw in conversation:
        if has_more_tokens(bytes(raw), MAX_TOKENS):
            message = f"`{name}` has too many values ({MAX_TOKENS} texts, lists and objects"
            raise Rejected(Reason.TOO_LARGE, f"{message} are taken): send fewer, larger ones.")


def has_more_tokens(raw: bytes, limit: int) -> bool:
    """Has JSON text more texts, commas and opening brackets than that? What stands in a text does not count.

    >>> has_more_tokens(b'[{"a": "{{{,,,"}]', 4), has_more_tokens(b'[{"a": "{{{,,,"}]', 3)
    (False, True)
    """
    at_most = raw.count(b'"') // 2 + sum(map(raw.count, (b",", b"{", b"[")))
    if at_most <= limit:
        return False
    return next(islice(_TOKEN.finditer(raw), limit, None), None) is not None


def other_fields(body: bytes, known: frozenset[str]) -> Fields:
    """The fields that chat completions have under the same name, or that nobody here knows; not those that are null."""
    fields = _FIELDS.decode(body)
    return {name: raw for name, raw in fields.items() if name not in known and given(raw)}


def given(raw: Raw) -> bool:
    """Is a value given, and not null?

    >>> given(Raw(b"null")), given(Raw(b"")), given(Raw(b"false"))
    (False, False, True)
    """
    size = len(raw)
    return size > len(NULL) or (size > 0 and bytes(raw) != NULL)


def is_text(raw: Raw) -> bool:
    return bytes(memoryview(raw)[:1]) == b'"'


def is_list(raw: Raw) -> bool:
    return bytes(memoryview(raw)[:1]) == b"["


def read_list(raw: Raw, where: str) -> list[Raw]:
    """The elements of a list, unread."""
    try:
        return _LIST.decode(memoryview(raw))
    except msgspec.ValidationError:
        raise Rejected(Reason.SCHEMA, f"`{where}` is a list.") from None
    except (msgspec.DecodeError, RecursionError) as error:
        raise unreadable_body(error) from None


def joined_text(texts: list[Raw], where: str, between: str = "") -> Raw:
    """Several texts as one, or none as an empty one; a single one stays as it is.

    >>> bytes(joined_text([Raw(b'"a"'), Raw(b'"b"')], "content")), bytes(joined_text([], "content"))
    (b'"ab"', b'""')
    """
    if len(texts) == 1:
        if not is_text(texts[0]):
            raise Rejected(Reason.SCHEMA, f"A text in `{where}` is no text.")
        return texts[0]
    words = [read_part(text, str, where) for text in texts]
    return Raw(_ENCODER.encode(between.join(words)))


def text_of_json(raw: Raw) -> Raw:
    r"""A JSON value as the text that it is, or `Rejected` when it is not UTF-8.

    >>> bytes(text_of_json(Raw(b'{"a": 1}')))
    b'"{\\"a\\": 1}"'
    """
    try:
        return Raw(_ENCODER.encode(bytes(raw).decode()))
    except UnicodeDecodeError as error:
        raise unreadable_body(error) from None


def refuse(detail: str) -> Rejected:
    return Rejected(Reason.SCHEMA, detail)


def encode_fields(fields: Fields) -> bytes:
    return _ENCODER.encode(fields)
