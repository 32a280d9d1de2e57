"""How is the loop asked? JSON both ways, and a refusal is the loop's own sentence.

| answer                   | becomes                                                        |
|--------------------------|----------------------------------------------------------------|
| 2xx                      | what it says                                                   |
| 401, 403                 | `Denied`                                                       |
| 404 for a path           | `Misuse`: this loop is older than the question                 |
| any other 4xx            | `Misuse` with the loop's sentence                              |
| 5xx, no answer           | `Transient`                                                    |
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any
from urllib.parse import quote, urlencode

from upswing.errors import Denied, Misuse, Transient
from upswing.infra.http import Reply, Unreachable, exchange

SECONDS = 30.0
"""For one answer; training plans read the whole store."""
_MOST = 16_000_000
_NO_PATH = "There is no such path"


def path_of(template: str, **values: str) -> str:
    """A path with values in it, whatever they hold.

    >>> path_of("/v1/jobs/{job}", job="a/b")
    '/v1/jobs/a%2Fb'
    """
    return template.format(**{name: quote(value, safe="") for name, value in values.items()})


class LoopPort:
    """The loop's port, with one key."""

    def __init__(
        self,
        url: str,
        key: str | None,
        *,
        seconds: float = SECONDS,
        assistant_key: str | None = None,
    ) -> None:
        """`assistant_key`: whose request it is, where a person confirmed it with another key; the audit names both."""
        self.url, self._key, self._seconds = url.rstrip("/"), key, seconds
        self._headers = {"X-Assistant-Key": assistant_key} if assistant_key else {}

    async def get(self, path: str, **query: Any) -> Any:
        """The answer to a question; parameters that are None are left out."""
        given = {name: _as_query(value) for name, value in query.items() if value is not None}
        return await self.ask("GET", f"{path}?{urlencode(given)}" if given else path)

    async def post(self, path: str, body: Any = None) -> Any:
        return await self.ask("POST", path, {} if body is None else body)

    async def ask(self, method: str, path: str, body: Any = None) -> Any:
        sent = None if body is None else json.dumps(body).encode()
        try:
            reply = await exchange(
                method,
                self.url + path,
                body=sent,
                key=self._key,
                headers=self._headers,
                seconds=self._seconds,
                limit=_MOST,
            )
        except Unreachable as error:
            raise Transient(f"The loop does not answer: {error}") from None
        return _read_reply(reply, path)


def _as_query(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _read_reply(reply: Reply, path: str) -> Any:
    tree = _parsed(reply.body)
    if 200 <= reply.status < 300:
        return tree
    told = tree.get("detail") if isinstance(tree, Mapping) else None
    sentence = str(told) if told else f"The loop answered {reply.status}."
    if reply.status in (401, 403):
        raise Denied(sentence)
    if reply.status == 404 and _NO_PATH in sentence:
        raise Misuse(
            f"This loop does not answer {path.partition('?')[0]}: it is of an older version, or runs without a gateway."
        )
    if reply.status >= 500:
        raise Transient(sentence)
    raise Misuse(sentence)


def _parsed(body: bytes) -> Any:
    try:
        return json.loads(body) if body else None
    except (ValueError, RecursionError):
        return body.decode(errors="replace")
