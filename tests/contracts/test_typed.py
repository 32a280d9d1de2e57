"""Types are looked at one at a time."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import upswing

_MEET_AT_ONCE = """
import sys, threading
from typing import Optional
import msgspec
from upswing.contracts.typed import from_json, from_tree
sys.setswitchinterval(1e-6)
THREADS, RAW = 4, b'{"parts": [{"leaf": {"name": "x", "number": 1}, "other": null}], "one": null}'

def fresh():
    leaf = msgspec.defstruct("Leaf", [("name", "str"), ("number", "Optional[int]")], namespace={"__module__": __name__})
    node = msgspec.defstruct("Node", [("leaf", leaf), ("other", "Optional[str]")], namespace={"__module__": __name__})
    return [msgspec.defstruct(f"Top{n}", [("parts", list[node]), ("one", Optional[node])]) for n in range(THREADS)]

def meet(read, kind, gate):
    gate.wait()
    for _ in range(3):
        read(kind)

for number in range(400):
    tops, gate = fresh(), threading.Barrier(THREADS)
    read = READ
    threads = [threading.Thread(target=meet, args=(read, top, gate)) for top in tops]
    for each in threads: each.start()
    for each in threads: each.join()
"""


def met_at_once(read):
    return subprocess.run(
        [sys.executable, "-c", _MEET_AT_ONCE.replace("READ\n", f"{read}\n")],
        capture_output=True,
        check=False,
        timeout=300,
    )


@pytest.mark.parametrize(
    "read",
    [
        "lambda kind: from_json(RAW, kind)",
        "lambda kind: from_tree(msgspec.json.decode(RAW), kind)",
    ],
)
def test_threads_that_meet_a_type_at_once_read_it(read):
    done = met_at_once(read)
    assert (done.returncode, done.stderr) == (0, b"")


def test_nothing_else_lets_msgspec_look_at_a_type():
    found = []
    for path in Path(upswing.__file__).parent.rglob("*.py"):
        if path.name == "typed.py" and path.parent.name == "contracts":
            continue
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call) and _takes_a_type(node):
                found.append(f"{path.name}:{node.lineno}: {ast.unparse(node)}")
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("msgspec"):
                names = {each.name for each in node.names}
                if names & {"convert", "decode", "Decoder"}:
                    found.append(f"{path.name}:{node.lineno}: {ast.unparse(node)}")
    assert not found, "\n".join(found)


def _takes_a_type(call):
    name = ast.unparse(call.func)
    if not name.startswith("msgspec."):
        return False
    match name.rpartition(".")[2]:
        case "convert":
            return True
        case "Decoder":
            return bool(call.args or call.keywords)
        case "decode":
            return any(each.arg == "type" for each in call.keywords)
    return False
