"""Is a bad checkpoint refused, whatever is wrong with it, and does none of its code run?"""

import hashlib
import os
import shutil
import sys
import threading
import tracemalloc

import pytest
import torch
from checkpoint_attacks import Dice, attacks, change_tensors, harmful, weights_of
from checkpoint_cases import fresh_model, make_base, make_checkpoint, optimizer_of

from upswing.train.checkpoints.checking import parse_manifest, verify
from upswing.train.checkpoints.manifest import InvalidCheckpoint
from upswing.train.checkpoints.reading import restore_checkpoint

KINDS = ("adapter", "full")
MEGABYTE = 1 << 20


class Watch:
    """What Python opens, runs and unpickles while somebody looks."""

    def __init__(self):
        self.on, self.opened, self.ran, self.thread = False, [], [], threading.get_ident()
        sys.addaudithook(self._see)

    def _see(self, event, arguments):
        if not self.on or threading.get_ident() != self.thread:
            return
        if event == "open" and isinstance(arguments[0], str | bytes | os.PathLike):
            self.opened.append(os.fsdecode(arguments[0]))
        elif event in {
            "pickle.find_class",
            "os.system",
            "subprocess.Popen",
            "socket.connect",
            "os.exec",
            "os.rename",
            "os.remove",
            "os.mkdir",
            "os.symlink",
            "os.link",
        }:
            self.ran.append((event, arguments))

    def __enter__(self):
        self.opened, self.ran, self.on = [], [], True
        return self

    def __exit__(self, *_):
        self.on = False


WATCH = Watch()


@pytest.fixture(scope="module")
def good(tmp_path_factory):
    """The base and a good checkpoint of each kind."""
    torch.set_num_threads(1)
    place = tmp_path_factory.mktemp("good")
    base = make_base(place / "base")
    made = {kind: make_checkpoint(place, kind, base, kind) for kind in KINDS}
    for path in made.values():
        verify(path, base=base)
    return base, made


def look(folder):
    """Everything about a folder that a case can differ in."""
    if folder.is_symlink():
        return hashlib.sha256(str(folder.readlink()).encode()).hexdigest()
    digest = hashlib.sha256()
    for path in sorted(folder.rglob("*")):
        digest.update(ascii(path.name).encode())
        if path.is_symlink():
            digest.update(str(path.readlink()).encode())
        elif path.is_file():
            digest.update(path.read_bytes())
    return digest.hexdigest()


def tree(folder):
    return {path: path.lstat().st_mtime_ns for path in sorted(folder.rglob("*"))}


@pytest.mark.parametrize("kind", KINDS)
def test_every_bad_checkpoint_is_refused_with_a_sentence_and_runs_nothing(
    good, tmp_path, kind, trials
):
    base, made = good
    model = fresh_model(base, kind)
    optimizer = optimizer_of(model)
    outside = tmp_path / "outside"
    outside.mkdir()
    seen, taken = {look(made[kind])}, []
    for attack, seed in attacks(kind):
        folder = tmp_path / f"{attack.__name__}-{seed}"
        shutil.copytree(made[kind], folder)
        attack(folder, Dice(f"{kind} {attack.__name__}", seed), outside)
        if look(folder) in seen:
            continue
        seen.add(look(folder))
        before = tree(tmp_path)
        for load in (
            lambda folder=folder: verify(folder, base=base),
            lambda folder=folder: restore_checkpoint(folder, model, optimizer, base=base),
        ):
            with WATCH:
                try:
                    load()
                except InvalidCheckpoint as error:
                    sentence = str(error)
                else:
                    taken.append((attack.__name__, seed))
                    continue
            assert sentence.endswith("."), sentence
            assert len(sentence) < 500, sentence
            assert sentence.isprintable(), sentence
            strangers = [
                each for each in WATCH.opened if not each.startswith((f"{folder}/", str(base)))
            ]
            assert (strangers, WATCH.ran) == ([], []), attack
        assert tree(tmp_path) == before, attack
        if folder.is_symlink():
            folder.unlink()
        else:
            shutil.rmtree(folder)
    trials.add(len(seen) - 1, lost=len(set(taken)))
    assert not taken
    assert not (outside / "trap").exists()
    assert len(seen) - 1 >= 200, "so many different cases, of each kind"


@pytest.mark.parametrize("kind", KINDS)
def test_a_manifest_with_any_bit_changed_is_refused(good, kind, trials):
    _, made = good
    raw = (made[kind] / "manifest.json").read_bytes()
    parse_manifest(raw)
    taken = []
    for at in range(len(raw)):
        body = bytearray(raw)
        body[at] ^= 1 << at % 8
        try:
            parse_manifest(bytes(body))
        except InvalidCheckpoint:
            continue
        taken.append(at)
    trials.add(len(raw), lost=len(taken))
    assert not taken


CHANCE = ("rng.torch", "rng.python", "rng.numpy", "rng.numpy", "rng.torch")


def test_a_state_of_chance_that_cannot_be_is_refused(good, tmp_path):
    base, made = good
    model = fresh_model(base, "adapter")
    for number, name in enumerate(CHANCE):
        folder = tmp_path / f"{number}"
        shutil.copytree(made["adapter"], folder)

        def change(tensors, name=name, number=number):
            if number == 3:
                tensors[name][624] = 10**9  # a position far outside of the state
            elif number == 4:
                tensors[name][[8, 9, 16, 17]] = 0x70, 2, 0x70, 2  # 624 words left, from the 624th
            else:
                tensors[name] = tensors[name][:9] * 0 + 255

        change_tensors(folder, folder / "optimizer.safetensors", change)
        with pytest.raises(InvalidCheckpoint, match="chance"):
            restore_checkpoint(folder, model, base=base)


def test_the_trap_would_have_snapped(tmp_path):
    """The pickle that was planted does run, when somebody is so careless as to load it."""
    import pickle

    pickle.loads(harmful(tmp_path))
    assert (tmp_path / "trap").exists()


def test_a_checkpoint_that_is_too_large_is_not_even_read(good):
    _, made = good
    with WATCH, pytest.raises(InvalidCheckpoint, match="larger than 1000 bytes"):
        verify(made["adapter"], limit_bytes=1000)
    assert WATCH.opened == []


def test_a_large_file_of_nothing_takes_little_memory(good, tmp_path):
    """The header says how long it is, the file is long enough, and still nobody believes it."""
    _, made = good
    folder = tmp_path / "large"
    shutil.copytree(made["adapter"], folder)
    path = weights_of(folder)
    for length in (1 << 34, 100 * MEGABYTE):
        path.write_bytes(length.to_bytes(8, "little"))
        os.truncate(path, 200 * MEGABYTE)
        tracemalloc.start()
        try:
            with pytest.raises(InvalidCheckpoint):
                verify(folder)
            from upswing.train.checkpoints.headers import read_header

            with pytest.raises(InvalidCheckpoint, match="no safetensors file"):
                read_header(path)
            assert tracemalloc.get_traced_memory()[1] < 20 * MEGABYTE
        finally:
            tracemalloc.stop()


def test_an_empty_folder_and_no_folder_are_no_checkpoints(tmp_path):
    for path in (tmp_path, tmp_path / "nowhere", tmp_path / "a\0b"):
        with pytest.raises(InvalidCheckpoint):
            verify(path)
