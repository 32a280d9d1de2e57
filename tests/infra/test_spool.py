"""The spool: the same promises in a file and in memory, and what a file alone must survive."""

import os

import pytest
from hypothesis import given
from hypothesis import strategies as st

from upswing.infra.spool import Spool
from upswing.infra.spool_log import FileLog, MemoryLog, SpoolEntry, SpoolEntryKind


def entry(n, size=0, kind=SpoolEntryKind.TRAJECTORY):
    return SpoolEntry(kind, b'{"n":%d}' % n + b" " * size)


def numbers(entries):
    return [int(each.body.split(b":")[1].rstrip(b" }")) for each in entries]


def everything(spool):
    out = []
    while batch := spool.peek(100, 1 << 20):
        out += batch
        spool.remove(batch)
    return out


@pytest.fixture(params=["file", "memory"])
def log(request, tmp_path):
    made = FileLog.create(tmp_path / "a.spool") if request.param == "file" else MemoryLog()
    yield made
    made.close()


def test_entries_come_out_in_order_and_stay_until_removed(log):
    for n in range(5):
        log.append(entry(n).line())
    assert numbers(log.peek(3, 1000)) == [0, 1, 2] == numbers(log.peek(3, 1000))
    log.remove(2)
    assert numbers(log.peek(9, 1000)) == [2, 3, 4]
    assert len(log) == 3


def test_a_look_takes_at_least_one_and_no_more_than_the_size(log):
    for n in range(3):
        log.append(entry(n, size=500).line())
    assert len(log.peek(9, 10)) == 1
    assert len(log.peek(9, 1200)) == 2


def test_dropping_frees_at_least_what_was_asked(log):
    for n in range(5):
        log.append(entry(n, size=100).line())
    before = log.size
    assert log.drop(150) == 2
    assert before - log.size >= 150
    assert log.drop(10**9) == 3
    assert (len(log), log.size) == (0, 0)


@given(st.lists(st.one_of(st.integers(1, 3).map(lambda n: -n), st.integers(0, 400))))
def test_file_and_memory_agree_whatever_happens(tmp_path_factory, acts):
    folder = tmp_path_factory.mktemp("logs")
    twins = [FileLog.create(folder / "a.spool"), MemoryLog()]
    for place, act in enumerate(acts):
        for twin in twins:
            if act >= 0:
                twin.append(entry(place, size=act).line())
            else:
                twin.remove(min(-act, len(twin)))
        assert twins[0].peek(5, 500) == twins[1].peek(5, 500)
        assert (len(twins[0]), twins[0].size) == (len(twins[1]), twins[1].size)
    twins[0].close()
    again = FileLog.adopt(folder / "a.spool")
    assert (again.peek(99, 10**6) if again else []) == twins[1].peek(99, 10**6)
    if again:
        again.close()


def abandoned(tmp_path, count=3):
    """The file of a process that died."""
    spool = Spool(tmp_path, "dead", 10**6)
    for n in range(count):
        spool.append(entry(n))
    spool.close()
    return tmp_path / "dead.spool"


def adopted(tmp_path, limit=10**6):
    spool = Spool(tmp_path, "alive", limit)
    spool.adopt()
    return spool


def test_the_file_of_a_dead_process_comes_before_our_own(tmp_path):
    abandoned(tmp_path)
    spool = Spool(tmp_path, "alive", 10**6)
    spool.append(entry(9))
    spool.adopt()
    assert numbers(everything(spool)) == [0, 1, 2, 9]
    spool.close()
    assert not list(tmp_path.iterdir())


def test_a_file_has_one_owner(tmp_path):
    abandoned(tmp_path)
    first, second = adopted(tmp_path), Spool(tmp_path, "other", 10**6)
    second.adopt()
    assert (len(first), len(second)) == (3, 0)
    first.close()
    second.adopt()
    assert len(second) == 3
    second.close()


@pytest.mark.parametrize("cut", [1, 5, 15])
def test_a_torn_last_line_is_skipped_and_counted(tmp_path, cut):
    path = abandoned(tmp_path)
    os.truncate(path, path.stat().st_size - cut)
    spool = adopted(tmp_path)
    assert numbers(everything(spool)) == [0, 1]
    assert spool.dropped == 1
    spool.close()


def test_a_damaged_line_in_the_middle_costs_only_itself(tmp_path):
    path = abandoned(tmp_path)
    path.write_bytes(path.read_bytes().replace(b'{"n":1}', b'{"n":7}'))
    spool = adopted(tmp_path)
    assert numbers(everything(spool)) == [0, 2]
    assert spool.dropped == 1
    spool.close()


@pytest.mark.parametrize("mark", [b"9" * 16, b"0" * 16, b"x" * 16, b"0000000000000045"])
def test_a_damaged_mark_leads_to_sending_again_never_to_skipping(tmp_path, mark):
    path = abandoned(tmp_path)
    raw = path.read_bytes()
    path.write_bytes(raw[:16] + mark + raw[32:])
    spool = adopted(tmp_path)
    assert numbers(everything(spool)) == [0, 1, 2]
    spool.close()


def test_what_was_removed_before_the_crash_does_not_come_again(tmp_path):
    spool = Spool(tmp_path, "dead", 10**6)
    for n in range(3):
        spool.append(entry(n))
    spool.remove(spool.peek(2, 10**6))
    spool.close()
    again = adopted(tmp_path)
    assert numbers(everything(again)) == [2]
    again.close()


def test_a_batch_is_of_one_kind(tmp_path):
    spool = Spool(tmp_path, "a", 10**6)
    for n, kind in enumerate(
        [
            SpoolEntryKind.TRAJECTORY,
            SpoolEntryKind.TRAJECTORY,
            SpoolEntryKind.FEEDBACK,
            SpoolEntryKind.TRAJECTORY,
        ]
    ):
        spool.append(entry(n, kind=kind))
    sizes = []
    while batch := spool.peek(100, 10**6):
        sizes.append(len(batch))
        spool.remove(batch)
    assert sizes == [2, 1, 1]
    spool.close()


@given(st.lists(st.integers(0, 3000), max_size=60))
def test_the_disk_never_holds_more_than_the_limit(tmp_path_factory, sizes):
    folder, limit = tmp_path_factory.mktemp("spool"), 4000
    spool = Spool(folder, "a", limit)
    for n, size in enumerate(sizes):
        spool.append(entry(n, size=size))
        if n % 7 == 0:
            spool.remove(spool.peek(1, 10**6))
        assert sum(path.stat().st_size for path in folder.iterdir()) <= limit + 40
    left = numbers(everything(spool))
    assert left == sorted(left)
    assert left == [] or left[-1] == len(sizes) - 1 or len(sizes) % 7 == 1
    spool.close()


def test_an_entry_larger_than_the_spool_is_dropped_alone(tmp_path):
    spool = Spool(tmp_path, "a", 1000)
    spool.append(entry(1))
    spool.append(entry(2, size=2000))
    assert (numbers(everything(spool)), spool.dropped) == ([1], 1)
    spool.close()


def test_a_line_spoilt_while_we_run_costs_only_itself(tmp_path):
    spool = Spool(tmp_path, "a", 10**6)
    for n in range(3):
        spool.append(entry(n))
    path = tmp_path / "a.spool"
    path.write_bytes(path.read_bytes().replace(b'{"n":1}', b'{"n":7}'))
    left = everything(spool) + everything(spool)
    assert (numbers(left), len(spool), spool.dropped) == ([0, 2], 0, 1)
    spool.close()


def test_the_folder_is_private(tmp_path):
    spool = Spool(tmp_path / "new", "a", 1000)
    spool.append(entry(1))
    assert (tmp_path / "new").stat().st_mode & 0o077 == 0
    spool.close()
