"""A model is asked, in one of the shapes: is it taken, whose episode is it, and what is kept of it?

| the request                                  | its episode                         | its model                |
|----------------------------------------------|-------------------------------------|--------------------------|
| any                                          | that which it names or goes on with | that of the episode      |
| `x-record: off`, and names an episode        | that one; nothing of it is kept     | that of the episode      |
| `x-record: off`; a completion, embeddings    | nobody's                            | the baseline             |
| a probe                                      | nobody's                            | the baseline             |
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from uuid import UUID

from upswing.anthropic.errors import ThreadUnsupported
from upswing.config import ExploreConfig
from upswing.contracts.ids import gateway_id
from upswing.dataset.evaluation import is_practice
from upswing.dataset.task import short_id
from upswing.errors import Denied, Misuse, Reason, Rejected
from upswing.gateway.core.answer_references import AnswerReferences
from upswing.gateway.core.chat_request import (
    ChatRequest,
    client_metadata,
    metadata_text,
    read_chat_request,
    read_other_request,
)
from upswing.gateway.core.episode_table import OpenEpisode, group_key_of
from upswing.gateway.core.episodes import (
    EpisodeIdentity,
    IdentitySource,
    header_text,
    identify_episode,
    pin_for,
    transcript_hashes,
    transcript_pin,
    user_id_of,
)
from upswing.gateway.core.error_fields import client_sentence, field_in
from upswing.gateway.core.exploration import exploration_temperature
from upswing.gateway.core.keys import ClientKeys
from upswing.gateway.core.probe import check_probe
from upswing.gateway.core.recording import is_recorded
from upswing.gateway.core.routing import RouteTarget, RoutingTable
from upswing.gateway.core.shapes import (
    SHAPE_BY_PATH,
    ClientShape,
    ShapedRequest,
    can_answer,
    read_shaped_request,
    shaped_error,
)
from upswing.gateway.proxy.exchange import ChatExchange
from upswing.gateway.proxy.exchange_context import ExchangeContext
from upswing.infra.http1.connection import Connection as Client
from upswing.infra.http1.request import AdmittedRequest, HttpRequest, Refusal
from upswing.infra.http1.wire import STATUS_BY_REASON
from upswing.openai.errors import ErrorType
from upswing.principals import Holder

_RETRY_SOON = b"retry-after: 1\r\n"
_WWW_AUTHENTICATE = b"www-authenticate: Bearer\r\n"
_PROBE = b"x-upswing-probe"
"""Marks a question that only asks whether an answer comes (`upswing.gateway.core.probe`): nobody's episode."""


def shape_of(request: HttpRequest) -> ClientShape | None:
    """The shape in which a model is asked; None: this request is for somebody else."""
    if request.method != b"POST":
        return None
    return SHAPE_BY_PATH.get(request.path) or SHAPE_BY_PATH.get(request.path.partition(b"?")[0])


@dataclass(frozen=True, slots=True)
class _Assignment:
    """Who answers a request, and in whose episode."""

    shaped: ShapedRequest
    chat: ChatRequest
    episode: OpenEpisode
    target: RouteTarget
    recorded: bool = True


class ChatHandler:
    """The hot path."""

    def __init__(
        self,
        context: ExchangeContext,
        keys: ClientKeys,
        *,
        new_id: Callable[[], UUID],
        explore: ExploreConfig | None = None,
    ) -> None:
        self._context, self._keys, self._new_id, self._explore = context, keys, new_id, explore
        self._limits, self._traffic = context.limits, context.traffic
        self._recorder, self._counters = context.recorder, context.counters

    def admit(self, request: HttpRequest) -> AdmittedRequest | Refusal:
        """Whoever has no key is answered before the body is read."""
        owner = self._keys.owner_of_request(request.headers)
        if owner is not None:
            return AdmittedRequest(self._limits.body_bytes, keyed=True, call=owner, owner=owner)
        self._counters.count_refusal("key")
        message = "Send a key of this gateway: `Authorization: Bearer …` or `x-api-key: …`."
        body = _error_for(request, message, "authentication_error", "key")
        return Refusal(401, body, _WWW_AUTHENTICATE)

    def handle(self, client: Client, request: HttpRequest) -> ChatExchange | None:
        """Begin to answer; None when it is answered already, with a refusal."""
        table = self._traffic.table
        if table is None:
            message = self._traffic.unavailable_reason
            self._refuse(client, request, "no_plan", 503, message, "server_error", _RETRY_SOON)
        elif len(self._context.in_flight) >= self._limits.requests:
            message = "Too many requests are under way; try again later."
            self._refuse(client, request, "requests", 429, message, "rate_limit_error", _RETRY_SOON)
        else:
            return self._start_exchange(client, request, request.admitted.call, table)
        return None

    def _start_exchange(
        self, client: Client, request: HttpRequest, owner: str, table: RoutingTable
    ) -> ChatExchange | None:
        try:
            assigned = self._assign(owner, request, table)
        except Denied as error:
            self._refuse(client, request, "probe", 403, str(error), "permission_error")
            return None
        except Rejected as error:
            status = STATUS_BY_REASON.get(error.reason, 400)
            code = error.error_code if isinstance(error, ThreadUnsupported) else error.reason
            self._refuse(client, request, code, status, error.detail, "invalid_request_error")
            return None
        except Misuse as error:
            self._refuse(client, request, "unknown_model", 404, str(error), "not_found_error")
            return None
        episode = assigned.episode
        episode.in_flight += 1
        episode.inferences += 1
        exchange = ChatExchange(
            self._context,
            client,
            assigned.shaped,
            assigned.chat,
            episode,
            assigned.target,
            started_at=request.at,
            keep_alive=request.keep_alive,
            chunked=request.chunked,
            recorded=assigned.recorded,
            traceparent=request.headers.get(b"traceparent", b""),
        )
        self._context.in_flight.add(exchange)
        exchange.send_upstream()
        return exchange

    def _assign(self, owner: str, request: HttpRequest, table: RoutingTable) -> _Assignment:
        """Read the request, find its episode, and choose its model; or `Rejected`, `Denied`, `Misuse`."""
        shaped = self._read(owner, request)
        chat = _read_chat_form(shaped)
        identity = identify_episode(request.headers, chat)
        record = is_recorded(
            request.headers.get(b"x-record"),
            bytes(chat.metadata.record) if chat.metadata is not None else b"",
        )
        if _PROBE in request.headers:
            check_probe(owner, request.headers[_PROBE], shaped.chat_body)
            assigned = self._unrecorded_episode("probe", owner, identity, chat, request, table)
        elif record and shaped.shape.conversational:
            episode = self._find_or_open_episode(owner, identity, chat, request)
            requested_model = _requested_model(table, chat, request)
            target = self._traffic.assign(table, episode, requested_model)
            assigned = episode, target
        elif identity.source is IdentitySource.GIVEN and shaped.shape is not ClientShape.EMBEDDINGS:
            assigned = self._unrecorded_in_episode(owner, identity, chat, request, table)
            record = False
        else:
            assigned = self._unrecorded_episode("unrecorded", owner, identity, chat, request, table)
            record = False
        _check_answerable(shaped, assigned[1])
        recorded = record and _PROBE not in request.headers
        return _Assignment(shaped, chat, *assigned, recorded=recorded)

    def _read(self, owner: str, request: HttpRequest) -> ShapedRequest:
        references = AnswerReferences(partial(self._recorder.open_episode_of, owner))
        shape = shape_of(request) or ClientShape.CHAT
        return read_shaped_request(shape, request.body, request.headers, references.text)

    def _refuse(
        self,
        client: Client,
        request: HttpRequest,
        reason: str,
        status: int,
        message: str,
        error_type: ErrorType,
        extra_headers: bytes = b"",
    ) -> None:
        self._counters.count_refusal(reason)
        body = _error_for(request, message, error_type, reason)
        client.answer(request, status, body, extra_headers=extra_headers)

    # --- whose episode ---------------------------------------------------------------------------

    def _find_or_open_episode(
        self, owner: str, identity: EpisodeIdentity, chat: ChatRequest, request: HttpRequest
    ) -> OpenEpisode:
        recorder, episodes = self._recorder, self._recorder.episode_table
        messages = b""
        if identity.source is not IdentitySource.GIVEN:
            recorder.process_inbox()
            messages = bytes(chat.messages)
        episode = episodes.find(owner, identity, messages)
        if episode is None:
            group_key = group_key_of(owner, identity)
            for other in episodes.superseded(group_key, identity.source):
                recorder.end_episode(other, "next")
            episode = _new_episode(
                self._new_trajectory_id(), owner, identity, group_key, chat, request
            )
            episode.identity = identity
            episode.pin, episode.earlier_pins = _conversation_pins(owner, identity, messages)
            episode.temperature = exploration_temperature(episode.trajectory_id, self._explore)
            episodes.open(episode)
        else:
            episodes.touch(episode, request.at)
        return episode

    def _new_trajectory_id(self) -> str:
        """The client hears it before anything is stored, so nobody else may give such ids."""
        return str(gateway_id(self._new_id()))

    def _unrecorded_episode(
        self,
        kind: str,
        owner: str,
        identity: EpisodeIdentity,
        chat: ChatRequest,
        request: HttpRequest,
        table: RoutingTable,
    ) -> tuple[OpenEpisode, RouteTarget]:
        """In no table, so that it is never recorded; the baseline answers, and nothing beyond a cap."""
        self._counters.count_unrecorded(kind)
        episode = _new_episode(self._new_trajectory_id(), owner, identity, "", chat, request)
        return episode, table.base or table.baseline

    def _unrecorded_in_episode(
        self,
        owner: str,
        identity: EpisodeIdentity,
        chat: ChatRequest,
        request: HttpRequest,
        table: RoutingTable,
    ) -> tuple[OpenEpisode, RouteTarget]:
        """The model that the named episode has, or draws now. One that begins so is nobody's evidence.

        Its client has seen who answers before anything of it counts, and could choose what does.
        """
        self._counters.count_unrecorded("unrecorded")
        episode = self._find_or_open_episode(owner, identity, chat, request)
        episode.unrecorded += 1
        begins = not episode.first_model_id
        target = self._traffic.assign(table, episode, _requested_model(table, chat, request))
        if begins:
            episode.rollout = episode.step = ""
        return episode, target


def _error_for(request: HttpRequest, message: str, error_type: ErrorType, code: str) -> bytes:
    param = field_in(message) if error_type == "invalid_request_error" else None
    return shaped_error(shape_of(request) or ClientShape.CHAT, message, error_type, code, param)


def _read_chat_form(shaped: ShapedRequest) -> ChatRequest:
    """The request's chat form, or `Rejected` in the client's own words."""
    if not shaped.shape.conversational:
        return read_other_request(shaped.chat_body)
    try:
        return read_chat_request(shaped.chat_body)
    except Rejected as error:
        raise Rejected(error.reason, client_sentence(shaped.shape, error.detail)) from None


def _check_answerable(shaped: ShapedRequest, target: RouteTarget) -> None:
    """`Rejected` where the model's server does not speak the shape that this needs."""
    if not can_answer(target.model, shaped):
        name = (
            "OpenAI's Responses"
            if shaped.shape is ClientShape.RESPONSES
            else "Anthropic's Messages"
        )
        message = f"{shaped.native_only} needs a server that speaks {name} itself"
        detail = f"{message[0].upper()}{message[1:]}, and this model's does not: leave it out."
        raise Rejected(Reason.SCHEMA, detail)


def _conversation_pins(
    owner: str, identity: EpisodeIdentity, messages: bytes
) -> tuple[str, tuple[str, ...]]:
    """What gateways know this conversation by, and may have known it by before: names of fixed form."""
    if identity.source is IdentitySource.GIVEN:
        own = pin_for(f"{owner}\0{identity.name}")
        return own, (own,)
    now, answer_hashes = transcript_hashes(messages)
    return (
        transcript_pin(owner, identity, now),
        tuple(transcript_pin(owner, identity, each) for each in reversed(answer_hashes)),
    )


def _requested_model(table: RoutingTable, chat: ChatRequest, request: HttpRequest) -> str:
    """The model that the client insists on: by header, or a candidate or a withdrawn one by its id.

    A client that names the baseline means whoever stands in its place.
    """
    if header := request.headers.get(b"x-model-id"):
        return header_text(header)
    known = chat.model in table.withdrawn or any(
        chat.model == candidate.model.model_id for candidate in table.candidates
    )
    return chat.model if known else ""


def _default_agent_id(owner: str) -> str:
    """What an agent is called that does not say."""
    return owner.name if isinstance(owner, Holder) else owner or "agent"


def _new_episode(
    trajectory_id: str,
    owner: str,
    identity: EpisodeIdentity,
    group_key: str,
    chat: ChatRequest,
    request: HttpRequest,
) -> OpenEpisode:
    """A new episode; what the client says of itself is taken at its first request."""
    metadata, headers = client_metadata(chat), request.headers

    def client_value(header: bytes, key: str) -> str | None:
        if header in headers:
            return short_id(header_text(headers[header]))
        value = metadata_text(chat, key, allow_numbers=True)
        return short_id(value) if value else None

    episode_id = identity.name if identity.source is IdentitySource.GIVEN else trajectory_id
    session = (
        identity.name
        if identity.source is IdentitySource.SESSION
        else client_value(b"x-session-id", "session_id")
    )
    return OpenEpisode(
        owner,
        identity.source,
        group_key,
        episode_id,
        trajectory_id,
        request.at,
        request.at,
        agent_id=client_value(b"x-agent-id", "agent_id") or _default_agent_id(owner),
        session_id=session or episode_id,
        user_id=user_id_of(headers, chat),
        task_id=client_value(b"x-task-id", "task_id"),
        metadata=metadata,
        practice=is_practice({"purpose": metadata_text(chat, "purpose")}),
    )
