"""What went in and what did not: import, redact, dead letters."""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Awaitable, Iterator
from datetime import datetime
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, urlencode

from upswing.cli.client import ask, call
from upswing.cli.training import is_remote_loop, read_store
from upswing.errors import Misuse, Rejected

if TYPE_CHECKING:
    from upswing.infra.sql.database import Database
    from upswing.records import StoredDeadLetter

_LINES_PER_REQUEST = 500
_BYTES_PER_REQUEST = 16 * 1024 * 1024


def import_files(arguments: argparse.Namespace) -> int:
    """Send every line to the loop; lines in the table layout are turned into trajectories first."""
    counts: dict[str, int] = {}
    failed = 0
    for name in arguments.files:
        for batch in _batches(name):
            numbers = [number for number, _ in batch]
            body = b"\n".join(line for _, line in batch)
            answer = call(arguments.data, "POST", "/v1/trajectories", body, "application/x-ndjson")
            for result in map(json.loads, answer.splitlines()):
                counts[result["result"]] = counts.get(result["result"], 0) + 1
                if result["status"] != 202:
                    failed += 1
                    number = numbers[result["line"] - 1]
                    print(
                        f"{name}:{number}: {result['result']}: {result['detail']}", file=sys.stderr
                    )
    print(
        json.dumps(counts)
        if arguments.json
        else ", ".join(f"{n} {result_name}" for result_name, n in sorted(counts.items()))
        or "nothing to import"
    )
    return 1 if failed else 0


def _batches(name: str) -> Iterator[list[tuple[int, bytes]]]:
    batch: list[tuple[int, bytes]] = []
    size = 0
    with open(0 if name == "-" else name, "rb", closefd=name != "-") as file:
        for number, line in enumerate(file, 1):
            if not line.strip():
                continue
            made = _to_contract(line.strip())
            if batch and (
                len(batch) == _LINES_PER_REQUEST or size + len(made) > _BYTES_PER_REQUEST
            ):
                yield batch
                batch, size = [], 0
            batch.append((number, made))
            size += len(made)
    if batch:
        yield batch


def _to_contract(line: bytes) -> bytes:
    """A row of the table layout as a trajectory; anything else goes as it is and is judged there."""
    import msgspec

    from upswing.contracts import canonical
    from upswing.contracts.steps import is_table_row, trajectory_from_row

    if b"stepsJson" not in line and b"steps_json" not in line:
        return line
    try:
        tree = msgspec.json.decode(line)
        return canonical(_known_status(trajectory_from_row(tree))) if is_table_row(tree) else line
    except (msgspec.DecodeError, Rejected, UnicodeDecodeError):
        return line


def _known_status(tree: dict[str, Any]) -> dict[str, Any]:
    """A table has statuses of its own; one that says nothing of success is kept, and is no outcome."""
    from upswing.dataset.outcome import outcome_error

    metadata = tree["metadata"]
    if not outcome_error(metadata.get("outcome")):
        return tree
    kept = {key: value for key, value in metadata.items() if key != "outcome"}
    return {**tree, "metadata": {**kept, "final_status": metadata["outcome"]}}


def redact(arguments: argparse.Namespace) -> int:
    """Standard input to standard output, with placeholders."""
    from upswing.collect.worker_pool import make_redactor
    from upswing.config import read_settings
    from upswing.redact import explain, filter_text

    redactor = make_redactor(read_settings(arguments.data, os.environ))
    source = open(0, encoding="utf-8", errors="replace", newline="", closefd=False)  # noqa: SIM115
    target = open(1, "w", encoding="utf-8", newline="", closefd=False)  # noqa: SIM115
    for part in filter_text(iter(lambda: source.read(1 << 20), ""), redactor):
        target.write(part.value)
        if arguments.explain:
            for line in explain(part.findings):
                print(line, file=sys.stderr)
    target.flush()
    return 0


def dead(arguments: argparse.Namespace) -> int:
    """List, show or replay what could not be taken."""
    if arguments.action == "list":
        return _list_dead(arguments)
    if not arguments.id:
        raise Misuse(
            f"Say which: `upswing dead {arguments.action} ID`; `upswing dead list` shows them."
        )
    path = f"/v1/dead/{quote(arguments.id, safe='')}"
    if arguments.action == "replay":
        done = ask(arguments.data, "POST", f"{path}/replay")
        print(json.dumps(done) if arguments.json else f"{done['id']}: {done['result']}")
        return 0
    letter = ask(arguments.data, "GET", path) if is_remote_loop() else _dead_letter(arguments)
    if arguments.json:
        print(json.dumps(letter, indent=2))
        return 0
    for name, value in letter["letter"].items():
        print(f"{name:12}{value}")
    return 0


def _dead_letter(arguments: argparse.Namespace) -> Any:
    """As the loop's port shows it, from the store."""
    import msgspec

    from upswing.api.dead_letters import dead_info
    from upswing.infra.sql.store import SqlStore

    found = read_store(arguments.data, lambda db: SqlStore(db).dead_letter(arguments.id))
    if found is None:
        raise Misuse("There is no dead letter with this id; `upswing dead list` shows them.")
    return msgspec.to_builtins(dead_info(found))


def _list_dead(arguments: argparse.Namespace) -> int:
    """From the store itself, so that it works when the loop does not run."""
    letters = _dead_letters(arguments)
    if arguments.json:
        print(json.dumps(letters, indent=2))
        return 0
    for letter in letters:
        detail = letter["detail"][:90].replace("\n", " ")
        more = f" (and {letter['more']} more like it)" if letter["more"] else ""
        print(
            f"{letter['dead_id']}  {letter['timestamp'][:19]}  {letter['reason']:14} {detail}{more}"
        )
    if not letters:
        print("No dead letters.")
    return 0


def _dead_letters(arguments: argparse.Namespace) -> list[dict[str, Any]]:
    if is_remote_loop():
        query = {
            "limit": arguments.limit,
            **({"reason": arguments.reason} if arguments.reason else {}),
        }
        letters = ask(arguments.data, "GET", f"/v1/dead?{urlencode(query)}")["dead"]
        return [
            _letter_row(each["letter"], each["stage"], each["replayed"], each.get("more", 0))
            for each in letters
        ]
    import msgspec

    from upswing.infra.sql.store import SqlStore

    def find_dead(database: Database) -> Awaitable[list[StoredDeadLetter]]:
        return SqlStore(database).list_dead_letters(reason=arguments.reason, limit=arguments.limit)

    found = read_store(arguments.data, find_dead)
    return [
        _letter_row(
            msgspec.to_builtins(each.letter), each.stage, _isoformat(each.replayed), each.more
        )
        for each in found
    ]


def _letter_row(
    letter: dict[str, Any], stage: str, replayed: str | None, more: int
) -> dict[str, Any]:
    """A dead letter in a line: all but what was sent."""
    names = ("dead_id", "timestamp", "subject", "reason", "detail", "deliveries")
    shown = {name: letter.get(name) for name in names}
    return {**shown, "stage": stage, "replayed": replayed, "more": more}


def _isoformat(value: datetime | None) -> str | None:
    return value.isoformat() if value else None
