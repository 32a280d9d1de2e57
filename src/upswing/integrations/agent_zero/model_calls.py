"""Which model answered, and what does the gateway have to know of a call?

Agent Zero asks models through litellm and stops reading as soon as an answer is whole, so the usual event of a finished
call may never come. But litellm tells before a call is sent, and hands over the dictionary in which it notes the headers of
the answer as soon as they are there. A call carries an id of ours in litellm's own metadata, which is not sent, and
the headers are looked up by it.

| header            | when                                | means                                                   |
|-------------------|-------------------------------------|---------------------------------------------------------|
| `x-episode-id`    | an agent's own call                 | one chat keeps one model                                |
| `x-record: off`   | every call                          | the plugin records it, or it is nobody's work           |
| `x-agent-id`      | an agent's own call                 | who asks                                                |
"""

from __future__ import annotations

import logging
from collections import OrderedDict
from collections.abc import Mapping
from threading import Lock
from typing import Any, NamedTuple
from urllib.parse import urlsplit

log = logging.getLogger("upswing.agent_zero")
CALL_ID = "upswing_call"
_MOST_CALLS = 100
"""Calls under way that are remembered, each with its whole prompt; Agent Zero has a handful."""


class AnsweredBy(NamedTuple):
    """What an answer's headers say."""

    model: str = ""
    inference: str = ""


NOBODY_KNOWN = AnsweredBy()


class ModelCalls:
    """Calls under way, by id."""

    def __init__(self) -> None:
        self._details: OrderedDict[str, Mapping[str, Any]] = OrderedDict()
        self._lock = Lock()

    def __len__(self) -> int:
        return len(self._details)

    def note(self, details: Any) -> None:
        """A call is about to be sent; `details` is filled while it goes on."""
        if not isinstance(details, Mapping):
            return
        parameters = details.get("litellm_params")
        metadata = parameters.get("metadata") if isinstance(parameters, Mapping) else None
        call_id = metadata.get(CALL_ID) if isinstance(metadata, Mapping) else None
        if isinstance(call_id, str):
            with self._lock:
                self._details[call_id] = details
                while len(self._details) > _MOST_CALLS:
                    self._details.popitem(last=False)

    def forget(self, call_id: str) -> None:
        """A call whose answer nobody waits for any more."""
        with self._lock:
            self._details.pop(call_id, None)

    def take(self, call_id: str) -> AnsweredBy:
        """Who answered this call; nobody knows where no gateway of ours did."""
        with self._lock:
            details = self._details.pop(call_id, {})
        headers = details.get("response_headers")
        if not isinstance(headers, Mapping):
            return NOBODY_KNOWN
        found = {str(name).lower(): str(value) for name, value in headers.items()}
        return AnsweredBy(found.get("x-model-id", ""), found.get("x-inference-id", ""))


def register_with_litellm(calls: ModelCalls) -> bool:
    """Have litellm tell of calls; False where there is no litellm."""
    try:
        import litellm  # type: ignore[import-not-found]  # noqa: PLC0415 - Agent Zero's, not ours
        from litellm.integrations.custom_logger import (  # type: ignore[import-not-found]  # noqa: PLC0415
            CustomLogger,
        )
    except ImportError:
        return False

    class CallNotes(CustomLogger):  # type: ignore[misc]
        """Notes calls that carry our id."""

        def log_pre_api_call(self, model: Any, messages: Any, kwargs: Any) -> None:  # noqa: ARG002
            calls.note(kwargs)

    litellm.callbacks.append(CallNotes())
    return True


def is_ours(api_base: Any, gateway_url: str) -> bool:
    """Whether a model is asked at the gateway; others get no header of ours.

    >>> is_ours("http://127.0.0.1:3000/v1", "http://127.0.0.1:3000"), is_ours(None, "http://127.0.0.1:3000")
    (True, False)
    >>> is_ours("http://localhost:3000/v1/", "http://127.0.0.1:3000")
    True
    """
    if not isinstance(api_base, str):
        return False
    return _origin(api_base) == _origin(gateway_url)


def _origin(url: str) -> tuple[str, str, int | None]:
    try:
        parts = urlsplit(url)
        host = (parts.hostname or "").lower()
        port = parts.port or {"http": 80, "https": 443}.get(parts.scheme)
    except ValueError:
        return "", url, None
    return parts.scheme, "127.0.0.1" if host in {"localhost", "::1"} else host, port


def with_headers(model: Any, headers: Mapping[str, str], call_id: str = "") -> None:
    """Give a model object of Agent Zero, which is new for each call, headers and the id of the call."""
    before = model.kwargs
    extra = before.get("extra_headers")
    more = before.get("metadata")
    model.kwargs = {
        **before,
        "extra_headers": {**(extra if isinstance(extra, Mapping) else {}), **headers},
        **(
            {"metadata": {**(more if isinstance(more, Mapping) else {}), CALL_ID: call_id}}
            if call_id
            else {}
        ),
    }
