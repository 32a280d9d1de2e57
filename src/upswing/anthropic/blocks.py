"""Content blocks of Anthropic's Messages as chat messages: which message does each block go to?"""

from __future__ import annotations

from typing import Any

from msgspec import Raw, Struct

from upswing.openai.translation import (
    ABSENT,
    ChatMessages,
    Fields,
    given,
    is_list,
    is_text,
    joined_text,
    read_list,
    read_part,
    refuse,
    text_of_json,
)

_THOUGHTS = frozenset({"thinking", "redacted_thinking"})


class _Source(Struct):
    type: str = ""
    media_type: str = ""
    data: str = ""
    url: Raw = ABSENT


class _Block(Struct):
    type: str
    text: Raw = ABSENT
    id: Raw = ABSENT
    name: Raw = ABSENT
    input: Raw = ABSENT
    tool_use_id: Raw = ABSENT
    content: Raw = ABSENT
    is_error: bool | None = None
    source: Raw = ABSENT
    title: Raw = ABSENT


def text_blocks(raw: Raw, where: str, between: str = "") -> Raw:
    """The text of blocks that are nothing else.

    >>> bytes(text_blocks(Raw(b'[{"type":"text","text":"a"},{"type":"text","text":"b"}]'), "system", " "))
    b'"a b"'
    """
    blocks = [read_part(each, _Block, where) for each in read_list(raw, where)]
    if any(block.type != "text" for block in blocks):
        raise refuse(f"`{where}` has blocks of type `text`, and no others.")
    return joined_text([block.text for block in blocks], where, between)


def assistant_blocks(messages: ChatMessages, content: Raw) -> None:
    """An assistant's turn: its words, then its calls."""
    if is_text(content):
        messages.add("assistant", content)
        return
    texts: list[Raw] = []
    calls: list[_Block] = []
    for raw in _blocks(content):
        block: _Block = read_part(raw, _Block, "messages")
        match block.type:
            case "text":
                texts.append(block.text)
            case "tool_use":
                calls.append(block)
            case each if each not in _THOUGHTS:
                messages.needs_native(f"a block of type `{each[:60]}`")
            case _:
                pass  # what it thought is nobody's business in another shape
    messages.add("assistant", joined_text(texts, "messages") if texts else None)
    for call in calls:
        if not is_text(call.id) or not is_text(call.name) or not given(call.input):
            raise refuse("A `tool_use` has an `id`, a `name` and an `input`.")
        messages.add_call(call.id, call.name, text_of_json(call.input))


def add_user_blocks(messages: ChatMessages, content: Raw) -> None:
    """A user's turn: results of tools are messages of their own, in their place among the rest."""
    if is_text(content):
        messages.add("user", content)
        return
    rest: list[Raw] = []
    for raw in _blocks(content):
        block: _Block = read_part(raw, _Block, "messages")
        if block.type != "tool_result":
            rest.append(raw)
            continue
        _add_words(messages, rest)
        rest = []
        if not is_text(block.tool_use_id):
            raise refuse("A `tool_result` has a `tool_use_id`.")
        messages.add_result(block.tool_use_id, _result_content(messages, block))
    _add_words(messages, rest)


def _blocks(content: Raw) -> list[Raw]:
    if not is_list(content):
        raise refuse("The `content` of a message is a text or a list of blocks.")
    return read_list(content, "content")


def _add_words(messages: ChatMessages, blocks: list[Raw]) -> None:
    if blocks:
        messages.add("user", _chat_content(messages, blocks))


def _result_content(messages: ChatMessages, block: _Block) -> Any:
    """What a tool returned; that it failed is said in words, for chat has no mark for it."""
    failed = "Error: " if block.is_error else ""
    if not given(block.content):
        return failed.strip()
    content = block.content
    made = content if is_text(content) else _chat_content(messages, _blocks(content))
    if not failed or isinstance(made, list):
        return made
    words = read_part(made, str, "content")
    return words if words.lower().startswith("error") else f"{failed}{words}"


def _chat_content(messages: ChatMessages, blocks: list[Raw]) -> Any:
    """A text, or parts where there is more than text."""
    read: list[_Block] = [read_part(raw, _Block, "content") for raw in blocks]
    if all(block.type == "text" for block in read):
        return joined_text([block.text for block in read], "content")
    return [_chat_part(messages, block, raw) for block, raw in zip(read, blocks, strict=True)]


def _chat_part(messages: ChatMessages, block: _Block, raw: Raw) -> Any:
    if block.type == "text" and is_text(block.text):
        return {"type": "text", "text": block.text}
    source: _Source = (
        read_part(block.source, _Source, "source") if given(block.source) else _Source()
    )
    data = f"data:{source.media_type};base64,{source.data}"
    match block.type, source.type:
        case "image", "base64":
            return {"type": "image_url", "image_url": {"url": data}}
        case "image", "url" if is_text(source.url):
            return {"type": "image_url", "image_url": {"url": source.url}}
        case "document", "text":
            return {"type": "text", "text": source.data}
        case "document", "base64":
            file: Fields = {"file_data": data}
            named = {"filename": block.title} if is_text(block.title) else {}
            return {"type": "file", "file": file | named}
        case kind, _:
            messages.needs_native(
                f"a block of type `{kind[:60]}` that is stored elsewhere or unknown"
            )
            return raw
