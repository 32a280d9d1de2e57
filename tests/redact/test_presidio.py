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


@pytest.fixture(scope="module")
def analyzer(tmp_path_factory):
    """Presidio as it is installed, over a spaCy model that is made here: the trained ones are not on PyPI.

    The model knows one person by heart; presidio's own pattern recognisers need none.
    """
    presidio = pytest.importorskip(
        "presidio_analyzer", reason="the presidio extra is not installed"
    )
    spacy = pytest.importorskip("spacy")
    from presidio_analyzer.nlp_engine import NlpEngineProvider

    model = spacy.blank("en")
    model.add_pipe("entity_ruler").add_patterns([{"label": "PERSON", "pattern": "Ada Lovelace"}])
    model.to_disk(path := tmp_path_factory.mktemp("spacy") / "model")
    engines = NlpEngineProvider(
        nlp_configuration={
            "nlp_engine_name": "spacy",
            "models": [{"lang_code": "en", "model_name": str(path)}],
        }
    )
    return presidio.AnalyzerEngine(nlp_engine=engines.create_engine(), supported_languages=["en"])


@pytest.mark.parametrize(
    ("text", "redacted"),
    [
        ("My name is Ada Lovelace.", "My name is <person-1>."),
        ("Ada Lovelace met Ada Lovelace.", "<person-1> met <person-1>."),
        ("é🙂 Ada Lovelace, bob@x.org", "é🙂 <person-1>, <email-1>"),
        ("nothing to hide", "nothing to hide"),
    ],
)
def test_what_the_real_analyzer_finds_is_redacted(analyzer, text, redacted):
    assert Redactor(recognisers=[PresidioRecogniser(analyzer)]).text(text).value == redacted


@pytest.mark.parametrize(
    ("kind", "text", "value"),
    [
        (
            "CRYPTO",
            "Send it to 1BvBMSEYstWetqTFn5Au4m4GFg7xJaNVN2 today.",
            "1BvBMSEYstWetqTFn5Au4m4GFg7xJaNVN2",
        ),
        ("IBAN_CODE", "The IBAN is GB33BUKB20201555555555 here.", "GB33BUKB20201555555555"),
        ("CREDIT_CARD", "card 4111 1111 1111 1111 was used", "4111 1111 1111 1111"),
    ],
)
def test_its_pattern_recognisers_need_no_trained_model(analyzer, kind, text, value):
    found = PresidioRecogniser(analyzer, entities=(kind,)).find(text)
    assert [(text[start:end], name) for start, end, name in found] == [
        (value, kind.lower().replace("_", "-"))
    ]
