"""Many agents at the same tasks: how did each of them fare?

Every agent does every task of a round, so those at one task form a group. Where several models answer,
as in a canary, more agents do a task until one of the models has a group of its own at it: attempts of
different models are not compared. Some users give feedback, some of them only after other episodes
have ended.

| what happens                                        | what follows                             |
|-----------------------------------------------------|------------------------------------------|
| a request fails (gateway away, 429, 5xx)            | the client tries again, four times       |
| … and still fails, or the world is away             | the episode is a fault, and counted      |
| the world's own tools fail                          | the episode is a fault, not trained on   |
| the end or a user's feedback is not taken           | counted                                  |
"""

from __future__ import annotations

import asyncio
from collections import Counter, deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Self
from uuid import UUID, uuid4

from upswing.worlds.agent_episodes import (
    AgentEpisode,
    EpisodeResult,
    EpisodeSpec,
    UserFeedback,
    agent_name,
    draw_feedback,
    missing_attempts,
    window_of_continuous_task,
    window_of_task,
)
from upswing.worlds.agentgym_client import RemoteTasks
from upswing.worlds.agents import (
    ANY_MODEL,
    AgentRecorder,
    GatewayRecorder,
    openai_client,
    play_episode,
)
from upswing.worlds.attempt import LocalAttempt, TaskAttempt, begin_task
from upswing.worlds.world import Task, World

_GROUP, _WINDOW_GROUP = 4, 5
"""Attempts of one model that make a group, at a task and in a window of a continuous world."""
_MAX_MODELS = 3
"""So many models side by side, at most, are waited for."""
_LATE_EPISODES = 12
"""Episodes that end before late feedback comes."""


@dataclass(frozen=True, slots=True)
class AgentEndpoint:
    """Which server the agents ask, and for which model."""

    url: str
    key: str
    model: str = ANY_MODEL


@dataclass(frozen=True, slots=True)
class AgentSettings:
    """How many agents there are, and how they behave."""

    agents: int = 8
    at_once: int = 8
    """Episodes at the same time."""
    max_tokens: int = 8
    """Of one reply."""
    feedback: float = 0.25
    """The share of episodes of which a user says something."""
    seed: int = 0
    """Draws who says something."""
    prefix: str = "agent"
    """Of the agents' names."""


@dataclass(slots=True)
class AgentCounts:
    """What became of the agents' work."""

    episodes: int = 0
    faults: int = 0
    """Of the world, and of the connection to the model."""
    troubles: Counter[str] = field(default_factory=Counter)
    """Why episodes were broken off: statuses, and kinds of errors."""
    unrecorded: int = 0
    """Answered, and not kept."""
    feedback: int = 0
    late: int = 0
    """Of the feedback."""
    unsaid: int = 0
    """Feedback that was not taken."""


class AgentPool:
    """Agents that work behind a gateway; an async context manager."""

    def __init__(
        self,
        endpoint: AgentEndpoint,
        world: World[Any, Any] | RemoteTasks,
        settings: AgentSettings = AgentSettings(),  # noqa: B008  it is frozen
        *,
        on_result: Callable[[EpisodeResult], None] = lambda _: None,
        new_id: Callable[[], UUID] = uuid4,
        recorder: AgentRecorder | None = None,
    ) -> None:
        """The gateway records, unless there is another recorder."""
        self.world, self.settings, self.counts = world, settings, AgentCounts()
        self.on_result = on_result
        self._client = openai_client(endpoint.url, endpoint.key)
        self._recorder = recorder or GatewayRecorder(self._client, new_id)
        self._slots = asyncio.Semaphore(settings.at_once)
        self._new_id, self._model = new_id, endpoint.model
        self._late_feedback: deque[tuple[int, str, UserFeedback]] = deque()
        """When it is due, by the count of episodes; the trajectory; the feedback."""
        self._stopped = False

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, kind: object, *_: object) -> None:
        """Late feedback is sent, unless the pool was broken off."""
        try:
            if kind is None:
                await self._send_late_feedback(everything=True)
        finally:
            await self._client.close()

    def stop(self) -> None:
        """Begin nothing more; what is under way ends."""
        self._stopped = True

    async def play(
        self,
        tasks: Iterable[Task],
        *,
        window: str,
        temperature: float = 1.0,
        evaluation: bool = False,
        purpose: str | None = None,
    ) -> list[EpisodeResult]:
        """Every agent at every task, task by task; one agent alone when it is an evaluation.

        A task that lies in a window of its own is done in that one.
        """
        agents = 1 if evaluation else self.settings.agents

        def make_spec(task: Task, member: int) -> EpisodeSpec:
            return EpisodeSpec(
                str(self._new_id()),
                agent_name(self.settings.prefix, task, member),
                task,
                window_of_task(task, window),
                temperature,
                evaluation,
                purpose,
            )

        async with asyncio.TaskGroup() as group:
            started = [
                group.create_task(self._play_task(partial(make_spec, task), task, agents))
                for task in tasks
            ]
        return [result for task in started for result in task.result()]

    async def _play_task(
        self, make_spec: Callable[[int], EpisodeSpec], task: Task, agents: int
    ) -> list[EpisodeResult]:
        """All agents at one task, and more of them while no model has a group of its own."""
        wanted = min(agents, _GROUP if window_of_continuous_task(task) is None else _WINDOW_GROUP)
        results: list[EpisodeResult] = []
        begun, missing = 0, agents
        while missing > 0:
            async with asyncio.TaskGroup() as group:
                more = [
                    group.create_task(self._play_episode(make_spec(begun + n + 1)))
                    for n in range(missing)
                ]
            begun += missing
            results += [each for task_ in more if (each := task_.result()) is not None]
            missing = min(missing_attempts(results, wanted), _MAX_MODELS * wanted - begun)
        return results

    async def _play_episode(self, spec: EpisodeSpec) -> EpisodeResult | None:
        async with self._slots:
            if self._stopped:
                return None
            episode = await play_episode(
                self._client,
                self._begin_attempt,
                spec,
                model=self._model,
                max_tokens=self.settings.max_tokens,
                on_turn=self._recorder.record_turn,
            )
            self._count_episode(episode)
            await self._finish_episode(episode)
            result = episode.result
            self.on_result(result)
            await self._send_late_feedback()
            return result

    async def _begin_attempt(self, task: Task) -> TaskAttempt:
        world = self.world
        if isinstance(world, RemoteTasks):
            return await world.begin(task)
        return LocalAttempt(world, begin_task(world, task))

    def _count_episode(self, episode: AgentEpisode) -> None:
        self.counts.episodes += 1
        self.counts.faults += episode.outcome.fault
        if episode.trouble:
            self.counts.troubles[episode.trouble] += 1

    async def _finish_episode(self, episode: AgentEpisode) -> None:
        trajectory_id = await self._recorder.finish(episode)
        if trajectory_id is None:
            self.counts.unrecorded += bool(episode.turns)
            return
        feedback = draw_feedback(episode, self.settings.feedback, self.settings.seed)
        if feedback is not None and feedback.late:
            due = self.counts.episodes + _LATE_EPISODES
            self._late_feedback.append((due, trajectory_id, feedback))
        elif feedback is not None:
            await self._send_feedback(trajectory_id, feedback)

    async def _send_late_feedback(self, *, everything: bool = False) -> None:
        waiting = self._late_feedback
        while waiting and (everything or waiting[0][0] <= self.counts.episodes):
            _, trajectory_id, feedback = waiting.popleft()
            await self._send_feedback(trajectory_id, feedback)

    async def _send_feedback(self, trajectory_id: str, feedback: UserFeedback) -> None:
        if await self._recorder.send_feedback(trajectory_id, pleased=feedback.pleased):
            self.counts.feedback += 1
            self.counts.late += feedback.late
        else:
            self.counts.unsaid += 1
