"""On which devices and processes does a job run?

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

from upswing.train.core.recipe import Recipe
from upswing.train.learn.learner import ProcessGroup

Precision = Literal["fp32", "fp16", "bf16"]


def choose_precision(recipe: Recipe) -> Precision:
    """The recipe's, else bf16 on a GPU that has it."""
    if recipe.precision is not None:
        return recipe.precision
    gpu = torch.cuda.is_available() and torch.cuda.is_bf16_supported()
    return "bf16" if gpu else "fp32"


def make_process_group(recipe: Recipe) -> ProcessGroup:
    """The processes of this job, seen from this one."""
    precision = choose_precision(recipe)
    several = int(os.environ.get("WORLD_SIZE", "1")) > 1
    if not several and not torch.cuda.is_available() and precision == "fp32":
        return ProcessGroup()
    from accelerate import Accelerator

    helper = Accelerator(
        cpu=not torch.cuda.is_available(),
        mixed_precision="no" if precision == "fp32" else precision,
    )
    return ProcessGroup(
        rank=helper.process_index,
        size=helper.num_processes,
        device=helper.device,
        sum_across=partial(helper.reduce, reduction="sum"),
        backward=helper.backward,
        autocast=helper.autocast,
        prepare=helper.prepare,
        clip_gradients=helper.clip_grad_norm_,
        barrier=helper.wait_for_everyone,
    )
