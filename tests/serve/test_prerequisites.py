"""What can never be served is refused before anything starts, with the sentence that helps."""

import asyncio
import tomllib
from pathlib import Path

import pytest
from tests.gateway.conftest import model, plan, started

from upswing.adapters.prerequisites import EXTRAS, check_serving, missing
from upswing.config import Defaults, ServeConfig
from upswing.errors import Misuse


def chosen(base):
    return Defaults("grpo", base, 10)


@pytest.mark.parametrize(
    ("base", "config", "absent", "sentence"),
    [
        ("llama-99b", {}, (), "not on this machine, and nothing is downloaded: name `tiny`"),
        ("tiny", {}, EXTRAS["train"][0], "pip install 'upswing[train]'"),
        ("tiny", {}, ("peft",), "pip install 'upswing[train]'"),
        ("tiny", {"engine": "llama"}, ("xllamacpp",), "pip install 'upswing[llama]'"),
        ("tiny", {"engine": "auto"}, ("xllamacpp",), None),
        ("tiny", {}, (), None),
        (None, {}, EXTRAS["train"][0], None),
    ],
)
def test_a_base_of_ours(base, config, absent, sentence):
    def asked():
        check_serving(
            ServeConfig(**config), chosen(base), None, named=True,
            installed=lambda package: package not in absent,
        )  # fmt: skip

    if sentence is None:
        asked()
    else:
        with pytest.raises(Misuse) as refused:
            asked()
        assert sentence in str(refused.value)


@pytest.mark.parametrize(
    ("base", "named", "sentence"),
    [
        ("tiny", False, "nothing names its model: set `base_model` in [train], or RL_BASE_MODEL (it serves qwen, phi)"),
        ("quen", True, "has no model 'quen': it serves qwen, phi"),
        ("qwen", True, None),
    ],
)  # fmt: skip
async def test_a_server_of_the_users_own(base, named, sentence):
    there = plan(model("qwen", "http://h/v1"), (model("phi", "http://h/v1"), 0.5))
    async with started(there) as server:
        config = ServeConfig(url=server.url)
        asking = asyncio.to_thread(check_serving, config, chosen(base), None, named=named)
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
        check_serving(config, chosen("qwen"), None, named=True)
    else:
        with pytest.raises(Misuse, match="ask it which models it serves"):
            check_serving(config, chosen("tiny"), None, named=False)


def test_the_extras_are_those_that_can_be_installed():
    there = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())
    assert EXTRAS.keys() == there["project"]["optional-dependencies"].keys() - {"test"}


def test_what_an_extra_lacks_is_named():
    assert missing("train", lambda package: package != "peft") == ["peft"]
