"""What would have been right, and can an answer be checked against it?

| in a trajectory's metadata                                        | the check                     |
|-------------------------------------------------------------------|-------------------------------|
| `check`, or `ground_truth` with a `kind`: `exact`, `number`,      | that                          |
| `facts` or `pinned`, in the shape of `upswing.validate.core.task`      |                               |
| the same with the kind `contains` and a `text`                    | the text is in the answer     |
| `ground_truth`, or its `answer`: a number                         | `number`                      |
| `ground_truth`, or its `answer`: a text, or a list of texts       | `exact`                       |
| anything else, or a text that was redacted                        | none: it is no task           |

A judge reads a ground truth of any form; one that is meant for it alone is under the key `told`.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import Any

import msgspec

from upswing.contracts.checks import Exact, Facts, Number, Pinned
from upswing.contracts.typed import from_tree

_LONGEST = 500
"""Characters of an expected text: a longer one is no answer that anybody repeats."""
_PLACEHOLDER = re.compile(r"<[a-z][a-z0-9-]*-\d+>")
TrajectoryCheck = Exact | Number | Facts | Pinned
"""The checks that may come with a trajectory."""
GROUND_TRUTH_FORMS = (
    'Write the answer, {"answer": …} with a text, a list of texts or a number, or a check: {"kind": "exact", '
    '"any_of": […]}, {"kind": "number", "value": …} or {"kind": "contains", "text": …}.'
)


def ground_truth_error(ground_truth: Any) -> str:
    """Why no answer can be checked against a ground truth, and what can be written; empty when one can.

    >>> ground_truth_error({"answer": "Paris"}), ground_truth_error({"told": "up"})
    ('', '')
    >>> ground_truth_error({"right": "a"})[:60]
    'No answer can be checked against this ground truth. Write th'
    """
    if (
        ground_truth is None
        or (isinstance(ground_truth, Mapping) and "told" in ground_truth)
        or _parse_check(ground_truth) is not None
    ):
        return ""
    return f"No answer can be checked against this ground truth. {GROUND_TRUTH_FORMS}"


def ground_truth_check(metadata: Mapping[str, Any]) -> TrajectoryCheck | None:
    """How an answer is checked, as far as the metadata tells.

    >>> ground_truth_check({"ground_truth": 9.5})
    Number(value=9.5, tolerance=0.0)
    >>> ground_truth_check({"ground_truth": {"answer": "Paris"}}), ground_truth_check({"ground_truth": {"told": "up"}})
    (Exact(any_of=('Paris',)), None)
    """
    for candidate in (metadata.get("check"), metadata.get("ground_truth")):
        check = _parse_check(candidate)
        if check is not None and not _PLACEHOLDER.search(msgspec.json.encode(check).decode()):
            return check
    return None


def _parse_check(reported: Any) -> TrajectoryCheck | None:
    if isinstance(reported, Mapping):
        if reported.get("kind") == "contains":
            reported = {"kind": "pinned", "contains": [reported.get("text")]}
        if "kind" in reported:
            return _decode_check(reported)
        reported = reported.get("answer")
    if isinstance(reported, bool):
        return None
    if isinstance(reported, int | float):
        return _decode_check({"kind": "number", "value": reported})
    texts = reported if isinstance(reported, list) else [reported]
    if not texts or not all(isinstance(each, str) and each.strip() for each in texts):
        return None
    return _decode_check({"kind": "exact", "any_of": texts})


def _decode_check(fields: Mapping[str, Any]) -> TrajectoryCheck | None:
    try:
        check: TrajectoryCheck = from_tree(dict(fields), TrajectoryCheck)
    except (msgspec.ValidationError, OverflowError, RecursionError):
        return None
    if isinstance(check, Number) and not math.isfinite(check.value + check.tolerance):
        return None
    if check == Pinned() or len(msgspec.json.encode(check)) > 4 * _LONGEST:
        return None
    return check
