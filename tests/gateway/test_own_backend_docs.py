"""What docs/your-own-backend.md shows works as it is written."""

import doctest
import json
import re
import tomllib
from pathlib import Path

from upswing.cli import parser
from upswing.config import Settings
from upswing.contracts.backend import (
    ModelOrigin,
    parse_remote_path,
    path_of_remote,
    resolve_base_and_path,
)
from upswing.contracts.backend_keys import read_backend_keys
from upswing.contracts.typed import from_json, from_tree
from upswing.gateway.admin import RegisterModelBody

DOCS = Path(__file__).parents[2] / "docs" / "your-own-backend.md"
TEXT = DOCS.read_text()


def test_the_key_the_settings_and_the_registration_are_taken_as_written():
    name, value = re.search(r'export (UPSWING_BACKEND_KEY_\w+)="([^"]+)"', TEXT).groups()
    keys = read_backend_keys({name: value.replace("…", "1")})
    toml = tomllib.loads(re.search(r"```toml\n(.*?)```", TEXT, re.DOTALL)[1])
    settings = from_tree(toml, Settings)
    assert keys == {f"{settings.serve.url}/": "sk-1"}
    assert settings.train.base_model == "Qwen/Qwen3-14B"
    new = from_json(re.search(r"-d '({.*?})'", TEXT)[1], RegisterModelBody)
    base, path = resolve_base_and_path(
        ModelOrigin(new.checkpoint_path, new.backend, new.name, new.probe),
        new.model_id,
        new.base_model,
    )
    assert (base, path_of_remote(parse_remote_path(path))) == ("large-2", path)


def test_every_field_and_layout_is_in_the_documentation_and_no_other():
    told = set(re.findall(r"^\| `(\w+)` +\|", TEXT, re.MULTILINE))
    assert told == set(RegisterModelBody.__struct_fields__) - {"checkpoint_path"} | {
        "sft",
        "openai",
        "dpo",
        "hf",
    }


def test_the_layouts_are_those_of_the_command():
    for layout in re.findall(r"--layout (\w+)", TEXT):
        assert json.dumps(vars(parser().parse_args(["export", "--layout", layout])), default=str)


def test_what_the_page_calculates_is_true():
    done = doctest.testfile(str(DOCS), module_relative=False, encoding="utf-8")
    assert done.attempted >= 3
    assert done.failed == 0
