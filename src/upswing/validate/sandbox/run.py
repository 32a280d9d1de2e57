"""How is one program run here, and what is told of it?

Standard input holds the order, one JSON object. Standard output is a list of JSON lines: first the
fences that stand, then for each case `{"value": …}` or `{"error": …}`. What the program prints goes
to standard error.
"""

from __future__ import annotations

import contextlib
import json
import os
import resource
import sys
from collections.abc import Collection, Mapping
from typing import Any

from upswing.validate.sandbox import hooks, landlock, libc, namespaces, root, seccomp


def main() -> None:
    order = json.load(sys.stdin)
    sys.path[:] = [path for path in sys.path if path != order["library"]]
    output = os.fdopen(os.dup(1), "w", encoding="utf-8", errors="replace")
    os.dup2(2, 1)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    fences = close_fences(order["folder"], order["limits"], order["fences"])
    _write_line(output, {"fences": fences})
    _run_program(order, output)
    output.flush()
    with contextlib.suppress(OSError, ValueError):
        sys.stdout.flush()
    os._exit(0)  # what the program left to be done at the end is not waited for


def close_fences(folder: str, limits: Mapping[str, int], wanted: Collection[str]) -> list[str]:
    """Shut the doors that are wanted, as far as there are such doors; the names of those shut."""
    fences = ["limits"]
    os.chdir(folder)
    if libc.LINUX and "namespaces" in wanted:
        namespaces.leave_root(folder)
        if namespaces.enter(folder, limits["disk_bytes"], limits["wall_seconds"] + 5):
            fences.append("namespaces")
            if "root" in wanted and root.change(folder):
                fences.append("root")
    _limit(limits)
    if libc.LINUX:
        libc.gain_no_privileges()
        if "landlock" in wanted and landlock.restrict(folder):
            fences.append("landlock")
        with contextlib.suppress(OSError):
            libc.drop_capabilities()
        if "seccomp" in wanted and seccomp.refuse(metadata="root" not in fences):
            fences.append("seccomp")
    if not {"root", "landlock", "seccomp"} <= set(fences):
        hooks.install_audit_hook(folder)
        fences.append("hooks")
    return fences


def _limit(limits: Mapping[str, int]) -> None:
    for name, value in (
        ("RLIMIT_CPU", limits["cpu_seconds"]),
        ("RLIMIT_AS", limits["memory_bytes"]),
        ("RLIMIT_FSIZE", limits["disk_bytes"]),
        ("RLIMIT_NOFILE", 64),
        ("RLIMIT_NPROC", limits["processes"]),
        ("RLIMIT_CORE", 0),
    ):
        with contextlib.suppress(ValueError, OSError):  # macOS has no limit on addresses
            resource.setrlimit(getattr(resource, name), (value, value))


def _run_program(order: Mapping[str, Any], output: Any) -> None:
    space: dict[str, Any] = {"__name__": "answer"}
    try:
        exec(compile(order["source"], "answer.py", "exec"), space)  # noqa: S102 - that is the purpose
    except BaseException as error:  # noqa: BLE001 - a program may raise what it likes
        _write_line(output, {"broken": _error_text(error)})
        return
    for case in order["cases"]:
        try:
            exec(compile(case["run"], "case.py", "exec"), space)  # noqa: S102 - likewise
            value = eval(compile(case["give"], "case.py", "eval"), space)  # noqa: S307 - likewise
            line = json.dumps({"value": value}, default=_json_default)
        except BaseException as error:  # noqa: BLE001 - likewise
            line = json.dumps({"error": _error_text(error)})
        output.write(f"{line}\n")
        output.flush()


def _error_text(error: BaseException) -> str:
    try:
        return f"{type(error).__name__}: {error}"[:300]
    except BaseException:  # noqa: BLE001 - even its text may be a trap
        return "an error that cannot be shown"


def _json_default(value: Any) -> Any:
    if isinstance(value, set | frozenset):
        return sorted(value)
    raise TypeError(f"{type(value).__name__} is no JSON value")


def _write_line(output: Any, message: Mapping[str, Any]) -> None:
    output.write(f"{json.dumps(message)}\n")
    output.flush()
