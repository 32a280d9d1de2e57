"""How do agents record themselves? With `upswing.sdk`, as an agent that asks a model's own server."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

from upswing.sdk import Recorder, Recording
from upswing.worlds.agent_episodes import AgentEpisode
from upswing.worlds.recording import stated_outcome


@contextlib.contextmanager
def recording(folder: Path) -> Iterator[SdkEpisodeRecorder]:
    """A recorder for the loop of this data directory; at its end all is sent, or waits on disk."""
    with Recorder(data=folder) as recorder:
        yield SdkEpisodeRecorder(recorder)
        recorder.flush()


class SdkEpisodeRecorder:
    """Records every episode turn by turn, while it is played."""

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder
        self._open: dict[str, Recording] = {}
        """By episode."""

    def record_turn(self, episode: AgentEpisode) -> None:
        spec = episode.spec
        if not episode.turns:
            self._open[spec.episode_id] = self._recorder.trajectory(
                agent_id=spec.agent,
                task=episode.instructions,
                task_id=spec.task.task_id,
                episode_id=spec.episode_id,
                metadata=spec.metadata | {"temperature": spec.temperature},
            )
            return
        turn = episode.turns[-1]
        seen = {"type": turn.seen.kind, "content": turn.seen.text}
        action = {"type": "response", "raw_response": turn.reply}
        self._open[spec.episode_id].turn(seen, action, turn.reply)

    async def finish(self, episode: AgentEpisode) -> str | None:
        record = self._open.pop(episode.spec.episode_id, None)
        if record is None or not episode.turns:
            return None
        record.metadata(model=episode.model or "unknown")
        if episode.outcome.fault:
            record.metadata(infra_error=True)
        record.outcome(**stated_outcome(episode.outcome))
        record.end()
        return record.id

    async def send_feedback(self, trajectory_id: str, *, pleased: bool) -> bool:
        self._recorder.feedback(trajectory_id, "thumbs_up" if pleased else "thumbs_down")
        return True
