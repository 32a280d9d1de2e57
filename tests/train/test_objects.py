"""Are models kept, whole, where MODEL_STORAGE_PATH says, whatever happens on the way?"""

import os
import shutil
import signal
import subprocess
import sys
from datetime import timedelta

import pytest
import torch
from checkpoint_cases import AT, facts, fresh_model, make_base, optimizer_of
from tests.s3 import Server

from upswing.errors import Misuse, Transient
from upswing.infra.objects import ObjectLocation
from upswing.train.checkpoints.checking import verify
from upswing.train.checkpoints.manifest import InvalidCheckpoint
from upswing.train.checkpoints.state import TrainerState
from upswing.train.checkpoints.storage import RETENTION, CheckpointStore
from upswing.train.checkpoints.writing import save_checkpoint

DAY = timedelta(days=1)
LARGE = 6 << 20
"""Numbers of four bytes: a file of three parts."""


@pytest.fixture(params=["folder", pytest.param("s3", marks=pytest.mark.live)])
def place(request, tmp_path):
    return str(tmp_path / "kept") if request.param == "folder" else request.getfixturevalue("s3")


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A checkpoint whose optimizer is a large file."""
    torch.set_num_threads(1)
    folder = tmp_path_factory.mktemp("made")
    base = make_base(folder / "base")
    model = fresh_model(base, "adapter")
    large = TrainerState(3, value={"large": torch.rand(LARGE)})
    return save_checkpoint(
        folder,
        "final",
        model,
        info=facts(),
        optimizer=optimizer_of(model),
        trainer=large,
        base_folder=base,
    )


def another(folder, name="final", created=AT, base=None):
    """A small checkpoint."""
    base = base or make_base(folder / "base")
    model = fresh_model(base, "adapter")
    return save_checkpoint(folder, name, model, info=facts(created=created), base_folder=base)


def content(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir()}


async def keys(place):
    return {thing.key: thing for thing in await ObjectLocation(place, "X").list()}


async def test_what_is_uploaded_comes_back_byte_for_byte(place, made, tmp_path):
    objects = CheckpointStore(place)
    url = await objects.upload(made, "job-1/final")
    assert url == f"{place}/job-1/final"
    assert set(await keys(place)) == {f"job-1/final/{path.name}" for path in made.iterdir()}
    manifest = await objects.download("job-1/final", tmp_path / "back")
    assert content(tmp_path / "back") == content(made)
    assert manifest == verify(made)
    assert await objects.download(url, tmp_path / "again") == manifest


async def test_what_is_there_already_is_not_sent_again(place, made):
    objects = CheckpointStore(place)
    await objects.upload(made, "job-1/final")
    before = await keys(place)
    await objects.upload(made, "job-1/final")
    assert await keys(place) == before


CHILD = """
import asyncio, os, signal, sys
from pathlib import Path
from upswing.train.checkpoints.storage import CheckpointStore
from upswing.infra.objects import ObjectLocation

real = ObjectLocation.put

async def put(self, key, body):
    if not key.endswith("/optimizer.safetensors"):
        return await real(self, key, body)
    sending = asyncio.create_task(real(self, key, body))
    await asyncio.wait([sending], timeout=0.01)
    os.kill(os.getpid(), signal.SIGKILL)

ObjectLocation.put = put
asyncio.run(CheckpointStore(sys.argv[1]).upload(Path(sys.argv[2]), "job-1/final"))
"""


@pytest.mark.live
async def test_an_upload_that_is_killed_while_it_sends_goes_on_where_it_was(place, made, tmp_path):
    child = subprocess.run([sys.executable, "-c", CHILD, place, str(made)], timeout=60, check=False)
    assert child.returncode == -signal.SIGKILL
    before = await keys(place)
    assert "job-1/final/manifest.json" not in before
    with pytest.raises(Misuse, match="no checkpoint"):
        await CheckpointStore(place).download("job-1/final", tmp_path / "half")

    await CheckpointStore(place).upload(made, "job-1/final")
    after = await keys(place)
    sent = ["job-1/final/adapter_config.json", "job-1/final/adapter_model.safetensors"]
    assert [after[key] for key in sent] == [before[key] for key in sent]
    assert set(after) == {f"job-1/final/{path.name}" for path in made.iterdir()}
    back = await CheckpointStore(place).fetch("job-1/final", tmp_path / "back")
    assert content(back) == content(made)


async def test_a_file_that_somebody_changed_meanwhile_is_sent_again(place, made, tmp_path):
    objects = CheckpointStore(place)
    await objects.upload(made, "job-1/final")
    spot = ObjectLocation(place, "X")
    await spot.delete("job-1/final/manifest.json")
    size = (await spot.find("job-1/final/trainer.json")).size
    await spot.put("job-1/final/trainer.json", b"x" * size)
    await objects.upload(made, "job-1/final")
    await objects.download("job-1/final", tmp_path / "back")
    assert content(tmp_path / "back") == content(made)


async def test_another_checkpoint_under_the_same_prefix_replaces_the_first(place, made, tmp_path):
    objects = CheckpointStore(place)
    await objects.upload(made, "job-1/best")
    newer = another(tmp_path, created=AT + DAY)
    await objects.upload(newer, "job-1/best")
    assert (await objects.download("job-1/best", tmp_path / "back")).created == AT + DAY
    assert content(tmp_path / "back") == content(newer)


async def test_a_broken_checkpoint_is_not_uploaded(place, made, tmp_path):
    shutil.copytree(made, tmp_path / "broken")
    (tmp_path / "broken" / "trainer.json").write_text("{}")
    with pytest.raises(InvalidCheckpoint):
        await CheckpointStore(place).upload(tmp_path / "broken", "job-1/final")
    assert await keys(place) == {}


async def test_what_was_changed_where_it_is_kept_is_refused(place, made, tmp_path):
    objects = CheckpointStore(place)
    await objects.upload(made, "job-1/final")
    spot = ObjectLocation(place, "X")
    body = await spot.get("job-1/final/adapter_model.safetensors")
    for bad in (body[:-1], body + b"x", body[:-1] + bytes([body[-1] ^ 1]), body * 3):
        await spot.put("job-1/final/adapter_model.safetensors", bad)
        with pytest.raises(InvalidCheckpoint, match="not the file that was stored"):
            await objects.download("job-1/final", tmp_path / "back")
        assert [path.name for path in tmp_path.iterdir() if "back" in path.name] == []


async def test_a_kept_manifest_leads_nowhere_else(place, made, tmp_path):
    objects = CheckpointStore(place)
    spot = ObjectLocation(place, "X")
    raw = (made / "manifest.json").read_bytes()
    for name in ("../x", "/etc/passwd", "a/../../x", "x" * 2000, "evil.py", "..\\\\x"):
        await spot.put("job-1/final/manifest.json", raw.replace(b"trainer.json", name.encode()))
        with pytest.raises(InvalidCheckpoint):
            await objects.download("job-1/final", tmp_path / "back")
    await spot.put("job-1/final/manifest.json", b" " * (2 << 20))
    with pytest.raises(InvalidCheckpoint, match="too large"):
        await objects.download("job-1/final", tmp_path / "back")
    assert not [path for path in tmp_path.iterdir() if "back" in path.name]


@pytest.mark.parametrize(
    "prefix", ["../x", "/etc", "a//b", "", ".", "a/../b", "s3://x/y", "a\0b", ".a"]
)
async def test_a_prefix_stays_inside(tmp_path, made, prefix):
    objects = CheckpointStore(str(tmp_path / "kept"))
    if prefix == "/etc":
        assert objects.prefix_of(prefix) == "etc"
        return
    for work in (
        objects.upload(made, prefix),
        objects.download(prefix, tmp_path / "back"),
        objects.delete(prefix),
    ):
        with pytest.raises(Misuse):
            await work


async def test_a_link_in_a_folder_of_models_is_not_followed(tmp_path, made):
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "manifest.json").write_text("{}")
    objects = CheckpointStore(str(tmp_path / "kept"))
    (tmp_path / "kept" / "job-1").symlink_to(outside)
    with pytest.raises(Misuse, match="leads out"):
        await objects.delete("job-1")
    with pytest.raises(Misuse, match="leads out"):
        await objects.upload(made, "job-1/final")
    assert (outside / "manifest.json").exists()


# ── what is there, and for how long ──────────────────────────────────────────────────────────────


async def test_old_checkpoints_go_but_never_a_deployed_one(place, tmp_path):
    objects = CheckpointStore(place)
    base = make_base(tmp_path / "base")
    for age in (0, 89, 90, 91, 400):
        folder = another(tmp_path, f"c{age}", created=AT - age * DAY, base=base)
        await objects.upload(folder, f"job-{age}/final")
    await ObjectLocation(place, "X").put("job-91/artifacts/card.md", b"# card")
    await ObjectLocation(place, "X").put("notes.txt", b"somebody else's")
    await ObjectLocation(place, "X").put("theirs/manifest.json", b"{}")
    assert [each.prefix for each in await objects.listing()] == [
        "job-0/final",
        "job-400/final",
        "job-89/final",
        "job-90/final",
        "job-91/final",
    ]
    assert await objects.prune(AT, protected_paths=[f"{place}/job-400/final"]) == ["job-91/final"]
    assert await objects.prune(AT, protected_paths=["job-400/final"]) == []
    left = await keys(place)
    assert {"job-91/artifacts/card.md", "notes.txt", "theirs/manifest.json"} <= left.keys()
    assert not [key for key in left if key.startswith("job-91/final")]
    assert await objects.prune(AT, protected_paths=[], retention=RETENTION - 2 * DAY) == [
        "job-400/final",
        "job-89/final",
        "job-90/final",
    ]


async def test_an_upload_that_nobody_finished_goes_when_it_is_old(place, made):
    objects = CheckpointStore(place)
    await objects.upload(made, "job-1/final")
    spot = ObjectLocation(place, "X")
    await spot.delete("job-1/final/manifest.json")
    await spot.put("job-1/final/upload.json", b'{"created": "2026-03-01T12:00:00Z"}')
    (only,) = await objects.listing()
    assert only.manifest is None
    assert await objects.prune(AT + 90 * DAY, protected_paths=[]) == []
    assert await objects.prune(AT + 91 * DAY, protected_paths=[]) == ["job-1/final"]
    assert await keys(place) == {}


async def test_a_whole_job_is_kept_and_its_model_fetched(place, made, tmp_path):
    home = tmp_path / "job-7"
    (home / "artifacts" / "tensorboard").mkdir(parents=True)
    (home / "artifacts" / "card.md").write_text("# card")
    (home / "artifacts" / "tensorboard" / "events.1").write_bytes(b"x")
    (home / "artifacts" / "link").symlink_to("/etc/hostname")
    shutil.copytree(made, home / "checkpoints" / "final")
    objects = CheckpointStore(place)
    url = await objects.upload_job(home, "job-7")
    assert url == f"{place}/job-7"
    there = await keys(place)
    assert {"job-7/artifacts/card.md", "job-7/artifacts/tensorboard/events.1"} <= there.keys()
    assert "job-7/artifacts/link" not in there
    shutil.rmtree(home)
    for _ in range(2):
        here = await objects.fetch(f"{url}/final", tmp_path / "copies")
        assert content(here) == content(made)
    if place.startswith("s3"):
        (here / "trainer.json").unlink()
        assert content(await objects.fetch(f"{url}/final", tmp_path / "copies")) == content(made)


# ── places that are away, or none ────────────────────────────────────────────────────────────────


@pytest.mark.live
async def test_a_store_that_is_down_is_said_and_the_upload_goes_on_when_it_is_back(
    tmp_path, made, s3
):
    folder = tmp_path / "weed"
    folder.mkdir()
    server = Server(folder)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("AWS_ENDPOINT", server.endpoint)
        objects = CheckpointStore("s3://archive/models")
        for work in (
            lambda: objects.upload(made, "job-1/final"),
            objects.listing,
            lambda: objects.download("job-1/final", tmp_path / "back"),
            lambda: objects.delete("job-1/final"),
            lambda: objects.prune(AT, protected_paths=[]),
        ):
            with pytest.raises(Transient, match=r"cannot be (read|written) just now"):
                await work()
        server.start()
        try:
            assert await objects.upload(made, "job-1/final") == "s3://archive/models/job-1/final"
        finally:
            server.stop()


@pytest.mark.live
async def test_a_place_without_rights_is_misuse(s3, made, monkeypatch):
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "wrong")
    with pytest.raises(Misuse, match="MODEL_STORAGE_PATH cannot be"):
        await CheckpointStore(s3).upload(made, "job-1/final")


def test_a_place_that_is_none_is_misuse(tmp_path):
    (tmp_path / "file").write_text("x")
    for place in (
        "s4://x/y",
        "s3://",
        "ftp://host/x",
        str(tmp_path / "file"),
        str(tmp_path / "file/x"),
    ):
        with pytest.raises(Misuse, match="MODEL_STORAGE_PATH"):
            CheckpointStore(place)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
async def test_a_folder_without_rights_is_misuse(tmp_path, made):
    objects = CheckpointStore(str(tmp_path / "kept"))
    (tmp_path / "kept").chmod(0o500)
    with pytest.raises(Misuse):
        await objects.upload(made, "job-1/final")
