"""`upswing up` is ready when a model has answered through its gateway, and that answer is nobody's."""

import json
import re

import pytest
from tests.support import Client, Process, cli, close_episode, until

pytestmark = [pytest.mark.live]
ASKED = {"model": "m", "messages": [{"role": "user", "content": "hi"}], "max_tokens": 1}


@pytest.fixture
def process(tmp_path, bases):
    data = tmp_path / "data"
    data.mkdir(mode=0o700)
    (data / "bases").symlink_to(bases)
    started = Process.start(data, gateway=True)
    yield started
    started.destroy()


def stored(process):
    return json.loads(cli("status", "--json", data=process.data).stdout)["trajectories"]


async def test_ready_means_ready_and_the_doctor_agrees(process):
    def ready():
        assert process.popen.poll() is None, process.log.read_text()
        return "Upswing is ready: " in process.log.read_text()

    await until(ready, 300, "it is never ready")
    info = process.until_ready()
    async with Client(info["gateway_url"], info["gateway_key"]) as client:
        assert (await client("GET", "/health"))[1]["episodes"] == 0, "the probe is no episode"
        mine = {"headers": ["x-episode-id: mine"]}
        assert (await client("POST", "/v1/chat/completions", ASKED, **mine))[0] == 200
        assert (await close_episode(client, "mine"))[0] == 200
        await until(lambda: stored(process) == 1, 60, "our own episode is not stored")
    said = process.log.read_text()
    waits = re.findall(r"^Waiting for (.*) …$", said, re.MULTILINE)
    assert waits[0] == "the program to load"
    assert any(wait.endswith("the model server to load `tiny`") for wait in waits)
    assert said.index("Waiting for") < said.index("Upswing is ready: ")
    assert re.search(r"ready: tiny answered through the gateway, \d+\.\d s after the start", said)
    found = json.loads(cli("doctor", "--json", data=process.data).stdout)
    told = {each["check"]: each["sentence"] for each in found}
    assert all(each["ok"] for each in found), found
    assert "tiny answered through the gateway" in told["backend"]
    assert told["keys"] == "The operator's and the agents' key are taken."
    shown = cli("info", "--show-secrets", data=process.data).stdout.decode()
    token = json.loads((process.data / "secrets.json").read_text())["admin_token"]
    assert token in shown
    assert token not in cli("info", data=process.data).stdout.decode()
    assert process.stop() == 0
    assert stored(process) == 1, "the probes of `up` and the doctor are none"


@pytest.mark.parametrize(
    ("config", "env", "sentence"),
    [
        ("", {"RL_BASE_MODEL": "llama-99b"}, "'llama-99b' is not on this machine"),
        ('[serve]\nurl = "http://127.0.0.1:1"\n', {}, "nothing names its model"),
        (
            '[serve]\nurl = "http://127.0.0.1:99999"\n',
            {"RL_BASE_MODEL": "m"},
            "is no address such as",
        ),
    ],
)
def test_what_can_never_be_served_is_refused_at_once(tmp_path, config, env, sentence):
    data = tmp_path / "data"
    data.mkdir(mode=0o700)
    (data / "upswing.toml").write_text(config)
    done = cli("up", "--port", "0", "--gateway-port", "0", data=data, env=env, check=False)
    assert done.returncode == 1
    last = done.stderr.decode().splitlines()[-1]
    assert last.startswith("upswing: ")
    assert sentence in last
    assert sorted(each.name for each in data.iterdir()) == ["upswing.toml"], "nothing was started"
