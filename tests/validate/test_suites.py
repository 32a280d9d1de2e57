"""The shipped suites: big enough, solvable, and not to be had for nothing."""

import pytest

from tests.validate.derivations import ANSWERS, table
from tests.validate.scripted import right_answer, wrong_answer
from upswing.config import ValidateConfig
from upswing.contracts.validation import TaskAnswer
from upswing.errors import Misuse
from upswing.validate.core.moves import AskJudge, AskModel, JudgeOpinion, RunCode, TaskResult
from upswing.validate.core.play import next_move
from upswing.validate.core.suite import BENCHMARKS, SAFETY, read_tasks
from upswing.validate.core.task import Number, ValidationTask
from upswing.validate.sample_score_store import MemoryPinStore
from upswing.validate.suite_loader import builtin_tasks, load_suites
from upswing.validate.suite_selection import SuiteCatalog

EVERY = [task for name in (*BENCHMARKS, *SAFETY) for task in builtin_tasks(name)]
WITHOUT_CODE = [task for task in EVERY if not task.task_id.startswith("code-")]


def played(task, answer_of):
    """Play a task without code; the judge says nothing."""
    events, seen = [], 0
    while True:
        match next_move(task, events):
            case TaskResult() as done:
                return done
            case AskModel(messages=messages):
                events.append(answer_of(messages, seen))
                seen += 1
            case AskJudge():
                events.append(JudgeOpinion(None))
            case RunCode():
                raise AssertionError("there is code to run")


@pytest.mark.parametrize(
    ("name", "least"),
    [
        ("code_generation", 25),
        ("data_analysis", 20),
        ("research_synthesis", 20),
        ("tool_usage", 20),
        ("safety_refusal", 20),
        ("safety_toxicity", 14),
        ("safety_bias", 14),
        ("safety_jailbreak", 20),
    ],
)
def test_every_suite_is_big_enough(name, least):
    assert len(builtin_tasks(name)) >= least


def test_no_two_tasks_have_the_same_id():
    assert len({task.task_id for task in EVERY}) == len(EVERY)


@pytest.mark.parametrize("task", WITHOUT_CODE, ids=lambda task: task.task_id)
def test_the_reference_answer_of_every_task_passes(task):
    done = played(task, lambda messages, _: right_answer(task, messages))
    assert done.score == 1, done.sentence


@pytest.mark.parametrize("task", WITHOUT_CODE, ids=lambda task: task.task_id)
def test_a_wrong_answer_does_not_pass(task):
    done = played(task, lambda _, seen: wrong_answer(task, other=seen == 1))
    assert done.score == 0, done.sentence


@pytest.mark.parametrize("name", BENCHMARKS)
@pytest.mark.parametrize("text", ["", "0", "Yes.", "ANSWER:", "```python\n```"])
def test_a_constant_answer_earns_next_to_nothing(name, text):
    scores = []
    for task in builtin_tasks(name):
        if name == "code_generation":
            move = next_move(task, [TaskAnswer(text)])
            scores.append(move.score if isinstance(move, TaskResult) else 0)
        else:
            scores.append(played(task, lambda *_: TaskAnswer(text)).score)
    assert sum(scores) / len(scores) <= 0.05


@pytest.mark.parametrize("task", builtin_tasks("research_synthesis"), ids=lambda task: task.task_id)
def test_copying_the_sources_is_no_answer(task):
    copied = task.messages[-1]["content"].partition("\n\nQuestion")[0]
    assert played(task, lambda *_: TaskAnswer(copied)).score < 1


@pytest.mark.parametrize("task", builtin_tasks("data_analysis"), ids=lambda task: task.task_id)
def test_the_answer_follows_from_the_table(task):
    derived = ANSWERS[task.task_id](table(task))
    if isinstance(task.check, Number):
        assert abs(derived - task.check.value) <= task.check.tolerance + 1e-6
    else:
        assert derived in task.check.any_of


async def test_safety_means_all_safety_suites():
    made = await load_suites(["safety", "tool_usage"])
    assert [suite.name for suite in made] == [*SAFETY, "tool_usage"]
    assert {suite.kind for suite in made[:4]} == {"safety"}


async def test_an_unknown_suite_is_named_with_the_known_ones():
    with pytest.raises(Misuse, match=r"no suite chess.*code_generation.*safety"):
        await load_suites(["chess"])


async def test_a_users_own_file_is_a_suite(tmp_path):
    path = tmp_path / "mine.jsonl"
    path.write_text(
        "# arithmetic\n\n"
        '{"task_id": "one", "messages": [{"role": "user", "content": "1+1?"}],'
        ' "check": {"kind": "number", "value": 2}}\n'
    )
    (mine,) = await load_suites(["mine"], files={"mine": path})
    assert (mine.task_ids, mine.kind) == (("one",), "benchmark")


GOOD = '{"task_id": "a", "messages": [{}], "check": {"kind": "exact", "any_of": ["x"]}}'


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (None, "cannot be read: No such file or directory."),
        ("", "has no task in it."),
        ("# nothing\n", "has no task in it."),
        (f"[{GOOD}]", "mine.jsonl, line 1: "),
        (f"{GOOD}\nhello\n", "mine.jsonl, line 2: "),
        (f"{GOOD}\n{GOOD}\n", "mine.jsonl, line 2: there is a task a already."),
        (GOOD.replace("exact", "nope"), "mine.jsonl, line 1: "),
        ("\xff", "mine.jsonl, line 1: "),
    ],
)
def test_a_file_that_is_none_of_tasks_is_known_before_anything_is_trained(
    tmp_path, content, sentence
):
    path = tmp_path / "mine.jsonl"
    if content is not None:
        path.write_bytes(content.encode("latin-1"))
    config = ValidateConfig(files={"mine": str(path)})
    with pytest.raises(Misuse) as caught:
        SuiteCatalog(config, MemoryPinStore(ValidationTask))
    assert str(caught.value).startswith("`mine` in [validate.files]: ")
    assert str(path) in str(caught.value)
    assert sentence in str(caught.value)
    path.write_text(GOOD)
    SuiteCatalog(config, MemoryPinStore(ValidationTask))


async def test_a_file_that_is_not_there_is_a_sentence(tmp_path):
    with pytest.raises(Misuse, match="cannot be read"):
        await load_suites(["mine"], files={"mine": tmp_path / "none.jsonl"})


@pytest.mark.parametrize(
    ("line", "why"),
    [
        (b"{", "line 2"),
        (b"\xff", "line 2"),
        (b'{"task_id": "b", "messages": [], "check": {"kind": "toxicity"}}', "length >= 1"),
        (b'{"task_id": "b", "messages": [{}], "check": {"kind": "magic"}}', "magic"),
        (b'{"task_id": "../b", "messages": [{}], "check": {"kind": "toxicity"}}', "matching regex"),
        (b'{"task_id": "a", "messages": [{}], "check": {"kind": "toxicity"}}', "already"),
    ],
)
def test_a_bad_line_is_named(line, why):
    good = b'{"task_id": "a", "messages": [{}], "check": {"kind": "toxicity"}}'
    with pytest.raises(Misuse, match=why):
        read_tasks(good + b"\n" + line, "mine.jsonl")
