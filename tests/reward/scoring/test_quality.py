"""Code quality: reports in every shape, code found, and code that bites."""

import math
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scoring_cases import trajectory, turn

from upswing.reward.core.code import MAX_BYTES, MAX_SNIPPETS, python_code
from upswing.reward.core.quality import LintReport, is_reported, quality_score

GOOD = {"linter_results": {"pylint": 9.0}}


@pytest.mark.parametrize(
    ("metadata", "score", "source"),
    [
        ({"linter_results": {"pylint": 9.0}}, 0.9, "linter"),
        ({"linter_results": {"pylint": {"score": 9.0}}}, 0.9, "linter"),
        ({"linter_results": {"score": 9.0, "max": 10}}, 0.9, "linter"),
        ({"linter_results": {"score": 4, "max": 5}}, 0.8, "linter"),
        ({"linter_results": 8}, 0.8, "linter"),
        ({"linter_results": {"pylint": -3.5}}, 0.0, "linter"),
        ({"linter_results": {"flake8": {"violations": 3, "lines": 60}}}, 0.95, "linter"),
        ({"linter_results": {"flake8": ["E501", "F401"]}}, 0.9, "linter"),
        ({"linter_results": {"pylint": 9.0, "flake8": 2}}, 0.9, "linter"),
        ({"test_results": {"passed": 3, "failed": 1}}, 0.75, "test_results"),
        ({"test_results": {"passed": 3, "total": 4}}, 0.75, "test_results"),
        ({"test_results": {"pass_rate": 0.5}}, 0.5, "test_results"),
        ({"security_scan": {"high": 1, "medium": 1, "low": 2}}, 0.2, "linter"),
        ({"security_scan": []}, 1.0, "linter"),
        ({"security_scan": {"results": [{"issue_severity": "HIGH"}]}}, 0.5, "linter"),
        ({**GOOD, "test_results": {"passed": 1, "failed": 1}}, 0.75, "linter"),
        ({**GOOD, "test_results": {"pass_rate": 1}, "security_scan": {"high": 0}}, 0.95, "linter"),
    ],
)
def test_the_table_of_reports(metadata, score, source):
    found = quality_score(trajectory(**metadata), None)
    assert (found.value, found.source) == (pytest.approx(score), source)
    assert is_reported(trajectory(**metadata))


@pytest.mark.parametrize(
    "metadata",
    [
        {},
        {"linter_results": {"pylint": math.nan}},
        {"linter_results": {"score": 9, "max": 0}},
        {"linter_results": "fine"},
        {"test_results": {"passed": 5, "total": 4}},
        {"test_results": {"passed": 0, "failed": 0}},
        {"test_results": {"pass_rate": 95}},
        {"test_results": {"passed": -1, "failed": 2}},
        {"security_scan": {"high": -1}},
        {"security_scan": {}},
    ],
)
def test_what_cannot_be_read_is_no_report(metadata):
    assert quality_score(trajectory(**metadata), None) is None
    assert not is_reported(trajectory(**metadata))


def test_our_own_linter_stands_in_only_when_nothing_is_reported():
    lint = LintReport(score=5.0, sentence="So so.", statements=9, security={"high": 1})
    assert quality_score(trajectory(), lint).value == pytest.approx((0.5 * 0.5 + 0.2 * 0.5) / 0.7)
    assert quality_score(trajectory(**GOOD), lint).value == 0.9
    assert quality_score(trajectory(), LintReport(score=None, sentence="No tools.")) is None
    noted = quality_score(trajectory(linter_results="?"), lint).reasoning
    assert "linter_results could not be read" in noted


json = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                [
                    "score",
                    "max",
                    "pylint",
                    "flake8",
                    "violations",
                    "lines",
                    "passed",
                    "failed",
                    "total",
                    "pass_rate",
                    "high",
                    "low",
                    "severity",
                    "findings",
                ]
            ),
            inner,
            max_size=4,
        )
    ),
)


@given(json, json, json)
def test_whatever_is_reported_the_score_is_in_range(linter, tests, security):
    told = {"linter_results": linter, "test_results": tests, "security_scan": security}
    found = quality_score(trajectory(**told), None)
    assert found is None or 0 <= found.value <= 1


# --- code found -------------------------------------------------------------------------------

CODE = "def f(x):\n    return x + 1"


@pytest.mark.parametrize(
    ("step", "found"),
    [
        (turn(raw_response=f"Here:\n```python\n{CODE}\n```\nDone."), [CODE]),
        (
            turn(
                raw_response=f"1. so\n   ```py\n   {CODE.replace(chr(10), chr(10) + '   ')}\n   ```"
            ),
            [CODE],
        ),
        (turn(raw_response=f"~~~python3\n{CODE}\n~~~"), [CODE]),
        (turn(raw_response=f"```\n{CODE}\n```"), []),
        (turn(raw_response=f"```js\n{CODE}\n```"), []),
        (turn(raw_response=f"```python\n{CODE}"), []),
        (turn(raw_response="```python\nthat was all of it\n```"), []),
        (turn(raw_response="```bash\nls\n```\n```python\nx = 1\n```"), ["x = 1"]),
        (turn(output=f"```python\n{CODE}\n```"), [CODE]),
        (turn(output={"code": CODE}), [CODE]),
        (turn(tool_name="python", tool_args={"code": "print(1)"}), ["print(1)"]),
        (turn(tool_name="run", tool_args={"code": CODE}), [CODE]),
        (turn(tool_name="run", tool_args={"code": "ls"}), []),
        (
            turn(tool_name="code_execution_tool", tool_args={"runtime": "python", "code": "f()"}),
            ["f()"],
        ),
        (
            turn(
                tool_name="code_execution_tool", tool_args={"runtime": "terminal", "code": "x = 1"}
            ),
            [],
        ),
        (turn(tool_name="write_file", tool_args={"path": "a/b.py", "content": CODE}), [CODE]),
        (turn(tool_name="write_file", tool_args={"path": "b.txt", "content": CODE}), []),
        (turn(tool_name="write_file", tool_args={"path": 3, "content": [CODE]}), []),
    ],
)
def test_where_python_is_found(step, found):
    assert [snippet.text for snippet in python_code(trajectory(step))] == found


def test_the_last_version_of_a_file_counts_and_the_same_code_counts_once():
    def write(text):
        return turn(tool_name="write", tool_args={"path": "a.py", "content": text})

    said = turn(raw_response="```python\ny = 2\n```")
    found = python_code(trajectory(write("x = 1"), said, dict(said), write("x = 3")))
    assert [(s.text, s.origin, s.statements) for s in found] == [
        ("y = 2", "turn 3", 1),
        ("x = 3", "turn 4", 1),
    ]


def test_what_is_taken_is_bounded_and_the_newest_stays():
    many = [turn(raw_response=f"```python\nx = {i}\n```") for i in range(50)]
    assert [s.text for s in python_code(trajectory(*many))] == [f"x = {i}" for i in range(30, 50)]
    long = [turn(raw_response=f"```python\nx = '{i}{'y' * 20_000}'\n```") for i in range(9)]
    taken = python_code(trajectory(*long))
    assert len(taken) == 3
    assert sum(len(s.text) for s in taken) <= MAX_BYTES
    assert MAX_SNIPPETS == 20


HOSTILE = {
    "parentheses": "(" * 30_000,
    "brackets": "[" * 90 + "]" * 90,
    "minus": "-" * 60_000 + "1",
    "plus": "1" + "+1" * 30_000,
    "calls": "a" + "()" * 30_000,
    "elif": "if x:\n a\n" + "elif x:\n a\n" * 5000,
    "lambda": "lambda:" * 8000 + "1",
    "null": "x = 1\0",
    "digits": "x = " + "9" * 60_000,
    "escape": "x = '\\d'",
    "huge": "x = 1\n" * 200_000,
}


@pytest.mark.parametrize("name", HOSTILE)
def test_code_that_bites_the_parser_is_not_code(name):
    started = time.process_time()
    step = turn(tool_name="python", tool_args={"code": HOSTILE[name]})
    found = python_code(trajectory(*(dict(step) for _ in range(20))))
    assert time.process_time() - started < 30, "it takes minutes of CPU where it grows faster"
    assert bool(found) == (name in ("brackets", "escape"))


def test_fences_without_end_take_no_longer_than_their_length():
    started = time.process_time()
    assert python_code(trajectory(turn(raw_response="```python\n" * 100_000))) == []
    assert time.process_time() - started < 30, "as above"


def test_nothing_is_ever_run(tmp_path):
    mark = tmp_path / "ran"
    code = f"open({str(mark)!r}, 'w').close()"
    assert python_code(trajectory(turn(tool_name="python", tool_args={"code": code})))
    assert not mark.exists()


@given(st.text() | st.text("`~pyth \n()=x1"))
def test_any_text_can_be_searched(text):
    step = turn(
        raw_response=text, output={"code": text}, tool_name="python", tool_args={"code": text}
    )
    assert all(s.statements > 0 for s in python_code(trajectory(step)))
