"""What would have been right, and can an answer be checked against it?

| in a trajectory's metadata                                        | the check                     |
|-------------------------------------------------------------------|-------------------------------|
| `check`, or `ground_truth` with a `kind`: `exact`, `number`,      | that                          |
| `facts` or `pinned`, in the shape of `upswing.validate.task`      |                               |
| the same with the kind `contains` and a `text`                    | the text is in the answer     |
| `ground_truth`, or its `answer`: a number                         | `number`                      |
| `ground_truth`, or its `answer`: a text, or a list of texts       | `exact`                       |
| anything else, or a text that was redacted                        | none: it is no task           |

A judge reads a ground truth of any form; one that is meant for it alone stands under `told`.
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
Sent = Exact | Number | Facts | Pinned
"""The checks that may come with a trajectory."""
FORMS = (
    'Write the answer, {"answer": …} with a text, a list of texts or a number, or a check: {"kind": "exact", '
    '"any_of": […]}, {"kind": "number", "value": …} or {"kind": "contains", "text": …}.'
)


def unread_truth(told: Any) -> str:
    """Why no answer can be checked against a ground truth, and what can be written; empty when one can.

    >>> unread_truth({"answer": "Paris"}), unread_truth({"told": "up"})
    ('', '')
    >>> unread_truth({"right": "a"})[:60]
    'No answer can be checked against this ground truth. Write th'
    """
    if told is None or (isinstance(told, Mapping) and "told" in told) or _check(told) is not None:
        return ""
    return f"No answer can be checked against this ground truth. {FORMS}"


def check_of(metadata: Mapping[str, Any]) -> Sent | None:
    """How an answer is checked, as far as the metadata tells.

    >>> check_of({"ground_truth": 9.5})
    Number(value=9.5, tolerance=0.0)
    >>> check_of({"ground_truth": {"answer": "Paris"}}), check_of({"ground_truth": {"told": "up"}})
    (Exact(any_of=('Paris',)), None)
    """
    for told in (metadata.get("check"), metadata.get("ground_truth")):
        check = _check(told)
        if check is not None and not _PLACEHOLDER.search(msgspec.json.encode(check).decode()):
            return check
    return None


def _check(told: Any) -> Sent | None:
    if isinstance(told, Mapping):
        if told.get("kind") == "contains":
            told = {"kind": "pinned", "contains": [told.get("text")]}
        if "kind" in told:
            return _shaped(told)
        told = told.get("answer")
    if isinstance(told, bool):
        return None
    if isinstance(told, int | float):
        return _shaped({"kind": "number", "value": told})
    texts = told if isinstance(told, list) else [told]
    if not texts or not all(isinstance(each, str) and each.strip() for each in texts):
        return None
    return _shaped({"kind": "exact", "any_of": texts})


def _shaped(told: Mapping[str, Any]) -> Sent | None:
    try:
        check: Sent = from_tree(dict(told), Sent)
    except (msgspec.ValidationError, OverflowError, RecursionError):
        return None
    if isinstance(check, Number) and not math.isfinite(check.value + check.tolerance):
        return None
    if check == Pinned() or len(msgspec.json.encode(check)) > 4 * _LONGEST:
        return None
    return check
