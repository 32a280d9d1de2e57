"""Has every error of the gateway a word in `code`, and does the word tell what is wrong?"""

import json
from typing import get_args

import pytest

from upswing.errors import Reason, Rejected
from upswing.gateway.core.chat_request import read_chat_request
from upswing.openai.errors import ErrorType, error_body


@pytest.mark.parametrize("kind", get_args(ErrorType))
@pytest.mark.parametrize("code", [None, "too_deep"])
def test_every_error_has_a_word(kind, code):
    found = json.loads(error_body("No.", kind, code))["error"]["code"]
    assert found == (code or kind.removesuffix("_error"))


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (b'{"messages":[1,', Reason.MALFORMED),
        (b'{"messages":[],"metadata":{"a":' + b"[" * 5000 + b"]" * 5000 + b"}}", Reason.TOO_DEEP),
    ],
)
def test_what_cannot_be_read_says_why(body, reason):
    with pytest.raises(Rejected) as found:
        read_chat_request(body)
    assert found.value.reason is reason
    assert "recursion" not in str(found.value)
