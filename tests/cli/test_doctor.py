"""The doctor finds what is wrong, and every failure has its remedy."""

import contextlib
import json
import os
import shutil
import socket
import sqlite3
import sys
import time
from types import SimpleNamespace

import pytest
from tests.support import cli

from upswing.cli import main
from upswing.cli.doctor import CHECKS, DoctorCheck, run_check
from upswing.cli.doctor_checks import DoctorCase
from upswing.infra.instance import read_secrets


@pytest.fixture
def case(data):
    data.mkdir(mode=0o700)
    return DoctorCase(data, port=0, gateway_port=0)


def look(name, case):
    return run_check(name, CHECKS[name], case)


@pytest.mark.parametrize("name", [each for each in CHECKS if each != "extras"])
def test_a_fresh_set_up_is_sound(name, case):
    found = look(name, case)
    assert (found.ok, found.remedy) == (True, ""), found


def test_extras_that_are_not_needed_are_only_told(case):
    assert "train" in look("extras", case).sentence


def taken_port():
    held = socket.socket()
    held.bind(("127.0.0.1", 0))
    held.listen()
    return held, held.getsockname()[1]


def _config(case, text):
    (case.folder / "upswing.toml").write_text(text)


def bad_variable(case, patch):
    patch.setenv("UPSWING_DTAA", "x")


def bad_config(case, patch):
    _config(case, "[collect]\nmax_byts = 5000\n")


def bad_deploy(case, patch):
    patch.setenv("CANARY_RAMP_HOURS", "soon")


def no_postgres(case, patch):
    patch.setenv("DATABASE_URL", "postgresql://127.0.0.1:1/x")
    patch.setitem(sys.modules, "psycopg", None)  # as where it is not installed


def unknown_base(case, patch):
    patch.setenv("RL_BASE_MODEL", "llama-99b")


def unnamed_model(case, patch):
    _config(case, '[serve]\nurl = "http://127.0.0.1:1"\n')


def no_tasks(case, patch):
    _config(case, '[validate.files]\nmine = "/no/such/tasks.jsonl"\n')


def no_folder(case, patch):
    case.folder.rmdir()
    case.folder.write_text("a file")


def full_disk(case, patch):
    patch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(free=10**8))


def no_bus(case, patch):
    patch.setenv("NATS_URL", "nats://127.0.0.1:1")


def no_database(case, patch):
    patch.setenv("DATABASE_URL", "postgresql://127.0.0.1:1/x")


def no_store(case, patch):
    (case.folder / "upswing.db").write_bytes(b"this is no database" * 100)


def damaged_store(case, patch):
    """The middle of the file is gone; what a count reads is whole."""
    path = case.folder / "upswing.db"
    with contextlib.closing(sqlite3.connect(path)) as made, made:
        made.execute("CREATE TABLE trajectories (seq INTEGER PRIMARY KEY, body TEXT)")
        made.executemany("INSERT INTO trajectories (body) VALUES (?)", [("x" * 500,)] * 500)
    held = bytearray(path.read_bytes())
    held[len(held) // 2 : len(held) // 2 + 6000] = bytes(6000)
    path.write_bytes(held)


def open_keys(case, patch):
    read_secrets(case.folder)
    (case.folder / "secrets.json").chmod(0o644)


def damaged_keys(case, patch):
    (case.folder / "secrets.json").write_text('{"key": "up_x"')
    (case.folder / "secrets.json").chmod(0o600)


def odd_keys(case, patch):
    patch.setenv("UPSWING_GATEWAY_KEYS", "no-equals-sign")


def no_server(case, patch):
    _config(case, '[serve]\nurl = "http://127.0.0.1:1"\n[train]\nbase_model = "qwen"\n')


BROKEN = [
    ("environment", bad_variable, "did you mean `UPSWING_DATA`", "Unset the variable"),
    ("config", bad_config, "did you mean `max_bytes`", "Mend upswing.toml"),
    ("config", bad_deploy, "CANARY_RAMP_HOURS", "the variable that is named"),
    (
        "extras",
        no_postgres,
        "needs the extra `postgres`",
        "pip install '.[postgres]' in Upswing's folder",
    ),
    ("base model", unknown_base, "not on this machine", "RL_BASE_MODEL"),
    ("base model", unnamed_model, "nothing names its model", "RL_BASE_MODEL"),
    ("validation", no_tasks, "No such file", "[validate]"),
    ("data", no_folder, "is no directory", "--data"),
    ("disk", full_disk, "Only 0.1 GB are free", "Make room"),
    ("bus", no_bus, "cannot be reached", "NATS_URL"),
    ("store", no_database, "cannot be used", "DATABASE_URL"),
    ("store", no_store, "not a database", "upswing repair"),
    ("store", damaged_store, "is damaged", "upswing repair"),
    ("keys", open_keys, "can be read by others", "chmod 600"),
    ("keys", damaged_keys, "is damaged", "make keys anew"),
    ("keys", odd_keys, "entry 1 is not of the form", "the variable that is named"),
    ("backend", no_server, "Nothing answers at http://127.0.0.1:1", "model server"),
]


@pytest.mark.parametrize(("name", "wreck", "sentence", "remedy"), BROKEN)
def test_what_is_broken_is_found_with_its_remedy(name, wreck, sentence, remedy, case, monkeypatch):
    wreck(case, monkeypatch)
    found = look(name, case)
    assert not found.ok
    assert sentence in found.sentence
    assert remedy in found.remedy


@pytest.mark.parametrize("name", ["port", "gateway port"])
def test_both_ports_are_tried(name, case):
    held, number = taken_port()
    with held:
        found = look(name, DoctorCase(case.folder, port=number, gateway_port=number))
        assert not found.ok
        assert f"Port {number} on 127.0.0.1 cannot be used" in found.sentence
        option = "--port" if name == "port" else "--gateway-port"
        assert option in found.remedy


def test_every_check_can_fail_and_has_a_usual_remedy():
    assert all(check.remedy.endswith((".", "'")) for check in CHECKS.values())
    tried = {name for name, *_ in BROKEN} | {"port", "gateway port"}
    assert CHECKS.keys() - tried == {"python", "redactor"}, "these tell, and break nothing"


def test_a_check_that_breaks_in_silence_still_says_something(case):
    def look(_):
        raise TimeoutError

    found = run_check("bus", DoctorCheck(look, "Start it."), case)
    assert (found.ok, found.sentence, found.remedy) == (
        False,
        "It ended with TimeoutError.",
        "Start it.",
    )


def test_the_output_is_for_people_and_for_machines(case, monkeypatch, capsys):
    monkeypatch.setenv("RL_BASE_MODEL", "llama-99b")
    words = ["doctor", "--data", str(case.folder), "--port", "0", "--gateway-port", "0"]
    assert main(words) == 1
    said = capsys.readouterr().out
    assert "WRONG base model   The base model 'llama-99b' is not on this machine" in said
    assert "▸ Name `tiny`, `smollm2` or a folder" in said
    assert main([*words, "--json"]) == 1
    found = {each["check"]: each for each in json.loads(capsys.readouterr().out)}
    assert found.keys() == CHECKS.keys()
    assert [name for name, each in found.items() if not each["ok"]] == ["base model"]
    assert all(each["ok"] or each["remedy"] for each in found.values())


@pytest.mark.live
def test_nothing_is_made_by_looking(tmp_path):
    cli("doctor", "--port", "0", "--gateway-port", "0", data=tmp_path / "data", check=False)
    assert list(tmp_path.iterdir()) == []


def test_one_mistake_is_one_finding(case, capsys):
    _config(case, "[serve]\nulr = 'http://127.0.0.1:1'\n")
    assert main(["doctor", "--data", str(case.folder), "--json"]) == 1
    found = json.loads(capsys.readouterr().out)
    wrong = [each for each in found if each["state"] == "wrong"]
    assert [each["check"] for each in wrong] == ["config"]
    assert all(
        each["sentence"] == "Not checked: see config."
        for each in found
        if each["state"] == "skipped"
    )


def test_a_loop_that_starts_is_waited_for_and_not_called_wrong(case):
    from upswing.infra.sql.store import lock_for_writing

    with lock_for_writing(case.folder):
        found = look("backend", case)
        assert (found.ok, found.state) == (False, "pending")
        assert "waits for its store" in found.sentence
        assert look("port", case).ok
        assert look("store", case).ok
    assert look("backend", case).ok


@pytest.mark.parametrize("name", ["gateway port", "keys", "backend"])
@pytest.mark.parametrize(("age", "state"), [(0, "pending"), (10_000, "wrong")])
def test_a_gateway_that_does_not_answer_is_waited_for_while_the_loop_is_young(
    name, age, state, case
):
    with contextlib.closing(socket.socket()) as held:
        held.bind(("127.0.0.1", 0))  # and nobody listens
        url = f"http://127.0.0.1:{held.getsockname()[1]}"
        _running(case, url, age)
        found = look(name, case)
    assert (found.ok, found.state) == (False, state), found
    assert ("The loop is starting and waits for" in found.sentence) is (state == "pending")


def _running(case, url, age):
    """What a loop of this process says, so many seconds ago, of where it answers."""
    path = case.folder / "running.json"
    path.write_text(
        json.dumps(
            {
                "pid": os.getpid(),
                "http_url": url,
                "gateway_url": url,
                "nats_url": "",
                "nats_urls": {},
                "key": "k",
                "data": str(case.folder),
                "gateway_key": "k",
            }
        )
    )
    path.chmod(0o600)
    then = time.time() - age
    os.utime(path, (then, then))


@pytest.mark.parametrize("variable", ["TRAJECTORY_STORAGE_PATH", "MODEL_STORAGE_PATH"])
@pytest.mark.parametrize("place", ["ftp://x", "/proc/x", "/dev/null/x", "gopher://y/z"])
def test_a_place_that_keeps_nothing_is_refused_before_a_start(case, monkeypatch, variable, place):
    monkeypatch.setenv(variable, place)
    found = look("config", case)
    assert not found.ok
    assert variable in found.sentence
