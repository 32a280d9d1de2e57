"""What the policies say of what was done: recorded, at the start, in the reference."""

from contextlib import contextmanager
from dataclasses import replace

import pytest
import torch
from transformers import LlamaConfig, LlamaForCausalLM

from upswing.train.child.logprobs import LogprobCache
from upswing.train.core.recipe import Recipe
from upswing.train.core.spec import JobSpec
from upswing.train.learn.example import Example
from upswing.train.learn.example_tensors import compute_logprobs, recorded_logprobs


@pytest.fixture
def model():
    torch.manual_seed(0)
    config = LlamaConfig(
        vocab_size=32,
        hidden_size=32,
        intermediate_size=64,
        num_hidden_layers=2,
        num_attention_heads=2,
        num_key_value_heads=2,
        initializer_range=0.3,
    )
    return LlamaForCausalLM(config).eval()


def example(number, *, behaviour="me", **more):
    ids = (number + 1, 9, 10, number + 2, 11)
    return Example(
        f"t{number}",
        "g",
        "k",
        ids,
        (False,) * 3 + (True,) * 2,
        (0,) * 5,
        None,
        False,
        1.0,
        behaviour=behaviour,
        **more,
    )


def served(model, given, apart=0.0):
    """The example as a server records it: at temperature 1, whatever was sampled with."""
    (logps,) = compute_logprobs(model, [replace(given, temperature=1.0)], micro_tokens=1000)
    told = (0.0, 0.0, 0.0, *(min(0.0, each + apart) for each in logps.tolist()))
    return replace(given, logps=told, exact=True)


@contextmanager
def off(model):
    """Stands for an adapter that is switched off."""
    with torch.no_grad():
        model.lm_head.weight.mul_(0.5)
        yield
        model.lm_head.weight.mul_(2.0)


def known(tmp_path, examples, **knobs):
    spec = JobSpec("j", Recipe(**knobs), "base", parent="me")
    return LogprobCache(tmp_path, spec, examples)


def test_where_the_start_acted_recorded_and_start_are_the_same_at_any_temperature(model, tmp_path):
    given = [served(model, example(n, temperature=t)) for n, t in enumerate((1.0, 0.5, 1.6))]
    tracks = known(tmp_path, given).build_tensors(model, None, off)
    for track, one in zip(tracks, given, strict=True):
        assert torch.allclose(track.old_T, track.start_T, atol=1e-5)
        table = model(torch.tensor([one.ids])).logits[0] / one.temperature
        wanted = table.log_softmax(-1)[[2, 3], list(one.ids[3:])]
        assert torch.allclose(track.start_T, wanted, atol=1e-4)
    assert not torch.allclose(tracks[1].old_T, recorded_logprobs(given[1]), atol=0.05)


def test_a_record_of_another_policy_is_moved_by_its_difference_over_the_temperature(
    model, tmp_path
):
    given = [served(model, example(0, temperature=0.5), apart=-0.1)]
    (track,) = known(tmp_path, given).build_tensors(model, None, off)
    assert (track.old_T - track.start_T).tolist() == pytest.approx([-0.2, -0.2], abs=1e-4)


def test_what_was_not_recorded_is_what_the_start_says(model, tmp_path):
    (track,) = known(tmp_path, [example(0, behaviour="gone", temperature=0.7)]).build_tensors(
        model, None, off
    )
    assert torch.equal(track.old_T, track.start_T)


@pytest.mark.parametrize("algorithm", ["dpo", "kto", "grpo"])
def test_the_reference_is_the_one_that_is_named(model, tmp_path, algorithm):
    given = [example(0), example(1)]
    knobs = {"algorithm": algorithm, "kl_beta": 0.1 if algorithm == "grpo" else 0.0}
    for name in ("start", "base"):
        folder = tmp_path / name
        folder.mkdir()
        (track, _) = known(folder, given, reference=name, **knobs).build_tensors(model, None, off)
        assert torch.equal(track.ref_T, track.start_T) == (name == "start")
        assert (track.other is not None) == (algorithm == "kto")
        if algorithm == "kto":
            with off(model) if name == "base" else torch.no_grad():
                (wanted,) = compute_logprobs(model, [track.other], micro_tokens=1000)
            assert track.other_ref == pytest.approx(float(wanted.sum()), abs=1e-5)


def test_without_a_use_for_it_no_reference_is_computed(model, tmp_path):
    (track,) = known(tmp_path, [example(0)]).build_tensors(model, None, off)
    assert track.ref_T is None


def test_engines_that_disagree_are_told_apart_from_policies_that_differ(model, tmp_path):
    """The parent's tokens were recorded 0.02 nats too low; an older policy's do not count."""
    mine = [served(model, example(n, temperature=0.8), apart=-0.02) for n in range(3)]
    older = replace(served(model, example(5), apart=-3.0), behaviour="older")
    found = known(tmp_path, [*mine, older]).mismatch(model)
    assert found.logp == pytest.approx(0.02, abs=1e-4)
    assert found.kl == pytest.approx(0.02**2 / 2, rel=0.05)
    assert found.tokens == 6
    assert known(tmp_path, [older]).mismatch(model) is None


def test_a_child_that_goes_on_reads_what_was_computed(model, tmp_path):
    given = [served(model, example(n, temperature=0.5)) for n in range(2)]
    before = known(tmp_path, given, algorithm="kto").build_tensors(model, None, off)
    with torch.no_grad():
        model.lm_head.weight.mul_(3.0)  # it has been trained since
    after = known(tmp_path, given, algorithm="kto").build_tensors(model, None, off)
    for one, other in zip(before, after, strict=True):
        assert torch.equal(one.start_T, other.start_T)
        assert torch.equal(one.old_T, other.old_T)
        assert one.other_ref == other.other_ref
