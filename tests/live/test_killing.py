"""Does an acknowledgement outlive `kill -9`? Kills under load, then every promise is checked."""

import asyncio
import functools
import json
import os
import random
import signal

import pytest
from tests.storms import sized
from tests.storms.load import Load, while_it_gets_less
from tests.support import alive, family, rows, until

pytestmark = pytest.mark.live
TARGETS = ["main", "nats-server", "everything"]


@sized("each", 1, 10)
async def test_kills_under_load_lose_nothing_that_was_acknowledged(start, data, each, trials):
    order = TARGETS * each
    random.Random(5).shuffle(order)
    process = await asyncio.to_thread(start)
    load = Load(lambda: process.info)
    sending = asyncio.create_task(load.run())
    for target in order:
        before = load.heard()
        await until(
            lambda before=before: all(
                now >= then + 10 for now, then in zip(load.heard(), before, strict=True)
            ),
            60,
            f"the clients got no answers after a kill; load: {sending}",
        )
        assert not sending.done(), sending
        bus = process.nats_pid
        assert alive(bus)
        if target == "nats-server":
            os.kill(bus, signal.SIGKILL)
            pid = functools.partial(getattr, process, "nats_pid")
            await until(lambda bus=bus, pid=pid: pid() not in {None, bus}, 60, "no new bus")
            assert process.popen.poll() is None, "the loop died with its bus"
            trials.add()
            continue
        relatives = family(process.popen.pid)
        assert bus in relatives
        if target == "everything":
            process.kill_group()
        else:
            process.kill()
        await until(
            lambda relatives=relatives: not any(map(alive, relatives)),
            60,
            "a child outlived its parent",
        )
        process = await asyncio.to_thread(start)
        trials.add()
    await until(
        lambda: min(load.heard()) >= min(300, 100 * each), 180, "few answers after the last kill"
    )
    load.end()
    await sending

    promised = load.promised()
    known = "SELECT trajectory_id, body FROM trajectories"
    await while_it_gets_less(
        lambda: len(promised.keys() - {row[0] for row in rows(data, known)}),
        "what was acknowledged is not stored",
    )
    relatives = family(process.popen.pid)
    assert process.stop() == 0
    assert not any(map(alive, relatives))
    stored = rows(data, known)
    assert len(stored) == len({row[0] for row in stored}), "stored twice"
    assert {row[0] for row in stored} <= load.sent.keys()
    for trajectory_id, body in stored:
        assert json.loads(body) == load.sent[trajectory_id]
    assert rows(data, "SELECT count(*) FROM dead") == [(0,)]
