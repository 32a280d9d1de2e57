"""The power goes at any moment: is all that was acknowledged on the disk, and does the loop start again?"""

import asyncio
import json
import random
import shutil

import pytest

from tests.conftest import running_loop
from tests.storms import sized
from tests.storms.disk import Disk, missing, mounted
from tests.storms.load import Load, while_it_gets_less
from tests.support import Process, rows, until
from upswing.errors import UpswingError

pytestmark = [pytest.mark.live, pytest.mark.skipif(bool(missing()), reason=str(missing()))]


class Cuts:
    """Takes the power away, and keeps what the disk then held beside what was promised."""

    def __init__(self, disk, folder, load):
        self._disk, self._folder, self._load = disk, folder, load
        self.taken, self.unflushed, self.dropped = [], 0, 0

    async def take(self, moment):
        promised = self._load.promised()  # before: what is acknowledged meanwhile is no promise
        await asyncio.to_thread(self._take, moment, promised)

    def _take(self, moment, promised):
        number = len(self.taken)
        image, copy = self._folder / "image", self._folder / f"cut-{number}"
        writes, dropped = self._disk.cut(image, number)
        self.unflushed, self.dropped = self.unflushed + writes, self.dropped + dropped
        with mounted(image, self._folder / "after") as root:
            if (root / "data").exists():
                shutil.copytree(root / "data", copy / "data")
        image.unlink()
        self.taken.append((moment, copy / "data", promised))


async def lost_at(data, promised, sent):
    """Start again on what is left; None, or what is not as it was promised."""
    try:
        async with running_loop(data) as loop:
            known = "SELECT trajectory_id FROM trajectories"
            await while_it_gets_less(
                lambda: len(promised.keys() - {row[0] for row in rows(data, known)}),
                "what was acknowledged is not there",
            )
            stored = await loop.store.trajectories_after(0, 100_000)
            counts = await loop.store.counts()
    except (UpswingError, AssertionError) as error:
        return str(error)
    found = {row.admitted.trajectory_id: json.loads(row.admitted.body) for row in stored}
    changed = [name for name, document in found.items() if sent[name] != document]
    return (
        f"{changed=}, {counts=}" if changed or counts["dead"] or len(found) < len(stored) else None
    )


@pytest.mark.long
@sized("cuts", 3, 100)
async def test_what_was_acknowledged_outlives_the_power(tmp_path, cuts, trials):
    chance = random.Random(cuts)
    early = late = max(1, cuts // 6)
    with Disk(tmp_path) as disk:
        process = Process.start(disk.root / "data")
        load = Load(lambda: process.info, pace=0.05)
        taking = Cuts(disk, tmp_path, load)
        try:
            for _ in range(early):
                await asyncio.sleep(chance.random() * 3 / early)  # a moment that nobody chose
                await taking.take("its first start")
            await asyncio.to_thread(process.until_ready, 120)
            sending = asyncio.create_task(load.run())
            for _ in range(cuts - early - late):
                before = load.heard()
                await until(
                    lambda before=before: all(
                        now >= then + 3 for now, then in zip(load.heard(), before, strict=True)
                    ),
                    60,
                )
                await asyncio.sleep(chance.random() * 0.1)
                await taking.take("work")
            load.end()
            await sending
            process.popen.terminate()
            for _ in range(late):
                await asyncio.sleep(chance.random() * 1 / late)
                await taking.take("its end")
            assert await asyncio.to_thread(process.popen.wait, 300) == 0
        finally:
            process.destroy()
    lost = []
    for moment, data, promised in taking.taken:
        why = await lost_at(data, promised, load.sent)
        lost += [(moment, data.parent.name, why)] if why else []
        if not why:
            shutil.rmtree(data.parent, ignore_errors=True)
        trials.add(lost=bool(why))
        print(f"{trials.tried}: during {moment}, {why or 'held'}", flush=True)
    print(
        f"{cuts} cuts, {taking.unflushed} writes not flushed, {taking.dropped} of them dropped or torn"
    )
    assert not lost
    assert sum(load.heard()) >= cuts
