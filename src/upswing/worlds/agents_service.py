"""How does an agent do one task? It asks the model, acts in the world, and says how it ended.

    errand ─▶ ask ─▶ reply ─▶ what the world shows ─▶ ask … ─▶ done ─▶ kept ─▶ a user's word

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
from upswing.worlds.errands import Done, Errand, Turn
from upswing.worlds.recording import about_of, outcome_of
from upswing.worlds.visit import Visit
from upswing.worlds.world import Outcome, Task

try:
    from openai import APIStatusError, AsyncOpenAI, OpenAIError
except ImportError as missing:
    raise Misuse(
        "Test agents speak through the `openai` package: pip install 'upswing[agents]'."
    ) from missing

ANY_MODEL = "upswing"
"""At a gateway: whoever it is now."""
AWAY = Outcome(False, 0.0, "A part that the agent needs was away.", fault=True)
_TRIES = 4
"""After the first: about eight seconds in all, time enough for a gateway that starts anew."""
_SECONDS = 120.0
"""For one answer: a large model on a small machine is slow."""


def client_of(base_url: str, key: str) -> AsyncOpenAI:
    """One pool of connections for many agents; `base_url` comes with or without `/v1`."""
    url = f"{base_url.rstrip('/').removesuffix('/v1')}/v1"
    return AsyncOpenAI(base_url=url, api_key=key, max_retries=_TRIES, timeout=_SECONDS)


async def do(
    client: AsyncOpenAI,
    enter: Callable[[Task], Awaitable[Visit]],
    errand: Errand,
    *,
    model: str,
    max_tokens: int,
    note: Callable[[Done], None],
) -> Done:
    """Do the errand. What is away ends it, and is nobody's failure."""
    done = Done(errand)
    try:
        visit = await enter(errand.task)
        try:
            done = replace(done, instructions=visit.task.instructions)
            note(done)
            while visit.outcome is None:
                turn = await _turn(client, done, visit, model, max_tokens)
                done = replace(done, turns=(*done.turns, turn))
                note(done)
                await visit.step(turn.reply)
            return replace(done, outcome=visit.outcome)
        finally:
            await visit.close()
    except OpenAIError as error:
        return replace(done, outcome=AWAY, trouble=_word(error))
    except UpswingError:  # a world elsewhere, in whatever way it fails
        return replace(done, outcome=AWAY, trouble="world")


async def _turn(
    client: AsyncOpenAI, so_far: Done, visit: Visit, model: str, max_tokens: int
) -> Turn:
    errand, seen = so_far.errand, visit.observation
    answered = await client.chat.completions.with_raw_response.create(
        model=model,
        messages=[*_said(so_far), {"role": "user", "content": seen.text}],
        max_tokens=max_tokens,
        temperature=errand.temperature,
        extra_headers=errand.headers,
        extra_body={"metadata": errand.about},
    )
    answer = answered.parse()
    reply = answer.choices[0].message.content or ""
    return Turn(seen, reply, answered.headers.get("x-model-id") or answer.model)


def _said(so_far: Done) -> list[Any]:
    """The conversation until now, letter by letter as it was."""
    told = [{"role": "system", "content": so_far.instructions}] if so_far.instructions else []
    for turn in so_far.turns:
        told.append({"role": "user", "content": turn.seen.text})
        told.append({"role": "assistant", "content": turn.reply})
    return told


def _word(error: OpenAIError) -> str:
    """What went wrong, to be counted: a status, or the kind of error."""
    return str(error.status_code) if isinstance(error, APIStatusError) else type(error).__name__


class Keeper(Protocol):
    """Who keeps an errand that is done, and what a user thought of it."""

    def note(self, so_far: Done) -> None:
        """An errand begins, or has had another turn."""
        ...

    async def keep(self, done: Done) -> str | None:
        """The trajectory's id; None when nothing was kept."""
        ...

    async def say(self, trajectory_id: str, *, pleased: bool) -> bool:
        """Whether the word was taken."""
        ...


class GatewayKeeper:
    """The gateway has heard everything: it is told the end, and the user's word."""

    def __init__(self, client: AsyncOpenAI, new_id: Callable[[], UUID]) -> None:
        self._client, self._new_id = client, new_id

    def note(self, so_far: Done) -> None:
        """It has heard it itself."""

    async def keep(self, done: Done) -> str | None:
        if not done.turns:
            return None
        body = {"outcome": outcome_of(done.outcome), "metadata": about_of(done.outcome)}
        told = await self._post(f"/episodes/{done.errand.episode_id}/close", body)
        return str(told["trajectory_id"]) if told and told["recorded"] else None

    async def say(self, trajectory_id: str, *, pleased: bool) -> bool:
        body = {
            "feedback_id": str(self._new_id()),  # so that a second try is the same word
            "trajectory_id": trajectory_id,
            "type": "thumbs_up" if pleased else "thumbs_down",
            "source": "test agent",
        }
        return await self._post("/feedback", body) is not None

    async def _post(self, path: str, body: dict[str, Any]) -> Any:
        """The answer; None when there was none, after all tries."""
        try:
            return await self._client.post(path, body=body, cast_to=object)
        except OpenAIError:
            return None
