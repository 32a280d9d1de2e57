"""What do ruff and bandit say of the code that agents wrote?

The snippets are written into a private folder, both tools read them there, once for all, and the
folder is deleted. Neither tool runs what it reads. A tool that is missing, slow or broken leaves
its part out, with a sentence. Comments that silence a linter (`noqa`, `nosec`) are ignored: an
agent must not earn a better score by them.

| ruff's rules                       | counts as  | costs |
|------------------------------------|------------|-------|
| E9, F5, F6, F7, F82x; PLE; syntax  | error      | 5     |
| other F; W, B, PLW; F821           | warning    | 1     |
| PLR, C90                           | refactor   | 1     |
| other E, PLC                       | convention | 1     |

Score = 10 − 10 × cost / statements, as pylint has it, from 0 to 10. An undefined name (F821) is a
warning here, for a snippet is often a piece of something larger.
"""

from __future__ import annotations

import asyncio
import importlib.util
import os
import re
import shutil
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec

from upswing.infra.process import kill_group
from upswing.records import LintReport, Snippet

TIMEOUT_S = 2.0
_SELECT = "E,F,W,PL,B,C90"
_IGNORE = "PLR2004,PLC0415,E402,B018,T201"
"""What fragments and notebooks do with good reason: bare numbers, late imports, a last expression."""
_KINDS = (
    (re.compile(r"F821"), "warning"),
    (re.compile(r"E9|F[567]|F82|PLE|invalid-syntax|$"), "error"),
    (re.compile(r"F|W|B|PLW"), "warning"),
    (re.compile(r"PLR|C90"), "refactor"),
)
_COST = {"error": 5, "warning": 1, "refactor": 1, "convention": 1}


class _NoAnswerError(Exception):
    """A tool did not answer; its text ends the sentence that says so."""


async def lint_snippets(
    snippets: Sequence[Snippet], timeout_s: float = TIMEOUT_S
) -> LintReport | None:
    """What the tools say of these snippets; None when there are none."""
    if not snippets:
        return None
    with tempfile.TemporaryDirectory(prefix="upswing-lint-") as name:  # for this user only: 0700
        folder = Path(name)
        for i, snippet in enumerate(snippets):
            text = snippet.text.strip("\n") + "\n"
            (folder / f"snippet_{i:02d}.py").write_bytes(text.encode(errors="replace"))
        found, scanned = await asyncio.gather(
            _run_ruff(folder, timeout_s), _run_bandit(folder, timeout_s)
        )
    statements = sum(snippet.statements for snippet in snippets)
    return LintReport(
        score=pylint_score(found, statements) if isinstance(found, dict) else None,
        sentence=_report_sentence(found, scanned, len(snippets), statements),
        statements=statements,
        counts=found if isinstance(found, dict) else None,
        security=scanned if isinstance(scanned, dict) else None,
    )


def pylint_score(counts: dict[str, int], statements: int) -> float:
    """On pylint's scale.

    >>> pylint_score({"error": 0, "warning": 2, "refactor": 0, "convention": 1}, statements=30)
    9.0
    """
    cost = sum(_COST[kind] * count for kind, count in counts.items())
    return max(0.0, round(10 - 10 * cost / max(1, statements), 4))


def finding_kind(code: str | None) -> str:
    """Which of pylint's four kinds a rule of ruff belongs to.

    >>> [finding_kind(code) for code in ("F401", "F821", "F823", "E711", "PLR0911", None)]
    ['warning', 'warning', 'error', 'convention', 'refactor', 'error']
    """
    return next((kind for pattern, kind in _KINDS if pattern.match(code or "")), "convention")


async def _run_ruff(folder: Path, timeout_s: float) -> dict[str, int] | str:
    beside = Path(sys.executable).with_name("ruff")
    binary = str(beside) if beside.exists() else shutil.which("ruff")
    if binary is None:
        return "ruff is not installed"
    command = [
        binary,
        "check",
        "--isolated",
        "--no-cache",
        "--no-respect-gitignore",
        "--quiet",
        "--exit-zero",
        "--ignore-noqa",
        "--target-version=py313",
        "--line-length=100",
        f"--select={_SELECT}",
        f"--ignore={_IGNORE}",
        "--statistics",
        "--output-format=json",
        ".",
    ]
    counts = dict.fromkeys(_COST, 0)
    try:
        for row in msgspec.json.decode(await _run_tool(command, folder, timeout_s) or b"[]"):
            counts[finding_kind(row["code"])] += int(row["count"])
    except _NoAnswerError as error:
        return f"ruff {error}"
    except (msgspec.DecodeError, KeyError, TypeError):
        return "ruff answered something else"
    return counts


async def _run_bandit(folder: Path, timeout_s: float) -> dict[str, int] | str:
    if importlib.util.find_spec("bandit") is None:
        return "bandit is not installed"
    command = [
        sys.executable,
        "-I",
        "-m",
        "bandit",
        "--quiet",
        "--exit-zero",
        "--ignore-nosec",
        "--skip=B101",
        "--format=json",
        "--recursive",
        ".",
    ]
    counts = {"high": 0, "medium": 0, "low": 0}
    try:
        report: Any = msgspec.json.decode(await _run_tool(command, folder, timeout_s))
        for finding in report["results"]:
            counts[finding["issue_severity"].lower()] += 1
    except _NoAnswerError as error:
        return f"bandit {error}"
    except (msgspec.DecodeError, KeyError, TypeError, AttributeError):
        return "bandit answered something else"
    return counts


async def _run_tool(command: list[str], folder: Path, timeout_s: float) -> bytes:
    """What the tool prints; it and its children never outlive this call."""
    try:
        process = await asyncio.create_subprocess_exec(
            *command,
            cwd=folder,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,
            start_new_session=True,
            env={"PATH": os.defpath, "HOME": str(folder), "LC_ALL": "C.UTF-8"},
        )
    except OSError as error:
        raise _NoAnswerError(f"does not start ({error.strerror})") from None
    try:
        async with asyncio.timeout(timeout_s):
            printed, _ = await process.communicate()
    except TimeoutError:
        raise _NoAnswerError(f"took more than {timeout_s:g} s") from None
    finally:
        if process.returncode is None:  # too slow, or cancelled: it must not outlive the call
            kill_group(process)
            await process.wait()
    if process.returncode:
        raise _NoAnswerError(f"ended with {process.returncode}")
    return printed


def _report_sentence(
    found: dict[str, int] | str, scanned: dict[str, int] | str, files: int, statements: int
) -> str:
    if isinstance(found, str):
        linted = f"{found[0].upper()}{found[1:]}"
    else:
        listed = ", ".join(f"{count} {kind}" for kind, count in found.items() if count)
        linted = f"Ruff gives {pylint_score(found, statements):.1f}/10 ({listed or 'no findings'})"
    if isinstance(scanned, str):
        safe = scanned
    else:
        listed = ", ".join(f"{count} {level}" for level, count in scanned.items() if count)
        safe = f"bandit finds {listed or 'nothing'}"
    return f"{linted}, {safe}, in {files} snippets of {statements} statements."
