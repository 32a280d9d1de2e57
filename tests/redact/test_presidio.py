"""Names come from presidio, or from anything that speaks like it."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from upswing.redact import Redactor
from upswing.redact.presidio import PresidioRecogniser


@dataclass
class Result:
    start: int
    end: int
    entity_type: str
    score: float


class Analyzer:
    def analyze(self, text, language, entities=None):
        at = text.find("Ada")
        return [Result(at, at + 3, "PERSON", 0.9), Result(0, 2, "LOCATION", 0.1)] if at >= 0 else []


def test_a_recogniser_names_what_patterns_cannot():
    redactor = Redactor(recognisers=[PresidioRecogniser(Analyzer())])
    assert redactor.text("so Ada wrote to bob@x.org").value == "so <person-1> wrote to <email-1>"
    assert redactor.tree({"by": "Ada"}).value == {"by": "<person-1>"}


def test_the_real_analyzer_speaks_so_too():
    presidio = pytest.importorskip(
        "presidio_analyzer", reason="the presidio extra is not installed"
    )
    nlp = pytest.importorskip("presidio_analyzer.nlp_engine")
    pytest.importorskip("en_core_web_sm", reason="presidio needs a spaCy model to be downloaded")
    config = {
        "nlp_engine_name": "spacy",
        "models": [{"lang_code": "en", "model_name": "en_core_web_sm"}],
    }
    engine = nlp.NlpEngineProvider(nlp_configuration=config).create_engine()
    analyzer = presidio.AnalyzerEngine(nlp_engine=engine)
    redactor = Redactor(recognisers=[PresidioRecogniser(analyzer)])
    assert "<person-1>" in redactor.text("My name is Ada Lovelace.").value
