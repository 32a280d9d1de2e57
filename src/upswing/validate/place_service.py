"""How is a world behind HTTP a suite? Its tasks have numbers, and it keeps the state itself.

| the server                                     | then                                            |
|------------------------------------------------|-------------------------------------------------|
| tells how many tasks are held out, as ours do  | these, up to a limit                            |
| does not tell, as AgentGym's own do            | the tasks from number 100 on: test agents play  |
|                                                | those before                                    |
| is away, before or during a task               | the answer is spoiled, which is not the model's |
|                                                | fault; without any answer it is `inconclusive`  |

Nothing is cached of it: nobody can tell whether the server has changed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from upswing.errors import Misuse, Transient, UpswingError
from upswing.validate.moves import Ask, Done, InfraError, Message
from upswing.validate.player_service import seed_of
from upswing.validate.suite import Suite

UNTOLD_FROM, UNTOLD = 100, 50
"""Where a server that does not tell is measured, and in how many tasks."""
_TURNS = 64


class Visit(Protocol):
    """One attempt at one task."""

    @property
    def task(self) -> Any: ...
    @property
    def observation(self) -> Any: ...
    @property
    def outcome(self) -> Any: ...
    async def step(self, reply: str) -> None: ...
    async def close(self) -> None: ...


class Place(Protocol):
    """A world that somebody else runs."""

    async def about(self) -> Any: ...
    async def begin(self, number: int) -> Visit: ...


async def suite_of_place(name: str, place: Place, *, most: int, max_tokens: int = 64) -> Suite:
    """The held-out tasks of a server as the suite `world:NAME`; `Misuse` when it has none."""
    try:
        about = await place.about()
        first, count = int(about.training), int(about.held_out)
    except Misuse:
        first, count = UNTOLD_FROM, UNTOLD
    except UpswingError as error:
        return Suite(f"world:{name}", "benchmark", foreign=(f"{name}-away",), perform=_Away(str(error)), own=True)  # fmt: skip
    if count < 1:
        raise Misuse(f"The world {name} holds out no task to measure with.")
    numbers = {f"{name}-{number}": number for number in range(first, first + min(count, most))}
    return Suite(
        f"world:{name}", "benchmark", foreign=tuple(numbers),
        perform=_Visits(place, numbers, max_tokens), own=True,
    )  # fmt: skip


@dataclass(frozen=True, slots=True)
class _Away:
    why: str

    async def __call__(
        self, task_ids: Sequence[str], model: str, seed: int, ask: Ask
    ) -> dict[str, Done | InfraError]:
        del model, seed, ask
        return dict.fromkeys(task_ids, InfraError(self.why))


@dataclass(frozen=True, slots=True)
class _Visits:
    place: Place
    numbers: Mapping[str, int]
    max_tokens: int

    async def __call__(
        self, task_ids: Sequence[str], model: str, seed: int, ask: Ask
    ) -> dict[str, Done | InfraError]:
        return {each: await self._visited(self.numbers[each], model, seed, ask) for each in task_ids}  # fmt: skip

    async def _visited(self, number: int, model: str, seed: int, ask: Ask) -> Done | InfraError:
        try:
            visit = await self.place.begin(number)
        except UpswingError as error:
            return InfraError(str(error))
        try:
            return await self._played(visit, number, model, seed, ask)
        except UpswingError as error:
            return error if isinstance(error, InfraError) else InfraError(str(error))
        finally:
            await visit.close()

    async def _played(self, visit: Visit, number: int, model: str, seed: int, ask: Ask) -> Done:
        told = str(visit.task.instructions)
        messages: list[Message] = [{"role": "system", "content": told}] if told else []
        for turn in range(_TURNS):
            if visit.outcome is not None:
                break
            messages.append({"role": "user", "content": str(visit.observation.text)})
            chance = seed_of(str(number), seed, turn)
            answer = await ask(model, tuple(messages), seed=chance, max_tokens=self.max_tokens)
            messages.append({"role": "assistant", "content": answer.text})
            await visit.step(answer.text.strip())
        ended = visit.outcome
        if ended is None:
            return Done(0.0, f"The task was not over after {_TURNS} turns.")
        if ended.fault:
            raise Transient(str(ended.sentence))
        return Done(float(ended.score), str(ended.sentence))
