"""What happens when the loop is away, hangs, refuses, forgets to answer, or the process dies?"""

import json
import os
import signal
import stat
import subprocess
import sys
import textwrap
import threading
from pathlib import Path

import pytest
from loop_double import PlainRedactor, eventually, say

from upswing.errors import Rejected
from upswing.sdk.recorder import EXIT_TIME
from upswing.sdk.transport import EntryAccepted
from upswing.sdk.worker import QUEUE_COUNT, Stats

HERE = Path(__file__).parent


def spooled(folder):
    return b"".join(path.read_bytes() for path in folder.glob("*.spool"))


def test_everything_is_sent_once_and_in_order(make, loop):
    recorder = make()
    ids = [say(recorder, f"n{n}") for n in range(50)]
    assert recorder.flush(60)
    assert [message["trajectory_id"] for message in loop.seen] == ids
    assert recorder.stats == Stats(sent=50)


def test_work_waits_on_disk_while_the_loop_is_away_and_goes_in_order_when_it_is_back(
    make, loop, tmp_path
):
    recorder = make()
    loop.stop()
    ids = [say(recorder, f"n{n}") for n in range(20)]
    assert not recorder.flush()
    assert (recorder.stats.spooled, recorder.stats.pending, recorder.stats.sent) == (20, 20, 0)
    assert "not reachable" in recorder.stats.last_error
    (file,) = (tmp_path / "spool").iterdir()
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    loop.start()
    assert eventually(recorder.flush)
    assert [message["trajectory_id"] for message in loop.seen] == ids
    assert loop.requests[-1][1] == "application/x-ndjson"
    assert (recorder.stats.spooled, recorder.stats.sent) == (0, 20)


def test_it_comes_back_by_itself(make, loop):
    recorder = make()
    loop.script.extend([503, 429])
    say(recorder)
    eventually(lambda: recorder.stats.sent == 1)


def test_an_answer_that_is_lost_leads_to_the_same_id_again(make, loop):
    recorder = make()
    loop.script.append("lose_answer")
    tid = say(recorder)
    eventually(lambda: recorder.stats.sent == 1)
    assert [message["trajectory_id"] for message in loop.seen] == [tid, tid]


def test_a_kept_connection_that_the_loop_closed_is_no_failure(make, loop):
    recorder = make()
    say(recorder)
    assert recorder.flush(60)
    loop.stop()
    loop.start()
    say(recorder)
    assert recorder.flush(60)
    assert recorder.stats == Stats(sent=2)


@pytest.mark.parametrize("status", [400, 409, 413, 422])
def test_refused_input_is_counted_and_never_sent_again(make, loop, status):
    recorder = make()
    loop.script.append(status)
    say(recorder)
    assert recorder.flush(60)
    other = say(recorder)
    assert recorder.flush(60)
    assert (recorder.stats.errors, recorder.stats.sent, recorder.stats.pending) == (1, 1, 0)
    assert recorder.stats.last_error == f"The loop answered {status}: schema: no."
    assert loop.ids == [other]


def test_one_refused_line_does_not_hold_up_the_others(make, loop):
    recorder = make()
    loop.script.append(503)
    ids = [say(recorder) for _ in range(4)]
    eventually(lambda: recorder.stats.spooled == 4)
    loop.script.append({2: 422})
    assert eventually(recorder.flush)
    assert (recorder.stats.errors, recorder.stats.sent) == (1, 3)
    assert loop.ids == [ids[0], *ids[2:]]


def test_a_line_that_must_wait_keeps_those_behind_it_waiting_and_nothing_is_lost(make, loop):
    recorder = make()
    loop.script.append(503)
    ids = [say(recorder) for _ in range(4)]
    eventually(lambda: recorder.stats.spooled == 4)
    loop.script.append({2: 503})
    assert eventually(recorder.flush)
    assert recorder.stats.sent == 4
    assert set(loop.ids) == set(ids)


@pytest.mark.parametrize("status", [401, 403, 404, 302])
def test_a_wrong_key_or_address_keeps_the_work(make, loop, status):
    recorder = make()
    loop.script.append(status)
    tid = say(recorder)
    eventually(lambda: recorder.stats.last_error)
    assert "wait in the spool" in recorder.stats.last_error
    assert eventually(recorder.flush)
    assert loop.ids == [tid]


def test_the_key_is_sent(make, loop):
    loop.key = "k"
    recorder = make(key="k")
    say(recorder)
    assert recorder.flush(60)
    assert recorder.stats.sent == 1


def test_a_secret_is_neither_sent_nor_on_disk(make, loop, tmp_path):
    recorder = make()
    loop.script.extend([503] * 2)
    say(recorder, "my key is sk-abc123")
    eventually(lambda: recorder.stats.spooled)
    assert b"my key is" in spooled(tmp_path / "spool")
    assert b"sk-abc123" not in spooled(tmp_path / "spool")
    assert eventually(recorder.flush)
    assert "sk-abc123" not in json.dumps(loop.seen)


@pytest.mark.parametrize("error", [RuntimeError("sk-abc123"), RecursionError()])
def test_what_cannot_be_redacted_is_neither_sent_nor_on_disk(make, loop, tmp_path, error):
    class Failing(PlainRedactor):
        def tree(self, value):
            raise error

    recorder = make(redactor=Failing)
    say(recorder)
    assert recorder.flush(60)
    assert recorder.stats.errors == 1
    assert "sk-abc123" not in recorder.stats.last_error
    assert not loop.requests
    assert not spooled(tmp_path / "spool")


def test_without_a_redactor_nothing_leaves(make, loop):
    def missing():
        raise ImportError

    recorder = make(redactor=missing)
    say(recorder)
    assert recorder.flush(60)
    assert recorder.stats.errors == 1
    assert not loop.requests


def test_token_ids_go_from_the_first_turn_that_redaction_changed(make, loop):
    recorder = make()
    tokens = [{"turn_id": n, "ids": [n], "logprobs": [-0.5]} for n in (1, 2, 3)]
    with recorder.trajectory(agent_id="a", metadata={"tokens": tokens}) as t:
        t.turn("one", "x")
        t.turn("sk-abc123", "x")
        t.turn("three", "x")
    assert recorder.flush(60)
    assert loop.seen[0]["metadata"]["tokens"] == tokens[:1]


def test_a_full_spool_gives_up_its_oldest(make, loop):
    recorder = make(spool_limit=20_000)
    loop.stop()
    ids = [say(recorder, "x" * 1000) for n in range(40)]
    assert not recorder.flush()
    stats = recorder.stats
    assert stats.dropped > 0
    assert stats.spooled + stats.dropped == 40
    loop.start()
    assert eventually(recorder.flush)
    assert loop.ids == ids[stats.dropped :]


def test_a_full_queue_gives_up_its_oldest(make, loop):
    held, go = [], threading.Lock()
    go.acquire()

    class Slow(PlainRedactor):
        def tree(self, value):
            held.append(value)
            go.acquire()
            go.release()
            return super().tree(value)

    recorder = make(redactor=Slow)
    ids = [say(recorder)]
    eventually(lambda: held)
    ids += [say(recorder) for _ in range(QUEUE_COUNT + 2)]
    assert recorder.stats.dropped == 2
    go.release()
    assert recorder.flush(120)
    assert loop.ids == [ids[0], *ids[3:]]


def test_a_spool_that_cannot_be_written_waits_in_memory(make, loop, tmp_path):
    (tmp_path / "file").write_text("")
    recorder = make(spool=tmp_path / "file" / "spool")
    loop.stop()
    say(recorder)
    assert not recorder.flush()
    assert recorder.stats.pending == 1
    loop.start()
    assert eventually(recorder.flush)


def test_closing_while_the_loop_hangs_is_quick_and_leaves_everything_on_disk(make, loop, tmp_path):
    recorder = make()
    loop.script.extend(["hang"] * 5)
    ids = [say(recorder)]
    eventually(lambda: loop.requests)
    ids += [say(recorder) for _ in range(3)]
    recorder.close(timeout=1.0)
    assert recorder._worker._thread.is_alive(), "it did not wait for the answer"
    assert all(tid.encode() in spooled(tmp_path / "spool") for tid in ids)
    loop.script.clear()
    loop.released.set()
    recorder._worker._thread.join(300)
    following = make()
    assert eventually(lambda: following.flush() and set(ids) <= set(loop.ids))


_AGENT = """
    import atexit, os, sys, time
    sys.path.insert(0, {here!r})
    from loop_double import PlainRedactor, eventually, say
    from upswing.sdk import Recorder
    ending = []
    atexit.register(lambda: ending and print(time.monotonic() - ending[0], recorder.stats.sent))
    recorder = Recorder(url={url!r}, spool={spool!r}, redactor=PlainRedactor)
    ids = [say(recorder, f"n{{n}}") for n in range({count})]
    {then}
"""


def agent(loop, spool, then, count=3):
    code = _AGENT.format(here=str(HERE), url=loop.url, spool=str(spool), count=count, then=then)
    return subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(code)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


@pytest.mark.live
def test_what_a_killed_process_left_behind_is_sent_by_the_next(make, loop, tmp_path):
    loop.stop()
    then = "eventually(lambda: recorder.stats.spooled == 3); print(*ids, flush=True); input()"
    with agent(loop, tmp_path / "spool", then) as process:
        ids = process.stdout.readline().split()
        os.kill(process.pid, signal.SIGKILL)
    assert len(ids) == 3
    loop.start()
    recorder = make()
    eventually(lambda: recorder.stats.sent == 3)
    assert [message["trajectory_id"] for message in loop.seen] == ids
    recorder.close()
    assert not list((tmp_path / "spool").iterdir())


@pytest.mark.live
def test_a_process_that_just_ends_has_sent_its_work(loop, tmp_path):
    then = "print(*ids); ending.append(time.monotonic())"
    with agent(loop, tmp_path / "spool", then) as process:
        ids = process.stdout.readline().split()
        seconds, sent = map(float, process.stdout.readline().split())
    assert process.returncode == 0
    assert loop.ids[: int(sent)] == ids[: int(sent)]
    assert sent == len(ids) or seconds >= EXIT_TIME, "it ended with work and time left"
    assert bool(list((tmp_path / "spool").iterdir())) == (sent < len(ids))


@pytest.mark.live
def test_the_end_of_a_process_waits_two_seconds_at_most_and_loses_nothing(make, loop, tmp_path):
    loop.script.extend(["hang"] * 5)
    with agent(loop, tmp_path / "spool", "print(*ids, flush=True)", count=5) as process:
        ids = process.stdout.readline().split()
        process.wait(300)
    assert len(loop.requests) <= 1, "it did not wait for the answer, or for another try"
    loop.script.clear()
    loop.released.set()
    recorder = make()
    eventually(lambda: recorder.flush() and loop.ids == ids)


@pytest.mark.live
def test_a_living_process_keeps_its_spool_to_itself(make, loop, tmp_path):
    loop.stop()
    then = "eventually(lambda: recorder.stats.spooled == 3); print(*ids, flush=True); input()"
    with agent(loop, tmp_path / "spool", then) as process:
        process.stdout.readline()
        other = make()
        say(other)
        assert not other.flush()
        assert other.stats.pending == 1
        os.kill(process.pid, signal.SIGKILL)


class Memory:
    """A transport in memory."""

    def __init__(self):
        self.bodies = []

    def send(self, kind, bodies):
        self.bodies += bodies
        return [EntryAccepted()] * len(bodies)

    def close(self):
        pass


def test_any_transport_will_do(make):
    transport = Memory()
    recorder = make(transport=lambda: transport)
    say(recorder)
    assert recorder.flush(60)
    assert len(transport.bodies) == 1


def test_a_fault_of_ours_in_the_thread_does_not_end_it(make):
    class Broken(Memory):
        def send(self, kind, bodies):
            if not self.bodies:
                self.bodies.append(b"")
                raise ZeroDivisionError
            return super().send(kind, bodies)

    transport = Broken()
    recorder = make(transport=lambda: transport)
    say(recorder)
    eventually(lambda: recorder.stats.sent == 1)


def test_a_rejected_draft_says_why(make, loop):
    recorder = make()
    tid = recorder.start_trajectory(agent_id="a")
    recorder.end_trajectory(tid)
    assert recorder.flush(60)
    assert recorder.stats.last_error == str(
        Rejected("schema", "A trajectory needs at least one step, each an object.")
    )


def test_the_thread_outlives_a_fault_in_its_own_handling_of_faults(make, loop, monkeypatch, caplog):
    recorder = make()
    thread, faults = recorder._worker, iter([1, 2])

    def odd(*_):
        if next(faults, None):
            raise RuntimeError("odd")

    sound = thread._spool.sync
    monkeypatch.setattr(thread, "_adopt_orphans", odd)
    monkeypatch.setattr(thread._spool, "sync", lambda: (odd(), sound()))
    say(recorder, "after all")
    assert recorder.flush(60)
    assert thread._thread.is_alive()
    assert "the recorder broke" in caplog.text
