"""What should a person know before they use this model? Its card, as Markdown.

It says what the model was trained on, how, with what result, where it comes from and what it cost,
and what it is not. Everything on it is given; nothing is measured here.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

import msgspec

from upswing.dataset.snapshot import Snapshot
from upswing.train.core.card_text import limitation_sentences, loading_instructions
from upswing.train.core.recipe import Recipe
from upswing.train.core.report import StepReport, TrainingDone, TrainingStarted
from upswing.train.core.spec import JobSpec

_CURVE_FIELDS = (
    ("reward", "reward_mean"),
    ("loss", "loss"),
    ("KL divergence, nats per token", "kl"),
    ("entropy, nats per token", "entropy"),
    ("clipped share of tokens", "clipped"),
    ("gradient norm", "grad_norm"),
)


@dataclass(frozen=True, slots=True)
class ModelCard:
    """The facts of a trained model."""

    spec: JobSpec
    snapshot: Snapshot
    began: TrainingStarted
    steps: Sequence[StepReport]
    kind: Literal["adapter", "full"]
    created: datetime
    code_version: str
    checkpoint_sha256: str
    """The seal of its manifest."""
    base_sha256: str | None
    holdout_before: float | None
    holdout_after: float | None
    seconds: float
    """Of training, all attempts of this process."""
    peak_rss_bytes: int
    measure: str = "reward on held-out tasks"
    """What `holdout_before` and `holdout_after` are."""
    curves: str = "curves.png"
    """Where the picture is, seen from the card."""
    done: TrainingDone | None = None
    """How it ended, and how far the policy moved."""


def render_card(card: ModelCard) -> str:
    """The whole card."""
    parts = (
        _front_matter(card),
        _headline_lines(card),
        _data_section(card),
        _configuration_section(card.spec.recipe),
        _results_section(card),
        _provenance_section(card),
        _cost_section(card),
        [
            "## Limits",
            "",
            *(
                f"- {escape_markdown(line)}"
                for line in limitation_sentences(card.began, card.snapshot, card.holdout_after)
            ),
        ],
        [
            "## How to load it",
            "",
            *loading_instructions(card.kind, escape_markdown(card.spec.base_model)),
        ],
    )
    return "\n\n".join("\n".join(part) for part in parts) + "\n"


def _front_matter(card: ModelCard) -> list[str]:
    """What model hubs read."""
    return [
        "---",
        f"base_model: {json.dumps(card.spec.base_model)}",
        f"library_name: {'peft' if card.kind == 'adapter' else 'transformers'}",
        "pipeline_tag: text-generation",
        f"tags: [upswing, {card.spec.recipe.algorithm}]",
        "---",
    ]


def _headline_lines(card: ModelCard) -> list[str]:
    recipe, trained = card.spec.recipe, len(card.snapshot.trained())
    made = (
        f"trained with {recipe.algorithm.upper()} on {trained:,} recorded trajectories "
        f"in {len(card.steps):,} steps."
    )
    what = "A LoRA adapter for" if card.kind == "adapter" else "All weights of"
    return [
        f"# {escape_markdown(card.spec.job_id)}",
        "",
        f"{what} {escape_markdown(card.spec.base_model)}, {made} {_holdout_sentence(card)}",
    ]


def _holdout_sentence(card: ModelCard) -> str:
    before, after = card.holdout_before, card.holdout_after
    if before is None or after is None or not math.isfinite(after - before):
        return "It was not measured on held-out data."
    return f"Its {card.measure} went from {format_number(before)} to {format_number(after)}."


def _data_section(card: ModelCard) -> list[str]:
    snapshot, began = card.snapshot, card.began
    held = sum(entry.held_out for entry in snapshot.entries)
    dropped = Counter(snapshot.left_out) + Counter(began.dropped)
    rows = [
        (
            "snapshot",
            f"`{escape_markdown(snapshot.sha256)}`, from {escape_markdown(snapshot.source)}",
        ),
        ("trajectories", f"{len(snapshot.entries):,} in {len(snapshot.groups):,} groups"),
        ("by domain", _counts_text(snapshot.domains)),
        ("ended between", f"{_time_text(snapshot.earliest)} and {_time_text(snapshot.latest)}"),
        (
            "held out",
            f"{_share_text(held, len(snapshot.entries))}: {snapshot.held_out_tasks} of {snapshot.tasks} tasks",
        ),
        ("reused", f"{snapshot.reused:.1%} had trained an ancestor of this model"),
        ("trained tokens", f"{began.trained_tokens:,}"),
        (
            "off-policy",
            f"{_share_text(began.off_policy_tokens, began.trained_tokens)} of the trained tokens",
        ),
        ("by policy", _shares_text(began.policy_versions)),
        ("groups without a difference", f"{began.flat_groups:,} of {began.groups:,}"),
        ("weights of off-policy tokens", _importance_text(began)),
        ("serving beside training", _mismatch_text(began)),
        ("too long to train, masked", f"{began.masked_trajectories:,}"),
        ("left out", _counts_text(dropped)),
    ]
    notes = [f"- {escape_markdown(note)}" for note in snapshot.notes]
    return ["## Data", "", *_markdown_table(("", ""), rows), *(["", *notes] if notes else [])]


def _importance_text(began: TrainingStarted) -> str:
    """How far what was recorded had to be reweighed to the policy that training starts from."""
    return (
        f"{format_number(began.importance_mean)} on the mean, {began.importance_truncated:.1%} cut at the cap, "
        f"worth {began.effective_sample:.1%} of the tokens"
    )


def _mismatch_text(began: TrainingStarted) -> str:
    """How far the engine that served is from the one that trains, on the same weights."""
    if began.mismatch_kl is None:
        return "nothing that the start policy said was recorded"
    return f"{format_number(began.mismatch_kl)} nats a token, logprobs differ by {format_number(began.mismatch_logp)}"


def _configuration_section(recipe: Recipe) -> list[str]:
    usual = msgspec.to_builtins(Recipe(algorithm=recipe.algorithm))
    settings = msgspec.to_builtins(recipe)
    changed = [
        (key, f"`{escape_markdown(json.dumps(value))}`")
        for key, value in settings.items()
        if value != usual[key]
    ]
    return [
        "## Configuration",
        "",
        f"Algorithm `{recipe.algorithm}`. These knobs differ from the plain defaults:",
        "",
        *_markdown_table(("knob", "value"), changed or [("none", "")]),
        "",
        "<details><summary>The whole recipe</summary>",
        "",
        "```json",
        json.dumps(settings, indent=2),
        "```",
        "",
        "</details>",
    ]


def _results_section(card: ModelCard) -> list[str]:
    before, after = card.holdout_before, card.holdout_after
    change = None if before is None or after is None else after - before
    measured = [
        (
            card.measure,
            format_number(before),
            format_number(after),
            format_number(change, sign=True),
        )
    ]
    rows = [
        (name, *_curve_summary([getattr(step, field) for step in card.steps]))
        for name, field in _CURVE_FIELDS
    ]
    return [
        "## Results",
        "",
        *_markdown_table(
            ("", "before", "after", "change"), [*measured, *_train_reward_rows(card.done)]
        ),
        "",
        *(_policy_change_table(card.done) if card.done else []),
        *_markdown_table(
            ("while training", "first tenth", "last tenth", "lowest", "highest"), rows
        ),
        "",
        f"![Reward, loss, KL, entropy, clipped share and gradient norm by step]({card.curves})",
    ]


def _train_reward_rows(done: TrainingDone | None) -> list[tuple[str, ...]]:
    if done is None or done.train_before is None:
        return []
    before, after = done.train_before, done.train_after
    change = None if after is None else after - before
    return [
        (
            "reward on trained tasks",
            format_number(before),
            format_number(after),
            format_number(change, sign=True),
        )
    ]


def _policy_change_table(done: TrainingDone) -> list[str]:
    """How far what ships is from the policy that training started from."""
    ended = (
        f"stopped at step {done.last_step}: {escape_markdown(done.stopped)}"
        if done.stopped
        else "took all steps"
    )
    diversity = " → ".join(format_number(each) for each in done.diversity or ()) or "–"
    rows = [
        (
            "KL from the parent, nats a reply",
            f"{format_number(done.kl)} of a budget of {format_number(done.kl_budget)}",
        ),
        (
            "greedy answers that changed",
            f"{done.changed_answers:.1%}" if done.changed_answers is not None else "–",
        ),
        ("different first tokens, effectively", diversity),
        ("the job", ended),
        ("what ships", f"the weights after step {done.step}"),
        (
            "held-out rewards are",
            f"{escape_markdown(done.measured_by)}, resting on {done.effective:.0f} episodes",
        ),
    ]
    warning = [f"**Nothing changed.** {escape_markdown(done.advice)}", ""] if done.no_change else []
    return [*warning, *_markdown_table(("movement", ""), rows), ""]


def _curve_summary(values: Sequence[float]) -> tuple[str, ...]:
    """Where a curve began and ended, and between which bounds it ran."""
    finite = [value for value in values if math.isfinite(value)]
    if not finite:
        return ("–",) * 4
    some = max(1, len(finite) // 10)
    first, last = finite[:some], finite[-some:]
    ends = (sum(first) / some, sum(last) / some, min(finite), max(finite))
    return tuple(format_number(end) for end in ends)


def _provenance_section(card: ModelCard) -> list[str]:
    spec = card.spec
    rows = [
        ("base", f"{escape_markdown(spec.base_model)}, sha256 `{card.base_sha256 or 'unknown'}`"),
        ("parent", escape_markdown(spec.parent) or "none: training began at the base"),
        ("job", escape_markdown(spec.job_id)),
        ("data snapshot", f"`{escape_markdown(card.snapshot.sha256)}`"),
        (
            "checkpoint",
            f"`{escape_markdown(card.checkpoint_sha256)}`, the seal in its manifest.json",
        ),
        ("code", f"upswing {escape_markdown(card.code_version)}"),
        ("made", _time_text(card.created)),
        (
            "with",
            ", ".join(
                f"{escape_markdown(name)} {escape_markdown(v)}"
                for name, v in sorted(card.began.versions.items())
            )
            or "–",
        ),
    ]
    return ["## Provenance", "", *_markdown_table(("", ""), rows)]


def _cost_section(card: ModelCard) -> list[str]:
    hours = card.seconds / 3600 * max(1, card.spec.processes)
    price = card.spec.cost_per_hour
    rows = [
        (
            "time",
            f"{card.seconds:,.0f} s in {card.spec.processes} process{'es' * (card.spec.processes != 1)}",
        ),
        ("peak memory", f"{card.peak_rss_bytes / 1e9:.2f} GB"),
        (
            "price",
            f"{hours * price:.2f} USD at {price:g} USD an hour"
            if price > 0
            else "none is set in `[train] cost_per_hour`; `upswing costs` counts `[costs] training_hour`",
        ),
    ]
    return ["## Cost", "", *_markdown_table(("", ""), rows)]


# ── writing ──────────────────────────────────────────────────────────────────────────────────────


def _markdown_table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    lines = [f"| {' | '.join(row)} |" for row in (head, *rows)]
    return [lines[0], f"|{'---|' * len(head)}", *lines[1:]]


def escape_markdown(text: str) -> str:
    r"""Words of others, in one line, that neither end a cell nor begin anything.

    >>> print(escape_markdown("a|b <img> `c`"))
    a\|b &lt;img&gt; c
    """
    one = " ".join(text.split()).replace("`", "").replace("&", "&amp;")
    return one.replace("<", "&lt;").replace(">", "&gt;").replace("|", "\\|").replace("[", "\\[")


def format_number(value: float | None, *, sign: bool = False) -> str:
    """Four digits, or a dash where there is no number.

    >>> format_number(0.12345), format_number(0.5, sign=True), format_number(None), format_number(float("nan"))
    ('0.1235', '+0.5', '–', '–')
    """
    if value is None or not math.isfinite(value):
        return "–"
    return f"{value:+.4g}" if sign else f"{value:.4g}"


def _share_text(part: int, whole: int) -> str:
    return f"{part / whole:.1%}" if whole else "none"


def _counts_text(counts: Mapping[str, int]) -> str:
    largest = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    return ", ".join(f"{escape_markdown(name)} {count:,}" for name, count in largest) or "none"


def _shares_text(shares: Mapping[str, float]) -> str:
    largest = sorted(shares.items(), key=lambda item: (-item[1], item[0]))
    return ", ".join(f"{escape_markdown(name)} {share:.1%}" for name, share in largest) or "unknown"


def _time_text(moment: datetime | None) -> str:
    return f"{moment:%Y-%m-%d %H:%M} UTC" if moment else "–"
