"""The child that looks at messages: it answers in order, and its death is nobody else's."""

import asyncio
import contextlib
import io
import os
import signal

import msgspec
import pytest
from tests.support import alive, freeze, raw, trajectory, until

from upswing.collect.core.evaluate import MessageKind, Passed
from upswing.collect.worker import VERDICTS, encode_frame, serve
from upswing.config import RedactConfig, RedactRule, Settings
from upswing.contracts import Feedback
from upswing.contracts.examples import EXAMPLES
from upswing.errors import Died, Reason, Transient
from upswing.infra.child_workers import WorkerPool, WorkerProcess
from upswing.records import RejectedMessage

GREETING = encode_frame("s", msgspec.msgpack.encode(Settings()))
MODULE = "upswing.collect.worker"


def answers(*questions, settings=None):
    greeting = encode_frame("s", msgspec.msgpack.encode(settings or Settings()))
    target = io.BytesIO()
    serve(io.BytesIO(greeting + b"".join(questions)), target)
    made, rest = [], target.getvalue()
    while rest:
        size = int.from_bytes(rest[:4], "big")
        made.append(VERDICTS.decode(rest[4 : 4 + size]))
        rest = rest[4 + size :]
    return made


def test_verdicts_come_in_the_order_of_the_questions():
    documents = [trajectory() for _ in range(3)]
    good, bad, other = answers(
        encode_frame(MessageKind.TRAJECTORY, raw(documents[0])),
        encode_frame(MessageKind.TRAJECTORY, b"{bad"),
        encode_frame(MessageKind.FEEDBACK, raw(EXAMPLES[Feedback])),
    )
    assert good.admitted.trajectory_id == documents[0]["trajectory_id"]
    assert isinstance(bad, RejectedMessage)
    assert bad.reason is Reason.MALFORMED
    assert other.admitted.feedback_id == EXAMPLES[Feedback]["feedback_id"]


def test_it_uses_the_settings_it_was_greeted_with():
    settings = Settings(redact=RedactConfig((RedactRule("badge", "ACME-[0-9]{6}"),)))
    document = trajectory(metadata={"note": "ACME-123456"})
    (verdict,) = answers(encode_frame(MessageKind.TRAJECTORY, raw(document)), settings=settings)
    assert b"<badge-1>" in verdict.admitted.body


def test_a_question_that_is_cut_off_ends_it_quietly():
    assert answers(encode_frame(MessageKind.TRAJECTORY, raw(trajectory()))[:-5]) == []


@pytest.fixture
async def child():
    made = WorkerProcess(MODULE, GREETING)
    await made.start()
    yield made
    await made.stop()


@pytest.mark.live
async def test_many_askers_get_their_own_answers(child):
    documents = [trajectory() for _ in range(50)]
    told = await asyncio.gather(
        *(child.request(encode_frame("t", raw(each))) for each in documents)
    )
    ids = [VERDICTS.decode(each).admitted.trajectory_id for each in told]
    assert ids == [document["trajectory_id"] for document in documents]


@pytest.mark.live
async def test_when_it_dies_those_who_wait_are_told_and_the_next_is_answered(child):
    pid = child._process.pid
    freeze(pid)
    waiting = [
        asyncio.create_task(child.request(encode_frame("t", raw(trajectory())))) for _ in range(5)
    ]
    await until(lambda: len(child._waiting) == 5)
    os.kill(pid, signal.SIGKILL)
    results = await asyncio.gather(*waiting, return_exceptions=True)
    assert [type(result) for result in results] == [Died] + 4 * [Transient]  # it has one in hand
    answer = VERDICTS.decode(await child.request(encode_frame("t", raw(trajectory()))))
    assert isinstance(answer, Passed)
    assert child.deaths == 1
    assert not alive(pid)


@pytest.mark.live
async def test_the_death_of_an_idle_one_is_logged_and_its_end_in_order_is_not(child, caplog):
    os.kill(child._process.pid, signal.SIGKILL)
    await until(lambda: "died with 0 messages in hand" in caplog.text)
    assert isinstance(
        VERDICTS.decode(await child.request(encode_frame("t", raw(trajectory())))), Passed
    )
    caplog.clear()
    await child.stop()
    assert "died" not in caplog.text


@pytest.mark.live
async def test_a_full_child_makes_its_askers_wait_and_still_answers_all():
    children = WorkerPool(2, MODULE, GREETING)
    await children.start()
    big = raw(trajectory(metadata={"filler": "word " * 600_000}))
    told = await asyncio.gather(*(children.request(encode_frame("t", big)) for _ in range(14)))
    await children.stop()
    assert all(isinstance(VERDICTS.decode(each), Passed) for each in told)


@pytest.mark.long
@pytest.mark.live
async def test_one_that_says_nothing_is_ended_and_the_next_is_answered(caplog):
    child = WorkerProcess(MODULE, GREETING, silence_seconds=8.0)
    await child.start()
    try:
        await child.request(encode_frame("t", raw(trajectory())))
        pid = child._process.pid
        freeze(pid)
        asked = [child.request(encode_frame("t", raw(trajectory()))) for _ in range(3)]
        results = await asyncio.wait_for(asyncio.gather(*asked, return_exceptions=True), 120)
        assert {str(result) for result in results} == {
            "The worker said nothing for 8 s and is started anew."
        }
        assert "said nothing for 8 s and is ended" in caplog.text
        await until(lambda: not alive(pid))
        answer = VERDICTS.decode(await child.request(encode_frame("t", raw(trajectory()))))
        assert isinstance(answer, Passed)
    finally:
        await child.stop()


@pytest.mark.live
async def test_one_that_speaks_unasked_is_ended_and_that_is_logged(caplog):
    child = WorkerProcess("tests.collect.unasked", GREETING)
    await child.start()
    try:
        pid = child._process.pid
        with contextlib.suppress(Transient):
            await asyncio.wait_for(child.request(encode_frame("t", b"{}")), 300)
        await until(lambda: "It answers what nobody has asked." in caplog.text)
        await until(lambda: not alive(pid))
    finally:
        await child.stop()


@pytest.mark.live
@pytest.mark.parametrize("loop", ["asyncio", "uvloop"])
def test_who_asks_a_child_whose_pipe_is_closed_asks_the_next_one_and_is_not_blamed(loop):
    """A pipe breaks before anybody has heard of the child's end; the event loop that we run in then refuses to write."""
    run = pytest.importorskip(loop).run

    async def asked():
        child = WorkerProcess(MODULE, GREETING)
        await child.start()
        try:
            first = child._process.pid
            child._process.stdin.close()
            heard = await child.request(encode_frame(MessageKind.TRAJECTORY, raw(trajectory())))
            return heard, child._process.pid != first, child.deaths
        finally:
            await child.stop()

    heard, another, deaths = run(asked())
    assert isinstance(VERDICTS.decode(heard), Passed)
    assert (another, deaths) == (True, 0)
