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

from upswing.errors import Misuse, Transient, UpswingError
from upswing.validate.core.moves import AskModelFn, InfraError, Message, TaskResult
from upswing.validate.core.suite import TaskSuite
from upswing.validate.player import answer_seed
from upswing.worlds.agentgym_client import AgentGymClient
from upswing.worlds.attempt import TaskAttempt

DEFAULT_FIRST_TASK, DEFAULT_TASKS = 100, 50
"""Where a server that does not tell is measured, and in how many tasks."""
_MAX_TURNS = 64


async def make_remote_world_suite(
    name: str, world: AgentGymClient, *, max_tasks: int, max_tokens: int = 64
) -> TaskSuite:
    """The held-out tasks of a server as the suite `world:NAME`; `Misuse` when it has none."""
    try:
        info = await world.world_info()
        first, count = int(info.training), int(info.held_out)
    except Misuse:
        first, count = DEFAULT_FIRST_TASK, DEFAULT_TASKS
    except UpswingError as error:
        return TaskSuite(
            f"world:{name}",
            "benchmark",
            external_task_ids=(f"{name}-away",),
            run_external=_UnreachableWorld(str(error)),
            own=True,
        )
    if count < 1:
        raise Misuse(f"The world {name} holds out no task to measure with.")
    numbers = {f"{name}-{number}": number for number in range(first, first + min(count, max_tasks))}
    return TaskSuite(
        f"world:{name}",
        "benchmark",
        external_task_ids=tuple(numbers),
        run_external=_RemoteWorldRunner(world, numbers, max_tokens),
        own=True,
    )


@dataclass(frozen=True, slots=True)
class _UnreachableWorld:
    reason: str

    async def __call__(
        self, task_ids: Sequence[str], model: str, seed: int, ask: AskModelFn
    ) -> dict[str, TaskResult | InfraError]:
        del model, seed, ask
        return dict.fromkeys(task_ids, InfraError(self.reason))


@dataclass(frozen=True, slots=True)
class _RemoteWorldRunner:
    world: AgentGymClient
    numbers: Mapping[str, int]
    max_tokens: int

    async def __call__(
        self, task_ids: Sequence[str], model: str, seed: int, ask: AskModelFn
    ) -> dict[str, TaskResult | InfraError]:
        return {
            each: await self._play_task(self.numbers[each], model, seed, ask) for each in task_ids
        }

    async def _play_task(
        self, number: int, model: str, seed: int, ask: AskModelFn
    ) -> TaskResult | InfraError:
        try:
            attempt = await self.world.begin(number)
        except UpswingError as error:
            return InfraError(str(error))
        try:
            return await self._play_turns(attempt, number, model, seed, ask)
        except UpswingError as error:
            return error if isinstance(error, InfraError) else InfraError(str(error))
        finally:
            await attempt.close()

    async def _play_turns(
        self, attempt: TaskAttempt, number: int, model: str, seed: int, ask: AskModelFn
    ) -> TaskResult:
        instructions = str(attempt.task.instructions)
        messages: list[Message] = (
            [{"role": "system", "content": instructions}] if instructions else []
        )
        for turn in range(_MAX_TURNS):
            if attempt.outcome is not None:
                break
            messages.append({"role": "user", "content": str(attempt.observation.text)})
            turn_seed = answer_seed(str(number), seed, turn)
            answer = await ask(model, tuple(messages), seed=turn_seed, max_tokens=self.max_tokens)
            messages.append({"role": "assistant", "content": answer.text})
            await attempt.step(answer.text.strip())
        outcome = attempt.outcome
        if outcome is None:
            return TaskResult(0.0, f"The task was not over after {_MAX_TURNS} turns.")
        if outcome.fault:
            raise Transient(str(outcome.sentence))
        return TaskResult(float(outcome.score), str(outcome.sentence))
