"""What does a user's own behaviour say of the work, though nobody previous_request them?

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
from upswing.contracts.steps import finite_number_or_none
from upswing.dataset.outcome import parse_outcome
from upswing.reward.core.implicit_text import (
    UNDECIDED,
    SignalKind,
    TextReading,
    read_text,
    request_fingerprint,
)

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
        raw: dict[str, Any] = {} if self.undecided is None else {"undecided_turn": self.undecided}
        if last is None:
            return raw
        language = {"language": last.language} if last.language else {}
        return {
            "signal": last.kind.value,
            "confidence": last.confidence,
            "turn_id": last.turn_id,
            "by": last.by,
            **language,
            **raw,
        }


SILENT = ImplicitSignals()


def signals_from_raw(raw: Any) -> ImplicitSignals:
    """What `to_raw` wrote; whatever else stands there says nothing."""
    if not isinstance(raw, Mapping):
        return SILENT
    kind, confidence, turn = (
        raw.get("signal"),
        finite_number_or_none(raw.get("confidence")),
        raw.get("turn_id"),
    )
    undecided = raw.get("undecided_turn")
    left = undecided if isinstance(undecided, int) else None
    known = [each for each in SignalKind if each.value == kind]
    if not known or confidence is None or not 0 <= confidence <= 1 or not isinstance(turn, int):
        return ImplicitSignals(undecided=left)
    language, by = str(raw.get("language") or ""), str(raw.get("by") or "rules")
    return ImplicitSignals((ImplicitSignal(known[0], confidence, turn, language, by),), left)


def signals_of_component(component: Component) -> ImplicitSignals:
    """What a published `user_feedback` says that the user's turns show."""
    data = component.raw_data
    return SILENT if isinstance(data, UnsetType) else signals_from_raw(data.get("implicit"))


@dataclass(frozen=True, slots=True)
class Exchange:
    """A turn of the user, and what it may be about: all that is read of them."""

    turn_id: int
    text: str
    answer: str
    answered: bool
    """The turn before ended in an answer."""
    previous_request: str
    """What the user wrote before that."""


def user_exchanges(trajectory: Trajectory) -> list[Exchange]:
    """The last turns in which the user says something new, in their order."""
    turns, found = trajectory.turns, list[Exchange]()
    indices = [at for at, turn in enumerate(turns) if turn.observation.type == "user_message"]
    recent = indices[-TURNS - 1 :]
    previous_request = ""
    if recent and recent[0] == 0:
        previous_request, recent = user_text(turns[0]), recent[1:]
    elif len(recent) > TURNS:
        previous_request, recent = user_text(turns[recent[0]]), recent[1:]
    else:
        previous_request = _clip_texts(
            [str(trajectory.task_context.get("instructions") or "")], MESSAGE
        )
    for at in recent:
        before, text = turns[at - 1], user_text(turns[at])
        answered = before.action.type == "response"
        # the recorder shows the same message with every step
        if text and (answered or text != previous_request):
            answer = answer_text(before)
            found.append(Exchange(turns[at].turn_id, text, answer, answered, previous_request))
        previous_request = text or previous_request
    return found


def implicit_signals(trajectory: Trajectory) -> ImplicitSignals:
    """What the user's turns show, and how it ended."""
    found: list[ImplicitSignal] = []
    undecided: int | None = None
    read = user_exchanges(trajectory)
    counts = Counter(
        request_fingerprint(text)
        for text in [*(e.text for e in read), *(e.previous_request for e in read[:1])]
    )
    for each in read:
        reading = read_text(each.text, each.answer)
        if reading.kind is None and each.answered:
            reading = _repeat_signal(each, counts) or reading
        if reading.kind is not None:
            found.append(
                ImplicitSignal(reading.kind, reading.confidence, each.turn_id, reading.language)
            )
            undecided = None
        elif reading.undecided:
            undecided = each.turn_id
    if left := _abandonment_signal(trajectory, found):
        found.append(left)
        undecided = None
    return ImplicitSignals(tuple(found), undecided)


def _repeat_signal(each: Exchange, counts: Mapping[str, int]) -> TextReading | None:
    """Is it what was just answered? The same with more words may be another request: undecided."""
    request, previous_request = (
        request_fingerprint(each.text),
        request_fingerprint(each.previous_request),
    )
    if not request or not previous_request or len(request) > 2 * len(previous_request):
        return None
    if request == previous_request:
        again = TextReading(SignalKind.REPEAT, _REPEATED)
        return again if counts[request] < _TEMPLATE else None
    longer = request.startswith(f"{previous_request} ") or request.endswith(f" {previous_request}")
    return UNDECIDED if longer else None


def _abandonment_signal(
    trajectory: Trajectory, found: list[ImplicitSignal]
) -> ImplicitSignal | None:
    """Did the user leave in the middle? Only by what they did, never because nothing came."""
    about = trajectory.metadata
    gateway = about.get("gateway")
    cancelled = isinstance(gateway, Mapping) and gateway.get("cancelled") is True
    reset = about.get("reset") is True
    content = found and found[-1].kind is SignalKind.THANKS
    if not (cancelled or reset) or (content and not cancelled) or _outcome_is_positive(about):
        return None
    confidence = _CANCELLED if cancelled else _RESET
    return ImplicitSignal(SignalKind.ABANDONED, confidence, trajectory.turns[-1].turn_id)


def _outcome_is_positive(about: Mapping[str, Any]) -> bool:
    """Somebody reports that it was done, or that it was left: either way the outcome has it."""
    outcome = about.get("outcome")
    status = outcome.get("status") if isinstance(outcome, Mapping) else outcome
    if isinstance(status, str) and status.strip().lower() in _LEFT:
        return True
    return parse_outcome(outcome).value == 1.0


def user_text(turn: Turn) -> str:
    """What the user writes in a turn; of several messages, the user's last one."""
    content: Any = turn.observation.content
    messages = content.get("messages") if isinstance(content, Mapping) else None
    if isinstance(messages, list):
        own = (m for m in reversed(messages) if isinstance(m, Mapping) and m.get("role") == "user")
        content = next(own, {}).get("content")
    return _clip_texts(_texts_of_content(content), MESSAGE)


def answer_text(turn: Turn) -> str:
    """What the agent answered."""
    response, output = turn.action.raw_response, turn.result.output
    text = response if isinstance(response, str) else output if isinstance(output, str) else ""
    return _clip_texts([text], ANSWER)


def _texts_of_content(content: Any) -> Iterable[str]:
    """The pieces of one message, in the shapes that clients send."""
    if isinstance(content, Mapping):
        keys = (key for key in ("parts", "text", "message", "content") if key in content)
        content = content.get(next(keys, ""))
    pieces = content if isinstance(content, list) else [content]
    texts = (piece.get("text") if isinstance(piece, Mapping) else piece for piece in pieces)
    return (text for text in texts if isinstance(text, str))


def _clip_texts(texts: Iterable[str], limit: int) -> str:
    """Both ends of a long text: an opinion stands at the one, what is to be done with it at the other."""
    text = "".join(texts)
    if len(text) <= limit:
        return text
    end = limit // 4
    return f"{text[: limit - end - 1]}\n{text[-end:]}"
