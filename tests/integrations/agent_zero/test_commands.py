"""`upswing agent-zero` with a running loop: keys are made, files are written, the doctor is content."""

import asyncio
import json
import sys

import pytest

from tests.integrations.agent_zero.test_installing import make, tree, verdicts
from tests.support import Client, cli
from upswing.integrations.agent_zero.connection import FILE, read_connection
from upswing.integrations.agent_zero.doctor import examine
from upswing.integrations.agent_zero.layout import Layout

pytestmark = pytest.mark.live


@pytest.fixture(params=list(Layout))
def checkout(request, tmp_path):
    return make(tmp_path / "a0", request.param)


async def keys(running):
    async with Client(running.http_url, running.key) as http:
        _, found = await http("GET", "/v1/keys")
    return {key["key_id"]: (key["name"], key["scope"]) for key in found["keys"]}


async def test_an_installation_has_keys_of_its_own_and_works(running, loop_data, checkout):
    before, theirs = await keys(running), tree(checkout.root)
    done = json.loads(
        cli("agent-zero", "install", str(checkout.root), "--json", data=loop_data).stdout
    )
    assert done["trouble"] is None
    home = checkout.root / checkout.home
    assert done["folder"] == str(home)
    made = await keys(running)
    assert sorted(made[name] for name in made.keys() - before.keys()) == [
        ("agent-zero", "agent"),
        ("agent-zero rl-trainer", "assistant"),
    ]
    connection = read_connection(home)
    assert connection.loop_url == running.http_url
    assert connection.gateway_url == running.gateway_url
    cli("agent-zero", "install", str(checkout.root), "--agent-id", "helper", data=loop_data)
    again = read_connection(home)
    assert (again.key, again.assistant_key) == (connection.key, connection.assistant_key)
    assert again.agent_id == "helper"
    assert len(await keys(running)) == len(made), "keys that are there are kept"
    found = cli(
        "agent-zero",
        "doctor",
        str(checkout.root),
        "--python",
        sys.executable,
        "--json",
        data=loop_data,
    )
    assert {each["what"]: each["ok"] for each in json.loads(found.stdout)} == {
        "Agent Zero": True,
        "files": True,
        "version": True,
        "Python": True,
        "recording": True,
        "rl-trainer": True,
        "gateway": True,
        "spool": True,
    }
    cli("agent-zero", "uninstall", str(checkout.root), data=loop_data)
    assert tree(checkout.root) == theirs


async def test_a_revoked_key_is_found_by_the_doctor(running, loop_data, checkout):
    cli("agent-zero", "install", str(checkout.root), data=loop_data)
    before = await keys(running)
    async with Client(running.http_url, running.key) as http:
        for name, (called, _) in before.items():
            if called.startswith("agent-zero"):
                await http("DELETE", f"/v1/keys/{name}")
    found = verdicts(await asyncio.to_thread(examine, checkout))
    assert (found["recording"], found["rl-trainer"]) == (False, False)


def test_an_export_takes_keys_along(running, loop_data, tmp_path):
    cli("agent-zero", "install", "--export", str(tmp_path / "out"), data=loop_data)
    assert read_connection(tmp_path / "out/usr/plugins/upswing").key
    assert (tmp_path / "out/usr/plugins/upswing" / FILE).stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("install",), "Name Agent Zero's folder"),
        (("install", "CHECKOUT", "--export", "x"), "not both"),
        (("doctor", "/nowhere"), "is no folder"),
        (("uninstall", "CHECKOUT"), "There is no plugin"),
        (("install", "CHECKOUT", "--gateway-url", "nonsense"), "no address"),
    ],
)
def test_a_wrong_call_is_a_sentence(tmp_path, words, sentence):
    root = str(make(tmp_path / "a0", Layout.PLUGINS).root)
    done = cli(
        "agent-zero",
        *(root if word == "CHECKOUT" else word for word in words),
        data=tmp_path / "d",
        check=False,
    )
    assert done.returncode == 1
    assert sentence in done.stderr.decode()


def test_without_a_loop_the_files_are_written_and_the_keys_come_later(tmp_path):
    checkout = make(tmp_path / "a0", Layout.PLUGINS)
    done = cli("agent-zero", "install", str(checkout.root), data=tmp_path / "nothing")
    assert "It has no keys yet" in done.stdout.decode()
    assert read_connection(checkout.root / checkout.home).key is None
