"""A child is ended with its group, and nobody else is."""

import asyncio
import sys
from dataclasses import dataclass

from tests.support import alive, until
from upswing.infra.process import kill_group

_LEAVES_AN_ORPHAN = """
import subprocess, sys
orphan = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"], stdout=subprocess.DEVNULL)
print(orphan.pid, flush=True)
"""


@dataclass
class Ended:
    """A child that was waited for, and whose number another process may have by now."""

    pid: int
    returncode: int | None = 0


async def begun(program):
    return await asyncio.create_subprocess_exec(
        sys.executable, "-c", program, stdout=asyncio.subprocess.PIPE, start_new_session=True
    )


async def test_the_number_of_a_child_that_ended_may_be_a_strangers():
    stranger = await begun("import time; time.sleep(600)")
    kill_group(Ended(stranger.pid))
    assert stranger.returncode is None
    assert alive(stranger.pid)
    kill_group(stranger)
    assert await stranger.wait() < 0


async def test_whom_a_child_leaves_behind_ends_too():
    child = await begun(_LEAVES_AN_ORPHAN)
    orphan = int(await child.stdout.readline())
    assert await child.wait() == 0
    assert alive(orphan)
    kill_group(child)
    await until(lambda: not alive(orphan), 60)
    kill_group(child)
