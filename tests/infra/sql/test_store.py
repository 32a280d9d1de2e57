"""The store, on its twin, on SQLite and on PostgreSQL."""

import asyncio
import json
import sqlite3
import subprocess
import sys
import uuid
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from hashlib import sha256

import pytest

from tests.support import raw, trajectory
from upswing.collect.core.admit import AdmissionLimits, admit, admit_feedback
from upswing.collect.open_trajectories import OpenTrajectories
from upswing.contracts import DeadLetter, Feedback
from upswing.contracts.examples import EXAMPLES
from upswing.errors import Misuse
from upswing.infra.sql.database import BATCH
from upswing.infra.sql.keys import Keys
from upswing.infra.sql.store import from_microseconds, open_store, to_microseconds
from upswing.infra.sql.users import Users
from upswing.records import OpenStep, Receipt, Taken
from upswing.redact import Redactor

NOW = datetime(2026, 1, 2, 3, 4, 5, 678901, tzinfo=UTC)
REDACTOR = Redactor()


def admitted(**changes):
    return admit(raw(trajectory(**changes)), REDACTOR, AdmissionLimits()).admitted


async def take(store, row, *, announce=True, stream_seq=None):
    return await store.take(row, door="http", now=NOW, stream_seq=stream_seq, announce=announce)


def test_moments_survive_the_store():
    assert from_microseconds(to_microseconds(NOW)) == NOW


async def test_a_trajectory_comes_back_as_it_went_in(store):
    row = admitted()
    assert await take(store, row) is Taken.STORED
    found = await store.trajectory(row.trajectory_id)
    assert found.admitted == row
    assert (found.door, found.stored) == ("http", NOW)


async def test_the_same_again_is_known_and_other_content_is_a_conflict(store):
    row = admitted()
    await take(store, row)
    assert await take(store, row) is Taken.KNOWN
    other = admitted(trajectory_id=row.trajectory_id, agent_id="somebody-else")
    assert await take(store, other) is Taken.CONFLICT
    assert (await store.trajectory(row.trajectory_id)).admitted == row


async def test_many_writers_share_commits(store):
    rows = [admitted() for _ in range(300)]
    before = store.database.commits
    taken = await asyncio.gather(*(take(store, row) for row in rows))
    assert set(taken) == {Taken.STORED}
    assert store.database.commits - before < 50
    stored = await store.trajectories_after(0, limit=BATCH)
    assert {row.admitted.trajectory_id for row in stored} == {row.trajectory_id for row in rows}
    assert [row.seq for row in stored] == sorted(row.seq for row in stored)


async def test_a_unit_that_fails_does_not_take_its_batch_along(store):
    def bad(tx):
        tx.execute("INSERT INTO cursors (name, seq) VALUES (?, ?)", ("half done", 1))
        raise ZeroDivisionError

    rows = [admitted() for _ in range(20)]
    work = [take(store, row) for row in rows]
    work.insert(10, store.database.write(bad))
    results = await asyncio.gather(*work, return_exceptions=True)
    assert isinstance(results.pop(10), ZeroDivisionError)
    assert set(results) == {Taken.STORED}
    assert await store.cursor("half done") == 0


async def test_the_outbox_holds_what_was_announced_until_the_bus_has_it(store):
    row, quiet = admitted(), admitted()
    await take(store, row)
    await take(store, quiet, announce=False)
    (entry,) = await store.outbox()
    assert entry.payload == row.body
    assert entry.msg_id == sha256(row.body).hexdigest()
    await store.mark_delivered([Receipt(entry.seq, "RL_TRAJECTORIES", 7)])
    assert await store.outbox() == []


async def test_known_content_is_recognised_by_its_bytes(store):
    row = admitted()
    await take(store, row)
    messages = {7: row.content_hash, 8: b"x" * 32, 9: row.content_hash}
    assert await store.already_stored("RL_TRAJECTORIES", messages) == {7: False, 9: False}
    await store.note_carried("RL_TRAJECTORIES", {7: row.content_hash})
    assert await store.already_stored("RL_TRAJECTORIES", messages) == {7: True, 9: False}
    assert await store.already_stored("RL_TRAJECTORIES", {}) == {}


async def test_feedback_is_stored_once(store):
    made = EXAMPLES[Feedback]
    first, _ = admit_feedback(raw(made), REDACTOR, AdmissionLimits())
    other, _ = admit_feedback(raw(made | {"rating": 1}), REDACTOR, AdmissionLimits())
    assert await store.take_feedback(first, now=NOW, announce=True) is Taken.STORED
    assert await store.take_feedback(first, now=NOW, announce=True) is Taken.KNOWN
    assert await store.take_feedback(other, now=NOW, announce=True) is Taken.CONFLICT
    assert len(await store.outbox()) == 1


async def test_dead_letters_are_kept_and_announced(store):
    letter = DeadLetter(
        dead_id=uuid.uuid4(), timestamp=NOW, subject="s", reason="schema", detail="d", deliveries=1
    )
    await store.add_dead_letter(letter, stage="collect")
    (found,) = await store.list_dead_letters(reason="schema")
    assert found.letter == letter
    assert await store.list_dead_letters(reason="malformed") == []
    assert (await store.outbox())[0].subject == "agent.rl.dead.collect"
    await store.mark_replayed(str(letter.dead_id), NOW)
    assert (await store.dead_letter(str(letter.dead_id))).replayed == NOW


async def test_a_dead_letter_that_was_heard_on_the_bus_is_kept_once_and_not_said_again(store):
    letter = DeadLetter(
        dead_id=uuid.uuid4(),
        timestamp=NOW,
        subject="s",
        reason="too_large",
        detail="d",
        deliveries=1,
    )
    for _ in range(2):
        await store.add_dead_letter(letter, stage="gateway", announced=True)
    (found,) = await store.list_dead_letters()
    assert (found.stage, found.letter) == ("gateway", letter)
    assert await store.outbox() == []


async def test_attempts_that_never_ended_are_counted(store):
    assert [await store.begin_attempt("S", 5) for _ in range(3)] == [0, 1, 2]
    await store.end_attempt("S", 5)
    assert await store.begin_attempt("S", 5) == 0


async def test_a_batch_shares_a_mark_that_counts_no_death_of_its_own(store):
    await store.begin_attempt("S", 2)
    await store.begin_together("S", [1, 2, 3])
    assert await store.begun_attempts("S", [1, 2, 3, 4]) == {1: 0, 2: 1, 3: 0}
    assert await store.begun_attempts("another", [1]) == {}
    assert await store.begin_attempt("S", 1) == 0
    await store.spare_attempt("S", 1)
    await store.spare_attempt("S", 3)
    assert await store.begun_attempts("S", [1, 3]) == {1: 0, 3: 0}, (
        "whoever was spared is a suspect still"
    )
    await store.end_attempts("S", [1, 2])
    assert await store.begun_attempts("S", [1, 2, 3]) == {3: 0}


async def test_marks_of_messages_that_the_stream_no_longer_holds_are_forgotten(store):
    await store.begin_together("S", [1, 2, 3])
    await store.forget_carried("S", 3)
    assert await store.begun_attempts("S", [1, 2, 3]) == {3: 0}


async def test_the_first_to_decide_a_setting_decides_it_for_all(store):
    assert await store.setting("salt", b"one") == b"one"
    assert await store.setting("salt", b"two") == b"one"
    assert await store.setting("nothing") is None


async def test_a_cursor_moves(store):
    assert await store.cursor("c") == 0
    await store.move_cursor("c", 9)
    await store.move_cursor("c", 12)
    assert await store.cursor("c") == 12


async def test_migrating_again_changes_nothing(store):
    await take(store, admitted())
    await store.prepare()
    assert (await store.counts())["trajectories"] == 1


async def test_keys_are_hashed_found_and_revoked(store):
    keys = Keys(store.database)
    await keys.add("k1", "agent one", "agent", "secret-key", NOW)
    await keys.add("k1", "agent one", "agent", "secret-key", NOW)
    assert keys.find("secret-key").scope == "agent"
    assert keys.find("other") is None
    dump = await store.database.read(lambda tx: tx.rows("SELECT * FROM api_keys"))
    assert "secret-key" not in str(dump)
    assert await keys.revoke("k1", NOW)
    assert not await keys.revoke("k1", NOW)
    assert keys.find("secret-key").revoked == NOW


async def test_opting_out_is_remembered_and_can_be_taken_back(store):
    users = Users(store.database)
    await users.opt_out("u1", NOW)
    again = Users(store.database)
    await again.load()
    assert again.opted_out("u1")
    assert not again.opted_out(None)
    assert await again.opt_in("u1")
    assert not again.opted_out("u1")


async def test_erasure_removes_every_trace_and_remembers_only_the_ids(store):
    users = Users(store.database)
    mine, theirs = admitted(metadata={"user_id": "u1"}), admitted(metadata={"user_id": "u2"})
    await take(store, mine, stream_seq=11)
    await take(store, theirs, stream_seq=12)
    word, _ = admit_feedback(
        raw(EXAMPLES[Feedback] | {"trajectory_id": mine.trajectory_id, "user_id": "u3"}),
        REDACTOR,
        AdmissionLimits(),
    )
    word = replace(word, trusted=True)
    await store.take_feedback(word, now=NOW, announce=True)
    letter = DeadLetter(
        dead_id=uuid.uuid4(),
        timestamp=NOW,
        subject="s",
        reason="schema",
        detail="d",
        deliveries=1,
        payload=json.dumps({"metadata": {"user_id": "u1"}}),
    )
    await store.add_dead_letter(letter, stage="collect", user_id="u1")
    book = OpenTrajectories(store.database)
    await book.begin("open", b"{}", "u1", NOW)
    await book.add("open", OpenStep(1, b"{}", b"h"), (), NOW)

    gone = await users.erase("u1", NOW)

    assert await book.find("open") is None
    assert await store.take_feedback(word, now=NOW, announce=True) is Taken.ERASED

    assert (gone.trajectories, gone.feedback, gone.dead_letters) == (2, 1, 1)
    assert await store.trajectory(mine.trajectory_id) is None
    assert (await store.trajectory(theirs.trajectory_id)).admitted == theirs
    assert await users.messages_to_erase() == [("RL_TRAJECTORIES", 11)]
    assert [entry.payload for entry in await store.outbox()] == [theirs.body]
    assert await take(store, mine) is Taken.ERASED
    copies = await users.archived_copies()
    assert [copy.trajectory_id for copy in copies] == [mine.trajectory_id]
    await users.mark_messages_erased([("RL_TRAJECTORIES", 11)])
    await users.mark_copies_erased(copies)
    assert (await users.messages_to_erase(), await users.archived_copies()) == ([], [])


async def test_erasing_a_user_touches_no_letter_of_others(store):
    users = Users(store.database)
    for name in ("o", "bob"):
        letter = DeadLetter(
            dead_id=uuid.uuid4(),
            timestamp=NOW,
            subject="o",
            reason="schema",
            detail="o",
            deliveries=1,
            payload="bob o",
        )
        await store.add_dead_letter(letter, stage="collect", user_id=name)
    assert (await users.erase("o", NOW)).dead_letters == 1
    assert len(await store.list_dead_letters()) == 1


async def test_what_was_erased_while_on_its_way_to_the_bus_is_erased_there_too(store):
    users = Users(store.database)
    row = admitted(metadata={"user_id": "u1"})
    await take(store, row)
    (entry,) = await store.outbox()
    await users.erase("u1", NOW)
    await store.mark_delivered([Receipt(entry.seq, "RL_TRAJECTORIES", 5)])
    assert await users.messages_to_erase() == [("RL_TRAJECTORIES", 5)]


async def test_an_open_trajectory_is_a_notebook(store):
    book = OpenTrajectories(store.database)
    assert await book.begin("t", b"head", "u1", NOW) is Taken.STORED
    assert await book.begin("t", b"head", "u1", NOW) is Taken.KNOWN
    assert await book.begin("t", b"other", "u1", NOW) is Taken.CONFLICT
    one, two = OpenStep(1, b"one", b"h1"), OpenStep(2, b"two", b"h2")
    assert await book.add("t", one, (), NOW) is Taken.STORED
    assert await book.add("t", one, (), NOW) is Taken.KNOWN
    assert await book.add("t", OpenStep(1, b"x", b"hx"), (), NOW) is Taken.CONFLICT
    await book.add("t", two, (OpenStep(1, b"clean", b"h1"),), NOW)
    assert [step.body for step in (await book.find("t")).steps] == [b"clean", b"two"]
    assert await book.stale(NOW + timedelta(seconds=1)) == ["t"]
    await book.close("t")
    assert await book.find("t") is None


# ── SQLite alone ─────────────────────────────────────────────────────────────────────────────


async def test_a_second_writer_of_a_directory_is_refused_with_a_sentence(tmp_path):
    first = open_store(tmp_path)
    code = f"from pathlib import Path; from upswing.infra.sql import open_store; open_store(Path({str(tmp_path)!r}))"
    second = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False
    )
    assert "is in use by process" in second.stderr
    with pytest.raises(Misuse, match="in use"):
        open_store(tmp_path)
    first.close()
    open_store(tmp_path).close()


async def test_what_was_erased_is_not_in_the_files_any_more(tmp_path):
    store = open_store(tmp_path)
    await store.prepare()
    needle = "needle-" + uuid.uuid4().hex
    row = admitted(metadata={"user_id": "u1", "note": needle * 400})
    await take(store, row)
    assert any(needle.encode() in path.read_bytes() for path in tmp_path.iterdir())
    await Users(store.database).erase("u1", NOW)
    assert not any(needle.encode() in path.read_bytes() for path in tmp_path.iterdir())
    store.close()


async def test_commits_are_on_the_disk_when_they_return(tmp_path):
    store = open_store(tmp_path)
    await store.prepare()
    settings = await store.database.write(
        lambda tx: (tx.row("PRAGMA synchronous"), tx.row("PRAGMA journal_mode"))
    )
    store.close()
    assert settings == ((2,), ("wal",))
    assert (
        sqlite3.connect(tmp_path / "upswing.db")
        .execute("SELECT version FROM migrations")
        .fetchall()
    )
