"""A small real model and its checkpoints, for the tests about them."""

import hashlib
import json
from datetime import UTC, datetime

import torch
from peft import LoraConfig, get_peft_model
from tokenizers import Tokenizer, models
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast
from transformers.utils import logging as transformers_logging

from upswing.train.checkpoints.manifest import NO_SEAL, CheckpointInfo
from upswing.train.checkpoints.state import TrainerState
from upswing.train.checkpoints.writing import save_checkpoint
from upswing.train.core.recipe import Recipe

AT = datetime(2026, 3, 1, 12, tzinfo=UTC)
VOCABULARY = 64
transformers_logging.disable_progress_bar()


def make_base(folder, seed=0, **changes):
    """The folder of a Llama of some thousand parameters, with its tokenizer."""
    torch.manual_seed(seed)
    config = {
        "vocab_size": VOCABULARY,
        "hidden_size": 16,
        "intermediate_size": 32,
        "num_hidden_layers": 2,
        "num_attention_heads": 2,
        "num_key_value_heads": 1,
        "tie_word_embeddings": True,
        "attention_dropout": 0.1,
        **changes,
    }
    LlamaForCausalLM(LlamaConfig(**config)).save_pretrained(folder)
    words = Tokenizer(models.WordLevel({f"w{n}": n for n in range(VOCABULARY)}, unk_token="w0"))
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=words, unk_token="w0")
    tokenizer.chat_template = "{% for message in messages %}{{ message.content }}{% endfor %}"
    tokenizer.save_pretrained(folder)
    return folder


def fresh_model(base, kind, seed=1):
    """A model that can be trained: the base with a new adapter, or all of the base."""
    torch.manual_seed(seed)
    model = LlamaForCausalLM.from_pretrained(base)
    if kind == "adapter":
        lora = LoraConfig(
            r=4, lora_alpha=8, lora_dropout=0.1, target_modules="all-linear", task_type="CAUSAL_LM"
        )
        model = get_peft_model(model, lora)
    model.train()
    return model


def optimizer_of(model):
    trained = [each for each in model.parameters() if each.requires_grad]
    half = len(trained) // 2
    groups = [{"params": trained[:half]}, {"params": trained[half:], "weight_decay": 0.0}]
    return torch.optim.AdamW(groups, lr=1e-2, betas=(0.9, 0.95))


def train(model, optimizer, steps):
    """Steps whose data and dropout depend on chance."""
    for _ in range(steps):
        ids = torch.randint(0, VOCABULARY, (2, 6))
        optimizer.zero_grad()
        model(input_ids=ids, labels=ids).loss.backward()
        optimizer.step()


def facts(step=3, **changes):
    return CheckpointInfo(
        **{
            "base_model": "small",
            "job_id": "job-1",
            "step": step,
            "created": AT,
            "recipe": Recipe(),
            "snapshot": "5" * 64,
            "parent": "m-0",
            **changes,
        }
    )


def make_checkpoint(folder, name, base, kind, step=3):
    """A checkpoint of a few steps of training, with its optimizer."""
    model = fresh_model(base, kind)
    optimizer = optimizer_of(model)
    train(model, optimizer, step)
    return save_checkpoint(
        folder,
        name,
        model,
        info=facts(step),
        optimizer=optimizer,
        trainer=TrainerState(step, epoch=1, position=2, seed=7, best=0.5, best_step=2),
        base_folder=base,
    )


def sign(folder, change=lambda _manifest: None, keep=()):
    """Make the manifest fit what lies in the folder, as somebody could who means harm."""
    path = folder / "manifest.json"
    manifest = json.loads(path.read_bytes())
    manifest["files"] = {name: entry for name, entry in manifest["files"].items() if name in keep}
    for file in sorted(folder.iterdir()):
        if file.is_file() and file.name not in {"manifest.json", *keep}:
            body = file.read_bytes()
            manifest["files"][file.name] = {
                "sha256": hashlib.sha256(body).hexdigest(),
                "size": len(body),
            }
    change(manifest)
    path.write_bytes(seal(manifest))


def seal(manifest):
    raw = json.dumps({**manifest, "seal": NO_SEAL}).encode()
    return raw.replace(NO_SEAL.encode(), hashlib.sha256(raw).hexdigest().encode(), 1)
