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

from upswing.infra.once import make_folder_once
from upswing.train.bases.tiny.corpus import FORMS
from upswing.train.bases.tiny.model import build_model
from upswing.train.bases.tiny.pretraining import pretrain_model
from upswing.train.bases.tiny.recipe import PRETRAINING, SHAPE, ModelShape, PretrainingSettings
from upswing.train.bases.tiny.tokenizer import build_tokenizer
from upswing.train.bases.tiny.vocabulary import (
    PARTS,
    SPECIALS,
    TEMPLATE,
    action_words,
    vocabulary_words,
)

REVISION = 1
"""Raised when the code changes what it makes from the same knobs."""
_THREADS = 1
"""Always as many: sums in another order would give another model from the same seed. And threads
that wait for each other take minutes where the cores have other work."""


def ensure_tiny(
    cache: Path,
    seed: int = 0,
    *,
    shape: ModelShape = SHAPE,
    pretraining: PretrainingSettings = PRETRAINING,
) -> Path:
    """The folder of `tiny`, made if it is not there yet."""
    place = cache / f"tiny-{_build_fingerprint(seed, shape, pretraining)}"
    return make_folder_once(place, lambda folder: _build_base(folder, seed, shape, pretraining))


def _build_fingerprint(seed: int, shape: ModelShape, pretraining: PretrainingSettings) -> str:
    knobs = [REVISION, seed, asdict(shape), asdict(pretraining)]
    text = [action_words(), vocabulary_words(), FORMS, PARTS, SPECIALS, TEMPLATE]
    return hashlib.sha256(json.dumps([knobs, text]).encode()).hexdigest()[:12]


def _build_base(
    folder: Path, seed: int, shape: ModelShape, pretraining: PretrainingSettings
) -> None:
    logging.disable_progress_bar()  # type: ignore[no-untyped-call]  # theirs has no types
    tokenizer = build_tokenizer()
    with _limited_threads(_THREADS):
        model = build_model(tokenizer, shape, torch.Generator().manual_seed(seed))
        pretrain_model(model, tokenizer, pretraining, seed)
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    _write_plain_config(folder / "tokenizer_config.json")


def _write_plain_config(config: Path) -> None:
    """The class by the name that every version of transformers knows."""
    settings = json.loads(config.read_text("utf-8"))
    settings["tokenizer_class"] = "PreTrainedTokenizerFast"
    config.write_text(json.dumps(settings, indent=2) + "\n", "utf-8")


@contextmanager
def _limited_threads(count: int) -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(count)
    try:
        yield
    finally:
        torch.set_num_threads(before)
