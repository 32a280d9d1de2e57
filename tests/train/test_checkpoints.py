"""Is a checkpoint whole, or not there? And does training go on from it as if nothing had been?"""

import json
import os
import random
import subprocess
import sys

import numpy as np
import pytest
import torch
from checkpoint_cases import (
    AT,
    facts,
    fresh_model,
    make_base,
    make_checkpoint,
    optimizer_of,
    train,
)
from peft import PeftModel
from transformers import AutoModelForCausalLM, AutoTokenizer, GPT2Config, GPT2LMHeadModel

from upswing.errors import Misuse
from upswing.train.checkpoints.bases import base_fingerprint
from upswing.train.checkpoints.checking import verify
from upswing.train.checkpoints.folders import (
    exchange_names,
    newest_checkpoint,
    prune_checkpoints,
    recover_folders,
    step_name,
)
from upswing.train.checkpoints.manifest import InvalidCheckpoint
from upswing.train.checkpoints.reading import load_weights, restore_checkpoint, set_weights
from upswing.train.checkpoints.state import TrainerState
from upswing.train.checkpoints.writing import save_checkpoint

KINDS = ("adapter", "full")
IDS = torch.arange(8)[None]


@pytest.fixture(scope="module")
def base(tmp_path_factory):
    torch.set_num_threads(1)
    return make_base(tmp_path_factory.mktemp("models") / "base")


def logits(model):
    model.eval()
    with torch.no_grad():
        return model(input_ids=IDS).logits


def weights(model):
    return {name: each.detach().clone() for name, each in model.named_parameters()}


def same(one, other):
    return one.keys() == other.keys() and all(torch.equal(one[name], other[name]) for name in one)


# ── what others load ─────────────────────────────────────────────────────────────────────────────


def test_peft_loads_an_adapter(base, tmp_path):
    model = fresh_model(base, "adapter")
    train(model, optimizer_of(model), 3)
    path = save_checkpoint(tmp_path, "final", model, info=facts(), base_folder=base)
    loaded = PeftModel.from_pretrained(AutoModelForCausalLM.from_pretrained(base), path)
    assert torch.equal(logits(loaded), logits(model))
    assert sorted(each.name for each in path.iterdir()) == [
        "adapter_config.json",
        "adapter_model.safetensors",
        "manifest.json",
    ]


def test_transformers_loads_full_weights_with_their_tokenizer(base, tmp_path):
    model = fresh_model(base, "full")
    train(model, optimizer_of(model), 3)
    path = save_checkpoint(tmp_path, "final", model, info=facts(), base_folder=base)
    assert torch.equal(logits(AutoModelForCausalLM.from_pretrained(path)), logits(model))
    assert AutoTokenizer.from_pretrained(path).decode([1, 2]) == "w1 w2"


def test_an_adapter_of_a_model_whose_layers_lie_the_other_way_round_is_saved(tmp_path):
    from peft import LoraConfig, get_peft_model

    config = GPT2Config(vocab_size=64, n_embd=16, n_layer=1, n_head=2, n_positions=16)
    GPT2LMHeadModel(config).save_pretrained(tmp_path / "base")
    told = LoraConfig(r=2, target_modules=["c_attn"], fan_in_fan_out=True, task_type="CAUSAL_LM")
    model = get_peft_model(GPT2LMHeadModel.from_pretrained(tmp_path / "base"), told)
    path = save_checkpoint(tmp_path, "final", model, info=facts(), base_folder=tmp_path / "base")
    assert verify(path, base=tmp_path / "base").kind == "adapter"


@pytest.mark.parametrize("kind", KINDS)
def test_the_manifest_says_where_a_checkpoint_comes_from(base, tmp_path, kind):
    path = make_checkpoint(tmp_path, "step-000003", base, kind)
    manifest = verify(path, base=base)
    assert (manifest.kind, manifest.base_model, manifest.job_id) == (kind, "small", "job-1")
    assert (manifest.step, manifest.parent, manifest.created) == (3, "m-0", AT)
    assert manifest.base_sha256 == base_fingerprint(base)
    assert manifest.recipe["algorithm"] == "grpo"
    assert manifest.files.keys() == {each.name for each in path.iterdir()} - {"manifest.json"}
    assert manifest == verify(path, base=base_fingerprint(base))


def test_no_pickle_is_written(base, tmp_path):
    for kind in KINDS:
        path = make_checkpoint(tmp_path, f"{kind}", base, kind)
        suffixes = {each.suffix for each in path.iterdir()}
        assert suffixes <= {".json", ".safetensors", ".jinja"}


def test_a_checkpoint_is_verified_without_torch():
    asked = (
        "import sys, upswing.train.checkpoints.checking, upswing.train.checkpoints.folders\n"
        "assert not {'torch', 'numpy', 'safetensors', 'pickle'} & (sys.modules.keys() - {'pickle'})"
    )
    subprocess.run([sys.executable, "-c", asked], check=True, timeout=60)


# ── going on ─────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("kind", KINDS)
def test_training_that_goes_on_gives_the_same_bits_as_training_that_never_stopped(
    base, tmp_path, kind
):
    never = fresh_model(base, kind)
    optimizer = optimizer_of(never)
    train(never, optimizer, 3)
    state = TrainerState(3, epoch=1, position=2, seed=7, best=0.1 + 0.2, best_step=2)
    path = save_checkpoint(
        tmp_path,
        "step-000003",
        never,
        info=facts(),
        optimizer=optimizer,
        trainer=state,
        base_folder=base,
    )
    train(never, optimizer, 3)
    there = random.random(), np.random.rand(), torch.rand(1)  # noqa: NPY002 - the global one

    again = fresh_model(base, kind, seed=99)
    theirs = optimizer_of(again)
    for group in theirs.param_groups:
        group["lr"] = 7.0
    random.seed(4)
    np.random.seed(4)  # noqa: NPY002 - the global one
    told = restore_checkpoint(path, again, theirs, base=base)
    train(again, theirs, 3)

    assert same(weights(never), weights(again))
    here = random.random(), np.random.rand(), torch.rand(1)  # noqa: NPY002 - the global one
    assert here == there
    assert (told.step, told.epoch, told.position, told.seed) == (3, 1, 2, 7)
    assert (told.best, told.best_step) == (0.1 + 0.2, 2)
    one, other = optimizer.state_dict(), theirs.state_dict()
    assert one["param_groups"] == other["param_groups"]
    assert all(same(one["state"][n], other["state"][n]) for n in one["state"])


def test_a_value_head_and_counters_are_kept(base, tmp_path):
    head = torch.nn.Linear(16, 1)
    state = TrainerState(
        1, value=head.state_dict(), scalars={"tokens": 12, "word": "x", "rate": 0.1}
    )
    model = fresh_model(base, "adapter")
    path = save_checkpoint(
        tmp_path, "step-000001", model, info=facts(1), trainer=state, base_folder=base
    )
    told = restore_checkpoint(path, fresh_model(base, "adapter"))
    assert same(dict(told.value), head.state_dict())
    assert told.scalars == {"tokens": 12, "word": "x", "rate": 0.1}


def test_weights_alone_are_no_place_to_go_on_from(base, tmp_path):
    model = fresh_model(base, "adapter")
    path = save_checkpoint(tmp_path, "final", model, info=facts(), base_folder=base)
    with pytest.raises(InvalidCheckpoint, match="weights only"):
        restore_checkpoint(path, model)


def test_a_model_of_another_kind_or_shape_does_not_take_the_weights(base, tmp_path):
    path = make_checkpoint(tmp_path, "final", base, "adapter")
    manifest = verify(path)
    taken = load_weights(path, manifest)
    with pytest.raises(InvalidCheckpoint, match="kind adapter"):
        set_weights(fresh_model(base, "full"), taken, manifest)
    wider = make_base(tmp_path / "wider", hidden_size=32)
    with pytest.raises(InvalidCheckpoint, match="shape"):
        set_weights(fresh_model(wider, "adapter"), taken, manifest)
    deeper = make_base(tmp_path / "deeper", num_hidden_layers=3)
    with pytest.raises(InvalidCheckpoint, match="same weights"):
        set_weights(fresh_model(deeper, "adapter"), taken, manifest)


def test_an_optimizer_of_other_parameters_does_not_take_the_state(base, tmp_path):
    path = make_checkpoint(tmp_path, "step-000003", base, "adapter")
    model = fresh_model(base, "adapter")
    with pytest.raises(InvalidCheckpoint, match="other parameters"):
        restore_checkpoint(path, model, torch.optim.AdamW(model.parameters()))
    trained = [each for each in model.parameters() if each.requires_grad]
    half = len(trained) // 2
    turned = torch.optim.AdamW([{"params": trained[half:]}, {"params": trained[:half]}][::-1])
    turned.param_groups[0]["params"].reverse()
    with pytest.raises(InvalidCheckpoint, match="shape of the parameters"):
        restore_checkpoint(path, model, turned)


def test_what_changes_between_the_look_and_the_reading_is_noticed(base, tmp_path):
    path = make_checkpoint(tmp_path, "final", base, "adapter")
    manifest = verify(path)
    file = path / "adapter_model.safetensors"
    body = bytearray(file.read_bytes())
    body[-1] ^= 1
    file.write_bytes(body)
    with pytest.raises(InvalidCheckpoint, match="not the file that was verified"):
        load_weights(path, manifest)


# ── saving ───────────────────────────────────────────────────────────────────────────────────────


def test_weights_that_are_no_numbers_are_not_saved_and_the_last_good_ones_stay(base, tmp_path):
    model = fresh_model(base, "adapter")
    path = save_checkpoint(tmp_path, "best", model, info=facts(1), base_folder=base)
    before = verify(path)
    with torch.no_grad():
        next(each for each in model.parameters() if each.requires_grad)[0, 0] = float("nan")
    with pytest.raises(InvalidCheckpoint, match="no numbers"):
        save_checkpoint(tmp_path, "best", model, info=facts(2), base_folder=base)
    assert verify(path) == before
    assert [each.name for each in tmp_path.iterdir()] == ["best"]


def test_what_cannot_be_saved_faithfully_is_said(base, tmp_path):
    from peft import LoraConfig, get_peft_model

    odd = LoraConfig(r=2, target_modules=["q_proj"], use_dora=True, task_type="CAUSAL_LM")
    model = get_peft_model(AutoModelForCausalLM.from_pretrained(base), odd)
    with pytest.raises(Misuse, match="plain LoRA"):
        save_checkpoint(tmp_path, "best", model, info=facts(), base_folder=base)
    plain = fresh_model(base, "full")
    with pytest.raises(Misuse, match="no name"):
        save_checkpoint(tmp_path, "../best", plain, info=facts())
    with pytest.raises(Misuse, match="together"):
        save_checkpoint(tmp_path, "best", plain, info=facts(), optimizer=optimizer_of(plain))
    with pytest.raises(Misuse, match="no number"):
        save_checkpoint(
            tmp_path, "best", plain, info=facts(), trainer=TrainerState(3, best=float("nan"))
        )
    with pytest.raises(Misuse, match="no model folder"):
        save_checkpoint(tmp_path, "best", plain, info=facts(), base_folder=tmp_path)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("exchange", [True, False], ids=["exchange", "two renames"])
def test_a_newer_best_takes_the_place_of_the_old_one(base, tmp_path, exchange):
    swap_names = exchange_names if exchange else lambda _first, _second: False
    model = fresh_model(base, "adapter")
    for step in (1, 2):
        path = save_checkpoint(
            tmp_path, "best", model, info=facts(step), base_folder=base, swap_names=swap_names
        )
        assert verify(path, base=base).step == step
        assert [each.name for each in tmp_path.iterdir()] == ["best"]


STEPS = ("save_checkpoint", "publish_folder", "recover_folders", "create_staging_folder", "_fsync")
"""The functions whose lines change what others see of the disk."""


def die_before_line(number, work):
    """Do `work` in a forked child that dies, as of `kill -9`, before the n-th line that writes.

    True when it came to its end instead.
    """
    child = os.fork()
    if child == 0:
        left = number

        def trace(frame, event, _argument):
            nonlocal left
            code = frame.f_code
            if code.co_name not in STEPS or "train/checkpoints" not in code.co_filename:
                return None
            if event == "line":
                left -= 1
                if left < 0:
                    os._exit(9)
            return trace

        sys.settrace(trace)
        try:
            work()
        finally:
            os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


@pytest.mark.live
@pytest.mark.parametrize("exchange", [True, False], ids=["exchange", "two renames"])
def test_a_crash_before_any_line_leaves_the_old_checkpoint_or_the_new_one(base, tmp_path, exchange):
    swap_names = exchange_names if exchange else lambda _first, _second: False
    model = fresh_model(base, "adapter")
    save_checkpoint(tmp_path, "best", model, info=facts(1), base_folder=base, swap_names=swap_names)
    seen, line, over = set(), 0, False
    while not over:
        over = die_before_line(
            line,
            lambda: save_checkpoint(
                tmp_path, "best", model, info=facts(2), base_folder=base, swap_names=swap_names
            ),
        )
        if not exchange:
            recover_folders(tmp_path)
        step = verify(tmp_path / "best", base=base).step
        seen.add(step)
        if step == 2:
            save_checkpoint(tmp_path, "best", model, info=facts(1), base_folder=base)
        line += 1
    recover_folders(tmp_path)
    assert [each.name for each in tmp_path.iterdir()] == ["best"]
    assert seen == {1, 2}


# ── the shelf ────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture
def shelved(base, tmp_path):
    model = fresh_model(base, "adapter")
    for step in (50, 100, 150, 1000000):
        save_checkpoint(
            tmp_path,
            step_name(step),
            model,
            info=facts(step),
            base_folder=base,
        )
    for name in ("best", "final"):
        save_checkpoint(tmp_path, name, model, info=facts(50), base_folder=base)
    return tmp_path


def test_the_newest_checkpoint_is_the_one_of_the_highest_step(shelved, base):
    assert newest_checkpoint(shelved).name == "step-1000000"
    assert newest_checkpoint(shelved, at_most_step=120, base=base).name == "step-000100"
    assert newest_checkpoint(shelved, at_most_step=49) is None
    assert newest_checkpoint(shelved / "nowhere") is None


def test_a_broken_newest_checkpoint_is_passed_over_and_said(shelved, caplog):
    (shelved / "step-1000000" / "adapter_model.safetensors").write_bytes(b"")
    (shelved / "step-000150" / "manifest.json").unlink()
    assert newest_checkpoint(shelved).name == "step-000100"
    assert "step-1000000 is passed over" in caplog.text
    assert {each.action for each in caplog.records} == {"skip_checkpoint"}


def test_old_steps_go_but_not_the_best_and_the_final_one(shelved):
    gone = prune_checkpoints(shelved, keep=2)
    assert sorted(each.name for each in gone) == ["step-000050", "step-000100"]
    assert sorted(each.name for each in shelved.iterdir()) == [
        "best",
        "final",
        "step-000150",
        "step-1000000",
    ]
    assert prune_checkpoints(shelved, keep=0, protect=("step-000150",)) == [
        shelved / "step-1000000"
    ]


def test_what_a_crash_left_behind_is_tidied(shelved):
    (shelved / "final").rename(shelved / ".old-final")
    (shelved / ".new-best-x").mkdir()
    (shelved / ".gone-x").mkdir()
    (shelved / ".old-best").mkdir()
    recover_folders(shelved)
    assert verify(shelved / "final").step == 50
    assert not [each for each in shelved.iterdir() if each.name.startswith(".")]


def test_a_base_that_was_changed_is_another_base(base, tmp_path):
    path = make_checkpoint(tmp_path, "final", base, "adapter")
    other = make_base(tmp_path / "other", seed=5)
    with pytest.raises(InvalidCheckpoint, match="another base"):
        verify(path, base=other)
    with pytest.raises(InvalidCheckpoint, match="another base"):
        verify(path, base="0" * 64)
    assert json.loads((path / "manifest.json").read_bytes())["base_sha256"] == base_fingerprint(
        base
    )
