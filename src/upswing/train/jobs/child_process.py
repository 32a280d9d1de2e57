"""How is a training child started, read and ended?

It is a process group of its own with a limit on its memory, so that running out of it, or being
killed, never takes the service along. It reports on its standard output; whatever else it prints
goes to `child.log` in the job's folder.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import resource
import socket
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec

from upswing.infra.child_env import child_environment
from upswing.infra.heartbeat import HeartbeatMonitor, group_work
from upswing.infra.process import kill_group, launch_child
from upswing.train.core.report import DECODER, Report
from upswing.train.core.spec import JobSpec

log = logging.getLogger(__name__)
_MAX_LINE_BYTES = 1024 * 1024
_EXIT_TIMEOUT_SECONDS = 60.0
"""For a child that has closed its pipe."""
_LOG_TAIL_BYTES = 8000


class TrainingProcess:
    """One attempt at one job, running."""

    def __init__(self, process: asyncio.subprocess.Process, log_path: Path) -> None:
        self._process = process
        self._log_path = log_path
        self._pulse = HeartbeatMonitor()
        self.pid = process.pid

    async def next_report(self) -> Report | None:
        """The next report; None when it has ended."""
        assert self._process.stdout is not None  # noqa: S101 - we asked for a pipe
        while line := await self._process.stdout.readline():
            self._pulse.beat()
            with contextlib.suppress(msgspec.MsgspecError):  # a line torn by its death
                return DECODER.decode(line)
        return None

    def is_frozen(self, now: float) -> bool:
        """Whether it neither beats nor computes; asked about once a second."""
        return self._pulse.is_frozen(now, lambda: group_work(self.pid))

    async def wait(self) -> int:
        """Its exit code; negative: the signal that ended it. One that closed its pipe and does not exit is killed."""
        try:
            async with asyncio.timeout(_EXIT_TIMEOUT_SECONDS):
                return await self._process.wait()
        except TimeoutError:
            log.warning(
                "a training child closed its pipe and did not exit", extra={"action": "child_stays"}
            )
            await self.kill()
            return await self._process.wait()

    async def kill(self) -> None:
        """Kill the whole process group, also when it is stopped or ignores signals."""
        kill_group(self._process)
        await self._process.wait()

    def log_tail(self) -> str:
        """The end of its log."""
        try:
            return self._log_path.read_bytes()[-_LOG_TAIL_BYTES:].decode(errors="replace")
        except OSError:
            return ""


async def launch_training(job_folder: Path, spec: JobSpec) -> TrainingProcess:
    """Start the child of `job.json` in this folder."""
    log_path = job_folder / "child.log"
    with log_path.open("wb") as errors:
        process = await launch_child(
            *_child_command(job_folder, spec.processes),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=errors,
            env=_child_environment(spec),
            prepare=_child_setup(spec.memory_bytes),
            limit=_MAX_LINE_BYTES,
        )
    return TrainingProcess(process, log_path)


def _child_command(job_folder: Path, processes: int) -> Sequence[str]:
    if processes > 1:
        return (
            sys.executable,
            "-m",
            "torch.distributed.run",
            "--nproc_per_node",
            str(processes),
            "--master_addr",
            "127.0.0.1",
            "--master_port",
            str(_free_port()),
            "-m",
            "upswing.train.child",
            str(job_folder),
        )
    return (sys.executable, "-m", "upswing.train.child", str(job_folder))


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def _child_environment(spec: JobSpec) -> dict[str, str]:
    """Nothing is fetched, as many threads as configured, and memory that was freed is given back.

    Without the last, activations of different sizes leave holes that nothing fits: a pass over 2048
    tokens of a 135-million model peaks at 5.9 GB instead of 3.9.
    """
    known = {
        **child_environment(),
        "HF_HUB_OFFLINE": "1",
        "TOKENIZERS_PARALLELISM": "false",
        "MALLOC_MMAP_THRESHOLD_": str(1024 * 1024),
    }
    if spec.threads:
        known["OMP_NUM_THREADS"] = str(spec.threads)
    return known


def _child_setup(memory_bytes: int | None) -> Callable[[], None]:
    def prepare() -> None:
        if memory_bytes is not None:
            resource.setrlimit(resource.RLIMIT_DATA, (memory_bytes, memory_bytes))
        with contextlib.suppress(OSError):  # elsewhere than on Linux
            Path("/proc/self/oom_score_adj").write_text("500")

    return prepare
