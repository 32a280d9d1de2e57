"""The examples of docs/worlds.md run, and its tables are true."""

import asyncio
import doctest
import re
from pathlib import Path

import pytest

from upswing.api.world_server import WorldServerOptions, serve
from upswing.api.worlds import WorldRoutes
from upswing.cli import parser
from upswing.worlds.agentgym_sessions import WorldSessions
from upswing.worlds.desk_code import MEANING, PATCHES
from upswing.worlds.market_prices import NEWS, expected_direction
from upswing.worlds.triage import RULE, Triage

PAGE = Path(__file__).parents[2] / "docs" / "worlds.md"


def names():
    """What the page's examples define."""
    made = {}
    for block in re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL):
        exec(block, made)
    return made


def rows(after, columns):
    """The first table behind this text, without its head."""
    lines = PAGE.read_text().partition(after)[2].splitlines()
    start = next(at for at, line in enumerate(lines) if line.startswith("|---"))
    table = []
    for line in lines[start + 1 :]:
        if not line.startswith("|"):
            break
        table.append(tuple(cell.strip() for cell in line.strip("|").split("|"))[:columns])
    return table


def test_the_examples_run():
    done = doctest.testfile(str(PAGE), module_relative=False, encoding="utf-8", globs=names())
    assert done.attempted == 3
    assert done.failed == 0


@pytest.mark.live
async def test_the_example_world_can_be_served_and_played_as_the_page_says():
    made = names()
    world = made["Weather"]()

    async def think(instructions, text):
        return made["RULE"][text.split()[0]]

    told, url = asyncio.Event(), asyncio.get_running_loop().create_future()
    serving = asyncio.create_task(serve(world, WorldServerOptions(), url.set_result, told))
    outcomes = [await made["play_task"](await url, number, think) for number in range(12)]
    told.set()
    await serving
    assert all(outcome.success for outcome in outcomes)
    assert not {task.task_id for task in world.training} & {task.task_id for task in world.held_out}


def test_the_rules_are_the_rules():
    assert dict(rows("### `triage`", 2)) == RULE
    assert rows("| is about code |", 3) == [
        (name, word, MEANING[word]) for name, word in PATCHES.items()
    ]
    way = {1: "up", -1: "down"}
    assert rows("Each hour one asset", 3) == [
        (
            word,
            *(way[expected_direction(asset, word, "rising", "calm")] for asset in ("oil", "gold")),
        )
        for word in NEWS
    ]


def test_every_route_is_on_the_page():
    routes = WorldRoutes(WorldSessions(Triage()), lambda: 0.0).routes()
    told = re.findall(r"^\| `((?:GET|POST) [^`]+)`", PAGE.read_text(), re.MULTILINE)
    assert set(told) == {f"{route.method} {route.path}" for route in routes}


def test_every_option_of_serving_is_on_the_page(capsys):
    with pytest.raises(SystemExit):
        parser().parse_args(["worlds", "--help"])
    known = set(re.findall(r"--[a-z-]+", capsys.readouterr().out))
    told = set(re.findall(r"^\| `(--[a-z-]+)`", PAGE.read_text(), re.MULTILINE))
    assert told == known - {"--help", "--data", "--debug", "--json", "--log-file", "--log-format"}
