"""Where does `tiny` come from? Made here in seconds, once, and kept as an ordinary model folder.

The folder's name is a hash of everything that makes it what it is; whoever changes a word or a knob
gets another model beside the old one, and a checkpoint of the old one still finds its base.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path

import torch
from transformers.utils import logging

from upswing.adapters.once import made_once
from upswing.adapters.tiny.corpus import FORMS
from upswing.adapters.tiny.model import build_model
from upswing.adapters.tiny.recipe import SHAPE, WARMTH, Shape, Warmth
from upswing.adapters.tiny.tokenizer import build_tokenizer
from upswing.adapters.tiny.vocabulary import PARTS, SPECIALS, TEMPLATE, actions, words
from upswing.adapters.tiny.warm import warm_up

REVISION = 1
"""Raised when the code changes what it makes from the same knobs."""
_THREADS = 1
"""Always as many: sums in another order would give another model from the same seed. And threads
that wait for each other take minutes where the cores have other work."""


def ensure_tiny(
    cache: Path, seed: int = 0, *, shape: Shape = SHAPE, warmth: Warmth = WARMTH
) -> Path:
    """The folder of `tiny`, made if it is not there yet."""
    place = cache / f"tiny-{_fingerprint(seed, shape, warmth)}"
    return made_once(place, lambda folder: _make(folder, seed, shape, warmth))


def _fingerprint(seed: int, shape: Shape, warmth: Warmth) -> str:
    knobs = [REVISION, seed, asdict(shape), asdict(warmth)]
    text = [actions(), words(), FORMS, PARTS, SPECIALS, TEMPLATE]
    return hashlib.sha256(json.dumps([knobs, text]).encode()).hexdigest()[:12]


def _make(folder: Path, seed: int, shape: Shape, warmth: Warmth) -> None:
    logging.disable_progress_bar()  # type: ignore[no-untyped-call]  # theirs has no types
    tokenizer = build_tokenizer()
    with _threads(_THREADS):
        model = build_model(tokenizer, shape, torch.Generator().manual_seed(seed))
        warm_up(model, tokenizer, warmth, seed)
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    _say_it_plainly(folder / "tokenizer_config.json")


def _say_it_plainly(config: Path) -> None:
    """The class by the name that every version of transformers knows."""
    told = json.loads(config.read_text("utf-8"))
    told["tokenizer_class"] = "PreTrainedTokenizerFast"
    config.write_text(json.dumps(told, indent=2) + "\n", "utf-8")


@contextmanager
def _threads(count: int) -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(count)
    try:
        yield
    finally:
        torch.set_num_threads(before)
