"""`up` says what it waits for, and is ready when a model has answered."""

import asyncio
import io
import logging

from tests.gateway.conftest import model, plan, started
from tests.gateway.scripted import Scripted
from tests.support import until

from upswing.cli.starting import StartProgress, wait_for_first_answer
from upswing.infra.instance import InstanceInfo


class Terminal(io.StringIO):
    """A double: text that says it is a terminal."""

    def isatty(self):
        return True


def running(url):
    return InstanceInfo(1, "http://127.0.0.1:1", url, "", {}, "up_k", "/data", "gw_k", "adm_t")


def test_elsewhere_than_on_a_terminal_each_change_is_one_plain_line():
    out = io.StringIO()
    progress = StartProgress(out)
    for what in ("the store", "the store", "", "the bus", "the bus", "the store"):
        progress.show_waiting(what)
    progress.finish()
    waits = [f"Waiting for the {what} …\n" for what in ("store", "bus", "store")]
    assert out.getvalue() == "".join(waits)


def test_on_a_terminal_one_line_moves_and_goes():
    out, time = Terminal(), [0.0]
    progress = StartProgress(out, now=lambda: time[0])
    progress.show_waiting("the store")
    time[0] = 7.0
    progress.show_waiting("the store")
    progress.finish()
    assert "\n" not in out.getvalue()
    first, second, last = out.getvalue().split("\r\x1b[K")[1:]
    assert (first.strip(), second.strip(), last) == (
        "0 s  Waiting for the store …",
        "7 s  Waiting for the store …",
        "",
    )


def test_a_line_of_the_log_begins_where_the_moving_line_stood():
    out, root = Terminal(), logging.getLogger()
    handler = logging.StreamHandler(out)
    root.addHandler(handler)
    try:
        progress = StartProgress(out)
        progress.keep_clear_of_logs()
        progress.show_waiting("the store")
        root.warning("something else")
        progress.finish()
    finally:
        root.removeHandler(handler)
    assert "…\r\x1b[K" in out.getvalue()
    assert "\r\x1b[Ksomething else\n" in out.getvalue()


async def test_ready_is_said_after_an_answer_and_not_after_a_plan():
    out = io.StringIO()
    progress = StartProgress(out)
    async with Scripted() as server, started(None, client_keys={"gw_k": "agent"}) as gateway:
        waiting = asyncio.ensure_future(
            wait_for_first_answer(running(gateway.url), lambda: "the model server", progress)
        )
        await _said(out, "Waiting for the model server …")
        assert not waiting.done()
        gateway.gateway.apply(plan(model("base", "http://127.0.0.1:1/v1")))
        await _said(out, "Waiting for an answer through the gateway. ")
        assert not waiting.done()
        gateway.gateway.apply(plan(model("base", server.url), version=2))
        assert (await asyncio.wait_for(waiting, 300)).model == "base"
    assert gateway.recorder.trajectories == []


async def _said(out, words):
    await until(lambda: words in out.getvalue(), 60)
