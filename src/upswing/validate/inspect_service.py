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
from upswing.contracts.validation import Answer
from upswing.errors import Misuse, UpswingError
from upswing.validate.moves import Ask, Done, InfraError, Message
from upswing.validate.suite import Suite

R = TypeVar("R")
CHUNK = 8
_ONE_AT_A_TIME = threading.Lock()
_MAX_TOKENS = 1024
"""For tasks that set no limit of their own."""


async def suite_of_inspect(name: str, *, limit: int | None = None, chunk: int = CHUNK) -> Suite:
    """The samples of an Inspect task, or the first `limit` of them."""
    if importlib.util.find_spec("inspect_ai") is None:
        raise Misuse(f"The suite inspect:{name} needs Inspect AI: pip install inspect-ai.")
    ids = await asyncio.to_thread(_sample_ids, name, limit)
    known = {str(each): each for each in ids}
    return Suite(
        f"inspect:{name}", "benchmark", foreign=tuple(known), perform=_Performs(name, known), chunk=chunk
    )  # fmt: skip


@dataclass(frozen=True, slots=True)
class _Performs:
    name: str
    ids: Mapping[str, str | int]

    async def __call__(
        self, task_ids: Sequence[str], model: str, seed: int, ask: Ask
    ) -> dict[str, Done | InfraError]:
        loop = asyncio.get_running_loop()
        over = threading.Event()

        def asked(messages: list[Message], tools: list[Message], most: int) -> Answer:
            """Called in Inspect's thread; the answer comes from ours."""
            if over.is_set():
                raise InfraError("The validation has ended.")
            coming = asyncio.run_coroutine_threadsafe(
                _answer(ask, model, messages, seed, most, tools), loop
            )
            return coming.result()

        samples = [self.ids[task_id] for task_id in task_ids]
        try:
            return await asyncio.to_thread(_evaluate, self.name, samples, model, seed, asked)
        finally:
            over.set()  # a thread cannot be stopped, but it gets no more answers


async def _answer(
    ask: Ask,
    model: str,
    messages: Sequence[Message],
    seed: int,
    most: int,
    tools: Sequence[Message],
) -> Answer:
    return await ask(model, messages, seed=seed, max_tokens=most, tools=tools)


def _inspect(module: str = "") -> Any:
    """A module of Inspect's, when it is needed: an extra, and heavy."""
    return importlib.import_module(f"inspect_ai.{module}".rstrip("."))


def _sample_ids(name: str, limit: int | None) -> list[str | int]:
    def ids(log: Any) -> list[str | int]:
        if log.eval.dataset.sample_ids is None:
            raise Misuse(f"Inspect does not say which samples {name} has.")
        return list(log.eval.dataset.sample_ids)[:limit]

    return _run(name, ids, run_samples=False, score=False, model=None, limit=limit)


def _evaluate(
    name: str, samples: Sequence[str | int], model: str, seed: int, asked: Any
) -> dict[str, Done | InfraError]:
    def results(log: Any) -> dict[str, Done | InfraError]:
        why = log.error.message if log.error else "Inspect gave no score."
        came: dict[str, Done | InfraError] = {str(each): InfraError(why) for each in samples}
        for sample in log.samples or ():
            came[str(sample.id)] = _done(sample)
        return came

    try:
        return _run(name, results, sample_id=list(samples), model=_model(model, asked), seed=seed)
    except UpswingError as error:
        return {str(each): InfraError(str(error)) for each in samples}


def _run(name: str, read: Callable[[Any], R], **options: Any) -> R:
    """One evaluation, and what is read from its log while that is there.

    Whatever Inspect raises becomes a sentence.
    """
    eval_async = _inspect().eval_async
    _be_quiet()
    with _ONE_AT_A_TIME, tempfile.TemporaryDirectory(prefix="upswing-inspect-") as folder:
        settings = {"log_dir": folder, "epochs": 1, "fail_on_error": False, "log_level": "warning"}
        try:
            logs = asyncio.run(eval_async(name, **settings, **options))
            if logs:
                return read(logs[0])
        except UpswingError:
            raise
        except Exception as error:  # noqa: BLE001 - a task is foreign code: it may raise anything
            said = f"{type(error).__name__}: {error}"
            raise Misuse(f"Inspect cannot run {name}: {said[:400]}.") from None
    raise Misuse(f"Inspect knows no task {name}.")


def _be_quiet() -> None:
    """No tables on our terminal; an Inspect that has no such switch any more prints them."""
    with contextlib.suppress(ImportError, AttributeError):
        _inspect("util._display").init_display_type("none")


def _done(sample: Any) -> Done | InfraError:
    if sample.error is not None:
        return InfraError(str(sample.error.message)[:300])
    if not sample.scores:
        return InfraError("Inspect gave no score.")
    score = next(iter(sample.scores.values()))
    to_float = _inspect("scorer").value_to_float()
    parts = list(score.value.values()) if isinstance(score.value, dict) else [score.value]
    values = [to_float(part) for part in parts]
    told = score.explanation or f"Inspect scores {score.value!r}."
    return Done(sum(values) / max(1, len(values)), " ".join(str(told).split())[:300])


def _model(name: str, asked: Any) -> Any:
    """Our port as a model of Inspect's."""
    _register()
    model = _inspect("model").get_model(f"upswing/{name}", memoize=False)
    model.api.asked = asked
    return model


@cache
def _register() -> None:
    """Inspect knows providers by name."""
    inspect = _inspect("model")

    class Ported(inspect.ModelAPI):  # type: ignore[misc, name-defined] # the extra has no type here
        asked: Any

        async def generate(self, input: Any, tools: Any, tool_choice: Any, config: Any) -> Any:  # noqa: A002, ARG002 - Inspect's names
            most = config.max_tokens or _MAX_TOKENS
            messages, offered = [*map(_message, input)], [*map(_tool, tools)]
            try:
                answer = await asyncio.to_thread(self.asked, messages, offered, most)
            except CancelledError as error:
                raise InfraError("The validation has ended.") from error
            return _output(self.model_name, answer)

    inspect.modelapi(name="upswing")(Ported)


def _output(name: str, answer: Answer) -> Any:
    inspect, tool_call = _inspect("model"), _inspect("tool").ToolCall
    calls = [
        tool_call(id=call.call_id or f"call_{place}", function=call.name, arguments=arguments)
        for place, call in enumerate(answer.tool_calls)
        if (arguments := _arguments(call.arguments)) is not None
    ]
    said = inspect.ChatMessageAssistant(
        content=answer.text, tool_calls=calls or None, source="generate"
    )
    stop = "tool_calls" if calls else "stop"
    choice = inspect.ChatCompletionChoice(message=said, stop_reason=stop)
    return inspect.ModelOutput(model=name, choices=[choice])


def _message(message: Any) -> dict[str, Any]:
    """In the shape of chat completions; images and the like are left out."""
    shaped: dict[str, Any] = {"role": message.role, "content": message.text}
    if getattr(message, "tool_call_id", None):
        shaped["tool_call_id"] = message.tool_call_id
    if getattr(message, "tool_calls", None):
        shaped["tool_calls"] = [
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
    return shaped


def _tool(tool: Any) -> dict[str, Any]:
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
