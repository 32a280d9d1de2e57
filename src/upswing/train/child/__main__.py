"""Run a job; whatever ends it early is reported with its kind, so that recovery can decide."""

from __future__ import annotations

import errno
import os
import sys
import traceback
from pathlib import Path

from upswing.contracts.typed import from_json
from upswing.errors import UpswingError
from upswing.train.child.channel import ReportChannel
from upswing.train.core.exit_verdict import says_out_of_memory
from upswing.train.core.report import FailureCode, TrainingError, TrainingFailed
from upswing.train.core.spec import JobSpec

_MAX_TRACE = 8000
_NICE = 5
"""So much the processors prefer others in a job that plays: agents who wait for an answer come first."""


def main(folder: Path) -> int:
    """0 when the model is there."""
    channel = ReportChannel(silent=os.environ.get("RANK", "0") != "0")
    channel.start_heartbeat()
    try:
        spec = from_json((folder / "job.json").read_bytes(), JobSpec)
        if spec.recipe.rollouts is not None:
            os.nice(_NICE)
        channel.activity = "loading libraries"
        from upswing.train.child.session import TrainingSession

        TrainingSession(folder, spec, channel).run()
    except Exception as error:  # noqa: BLE001 - the child's one catch-all: it must say why it ends
        code, bad = classify_error(error)
        trace = "".join(traceback.format_exception(error))[-_MAX_TRACE:]
        channel.send(TrainingFailed(code, _first_line(error), trace, channel.step, bad))
        return 1
    return 0


def classify_error(error: BaseException) -> tuple[FailureCode, list[str]]:
    """What kind of trouble this is, and which trajectories are to blame.

    >>> classify_error(MemoryError())[0], classify_error(OSError(errno.ENOSPC, "full"))[0], classify_error(KeyError())[0]
    ('OOM', 'INFRA', 'UNKNOWN')
    """
    match error:
        case TrainingError():
            return error.failure_code, list(error.bad_trajectories)
        case MemoryError():
            return "OOM", []
        case OSError():
            return ("OOM" if error.errno == errno.ENOMEM else "INFRA"), []
        case RuntimeError() if _is_out_of_memory(error):
            return "OOM", []
        case UpswingError():
            return "DATA", []
        case _:
            return "UNKNOWN", []


def _is_out_of_memory(error: RuntimeError) -> bool:
    """As torch says it: on an accelerator by a type of its own, on a CPU in the text alone."""
    import torch

    return isinstance(error, torch.OutOfMemoryError) or says_out_of_memory(str(error))


def _first_line(error: BaseException) -> str:
    return (str(error) or type(error).__name__).splitlines()[0][:500]


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
