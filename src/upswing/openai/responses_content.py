"""The content of a Responses item as a chat message's: a text, or parts where there is more than text."""

from __future__ import annotations

from typing import Any

from msgspec import Raw, Struct

from upswing.openai.translation import (
    ABSENT,
    Fields,
    given,
    is_list,
    is_text,
    joined_text,
    read_list,
    read_part,
    refuse,
)

_TEXTS = frozenset({"input_text", "output_text", "text", "summary_text"})


class FileReference(Exception):
    """A part that chat completions have no form for, or that lies at a server of somebody else's."""


class _Part(Struct):
    type: str
    text: Raw = ABSENT
    refusal: Raw = ABSENT
    image_url: Raw = ABSENT
    detail: Raw = ABSENT
    file_data: Raw = ABSENT
    filename: Raw = ABSENT
    input_audio: Raw = ABSENT


def chat_content(raw: Raw) -> Any:
    """The content, for a chat message; `FileReference` when a chat message cannot have it.

    >>> bytes(chat_content(Raw(b'[{"type":"input_text","text":"a"},{"type":"output_text","text":"b"}]')))
    b'"ab"'
    >>> (part,) = chat_content(Raw(b'[{"type":"input_image","image_url":"https://h/a.png"}]'))
    >>> part["type"], bytes(part["image_url"]["url"])
    ('image_url', b'"https://h/a.png"')
    """
    if not given(raw):
        return None
    if is_text(raw):
        return raw
    if not is_list(raw):
        raise refuse("`content` and `output` are texts or lists of parts.")
    parts: list[_Part] = [read_part(each, _Part, "content") for each in read_list(raw, "content")]
    texts = [_text(part) for part in parts if part.type in _TEXTS or part.type == "refusal"]
    if len(texts) == len(parts):
        return joined_text(texts, "content")
    return [_chat_part(part) for part in parts]


def _text(part: _Part) -> Raw:
    return part.refusal if part.type == "refusal" else part.text


def _chat_part(part: _Part) -> Fields:
    match part.type:
        case "input_image" if is_text(part.image_url):
            image = {"url": part.image_url}
            return {
                "type": "image_url",
                "image_url": image | ({"detail": part.detail} if given(part.detail) else {}),
            }
        case "input_file" if is_text(part.file_data):
            file = {"file_data": part.file_data}
            named = {"filename": part.filename} if is_text(part.filename) else {}
            return {"type": "file", "file": file | named}
        case "input_audio" if given(part.input_audio):
            return {"type": "input_audio", "input_audio": part.input_audio}
        case "refusal" if is_text(part.refusal):
            return {"type": "text", "text": part.refusal}
        case each if each in _TEXTS and is_text(part.text):
            return {"type": "text", "text": part.text}
        case other:
            raise FileReference(
                f"a part of type `{other[:60]}` that is stored elsewhere or unknown"
            )
