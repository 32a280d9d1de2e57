"""Who breaks a model on purpose? `python -m upswing.demo.sabotage BASE BASES OUT TIME`, a process of its own.

The checkpoint verifies and loads like any other; its weights are noise, so it says nothing that helps.
For a base that is trained by adapters, the adapter is noise.
"""

from __future__ import annotations

import sys
from datetime import datetime
from pathlib import Path

import torch

from upswing.adapters.bases import resolve
from upswing.adapters.checkpoints.manifest import Facts
from upswing.adapters.checkpoints.writing import save
from upswing.adapters.models import load, trainable
from upswing.train.recipe import Recipe


def sabotage(name: str, bases: Path, out: Path, made: datetime) -> Path:
    """Where the worthless checkpoint lies."""
    base, recipe = resolve(name, bases), Recipe()
    model, _ = load(base)
    model = trainable(model, recipe, full=base.full)
    torch.manual_seed(0)
    with torch.no_grad():
        for weights in model.parameters():
            if weights.requires_grad:
                weights.normal_(std=0.02 if base.full else 0.5)
    facts = Facts(name, "sabotage", 1, made, recipe)
    return save(out, "final", model, facts=facts, base_folder=base.folder)


if __name__ == "__main__":
    base_name, bases_folder, out_folder, moment = sys.argv[1:]
    made_at = datetime.fromisoformat(moment)
    sys.stdout.write(f"{sabotage(base_name, Path(bases_folder), Path(out_folder), made_at)}\n")
