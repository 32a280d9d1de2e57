"""Code that nobody vouches for, in real child processes."""

import asyncio
import contextlib
import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from tests.support import until
from tests.validate.scripted import right_answer, wrong_answer
from upswing.contracts.validation import Program, ProgramCase
from upswing.errors import Transient
from upswing.validate.core.moves import TaskResult
from upswing.validate.core.play import next_move
from upswing.validate.sandbox import seccomp
from upswing.validate.sandbox.sandbox import Sandbox, SandboxLimits
from upswing.validate.suite_loader import builtin_tasks

pytestmark = pytest.mark.live
QUICK = SandboxLimits(cpu_seconds=1, wall_seconds=300)
PATIENT = SandboxLimits(cpu_seconds=60, wall_seconds=300)
"""Whatever ends there, is not ended by its time."""
ALL = ("namespaces", "root", "landlock", "seccomp")
linux = pytest.mark.skipif(sys.platform != "linux", reason="the kernel's fences are Linux's")
NETWORK = """
import socket
def reach(port):
    with socket.socket() as line:
        line.settimeout(2)
        line.connect(("127.0.0.1", port))
        return "reached"
"""
FORK_BOMB = """
import os
started = 0
def bomb():
    global started
    for _ in range(1000):
        if os.fork() == 0:
            bomb()
        started += 1
"""
MEMORY_BOMB = (
    "hoard = []\ndef bomb():\n    while True:\n        hoard.append(bytearray(50_000_000))\n"
)


async def run(source, *gives, limits=PATIENT, fences=ALL):
    return await Sandbox(limits, fences=fences)(Program(source, tuple(map(ProgramCase, gives))))


def errors(ran):
    return [gave.error for gave in ran.gave]


async def test_a_program_computes_and_says_what_held_it_in():
    ran = await run("def double(x):\n    return 2 * x", "double(4)", "double('ab')", "(1, {2})")
    assert [gave.value for gave in ran.gave] == [8, "abab", [1, [2]]]
    assert ran.ended == "done"
    assert ran.fences[0] == "limits"


@linux
async def test_this_machine_has_every_fence_of_the_kernel():
    ran = await run("", "1")
    if os.uname().machine not in {"x86_64", "aarch64"} or "namespaces" not in ran.fences:
        pytest.skip(f"this machine has {ran.fences}")
    assert ran.fences == ("limits", *ALL)


async def test_an_error_is_what_a_case_gives():
    ran = await run("", "1 / 0", "object()", "2")
    assert errors(ran)[0] == "ZeroDivisionError: division by zero"
    assert "no JSON value" in errors(ran)[1]
    assert ran.gave[2].value == 2


async def test_a_program_that_does_not_load_says_why():
    ran = await run("def f(:", "1")
    assert ran.broken.startswith("SyntaxError")
    assert ran.gave == ()


async def test_a_loop_without_end_is_killed_at_its_cpu_time():
    ran = await run("def spin():\n    while True:\n        pass", "7", "spin()", limits=QUICK)
    assert ran.ended == "killed"
    assert [gave.value for gave in ran.gave] == [7]


async def test_waiting_without_end_is_killed_at_the_wall_time():
    ran = await run("import time", "time.sleep(600)", limits=SandboxLimits(wall_seconds=1))
    assert ran.ended == "timeout"


async def test_a_memory_bomb_gets_no_memory():
    ran = await run(MEMORY_BOMB, "bomb()", "len(hoard)")
    assert errors(ran)[0].startswith("MemoryError")
    assert ran.gave[1].value * 50_000_000 <= SandboxLimits().memory_bytes


@linux
async def test_a_fork_bomb_forks_not_once():
    ran = await run(FORK_BOMB, "bomb()", "started", limits=QUICK)
    assert "PermissionError" in errors(ran)[0]
    assert ran.gave[1].value == 0


@linux
async def test_threads_are_few():
    source = (
        "import threading, time\n"
        "def many():\n"
        "    for _ in range(5000):\n"
        "        threading.Thread(target=time.sleep, args=(5,), daemon=True).start()\n"
    )
    ran = await run(source, "many()", "threading.active_count() < 200")
    assert "can't start new thread" in errors(ran)[0]
    assert ran.gave[1].value is True


@pytest.mark.parametrize(
    "fences", [ALL, ("namespaces", "seccomp"), ("landlock", "seccomp"), ("seccomp",), ()]
)
async def test_the_network_is_refused(fences):
    async with await asyncio.start_server(lambda *_: None, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        ran = await run(NETWORK, f"reach({port})", fences=fences)
    assert "PermissionError" in errors(ran)[0]


@linux
async def test_without_seccomp_the_namespace_has_no_network():
    source = "import _socket\n" + NETWORK
    async with await asyncio.start_server(lambda *_: None, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        ran = await run(source, f"reach({port})", fences=("namespaces", "landlock"))
    assert ran.gave[0].error


@pytest.mark.parametrize("fences", [ALL, ("landlock", "seccomp"), ("namespaces",), ()])
async def test_the_data_directory_cannot_be_read_or_changed(fences, tmp_path):
    data = tmp_path / "data"
    data.mkdir(mode=0o755)
    secret = data / "store.db"
    secret.write_text("a user's secret")
    ran = await run(
        "import os, shutil",
        f"open({str(secret)!r}).read()",
        f"open({str(secret)!r}, 'w').write('gone')",
        f"open({str(data / 'new')!r}, 'w')",
        f"os.remove({str(secret)!r})",
        f"shutil.rmtree({str(data)!r})",
        fences=fences,
    )
    refused = ("PermissionError", "FileNotFoundError")
    assert all(error.startswith(refused) for error in errors(ran)), errors(ran)
    assert secret.read_text() == "a user's secret"


async def test_it_writes_in_its_own_folder_and_nothing_of_that_stays(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    ran = await run("", "open('note', 'w').write('hello')", "open('note').read()")
    assert [gave.value for gave in ran.gave] == [5, "hello"]
    assert list(tmp_path.iterdir()) == []


@linux
async def test_its_folder_is_small():
    many = "[open(f'f{i}', 'wb').write(bytes(4_000_000)) for i in range(10)]"
    ran = await run("", "open('big', 'wb').write(bytes(100_000_000))", many)
    if "namespaces" not in ran.fences:
        pytest.skip("without namespaces only single files are bounded")
    assert all(error.startswith("OSError") for error in errors(ran)), errors(ran)


async def test_huge_output_is_cut_off():
    ran = await run("print('x' * 20_000_000)", "1", limits=SandboxLimits())
    assert len(ran.output) == SandboxLimits().output_bytes
    assert ran.gave[0].value == 1


async def test_a_huge_value_is_no_value():
    ran = await run("", "1", "'x' * 20_000_000", "2")
    assert [gave.value for gave in ran.gave] == [1]


@linux
@pytest.mark.parametrize(
    "attempt",
    [
        "os.kill(os.getppid(), 9)",
        "os.kill(-1, 9)",
        "os.setsid()",
        "os.execv('/bin/true', ['true'])",
        "os.system('true') == 0 or 1 / 0",
        "subprocess.run(['true'])",
        "ctypes.CDLL(None).unshare(0x10000000) == -1 and 1 / 0",
        "ctypes.CDLL(None).ptrace(16, os.getppid(), 0, 0) == -1 and 1 / 0",
        "ctypes.CDLL(None).syscall(41, 2, 1, 0) == -1 and 1 / 0",
        "open('/proc/self/mem', 'rb')",
        "open('/etc/passwd')",
        "os.listdir('/')",
        "multiprocessing.Pool(1)",
    ],
)
async def test_ways_out_are_closed(attempt):
    ran = await run("import os, subprocess, ctypes, multiprocessing", attempt)
    assert ran.gave[0].error, ran.gave


async def test_secrets_of_the_environment_are_not_passed_on(monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "sk-planted")
    ran = await run("import os", "dict(os.environ)")
    assert set(ran.gave[0].value) <= {"PATH", "HOME", "TMPDIR", "LC_ALL", "LC_CTYPE", "PWD"}


async def test_what_a_program_says_of_itself_is_only_compared():
    """It may write whatever it likes into the report: it does not know what is expected."""
    task = next(task for task in builtin_tasks("code_generation") if task.task_id == "code-clamp")
    forged = (
        "import os, sys, json\n"
        "for handle in range(3, 20):\n"
        "    try:\n"
        "        os.write(handle, b'{\"value\": true}\\n' * 50)\n"
        "    except OSError:\n"
        "        pass\n"
        "class Always:\n"
        "    def __eq__(self, other):\n"
        "        return True\n"
        'json.dumps = lambda *_, **__: \'{"value": true, "passed": true}\'\n'
        "def clamp(*_):\n"
        "    return Always()\n"
    )
    assert (await score_of(task, forged)).score == 0


async def test_an_early_exit_is_not_success():
    task = next(task for task in builtin_tasks("code_generation") if task.task_id == "code-clamp")
    for source in ("import os\nos._exit(0)", "import sys\nsys.exit(0)", "raise SystemExit"):
        assert (await score_of(task, source)).score == 0


async def score_of(task, source):
    from upswing.contracts.validation import TaskAnswer

    events = [TaskAnswer(f"```python\n{source}\n```")]
    events.append(await Sandbox(QUICK)(next_move(task, events).program))
    return next_move(task, events)


@pytest.mark.parametrize("task", builtin_tasks("code_generation"), ids=lambda task: task.task_id)
async def test_the_reference_of_every_code_task_passes(task):
    events = [right_answer(task, task.messages)]
    events.append(await Sandbox(SandboxLimits(wall_seconds=60))(next_move(task, events).program))
    done = next_move(task, events)
    assert done.score == 1, done.sentence


def test_an_answer_without_code_is_not_even_run():
    for task in builtin_tasks("code_generation"):
        assert next_move(task, [wrong_answer(task)]) == TaskResult(0.0, "The answer has no code.")


async def test_a_sandbox_that_does_not_start_is_not_the_programs_fault(monkeypatch):
    monkeypatch.setattr(sys, "executable", "/nonexistent/python")
    with pytest.raises(Transient, match="does not start"):
        await run("", "1")


async def test_a_cancelled_run_leaves_no_process(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    task = asyncio.create_task(run("import time", "time.sleep(600)", limits=SandboxLimits()))
    folder = await until(lambda: next(tmp_path.iterdir(), None))
    await until(lambda: processes_of(folder))
    task.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await task
    assert not processes_of(folder)
    assert not folder.exists()


@linux
async def test_it_dies_with_whoever_started_it(tmp_path):
    script = (
        "import asyncio, tempfile\n"
        f"tempfile.tempdir = {str(tmp_path)!r}\n"
        "from upswing.validate.sandbox.sandbox import Sandbox\n"
        "from upswing.contracts.validation import Program, ProgramCase\n"
        "asyncio.run(Sandbox()(Program('import time', (ProgramCase('time.sleep(600)'),))))\n"
    )
    parent = subprocess.Popen([sys.executable, "-c", script])
    try:
        folder = await until(lambda: next(tmp_path.iterdir(), None))
        await until(lambda: len(processes_of(folder)) >= 2 or None)
    finally:
        parent.send_signal(signal.SIGKILL)
        parent.wait()
    await until(lambda: not processes_of(folder), what="a sandboxed process outlived its parent")


def processes_of(folder):
    """The processes that have this folder as their home."""
    wanted = f"HOME={folder.resolve()}".encode()
    found = []
    for path in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if wanted in (path / "environ").read_bytes().split(b"\0"):
                found.append(int(path.name))
    return found


@pytest.mark.parametrize("machine", ["x86_64", "aarch64"])
def test_the_filter_refuses_every_call_of_its_list(machine):
    """The filter is a small program: run it here, call by call."""
    column, architecture = seccomp._MACHINES[machine]
    for metadata, refused in (
        (False, seccomp._REFUSED),
        (True, seccomp._REFUSED | seccomp._METADATA),
    ):
        lines = seccomp.program(column, architecture, metadata=metadata)
        for name, row in refused.items():
            if row[column] is not None:
                assert filtered(lines, architecture, row[column]) == "EPERM", name
    assert filtered(lines, architecture, seccomp._CLONE3) == "ENOSYS"
    assert filtered(lines, architecture, seccomp._CLONE[column], 0x11) == "EPERM"
    assert filtered(lines, architecture, seccomp._CLONE[column], 0x3D0F00) == "allow"
    assert filtered(lines, architecture, seccomp._SOCKETPAIR[column], 1) == "allow"
    assert filtered(lines, architecture, seccomp._SOCKETPAIR[column], 2) == "EPERM"
    assert filtered(lines, architecture, 0) == "allow"
    for command, answer in ((0x40086602, "EPERM"), (0x401C5820, "EPERM"), (0x5401, "allow")):
        assert filtered(lines, architecture, seccomp._IOCTL[column], second=command) == answer
    assert filtered(lines, architecture ^ 1, 0) == "kill"
    assert filtered(lines, architecture, 0x40000000 + 41) == "EPERM"


def filtered(lines, architecture, number, argument=0, second=0):
    seen = {0: number, 4: architecture, 16: argument, 24: second}
    at, held = 0, 0
    while True:
        code, then, otherwise, operand = lines[at]
        at += 1
        if code == seccomp._LOAD:
            held = seen[operand]
        elif code == seccomp._RETURN:
            meanings = {
                seccomp._ALLOW: "allow",
                seccomp._KILL: "kill",
                seccomp._ERROR | 1: "EPERM",
                seccomp._ERROR | 38: "ENOSYS",
            }
            return meanings[operand]
        else:
            true = {
                seccomp._EQUAL: held == operand,
                seccomp._ANY_BIT: bool(held & operand),
                seccomp._AT_LEAST: held >= operand,
            }[code]
            at += then if true else otherwise
