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
from upswing.deploy.complaints import ComplaintEvidence
from upswing.deploy.errors import ErrorEvidence
from upswing.deploy.guards import Guards
from upswing.deploy.limits import Limits
from upswing.deploy.lost import Lost
from upswing.deploy.ratio import SampleRatio
from upswing.deploy.rewards import RewardEvidence
from upswing.deploy.voices import Voices


class Evidence(Struct):
    """It changes in place; whoever keeps a row writes it after each batch, with what it was read from."""

    rewards: RewardEvidence = field(default_factory=RewardEvidence)
    errors: ErrorEvidence = field(default_factory=ErrorEvidence)
    complaints: ComplaintEvidence = field(default_factory=ComplaintEvidence)
    guards: Guards = field(default_factory=Guards)
    ratio: SampleRatio = field(default_factory=SampleRatio)
    by_user: bool = False
    """Its rewards are those of users, one each."""
    others: int = 0
    """Of its rewards, those for which chance did not choose by user."""
    voices: Voices = field(default_factory=Voices)
    """Whose rewards they are."""
    complainers: Voices = field(default_factory=Voices)
    lost: Lost = field(default_factory=Lost)
    """Episodes that came back and cannot be compared."""


def begin(limits: Limits, *, reward_seq: int = 0, complaint_seq: int = 0) -> Evidence:
    """Nothing seen yet; what came up to these sequence numbers belongs to the time before.

    The limits of this moment hold for the whole rollout.
    """
    return Evidence(
        RewardEvidence(drop=limits.reward, seq=reward_seq),
        ErrorEvidence(limit=limits.errors),
        ComplaintEvidence(factor=limits.complaints, seq=complaint_seq),
    )


encode = msgspec.json.Encoder().encode
decode = json_decoder(Evidence).decode
