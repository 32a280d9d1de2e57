"""Scoring a pack says what scoring each example alone says, and derives the same."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import cycle
from random import Random
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from peft import LoraConfig, get_peft_model
from torch import Tensor, nn
from transformers import (
    AutoModelForCausalLM,
    CohereConfig,
    FalconConfig,
    GPT2Config,
    GraniteConfig,
    LlamaConfig,
    LlamaForCausalLM,
    MistralConfig,
    PretrainedConfig,
    Qwen3Config,
)

from upswing.train.learn.example import Example
from upswing.train.learn.forward import LOGITS_PER_SLICE, score_pack
from upswing.train.learn.packing import build_packs
from upswing.train.learn.tree import CALL_COST_PAIRS

VOCABULARY = 61
WIDTH = 24
CLOSE = 1e-5
SHAPE: dict[str, Any] = {
    "vocab_size": VOCABULARY,
    "hidden_size": WIDTH,
    "intermediate_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "max_position_embeddings": 128,
}


def llama(**other: Any) -> LlamaForCausalLM:
    torch.manual_seed(0)
    knobs = {"num_key_value_heads": 2, "initializer_range": 0.3, **SHAPE, **other}
    return LlamaForCausalLM(LlamaConfig(**knobs, attn_implementation="sdpa"))


@pytest.fixture(scope="module", autouse=True)
def _one_thread():
    """Layers this small are slower on several."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="module")
def model() -> LlamaForCausalLM:
    return llama()


@pytest.fixture(scope="module")
def value_head() -> nn.Module:
    torch.manual_seed(1)
    return nn.Linear(WIDTH, 1)


def example(ids: Sequence[int], trained: Sequence[bool], turns: Sequence[int]) -> Example:
    return Example("t", "g", "k", tuple(ids), tuple(trained), tuple(turns), None, False, 0.0)


def family(seed: int, count: int = 6, prompt: int = 9) -> list[Example]:
    """Trajectories of several turns that part from one another here and there."""
    chance = Random(seed)
    found: list[list[int]] = [[chance.randrange(VOCABULARY) for _ in range(prompt)]]
    for _ in range(count):
        base = chance.choice(found)
        kept = base[: chance.randint(min(prompt, len(base)), len(base))]
        found.append(kept + [chance.randrange(VOCABULARY) for _ in range(chance.randint(0, 12))])
    return [
        example(
            ids,
            [at > 0 and (at // 4) % 2 == 1 for at in range(len(ids))],
            [at // 8 for at in range(len(ids))],
        )
        for ids in found
    ]


# --- one at a time -------------------------------------------------------------------------------


@dataclass(frozen=True)
class Alone:
    logps: Tensor
    entropies: Tensor
    values: Tensor


def alone(model: Any, one: Example, head: nn.Module) -> Alone:
    """The plain way: one sequence, all its logits."""
    out = model(torch.tensor([one.ids]), output_hidden_states=True)
    table_TV = (out.logits[0] / one.temperature).log_softmax(-1)
    entropies_T = -(table_TV.exp() * table_TV).sum(-1)
    trained = [at for at, yes in enumerate(one.trained) if yes]
    first = {one.turns[at]: at for at in reversed(trained)}
    before = [at - 1 for at in trained]
    logps_T = table_TV[before, [one.ids[at] for at in trained]]
    values = head(out.hidden_states[-1][0])[:, 0]
    return Alone(logps_T, entropies_T[before], values[[first[turn] - 1 for turn in sorted(first)]])


def close(found: Tensor, wanted: Tensor) -> bool:
    return found.shape == wanted.shape and bool(((found - wanted).abs() <= CLOSE).all())


def weights(seed: int, like: Tensor) -> Tensor:
    return torch.randn(like.shape, generator=torch.Generator().manual_seed(seed))


def weighed(index: int, logps_T: Tensor, entropies_T: Tensor, values_K: Tensor) -> Tensor:
    """A sum in which every number of an example has a weight of its own."""
    parts = (logps_T, entropies_T, values_K)
    return torch.stack([(weights(7 * index + n, x) * x).sum() for n, x in enumerate(parts)]).sum()


def gradients(modules: Sequence[nn.Module], sums: Callable[[], Sequence[Tensor]]) -> list[Tensor]:
    parameters = [p for module in modules for p in module.parameters() if p.requires_grad]
    for parameter in parameters:
        parameter.grad = None
    for each in sums():
        if each.requires_grad:
            each.backward()
    return [torch.zeros_like(p) if p.grad is None else p.grad.clone() for p in parameters]


def assert_same(
    model: Any,
    examples: Sequence[Example],
    head: nn.Module,
    micro_tokens: int = 10_000,
    *,
    call_cost_pairs: int = CALL_COST_PAIRS,
    logits_per_slice: int = LOGITS_PER_SLICE,
) -> None:
    """Numbers and gradients of the packs are those of the examples one at a time."""

    def packed() -> list[Tensor]:
        sums = []
        for pack in build_packs(
            examples, micro_tokens=micro_tokens, call_cost_pairs=call_cost_pairs
        ):
            scored = score_pack(
                model, pack, entropies=True, value_head=head, logits_per_slice=logits_per_slice
            )
            assert scored.entropies_BT is not None
            assert scored.values_BK is not None
            for row, index in enumerate(pack.examples):
                wanted = alone(model, examples[index], head)
                tokens, turns = len(wanted.logps), len(wanted.values)
                logps_T, rest = scored.logps_BT[row, :tokens], scored.logps_BT[row, tokens:]
                entropies_T, values_K = (
                    scored.entropies_BT[row, :tokens],
                    scored.values_BK[row, :turns],
                )
                assert not rest.any()
                assert close(logps_T, wanted.logps)
                assert close(entropies_T, wanted.entropies)
                assert close(values_K, wanted.values)
                sums.append(weighed(index, logps_T, entropies_T, values_K))
        return [torch.stack(sums).sum()]

    def plain() -> list[Tensor]:
        found = [(index, alone(model, one, head)) for index, one in enumerate(examples)]
        return [weighed(i, a.logps, a.entropies, a.values) for i, a in found]

    ours, theirs = (gradients([model, head], sums) for sums in (packed, plain))
    least = 1e-2 * max(float(wanted.norm()) for wanted in theirs)
    for found, wanted in zip(ours, theirs, strict=True):
        assert float((found - wanted).norm()) <= CLOSE * max(float(wanted.norm()), least)


# --- the same numbers ----------------------------------------------------------------------------


@pytest.mark.parametrize("micro_tokens", [1, 25, 10_000])
@pytest.mark.parametrize("call_cost", [-1000, 0, 2048])
def test_a_pack_says_and_derives_what_each_example_alone_does(
    model, value_head, micro_tokens, call_cost
):
    # from an attention call for each run to one for all
    assert_same(model, family(seed=3), value_head, micro_tokens, call_cost_pairs=call_cost)


@settings(max_examples=15, deadline=None)
@given(st.integers(0, 10_000), st.integers(1, 8), st.sampled_from([1, 30, 10_000]))
def test_whatever_the_family_the_numbers_and_gradients_are_the_same(
    model, value_head, seed, count, micro_tokens
):
    assert_same(model, family(seed, count), value_head, micro_tokens)


def test_identical_examples_prefixes_of_others_and_silent_ones_keep_their_rows(model, value_head):
    ids = [5, 9, 2, 33, 14, 8, 21]
    acts = [False, False, True, True, False, True, True]
    short = example(ids[:4], acts[:4], [0] * 4)
    whole = example(ids, acts, [0, 0, 0, 0, 1, 1, 1])
    silent = example(ids, [False] * 7, [0] * 7)
    assert_same(model, [whole, short, silent, whole], value_head)


@pytest.mark.parametrize("slice_", [VOCABULARY, 1 << 25])
def test_every_example_is_scored_at_its_own_temperature(model, value_head, slice_):
    examples = family(seed=17, count=4)
    heats = cycle((0.5, 1.0, 1.7))
    hot = [replace(one, temperature=next(heats)) for one in examples]
    assert_same(model, [*hot, *examples], value_head, logits_per_slice=slice_)


def test_a_pack_in_which_nothing_trains_is_scored_without_the_model(model, value_head):
    (pack,) = build_packs([example([1, 2, 3], [False] * 3, [0] * 3)], micro_tokens=10)
    scored = score_pack(model, pack, entropies=True, value_head=value_head)
    assert scored.logps_BT.shape == (1, 0)
    assert scored.values_BK is not None
    assert scored.values_BK.shape == (1, 0)


@pytest.mark.parametrize("slice_", [VOCABULARY, 5 * VOCABULARY])
def test_logits_in_slices_are_the_same_logits(model, value_head, slice_):
    assert_same(model, family(seed=4), value_head, logits_per_slice=slice_)


def test_without_gradients_nothing_is_kept_and_the_numbers_stay(model):
    (pack,) = build_packs(family(seed=5), micro_tokens=10_000)
    with torch.no_grad():
        quiet = score_pack(model, pack)
    assert not quiet.logps_BT.requires_grad
    assert quiet.entropies_BT is None
    assert quiet.values_BK is None
    assert close(quiet.logps_BT, score_pack(model, pack).logps_BT)


def test_an_entropy_nobody_derives_costs_the_gradient_nothing(model, value_head):
    (pack,) = build_packs(family(seed=6), micro_tokens=10_000)
    with_it, without = (
        gradients([model], lambda e=e: [score_pack(model, pack, entropies=e).logps_BT.sum()])
        for e in (True, False)
    )
    assert all(torch.equal(a, b) for a, b in zip(with_it, without, strict=True))


# --- other models --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "config",
    [
        LlamaConfig(**SHAPE, num_key_value_heads=4, tie_word_embeddings=True),
        LlamaConfig(
            **SHAPE,
            num_key_value_heads=1,
            attention_bias=True,
            rope_parameters={"rope_type": "linear", "factor": 2.0, "rope_theta": 1e4},
        ),
        MistralConfig(**SHAPE, num_key_value_heads=2, sliding_window=100),
        Qwen3Config(**SHAPE, num_key_value_heads=2, head_dim=8),
        GraniteConfig(**SHAPE, num_key_value_heads=2, logits_scaling=3.0),
        CohereConfig(**SHAPE, num_key_value_heads=2, logit_scale=0.5, eos_token_id=None),
        GPT2Config(
            vocab_size=VOCABULARY,
            n_embd=WIDTH,
            n_layer=2,
            n_head=4,
            resid_pdrop=0.0,
            embd_pdrop=0.0,
            attn_pdrop=0.0,
            bos_token_id=None,
            eos_token_id=None,
        ),
    ],
    ids=[
        "llama, all heads, tied",
        "llama, one key head, stretched",
        "mistral",
        "qwen3",
        "granite",
        "cohere",
        "gpt2",
    ],
)
def test_models_of_other_families_are_scored_alike(config: PretrainedConfig, value_head):
    torch.manual_seed(0)
    config.initializer_range = 0.2
    made = AutoModelForCausalLM.from_config(config, attn_implementation="sdpa")
    assert_same(made, family(seed=8, count=3), value_head)


def test_an_adapter_counts_when_it_is_on_and_not_when_it_is_off(value_head):
    adapted = with_adapter(llama())
    examples = family(seed=9, count=3)
    assert_same(adapted, examples, value_head)
    (pack,) = build_packs(examples, micro_tokens=10_000)
    on = score_pack(adapted, pack).logps_BT
    with adapted.disable_adapter():
        off = score_pack(adapted, pack).logps_BT
    assert not close(on, off)
    assert close(off, score_pack(llama(), pack).logps_BT)


def with_adapter(base: LlamaForCausalLM) -> Any:
    adapted = get_peft_model(base, LoraConfig(r=4, target_modules="all-linear"))
    torch.manual_seed(2)
    for name, parameter in adapted.named_parameters():
        if "lora_B" in name:  # they begin as zeros, which would hide them
            nn.init.normal_(parameter, std=0.3)
    return adapted


def test_only_the_adapter_gets_gradients_when_the_base_is_frozen():
    adapted = with_adapter(llama())
    (pack,) = build_packs(family(seed=10), micro_tokens=10_000)
    score_pack(adapted, pack, entropies=True).logps_BT.sum().backward()
    assert all(
        (parameter.grad is not None) == ("lora_" in name)
        for name, parameter in adapted.named_parameters()
    )


def test_layers_that_are_recomputed_see_the_same_tree(value_head):
    made = llama()
    made.gradient_checkpointing_enable()
    made.train()
    assert_same(made, family(seed=11), value_head)


def test_a_model_that_scored_a_pack_still_generates_as_before():
    made, ids = llama(), torch.tensor([[3, 1, 4, 1, 5]])
    knobs = {"max_new_tokens": 8, "do_sample": False, "pad_token_id": 0}
    before = made.generate(ids, **knobs)
    (pack,) = build_packs(family(seed=12), micro_tokens=10_000)
    score_pack(made, pack)
    assert torch.equal(made.generate(ids, **knobs), before)


def test_a_saved_model_does_not_need_us_to_be_loaded(tmp_path):
    made = llama()
    (pack,) = build_packs(family(seed=12), micro_tokens=10_000)
    score_pack(made, pack)
    made.save_pretrained(tmp_path)
    assert "upswing" not in (tmp_path / "config.json").read_text()


def test_numbers_are_finite_when_a_token_is_all_but_impossible():
    sharp = llama()
    with torch.no_grad():
        sharp.lm_head.weight *= 300
    (pack,) = build_packs(family(seed=13), micro_tokens=10_000)
    scored = score_pack(sharp, pack, entropies=True)
    assert scored.entropies_BT is not None
    assert scored.logps_BT.min().item() < -100
    both = scored.logps_BT.sum() + scored.entropies_BT.sum()
    found = gradients([sharp], lambda: [both])
    assert all(math.isfinite(float(each.sum())) for each in found)


def test_a_model_that_is_not_plain_attention_is_refused():
    made = AutoModelForCausalLM.from_config(FalconConfig(**SHAPE, alibi=True))
    (pack,) = build_packs(family(seed=14), micro_tokens=10_000)
    with pytest.raises(ValueError, match="FalconForCausalLM cannot share beginnings"):
        score_pack(made, pack)


def test_an_example_beyond_a_models_window_is_refused():
    config = MistralConfig(**SHAPE, num_key_value_heads=2, sliding_window=4)
    made = AutoModelForCausalLM.from_config(config)
    (pack,) = build_packs(family(seed=15), micro_tokens=10_000)
    with pytest.raises(ValueError, match="sees 4 tokens at a time"):
        score_pack(made, pack)


def test_what_is_no_model_of_transformers_is_refused():
    (pack,) = build_packs(family(seed=16), micro_tokens=10_000)
    with pytest.raises(TypeError, match="Linear is no model"):
        score_pack(nn.Linear(1, 1), pack)
