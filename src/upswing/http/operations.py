"""The operator's door: keys, opt-outs, erasure, dead letters, and how it all stands."""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Callable
from datetime import datetime
from typing import Any, Protocol

import msgspec
from prometheus_client import CollectorRegistry
from prometheus_client.exposition import CONTENT_TYPE_LATEST, generate_latest

from upswing import __version__
from upswing.adapters.sql.keys import OPERATOR_ID, ApiKey, Keys
from upswing.adapters.sql.users import Users
from upswing.collect.service import STAGE as COLLECT
from upswing.collect.service import Intake
from upswing.contracts import DeadLetter
from upswing.contracts.topics import FEEDBACK, FEEDBACKS, GATEWAY_FEEDBACK
from upswing.contracts.typed import from_json
from upswing.errors import Misuse, Reason, Rejected
from upswing.http.app import JSON, Problem, Request, Response, Route, answer
from upswing.http.doors import Accepted, reply
from upswing.ports import Buried, StoredTrajectory, Taken
from upswing.redact import Redactor
from upswing.redact.identity import identity
from upswing.reward.service import STAGE as REWARD
from upswing.senders import CLIENT, Sender

OPERATOR = frozenset({"operator"})
READER = frozenset({"reader", "operator"})
GATEWAY = "gateway"
"""The scope of gateways: their clients' keys, and the models and shares that they show to admins."""
GATEWAY_PREFIX = "gwl_"
SCOPES = ("agent", "operator", "reader", GATEWAY)
ASKING = frozenset({"agent", "operator"})
"""Whose keys open a gateway."""
_ID = {"type": "string", "minLength": 1, "maxLength": 200, "pattern": "^[^/]+$"}
_OWN_NAMES = (OPERATOR_ID, CLIENT)
"""What gateways call the installation's own keys."""
_NOT_FOUND = {404: ("There is no such thing.", Problem)}


class Health(msgspec.Struct, frozen=True):
    """Is it alive, and what does it reach?"""

    status: str
    """`ok`, or `degraded` while the bus is away (the HTTP door goes on) or nothing can be stored."""
    version: str
    bus: bool
    trouble: str | None = None
    """Why nothing can be stored, or soon cannot: the disk is full, say."""


class NewKey(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The wish for a key."""

    name: str
    scope: str
    trusted: bool = False
    """To speak for many users."""


class MadeKey(msgspec.Struct, frozen=True):
    """A new key. It is shown once; only its hash is kept."""

    key_id: str
    name: str
    scope: str
    key: str


class KeyInfo(msgspec.Struct, frozen=True):
    """A key, without the key."""

    key_id: str
    name: str
    scope: str
    created: datetime
    revoked: datetime | None
    trusted: bool = False
    """To speak for many users."""


class KeyList(msgspec.Struct, frozen=True):
    keys: list[KeyInfo]


class KeyHash(msgspec.Struct, frozen=True):
    """A key that may ask models, as a gateway knows it."""

    name: str
    """Of no other that works."""
    sha256: str
    """In hexadecimal digits."""
    key_id: str = ""
    trusted: bool = False
    """To speak for many users."""


class KeyHashes(msgspec.Struct, frozen=True):
    keys: list[KeyHash]


class OptOut(msgspec.Struct, frozen=True):
    """Whether a user is recorded."""

    user: str
    opted_out: bool


class Erasure(msgspec.Struct, frozen=True):
    """What was erased, and what waits because a part is away just now."""

    user: str
    trajectories: int
    feedback: int
    dead_letters: int
    pending_stream_messages: int
    pending_archive_copies: int
    models_that_saw: list[str]
    """Models that were trained on some of it: they are not changed by this."""
    jobs_that_see: list[str]
    """Training jobs that are not over and have some of it in their data."""


class DeadInfo(msgspec.Struct, frozen=True):
    stage: str
    replayed: datetime | None
    letter: DeadLetter


class DeadList(msgspec.Struct, frozen=True):
    dead: list[DeadInfo]


class Store(Protocol):
    async def counts(self) -> dict[str, int]: ...

    async def trajectory(self, trajectory_id: str) -> StoredTrajectory | None: ...

    async def dead(self, *, reason: str | None = None, limit: int = 100) -> list[Buried]: ...

    async def dead_letter(self, dead_id: str) -> Buried | None: ...

    async def mark_replayed(self, dead_id: str, now: datetime) -> None: ...


_REPLAYED = Sender("replay", many=False)
"""Of what nobody knows whose key it came with."""


class Operations:
    """The handlers of the operator's endpoints."""

    def __init__(
        self,
        store: Store,
        keys: Keys,
        users: Users,
        intake: Intake,
        redactor: Redactor,
        registry: CollectorRegistry,
        *,
        sweep: Callable[[], Awaitable[tuple[int, int]]],
        bus_connected: Callable[[], bool],
        clock: Callable[[], datetime],
        new_key: Callable[[], tuple[str, str]],
        score_again: Callable[[str], Awaitable[bool]] | None = None,
        trouble: Callable[[], str | None] = lambda: None,
    ) -> None:
        self._trouble = trouble
        self._score_again = score_again
        self._store = store
        self._keys = keys
        self._users = users
        self._intake = intake
        self._redactor = redactor
        self._registry = registry
        self._sweep = sweep
        self._bus_connected = bus_connected
        self._clock = clock
        self._new_key = new_key

    def routes(self) -> list[Route]:
        user, dead, key = {"user": _ID}, {"dead_id": _ID}, {"key_id": _ID}
        limit: dict[str, dict[str, Any]] = {
            "limit": {"type": "integer", "minimum": 1, "maximum": 1000},
            "reason": {"type": "string"},
        }
        bad = {422: ("The request is not what it should be.", Problem), 400: ("Not JSON.", Problem)}
        return [
            Route("GET", "/health", "Is it alive?", self.health, frozenset(), answers={200: ("It is.", Health)}),
            Route("GET", "/metrics", "Prometheus metrics.", self.metrics, frozenset(),
                  answers={200: ("The series.", CONTENT_TYPE_LATEST)}),
            Route("GET", "/v1/status", "How many of everything.", self.status, READER,
                  answers={200: ("Counts.", {"type": "object", "additionalProperties": {"type": "integer"}})}),
            Route("GET", "/v1/trajectories/{trajectory_id}", "A stored trajectory.", self.trajectory, READER,
                  params={"trajectory_id": _ID}, answers={200: ("It.", {"type": "object"}), **_NOT_FOUND}),
            Route("GET", "/v1/dead", "The newest dead letters.", self.dead, READER, query=limit,
                  answers={200: ("They.", DeadList), 422: bad[422]}),
            Route("GET", "/v1/dead/{dead_id}", "A dead letter.", self.dead_letter, READER, params=dead,
                  answers={200: ("It.", DeadInfo), **_NOT_FOUND}),
            Route("POST", "/v1/dead/{dead_id}/replay", "Try a dead letter again.", self.replay, OPERATOR, params=dead,
                  answers={202: ("It was taken this time.", Accepted), **_NOT_FOUND,
                           409: ("It conflicts.", Problem), 413: ("Too large.", Problem), **bad}),
            Route("GET", "/v1/keys", "All keys.", self.keys, OPERATOR, answers={200: ("They.", KeyList)}),
            Route("GET", "/v1/keys/hashes", "What gateways know their clients by.", self.key_hashes, OPERATOR | {GATEWAY},
                  answers={200: ("Keys that work and may ask models.", KeyHashes)}),
            Route("POST", "/v1/keys", "Make a key.", self.add_key, OPERATOR,
                  takes={JSON: _NEW_KEY}, answers={201: ("Shown once.", MadeKey), **bad}),
            Route("DELETE", "/v1/keys/{key_id}", "Revoke a key.", self.revoke, OPERATOR, params=key,
                  answers={204: ("It no longer works.", None), **_NOT_FOUND}),
            Route("PUT", "/v1/optouts/{user}", "Stop recording a user.", self.opt_out, OPERATOR, params=user,
                  answers={200: ("Done.", OptOut)}),
            Route("DELETE", "/v1/optouts/{user}", "Record a user again.", self.opt_in, OPERATOR, params=user,
                  answers={200: ("Done.", OptOut)}),
            Route("DELETE", "/v1/users/{user}/data", "Erase everything of a user.", self.erase, OPERATOR, params=user,
                  answers={200: ("Erased; what is pending follows by itself.", Erasure)}),
        ]  # fmt: skip

    async def health(self, _: Request) -> Response:
        bus, trouble = self._bus_connected(), self._trouble()
        status = "ok" if bus and trouble is None else "degraded"
        return answer(200, Health(status, __version__, bus, trouble))

    async def metrics(self, _: Request) -> Response:
        return Response(200, generate_latest(self._registry), CONTENT_TYPE_LATEST)

    async def status(self, _: Request) -> Response:
        return answer(200, await self._store.counts())

    async def trajectory(self, request: Request) -> Response:
        found = await self._store.trajectory(request.params["trajectory_id"])
        if found is None:
            raise Misuse("No trajectory with this id is stored.")
        return Response(200, found.admitted.body)

    async def dead(self, request: Request) -> Response:
        text = request.query.get("limit", "100")
        if not text.isdecimal() or len(text) > 4 or not 1 <= int(text) <= 1000:
            raise Rejected(Reason.SCHEMA, "`limit` is a number from 1 to 1000.")
        found = await self._store.dead(reason=request.query.get("reason"), limit=int(text))
        return answer(200, DeadList([dead_info(buried) for buried in found]))

    async def dead_letter(self, request: Request) -> Response:
        return answer(200, dead_info(await self._buried(request)))

    async def replay(self, request: Request) -> Response:
        """Admit the kept payload again: after an upgrade or an opt-in it may pass."""
        buried = await self._buried(request)
        table, _, key = buried.letter.subject.partition("/")
        if (buried.stage, table) == (REWARD, "trajectories") and self._score_again:
            if not await self._score_again(key):
                raise Misuse("The trajectory that it is about is not stored any more.")
            await self._store.mark_replayed(str(buried.letter.dead_id), self._clock())
            return answer(202, Accepted(Taken.STORED.value, key, trajectory_id=key))
        payload = buried.letter.payload
        if payload is msgspec.UNSET or not payload:
            raise Rejected(
                Reason.SCHEMA, "This dead letter has no payload that could be tried again."
            )
        if buried.stage != COLLECT:
            raise Rejected(Reason.SCHEMA, _elsewhere(buried))
        raw, sender = payload.encode(), buried.sender if buried.sender.key_id else _REPLAYED
        if (
            buried.letter.subject in {FEEDBACK, GATEWAY_FEEDBACK, "/v1/feedback"}
            or table == FEEDBACKS
        ):
            outcome = await self._intake.feedback(
                raw, door="replay", principal=sender.key_id, many=sender.many
            )
        else:
            outcome = await self._intake.trajectory(raw, door="replay", sender=sender)
        if outcome.taken:
            await self._store.mark_replayed(str(buried.letter.dead_id), self._clock())
        return reply(outcome)

    async def _buried(self, request: Request) -> Buried:
        found = await self._store.dead_letter(request.params["dead_id"])
        if found is None:
            raise Misuse("There is no dead letter with this id; `upswing dead list` shows them.")
        return found

    async def keys(self, _: Request) -> Response:
        return answer(200, KeyList([key_info(key) for key in self._keys.list()]))

    async def key_hashes(self, _: Request) -> Response:
        await self._keys.load()
        asking = {each: key for each, key in self._keys.working().items() if key.scope in ASKING}
        names = Counter(key.name for key in asking.values()) + Counter(_OWN_NAMES)
        found = [
            KeyHash(_told_name(key, names), hashed.hex(), key.key_id, _trusted(key))
            for hashed, key in asking.items()
        ]
        return answer(200, KeyHashes(found))

    async def add_key(self, request: Request) -> Response:
        try:
            wish = from_json(request.body, NewKey)
        except msgspec.ValidationError as error:
            raise Rejected(Reason.SCHEMA, f"{error}.") from None
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise Rejected(Reason.MALFORMED, f"{error}.") from None
        if wish.scope not in SCOPES or not 1 <= len(wish.name) <= 100:
            raise Rejected(
                Reason.SCHEMA,
                f"`scope` is one of {', '.join(SCOPES)}, `name` has 1 to 100 characters.",
            )
        key_id, key = self._new_key()
        if wish.scope == GATEWAY:  # a gateway does not take its own key for a client's
            key = GATEWAY_PREFIX + key.removeprefix("up_")
        name = self._redactor.text(wish.name).value
        await self._keys.add(key_id, name, wish.scope, key, self._clock(), many=wish.trusted)
        return answer(201, MadeKey(key_id, name, wish.scope, key))

    async def revoke(self, request: Request) -> Response:
        if not await self._keys.revoke(request.params["key_id"], self._clock()):
            raise Misuse("There is no working key with this id; `upswing keys list` shows them.")
        return Response(204, b"")

    async def opt_out(self, request: Request) -> Response:
        user = self._user(request)
        await self._users.opt_out(user, self._clock())
        return answer(200, OptOut(user, opted_out=True))

    async def opt_in(self, request: Request) -> Response:
        user = self._user(request)
        await self._users.opt_in(user)
        return answer(200, OptOut(user, opted_out=False))

    async def erase(self, request: Request) -> Response:
        user = self._user(request)
        gone = await self._users.erase(user, self._clock())
        messages, copies = await self._sweep()
        return answer(
            200,
            Erasure(
                user,
                gone.trajectories,
                gone.feedback,
                gone.dead_letters,
                messages,
                copies,
                list(gone.models_that_saw),
                list(gone.jobs_that_see),
            ),
        )

    def _user(self, request: Request) -> str:
        """The id under which we know the user: an e-mail address, say, is known by its pseudonym."""
        return identity(self._redactor, "user", request.params["user"])


_NEW_KEY: dict[str, Any] = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "minLength": 1, "maxLength": 100},
        "scope": {"enum": list(SCOPES)},
        "trusted": {"type": "boolean"},
    },
    "required": ["name", "scope"],
    "additionalProperties": False,
}


def key_info(key: ApiKey) -> KeyInfo:
    """A key as it is shown."""
    return KeyInfo(key.key_id, key.name, key.scope, key.created, key.revoked, _trusted(key))


def _trusted(key: ApiKey) -> bool:
    return key.many or key.scope == "operator"


def _told_name(key: ApiKey, names: Counter[str]) -> str:
    """By which gateways know it: two that are called alike have nothing in common."""
    if key.key_id == OPERATOR_ID:
        return OPERATOR_ID
    return key.name if names[key.name] == 1 else f"{key.name} ({key.key_id})"


def _elsewhere(buried: Buried) -> str:
    """Where a letter of another stage would have to be tried again."""
    if "/" in buried.letter.subject:
        return f"It is the row {buried.letter.subject}, which {buried.stage} cannot read: mend it there."
    return f"It is {buried.stage}'s: publish it again on {buried.letter.subject}."


def dead_info(buried: Buried) -> DeadInfo:
    """A dead letter as it is shown."""
    return DeadInfo(buried.stage, buried.replayed, buried.letter)
