"""What really happened: the contract, its sources, and how several accounts become one."""

import json
from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from upswing.contracts import decode, encode, from_builtins
from upswing.contracts.outcome import EXAMPLE, Outcome
from upswing.errors import Misuse, Rejected
from upswing.reward.outcomes import (
    OutcomeFileSource,
    discover_sources,
    find_outcome,
    ground_truth_text,
    merge_outcomes,
    parse_outcome_lines,
    windows_of_last_hours,
)


def outcome(**changes):
    return from_builtins(Outcome, {**EXAMPLE, **changes})


def test_the_example_goes_there_and_back():
    raw = json.dumps(EXAMPLE).encode()
    assert json.loads(encode(decode(Outcome, raw))) == EXAMPLE


@pytest.mark.parametrize(
    "changes",
    [
        {"window_id": "yesterday"},
        {"window_id": "2025-01-15T10:30"},
        {"source": ""},
        {"assets": {"A": {}}},
        {"assets": {"A": {"open": "12"}}},
        {"assets": {"A": {"open": float("nan")}}},
        {"assets": {"A": {"close": float("inf")}}},
        {"assets": {"A": {"open": 1, "volume": 2}}},
        {"events": [{"time": "2025-01-15T10:41:00Z"}]},
        {"events": [{"time": "later", "text": "x"}]},
        {"colour": "red"},
    ],
)
def test_what_is_no_outcome_is_refused(changes):
    with pytest.raises(Rejected):
        outcome(**changes)


def test_numbers_beyond_all_numbers_are_refused_on_the_wire():
    raw = json.dumps(EXAMPLE).replace("12.5", "1e999").encode()
    with pytest.raises(Rejected):
        decode(Outcome, raw)


def test_the_last_hours_name_their_windows():
    now = datetime(2025, 1, 15, 0, 59, tzinfo=timezone(timedelta(hours=2)))
    assert windows_of_last_hours(now, 2) == [
        "2025-01-14T20:00",
        "2025-01-14T21:00",
        "2025-01-14T22:00",
    ]
    assert len(windows_of_last_hours(now, 24)) == 25


@given(
    st.datetimes(datetime(2020, 1, 1), datetime(2030, 1, 1), timezones=st.just(UTC)),  # noqa: DTZ001  the zone is given beside it
    st.integers(0, 100),
    st.sampled_from([1, 2, 4, 24]),
)
def test_windows_are_in_order_and_each_once(now, hours, length):
    windows = windows_of_last_hours(now, hours, length)
    assert windows == sorted(set(windows))


def test_accounts_of_several_sources_become_one():
    other = outcome(
        source="wire",
        assets={"TRUMP": {"close": 9.0}, "ETH": {"open": 1, "close": 2, "change": 1.0}},
        events=[*EXAMPLE["events"], {"time": "2025-01-15T10:05:00Z", "text": "Exchange down"}],
    )
    (joined,) = merge_outcomes([outcome(), other]).values()
    assert joined.source == "market-tracker + wire"
    assert joined.assets["TRUMP"].close == 10.5
    assert joined.assets["ETH"].close == 2
    assert [event.text for event in joined.events] == [
        "Exchange down",
        "SEC investigation announced",
    ]
    assert joined.metadata["disputed"] == ["TRUMP"]


def test_merging_the_same_account_again_changes_nothing():
    assert merge_outcomes([outcome(), outcome()]) == merge_outcomes([outcome()])


def test_an_account_of_the_whole_window_tells_of_every_scenario():
    whole = {k: v for k, v in EXAMPLE.items() if k != "scenario_id"} | {
        "assets": {"X": {"open": 1}}
    }
    merged = merge_outcomes([outcome(scenario_id="bull"), from_builtins(Outcome, whole)])
    assert find_outcome(merged, EXAMPLE["window_id"], "bull").assets.keys() == {"TRUMP", "X"}
    assert find_outcome(merged, EXAMPLE["window_id"], "bear").assets.keys() == {"X"}
    assert find_outcome(merged, "2025-01-15T11:00", "bull") is None


async def test_a_file_of_lines_is_a_source(tmp_path):
    path = tmp_path / "outcomes.jsonl"
    other = EXAMPLE | {"window_id": "2025-01-15T11:00"}
    path.write_text(json.dumps(EXAMPLE) + "\n\nnot json\n" + json.dumps(other) + "\n")
    (found,) = await OutcomeFileSource(path.read_bytes).fetch(["2025-01-15T11:00"])
    assert found.window_id == "2025-01-15T11:00"
    assert parse_outcome_lines(path.read_bytes()).problems[0].startswith("Line 3: ")


class Tracker:
    name = "tracker"

    async def fetch(self, window_ids):
        return []


class Point:
    def __init__(self, name, thing):
        self.name, self._thing = name, thing

    def load(self):
        if isinstance(self._thing, Exception):
            raise self._thing
        return self._thing


def test_installed_packages_bring_sources():
    one, two = discover_sources([Point("class", Tracker), Point("object", Tracker())])
    assert one.name == two.name == "tracker"
    assert discover_sources() == []


@pytest.mark.parametrize("thing", [ImportError("no"), object()])
def test_a_source_that_is_none_is_named(thing):
    with pytest.raises(Misuse, match="broken"):
        discover_sources([Point("broken", thing)])


def test_nothing_known_is_nothing_said():
    assert ground_truth_text(None) == ""
    assert ground_truth_text(None, {}) == ""
    assert ground_truth_text(None, "the vault was empty") == "the vault was empty"
