"""Episodes with a cause of failure planted in them, or with none: for whoever looks for it."""

import random

from upswing.records import EpisodeFacts

DOMAINS = ("coding", "research", "writing", "general")
TOOLS = ("search", "python", "calendar", "mail", "sql")
REASONS = ("stop", "tool_calls", "length")


def episode(chance, candidate, number):
    """One that has not failed yet, as production makes them: a few heavy users, long tails, unequal tools."""
    length = chance.lognormvariate(8, 1)
    labels = {
        "domain": (chance.choices(DOMAINS, (4, 3, 2, 1))[0],),
        "tool": tuple(sorted({chance.choices(TOOLS, (5, 4, 3, 2, 1))[0] for _ in range(2)})),
        "user": (f"u{int(chance.paretovariate(1.2)) % 60}",),
        "agent": (f"a{chance.randrange(6)}",),
        "finish reason": (chance.choices(REASONS, (8, 3, 1))[0],),
        "hour of day": (f"{chance.randrange(24):02d}",),
    }
    numbers = {
        "prompt length": length,
        "first-token latency": 50 + length / 200 + chance.expovariate(1 / 80),
        "time": 1.78e9 + number * 30,
    }
    return labels, numbers


def planted(seed, cause=None, *, candidates=240, baselines=480, usual=0.02, there=0.5):
    """Facts in which the candidate fails where `cause(labels, numbers)` holds, and hardly elsewhere."""
    chance = random.Random(seed)
    facts = []
    for number in range(candidates + baselines):
        candidate = number % 3 == 0 if candidates * 2 == baselines else number < candidates
        labels, numbers = episode(chance, candidate, number)
        share = there if candidate and cause and cause(labels, numbers) else usual
        failed = chance.random() < share
        kind = chance.choice(("slow", "error_body", "status")) if failed else ""
        facts.append(EpisodeFacts(f"t{number}", candidate, failed, kind, labels, numbers))
    return facts


CAUSES = {
    ("prompt length", "≥"): lambda labels, numbers: numbers["prompt length"] > 9000,
    ("first-token latency", "≥"): lambda labels, numbers: numbers["first-token latency"] > 250,
    ("time", "≥"): lambda labels, numbers: numbers["time"] > 1.78e9 + 30 * 600,
    ("domain", "writing"): lambda labels, numbers: "writing" in labels["domain"],
    ("tool", "mail"): lambda labels, numbers: "mail" in labels["tool"],
    ("agent", "a3"): lambda labels, numbers: "a3" in labels["agent"],
    ("user", "u1"): lambda labels, numbers: "u1" in labels["user"],
    ("finish reason", "length"): lambda labels, numbers: "length" in labels["finish reason"],
}
