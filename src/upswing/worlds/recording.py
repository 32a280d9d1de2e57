"""How does an episode enter the loop? As a trajectory like any other agent's.

| in the trajectory                | what it is                                                    |
|----------------------------------|---------------------------------------------------------------|
| `task_context.task_id`           | the task; attempts at it are compared                         |
| `metadata.scenario_id`           | the task again: with the window it makes the group            |
| `metadata.outcome`               | completed, or partial with its share, or failed; `source` is  |
|                                  | `world`, which is checked and no agent's                 |
| `metadata.environment.pnl`       | what was earned, in a world of money                          |
| `metadata.infra_error`           | the world's own tools failed: kept, and not trained on        |
| `metadata.tokens`                | per turn the ids new since the turn before, those of the      |
|                                  | prompt first; the logprobs belong to the last of them         |

The task's answer is nowhere in it.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID, uuid5

from upswing.contracts import Trajectory, from_builtins
from upswing.worlds.episode import Episode, EpisodeStep
from upswing.worlds.world import WorldOutcome

Tree = dict[str, Any]
SOURCE = "world"
"""Who says how an episode ended: not the agent itself."""


def to_trajectory(
    episode: Episode,
    *,
    trajectory_id: str,
    agent_id: str,
    session_id: str,
    window_id: str,
    started: datetime,
    ended: datetime,
) -> Tree:
    """The episode as trajectory.v1, in JSON's types."""
    count = len(episode.steps)
    turns = [
        _turn_tree(number, step, started + (number - 1) * (ended - started) / count, episode, count)
        for number, step in enumerate(episode.steps, 1)
    ]
    return {
        "trajectory_id": trajectory_id,
        "session_id": session_id,
        "agent_id": agent_id,
        "start_timestamp": started.isoformat(),
        "end_timestamp": ended.isoformat(),
        "turns": turns,
        "task_context": {
            "task_id": episode.task.task_id,
            "instructions": episode.task.instructions,
            "domain": "general",
        },
        "metadata": _episode_metadata(episode, window_id),
    }


def to_trajectories(
    episodes: Iterable[Episode],
    *,
    namespace: UUID,
    window_id: str,
    started: datetime,
    took: timedelta = timedelta(seconds=1),
) -> list[Tree]:
    """A round of episodes: each place in a group is an agent, and ids follow from the namespace.

    The same namespace, window, policy, task and place give the same id.
    """
    trees = []
    for episode in episodes:
        identity = f"{window_id}/{episode.policy}/{episode.task.task_id}/{episode.member}"
        tree = to_trajectory(
            episode,
            trajectory_id=str(uuid5(namespace, identity)),
            agent_id=f"agent-{episode.member + 1}",
            session_id=f"{episode.world}-{window_id}",
            window_id=window_id,
            started=started,
            ended=started + took,
        )
        from_builtins(Trajectory, tree)
        trees.append(tree)
    return trees


def _turn_tree(number: int, step: EpisodeStep, at: datetime, episode: Episode, count: int) -> Tree:
    last = number == count
    outcome = episode.outcome
    return {
        "turn_id": number,
        "timestamp": at.isoformat(),
        "observation": {"type": step.observation.kind, "content": step.observation.text},
        "action": {"type": "response", "raw_response": step.reply},
        "result": {
            "success": outcome.success if last else True,
            "output": outcome.sentence if last else None,
        },
    }


def _episode_metadata(episode: Episode, window_id: str) -> Tree:
    return {
        "model": episode.policy,
        "temperature": episode.temperature,
        "total_tokens": len(episode.ids),
        "window_id": window_id,
        "scenario_id": episode.task.task_id,
        "outcome": stated_outcome(episode.outcome),
        **outcome_metadata(episode.outcome),
        "tokens": [
            {
                "turn_id": number,
                "ids": [*step.prompt_ids, *step.completion_ids],
                "logprobs": list(step.logprobs),
            }
            for number, step in enumerate(episode.steps, 1)
        ],
    }


def outcome_metadata(outcome: WorldOutcome) -> Tree:
    """What else the trajectory's metadata says of its end.

    >>> outcome_metadata(WorldOutcome(True, 1.0, "Sold.", pnl=1.5))
    {'environment': {'pnl': 1.5}}
    """
    metadata: Tree = {"infra_error": True} if outcome.fault else {}
    if outcome.pnl is not None:
        metadata["environment"] = {"pnl": outcome.pnl}
    if outcome.truth is not None:
        metadata["ground_truth"] = {"told": outcome.truth}
    return metadata


def stated_outcome(outcome: WorldOutcome) -> Tree:
    """What the reward stage reads: partial work counts half for trying, the rest by its share.

    The world says it, unless its own tools or the connection to the model failed: then nobody does.

    >>> stated_outcome(WorldOutcome(True, 0.5, "It took a second try."))
    {'status': 'partial', 'share': 0.5, 'source': 'world'}
    """
    source = {} if outcome.fault else {"source": SOURCE}
    if outcome.success and outcome.score >= 1:
        return {"status": "completed", "share": 1.0, **source}
    if outcome.score > 0:
        return {"status": "partial", "share": outcome.score, **source}
    return {"status": "failed", "share": 0.0, **source}
