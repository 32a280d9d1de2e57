"""How can a checkpoint be bad? Each attack changes a good one in the folder it is given.

An attack is a function of (folder, dice, outside): `dice` is seeded, `outside` is a folder that is
none of the checkpoint's business. Those that call `sign` come with a manifest that fits: whoever
made them means harm.
"""

import io
import json
import os
import pickle
import random
import struct
import zipfile

from checkpoint_cases import seal, sign
from safetensors.numpy import load_file, save_file

JSONS = {
    "adapter": ("adapter_config.json", "trainer.json", "manifest.json"),
    "full": ("config.json", "tokenizer_config.json", "trainer.json", "manifest.json"),
}


class Dice(random.Random):
    """Chance from a name, and a list's entries in turn."""

    def __init__(self, name, number):
        super().__init__(f"{name} {number}")
        self.number = number

    def turn(self, options):
        return options[self.number % len(options)]


class Payload:
    """Whoever unpickles this leaves a file behind."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return os.system, (f"touch {self.path}",)


def harmful(outside, packed=False):
    """A pickle, plain or as torch packs it."""
    raw = pickle.dumps(Payload(outside / "trap"))
    if not packed:
        return raw
    body = io.BytesIO()
    with zipfile.ZipFile(body, "w") as archive:
        archive.writestr("archive/data.pkl", raw)
        archive.writestr("archive/version", "3")
    return body.getvalue()


def weights_of(folder):
    names = ("adapter_model.safetensors", "model.safetensors")
    return next(folder / name for name in names if (folder / name).exists())


def config_of(folder):
    names = ("adapter_config.json", "config.json")
    return next(folder / name for name in names if (folder / name).exists())


def any_file(folder, dice):
    return dice.choice(sorted(folder.iterdir()))


def edit(path, change):
    tree = json.loads(path.read_bytes())
    change(tree)
    path.write_text(json.dumps(tree))


# ── bytes ────────────────────────────────────────────────────────────────────────────────────────


def flip_a_bit(folder, dice, outside):
    path = any_file(folder, dice)
    body = bytearray(path.read_bytes())
    body[dice.randrange(len(body))] ^= 1 << dice.randrange(8)
    path.write_bytes(body)


def truncate(folder, dice, outside):
    path = any_file(folder, dice)
    os.truncate(path, dice.randrange(path.stat().st_size))


def truncate_tensors_and_sign(folder, dice, outside):
    path = dice.choice([weights_of(folder), folder / "optimizer.safetensors"])
    os.truncate(path, dice.randrange(path.stat().st_size))
    sign(folder)


def add_bytes(folder, dice, outside):
    path = any_file(folder, dice)
    body = path.read_bytes()
    at = dice.randrange(len(body) + 1)
    path.write_bytes(body[:at] + dice.randbytes(dice.randint(1, 99)) + body[at:])


def append_to_tensors_and_sign(folder, dice, outside):
    path = dice.choice([weights_of(folder), folder / "optimizer.safetensors"])
    path.write_bytes(path.read_bytes() + dice.randbytes(dice.randint(1, 5000)))
    sign(folder)


def swap_two_files(folder, dice, outside):
    one, other = weights_of(folder), folder / "optimizer.safetensors"
    body = one.read_bytes()
    one.write_bytes(other.read_bytes())
    other.write_bytes(body + bytes(8 * dice.randint(0, 3)))
    sign(folder)


# ── files ────────────────────────────────────────────────────────────────────────────────────────


def take_a_file_away(folder, dice, outside):
    any_file(folder, dice).unlink()


def take_weights_or_trainer_away_and_sign(folder, dice, outside):
    names = [
        weights_of(folder).name,
        config_of(folder).name,
        "trainer.json",
        "optimizer.safetensors",
    ]
    (folder / dice.turn(names)).unlink()
    sign(folder)


STRANGERS = (
    "README.md",
    ".hidden",
    "model-00002-of-00002.safetensors",
    "Model.safetensors",
    "x" * 250,
    "a\\b.safetensors",
    "modeling_small.py",
    "__init__.py",
    "sitecustomize.py",
    "tokenizer.py",
    "pytorch_model.bin",
    "adapter_model.bin",
    "optimizer.pt",
    "training_args.bin",
    "state.pkl",
    "rng_state.pth",
    "weights.ckpt",
    "model.pickle",
    "model.safetensors\n",
    "libx.so",
    "x.pth",
)


def add_a_stranger(folder, dice, outside):
    (folder / dice.turn(STRANGERS)).write_bytes(harmful(outside, dice.random() < 0.5))


def add_a_stranger_and_sign(folder, dice, outside):
    add_a_stranger(folder, dice, outside)
    sign(folder)


def pickle_in_place_of_tensors(folder, dice, outside):
    """Under its own name, as loaders of old would take it."""
    path = weights_of(folder)
    path.unlink()
    name = dice.turn(["adapter_model.bin", "pytorch_model.bin", "model.pt", "model.pkl"])
    (folder / name).write_bytes(harmful(outside, dice.random() < 0.5))
    sign(folder)


def pickle_called_safetensors(folder, dice, outside):
    path = dice.choice([weights_of(folder), folder / "optimizer.safetensors"])
    path.write_bytes(harmful(outside, dice.random() < 0.5) + dice.randbytes(dice.randrange(64)))
    sign(folder)


def pickle_called_json(folder, dice, outside):
    path = dice.choice([config_of(folder), folder / "trainer.json"])
    path.write_bytes(harmful(outside) + dice.randbytes(dice.randrange(64)))
    sign(folder)


def subfolder(folder, dice, outside):
    name = dice.turn(["model.safetensors.d", "additional", "__pycache__", "trainer.json"])
    (folder / name).unlink(missing_ok=True)
    (folder / name).mkdir()
    (folder / name / "x.py").write_text(f"# {dice.random()}")


# ── ways out of the folder ───────────────────────────────────────────────────────────────────────


def link_a_file(folder, dice, outside):
    """The right bytes, but elsewhere."""
    path = any_file(folder, dice)
    target = outside / f"{dice.random()}"
    target.write_bytes(path.read_bytes())
    path.unlink()
    path.symlink_to(target)


def link_to_a_secret(folder, dice, outside):
    secret = outside / "secret"
    secret.write_text(f"secret {dice.random()}")
    path = any_file(folder, dice)
    path.unlink()
    path.symlink_to(os.path.relpath(secret, folder) if dice.random() < 0.5 else secret)
    if path.name != "manifest.json":
        sign(folder)


def link_the_folder(folder, dice, outside):
    """The whole folder is a link to a good checkpoint."""
    there = outside / f"good-{dice.random()}"
    folder.rename(there)
    folder.symlink_to(there)


def pipe(folder, dice, outside):
    path = any_file(folder, dice)
    path.unlink()
    os.mkfifo(path)


WAYS = (
    "../x",
    "../../x",
    "/etc/hostname",
    "a/../../x",
    "./model.safetensors",
    "..\\x",
    "C:\\x",
    "model.safetensors\x00.txt",
    "x" * 5000,
    "",
    ".",
    "..",
    "sub/x.safetensors",
    "~/x",
    "file:///etc/hostname",
    "\u202esrotsnesafes.x",
    "model.safetensors ",
    "con",
    "$HOME/x",
)


def list_a_way_out(folder, dice, outside):
    name = dice.turn(WAYS)

    def change(manifest):
        entry = manifest["files"].pop(weights_of(folder).name)
        manifest["files"][name] = entry
        if dice.random() < 0.5:
            manifest["files"][weights_of(folder).name] = entry

    sign(folder, change)


# ── what the manifest says ───────────────────────────────────────────────────────────────────────


def strange_manifest(folder, dice, outside):
    path = folder / "manifest.json"
    raw = path.read_bytes()
    body = dice.turn(
        [
            b"",
            b"[]",
            b"null",
            b'"x"',
            b"{",
            b"{}",
            b"\xef\xbb\xbf" + raw,
            b"\xff\xfe" + raw,
            raw + raw,
            b" " * (2 << 20) + raw,
            raw[:-1],
            b"1" * 5000,
            b"[" * 100_000,
            raw + b"\0",
        ]
    )
    path.write_bytes(body)


def strange_field(folder, dice, outside):
    """One field of the manifest that cannot be; signed, sealed."""
    name = weights_of(folder).name
    key, value = dice.turn(
        [
            ("format", 0),
            ("format", 2),
            ("format", "1"),
            ("format", True),
            ("format", None),
            ("format", [1]),
            ("kind", "pickle"),
            ("kind", None),
            ("base_sha256", "x" * 64),
            ("base_sha256", "0" * 64),
            ("base_sha256", None),
            ("step", -1),
            ("step", "3"),
            ("step", 1e400),
            ("step", 4),
            ("created", "yesterday"),
            ("created", 5),
            ("files", []),
            ("files", {}),
            ("files", None),
            ("recipe", []),
            ("job_id", {"a": 1}),
            ("job_id", "x" * 5000),
            ("extra", 1),
            ("base_model", "another"),
            ("parent", None),
        ]
    )
    if key == "base_model" and name == "model.safetensors":
        key, value = "loader", "x.py:load"

    def change(manifest):
        manifest[key] = value

    sign(folder, change)


def strange_entry(folder, dice, outside):
    """A file's entry that cannot be: sizes below zero, beyond the disk, of another kind."""
    name = weights_of(folder).name
    entry = dice.turn(
        [
            {"size": -1},
            {"size": 1 << 70},
            {"size": 1 << 61},
            {"size": 1.5},
            {"size": "12"},
            {"size": None},
            {"size": True},
            {"sha256": ""},
            {"sha256": "A" * 64},
            {"sha256": None},
            {"sha256": "0" * 63},
            {"url": "http://127.0.0.1/x"},
            {"mode": 0o777},
        ]
    )
    sign(folder, lambda manifest: manifest["files"][name].update(entry))


def broken_seal(folder, dice, outside):
    """The manifest tells another story, and nobody signed it."""
    key = dice.turn(["parent", "job_id", "snapshot", "code_version", "created", "step", "recipe"])
    other = {"created": "2020-01-01T00:00:00Z", "step": dice.randint(4, 99), "recipe": {}}
    edit(
        folder / "manifest.json",
        lambda manifest: manifest.update({key: other.get(key, f"other-{dice.random()}")}),
    )


def twice(folder, dice, outside):
    """The same key twice: two readers, two opinions."""
    kind = "adapter" if (folder / "adapter_config.json").exists() else "full"
    name = dice.choice(JSONS[kind])
    tree = json.loads((folder / name).read_bytes())
    key = dice.choice(sorted(tree))
    text = f'{{"{key}": {json.dumps(tree[key])}, ' + json.dumps(tree)[1:]
    (folder / name).write_text(text)
    if name != "manifest.json":
        sign(folder)


def deep(folder, dice, outside):
    kind = "adapter" if (folder / "adapter_config.json").exists() else "full"
    name = dice.choice(JSONS[kind])
    depth = dice.choice([2_000, 50_000, 200_000])
    opening, closing = dice.choice([("[", "]"), ('{"a":', "}")])
    text = (folder / name).read_text().rstrip()[:-1]
    (folder / name).write_text(f'{text}, "x": {opening * depth}1{closing * depth}}}')
    if name != "manifest.json":
        sign(folder)


def not_a_number_in_json(folder, dice, outside):
    path = dice.choice([config_of(folder), folder / "trainer.json"])
    word = dice.choice(["NaN", "Infinity", "-Infinity"])
    text = path.read_text().rstrip()[:-1]
    path.write_text(f'{text}, "x{dice.randrange(1000)}": {word}}}')
    sign(folder)


# ── tensors ──────────────────────────────────────────────────────────────────────────────────────


def rewrite_header(path, change):
    body = path.read_bytes()
    length = int.from_bytes(body[:8], "little")
    header = json.loads(body[8 : 8 + length])
    raw = change(header)
    raw = json.dumps(header).encode() if raw is None else raw
    path.write_bytes(struct.pack("<Q", len(raw)) + raw + body[8 + length :])


def huge_header(folder, dice, outside):
    path = dice.turn([weights_of(folder), folder / "optimizer.safetensors"])
    body = path.read_bytes()
    length = dice.turn([1 << 63, (1 << 64) - 1, 1 << 40, len(body), len(body) - 7, 100 << 20])
    path.write_bytes(struct.pack("<Q", length) + body[8:])
    sign(folder)


def impossible_header(folder, dice, outside):
    """A tensor that says of itself what cannot be."""

    def change(header):
        name = dice.choice(sorted(key for key in header if key != "__metadata__"))
        entry = header[name]
        start, end = entry["data_offsets"]
        entry.update(
            dice.turn(
                [
                    {"data_offsets": [start, end + 4]},
                    {"data_offsets": [end, start]},
                    {"data_offsets": [-4, end - start - 4]},
                    {"data_offsets": [start + 4, end + 4]},
                    {"data_offsets": [1 << 62, (1 << 62) + end - start]},
                    {"data_offsets": [start]},
                    {"data_offsets": "all"},
                    {"shape": [1 << 62, 1 << 62]},
                    {"shape": [-1, -1]},
                    {"shape": [True]},
                    {"shape": None},
                    {"shape": [[]]},
                    {"shape": [1.0]},
                    {"dtype": "F999"},
                    {"dtype": "O"},
                    {"dtype": ["F32"]},
                    {"dtype": "I64"},
                    {"code": "import os"},
                    {"shape": entry["shape"] + [1] * 9},
                ]
            )
        )

    rewrite_header(dice.choice([weights_of(folder), folder / "optimizer.safetensors"]), change)
    sign(folder)


def odd_tensor_name(folder, dice, outside):
    name = dice.turn(
        ["../x", "a\x00b", "x" * 5000, "", "os.system('x')", "\u202ex", "a b", "__class__"]
    )

    def change(header):
        old = next(key for key in header if key != "__metadata__")
        header[name] = header.pop(old)

    rewrite_header(dice.turn([weights_of(folder), folder / "optimizer.safetensors"]), change)
    sign(folder)


def tensor_twice(folder, dice, outside):
    def change(header):
        name = dice.choice(sorted(key for key in header if key != "__metadata__"))
        return (
            f'{{"{name}": {json.dumps(header[name])}, '.encode() + json.dumps(header).encode()[1:]
        )

    rewrite_header(weights_of(folder), change)
    sign(folder)


def change_tensors(folder, path, change):
    tensors = {name: value.copy() for name, value in load_file(path).items()}
    change(tensors)
    save_file(tensors, path)
    sign(folder)


def not_a_number(folder, dice, outside):
    path = dice.choice([weights_of(folder), folder / "optimizer.safetensors"])
    word = float(dice.choice(["nan", "inf", "-inf"]))
    kind = dice.choice(["float16", "float32"])

    def change(tensors):
        floats = sorted(n for n, v in tensors.items() if v.dtype.kind == "f" and v.size > 1)
        name = dice.choice(floats)
        tensors[name] = tensors[name].astype(kind)
        tensors[name].flat[dice.randrange(tensors[name].size)] = word

    change_tensors(folder, path, change)


def wrong_dtype(folder, dice, outside):
    kind = dice.turn(["int64", "int32", "uint8", "float64", "bool"])

    def change(tensors):
        name = dice.turn(sorted(tensors))
        tensors[name] = tensors[name].astype(kind)

    change_tensors(folder, weights_of(folder), change)


def wrong_shape(folder, dice, outside):
    import numpy as np

    def change(tensors):
        matrices = sorted(n for n, v in tensors.items() if v.ndim == 2 and v.shape[0] != v.shape[1])
        name = dice.choice(matrices)
        value = tensors[name]
        tensors[name] = dice.turn(
            [
                np.ascontiguousarray(value.T),
                value[None],
                value.reshape(-1),
                value[:1],
                value[:, :-1].copy(),
                np.zeros((0, *value.shape[1:]), value.dtype),
                np.concatenate([value, value], 1),
            ]
        )

    change_tensors(folder, weights_of(folder), change)


def other_names(folder, dice, outside):
    """A layer that the base does not have, or one less."""

    def change(tensors):
        name = dice.choice(sorted(tensors))
        value = tensors.pop(name)
        new = dice.choice(["", name.replace("layers.", "layers.7"), f"{name}.extra", "evil.weight"])
        if new:
            tensors[new] = value

    change_tensors(folder, weights_of(folder), change)


# ── what configurations say ──────────────────────────────────────────────────────────────────────

CODE = (
    {"auto_map": {"AutoModelForCausalLM": "modeling_small.Small"}},
    {"auto_map": {"AutoTokenizer": ["evil/repo--tokenizer.Evil", None]}},
    {"custom_pipelines": {"x": {"impl": "evil.Pipeline"}}},
    {"trust_remote_code": True},
    {"attn_implementation": "evil/kernel"},
    {"_attn_implementation": "evil/kernel:run"},
    {"kernel_config": {"x": "evil"}},
    {"nested": {"deeper": [{"auto_map": "x"}]}},
    {"custom_generate": "evil/repo"},
)


def code_in_a_config(folder, dice, outside):
    name = dice.choice(["config.json", "tokenizer_config.json", "generation_config.json"])
    edit(folder / name, lambda tree: tree.update(dice.turn(CODE)))
    sign(folder)


def other_config(folder, dice, outside):
    """Harmless to read, but not the base's model."""
    value = dice.turn(
        [
            {"model_type": "gpt2"},
            {"model_type": 3},
            {"rms_norm_eps": 0.5},
            {"vocab_size": 1 << 40},
            {"num_hidden_layers": 10**9},
            {"hidden_act": "evil"},
            {"tie_word_embeddings": False},
            {"quantization_config": {"quant_method": "evil"}},
            {"architectures": ["Evil"]},
        ]
    )
    edit(folder / "config.json", lambda tree: tree.update(value))
    sign(folder)


def other_tokenizer(folder, dice, outside):
    name = dice.turn(["tokenizer.json", "chat_template.jinja", "generation_config.json"])
    (folder / name).write_text((folder / name).read_text() + " " * dice.randint(1, 9))
    sign(folder)


def code_in_an_adapter(folder, dice, outside):
    value = dice.turn(
        [
            {"auto_mapping": {"base_model_class": "Evil", "parent_library": "evil"}},
            {"megatron_core": "evil.core", "megatron_config": {"a": 1}},
            {"peft_type": "EVIL"},
            {"peft_type": "PROMPT_TUNING"},
            {"task_type": "SEQ_CLS"},
            {"base_model_name_or_path": "evil"},
            {"base_model_name_or_path": None},
            {"r": 0},
            {"r": 5},
            {"r": 1 << 40},
            {"lora_alpha": "x"},
            {"target_modules": "(a+)+$"},
            {"target_modules": []},
            {"target_modules": ["evil"]},
            {"target_modules": ["../x"]},
            {"modules_to_save": ["lm_head"]},
            {"runtime_config": {}},
            {"layer_replication": [[0, 4]]},
            {"bias": "all"},
            {"init_lora_weights": "pissa"},
            {"eva_config": {"x": 1}},
            {"custom": "evil.py"},
            {"revision": "refs/pr/1"},
            {"fan_in_fan_out": True},
        ]
    )
    edit(folder / "adapter_config.json", lambda tree: tree.update(value))
    sign(folder)


def strange_trainer(folder, dice, outside):
    value = dice.turn(
        [
            {"step": 4},
            {"step": -3},
            {"epoch": "x"},
            {"seed": None},
            {"groups": {}},
            {"groups": [{"params": -1, "options": {}}]},
            {"groups": [{"params": 1, "options": {"x": {}}}]},
            {"scalars": {"x": [1]}},
            {"callback": "evil"},
            {"position": 1 << 70},
        ]
    )
    edit(folder / "trainer.json", lambda tree: tree.update(value))
    sign(folder)


def unsealed(folder, dice, outside):
    """Sealed in a way of their own."""
    path = folder / "manifest.json"
    manifest = json.loads(path.read_bytes())
    raw = seal(manifest)
    told = json.loads(raw)["seal"]
    other = dice.turn([told.upper(), told[::-1], told[:-1], "0" * 64, "", told + "0"])
    path.write_bytes(raw.replace(told.encode(), other.encode()))


BOTH = {
    flip_a_bit: 20,
    truncate: 10,
    truncate_tensors_and_sign: 4,
    add_bytes: 8,
    append_to_tensors_and_sign: 3,
    swap_two_files: 1,
    take_a_file_away: 4,
    take_weights_or_trainer_away_and_sign: 4,
    add_a_stranger: 21,
    add_a_stranger_and_sign: 21,
    pickle_in_place_of_tensors: 4,
    pickle_called_safetensors: 4,
    pickle_called_json: 2,
    subfolder: 4,
    link_a_file: 4,
    link_to_a_secret: 3,
    link_the_folder: 1,
    pipe: 2,
    list_a_way_out: 19,
    strange_manifest: 14,
    strange_field: 26,
    strange_entry: 13,
    broken_seal: 7,
    twice: 4,
    deep: 4,
    not_a_number_in_json: 3,
    huge_header: 6,
    impossible_header: 19,
    odd_tensor_name: 8,
    tensor_twice: 2,
    not_a_number: 6,
    wrong_dtype: 5,
    wrong_shape: 7,
    other_names: 4,
    strange_trainer: 10,
    unsealed: 6,
}
ONE = {
    "adapter": {code_in_an_adapter: 24},
    "full": {code_in_a_config: 9, other_config: 9, other_tokenizer: 3},
}


def attacks(kind):
    """(attack, seed), each as often as it has different things to try."""
    return [
        (attack, seed) for attack, times in {**BOTH, **ONE[kind]}.items() for seed in range(times)
    ]
