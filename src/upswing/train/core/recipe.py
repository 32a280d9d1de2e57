"""How is a job trained? Every knob, with its unit, its bounds and its reason.

The defaults of the algorithm come first, then `[train.recipe]` of the config, then what the
request asks for: its `hyperparameters`, `compute` and `checkpointing`, and `metadata.recipe`, where
every knob of this module can be set by name. Those of `FITTED` that nobody set are listed in
`Recipe.unset`: `train.core.fit` chooses them when base and data are known.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

import msgspec
from msgspec import UNSET, Meta

from upswing.contracts.field_errors import locate_mistake
from upswing.contracts.training import Algorithm, TrainingRequest
from upswing.contracts.typed import from_tree
from upswing.errors import Reason, Rejected
from upswing.train.core.rollout_plan import RolloutSettings

Share = Annotated[float, Meta(ge=0, le=1)]
Positive = Annotated[int, Meta(ge=1)]
NonNegative = Annotated[float, Meta(ge=0)]


class Lora(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The adapter that is trained instead of the whole model."""

    rank: Annotated[int, Meta(ge=1, le=1024)] = 16
    alpha: NonNegative = 32.0
    """The adapter's output is scaled by `alpha / rank`."""
    targets: tuple[str, ...] = ()
    """Names of the layers that get one; none means all linear layers but the head."""
    dropout: Share = 0.0
    """Off by default: with dropout, the policy that is trained is not the one that acted."""


class Recipe(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The knobs of one job."""

    algorithm: Algorithm = "grpo"
    learning_rate: Annotated[float, Meta(gt=0)] = 1e-5
    batch_size: Positive = 32
    """Trajectories of one optimizer step. Groups are kept whole, so a step may have a few more."""
    micro_tokens: Annotated[int, Meta(ge=16)] = 1024
    """Tokens of one forward pass; the gradients of several add up to the step's, exactly.
    Halved when memory runs out. A single longer trajectory still passes alone. With 1024, an adapter
    of a model with 135 million weights stays below 3 GB; smaller models are faster with more."""
    epochs: Positive = 3
    """Passes over the data of one iteration."""
    iterations: Positive = 1
    """Each takes the next `windows_per_iteration` groups and goes on from the one before."""
    windows_per_iteration: Positive | None = None
    """Groups of one iteration; none means all."""
    min_agents: Positive = 5
    """Different agents of a window and scenario that make a group in a continuous world."""
    min_attempts: Annotated[int, Meta(ge=2)] = 4
    """Attempts at the same task by the same policy that make a group, by one agent or many. With
    fewer than four, the baseline is mostly noise."""
    max_age: Annotated[int, Meta(ge=0)] = 2
    """How many versions back a policy may be whose trajectories still take part. Each version moves
    away by its KL budget, and importance weights of more than a few nats are all noise."""
    max_days: Positive = 30
    """Days after which an earlier version's trajectories no longer take part: tasks and tools change
    too. It does not bound what the policy did that training starts from, nor a request that names its
    dates."""
    fill: Positive = 256
    """Trajectories that earlier policies may fill up to where the current one has fewer."""
    self_reported: bool = False
    """SFT and RFT: whether a success by the agent's own word is imitated too."""

    clip_low: NonNegative = 0.2
    """How far below 1 the ratio to the start may fall before its gradient stops."""
    clip_high: NonNegative = 0.28
    """How far above: a little farther, so that rare good actions can still grow."""
    kl_beta: NonNegative = 0.0
    """Weight of the divergence from the `reference`."""
    entropy: float = 0.0
    """Weight of the policy's entropy as a bonus: keeps alternatives alive."""
    gamma: Share = 1.0
    """Discount from turn to turn."""
    gae_lambda: Share = 0.95
    """PPO: between one turn's surprise (0) and the whole return (1)."""
    value_weight: NonNegative = 0.5
    """PPO: weight of the value head's error."""
    dpo_beta: NonNegative = 0.1
    """DPO: how strongly a preference moves the policy away from the reference."""
    max_pairs: Positive = 4
    """DPO: pairs a trajectory may take part in, so that one outlier does not rule a group."""
    sft_weight: NonNegative = 0.0
    """DPO: weight of also imitating the chosen side, which keeps its likelihood from sinking."""
    scale_rewards: Literal["group", "batch", "none"] = "group"
    """By whose standard deviation advantages are divided."""
    reduce: Literal["sequence", "token", "constant"] = "token"
    """What is averaged: each trajectory alike, each token alike, or tokens over a fixed length."""
    min_spread: NonNegative = 0.02
    """Groups whose rewards differ by less (standard deviation) have nothing to compare: left out."""
    credit: Literal["trajectory", "turn"] = "trajectory"
    """Whether every token gets the trajectory's advantage, or each turn its own where turns were
    rewarded."""

    max_tokens: Annotated[int, Meta(ge=16)] = 4096
    """Tokens of one trajectory; a longer one does not train, is compared with, and is counted."""
    full: bool | None = None
    """Train all weights instead of an adapter; none means: yes for `tiny`, no for others."""
    lora: Lora = Lora()
    precision: Literal["fp32", "fp16", "bf16"] | None = None
    """None means bf16 on a GPU that has it, else fp32."""
    schedule: Literal["cosine", "constant"] = "constant"
    warmup: Share = 0.0
    """Share of the steps in which the learning rate rises from 0."""
    max_grad_norm: NonNegative = 1.0
    weight_decay: NonNegative = 0.0
    seed: int = 0
    save_interval: Positive = 50
    """Steps between checkpoints: at most so many are repeated after a crash."""
    max_checkpoints: Positive = 3
    """Kept at once, beside the best and the final one."""
    holdout: Share = 0.1
    """Share of the tasks that is not trained on but measured."""

    kl_budget: NonNegative | None = None
    """Nats that a reply may be away from what the start policy would have said: KL(new ‖ start),
    summed over a reply's tokens. The job ends there. None means: `KL_PER_TOKEN` for each token of a
    reply, and never less than `KL_PER_REPLY`."""
    evaluations: Annotated[int, Meta(ge=1, le=100)] = 8
    """How often a job measures how far it has moved and what that brings; between them it trains."""

    # How logged data is weighed, and what imitation and thumbs need.
    importance_cap: Annotated[float, Meta(gt=0)] = 3.0
    """Most that a recorded token counts because the start finds it likelier than what acted did.
    Below it the correction is exact; what it cuts off is reported."""
    dual_clip: Annotated[float, Meta(gt=1)] | None = 3.0
    """Ratio beyond which a bad action that became likelier is pushed down no harder; none: never."""
    ratio: Literal["token", "sequence"] = "token"
    """GRPO: whether tokens or whole sequences are clipped. `sequence` is GSPO: the geometric mean of
    a sequence's ratios, which moves far less than a token's where replies are long: the paper clips at
    3e-4. Replies of a few tokens want the clips of tokens."""
    at_temperature: bool = True
    """Whether logprobs are taken at the temperature that sampled, as the gradient of what agents earn
    demands; off: at 1. Below 1 the same rate then moves the policy farther: on `triage` at 0.6 it never
    learned more than with this off (docs/decisions/training.md)."""
    reference: Literal["start", "base"] = "start"
    """What the KL term, DPO and KTO measure from: the policy that training starts from, or the base
    without its adapter (where all weights are trained: the base as it was)."""
    value_rate: Annotated[float, Meta(gt=0)] | None = None
    """PPO: the value head's own learning rate; none means ten times the policy's. The head is fitted
    to the returns before the first step."""
    success: Share = 0.5
    """Reward from which an answer is a success (RFT) or desirable (KTO)."""
    kto_beta: NonNegative = 0.1
    """KTO: how strongly a thumb moves the policy away from the reference."""
    desirable_weight: NonNegative | None = None
    """KTO: weight of what people liked; none means: such that both sides weigh the same."""
    undesirable_weight: NonNegative | None = None
    """KTO: weight of what they did not."""
    rollouts: RolloutSettings | None = None
    """Fresh episodes that the job plays with the policy it trains, after the logged ones; none
    means only logged ones."""

    kl_limit: NonNegative = 10.0
    """Divergence from the behaviour policy, in nats per token, that counts as blown up."""
    entropy_floor: NonNegative = 1e-4
    """Mean entropy, in nats per token, below which a policy that had more has collapsed."""
    unset: tuple[str, ...] = ()
    """Knobs that nobody set; `train.core.fit` chooses them. Empty once a job has its data."""


FITTED = (
    "learning_rate",
    "batch_size",
    "epochs",
    "warmup",
    "schedule",
    "clip_low",
    "clip_high",
    "entropy",
    "kl_beta",
    "reference",
    "scale_rewards",
    "weight_decay",
    "micro_tokens",
    "save_interval",
    "lora",
    "evaluations",
)
"""Knobs whose best value depends on the base, the data and whether all weights are trained."""
KL_PER_TOKEN, KL_PER_REPLY = 0.1, 3.0
"""Nats, of the default of `kl_budget`."""


_DEFAULTS: dict[str, dict[str, Any]] = {
    "grpo": {"entropy": 0.01},
    "ppo": {"clip_low": 0.2, "clip_high": 0.2, "entropy": 0.01},
    "rloo": {"kl_beta": 0.05, "entropy": 0.01},
    "reinforce": {"entropy": 0.01, "kl_beta": 0.3},
    "dpo": {"sft_weight": 0.2},
    "sft": {},
    "rft": {},
    "kto": {},
}


def build_recipe(request: TrainingRequest, configured: Mapping[str, Any]) -> Recipe:
    """The recipe of a request, or `Rejected` with the knob that is wrong."""
    config = request.training_config
    asked: dict[str, Any] = {}
    for part in (config.hyperparameters, config.compute, config.checkpointing):
        if part is not UNSET:
            asked |= msgspec.to_builtins(part)
    knobs = {
        _REQUEST_NAMES.get(key, key): value for key, value in asked.items() if key not in _ELSEWHERE
    }
    if "clip_epsilon" in knobs:
        epsilon = knobs.pop("clip_epsilon")
        knobs |= {"clip_low": epsilon, "clip_high": epsilon}
    if request.evaluation is not UNSET and request.evaluation.holdout_size is not UNSET:
        knobs["holdout"] = request.evaluation.holdout_size
    metadata = request.metadata if request.metadata is not UNSET else {}
    extra = metadata.get("recipe") or {}
    if not isinstance(extra, Mapping):
        raise Rejected(Reason.SCHEMA, "`metadata.recipe` is an object of knobs.")
    named = {**configured, **knobs, **extra}
    unset = [name for name in FITTED if name not in named]
    together = {**_DEFAULTS[config.algorithm], **named, "unset": unset}
    try:
        return from_tree({**together, "algorithm": config.algorithm}, Recipe)
    except msgspec.ValidationError as error:
        place, what = locate_mistake(error, Recipe)
        raise Rejected(Reason.SCHEMA, f"The recipe cannot be used: `{place}`: {what}.") from None


_REQUEST_NAMES = {"mixed_precision": "precision"}
_ELSEWHERE = frozenset({"gpu_count", "gpu_type", "distributed", "storage_path"})
"""Not how it is trained but where, and where the result goes."""
