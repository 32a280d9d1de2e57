"""What must never be stored?

A pure library below the stages: no clock, no chance, no files. The SDK, collect, the gateway
and the dead letters all call it before anything of theirs reaches a disk.
"""

from .errors import RedactionFailed
from .explain import explain
from .names import Names
from .redactor import Finding, Redacted, Redactor
from .rule import Rule
from .rules import default_rules
from .stream import filter_text

__all__ = [
    "Finding",
    "Names",
    "Redacted",
    "RedactionFailed",
    "Redactor",
    "Rule",
    "default_rules",
    "explain",
    "filter_text",
]
