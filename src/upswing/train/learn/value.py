"""What should the value head expect before the first step?

A head that starts from nothing calls every answer to an easy task good and every answer to a hard
one bad, until it has learned what tasks are worth; by then a job over logged data is over. So it is
fitted to the returns first, by ridge regression on what the model sees before each turn. How strongly
it is held back is chosen by tasks that were left out, with "expect the mean everywhere" among the
choices: a head that only knows its tasks by heart would expect exactly what came, and leave no
advantage to learn from.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from upswing.train.learn.advantages import members_by_group

RIDGE_STRENGTHS = (0.01, 0.1, 1.0, 10.0, 100.0, 1000.0)
"""Of the ridge, in mean squared singular values of the features."""
_FOLDS = 5
_MAX_ROWS = 4096
"""Turns that are fitted to; more would only take longer."""


def fit_value(
    states_NH: Tensor, returns_N: Tensor, tasks: Sequence[str]
) -> tuple[Tensor, float, float]:
    """Weights and bias of the head, and the share of the variance it explains on left-out tasks."""
    every = max(1, -(-len(tasks) // _MAX_ROWS))
    states_NH, returns_N = states_NH[::every].double(), returns_N[::every].double()
    folds = _task_folds(tasks[::every])
    constant = _validation_error(folds, states_NH, returns_N, None)
    errors = (
        {s: _validation_error(folds, states_NH, returns_N, s) for s in RIDGE_STRENGTHS}
        if folds
        else {}
    )
    best = min(errors, key=lambda s: errors[s], default=None)
    if best is None or not errors[best] < constant:
        return torch.zeros(states_NH.shape[1]), float(returns_N.mean()), 0.0
    weights_H, bias = _ridge_regression(states_NH, returns_N, best)
    return weights_H.float(), bias, 1 - errors[best] / constant


def _task_folds(tasks: Sequence[str]) -> list[list[int]]:
    """Places of what is left out together: whole tasks, round and round."""
    by_task = list(members_by_group(tasks).values())
    folds = [
        [place for places in by_task[start::_FOLDS] for place in places] for start in range(_FOLDS)
    ]
    return [fold for fold in folds if fold] if len(by_task) >= _FOLDS else []


def _validation_error(
    folds: Sequence[Sequence[int]], states_NH: Tensor, returns_N: Tensor, strength: float | None
) -> float:
    """The squared error on what was left out; with no strength, of the mean of the rest."""
    total = 0.0
    for fold in folds:
        kept = torch.ones(len(returns_N), dtype=torch.bool)
        kept[list(fold)] = False
        if strength is None:
            expected = returns_N[kept].mean()
        else:
            weights_H, bias = _ridge_regression(states_NH[kept], returns_N[kept], strength)
            expected = states_NH[~kept] @ weights_H + bias
        total += float((returns_N[~kept] - expected).square().sum())
    return total


def _ridge_regression(
    states_NH: Tensor, returns_N: Tensor, strength: float
) -> tuple[Tensor, float]:
    """Least squares around the means, in whichever of the two forms is smaller."""
    middle_H, mean = states_NH.mean(0), returns_N.mean()
    x_NH, y_N = states_NH - middle_H, returns_N - mean
    rows, width = x_NH.shape
    by = strength * float(x_NH.square().sum()) / min(rows, width) + 1e-12
    if rows < width:
        gram_NN = x_NH @ x_NH.T + by * torch.eye(rows, dtype=x_NH.dtype)
        weights_H = x_NH.T @ torch.linalg.solve(gram_NN, y_N)
    else:
        gram_HH = x_NH.T @ x_NH + by * torch.eye(width, dtype=x_NH.dtype)
        weights_H = torch.linalg.solve(gram_HH, x_NH.T @ y_N)
    return weights_H, float(mean - middle_H @ weights_H)
