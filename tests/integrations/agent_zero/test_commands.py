"""`upswing agent-zero` with a running loop: keys are made, files are written, the doctor is content."""

import asyncio
import json
import sys

import pytest

from tests.conftest import running_loop
from tests.integrations.agent_zero.test_installing import make, tree, verdicts
from tests.support import Client, cli, until
from upswing.infra.instance import find_running_instance
from upswing.integrations.agent_zero.connection import FILE, read_connection
from upswing.integrations.agent_zero.doctor import examine
from upswing.integrations.agent_zero.installing import MANIFEST
from upswing.integrations.agent_zero.layout import Layout

pytestmark = pytest.mark.live


@pytest.fixture(params=list(Layout))
def checkout(request, tmp_path):
    return make(tmp_path / "a0", request.param)


async def keys(running, *, working=False):
    async with Client(running.http_url, running.key) as http:
        _, found = await http("GET", "/v1/keys")
    return {
        key["key_id"]: (key["name"], key["scope"])
        for key in found["keys"]
        if not (working and key["revoked"])
    }


async def test_an_installation_has_keys_of_its_own_and_works(running, loop_data, checkout):
    before, theirs = await keys(running, working=True), tree(checkout.root)
    known = await keys(running)
    done = json.loads(
        cli("agent-zero", "install", str(checkout.root), "--json", data=loop_data).stdout
    )
    assert done["trouble"] is None
    home = checkout.root / checkout.home
    assert done["folder"] == str(home)
    made = await keys(running)
    assert sorted(made[name] for name in made.keys() - known.keys()) == [
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
    taken = cli("agent-zero", "uninstall", str(checkout.root), "--json", data=loop_data)
    assert tree(checkout.root) == theirs
    assert set(json.loads(taken.stdout)["revoked"]) == made.keys() - known.keys()
    assert await keys(running, working=True) == before, "its keys went with it"


async def test_a_revoked_key_is_found_by_the_doctor(running, loop_data, checkout):
    home = checkout.root / checkout.home
    cli("agent-zero", "install", str(checkout.root), data=loop_data)
    before = await keys(running)
    async with Client(running.http_url, running.key) as http:
        for name, (called, _) in before.items():
            if called.startswith("agent-zero"):
                await http("DELETE", f"/v1/keys/{name}")
    found = verdicts(await asyncio.to_thread(examine, checkout))
    assert (found["recording"], found["rl-trainer"]) == (False, False)
    async with Client(running.gateway_url, read_connection(home).key) as http:
        await until(lambda: refused(http), 10)
    found = verdicts(await asyncio.to_thread(examine, checkout))
    assert not found["gateway"], "a gateway that answers but refuses the key is of no use"
    cli("agent-zero", "install", str(checkout.root), data=loop_data)
    found = verdicts(await asyncio.to_thread(examine, checkout))
    assert (found["recording"], found["rl-trainer"], found["gateway"]) == (True, True, True)
    cli("agent-zero", "uninstall", str(checkout.root), data=loop_data)


async def refused(http):
    status, _ = await http("GET", "/v1/models")
    return status == 401


async def test_the_doctor_leaves_no_trace(running, loop_data, checkout):
    cli("agent-zero", "install", str(checkout.root), data=loop_data)
    async with Client(running.http_url, running.key) as http:
        _, before = await http("GET", "/v1/dead")
        assert verdicts(await asyncio.to_thread(examine, checkout))["recording"]
        _, after = await http("GET", "/v1/dead")
    assert after == before
    cli("agent-zero", "uninstall", str(checkout.root), data=loop_data)


async def test_another_loop_replaces_addresses_and_keys_together(
    running, loop_data, checkout, tmp_path
):
    cli("agent-zero", "install", str(checkout.root), "--user", "ann", data=loop_data)
    home = checkout.root / checkout.home
    first = read_connection(home)
    async with running_loop(tmp_path / "other") as loop:
        other = find_running_instance(tmp_path / "other")
        done = await asyncio.to_thread(
            cli, "agent-zero", "install", str(checkout.root), data=tmp_path / "other"
        )
        second = read_connection(home)
        assert second.loop_url == other.http_url != first.loop_url
        assert not {second.key, second.assistant_key} & {first.key, first.assistant_key}
        assert second.user_id == "ann", "what is of no loop stays"
        assert first.key_id in done.stdout.decode(), "the keys of the loop before are named"
        found = await asyncio.to_thread(examine, checkout)
        assert verdicts(found)["recording"]
        taken = await asyncio.to_thread(
            cli, "agent-zero", "uninstall", str(checkout.root), data=tmp_path / "nowhere"
        )
        assert second.key_id in taken.stdout.decode()
        assert second.assistant_key_id in taken.stdout.decode()
        del loop


def test_without_a_loop_keys_stay_and_another_loops_address_is_refused(
    running, loop_data, checkout, tmp_path
):
    cli("agent-zero", "install", str(checkout.root), data=loop_data)
    home = checkout.root / checkout.home
    before = read_connection(home)
    nowhere = tmp_path / "nowhere"
    done = cli("agent-zero", "install", str(checkout.root), data=nowhere)
    assert "has no keys" not in done.stdout.decode()
    assert "keys are as they were" in done.stdout.decode()
    words = ("install", str(checkout.root), "--loop-url", "http://127.0.0.1:9")
    done = cli("agent-zero", *words, data=nowhere, check=False)
    assert done.returncode == 1
    assert "change together" in done.stderr.decode()
    assert read_connection(home) == before
    cli("agent-zero", "uninstall", str(checkout.root), data=loop_data)


async def test_an_installation_that_is_refused_makes_no_keys(running, loop_data, checkout):
    (checkout.root / checkout.home).mkdir(parents=True)
    (checkout.root / checkout.home / "theirs.txt").write_text("theirs")
    before = await keys(running)
    words = ("install", str(checkout.root))
    assert cli("agent-zero", *words, data=loop_data, check=False).returncode == 1
    assert await keys(running) == before


def test_what_is_printed_fits_the_form(running, loop_data, checkout):
    done = cli("agent-zero", "install", str(checkout.root), data=loop_data).stdout.decode()
    home = checkout.root / checkout.home
    files = [each for each in home.rglob("*") if each.is_file()]
    own = {FILE, MANIFEST}
    assert f"{len([each for each in files if each.name not in own])} files are in {home}." in done
    newer = checkout.layout is Layout.PLUGINS
    assert ("provider Upswing" in done) == newer
    assert ("/api/plugins/" in (home / "README.md").read_text()) == newer
    cli("agent-zero", "uninstall", str(checkout.root), data=loop_data)


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
