"""Can text of others control a terminal? Not through the log, and not through any command."""

import contextlib
import io
import logging
import sys
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from upswing.cli import main
from upswing.contracts import DeadLetter, from_builtins
from upswing.infra.sql.store import open_store
from upswing.infra.terminal import PrintableStream, unwrapped_stdout
from upswing.logs import CleanFormatter, printable
from upswing.redact import Redactor

TITLE = "\x1b]0;owned\x07"
CLEAR = "\x9b2J"


def controls(text):
    """What a terminal would obey, or a reader would be deceived by."""
    return {
        each
        for each in text
        if each not in "\n\t"
        and (unicodedata.category(each) == "Cc" or unicodedata.bidirectional(each) in BIDI)
    }


BIDI = {"LRE", "RLE", "LRO", "RLO", "PDF", "LRI", "RLI", "FSI", "PDI"}


@given(st.text())
def test_no_text_keeps_a_control_character(text):
    shown = printable(text)
    assert not controls(shown)
    assert controls(text) or shown == printable(shown)


@given(st.text(alphabet=st.characters(categories=["Cc", "Lu", "Zs"])))
def test_a_line_of_the_log_controls_nothing_and_is_one_line(text):
    record = logging.makeLogRecord({"name": "n", "levelno": 20, "levelname": "INFO", "msg": "%s"})
    record.args = (text,)
    line = CleanFormatter(Redactor()).format(record)
    assert not controls(line)
    assert all(each.startswith("    ") for each in line.split("\n")[1:])


def test_who_draws_has_the_terminal_itself():
    out = io.StringIO()
    with contextlib.redirect_stdout(PrintableStream(out)):
        print(TITLE)
        sys.stdout.write(CLEAR)
        assert controls(out.getvalue()) == set()
        unwrapped_stdout().write(CLEAR)
    assert controls(out.getvalue()) == {"\x9b"}


@pytest.mark.parametrize("arguments", [["dead", "list"], ["dead", "show", "{id}"]])
async def test_commands_show_what_a_sender_wrote_without_obeying_it(tmp_path, capsys, arguments):
    key = "00000000-0000-4000-8000-000000000001"
    letter = from_builtins(
        DeadLetter,
        {
            "dead_id": key,
            "timestamp": "2026-01-01T00:00:00Z",
            "subject": "/v1/trajectories",
            "reason": "schema",
            "detail": f"no field {TITLE}{CLEAR}",
            "deliveries": 1,
            "payload": TITLE,
            "sha256": "0" * 64,
        },
    )
    store = open_store(tmp_path)
    await store.prepare()
    await store.add_dead_letter(letter, stage="collect")
    store.close()
    import asyncio

    argv = [each.format(id=key) for each in arguments]
    assert await asyncio.to_thread(main, [*argv, "--data", str(tmp_path)]) == 0
    shown = capsys.readouterr().out
    assert "owned" in shown
    assert not controls(shown)
