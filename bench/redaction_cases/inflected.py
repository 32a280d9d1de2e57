"""Names of secrets in their cases, values before their names, codes and phones of nineteen languages.

The sentences were written before the rules were tried on them, and are cut in two halves by a hash: rules are
written with the first, and the second (`inflected_aside`) is measured and not read.
"""

import random
import string
from collections.abc import Iterator
from hashlib import sha256

from bench.redaction_cases import Case
from bench.redaction_cases._inflected_sentences import (
    ASIDES,
    BARE,
    BEFORE,
    CALLS,
    CLEAN,
    CODES,
    NAMED,
    WORDS,
)

PHONES = {
    "en": ("07### ### ###", "020 7### ####", "(4##) 2##-####", "4##-2##-####"),
    "de": ("0171 #######", "0151 ## ## ## ##", "030 ### ## ##", "0176/#######"),
    "fr": ("06 ## ## ## ##", "07 ## ## ## ##", "01 ## ## ## ##", "06.##.##.##.##", "06########"),
    "es": ("6## ## ## ##", "6## ### ###", "91 ### ## ##", "7## ### ###"),
    "it": ("3## ### ####", "3## #######", "02 #### ####", "06 ### ####"),
    "pt": ("91# ### ###", "93# ### ###", "21# ### ###", "96# ## ## ##"),
    "nl": ("06 ########", "06 ## ## ## ##", "06-########", "020 ### ####"),
    "pl": ("6## ### ###", "5## ### ###", "22 ### ## ##", "6##-###-###"),
    "cs": ("60# ### ###", "77# ### ###", "2## ### ###"),
    "sv": ("070 ### ## ##", "070-### ## ##", "073-#######", "08-### ### ##"),
    "da": ("## ## ## ##", "2### ####", "4## ## ###"),
    "fi": ("040 ### ####", "050 #######", "045 ### ## ##"),
    "hu": ("06 30 ### ####", "06 20 ### ## ##", "06-70-###-####"),
    "tr": ("0532 ### ## ##", "0 542 ### ## ##", "0212 ### ## ##"),
    "ru": ("8 916 ### ## ##", "8 (903) ###-##-##", "8-926-###-##-##"),
    "uk": ("067 ### ## ##", "050 ### ## ##", "(093) ###-##-##"),
    "ro": ("0722 ### ###", "0744 ### ###", "021 ### ## ##"),
    "el": ("697 ### ####", "694# ######", "210 ### ####"),
    "bg": ("088 ### ####", "0878 ### ###", "02 ### ####"),
}
LISTS = {
    "named": (NAMED, 6),
    "before": (BEFORE, 6),
    "aside": (ASIDES, 2),
    "code": (CODES, 5),
    "call": (CALLS, 5),
    "bare": (BARE, 1),
    "clean": (CLEAN, 8),
}


def _half(sentence: str) -> int:
    return sha256(sentence.encode()).digest()[0] % 2


def _digits(rng: random.Random, shape: str) -> str:
    return "".join(str(rng.randint(1, 9)) if ch == "#" else ch for ch in shape)


def _value(rng: random.Random, language: str) -> tuple[str, str]:
    word = rng.choice(WORDS[language].split())
    latin = rng.choice(WORDS["en"].split())
    letters = string.ascii_letters + string.digits + "!#%*+-_"
    shapes = {
        "counted": word + str(rng.randint(1, 2030)),
        "counted too": word + str(rng.randint(1, 99)),
        "plain": word,
        "latin": latin.capitalize() + str(rng.randint(1, 99)) + rng.choice(("", "!", "#")),
        "managed": "".join(rng.choice(letters) for _ in range(11)) + str(rng.randint(0, 9)) + "k",
        "joined": f"{latin}-{word.lower()}-{rng.randint(1, 99)}",
    }
    shape = rng.choice(list(shapes))
    return shape, shapes[shape]


def half(which: int, seed: int, count: int) -> Iterator[Case]:
    rng = random.Random(seed)
    sentences = {
        name: [
            (language, sentence)
            for language, some in table.items()
            for sentence in some
            if _half(sentence) == which
        ]
        for name, (table, _) in LISTS.items()
    }
    names, weights = list(LISTS), [weight for _, weight in LISTS.values()]
    for _ in range(count):
        (name,) = rng.choices(names, weights)
        yield _case(rng, name, *rng.choice(sentences[name]))


def _case(rng: random.Random, name: str, language: str, sentence: str) -> Case:
    if name == "clean":
        return Case("prose", "clean", "", language, "prose", sentence, ())
    if name in ("call", "bare"):
        value = _digits(rng, rng.choice(PHONES[language]))
        text = sentence.format(t=value)
        return Case(name, "person", "", language, "prose", text, (value,))
    if name == "code":
        value = _digits(rng, rng.choice(("####", "######", "######", "###-###", "########")))
        value = "4" + value[1:] if value.startswith(("19", "20")) else value
        text = sentence.format(c=value)
        return Case(name, "credential", "", language, "prose", text, (value,))
    shape, value = _value(rng, language)
    text = sentence.format(p=value)
    return Case(name, "credential", shape, language, "prose", text, (value,))


def cases(seed: int, count: int) -> Iterator[Case]:
    yield from half(0, seed, count)
