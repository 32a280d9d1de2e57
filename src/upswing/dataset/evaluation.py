"""Was this trajectory only an evaluation? Then it measures, and is never trained on.

| what its metadata says                             | evaluation |
|----------------------------------------------------|------------|
| `is_evaluation` is true                            | yes        |
| the row it came from has `isEvaluation` true       | yes        |
| the row it came from has `isTrainingData` false    | yes        |
| anything else                                      | no         |

An episode whose `purpose` is `curriculum` or `rollout` is practice: it is trained on, and says nothing
about how a model does, because its task was chosen for its difficulty.

Keys are read in camelCase and snake_case; a table may write its flags as words or digits.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from upswing.contracts.steps import first_present_field

TRUE = frozenset({"true", "t", "1"})
FALSE = frozenset({"false", "f", "0"})


PRACTICE = frozenset({"curriculum", "rollout"})
"""Purposes of an episode that is no evidence."""


def is_practice(metadata: Mapping[str, Any]) -> bool:
    """Whether a trajectory with this metadata is learned from and proves nothing.

    >>> is_practice({"purpose": "curriculum"}), is_practice({"purpose": "work"}), is_practice({})
    (True, False, False)
    """
    return _normalise_flag(first_present_field(metadata, "purpose")) in PRACTICE


def is_evaluation(metadata: Mapping[str, Any]) -> bool:
    """Whether a trajectory with this metadata was only an evaluation.

    >>> is_evaluation({"row": {"is_training_data": False}}), is_evaluation({"is_evaluation": "t"})
    (True, True)
    >>> is_evaluation({"row": {"is_training_data": True, "is_evaluation": 0}})
    False
    """
    row = metadata.get("row")
    flags = row if isinstance(row, Mapping) else {}
    return (
        _normalise_flag(first_present_field(metadata, "isEvaluation")) in TRUE
        or _normalise_flag(first_present_field(flags, "isEvaluation")) in TRUE
        or _normalise_flag(first_present_field(flags, "isTrainingData")) in FALSE
    )


def _normalise_flag(flag: Any) -> str:
    return str(flag).lower() if isinstance(flag, bool | int | str) else ""
