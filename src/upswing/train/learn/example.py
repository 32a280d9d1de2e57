"""What does a trajectory look like in tokens?"""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Example:
    """One trajectory, tokenised: everything a loss can depend on, and nothing else.

    `ids`, `trained`, `turns` and `logps` are of the same length.
    """

    trajectory_id: str
    group: str
    """Whom it is compared with: the same window and scenario."""
    task: str
    ids: tuple[int, ...]
    trained: tuple[bool, ...]
    """Which tokens the policy produced; only these train."""
    turns: tuple[int, ...]
    """The turn (from 0) that a token belongs to: a turn's observation and its action."""
    logps: tuple[float, ...] | None
    """The behaviour policy's logprobs as recorded, at temperature 1, 0.0 where not trained; None:
    to be recomputed."""
    exact: bool
    """Whether ids and logprobs are the ones recorded, so that training is on-policy."""
    reward: float
    turn_rewards: tuple[float, ...] | None = None
    """One per turn, where turns were rewarded; they do not replace `reward`."""
    agent_id: str = ""
    behaviour: str = ""
    """The model that acted."""
    domain: str = "general"
    """Whom REINFORCE compares it with when it stands alone in its group."""
    score_scale: str = ""
    """Whose score its reward is: among single attempts it is compared with those of the same one."""
    temperature: float = 1.0
    """Of the distribution it was sampled from, and in which all its logprobs are taken."""
    masked: bool = False
    """Too long to train: it has no tokens here, and counts only with its reward, in its group."""


@dataclass(frozen=True, slots=True)
class EncodedSamples:
    """The examples of a data set, and what did not become one."""

    examples: tuple[Example, ...]
    dropped: dict[str, str] = field(default_factory=dict)
    """trajectory_id → the sentence that says why."""
    masked: int = 0
    """Trajectories that are too long to train, and count only in their group."""
    pieced: int = 0
    """Trajectories whose chat template rewrites history, so that they were encoded part by part."""
    doubted: dict[str, int] = field(default_factory=dict)
    """Recorded tokens that were not believed, by the sentence that says why."""
