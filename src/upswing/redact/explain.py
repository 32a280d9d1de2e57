"""What was taken out, where, and why? In lines for a person, without the values."""

from __future__ import annotations

from collections.abc import Iterable

from .redactor import Finding


def explain(findings: Iterable[Finding]) -> list[str]:
    """One line per finding.

    >>> explain([Finding("email", "email", ("turns", 0, "text"), 5, 14, "base64", "<email-1>")])
    ['<email-1>: rule email at turns.0.text, characters 5 to 14, hidden as base64']
    """
    lines = []
    for found in findings:
        where = ".".join(map(str, found.path)) or "the text"
        hidden = "" if found.form == "plain" else f", hidden as {found.form}"
        lines.append(
            f"{found.placeholder}: rule {found.rule} at {where}, "
            f"characters {found.start} to {found.end}{hidden}"
        )
    return lines
