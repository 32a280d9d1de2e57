"""How does a gateway ask something of the loop, and what does each answer mean?

| the loop answers                       | becomes                                                 |
|----------------------------------------|---------------------------------------------------------|
| 2xx with an object                     | that                                                    |
| 2xx with something else                | `Transient`: it is not the loop that answers there      |
| 404                                    | `Misuse`: the model is not known                        |
| 400, 409, 413, 422, any other 4xx      | `Rejected`, with the loop's own reason and message      |
| 403 for the feedback itself            | `Rejected`, as above                                    |
| 401, 403                               | `Transient`: the gateway's key has to be mended         |
| 408, 425, 429, 3xx, 5xx, nothing, late | `Transient`                                             |

A change is sent once: a caller that gets no reply reads the traffic, and asks again.
"""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Mapping, Sequence
from typing import Annotated, Any
from urllib.parse import quote, urlsplit

import msgspec
from msgspec import Meta

from upswing import __version__
from upswing.contracts.typed import from_tree
from upswing.errors import Misuse, Reason, Rejected, Transient, UpswingError
from upswing.infra.http import Unreachable, exchange
from upswing.principals import Holder

log = logging.getLogger(__name__)
SECONDS = 10.0
"""For a whole exchange: registering a model reads its manifest, and no weights."""
_RETRY_STATUSES = frozenset({408, 425, 429})
_REASONS = {400: Reason.MALFORMED, 409: Reason.CONFLICT, 413: Reason.TOO_LARGE}
Json = Mapping[str, Any]


class _Key(msgspec.Struct):
    name: Annotated[str, Meta(min_length=1)]
    sha256: Annotated[str, Meta(pattern="^[0-9a-f]{64}$")]
    key_id: str = ""
    trusted: bool = False


class AdminClient:
    """The controller's admin API and the loop's list of keys, at the loop's HTTP address.

    Each call raises `Rejected` for what can never be done, `Misuse` for a model that is not known, `Transient` for
    what cannot be done now. Writes leave a row in the audit before they return.
    """

    def __init__(self, url: str, key: str, seconds: float = SECONDS) -> None:
        parts = urlsplit(url.rstrip("/"))
        if parts.scheme not in {"http", "https"} or not parts.hostname:
            raise Misuse("AGENTGYM_RL_URL must be an address such as http://127.0.0.1:8100.")
        if not (key.isascii() and key.isprintable()):
            raise Misuse("AGENTGYM_RL_API_KEY holds characters that no HTTP header can carry.")
        self._url, self._key, self._seconds = parts.geturl(), key, seconds

    def __repr__(self) -> str:
        return f"AdminClient(at {urlsplit(self._url).hostname})"

    async def register_model(self, model_id: str, base_model: str, checkpoint_path: str) -> Json:
        payload = {
            "model_id": model_id,
            "base_model": base_model,
            "checkpoint_path": checkpoint_path,
        }
        return await self._request("POST", "/admin/models", payload)

    async def set_traffic(self, model_id: str, percentage: float) -> Json:
        payload = {"model_id": model_id, "traffic_percentage": percentage}
        return await self._request("PUT", "/admin/traffic", payload)

    async def model_metrics(self, model_id: str) -> Json:
        return await self._request("GET", f"/admin/models/{quote(model_id, safe='')}/metrics")

    async def models(self) -> Sequence[Json]:
        models = (await self._request("GET", "/admin/models")).get("models")
        if not isinstance(models, list):
            raise Transient("The loop's list of models cannot be read.")
        return models

    async def check_feedback(self, feedback: bytes) -> None:
        """`Rejected` when this feedback would not be accepted."""
        await self._request("POST", "/v1/feedback/check", msgspec.json.decode(feedback))

    async def fetch_keys(self) -> Mapping[bytes, str]:
        reply = (await self._request("GET", "/v1/keys/hashes")).get("keys")
        try:
            found = from_tree(reply, list[_Key])
        except msgspec.ValidationError:
            raise Transient("The loop's list of keys cannot be read.") from None
        return {
            bytes.fromhex(key.sha256): Holder.of(key.name, key.key_id, many=key.trusted)
            for key in found
        }

    async def _request(self, method: str, path: str, payload: Json | None = None) -> Json:
        try:
            reply = await exchange(
                method,
                self._url + path,
                body=None if payload is None else msgspec.json.encode(payload),
                key=self._key,
                headers={"User-Agent": f"upswing-gateway/{__version__}"},
                seconds=self._seconds,
            )
        except Unreachable as error:
            if error.late:
                raise Transient(f"The loop did not answer in {self._seconds:g} s.") from None
            raise Transient(f"The loop is not reachable: {error}") from None
        except Rejected:
            raise Transient("The loop's answer is too large.") from None
        if not 200 <= reply.status < 300:
            raise error_from_response(reply.status, reply.body)
        with contextlib.suppress(msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            answer = msgspec.json.decode(reply.body)
            if isinstance(answer, dict):
                return answer
        raise Transient("What answers at the loop's address is not the loop.")


def error_from_response(status: int, body: bytes) -> UpswingError:
    """What an answer that is no success means to whoever asked; the table above.

    >>> error_from_response(404, b'{"error": "not_found", "detail": "No model m."}')
    Misuse('No model m.')
    >>> error_from_response(422, b'{"error": "schema", "detail": "Not so."}').reason
    <Reason.SCHEMA: 'schema'>
    """
    code, message = _error_fields(body)
    if status in {401, 403} and code != Reason.NOT_YOURS:
        log.error(
            "the loop refuses this gateway's key: set AGENTGYM_RL_API_KEY",
            extra={"action": "desk_denied"},
        )
        return Transient("The loop refuses the gateway's key, so nothing can be changed here.")
    if status < 400 or status >= 500 or status in _RETRY_STATUSES:
        return Transient(message or f"The loop answers {status}.")
    if status == 404:
        return Misuse(message or "The loop knows no such model.")
    reason = Reason(code) if code in set(Reason) else _REASONS.get(status, Reason.SCHEMA)
    return Rejected(reason, message or f"The loop answers {status}.")


def _error_fields(body: bytes) -> tuple[str, str]:
    """The code and the message of the loop's error."""
    try:
        reply = msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return "", ""
    if not isinstance(reply, dict):
        return "", ""
    return str(reply.get("error", "")), str(reply.get("detail", ""))[:1000]
