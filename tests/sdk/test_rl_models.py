"""Which model does an agent ask, and what if nobody can say?"""

import contextlib
import itertools
import json
import socket
import threading
from collections import Counter
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from upswing import sdk
from upswing.errors import Misuse
from upswing.model_flags import in_production
from upswing.sdk import answering

ROWS = [
    {"model_id": "agent-zero-rl-v4", "state": "trained", "base_model": "tiny"},
    {"model_id": "agent-zero-rl-v3", "state": "canary", "base_model": "tiny"},
    {"model_id": "agent-zero-rl-v2", "state": "deployed", "base_model": "tiny"},
    {"model_id": "agent-zero-rl-v1", "state": "retired", "base_model": "tiny"},
]
SHARES = {"agent-zero-rl-v2": 0.9, "agent-zero-rl-v3": 0.1}


@pytest.fixture(autouse=True)
def _anew(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    answering.forget()
    yield
    answering.forget()


@contextlib.contextmanager
def serving(body, status=200):
    """A labelled double: says the same to everybody, and remembers what it was asked."""
    asked = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            asked.append((self.path, self.headers.get("Authorization")))
            said = body if isinstance(body, bytes) else json.dumps(body).encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(said)))
            self.end_headers()
            self.wfile.write(said)

        def log_message(self, *_):
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}", asked
        finally:
            server.shutdown()
            thread.join()


def at(url, **more):
    return {"AGENTGYM_RL_URL": url, "AGENTGYM_RL_API_KEY": "k", "BASE_MODEL": "tiny", **more}


def test_the_promoted_model_is_asked_for_and_a_canary_only_when_it_is_pinned():
    with serving({"models": ROWS}) as (url, asked):
        found = sdk.latest_rl_model(at(url))
        assert (found.model_id, found.version, found.canary) == ("agent-zero-rl-v2", "v2", False)
        choice = sdk.model_for_inference(environment=at(url))
        assert (choice.model, choice.is_rl) == ("agent-zero-rl-v2", True)
        pinned = sdk.model_for_inference(environment=at(url, RL_MODEL_VERSION="v3"))
        assert (pinned.model, pinned.is_rl) == ("agent-zero-rl-v3", True)
        gone = sdk.model_for_inference(environment=at(url, RL_MODEL_VERSION="v1"))
        assert (gone.model, gone.is_rl) == ("tiny", False)
        assert "version v1" in gone.reason
        assert asked == [("/models", "Bearer k")]


def test_where_there_is_no_loop_the_gateway_says_who_answers():
    env = {"BASE_MODEL": "tiny"}
    with serving({"status": "ok", "shares": SHARES}) as (url, asked):
        env["TENSORZERO_BASE_URL"] = f"{url}/v1/"
        choice = sdk.model_for_inference(environment=env)
        assert (choice.model, choice.base_url) == ("agent-zero-rl-v2", f"{url}/v1")
        assert sdk.latest_rl_model(env | {"RL_MODEL_VERSION": "3"}).canary
        assert asked == [("/health", None)]
    with serving({"shares": {"tiny": 0.9, "agent-zero-rl-v3": 0.1}}) as (url, _):
        env["TENSORZERO_BASE_URL"] = url
        assert sdk.latest_rl_model(env) is None
        assert not sdk.is_rl_model_available(env)


def test_a_loop_that_refuses_the_key_leaves_the_word_to_the_gateway():
    with serving({"detail": "no"}, 403) as (loop, _), serving({"shares": SHARES}) as (url, asked):
        env = at(loop, TENSORZERO_BASE_URL=url)
        assert sdk.latest_rl_model(env).model_id == "agent-zero-rl-v2"
        assert asked == [("/health", None)]


def test_a_local_loop_is_found_by_its_data_directory(tmp_path):
    with serving({"models": ROWS}) as (url, asked):
        told = {"http_url": url, "key": "own", "gateway_url": "http://127.0.0.1:3000"}
        (tmp_path / "running.json").write_text(json.dumps(told))
        choice = sdk.model_for_inference(environment={"UPSWING_DATA": str(tmp_path)})
        assert (choice.model, choice.base_url) == ("agent-zero-rl-v2", "http://127.0.0.1:3000/v1")
        assert asked == [("/models", "Bearer own")]


def silent():
    """A port that takes connections and says nothing."""
    line = socket.create_server(("127.0.0.1", 0))
    return line, f"http://127.0.0.1:{line.getsockname()[1]}"


def test_a_loop_that_says_nothing_means_the_base_model_and_is_not_asked_again_at_once():
    line, url = silent()
    with line:
        for _ in range(3):
            choice = sdk.model_for_inference(environment=at(url))
            assert (choice.model, choice.is_rl) == ("tiny", False)
            assert "127.0.0.1" in choice.reason
        line.setblocking(False)
        line.accept()[0].close()
        with pytest.raises(BlockingIOError):
            line.accept()


@pytest.mark.parametrize(
    "said",
    [
        b"",
        b"<html>",
        b"[]",
        b"null",
        b'{"models": 7}',
        b'{"models": [7, {"state": "deployed"}]}',
        b"[" * 100_000,
        b"\xff\xfe",
        b'{"models": [{"model_id": 7, "state": "deployed"}]}',
    ],
)
def test_nonsense_means_the_base_model(said):
    with serving(said) as (url, _):
        choice = sdk.model_for_inference(environment=at(url))
        assert (choice.model, choice.is_rl) == ("tiny", False)
        assert choice.reason


@pytest.mark.parametrize(
    "url",
    [
        "http://127.0.0.1:1",
        "http://[",
        "http://h:port",
        "nonsense",
        "http://a\r\nb",
        "nats://h:1",
        "http://",
    ],
)
def test_an_address_that_leads_nowhere_means_the_base_model(url):
    assert not sdk.is_rl_model_available(at(url))
    assert sdk.model_for_inference(environment=at(url, TENSORZERO_BASE_URL=url)).model == "tiny"


@pytest.mark.parametrize(
    ("env", "use"),
    [
        ({}, True),
        ({"NODE_ENV": "production"}, False),
        ({"UPSWING_ENV": "prod"}, False),
        ({"UPSWING_ENV": "development", "NODE_ENV": "production"}, True),
        ({"NODE_ENV": "production", "USE_RL_MODEL": "true"}, True),
        ({"USE_RL_MODEL": "false"}, False),
        ({"RL_ROLLOUT_PERCENTAGE": "0"}, False),
        ({"USE_RL_MODEL": "perhaps"}, False),
        ({"RL_ROLLOUT_PERCENTAGE": "nan"}, False),
        ({"UPSWING_ENV": "moon"}, False),
    ],
)
def test_the_environment_decides_whether(env, use):
    assert sdk.should_use_rl_model(env) is use
    if not use:
        with serving({"models": ROWS}) as (url, asked):
            config = sdk.rl_model_config(at(url, **env))
            assert (config.enabled, config.available, config.base_model) == (False, False, "tiny")
            assert config.reason
            assert asked == []


def test_a_word_of_ours_that_makes_no_sense_is_refused_where_a_person_can_mend_it():
    with pytest.raises(Misuse, match="UPSWING_ENV"):
        in_production({"UPSWING_ENV": "moon"})


def test_a_percentage_of_the_episodes_gets_the_trained_model_and_each_keeps_its_own():
    with serving({"models": ROWS}) as (url, _):
        env = at(url, RL_ROLLOUT_PERCENTAGE="25")
        first = [sdk.model_for_inference(f"e{n}", env).is_rl for n in range(2000)]
        again = [sdk.model_for_inference(f"e{n}", env).is_rl for n in range(2000)]
        assert first == again
        assert 400 < sum(first) < 600
        assert sdk.model_for_inference(environment=env, chance=lambda: 0.24).is_rl
        beyond = sdk.model_for_inference(environment=env, chance=lambda: 0.25)
        assert (beyond.is_rl, beyond.model) == (False, "tiny")
        more = at(url, RL_ROLLOUT_PERCENTAGE="50")
        grown = [sdk.model_for_inference(f"e{n}", more).is_rl for n in range(2000)]
        assert all(now for now, before in zip(grown, first, strict=True) if before)


def test_the_configuration_is_told_as_a_whole(monkeypatch):
    with serving({"models": ROWS}) as (url, _):
        for name, value in at(url, RL_FALLBACK_TO_BASE="off").items():
            monkeypatch.setenv(name, value)
        assert sdk.rl_model_config() == sdk.RlModelConfig(
            enabled=True,
            available=True,
            model_version="latest",
            latest="agent-zero-rl-v2",
            rollout_percentage=100.0,
            fallback_to_base=False,
            base_model="tiny",
            reason="agent-zero-rl-v2 answers.",
        )


@pytest.mark.parametrize("state", ["none", "canary", "promoted", "rolled back"])
def test_the_switches_mean_the_same_as_at_the_gateway(state):
    """The gateway's table, for an agent that chooses by itself: a canary is handed out by its name alone."""
    others = [row for row in ROWS if row["state"] in {"trained", "retired"}]
    rows = {
        "none": others,
        "canary": [ROWS[1], *others],
        "promoted": [ROWS[2], *others],
        "rolled back": [{**ROWS[2], "state": "rolled_back"}, *others],
    }[state]
    pins = {"v3": "canary", "v2": "promoted", "v1": None, "v99": None}
    places = [(number + 0.5) / 100 for number in range(100)]
    with serving({"models": rows}) as (url, _):
        for use, production, version, percentage in itertools.product(
            (None, "true", "false"), (False, True), (None, *pins), (None, "0", "30", "100")
        ):
            told = {
                "USE_RL_MODEL": use,
                "RL_MODEL_VERSION": version,
                "RL_ROLLOUT_PERCENTAGE": percentage,
                "UPSWING_ENV": "prod" if production else "dev",
            }
            env = at(url, **{name: value for name, value in told.items() if value is not None})
            found = Counter(
                sdk.model_for_inference(environment=env, chance=lambda at=place: at).model
                for place in places
            )
            if use == "false" or (use is None and production):
                wanted = {"tiny": 100}
            elif version is not None:
                wanted = {f"agent-zero-rl-{version}" if pins[version] == state else "tiny": 100}
            elif state == "promoted":
                most = int(percentage or 100)
                wanted = {"agent-zero-rl-v2": most, "tiny": 100 - most}
            else:
                wanted = {"tiny": 100}
            assert found == {name: count for name, count in wanted.items() if count}, told


def test_a_pin_that_cannot_be_had_says_which_models_answer():
    with serving({"models": ROWS}) as (url, _):
        choice = sdk.model_for_inference(environment=at(url, RL_MODEL_VERSION="v99"))
        assert (choice.model, choice.is_rl) == ("tiny", False)
        assert "agent-zero-rl-v3, agent-zero-rl-v2" in choice.reason


def test_without_a_base_model_the_agents_own_holds():
    assert sdk.model_for_inference(environment={"USE_RL_MODEL": "off"}).model is None
