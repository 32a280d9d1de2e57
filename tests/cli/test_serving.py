"""`upswing serve PART`: does each part get its own options?"""

import argparse
from pathlib import Path
from types import SimpleNamespace

import pytest

from upswing.cli import serving


def parsed(*words):
    top = argparse.ArgumentParser()
    commands = top.add_subparsers()

    def command(name, run, about, *, json=True):
        sub = commands.add_parser(name, help=about)
        sub.set_defaults(run=run)
        return sub

    serving.add(command)
    return top.parse_args(["serve", *words])


@pytest.mark.parametrize("part", sorted(serving.PARTS))
def test_a_part_gets_every_word_after_its_name(part):
    arguments = parsed(part, "--port", "0", "--host", "::1", "--help")
    assert (arguments.run, arguments.part) == ("serving:serve", part)
    assert arguments.options == ["--port", "0", "--host", "::1", "--help"]


def test_a_part_that_does_not_exist_is_refused(capsys):
    with pytest.raises(SystemExit):
        parsed("kitchen")
    assert "gateway" in capsys.readouterr().err


def test_a_gateway_is_told_where_the_loops_data_lie(tmp_path):
    told = []
    part = SimpleNamespace(main=lambda argv: told.append(argv) or 0)
    arguments = parsed("gateway", "--port", "0")
    for folder in (tmp_path, Path("/nowhere")):
        arguments.data = folder
        assert serving.serve(arguments, lambda name: part) == 0
    assert told == [["--data", str(tmp_path), "--port", "0"], ["--port", "0"]]


@pytest.mark.parametrize("part", sorted(serving.PARTS))
def test_each_part_explains_itself(part, capsys, tmp_path):
    arguments = parsed(part, "--help")
    arguments.data = tmp_path
    with pytest.raises(SystemExit) as ended:
        serving.serve(arguments)
    assert ended.value.code == 0
    assert "--port" in capsys.readouterr().out
