"""Is this set-up sound? Each check says what it found and, when it is wrong, what to do."""

from __future__ import annotations

import argparse
import json
import logging
import sqlite3
import subprocess
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Literal

from upswing.cli import doctor_checks
from upswing.cli.doctor_checks import CheckFailed, CheckPending, DoctorCase
from upswing.errors import UpswingError


@dataclass(frozen=True, slots=True)
class DoctorFinding:
    """The answer of one check."""

    check: str
    ok: bool
    sentence: str
    remedy: str = ""
    """What to do; empty when all is well."""
    state: Literal["ok", "wrong", "pending", "skipped"] = "ok"
    """`pending`: not there yet; `skipped`: another finding is in the way of this check."""


@dataclass(frozen=True, slots=True)
class DoctorCheck:
    """What is looked at, and what usually mends it."""

    run: Callable[[DoctorCase], str]
    remedy: str


CHECKS = {
    "python": DoctorCheck(doctor_checks.check_python, "Install Python 3.11 or newer."),
    "environment": DoctorCheck(
        doctor_checks.check_environment, "Unset the variable, or mend its name."
    ),
    "config": DoctorCheck(
        doctor_checks.check_configuration, "Mend upswing.toml, or the variable that is named."
    ),
    "extras": DoctorCheck(
        doctor_checks.check_extras, "Install the extra: pip install '.[NAME]' in Upswing's folder."
    ),
    "base model": DoctorCheck(
        doctor_checks.check_base_model,
        "Name `tiny`, `smollm2` or a folder with `base_model` in [train], or RL_BASE_MODEL.",
    ),
    "validation": DoctorCheck(doctor_checks.check_validation, "Mend [validate] in upswing.toml."),
    "redactor": DoctorCheck(doctor_checks.check_redactor, "Mend [redact] in upswing.toml."),
    "data": DoctorCheck(
        doctor_checks.check_data, "Choose another directory with --data, or own this one."
    ),
    "disk": DoctorCheck(
        doctor_checks.check_disk, "Make room, or choose another directory with --data."
    ),
    "bus": DoctorCheck(
        doctor_checks.check_bus,
        "Start the NATS server, mend NATS_URL, or leave it out for an embedded one.",
    ),
    "store": DoctorCheck(
        doctor_checks.check_store,
        "Start the database or mend DATABASE_URL; for a damaged file, `upswing repair`.",
    ),
    "port": DoctorCheck(
        doctor_checks.check_port, "Start with `upswing up --port` and another number, or 0."
    ),
    "gateway port": DoctorCheck(
        doctor_checks.check_gateway_port,
        "Start with `upswing up --gateway-port` and another number, or 0.",
    ),
    "keys": DoctorCheck(
        doctor_checks.check_keys, "Mend the variable that is named, or make keys anew."
    ),
    "backend": DoctorCheck(
        doctor_checks.check_backend,
        "See that the model server runs, serves this model and takes the key.",
    ),
}
_LABELS = {"ok": "ok   ", "wrong": "WRONG", "pending": "WAIT ", "skipped": "skip "}
_LATER = "Ask again in a minute; the terminal of `upswing up` says what it waits for."
_FOUND = (UpswingError, OSError, ValueError, sqlite3.Error, subprocess.SubprocessError)


def doctor(arguments: argparse.Namespace) -> int:
    """Run every check; non-zero when one of them fails."""
    case = DoctorCase(arguments.data, arguments.host, arguments.port, arguments.gateway_port)
    findings: list[DoctorFinding] = []
    for name, check in CHECKS.items():
        logging.disable(logging.CRITICAL)  # what goes wrong is a finding, not a line of a log
        try:
            finding = without_repetition(run_check(name, check, case), findings)
        finally:
            logging.disable(logging.NOTSET)
        findings.append(finding)
        if not arguments.json:
            print(_finding_line(finding), flush=True)
    if arguments.json:
        print(json.dumps([asdict(finding) for finding in findings], indent=2))
    return 0 if all(finding.ok for finding in findings) else 1


def run_check(name: str, check: DoctorCheck, case: DoctorCase) -> DoctorFinding:
    """What this check finds; whatever goes wrong has a sentence and a remedy."""
    try:
        return DoctorFinding(name, ok=True, sentence=check.run(case))
    except CheckPending as error:
        return DoctorFinding(
            name, ok=False, sentence=_sentence(error), remedy=_LATER, state="pending"
        )
    except (TimeoutError, CheckFailed, *_FOUND) as error:
        remedy = error.remedy if isinstance(error, CheckFailed) else check.remedy
        return DoctorFinding(
            name, ok=False, sentence=_sentence(error), remedy=remedy, state="wrong"
        )


def without_repetition(found: DoctorFinding, before: Sequence[DoctorFinding]) -> DoctorFinding:
    """One mistake is one finding: a check that fails for the same reason as an earlier one was not made."""
    same = next((each for each in before if not each.ok and each.sentence == found.sentence), None)
    if found.ok or same is None:
        return found
    return DoctorFinding(
        found.check, ok=False, sentence=f"Not checked: see {same.check}.", state="skipped"
    )


def _sentence(error: BaseException) -> str:
    return str(error).strip() or f"It ended with {type(error).__name__}."


def _finding_line(finding: DoctorFinding) -> str:
    label = _LABELS[finding.state]
    after = f"\n{'':19}▸ {finding.remedy}" if finding.remedy else ""
    return f"{label} {finding.check:12} {finding.sentence}{after}"
