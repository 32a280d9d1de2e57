"""What people write every day, form by form: a third source that the rules were written beside.

Every form was written before it was looked whether the rules find it, from chats, tickets, shell
histories, files of configuration, programs, tables and letters.
"""

import json
import random
import string
from collections.abc import Callable, Iterator

from bench.redaction import _iban
from bench.redaction_cases import Case
from bench.redaction_cases import _daily_clean as clean_texts
from bench.redaction_cases._daily_config import FILES, PINS, TOKENS, TREES
from bench.redaction_cases._daily_people import (
    ACCOUNTS,
    BIRTHS,
    CALLS,
    DATES,
    LETTERS,
    MONTHS,
    PAPERS,
    PHONES,
)
from bench.redaction_cases._daily_sentences import SENTENCES

ALNUM = string.ascii_letters + string.digits
WORDS = "swordfish dragonfly sunflower Mondschein butterfly pumpernickel girasole tournesol kangaroo waterfall bluebird Schmetterling papillon mariposa borboleta farfalla vlinder motylek kelebek thunderbolt Lavendel citronnier montagna starfish".split()  # noqa: SIM905
UNICODE = "Grünkohl café-crème Österreich señorita98 coração pâtisserie Żółw22 żurawina İstanbul34 Мандарин облако77 солнышко 樱花2020 さくら桜 Ünlü9".split()  # noqa: SIM905
FUNNY = ("bob", "eve")


def pick(rng: random.Random, alphabet: str, count: int) -> str:
    return "".join(rng.choice(alphabet) for _ in range(count))


SHAPES: dict[str, Callable[[random.Random], str]] = {
    "word": lambda rng: rng.choice(WORDS),
    "letters": lambda rng: pick(rng, string.ascii_letters, rng.randint(8, 14)),
    "lower": lambda rng: pick(rng, string.ascii_lowercase, rng.randint(8, 14)),
    "habit": lambda rng: (
        rng.choice(WORDS).capitalize()
        + str(rng.randint(1, 2030))
        + rng.choice(("", "!", "#", "?", "*"))
    ),
    "random": lambda rng: (
        pick(rng, ALNUM + "!@#%^*+-_", rng.randint(9, 18))
        + str(rng.randint(2, 9))
        + rng.choice(string.ascii_letters)
    ),
    "leet": lambda rng: (
        rng.choice(WORDS).translate(str.maketrans("eoai", "304!"))
        + rng.choice("_-.")
        + str(rng.randint(1, 99))
    ),
    "signs": lambda rng: (
        pick(rng, string.ascii_letters, 3)
        + rng.choice("$&(=}~")
        + pick(rng, ALNUM, 4)
        + rng.choice("!?.;)]%")
        + pick(rng, string.digits, 1)
    ),
    "unicode": lambda rng: rng.choice(UNICODE),
    "short": lambda rng: (
        pick(rng, string.ascii_lowercase, 3) + pick(rng, string.digits, 2) + rng.choice("!#x")
    ),
    "hyphens": lambda rng: "-".join(rng.sample(WORDS, rng.randint(2, 4))).lower(),
    "digits": lambda rng: pick(rng, "23456789", rng.randint(6, 10)),
}
_QUOTED_ONLY = ("'{p}'", '"{p}"', "`{p}`")


def shaped(rng: random.Random, template: str, language: str) -> tuple[str, str]:
    """A shape that can stand in this template, and a value of it."""
    shape = rng.choice(list(SHAPES))
    if shape == "unicode" and language in ("zh", "ja"):
        shape = "habit"
    value = SHAPES[shape](rng)
    if shape == "signs" and not any(q in template for q in _QUOTED_ONLY):
        shape, value = "random", SHAPES["random"](rng)
    return shape, value


def _token(rng: random.Random) -> str:
    return rng.choice(
        (
            pick(rng, ALNUM, 32),
            pick(rng, ALNUM + "_-", 40) + "7aQ",
            pick(rng, "0123456789abcdef", 40),
            pick(rng, ALNUM, 20) + "4",
        )
    )


def _filled(rng: random.Random, template: str, language: str) -> tuple[str, str, tuple[str, ...]]:
    """The shape, the text, and what it must not hold any more."""
    shape, new = shaped(rng, template, language)
    _, old = shaped(rng, template, language)
    while old in new or new in old:
        _, old = shaped(rng, template, language)
    token, code = _token(rng), str(rng.randint(213_456, 987_654))[: rng.choice((4, 6))]
    text = template.format(p=new, o=old, t=token, n=code)
    found = [
        v
        for mark, v in (("{p}", new), ("{o}", old), ("{t}", token), ("{n}", code))
        if mark in template
    ]
    return shape if "{p}" in template else "token", text, tuple(found)


def credentials(rng: random.Random) -> Iterator[Case]:
    while True:
        for _ in range(4):
            language = rng.choice(list(SENTENCES))
            form = rng.choice(list(SENTENCES[language]))
            template = rng.choice(SENTENCES[language][form])
            shape, text, secrets = _filled(rng, template, language)
            yield Case(
                "password", "credential", f"{form}/{shape}", language, "prose", text, secrets
            )
        for _ in range(3):
            carrier = rng.choice(list(FILES))
            shape, text, secrets = _filled(rng, rng.choice(FILES[carrier]), "en")
            yield Case("password", "credential", f"{carrier}/{shape}", "en", carrier, text, secrets)
        template = rng.choice(TREES)
        shape, text, secrets = _filled(rng, template, "en")
        yield Case("password", "credential", f"tree/{shape}", "en", "json", text, secrets)
        for kind, table in (("token", TOKENS), ("pin", PINS)):
            language = rng.choice(list(table))
            _, text, secrets = _filled(rng, rng.choice(table[language]), language)
            yield Case(kind, "credential", "told", language, "prose", text, secrets)


def _digits(rng: random.Random, form: str) -> str:
    return "".join(rng.choice("23456789") if ch == "#" else ch for ch in form)


def _birth(rng: random.Random, language: str) -> str:
    day, month, year = rng.randint(1, 28), rng.randint(1, 12), rng.randint(1942, 2012)
    name = MONTHS.get(language, MONTHS["en"]).split()[month - 1]
    template = rng.choice(DATES[language])
    return template.format(d=day, m=month, y=year, yy=year % 100, month=name, mon=name[:3])


def _passport(rng: random.Random) -> str:
    return rng.choice(
        (
            pick(rng, "CFGHJKLMNPRTVWXYZ", 1)
            + pick(rng, "0123456789CFGHJKLMNPRTVWXYZ", 2)
            + pick(rng, string.digits, 5)
            + pick(rng, "0123456789CFGHJK", 1),
            pick(rng, "23456789", 9),
            rng.choice("EGPX") + pick(rng, "23456789", 8),
            pick(rng, string.ascii_uppercase, 2) + pick(rng, "23456789", 7),
            pick(rng, "23456789", 2)
            + pick(rng, string.ascii_uppercase, 2)
            + pick(rng, "23456789", 5),
        )
    )


def _phone(rng: random.Random, language: str) -> str:
    return _digits(rng, rng.choice(PHONES[language]))


def _account(rng: random.Random, kind: str) -> str:
    from bench.redaction_cases.seen import _checked, _spaced, _steuer_id

    from upswing.redact import checks

    if kind == "iban":
        return _spaced(_iban(rng), rng)
    if kind == "tax id":
        value = _steuer_id(rng)
        return rng.choice((value, f"{value[:2]} {value[2:5]} {value[5:8]} {value[8:]}"))
    if kind == "insurance":
        form = f"{rng.randint(2, 89):02d} {rng.randint(1, 28):02d}{rng.randint(1, 12):02d}{rng.randint(40, 99)} {rng.choice(string.ascii_uppercase)} ###"
        value = _checked(rng, form, checks.is_german_pension_number)
        return rng.choice((value, value.replace(" ", "")))
    if kind == "ssn":
        return f"{rng.randint(100, 665)}-{rng.randint(10, 99)}-{rng.randint(1000, 9999)}"
    if kind == "health":
        return _checked(
            rng, rng.choice(string.ascii_uppercase) + "#########", checks.is_german_health_number
        )
    return pick(rng, "123456789", rng.randint(7, 10))


def people(rng: random.Random) -> Iterator[Case]:
    while True:
        language = rng.choice(list(BIRTHS))
        value = _birth(rng, language)
        yield Case(
            "birth",
            "person",
            "told",
            language,
            "prose",
            rng.choice(BIRTHS[language]).format(b=value),
            (value,),
        )
        language = rng.choice(list(CALLS))
        value = _phone(rng, language)
        yield Case(
            "phone",
            "person",
            "told",
            language,
            "prose",
            rng.choice(CALLS[language]).format(v=value),
            (value,),
        )
        language = rng.choice(list(PAPERS))
        value = _passport(rng)
        yield Case(
            "passport",
            "person",
            "told",
            language,
            "prose",
            rng.choice(PAPERS[language]).format(v=value),
            (value,),
        )
        kind = rng.choice(list(ACCOUNTS))
        value = _account(rng, kind)
        yield Case(
            kind,
            "person",
            "told",
            "any",
            "prose",
            rng.choice(ACCOUNTS[kind]).format(v=value),
            (value,),
        )
        language = rng.choice(list(LETTERS))
        yield _letter(rng, language, rng.choice(LETTERS[language]))


def _letter(rng: random.Random, language: str, template: str) -> Case:
    made = {
        "birth": _birth(rng, language),
        "phone": _phone(rng, language),
        "passport": _passport(rng),
        "iban": _account(rng, "iban"),
        "tax": _account(rng, "tax id"),
        "insurance": _account(rng, "insurance"),
        "ssn": _account(rng, "ssn"),
    }
    secrets = tuple(v for name, v in made.items() if f"{{{name}}}" in template)
    carrier = "json" if template[:2] in ("{{", "[{") else "document"
    return Case("several", "person", "letter", language, carrier, template.format(**made), secrets)


def clean(rng: random.Random) -> Iterator[Case]:
    while True:
        language = rng.choice(list(clean_texts.CLEAN))
        some = clean_texts.CLEAN[language]
        sign = rng.choice((" ", "\n", "\n\n"))
        yield Case("prose", "clean", "topic", language, "prose", sign.join(rng.sample(some, 3)), ())
        yield Case(
            "code", "clean", "topic", "en", "code", "".join(rng.sample(clean_texts.CODE, 4)), ()
        )
        yield Case(
            "log", "clean", "topic", "en", "log", "".join(rng.sample(clean_texts.LOGS, 3)), ()
        )
        yield Case(
            "json",
            "clean",
            "topic",
            "en",
            "json",
            json.dumps(json.loads(rng.choice(clean_texts.TREES))),
            (),
        )


def cases(seed: int, count: int) -> Iterator[Case]:
    """Of ten cases five are credentials, three people, two clean."""
    rng = random.Random(seed)
    told, persons, nothing = (
        make(random.Random(rng.random())) for make in (credentials, people, clean)
    )
    order = (told, persons, told, nothing, told, persons, told, nothing, told, persons)
    for number in range(count):
        yield next(order[number % len(order)])
