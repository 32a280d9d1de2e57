"""What did a model answer? One choice of it, as a value that every recorder knows."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class AnswerToolCall:
    """A tool that the model wants called."""

    call_id: str
    name: str
    arguments: str


@dataclass(slots=True)
class ModelAnswer:
    """One choice of an answer."""

    answer_id: str = ""
    content: str = ""
    reasoning: str = ""
    tool_calls: list[AnswerToolCall] = field(default_factory=list)
    raw_text: str = ""
    """What the model wrote before calls were read out of it, where the server tells that."""
    finish_reason: str = ""
    prompt_tokens: int = 0
    completion_tokens: int = 0
    """Of all choices together."""
    prompt_token_ids: list[int] | None = None
    """Where the server tells them, as vLLM does."""
    token_ids: list[int] | None = None
    logprobs: list[float] | None = None
    """Of the completion, one per id."""
    token_texts: list[str] | None = None
    """The text of each token alone, where there are logprobs."""

    @property
    def is_empty(self) -> bool:
        return not (self.finish_reason or self.content or self.tool_calls or self.reasoning)
