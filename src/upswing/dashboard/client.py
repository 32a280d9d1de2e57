"""How does the page learn anything, and do anything? Over the loop's HTTP API, with the user's own key.

| the loop                        | the page gets                                                        |
|---------------------------------|----------------------------------------------------------------------|
| has no such path                | `NotOffered`: this loop does not have that                           |
| does not know the key           | `Denied`: the session ends                                           |
| wants another scope             | `Forbidden`, with the loop's sentence                                |
| has no such thing               | `NoSuchThing`, with the loop's sentence                              |
| refuses                         | `Misuse`, with the loop's sentence                                   |
| does not answer                 | `Transient`                                                          |
| answers what cannot be read     | `Transient`: another version, most likely                            |

Pages of one key share a client. What one of them asked a moment ago, the next is told again: ten open pages ask the
loop hardly more than one.
"""

from __future__ import annotations

import asyncio
import re
from collections import OrderedDict
from collections.abc import Callable, Mapping
from typing import Any, TypeVar
from urllib.parse import quote, urlencode
from uuid import uuid4

import msgspec

from upswing.contracts.typed import from_json
from upswing.dashboard import answers as api
from upswing.dashboard.core.sessions import KeyHolder
from upswing.errors import Denied, Forbidden, Misuse, Transient
from upswing.infra.http import Reply, exchange
from upswing.infra.tasks import start_task

T = TypeVar("T")
_SECONDS = 30.0
"""For one answer."""
_FRESH_SECONDS = 0.8
"""An answer that young is shown again instead of asking."""
_KEPT = 256
"""Answers at once."""
_OFFERS_SECONDS = 300.0
"""After which the loop is asked again what it offers: it may have been upgraded."""
_LIMIT = 16_000_000
"""Bytes of an answer: a trajectory may have 8 MB."""
_PARAMETER = re.compile(r"\{[^}]*\}")
Query = Mapping[str, str | int | float | None]


class NotOffered(Misuse):
    """The loop has no such endpoint."""


class NoSuchThing(Misuse):
    """The loop knows nothing by this id."""


class LoopOffers:
    """Which endpoints a loop has, by its own OpenAPI document; the same for all keys."""

    def __init__(self, url: str, clock: Callable[[], float]) -> None:
        self._url, self._clock = url, clock
        self._known: frozenset[tuple[str, str]] | None = None
        self._asked = 0.0
        self._lock = asyncio.Lock()

    async def has(self, method: str, template: str) -> bool:
        async with self._lock:
            if self._known is None or self._clock() - self._asked > _OFFERS_SECONDS:
                self._known, self._asked = await self._read(), self._clock()
        return (method, _PARAMETER.sub("{}", template)) in self._known

    async def _read(self) -> frozenset[tuple[str, str]]:
        reply = await exchange("GET", f"{self._url}/openapi.json", seconds=_SECONDS, limit=_LIMIT)
        paths = _decode(reply.body, dict[str, Any]).get("paths", {})
        return frozenset(
            (method.upper(), _PARAMETER.sub("{}", path))
            for path, methods in paths.items()
            for method in methods
        )


class LoopClient:
    """The loop as one key sees it."""

    def __init__(
        self,
        url: str,
        key: str,
        offers: LoopOffers,
        *,
        clock: Callable[[], float],
        is_open: Callable[[], bool] = lambda: True,
    ) -> None:
        """`is_open`: whether the login still holds for which it asks and acts."""
        self.url = url
        self._key, self._offers, self._clock, self._is_open = key, offers, clock, is_open
        self._answers: OrderedDict[str, tuple[float, asyncio.Task[bytes]]] = OrderedDict()

    def while_open(self, is_open: Callable[[], bool]) -> LoopClient:
        """The same, with the same answers, for as long as a login holds; then `Denied`."""
        made = LoopClient(self.url, self._key, self._offers, clock=self._clock, is_open=is_open)
        made._answers = self._answers
        return made

    # --- asking ----------------------------------------------------------------------------------

    async def get(
        self,
        template: str,
        kind: type[T],
        query: Query | None = None,
        /,
        *,
        fresh: bool = False,
        **params: str,
    ) -> T:
        """The answer as `kind`; with `fresh`, never one that somebody got before."""
        self._require_login()
        path = _path(template, params, query)
        now = self._clock()
        known = self._answers.get(path)
        if known is None or fresh or now - known[0] > _FRESH_SECONDS or _failed(known[1]):
            asking = start_task(self._ask("GET", template, path), name=f"GET {template}")
            self._answers[path] = known = (now, asking)
            self._answers.move_to_end(path)
            self._forget_stale(now)
        return _decode(await asyncio.shield(known[1]), kind)

    async def act(
        self, method: str, template: str, kind: type[T], body: Any = None, /, **params: str
    ) -> T:
        """Have something done; whatever was known before is asked for again."""
        self._require_login()
        sent = None if body is None else msgspec.json.encode(body)
        raw = await self._ask(method, template, _path(template, params, None), sent)
        self._answers.clear()
        return _decode(raw or b"{}", kind)

    def _require_login(self) -> None:
        if not self._is_open():
            raise Denied("This login is over: log in again.")

    def _forget_stale(self, now: float) -> None:
        """What nobody is told again is not kept: answers may be large."""
        while self._answers:
            oldest = next(iter(self._answers))
            at, asking = self._answers[oldest]
            if len(self._answers) <= _KEPT and (now - at <= _FRESH_SECONDS or not asking.done()):
                return
            del self._answers[oldest]

    async def offers(self, method: str, template: str) -> bool:
        return await self._offers.has(method, template)

    async def _ask(self, method: str, template: str, path: str, body: bytes | None = None) -> bytes:
        if not await self._offers.has(method, template):
            raise NotOffered(
                "This loop does not have this: it is of another version, or runs without that part."
            )
        reply = await exchange(
            method, self.url + path, body=body, key=self._key, seconds=_SECONDS, limit=_LIMIT
        )
        return _body(reply)

    # --- who am I --------------------------------------------------------------------------------

    async def identify(self) -> KeyHolder:
        """Whose key it is; `Denied` when the loop does not know it."""
        found = await self.get("/v1/whoami", api.ApiWhoami, fresh=True)
        return KeyHolder(found.key_id, found.name, found.scope)

    # --- acting ----------------------------------------------------------------------------------

    async def give_feedback(
        self, trajectory_id: str, holder: KeyHolder, kind: str, **more: Any
    ) -> None:
        """Real feedback, as anybody gives it: the key is its user, so that a later one replaces an earlier."""
        body = {
            "trajectory_id": trajectory_id,
            "user_id": holder.key_id,
            "type": kind,
            "source": "operator",
            "feedback_id": str(uuid4()),
            **{name: value for name, value in more.items() if value is not None},
        }
        await self.act("POST", "/v1/feedback", dict[str, Any], body)

    async def pin(self, trajectory_id: str, turn_id: int | None) -> api.ApiPinned:
        body = {"trajectory_id": trajectory_id, "turn_id": turn_id}
        sent = {name: value for name, value in body.items() if value is not None}
        return await self.act("POST", "/v1/pins", api.ApiPinned, sent)

    async def move_rollout(self, model_id: str, action: str, reason: str) -> api.ApiRolloutAction:
        """`approve`, `pause`, `resume` or `rollback`."""
        template = f"/v1/rollouts/{{model_id}}/{action}"
        return await self.act(
            "POST", template, api.ApiRolloutAction, {"reason": reason}, model_id=model_id
        )


class LoopClients:
    """One client for each key that is logged in."""

    def __init__(self, url: str, *, clock: Callable[[], float]) -> None:
        self.url, self._clock = url, clock
        self._offers = LoopOffers(url, clock)
        self._clients: dict[str, LoopClient] = {}

    def of(self, key: str) -> LoopClient:
        if key not in self._clients:
            self._clients[key] = self.fresh(key)
        return self._clients[key]

    def fresh(self, key: str) -> LoopClient:
        """One that nobody shares: of a key that is not known yet."""
        return LoopClient(self.url, key, self._offers, clock=self._clock)

    def forget(self, key: str) -> None:
        self._clients.pop(key, None)


def _path(template: str, params: Mapping[str, str], query: Query | None) -> str:
    """The path with its parameters and its query, both encoded.

    >>> _path("/v1/models/{model_id}", {"model_id": "a/b?c"}, {"limit": 5, "text": "ä b", "user": None})
    '/v1/models/a%2Fb%3Fc?limit=5&text=%C3%A4+b'
    """
    path = template
    for name, value in params.items():
        path = path.replace(f"{{{name}}}", quote(value, safe=""))
    given = {name: value for name, value in (query or {}).items() if value not in {None, ""}}
    return f"{path}?{urlencode(given)}" if given else path


def _failed(asking: asyncio.Task[bytes]) -> bool:
    return asking.done() and (asking.cancelled() or asking.exception() is not None)


def _body(reply: Reply) -> bytes:
    if 200 <= reply.status < 300:
        return reply.body
    try:
        sentence = str(msgspec.json.decode(reply.body)["detail"])
    except (msgspec.DecodeError, UnicodeDecodeError, KeyError, TypeError):
        sentence = f"The loop answered {reply.status} without a reason."
    match reply.status:
        case 401:
            raise Denied(sentence)
        case 403:
            raise Forbidden(sentence)
        case 404:
            raise NoSuchThing(sentence)
        case 429 | 500 | 502 | 503 | 504:
            raise Transient(sentence)
        case _:
            raise Misuse(sentence)


def _decode(raw: bytes, kind: type[T]) -> T:
    try:
        return from_json(raw, kind)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise Transient(f"The loop's answer cannot be read by this page: {error}.") from None
