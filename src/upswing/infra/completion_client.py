"""How is a question put to any OpenAI-compatible endpoint, and what does each answer mean?

| answer                                    | becomes                                              |
|-------------------------------------------|------------------------------------------------------|
| 200 with a chat completion                | `ChatCompletion`                                     |
| 200 with something else                   | `Rejected` (malformed)                               |
| more than 200 KB                          | cut off, `Rejected` (too_large)                      |
| 400, 422 that a plainer question may mend | asked again without the parameter                    |
| 401, 403, 429 with `insufficient_quota`   | `Denied`                                             |
| 408, 425, 429, 5xx, no connection, slow   | `Transient`                                          |
| 3xx, 404, 405                             | `Misuse`: the address or the model is wrong          |
| any other 4xx                             | `Rejected`                                           |

`openai/gpt-4o-mini` is `gpt-4o-mini` at api.openai.com. Everywhere else the name goes out as it is,
because vLLM (`Qwen/Qwen3-14B`) and routers need what stands before the slash. Redirects are not
followed, and the key appears in no error: it goes to the address it was given for, nowhere else.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from datetime import timedelta
from typing import Any
from urllib.parse import urlsplit

import msgspec

from upswing.errors import Denied, Misuse, Reason, Rejected, Transient, UpswingError
from upswing.infra.http import Reply, Unreachable, exchange
from upswing.openai.completions import ChatCompletion, read_completion
from upswing.openai.errors import read_error

DEFAULT_URL = "https://api.openai.com/v1"
LIMIT = 200_000
"""Bytes of an answer; a larger one is cut off and refused."""
_OPENAI = "api.openai.com"
_LATER = frozenset({408, 425, 429})
_MENDABLE = frozenset({400, 422})
_OPTIONAL = ("response_format", "temperature", "max_tokens")


class OpenAI:
    """One model at one endpoint."""

    def __init__(
        self,
        model: str,
        *,
        key: str | None = None,
        base_url: str | None = None,
        timeout: timedelta = timedelta(seconds=100),
        temperature: float = 0.0,
        max_tokens: int = 2_000,
    ) -> None:
        self._url = urlsplit((base_url or DEFAULT_URL).rstrip("/"))
        _check_endpoint(self._url.scheme, self._url.hostname, self._url.username, key)
        self.model = model_name_at_host(model, self._url.hostname or "")
        self._key = (key or "").strip()
        self._timeout = timeout.total_seconds()
        self._optional: dict[str, Any] = {"temperature": temperature, "max_tokens": max_tokens}
        self._refused: set[str] = set()

    def __repr__(self) -> str:
        return f"OpenAI({self.model!r} at {self._url.hostname})"

    async def __call__(
        self,
        messages: Sequence[Mapping[str, str]],
        response_format: Mapping[str, Any] | None = None,
    ) -> ChatCompletion:
        """One answer. What the endpoint refuses of the optional parameters is left out from then on."""
        form = {"response_format": response_format} if response_format else {}
        wanted = {**self._optional, **form}
        dropped: set[str] = set()
        while True:
            left_out = self._refused | dropped
            reply = await self._post_request(_request_body(self.model, messages, wanted, left_out))
            if reply.status == 200:
                self._refused |= dropped
                return _parse_completion(reply.body)
            culprit = _refused_parameter(reply, wanted.keys() - left_out)
            if culprit is None:
                raise self._error_from_reply(reply)
            dropped.add(culprit)

    async def _post_request(self, body: bytes) -> Reply:
        url = f"{self._url.geturl()}/chat/completions"
        try:
            return await exchange(
                "POST", url, body=body, key=self._key, seconds=self._timeout, limit=LIMIT
            )
        except Unreachable as error:
            if error.late:
                raise Transient(f"The judge did not answer in {self._timeout:g} s.") from None
            raise Transient("The judge is not reachable.") from None

    def _error_from_reply(self, reply: Reply) -> UpswingError:
        error = read_error(reply.body)
        text = self._hide_key(" ".join(filter(None, (error.message, error.code))))
        match reply.status:
            case 401 | 403:
                return Denied("The judge's endpoint refuses the key in OPENAI_API_KEY.")
            case 429 if "insufficient_quota" in text:
                return Denied("The account behind OPENAI_API_KEY has no quota left.")
            case status if status in _LATER or status >= 500:
                return Transient(f"The judge's endpoint answers {status}.")
            case 404 | 405 | 301 | 302 | 303 | 307 | 308 as status:
                return Misuse(
                    f"{self._url.hostname} answers {status}: check OPENAI_BASE_URL and JUDGE_MODEL "
                    f"({self.model}). {text}".strip()
                )
            case 413:
                return Rejected(Reason.TOO_LARGE, "The question is too large for the judge.")
            case status:
                return Rejected(Reason.SCHEMA, f"The judge's endpoint answers {status}. {text}")

    def _hide_key(self, text: str) -> str:
        """Some endpoints repeat the key they refuse."""
        return text.replace(self._key, "…") if self._key else text


def model_name_at_host(model: str, host: str) -> str:
    """The name that this host knows the model by.

    >>> model_name_at_host("openai/gpt-4o-mini", "api.openai.com")
    'gpt-4o-mini'
    >>> model_name_at_host("openai/gpt-4o-mini", "openrouter.ai")
    'openai/gpt-4o-mini'
    """
    return model.removeprefix("openai/") if host == _OPENAI else model


def _check_endpoint(scheme: str, host: str | None, user: str | None, key: str | None) -> None:
    if scheme not in {"http", "https"} or not host:
        raise Misuse("OPENAI_BASE_URL must be an address such as http://127.0.0.1:8000/v1.")
    if user:
        raise Misuse("OPENAI_BASE_URL must not hold a password; put the key into OPENAI_API_KEY.")
    if key and not (key.strip().isascii() and key.strip().isprintable()):
        raise Misuse("OPENAI_API_KEY holds characters that no HTTP header can carry.")


def _request_body(
    model: str,
    messages: Sequence[Mapping[str, str]],
    parameters: Mapping[str, Any],
    omitted: Collection[str],
) -> bytes:
    sent = {name: value for name, value in parameters.items() if name not in omitted}
    if "max_tokens" in omitted:
        sent["max_completion_tokens"] = parameters["max_tokens"]
    return msgspec.json.encode({"model": model, "messages": messages, **sent})


def _refused_parameter(reply: Reply, sent: Collection[str]) -> str | None:
    """The parameter to leave out next: the one the refusal names, else the answer's form."""
    if reply.status not in _MENDABLE:
        return None
    text = reply.body.decode(errors="replace")
    named = next((name for name in _OPTIONAL if name in sent and name in text), None)
    return named or ("response_format" if "response_format" in sent else None)


def _parse_completion(body: bytes) -> ChatCompletion:
    if (completion := read_completion(body)) is None:
        raise Rejected(Reason.MALFORMED, "The judge's answer is no chat completion.")
    return completion
