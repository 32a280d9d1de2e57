"""What does the model server need of whatever runs the model? One small promise: `InferenceEngine`.

| an engine that cannot            | raises                                                        |
|----------------------------------|---------------------------------------------------------------|
| find the model of this name      | `Misuse`                                                      |
| take a prompt of this length     | `Rejected`, too_large                                         |
| take it in at all                | `Rejected`: the template refuses the messages or the tools    |
| work just now                    | `Transient`: it closes, or the model is being unloaded        |
| load what lies at a path         | `Rejected`: a bad checkpoint, another base                    |
| load it under a name in use      | `Conflict`, unless it is the same path: then nothing happens  |

`generate` raises at its first step, never halfway: what is wrong is known before the first piece.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, Protocol

FinishReason = Literal["stop", "length"]
Message = Mapping[str, Any]
TopLogprob = tuple[int, str, float]
"""A token that might have been taken: its id, its text, its logprob."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GenerationRequest:
    """What a client asks for, checked and complete."""

    model: str
    messages: Sequence[Message]
    """As OpenAI has them: `role`, `content` (text), `tool_calls`, `tool_call_id`, `name`."""
    tools: Sequence[Mapping[str, Any]] | None = None
    """For the chat template, where it knows what to do with them."""
    max_tokens: int | None = None
    """None: until the model ends, or its context does."""
    temperature: float = 1.0
    """0 takes the likeliest token."""
    top_p: float = 1.0
    seed: int | None = None
    """The same seed, prompt and model give the same answer; None: the engine draws one."""
    stop: tuple[str, ...] = ()
    """Texts that end the answer; they are not part of it, but their token ids are."""
    top_logprobs: int | None = None
    """How many tokens to list beside the one that was taken; None: nobody asks for logprobs."""
    output_schema: Mapping[str, Any] | None = None
    """JSON Schema that the answer has to follow; None: any text. Only for engines that can hold a model to one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenChunk:
    """What the model has said since the piece before; the last one has `finish`."""

    text: str = ""
    """Only whole characters, and nothing that may yet turn out to be a stop text: so it may be
    empty, and it may lag behind the tokens."""
    token_ids: tuple[int, ...] = ()
    """Every id that was drawn, the end token too, so that a later turn can go on exactly there."""
    logprobs: tuple[float, ...] = ()
    """One per id: under the raw logits at temperature 1, whatever the temperature and top_p were.
    Empty if `top_logprobs` is None and they cost something."""
    tokens: tuple[str, ...] = ()
    """The text of each id alone, as a list of logprobs shows it; special tokens by their name."""
    top_logprobs: tuple[tuple[TopLogprob, ...], ...] = ()
    """One per id, likeliest first; empty if nobody asks."""
    finish_reason: FinishReason | None = None
    """`stop`: the model ended, or a stop text came. `length`: max_tokens, or the context is full."""
    prompt_token_ids: tuple[int, ...] | None = field(default=None)
    """On the first piece: what the model was given."""


@dataclass(frozen=True, slots=True)
class EngineStats:
    """How busy an engine is, and what it has done so far."""

    running: int
    """Requests in the batch."""
    waiting: int
    """Requests that are not in it yet."""
    steps: int
    """Forward passes that decoded a token for each request in the batch."""
    generated_tokens: int
    """Tokens decoded in them: divided by `steps`, the mean size of a batch."""
    cancelled: int
    """Requests whose client left before they had ended."""


class InferenceEngine(Protocol):
    """Runs one base and the adapters on it; many requests at once."""

    base: str

    @property
    def follows_schemas(self) -> bool:
        """It can hold a model to an `output_schema`."""
        ...

    def model_names(self) -> Sequence[str]:
        """The base first, then what has been loaded."""
        ...

    def stats(self) -> EngineStats | None:
        """How busy it is; None where the engine does not count."""
        ...

    async def load(self, name: str, path: Path) -> None:
        """Serve the checkpoint at `path` under this name; the same name and path again is nothing."""
        ...

    async def unload(self, name: str) -> None:
        """Serve it no more; requests under way with it end first. `Misuse` if it is not loaded."""
        ...

    def generate(self, request: GenerationRequest) -> AsyncIterator[TokenChunk]:
        """Closing the iterator (`aclose`) stops generating; so the iterator is an async generator."""
        ...

    async def close(self) -> None:
        """End everything; what is under way fails with `Transient`."""
        ...
