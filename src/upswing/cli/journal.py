"""Why did it do that? The journal of decisions, and what today's rules would make of one."""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from upswing.cli.training import printable, read
from upswing.errors import Misuse

if TYPE_CHECKING:
    from upswing.ports import Decision


def decisions(arguments: argparse.Namespace) -> int:
    """The newest decisions."""
    from upswing.adapters.sql.decisions import Decisions

    since, limit = arguments.since, arguments.limit
    found = read(arguments.data, lambda db: Decisions(db).list(arguments.stage, since, limit))
    if arguments.json:
        print(json.dumps([_tree(decision) for decision in found], indent=2))
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
    from upswing.adapters.sql.decisions import Decisions

    decision = read(arguments.data, lambda db: Decisions(db).get(arguments.id))
    if decision is None:
        raise Misuse(f"There is no decision {arguments.id}; `upswing decisions` lists them.")
    told = _tree(decision) | {"today": _today(decision)}
    if arguments.json:
        print(json.dumps(told, indent=2))
        return 0
    print(f"{decision.decided:%Y-%m-%d %H:%M:%S} UTC, {decision.stage}: {decision.kind}")
    print(printable(decision.sentence))
    for name in ("inputs", "outcome"):
        print(f"\n{name}\n{json.dumps(told[name], indent=2)}")
    print(f"\n{told['today']['sentence']}")
    return 0


def _tree(decision: Decision) -> dict[str, Any]:
    return {
        "decision_id": decision.decision_id,
        "decided": decision.decided.isoformat(),
        "stage": decision.stage,
        "kind": decision.kind,
        "sentence": decision.sentence,
        "inputs": json.loads(decision.inputs),
        "outcome": json.loads(decision.outcome),
    }


def _today(decision: Decision) -> dict[str, Any]:
    """What the same inputs lead to now."""
    import msgspec

    again = _REPLAYS.get(decision.stage)
    if again is None:
        return {"same": None, "sentence": "Decisions of this stage cannot be tried again yet."}
    try:
        outcome, sentence = again(decision)
    except msgspec.ValidationError as error:
        return {"same": False, "sentence": f"Today it needs other inputs: {error}."}
    if sentence == decision.sentence and _timeless(outcome) == _timeless(decision.outcome):
        return {"same": True, "sentence": "Today it would come out the same."}
    return {
        "same": False,
        "sentence": f"Today it would come out otherwise: {sentence}",
        "outcome": json.loads(outcome),
    }


def _trigger(decision: Decision) -> tuple[bytes, str]:
    from upswing.trigger.service import replay

    return replay(decision.inputs)


def _recovery(decision: Decision) -> tuple[bytes, str]:
    """What to do about a failed job."""
    from datetime import timedelta

    import msgspec

    from upswing.contracts.typed import from_tree
    from upswing.train.recipe import Recipe
    from upswing.train.recovery import Failure, answer

    tree = msgspec.json.decode(decision.inputs)
    word = answer(
        from_tree(tree["recipe"], Recipe),
        from_tree(tree["failures"], list[Failure]),
        decision.decided,
        from_tree(tree["wait"], timedelta),
    )
    return msgspec.json.encode(word), word.sentence


def _validation(decision: Decision) -> tuple[bytes, str]:
    from upswing.validate.replay import replay

    return replay(decision.inputs)


def _deploy(decision: Decision) -> tuple[bytes, str]:
    from upswing.deploy.journal import replay

    return replay(decision.kind, decision.inputs)


_REPLAYS: dict[str, Callable[[Decision], tuple[bytes, str]]] = {
    "trigger": _trigger,
    "train": _recovery,
    "deploy": _deploy,
    "validate": _validation,
}


def _timeless(outcome: bytes) -> Any:
    """Without the time of a next attempt, which counts from a moment that nobody wrote down."""
    tree = json.loads(outcome)
    return {name: value for name, value in tree.items() if name != "not_before"}
