"""What did the user say of it, perhaps days later? feedback.v1."""

from __future__ import annotations

from typing import Annotated, Literal, get_args

from msgspec import UNSET, Meta, UnsetType

from upswing.contracts.wire import Id, Json, Message, Timestamp

FeedbackType = Literal[
    "thumbs_up", "thumbs_down", "rating", "correction", "abandoned", "comment", "demonstration"
]
NEEDS = {"rating": "rating", "comment": "comment", "demonstration": "comment"}
"""Type → the field without which it says nothing; a demonstration's comment is what would have been
right."""
TARGETS = ("trajectory_id", "episode_id", "inference_id")
SHAPE = (
    "Feedback names one of `trajectory_id`, `episode_id` and `inference_id`, and says a `type`: "
    f"{', '.join(get_args(FeedbackType))}."
)
"""What is said to whoever left out the most of it."""


class Feedback(Message, frozen=True, kw_only=True):
    """One user's word on one piece of work; names exactly one of the three targets."""

    feedback_id: Annotated[str, Meta(min_length=1, max_length=128)]
    timestamp: Timestamp
    trajectory_id: Id | UnsetType = UNSET
    episode_id: str | UnsetType = UNSET
    inference_id: str | UnsetType = UNSET
    user_id: str | UnsetType = UNSET
    type: FeedbackType
    rating: Annotated[int, Meta(ge=1, le=5)] | UnsetType = UNSET
    comment: str | UnsetType = UNSET
    source: str | UnsetType = UNSET
    metadata: Json | UnsetType = UNSET

    def __post_init__(self) -> None:
        named = [t for t in TARGETS if getattr(self, t) is not UNSET]
        if len(named) != 1:
            raise ValueError("exactly one of trajectory_id, episode_id and inference_id is needed")
        needed = NEEDS.get(self.type)
        if needed is not None and getattr(self, needed) is UNSET:
            raise ValueError(f"type `{self.type}` needs the field `{needed}`")


FEEDBACK_RULES = {
    "oneOf": [{"required": [target]} for target in TARGETS],
    "allOf": [
        {
            "if": {"properties": {"type": {"const": word}}, "required": ["type"]},
            "then": {"required": [field]},
        }
        for word, field in NEEDS.items()
    ],
}
"""The rules of `__post_init__` in JSON Schema's words."""
