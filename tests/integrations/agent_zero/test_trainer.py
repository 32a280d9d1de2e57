"""The rl-trainer's tool and the notices that reach its superior, with a double of the loop's port."""

import pytest

from tests.integrations.agent_zero.doubles import Agent, Context
from tests.integrations.mcp.test_operations import ANSWERS, AT, REPORT, Port
from upswing.integrations.agent_zero.connection import FORM, PluginConnection, write_connection
from upswing.integrations.agent_zero.notices import NoticeBoard
from upswing.integrations.agent_zero.plugin import AgentZeroPlugin
from upswing.integrations.agent_zero.trainer import operate, trainer_client
from upswing.sdk.recorder import Recorder


@pytest.fixture
def port():
    made = Port()
    yield made
    made.server.shutdown()
    made.server.server_close()


async def test_the_tool_answers_in_text(port):
    assert "Three jobs failed." in await operate(port.loop, "alerts", {"reason": "I was asked"})
    assert "mean 0.500" in await operate(port.loop, "rewards", {"since": "7d", "reason": "x"})


@pytest.mark.parametrize(
    ("method", "arguments", "words"),
    [
        ("", {}, "upswing:status"),
        ("dance", {}, "There is no operation 'dance'"),
        ("explain", {"reason": "x"}, "decision_id"),
        ("approve", {"model_id": "v3", "reason": "x"}, "`upswing rollouts approve v3`"),
        ("erase_user", {"user": "bob smith"}, "`upswing erase 'bob smith'`"),
        ("jobs", {}, "older version"),
    ],
)
async def test_what_it_may_not_or_cannot_do_is_a_sentence(port, method, arguments, words):
    before = len(port.asked)
    assert words in await operate(port.loop, method, arguments)
    if method in {"approve", "erase_user"}:
        assert len(port.asked) == before, "nothing was even asked"


def test_without_an_assistants_key_there_is_no_way_to_the_loop():
    assert trainer_client(PluginConnection(loop_url="http://127.0.0.1:8100", key="k")) is None


# --- notices --------------------------------------------------------------------------------


@pytest.fixture
def board(port):
    return NoticeBoard(port.loop, seconds=3600)


async def test_what_fires_is_told_once_in_each_chat(board):
    assert board.take("c1") == ""
    await board.refresh()
    assert "Alert: warning firing" in board.take("c1")
    assert board.take("c1") == ""
    await board.refresh()
    assert board.take("c1") == "", "the same alert is no news"
    assert "TrainingFailing" in board.take("c2")


async def test_a_new_report_is_told_and_an_old_one_is_not(board, monkeypatch):
    await board.refresh()
    assert "Daily report" not in board.take("c1"), "it was there before"
    newer = {**REPORT, "report_id": "daily-2026-01-16", "title": "Daily report of the 16th"}
    monkeypatch.setitem(ANSWERS, "/v1/reports", {"reports": [newer, REPORT], "next": None})
    monkeypatch.setitem(ANSWERS, "/v1/reports/daily-2026-01-16", {**newer, "text": "Two jobs."})
    await board.refresh()
    told = board.take("c1")
    assert "Daily report of the 16th." in told
    assert "\n| Two jobs.\n" in told, "as quoted data: reports name what strangers chose"


async def test_an_alert_that_is_over_is_told_nobody_any_more(board, monkeypatch):
    await board.refresh()
    monkeypatch.setitem(ANSWERS, "/v1/alerts", {"alerts": [], "next": None})
    await board.refresh()
    assert board.take("c1") == ""


async def test_an_alert_that_fires_again_is_news(board, monkeypatch):
    await board.refresh()
    board.take("c1")
    again = {**ANSWERS["/v1/alerts"]["alerts"][0], "began": AT.replace("08:", "09:")}
    monkeypatch.setitem(ANSWERS, "/v1/alerts", {"alerts": [again], "next": None})
    await board.refresh()
    assert "TrainingFailing" in board.take("c1")


def test_notices_come_by_the_plugin_to_first_agents_only(port, tmp_path):
    write_connection(tmp_path, PluginConnection(loop_url=port.loop.url, key="k", assistant_key="a"))
    plugin = AgentZeroPlugin(
        tmp_path,
        make_recorder=lambda _, folder: Recorder(url="http://127.0.0.1:9", spool=folder / "s"),
    )
    chat = Context()
    boss, worker = Agent(chat), Agent(chat, 1)
    from tests.sdk.loop_double import eventually

    assert plugin.notices(FORM, worker) == ""
    assert "TrainingFailing" in eventually(lambda: plugin.notices(FORM, boss))
    assert plugin.notices(FORM, boss) == ""
    plugin._board.close()
    plugin.recorder.close(0.1)


def test_a_loop_that_is_away_brings_no_notices_and_no_noise(tmp_path, caplog):
    from upswing.integrations.operations.loop_port import LoopPort

    board = NoticeBoard(LoopPort("http://127.0.0.1:9", "a", seconds=5), seconds=0.01)
    board.start()
    from tests.sdk.loop_double import eventually

    eventually(lambda: board.trouble)
    board.close()
    assert board.take("c") == ""
    assert not [record for record in caplog.records if record.levelname in {"WARNING", "ERROR"}]
