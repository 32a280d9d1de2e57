"""What must a model's card say in words? What the model is not, and how it is loaded."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from upswing.dataset.snapshot import Snapshot
from upswing.train.core.report import TrainingStarted

_VERIFY = """
Look at it before you load it. Nothing of it is executed by this:

```python
from pathlib import Path
from upswing.train.checkpoints.checking import verify

base = "BASE"  # the folder of the base
checkpoint = "CHECKPOINT"  # the folder with manifest.json
verify(Path(checkpoint), base=Path(base))
```
"""
_ADAPTER = """
```python
from peft import PeftModel
from transformers import AutoModelForCausalLM, AutoTokenizer

tokenizer = AutoTokenizer.from_pretrained(base)
model = PeftModel.from_pretrained(AutoModelForCausalLM.from_pretrained(base), checkpoint)
```

With vLLM: `--model BASE --enable-lora --lora-modules NAME=CHECKPOINT`.
"""
_FULL = """
```python
from transformers import AutoModelForCausalLM, AutoTokenizer

tokenizer = AutoTokenizer.from_pretrained(checkpoint)
model = AutoModelForCausalLM.from_pretrained(checkpoint)
```

With vLLM: `--model CHECKPOINT`.
"""


def loading_instructions(kind: Literal["adapter", "full"], base_model: str) -> list[str]:
    """How the model is loaded, as Markdown."""
    needed = (
        f"It needs its base, {base_model}: the one whose sha256 stands above, and no other."
        if kind == "adapter"
        else "It is complete: the weights and the base's tokenizer."
    )
    return f"{needed}\n{_VERIFY}{_ADAPTER if kind == 'adapter' else _FULL}".strip().splitlines()


def limitation_sentences(
    started: TrainingStarted, snapshot: Snapshot, holdout_after: float | None
) -> Iterator[str]:
    """What the numbers of this training do not show, one sentence each."""
    yield (
        "It was trained to score well by the rewards of these trajectories; where those are wrong "
        "or can be played, so is it."
    )
    yield "Nothing on this card says that it is safe or may ship: validation and canary decide that."
    domains = sorted(snapshot.domains)
    if domains:
        yield f"It saw {', '.join(domains)} only; elsewhere it may have become worse than its base."
    if holdout_after is None:
        yield "No held-out data was measured, so nothing here shows that it generalises."
    elif snapshot.held_out_tasks < 30:
        yield f"Only {snapshot.held_out_tasks} tasks were held out: the held-out numbers are rough."
    if started.trained_tokens and started.off_policy_tokens > 0.2 * started.trained_tokens:
        share = started.off_policy_tokens / started.trained_tokens
        yield f"{share:.0%} of its tokens were not recorded exactly, so training was partly off-policy."
    if started.groups and started.flat_groups > 0.5 * started.groups:
        yield f"{started.flat_groups} of {started.groups} groups had no difference in reward to learn from."
    if snapshot.reused > 0.5:
        yield f"{snapshot.reused:.0%} of its data had trained its ancestors before: it may have memorised."
    yield "Text was redacted before training; what a redactor misses can be in the weights."
