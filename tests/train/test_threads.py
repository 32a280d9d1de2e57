"""With how many threads is a model trained? As many as suit it, and leave a model server its cores."""

import os

import pytest
import torch

from upswing.config import TrainConfig
from upswing.train.bases.loading import set_threads
from upswing.train.wiring import job_limits

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
    ("model", "configured", "shares_cores", "expected"),
    [
        (SMALL, None, False, 1),
        (SMALL, None, True, 1),
        (LARGE, None, True, CORES - CORES // 2),
        (LARGE, None, False, 3),
        (SMALL, 2, False, 2),
        (LARGE, 2, True, 2),
    ],
)
def test_the_table(model, configured, shares_cores, expected):
    set_threads(model, configured, shares_cores=shares_cores)
    assert torch.get_num_threads() == expected


@pytest.mark.parametrize("shares_cores", [True, False])
def test_what_the_user_set_and_a_server_on_the_same_cores_reach_a_job(shares_cores):
    limits = job_limits(TrainConfig(threads=7), shares_cores=shares_cores)
    assert (limits.threads, limits.shares_cores) == (7, shares_cores)
