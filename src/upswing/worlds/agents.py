"""How does an agent do one task? It asks the model, acts in the world, and says how it ended.

    spec ─▶ ask ─▶ reply ─▶ what the world shows ─▶ ask … ─▶ episode ─▶ recorded ─▶ a user's feedback

The agent is an ordinary one: the unmodified `openai` client, whose base URL is the gateway's. Tools
are the world's own words: a reply that asks for one is followed by what it shows, as the next
message.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any, Protocol
from uuid import UUID

from upswing.errors import Misuse, UpswingError
from upswing.worlds.agent_episodes import AgentEpisode, AgentTurn, EpisodeSpec
from upswing.worlds.attempt import TaskAttempt
from upswing.worlds.recording import outcome_metadata, stated_outcome
from upswing.worlds.world import Task, WorldOutcome

try:
    from openai import APIStatusError, AsyncOpenAI, OpenAIError
except ImportError as missing:
    raise Misuse(
        "Test agents speak through the `openai` package: pip install '.[agents]'."
    ) from missing

ANY_MODEL = "upswing"
"""At a gateway: whoever it is now."""
UNREACHABLE = WorldOutcome(False, 0.0, "A part that the agent needs was away.", fault=True)
_RETRIES = 4
"""After the first try: about eight seconds in all, time enough for a gateway that starts anew."""
_TIMEOUT_SECONDS = 120.0
"""For one answer: a large model on a small machine is slow."""


def openai_client(base_url: str, key: str) -> AsyncOpenAI:
    """One pool of connections for many agents; `base_url` comes with or without `/v1`."""
    url = f"{base_url.rstrip('/').removesuffix('/v1')}/v1"
    return AsyncOpenAI(base_url=url, api_key=key, max_retries=_RETRIES, timeout=_TIMEOUT_SECONDS)


async def play_episode(
    client: AsyncOpenAI,
    begin: Callable[[Task], Awaitable[TaskAttempt]],
    spec: EpisodeSpec,
    *,
    model: str,
    max_tokens: int,
    on_turn: Callable[[AgentEpisode], None],
) -> AgentEpisode:
    """One agent at one task, to its end. What is unreachable ends it, and is nobody's failure."""
    episode = AgentEpisode(spec)
    try:
        attempt = await begin(spec.task)
        try:
            episode = replace(episode, instructions=attempt.task.instructions)
            on_turn(episode)
            while attempt.outcome is None:
                turn = await _ask_model(client, episode, attempt, model, max_tokens)
                episode = replace(episode, turns=(*episode.turns, turn))
                on_turn(episode)
                await attempt.step(turn.reply)
            return replace(episode, outcome=attempt.outcome)
        finally:
            await attempt.close()
    except OpenAIError as error:
        return replace(episode, outcome=UNREACHABLE, trouble=_error_label(error))
    except UpswingError:  # a remote world, in whatever way it fails
        return replace(episode, outcome=UNREACHABLE, trouble="world")


async def _ask_model(
    client: AsyncOpenAI, episode: AgentEpisode, attempt: TaskAttempt, model: str, max_tokens: int
) -> AgentTurn:
    spec, seen = episode.spec, attempt.observation
    response = await client.chat.completions.with_raw_response.create(
        model=model,
        messages=[*_chat_messages(episode), {"role": "user", "content": seen.text}],
        max_tokens=max_tokens,
        temperature=spec.temperature,
        extra_headers=spec.headers,
        extra_body={"metadata": spec.metadata},
    )
    answer = response.parse()
    reply = answer.choices[0].message.content or ""
    return AgentTurn(seen, reply, response.headers.get("x-model-id") or answer.model)


def _chat_messages(episode: AgentEpisode) -> list[Any]:
    """The conversation until now, letter by letter as it was."""
    instructions = episode.instructions
    messages = [{"role": "system", "content": instructions}] if instructions else []
    for turn in episode.turns:
        messages.append({"role": "user", "content": turn.seen.text})
        messages.append({"role": "assistant", "content": turn.reply})
    return messages


def _error_label(error: OpenAIError) -> str:
    """What went wrong, to be counted: a status, or the kind of error."""
    return str(error.status_code) if isinstance(error, APIStatusError) else type(error).__name__


class AgentRecorder(Protocol):
    """Who records an agent's episodes, and what users thought of them."""

    def record_turn(self, episode: AgentEpisode) -> None:
        """An episode begins, or has had another turn."""
        ...

    async def finish(self, episode: AgentEpisode) -> str | None:
        """The trajectory's id; None when nothing was recorded."""
        ...

    async def send_feedback(self, trajectory_id: str, *, pleased: bool) -> bool:
        """Whether the feedback was taken."""
        ...


class GatewayRecorder:
    """The gateway records the turns itself: it needs the end, and the user's feedback."""

    def __init__(self, client: AsyncOpenAI, new_id: Callable[[], UUID]) -> None:
        self._client, self._new_id = client, new_id

    def record_turn(self, episode: AgentEpisode) -> None:
        """The turn went through the gateway."""

    async def finish(self, episode: AgentEpisode) -> str | None:
        if not episode.turns:
            return None
        outcome = episode.outcome
        body = {"outcome": stated_outcome(outcome), "metadata": outcome_metadata(outcome)}
        closed = await self._post_json(f"/episodes/{episode.spec.episode_id}/close", body)
        return str(closed["trajectory_id"]) if closed and closed["recorded"] else None

    async def send_feedback(self, trajectory_id: str, *, pleased: bool) -> bool:
        body = {
            "feedback_id": str(self._new_id()),  # so that a second try is the same feedback
            "trajectory_id": trajectory_id,
            "type": "thumbs_up" if pleased else "thumbs_down",
            "source": "test agent",
        }
        return await self._post_json("/feedback", body) is not None

    async def _post_json(self, path: str, body: dict[str, Any]) -> Any:
        """The answer; None when there was none, after all tries."""
        try:
            return await self._client.post(path, body=body, cast_to=object)
        except OpenAIError:
            return None
