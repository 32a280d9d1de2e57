"""What the documentation says of the model server is what the code does."""

import re
from pathlib import Path

import pytest

from upswing.serve.main import main

DOCS = Path(__file__).parents[2] / "docs" / "serving.md"


def test_every_option_is_in_the_documentation_and_no_other(capsys):
    with pytest.raises(SystemExit):
        main(["--help"])
    known = set(re.findall(r"--[a-z-]+", capsys.readouterr().out)) - {"--help"}
    told = set(re.findall(r"^\| `(--[a-z-]+)`", DOCS.read_text(), re.MULTILINE))
    assert told == known


async def test_every_route_is_in_the_documentation_and_no_other(engine):
    from upswing.serve.server import ModelServer

    server = ModelServer(engine, clock=lambda: 0.0, new_id=lambda: "1")
    known = {f"{method} {path}" for method, path in server._routes}
    told = set(re.findall(r"^\| `((?:GET|POST) [^`]+)`", DOCS.read_text(), re.MULTILINE))
    assert told == known
