"""Chats, letters and pasted work in twelve languages, with sentences beside them that look alike and tell nothing.

Written before the rules were tried on it. The values are what people choose: plain words of the sentence's own
language, names with a year, keyboard walks, words of other scripts, and what password managers make.
"""

import json
import random
import string
from collections.abc import Callable, Iterator
from hashlib import sha256

from bench.redaction_cases import Case
from bench.redaction_cases._chat_carriers import (
    CLEAN,
    CODE,
    CODES,
    LETTERS,
    LOGS,
    MARKUP,
    SHELL,
    TOKENS,
    TREES,
)
from bench.redaction_cases._chat_sentences import STAYS, TOLD, WORDS

ALNUM = string.ascii_letters + string.digits
NAMES = [
    "Bello",
    "Minka",
    "Luna",
    "Oskar",
    "Charlie",
    "Nala",
    "Paulchen",
    "Simba",
    "Daisy",
    "Rocky",
    "Felix",
    "Momo",
    "Fluffy",
    "Tyson",
]
WALKS = "qwertz12 zaq12wsx asdfgh99 1q2w3e4r qazxsw21 qweasdzxc yxcvbnm7 poiuzt88".split()  # noqa: SIM905
OTHERS = "Ромашка снегирь матрёшка ひまわり さくらもち 春暖花开 大熊猫 Ηλιοτρόπιο 해바라기".split()  # noqa: SIM905


def _pick(rng: random.Random, alphabet: str, count: int) -> str:
    return "".join(rng.choice(alphabet) for _ in range(count))


Shape = Callable[[random.Random, str], str]
SHAPES: dict[str, Shape] = {
    "native": lambda rng, language: rng.choice(WORDS[language]),
    "native too": lambda rng, language: rng.choice(WORDS[language]),
    "english": lambda rng, _: rng.choice(WORDS["en"]),
    "pet": lambda rng, _: (
        rng.choice(NAMES)
        + str(rng.choice((1, 7, 12, 99, 123, 1987, 2015, 2024)))
        + rng.choice(("", "", "!", "*"))
    ),
    "counted": lambda rng, language: rng.choice(WORDS[language]) + str(rng.randint(1, 2030)),
    "walk": lambda rng, _: rng.choice(WALKS),
    "managed": lambda rng, _: (
        _pick(rng, ALNUM + "!#%*+-_", rng.randint(10, 18))
        + str(rng.randint(0, 9))
        + rng.choice(string.ascii_letters)
    ),
    "letters": lambda rng, _: _pick(rng, string.ascii_lowercase, rng.randint(8, 14)),
    "digits": lambda rng, _: _pick(rng, "123456789", rng.randint(6, 9)),
    "joined": lambda rng, language: "-".join(
        rng.sample(WORDS["en" if language in ("zh", "ja") else language], 3)
    ).lower(),
    "signed": lambda rng, language: (
        rng.choice(WORDS["en" if language in ("zh", "ja") else language])
        + rng.choice("!$#*")
        + str(rng.randint(1, 99))
    ),
}
SCRIPT = {"ru", "zh", "ja"}


def _value(rng: random.Random, language: str) -> tuple[str, str]:
    shape = rng.choice([*SHAPES, "script"])
    if shape == "script" and language not in SCRIPT:
        return shape, rng.choice(OTHERS)
    shape = "native" if shape == "script" else shape
    return shape, SHAPES[shape](rng, language)


def _sentence(rng: random.Random) -> Case:
    language = rng.choice(list(TOLD))
    template = rng.choice(TOLD[language])
    shape, value = _value(rng, language)
    text = template.format(p=value)
    if rng.random() < 0.2:
        text = rng.choice(
            ("ok\n{}", "{}\nthx", "bob: {}", "> {}\n\nok", "- {}", "{} :)", "**ann** {}")
        ).format(text)
    return Case("password", "credential", shape, language, "prose", text, (value,))


def _pasted(rng: random.Random) -> Case:
    language = rng.choice(["en", "de", "fr", "es", "ru"])
    carrier, template = rng.choice([*CODE, *SHELL, *LOGS, *MARKUP, *LETTERS, *LETTERS])
    shape, value = _value(rng, language)
    return Case(
        "password", "credential", shape, language, carrier, template.format(p=value), (value,)
    )


def _tree(rng: random.Random) -> Case:
    language = rng.choice(list(TOLD))
    shape, value = _value(rng, language)
    text = rng.choice(TREES).format(p=json.dumps(value, ensure_ascii=False))
    return Case("password", "credential", shape, language, "json", text, (value,))


def _token(rng: random.Random) -> Case:
    carrier, template = rng.choice(TOKENS)
    alphabet = rng.choice((ALNUM, "0123456789abcdef", ALNUM + "-_"))
    value = (
        rng.choice(string.ascii_lowercase) + _pick(rng, alphabet, rng.choice((24, 32, 40))) + "7"
    )
    value = value if alphabet != "0123456789abcdef" else _pick(rng, alphabet, 32)
    return Case("token", "credential", "", "any", carrier, template.format(t=value), (value,))


def _code(rng: random.Random) -> Case:
    language, template = rng.choice(CODES)
    value = _pick(rng, "1234567890", rng.choice((4, 6))).replace("0000", "4821")
    value = f"48{value[2:]}" if value.startswith(("19", "20")) or len(set(value)) == 1 else value
    return Case("pin", "credential", "", language, "prose", template.format(c=value), (value,))


def seed_words(rng: random.Random, count: int) -> list[str]:
    """A phrase of so many words with a sound checksum."""
    from upswing.redact.bip39 import WORDS as LIST

    size = count * 32 // 3 // 8
    entropy = rng.randbytes(size)
    check = size // 4
    number = int.from_bytes(entropy) << check | sha256(entropy).digest()[0] >> (8 - check)
    return [LIST[number >> 11 * i & 2047] for i in reversed(range(count))]


def _in_list(words: list[str], rng: random.Random) -> object:
    return rng.choice(({"seed": words}, words, {"wallet": {"mnemonic": words, "network": "main"}}))


def _in_fields(words: list[str], rng: random.Random) -> object:
    name = rng.choice(("word{}", "word_{}", "w{}", "{}", "seed-{}"))
    fields = {name.format(i): word for i, word in enumerate(words, rng.choice((0, 1)))}
    return rng.choice((fields, {"form": fields, "user": "bob"}))


def _in_objects(words: list[str], rng: random.Random) -> object:
    return rng.choice(
        (
            [{"index": i, "word": word} for i, word in enumerate(words)],
            {"words": [{"word": word, "position": i} for i, word in enumerate(words, 1)]},
            [[i, word] for i, word in enumerate(words, 1)],
            [
                {"tool": "type", "args": {"selector": f"#word-{i}", "text": word}}
                for i, word in enumerate(words, 1)
            ],
        )
    )


def _seed(rng: random.Random) -> Case:
    words = seed_words(rng, rng.choice((12, 24, 12, 18, 15)))
    form, build = rng.choice((("list", _in_list), ("fields", _in_fields), ("objects", _in_objects)))
    text = json.dumps(build(words, rng))
    return Case("seed", "credential", form, "en", "json", text, _rows(words))


def _rows(words: list[str]) -> tuple[str, ...]:
    """What must not be found: any of the words as a text of its own."""
    return tuple(f'"{word}"' for word in words)


def _clean(rng: random.Random) -> Case:
    if rng.random() < 0.7:
        language = rng.choice(list(STAYS))
        text = rng.choice(STAYS[language])
        text = rng.choice(("{}", "{}", "{}\nthx", "bob: {}", "- {}")).format(text)
        return Case("prose", "clean", "", language, "prose", text, ())
    carrier, text = rng.choice(CLEAN)
    return Case(carrier, "clean", "", "en", carrier, text, ())


_MAKERS = (
    (_sentence, 8),
    (_pasted, 3),
    (_tree, 1),
    (_token, 1),
    (_code, 1),
    (_seed, 1),
    (_clean, 5),
)


def cases(seed: int, count: int) -> Iterator[Case]:
    rng = random.Random(seed)
    makers = [make for make, share in _MAKERS for _ in range(share)]
    for _ in range(count):
        yield rng.choice(makers)(rng)
