"""The real Agent Zero works, a real loop records it, and what is stored is checked turn by turn.

`AGENT_ZERO_DIR` names a checkout (1.7, and 0.9.7 for the older layout, were used), `AGENT_ZERO_PYTHON` its interpreter (3.12 or newer, with Agent Zero's packages and
upswing's); by default the checkout's `.venv`. The checkout is copied, and not changed. The model is a script behind a
real gateway.
"""

import asyncio
import json
import os
import shutil
import subprocess
import threading
from pathlib import Path

import pytest

from tests.integrations.agent_zero.scripted_model import ScriptedModel, tool
from tests.support import Client, Process, cli, until

ROOT = Path(__file__).parents[3]
CHECKOUT = os.environ.get("AGENT_ZERO_DIR", "")
PYTHON = os.environ.get("AGENT_ZERO_PYTHON") or str(Path(CHECKOUT) / ".venv/bin/python")
pytestmark = [
    pytest.mark.live,
    pytest.mark.slow,
    pytest.mark.skipif(not CHECKOUT, reason="AGENT_ZERO_DIR names no Agent Zero"),
]
OLDER = (Path(CHECKOUT) / "python/helpers").is_dir()
"""One without plugins: it has no place for buttons, and no provider of ours."""
with_plugins = pytest.mark.skipif(OLDER, reason="this Agent Zero has no plugins")
MEMORY = (
    "*/_10_memory_init.py",
    "*/_5?_memorize_*.py",
    "*/_50_recall_memories.py",
    "*/_91_recall_wait.py",
    "*/_20_behaviour_prompt.py",
)
"""Of an older one, what needs a vector database; a newer one has a switch for it."""
OFF = (
    "_memory",
    "_browser_agent",
    "_code_execution",
    "_email_integration",
    "_telegram_integration",
    "_whatsapp_integration",
)
SECRET = "sk-proj-abcdefghijklmnopqrstuvwxyz0123456789ABCD"


class AgentZero:
    """A running one, told what to do line by line."""

    def __init__(self, folder, log, **env):
        self._log = log.open("w")
        self._process = subprocess.Popen(
            [PYTHON, str(Path(__file__).parent / "drive.py")],
            cwd=folder,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
            text=True,
            env={
                **os.environ,
                "PYTHONPATH": str(ROOT / "src"),
                "HOME": str(folder / "home"),
                **env,
            },
        )
        assert self._read() == {"ready": True}

    def _read(self):
        line = self._process.stdout.readline()
        assert line, "Agent Zero ended"
        return json.loads(line)

    def __call__(self, do, **values):
        self._process.stdin.write(json.dumps({"do": do, **values}) + "\n")
        self._process.stdin.flush()
        answer = self._read()
        assert "error" not in answer, answer
        return answer

    def close(self):
        self._process.stdin.close()
        assert self._process.wait(60) == 0, "it ends by itself"
        self._process.stdout.close()
        self._log.close()


HANG = threading.Event()
HANGING = threading.Event()


SCRIPT = (
    # what stands in the prompt, how far it is → what is said; the first that fits
    (
        "You are the **RL Trainer**",
        "tool_result",
        tool("response", "It is.", text="It is requested."),
    ),
    (
        "You are the **RL Trainer**",
        "",
        tool(
            "upswing:train",
            "I ask.",
            samples=10000,
            days=30,
            base_model="tiny",
            force=True,
            reason="asked",
        ),
    ),
    (
        "Trigger a training job",
        "It is requested.",
        tool("response", "Done.", text="A job was requested."),
    ),
    (
        "Trigger a training job",
        "",
        tool(
            "call_subordinate",
            "I delegate.",
            message="10K of 30 days.",
            profile="rl-trainer",
            reset="true",
        ),
    ),
    ("have it researched", "Forty-two.", tool("response", "That is it.", text="It is forty-two.")),
    (
        "have it researched",
        "",
        tool(
            "call_subordinate",
            "I delegate.",
            message="Look it up for me.",
            profile="researcher",
            reset="true",
        ),
    ),
    ("Look it up for me", "", tool("response", "I know it.", text="Forty-two.")),
    ("How long is a moment", "And two moments", tool("response", "Twice.", text="Two seconds.")),
    ("How long is a moment", "Wait complete", tool("response", "I waited.", text="A second.")),
    ("How long is a moment", "", tool("wait", "I try it.", seconds=1)),
)


def script(text, request):
    """Who speaks is told by the prompt; what to say, by how far the conversation is."""
    if not request.get("stream"):
        return "A chat"  # a utility call: naming the chat
    if "Write a long story" in text:
        HANGING.set()
        return HANG
    told = json.dumps(request["messages"][1:])
    fitting = (said for prompt, far, said in SCRIPT if prompt in text and far in told)
    return next(fitting, tool("response", "Hm.", text="I do not know."))


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    """Loop, gateway, model and Agent Zero, and what they are reached by."""
    base = tmp_path_factory.mktemp("world")
    data = base / "data"
    data.mkdir(mode=0o700)
    with ScriptedModel(script) as model:
        config = f'[serve]\nurl = "{model.url}"\n\n[train]\nbase_model = "scripted"\n'
        (data / "upswing.toml").write_text(config)
        process = Process.start(data, gateway=True)
        try:
            info = process.until_ready(300)
            folder = base / "agent-zero"
            shutil.copytree(
                CHECKOUT,
                folder,
                symlinks=True,
                ignore=shutil.ignore_patterns(".git", ".venv", "venv"),
            )
            cli("agent-zero", "install", str(folder), data=data)
            key = _configure(folder, info["gateway_url"])
            asyncio.run(_until_answered(info))
            zero = AgentZero(folder, base / "agent-zero.log", API_KEY_OTHER=key)
            yield {
                "info": info,
                "data": data,
                "zero": zero,
                "model": model,
                "process": process,
                "folder": folder,
            }
            HANG.set()
            zero.close()
        finally:
            HANG.set()
            process.destroy()


def _configure(folder, gateway):
    """Its models are the gateway's; what needs more than a machine has is off. The plugin's key."""
    home = folder / ("usr/upswing" if OLDER else "usr/plugins/upswing")
    key = json.loads((home / "connection.json").read_bytes())["key"]
    if OLDER:
        for pattern in MEMORY:
            for path in (folder / "python/extensions").glob(pattern):
                path.unlink()
        kinds = ("chat", "util", "embed", "browser")
        places = {f"{kind}_model_api_base": f"{gateway}/v1" for kind in kinds}
        names = {
            f"{kind}_model_{what}": value
            for kind in kinds
            for what, value in (("provider", "other"), ("name", "upswing"), ("kwargs", {}))
        }
        (folder / "tmp").mkdir(exist_ok=True)
        (folder / "tmp/settings.json").write_text(json.dumps(places | names))
        subprocess.run(["git", "init", "-q", folder], check=True)  # it asks git for its own version
        return key
    model = {
        "provider": "upswing",
        "name": "upswing",
        "api_base": "",
        "ctx_length": 100_000,
        "kwargs": {},
    }
    place = folder / "usr/plugins/_model_config"
    place.mkdir(parents=True, exist_ok=True)
    config = {"chat_model": model, "utility_model": model, "allow_chat_override": False}
    (place / "config.json").write_text(json.dumps(config))
    for name in OFF:
        (folder / "usr/plugins" / name).mkdir(parents=True, exist_ok=True)
        (folder / "usr/plugins" / name / ".toggle-0").write_text("")
    return key


async def _until_answered(info):
    asked = {"model": "agent", "messages": [{"role": "user", "content": "ping"}], "max_tokens": 1}
    async with Client(info["gateway_url"], info["gateway_key"]) as gateway:

        async def answers():
            probe = ["x-upswing-probe: 1"]
            return (await gateway("POST", "/v1/chat/completions", asked, headers=probe))[0] == 200

        await until(answers, 300, "the gateway did not answer")


def stored(world):
    """All trajectories of the store, in the order in which they began."""
    lines = cli("export", data=world["data"]).stdout.decode().splitlines()
    return sorted(map(json.loads, lines), key=lambda each: each["start_timestamp"])


def shapes(trajectory):
    return [
        (
            turn["observation"]["type"],
            turn["action"]["type"],
            turn["action"].get("tool_name"),
            turn["result"]["success"],
        )
        for turn in trajectory["turns"]
    ]


def only(found, **about):
    (made,) = [
        each for each in found if all(each.get(name) == value for name, value in about.items())
    ]
    return made


@pytest.fixture(scope="module")
def played(world):
    """Two chats, a tool, a subordinate, a reset, feedback, the rl-trainer; then what is stored."""
    zero = world["zero"]
    first, second, third = (zero("new_chat")["chat"] for _ in range(3))
    assert (
        zero("say", chat=first, text=f"How long is a moment? My key is {SECRET}.")["answer"]
        == "A second."
    )
    assert zero("say", chat=first, text="And two moments?")["answer"] == "Two seconds."
    assert (
        zero("say", chat=second, text="Please have it researched.")["answer"] == "It is forty-two."
    )
    zero("say", chat=second, text="Write a long story.", wait=False)
    assert HANGING.wait(60)
    zero("reset", chat=second)
    trained = zero(
        "say", chat=third, text="Trigger a training job with 10K samples from the last 30 days."
    )
    assert trained["answer"] == "A job was requested."
    said = {} if OLDER else rate(zero, first)
    assert zero("flush")["flushed"]
    return {
        "chats": (first, second, third),
        **said,
        "plugin": zero("plugin")["status"],
        "stored": stored(world),
    }


def rate(zero, first):
    """A thumb down through Agent Zero's own routes, and what is refused there."""
    shown = zero("messages", chat=first)["messages"]
    answers = [each for each in shown if each["type"] == "response"]
    call = {"path": "/api/plugins/upswing/feedback"}
    rateable = zero("web_call", body={"context": first}, **call)
    said = {"context": first, "message": answers[1]["id"]}
    down = zero("web_call", body={**said, "thumbs": "down"}, **call)
    refused = {
        "no token": zero("web_call", body={**said, "thumbs": "up"}, csrf=False, **call),
        "unknown chat": zero(
            "web_call", body={"context": "nobody", "message": "x", "thumbs": "up"}, **call
        ),
        "greeting": zero(
            "web_call", body={"context": first, "message": answers[0]["id"], "thumbs": "up"}, **call
        ),
    }
    return {"answers": answers, "rateable": rateable, "down": down, "refused": refused}


def test_a_chat_with_a_tool_is_stored_turn_by_turn(played):
    first = played["chats"][0]
    one, two = [each for each in played["stored"] if each["session_id"] == first]
    assert shapes(one) == [
        ("user_message", "tool_call", "wait", True),
        ("tool_result", "response", None, True),
    ]
    opening = one["turns"][0]
    said = opening["observation"]["content"]["messages"]
    assert [each["role"] for each in said] == ["system", "assistant", "user"]
    assert "Agent Zero" in said[0]["content"]
    assert opening["thought_process"] == ["I try it."]
    assert opening["action"]["tool_args"] == {"seconds": 1}
    assert opening["action"]["raw_response"] == tool("wait", "I try it.", seconds=1)
    assert opening["result"]["output"].startswith("Wait complete")
    assert opening["result"]["execution_time_ms"] >= 1000
    assert one["turns"][1]["observation"]["content"] == opening["result"]["output"]
    assert one["turns"][1]["result"]["output"] == "A second."
    assert one["metadata"]["model"] == one["metadata"]["policy_version"] == "scripted"
    assert len(one["metadata"]["agent_zero"]["inference_ids"]) == 2
    assert one["metadata"]["episode_id"] == two["metadata"]["episode_id"] == f"a0-{first}-1"
    before = [each["role"] for each in two["turns"][0]["observation"]["content"]["messages"]]
    assert before[0] == "system"
    assert before.count("assistant") >= 3, "what was said before is what the model read"
    assert two["task_context"]["instructions"] == "And two moments?"


def test_the_users_key_is_redacted_before_it_leaves(played):
    assert SECRET not in json.dumps(played["stored"])
    (one, _) = [each for each in played["stored"] if each["session_id"] == played["chats"][0]]
    assert "<openai-key-1>" in one["task_context"]["instructions"]


def test_a_subordinate_is_stored_with_its_profile_and_place(played):
    second = played["chats"][1]
    found = [each for each in played["stored"] if each["session_id"] == second]
    below = only(found, subordinate_profile="researcher")
    above = next(each for each in found if "researched" in each["task_context"]["instructions"])
    assert shapes(above) == [
        ("user_message", "subordinate_call", "call_subordinate", True),
        ("subordinate_response", "response", None, True),
    ]
    assert shapes(below) == [("user_message", "response", None, True)]
    assert below["metadata"]["agent_zero"]["superior"] == {
        "trajectory_id": above["trajectory_id"],
        "turn_id": 1,
    }
    assert above["metadata"]["agent_zero"]["subordinates"] == [
        {"turn_id": 1, "trajectory_id": below["trajectory_id"], "profile": "researcher"}
    ]


def test_a_reset_in_the_middle_is_an_abandonment(played):
    found = [each for each in played["stored"] if each["session_id"] == played["chats"][1]]
    left = next(each for each in found if "long story" in each["task_context"]["instructions"])
    assert left["metadata"]["outcome"]["status"] == "abandoned"
    assert left["metadata"]["reset"] is True
    assert shapes(left) == [("user_message", "response", None, False)]


def test_the_rl_trainer_really_requests_a_job(played, world):
    found = [each for each in played["stored"] if each["session_id"] == played["chats"][2]]
    trainer = only(found, subordinate_profile="rl-trainer")
    assert shapes(trainer)[0] == ("user_message", "tool_call", "upswing:train", True)
    assert "Job " in trainer["turns"][0]["result"]["output"]

    async def jobs():
        async with Client(world["info"]["http_url"], world["info"]["key"]) as http:
            return (await http("GET", "/jobs"))[1]["jobs"]

    (job,) = asyncio.run(jobs())
    assert job["training_job_id"] in trainer["turns"][0]["result"]["output"]
    assert job["trigger_reason"] == "manual"


@with_plugins
def test_a_thumb_down_reaches_the_trajectory(played, world):
    one = next(each for each in played["stored"] if each["session_id"] == played["chats"][0])
    assert played["down"]["body"]["given"]["thumbs"] == "down"
    assert set(played["rateable"]["body"]["messages"]) == {
        each["id"] for each in played["answers"][1:]
    }

    async def feedback():
        async with Client(world["info"]["http_url"], world["info"]["key"]) as http:

            async def revised():
                status, reward = await http("GET", f"/v1/rewards/{one['trajectory_id']}")
                said = reward["reward_components"]["user_feedback"] if status == 200 else {}
                return said.get("score") == 0.0 and said

            return await until(revised, 120)

    assert "thumbs down" in asyncio.run(feedback())["reasoning"]


@with_plugins
def test_feedback_that_nobody_may_give_is_refused(played):
    refused = played["refused"]
    assert refused["no token"]["status"] == 403
    assert refused["unknown chat"]["status"] == 404
    assert refused["greeting"]["status"] == 404, "the greeting is not the model's"


def test_nothing_is_recorded_twice(played, world):
    """The gateway knows the chats' episodes, and has nothing to record of them; utility calls are nobody's work."""
    home = world["folder"] / ("usr/upswing" if OLDER else "usr/plugins/upswing")
    key = json.loads((home / "connection.json").read_bytes())["key"]
    gateway = world["info"]["gateway_url"]

    async def close_all():
        async with Client(gateway, key) as http:
            names = {each["metadata"]["episode_id"] for each in played["stored"]}
            return [await http("POST", f"/v1/episodes/{name}/close", {}) for name in sorted(names)]

    for status, answer in asyncio.run(close_all()):
        assert status == 404 or answer.get("recorded") is False, answer
    world["process"].stop()
    assert {each["session_id"] for each in stored(world)} <= set(played["chats"])
    assert len(stored(world)) == len(played["stored"])


def test_the_agents_were_not_held_up(played):
    status = played["plugin"]
    assert status["trouble"] is None
    assert status["errors"] == {}
    assert status["recorder"]["errors"] == status["recorder"]["dropped"] == 0
    names = ("turns", "turn_ms", "turn_cpu_ms", "slowest_ms", "start_ms")
    print(", ".join(f"{name} {status[name]}" for name in names))


@with_plugins
def test_profile_provider_and_plugin_are_known_to_agent_zero(played, world):
    zero = world["zero"]
    assert "rl-trainer" in zero("profiles")["profiles"]
    provider = zero("providers")["upswing"]
    assert provider["litellm_provider"] == "openai"
    assert provider["kwargs"]["api_base"] == f"{world['info']['gateway_url']}/v1"
