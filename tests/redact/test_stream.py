"""A stream of any length, cut anywhere."""

from __future__ import annotations

import pytest
from forms import FORMS, leaked

from upswing.redact import Redactor, filter_text
from upswing.redact.stream import StreamWindow

REDACTOR = Redactor()
TOKEN = "ghp_" + "k7Qm2XzR" * 5
KEY = "-----BEGIN " + "PRIVATE KEY-----\n" + "MIIEk7Qm2XzR\n" * 9 + "-----END " + "PRIVATE KEY-----"


@pytest.mark.parametrize("offset", range(0, 260, 13))
def test_the_border_of_a_block_hides_nothing(offset):
    window = StreamWindow(context=100, block=200, ahead=400)
    password = "hunter2!secret"
    text = (
        "x " * (offset // 2)
        + f'{TOKEN} {{"password":   "{password}"}} {FORMS["base64"](TOKEN)}\n{KEY}\n'
    )
    text += "the end of it " * 60
    out = "".join(block.value for block in filter_text(iter(text), REDACTOR, window))
    assert not leaked(TOKEN, out)
    assert not leaked(password, out)
    assert "MIIE" not in out
    assert out == REDACTOR.text(text).value


def test_memory_stays_bounded_while_a_long_stream_passes():
    line = "ordinary words that hold nothing to hide\n"
    blocks = list(filter_text((line for _ in range(80_000)), REDACTOR))
    assert len(blocks) > 2
    assert max(len(block.value) for block in blocks) <= (1 << 20) + (1 << 16)
    assert sum(len(block.value) for block in blocks) == 80_000 * len(line)
