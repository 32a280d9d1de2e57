"""Who breaks a model on purpose? `python -m upswing.demo.sabotage BASE BASES OUT TIME`, a process of its own.

The checkpoint verifies and loads like any other; its weights are noise, so it says nothing that helps.
For a base that is trained by adapters, the adapter is noise.
"""

from __future__ import annotations

import sys
from datetime import datetime
from pathlib import Path

import torch

from upswing.train.bases.catalog import resolve_base
from upswing.train.bases.loading import load_base, make_trainable
from upswing.train.checkpoints.manifest import CheckpointInfo
from upswing.train.checkpoints.writing import save_checkpoint
from upswing.train.core.recipe import Recipe


def write_worthless_checkpoint(name: str, bases: Path, out: Path, made: datetime) -> Path:
    """Where the worthless checkpoint lies."""
    base, recipe = resolve_base(name, bases), Recipe()
    model, _ = load_base(base)
    model = make_trainable(model, recipe, full=base.full)
    torch.manual_seed(0)
    with torch.no_grad():
        for weights in model.parameters():
            if weights.requires_grad:
                weights.normal_(std=0.02 if base.full else 0.5)
    facts = CheckpointInfo(name, "sabotage", 1, made, recipe)
    return save_checkpoint(out, "final", model, info=facts, base_folder=base.folder)


if __name__ == "__main__":
    base_name, bases_folder, out_folder, moment = sys.argv[1:]
    made_at = datetime.fromisoformat(moment)
    sys.stdout.write(
        f"{write_worthless_checkpoint(base_name, Path(bases_folder), Path(out_folder), made_at)}\n"
    )
