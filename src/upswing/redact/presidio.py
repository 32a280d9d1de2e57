"""How do names and places of people, which no pattern knows, become findings too?

Presidio's analyzer finds them with a language model of the user's choice:

    from presidio_analyzer import AnalyzerEngine
    Redactor(recognisers=[PresidioRecogniser(AnalyzerEngine(), entities=("PERSON", "LOCATION"))])
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol


class Analyzer(Protocol):
    """What is used of presidio's AnalyzerEngine; any object with this method will do."""

    def analyze(self, text: str, language: str, entities: list[str] | None = None) -> list[Any]: ...


@dataclass(frozen=True, slots=True)
class PresidioRecogniser:
    analyzer: Analyzer
    entities: Sequence[str] = ("PERSON", "LOCATION")
    """Presidio's names of what to look for."""
    language: str = "en"
    least_score: float = 0.5
    """From 0 to 1: findings that presidio itself doubts are left alone below this."""

    def find(self, text: str) -> Iterator[tuple[int, int, str]]:
        for found in self.analyzer.analyze(text, self.language, list(self.entities)):
            if found.score >= self.least_score and "<" not in text[found.start : found.end]:
                yield found.start, found.end, found.entity_type.lower().replace("_", "-")
