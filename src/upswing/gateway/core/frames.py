"""What does the gateway hand to its recorder? An ended episode, as raw as it came.

Nothing of it is read on the way: the recorder, in another process, makes a trajectory of it,
redacts that, and publishes it.
"""

from __future__ import annotations

import msgspec

from upswing.contracts.typed import msgpack_decoder
from upswing.gateway.core.fault_records import FaultRecord


class ExchangeFrame(msgspec.Struct, frozen=True, array_like=True):
    """One request and its answer."""

    started_at: float
    """When it was asked, in seconds since 1970."""
    latency_ms: float
    """Until the answer was whole."""
    messages_size: int
    """How much of the conversation's messages it had: the length of its JSON list in bytes."""
    answer: list[bytes]
    """The server's body, in the pieces it came in."""
    stream: bool
    model_id: str
    inference_id: str
    first_token_ms: float = -1.0
    """Until the first event of a stream; negative: it came whole."""
    cancelled: bool = False
    """Its client stopped reading: `answer` is what was generated until then."""
    shape: str = "chat"
    """In which the server answered."""


class UnansweredFrame(msgspec.Struct, frozen=True, array_like=True):
    """The last request of an episode in which nothing was answered."""

    request: bytes
    """Its body."""
    started_at: float
    waited_ms: float


class ConversationFrame(msgspec.Struct, frozen=True, array_like=True):
    """Requests of which each goes on from the one before."""

    request: bytes
    """The body of the last one, which holds the messages of all."""
    exchanges: list[ExchangeFrame]


class TokenPrice(msgspec.Struct, frozen=True, array_like=True):
    """US dollars for a million tokens."""

    prompt: float
    completion: float


class EpisodeFrame(msgspec.Struct, frozen=True, kw_only=True):
    """An ended episode."""

    trajectory_id: str
    episode_id: str
    agent_id: str
    session_id: str
    source: str
    """How the episode was known."""
    ended_by: str
    """`close`, `idle`, `next`, `room` or `stop`."""
    model_id: str
    """Whose evidence it is: the model that was chosen at its first request."""
    candidate: bool
    rollout: str
    conversations: list[ConversationFrame]
    models: list[str]
    """Everybody who answered in it; more than one means that it is nobody's evidence."""
    failures: int = 0
    """Requests that the model failed to answer."""
    faults: list[FaultRecord] = []
    """The first requests that a model did not answer, whoever answered in its place."""
    unanswered: UnansweredFrame | None = None
    """None: something was answered."""
    broken: bool = False
    """Its last request got no answer, and it was not its client who hung up."""
    cancelled: bool = False
    """Its client gave up waiting for the last answer, and no other request came."""
    step: str = ""
    """The shares when chance chose its model; empty where it did not."""
    by_user: bool = False
    """Chance chose for its user."""
    switch: str = ""
    """The switch of the gateway that chose its model; empty: none."""
    named: bool = False
    """The client asked for this model, so chance had no part in it."""
    withdrawn: str = ""
    """A model that it was to be answered by, and that is withdrawn."""
    key: str = ""
    """What the loop knows its client's key by; empty: nobody knows."""
    many: bool = False
    """That key may speak for many users."""
    user_id: str | None = None
    task_id: str | None = None
    about: bytes = b"{}"
    """JSON: what the client says for the trajectory's metadata."""
    outcome: bytes = b"null"
    """JSON: what the client says at the end."""
    prices: dict[str, TokenPrice] = {}
    temperature: float | None = None
    """What it explored at; None: it was asked for as its client wanted."""


class RecordOutcome(msgspec.Struct, frozen=True, array_like=True):
    """What became of an episode."""

    trajectory_id: str
    status: str
    """`published`, `spooled` (redacted and on disk, to be published later), `later` (ask again) or
    `refused`."""
    detail: str = ""
    reason: str = ""
    """One of `errors.Reason` when the episode itself is why it was refused."""

    @property
    def durable(self) -> bool:
        return self.status in {"published", "spooled"}


_ENCODER = msgspec.msgpack.Encoder()
_FRAMES = msgpack_decoder(list[EpisodeFrame])
_OUTCOMES = msgpack_decoder(list[RecordOutcome])


def encode_frame(frame: EpisodeFrame) -> bytes:
    return _ENCODER.encode(frame)


def encode_batch(frames: list[bytes]) -> bytes:
    """Frames that are already written, as one list."""
    return _ENCODER.encode([msgspec.Raw(frame) for frame in frames])


def decode_batch(raw: bytes) -> list[EpisodeFrame]:
    return _FRAMES.decode(raw)


def encode_outcomes(outcomes: list[RecordOutcome]) -> bytes:
    return _ENCODER.encode(outcomes)


def decode_outcomes(raw: bytes) -> list[RecordOutcome]:
    return _OUTCOMES.decode(raw)
