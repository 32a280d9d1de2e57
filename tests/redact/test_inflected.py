"""A secret is known by its name in every case of it, before it, behind it and in a remark."""

from __future__ import annotations

import random

import pytest

from upswing.redact import Redactor
from upswing.redact.bip39 import WORDS
from upswing.redact.words_codes import CODE_WORDS

ENGINES = {name: Redactor(engine=name) for name in ("hyperscan", "python")}
VALUES = ("mondlicht12", "Nebelhorn", "x9Kd2mQ!", "harvest-pebbles-41")


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(
    "sentence",
    [
        "Es heißt {} (das Passwort meine ich)",
        "Het is {} (het wachtwoord bedoel ik)",
        "It's {} (the password, I mean)",
        "Kannst du {} als Passwort nehmen?",
        "Can you take {} as password?",
        "usa {} como contraseña",
        "{} is my password.",
        "A jelszavam: {}",
        "Salasanani on {}",
        "Přihlas se heslem {}",
        "Паролата ми е {}",
        "Το συνθημά μου είναι {}",
        "Lösenordet är {}",
    ],
)
def test_the_value_goes_and_the_words_around_it_stay(sentence, engine):
    for value in VALUES:
        out = ENGINES[engine].text(sentence.format(value)).value
        assert out.rstrip(".") == sentence.format("<password-1>").rstrip("."), value


@pytest.mark.parametrize("name", CODE_WORDS)
def test_a_number_goes_behind_every_name_of_a_code_and_before_it(name):
    chance = random.Random(name)
    for form in ("{n}: {c}", "{c} is your {n}"):
        code = str(chance.randrange(210_000, 999_999))
        assert code not in ENGINES["hyperscan"].text(form.format(n=name, c=code)).value, form


@pytest.mark.parametrize(
    "line",
    [
        "Nobody should use a birthday as password.",
        "Bitte etwas Langes als Passwort wählen.",
        "Ticket 4821 is about passwords in the log.",
        "The settings page (the password tab, I mean) is broken.",
        "Tenemos 612 345 678 registros en total.",
        "lines 01 02 03 04 05 and 10 20 30 40 50",
        "Ο κωδικός σφάλματος είναι 404.",
        "Der Fehlercode 4711 erscheint beim Start.",
        "Use 4096 to raise the limit.",
    ],
)
def test_what_only_speaks_of_passwords_codes_and_numbers_stays(line):
    assert ENGINES["hyperscan"].text(line).value == line


@pytest.mark.parametrize(
    "line",
    ["Appelle-moi au {}", "{}", "Llámame al {}", "Marie, {}, merci"],
)
@pytest.mark.parametrize("phone", ["06 12 34 56 78", "612 34 56 78", "06-12983476", "0171 2987345"])
def test_a_phone_of_a_country_goes_as_it_is_written_there(line, phone):
    assert ENGINES["hyperscan"].text(line.format(phone)).value == line.format("<phone-1>")


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("lines", [80, 800, 8000])
def test_a_log_of_short_words_stays(lines, engine):
    log = "INFO worker started job and the job ended with success after retry\n" * lines
    assert not ENGINES[engine].text(log).changed


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("before", range(0, 40, 3))
def test_a_seed_phrase_is_found_wherever_it_stands_in_prose_of_short_words(before, engine):
    legal = "legal winner thank year wave sausage worth useful legal winner thank yellow"
    chance = random.Random(before)
    prose = " ".join(
        chance.choice(("the", "job", "ended", "after", "retry", *WORDS[:40])) for _ in range(before)
    )
    assert legal not in ENGINES[engine].text(f"{prose} {legal} {prose}").value
