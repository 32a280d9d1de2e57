"""What does a user's own behaviour say of the work, though nobody asked them?

| signal              | seen in                                                         | counts as | confidence |
|---------------------|-----------------------------------------------------------------|-----------|------------|
| thanks              | the user's turn after an answer                                 | 0.75      | 0.5 – 0.8  |
| correction          | the user's turn after an answer                                 | 0.2       | 0.6 – 0.9  |
| same request again  | the user's turn after the answer to it                          | 0.2       | 0.6        |
| abandoned           | a cancelled request, or a reset, after which no turn came       | 0.0       | 0.6, 0.5   |

The user's last signal is their opinion, as with spoken feedback: 0.5 + confidence × (counts as − 0.5). A turn
that rules cannot tell (`undecided`) makes thanks before it doubtful; a judge decides it where one is configured.

Nobody is taken to have left because time passed: the end of an idle episode says nothing. A request that comes
three times and more is how a program speaks, and no complaint. Each signal counts once: the one that decides
`user_feedback` is not subtracted in `task_completion` too, and an abandonment that the reported outcome says
already is none here.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from msgspec import UnsetType

from upswing.contracts import Trajectory, Turn
from upswing.contracts.reward import Component
from upswing.contracts.steps import number
from upswing.dataset.outcome import read_outcome
from upswing.reward.implicit_text import SignalKind, read_text, request_of

VOTES = {
    SignalKind.THANKS: 0.75,
    SignalKind.CORRECTION: 0.2,
    SignalKind.REPEAT: 0.2,
    SignalKind.ABANDONED: 0.0,
}
"""What a signal would be worth if it were sure."""
COMPLAINTS = frozenset({SignalKind.CORRECTION, SignalKind.REPEAT})
"""What `task_completion` subtracts for, where it has to derive the outcome."""
_REPEATED, _CANCELLED, _RESET = 0.6, 0.6, 0.5
_TEMPLATE = 3
"""So many times the same, and a program asks."""
_LEFT = frozenset({"abandoned", "aborted", "cancelled", "canceled"})


@dataclass(frozen=True, slots=True)
class ImplicitSignal:
    """One thing that a user did."""

    kind: SignalKind
    confidence: float
    turn_id: int
    """The turn that it was seen in; of an abandonment, the last one."""
    language: str = ""
    by: str = "rules"
    """Who read it: `rules`, or the judge's name."""

    @property
    def value(self) -> float:
        """As an opinion.

        >>> ImplicitSignal(SignalKind.CORRECTION, 0.9, 2).value
        0.23
        """
        return round(0.5 + self.confidence * (VOTES[self.kind] - 0.5), 12)


@dataclass(frozen=True, slots=True)
class ImplicitSignals:
    """All of a trajectory."""

    found: tuple[ImplicitSignal, ...] = ()
    """In the order of their turns."""
    undecided: int | None = None
    """The last turn that may say something, and nobody knows what; None when the last word is clear."""

    @property
    def deciding(self) -> ImplicitSignal | None:
        """The signal that is the user's opinion."""
        last = self.found[-1] if self.found else None
        if last is not None and self.undecided is not None and last.kind is SignalKind.THANKS:
            return None
        return last

    def complaints(self) -> int:
        """Corrections and repeated requests, all of them."""
        return sum(each.kind in COMPLAINTS for each in self.found)

    def complaints_before(self) -> int:
        """Those that do not decide the user's opinion."""
        last = self.deciding
        return self.complaints() - (last is not None and last.kind in COMPLAINTS)

    def to_raw(self) -> dict[str, Any]:
        """As `raw_data.implicit` of the component holds it; empty where there is nothing."""
        last = self.deciding
        told: dict[str, Any] = {} if self.undecided is None else {"undecided_turn": self.undecided}
        if last is None:
            return told
        language = {"language": last.language} if last.language else {}
        return {
            "signal": last.kind.value, "confidence": last.confidence, "turn_id": last.turn_id,
            "by": last.by, **language, **told,
        }  # fmt: skip


SILENT = ImplicitSignals()


def from_raw(raw: Any) -> ImplicitSignals:
    """What `to_raw` wrote; whatever else stands there says nothing."""
    if not isinstance(raw, Mapping):
        return SILENT
    kind, confidence, turn = raw.get("signal"), number(raw.get("confidence")), raw.get("turn_id")
    undecided = raw.get("undecided_turn")
    left = undecided if isinstance(undecided, int) else None
    known = [each for each in SignalKind if each.value == kind]
    if not known or confidence is None or not 0 <= confidence <= 1 or not isinstance(turn, int):
        return ImplicitSignals(undecided=left)
    language, by = str(raw.get("language") or ""), str(raw.get("by") or "rules")
    return ImplicitSignals((ImplicitSignal(known[0], confidence, turn, language, by),), left)


def shown_in(component: Component) -> ImplicitSignals:
    """What a published `user_feedback` says that the user's turns show."""
    data = component.raw_data
    return SILENT if isinstance(data, UnsetType) else from_raw(data.get("implicit"))


def implicit_signals(trajectory: Trajectory) -> ImplicitSignals:
    """What the user's turns show, and how it ended."""
    found: list[ImplicitSignal] = []
    undecided: int | None = None
    requests: Mapping[str, tuple[int, int]] | None = None
    for before, turn in pairwise(trajectory.turns):
        if turn.observation.type != "user_message":
            continue
        text, answer = user_text(turn), before.action.type == "response"
        if not text or (not answer and text == user_text(before)):
            continue  # the recorder shows the same message with every step
        reading = read_text(text, answer_text(before))
        if requests is None and reading.kind is None and answer:
            requests = _requests(trajectory)
        if reading.kind is None and answer and _asks_again(text, requests or {}, turn):
            found.append(ImplicitSignal(SignalKind.REPEAT, _REPEATED, turn.turn_id))
            undecided = None
        elif reading.kind is not None:
            found.append(
                ImplicitSignal(reading.kind, reading.confidence, turn.turn_id, reading.language)
            )
            undecided = None
        elif reading.undecided:
            undecided = turn.turn_id
    if left := _abandoned(trajectory, found):
        found.append(left)
        undecided = None
    return ImplicitSignals(tuple(found), undecided)


def _requests(trajectory: Trajectory) -> dict[str, tuple[int, int]]:
    """Each thing that was asked for: in which turn first, and how often in all."""
    users = [t for t in trajectory.turns if t.observation.type == "user_message"]
    asked = [(request_of(user_text(turn)), turn.turn_id) for turn in users]
    counts = Counter(request for request, _ in asked)
    found = {request: (turn_id, counts[request]) for request, turn_id in reversed(asked) if request}
    task = request_of(str(trajectory.task_context.get("instructions") or ""))
    if task:
        found[task] = (0, counts[task])
    return found


def _asks_again(text: str, requests: Mapping[str, tuple[int, int]], turn: Turn) -> bool:
    """Is it, or does it hold, what was asked for before?"""
    request = request_of(text)
    if not request:
        return False
    first, count = requests.get(request, (turn.turn_id, 1))
    if first < turn.turn_id:
        return count < _TEMPLATE
    earlier = [each for each, (when, _) in requests.items() if when < turn.turn_id]
    return any(each in request and len(request) <= 2 * len(each) for each in earlier)


def _abandoned(trajectory: Trajectory, found: list[ImplicitSignal]) -> ImplicitSignal | None:
    """Did the user leave in the middle? Only by what they did, never because nothing came."""
    about = trajectory.metadata
    gateway = about.get("gateway")
    cancelled = isinstance(gateway, Mapping) and gateway.get("cancelled") is True
    reset = about.get("reset") is True
    content = found and found[-1].kind is SignalKind.THANKS
    if not (cancelled or reset) or (content and not cancelled) or _outcome_says(about):
        return None
    confidence = _CANCELLED if cancelled else _RESET
    return ImplicitSignal(SignalKind.ABANDONED, confidence, trajectory.turns[-1].turn_id)


def _outcome_says(about: Mapping[str, Any]) -> bool:
    """Somebody reports that it was done, or that it was left: either way the outcome has it."""
    told = about.get("outcome")
    word = told.get("status") if isinstance(told, Mapping) else told
    if isinstance(word, str) and word.strip().lower() in _LEFT:
        return True
    return read_outcome(told).value == 1.0


def user_text(turn: Turn) -> str:
    """What the user writes in a turn; of several messages, what users write in them."""
    return _text(turn.observation.content)


def answer_text(turn: Turn) -> str:
    """What the agent answered."""
    said, output = turn.action.raw_response, turn.result.output
    return said if isinstance(said, str) else output if isinstance(output, str) else ""


def _text(content: Any) -> str:
    if isinstance(content, str):
        return content[:10_000]
    if not isinstance(content, Mapping):
        return ""
    if isinstance(messages := content.get("messages"), list):
        own = [m for m in messages if isinstance(m, Mapping) and m.get("role") == "user"]
        return "\n".join(filter(None, (_text(message.get("content")) for message in own[-1:])))
    if isinstance(parts := content.get("parts"), list):
        texts = [p.get("text") for p in parts if isinstance(p, Mapping)]
        return "".join(text for text in texts if isinstance(text, str))[:10_000]
    told = next((content[k] for k in ("text", "message", "content") if k in content), "")
    return told[:10_000] if isinstance(told, str) else ""
