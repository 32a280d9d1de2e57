"""What is done about such failures? The first rows that fit, by what went wrong and where.

| what went wrong           | found in                 | to do                                                        |
|---------------------------|--------------------------|--------------------------------------------------------------|
| out of memory             | prompt length            | gradient checkpointing or a shorter context                  |
| out of memory             | anything else, nothing   | fewer requests at once, or a smaller cache                   |
| context length            | any                      | shorter histories, or a base with a longer context           |
| slow, stalled             | prompt length            | shorter prompts, or a longer timeout                         |
| slow, stalled, busy       | anything else, nothing   | more room at the server                                      |
| unreachable, stale        | any                      | look at the server, not at the model                         |
| refusal, content filter   | any                      | demonstrations and rewards for harmless tasks it refuses     |
| cut off                   | any                      | a larger `max_tokens`, or a reward for brevity               |
| garbage, error body, …    | any                      | look at the server's log                                     |
| tool error                | any, or one tool         | look at its arguments; pin such episodes                     |
| any                       | tool                     | pin such episodes, train on attempts with that tool          |
| any                       | domain, suite, kind      | more attempts of that kind in the next data set              |
| any                       | agent                    | look at what that agent sends                                |
| any                       | user                     | look at what that user asks; it may be one voice             |
| any                       | time, hour of day        | look at what else happened then                              |
| any                       | finish reason            | see what ends its answers                                    |
| any                       | first-token latency      | look at the server's load                                    |
| any                       | prompt length            | attempts of that length in the next data set                 |
| any                       | nothing                  | read examples; record more                                   |

A finding that the baseline shares, or that another one explains, leads to nothing.
"""

from __future__ import annotations

from collections.abc import Sequence

from upswing.contracts.analysis import FailureFinding, FailureRemedy, FailureSymptom

_MOST = 3
_LEADING = 0.3
"""Share of the failures that a kind must have to count as what went wrong."""
ANY = "any"
NOTHING = "nothing"
_SLOW = ("slow", "stalled", "busy")
_SERVER = ("garbage", "error_body", "status", "cut_short", "too_large")
_CHECKPOINTING = (
    "Retrain with gradient checkpointing enabled, or with shorter sequences (`[train.recipe] max_tokens`); until then "
    "give the server a shorter context, and have agents cut their histories."
)
TABLE: tuple[tuple[tuple[str, ...], tuple[str, ...], str], ...] = (
    (("out_of_memory",), ("prompt length",), _CHECKPOINTING),
    (
        ("out_of_memory",),
        (ANY, NOTHING),
        "Let the server answer fewer requests at once, or give it a smaller cache; retrain with a smaller adapter.",
    ),
    (
        ("context_length",),
        (ANY, NOTHING),
        "Have agents send shorter histories, or take a base with a longer context.",
    ),
    (
        ("slow", "stalled"),
        ("prompt length",),
        "Shorten such prompts, or raise `[serve] timeout_seconds`: long prompts are not read in time.",
    ),
    (
        _SLOW,
        (ANY, NOTHING),
        "Give the model's server more room, or raise `[serve] timeout_seconds`; compare its load with the baseline's.",
    ),
    (
        ("unreachable", "stale"),
        (ANY, NOTHING),
        "Look at the server of this model: it was away. The model itself may be sound; validate it again.",
    ),
    (
        ("refusal", "content_filter"),
        (ANY, NOTHING),
        (
            "It refuses what it should do: add demonstrations of such tasks, reward them, and check that harmless requests "
            "of the safety suites are answered."
        ),
    ),
    (
        ("cut_off",),
        (ANY, NOTHING),
        "Its answers are cut off: raise `max_tokens` of the agents, or reward brevity (`efficiency`).",
    ),
    (
        _SERVER,
        (ANY, NOTHING),
        "Look at the log of the model's server at the time of the examples: it answered with an error.",
    ),
    (
        ("tool_error",),
        (ANY, NOTHING),
        (
            "Look at the arguments in the examples; pin some of them as tests (`upswing pin`), and train on attempts that "
            "call this tool."
        ),
    ),
    (
        (ANY,),
        ("tool",),
        "Pin such episodes as tests (`upswing pin`), and have more attempts with this tool in the next data set.",
    ),
    (
        (ANY,),
        ("domain", "suite", "kind"),
        "Have more attempts of this kind in the next data set; a suite of your own holds later models to it.",
    ),
    (
        (ANY,),
        ("agent",),
        "Look at what this agent sends: its prompt, tools or temperature may not fit the model.",
    ),
    ((ANY,), ("user",), "Look at what this user asks for: it may be one voice and not the model."),
    (
        (ANY,),
        ("time", "hour of day"),
        "Look at what else happened then: a deployment, load, a tool that was away.",
    ),
    (
        (ANY,),
        ("finish reason",),
        "See in the examples what ends its answers, and set it aside in the next data set.",
    ),
    (
        (ANY,),
        ("first-token latency",),
        "Look at the server's load: slow answers fail more often, and agents may give up on them.",
    ),
    (
        (ANY,),
        ("prompt length",),
        "Have attempts of that length in the next data set, or keep such prompts with the baseline.",
    ),
    (
        (ANY,),
        (NOTHING,),
        (
            "Read some of the failed episodes: they have nothing in common that the others have not. With more of them, "
            "look again (`upswing analyse`)."
        ),
    ),
)


def remedies_for(
    symptoms: Sequence[FailureSymptom], findings: Sequence[FailureFinding]
) -> tuple[FailureRemedy, ...]:
    """What to do, the most telling first."""
    kinds = [each.kind for each in symptoms if each.share >= _LEADING]
    own = [each for each in findings if not each.shared and not each.goes_with]
    places: list[tuple[str, str]] = [(each.feature, each.sentence) for each in own]
    found: dict[str, FailureRemedy] = {}
    for feature, sentence in places or [(NOTHING, "")]:
        text, kind = _first_row(kinds, feature)
        reasons = filter(None, (f"what went wrong: {kind}" if kind else "", sentence))
        found.setdefault(text, FailureRemedy(text, "; ".join(reasons) or "no finding"))
    return tuple(found.values())[:_MOST]


def _first_row(kinds: Sequence[str], feature: str) -> tuple[str, str]:
    """The text of the first row that fits, and the kind of failure that it fits by."""
    for row_kinds, features, text in TABLE:
        place = feature in features or (ANY in features and feature != NOTHING)
        if not place:
            continue
        if ANY in row_kinds:
            return text, ""
        for kind in kinds:
            if kind in row_kinds:
                return text, kind
    raise AssertionError("the last rows fit everything")
