"""Who answers, in which shares, and until when? The traffic plan, which the gateway only reads."""

from upswing.contracts.traffic import (
    Candidate,
    Model,
    Plan,
    check_plan,
    read_plan,
    supersedes,
    write_plan,
)

__all__ = [
    "Candidate",
    "Model",
    "Plan",
    "check_plan",
    "read_plan",
    "supersedes",
    "write_plan",
]
