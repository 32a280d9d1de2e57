"""An Inspect AI task as a suite, with the real package where it is installed."""

import gc
import importlib.util
from datetime import UTC, datetime

import pytest

from upswing.contracts.validation import TaskAnswer, ToolCall
from upswing.errors import Misuse
from upswing.validate.core.moves import InfraError
from upswing.validate.core.report import ValidationRun
from upswing.validate.core.verdict import ValidationPolicy
from upswing.validate.sample_score_store import MemorySampleScores
from upswing.validate.suite_loader import load_suites
from upswing.validate.validator import ModelClients, Validator

INSTALLED = importlib.util.find_spec("inspect_ai") is not None
installed = pytest.mark.skipif(not INSTALLED, reason="inspect-ai is not installed")
pytestmark = [
    pytest.mark.live,
    pytest.mark.filterwarnings("ignore::ResourceWarning"),  # Inspect leaves streams open
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),  # the same
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),  # of its dependencies
]
TASKS = '''
from inspect_ai import Task, task
from inspect_ai.dataset import Sample
from inspect_ai.scorer import match
from inspect_ai.solver import generate, use_tools
from inspect_ai.tool import tool

@tool
def add():
    async def execute(x: int, y: int) -> str:
        """Add two numbers.

        Args:
            x: One number.
            y: The other one.
        """
        return str(x + y)
    return execute

SAMPLES = [Sample(id=f"s{i}", input=f"{i}+{i}", target=str(2 * i)) for i in range(10)]

@task
def sums():
    return Task(dataset=SAMPLES, solver=generate(), scorer=match())

@task
def tools():
    return Task(dataset=SAMPLES[:2], solver=[use_tools(add()), generate()], scorer=match())
'''


@pytest.fixture(autouse=True)
def tidy():
    """What Inspect leaves is collected here, where its warnings are expected."""
    yield
    gc.collect()


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "tasks.py"
    path.write_text(TASKS)
    return path


async def scripted(model, messages, *, seed, max_tokens, tools=()):
    """A double that can add; the worse one stops at three."""
    if model == "away":
        raise InfraError("The backend is away.")
    question = next(m["content"] for m in messages if m["role"] == "user")
    x = int(question.partition("+")[0])
    if tools and messages[-1]["role"] == "user":
        assert tools[0]["function"]["parameters"]["required"] == ["x", "y"]
        return TaskAnswer("", (ToolCall("add", f'{{"x": {x}, "y": {x}}}', "c1"),))
    if tools:
        assert messages[-1] == {"role": "tool", "tool_call_id": "c1", "content": str(2 * x)}
        return TaskAnswer(messages[-1]["content"])
    return TaskAnswer(str(2 * x if model == "good" or x < 3 else 0))


async def validated(suite, candidate, current):
    validator = Validator(
        ModelClients(scripted), MemorySampleScores(), clock=lambda: datetime(2025, 1, 1, tzinfo=UTC)
    )
    return await validator.run(
        ValidationRun("r", candidate, current), [suite], ValidationPolicy(needs_safety=False)
    )


@pytest.mark.skipif(INSTALLED, reason="inspect-ai is installed")
async def test_without_the_package_a_sentence_says_what_to_install():
    with pytest.raises(Misuse, match="inspect:gaia needs Inspect AI: pip install inspect-ai"):
        await load_suites(["inspect:gaia"])


@installed
async def test_inspect_plays_and_scores_and_our_port_answers(file):
    (suite,) = await load_suites([f"inspect:{file}@sums"])
    assert suite.task_ids == tuple(f"s{i}" for i in range(10))
    report = await validated(suite, "good", "worse")
    assert (report.suites[0].candidate, report.suites[0].current) == (1.0, 0.3)
    assert report.suites[0].done == 10


@installed
async def test_a_limit_takes_the_first_samples(file):
    (suite,) = await load_suites([f"inspect:{file}@sums"], inspect_limit=2)
    assert suite.task_ids == ("s0", "s1")


@installed
async def test_tools_of_a_task_are_offered_and_called(file):
    (suite,) = await load_suites([f"inspect:{file}@tools"])
    assert (await validated(suite, "good", "good")).suites[0].candidate == 1.0


@installed
async def test_a_backend_that_is_away_is_not_a_zero(file):
    (suite,) = await load_suites([f"inspect:{file}@sums"], inspect_limit=2)
    report = await validated(suite, "away", "good")
    assert report.suites[0].spoiled == {"candidate": 2, "current": 0}
    assert report.verdict == "inconclusive"


@installed
@pytest.mark.parametrize("name", ["nothing.py@sums", "tasks.py@nothing"])
async def test_a_task_that_is_not_there_is_a_sentence(file, name):
    with pytest.raises(Misuse, match="Inspect"):
        await load_suites([f"inspect:{file.parent / name}"])
