"""Which Python code did the agent write? Found as text, parsed, never run.

| where                                            | taken when                                   |
|--------------------------------------------------|----------------------------------------------|
| `raw_response`, text outputs                     | fenced as python, py or python3              |
| `tool_args` and object outputs: code, source, …  | the tool, runtime or language is Python, or nothing is said and it defines, imports or assigns |
| … content, text, file_text, …                    | the path beside it ends in .py               |

What does not parse is not counted as Python. Of several versions of one file the last counts; when
there is more than the bounds allow, the newest code stays.
"""

from __future__ import annotations

import ast
import re
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from upswing.contracts import Trajectory, Turn
from upswing.records import Snippet

MAX_SNIPPETS = 20
MAX_BYTES = 64 * 1024
"""Of all snippets together."""
_EFFORT = 2 * MAX_BYTES
"""Bytes that are parsed at most, so that a hostile trajectory costs a tenth of a second."""
_SCAN = 256 * 1024
"""Characters of one text that are searched."""

_FENCE = re.compile(r"[ \t]{0,12}(`{3,}|~{3,})[ \t]*([A-Za-z0-9_+.-]*)")
_LANGUAGES = frozenset({"python", "python3", "py", "py3", "ipython"})
_PYTHON_TOOL = re.compile(r"python|jupyter|notebook|code_interpreter", re.IGNORECASE)
_LANGUAGE_KEYS = ("language", "lang", "runtime", "kernel")
_CODE_KEYS = ("code", "source", "script", "python", "program", "source_code")
_CONTENT_KEYS = ("content", "contents", "text", "file_text", "new_content", "body", *_CODE_KEYS)
_PATH_KEYS = ("path", "file_path", "filepath", "filename", "file", "file_name", "target_file")
_TELLING = (
    ast.FunctionDef,
    ast.AsyncFunctionDef,
    ast.ClassDef,
    ast.Import,
    ast.ImportFrom,
    ast.Assign,
    ast.AnnAssign,
)


@dataclass(frozen=True, slots=True)
class _CodeCandidate:
    text: str
    path: str | None = None
    sure: bool = True
    """Somebody says that it is Python."""


def python_code(trajectory: Trajectory) -> list[Snippet]:
    """The Python that the agent wrote, oldest first."""
    found: list[Snippet] = []
    seen: set[str] = set()
    room, effort = MAX_BYTES, _EFFORT
    for turn in reversed(trajectory.turns):
        for candidate in reversed(list(_code_candidates(turn))):
            keys = {candidate.text.strip(), f"file:{candidate.path}" if candidate.path else ""}
            size = len(candidate.text.encode(errors="replace"))
            if keys & seen or not candidate.text.strip() or size > min(room, effort):
                continue
            effort -= size
            statements = count_statements(candidate.text, sure=candidate.sure)
            seen |= keys - {""} if statements else {candidate.text.strip()}
            if statements:
                room -= size
                found.append(Snippet(candidate.text, f"turn {turn.turn_id}", statements))
            if len(found) == MAX_SNIPPETS:
                return found[::-1]
    return found[::-1]


def count_statements(text: str, *, sure: bool = True) -> int:
    """How many statements of Python this is; 0 when it is none.

    >>> count_statements("x = 1; y = 2"), count_statements("ls -l /"), count_statements("(" * 900)
    (2, 0, 0)
    >>> count_statements("ls", sure=False)
    0
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the agent's odd escapes are not ours to warn about
            tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return 0
    if not sure and not any(isinstance(one, _TELLING) for one in tree.body):
        return 0
    return sum(isinstance(node, ast.stmt) for node in ast.walk(tree))


def _code_candidates(turn: Turn) -> Iterator[_CodeCandidate]:
    action, result = turn.action, turn.result
    if isinstance(action.raw_response, str):
        yield from _fenced_blocks(action.raw_response)
    name = action.tool_name if isinstance(action.tool_name, str) else ""
    if isinstance(action.tool_args, dict):
        yield from _code_in_object(action.tool_args, name)
    if isinstance(result.output, str):
        yield from _fenced_blocks(result.output)
    elif isinstance(result.output, dict):
        yield from _code_in_object(result.output, "")


def _fenced_blocks(text: str) -> Iterator[_CodeCandidate]:
    """The Python blocks of a Markdown text, line by line, so that no text takes long."""
    if "```" not in text and "~~~" not in text:
        return
    fence, wanted = "", False
    lines: list[str] = []
    for line in text[:_SCAN].split("\n"):
        mark = _FENCE.match(line)
        if not fence:
            if mark:
                fence, wanted = mark[1], mark[2].lower() in _LANGUAGES
                lines = []
        elif mark and mark[1].startswith(fence) and not mark[2]:
            if wanted:
                yield _CodeCandidate(_dedent(lines))
            fence = ""
        elif wanted:
            lines.append(line)


def _dedent(lines: list[str]) -> str:
    """Without the indentation that all lines share: blocks in lists are indented."""
    margin = min((len(one) - len(one.lstrip()) for one in lines if one.strip()), default=0)
    return "\n".join(one[margin:] for one in lines)


def _code_in_object(tree: dict[str, Any], tool: str) -> Iterator[_CodeCandidate]:
    path = _first_text(tree, _PATH_KEYS)
    language = _first_text(tree, _LANGUAGE_KEYS)
    if path and path.endswith((".py", ".pyi")):
        written = _first_text(tree, _CONTENT_KEYS)
        if written:
            yield _CodeCandidate(written, path)
        return
    python = language.lower() in _LANGUAGES if language else bool(_PYTHON_TOOL.search(tool))
    for key in _CODE_KEYS:
        text = tree.get(key)
        if isinstance(text, str) and (python or not (language or path)):
            yield _CodeCandidate(text, sure=python)
    for value in tree.values():
        if isinstance(value, str):
            yield from _fenced_blocks(value)


def _first_text(tree: dict[str, Any], keys: tuple[str, ...]) -> str:
    return next((v for k in keys if isinstance(v := tree.get(k), str) and v), "")
