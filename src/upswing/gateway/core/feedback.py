"""What does this feedback on an answer mean? TensorZero's shape or ours, as feedback.v1.

| TensorZero's `metric_name` | `value`               | feedback.v1                              |
|----------------------------|-----------------------|------------------------------------------|
| `comment`                  | text                  | `comment`                                |
| `demonstration`            | text, or the answer   | `demonstration`, the answer as its comment |
| `rating`, `stars`          | 1 to 5                | `rating`                                 |
| any                        | true, false           | `thumbs_up`, `thumbs_down`               |
| any                        | 0 to 1                | `rating`, from 1 at 0 to 5 at 1          |

The name and the value stay in `metadata`. `dryrun` is answered and keeps nothing. An `inference_id` of ours names its trajectory; one that
is a server's own goes on as it is.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import datetime
from typing import Any

import msgspec

from upswing.contracts import Feedback, from_builtins
from upswing.contracts.feedback import SHAPE
from upswing.errors import Reason, Rejected
from upswing.gateway.core.episodes import header_text
from upswing.openai.requests import unreadable_body
from upswing.redact.identity import shorten_identity

Tree = dict[str, Any]
_TENSORZERO_SHAPE = "Feedback in TensorZero's shape has `metric_name`, `value`, and `episode_id` or `inference_id`; or in ours:"
_STAR_METRICS = frozenset({"rating", "stars"})
_INFERENCE_ID = re.compile(r"([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})\.\d{1,9}")


def read_feedback(
    body: bytes, *, feedback_id: str, now: datetime, user_header: bytes | None = None
) -> tuple[Feedback, bool]:
    """The feedback in `body` and whether it is a trial (`dryrun`), or `Rejected` with what is wrong with it.

    `user_header` is whom the request's header names.
    """
    try:
        tree = msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise unreadable_body(error) from None
    if not isinstance(tree, dict):
        raise Rejected(Reason.SCHEMA, "Feedback is a JSON object.")
    if not {"metric_name", "type"} & tree.keys():
        raise Rejected(Reason.SCHEMA, f"{_TENSORZERO_SHAPE} {SHAPE}")
    dry_run = tree.pop("dryrun", None) or False
    if not isinstance(dry_run, bool):
        raise Rejected(Reason.SCHEMA, "`dryrun` is true or false.")
    generated = {
        "feedback_id": feedback_id,
        "timestamp": now.isoformat(),
        **_user_field(tree, user_header),
    }
    fields = _from_tensorzero(tree) if "metric_name" in tree else _resolve_inference(tree)
    return from_builtins(
        Feedback, fields | {k: v for k, v in generated.items() if k not in fields}
    ), dry_run


def _user_field(tree: Tree, header: bytes | None) -> Tree:
    """Whose feedback it is: `user_id`, `user` or the header `x-user-id`, which may not differ."""
    given = [tree.pop(name, None) for name in ("user_id", "user")]
    if not all(each is None or isinstance(each, str) for each in given):
        raise Rejected(Reason.SCHEMA, "`user_id` is text.")
    named = {each for each in (*given, header_text(header or b"")) if each}
    if len(named) > 1:
        raise Rejected(Reason.SCHEMA, "`user_id`, `user` and `x-user-id` name different users.")
    return {"user_id": shorten_identity("user", named.pop())} if named else {}


def trajectory_of_inference(inference_id: str) -> str | None:
    """The trajectory that an id of ours names.

    >>> trajectory_of_inference("0d4c7a52-7f2e-4c39-9a4e-6f8d2f0b8a11.3")
    '0d4c7a52-7f2e-4c39-9a4e-6f8d2f0b8a11'
    >>> trajectory_of_inference("chatcmpl-123") is None
    True
    """
    found = _INFERENCE_ID.fullmatch(inference_id)
    return found[1] if found else None


def _from_tensorzero(tree: Mapping[str, Any]) -> Tree:
    name, value = tree["metric_name"], tree.get("value")
    if not isinstance(name, str) or not name:
        raise Rejected(Reason.SCHEMA, "`metric_name` is text that is not empty.")
    metadata = {"metric_name": name, "value": value}
    if tags := tree.get("tags"):
        metadata["tags"] = tags
    target = {key: tree[key] for key in ("episode_id", "inference_id") if tree.get(key)}
    return _resolve_inference(
        {**target, **_feedback_fields(name, value), "source": "gateway", "metadata": metadata}
    )


def _feedback_fields(name: str, value: Any) -> Tree:
    match value:
        case str() if name == "comment":
            return {"type": "comment", "comment": value}
        case _ if name == "demonstration" and value is not None:
            comment = value if isinstance(value, str) else msgspec.json.encode(value).decode()
            return {"type": "demonstration", "comment": comment}
        case bool():
            return {"type": "thumbs_up" if value else "thumbs_down"}
        case int() | float() if name in _STAR_METRICS and value in {1, 2, 3, 4, 5}:
            return {"type": "rating", "rating": int(value)}
        case int() | float() if name not in _STAR_METRICS and 0 <= value <= 1:
            return {"type": "rating", "rating": 1 + round(4 * value)}
        case _:
            raise Rejected(
                Reason.SCHEMA,
                "`value` is true or false, a number from 0 to 1, 1 to 5 stars for `rating`, "
                "or text for `comment` and `demonstration`.",
            )


def _resolve_inference(tree: Mapping[str, Any]) -> Tree:
    """The inference's trajectory in the place of the inference, where we know it."""
    resolved = dict(tree)
    inference = resolved.get("inference_id")
    if isinstance(inference, str) and (found := trajectory_of_inference(inference)):
        del resolved["inference_id"]
        resolved["trajectory_id"] = found
    return resolved
