"""Which data directory does a command use? The one of --data, of $UPSWING_DATA, or ./upswing-data; never another argument."""

import asyncio
import re
from pathlib import Path

import pytest
from tests.conftest import running_loop
from tests.support import cli

DOCS = Path(__file__).parents[2] / "docs"


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("UPSWING_DATA", raising=False)
    return tmp_path


@pytest.mark.live
async def test_the_ops_command_of_the_docs_works_as_it_is_written(here):
    written = re.search(
        r"^\$ upswing (ops \S+)", (DOCS / "monitoring.md").read_text(), re.MULTILINE
    )
    async with running_loop(here / "upswing-data") as loop:
        await asyncio.to_thread(cli, *written[1].split())
        address = loop.running.http_url.removeprefix("http://")
    assert address in (here / "ops" / "prometheus" / "prometheus.yml").read_text()


@pytest.mark.parametrize("below", ["", "/deeper/still"])
def test_ops_cannot_be_written_into_a_file(here, below):
    (here / "afile").write_text("")
    done = cli("ops", f"./afile{below}", check=False)
    assert done.returncode == 1
    assert b"afile is a file: name a directory to write" in done.stderr
    assert b"--data" not in done.stderr


def test_without_a_loop_ops_names_the_data_directory(here):
    done = cli("ops", "./ops", check=False)
    assert f"No loop is running in {here / 'upswing-data'}:" in done.stderr.decode()
    assert not (here / "ops").exists()


COMMANDS = [
    ("worlds", "list"),
    ("status",),
    ("dead", "list"),
    ("jobs", "show", "folder"),
    ("keys", "list"),
    ("report", "list"),
]


@pytest.mark.parametrize("words", COMMANDS, ids=lambda words: words[0])
def test_no_command_makes_a_directory_of_another_argument(here, words):
    cli(*words, check=False)
    assert {each.name for each in here.iterdir()} <= {"upswing-data"}
