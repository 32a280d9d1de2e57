"""How does a checkpoint come here, how good is a model, and how is it put before users?"""

from __future__ import annotations

import asyncio
import os
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from upswing.errors import Misuse, Transient
from upswing.integrations.operations.loop_port import LoopPort, path_of
from upswing.rl_trainer import arguments
from upswing.sdk.target import resolve
from upswing.train.checkpoints.storage import CheckpointStore

SUITES = {
    "code_gen": "code_generation",
    "research": "research_synthesis",
    "tools": "tool_usage",
}
"""What the profile calls suites → what they are called."""
_WAIT_SECONDS = 1.0
"""Between two looks at a validation."""


def download_checkpoint(s3_path: str, local_path: str | Path | None = None) -> Path:
    """Bring a checkpoint here, verified byte by byte; where it is now.

    `s3_path` is any place that Upswing keeps checkpoints in: `s3://bucket/prefix/checkpoint`, `file://…` or a folder. It
    gets a folder of its own below `local_path` (by default, `checkpoints` among the temporary files).
    """
    location, _, name = arguments.text(s3_path, "s3_path").rstrip("/").rpartition("/")
    if not location or not name:
        raise Misuse(f"{s3_path!r} is no path of a checkpoint, such as s3://bucket/models/job-1.")
    folder = Path(local_path) if local_path else Path(tempfile.gettempdir()) / "checkpoints"
    target = folder.expanduser().absolute() / name
    if target.exists():
        raise Misuse(f"{target} is there already: remove it, or name another folder.")
    target.parent.mkdir(parents=True, exist_ok=True)
    asyncio.run(CheckpointStore(location).download(name, target))
    return target


def run_benchmarks(
    model_path: str,
    tasks: Sequence[str] = ("code_gen", "data_analysis", "research"),
    *,
    against: str | None = None,
    timeout: float = 3600.0,
) -> dict[str, Any]:
    """Have a model play suites, task by task beside the one that answers; verdict, and both scores of each suite.

    `model_path` is a model's id, or the path of a checkpoint that is registered. It waits at most `timeout` seconds.
    """
    arguments.text(model_path, "model_path")
    suites = [arguments.text(task, "tasks") for task in arguments.several(tasks, "tasks")]
    ends = time.monotonic() + arguments.seconds(timeout, "timeout")
    return asyncio.run(_benchmark(_loop(), model_path, suites, against, ends))


async def _benchmark(
    loop: LoopPort, model: str, tasks: Sequence[str], against: str | None, deadline: float
) -> dict[str, Any]:
    asked: dict[str, Any] = {
        "model_id": await _model_id(loop, model),
        "suites": [SUITES.get(task, task) for task in tasks],
        **({"against": against} if against else {}),
    }
    started = await loop.post("/v1/validations", asked)
    path = path_of("/v1/validations/{id}", id=started["validation_id"])
    while (found := await loop.get(path))["state"] == "running":
        if time.monotonic() > deadline:
            raise Transient(f"Validation {started['validation_id']} is still under way: ask later.")
        await asyncio.sleep(_WAIT_SECONDS)
    suites = (found.get("report") or {}).get("suites", [])
    return {
        "validation_id": started["validation_id"],
        "verdict": found["word"],
        "sentence": found["sentence"],
        "scores": {suite["name"]: suite["candidate"] for suite in suites},
        "current": {suite["name"]: suite["current"] for suite in suites},
    }


async def _model_id(loop: LoopPort, model: str) -> str:
    if "/" not in model:
        return model
    known = (await loop.get("/admin/models"))["models"]
    for row in known:
        if str(row.get("checkpoint_path", "")).rstrip("/") == model.rstrip("/"):
            return str(row["model_id"])
    raise Misuse(
        f"No model has the checkpoint {model}: register it with deploy_to_tensorzero first."
    )


def deploy_to_tensorzero(
    model_id: str,
    checkpoint_path: str,
    rollout_strategy: str = "canary",
    *,
    base_model: str | None = None,
) -> dict[str, Any]:
    """Register a checkpoint as a candidate. The loop validates it, and rolls it out in steps if it is better.

    The loop chooses the strategy by how much better the model is, so only `canary` can be asked for: nobody puts a model
    before all users by a call.
    """
    arguments.text(model_id, "model_id")
    arguments.text(checkpoint_path, "checkpoint_path")
    if rollout_strategy != "canary":
        raise Misuse(
            f"A rollout is not {rollout_strategy!r} by request: the loop chooses `blue_green` itself where a model is far "
            "better, and an operator sets traffic with `upswing traffic`."
        )
    body = {
        "model_id": model_id,
        "checkpoint_path": checkpoint_path,
        **({"base_model": base_model} if base_model else {}),
    }
    made: dict[str, Any] = asyncio.run(_loop().post("/admin/models", body))
    return made


def _loop() -> LoopPort:
    found = resolve(None, None, None, {**os.environ, "NATS_URL": ""})
    if found is None or not found.url.startswith(("http:", "https:")):
        raise Misuse("No loop is known: set AGENTGYM_RL_URL and AGENTGYM_RL_API_KEY, or start one.")
    return LoopPort(found.url, found.key)
