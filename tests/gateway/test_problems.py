"""Has every error of the gateway a word in `code`, and does the word tell what is wrong?"""

import json
from typing import get_args

import pytest

from upswing.errors import Reason, Rejected
from upswing.gateway.asked import read_asked
from upswing.gateway.problems import Kind, error_body


@pytest.mark.parametrize("kind", get_args(Kind))
@pytest.mark.parametrize("code", [None, "too_deep"])
def test_every_error_has_a_word(kind, code):
    found = json.loads(error_body("No.", kind, code))["error"]["code"]
    assert found == (code or kind.removesuffix("_error"))


@pytest.mark.parametrize(("body", "reason"), [
    (b'{"messages":[1,', Reason.MALFORMED), (b'{"messages":[],"metadata":{"a":' + b"[" * 5000 + b"]" * 5000 + b"}}", Reason.TOO_DEEP),
])  # fmt: skip
def test_what_cannot_be_read_says_why(body, reason):
    with pytest.raises(Rejected) as found:
        read_asked(body)
    assert found.value.reason is reason
    assert "recursion" not in str(found.value)
