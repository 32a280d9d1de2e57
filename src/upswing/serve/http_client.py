"""One request to a model's server, one answer. No redirect is followed, and a key goes to this address only.

| what comes                          | becomes                                            |
|-------------------------------------|----------------------------------------------------|
| an answer, whatever its status      | that                                               |
| nothing, half an answer, or too late | `Transient`                                       |
| an address that is none             | `Rejected`                                         |
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

import msgspec

from upswing.errors import Misuse, Reason, Rejected, Transient
from upswing.infra.http import exchange


def with_v1(url: str) -> str:
    """An address without a path means `/v1`.

    >>> with_v1("http://127.0.0.1:8000"), with_v1("http://h/openai/v1/")
    ('http://127.0.0.1:8000/v1', 'http://h/openai/v1')
    """
    url = url.rstrip("/")
    return url if urlsplit(url).path else f"{url}/v1"


async def send_request(
    method: str,
    url: str,
    body: Mapping[str, Any] | None,
    key: str | None,
    seconds: float,
    headers: Mapping[str, str] | None = None,
) -> tuple[int, bytes]:
    """The answer's status and body; `Rejected` for an address that a caller gave and that is none."""
    payload = msgspec.json.encode(body) if body is not None else None
    try:
        reply = await exchange(method, url, body=payload, key=key, seconds=seconds, headers=headers)
    except Misuse as error:
        raise Rejected(Reason.SCHEMA, str(error)) from None
    except Rejected as error:
        raise Transient(str(error)) from None
    return reply.status, reply.body
