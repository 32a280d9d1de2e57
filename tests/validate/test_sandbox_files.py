"""Files that are not the program's: can it look at them, or change their mode, owner or times?"""

import json
import os
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from pathlib import Path

import pytest

from upswing.contracts.validation import Program, ProgramCase
from upswing.validate.sandbox.namespaces import _readable_by_all
from upswing.validate.sandbox.sandbox import Sandbox, SandboxLimits

pytestmark = [
    pytest.mark.live,
    pytest.mark.skipif(sys.platform != "linux", reason="the kernel's fences are Linux's"),
]
ALL = ("namespaces", "root", "landlock", "seccomp")
LIMITS = SandboxLimits(cpu_seconds=10, wall_seconds=60)
COLUMN = {"x86_64": 0, "aarch64": 1}.get(os.uname().machine)
STRANGER = 54_321
ASK = """
import ctypes, os
libc = ctypes.CDLL(None, use_errno=True)
room = ctypes.create_string_buffer(4096)
times = (ctypes.c_long * 4)(1, 0, 1, 0)
at = -100
library = os.open(os.__file__, os.O_RDONLY)
def ask(number, *arguments):
    wide = [ctypes.c_long(a) if isinstance(a, int) else a for a in arguments]
    if libc.syscall(ctypes.c_long(number), *wide) == -1:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return True
"""
# name: (x86-64, arm64), its arguments, where `path` is the foreign file
LOOKS = {
    "stat": (4, None, "path, room"),
    "lstat": (6, None, "path, room"),
    "newfstatat": (262, 79, "at, path, room, 0"),
    "statx": (332, 291, "at, path, 0, 0xfff, room"),
    "access": (21, None, "path, 0"),
    "faccessat": (269, 48, "at, path, 0"),
    "faccessat2": (439, 439, "at, path, 0, 0"),
    "statfs": (137, 43, "path, room"),
    "open by O_PATH": (257, 56, "at, path, 0x200000"),
    "getxattr": (191, 8, "path, b'user.a', room, 100"),
    "lgetxattr": (192, 9, "path, b'user.a', room, 100"),
    "listxattr": (194, 11, "path, room, 100"),
    "llistxattr": (195, 12, "path, room, 100"),
    "inotify_add_watch": (254, 27, "0, path, 2"),
    "name_to_handle_at": (303, 264, "at, path, room, room, 0"),
    "file_getattr": (468, 468, "at, path, room, 24, 0"),
}
CHANGES = {
    "chmod": (90, None, "path, 0o777"),
    "fchmodat": (268, 53, "at, path, 0o777"),
    "fchmodat2": (452, 452, "at, path, 0o777, 0"),
    "chown": (92, None, "path, os.getuid(), os.getgid()"),
    "lchown": (94, None, "path, os.getuid(), os.getgid()"),
    "fchownat": (260, 54, "at, path, os.getuid(), os.getgid(), 0"),
    "utime": (132, None, "path, times"),
    "utimes": (235, None, "path, times"),
    "futimesat": (261, None, "at, path, times"),
    "utimensat": (280, 88, "at, path, times, 0"),
    "setxattr": (188, 5, "path, b'user.a', b'x', 1, 0"),
    "lsetxattr": (189, 6, "path, b'user.a', b'x', 1, 0"),
    "removexattr": (197, 14, "path, b'user.kept'"),
    "lremovexattr": (198, 15, "path, b'user.kept'"),
    "file_setattr": (469, 469, "at, path, room, 24, 0"),
}
BY_HANDLE = {
    "fchmod": (91, 52, "library, 0o644"),
    "fchown": (93, 55, "library, os.getuid(), os.getgid()"),
    "utimensat": (280, 88, "library, None, None, 0"),
    "fchmodat2": (452, 452, "library, b'', 0o644, 0x1000"),
    "fsetxattr": (190, 7, "library, b'user.a', b'x', 1, 0"),
    "fremovexattr": (199, 16, "library, b'user.a'"),
    "ioctl": (16, 29, "library, 0x40086602, room"),
}


def attempts(path, *tables):
    """Every call of the tables, on this file, as expressions."""
    here = f"path := {str(path).encode()!r}"
    return [
        f"(({here}), ask({row[COLUMN]}, {row[2]}))[1]"
        for table in tables
        for row in table.values()
        if row[COLUMN] is not None
    ]


async def run(gives, fences=ALL, source=ASK):
    return await Sandbox(LIMITS, fences=fences)(Program(source, tuple(map(ProgramCase, gives))))


@pytest.fixture
def foreign():
    """A file that everybody can reach, so that only the sandbox is in the way."""
    folder = Path(tempfile.mkdtemp(prefix="upswing-foreign-"))
    folder.chmod(0o755)
    path = folder / "store.db"
    path.write_text("a user's secret")
    path.chmod(0o644)
    yield path
    shutil.rmtree(folder)


def state(path):
    found = path.stat()
    return found.st_mode, found.st_uid, found.st_gid, found.st_mtime_ns, os.listxattr(path)


def needs_every_fence(fences):
    if COLUMN is None or "namespaces" not in fences:
        pytest.skip(f"this machine has {fences}")


def needs_root():
    if os.geteuid() != 0:
        pytest.skip("only root can be root")


async def test_root_can_neither_see_nor_change_foreign_files(foreign):
    needs_root()
    before, library = state(foreign), state(Path(os.__file__))
    gives = attempts(foreign, LOOKS, CHANGES, BY_HANDLE)
    ran = await run(gives)
    needs_every_fence(ran.fences)
    assert {give for give, gave in zip(gives, ran.gave, strict=True) if not gave.error} == set()
    assert (state(foreign), state(Path(os.__file__))) == (before, library)


async def test_an_ordinary_user_can_neither_see_nor_change_files_of_their_own(foreign):
    if os.geteuid() == 0:
        os.chown(foreign.parent, STRANGER, STRANGER)
        os.chown(foreign, STRANGER, STRANGER)
    before = state(foreign)
    gives = attempts(foreign, LOOKS, CHANGES, BY_HANDLE)
    fences, errors = ordinary_run(gives)
    needs_every_fence(fences)
    assert len(errors) == len(gives)
    assert [give for give, error in zip(gives, errors, strict=True) if not error] == []
    assert state(foreign) == before


def ordinary_run(gives):
    """The fences, and each expression's error, where a user without any rights runs the sandbox."""
    script = (
        "import asyncio, json, sys\n"
        "from upswing.validate.sandbox.sandbox import Sandbox, SandboxLimits\n"
        "from upswing.contracts.validation import Program, ProgramCase\n"
        "source, *gives = json.load(sys.stdin)\n"
        "limits = SandboxLimits(cpu_seconds=10, wall_seconds=60)\n"
        "ran = asyncio.run(Sandbox(limits)(Program(source, tuple(map(ProgramCase, gives)))))\n"
        "print(json.dumps([ran.fences, [gave.error for gave in ran.gave]]))\n"
    )
    done = subprocess.run(
        [*becoming_ordinary(), sys.executable, "-B", "-c", script],
        input=json.dumps([ASK, *gives]),
        capture_output=True,
        text=True,
        check=False,
        cwd="/",
        env={"PYTHONPATH": os.pathsep.join(map(os.path.abspath, filter(None, sys.path)))},
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def becoming_ordinary():
    """What to put before a command so that STRANGER runs it."""
    if os.geteuid() != 0:
        return []
    if not shutil.which("setpriv") or not shutil.which("unshare"):
        pytest.skip("util-linux is missing: nobody here can become an ordinary user")
    as_user = ["setpriv", f"--reuid={STRANGER}", f"--regid={STRANGER}", "--clear-groups", "--"]
    library = Path(sysconfig.get_path("stdlib"))
    if _readable_by_all(str(library)):
        return as_user
    # Python lies in root's home: in a mount namespace of its own that home is a copy that can be entered.
    home = next(way for way in reversed(library.parents) if not way.stat().st_mode & 0o001)
    below = library.relative_to(home).parts[0]
    opened = (
        "set -e; mount --make-rprivate /; mount -t tmpfs none /mnt; mkdir /mnt/kept;"
        f"mount --bind {home}/{below} /mnt/kept; mount -t tmpfs -o mode=755 none {home};"
        f'mkdir {home}/{below}; mount --bind /mnt/kept {home}/{below}; exec "$@"'
    )
    return ["unshare", "--mount", "sh", "-c", opened, "sh", *as_user]


@pytest.mark.parametrize("fences", [("namespaces", "landlock", "seccomp"), ("landlock", "seccomp")])
async def test_without_a_root_of_its_own_no_metadata_changes(fences, foreign):
    """The filter cannot read a path, so it refuses the call; `os` stands for all of Python."""
    gives = [
        f"os.chmod({str(foreign)!r}, 0o777)",
        f"os.utime({str(foreign)!r}, (1, 1))",
        f"os.chown({str(foreign)!r}, 1, 1)",
        f"os.setxattr({str(foreign)!r}, 'user.a', b'x')",
        "os.chmod(open(os.__file__).fileno(), 0o644)",
        "os.utime(open('own', 'w').fileno())",
    ]
    before = state(foreign)
    ran = await run(gives, fences, "import os")
    assert all("PermissionError" in str(gave.error) for gave in ran.gave), ran.gave
    assert state(foreign) == before


@pytest.mark.parametrize("fences", [ALL, ("landlock", "seccomp"), ()])
async def test_python_does_not_say_whether_a_foreign_file_is_there(fences, foreign):
    calls = ("os.stat", "os.lstat", "os.statvfs", "os.listdir", "os.scandir", "os.readlink")
    gives = [f"{call}({str(foreign)!r})" for call in calls]
    gives += [
        f"os.path.exists({str(foreign)!r}) or 1 / 0",
        f"pathlib.Path({str(foreign)!r}).stat()",
    ]
    ran = await run(gives, fences, "import os, pathlib")
    assert [give for give, gave in zip(gives, ran.gave, strict=True) if not gave.error] == []


@pytest.mark.parametrize("fences", [ALL, ("landlock", "seccomp"), ()])
async def test_its_own_folder_and_the_library_can_be_looked_at(fences):
    gives = [
        "open('a', 'w').write('x')",
        "os.stat('a').st_size",
        "os.path.isfile(os.path.join(os.getcwd(), 'a'))",
        "os.path.isfile(os.__file__)",
        "sorted(os.listdir('.'))",
        "__import__('xml.dom.minidom').__name__",
        "str(zoneinfo.ZoneInfo('Europe/Berlin'))",
        "open('/dev/null', 'w').write('x')",
        "os.path.realpath('a') == os.path.join(os.getcwd(), 'a')",
    ]
    ran = await run(gives, fences, "import os, zoneinfo")
    zone = "Europe/Berlin"
    assert [gave.value for gave in ran.gave] == [1, 1, True, True, ["a"], "xml", zone, 1, True]


async def test_its_own_files_may_change_where_it_has_a_root_of_its_own():
    gives = [
        "open('a', 'w').write('x')",
        "shutil.copy2('a', 'b')",
        "os.chmod('b', 0o600)",
        "os.utime('b', (1, 1))",
        "(oct(os.stat('b').st_mode), os.stat('b').st_mtime)",
    ]
    ran = await run(gives, ALL, "import os, shutil")
    needs_every_fence(ran.fences)
    assert ran.gave[-1].value == ["0o100600", 1]
