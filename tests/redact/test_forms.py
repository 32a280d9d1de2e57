"""A value is found in whatever form it hides, and no part of it is left."""

from __future__ import annotations

import json

import pytest
from forms import FORMS, leaked, turns

from upswing.redact import Redactor, default_rules, filter_text

REDACTOR = Redactor()
STRONG = [rule for rule in default_rules() if rule.split]
KEYLESS = {"private-key", "bearer-token"}  # values with spaces: look-alikes and quotes change them


@pytest.mark.parametrize("rule", STRONG, ids=lambda rule: rule.name)
def test_no_form_hides_a_value(rule):
    for name, hide in FORMS.items():
        if rule.name in KEYLESS and name in ("string concatenation", "look-alikes"):
            continue
        out = REDACTOR.text(f"the tool said {hide(rule.example)} and went on")
        assert f"<{rule.kind}-1>" in out.value, name
        assert not leaked(rule.example, out.value), name


@pytest.mark.parametrize("rule", STRONG, ids=lambda rule: rule.name)
def test_a_value_cut_by_turns_is_found_in_all_its_pieces(rule):
    for pieces in (2, 3) if rule.name != "bearer-token" else (2,):
        out = REDACTOR.tree(turns(rule.example, pieces))
        assert not leaked(rule.example, out.value)
        if rule.name != "url-password":  # what is left of the address looks like an e-mail
            assert len({f.placeholder for f in out.findings}) == 1
        assert len({f.path for f in out.findings}) == pieces


@pytest.mark.parametrize("rule", STRONG, ids=lambda rule: rule.name)
def test_a_value_cut_by_chunks_is_found(rule):
    text = f"before {rule.example} after\n"
    for size in (1, 7, 20):
        chunks = (text[i : i + size] for i in range(0, len(text), size))
        out = "".join(block.value for block in filter_text(chunks, REDACTOR))
        assert not leaked(rule.example, out)


def test_a_hidden_value_has_the_name_of_the_plain_one():
    for hide in FORMS.values():
        out = REDACTOR.text(f"bob.smith@example.org is {hide('bob.smith@example.org')} hidden")
        assert out.value.count("<email-1>") == 2, out
        assert "email-2" not in out.value


def test_the_form_is_told():
    token = "ghp_" + "k7Qm2XzR" * 5
    forms = {
        token: "plain",
        FORMS["base64"](token): "base64",
        FORMS["base64 twice"](token): "base64+base64",
        FORMS["percent"](token): "percent",
        FORMS["hex"](token): "hex",
        FORMS["zero width"](token): "unicode",
        FORMS["fullwidth"](token): "unicode",
        FORMS["JSON escapes"](token): "escape",
    }
    for text, form in forms.items():
        (found,) = REDACTOR.text("x " + text).findings
        assert (found.form, found.start, found.end) == (form, 2, 2 + len(text))


def test_the_strings_inside_binary_data_are_read():
    import base64

    token = b"ghp_" + b"k7Qm2XzR" * 5
    blob = bytes(range(128, 255)) + token + bytes(range(128, 255))
    for text in (
        base64.b64encode(blob).decode(),
        blob.hex(),
        base64.b64encode(token.decode().encode("utf-16-le")).decode(),
    ):
        assert REDACTOR.text(f"data {text} end").value == "data <github-token-1> end"


def test_findings_never_hold_the_value():
    for rule in STRONG:
        out = REDACTOR.text(rule.example)
        assert not leaked(rule.example, json.loads(json.dumps(repr(out.findings))))
