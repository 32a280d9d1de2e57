"""What is a gateway told, by whom, and what does it refuse to start with?"""

import argparse
import re
from hashlib import sha256
from pathlib import Path

import pytest

from upswing import model_flags
from upswing.contracts.traffic import Model
from upswing.errors import Misuse
from upswing.gateway.core import setup as told_source
from upswing.gateway.core.keys import ClientKeys, sender_of
from upswing.gateway.core.serving_policy import ServingPolicy
from upswing.gateway.core.setup import SetupSources, check_public_address, read_setup
from upswing.gateway.limits import GatewayLimits
from upswing.gateway.main import build_parser
from upswing.gateway.proxy.upstreams import Upstreams
from upswing.principals import Holder

STRONG = "kC3-2vQ8_zLr7WmXb1TyPq"
ENV = {
    "NATS_URL": "nats://gateway:pw@bus:4222",
    "AGENTGYM_RL_URL": "http://loop:8100/",
    "AGENTGYM_RL_API_KEY": "the-loops-key",
    "TENSORZERO_ADMIN_TOKEN": "the-admins-token",
}
RUNNING = {
    "http_url": "http://127.0.0.1:8100",
    "key": "up_own",
    "nats_url": "nats://operator:o@l:1",
    "nats_urls": {"operator": "nats://operator:o@l:1", "gateway": "nats://gateway:g@l:1"},
}
SECRETS = {"key": "up_own", "gateway_key": "gw_own", "admin_token": "adm_own"}
DATA = SetupSources(running_info=RUNNING, secrets=SECRETS)


def test_everything_can_come_from_the_environment():
    setup = read_setup(SetupSources(), ENV)
    assert setup.nats_url == "nats://gateway:pw@bus:4222"
    assert (setup.loop_url, setup.loop_key) == ("http://loop:8100", "the-loops-key")
    assert setup.admin_token == "the-admins-token"
    assert setup.keys == {"the-loops-key": "operator"}
    assert setup.policy == ServingPolicy()


def test_everything_can_come_from_the_data_directory():
    setup = read_setup(DATA, {})
    assert setup.nats_url == "nats://gateway:g@l:1"
    assert (setup.loop_url, setup.loop_key) == ("http://127.0.0.1:8100", "up_own")
    assert setup.admin_token == "adm_own"
    assert setup.keys == {"up_own": "operator", "gw_own": "agent"}


def test_an_option_comes_before_the_environment_and_that_before_the_data_directory():
    setup = read_setup(DATA, ENV)
    assert setup.nats_url == ENV["NATS_URL"]
    assert (setup.loop_url, setup.admin_token) == ("http://loop:8100", "the-admins-token")
    named = SetupSources("nats://named:1", "http://named", RUNNING, SECRETS)
    setup = read_setup(named, ENV)
    assert (setup.nats_url, setup.loop_url) == ("nats://named:1", "http://named")


def test_a_loop_with_a_bus_of_its_owners_has_one_address_for_all():
    bus = {**RUNNING, "nats_url": "nats://theirs:1", "nats_urls": {"operator": "nats://theirs:1"}}
    assert read_setup(SetupSources(running_info=bus), {}).nats_url == "nats://theirs:1"


def test_the_loops_key_is_not_sent_to_an_address_that_somebody_else_named():
    with pytest.raises(Misuse, match="set both"):
        read_setup(DATA, {"AGENTGYM_RL_URL": "http://elsewhere"})
    with pytest.raises(Misuse, match="set both"):
        read_setup(SetupSources("nats://b:1", "http://elsewhere", RUNNING, SECRETS), {})
    same = {"AGENTGYM_RL_URL": "http://127.0.0.1:8100/"}
    assert read_setup(DATA, same).loop_key == "up_own"


def test_a_gateway_can_do_without_a_loop_but_not_without_a_bus():
    alone = read_setup(SetupSources("nats://b:1"), {})
    assert (alone.loop_url, alone.keys, alone.admin_token) == (None, {}, None)
    with pytest.raises(Misuse, match="no bus"):
        read_setup(SetupSources(secrets=SECRETS), {})


def test_clients_and_servers_have_keys_of_their_own():
    env = {
        "NATS_URL": "nats://b:1",
        "UPSWING_GATEWAY_KEYS": "ann=k1, bob=k2=x,",
        "UPSWING_BACKEND_KEYS": "https://gpu.example/v1=s1",
        "OPENAI_API_KEY": "sk",
        "WANDB_API_KEY": "w",
    }
    setup = read_setup(SetupSources(), env)
    assert setup.keys == {"k1": "ann", "k2=x": "bob"}
    assert setup.backend_keys == {
        "https://gpu.example/v1/": "s1",
        "https://api.openai.com/": "sk",
        "https://api.inference.wandb.ai/": "w",
    }


@pytest.mark.parametrize(
    ("backend", "key"),
    [
        ("https://gpu.example/v1", b"s1"),
        ("https://gpu.example/v1/", b"s1"),
        ("https://gpu.example/v1/eu", b"s1"),
        ("https://gpu.example/v10", None),
        ("https://gpu.example.evil/v1", None),
        ("https://api.openai.com", b"sk"),
        ("https://api.openai.com.evil/v1", None),
        ("http://api.openai.com/v1", None),
    ],
)
def test_a_key_goes_to_the_server_it_is_for_and_to_no_other(backend, key):
    env = {
        "NATS_URL": "nats://b:1",
        "UPSWING_BACKEND_KEYS": "https://gpu.example/v1=s1",
        "OPENAI_API_KEY": "sk\n",
    }
    ways = Upstreams(GatewayLimits(), read_setup(SetupSources(), env).backend_keys)
    head = ways.for_model(Model("m", backend, "m")).head
    assert re.findall(rb"authorization: Bearer (\S+)\r\n", head) == ([key] if key else [])


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("NATS_URL", "http://bus", "NATS_URL"),
        ("AGENTGYM_RL_URL", "loop:8100", "AGENTGYM_RL_URL"),
        ("UPSWING_GATEWAY_KEYS", "just-a-key", "entry 1"),
        ("UPSWING_GATEWAY_KEYS", "ann=k1,=k2", "entry 2"),
        ("UPSWING_GATEWAY_KEYS", "ann=k1,bob=k1", "bob"),
        ("UPSWING_GATEWAY_KEYS", "ann=k\r\nx: y", "entry 1"),
        ("UPSWING_GATEWAY_KEYS", "ann=schlüssel", "entry 1"),
        ("UPSWING_GATEWAY_KEYS", "agent=k1", "the loop's own"),
        ("UPSWING_GATEWAY_KEYS", "ann=k2,operator=k1", "the loop's own"),
        ("UPSWING_GATEWAY_KEYS", "key:7=k1", "the loop's own"),
        ("UPSWING_BACKEND_KEYS", "gpu.example=s1", "https://"),
        ("OPENAI_API_KEY", "k1\r\nx: y", "OPENAI_API_KEY"),
        ("USE_RL_MODEL", "perhaps", "true or false"),
        ("RL_ROLLOUT_PERCENTAGE", "120", "0 to 100"),
        ("RL_FALLBACK_TO_BASE", "maybe", "true or false"),
        ("UPSWING_ENV", "moon", "production"),
    ],
)
def test_a_word_that_cannot_be_understood_is_refused_without_repeating_a_secret(name, value, said):
    with pytest.raises(Misuse, match=said) as refused:
        read_setup(SetupSources(), {**ENV, name: value})
    assert "k1" not in str(refused.value)


def test_in_production_trained_models_are_off_until_they_are_switched_on():
    assert read_setup(SetupSources(), {**ENV, "NODE_ENV": "production"}).policy.enabled is False
    on = {**ENV, "UPSWING_ENV": "production", "USE_RL_MODEL": "1", "RL_ROLLOUT_PERCENTAGE": "10"}
    assert read_setup(SetupSources(), on).policy == ServingPolicy(max_share=0.1)


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "", "192.168.0.7", "gateway.example"])
def test_a_weak_token_or_no_key_at_all_is_refused_on_a_public_address(host):
    strong = {**ENV, "AGENTGYM_RL_API_KEY": STRONG, "TENSORZERO_ADMIN_TOKEN": STRONG[::-1]}
    check_public_address(host, read_setup(SetupSources(), strong))
    check_public_address(host, read_setup(SetupSources(), {**strong, "TENSORZERO_ADMIN_TOKEN": ""}))
    for name, value in (
        ("TENSORZERO_ADMIN_TOKEN", "admin"),
        ("TENSORZERO_ADMIN_TOKEN", "0" * 64),
        ("AGENTGYM_RL_API_KEY", "letmein"),
        ("UPSWING_GATEWAY_KEYS", "ann=short"),
    ):
        with pytest.raises(Misuse, match="weak"):
            check_public_address(host, read_setup(SetupSources(), {**strong, name: value}))
    with pytest.raises(Misuse, match="No client's key"):
        check_public_address(host, read_setup(SetupSources("nats://b:1"), {}))


@pytest.mark.parametrize("host", ["127.0.0.1", "127.9.9.9", "::1", "localhost"])
def test_on_this_machine_anything_goes(host):
    check_public_address(
        host, read_setup(SetupSources("nats://b:1"), {"TENSORZERO_ADMIN_TOKEN": "admin"})
    )


def test_a_gateway_that_learns_keys_of_a_loop_is_open_to_nobody():
    env = {"AGENTGYM_RL_URL": "http://loop:8100", "AGENTGYM_RL_API_KEY": "gwl_" + STRONG}
    setup = read_setup(SetupSources("nats://b:1"), env)
    assert (setup.keys, setup.accepts_anyone) == ({}, False)
    check_public_address("0.0.0.0", setup)
    keys = ClientKeys(setup.keys, from_loop=not setup.accepts_anyone)
    keys.replace_loop_keys({sha256(b"up_good").digest(): Holder.of("ann", "k7")})
    assert [keys.owner_of(given) for given in (None, b"Bearer nonsense")] == [None, None]
    assert keys.owner_of(b"Bearer up_good") is not None


def test_two_keys_of_one_name_are_two_principals():
    keys = ClientKeys({"static": "ann"})
    learnt = {b"first": Holder.of("ann", "k7"), b"second": Holder.of("ann", "k8", many=True)}
    keys.replace_loop_keys({sha256(key).digest(): holder for key, holder in learnt.items()})
    owners = [keys.owner_of(b"Bearer " + key) for key in (b"static", b"first", b"second")]
    assert len(set(owners)) == 3
    assert {owner.name for owner in owners} == {"ann"}
    assert [sender_of(owner).many for owner in owners] == [False, False, True]


def test_nothing_secret_is_shown():
    shown = repr(read_setup(DATA, ENV | {"OPENAI_API_KEY": "sk-secret"}))
    for secret in ("pw", "the-loops-key", "the-admins-token", "gw_own", "sk-secret"):
        assert secret not in shown


# --- the page ------------------------------------------------------------------------------------

PAGE = (Path(__file__).parents[2] / "docs" / "gateway.md").read_text()


def test_the_page_names_every_option_and_no_other():
    options = {
        action.option_strings[0]
        for action in build_parser()._actions
        if action.help != argparse.SUPPRESS and "--help" not in action.option_strings
    }
    assert set(re.findall(r"^\| `(--[a-z-]+)`", PAGE, re.MULTILINE)) == options


def test_the_page_names_every_variable_that_is_read():
    sources = "".join(Path(module.__file__).read_text() for module in (told_source, model_flags))
    variables = set(re.findall(r'"((?:[A-Z]+_)+[A-Z]+)"', sources))
    assert variables >= {"NATS_URL", "USE_RL_MODEL", "TENSORZERO_ADMIN_TOKEN"}
    assert {name for name in variables if f"`{name}`" not in PAGE} == set()


def test_the_example_of_the_page_runs(monkeypatch, tmp_path, capsys):
    monkeypatch.chdir(tmp_path)
    (block,) = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    exec(block, {})
    assert "RlModelConfig(enabled=True, available=False" in capsys.readouterr().out
