"""A server that is not ours: where is it, what can it do, and what may be sent to it?

A model at such a server has a path of one line, so that it is a checkpoint's path like any other:

    https://gpu.example/v1#qwen                 the server, and its name for the model
    https://gpu.example/v1#qwen;probe=false     never asked what it can do

| of the server is known                  | added to requests     | of a client's fields pass          |
|-----------------------------------------|-----------------------|------------------------------------|
| it gives logprobs                       | `logprobs`            | all                                |
| it gives token ids                      | `return_token_ids`    | all                                |
| it refuses `stream_options`             | not to streams either | all                                |
| it refuses fields that it does not know | what it gives         | those of OpenAI's interface        |
| nothing, for it was not to be asked     | nothing               | those of OpenAI's interface        |
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import msgspec

from upswing.errors import Reason, Rejected

URL_PATTERN = r"^https?://[A-Za-z0-9.\-_\[\]:]+(/[\x21-\x7e]*)?$(?!\n)"
"""An address without a user, a password or a blank."""
_UNASKED = ";probe=false"
_DOTS = re.compile(r"(^|/)(\.|%2e){1,2}(/|$)", re.IGNORECASE)
_LONGEST = 2000
OPENAI_FIELDS = frozenset(
    {
        "audio",
        "frequency_penalty",
        "function_call",
        "functions",
        "logit_bias",
        "logprobs",
        "max_completion_tokens",
        "max_tokens",
        "messages",
        "metadata",
        "modalities",
        "model",
        "n",
        "parallel_tool_calls",
        "prediction",
        "presence_penalty",
        "prompt_cache_key",
        "reasoning_effort",
        "response_format",
        "safety_identifier",
        "seed",
        "service_tier",
        "stop",
        "store",
        "stream",
        "stream_options",
        "temperature",
        "tool_choice",
        "tools",
        "top_logprobs",
        "top_p",
        "user",
        "verbosity",
        "web_search_options",
    }
)
"""Of a chat completion's request, as OpenAI documents it."""


class Abilities(msgspec.Struct, frozen=True, kw_only=True):
    """What a probe found."""

    listed: bool = False
    """It has `GET /models`, and the model is among them."""
    logprobs: bool = False
    token_ids: bool = False
    """As vLLM has them: `return_token_ids`."""
    tools: bool = True
    adapters: bool = False
    """It loads adapters while it runs, as vLLM does."""
    strict: bool = False
    """It refuses fields that it does not know."""
    refuses: tuple[str, ...] = ()
    """Optional fields of OpenAI's interface that it does not take."""
    shapes: tuple[str, ...] = ()
    """What it speaks beside chat completions: `responses`, `messages`."""

    @property
    def extra(self) -> dict[str, Any]:
        """Fields that make an answer better to train on.

        A stream is asked to count its tokens, too, unless its server refuses that: None.

        >>> Abilities(logprobs=True).extra, Abilities(refuses=("stream_options",)).extra
        ({'logprobs': True}, {'stream_options': None})
        """
        wanted = {"logprobs": self.logprobs, "return_token_ids": self.token_ids}
        uncounted = {"stream_options": None} if "stream_options" in self.refuses else {}
        return {field: True for field, given in wanted.items() if given} | uncounted

    @property
    def unusable(self) -> frozenset[str]:
        """Optional fields that must not be sent."""
        return frozenset(self.refuses) | (frozenset() if self.tools else {"tools"})


UNASKED = Abilities(strict=True, refuses=("stream_options",))
"""A server that must not be probed is asked as if it were strict and could do nothing special."""


class RemoteModel(msgspec.Struct, frozen=True):
    """A model at a server that is not ours."""

    url: str
    name: str
    """What the server calls it; empty: as we do."""
    probe: bool = True


def is_remote(path: str) -> bool:
    """Whether a model's path leads to a server.

    >>> is_remote("https://gpu/v1#qwen"), is_remote("s3://models/v2")
    (True, False)
    """
    return path.startswith(("http://", "https://"))


def parse_remote_path(path: str) -> RemoteModel:
    """The server in a model's path.

    >>> parse_remote_path("https://gpu/v1#qwen;probe=false")
    RemoteModel(url='https://gpu/v1', name='qwen', probe=False)
    """
    url, _, name = path.partition("#")
    return RemoteModel(url, name.removesuffix(_UNASKED), not name.endswith(_UNASKED))


def path_of_remote(remote: RemoteModel) -> str:
    """The one line that `parse_remote_path` reads; `Rejected` when the address is none.

    >>> path_of_remote(RemoteModel("https://gpu", "a/b", False))
    'https://gpu#a/b;probe=false'
    >>> path_of_remote(RemoteModel("https://me:secret@gpu", "m"))
    Traceback (most recent call last):
    upswing.errors.Rejected: `backend` is no address such as https://gpu.example/v1.
    """
    url, name = remote.url, remote.name
    if not re.match(URL_PATTERN, url) or "?" in url or "#" in url or _DOTS.search(url):
        raise Rejected(Reason.SCHEMA, "`backend` is no address such as https://gpu.example/v1.")
    if name.endswith(_UNASKED) or not name.isprintable():
        raise Rejected(Reason.SCHEMA, "`name` is what the server calls the model, and no more.")
    path = f"{url}#{name}{'' if remote.probe else _UNASKED}"
    if len(path) > _LONGEST:
        raise Rejected(Reason.SCHEMA, f"`backend` and `name` have more than {_LONGEST} characters.")
    return path


class ModelOrigin(msgspec.Struct, frozen=True):
    """Where a model that is registered comes from: a checkpoint, or a server."""

    checkpoint_path: str | None = None
    backend: str | None = None
    name: str | None = None
    probe: bool = True


def resolve_base_and_path(
    origin: ModelOrigin, model_id: str, base_model: str | None
) -> tuple[str, str]:
    """Base and path of a model to be registered; `Rejected` when it is not clear where it is.

    >>> resolve_base_and_path(ModelOrigin(backend="https://api.example/v1", name="large"), "mine", None)
    ('large', 'https://api.example/v1#large')
    """
    path, backend = origin.checkpoint_path, origin.backend
    if (path is None) == (backend is None):
        raise Rejected(
            Reason.SCHEMA, "Say where the model is: either `checkpoint_path` or `backend`."
        )
    if backend is not None:
        name = origin.name or model_id
        return base_model or name, path_of_remote(RemoteModel(backend, name, origin.probe))
    if origin.name is not None or not origin.probe:
        raise Rejected(Reason.SCHEMA, "`name` and `probe` belong to a `backend`.")
    if base_model is None:
        raise Rejected(Reason.SCHEMA, "Name the `base_model` that the checkpoint was made from.")
    return base_model, path or ""


def fields_for_strict_server(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Of a client's fields, those that a strict server knows. Metadata goes only where it is kept.

    >>> fields_for_strict_server({"model": "m", "guided_json": {}, "metadata": {"session_id": "s"}})
    {'model': 'm'}
    """
    kept = {name: value for name, value in fields.items() if name in OPENAI_FIELDS}
    if "store" not in kept:
        kept.pop("metadata", None)
    return kept
