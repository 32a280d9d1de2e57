"""Does a model really answer here? It is asked for one token, as anybody would ask it.

| what comes                               | becomes                                                  |
|------------------------------------------|----------------------------------------------------------|
| 200 with a chat completion               | `Probed`: who answered, and how long it took             |
| 401, 403                                 | `Denied`: the key has to be mended                       |
| 404                                      | `Misuse`: there is no such model, or it is another path  |
| another status, no connection, too late  | `Transient`, with what was said                          |

A gateway neither records such a question nor counts it: see the header `PROBE`. No redirect is followed,
so the key goes nowhere else.
"""

from __future__ import annotations

import http.client
import json
from collections.abc import Mapping
from dataclasses import dataclass
from time import monotonic
from typing import Any
from urllib.parse import urlsplit

from upswing import __version__
from upswing.errors import Denied, Misuse, Transient

PROBE = "X-Upswing-Probe"
"""A gateway lets the baseline answer, and keeps nothing."""
_LIMIT = 200_000
_LOST = (OSError, http.client.HTTPException)


@dataclass(frozen=True, slots=True)
class Probed:
    """A model has answered."""

    model: str
    seconds: float


def one_token(
    url: str, key: str | None, model: str = "upswing", *, seconds: float = 60.0, probe: bool = False
) -> Probed:
    """Ask the server at `url` (up to `/v1`) for one token; `probe`: it is a gateway of ours."""
    asked = {
        "model": model,
        "messages": [{"role": "user", "content": "hello"}],
        "max_tokens": 1,
    }
    marks = {PROBE: "1"} if probe else {}
    began = monotonic()
    status, headers, raw = _exchanged("POST", f"{url}/chat/completions", key, asked, marks, seconds)
    told = _tree(raw)
    if status == 200 and told.get("choices"):
        return Probed(
            headers.get("x-model-id") or str(told.get("model") or model), monotonic() - began
        )
    raise _refused(status, f"{url} answers {status}: {_sentence(told)}")


def listed(url: str, key: str | None, *, seconds: float = 5.0) -> list[str] | None:
    """The models of the server at `url`; None when it keeps no list. `Transient` when it is away."""
    status, _, raw = _exchanged("GET", f"{url}/models", key, None, {}, seconds)
    if status in {401, 403}:
        raise _refused(status, f"{url} answers {status}: {_sentence(_tree(raw))}")
    found = _tree(raw).get("data")
    if status != 200 or not isinstance(found, list):
        return None
    return [str(each["id"]) for each in found if isinstance(each, dict) and "id" in each]


def health(url: str, *, seconds: float = 5.0) -> str:
    """What a gateway at `url` says of itself: `ok` once it has a traffic plan."""
    status, _, raw = _exchanged("GET", f"{url}/health", None, None, {}, seconds)
    if status != 200:
        raise Transient(f"{url} answers {status}.")
    return str(_tree(raw).get("status", ""))


def _exchanged(
    method: str, url: str, key: str | None, told: Mapping[str, Any] | None,
    marks: Mapping[str, str], seconds: float,
) -> tuple[int, Mapping[str, str], bytes]:  # fmt: skip
    parts = urlsplit(url)
    kind = http.client.HTTPSConnection if parts.scheme == "https" else http.client.HTTPConnection
    headers = {"User-Agent": f"upswing/{__version__}", "Accept": "application/json", **marks}
    headers |= {"Authorization": f"Bearer {key}"} if key else {}
    headers |= {"Content-Type": "application/json"} if told is not None else {}
    try:
        line = kind(parts.hostname or "", parts.port, timeout=seconds)
    except ValueError:
        raise Misuse(f"{url} has no port that could be.") from None
    try:
        line.request(method, parts.path, json.dumps(told) if told is not None else None, headers)
        answer = line.getresponse()
        return answer.status, {k.lower(): v for k, v in answer.getheaders()}, answer.read(_LIMIT)
    except _LOST as error:
        raise Transient(f"Nothing answers at {parts.scheme}://{parts.netloc} ({error}).") from None
    finally:
        line.close()


def _refused(status: int, said: str) -> Misuse | Transient | Denied:
    match status:
        case 401 | 403:
            return Denied(said)
        case 404:
            return Misuse(said)
        case _:
            return Transient(said)


def _tree(raw: bytes) -> dict[str, Any]:
    try:
        tree = json.loads(raw)
    except (ValueError, RecursionError):
        return {}
    return tree if isinstance(tree, dict) else {}


def _sentence(told: Mapping[str, Any]) -> str:
    """What an error answer says, in any of the usual shapes.

    >>> _sentence({"error": {"message": "No."}}), _sentence({"detail": "No."}), _sentence({})
    ('No.', 'No.', 'it does not say why.')
    """
    error = told.get("error")
    found = error.get("message") if isinstance(error, dict) else error
    found = found or told.get("message") or told.get("detail")
    return found[:500] if isinstance(found, str) and found else "it does not say why."
