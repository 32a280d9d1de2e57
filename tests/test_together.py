"""Loops that run together end together, also one that does not hear the first time."""

import ast
import asyncio
import re
from pathlib import Path

import pytest

import upswing
from upswing.errors import Transient
from upswing.together import aside, end, helped, kept, patiently, together, vital

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
    task = asyncio.create_task(together(*works))
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
        await together(broken(), deaf.run())
    assert deaf.ended


async def test_those_that_have_ended_are_left_alone():
    async def quick():
        return 1

    task = asyncio.create_task(quick())
    await task
    await end([task])
    assert task.result() == 1


# --- nobody dies unnoticed -----------------------------------------------------------------------


async def broken():
    raise OSError("gone")


async def test_what_nobody_waits_for_is_logged_when_it_breaks(caplog):
    task = aside(broken(), name="the lamp")
    await asyncio.wait([task])
    await asyncio.sleep(0)
    (line,) = caplog.records
    assert (line.levelname, line.getMessage(), str(line.exc_info[1])) == ("ERROR", "the lamp broke", "gone")  # fmt: skip


async def test_who_is_vital_is_logged_and_its_owner_hears_of_it(caplog):
    async def early():
        return

    told = []
    for work in (broken, early):
        await asyncio.wait([vital(work(), name="the heart", broke=lambda: told.append(1))])
        await asyncio.sleep(0)
    assert told == [1, 1]
    assert [line.getMessage() for line in caplog.records] == [
        "the heart broke",
        "the heart has ended, and should not",
    ]


async def test_who_is_vital_may_be_ended_by_its_owner(caplog):
    told = []
    await end([vital(Deaf().run(), name="the heart", broke=lambda: told.append(1))])
    assert (told, caplog.records) == ([], [])


async def test_what_has_to_go_on_is_begun_anew_and_every_time_is_logged(caplog):
    tries = []

    async def work():
        tries.append(1)
        if len(tries) == 1:
            raise Transient("The bus is away.")
        if len(tries) == 2:
            raise KeyError("odd")

    await kept(work, name="the pump", pause=0.0)
    assert len(tries) == 3
    assert [(line.levelname, line.getMessage()) for line in caplog.records] == [
        ("WARNING", "the pump: The bus is away."),
        ("ERROR", "the pump broke and is begun anew"),
    ]


async def test_a_helper_that_breaks_or_ends_breaks_the_work_and_one_that_is_not_needed_ends():
    async def early():
        return

    async def work():
        return 7

    deaf = Deaf()
    assert await helped(work(), helper=deaf.run()) == 7
    assert deaf.ended
    for helper, why in ((broken(), "gone"), (early(), "The helper has ended before its work did")):
        deaf = Deaf()
        with pytest.raises((OSError, RuntimeError), match=why):
            await helped(deaf.run(), helper=helper)
        assert deaf.ended


def test_no_task_is_begun_outside_of_together():
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
    assert found == {"together.py"}, "begin it with a function of `upswing.together`"


@pytest.mark.parametrize(
    ("error", "traced"), [(OSError(28, "full"), False), (OSError(5, "bad"), True)]
)
async def test_a_full_disk_is_a_sentence_and_no_traceback(caplog, error, traced):
    async def work(tried=[]):  # noqa: B006 - it counts
        tried.append(1)
        if len(tried) == 1:
            raise error

    await patiently("it", work, failed=lambda _: None, pause=0.001)
    assert ("the disk is full, make room there" in caplog.text) is not traced
    assert ("Traceback" in caplog.text) is traced
