"""Do our losses equal TRL's, in value and in every parameter's gradient?

TRL's side is TRL's own: its trainers, built on a small Llama in a folder, compute the advantages,
the old and the reference logprobs and the loss. Our side is a plain `LlamaForCausalLM` with the
same weights, and gets nothing from TRL but the token ids. Every knob that TRL has a default for and
that matters here is named: its GRPO default is `dapo`, and its RLOO clips ratios of sequences.
All comparisons stand in this file, so that TRL is imported once.
"""

import copy
from dataclasses import replace

import pytest
import torch
from torch.nn.functional import log_softmax

from upswing.train.learn.advantages import compute_advantages, kl_penalised_rewards
from upswing.train.learn.losses.dpo import dpo_loss
from upswing.train.learn.losses.grpo import grpo_loss
from upswing.train.learn.losses.kto import kl_reference, kto_loss
from upswing.train.learn.losses.rloo import rloo_loss
from upswing.train.learn.losses.sft import imitation_loss
from upswing.train.learn.losses.terms import LossInputs, LossTerms, kl_k3, token_weights

CLOSE = 1e-5
PROMPTS = ["w3 w4 w5", "w6 w7"]
REWARDS = [1.0, 0.0, 0.25, 0.5, 0.0, 0.0, 0.75, 0.5]
FLAT = [1.0, 0.0, 0.25, 0.5, 0.5, 0.5, 0.5, 0.5]
EACH = 4
LENGTHS = [9, 7, 6, 2, 4, 9, 3, 5]
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
    ids = [torch.randint(3, 16, (n,), generator=chance).tolist() for n in LENGTHS]
    said = [[int(t not in (2, 3)) for t in range(n)] for n in LENGTHS]
    asked = [trainer.processing_class(each)["input_ids"] for each in prompts]
    return {"prompt_ids": asked, "completion_ids": ids, "logprobs": None, "env_mask": said}


def asked():
    return [{"prompt": prompt} for prompt in PROMPTS for _ in range(EACH)]


def groups():
    return [prompt for prompt in PROMPTS for _ in range(EACH)]


def grpo_trainer(folder, tokenizer, tmp_path, monkeypatch, rewards, level="token", **knobs):
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
        importance_sampling_level=level,
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
    return LossInputs(
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
    ("grpo", "sequence", "batch", 0.3, 0.0, REWARDS),
    ("dapo", "token", "group", 0.0, 0.0, REWARDS),
    ("dapo", "token", "group", 0.3, 0.0, FLAT),
    ("dapo", "token", "none", 0.0, 0.01, REWARDS),
    ("dr_grpo", "constant", "none", 0.0, 0.0, REWARDS),
    ("dr_grpo", "constant", "none", 0.3, 0.0, REWARDS),
]
"""The entropy bonus only where TRL's mean over tokens is how the loss is reduced, too: elsewhere ours
is reduced as the loss is, by design."""


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

    found = compute_advantages(rewards, groups(), algorithm="grpo", scale=scale, min_spread=0.0)
    assert found.values == pytest.approx(batch["advantages"].tolist(), abs=CLOSE)
    mask_BT = (batch["completion_mask"] * batch["tool_mask"]).float()
    read_now = of_batch(policy, batch)
    tokens = our_tokens(*read_now, behaviour, base, batch, found.values, mask_BT, reduce)
    ours = grpo_loss(tokens, clip_low=0.2, clip_high=0.28, kl_beta=beta, entropy=entropy)

    assert_same(ours.loss, policy, theirs, trainer.model)
    told = trainer._metrics["train"]
    assert 0 < ours.stats["clipped"] < 1
    assert ours.stats["clipped"] == pytest.approx(told["clip_ratio/region_mean"][0], abs=CLOSE)
    assert ours.stats["entropy"] == pytest.approx(told["entropy"][0], abs=CLOSE)
    if beta:
        assert ours.stats["ref_kl"] == pytest.approx(told["kl"][0], abs=CLOSE)


def after_a_move(trainer, folder, size=0.1):
    """The batch that TRL makes, and base, behaviour and policy as models of ours."""
    base = plain(folder, trainer.model)
    shaken(trainer.model, seed=1)
    behaviour = plain(folder, trainer.model)
    trainer.model.train()
    batch = trainer._generate_and_score_completions(asked())
    shaken(trainer.model, seed=2, size=size)
    return batch, base, behaviour, plain(folder, trainer.model)


@pytest.mark.parametrize("delta", [1.4, 3.0])
def test_the_dual_clip_equals_trls_two_sided_clipping(
    folder, tokenizer, tmp_path, monkeypatch, delta
):
    knobs = {"loss_type": "dapo", "scale_rewards": "group", "beta": 0.0, "delta": delta}
    trainer = grpo_trainer(folder, tokenizer, tmp_path, monkeypatch, REWARDS, **knobs)
    batch, base, behaviour, policy = after_a_move(trainer, folder, size=0.3)
    theirs = trainer.compute_loss(trainer.model, batch)
    mask_BT = (batch["completion_mask"] * batch["tool_mask"]).float()
    values = batch["advantages"].tolist()
    tokens = our_tokens(*of_batch(policy, batch), behaviour, base, batch, values, mask_BT, "token")
    clip = {"clip_low": 0.2, "clip_high": 0.28}
    ours = grpo_loss(tokens, **clip, dual_clip=delta)
    assert ours.loss.item() != pytest.approx(grpo_loss(tokens, **clip).loss.item(), abs=CLOSE)
    assert_same(ours.loss, policy, theirs, trainer.model)


@pytest.mark.parametrize("beta", [0.0, 0.3])
def test_gspo_equals_trl(folder, tokenizer, tmp_path, monkeypatch, beta):
    knobs = {"loss_type": "grpo", "scale_rewards": "group", "beta": beta, "delta": 3.0}
    trainer = grpo_trainer(
        folder, tokenizer, tmp_path, monkeypatch, REWARDS, level="sequence", **knobs
    )
    batch, base, behaviour, policy = after_a_move(trainer, folder, size=0.2)
    theirs = trainer.compute_loss(trainer.model, batch)
    mask_BT = (batch["completion_mask"] * batch["tool_mask"]).float()
    values = batch["advantages"].tolist()
    tokens = our_tokens(
        *of_batch(policy, batch), behaviour, base, batch, values, mask_BT, "sequence"
    )
    ours = grpo_loss(tokens, clip_low=0.2, clip_high=0.28, dual_clip=3.0, ratio="sequence")
    assert 0 < ours.stats["clipped"] < 1
    if beta:  # TRL weighs the KL by the sequence's ratio, we by the token's
        kl = (batch["ref_per_token_logps"] - tokens.logps_BT, tokens.logps_BT - tokens.old_BT)
        ratio_B1 = ((kl[1] * mask_BT).sum(1) / mask_BT.sum(1)).exp()[:, None]
        theirs_kl = (tokens.weights_BT * mask_BT * ratio_B1 * kl_k3(kl[0])).sum()
        ours = LossTerms(ours.loss + beta * theirs_kl, ours.stats)
    assert_same(ours.loss, policy, theirs, trainer.model)


@pytest.mark.parametrize("cap", [1.05, 3.0])
def test_the_weight_of_what_another_engine_recorded_equals_trls(
    folder, tokenizer, tmp_path, monkeypatch, cap
):
    """TRL corrects vLLM's logprobs with the same truncated weight per token."""
    knobs = {"loss_type": "dapo", "scale_rewards": "group", "beta": 0.0}
    trainer = grpo_trainer(folder, tokenizer, tmp_path, monkeypatch, REWARDS, **knobs)
    chance = torch.Generator().manual_seed(11)
    sampled = [[-2.0 - torch.rand(1, generator=chance).item() for _ in range(n)] for n in LENGTHS]
    trainer.rollout_func = lambda prompts, trainer: (
        rollout(prompts, trainer) | {"logprobs": sampled}
    )
    trainer.vllm_importance_sampling_correction = True
    trainer.vllm_importance_sampling_mode = "token_truncate"
    trainer.vllm_importance_sampling_clip_max = cap
    trainer.vllm_importance_sampling_clip_min = None
    trainer._last_loaded_step = trainer.state.global_step  # there is no engine to load into
    trainer.use_vllm = True  # the rollout is ours; only the correction looks at this
    batch, base, start, policy = after_a_move(trainer, folder)
    theirs = trainer.compute_loss(trainer.model, batch)
    mask_BT = (batch["completion_mask"] * batch["tool_mask"]).float()
    values = batch["advantages"].tolist()
    tokens = our_tokens(*of_batch(policy, batch), start, base, batch, values, mask_BT, "token")
    wide = max(LENGTHS)
    recorded_BT = torch.tensor([[*row, *[0.0] * (wide - len(row))] for row in sampled])
    tokens = replace(tokens, start_BT=tokens.old_BT, old_BT=recorded_BT)
    ours = grpo_loss(tokens, clip_low=0.2, clip_high=0.28, cap=cap)
    assert ours.stats["importance"] == pytest.approx(
        trainer._metrics["train"]["sampling/importance_sampling_ratio/mean"][0], abs=CLOSE
    )
    assert_same(ours.loss, policy, theirs, trainer.model)


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
    rewards = kl_penalised_rewards(REWARDS, *sums, beta=beta)
    found = compute_advantages(rewards, groups(), algorithm="rloo", scale=scale, min_spread=0.0)
    assert found.values == pytest.approx(batch["advantages"].tolist(), abs=CLOSE)
    read_now = of_batch(policy, batch)
    tokens = our_tokens(*read_now, behaviour, base, batch, found.values, mask_BT, "token")
    ours = rloo_loss(tokens, clip_low=0.2, clip_high=0.28, normalise=False)  # TRL clips the product

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
    ours = dpo_loss(
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


THUMBS = [
    {"prompt": "w3 w4 w5", "completion": "w4 w4", "label": True},
    {"prompt": "w6 w7", "completion": "w8 w9 w10", "label": False},
    {"prompt": "w11", "completion": "w12 w13 w14 w15 w3", "label": True},
    {"prompt": "w12 w3", "completion": "w5", "label": False},
]


@pytest.mark.parametrize(("beta", "desirable", "undesirable"), [(0.1, 1.0, 1.0), (0.5, 1.0, 1.3)])
def test_kto_equals_trl(folder, tokenizer, tmp_path, beta, desirable, undesirable):
    from datasets import Dataset
    from trl import KTOConfig, KTOTrainer

    args = KTOConfig(
        **common(tmp_path),
        loss_type="kto",
        per_device_train_batch_size=len(THUMBS),
        beta=beta,
        desirable_weight=desirable,
        undesirable_weight=undesirable,
        gradient_checkpointing=False,
    )
    made = Dataset.from_list(THUMBS)
    trainer = KTOTrainer(model=folder, args=args, train_dataset=made, processing_class=tokenizer)
    base = plain(folder, trainer.model)
    shaken(trainer.model, seed=1, size=0.02)
    trainer.model.train()
    batch = next(iter(trainer.get_train_dataloader()))

    def sums(model, kind=""):
        ids, mask_BT = batch[f"{kind}input_ids"], batch[f"{kind}completion_mask"][:, 1:].float()
        seen = (ids[:, :1], ids[:, 1:], batch[f"{kind}attention_mask"])
        return (read(model, *seen)[0] * mask_BT).sum(1)

    towards = torch.autograd.grad(-sums(trainer.model, "KL_").mean(), trainer.model.parameters())
    with torch.no_grad():  # a policy that has moved towards such answers, so that its KL is not 0
        for each, slope in zip(trainer.model.parameters(), towards, strict=True):
            each.sub_(0.1 * slope)
    policy = plain(folder, trainer.model)
    theirs = trainer.compute_loss(trainer.model, copy.copy(batch))
    with torch.no_grad():
        kl = kl_reference(sums(policy, "KL_"), sums(base, "KL_"))
        reference_B = sums(base)
    assert kl > 0
    ours = kto_loss(
        sums(policy),
        reference_B,
        batch["label"].bool(),
        torch.full((4,), 1 / 4),
        kl=kl,
        beta=beta,
        desirable_weight=desirable,
        undesirable_weight=undesirable,
    )
    assert kl == pytest.approx(trainer._metrics["train"]["kl"][0], abs=CLOSE)
    assert_same(ours.loss, policy, theirs, trainer.model)


def test_imitation_equals_trls_sft(folder, tokenizer, tmp_path):
    from datasets import Dataset
    from trl import SFTConfig, SFTTrainer

    shown = [{"prompt": each["prompt"], "completion": each["completion"]} for each in THUMBS]
    args = SFTConfig(
        **common(tmp_path),
        per_device_train_batch_size=4,
        completion_only_loss=True,
        gradient_checkpointing=False,
    )
    made = Dataset.from_list(shown)
    trainer = SFTTrainer(model=folder, args=args, train_dataset=made, processing_class=tokenizer)
    shaken(trainer.model, seed=1)
    policy = plain(folder, trainer.model)
    trainer.model.train()
    batch = next(iter(trainer.get_train_dataloader()))
    theirs = trainer.compute_loss(trainer.model, copy.copy(batch))

    ids, mask_BT = batch["input_ids"], (batch["labels"][:, 1:] != -100).float()
    logps_BT, entropies_BT = read(policy, ids[:, :1], ids[:, 1:], batch["attention_mask"])
    tokens = LossInputs(
        logps_BT=logps_BT,
        old_BT=logps_BT.detach(),
        mask_BT=mask_BT,
        advantages_BT=mask_BT,
        weights_BT=token_weights(mask_BT, "token"),
        sequence_weights_B=torch.full((4,), 1 / 4),
        entropies_BT=entropies_BT,
    )
    assert_same(imitation_loss(tokens).loss, policy, theirs, trainer.model)
