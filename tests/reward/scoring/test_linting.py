"""The linters as they are installed: real processes, nothing run, nothing left behind."""

import asyncio
import contextlib
import importlib.util
import shutil
import sys
import tempfile
from pathlib import Path

import pytest

from upswing.reward.core.code import Snippet, count_statements
from upswing.reward.linting import lint_snippets

pytestmark = pytest.mark.live
PATIENT = 300.0


def snippets(*texts):
    return [Snippet(text, "turn 1", count_statements(text)) for text in texts]


GOOD = 'def double(x):\n    """Twice."""\n    return 2 * x'
BAD = "import os, sys\ndef f(l=[]):\n    try:\n        return eval(l)\n    except:\n        pass\n"
SHELL = "import subprocess\nsubprocess.call(f'ls {x}', shell=True)\n"


@pytest.fixture(autouse=True)
def scratch(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    yield
    assert list(tmp_path.iterdir()) == []


async def test_good_code_is_ten_of_ten():
    pytest.importorskip("bandit")
    report = await lint_snippets(snippets(GOOD), PATIENT)
    assert report.score == 10
    assert sum(report.counts.values()) == sum(report.security.values()) == 0


async def test_worse_code_has_a_lower_score_and_findings():
    pytest.importorskip("bandit")
    report = await lint_snippets(snippets(GOOD, BAD, SHELL), PATIENT)
    assert 0 <= report.score < 8
    assert report.counts["warning"] >= 3
    assert report.security["high"] == 1
    assert report.statements == count_statements(GOOD) + count_statements(BAD) + 2


async def test_comments_that_silence_a_linter_are_ignored():
    loud = await lint_snippets(snippets("import os\n", SHELL), PATIENT)
    hushed = SHELL.replace("True)\n", "True)  # nosec\n")
    silent = await lint_snippets(snippets("# ruff: noqa\nimport os  # noqa\n", hushed), PATIENT)
    assert (silent.counts, silent.security) == (loud.counts, loud.security)


async def test_a_slow_tool_is_stopped_and_left_out():
    report = await lint_snippets(snippets(GOOD), 0.0)
    assert report.score is report.security is None
    assert "took more than 0 s" in report.sentence


async def test_a_missing_tool_is_left_out_with_a_sentence(monkeypatch):
    monkeypatch.setattr(sys, "executable", "/nowhere/python")
    monkeypatch.setattr(shutil, "which", lambda name: None)
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    report = await lint_snippets(snippets(GOOD))
    assert report.score is report.security is None
    assert "not installed" in report.sentence


async def test_a_cancelled_look_leaves_no_process(tmp_path):
    task = asyncio.create_task(lint_snippets(snippets(GOOD), PATIENT))
    await asyncio.sleep(0.05)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert processes_in(tmp_path) == []


def processes_in(folder):
    found = []
    for link in Path("/proc").glob("[0-9]*/cwd"):
        with contextlib.suppress(OSError):
            found += [link] * str(link.readlink()).startswith(str(folder))
    return found


async def test_nothing_to_look_at_is_no_report():
    assert await lint_snippets([]) is None
