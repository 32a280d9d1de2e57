"""With how many threads is a model trained? As many as suit it, and leave the server beside it its cores."""

import os

import pytest
import torch

from upswing.adapters.models import set_threads
from upswing.config import TrainConfig
from upswing.workshop import limits_of

CORES = os.cpu_count() or 1
SMALL = torch.nn.Linear(100, 100, device="meta")
LARGE = torch.nn.Linear(5_000, 5_000, device="meta")


@pytest.fixture
def threads():
    """Torch's own number is put back."""
    before = torch.get_num_threads()
    torch.set_num_threads(3)
    yield
    torch.set_num_threads(before)


@pytest.mark.usefixtures("threads")
@pytest.mark.parametrize(
    ("model", "told", "beside", "expected"),
    [
        (SMALL, None, False, 1),
        (SMALL, None, True, 1),
        (LARGE, None, True, CORES - CORES // 2),
        (LARGE, None, False, 3),
        (SMALL, 2, False, 2),
        (LARGE, 2, True, 2),
    ],
)
def test_the_table(model, told, beside, expected):
    set_threads(model, told, beside=beside)
    assert torch.get_num_threads() == expected


@pytest.mark.parametrize("beside", [True, False])
def test_what_the_user_set_and_who_works_beside_it_reach_a_job(beside):
    limits = limits_of(TrainConfig(threads=7), beside=beside)
    assert (limits.threads, limits.beside) == (7, beside)
