"""What a value head expects before the first step."""

import pytest
import torch

from upswing.train.learn.value import fit_value

WIDTH = 48


def world(tasks=60, attempts=4, *, noise=0.2, worth=1.0, seed=0):
    """Tasks whose worth shows in the features; attempts at one see the same."""
    chance = torch.Generator().manual_seed(seed)
    features = torch.randn(tasks, WIDTH, generator=chance)
    true_H = torch.zeros(WIDTH)
    true_H[:2] = 0.3 * worth
    states_NH = features.repeat_interleave(attempts, 0)
    returns_N = 0.5 + states_NH @ true_H + noise * torch.randn(len(states_NH), generator=chance)
    names = [f"k{n}" for n in range(tasks) for _ in range(attempts)]
    return states_NH, returns_N, names


def test_a_head_learns_what_tasks_are_worth():
    weights_H, bias, explained = fit_value(*world(tasks=400))
    fresh_NH, fresh_N, _ = world(tasks=400, seed=1)
    left = (fresh_N - fresh_NH @ weights_H - bias).square().mean()
    assert left < 0.4 * fresh_N.var()
    assert explained > 0.6


@pytest.mark.parametrize("tasks", [8, 60])
def test_where_nothing_shows_it_expects_the_mean_and_learns_nothing_by_heart(tasks):
    """With more features than tasks, least squares would expect each return exactly."""
    states_NH, returns_N, names = world(tasks=tasks, worth=0.0)
    weights_H, bias, _ = fit_value(states_NH, returns_N, names)
    left = (returns_N - states_NH @ weights_H - bias).var()
    assert left > 0.6 * returns_N.var()


def test_too_few_tasks_to_leave_some_out_give_the_mean():
    states_NH, returns_N, names = world(tasks=4)
    weights_H, bias, explained = fit_value(states_NH, returns_N, names)
    assert not weights_H.any()
    assert bias == pytest.approx(returns_N.mean().item())
    assert explained == 0.0


def test_a_shift_of_the_returns_shifts_only_the_bias():
    states_NH, returns_N, names = world()
    weights_H, bias, _ = fit_value(states_NH, returns_N, names)
    moved_H, moved, _ = fit_value(states_NH, returns_N + 3, names)
    assert torch.allclose(weights_H, moved_H, atol=1e-6)
    assert moved == pytest.approx(bias + 3, abs=1e-5)


def test_very_many_turns_are_thinned_out():
    _, bias, explained = fit_value(*world(tasks=3000))
    assert bias == pytest.approx(0.5, abs=0.05)
    assert explained > 0.6
