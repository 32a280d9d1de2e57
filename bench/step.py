"""How much sooner is one GRPO update step done when a group's prompt is computed once?

Both sides hold the same random weights in the shape of SmolLM2-135M, in fp32, and take the same
tokens, behaviour logprobs and advantages to gradients: no optimizer, no sampling. Two peers:

`trl`           a real `GRPOTrainer` and its `compute_loss`, `loss_type="dapo"`, `beta=0`, and its
                defaults for the rest, so a group of 16 passes in two batches of 8. Its training
                loop would also turn gradient checkpointing on, which takes a third longer; ours
                keeps activations, so here it does too. On a CPU it scores every position.
`padded batch`  transformers alone, at its best: the whole sequences, logits of the completions only.
"""

import gc
import os
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib.metadata import version
from typing import Any

from bench.harness import Row, versions

VOCABULARY = 49_152
CLIP = 0.2
BATCH = 8
ROUNDS = 3
DIFFERENCE = 1e-5


@dataclass(frozen=True)
class Shape:
    prompt: int
    completion: int
    group: int
    target: float

    def __str__(self) -> str:
        return f"prompt {self.prompt}, completion {self.completion}, group {self.group}"


SHAPES = (Shape(512, 64, 8, 3.5), Shape(512, 32, 16, 6.0))
Step = Callable[[], None]


def rows() -> list[Row]:
    os.environ["HF_HUB_OFFLINE"] = "1"
    return [row for shape in SHAPES for row in _rows_of(shape)]


def _rows_of(shape: Shape) -> Iterator[Row]:
    work = _work(shape)
    model, peer = _model(), _model()
    peer.load_state_dict(model.state_dict())
    ours = _ours(model, work)
    peers = {"trl": _trl(peer, work), "padded batch": _padded(peer, work)}
    differences = _differences(model, ours, peer, peers)  # which is the warm-up, too
    taken = [
        {name: _seconds(step) for name, step in [("ours", ours), *peers.items()]}
        for _ in range(ROUNDS)
    ]
    for name in peers:
        told = versions(
            torch=version("torch"), transformers=version("transformers"), trl=version("trl")
        )
        median = {side: statistics.median(one[side] for one in taken) for side in ("ours", name)}
        yield Row(
            name=f"GRPO step, {shape} ({median['ours']:.1f} s against {median[name]:.1f} s)",
            value=median[name] / median["ours"],
            target=shape.target,
            peer=name,
            versions=told,
        )
        yield Row(
            name=f"GRPO step, {shape}: gradients apart, in 1e-6 of a parameter's gradient",
            value=differences[name] * 1e6,
            target=DIFFERENCE * 1e6,
            better="lower",
            unit="",
            peer=name,
            versions=told,
        )


def _seconds(step: Step) -> float:
    gc.collect()
    start = time.perf_counter()
    step()
    return time.perf_counter() - start


def _differences(model: Any, ours: Step, peer: Any, peers: dict[str, Step]) -> dict[str, float]:
    """For each peer the farthest that a parameter's gradient lies from ours, by its norm."""
    ours()
    found = {}
    for name, step in peers.items():
        step()
        pairs = zip(model.parameters(), peer.parameters(), strict=True)
        found[name] = max(float((a.grad - b.grad).norm() / b.grad.norm()) for a, b in pairs)
    return found


# --- the work ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Work:
    shape: Shape
    prompt: Any
    completions: Any
    old: Any
    advantages: Any


def _model() -> Any:
    from transformers import LlamaConfig, LlamaForCausalLM

    config = LlamaConfig(
        vocab_size=VOCABULARY,
        hidden_size=576,
        intermediate_size=1536,
        num_hidden_layers=30,
        num_attention_heads=9,
        num_key_value_heads=3,
        max_position_embeddings=8192,
        tie_word_embeddings=True,
        attn_implementation="sdpa",
    )
    return LlamaForCausalLM(config).float().train()


def _work(shape: Shape) -> Work:
    import torch

    chance = torch.Generator().manual_seed(0)
    size = (shape.group, shape.completion)
    near = -10.8  # what a model with random weights says of any of 49,152 tokens
    return Work(
        shape,
        torch.randint(VOCABULARY, (shape.prompt,), generator=chance),
        torch.randint(VOCABULARY, size, generator=chance),
        near + 0.3 * torch.randn(size, generator=chance),
        torch.randn(shape.group, generator=chance),
    )


# --- the sides -----------------------------------------------------------------------------------


def _ours(model: Any, work: Work) -> Step:
    import torch

    from upswing.train.core.recipe import Recipe
    from upswing.train.learn.example import Example
    from upswing.train.learn.forward import score_pack
    from upswing.train.learn.losses.grpo import grpo_loss
    from upswing.train.learn.losses.terms import LossInputs, token_weights
    from upswing.train.learn.packing import build_packs

    shape, prompt = work.shape, tuple(work.prompt.tolist())
    trained = (False,) * shape.prompt + (True,) * shape.completion
    examples = [
        Example(
            str(row), "g", "t", prompt + tuple(ids), trained, (0,) * len(trained), None, True, 0.0
        )
        for row, ids in enumerate(work.completions.tolist())
    ]
    whole_BT = torch.ones_like(work.old)

    def step() -> None:
        model.zero_grad(set_to_none=True)
        for pack in build_packs(examples, micro_tokens=Recipe().micro_tokens):
            rows = list(pack.examples)
            scored = score_pack(model, pack, entropies=True)
            tokens = LossInputs(
                logps_BT=scored.logps_BT,
                old_BT=work.old[rows],
                mask_BT=pack.mask_BT,
                advantages_BT=work.advantages[rows, None] * pack.mask_BT,
                weights_BT=token_weights(whole_BT, "token")[rows],
                sequence_weights_B=torch.full((len(rows),), 1 / shape.group),
                entropies_BT=scored.entropies_BT,
            )
            grpo_loss(tokens, clip_low=CLIP, clip_high=CLIP).loss.backward()

    return step


def _trl(model: Any, work: Work) -> Step:
    import torch

    shape = work.shape
    trainer = _trainer(model, shape)
    trainer.current_gradient_accumulation_steps = shape.group // BATCH
    inputs = [
        {
            "prompt_ids": work.prompt.expand(BATCH, -1),
            "prompt_mask": torch.ones(BATCH, shape.prompt, dtype=torch.long),
            "completion_ids": work.completions[rows],
            "completion_mask": torch.ones(BATCH, shape.completion, dtype=torch.long),
            "old_per_token_logps": work.old[rows],
            "advantages": work.advantages[rows],
            "num_items_in_batch": torch.tensor(shape.group * shape.completion),
        }
        for rows in _batches(shape)
    ]

    def step() -> None:
        model.zero_grad(set_to_none=True)
        for batch in inputs:
            trainer.compute_loss(model, batch).backward()

    return step


def _batches(shape: Shape) -> list[slice]:
    return [slice(start, start + BATCH) for start in range(0, shape.group, BATCH)]


def _trainer(model: Any, shape: Shape) -> Any:
    from datasets import Dataset
    from tokenizers import Tokenizer, models
    from transformers import PreTrainedTokenizerFast
    from trl import GRPOConfig, GRPOTrainer

    words = Tokenizer(models.WordLevel({"<eos>": 0, "word": 1}, unk_token="<eos>"))
    with tempfile.TemporaryDirectory() as folder:
        config = GRPOConfig(
            output_dir=folder,
            loss_type="dapo",
            beta=0.0,
            epsilon=CLIP,
            bf16=False,
            use_cpu=True,
            report_to="none",
            gradient_checkpointing=False,
            num_generations=shape.group,
            per_device_train_batch_size=BATCH,
            gradient_accumulation_steps=shape.group // BATCH,
            max_completion_length=shape.completion,
        )
        return GRPOTrainer(
            model,
            reward_funcs=lambda completions, **_: [0.0] * len(completions),
            args=config,
            train_dataset=Dataset.from_dict({"prompt": ["word"]}),
            processing_class=PreTrainedTokenizerFast(tokenizer_object=words, eos_token="<eos>"),
        )


def _padded(model: Any, work: Work) -> Step:
    import torch

    shape = work.shape
    tokens = shape.group * shape.completion

    def loss(rows: slice) -> Any:
        targets_BT = work.completions[rows]
        ids = torch.cat([work.prompt.expand(len(targets_BT), -1), targets_BT], 1)
        logits_BTV = model(ids, use_cache=False, logits_to_keep=shape.completion + 1).logits[:, :-1]
        logps_BT = logits_BTV.log_softmax(-1).gather(2, targets_BT[..., None])[..., 0]
        ratio_BT = (logps_BT - work.old[rows]).exp()
        advantages_B1 = work.advantages[rows, None]
        gain_BT = torch.min(
            ratio_BT * advantages_B1, ratio_BT.clamp(1 - CLIP, 1 + CLIP) * advantages_B1
        )
        return -gain_BT.sum() / tokens

    def step() -> None:
        model.zero_grad(set_to_none=True)
        for rows in _batches(shape):
            loss(rows).backward()

    return step
