"""What a training child says of the error that ended it, so that recovery can decide."""

import errno

import pytest
import torch

from upswing.errors import Misuse
from upswing.train.child.__main__ import classify_error
from upswing.train.child.data import UnusableData
from upswing.train.learn.learner import Diverged


class OutOfMemoryError(Exception):
    """Somebody else's, of the same name."""


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (MemoryError(), "OOM"),
        (torch.OutOfMemoryError("CUDA out of memory."), "OOM"),
        (OSError(errno.ENOMEM, "Cannot allocate memory"), "OOM"),
        (OSError(errno.ENOSPC, "No space left on device"), "INFRA"),
        (Diverged("the loss is not a number"), "CONVERGENCE"),
        (Misuse("The base is not on this machine."), "DATA"),
        (UnusableData("samples.jsonl is damaged"), "DATA"),
        (OutOfMemoryError(), "UNKNOWN"),
        (RuntimeError("the memory of elephants"), "UNKNOWN"),
        (KeyError("x"), "UNKNOWN"),
    ],
    ids=repr,
)
def test_an_errors_type_says_what_kind_of_trouble_it_is(error, code):
    assert classify_error(error) == (code, [])


def test_a_tensor_too_large_for_any_machine_is_out_of_memory():
    with pytest.raises(RuntimeError) as caught:
        torch.empty(2**60, dtype=torch.uint8)
    assert classify_error(caught.value)[0] == "OOM"


def test_bad_trajectories_are_named():
    error = UnusableData("Two of them are not what was written.", ["t-1", "t-2"])
    assert classify_error(error) == ("DATA", ["t-1", "t-2"])
