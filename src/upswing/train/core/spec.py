"""What does a training child receive? One file, `job.json`, in the job's folder.

| in the folder        | what it is                                                       |
|----------------------|------------------------------------------------------------------|
| `job.json`           | this specification                                               |
| `samples.jsonl`      | the data, one `Sample` a line; deleted when the job is over      |
| `checkpoints/…`      | `step-000050/`, `best/`, `final/`                                |
| `artifacts/…`        | `curves.png`, `tensorboard/`, `card.md`, `snapshot.json`, `rollouts.jsonl` |
| `steps.jsonl`        | what every step reported, so that curves survive a restart       |
| `evaluations.jsonl`  | how far the policy was from its start, and what it was worth     |
| `logprobs.safetensors` | of the behaviour and the reference, computed once              |
| `child.log`          | whatever else the child printed                                  |
"""

from __future__ import annotations

import msgspec

from upswing.train.core.recipe import Recipe


class JobSpec(msgspec.Struct, frozen=True):
    """One attempt at one job."""

    job_id: str
    recipe: Recipe
    base_model: str
    """A name we know (`tiny`, `smollm2`) or a folder."""
    start: str | None = None
    """Folder of the checkpoint that training starts from; none means the base itself."""
    behaviours: dict[str, str] = {}
    """Model name → folder of its checkpoint, for logprobs that were not recorded."""
    snapshot: str = ""
    """Hash of the data snapshot."""
    parent: str = ""
    """Name of the model that `start` belongs to."""
    drop: list[str] = []
    """Trajectories to leave out: they were found to be bad."""
    last_good_step: int | None = None
    """Go on from this checkpoint at the latest: what came after it diverged."""
    memory_bytes: int | None = None
    """What the child may take; beyond it, its next allocation fails."""
    threads: int | None = None
    shares_cores: bool = msgspec.field(default=False, name="beside")
    """Whether a model server works on the same cores."""
    processes: int = 1
    """More than one: the passes of each step are spread over them."""
    cache: str = ""
    """Folder in which bases are kept that we make ourselves."""
    worlds: dict[str, str] = {}
    """Worlds of the user's own, by name: where held-out tasks and fresh rollouts can be played."""
    cost_per_hour: float = 0.0
    """US dollars, for the model card and the status."""


def group_key(window_id: str, scenario_id: str) -> str:
    """Agents that acted in the same window and scenario are compared."""
    return f"{window_id.replace('/', '%2F')}/{scenario_id}"
