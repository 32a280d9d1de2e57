"""An adapter in GGUF is the adapter that was trained, and what has no place there is refused."""

import math

import gguf
import numpy as np
import pytest
import torch
from peft import get_peft_model_state_dict
from tests.serve import gguf_cases as cases

from upswing.errors import Misuse, Rejected
from upswing.serve.gguf import lora
from upswing.serve.gguf.base import partial_tokens, read_gguf_base
from upswing.serve.gguf.served_copy import find_gguf, prepare_gguf
from upswing.serve.gguf.tensor_names import adapter_target, interleaved_rows
from upswing.train.bases.catalog import BaseModel
from upswing.train.bases.gguf_header import read_header

torch.set_num_threads(1)


@pytest.fixture(scope="module")
def base(tmp_path_factory):
    return cases.make_base(tmp_path_factory.mktemp("base"))


@pytest.fixture
def facts(base):
    return read_gguf_base(read_header(base.folder / "model.gguf"))


def read_back(path):
    """The fields and tensors of a GGUF file, as the `gguf` package reads them."""
    reader = gguf.GGUFReader(path)
    fields = {name: field.contents() for name, field in reader.fields.items()}
    return fields, {tensor.name: np.array(tensor.data) for tensor in reader.tensors}


# ── the file ─────────────────────────────────────────────────────────────────────────────────────


def test_what_is_written_is_what_was_trained_bit_by_bit(base, facts, tmp_path):
    model = cases.with_adapter(base)
    lora.convert_adapter(
        cases.checkpoint(tmp_path, "a", model, base), base.folder, facts, tmp_path / "a.gguf"
    )
    fields, tensors = read_back(tmp_path / "a.gguf")
    assert fields["general.type"] == "adapter"
    assert fields["adapter.type"] == "lora"
    assert fields["general.architecture"] == "llama"
    assert fields["adapter.lora.alpha"] == 8
    trained = get_peft_model_state_dict(model)
    assert len(tensors) == len(trained) == 2 * 2 * 7
    names = gguf.get_tensor_name_map(gguf.MODEL_ARCH.LLAMA, 2)
    for name, weight in trained.items():
        module, _, side = (
            name.removeprefix("base_model.model.").removesuffix(".weight").rpartition(".")
        )
        written = tensors[f"{names.get_name(module)}.weight.{side.lower()}"]
        rows = weight.numpy()
        if side == "lora_B" and module.endswith(("q_proj", "k_proj")):
            rows = cases.rotated(rows, cases.HEADS if "q_proj" in module else cases.KV_HEADS)
        assert written.dtype == np.float32
        assert np.array_equal(written, rows)


def test_the_change_of_each_layer_is_pefts_own(base, facts, tmp_path):
    model = cases.with_adapter(base)
    lora.write_adapter(get_peft_model_state_dict(model), 8.0, facts, tmp_path / "a.gguf")
    _, tensors = read_back(tmp_path / "a.gguf")
    layer = model.base_model.model.model.layers[1].self_attn
    for projection, tensor, heads in (
        (layer.q_proj, "blk.1.attn_q", cases.HEADS),
        (layer.k_proj, "blk.1.attn_k", cases.KV_HEADS),
        (layer.o_proj, "blk.1.attn_output", None),
    ):
        delta = torch.from_numpy(tensors[f"{tensor}.weight.lora_b"]) @ torch.from_numpy(
            tensors[f"{tensor}.weight.lora_a"]
        )
        if heads is not None:
            back = np.argsort(interleaved_rows(delta.shape[0], heads))
            delta = delta[back]
        assert torch.equal(delta * (8 / 4), projection.get_delta_weight("default"))


def test_half_precision_is_widened_and_not_rounded(base, facts, tmp_path):
    weights = {
        name: weight.to(torch.bfloat16)
        for name, weight in get_peft_model_state_dict(cases.with_adapter(base)).items()
    }
    lora.write_adapter(weights, 8.0, facts, tmp_path / "a.gguf")
    _, tensors = read_back(tmp_path / "a.gguf")
    name = "base_model.model.model.layers.0.mlp.up_proj.lora_A.weight"
    assert np.array_equal(tensors["blk.0.ffn_up.weight.lora_a"], weights[name].float().numpy())


def test_a_rank_stabilised_adapter_keeps_its_scale(base, facts, tmp_path):
    model = cases.with_adapter(base, use_rslora=True)
    lora.convert_adapter(
        cases.checkpoint(tmp_path, "a", model, base), base.folder, facts, tmp_path / "a.gguf"
    )
    fields, _ = read_back(tmp_path / "a.gguf")
    assert fields["adapter.lora.alpha"] / 4 == pytest.approx(8 / math.sqrt(4))


@pytest.mark.parametrize("heads", [1, 2, 4])
def test_rows_are_woven_as_llama_cpps_converter_does(heads):
    rows = np.arange(48)[:, None]
    assert interleaved_rows(48, heads) == cases.rotated(rows, heads)[:, 0].tolist()


# ── refusals ─────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("module", "sentence"),
    [
        ("model.layers.0.self_attn.rotary", "llama.cpp has no name for the layer"),
        ("model.embed_tokens", "llama.cpp has no name for the layer"),
        ("model.layers.7.mlp.up_proj", "The GGUF base has no blk.7.ffn_up.weight"),
        ("model.layers.0.block_sparse_moe.experts.1.w1", "llama.cpp has no name"),
        ("x" * 999, "llama.cpp has no name"),
    ],
)
def test_a_layer_without_a_place_is_refused(facts, module, sentence):
    with pytest.raises(Rejected, match=sentence):
        adapter_target(module, facts)


def test_a_head_of_its_own_can_be_adapted_a_tied_one_cannot(facts, tmp_path):
    assert adapter_target("lm_head", facts).tensor == "output.weight"
    tied = cases.make_base(tmp_path, tied=True)
    with pytest.raises(Rejected, match="one with the embedding"):
        adapter_target("lm_head", read_gguf_base(read_header(tied.folder / "model.gguf")))


def test_nothing_is_written_of_an_adapter_that_does_not_fit(base, facts, tmp_path):
    weights = get_peft_model_state_dict(cases.with_adapter(base))
    name = "base_model.model.model.layers.0.mlp.up_proj.lora_B.weight"
    for odd in (
        weights | {name: torch.zeros(5, 4)},
        weights | {"base_model.model.model.norm.weight": torch.zeros(64)},
        {key: weight for key, weight in weights.items() if key != name},
    ):
        with pytest.raises(Rejected):
            lora.write_adapter(odd, 8.0, facts, tmp_path / "a.gguf")
        assert not (tmp_path / "a.gguf").exists()


def test_a_checkpoint_of_all_weights_or_of_another_base_is_refused(base, facts, tmp_path):
    model = cases.with_adapter(base)
    whole = cases.checkpoint(tmp_path, "whole", model.unload(), base)
    with pytest.raises(Rejected, match="all weights of a model"):
        lora.convert_adapter(whole, base.folder, facts, tmp_path / "a.gguf")
    other = cases.make_base(tmp_path / "other", seed=5)
    foreign = cases.checkpoint(tmp_path, "foreign", cases.with_adapter(other), other)
    with pytest.raises(Rejected, match="another base"):
        lora.convert_adapter(foreign, base.folder, facts, tmp_path / "a.gguf")


def test_an_adapter_that_does_nothing_is_refused(base, facts, tmp_path):
    model = cases.with_adapter(base, lora_alpha=0)
    with pytest.raises(Rejected, match="alpha of 0"):
        lora.convert_adapter(
            cases.checkpoint(tmp_path, "a", model, base), base.folder, facts, tmp_path / "a.gguf"
        )


# ── the base ─────────────────────────────────────────────────────────────────────────────────────


def test_the_header_is_read_as_the_gguf_package_reads_it(base):
    header = read_header(base.folder / "model.gguf")
    reader = gguf.GGUFReader(base.folder / "model.gguf")
    ours = {name: field.value for name, field in header.fields.items()}
    theirs = {name: field.contents() for name, field in reader.fields.items()}
    assert ours == {name: value for name, value in theirs.items() if not name.startswith("GGUF.")}
    assert header.tensors == {each.name: tuple(each.shape.tolist()) for each in reader.tensors}


def test_only_parts_of_characters_lose_their_text_and_nothing_moves(base, tmp_path):
    original = base.folder / "model.gguf"
    made = prepare_gguf(base, tmp_path)
    assert prepare_gguf(base, tmp_path).file == made.file
    before, after = read_header(original), read_header(made.file)
    partial = partial_tokens(before)
    assert [cases.vocabulary()[number] for number in partial] == cases.vocabulary()[128:256]
    changed = [
        number
        for number, (old, new) in enumerate(
            zip(
                before.get("tokenizer.ggml.token_type"),
                after.get("tokenizer.ggml.token_type"),
                strict=True,
            )
        )
        if old != new
    ]
    assert changed == partial
    old, new = original.read_bytes(), made.file.read_bytes()
    differing = np.flatnonzero(np.frombuffer(old, np.uint8) != np.frombuffer(new, np.uint8))
    assert len(old) == len(new)
    assert len(differing) == len(partial)


@pytest.mark.parametrize(
    "raw", [b"", b"GGUF", b"GGML" + bytes(60), b"GGUF\x03\0\0\0" + b"\xff" * 64]
)
def test_a_file_that_is_no_gguf_is_said_to_be_none(tmp_path, raw):
    (tmp_path / "model.gguf").write_bytes(raw)
    with pytest.raises(Misuse, match="is no GGUF file"):
        read_header(tmp_path / "model.gguf")


def test_a_header_cut_anywhere_is_refused(base, tmp_path):
    whole = (base.folder / "model.gguf").read_bytes()
    for size in range(8, whole.rfind(b"blk.1."), 97):
        (tmp_path / "cut.gguf").write_bytes(whole[:size])
        with pytest.raises(Misuse):
            read_header(tmp_path / "cut.gguf")


def test_a_gguf_file_of_another_model_is_noticed(base, tmp_path):
    other = cases.make_base(tmp_path / "other", size=32)
    (other.folder / "model.gguf").write_bytes((base.folder / "model.gguf").read_bytes())
    with pytest.raises(Misuse, match="is another model: its hidden_size"):
        prepare_gguf(other, tmp_path / "cache")


def test_a_gguf_file_with_other_tokens_is_noticed(tmp_path):
    base = cases.make_base(tmp_path / "base")
    file = base.folder / "tokenizer.json"
    file.write_text(
        file.read_text().replace('"a": 97,', '"a": 98,').replace('"b": 98,', '"b": 97,')
    )
    with pytest.raises(Misuse, match="has other tokens than its"):
        prepare_gguf(base, tmp_path / "cache")


def test_a_base_without_a_gguf_file_or_with_two_is_not_served(base, tmp_path):
    empty = BaseModel("empty", tmp_path)
    assert find_gguf(empty) is None
    with pytest.raises(Misuse, match="has no GGUF file"):
        prepare_gguf(empty, tmp_path / "cache")
    for name in ("a.gguf", "b.gguf"):
        (tmp_path / name).touch()
    with pytest.raises(Misuse, match="has 2 GGUF files"):
        find_gguf(empty)


def test_an_unknown_architecture_is_refused(base, tmp_path):
    raw = (base.folder / "model.gguf").read_bytes().replace(b"llama", b"mamba")
    (tmp_path / "model.gguf").write_bytes(raw)
    with pytest.raises(Misuse, match="'mamba', whose layers are not known"):
        read_gguf_base(read_header(tmp_path / "model.gguf"))
