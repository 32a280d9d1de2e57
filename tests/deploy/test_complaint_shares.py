"""A complaint stands against the share under which its own episode was drawn."""

from datetime import UTC, datetime
from types import SimpleNamespace

import pytest

from upswing.deploy.core.complaints import ComplaintEvidence
from upswing.deploy.core.evidence import begin_evidence
from upswing.deploy.core.limits import RolloutLimits
from upswing.deploy.core.record import RolloutRecord, ShareSince, add_complaints
from upswing.deploy.core.rows import ComplaintBatch, ObservedComplaint

NOW = datetime(2026, 1, 5, 12, tzinfo=UTC)


@pytest.mark.parametrize(("step", "share"), [("0.05", 0.05), ("", 0.5), ("0.05+0.1", 0.5)])
def test_a_gateway_that_gives_less_than_the_plan_says_so(step, share):
    record = RolloutRecord(
        begin_evidence(RolloutLimits()), sources=["r"], shares=[ShareSince(NOW, 0.5)]
    )
    seen = ObservedComplaint(1, "m", "r", NOW, step)
    add_complaints(
        record, SimpleNamespace(model_id="m", rollout_id="r"), ComplaintBatch((seen,), 1)
    )
    expected = ComplaintEvidence(factor=RolloutLimits().complaints)
    expected.observe(1, candidate=True, share=share)
    assert record.evidence.complaints.more == expected.more


def test_the_share_of_another_rollout_is_not_this_ones():
    record = RolloutRecord(
        begin_evidence(RolloutLimits()), sources=["r", "other"], shares=[ShareSince(NOW, 0.5)]
    )
    seen = ObservedComplaint(1, "m", "other", NOW, "0.05")
    add_complaints(
        record, SimpleNamespace(model_id="m", rollout_id="r"), ComplaintBatch((seen,), 1)
    )
    expected = ComplaintEvidence(factor=RolloutLimits().complaints)
    expected.observe(1, candidate=True, share=0.5)
    assert record.evidence.complaints.more == expected.more
