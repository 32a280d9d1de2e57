"""What does a producer in another language read? JSON Schema 2020-12 and topics.json, from the types."""

from __future__ import annotations

import re
from typing import Any

import msgspec

from upswing.contracts.dead import DeadLetter
from upswing.contracts.descriptions import add_field_descriptions
from upswing.contracts.examples import EXAMPLES
from upswing.contracts.feedback import FEEDBACK_RULES, Feedback
from upswing.contracts.topics import ROLES, STREAMS, TOPICS
from upswing.contracts.wire import Message

DIALECT = "https://json-schema.org/draft/2020-12/schema"


def schema_name(message: type[Message]) -> str:
    """The file that holds this message's schema: `training.request.v1.schema.json`."""
    subject = next(topic.subject for topic in TOPICS if topic.message is message)
    stem = subject.removeprefix("agent.rl.").replace(".>", ".v1")
    return f"{stem}.schema.json"


def json_schema_of(message: type[Message]) -> dict[str, Any]:
    """The JSON Schema of one message, with descriptions and an example."""
    known = tuple(message.OPEN.values())
    (root, *_), parts = msgspec.json.schema_components(
        (message, *known), ref_template="#/$defs/{name}"
    )
    parts = {name: add_field_descriptions(name, part) for name, part in parts.items()}
    body = dict(parts.pop(root["$ref"].rpartition("/")[2]))
    for field, part in message.OPEN.items():
        told = {"description": body["properties"][field]["description"]}
        known_keys = {**told, "$ref": f"#/$defs/{part.__name__}"}
        body["properties"] = {**body["properties"], field: known_keys}
    if message is Feedback:
        body |= FEEDBACK_RULES
    head = {
        "$schema": DIALECT,
        "$id": f"urn:upswing:{schema_name(message).removesuffix('.schema.json')}",
    }
    made: dict[str, Any] = _tidy_descriptions(
        {**head, **body, "examples": [EXAMPLES[message]], "$defs": parts}
    )
    return made


def topic_registry() -> dict[str, Any]:
    """The registry: subject, schema, stream, retention, publishers, subscribers."""
    streams = {stream.name: stream for stream in STREAMS}
    return {
        "roles": list(ROLES),
        "topics": [
            {
                "subject": topic.subject,
                "about": topic.about,
                "schema": schema_name(topic.message) if topic.message else None,
                "stream": topic.stream,
                "retention": _retention_of_stream(streams[topic.stream]) if topic.stream else None,
                "publishers": list(topic.publishers),
                "subscribers": list(topic.subscribers),
            }
            for topic in TOPICS
        ],
    }


def generated_files() -> dict[str, bytes]:
    """Every generated file of `contracts/`, by name."""
    made: dict[str, Any] = {
        schema_name(topic.message): json_schema_of(topic.message)
        for topic in TOPICS
        if topic.message
    }
    made["topics.json"] = topic_registry()
    return {
        name: msgspec.json.format(msgspec.json.encode(body), indent=2) + b"\n"
        for name, body in made.items()
    }


def _retention_of_stream(stream: Any) -> dict[str, Any]:
    return {
        "max_age_days": stream.max_age.days,
        "max_msgs": stream.max_msgs,
        "storage": "file",
    }


def _tidy_descriptions(tree: Any) -> Any:
    """Docstrings in one line; a field of an open object is described by its type."""
    match tree:
        case dict():
            return {
                key: re.sub(r"\s+", " ", value)
                if key == "description" and isinstance(value, str)
                else _tidy_descriptions(value)
                for key, value in tree.items()
            }
        case list():
            return [_tidy_descriptions(item) for item in tree]
        case _:
            return tree


__all__ = [
    "DIALECT",
    "DeadLetter",
    "generated_files",
    "json_schema_of",
    "schema_name",
    "topic_registry",
]
