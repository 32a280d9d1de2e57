"""What becomes of the loop's own keys when they are lost, damaged, rotated, or handed to a child?"""

import json
import os
import pty
import random
from pathlib import Path

import pytest
from tests.conftest import running_loop
from tests.infra.sql.test_damage import NOW
from tests.support import Client, family

from upswing.cli import main
from upswing.cli.loop import may_show_secrets
from upswing.config import Surroundings
from upswing.errors import Misuse
from upswing.infra.child_env import child_environment
from upswing.infra.instance import InstanceInfo, read_secrets
from upswing.infra.sql.keys import OPERATOR_ID, Keys
from upswing.infra.sql.store_mark import StoreMark, write_mark

pytestmark = pytest.mark.live


async def works(loop, key):
    async with Client(loop.running.http_url) as client:
        return (await client("GET", "/v1/keys", key=key))[0] == 200


async def test_a_lost_secrets_file_gives_new_keys_and_the_old_one_dies(data, caplog):
    async with running_loop(data) as loop:
        old = loop.running.key
        assert await works(loop, old)
    assert "keys are new" not in caplog.text
    (data / "secrets.json").unlink()
    async with running_loop(data) as loop:
        assert "secrets.json was missing: all of the loop's own keys are new" in caplog.text
        assert loop.running.key != old
        assert await works(loop, loop.running.key)
        assert not await works(loop, old)


async def test_the_key_of_the_environment_is_rotated_and_may_come_back(data):
    first, second = "first-key-of-the-operator", "second-key-of-the-operator"
    for now, before in ((first, None), (second, first), (first, second), (None, first)):
        async with running_loop(data, surroundings=Surroundings(api_key=now)) as loop:
            assert await works(loop, loop.running.key)
            assert loop.running.key == now or now is None
            assert not await works(loop, before or "guess")


async def test_of_all_keys_that_were_the_operators_the_last_one_works_alone(store):
    """Whatever starts name, a key of `secrets.json` or one of the environment, in any order."""
    chance, keys = random.Random(7), Keys(store.database)
    await keys.add("abc123", "made at first start, replaced", "operator", "a person's", NOW)
    made, number, named = "made-0", 0, {"made-0"}
    for step in range(150):
        if chance.random() < 0.2:
            number += 1
            made = f"made-{number}"
        given = chance.choice([None, None, "first", "second", made])
        await keys.set_instance_key(OPERATOR_ID, "made at first start", "operator", made, NOW)
        await keys.set_operator_key(f"env-{step}", made, given, NOW)
        named |= {made, given or made}
        found = {key for key in named if (known := keys.find(key)) and known.revoked is None}
        assert found == {given or made}
        assert not any(keys.was_revoked(key) for key in named), "replaced, and not by hand"
        assert keys.find("a person's").revoked is None


async def test_a_key_that_was_replaced_and_is_then_revoked_by_hand_does_not_come_back(store):
    keys = Keys(store.database)
    await keys.set_instance_key(OPERATOR_ID, "made at first start", "operator", "made", NOW)
    await keys.set_operator_key("env-1", "made", "given", NOW)
    assert await keys.revoke(OPERATOR_ID, NOW)
    assert not await keys.revoke(OPERATOR_ID, NOW)
    assert keys.was_revoked("made")
    await keys.set_operator_key("env-2", "made", None, NOW)
    assert keys.find("made").revoked
    assert keys.find("given").revoked


async def test_a_key_of_the_environment_takes_the_place_of_the_one_that_was_made(data):
    async with running_loop(data) as loop:
        made = loop.running.key
    async with running_loop(
        data, surroundings=Surroundings(api_key="key-of-the-operator-1")
    ) as loop:
        assert await works(loop, "key-of-the-operator-1")
        assert not await works(loop, made)
    async with running_loop(data) as loop:
        assert loop.running.key == made
        assert await works(loop, made)
        assert not await works(loop, "key-of-the-operator-1")


@pytest.mark.parametrize(
    ("key_id", "entry"), [(OPERATOR_ID, "key"), ("gateway", "gateway_loop_key")]
)
async def test_a_key_of_the_loops_own_that_was_revoked_is_made_anew_at_the_next_start(
    data, key_id, entry, caplog
):
    async with running_loop(data) as loop:
        async with Client(loop.running.http_url, loop.running.key) as client:
            assert (await client("DELETE", f"/v1/keys/{key_id}"))[0] == 204
        before = read_secrets(data)
    async with running_loop(data) as loop:
        after = read_secrets(data)
        assert await works(loop, loop.running.key)
        assert not await works(loop, before["key"] if entry == "key" else "guess")
    assert {name for name in after if after[name] != before[name]} == {entry}
    assert f"`{entry}` in secrets.json was revoked, so another was made" in caplog.text


async def test_a_key_of_the_environment_that_was_revoked_by_hand_is_refused_in_one_sentence(data):
    surroundings = Surroundings(api_key="key-of-the-operator-1")
    async with running_loop(data, surroundings=surroundings) as loop:
        async with Client(loop.running.http_url, loop.running.key) as client:
            listed = (await client("GET", "/v1/keys"))[1]["keys"]
            (ours,) = [key["key_id"] for key in listed if key["name"] == "AGENTGYM_RL_API_KEY"]
            assert (await client("DELETE", f"/v1/keys/{ours}"))[0] == 204
    with pytest.raises(Misuse, match="AGENTGYM_RL_API_KEY was revoked"):
        async with running_loop(data, surroundings=surroundings):
            pass


@pytest.mark.long
def test_every_flipped_bit_and_every_cut_of_the_secrets_file_is_found(tmp_path):
    read_secrets(tmp_path)
    path = tmp_path / "secrets.json"
    whole, sound = path.read_bytes(), read_secrets(tmp_path)
    for place in range(len(whole)):
        for spoilt in (
            whole[:place],
            whole[:place] + bytes([whole[place] ^ (1 << place % 8)]) + whole[place + 1 :],
        ):
            path.write_bytes(spoilt)
            try:
                found = read_secrets(tmp_path)
            except Misuse as error:
                found = str(error)
            assert found == sound or "is damaged" in found, "or only white space was hit"
            assert path.read_bytes() == spoilt, "nothing is written over it"
            path.write_bytes(whole)


def test_no_part_of_a_secrets_file_passes_for_the_whole(tmp_path):
    """Without its checksum, with fewer keys, or with none; an older version wrote no mark either."""
    sound = read_secrets(tmp_path)
    write_mark(tmp_path, StoreMark())
    chance, path = random.Random(3), tmp_path / "secrets.json"
    written = json.loads(path.read_text())
    for size in range(len(written)):
        part = dict(chance.sample(sorted(written.items()), size))
        path.write_text(json.dumps(part))
        with pytest.raises(Misuse, match="is damaged"):
            read_secrets(tmp_path)
        assert json.loads(path.read_text()) == part
    (tmp_path / "upswing.mark").unlink()
    path.write_text("{}")
    with pytest.raises(Misuse, match="is damaged"):
        read_secrets(tmp_path)
    path.write_text(json.dumps(written))
    assert read_secrets(tmp_path) == sound


@pytest.mark.parametrize(
    "junk", [b"", b"{}", b"\0\xff", b"[]", b"1", b'{"key": 1}', b'{"key": ""}', b"[" * 99999]
)
def test_junk_in_the_secrets_file_is_one_sentence(data, junk, capsys, monkeypatch):
    monkeypatch.setattr("upswing.logs.set_up_logging", lambda *_: None)  # pytest listens to the log
    monkeypatch.setattr("faulthandler.enable", lambda: None)
    data.mkdir()
    (data / "secrets.json").write_bytes(junk)
    for command in (["up", "--no-gateway", "--port", "0"], ["nats-config"]):
        assert main([*command, "--data", str(data)]) == 1
        said = capsys.readouterr()
        assert all(line.startswith("Waiting for ") for line in said.out.splitlines())
        assert said.err.count("\n") == 1
        assert "secrets.json is damaged" in said.err


def test_a_secrets_file_of_an_older_version_is_taken_and_gets_its_checksum(tmp_path):
    (tmp_path / "secrets.json").write_text(json.dumps({"key": "up_old"}))
    assert read_secrets(tmp_path)["key"] == "up_old"
    assert "check" in json.loads((tmp_path / "secrets.json").read_text())


@pytest.mark.long
async def test_no_child_knows_a_key_beyond_what_it_needs(data, monkeypatch):
    secrets = {
        "AGENTGYM_RL_API_KEY": "key-of-the-operator-1",
        "AWS_SECRET_ACCESS_KEY": "aws-secret-1",
        "HF_TOKEN": "hugging-face-1",
        "PGPASSWORD": "postgres-1",
        "SOME_URL": "https://name:password-1@host/",
    }
    for name, value in secrets.items():
        monkeypatch.setenv(name, value)
    surroundings = Surroundings(api_key=secrets["AGENTGYM_RL_API_KEY"], base_model=None)
    async with running_loop(data, workers=True, surroundings=surroundings, gateway_port=0) as loop:
        known = json.loads((data / "secrets.json").read_text())
        children = family(os.getpid())
        assert len(children) >= 3, "the bus, admission workers, the gateway and its recorder"
        for pid in children:
            environment = Path(f"/proc/{pid}/environ").read_bytes().decode()
            found = [name for name, value in secrets.items() if value in environment]
            assert found == [], Path(f"/proc/{pid}/cmdline").read_bytes()
            assert known["key"] not in environment
        async with Client(loop.running.http_url, known["gateway_loop_key"]) as client:
            assert (await client("GET", "/v1/keys/hashes"))[0] == 200
            for method, path in (("GET", "/v1/keys"), ("GET", "/v1/status"), ("GET", "/v1/dead")):
                assert (await client(method, path))[0] == 403
        async with Client(loop.running.gateway_url) as gateway:
            status, _ = await gateway("GET", "/v1/models", key=known["gateway_loop_key"])
            assert status == 401, "it opens no gateway"


def test_a_variable_that_the_user_names_is_passed_on():
    own = {"MY_WORLD_TOKEN": "1", "OTHER_TOKEN": "2", "UPSWING_CHILD_ENV": "MY_WORLD_TOKEN"}
    assert "MY_WORLD_TOKEN" in child_environment((), own)
    assert "OTHER_TOKEN" not in child_environment((), own)


@pytest.mark.parametrize(
    ("host", "terminal", "shown"),
    [
        ("127.0.0.1", True, True),
        ("127.0.0.1", False, False),
        ("0.0.0.0", True, False),
        ("[::1]", True, True),
    ],
)
def test_keys_are_shown_to_a_person_at_this_machine(monkeypatch, host, terminal, shown):
    running = InstanceInfo(1, f"http://{host}:1", None, "", {}, "k", "d")
    ours, theirs = pty.openpty() if terminal else os.pipe()
    with os.fdopen(theirs, "w") as out:
        monkeypatch.setattr("sys.stdout", out)
        assert may_show_secrets(running) is shown
        monkeypatch.undo()
    os.close(ours)
