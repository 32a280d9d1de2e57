"""Is this set-up sound? Each check says what it found and, when it is wrong, what to do."""

from __future__ import annotations

import argparse
import json
import sqlite3
import subprocess
from collections.abc import Callable
from dataclasses import asdict, dataclass

from upswing.cli import examining
from upswing.cli.examining import Case, Wrong
from upswing.errors import UpswingError


@dataclass(frozen=True, slots=True)
class Finding:
    """The answer of one check."""

    check: str
    ok: bool
    sentence: str
    remedy: str = ""
    """What to do; empty when all is well."""


@dataclass(frozen=True, slots=True)
class Check:
    """What is looked at, and what usually mends it."""

    look: Callable[[Case], str]
    remedy: str


CHECKS = {
    "python": Check(examining.python, "Install Python 3.11 or newer."),
    "environment": Check(examining.environment, "Unset the variable, or mend its name."),
    "config": Check(examining.config, "Mend upswing.toml, or the variable that is named."),
    "extras": Check(examining.extras, "Install the extra: pip install 'upswing[NAME]'."),
    "base model": Check(
        examining.base_model,
        "Name `tiny`, `smollm2` or a folder with `base_model` in [train], or RL_BASE_MODEL.",
    ),
    "validation": Check(examining.validation, "Mend [validate] in upswing.toml."),
    "redactor": Check(examining.redactor, "Mend [redact] in upswing.toml."),
    "data": Check(examining.data, "Choose another directory with --data, or own this one."),
    "disk": Check(examining.disk, "Make room, or choose another directory with --data."),
    "bus": Check(
        examining.bus, "Start the NATS server, mend NATS_URL, or leave it out for an embedded one."
    ),
    "store": Check(
        examining.store,
        "Start the database or mend DATABASE_URL; for a damaged file, `upswing repair`.",
    ),
    "port": Check(examining.port, "Start with `upswing up --port` and another number, or 0."),
    "gateway port": Check(
        examining.gateway_port, "Start with `upswing up --gateway-port` and another number, or 0."
    ),
    "keys": Check(examining.keys, "Mend the variable that is named, or make keys anew."),
    "backend": Check(
        examining.backend, "See that the model server runs, serves this model and takes the key."
    ),
}
_FOUND = (UpswingError, OSError, ValueError, sqlite3.Error, subprocess.SubprocessError)


def doctor(arguments: argparse.Namespace) -> int:
    """Run every check; non-zero when one of them fails."""
    case = Case(arguments.data, arguments.host, arguments.port, arguments.gateway_port)
    findings = []
    for name, check in CHECKS.items():
        finding = examined(name, check, case)
        findings.append(finding)
        if not arguments.json:
            print(_line(finding), flush=True)
    if arguments.json:
        print(json.dumps([asdict(finding) for finding in findings], indent=2))
    return 0 if all(finding.ok for finding in findings) else 1


def examined(name: str, check: Check, case: Case) -> Finding:
    """What this check finds; whatever goes wrong has a sentence and a remedy."""
    try:
        return Finding(name, ok=True, sentence=check.look(case))
    except (TimeoutError, Wrong, *_FOUND) as error:
        remedy = error.remedy if isinstance(error, Wrong) else check.remedy
        return Finding(name, ok=False, sentence=_sentence(error), remedy=remedy)


def _sentence(error: BaseException) -> str:
    return str(error).strip() or f"It ended with {type(error).__name__}."


def _line(finding: Finding) -> str:
    word = "ok   " if finding.ok else "WRONG"
    after = f"\n{'':19}▸ {finding.remedy}" if finding.remedy else ""
    return f"{word} {finding.check:12} {finding.sentence}{after}"
