"""Whatever is looked for is found, page by page, once, while other rows come in; and no page looks at everything."""

import random
import tracemalloc
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as some

from tests.infra.sql.test_counters import REDACTOR, scored
from tests.support import raw, trajectory
from upswing.collect.core.admit import AdmissionLimits, admit
from upswing.infra.sql.rewards import Rewards
from upswing.infra.sql.trajectory_search import (
    OUTCOMES,
    TrajectoryFilter,
    TrajectorySearch,
    find_excerpt,
)

NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
WORDS = ("alpha", "BETA", 'say "no"', "Grüße", "tab\tand\nline", "back\\slash", "😀 smile")
DOMAINS = ("coding", "research")


class Filled:
    """A store with rows that a test knows."""

    def __init__(self, store, seed):
        self.store, self.chance, self.now = store, random.Random(seed), NOW
        self.rows = []
        """What the store holds, the oldest first: columns, and the text."""

    async def add(self, count):
        for _ in range(count):
            await self._add_one()

    async def _add_one(self):
        chance = self.chance
        self.now += timedelta(seconds=chance.randint(0, 3))
        word = chance.choice(WORDS)
        row = admit(
            raw(trajectory(task_context={"instructions": f"please {word} it"})),
            REDACTOR,
            AdmissionLimits(),
        ).admitted
        row = replace(
            row,
            model=chance.choice("mno"),
            agent_id=chance.choice("abc"),
            user_id=chance.choice(("u", "v", None)),
            domain=chance.choice(DOMAINS),
            task_id=chance.choice(("t1", "t2")),
            turns=chance.randint(1, 4),
            evaluation=chance.random() < 0.3,
        )
        door = chance.choice(("http", "sdk"))
        await self.store.take(row, door=door, now=self.now, stream_seq=None, announce=False)
        stored = await self.store.trajectory(row.trajectory_id)
        known = {"row": row, "door": door, "seq": stored.seq, "stored": self.now, "text": word}
        known |= await self._score(stored.seq, row)
        self.rows.append(known)

    async def _score(self, seq, row):
        if self.chance.random() < 0.2:
            return {"reward": None, "well": None}
        reward, well = (
            self.chance.choice((0.0, 0.4, 0.9)),
            self.chance.choice((None, 0.0, 0.5, 1.0)),
        )
        new = replace(scored(seq, row, reward), reported=well)
        await Rewards(self.store.database).publish([new], cursor=seq, now=self.now)
        return {"reward": reward, "well": well}

    def filter(self):
        """Some of the filters, at random."""
        chance = self.chance
        near = [NOW - timedelta(days=1), *(each["stored"] for each in self.rows)]
        values = {
            "since": chance.choice(near),
            "until": chance.choice(near),
            "model": chance.choice("mnox"),
            "agent": chance.choice("ab"),
            "user": chance.choice("uv"),
            "domain": chance.choice(DOMAINS),
            "task": "t1",
            "door": "sdk",
            "outcome": chance.choice(OUTCOMES),
            "min_reward": chance.choice((0.0, 0.3)),
            "max_reward": chance.choice((0.5, 1.0)),
            "min_turns": 2,
            "evaluation": chance.choice((True, False)),
            "text": chance.choice(WORDS),
        }
        return TrajectoryFilter(
            **{name: values[name] for name in chance.sample(sorted(values), chance.randint(0, 3))}
        )

    def expected(self, wanted):
        return [each["seq"] for each in reversed(self.rows) if matches(each, wanted)]


def outcome_of(well):
    return "unknown" if well is None else {0.0: "failure", 0.5: "partial", 1.0: "success"}[well]


def matches(known, wanted):
    row = known["row"]
    exact = {
        "model": row.model,
        "agent": row.agent_id,
        "user": row.user_id,
        "domain": row.domain,
        "task": row.task_id,
        "door": known["door"],
        "evaluation": row.evaluation,
        "outcome": outcome_of(known["well"]),
        "text": known["text"],
    }
    if any(getattr(wanted, name) not in {None, value} for name, value in exact.items()):
        return False
    if wanted.min_turns and row.turns < wanted.min_turns:
        return False
    if wanted.since and known["stored"] < wanted.since:
        return False
    if wanted.until and known["stored"] >= wanted.until:
        return False
    reward = known["reward"]
    if wanted.min_reward is not None and (reward is None or reward < wanted.min_reward):
        return False
    return not (wanted.max_reward is not None and (reward is None or reward > wanted.max_reward))


@pytest.mark.parametrize("seed", range(4))
async def test_every_row_is_found_once_while_others_come_in(store, seed):
    filled = Filled(store, seed)
    await filled.add(30)
    for _ in range(12):
        wanted, limit = filled.filter(), filled.chance.choice((1, 3, 50))
        expected, found, before, pages = filled.expected(wanted), [], None, 0
        search = TrajectorySearch(store.database, scanned=filled.chance.choice((2, 7)), wide=3)
        while True:
            page = await search.page(wanted, before=before, limit=limit)
            assert len(page.found) <= limit
            assert page.scanned <= max(7, limit + 1)
            found += [each.seq for each in page.found]
            pages, before = pages + 1, page.position
            if before is None:
                break
            if pages % 3 == 1 and len(filled.rows) < 60:
                await filled.add(1)
        assert found == expected, wanted


async def test_a_text_is_shown_with_what_stands_around_it(store):
    filled = Filled(store, 1)
    await filled.add(5)
    search = TrajectorySearch(store.database)
    for known in filled.rows:
        wanted = TrajectoryFilter(text=known["text"].upper())
        page = await search.page(wanted, before=None, limit=50)
        mine = next(each for each in page.found if each.seq == known["seq"])
        assert known["text"] in mine.excerpt


def test_names_of_fields_are_no_texts():
    assert find_excerpt(b'{"turns": [{"observation": "x"}]}', "observation") is None
    assert find_excerpt(b"\xff\xfe", "x") is None
    assert (
        find_excerpt(b'{"a": "%s"}' % (b"y" * 300 + b"needle" + b"z" * 300), "needle").count("…")
        == 2
    )


async def test_the_rows_that_a_page_looks_at_are_read_from_an_index(store):
    """One that read the table itself would cost more with every large trajectory."""
    if store.database._postgres:
        pytest.skip("PostgreSQL decides by how much there is")
    search = TrajectorySearch(store.database)
    for name in ("model", "agent", "user", "domain", "task"):

        def plan(tx, name=name):
            found = search._candidates(tx, TrajectoryFilter(**{name: "x"}), None, 50)
            sql = f"SELECT t.seq FROM {found.table} WHERE {found.where} ORDER BY t.seq DESC LIMIT 9"
            return str(tx.rows(f"EXPLAIN QUERY PLAN {sql}", found.params))

        told = await store.database.view(plan)
        assert "USING COVERING INDEX trajectories_" in told, told
        assert "TEMP B-TREE" not in told, told


LETTERS = some.text(some.sampled_from('aAbİi̇ß"\\/{}[]:, \n\u2028é'), max_size=6)
TREES = some.recursive(
    LETTERS | some.integers(0, 12) | some.none(),
    lambda inner: some.lists(inner, max_size=4) | some.dictionaries(LETTERS, inner, max_size=4),
    max_leaves=20,
)


def texts_of(tree):
    """Every text that is no name of a field, by looking at each value."""
    match tree:
        case str():
            yield tree
        case dict():
            for each in tree.values():
                yield from texts_of(each)
        case list():
            for each in tree:
                yield from texts_of(each)


@given(TREES, LETTERS.map(str.lower).filter(bool))
def test_a_text_is_found_exactly_where_a_value_has_it(tree, needle):
    texts = [each for each in texts_of(tree) if needle in each.lower()]
    found = find_excerpt(msgspec.json.encode(tree), needle)
    assert found is None if not texts else needle in found.lower(), texts


@pytest.mark.parametrize("filler", ["{}", "[]", '"a"', '{"turns":1}', "0"])
def test_a_body_of_very_many_values_is_looked_through_without_making_them(filler):
    body = f'{{"turns": [{",".join([filler] * 100_000)}]}}'.encode()
    tracemalloc.start()
    try:
        assert find_excerpt(body, "turns") is None
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 6 * len(body)
