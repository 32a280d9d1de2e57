"""Which rules come with the package? All tables, in one tuple."""

from __future__ import annotations

from . import (
    rules_ai,
    rules_carriers,
    rules_cloud,
    rules_contact,
    rules_logins,
    rules_named,
    rules_people,
    rules_phones,
    rules_said,
    rules_text,
    rules_work,
    tables,
)
from .rule import Rule


def default_rules(*, public_ip: bool = True) -> tuple[Rule, ...]:
    """The built-in rules; public IPv4 addresses stay where they are needed."""
    return (
        rules_ai.RULES
        + rules_cloud.RULES
        + rules_work.RULES
        + rules_text.RULES
        + rules_named.RULES
        + rules_said.RULES
        + rules_carriers.RULES
        + rules_logins.RULES
        + tables.RULES
        + rules_people.RULES
        + rules_contact.RULES
        + rules_phones.RULES
        + (rules_contact.IP if public_ip else ())
    )
