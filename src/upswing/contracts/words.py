"""Which words say how a task ended, and who says so?"""

from __future__ import annotations

STATUS = {
    **dict.fromkeys(
        (
            "completed",
            "complete",
            "success",
            "succeeded",
            "successful",
            "done",
            "solved",
            "passed",
            "true",
        ),
        "completed",
    ),
    **dict.fromkeys(
        ("partial", "partially_completed", "partial_success", "incomplete", "in_progress"),
        "partial",
    ),
    **dict.fromkeys(
        (
            "failed",
            "failure",
            "fail",
            "error",
            "timeout",
            "timed_out",
            "aborted",
            "cancelled",
            "canceled",
            "abandoned",
            "false",
        ),
        "failed",
    ),
}
"""The words agents use, and what they mean."""
STATUSES = frozenset(STATUS) | {"unknown"}
VERIFIERS = frozenset(
    {"world", "environment", "tests", "verifier", "checker", "grader", "ground_truth"}
)
"""Who may call an outcome verified: whatever checks it, and not whoever made it."""
AGENT, TESTS = "agent", "tests"
SOURCES = VERIFIERS | {AGENT}
