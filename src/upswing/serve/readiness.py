"""Does a model really answer here? It is asked for one token, as anybody would ask it.

| what comes                               | becomes                                                  |
|------------------------------------------|----------------------------------------------------------|
| 200 with a chat completion               | `ProbeAnswer`: who answered, and how long it took             |
| 401, 403                                 | `Denied`: the key has to be mended                       |
| 404                                      | `Misuse`: there is no such model, or it is another path  |
| another status, no connection, too late  | `Transient`, with what was said                          |

A gateway neither records such a question nor counts it: see the header `PROBE_HEADER`. No redirect is followed,
so the key goes nowhere else.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from time import monotonic
from typing import Any

from upswing.errors import Denied, Misuse, Rejected, Transient
from upswing.infra.http import Unreachable, send_request_blocking
from upswing.openai.errors import error_message

PROBE_HEADER = "X-Upswing-Probe"
"""A gateway lets the baseline answer, and keeps nothing."""
_LIMIT = 200_000


@dataclass(frozen=True, slots=True)
class ProbeAnswer:
    """A model has answered."""

    model: str
    seconds: float


def probe_one_token(
    url: str,
    key: str | None,
    model: str = "upswing",
    *,
    seconds: float = 60.0,
    is_gateway: bool = False,
) -> ProbeAnswer:
    """Ask the server at `url` (up to `/v1`) for one token; `is_gateway`: it is a gateway of ours."""
    body = {
        "model": model,
        "messages": [{"role": "user", "content": "hello"}],
        "max_tokens": 1,
    }
    headers_sent = {PROBE_HEADER: "1"} if is_gateway else {}
    began = monotonic()
    status, headers, raw = _send_request(
        "POST", f"{url}/chat/completions", key, body, headers_sent, seconds
    )
    reply = _json_object(raw)
    if status == 200 and reply.get("choices"):
        return ProbeAnswer(
            headers.get("x-model-id") or str(reply.get("model") or model), monotonic() - began
        )
    raise _error_for_status(status, f"{url} answers {status}: {error_message(raw)}")


def list_models(url: str, key: str | None, *, seconds: float = 5.0) -> list[str] | None:
    """The models of the server at `url`; None when it keeps no list. `Transient` when it is away."""
    status, _, raw = _send_request("GET", f"{url}/models", key, None, {}, seconds)
    if status in {401, 403}:
        raise _error_for_status(status, f"{url} answers {status}: {error_message(raw)}")
    found = _json_object(raw).get("data")
    if status != 200 or not isinstance(found, list):
        return None
    return [str(each["id"]) for each in found if isinstance(each, dict) and "id" in each]


def gateway_status(url: str, *, seconds: float = 5.0) -> str:
    """What a gateway at `url` says of itself: `ok` once it has a traffic plan."""
    status, _, raw = _send_request("GET", f"{url}/health", None, None, {}, seconds)
    if status != 200:
        raise Transient(f"{url} answers {status}.")
    return str(_json_object(raw).get("status", ""))


def _send_request(
    method: str,
    url: str,
    key: str | None,
    payload: Mapping[str, Any] | None,
    extra_headers: Mapping[str, str],
    seconds: float,
) -> tuple[int, Mapping[str, str], bytes]:
    body = None if payload is None else json.dumps(payload).encode()
    try:
        reply = send_request_blocking(
            method, url, body=body, key=key, headers=extra_headers, seconds=seconds, limit=_LIMIT
        )
    except Unreachable as error:
        raise Transient(f"Nothing answers at {url}: {error}") from None
    except Rejected as error:
        raise Transient(str(error)) from None
    return reply.status, reply.headers, reply.body


def _error_for_status(status: int, message: str) -> Misuse | Transient | Denied:
    match status:
        case 401 | 403:
            return Denied(message)
        case 404:
            return Misuse(message)
        case _:
            return Transient(message)


def _json_object(raw: bytes) -> dict[str, Any]:
    try:
        tree = json.loads(raw)
    except (ValueError, RecursionError):
        return {}
    return tree if isinstance(tree, dict) else {}
