"""A backtest on the journal of an older version: the same policy changes nothing, and what cannot be read is named."""

import json
import sqlite3

import pytest
from tests.upgrade.test_before_rooms import FIRST, restore, rows

from upswing.cli import main

COUNT = 39
"""Its decisions of trigger, validation and deployment."""


@pytest.fixture
def data(tmp_path):
    folder = tmp_path / "old"
    folder.mkdir()
    return restore(folder)


def replayed(data, tmp_path, capsys, policy="", *options):
    path = tmp_path / "new.toml"
    path.write_text(policy)
    arguments = ["backtest", "--policy", str(path), "--since", "2025-01-01", "--data", str(data)]
    assert main([*arguments, "--json", *options]) == 0
    return json.loads(capsys.readouterr().out)


def policy_of(data):
    """The policy under which it was written, as the journal itself has it."""
    (inputs,) = rows(data, "SELECT inputs FROM decisions WHERE kind = 'set_weight'")[0]
    limits = json.loads(inputs)["limits"]
    (trigger,) = rows(data, "SELECT inputs FROM decisions WHERE stage = 'trigger' LIMIT 1")[0]
    rules = json.loads(trigger)["rules"]
    lines = [f"{name} = {value}" for name, value in limits.items()]
    return "\n".join(
        [
            "[trigger]",
            f"threshold = {rules['threshold']}",
            f'schedule = "{rules["schedule"]}"',
            f"drop = {rules['drop']}",
            "[deploy.limits]",
            *lines,
        ]
    )


def test_the_policy_of_its_time_changes_nothing(data, tmp_path, capsys):
    for policy in ("", policy_of(data)):
        report = replayed(data, tmp_path, capsys, policy)
        assert (report["decisions"], report["total"], report["unreadable"]) == (COUNT, 0, [])
        assert (report["rollouts"], report["training"], report["ruled_otherwise"]) == ([], None, 0)
        assert {each["stage"] for each in report["stages"]} == {"trigger", "validate", "deploy"}


def test_another_policy_shows_what_would_have_differed(data, tmp_path, capsys):
    report = replayed(data, tmp_path, capsys, "[deploy.limits]\nhard_share = 0.95\nerrors = 0.49\n")
    (found,) = report["differences"]
    assert (found["about"], found["then"]["detail"]) == (FIRST, "hard_failure")
    assert (found["acts"], found["now"]["action"]) == (True, "hold")


def test_entries_of_a_still_older_version_are_counted_and_named(data, tmp_path, capsys):
    names = [
        name for (name,) in rows(data, "SELECT decision_id FROM decisions WHERE stage = 'deploy'")
    ]
    database = sqlite3.connect(data / "upswing.db")
    database.execute(
        "UPDATE decisions SET inputs = ? WHERE decision_id = ?", (b'{"type": "looked"}', names[0])
    )
    database.execute("UPDATE decisions SET inputs = ? WHERE decision_id = ?", (b"{", names[1]))
    database.execute("UPDATE decisions SET decided_us = 'soon' WHERE decision_id = ?", (names[2],))
    database.commit()
    database.close()
    report = replayed(data, tmp_path, capsys, "")
    named = {name for each in report["unreadable"] for name in each["examples"]}
    assert {names[0], names[1]} <= named
    assert sum(each["replayed"] for each in report["stages"]) == COUNT - 3
    assert report["total"] == 0


def test_a_person_reads_the_same(data, tmp_path, capsys):
    path = tmp_path / "new.toml"
    path.write_text("[deploy.limits]\nhard_share = 0.95\nerrors = 0.49\n[deploy]\nholdback = 0.1\n")
    arguments = ["backtest", "--policy", str(path), "--since", "2025-01-01", "--data", str(data)]
    assert main(arguments) == 0
    said = capsys.readouterr().out
    assert (
        "39 decisions replayed: 1 would have come out otherwise, 1 of them in what is done." in said
    )
    assert "deploy.holdback = 0.1   not replayed: it changes what is measured" in said
    assert "then roll_back (hard_failure)" in said


def test_a_model_of_it_is_analysed_as_far_as_it_goes(data, capsys):
    assert main(["analyse", FIRST, "--data", str(data), "--json"]) == 0
    analysis = json.loads(capsys.readouterr().out)
    assert (analysis["model_id"], analysis["findings"]) == (FIRST, [])
    assert main(["analyse", "nobody", "--data", str(data)]) == 1
    assert "No model nobody is known here" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (None, "is no file"),
        (b"\xff\xfe", "is no text"),
        (b"[deploy]\nramp_hours = 'long'\n", "ramp_hours"),
        (b"x" * 2_000_000, "larger than a policy"),
    ],
)
def test_a_policy_that_is_none_is_refused_with_a_sentence(data, tmp_path, capsys, content, said):
    path = tmp_path / "new.toml"
    if content is not None:
        path.write_bytes(content)
    assert main(["backtest", "--policy", str(path), "--data", str(data)]) == 1
    assert said in capsys.readouterr().err
