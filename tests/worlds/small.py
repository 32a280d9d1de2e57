"""A model that knows the words of the smallest world and nothing else: quick, and always the same."""

import torch
from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from tokenizers.pre_tokenizers import WhitespaceSplit
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

from upswing.worlds.sampler import SamplingPolicy
from upswing.worlds.triage import WORDS

MARKS = ("<pad>", "<end>", "<system>", "<user>", "<agent>", "<unknown>")
TEMPLATE = (
    "{% for message in messages %}"
    "<{{ {'assistant': 'agent'}.get(message.role, message.role) }}> {{ message.content }} <end> "
    "{% endfor %}{% if add_generation_prompt %}<agent>{% endif %}"
)


def tokenizer(words=WORDS):
    vocabulary = {word: number for number, word in enumerate((*MARKS, *words))}
    made = Tokenizer(WordLevel(vocabulary, unk_token="<unknown>"))
    made.pre_tokenizer = WhitespaceSplit()
    fast = PreTrainedTokenizerFast(
        tokenizer_object=made, pad_token="<pad>", eos_token="<end>", unk_token="<unknown>"
    )
    fast.chat_template = TEMPLATE
    return fast


def model(vocabulary, *, seed=0, width=32, layers=2):
    torch.manual_seed(seed)
    config = LlamaConfig(
        vocab_size=vocabulary,
        hidden_size=width,
        intermediate_size=3 * width,
        num_hidden_layers=layers,
        num_attention_heads=4,
        num_key_value_heads=2,
        max_position_embeddings=256,
        initializer_range=0.3,
        bos_token_id=None,
        eos_token_id=1,
        pad_token_id=0,
    )
    return LlamaForCausalLM(config).eval()


def policy(name="small", **more):
    words = tokenizer()
    return SamplingPolicy(name, model(len(words)), words, **more)
