"""JSON that was cut off is malformed, wherever the cut is and whatever else is wrong with it."""

import json

import pytest
from tests.support import trajectory

from upswing.contracts import Feedback, TrainingRequest, Trajectory
from upswing.contracts.codec import decode
from upswing.contracts.examples import EXAMPLES
from upswing.errors import Reason, Rejected
from upswing.gateway.core.chat_request import read_chat_request
from upswing.serve.core.chat_request import parse_chat_request as read_served
from upswing.serve.core.error_response import InvalidChatRequest

WHOLE = json.dumps(trajectory()).encode()
CHAT = json.dumps({"model": "m", "stream": 3, "messages": "none", "seed": 1.5}).encode()


def cuts(raw):
    return (raw[:at] for at in range(len(raw)))


@pytest.mark.parametrize("kind", [Trajectory, Feedback, TrainingRequest])
def test_a_message_of_any_kind(kind):
    """Also of another kind than is expected: its fields are unknown before its end is missed."""
    for raw in (WHOLE, json.dumps(EXAMPLES[kind]).encode(), b'{"turn_id": 1.0, "n": 2}'):
        reasons = set()
        for cut in cuts(raw):
            with pytest.raises(Rejected) as refused:
                decode(kind, cut)
            reasons.add(refused.value.reason)
        assert reasons == {Reason.MALFORMED}


def test_a_request_to_the_gateway_and_to_the_model_server():
    for cut in cuts(CHAT):
        with pytest.raises(Rejected) as refused:
            read_chat_request(cut)
        assert refused.value.reason is Reason.MALFORMED
        with pytest.raises(InvalidChatRequest) as bad:
            read_served(cut)
        assert "is not JSON" in str(bad.value)


def test_whole_json_of_another_shape_is_of_another_shape():
    with pytest.raises(Rejected) as refused:
        decode(Feedback, WHOLE)
    assert refused.value.reason is Reason.SCHEMA
