"""Small real models, each as a Hugging Face folder with its GGUF file, and adapters on them.

The GGUF file is written with the names and the order of rows of the `gguf` package and of llama.cpp's
own converter, not with ours.
"""

from datetime import UTC, datetime

import gguf
import numpy as np
import torch
from peft import LoraConfig, get_peft_model
from tokenizers import AddedToken, Tokenizer, decoders, models, normalizers, pre_tokenizers
from transformers import (
    LlamaConfig,
    LlamaForCausalLM,
    PreTrainedTokenizerFast,
    Qwen2Config,
    Qwen2ForCausalLM,
    Qwen3Config,
    Qwen3ForCausalLM,
)
from transformers.convert_slow_tokenizer import bytes_to_unicode
from transformers.utils import logging as transformers_logging

from upswing.train.bases.catalog import BaseModel
from upswing.train.checkpoints.manifest import CheckpointInfo
from upswing.train.checkpoints.writing import save_checkpoint
from upswing.train.core.recipe import Recipe

AT = datetime(2026, 3, 1, 12, tzinfo=UTC)
HEADS, KV_HEADS = 4, 2
MARKS = ("<|im_start|>", "<|im_end|>", "<|endoftext|>")
TEMPLATE = (
    "{% for message in messages %}<|im_start|>{{ message.role }}\n{{ message.content }}<|im_end|>\n"
    "{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
_KINDS = {
    "llama": (LlamaConfig, LlamaForCausalLM, gguf.MODEL_ARCH.LLAMA),
    "qwen2": (Qwen2Config, Qwen2ForCausalLM, gguf.MODEL_ARCH.QWEN2),
    "qwen3": (Qwen3Config, Qwen3ForCausalLM, gguf.MODEL_ARCH.QWEN3),
}
transformers_logging.disable_progress_bar()


def vocabulary(spelled="gpt2"):
    """A token for each byte, one of two letters, and the marks: most of Unicode takes several.

    `spelled`: how GGUF calls the kind of tokenizer, GPT-2's or SentencePiece's.
    """
    if spelled == "llama":
        letters = ["▁", *map(chr, range(33, 127))]
        return [*(f"<0x{byte:02X}>" for byte in range(256)), *letters, "th", *MARKS]
    return [*(letter for _, letter in sorted(bytes_to_unicode().items())), "th", *MARKS]


def make_base(folder, kind="llama", *, seed=0, tied=False, size=16, endless=False, spelled="gpt2"):
    """A model of some thousand weights, large enough in value to have opinions.

    `endless`: its likeliest token is never one that ends an answer.
    """
    tokens = vocabulary(spelled)
    end = tokens.index(MARKS[1])
    config_of, model_of, _ = _KINDS[kind]
    config = config_of(
        vocab_size=len(tokens),
        hidden_size=HEADS * size,
        intermediate_size=96,
        num_hidden_layers=2,
        num_attention_heads=HEADS,
        num_key_value_heads=KV_HEADS,
        head_dim=size,
        max_position_embeddings=8192,
        tie_word_embeddings=tied,
        initializer_range=0.2,
        bos_token_id=end - 1,
        eos_token_id=end,
        pad_token_id=end,
    )
    torch.manual_seed(seed)
    model = model_of(config)
    if endless:
        model.lm_head.weight.data[-len(MARKS) :] = 0
    model.save_pretrained(folder)
    write_tokenizer(folder, tokens, spelled)
    write_gguf(folder / "model.gguf", kind, model, tokens, spelled)
    return BaseModel(str(folder), folder)


def write_tokenizer(folder, tokens, spelled):
    vocab = {text: number for number, text in enumerate(tokens)}
    if spelled == "llama":
        words = Tokenizer(models.BPE(vocab, [("t", "h")], byte_fallback=True))
        words.normalizer = normalizers.Replace(" ", "▁")
        words.decoder = decoders.Sequence(
            [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse()]
        )
    else:
        words = Tokenizer(models.BPE(vocab, [("t", "h")]))
        words.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
        words.decoder = decoders.ByteLevel()
    words.add_special_tokens([AddedToken(mark, special=True) for mark in MARKS])
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=words, eos_token=MARKS[1])
    tokenizer.chat_template = TEMPLATE
    tokenizer.save_pretrained(folder)


def write_gguf(path, kind, model, tokens, spelled):
    config, architecture = model.config, _KINDS[kind][2]
    writer = gguf.GGUFWriter(path, gguf.MODEL_ARCH_NAMES[architecture])
    writer.add_type("model")
    writer.add_block_count(config.num_hidden_layers)
    writer.add_context_length(config.max_position_embeddings)
    writer.add_embedding_length(config.hidden_size)
    writer.add_feed_forward_length(config.intermediate_size)
    writer.add_head_count(config.num_attention_heads)
    writer.add_head_count_kv(config.num_key_value_heads)
    writer.add_key_length(config.head_dim)
    writer.add_value_length(config.head_dim)
    writer.add_rope_dimension_count(config.head_dim)
    writer.add_rope_freq_base(config.rope_parameters["rope_theta"])
    writer.add_layer_norm_rms_eps(config.rms_norm_eps)
    writer.add_tokenizer_model(spelled)
    writer.add_tokenizer_pre("gpt-2" if spelled == "gpt2" else "default")
    writer.add_token_list(tokens)
    writer.add_token_types(
        [3 if text in MARKS else 6 if text.startswith("<0x") else 1 for text in tokens]
    )
    writer.add_token_scores([0.0] * len(tokens))
    writer.add_token_merges(["t h"])
    writer.add_eos_token_id(tokens.index(MARKS[1]))
    writer.add_add_bos_token(False)
    names = gguf.get_tensor_name_map(architecture, config.num_hidden_layers)
    for name, tensor in model.state_dict().items():
        if name == "lm_head.weight" and config.tie_word_embeddings:
            continue
        rows = tensor.float().numpy()
        if kind == "llama" and name.endswith(("q_proj.weight", "k_proj.weight")):
            rows = rotated(rows, HEADS if "q_proj" in name else KV_HEADS)
        writer.add_tensor(names.get_name(name, (".weight", ".bias")), np.ascontiguousarray(rows))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def rotated(rows, heads):
    """The order of rows of llama.cpp's converter."""
    return rows.reshape(heads, 2, -1, rows.shape[1]).swapaxes(1, 2).reshape(rows.shape)


def with_adapter(base, kind="llama", *, seed=1, strength=0.3, **lora):
    """The model with an adapter that has learned something: chance, in both matrices."""
    torch.manual_seed(seed)
    model = _KINDS[kind][1].from_pretrained(base.folder)
    settings = {"r": 4, "lora_alpha": 8, "target_modules": "all-linear", **lora}
    tuned = get_peft_model(model, LoraConfig(task_type="CAUSAL_LM", **settings))
    with torch.no_grad():
        for name, weight in tuned.named_parameters():
            if ".lora_" in name:
                weight.normal_(0, strength)
    return tuned.eval()


def checkpoint(folder, name, model, base):
    """The adapter, as training leaves it."""
    facts = CheckpointInfo(
        base_model=base.name,
        job_id="job-1",
        step=1,
        created=AT,
        recipe=Recipe(),
        snapshot="5" * 64,
    )
    return save_checkpoint(folder, name, model, info=facts, base_folder=base.folder)
