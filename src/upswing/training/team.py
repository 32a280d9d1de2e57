"""On what does a job run, and with whom?

On one CPU in single precision nothing is needed. On GPUs, on several processes or hosts, or in
mixed precision `accelerate` knows the device, sums gradients and scales what half precision would
lose. Every process holds the whole model and takes some passes of each step, so it is the passes
that are spread, not the weights.
"""

from __future__ import annotations

import os
from functools import partial
from typing import Literal

import torch

from upswing.train.learner import Team
from upswing.train.recipe import Recipe

Precision = Literal["fp32", "fp16", "bf16"]


def precision_of(recipe: Recipe) -> Precision:
    """The recipe's, else bf16 on a GPU that has it."""
    if recipe.precision is not None:
        return recipe.precision
    gpu = torch.cuda.is_available() and torch.cuda.is_bf16_supported()
    return "bf16" if gpu else "fp32"


def make_team(recipe: Recipe) -> Team:
    """The processes of this job, seen from this one."""
    precision = precision_of(recipe)
    several = int(os.environ.get("WORLD_SIZE", "1")) > 1
    if not several and not torch.cuda.is_available() and precision == "fp32":
        return Team()
    from accelerate import Accelerator

    helper = Accelerator(
        cpu=not torch.cuda.is_available(), mixed_precision="no" if precision == "fp32" else precision
    )  # fmt: skip
    return Team(
        rank=helper.process_index,
        size=helper.num_processes,
        device=helper.device,
        total=partial(helper.reduce, reduction="sum"),
        backward=helper.backward,
        autocast=helper.autocast,
        prepare=helper.prepare,
        clip=helper.clip_grad_norm_,
        meet=helper.wait_for_everyone,
    )
