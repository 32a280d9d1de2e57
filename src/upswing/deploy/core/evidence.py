"""What has a canary shown so far, in a form that a row of the store can hold?

Sufficient statistics: every reward, tally and complaint is worked in when it comes, in constant time and
space, and the observations themselves are not needed again. The three kinds do not touch each other, so
their order does not matter; inside a kind, what was seen before changes nothing. Every number stays
finite, so JSON carries all of it to the last bit.
"""

from __future__ import annotations

import msgspec
from msgspec import Struct, field

from upswing.contracts.typed import json_decoder
from upswing.deploy.core.complaints import ComplaintEvidence
from upswing.deploy.core.error_rate import ErrorEvidence
from upswing.deploy.core.guards import SegmentGuards
from upswing.deploy.core.key_weights import VoiceCounts
from upswing.deploy.core.limits import RolloutLimits
from upswing.deploy.core.missing_episodes import LostEpisodes
from upswing.deploy.core.rewards import RewardEvidence
from upswing.deploy.core.sample_ratio import SampleRatio


class CanaryEvidence(Struct):
    """It changes in place; whoever keeps a row writes it after each batch, with what it was read from."""

    rewards: RewardEvidence = field(default_factory=RewardEvidence)
    errors: ErrorEvidence = field(default_factory=ErrorEvidence)
    complaints: ComplaintEvidence = field(default_factory=ComplaintEvidence)
    guards: SegmentGuards = field(default_factory=SegmentGuards)
    ratio: SampleRatio = field(default_factory=SampleRatio)
    by_user: bool = False
    """Its rewards are those of users, one each."""
    others: int = 0
    """Of its rewards, those for which chance did not choose by user."""
    voices: VoiceCounts = field(default_factory=VoiceCounts)
    """Whose rewards they are."""
    complainers: VoiceCounts = field(default_factory=VoiceCounts)
    lost: LostEpisodes = field(default_factory=LostEpisodes)
    """Episodes that came back and cannot be compared."""


def begin_evidence(
    limits: RolloutLimits, *, reward_seq: int = 0, complaint_seq: int = 0
) -> CanaryEvidence:
    """Nothing seen yet; what came up to these sequence numbers belongs to the time before.

    The limits of this moment hold for the whole rollout.
    """
    return CanaryEvidence(
        RewardEvidence(drop=limits.reward, seq=reward_seq),
        ErrorEvidence(limit=limits.errors),
        ComplaintEvidence(factor=limits.complaints, seq=complaint_seq),
    )


encode = msgspec.json.Encoder().encode
decode = json_decoder(CanaryEvidence).decode
