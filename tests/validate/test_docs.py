"""The examples of docs/validating.md run, and its tables are true."""

import doctest
import re
from pathlib import Path

from upswing.cli.validation import EXITS
from upswing.config import ValidateConfig
from upswing.validate.core.suite import BENCHMARKS, SAFETY
from upswing.validate.core.verdict import ValidationPolicy
from upswing.validate.suite_loader import builtin_tasks

PAGE = Path(__file__).parents[2] / "docs" / "validating.md"


def test_the_examples_of_the_guide_run():
    done = doctest.testfile(str(PAGE), module_relative=False, encoding="utf-8")
    assert done.attempted > 15
    assert done.failed == 0


def test_the_table_of_suites_counts_right():
    told = dict(re.findall(r"^\| `(\w+)` \| (\d+) \|", PAGE.read_text(), re.MULTILINE))
    assert told == {name: str(len(builtin_tasks(name))) for name in (*BENCHMARKS, *SAFETY)}


def test_the_table_of_settings_has_them_all():
    told = dict(
        re.findall(r"^\| `(\w+)` \| ([\d.]+|\D[^|]*?) \| [^|]*\|$", PAGE.read_text(), re.MULTILINE)
    )
    policy = ValidationPolicy()
    for name in ValidationPolicy.__slots__:
        value = getattr(policy, name)
        assert name in told
        assert not isinstance(value, float) or f"{value:.2f}" == told[name]


def test_the_table_of_the_config_has_every_setting_with_its_default():
    settings = PAGE.read_text().partition("## Settings")[2].partition("## Suites")[0]
    told = dict(re.findall(r"^\| `(\w+)` \| ([^|]*?) \|", settings, re.MULTILINE))
    assert list(told) == list(ValidateConfig.__struct_fields__)
    usual = ValidateConfig()
    for name, value in told.items():
        if value.strip("`").replace(".", "").isdigit():
            assert value.strip("`") == str(getattr(usual, name))


def test_the_table_of_exit_codes_is_the_commands():
    told = dict(re.findall(r"^\| (\d) \| `(\w+)`", PAGE.read_text(), re.MULTILINE))
    assert {word: int(code) for code, word in told.items()} == EXITS
