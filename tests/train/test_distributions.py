"""What a model says of all tokens, where a trained one comes: as an ordinary forward pass has it."""

import pytest
import torch

from upswing.train.learn.example import Example
from upswing.train.learn.forward import full_distributions
from upswing.train.learn.packing import build_packs


@pytest.mark.parametrize("shared", [0, 4])
def test_each_row_is_that_of_an_ordinary_pass(bases, shared):
    from upswing.train.bases.catalog import resolve_base
    from upswing.train.bases.loading import load_base

    model, _ = load_base(resolve_base("tiny", bases))
    begin = tuple(range(10, 10 + shared))
    examples = [
        Example(
            str(n),
            "g",
            "t",
            ids,
            (False,) * (len(ids) - 3) + (True, False, True),
            (0,) * len(ids),
            None,
            False,
            1.0,
        )
        for n, ids in enumerate(((*begin, 5, 6, 7, 8, 9), (*begin, 50, 60, 70, 80, 90, 91)))
    ]
    (pack,) = build_packs(examples, micro_tokens=1000)
    for index, found_TV in zip(pack.examples, full_distributions(model, pack), strict=True):
        ids = torch.tensor([examples[index].ids])
        with torch.no_grad():
            logps_TV = model(input_ids=ids).logits[0].log_softmax(-1)
        torch.testing.assert_close(found_TV, logps_TV[[-4, -2]], atol=1e-5, rtol=1e-4)
