"""How do agents record themselves? With `upswing.sdk`, as an agent that asks a model's own server."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

from upswing.sdk import Recorder, Recording
from upswing.worlds.errands import Done
from upswing.worlds.recording import outcome_of


@contextlib.contextmanager
def recording(folder: Path) -> Iterator[SdkKeeper]:
    """A keeper for the loop of this data directory; at its end all is sent, or waits on disk."""
    with Recorder(data=folder) as recorder:
        yield SdkKeeper(recorder)
        recorder.flush()


class SdkKeeper:
    """Records every errand turn by turn, while it is done."""

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder
        self._open: dict[str, Recording] = {}
        """By episode."""

    def note(self, so_far: Done) -> None:
        errand = so_far.errand
        if not so_far.turns:
            self._open[errand.episode_id] = self._recorder.trajectory(
                agent_id=errand.agent,
                task=so_far.instructions,
                task_id=errand.task.task_id,
                episode_id=errand.episode_id,
                metadata=errand.about | {"temperature": errand.temperature},
            )
            return
        turn = so_far.turns[-1]
        seen = {"type": turn.seen.kind, "content": turn.seen.text}
        said = {"type": "response", "raw_response": turn.reply}
        self._open[errand.episode_id].turn(seen, said, turn.reply)

    async def keep(self, done: Done) -> str | None:
        record = self._open.pop(done.errand.episode_id, None)
        if record is None or not done.turns:
            return None
        record.metadata(model=done.model or "unknown")
        if done.outcome.fault:
            record.metadata(infra_error=True)
        record.outcome(**outcome_of(done.outcome))
        record.end()
        return record.id

    async def say(self, trajectory_id: str, *, pleased: bool) -> bool:
        self._recorder.feedback(trajectory_id, "thumbs_up" if pleased else "thumbs_down")
        return True
