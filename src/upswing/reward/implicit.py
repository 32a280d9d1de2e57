"""What does a user's own behaviour say of the work, though nobody asked them?

| signal              | seen in                                                         | counts as | confidence |
|---------------------|-----------------------------------------------------------------|-----------|------------|
| thanks              | the user's turn after an answer                                 | 0.75      | 0.5 – 0.8  |
| correction          | the user's turn after an answer                                 | 0.2       | 0.6 – 0.9  |
| same request again  | the user's turn after the answer to it, word by word the same   | 0.2       | 0.6        |
| abandoned           | a cancelled request, or a reset, after which no turn came       | 0.0       | 0.6, 0.5   |

The user's last signal is their opinion, as with spoken feedback: 0.5 + confidence × (counts as − 0.5). A turn
that rules cannot tell (`undecided`) makes thanks before it doubtful; a judge decides it where one is configured.

What is read is bounded, whatever is sent: the last `TURNS` turns of the user, and of each text its two ends.

Nobody is taken to have left because time passed: the end of an idle episode says nothing. A request that comes
three times and more is how a program speaks, and no complaint. Each signal counts once: the one that decides
`user_feedback` is not subtracted in `task_completion` too, and an abandonment that the reported outcome says
already is none here.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from msgspec import UnsetType

from upswing.contracts import Trajectory, Turn
from upswing.contracts.reward import Component
from upswing.contracts.steps import number
from upswing.dataset.outcome import read_outcome
from upswing.reward.implicit_text import UNDECIDED, SignalKind, TextReading, read_text, request_of

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
TURNS = 50
"""Turns of the user that are read: the last ones."""
MESSAGE, ANSWER = 4_000, 8_000
"""Characters that are read of a user's message and of an answer."""
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


@dataclass(frozen=True, slots=True)
class Exchange:
    """A turn of the user, and what it may be about: all that is read of them."""

    turn_id: int
    text: str
    answer: str
    answered: bool
    """The turn before ended in an answer."""
    asked: str
    """What the user wrote before that."""


def exchanges(trajectory: Trajectory) -> list[Exchange]:
    """The last turns in which the user says something new, in their order."""
    turns, found = trajectory.turns, list[Exchange]()
    places = [at for at, turn in enumerate(turns) if turn.observation.type == "user_message"]
    recent = places[-TURNS - 1 :]
    asked = ""
    if recent and recent[0] == 0:
        asked, recent = user_text(turns[0]), recent[1:]
    elif len(recent) > TURNS:
        asked, recent = user_text(turns[recent[0]]), recent[1:]
    else:
        asked = _clipped([str(trajectory.task_context.get("instructions") or "")], MESSAGE)
    for at in recent:
        before, text = turns[at - 1], user_text(turns[at])
        answered = before.action.type == "response"
        # the recorder shows the same message with every step
        if text and (answered or text != asked):
            answer = answer_text(before)
            found.append(Exchange(turns[at].turn_id, text, answer, answered, asked))
        asked = text or asked
    return found


def implicit_signals(trajectory: Trajectory) -> ImplicitSignals:
    """What the user's turns show, and how it ended."""
    found: list[ImplicitSignal] = []
    undecided: int | None = None
    read = exchanges(trajectory)
    counts = Counter(request_of(text) for text in [*(e.text for e in read), *(e.asked for e in read[:1])])  # fmt: skip
    for each in read:
        reading = read_text(each.text, each.answer)
        if reading.kind is None and each.answered:
            reading = _asked_again(each, counts) or reading
        if reading.kind is not None:
            found.append(
                ImplicitSignal(reading.kind, reading.confidence, each.turn_id, reading.language)
            )
            undecided = None
        elif reading.undecided:
            undecided = each.turn_id
    if left := _abandoned(trajectory, found):
        found.append(left)
        undecided = None
    return ImplicitSignals(tuple(found), undecided)


def _asked_again(each: Exchange, counts: Mapping[str, int]) -> TextReading | None:
    """Is it what was just answered? The same with more words may be another request: undecided."""
    request, asked = request_of(each.text), request_of(each.asked)
    if not request or not asked or len(request) > 2 * len(asked):
        return None
    if request == asked:
        again = TextReading(SignalKind.REPEAT, _REPEATED)
        return again if counts[request] < _TEMPLATE else None
    longer = request.startswith(f"{asked} ") or request.endswith(f" {asked}")
    return UNDECIDED if longer else None


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
    """What the user writes in a turn; of several messages, the user's last one."""
    content: Any = turn.observation.content
    messages = content.get("messages") if isinstance(content, Mapping) else None
    if isinstance(messages, list):
        own = (m for m in reversed(messages) if isinstance(m, Mapping) and m.get("role") == "user")
        content = next(own, {}).get("content")
    return _clipped(_texts(content), MESSAGE)


def answer_text(turn: Turn) -> str:
    """What the agent answered."""
    said, output = turn.action.raw_response, turn.result.output
    text = said if isinstance(said, str) else output if isinstance(output, str) else ""
    return _clipped([text], ANSWER)


def _texts(content: Any) -> Iterable[str]:
    """The pieces of one message, in the shapes that clients send."""
    if isinstance(content, Mapping):
        keys = (key for key in ("parts", "text", "message", "content") if key in content)
        content = content.get(next(keys, ""))
    pieces = content if isinstance(content, list) else [content]
    texts = (piece.get("text") if isinstance(piece, Mapping) else piece for piece in pieces)
    return (text for text in texts if isinstance(text, str))


def _clipped(texts: Iterable[str], limit: int) -> str:
    """Both ends of a long text: an opinion stands at the one, what is to be done with it at the other."""
    text = "".join(texts)
    if len(text) <= limit:
        return text
    end = limit // 4
    return f"{text[: limit - end - 1]}\n{text[-end:]}"
