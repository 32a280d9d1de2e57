"""Why did it do that? The journal of decisions, and what today's rules would make of one."""

from __future__ import annotations

import argparse
import json

from upswing.api.explaining import decide_again, decision_json, find_decision
from upswing.cli.training import printable, read_store
from upswing.infra.sql.decisions import Decisions


def decisions(arguments: argparse.Namespace) -> int:
    """The newest decisions."""
    since, limit = arguments.since, arguments.limit
    found = read_store(arguments.data, lambda db: Decisions(db).list(arguments.stage, since, limit))
    if arguments.json:
        print(json.dumps([decision_json(decision) for decision in found], indent=2))
        return 0
    for decision in found:
        print(
            f"{decision.decision_id}  {decision.decided:%Y-%m-%d %H:%M:%S}  {decision.stage:<8} "
            f"{decision.kind:<24} {printable(decision.sentence)}"
        )
    if not found:
        print("No decisions yet.")
    return 0


def explain(arguments: argparse.Namespace) -> int:
    """One decision with its inputs, and whether it would come out the same today."""
    decision = read_store(arguments.data, lambda db: find_decision(Decisions(db), arguments.id))
    view = decision_json(decision) | {"today": decide_again(decision)}
    if arguments.json:
        print(json.dumps(view, indent=2))
        return 0
    print(f"{decision.decided:%Y-%m-%d %H:%M:%S} UTC, {decision.stage}: {decision.kind}")
    print(printable(decision.sentence))
    for name in ("inputs", "outcome"):
        print(f"\n{name}\n{json.dumps(view[name], indent=2)}")
    print(f"\n{view['today']['sentence']}")
    if wording := view["today"].get("wording"):
        print(f"Today it would read: {printable(wording)}")
    return 0
