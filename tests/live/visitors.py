"""Agents that live behind the gateway: they ask, act in a world, and say how it ended."""

import asyncio
import uuid

from tests.support import Client


class Crowd:
    """Plays tasks of a world through the gateway, several at a time."""

    def __init__(self, url, key, world, *, at_once=8):
        self.client, self.world = Client(url, key), world
        self._seats = asyncio.Semaphore(at_once)
        self.answers = []
        """(model, score) of every episode."""

    async def __aenter__(self):
        return self

    async def __aexit__(self, *error):
        await self.client.__aexit__(*error)

    async def play(self, tasks, *, group=1, temperature=1.0, window="2026-01-05T12:00"):
        """So many agents at each task; mean score of all."""
        before = len(self.answers)
        plays = [
            self._play(task, member, window, temperature)
            for task in tasks
            for member in range(group)
        ]
        await asyncio.gather(*plays)
        mine = [score for _, score in self.answers[before:]]
        return sum(mine) / len(mine)

    async def _play(self, task, member, window, temperature):
        async with self._seats:
            episode, agent = str(uuid.uuid4()), f"agent-{member + 1}"
            about = (
                f"X-Episode-Id: {episode}",
                f"X-Task-Id: {task.task_id}",
                f"X-Agent-Id: {agent}",
            )
            messages = (
                [{"role": "system", "content": task.instructions}] if task.instructions else []
            )
            state, model, outcome = self.world.reset(task), None, None
            for _ in range(self.world.max_turns):
                messages.append({"role": "user", "content": self.world.observe(state).text})
                body = {
                    "model": "upswing", "messages": messages, "max_tokens": 8, "temperature": temperature,
                    "metadata": {"scenario_id": task.task_id, "window_id": window},
                }  # fmt: skip
                status, answer = await self.client(
                    "POST", "/v1/chat/completions", body, headers=about
                )
                assert status == 200, answer
                model, reply = answer["model"], answer["choices"][0]["message"]["content"]
                messages.append({"role": "assistant", "content": reply})
                state = self.world.step(state, reply)
                outcome = self.world.outcome(state)
                if outcome is not None:
                    break
            score = outcome.score if outcome else 0.0
            done = {"status": "completed" if score == 1 else "failed", "share": score}
            status, kept = await self.client(
                "POST", f"/v1/episodes/{episode}/close", {"outcome": done}
            )
            assert (status, kept["recorded"]) == (200, True), kept
            self.answers.append((model, score))
