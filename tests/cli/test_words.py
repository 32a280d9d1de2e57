"""What a person mistypes is understood, or explained: numbers, times, names."""

import argparse
import re
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from upswing import cli
from upswing.cli.moments import moment
from upswing.cli.suggesting import VARIABLES, unknown_variables
from upswing.contracts.backend_keys import PREFIX
from upswing.errors import Misuse
from upswing.gateway import main as gateway_server
from upswing.infra.cli_options import FloatOption, IntegerOption
from upswing.serve import main as model_server

SOURCE = Path(cli.__file__).parents[1]


def parsers():
    """Every command's own."""
    (found,) = [a for a in cli.parser()._actions if isinstance(a, argparse._SubParsersAction)]
    return found.choices


COMMANDS = parsers()
OPTIONS = [
    (name, action)
    for name, parser in COMMANDS.items()
    for action in parser._actions
    if action.option_strings and action.nargs != 0
]


def slips(word):
    """As fingers slip: a letter lost, doubled, or two exchanged."""
    inner = range(1, len(word) - 1)
    yield from (word[:at] + word[at + 1 :] for at in inner)
    yield from (word[:at] + word[at] + word[at:] for at in inner)
    swapped = (word[:at] + word[at + 1] + word[at] + word[at + 2 :] for at in inner)
    yield from (each for each in swapped if each != word)


def refused(arguments, capsys):
    with pytest.raises(SystemExit) as ended:
        cli.main(arguments)
    assert ended.value.code == 2
    return capsys.readouterr().err.splitlines()[-1]


# ── numbers ──────────────────────────────────────────────────────────────────────────────────────


def test_every_number_has_bounds():
    served = [*gateway_server.build_parser()._actions, *model_server.parser()._actions]
    actions = [action for _, action in OPTIONS] + served
    loose = [a.option_strings for a in actions if a.type in {int, float}]
    assert loose == []


@pytest.mark.parametrize(
    ("name", "action"),
    [each for each in OPTIONS if isinstance(each[1].type, IntegerOption | FloatOption)],
    ids=lambda each: each if isinstance(each, str) else each.option_strings[0],
)
def test_a_number_out_of_range_at_either_end_is_named(name, action, capsys):
    kind, option = action.type, action.option_strings[0]
    outside = [kind.least - 1, "nan", "many", "", "1e999"]
    outside += [kind.most + 1] if kind.most is not None else []
    outside += [kind.least] if isinstance(kind, FloatOption) and kind.above else []
    for value in outside:
        said = refused([name, *needed(name), f"{option}={value}"], capsys)
        assert f"argument {option}: give a " in said
        assert kind.bounds in said
        assert repr(str(value)) in said


def needed(name):
    """What the command cannot do without."""
    actions = COMMANDS[name]._actions
    options = [
        text
        for a in actions
        if a.required and a.option_strings
        for text in (a.option_strings[0], "x")
    ]
    positionals = [a for a in actions if not a.option_strings and a.nargs not in {"?", "*", "..."}]
    return [*options, *(next(iter(a.choices or ["x"])) for a in positionals)]


@pytest.mark.parametrize("port", [-1, 65536, 99999, 10**12])
def test_a_port_that_is_none_is_refused_by_whoever_listens(port):
    from upswing.infra.sockets import bind_port

    with pytest.raises(Misuse, match=f"--gateway-port is a number from 0 to 65535, not {port}"):
        bind_port("127.0.0.1", port, "--gateway-port")


@pytest.mark.parametrize("url", ["http://h:99999", "http://h:port", "h:8100", "http://:8100", "x"])
def test_an_address_of_the_loop_that_cannot_be_is_named(url, monkeypatch, capsys, tmp_path):
    monkeypatch.setenv("AGENTGYM_RL_URL", url)
    monkeypatch.setenv("AGENTGYM_RL_API_KEY", "up_key")
    assert cli.main(["keys", "--data", str(tmp_path)]) == 1
    assert f"AGENTGYM_RL_URL is {url!r}: give an address" in capsys.readouterr().err


def test_a_port_of_the_bus_that_cannot_be_is_named(monkeypatch, capsys, tmp_path):
    monkeypatch.setenv("NATS_URL", "nats://127.0.0.1:99999")
    assert cli.main(["up", "--data", str(tmp_path), "--no-gateway"]) == 1
    assert "NATS_URL names a port that is none" in capsys.readouterr().err


# ── times ────────────────────────────────────────────────────────────────────────────────────────

NOW = datetime(2026, 3, 4, 12, 30, tzinfo=UTC)  # a Wednesday
SPELLINGS = {
    "90m": timedelta(minutes=90),
    "36h": timedelta(hours=36),
    "7d": timedelta(days=7),
    "2w": timedelta(weeks=2),
    "45s": timedelta(seconds=45),
    "1h30m": timedelta(minutes=90),
    "90 minutes": timedelta(minutes=90),
    "3 days ago": timedelta(days=3),
    "an hour ago": timedelta(hours=1),
    "a week ago": timedelta(days=7),
    "last 2 weeks": timedelta(weeks=2),
    "the last 24 hours": timedelta(days=1),
    "2 hours and 5 minutes ago": timedelta(minutes=125),
    "last week": timedelta(days=7),
    "last month": timedelta(days=30),
    "now": timedelta(),
    " Yesterday ": timedelta(hours=36.5),
    "today": timedelta(hours=12.5),
    "TODAY": timedelta(hours=12.5),
    "monday": timedelta(days=2, hours=12.5),
    "last wednesday": timedelta(days=7, hours=12.5),
    "2026-03-01": timedelta(days=3, hours=12.5),
    "2026-03-04T10:30": timedelta(hours=2),
    "2026-03-04 10:30:00": timedelta(hours=2),
    "2026-03-04T10:30:00Z": timedelta(hours=2),
    "2026-03-04T12:30+02:00": timedelta(hours=2),
    "20260301": timedelta(days=3, hours=12.5),
}


@pytest.mark.parametrize("text", SPELLINGS)
def test_a_moment_is_understood(text):
    assert NOW - moment(text, NOW) == SPELLINGS[text]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "soon",
        "tomorrow",
        "7",
        "7x",
        "-3d",
        "3 fortnights ago",
        "2027-01-01",
        "2026-13-01",
        "2026-02-30",
        "99999999d",
        "999999w",
        "in 3 days",
        "ago",
        "last",
        "1h 30",
        "0x7d",
        "nan",
    ],
)
def test_what_is_no_moment_is_refused_with_the_forms(text):
    with pytest.raises(argparse.ArgumentTypeError, match=r"write 90m, 36h, 7d, 2w, yesterday"):
        moment(text, NOW)


TIMES = [(name, a) for name, a in OPTIONS if a.option_strings[0].endswith("since")]


def test_there_are_options_for_times():
    assert {(name, a.option_strings[0]) for name, a in TIMES} == {
        ("audit", "--since"),
        ("backtest", "--since"),
        ("costs", "--since"),
        ("jobs", "--since"),
        ("costs", "--since"),
        ("decisions", "--since"),
        ("models", "--deployed-since"),
        ("windows", "--since"),
    }


@pytest.mark.parametrize(("name", "action"), [each for each in TIMES if each[0] != "windows"])
def test_every_time_option_takes_every_spelling(name, action, capsys):
    option = action.option_strings[0]
    for text in SPELLINGS:
        told = cli.parser().parse_args([name, *needed(name), f"{option}={text}"])
        assert getattr(told, action.dest).tzinfo is UTC
    assert "is no time: write" in refused([name, *needed(name), f"{option}=soon"], capsys)


def test_the_windows_take_every_spelling_and_their_own_names():
    from upswing.cli.rewards import _first_window

    for text in SPELLINGS:
        assert re.match(r"\d{4}-\d\d-\d\d", _first_window(text, []))
    assert _first_window("2026-01-15T10:00", []) == "2026-01-15T10:00"
    assert _first_window(None, []) == ""
    with pytest.raises(argparse.ArgumentTypeError):
        _first_window("garbage", [])


# ── names ────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("name", sorted(COMMANDS))
def test_a_command_that_is_mistyped_is_guessed(name, capsys):
    for slip in set(slips(name)) - set(COMMANDS):
        said = refused([slip], capsys)
        assert f"there is no command {slip!r}" in said
        assert f"`{name}`" in said
    assert "there is no command 'quux'." in refused(["quux"], capsys)


@pytest.mark.parametrize("name", sorted(set(COMMANDS) - {"serve"}))
def test_an_option_that_is_mistyped_is_guessed(name, capsys):
    options = [o for a in COMMANDS[name]._actions for o in a.option_strings if o.startswith("--")]
    for option in options:
        for slip in (option[:-2] + option[-1] + option[-2], option + "s"):
            if slip in options or any(other.startswith(slip) for other in options):
                continue
            said = refused([name, *needed(name), slip], capsys)
            assert f"there is no option {slip}" in said
            assert f"`{option}`" in said


def test_a_choice_that_is_mistyped_is_guessed(capsys):
    assert "did you mean `watch`?" in refused(["jobs", "wacth", "x"], capsys)
    assert "did you mean `grpo`" in refused(["train", "--algorithm", "gpro"], capsys)


@pytest.mark.parametrize("name", sorted(VARIABLES))
def test_a_variable_of_ours_that_is_misspelt_is_guessed(name):
    for slip in set(slips(name)) - VARIABLES:
        (said,) = unknown_variables({slip: "x"})
        assert said.startswith(f"{slip} is set, which nothing reads; did you mean ")
        assert f"`{name}`" in said or len(name) < 10
    assert unknown_variables({name: "x"}) == []


def test_variables_of_others_are_left_alone():
    theirs = (
        "HOME",
        "PATH",
        "LANG",
        "DATABASE_HOST",
        "OPENAI_ORG_ID",
        "OPENAI_API_BASE",
        "NATS_USER",
        "AWS_REGION",
        "NODE_PATH",
        "MODEL",
        "HF_HOME",
        "WANDB_PROJECT",
        "REWARD_WEIGHT_STYLE",
        "CUDA_VISIBLE_DEVICES",
        "PYTHONPATH",
        "USER",
        "XDG_DATA_HOME",
        "UPSWING_BACKEND_KEY_GPU",
    )
    assert unknown_variables(dict.fromkeys(theirs, "x")) == []
    assert unknown_variables({"UPSWING_ZZZ": "x"}) == ["UPSWING_ZZZ is set, which nothing reads."]


def test_every_variable_that_is_read_is_known():
    """In the code a name of the environment stands in quotation marks."""
    examples = SOURCE / "cli" / "suggesting.py"
    beginnings = r"UPSWING|AGENTGYM_RL|AGENTZERO|RL|CANARY|ROLLBACK|TENSORZERO|TRAIN_RL|JUDGE"
    word = re.compile(rf'"((?:{beginnings})_[A-Z_]+[A-Z])"')
    found = {
        name
        for path in set(SOURCE.rglob("*.py")) - {examples}
        for name in word.findall(path.read_text())
    }
    streams = {
        "RL_TRAJECTORIES",
        "RL_REWARDS",
        "RL_TRAINING",
        "RL_MODELS",
        "RL_FEEDBACK",
        "RL_NOTICES",
        "RL_DEAD",
    }
    named_by_users = {name for name in found if name.startswith(PREFIX)}
    assert found - streams - named_by_users <= VARIABLES


def test_a_misspelt_variable_is_told_before_the_loop_starts(monkeypatch, capsys, tmp_path):
    monkeypatch.setenv("RL_ALGORITM", "grpo")
    monkeypatch.setenv("RL_BASE_MODEL", "no-such-model")
    assert cli.main(["up", "--data", str(tmp_path)]) == 1
    said = capsys.readouterr().err
    assert "RL_ALGORITM is set, which nothing reads; did you mean `RL_ALGORITHM`?" in said
    assert "The base model 'no-such-model' is not on this machine" in said
