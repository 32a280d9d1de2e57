"""Loops that run together end together, also one that does not hear the first time."""

import ast
import asyncio
import gc
import re
from pathlib import Path

import pytest

import upswing
from upswing.errors import Transient
from upswing.infra.backoff import Backoff
from upswing.infra.tasks import (
    cancel_all,
    restart_on_error,
    run_all,
    run_critical,
    run_in_background,
    run_with_backoff,
    run_with_helpers,
    start_task,
)

SOURCE = Path(upswing.__file__).parent
BARE = re.compile("create_task|ensure_future")


class Deaf:
    """Loses its first cancellations, as a `wait_for` may."""

    def __init__(self, times=1):
        self.left, self.ended = times, False

    async def run(self):
        while True:
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                if not self.left:
                    self.ended = True
                    raise
                self.left -= 1


async def begun(*works):
    task = asyncio.create_task(run_all(*works))
    for _ in range(3):
        await asyncio.sleep(0)
    return task


async def test_who_does_not_hear_is_told_again():
    deaf = Deaf()
    task = await begun(deaf.run(), asyncio.Event().wait())
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert deaf.ended


async def test_a_second_cancellation_leaves_nobody_behind():
    deaf = Deaf(2)
    task = await begun(deaf.run())
    task.cancel()
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert deaf.ended


async def test_one_that_breaks_ends_all_and_is_heard():
    deaf = Deaf()

    async def broken():
        raise OSError("gone")

    with pytest.raises(OSError, match="gone"):
        await run_all(broken(), deaf.run())
    assert deaf.ended


async def test_those_that_have_ended_are_left_alone():
    async def quick():
        return 1

    task = asyncio.create_task(quick())
    await task
    await cancel_all([task])
    assert task.result() == 1


# --- nobody dies unnoticed -----------------------------------------------------------------------


async def broken():
    raise OSError("gone")


async def test_what_nobody_waits_for_is_logged_when_it_breaks(caplog):
    task = run_in_background(broken(), name="the lamp")
    await asyncio.wait([task])
    await asyncio.sleep(0)
    (line,) = caplog.records
    assert (line.levelname, line.getMessage(), str(line.exc_info[1])) == (
        "ERROR",
        "the lamp broke",
        "gone",
    )


async def test_a_critical_task_that_ends_is_logged_and_its_owner_is_notified(caplog):
    async def early():
        return

    told = []
    for work in (broken, early):
        await asyncio.wait([run_critical(work(), name="the heart", on_end=lambda: told.append(1))])
        await asyncio.sleep(0)
    assert told == [1, 1]
    assert [line.getMessage() for line in caplog.records] == [
        "the heart broke",
        "the heart has ended, and should not",
    ]


async def test_a_critical_task_may_be_ended_by_its_owner(caplog):
    told = []
    await cancel_all([run_critical(Deaf().run(), name="the heart", on_end=lambda: told.append(1))])
    assert (told, caplog.records) == ([], [])


async def test_what_has_to_go_on_is_started_again_and_every_time_is_logged(caplog):
    tries = []

    async def work():
        tries.append(1)
        if len(tries) == 1:
            raise Transient("The bus is away.")
        if len(tries) == 2:
            raise KeyError("odd")

    await restart_on_error(work, name="the pump", pause=0.0)
    assert len(tries) == 3
    assert [(line.levelname, line.getMessage()) for line in caplog.records] == [
        ("WARNING", "the pump: The bus is away."),
        ("ERROR", "the pump broke and is started again"),
    ]


async def test_a_helper_that_breaks_or_ends_breaks_the_work_and_one_that_is_not_needed_ends():
    async def early():
        return

    async def work():
        return 7

    deaf = Deaf()
    assert await run_with_helpers(work(), helper=deaf.run()) == 7
    assert deaf.ended
    for helper, why in ((broken(), "gone"), (early(), "The helper has ended before its work did")):
        deaf = Deaf()
        with pytest.raises((OSError, RuntimeError), match=why):
            await run_with_helpers(deaf.run(), helper=helper)
        assert deaf.ended


def test_no_task_is_started_outside_of_this_module():
    """A group of asyncio's raises what breaks in it, so its tasks are no concern here."""
    found = set()
    for path in sorted(SOURCE.rglob("*.py")):
        if not BARE.search(text := path.read_text()):
            continue
        tree = ast.parse(text)
        groups = {
            item.optional_vars.id
            for node in ast.walk(tree)
            if isinstance(node, ast.AsyncWith)
            for item in node.items
            if "TaskGroup" in ast.unparse(item.context_expr)
        }
        for node in ast.walk(tree):
            called = node.func if isinstance(node, ast.Call) else None
            name = getattr(called, "attr", getattr(called, "id", ""))
            owner = getattr(getattr(called, "value", None), "id", "")
            if name in {"create_task", "ensure_future"} and owner not in groups:
                found.add(str(path.relative_to(SOURCE)))
    assert found == {"infra/tasks.py"}, "start it with a function of `upswing.infra.tasks`"


@pytest.mark.parametrize(
    ("error", "traced"), [(OSError(28, "full"), False), (OSError(5, "bad"), True)]
)
async def test_a_full_disk_is_a_sentence_and_no_traceback(caplog, error, traced):
    async def work(tried=[]):  # noqa: B006 - it counts
        tried.append(1)
        if len(tried) == 1:
            raise error

    await run_with_backoff("it", work, on_failure=lambda _: None, backoff=Backoff(0.001, 0.01))
    assert ("the disk is full, make room there" in caplog.text) is not traced
    assert ("Traceback" in caplog.text) is traced


async def test_one_that_breaks_while_it_is_ended_is_told_of_and_never_left_unheard(caplog):
    caplog.set_level("INFO")

    async def work():
        try:
            await asyncio.Event().wait()
        finally:
            raise ValueError("its child is gone")

    task, unheard = start_task(work(), name="a start"), []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: unheard.append(context))
    await asyncio.sleep(0)
    await cancel_all([task])
    del task
    gc.collect()
    assert "a start broke as it ended: ValueError('its child is gone')" in caplog.text
    assert not unheard
