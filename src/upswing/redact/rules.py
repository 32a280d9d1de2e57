"""Which rules come with the package? All tables, in one tuple."""

from __future__ import annotations

from . import rules_ai, rules_cloud, rules_people, rules_text, rules_work
from .rule import Rule


def default_rules() -> tuple[Rule, ...]:
    return (
        rules_ai.RULES
        + rules_cloud.RULES
        + rules_work.RULES
        + rules_text.RULES
        + rules_people.RULES
    )
