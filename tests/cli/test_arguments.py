"""What an option or a setting does not take is said by its own name, in one sentence."""

import pytest
from tests.support import cli

from upswing.cli import main, parser
from upswing.cli.training import warnings
from upswing.config import read_settings
from upswing.errors import Misuse


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["train", "--samples", "-1"], "--samples: give a whole number from 1 on, not '-1'"),
        (["train", "--epochs", "0"], "--epochs: give a whole number from 1 on"),
        (["train", "--batch-size", "many"], "--batch-size: give a whole number from 1 on"),
        (["train", "--learning-rate", "nan"], "--learning-rate: give a number above 0"),
        (["train", "--learning-rate", "-1"], "--learning-rate: give a number above 0"),
        (
            ["windows", "check", "--min-attempts", "-1"],
            "--min-attempts: give a whole number from 2",
        ),
        (["jobs", "--limit", "0"], "--limit: give a whole number from 1 to 1000"),
        (["up", "--port", "99999"], "--port: give a whole number from 0 to 65535"),
        (["learn-report", "--chart", "x.txt"], "--chart: x.txt is no picture"),
        (
            ["learn-report", "--chart", "/no/such/x.png"],
            "--chart: the folder /no/such does not exist",
        ),
    ],
)
def test_an_option_that_makes_no_sense_is_named(arguments, words, capsys):
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    assert ended.value.code == 2
    assert words in capsys.readouterr().err


@pytest.mark.live
def test_a_since_that_is_no_window_is_refused(data, start):
    start()
    done = cli("windows", "check", "--since", "garbage", data=data, check=False)
    assert done.returncode == 2
    assert b"--since takes a window such as 2026-01-15T10:00, or a time; 'garbage'" in done.stderr
    assert cli("windows", "check", "--since", "2026-01-15", data=data, check=False).returncode == 1
    bad = cli("train", "--recipe", "clip_hihg=1", data=data, check=False)
    assert b"--recipe clip_hihg: there is no such name; did you mean `clip_high`" in bad.stderr
    assert b"kl_budget" in bad.stderr, "all knobs are listed"
    odd = cli("train", "--recipe", "clip_high=x", data=data, check=False)
    assert b"--recipe clip_high: expected a number, not a text." in odd.stderr


def test_what_can_hardly_be_meant_gets_a_warning():
    odd = parser().parse_args(["train", "--learning-rate", "100", "--epochs", "100000"])
    assert [line.split(" is taken")[0] for line in warnings(odd)] == [
        "--learning-rate 100",
        "--epochs 100000",
    ]
    assert (
        warnings(parser().parse_args(["train", "--learning-rate", "1e-4", "--epochs", "3"])) == []
    )


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[train]\nalgorithm = 'foo'", "[train] algorithm: 'foo' is none of dpo, grpo, kto, ppo, "),
        (
            "[train]\nmin_agent = 3",
            "[train] min_agent: there is no such name; did you mean `min_agents`",
        ),
        ("[trian]\nmin_agents = 3", "[trian]: there is no such name; did you mean `train`"),
        ("[train]\nmin_agents = 0", "[train] min_agents: expected a whole number of at least 1."),
        (
            "[gateway]\nexplore = {share = 2}",
            "[gateway] explore.share: expected a number of at most 1.",
        ),
        ("[train]\nworkers = 'x'", "[train] workers: expected a whole number, not a text."),
        ("[[redact.rules]]\npattern = 'x'", "`name` is missing"),
        ("[serve]\nengine = 'steam'", "[serve] engine: 'steam' is none of auto, llama, torch."),
    ],
)
def test_a_setting_is_named_as_it_stands_in_the_file(tmp_path, text, words):
    (tmp_path / "upswing.toml").write_text(text)
    with pytest.raises(Misuse) as refused:
        read_settings(tmp_path, {})
    assert words in str(refused.value)
    assert "$" not in str(refused.value)
