"""Which of its own fields is meant, where an error names one that the client's shape calls otherwise?

| a chat completion has     | OpenAI's Responses          | Anthropic's Messages             |
|---------------------------|-----------------------------|----------------------------------|
| `messages`                | `input`                     | `messages`                       |
| `max_tokens`, `max_completion_tokens` | `max_output_tokens` | `max_tokens`                 |
| `response_format`         | `text.format`               | `output_config.format`           |
| `reasoning_effort`        | `reasoning.effort`          | `thinking`                       |
| `verbosity`               | `text.verbosity`            | –                                |
| `logprobs`                | `include`                   | –                                |
| `stop`                    | –                           | `stop_sequences`                 |
| `parallel_tool_calls`     | `parallel_tool_calls`       | `tool_choice`                    |

The table is for sentences about the chat form: the model server's, and the gateway's own behind the translation.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from upswing.gateway.core.shapes import ClientShape

_CLIENT_FIELDS: Mapping[ClientShape, Mapping[str, str]] = {
    ClientShape.RESPONSES: {
        "messages": "input",
        "max_tokens": "max_output_tokens",
        "max_completion_tokens": "max_output_tokens",
        "response_format": "text.format",
        "reasoning_effort": "reasoning.effort",
        "verbosity": "text.verbosity",
        "logprobs": "include",
    },
    ClientShape.MESSAGES: {
        "max_completion_tokens": "max_tokens",
        "response_format": "output_config.format",
        "reasoning_effort": "thinking",
        "stop": "stop_sequences",
        "parallel_tool_calls": "tool_choice",
    },
}
_NAMED = re.compile(r"(?P<before>\$\.|[`'\"])(?P<name>[a-z_]{2,40})(?P<after>(?=[.\[`'\"]|\W|$))")
_FIELD = re.compile(
    r"\$\.(?P<path>[A-Za-z_][\w.\[\]…]*)|^`(?P<first>[a-z_][\w.]*)`|required field `(?P<missing>[a-z_]\w*)`"
)


def client_sentence(shape: ClientShape, sentence: str) -> str:
    """A sentence about a request's chat form, with the fields that its client knows.

    >>> client_sentence(ClientShape.RESPONSES, "Expected `int` >= 1 - at `$.max_tokens`.")
    'Expected `int` >= 1 - at `$.max_output_tokens`.'
    >>> client_sentence(ClientShape.RESPONSES, "`response_format` with a pattern; no messages.")
    '`text.format` with a pattern; no messages.'
    >>> client_sentence(ClientShape.CHAT, "`messages` is empty.")
    '`messages` is empty.'
    """
    fields = _CLIENT_FIELDS.get(shape)
    if not fields:
        return sentence
    return _NAMED.sub(
        lambda found: found["before"] + fields.get(found["name"], found["name"]), sentence
    )


def client_field(shape: ClientShape, field: str | None) -> str | None:
    """The same for a field alone, or a path that begins with one.

    >>> client_field(ClientShape.RESPONSES, "messages[0].role"), client_field(ClientShape.MESSAGES, "stop")
    ('input[0].role', 'stop_sequences')
    """
    if not field:
        return None
    name = re.split(r"[.\[]", field, maxsplit=1)[0]
    return _CLIENT_FIELDS.get(shape, {}).get(name, name) + field[len(name) :]


def field_in(sentence: str) -> str | None:
    """The field that a refusal of ours is about: what OpenAI's clients read as `param`.

    >>> field_in("Expected `bool`, got `str` - at `$.stream`."), field_in("`input` is a text or a list of items.")
    ('stream', 'input')
    >>> field_in("Object missing required field `messages`."), field_in("Too many requests.")
    ('messages', None)
    """
    found = _FIELD.search(sentence)
    return (found["path"] or found["first"] or found["missing"]) if found else None
