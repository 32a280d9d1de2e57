"""What did operators do, and is any of it missing? `upswing audit`, `upswing audit --verify`."""

from __future__ import annotations

import argparse
import json
import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from upswing.cli.arguments import parse_since
from upswing.cli.training import printable, read_store
from upswing.errors import Misuse, count_phrase
from upswing.infra.cli_options import IntegerOption

if TYPE_CHECKING:
    from upswing.infra.sql.audit import ChainState, StoredAudit
    from upswing.infra.sql.database import Database


_HASH = re.compile("[0-9a-f]{64}")


def commands(command: Callable[..., argparse.ArgumentParser]) -> None:
    audit = command(
        "audit", "audit:audit", "List what operators did, or check that nothing is missing."
    )
    audit.add_argument("--who", help="only this key's actions, such as `key operator`")
    audit.add_argument("--what", help="only this action, such as `rollback` or `add-key`")
    audit.add_argument("--about", help="only what was done to this model, key or job")
    audit.add_argument(
        "--since", type=parse_since, metavar="TIME", help="since 36h or yesterday, say"
    )
    audit.add_argument("--limit", type=IntegerOption(1, 1000), default=100)
    audit.add_argument(
        "--verify",
        action="store_true",
        help="follow the chain of hashes from the first row to the last",
    )
    audit.add_argument(
        "--head",
        metavar="HASH",
        help="with --verify: a hash that was noted before must be in the chain",
    )


def audit(arguments: argparse.Namespace) -> int:
    """The newest actions, or whether the chain holds."""
    if arguments.head and not _HASH.fullmatch(arguments.head):
        raise Misuse(
            f"{printable(arguments.head)} is no hash: --head takes the 64 characters that `upswing audit` prints."
        )
    return _verify(arguments) if arguments.verify or arguments.head else _list(arguments)


def _list(arguments: argparse.Namespace) -> int:
    from upswing.infra.sql.audit import AuditTrail
    from upswing.infra.sql.paging import PageWanted

    equal = {"who": arguments.who, "what": arguments.what, "about": arguments.about}

    async def read(database: Database) -> tuple[list[StoredAudit], tuple[int, str]]:
        trail, before = AuditTrail(database), None
        found: list[StoredAudit] = []
        while len(found) < arguments.limit:
            limit = arguments.limit - len(found)
            some, before = await trail.list(
                PageWanted(limit, before, since=arguments.since, equal=equal)
            )
            found += some
            if before is None:
                break
        return found, await trail.head()

    found, (entries, head) = read_store(arguments.data, read)
    if arguments.json:
        view = {"entries": [audit_json(each) for each in found], "rows": entries, "head": head}
        print(json.dumps(view, indent=2))
        return 0
    for each in found:
        entry = each.entry
        print(
            f"{each.seq:>6}  {entry.written:%Y-%m-%d %H:%M:%S}  {printable(entry.who):<24} "
            f"{printable(entry.what):<12} {printable(entry.about)}  {_change(each)}".rstrip()
        )
    if not found:
        print("No operator has done anything yet." if not entries else "No entry is like that.")
    elif head:
        print(f"{count_phrase(entries, 'row')}; the newest hash is {head}")
    return 0


def _change(stored: StoredAudit) -> str:
    """Before and after in one line, where both are known; else the detail."""
    view = audit_json(stored)
    if view["before"] is not None or view["after"] is not None:
        return printable(f"{_short(view['before'])} → {_short(view['after'])}")
    return printable(_short(view["detail"])) if view["detail"] else ""


def _short(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 160 else f"{text[:159]}…"


def audit_json(stored: StoredAudit) -> dict[str, Any]:
    """An entry for a machine."""
    entry = stored.entry
    return {
        "seq": stored.seq,
        "at": entry.written.isoformat(),
        "who": entry.who,
        "what": entry.what,
        "about": entry.about,
        "detail": json.loads(entry.detail),
        "before": None if entry.before is None else json.loads(entry.before),
        "after": None if entry.after is None else json.loads(entry.after),
        "prev": stored.prev,
        "hash": stored.hash,
    }


def _verify(arguments: argparse.Namespace) -> int:
    from upswing.infra.sql.audit import BEGINNING, AuditTrail

    async def follow(database: Database) -> tuple[ChainState, bool]:
        trail, state = AuditTrail(database), BEGINNING
        while not (state.done or state.broken):
            state = await trail.verify(state)
        return state, arguments.head is None or await trail.has_hash(arguments.head)

    state, known = read_store(arguments.data, follow)
    broken = state.broken or ("" if known else _NO_HEAD)
    if arguments.json:
        view = {
            "ok": not broken,
            "rows": state.entries,
            "head": state.hash,
            "broken": broken or None,
        }
        print(json.dumps(view, indent=2))
    elif broken:
        print(f"{broken} {_WHAT_TO_DO}")
    else:
        print(
            f"Nothing is missing: {count_phrase(state.entries, 'row')}, the newest hash is {state.hash or '–'}"
        )
    return 1 if broken else 0


_NO_HEAD = "No row has this hash: it was removed, or all rows were written anew."
_WHAT_TO_DO = (
    "Somebody or something changed the table `audit`: compare it with a copy of the data directory, "
    "and with the lines of the log that have action=audit."
)
