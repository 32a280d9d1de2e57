"""What does an agent's work look like, when nobody's real work may be used?

The same seed gives the same bytes on every machine, so a number measured here
can be measured again elsewhere. Half of the text is prose, half is code and
tool output, because escapes and line breaks are what a JSON parser pays for.

>>> len(trajectory_bytes(seed=1)), len(trajectory(seed=1)["turns"])
(25000, 10)
"""

import json
import random
import uuid
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

SIZE_BYTES = 25_000
TURNS = 10
_ROOMY_TURN_BYTES = 500
_EPOCH = datetime(2025, 1, 6, 9, 0, tzinfo=UTC)

_NOUNS = (
    "invoice",
    "parser",
    "retry",
    "queue",
    "cache",
    "index",
    "session",
    "token",
    "budget",
    "schema",
    "stream",
    "order",
    "ledger",
    "window",
    "worker",
    "shard",
    "snapshot",
    "replica",
    "timeout",
    "header",
    "customer",
    "report",
    "branch",
    "fixture",
)
_VERBS = (
    "rejects",
    "accepts",
    "drops",
    "rebuilds",
    "delays",
    "reads",
    "writes",
    "merges",
    "splits",
    "retries",
    "skips",
    "validates",
    "compresses",
    "forgets",
    "reorders",
    "flushes",
)
_ADJECTIVES = (
    "stale",
    "empty",
    "nested",
    "slow",
    "duplicate",
    "missing",
    "late",
    "invalid",
    "large",
    "concurrent",
    "legacy",
    "naïve",
    "unexpected",
    "partial",
)
_TOOLS = ("read_file", "run_tests", "search_code", "edit_file", "shell", "query_database")
_DOMAINS = ("coding", "research", "data_analysis", "general", "debugging", "writing")


def _prose(rng: random.Random) -> str:
    noun, other = rng.sample(_NOUNS, 2)
    return (
        f"The {rng.choice(_ADJECTIVES)} {noun} {rng.choice(_VERBS)} the "
        f"{rng.choice(_ADJECTIVES)} {other}, which costs {rng.randint(2, 900)} ms – "
        f"I'd look at “{noun}_{other}” first. "
    )


def _code(rng: random.Random) -> str:
    noun, other = rng.sample(_NOUNS, 2)
    return (
        f"def {rng.choice(_VERBS)}_{noun}({other}: dict[str, int]) -> int:\n"
        f'    """Return the {noun} of one {other}."""\n'
        f'    if {other}.get("{noun}", 0) > {rng.randint(1, 99)}:\n'
        f"        raise ValueError(f\"{noun} is {{{other}['{noun}']!r}}\")\n"
        f"    return sum({other}.values()) // {rng.randint(2, 9)}\n\n"
    )


def _output(rng: random.Random) -> str:
    noun, other = rng.sample(_NOUNS, 2)
    return (
        f"tests/test_{noun}.py::test_{other}_{rng.choice(_VERBS)} "
        f"{rng.choice(('PASSED', 'PASSED', 'FAILED'))}\t[{rng.randint(1, 99):2d}%]\n"
        f'  File "src/{noun}/{other}.py", line {rng.randint(1, 800)}, in {noun}\n'
    )


def _encoded(text: str) -> int:
    return len(json.dumps(text, ensure_ascii=False).encode()) - 2


def _text(rng: random.Random, piece: Callable[[random.Random], str], size: int) -> str:
    """Pieces of one kind until they fill `size` bytes of JSON, give or take half a piece."""
    parts: list[str] = []
    filled = 0
    while filled < size:
        parts.append(piece(rng))
        filled += _encoded(parts[-1])
    if parts and filled - size > size // 4:  # small texts: cut, for a piece is too coarse
        return "".join(parts)[:size]
    return "".join(parts)


def _turn(rng: random.Random, number: int, turns: int, text_bytes: int) -> dict[str, Any]:
    at = _EPOCH + timedelta(seconds=40 * number, milliseconds=rng.randint(0, 999))
    tool = rng.choice(_TOOLS)
    last = number == turns
    seen = "user_message" if number == 1 else "tool_result"
    piece = _prose if number == 1 else _output
    failed = rng.random() < 0.15
    action: dict[str, Any] = {"type": "response" if last else "tool_call"}
    if not last:
        action["tool_name"] = tool
        action["tool_args"] = {
            "path": f"src/{rng.choice(_NOUNS)}.py",
            "line": rng.randint(1, 900),
            "text": _text(rng, _code, text_bytes * 25 // 100),
        }
    action["raw_response"] = _text(rng, _prose, text_bytes * (45 if last else 20) // 100)
    observation: dict[str, Any] = {
        "type": seen,
        "content": _text(rng, piece, text_bytes * 25 // 100),
    }
    if number == 1 or text_bytes > _ROOMY_TURN_BYTES:
        observation["context"] = {"available_tools": list(_TOOLS[:4]), "subordinates_active": 0}
    return {
        "turn_id": number,
        "timestamp": at.isoformat().replace("+00:00", "Z"),
        "observation": observation,
        "thought_process": [_text(rng, _prose, text_bytes * 5 // 100) for _ in range(2)],
        "action": action,
        "result": {
            "success": not failed,
            "output": _text(rng, _output, text_bytes * 20 // 100),
            "error": "exit status 1" if failed else None,
            "execution_time_ms": round(rng.uniform(3, 4000), 2),
        },
    }


def _draft(seed: int, turns: int, text_bytes: int) -> dict[str, Any]:
    rng = random.Random(seed)
    return {
        "trajectory_id": str(uuid.UUID(int=rng.getrandbits(128), version=4)),
        "session_id": f"session-{seed:08d}",
        "agent_id": f"agent-{rng.randint(1, 40)}",
        "subordinate_profile": rng.choice(("developer", "researcher", None)),
        "start_timestamp": _EPOCH.isoformat().replace("+00:00", "Z"),
        "end_timestamp": (_EPOCH + timedelta(seconds=40 * turns + 5)).isoformat(),
        "turns": [_turn(rng, number, turns, text_bytes) for number in range(1, turns + 1)],
        "task_context": {
            "task_id": f"task-{rng.randint(1, 5000)}",
            "instructions": _prose(rng),
            "complexity_score": round(rng.random(), 3),
            "domain": rng.choice(_DOMAINS),
        },
        "metadata": {
            "model": "small-coder-7b",
            "temperature": 0.7,
            "total_tokens": rng.randint(2000, 9000),
            "total_cost_usd": round(rng.uniform(0.001, 0.2), 5),
            "window_id": "2025-01-06T09:00",
        },
    }


def encode(document: Any) -> bytes:
    return json.dumps(document, ensure_ascii=False, separators=(",", ":")).encode()


def trajectory(*, seed: int, size: int = SIZE_BYTES, turns: int = TURNS) -> dict[str, Any]:
    """One trajectory of exactly `size` bytes, or as near above it as its skeleton allows."""
    skeleton = len(encode(_draft(seed, turns, 0)))
    text_bytes = max(0, size - skeleton) // turns
    document = _draft(seed, turns, text_bytes)
    while len(encode(document)) > size and text_bytes > 0:
        text_bytes = text_bytes * 97 // 100
        document = _draft(seed, turns, text_bytes)
    room = size - len(encode(document))
    if room > 0:
        rng = random.Random(seed)
        filler = "".join(_prose(rng) for _ in range(room // 60 + 1))
        filler = filler.encode("ascii", "ignore")[:room].decode()
        document["turns"][-1]["action"]["raw_response"] += filler
    return document


def trajectory_bytes(*, seed: int, size: int = SIZE_BYTES, turns: int = TURNS) -> bytes:
    return encode(trajectory(seed=seed, size=size, turns=turns))
