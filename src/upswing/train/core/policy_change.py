"""How far did a job move its policy, and what did that bring? As every report shows it.

| figure                 | what it is                                                                   |
|------------------------|------------------------------------------------------------------------------|
| `kl`                   | KL(new ‖ parent), in nats a reply                                            |
| `changed`              | the share of greedy answers that are no longer the parent's                  |
| `trained`, `held_out`  | mean reward before and after, on trained and on held-out tasks               |
| `off_policy`           | the share of trained tokens that another policy said, or nobody recorded     |
| `weight`, `cut`, `worth` | importance weights: their mean, the share that was cut, what tokens are worth |
| `mismatch`             | nats a token between the engine that served and the one that trains          |

It is read from the status of the job, which any version of the loop may have written.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from upswing.contracts.steps import finite_number_or_none
from upswing.dataset.select import IMITATING

MOVED = 0.02
"""Nats a reply from which on sampled answers differ visibly, also where the likeliest one stays."""
BeforeAfter = tuple[float | None, float | None]
"""Before and after."""


@dataclass(frozen=True, slots=True)
class PolicyChange:
    """What the status of a job says; None where it says nothing."""

    kl: float | None = None
    changed: float | None = None
    trained: BeforeAfter = (None, None)
    held_out: BeforeAfter = (None, None)
    played: bool = False
    """Whether held-out tasks were played afresh; else they are estimated from logged episodes."""
    stopped: str = ""
    """Why the job ended before its last step."""
    no_change: bool = False
    advice: str = ""
    """With `no_change`: what to try next."""
    off_policy: float | None = None
    weight: float | None = None
    cut: float | None = None
    worth: float | None = None
    mismatch: float | None = None

    def lines(self) -> Iterator[tuple[str, str]]:
        """(name, figures) for a person, without what nobody measured."""
        if self.no_change:
            yield "no change", self.advice or "Training did not move the policy."
        if self.kl is not None:
            yield "moved", "".join(self._change_text())
        if (rewards := _arrow_text(self.trained)) is not None:
            yield "trained on", f"{rewards}, estimated from what was logged"
        if (rewards := _arrow_text(self.held_out)) is not None:
            how = "played afresh" if self.played else "estimated from logged episodes"
            yield "held out", f"{rewards}, {how}"
        if self.off_policy is not None:
            yield "off-policy", ", ".join(self._weights_text())

    def _change_text(self) -> Iterator[str]:
        yield f"{self.kl:.2f} nats a reply"
        if self.changed is not None:
            yield f", {self.changed:.0%} of greedy answers changed"
            if self.changed < 0.005 and (self.kl or 0.0) >= MOVED:
                yield " (but agents sample: how often each answer comes did change)"
        if self.stopped:
            yield f", stopped by {self.stopped}"

    def _weights_text(self) -> Iterator[str]:
        yield f"{self.off_policy:.0%} of tokens"
        if self.weight is not None and self.cut is not None:
            yield f"weights {self.weight:.2f} on the mean, {self.cut:.1%} cut"
        if self.worth is not None:
            yield f"worth {self.worth:.0%}"
        if self.mismatch is not None:
            yield f"server and trainer {self.mismatch:.1e} nats a token apart"


def policy_change(algorithm: str, status_metadata: Mapping[str, Any]) -> PolicyChange:
    """The movement in the metadata of a job's status.

    >>> found = policy_change("grpo", {"kl_from_parent": 1.4, "train_reward": [0.3, 0.5], "changed_answers": 0.25})
    >>> dict(found.lines())["moved"], dict(found.lines())["trained on"]
    ('1.40 nats a reply, 25% of greedy answers changed', '0.300 → 0.500, estimated from what was logged')
    >>> list(policy_change("grpo", {}).lines())
    []
    """
    played = status_metadata.get("holdout_measured_by") == "fresh"
    # What was selected because it succeeded says nothing about how well a model does.
    chosen = algorithm in IMITATING and not played
    return PolicyChange(
        kl=finite_number_or_none(status_metadata.get("kl_from_parent")),
        changed=finite_number_or_none(status_metadata.get("changed_answers")),
        trained=_before_after(status_metadata.get("train_reward")),
        held_out=(None, None) if chosen else _before_after(status_metadata.get("holdout_reward")),
        played=played,
        stopped=str(status_metadata.get("stopped") or ""),
        no_change=status_metadata.get("no_change") is True,
        advice=str(status_metadata.get("advice") or ""),
        off_policy=finite_number_or_none(status_metadata.get("off_policy_share")),
        weight=finite_number_or_none(status_metadata.get("importance_mean")),
        cut=finite_number_or_none(status_metadata.get("importance_truncated")),
        worth=finite_number_or_none(status_metadata.get("effective_sample")),
        mismatch=finite_number_or_none(status_metadata.get("mismatch_kl")),
    )


def _before_after(value: Any) -> BeforeAfter:
    if not isinstance(value, list) or len(value) != 2:
        return None, None
    return finite_number_or_none(value[0]), finite_number_or_none(value[1])


def _arrow_text(pair: BeforeAfter) -> str | None:
    before, after = pair
    return None if before is None or after is None else f"{before:.3f} → {after:.3f}"
