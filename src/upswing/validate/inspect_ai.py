"""How does an Inspect AI task become a suite? Inspect plays and scores; our port answers.

`inspect:inspect_evals/gaia` or `inspect:my_tasks.py@my_task`, whatever `inspect eval` takes. The
package is an extra (`pip install inspect-ai`) and is imported when somebody names such a suite.

| in Inspect                  | here                                                            |
|-----------------------------|-----------------------------------------------------------------|
| a sample                    | a task                                                          |
| the first scorer's value    | the score; C, P and I are 1, 0.5 and 0; a dict is its mean      |
| an error, a missing score   | spoiled by the infrastructure, as it says nothing of the model  |
| a model that is asked       | our port, with the run's seed; text and tool calls only         |

Samples go in chunks, the two models in turns, because Inspect runs one evaluation at a time in a
process. It runs in a thread with an event loop of its own. What a task does there (Docker, files,
the network) is the task's affair: run only tasks that you trust.
"""

from __future__ import annotations

import asyncio
import contextlib
import importlib
import importlib.util
import tempfile
import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import CancelledError
from dataclasses import dataclass
from functools import cache
from typing import Any, TypeVar

import msgspec

from upswing.contracts.typed import from_json
from upswing.contracts.validation import TaskAnswer
from upswing.errors import Misuse, UpswingError
from upswing.validate.core.moves import AskModelFn, InfraError, Message, TaskResult
from upswing.validate.core.suite import TaskSuite

R = TypeVar("R")
SAMPLES_PER_CHUNK = 8
_ONE_AT_A_TIME = threading.Lock()
_MAX_TOKENS = 1024
"""For tasks that set no limit of their own."""


async def make_inspect_suite(
    name: str, *, limit: int | None = None, chunk: int = SAMPLES_PER_CHUNK
) -> TaskSuite:
    """The samples of an Inspect task, or the first `limit` of them."""
    if importlib.util.find_spec("inspect_ai") is None:
        raise Misuse(f"The suite inspect:{name} needs Inspect AI: pip install inspect-ai.")
    ids = await asyncio.to_thread(_sample_ids, name, limit)
    known = {str(each): each for each in ids}
    return TaskSuite(
        f"inspect:{name}",
        "benchmark",
        external_task_ids=tuple(known),
        run_external=_InspectRunner(name, known),
        chunk=chunk,
    )


@dataclass(frozen=True, slots=True)
class _InspectRunner:
    name: str
    ids: Mapping[str, str | int]

    async def __call__(
        self, task_ids: Sequence[str], model: str, seed: int, ask: AskModelFn
    ) -> dict[str, TaskResult | InfraError]:
        loop = asyncio.get_running_loop()
        over = threading.Event()

        def ask_model(messages: list[Message], tools: list[Message], max_tokens: int) -> TaskAnswer:
            """Called in Inspect's thread; the answer comes from ours."""
            if over.is_set():
                raise InfraError("The validation has ended.")
            coming = asyncio.run_coroutine_threadsafe(
                _ask_with_keywords(ask, model, messages, seed, max_tokens, tools), loop
            )
            return coming.result()

        samples = [self.ids[task_id] for task_id in task_ids]
        try:
            return await asyncio.to_thread(_evaluate, self.name, samples, model, seed, ask_model)
        finally:
            over.set()  # a thread cannot be stopped, but it gets no more answers


async def _ask_with_keywords(
    ask: AskModelFn,
    model: str,
    messages: Sequence[Message],
    seed: int,
    max_tokens: int,
    tools: Sequence[Message],
) -> TaskAnswer:
    return await ask(model, messages, seed=seed, max_tokens=max_tokens, tools=tools)


def _inspect_module(module: str = "") -> Any:
    """A module of Inspect's, when it is needed: an extra, and heavy."""
    return importlib.import_module(f"inspect_ai.{module}".rstrip("."))


def _sample_ids(name: str, limit: int | None) -> list[str | int]:
    def ids(log: Any) -> list[str | int]:
        if log.eval.dataset.sample_ids is None:
            raise Misuse(f"Inspect does not say which samples {name} has.")
        return list(log.eval.dataset.sample_ids)[:limit]

    return _run_evaluation(name, ids, run_samples=False, score=False, model=None, limit=limit)


def _evaluate(
    name: str, samples: Sequence[str | int], model: str, seed: int, ask_model: Any
) -> dict[str, TaskResult | InfraError]:
    def results(log: Any) -> dict[str, TaskResult | InfraError]:
        why = log.error.message if log.error else "Inspect gave no score."
        came: dict[str, TaskResult | InfraError] = {str(each): InfraError(why) for each in samples}
        for sample in log.samples or ():
            came[str(sample.id)] = _task_result(sample)
        return came

    try:
        return _run_evaluation(
            name,
            results,
            sample_id=list(samples),
            model=_inspect_model(model, ask_model),
            seed=seed,
        )
    except UpswingError as error:
        return {str(each): InfraError(str(error)) for each in samples}


def _run_evaluation(name: str, read: Callable[[Any], R], **options: Any) -> R:
    """One evaluation, and what is read from its log while that is there.

    Whatever Inspect raises becomes a sentence.
    """
    eval_async = _inspect_module().eval_async
    _silence_display()
    with _ONE_AT_A_TIME, tempfile.TemporaryDirectory(prefix="upswing-inspect-") as folder:
        settings = {"log_dir": folder, "epochs": 1, "fail_on_error": False, "log_level": "warning"}
        try:
            logs = asyncio.run(eval_async(name, **settings, **options))
            if logs:
                return read(logs[0])
        except UpswingError:
            raise
        except Exception as error:  # noqa: BLE001 - a task is foreign code: it may raise anything
            description = f"{type(error).__name__}: {error}"
            raise Misuse(f"Inspect cannot run {name}: {description[:400]}.") from None
    raise Misuse(f"Inspect knows no task {name}.")


def _silence_display() -> None:
    """No tables on our terminal; an Inspect that has no such switch any more prints them."""
    with contextlib.suppress(ImportError, AttributeError):
        _inspect_module("util._display").init_display_type("none")


def _task_result(sample: Any) -> TaskResult | InfraError:
    if sample.error is not None:
        return InfraError(str(sample.error.message)[:300])
    if not sample.scores:
        return InfraError("Inspect gave no score.")
    score = next(iter(sample.scores.values()))
    to_float = _inspect_module("scorer").value_to_float()
    parts = list(score.value.values()) if isinstance(score.value, dict) else [score.value]
    values = [to_float(part) for part in parts]
    explanation = score.explanation or f"Inspect scores {score.value!r}."
    return TaskResult(sum(values) / max(1, len(values)), " ".join(str(explanation).split())[:300])


def _inspect_model(name: str, ask_model: Any) -> Any:
    """Our port as a model of Inspect's."""
    _register_provider()
    model = _inspect_module("model").get_model(f"upswing/{name}", memoize=False)
    model.api.ask_model = ask_model
    return model


@cache
def _register_provider() -> None:
    """Inspect knows providers by name."""
    inspect = _inspect_module("model")

    class Ported(inspect.ModelAPI):  # type: ignore[misc, name-defined] # the extra has no type here
        ask_model: Any

        async def generate(self, input: Any, tools: Any, tool_choice: Any, config: Any) -> Any:  # noqa: A002, ARG002 - Inspect's names
            max_tokens = config.max_tokens or _MAX_TOKENS
            messages, offered = [*map(_chat_message, input)], [*map(_tool_schema, tools)]
            try:
                answer = await asyncio.to_thread(self.ask_model, messages, offered, max_tokens)
            except CancelledError as error:
                raise InfraError("The validation has ended.") from error
            return _model_output(self.model_name, answer)

    inspect.modelapi(name="upswing")(Ported)


def _model_output(name: str, answer: TaskAnswer) -> Any:
    inspect, tool_call = _inspect_module("model"), _inspect_module("tool").ToolCall
    calls = [
        tool_call(id=call.call_id or f"call_{index}", function=call.name, arguments=arguments)
        for index, call in enumerate(answer.tool_calls)
        if (arguments := _arguments(call.arguments)) is not None
    ]
    message = inspect.ChatMessageAssistant(
        content=answer.text, tool_calls=calls or None, source="generate"
    )
    stop = "tool_calls" if calls else "stop"
    choice = inspect.ChatCompletionChoice(message=message, stop_reason=stop)
    return inspect.ModelOutput(model=name, choices=[choice])


def _chat_message(message: Any) -> dict[str, Any]:
    """In the shape of chat completions; images and the like are left out."""
    converted: dict[str, Any] = {"role": message.role, "content": message.text}
    if getattr(message, "tool_call_id", None):
        converted["tool_call_id"] = message.tool_call_id
    if getattr(message, "tool_calls", None):
        converted["tool_calls"] = [
            {
                "id": call.id,
                "type": "function",
                "function": {
                    "name": call.function,
                    "arguments": msgspec.json.encode(call.arguments).decode(),
                },
            }
            for call in message.tool_calls
        ]
    return converted


def _tool_schema(tool: Any) -> dict[str, Any]:
    function = {
        "name": tool.name,
        "description": tool.description,
        "parameters": tool.parameters.model_dump(exclude_none=True),
    }
    return {"type": "function", "function": function}


def _arguments(raw: str) -> dict[str, Any] | None:
    try:
        return from_json(raw or "{}", dict[str, Any])
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
