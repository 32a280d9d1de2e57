"""How good was it? reward.v1: named components, their weights, and the total."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from msgspec import UNSET, Meta, Struct, UnsetType

from upswing.contracts.wire import Id, Json, Known, Message, NonNegative, Share, Timestamp, Wire


class Component(Wire, frozen=True, kw_only=True):
    """One view of the work: its raw score and how much it counts."""

    score: Annotated[float, Meta(description="Raw, before normalisation.")]
    weight: Share
    source: Annotated[
        Literal["automated", "human", "linter", "test_results", "benchmark"],
        Meta(description="A judge's score says `automated`."),
    ]
    reasoning: str | UnsetType = UNSET
    raw_data: Json | UnsetType = UNSET


class Normalization(Wire, frozen=True, kw_only=True):
    """What the components were compared with."""

    method: Literal["z-score", "min-max", "none"] | UnsetType = UNSET
    mean: float | UnsetType = UNSET
    std: NonNegative | UnsetType = UNSET
    min: float | UnsetType = UNSET
    max: float | UnsetType = UNSET


class RewardMetadata(Known, frozen=True, kw_only=True):
    """Who judged and how; open to more keys (`revision`, `raw_total`)."""

    evaluator: str
    evaluation_method: Literal["automated", "human", "hybrid", "model-based"]
    confidence: Share | UnsetType = UNSET


class Reward(Message, frozen=True, kw_only=True):
    """The reward of one trajectory; of several revisions the highest wins."""

    OPEN: ClassVar[dict[str, type[Struct]]] = {"metadata": RewardMetadata}

    reward_id: Id
    trajectory_id: Id
    session_id: str
    timestamp: Timestamp
    reward_components: Annotated[
        dict[str, Component],
        Meta(
            description="`task_completion`, `efficiency`, `code_quality`, `user_feedback`, "
            "`safety`, `accuracy`, or any other name."
        ),
    ]
    total_reward: float
    reward_type: Literal["dense", "sparse"]
    normalization: Normalization | UnsetType = UNSET
    metadata: Json
