"""What did Agent Zero show, think and do? Its values, in the shapes of a trajectory.

| in Agent Zero                                   | in a turn                                             |
|-------------------------------------------------|-------------------------------------------------------|
| the user's message, at first or in between      | `observation`, a `user_message`                       |
| system prompt and history before the first turn | `observation.content.messages`, before that message   |
| what a tool returned                            | `result`, and the next `observation`: `tool_result`   |
| what a subordinate answered                     | the same: `subordinate_response`                      |
| a warning of its framework                      | the next `observation`, a `system_message`            |
| `thoughts` of the answer, and its reasoning     | `thought_process`                                     |
| the tool `response`                             | `action`, a `response`                                |
| the tool `call_subordinate`                     | `action`, a `subordinate_call`                        |
| a tool that changes the memory                  | `action`, a `memory_update`                           |
| any other tool                                  | `action`, a `tool_call`                               |
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from upswing.contracts.steps import text_or_json
from upswing.sdk.shapes import plain

Tree = dict[str, Any]
RESPONSE, SUBORDINATE = "response", "call_subordinate"
MEMORY_TOOLS = frozenset({"memory_save", "memory_delete", "memory_forget", "behaviour_adjustment"})
"""Tools that change what an agent remembers; `memory_load` only reads."""
UNKNOWN_TOOL = "Unknown"
"""The class that stands in for a tool that does not exist."""
CONTEXT_CHARS = 24_000
"""Characters of the chat before a request that go into its first turn, the newest first: a long chat would else be
stored once with each of its messages."""
_ERROR_PREFIXES = ("error", "traceback (most recent call last)", '{"error"')


def message_text(content: Any) -> str:
    r"""What the user wrote; Agent Zero keeps a message as text, or as an object with attachments.

    >>> message_text({"user_message": "Add 1 and 2.", "attachments": []}), message_text("Hello")
    ('Add 1 and 2.', 'Hello')
    >>> message_text({"user_intervention": "No, 3."}), message_text([{"type": "text", "text": "a"}, "b"])
    ('No, 3.', 'a\nb')
    """
    match content:
        case None:
            return ""
        case str():
            return content
        case Mapping():
            for key in ("user_message", "user_intervention", "message", "text", "content"):
                if content.get(key):
                    return message_text(content[key])
            return text_or_json(plain(content))
        case list() | tuple():
            return "\n".join(filter(None, map(message_text, content)))
        case _:
            return text_or_json(plain(content))


def attachments_of(content: Any) -> list[str]:
    """Names of what was sent with a message.

    >>> attachments_of({"user_message": "See.", "attachments": ["/a/b.png"]}), attachments_of("See.")
    (['b.png'], [])
    """
    found = content.get("attachments") if isinstance(content, Mapping) else None
    names = found if isinstance(found, list | tuple) else []
    return [str(each).replace("\\", "/").rpartition("/")[2] for each in names]


def thoughts_of(raw: str, reasoning: str = "") -> list[str]:
    """The model's reasoning, then the `thoughts` of its answer, where that is JSON that can be read.

    >>> thoughts_of('{"thoughts": ["First.", "Then."], "tool_name": "response"}', "Hm.")
    ['Hm.', 'First.', 'Then.']
    >>> thoughts_of("no JSON at all"), thoughts_of('{"thoughts": "One."}')
    ([], ['One.'])
    """
    had = _answer_object(raw).get("thoughts")
    several = had if isinstance(had, list) else [had] if had else []
    spoken = [text_or_json(plain(each)) for each in several if each]
    return [reasoning, *spoken] if reasoning.strip() else spoken


def _answer_object(raw: str) -> Tree:
    start, end = raw.find("{"), raw.rfind("}")
    if not 0 <= start < end:
        return {}
    try:
        read = json.loads(raw[start : end + 1], strict=False)  # models write line breaks as such
    except (ValueError, RecursionError):
        return {}
    return read if isinstance(read, dict) else {}


def action_of(tool: str, arguments: Any, raw: str) -> Tree:
    """What the agent did, in the model's own words.

    >>> action_of("response", {"text": "3"}, "raw"), action_of("", None, "raw")
    ({'type': 'response', 'raw_response': 'raw'}, {'type': 'response', 'raw_response': 'raw'})
    >>> action_of("memory_save", {"text": "x"}, "raw")["type"], action_of("a:b", {}, "raw")["tool_name"]
    ('memory_update', 'a:b')
    """
    said = {"raw_response": raw} if raw else {}
    name = tool.partition(":")[0]
    if name in {"", RESPONSE}:
        return {"type": "response", **said}
    kind = (
        "subordinate_call"
        if name == SUBORDINATE
        else "memory_update"
        if name in MEMORY_TOOLS
        else "tool_call"
    )
    given = plain(arguments)
    values = given if isinstance(given, dict) else {"arguments": given}
    return {"type": kind, "tool_name": tool, "tool_args": values, **said}


def looks_failed(output: str) -> bool:
    r"""Whether a tool's text is that of an error; Agent Zero's tools say it in no other way.

    >>> looks_failed("Traceback (most recent call last):\n …"), looks_failed("No error was found.")
    (True, False)
    """
    return output.lstrip()[:40].lower().startswith(_ERROR_PREFIXES)


def prompt_messages(system: Sequence[Any], history: Sequence[Any], request: str) -> list[Tree]:
    """What the model reads before it acts first: system prompt, the chat so far, the request.

    `history` is Agent Zero's own list of `{"ai": bool, "content": …}`, whose last one is the request.

    >>> earlier = [{"ai": True, "content": "Hello!"}, {"ai": False, "content": {"user_message": "Add."}}]
    >>> [(each["role"], each["content"]) for each in prompt_messages(["Be kind."], earlier, "Add.")]
    [('system', 'Be kind.'), ('assistant', 'Hello!'), ('user', 'Add.')]
    """
    before = list(history)
    if before and isinstance(before[-1], Mapping) and not before[-1].get("ai"):
        before.pop()
    kept: list[Tree] = []
    room = CONTEXT_CHARS
    for each in reversed(before):
        message = _history_message(each)
        room -= len(message["content"])
        if room < 0:
            break
        kept.insert(0, message)
    spoken = "\n\n".join(text_or_json(plain(part)) for part in system if part)
    opening = [{"role": "system", "content": spoken}] if spoken else []
    return [*opening, *kept, {"role": "user", "content": request}]


def _history_message(entry: Any) -> Tree:
    if not isinstance(entry, Mapping):
        return {"role": "user", "content": text_or_json(plain(entry))}
    content = entry.get("content")
    text = content if isinstance(content, str) else text_or_json(plain(content))
    return {"role": "assistant" if entry.get("ai") else "user", "content": text}


def first_observation(messages: Sequence[Tree], request: str, attachments: Sequence[str]) -> Tree:
    """The request, with what stood before it where there was anything.

    >>> first_observation([{"role": "user", "content": "Add."}], "Add.", [])
    {'type': 'user_message', 'content': 'Add.'}
    """
    more = {"attachments": list(attachments)} if attachments else {}
    if len(messages) > 1:
        return {"type": "user_message", "content": {"messages": list(messages), **more}}
    content: str | Tree = {"text": request, **more} if more else request
    return {"type": "user_message", "content": content}
