"""Where does a recorder send to, and what does each answer mean?"""

import json

import pytest
from loop_double import PlainRedactor, eventually, say

from upswing.errors import Denied, Misuse
from upswing.sdk import Recorder
from upswing.sdk.logs import Kind
from upswing.sdk.target import Target, resolve, spool_folder
from upswing.sdk.transport import HttpTransport, Later, Refused, Taken, answer_of

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
    assert resolve("http://x", "q", None, every) == Target("http://x", "q")
    assert resolve("http://x", None, None, every) == Target("http://x", "k")
    assert resolve(None, None, running, every) == Target("http://127.0.0.1:1", "r")
    assert resolve(None, None, None, every) == Target("http://h:8100", "k")
    assert resolve(None, None, None, BUS | here) == Target("nats://h:4222")
    off = BUS | here | {"AGENTZERO_JETSTREAM": "False"}
    assert resolve(None, None, None, off) == Target("http://127.0.0.1:1", "r")
    assert resolve(None, None, None, {}) is None


@pytest.mark.parametrize("told", ["", "[]", "{}", '{"http_url": 1}'])
def test_a_file_that_says_nothing_is_no_loop(tmp_path, told):
    (tmp_path / "running.json").write_text(told)
    assert resolve(None, None, tmp_path, {}) is None


def test_a_key_is_not_shown():
    assert "secret" not in repr(Target("nats://u:secret@h:1", "secret"))


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
    assert "No loop was found" in recorder.stats.last_error
    (tmp_path / "running.json").write_text(json.dumps({"http_url": loop.url, "key": "k"}))
    assert eventually(recorder.flush)
    assert loop.ids == [tid]
    recorder.close()


@pytest.mark.parametrize(
    ("kind", "status", "answer"),
    [
        (Kind.TRAJECTORY, 202, Taken),
        (Kind.TRAJECTORY, 200, Taken),
        (Kind.TRAJECTORY, 422, Refused),
        (Kind.TRAJECTORY, 409, Refused),
        (Kind.FEEDBACK, 404, Refused),
        (Kind.TRAJECTORY, 404, Later),
        (Kind.TRAJECTORY, 301, Later),
        (Kind.TRAJECTORY, 408, Later),
        (Kind.TRAJECTORY, 429, Later),
        (Kind.TRAJECTORY, 500, Later),
        (Kind.TRAJECTORY, 503, Later),
        (Kind.TRAJECTORY, 401, Later),
        (Kind.FEEDBACK, 403, Later),
    ],
)
def test_every_answer_has_its_meaning(kind, status, answer):
    assert isinstance(answer_of(kind, status, ""), answer)


def test_a_closed_door_is_told_from_an_absent_loop():
    later = answer_of(Kind.TRAJECTORY, 401, "")
    assert isinstance(later, Later)
    assert isinstance(later.why, Denied)


def test_http_transport_takes_no_other_address():
    with pytest.raises(Misuse):
        HttpTransport("nats://h:1")
