"""What is kept of a request that its model did not answer? Who failed, how, and how much was asked for.

| the server's words or status                     | kind             |
|--------------------------------------------------|------------------|
| out of memory, cannot allocate                   | `out_of_memory`  |
| longer than the context, too many tokens         | `context_length` |
| a content filter or policy                       | `content_filter` |
| 429, rate limit                                  | `busy`           |
| anything else                                    | the fault's code |

A server may quote the prompt in its error, so its words are kept only as the kind that they mean. Bounded: an episode
keeps its first failures, and one more request only where nothing was ever answered.
"""

from __future__ import annotations

import re

import msgspec

from upswing.gateway.core.faults import Fault

MOST_FAULTS = 16
"""Of an episode; whoever goes on asking adds nothing."""
_READ = 2000
"""Characters of an error that are read."""
_KINDS = (
    (
        "out_of_memory",
        re.compile(r"out of memory|\boom\b|cannot allocate|failed to allocate|memoryerror"),
    ),
    (
        "context_length",
        re.compile(
            r"context[ _-]?(?:length|window|size)|maximum context|too many tokens|prompt is too long"
            r"|context is \d+ tokens|exceeds? the (?:model's )?context"
        ),
    ),
    ("content_filter", re.compile(r"content[ _-]?(?:filter|policy)|responsible ai")),
    ("busy", re.compile(r"rate[ _-]?limit|too many requests")),
)


class FaultRecord(msgspec.Struct, frozen=True, array_like=True):
    """One request that a model did not answer."""

    model_id: str
    kind: str
    at: float
    """When it was asked; in seconds since 1970 once it is framed."""
    waited_ms: float
    prompt_bytes: int
    """Of its messages."""
    status: int = 0
    """Of the server's answer; 0: there was none."""


def fault_kind(fault: Fault, status: int = 0, message: str = "") -> str:
    """What went wrong, in a fixed word.

    >>> fault_kind(Fault.STATUS, 500, "CUDA out of memory. Tried to allocate 2 GiB")
    'out_of_memory'
    >>> fault_kind(Fault.STATUS, 429), fault_kind(Fault.SLOW)
    ('busy', 'slow')
    """
    said = message[:_READ].lower()
    for kind, pattern in _KINDS:
        if pattern.search(said):
            return kind
    return "busy" if status == 429 else fault.info.code
