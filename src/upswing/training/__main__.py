"""Run a job; whatever ends it early is told with its kind, so that the right answer can be given."""

from __future__ import annotations

import errno
import os
import sys
import traceback
from pathlib import Path

from upswing.contracts.typed import from_json
from upswing.errors import UpswingError
from upswing.train.report import Code, Failed
from upswing.train.spec import JobSpec
from upswing.training.channel import Channel

_LONGEST_TRACE = 8000
_NICE = 5
"""So much the processors prefer others in a job that plays: agents who wait for an answer come first."""


def main(folder: Path) -> int:
    """0 when the model is there."""
    channel = Channel(silent=os.environ.get("RANK", "0") != "0")
    channel.start_beating()
    try:
        spec = from_json((folder / "job.json").read_bytes(), JobSpec)
        if spec.recipe.rollouts is not None:
            os.nice(_NICE)
        channel.doing = "loading libraries"
        from upswing.training.session import Session

        Session(folder, spec, channel).run()
    except Exception as error:  # noqa: BLE001 - the child's one catch-all: it must say why it ends
        code, bad = kind_of(error)
        trace = "".join(traceback.format_exception(error))[-_LONGEST_TRACE:]
        channel.tell(Failed(code, _sentence(error), trace, channel.step, bad))
        return 1
    return 0


def kind_of(error: BaseException) -> tuple[Code, list[str]]:
    """What kind of trouble this is, and which trajectories are to blame.

    >>> kind_of(MemoryError())[0], kind_of(OSError(errno.ENOSPC, "full"))[0], kind_of(KeyError())[0]
    ('OOM', 'INFRA', 'UNKNOWN')
    >>> kind_of(RuntimeError("DefaultCPUAllocator: can't allocate memory"))[0]
    'OOM'
    """
    name = type(error).__name__
    if isinstance(error, MemoryError) or name == "OutOfMemoryError":
        return "OOM", []
    if isinstance(error, RuntimeError) and ("allocate" in str(error) or "memory" in str(error)):
        return "OOM", []
    if name == "Diverged":
        return "CONVERGENCE", []
    if name == "Unlearnable":
        return "DATA", list(getattr(error, "bad", ()))
    if isinstance(error, OSError):
        return ("OOM" if error.errno == errno.ENOMEM else "INFRA"), []
    return ("DATA" if isinstance(error, UpswingError) else "UNKNOWN"), []


def _sentence(error: BaseException) -> str:
    return (str(error) or type(error).__name__).splitlines()[0][:500]


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
