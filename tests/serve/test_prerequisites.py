"""What can never be served is refused before anything starts, with the sentence that helps."""

import asyncio
import json
import tomllib
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest
from tests.gateway.conftest import model, plan, started

from upswing.cli.loop import check_can_serve
from upswing.config import Defaults, ServeConfig, Settings, read_surroundings
from upswing.errors import Misuse
from upswing.serve.prerequisites import EXTRAS, check_serving, missing_packages


def chosen(base):
    return Defaults("grpo", base, 10)


@pytest.mark.parametrize(
    ("base", "config", "absent", "sentence"),
    [
        ("llama-99b", {}, (), "not on this machine, and nothing is downloaded: name `tiny`"),
        ("tiny", {}, EXTRAS["train"][0], "pip install '.[train]'"),
        ("tiny", {}, ("peft",), "pip install '.[train]'"),
        ("tiny", {"engine": "llama"}, ("xllamacpp",), "pip install '.[llama]'"),
        ("tiny", {"engine": "auto"}, ("xllamacpp",), None),
        ("tiny", {}, (), None),
        (None, {}, EXTRAS["train"][0], None),
    ],
)
def test_a_base_of_ours(base, config, absent, sentence):
    def asked():
        check_serving(
            ServeConfig(**config),
            chosen(base),
            None,
            base_named=True,
            installed=lambda package: package not in absent,
        )

    if sentence is None:
        asked()
    else:
        with pytest.raises(Misuse) as refused:
            asked()
        assert sentence in str(refused.value)


@pytest.mark.parametrize(
    ("base", "named", "sentence"),
    [
        (
            "tiny",
            False,
            "nothing names its model: set `base_model` in [train], or RL_BASE_MODEL (it serves qwen, phi, upswing)",
        ),
        ("quen", True, "has no model 'quen': it serves qwen, phi"),
        ("qwen", True, None),
    ],
)
async def test_a_server_of_the_users_own(base, named, sentence):
    there = plan(model("qwen", "http://h/v1"), (model("phi", "http://h/v1"), 0.5))
    async with started(there) as server:
        config = ServeConfig(url=server.url)
        asking = asyncio.to_thread(check_serving, config, chosen(base), None, base_named=named)
        if sentence is None:
            await asking
        else:
            with pytest.raises(Misuse) as refused:
                await asking
            assert sentence in str(refused.value)


@pytest.mark.parametrize("named", [True, False])
def test_a_server_that_is_away_is_waited_for_but_its_model_has_to_be_named(named):
    config = ServeConfig(url="http://127.0.0.1:1")
    if named:
        check_serving(config, chosen("qwen"), None, base_named=True)
    else:
        with pytest.raises(Misuse, match="ask it which models it serves"):
            check_serving(config, chosen("tiny"), None, base_named=False)


def test_the_extras_are_those_that_can_be_installed():
    there = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())
    assert EXTRAS.keys() == there["project"]["optional-dependencies"].keys() - {"test"}


def test_what_an_extra_lacks_is_named():
    assert missing_packages("train", lambda package: package != "peft") == ["peft"]


@contextmanager
def keyed_server(*, hides_its_list):
    """A server of somebody else's: one model, one key."""

    class Handler(BaseHTTPRequestHandler):
        def answer(self, status, tree):
            body = json.dumps(tree).encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def do_GET(self):
            allowed = self.headers["Authorization"] == "Bearer right" and not hides_its_list
            self.answer(200 if allowed else 401, {"data": [{"id": "qwen"}]} if allowed else {})

        def do_POST(self):
            self.rfile.read(int(self.headers["Content-Length"]))
            allowed = self.headers["Authorization"] == "Bearer right"
            self.answer(200 if allowed else 401, {"choices": [{}]} if allowed else {})

        def log_message(self, *_):
            """Nothing on the terminal."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/v1"
        server.shutdown()


@pytest.mark.parametrize("hides_its_list", [False, True])
@pytest.mark.parametrize(
    ("environment", "accepted"),
    [
        ({}, False),
        ({"UPSWING_BACKEND_KEY_A": "{url}=wrong"}, False),
        ({"UPSWING_BACKEND_KEY_A": "{url}=right"}, True),
        ({"UPSWING_BACKEND_KEY_A": "http://127.0.0.1:9/v1=right"}, False),
        ({"UPSWING_MODEL_SERVER_KEY": "right"}, True),
    ],
)
def test_a_server_that_wants_a_key_is_refused_before_a_start_without_it(
    environment, accepted, hides_its_list
):
    with keyed_server(hides_its_list=hides_its_list) as url:
        settings = Settings(serve=ServeConfig(url=url))
        surroundings = read_surroundings(
            {"RL_BASE_MODEL": "qwen"} | {k: v.format(url=url) for k, v in environment.items()}
        )
        if accepted:
            check_can_serve(settings, surroundings)
        else:
            with pytest.raises(Misuse, match="UPSWING_BACKEND_KEY_"):
                check_can_serve(settings, surroundings)
