"""`upswing audit`: what operators did, and whether any of it is missing."""

import asyncio
import json
import sqlite3
from datetime import UTC, datetime, timedelta

import pytest

from upswing.cli import main
from upswing.infra.sql.audit import append_audit, audit_entry
from upswing.infra.sql.store import open_store

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


@pytest.fixture
def filled(tmp_path):
    """A data directory with five actions."""

    async def fill():
        store = open_store(tmp_path)
        await store.prepare()
        for number in range(5):
            entry = audit_entry(
                "key ann" if number % 2 else "key bob",
                "traffic",
                f"m-{number}",
                NOON + timedelta(hours=number),
                before={"traffic": {"tiny": 100}},
                after={"traffic": {"tiny": 90, "\x1b[31m": 10}},
            )
            await store.database.write(lambda tx, e=entry: append_audit(tx, e))
        store.close()

    asyncio.run(fill())
    return tmp_path


def audit(capsys, folder, *options):
    code = main(["audit", *options, "--data", str(folder)])
    return code, capsys.readouterr().out


def test_the_newest_come_first_with_what_changed(capsys, filled):
    code, out = audit(capsys, filled)
    lines = out.splitlines()
    assert code == 0
    assert [line.split()[6] for line in lines[:5]] == ["m-4", "m-3", "m-2", "m-1", "m-0"]
    assert '{"traffic": {"tiny": 100}} → {"traffic": {"tiny": 90' in lines[0]
    assert "\x1b" not in out
    assert lines[5].startswith("5 rows; the newest hash is ")


def test_filters(capsys, filled):
    for options, expected in (
        (["--who", "key ann"], [3, 1]),
        (["--about", "m-2"], [2]),
        (["--what", "rollback"], []),
        (["--limit", "2"], [4, 3]),
        (["--since", "2026-01-01T15:00"], [4, 3]),
    ):
        _, out = audit(capsys, filled, "--json", *options)
        found = json.loads(out)["entries"]
        assert [each["about"] for each in found] == [f"m-{n}" for n in expected], options


def test_a_whole_chain_is_said_to_be_whole_and_a_cut_one_not(capsys, filled):
    code, out = audit(capsys, filled, "--verify")
    assert (code, out[:19]) == (0, "Nothing is missing:")
    head = json.loads(audit(capsys, filled, "--json")[1])["head"]
    assert audit(capsys, filled, "--verify", "--head", head)[0] == 0
    assert audit(capsys, filled, "--verify", "--head", "0" * 64)[0] == 1
    with sqlite3.connect(filled / "upswing.db") as connection:
        connection.execute("DELETE FROM audit WHERE about = 'm-2'")
    code, out = audit(capsys, filled, "--verify")
    assert code == 1
    assert out.startswith("Row 4 does not follow: one or more rows before it are missing")
    told = json.loads(audit(capsys, filled, "--verify", "--json")[1])
    assert (told["ok"], told["rows"]) == (False, 2)


def test_nobody_has_done_anything_yet(capsys, tmp_path):
    store = open_store(tmp_path)
    asyncio.run(store.prepare())
    store.close()
    assert audit(capsys, tmp_path) == (0, "No operator has done anything yet.\n")
    assert audit(capsys, tmp_path, "--verify")[0] == 0


def test_a_folder_without_a_loop_is_a_sentence(capsys, tmp_path):
    code = main(["audit", "--data", str(tmp_path / "none")])
    assert code == 1
    assert "holds no loop yet" in capsys.readouterr().err
