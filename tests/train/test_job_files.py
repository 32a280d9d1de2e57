"""Are damaged files of a training job told from sound ones?"""

import random

import msgspec
import pytest
from tests.infra.sql.test_damage import spoilt

from upswing.dataset.snapshot import Snapshot, with_digest
from upswing.train.child.session import _read_done
from upswing.train.jobs.attempt import _load_snapshot, _write_job_data
from upswing.train.jobs.data import JobDataset

SAMPLES = [{"trajectory_id": str(number), "text": "x" * 200} for number in range(20)]
"""Labelled stand-ins: `_lay_out` only writes them down."""


@pytest.fixture
def home(tmp_path, snapshot):
    home = tmp_path / "job"
    _write_job_data(home, JobDataset(SAMPLES, snapshot))
    return home


@pytest.fixture
def snapshot():
    fields = {field.name: field for field in msgspec.structs.fields(Snapshot)}
    made = {name: _example(field.type) for name, field in fields.items() if field.required}
    return with_digest(msgspec.convert(made, Snapshot))


def _example(kind):
    plain = {str: "2025-12-08T13:00:00Z", int: 0, float: 0.0, bool: False}
    origin = getattr(kind, "__origin__", kind)
    return {list: [], tuple: [], dict: {}}.get(origin, plain.get(kind, "2025-12-08T13:00:00Z"))


def test_sound_data_are_gone_on_with(home, snapshot):
    assert _load_snapshot(home, snapshot.sha256) == snapshot
    assert _load_snapshot(home, "other") is None


def test_a_snapshot_that_was_changed_is_gathered_anew(home, snapshot):
    path = home / "artifacts" / "snapshot.json"
    path.write_bytes(path.read_bytes().replace(b'"seed":0', b'"seed":1'))
    assert _load_snapshot(home, snapshot.sha256) is None


@pytest.mark.parametrize("seed", range(30))
def test_damaged_samples_are_gathered_anew(home, snapshot, seed):
    chance = random.Random(seed)
    path = chance.choice([home / "samples.jsonl", home / "samples.sha256"])
    path.write_bytes(spoilt(path.read_bytes(), chance))
    assert _load_snapshot(home, snapshot.sha256) is None


@pytest.mark.parametrize("junk", [b"", b"\xff", b"[" * 100_000, b"{}", b"null"])
def test_a_damaged_end_is_no_end(tmp_path, junk):
    path = tmp_path / "done.json"
    assert _read_done(path) is None
    path.write_bytes(junk)
    assert _read_done(path) is None
