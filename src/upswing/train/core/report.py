"""What does a training child report to its parent? One line of JSON each, on its standard output."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import msgspec

from upswing.contracts.typed import json_decoder

FailureCode = Literal["OOM", "CONVERGENCE", "DATA", "INFRA", "TIMEOUT", "UNKNOWN"]


class TrainingError(Exception):
    """What ends a training early, and knows its own kind."""

    failure_code: FailureCode = "UNKNOWN"
    bad_trajectories: Sequence[str] = ()
    """Those to leave out next time."""


class Heartbeat(msgspec.Struct, frozen=True, tag="beat"):
    """Still alive; sent every second whatever the child does."""

    rss_bytes: int
    doing: str
    cpu_seconds: float = 0.0
    """Of processors, all its threads."""


class TrainingStarted(msgspec.Struct, frozen=True, tag="began"):
    """The data is ready and the first step comes."""

    total_steps: int
    total_epochs: int
    first_step: int
    """Greater than 0 when it goes on from a checkpoint."""
    examples: int
    groups: int
    flat_groups: int
    """Groups whose rewards do not differ: nothing to learn from them."""
    trained_tokens: int
    off_policy_tokens: int
    """Of the trained ones, those of another policy than the one that training starts from, and those whose
    ids or logprobs were not recorded."""
    masked_trajectories: int
    """Too long to train: masked, so that only their group's baseline counts them."""
    dropped: dict[str, int]
    """Trajectories left out, by the sentence that says why."""
    versions: dict[str, str]
    pieced: int = 0
    """Trajectories whose chat template rewrites history, so that they were encoded part by part."""
    doubted: dict[str, int] = {}
    """Recorded tokens that were not believed, by the sentence that says why."""
    reference: str = "start"
    """What the KL term, DPO and KTO measure from: `start` or `base`."""
    importance_mean: float = 1.0
    """Mean weight of a trained token, recorded → start; 1 where the start itself acted."""
    importance_truncated: float = 0.0
    """Share of the trained tokens whose weight was cut at `importance_cap`."""
    effective_sample: float = 1.0
    """Share of the trained tokens that the weighted ones are worth."""
    mismatch_kl: float | None = None
    """Nats per token between the engine that served and the one that trains, on tokens of the very
    policy that training starts from; None where none was recorded."""
    mismatch_logp: float | None = None
    """Mean absolute difference of their logprobs."""
    policy_versions: dict[str, float] = {}
    """Model that acted → its share of the trained tokens: how far the data is off-policy."""


class StepReport(msgspec.Struct, frozen=True, tag="stepped"):
    """One optimizer step."""

    step: int
    epoch: int
    loss: float
    reward_mean: float
    reward_std: float
    entropy: float
    kl: float
    clipped: float
    """Share of the trained tokens whose gradient the clip stopped."""
    grad_norm: float
    learning_rate: float
    tokens: int
    """Trained tokens so far."""
    seconds: float
    """Of this step."""


class CheckpointSaved(msgspec.Struct, frozen=True, tag="saved"):
    """A checkpoint is on the disk, whole."""

    step: int
    path: str
    holdout: float | None
    best: bool


class TrainingDone(msgspec.Struct, frozen=True, tag="done"):
    """The job is over and its artifacts are written."""

    step: int
    final: str
    """Folder of the final checkpoint."""
    curves: str
    tensorboard: str
    card: str
    holdout_before: float | None
    holdout_after: float | None
    peak_rss_bytes: int
    seconds: float
    samples: int
    reward_mean: float
    stopped: str = ""
    """Why the job ended before its last step (`kl_budget`, `diversity`, `no_gain`); "": it did not."""
    last_step: int = 0
    """The last step that was taken; `step` is the one whose weights ship."""
    kl: float | None = None
    """KL(new ‖ start) of what ships, in nats a reply."""
    kl_budget: float | None = None
    changed_answers: float | None = None
    """Share of the greedy replies that are no longer those of the start policy."""
    diversity: tuple[float, float] | None = None
    """Effective number of different first tokens over the prompts, before and after."""
    train_before: float | None = None
    train_after: float | None = None
    """Mean reward on what was trained on, as logged and as estimated."""
    measured_by: str = "logged"
    """Whether the held-out rewards are from `fresh` samples or estimated from `logged` episodes."""
    effective: float = 0.0
    """Episodes that the held-out estimate afterwards rests on."""
    seal: str = ""
    """Of the final checkpoint's manifest: what is served later has to have it."""
    no_change: bool = False
    """The policy did not move."""
    advice: str = ""
    """With `no_change`: what to try next."""


class TrainingFailed(msgspec.Struct, frozen=True, tag="failed"):
    """The child could not go on, and knows why."""

    code: FailureCode
    message: str
    traceback: str
    step: int
    bad: list[str] = []
    """Trajectories to leave out next time."""


Report = Heartbeat | TrainingStarted | StepReport | CheckpointSaved | TrainingDone | TrainingFailed
ENCODER = msgspec.json.Encoder()
DECODER: msgspec.json.Decoder[Report] = json_decoder(Report)
