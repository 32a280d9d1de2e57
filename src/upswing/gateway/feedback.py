"""What does this word on an answer mean? TensorZero's shape or ours, as feedback.v1.

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
from upswing.gateway.episodes import text_of
from upswing.gateway.problems import unreadable

Tree = dict[str, Any]
_THEIRS = "Feedback in TensorZero's shape has `metric_name`, `value`, and `episode_id` or `inference_id`; or in ours:"
_STARS = frozenset({"rating", "stars"})
_INFERENCE = re.compile(r"([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})\.\d{1,9}")


def read_feedback(
    body: bytes, *, feedback_id: str, now: datetime, user: bytes | None = None
) -> tuple[Feedback, bool]:
    """The feedback in `body` and whether it is a trial (`dryrun`), or `Rejected` with what is wrong with it.

    `user` is whom the request's header names.
    """
    try:
        tree = msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise unreadable(error) from None
    if not isinstance(tree, dict):
        raise Rejected(Reason.SCHEMA, "Feedback is a JSON object.")
    if not {"metric_name", "type"} & tree.keys():
        raise Rejected(Reason.SCHEMA, f"{_THEIRS} {SHAPE}")
    dry = tree.pop("dryrun", None) or False
    if not isinstance(dry, bool):
        raise Rejected(Reason.SCHEMA, "`dryrun` is true or false.")
    made = {"feedback_id": feedback_id, "timestamp": now.isoformat(), **_spoken_by(tree, user)}
    meant = _translated(tree) if "metric_name" in tree else _aimed(tree)
    return from_builtins(Feedback, meant | {k: v for k, v in made.items() if k not in meant}), dry


def _spoken_by(tree: Tree, header: bytes | None) -> Tree:
    """Whose word it is: `user_id`, `user` or the header `x-user-id`, which may not differ."""
    told = [tree.pop(name, None) for name in ("user_id", "user")]
    if not all(each is None or isinstance(each, str) for each in told):
        raise Rejected(Reason.SCHEMA, "`user_id` is text.")
    named = {each for each in (*told, text_of(header or b"")) if each}
    if len(named) > 1:
        raise Rejected(Reason.SCHEMA, "`user_id`, `user` and `x-user-id` name different users.")
    return {"user_id": named.pop()} if named else {}


def trajectory_of_inference(inference_id: str) -> str | None:
    """The trajectory that an id of ours names.

    >>> trajectory_of_inference("0d4c7a52-7f2e-4c39-9a4e-6f8d2f0b8a11.3")
    '0d4c7a52-7f2e-4c39-9a4e-6f8d2f0b8a11'
    >>> trajectory_of_inference("chatcmpl-123") is None
    True
    """
    found = _INFERENCE.fullmatch(inference_id)
    return found[1] if found else None


def _translated(tree: Mapping[str, Any]) -> Tree:
    name, value = tree["metric_name"], tree.get("value")
    if not isinstance(name, str) or not name:
        raise Rejected(Reason.SCHEMA, "`metric_name` is a word.")
    about = {"metric_name": name, "value": value}
    if tags := tree.get("tags"):
        about["tags"] = tags
    target = {key: tree[key] for key in ("episode_id", "inference_id") if tree.get(key)}
    return _aimed({**target, **_meaning(name, value), "source": "gateway", "metadata": about})


def _meaning(name: str, value: Any) -> Tree:
    match value:
        case str() if name == "comment":
            return {"type": "comment", "comment": value}
        case _ if name == "demonstration" and value is not None:
            told = value if isinstance(value, str) else msgspec.json.encode(value).decode()
            return {"type": "demonstration", "comment": told}
        case bool():
            return {"type": "thumbs_up" if value else "thumbs_down"}
        case int() | float() if name in _STARS and value in {1, 2, 3, 4, 5}:
            return {"type": "rating", "rating": int(value)}
        case int() | float() if name not in _STARS and 0 <= value <= 1:
            return {"type": "rating", "rating": 1 + round(4 * value)}
        case _:
            raise Rejected(
                Reason.SCHEMA,
                "`value` is true or false, a number from 0 to 1, 1 to 5 stars for `rating`, "
                "or text for `comment` and `demonstration`.",
            )


def _aimed(tree: Mapping[str, Any]) -> Tree:
    """The inference's trajectory in the place of the inference, where we know it."""
    told = dict(tree)
    inference = told.get("inference_id")
    if isinstance(inference, str) and (found := trajectory_of_inference(inference)):
        del told["inference_id"]
        told["trajectory_id"] = found
    return told
