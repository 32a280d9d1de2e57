"""Do our losses equal TRL's, in value and in every parameter's gradient?

TRL's side is TRL's own: its trainers, built on a small Llama in a folder, compute the advantages,
the old and the reference logprobs and the loss. Our side is a plain `LlamaForCausalLM` with the
same weights, and gets nothing from TRL but the token ids. Every knob that TRL has a default for and
that matters here is named: its GRPO default is `dapo`, and its RLOO clips ratios of sequences.
All comparisons stand in this file, so that TRL is imported once.
"""

import copy

import pytest
import torch
from torch.nn.functional import log_softmax

from upswing.train.advantages import advantages, penalised
from upswing.train.losses.dpo import dpo
from upswing.train.losses.grpo import grpo
from upswing.train.losses.rloo import rloo
from upswing.train.losses.terms import Tokens, token_weights

CLOSE = 1e-5
PROMPTS = ["w3 w4 w5", "w6 w7"]
REWARDS = [1.0, 0.0, 0.25, 0.5, 0.0, 0.0, 0.75, 0.5]
FLAT = [1.0, 0.0, 0.25, 0.5, 0.5, 0.5, 0.5, 0.5]
EACH = 4
LONGEST = 9


@pytest.fixture(scope="module", autouse=True)
def _leave_no_trace():
    """One thread, since the models are too small to share; and TRL's accelerator state goes with it."""
    from accelerate.state import AcceleratorState, GradientState

    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)
    AcceleratorState._reset_state(reset_partial_state=True)
    GradientState._reset_state()


@pytest.fixture(scope="module")
def tokenizer():
    from tokenizers import Tokenizer, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    words = {"<pad>": 0, "<eos>": 1, "<unk>": 2} | {f"w{i}": i for i in range(3, 16)}
    made = Tokenizer(models.WordLevel(words, unk_token="<unk>"))
    made.pre_tokenizer = pre_tokenizers.Whitespace()
    return PreTrainedTokenizerFast(
        tokenizer_object=made, pad_token="<pad>", eos_token="<eos>", unk_token="<unk>"
    )


@pytest.fixture(scope="module")
def folder(tmp_path_factory, tokenizer):
    from transformers import LlamaConfig, LlamaForCausalLM

    path = tmp_path_factory.mktemp("base")
    torch.manual_seed(0)
    shape = {"hidden_size": 16, "intermediate_size": 32, "num_hidden_layers": 2}
    ids = {"pad_token_id": 0, "eos_token_id": 1, "bos_token_id": None}
    config = LlamaConfig(vocab_size=16, num_attention_heads=2, **shape, **ids)
    LlamaForCausalLM(config).save_pretrained(path)
    tokenizer.save_pretrained(path)
    return str(path)


def common(tmp_path):
    return {"output_dir": str(tmp_path), "use_cpu": True, "bf16": False, "report_to": "none"}


def shaken(model, seed, size=0.05):
    """Move the weights, so that policy, behaviour and reference are three different ones."""
    chance = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for each in model.parameters():
            each.add_(size * torch.randn(each.shape, generator=chance))


def plain(folder, model):
    """The same weights in a model that TRL never touched."""
    from transformers import LlamaForCausalLM

    made = LlamaForCausalLM.from_pretrained(folder)
    made.load_state_dict(model.state_dict())
    return made.train()


def read(model, prompts, completions, attention):
    """Logprobs and entropies of the completions' tokens."""
    ids = torch.cat([prompts, completions], 1)
    logits = model(input_ids=ids, attention_mask=attention).logits[:, :-1]
    every = log_softmax(logits[:, -completions.shape[1] :], -1)
    logps_BT = every.gather(-1, completions[..., None])[..., 0]
    return logps_BT, -(every.exp() * every).sum(-1)


def of_batch(model, batch):
    attention = torch.cat([batch["prompt_mask"], batch["completion_mask"]], 1)
    return read(model, batch["prompt_ids"], batch["completion_ids"], attention)


def assert_same(ours, our_model, theirs, their_model):
    assert abs(ours.item() - theirs.item()) <= CLOSE
    ours.backward()
    theirs.backward()
    their = dict(their_model.named_parameters())
    largest = 0.0
    for name, parameter in our_model.named_parameters():
        assert (parameter.grad - their[name].grad).abs().max() <= CLOSE, name
        largest = max(largest, parameter.grad.abs().max().item())
    assert largest > 1000 * CLOSE  # there is something to compare


def rollout(prompts, trainer):
    """Completions of many lengths in which some tokens came from the environment."""
    chance = torch.Generator().manual_seed(7)
    lengths = [9, 7, 6, 2, 4, 9, 3, 5]
    ids = [torch.randint(3, 16, (n,), generator=chance).tolist() for n in lengths]
    said = [[int(t not in (2, 3)) for t in range(n)] for n in lengths]
    asked = [trainer.processing_class(each)["input_ids"] for each in prompts]
    return {"prompt_ids": asked, "completion_ids": ids, "logprobs": None, "env_mask": said}


def asked():
    return [{"prompt": prompt} for prompt in PROMPTS for _ in range(EACH)]


def groups():
    return [prompt for prompt in PROMPTS for _ in range(EACH)]


def grpo_trainer(folder, tokenizer, tmp_path, monkeypatch, rewards, **knobs):
    from datasets import Dataset
    from trl import GRPOConfig, GRPOTrainer

    monkeypatch.setenv("TRL_EXPERIMENTAL_SILENCE", "1")  # `rollout_func` says that it may change
    args = GRPOConfig(
        **common(tmp_path),
        per_device_train_batch_size=len(rewards),
        num_generations=EACH,
        num_iterations=2,  # else TRL takes the current logprobs for the old ones
        max_completion_length=LONGEST,
        temperature=1.0,
        epsilon=0.2,
        epsilon_high=0.28,
        importance_sampling_level="token",
        use_bias_correction_kl=True,
        **knobs,
    )
    made = GRPOTrainer(
        model=folder,
        reward_funcs=lambda completions, **_: rewards,
        rollout_func=rollout,
        args=args,
        train_dataset=Dataset.from_list([{"prompt": each} for each in PROMPTS]),
        processing_class=tokenizer,
    )
    made.current_gradient_accumulation_steps = 1  # as its training loop sets it
    return made


def our_tokens(logps_BT, entropies_BT, behaviour, base, batch, values, mask_BT, reduce):
    with torch.no_grad():
        old_BT, ref_BT = of_batch(behaviour, batch)[0], of_batch(base, batch)[0]
    return Tokens(
        logps_BT=logps_BT,
        old_BT=old_BT,
        mask_BT=mask_BT,
        advantages_BT=torch.tensor(values)[:, None] * mask_BT,
        weights_BT=token_weights(mask_BT, reduce, max_tokens=LONGEST),
        sequence_weights_B=torch.full((len(values),), 1 / len(values)),
        ref_BT=ref_BT,
        entropies_BT=entropies_BT,
        shares_BT=token_weights(mask_BT, "token"),
    )


GRPO = [
    # loss_type, our reduce, scale_rewards, beta, entropy_coef, rewards
    ("grpo", "sequence", "group", 0.0, 0.0, REWARDS),
    ("grpo", "sequence", "batch", 0.3, 0.01, REWARDS),
    ("dapo", "token", "group", 0.0, 0.0, REWARDS),
    ("dapo", "token", "group", 0.3, 0.0, FLAT),
    ("dapo", "token", "none", 0.0, 0.01, REWARDS),
    ("dr_grpo", "constant", "none", 0.0, 0.0, REWARDS),
    ("dr_grpo", "constant", "none", 0.3, 0.01, REWARDS),
]


@pytest.mark.parametrize(("loss_type", "reduce", "scale", "beta", "entropy", "rewards"), GRPO)
def test_grpo_equals_trl(
    folder, tokenizer, tmp_path, monkeypatch, loss_type, reduce, scale, beta, entropy, rewards
):
    knobs = {"loss_type": loss_type, "scale_rewards": scale, "beta": beta, "entropy_coef": entropy}
    trainer = grpo_trainer(folder, tokenizer, tmp_path, monkeypatch, rewards, **knobs)
    base = plain(folder, trainer.model)
    shaken(trainer.model, seed=1)
    behaviour = plain(folder, trainer.model)
    trainer.model.train()
    batch = trainer._generate_and_score_completions(asked())
    shaken(trainer.model, seed=2, size=0.1)
    policy = plain(folder, trainer.model)
    theirs = trainer.compute_loss(trainer.model, batch)

    found = advantages(rewards, groups(), algorithm="grpo", scale=scale, min_spread=0.0)
    assert found.values == pytest.approx(batch["advantages"].tolist(), abs=CLOSE)
    mask_BT = (batch["completion_mask"] * batch["tool_mask"]).float()
    read_now = of_batch(policy, batch)
    tokens = our_tokens(*read_now, behaviour, base, batch, found.values, mask_BT, reduce)
    ours = grpo(tokens, clip_low=0.2, clip_high=0.28, kl_beta=beta, entropy=entropy)

    assert_same(ours.loss, policy, theirs, trainer.model)
    told = trainer._metrics["train"]
    assert 0 < ours.stats["clipped"] < 1
    assert ours.stats["clipped"] == pytest.approx(told["clip_ratio/region_mean"][0], abs=CLOSE)
    assert ours.stats["entropy"] == pytest.approx(told["entropy"][0], abs=CLOSE)
    if beta:
        assert ours.stats["ref_kl"] == pytest.approx(told["kl"][0], abs=CLOSE)


@pytest.mark.parametrize("beta", [0.0, 0.05])
@pytest.mark.parametrize("scale", ["none", "batch"])
def test_rloo_equals_trl(folder, tokenizer, tmp_path, beta, scale):
    from datasets import Dataset
    from trl import RLOOConfig, RLOOTrainer

    args = RLOOConfig(
        **common(tmp_path),
        per_device_train_batch_size=len(REWARDS),
        num_generations=EACH,
        num_iterations=2,
        max_completion_length=LONGEST,
        temperature=1.0,
        epsilon=0.2,
        epsilon_high=0.28,
        beta=beta,
        normalize_advantages=scale == "batch",
    )
    trainer = RLOOTrainer(
        model=folder,
        reward_funcs=lambda completions, **_: REWARDS,
        args=args,
        train_dataset=Dataset.from_list([{"prompt": each} for each in PROMPTS]),
        processing_class=tokenizer,
    )
    base = plain(folder, trainer.model)
    shaken(trainer.model, seed=1)
    behaviour = plain(folder, trainer.model)
    trainer.model.train()
    torch.manual_seed(3)
    batch = trainer._generate_and_score_completions(asked())
    shaken(trainer.model, seed=2)
    policy = plain(folder, trainer.model)
    theirs = trainer.compute_loss(trainer.model, batch)

    mask_BT = batch["completion_mask"].float()
    with torch.no_grad():
        sums = [(of_batch(each, batch)[0] * mask_BT).sum(1).tolist() for each in (behaviour, base)]
    rewards = penalised(REWARDS, *sums, beta=beta)
    found = advantages(rewards, groups(), algorithm="rloo", scale=scale, min_spread=0.0)
    assert found.values == pytest.approx(batch["advantages"].tolist(), abs=CLOSE)
    read_now = of_batch(policy, batch)
    tokens = our_tokens(*read_now, behaviour, base, batch, found.values, mask_BT, "token")
    ours = rloo(tokens, clip_low=0.2, clip_high=0.28)

    assert_same(ours.loss, policy, theirs, trainer.model)
    assert 0 < ours.stats["clipped"] < 1
    told = trainer._metrics["train"]
    assert ours.stats["entropy"] == pytest.approx(told["entropy"][0], abs=CLOSE)


PREFERENCES = [
    {"prompt": "w3 w4 w5", "chosen": "w4 w4", "rejected": "w7 w8 w9 w10"},
    {"prompt": "w6 w7", "chosen": "w8 w9 w10", "rejected": "w3"},
    {"prompt": "w11", "chosen": "w12 w13 w14 w15 w3", "rejected": "w12 w14"},
]


@pytest.mark.parametrize(("beta", "sft_weight"), [(0.1, 0.0), (0.5, 0.0), (0.1, 0.2)])
def test_dpo_equals_trl(folder, tokenizer, tmp_path, beta, sft_weight):
    from datasets import Dataset
    from trl import DPOConfig, DPOTrainer

    mixed = {"loss_type": ["sigmoid", "sft"], "loss_weights": [1.0, sft_weight]}
    args = DPOConfig(
        **common(tmp_path),
        **(mixed if sft_weight else {"loss_type": "sigmoid"}),
        per_device_train_batch_size=len(PREFERENCES),
        beta=beta,
        gradient_checkpointing=False,
    )
    made = Dataset.from_list(PREFERENCES)
    trainer = DPOTrainer(model=folder, args=args, train_dataset=made, processing_class=tokenizer)
    base = plain(folder, trainer.model)
    shaken(trainer.model, seed=1)
    policy = plain(folder, trainer.model)
    trainer.model.train()
    batch = next(iter(trainer.get_train_dataloader()))
    theirs = trainer.compute_loss(trainer.model, copy.copy(batch))

    ids, mask_BT = batch["input_ids"], batch["completion_mask"][:, 1:].float()
    seen = (ids[:, :1], ids[:, 1:], batch["attention_mask"])
    logps_BT = read(policy, *seen)[0] * mask_BT
    with torch.no_grad():
        reference_BT = read(base, *seen)[0] * mask_BT
    sides = (*logps_BT.sum(1).chunk(2), *reference_BT.sum(1).chunk(2))
    pairs, chosen_tokens = len(PREFERENCES), mask_BT.chunk(2)[0].sum()
    ours = dpo(
        *sides,
        torch.full((pairs,), 1 / pairs),
        beta=beta,
        sft_weight=sft_weight,
        # TRL's imitation term is a mean over all chosen tokens, ours over what we are given.
        chosen_mean_P=sides[0] * pairs / chosen_tokens,
    )

    assert_same(ours.loss, policy, theirs, trainer.model)
    told = trainer._metrics["train"]
    assert ours.stats["accuracy"] == pytest.approx(told["rewards/accuracies"][0], abs=CLOSE)
    assert ours.stats["margin"] == pytest.approx(told["rewards/margins"][0], abs=CLOSE)
