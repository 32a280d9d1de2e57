"""A seed phrase whose words are texts of their own in a tree: items, fields, lines."""

import json
import random
import re

import pytest

from upswing.redact import Redactor
from upswing.redact.bip39 import WORDS
from upswing.redact.disguise import MARKS
from upswing.redact.wallet import is_seed_phrase

REDACTOR = Redactor()


def phrase_of(chance):
    """Words by chance, until the checksum of one is sound."""
    while True:
        found = [chance.choice(WORDS) for _ in range(chance.choice((12, 15, 18, 21, 24)))]
        if is_seed_phrase(found) and found != sorted(found):
            return found


def in_groups(words, size):
    return [words[i : i + size] for i in range(0, len(words), size)]


SHAPES = {
    "list": lambda words: {"mnemonic": words},
    "capitals": lambda words: [word.upper() for word in words],
    "spaces": lambda words: [f" {word} " for word in words],
    "numbered": lambda words: [f"{i}. {word}" for i, word in enumerate(words, 1)],
    "hashed": lambda words: [f"#{i} {word}" for i, word in enumerate(words, 1)],
    "objects": lambda words: [{"no": i, "word": word} for i, word in enumerate(words, 1)],
    "objects with texts": lambda words: [{"no": str(i), "w": w} for i, w in enumerate(words, 1)],
    "fields": lambda words: {str(i): word for i, word in enumerate(words, 1)},
    "pairs": lambda words: [[str(i), word] for i, word in enumerate(words, 1)],
    "rows": lambda words: in_groups(words, 4),
    "lines": lambda words: [" ".join(row) for row in in_groups(words, 3)],
    "halves": lambda words: [" ".join(row) for row in in_groups(words, -(-len(words) // 2))],
    "turns": lambda words: [
        {"action": {"type": "fill", "value": word}, "result": "typed it"} for word in words
    ],
}


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("seed", range(6))
def test_every_word_goes(shape, seed):
    words = phrase_of(random.Random(seed))
    out = REDACTOR.tree({"told": SHAPES[shape](words)})
    kept = json.dumps(out.value["told"]).lower().replace('"word"', "").replace('"value"', "")
    left = [word for word in words if f'"{word}' in kept or f" {word}" in kept]
    assert not left or left == ["fill"]
    assert {finding.kind for finding in out.findings} == {"seed-phrase"}


@pytest.mark.parametrize(
    "tree",
    [
        sorted(random.Random(1).sample(WORDS, 24)),
        [*WORDS[:6], "a sentence that is none", *WORDS[6:12]],
        ["the order was late", "cancel it", "open the door", "try again", "close", "about"],
        [str(number) for number in range(40)],
    ],
)
def test_lists_that_are_none_stay(tree):
    assert not REDACTOR.tree(tree).changed


def test_the_mark_of_words_in_a_row_passes_over_no_word_of_the_list():
    row = next(pattern for name, pattern, _ in MARKS if name == "words")
    for first in range(0, len(WORDS), 12):
        words = (WORDS + WORDS[:12])[first : first + 12]
        assert re.fullmatch(f"{row}[a-z]*", " ".join(words))
    assert not re.search(row, "the order was late and the door was open for all of them " * 3)
