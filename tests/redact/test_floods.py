"""A long text holds more places than can be looked at in time: what goes, what stays, and is a secret ever among it?"""

import json
import random

import pytest
from tests.support import sized

from upswing.redact import Redactor
from upswing.redact.bip39 import WORDS as SEED_WORDS
from upswing.redact.nominate import (
    PythonEngine,
    _window_borders,
    find_seed_runs_near,
    find_seed_word_runs,
    max_word_rows,
)
from upswing.redact.wallet import is_seed_phrase

REDACTOR = Redactor()
WORDS = [
    "the",
    "worker",
    "started",
    "job",
    "and",
    "ended",
    "with",
    "success",
    "after",
    "retry",
    "because",
    "request",
    "from",
    "client",
    "was",
    "refused",
]
LINE = "INFO worker started job and the job ended with success after retry\n"
PHRASE = "legal winner thank year wave sausage worth useful legal winner thank yellow"


def words(chance, count):
    return " ".join(chance.choice(WORDS) for _ in range(count))


ORDINARY = {
    "one line again and again": lambda chance, i: LINE[:-1],
    "prose": lambda chance, i: words(chance, 12),
    "log": lambda chance, i: (
        f"2026-11-17 16:20:{i % 60:02d},{i % 1000:03d} INFO [w-{i % 7}] job {i} {words(chance, 6)}"
    ),
    "access log": lambda chance, i: (
        f'10.{i % 250}.7.{i % 97} - - "GET /items/{i}?page={i % 9} HTTP/1.1" 200 {i * 37} "curl/8"'
    ),
    "JSON": lambda chance, i: json.dumps(
        {"at": i, "level": "info", "text": words(chance, 5), "ok": True}
    ),
    "numbers": lambda chance, i: " ".join(f"{chance.random():.6f}" for _ in range(8)),
    "hashes": lambda chance, i: f"{chance.getrandbits(160):040x}  file{i}.txt",
    "counters": lambda chance, i: (
        f"step {i} tokens: {i * 7} token/s: {i % 90} total tokens {i * 9}"
    ),
    "code": lambda chance, i: (
        f"    def handle_{i}(self, key: str, token: int = {i}) -> None:\n        return self.call({i})"
    ),
    "colours": lambda chance, i: f"\x1b[32mINFO\x1b[0m {words(chance, 4)}",
    "audit": lambda chance, i: f"the password of user {i} was changed and the login failed",
}
SECRETS = {
    "token": lambda chance: (
        "ghp_" + "".join(chance.choices("abcdefghkmnpqrstuvwxyzABCDEFGH23456789", k=36))
    ),
    "password": lambda chance: f"password: Zk{chance.randrange(10**8)}!q",
    "on the next line": lambda chance: f"password:\nZk{chance.randrange(10**8)}!q",
    "address": lambda chance: f"mail ann{chance.randrange(10**6)}@example.org now",
    "seed": lambda chance: PHRASE,
}
FLOODS = (
    "bob@x.org ",
    "password is ",
    "%25abcdefgh ",
    "sk-abcdefghijk ",
    "eyJhbGciOiJ.",
    "Zm9vYmFyYmF6cXV4 ",
    "a@",
    "token: ",
    "| password |\n",
    "call 0171 ",
    "00000000: 6768 705f 6b37\n",
    "abandon ability able ",
    "81.2.3.4 ",
    "cookie: a=",
    "73 6b 2d ",
    "-----BEGIN PRIVATE KEY-----",
    "&#65;",
    " g h p _",
)


def of_size(make, chance, size):
    lines, total = [], 0
    while total < size:
        lines.append(make(chance, len(lines)) + "\n")
        total += len(lines[-1])
    return "".join(lines)


def value_in(secret):
    """The part that must not stay."""
    return secret if secret == PHRASE else max(secret.replace("\n", " ").split(), key=len)


def planted(text, secret, at):
    """On lines of its own: between two lines where there are lines, else between two words."""
    place = text.find("\n", at) + 1 or text.find(" ", at) + 1 or at
    return f"{text[:place]}\n{secret}\n{text[place:]}"


def test_the_lines_of_an_ordinary_log_stay():
    text = LINE * 800
    assert REDACTOR.text(text).value == text
    assert REDACTOR.text(LINE * 15_000).findings == ()


@pytest.mark.parametrize("kind", ORDINARY)
@pytest.mark.parametrize("size", [54_000, 120_000])
def test_ordinary_text_stays_as_it_is(kind, size):
    text = of_size(ORDINARY[kind], random.Random(size), size)
    assert REDACTOR.text(text).findings == ()


@pytest.mark.parametrize("kind", ORDINARY)
def test_secrets_in_long_ordinary_text_are_found(kind):
    chance = random.Random(kind)
    for size in (54_000, 300_000):
        text = of_size(ORDINARY[kind], chance, size)
        for secret in SECRETS.values():
            told, at = secret(chance), chance.choice([0, chance.randrange(size), size - 200])
            out = REDACTOR.text(planted(text, told, at)).value
            assert value_in(told) not in out, (kind, size, at)


@sized("places", 1, 5)
@pytest.mark.parametrize("unit", FLOODS)
def test_secrets_beside_and_inside_floods_are_found(unit, places):
    """Each kind of secret, at one place of a flood or at all of them."""
    chance = random.Random(unit)
    flood = unit * (120_000 // len(unit))
    calm = of_size(ORDINARY["log"], chance, 60_000)
    border = len(calm)
    for secret in SECRETS.values():
        told, text = (
            secret(chance),
            chance.choice([calm + flood + calm, flood + calm, calm + flood]),
        )
        around = (border - 30, border, border + 700, len(text) - 50, chance.randrange(len(text)))
        for at in chance.sample(around, places):
            out = REDACTOR.text(planted(text, told, at))
            assert value_in(told) not in out.value, (unit, at)
        assert REDACTOR.text(out.value).value == out.value


@pytest.mark.parametrize("unit", FLOODS)
def test_what_stands_far_from_a_flood_stays(unit):
    calm = of_size(ORDINARY["log"], random.Random(3), 60_000)
    flood = unit * (200_000 // len(unit))
    out = REDACTOR.text(f"{calm}{flood}\n{calm}").value
    far = len(calm) - 10_000
    assert out.startswith(calm[:far])
    assert out.endswith(calm[-far:])
    assert REDACTOR.tree({"a": calm, "b": flood, "c": calm}).value["c"] == calm


def test_a_long_value_that_reaches_into_a_flood_leaves_no_part():
    """No half of a value stays on the dry side of a flood's border."""
    chance = random.Random(8)
    run = "".join(chance.choices("abcdefghijkmnopqrstuvwxyzABCDEFGH0123456789", k=30_000))
    flood = "bob@x.org " * 20_000
    out = REDACTOR.text(f"calm words {run}{flood}").value
    assert run[20_000:20_100] not in out or run in out


def test_both_engines_keep_and_drop_the_same_of_a_flood():
    slow = Redactor(engine="python")
    calm = of_size(ORDINARY["log"], random.Random(4), 20_000)
    for unit in ("bob@x.org ", "password is "):
        text = f"{calm}{unit * 9000}\n{calm}"
        for redactor in (REDACTOR, slow):
            out = redactor.text(text).value
            assert out.startswith(calm[:10_000])
            assert out.endswith(calm[-10_000:])
            assert unit * 10 not in out


def test_words_of_prose_are_no_seed_phrase_and_each_phrase_is_among_the_runs():
    assert find_seed_word_runs((LINE * 100).encode()) == []
    chance = random.Random(5)
    for _ in range(200):
        before, behind = words(chance, chance.randrange(30)), words(chance, chance.randrange(30))
        data = f"{before} {PHRASE} {behind}".encode()
        start = data.index(PHRASE.encode())
        assert any(
            run[0] <= start + 2 and run[-1] >= start + len(PHRASE) - 6
            for run in find_seed_word_runs(data)
        )


def test_the_slow_engine_nominates_the_same_seeds():
    text = f"{LINE * 50}{PHRASE}\n{LINE * 50}".encode()
    engines = [REDACTOR._scanner._engine, PythonEngine(REDACTOR.rules)]
    first, second = (engine.nominate(text).marks["words"] for engine in engines)
    assert first == second != []


def phrase_of(chance):
    """A seed phrase with a sound checksum: words by chance, until one is."""
    while True:
        found = [chance.choice(SEED_WORDS) for _ in range(chance.choice([12, 12, 15, 18, 21, 24]))]
        if is_seed_phrase(found) and found != sorted(found):
            return found


def joined(chance, phrase):
    """As people write it down: on one line, numbered, in capitals, with commas or wide gaps."""
    gap = chance.choice([" ", ", ", "\n", " - ", "\t", " " * 8, " | "])
    told = [f"{i}. {word}" for i, word in enumerate(phrase, 1)] if gap == "\n" else phrase
    return gap.join(chance.choice([told, told, [word.upper() for word in told]]))


def close_text(chance, size, share):
    """Words of a seed list among others, so that many stand side by side and no twelve do."""
    made: list[str] = []
    while len(made) < size // 6:
        made += (
            chance.choices(SEED_WORDS, k=chance.randrange(1, 11)) if chance.random() < share else []
        )
        made.append(chance.choice(["ended", "started", "refused"]))
    return " ".join(made)


@pytest.mark.parametrize("kind", ["log", "prose", "JSON", "audit", "listed", "dense"])
def test_seed_phrases_at_any_place_of_a_long_text_are_found(kind):
    """Also where the text is read in windows, across their borders."""
    chance = random.Random(kind)
    for size in (9_000, 60_000, 400_000):
        text = (
            close_text(chance, size, 0.6)
            if kind == "listed"
            else of_size(ORDINARY["counters" if kind == "dense" else kind], chance, size)
        )
        borders = _window_borders(text.encode())
        for at in (chance.choice(borders), *(chance.randrange(len(text)) for _ in range(3))):
            told = joined(chance, phrase_of(chance))
            place = max(0, at - chance.randrange(len(told)))
            place = text.find(" ", place) + 1 or len(text)
            out = REDACTOR.text(f"{text[:place]}; 7 {told} 7; {text[place:]}")
            assert told not in out.value, (kind, size, place, told)
            assert any(f.kind in ("seed-phrase", "overflow") for f in out.findings)


def test_no_phrase_is_lost_where_only_the_words_near_a_mark_are_read():
    """Each phrase lies whole within one run, on both engines, and both report the same."""
    chance = random.Random(11)
    engines = [REDACTOR._scanner._engine, PythonEngine(REDACTOR.rules)]
    for _ in range(60):
        told = joined(chance, phrase_of(chance))
        before = close_text(chance, chance.randrange(10, 4000), chance.random())
        behind = close_text(chance, chance.randrange(10, 4000), chance.random())
        data = f"{before}; {told} {behind}".encode()
        start, end = len(before) + 2, len(before) + 2 + len(told)
        marks = [engine._words_in_row(data, max_word_rows(len(data))) for engine in engines]
        assert marks[0] == marks[1]
        assert any(
            run[0] <= start + 5 and run[-1] >= end - 6
            for run in find_seed_runs_near(data, marks[0])
        )
        first, second = (engine.nominate(data).marks["words"] for engine in engines)
        assert first == second
        assert any(start <= mark < end for mark in first)


def test_with_too_many_words_in_a_row_the_whole_text_is_read():
    prose = " ".join(["ended"] * 60_000)
    data = f"{prose} {PHRASE} {prose}".encode()
    for engine in (REDACTOR._scanner._engine, PythonEngine(REDACTOR.rules)):
        assert engine._words_in_row(data, max_word_rows(len(data))) is None
    assert PHRASE not in REDACTOR.text(data.decode()).value
