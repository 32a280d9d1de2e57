"""Why did it do that, and would it do the same today? A decision with its inputs, tried again.

Decisions are compared by what was decided: the action, its status and reason, the figures. What was said of
them is for the reader, and a version may say it in other words.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import msgspec

from upswing.contracts.typed import from_tree
from upswing.deploy.core.journal import replay as replay_deploy
from upswing.errors import Misuse
from upswing.infra.sql.decisions import Decisions
from upswing.records import Decision
from upswing.train.core.recipe import Recipe
from upswing.train.core.recovery import Failure, decide_recovery
from upswing.trigger.trigger import replay as replay_trigger
from upswing.validate.core.replay import replay_verdict

_SHORTEST = 4
"""Characters of an id by which a decision is looked for."""
_FOR_READERS = {"sentence", "refused"}
"""Fields of an outcome that say in words what its other fields decide."""
_FROM_NOW = {"not_before"}
"""Times that count from a moment that nobody wrote down."""


async def find_decision(table: Decisions, name: str) -> Decision:
    """The decision of this id, or the only one whose id begins so; `Misuse` when there is none or several."""
    if (decision := await table.get(name)) is not None:
        return decision
    found = await table.list_by_id_prefix(name) if len(name) >= _SHORTEST else []
    if len(found) == 1:
        return found[0]
    if found:
        ids = ", ".join(each.decision_id for each in found)
        raise Misuse(f"Several decisions begin with {name}: {ids}. Give more of the id.")
    raise Misuse(f"There is no decision {name}; `upswing decisions` lists them.")


def decision_json(decision: Decision) -> dict[str, Any]:
    """A decision for a machine."""
    return {
        "decision_id": decision.decision_id,
        "decided": decision.decided.isoformat(),
        "stage": decision.stage,
        "kind": decision.kind,
        "sentence": decision.sentence,
        "inputs": json.loads(decision.inputs),
        "outcome": json.loads(decision.outcome),
    }


def decide_again(decision: Decision) -> dict[str, Any]:
    """What the same inputs lead to now."""
    again = _REPLAYS.get(decision.stage)
    if again is None:
        return {"same": None, "sentence": "Decisions of this stage cannot be tried again yet."}
    try:
        outcome, sentence = again(decision)
    except msgspec.ValidationError as error:
        return {"same": False, "sentence": f"Today it needs other inputs: {error}."}
    except (KeyError, TypeError) as error:
        return {"same": False, "sentence": f"Today it needs other inputs: {error!r} is missing."}
    if same_decision(json.loads(decision.outcome), json.loads(outcome)):
        reworded = {} if sentence == decision.sentence else {"wording": sentence}
        return {"same": True, "sentence": "Today it would come out the same.", **reworded}
    return {
        "same": False,
        "sentence": f"Today it would come out otherwise: {sentence}",
        "outcome": json.loads(outcome),
    }


def _recovery(decision: Decision) -> tuple[bytes, str]:
    """What to do about a failed job."""
    tree = msgspec.json.decode(decision.inputs)
    decision_now = decide_recovery(
        from_tree(tree["recipe"], Recipe),
        from_tree(tree["failures"], list[Failure]),
        decision.decided,
        from_tree(tree["wait"], timedelta),
    )
    return msgspec.json.encode(decision_now), decision_now.sentence


_REPLAYS: dict[str, Callable[[Decision], tuple[bytes, str]]] = {
    "trigger": lambda decision: replay_trigger(decision.inputs),
    "train": _recovery,
    "deploy": lambda decision: replay_deploy(decision.kind, decision.inputs),
    "validate": lambda decision: replay_verdict(decision.inputs),
}


def same_decision(then: Any, now: Any) -> bool:
    """Whether two outcomes decide the same, whatever is said of them.

    A field that the older outcome does not have did not exist then: nothing was decided by it.

    >>> then = {"type": "hold", "sentence": "10 % lasts until noon."}
    >>> same_decision(then, {"type": "hold", "sentence": "It waits until noon.", "step": 1})
    True
    >>> same_decision(then, {"type": "promote", "sentence": "10 % lasts until noon."})
    False
    """
    match then, now:
        case dict(), dict():
            return then.keys() <= now.keys() and all(
                same_decision(value, now[name])
                for name, value in then.items()
                if name not in _FOR_READERS | _FROM_NOW
            )
        case list(), list():
            return len(then) == len(now) and all(map(same_decision, then, now))
        case (bool(), _) | (_, bool()):
            return then is now
        case ((int() | float()), (int() | float())):
            return math.isclose(then, now, rel_tol=1e-9, abs_tol=1e-12)
        case _:
            return bool(then == now)
