"""Where does a recorder send to, and what does each answer mean?"""

import json

import pytest
from loop_double import PlainRedactor, eventually, say

from upswing.errors import Denied, Misuse
from upswing.infra.spool_log import SpoolEntryKind
from upswing.sdk import Recorder
from upswing.sdk.target import LoopAddress, resolve, spool_folder
from upswing.sdk.transport import (
    EntryAccepted,
    EntryDeferred,
    EntryRefused,
    HttpTransport,
    answer_of,
)

HTTP = {"AGENTGYM_RL_URL": "http://h:8100", "AGENTGYM_RL_API_KEY": "k"}
BUS = {"NATS_URL": "nats://h:4222"}


@pytest.fixture
def running(tmp_path):
    """A data directory whose loop says where it runs."""
    told = {"http_url": "http://127.0.0.1:1", "key": "r", "nats_url": "nats://127.0.0.1:2"}
    (tmp_path / "running.json").write_text(json.dumps(told))
    return tmp_path


def test_the_address_is_looked_for_in_order(running, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    here = {"UPSWING_DATA": str(running)}
    every = HTTP | BUS | here
    assert resolve("http://x", "q", None, every) == LoopAddress("http://x", "q")
    assert resolve("http://x", None, None, every) == LoopAddress("http://x", "k")
    assert resolve(None, None, running, every) == LoopAddress("http://127.0.0.1:1", "r")
    assert resolve(None, None, None, every) == LoopAddress("http://h:8100", "k")
    assert resolve(None, None, None, BUS | here) == LoopAddress("nats://h:4222")
    off = BUS | here | {"AGENTZERO_JETSTREAM": "False"}
    assert resolve(None, None, None, off) == LoopAddress("http://127.0.0.1:1", "r")
    assert resolve(None, None, None, {}) is None


@pytest.mark.parametrize("told", ["", "[]", "{}", '{"http_url": 1}'])
def test_a_file_that_says_nothing_is_no_loop(tmp_path, told):
    (tmp_path / "running.json").write_text(told)
    assert resolve(None, None, tmp_path, {}) is None


def test_a_key_is_not_shown():
    assert "secret" not in repr(LoopAddress("nats://u:secret@h:1", "secret"))


def test_each_loop_has_its_own_spool(tmp_path):
    def folder(url=None, data=None, **env):
        return spool_folder(url, data, env, tmp_path)

    assert folder("http://a:1").parent == tmp_path / ".local/state/upswing/spool"
    assert folder("http://a:1") == folder("http://a:1", **BUS)
    assert len({folder("http://a:1"), folder("http://b:1"), folder(), folder(**HTTP)}) == 4
    assert folder("nats://u:p@h:1") == folder("nats://u:q@h:1")


def test_a_local_loop_that_starts_later_on_another_port_is_found(loop, tmp_path, monkeypatch):
    for name in ("AGENTGYM_RL_URL", "NATS_URL"):
        monkeypatch.delenv(name, raising=False)
    recorder = Recorder(data=tmp_path, spool=tmp_path / "spool", redactor=PlainRedactor)
    tid = say(recorder)
    assert not recorder.flush()
    assert "No loop was found" in eventually(lambda: recorder.stats.last_error)
    (tmp_path / "running.json").write_text(json.dumps({"http_url": loop.url, "key": "k"}))
    assert eventually(recorder.flush)
    assert loop.ids == [tid]
    recorder.close()


@pytest.mark.parametrize(
    ("kind", "status", "answer"),
    [
        (SpoolEntryKind.TRAJECTORY, 202, EntryAccepted),
        (SpoolEntryKind.TRAJECTORY, 200, EntryAccepted),
        (SpoolEntryKind.TRAJECTORY, 422, EntryRefused),
        (SpoolEntryKind.TRAJECTORY, 409, EntryRefused),
        (SpoolEntryKind.FEEDBACK, 404, EntryRefused),
        (SpoolEntryKind.TRAJECTORY, 404, EntryDeferred),
        (SpoolEntryKind.TRAJECTORY, 301, EntryDeferred),
        (SpoolEntryKind.TRAJECTORY, 408, EntryDeferred),
        (SpoolEntryKind.TRAJECTORY, 429, EntryDeferred),
        (SpoolEntryKind.TRAJECTORY, 500, EntryDeferred),
        (SpoolEntryKind.TRAJECTORY, 503, EntryDeferred),
        (SpoolEntryKind.TRAJECTORY, 401, EntryDeferred),
        (SpoolEntryKind.FEEDBACK, 403, EntryDeferred),
    ],
)
def test_every_answer_has_its_meaning(kind, status, answer):
    assert isinstance(answer_of(kind, status, ""), answer)


def test_what_is_anothers_is_refused_and_a_wrong_key_waits():
    for kind in (SpoolEntryKind.TRAJECTORY, SpoolEntryKind.FEEDBACK):
        assert isinstance(answer_of(kind, 403, "", "not_yours"), EntryRefused)
        assert isinstance(answer_of(kind, 403, "", "forbidden"), EntryDeferred)


def test_a_closed_door_is_told_from_an_absent_loop():
    later = answer_of(SpoolEntryKind.TRAJECTORY, 401, "")
    assert isinstance(later, EntryDeferred)
    assert isinstance(later.why, Denied)


def test_http_transport_takes_no_other_address():
    with pytest.raises(Misuse):
        HttpTransport("nats://h:1")
