"""A complaint stands against the share under which its own episode was drawn."""

from datetime import UTC, datetime
from types import SimpleNamespace

import pytest

from upswing.deploy.complaints import ComplaintEvidence
from upswing.deploy.evidence import begin
from upswing.deploy.limits import Limits
from upswing.deploy.record import Held, Record, take_complaints
from upswing.ports_rollout import Complaints, SeenComplaint

NOW = datetime(2026, 1, 5, 12, tzinfo=UTC)


@pytest.mark.parametrize(("step", "share"), [("0.05", 0.05), ("", 0.5), ("0.05+0.1", 0.5)])
def test_a_gateway_that_gives_less_than_the_plan_says_so(step, share):
    record = Record(begin(Limits()), sources=["r"], shares=[Held(NOW, 0.5)])
    seen = SeenComplaint(1, "m", "r", NOW, step)
    take_complaints(record, SimpleNamespace(model_id="m", rollout_id="r"), Complaints((seen,), 1))
    expected = ComplaintEvidence(factor=Limits().complaints)
    expected.observe(1, candidate=True, share=share)
    assert record.evidence.complaints.more == expected.more


def test_the_share_of_another_rollout_is_not_this_ones():
    record = Record(begin(Limits()), sources=["r", "other"], shares=[Held(NOW, 0.5)])
    seen = SeenComplaint(1, "m", "other", NOW, "0.05")
    take_complaints(record, SimpleNamespace(model_id="m", rollout_id="r"), Complaints((seen,), 1))
    expected = ComplaintEvidence(factor=Limits().complaints)
    expected.observe(1, candidate=True, share=0.5)
    assert record.evidence.complaints.more == expected.more
