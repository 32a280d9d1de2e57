"""What does the gateway need from the world? Small promises; `adapters` and the runtime keep them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from upswing.gateway.dead import Refusal
from upswing.gateway.frames import Kept

Json = Mapping[str, Any]


class Keeper(Protocol):
    """Makes what the gateway heard durable: redacted, and on the bus."""

    async def keep(self, frames: list[bytes]) -> list[Kept]:
        """What became of each episode, in order; `Transient` when nobody can say, so ask again."""
        ...

    async def say(self, feedback: bytes) -> Kept:
        """The same for a user's word, as feedback.v1."""
        ...

    async def bury(self, refusal: Refusal) -> Kept:
        """The same for an episode that is given up: leave a dead letter of it."""
        ...


class PinBoard(Protocol):
    """What other gateways have assigned; one gateway alone has no need of it."""

    def get(self, key: str) -> str | None:
        """The model of an episode, as far as it has been heard of."""
        ...

    def put(self, key: str, model_id: str) -> None:
        """Tell the others; nobody waits for it."""
        ...


class KeyRing(Protocol):
    """Knows whose keys work, and nobody's key."""

    async def keys(self) -> Mapping[bytes, str]:
        """sha256 of each key that may ask here → whose it is; `Transient` when nobody can say."""
        ...


class Desk(Protocol):
    """Carries out what an operator asks: the controller.

    Each raises `Rejected` for what can never be done, `Misuse` for a model that is not known,
    `Transient` for what cannot be done now. Writes leave a row in the audit before they return.
    """

    async def register(self, model_id: str, base_model: str, checkpoint_path: str) -> Json: ...
    async def set_traffic(self, model_id: str, percentage: float) -> Json: ...
    async def metrics(self, model_id: str) -> Json:
        """Of one model; `current` is the baseline."""
        ...

    async def models(self) -> Sequence[Json]: ...

    async def check_feedback(self, word: bytes) -> None:
        """`Rejected` when this word, as feedback.v1, would not be taken."""
        ...
