"""A chat completion is asked for: is it taken, whose episode is it, and what is kept of it?"""

from __future__ import annotations

from collections.abc import Callable
from hashlib import sha256
from time import monotonic
from uuid import UUID

from upswing.config import ExploreConfig, FallbackConfig
from upswing.dataset.evaluation import is_practice
from upswing.dataset.task import short_id
from upswing.errors import Denied, Misuse, Rejected
from upswing.gateway.allowance import Allowance
from upswing.gateway.answers import read_answer
from upswing.gateway.asked import Asked, read_asked
from upswing.gateway.book import Episode, Heard, line_of
from upswing.gateway.episodes import Sign, Source, answered, sign_of, spoken, text_of, user_of
from upswing.gateway.exchange_service import Exchange
from upswing.gateway.explore import exploring
from upswing.gateway.faults import BY_REQUEST, Fault, tells_of_the_model
from upswing.gateway.keys import Keys, sender_of
from upswing.gateway.limits import Limits
from upswing.gateway.plan import Model
from upswing.gateway.probe import check_probe
from upswing.gateway.problems import STATUS_OF, Kind, error_body
from upswing.gateway.recorder_service import Recorder
from upswing.gateway.route import Choice, Table
from upswing.gateway.tally import Tally
from upswing.gateway.traffic_service import Traffic
from upswing.gateway.ways_service import Way, Ways
from upswing.http1.connection import Connection as Client
from upswing.http1.request import Admitted, Refusal, Request
from upswing.senders import Holder

_SOON = b"retry-after: 1\r\n"
_KEY = b"www-authenticate: Bearer\r\n"
_PROBE = b"x-upswing-probe"
"""Marks a question that only asks whether an answer comes (`upswing.gateway.probe`): nobody's episode."""


class Chat:
    """The hot path."""

    def __init__(
        self, *, limits: Limits, allowance: Allowance, keys: Keys, traffic: Traffic, ways: Ways,
        recorder: Recorder, tally: Tally, new_id: Callable[[], UUID],
        explore: ExploreConfig | None = None, fallback: FallbackConfig | None = None,
    ) -> None:  # fmt: skip
        self._explore = explore
        self._elsewhere = Choice(_foreign(fallback), candidate=False) if fallback else None
        self.limits, self.allowance = limits, allowance
        self._keys, self._traffic, self._ways = keys, traffic, ways
        self._recorder, self._tally, self._new_id = recorder, tally, new_id
        self.active: set[Exchange] = set()

    def admit(self, request: Request) -> Admitted | Refusal:
        """Whoever has no key is answered before the body is read."""
        owner = self._keys.owner(request.headers.get(b"authorization"))
        if owner is not None:
            return Admitted(self.limits.body_bytes, keyed=True, call=owner, owner=owner)
        self._tally.refuse("key")
        said = "Send a key of this gateway: `Authorization: Bearer …`."
        return Refusal(401, error_body(said, "authentication_error", "key"), _KEY)

    def take(self, client: Client, request: Request) -> Exchange | None:
        """Begin to answer; None when it is answered already, with a refusal."""
        table = self._traffic.table
        if table is None:
            said = self._traffic.trouble
            self._refuse(client, request, "no_plan", 503, said, "server_error", _SOON)
        elif len(self.active) >= self.limits.requests:
            said = "Too many requests are under way; try again later."
            self._refuse(client, request, "requests", 429, said, "rate_limit_error", _SOON)
        else:
            return self._begin(client, request, request.admitted.call, table)
        return None

    def _begin(self, client: Client, request: Request, owner: str, table: Table) -> Exchange | None:
        try:
            asked = read_asked(request.body)
            sign = sign_of(request.headers, asked)
            if _PROBE in request.headers:
                check_probe(owner, request.headers[_PROBE], request.body)
                self._tally.probe()
                episode = self._probe(owner, sign, asked, request)
                choice = table.base or table.baseline  # no answer beyond a cap
            else:
                episode = self._episode(owner, sign, asked, request)
                wished = _wished(table, asked, request)
                choice = self._traffic.seat(table, episode, wished)
        except Denied as error:
            self._refuse(client, request, "probe", 403, str(error), "permission_error")
            return None
        except Rejected as error:
            status = STATUS_OF.get(error.reason, 400)
            self._refuse(
                client, request, error.reason, status, error.detail, "invalid_request_error"
            )
            return None
        except Misuse as error:
            self._refuse(client, request, "unknown_model", 404, str(error), "not_found_error")
            return None
        episode.flights += 1
        episode.inferences += 1
        exchange = Exchange(
            self, client, request.body, asked, episode, choice,
            begun=request.at, keep=request.keep, chunked=request.chunked,
        )  # fmt: skip
        self.active.add(exchange)
        exchange.begin()
        return exchange

    def _refuse(
        self, client: Client, request: Request, word: str, status: int, said: str, kind: Kind,
        extra: bytes = b"",
    ) -> None:  # fmt: skip
        self._tally.refuse(word)
        client.answer(request, status, error_body(said, kind, word), extra=extra)

    # --- whose episode ---------------------------------------------------------------------------

    def _episode(self, owner: str, sign: Sign, asked: Asked, request: Request) -> Episode:
        recorder, book = self._recorder, self._recorder.book
        messages = b""
        if sign.source is not Source.GIVEN:
            recorder.catch_up()
            messages = bytes(asked.messages)
        episode = book.find(owner, sign, messages)
        if episode is None:
            line = line_of(owner, sign)
            for other in book.followed(line, sign.source):
                recorder.end(other, "next")
            episode = _opened(str(self._new_id()), owner, sign, line, asked, request)
            episode.sign = sign
            episode.pin, episode.earlier = _pins(owner, sign, asked)
            episode.temperature = exploring(episode.trajectory_id, self._explore)
            book.open(episode)
        else:
            book.touch(episode, request.at)
        return episode

    def _probe(self, owner: str, sign: Sign, asked: Asked, request: Request) -> Episode:
        """In no book, so that it is never recorded."""
        episode = _opened(str(self._new_id()), owner, sign, "", asked, request)
        episode.probe = True
        return episode

    # --- what an exchange asks of us -------------------------------------------------------------

    @staticmethod
    def now() -> float:
        return monotonic()

    def way(self, model: Model) -> Way:
        return self._ways.to(model)

    def instead_of(self, choice: Choice, switch: str) -> Choice | None:
        """Who answers when this one fails."""
        table = self._traffic.table
        return table.instead_of(choice, switch) if table else None

    def elsewhere(self) -> Choice | None:
        """Who answers while the models' own server is away."""
        return self._elsewhere

    def faulted(self, model: Model, fault: Fault) -> None:
        self._tally.fault(model.model_id, fault.about.word)

    def settled(self, exchange: Exchange, outcome: str) -> None:
        """Count it, and keep what was heard."""
        self.active.discard(exchange)
        episode, chosen = exchange.episode, exchange.chosen.model.model_id
        episode.flights -= 1
        if episode.probe:
            return
        ms = (monotonic() - exchange.begun) * 1000
        evidence = self._is_evidence(exchange)
        if evidence and outcome != "cancelled":
            episode.erred |= exchange.fault is not None
            episode.fared_well |= exchange.fault is None
        self._tally.settled(
            episode.rollout, chosen, outcome, ms, error=exchange.fault is not None,
            fallback=exchange.fell_back, evidence=evidence,
        )  # fmt: skip
        asked = exchange.asked
        if episode.alike and outcome == "answered" and exchange.copied:
            self._tell_apart(exchange)
        if outcome == "answered" and exchange.copied:
            self._recorder.heard(episode, Heard(
                exchange.begun, ms, exchange.body, bytes(asked.messages), exchange.pieces,
                asked.stream is True, exchange.choice.model, exchange.inference_id,
            ))  # fmt: skip
        elif outcome == "answered":
            episode.gap = True
        elif outcome != "refused":
            self._recorder.catch_up()  # what was answered before comes before this
            episode.failed = bytes(asked.messages)
            episode.cancelled = outcome == "cancelled"
            episode.failures += not episode.cancelled

    def _tell_apart(self, exchange: Exchange) -> None:
        """Conversations that open alike are known elsewhere by their first answers."""
        episode, asked = exchange.episode, exchange.asked
        answer = read_answer(list(exchange.pieces), stream=asked.stream is True)
        if answer is not None and episode.sign is not None:
            known = answered(asked.messages, answer.content)
            pins = tuple(_spoken_pin(episode.principal, episode.sign, each) for each in known)
            self._traffic.tell_apart(episode, pins)

    def _is_evidence(self, exchange: Exchange) -> bool:
        episode, chosen = exchange.episode, exchange.chosen.model.model_id
        if (
            episode.switch
            or episode.named
            or episode.withdrawn
            or episode.chosen != chosen
            or not episode.rollout
        ):
            return False
        if is_practice(episode.about):
            return False
        if exchange.fault is None and (episode.fared_well or episode.erred):
            return False  # once: one client would else hide what fails for all others
        if exchange.fault is not None and not _may_accuse(episode, exchange.fault):
            return False
        table = self._traffic.table
        if table is None:  # the base was wanted and is gone since then
            return False
        beside = table.beside(exchange.chosen.model)
        return tells_of_the_model(exchange.fault, beside_baseline=beside)


def _may_accuse(episode: Episode, fault: Fault) -> bool:
    """May an error of this episode count against its model?

    Once: one client would else fail a model as often as it likes to ask. And what a request brings about by
    itself counts, from a key that is not trusted, only as long as its client does not know who answers.
    """
    if episode.erred:
        return False
    blind = episode.inferences <= 1 and not episode.by_user
    return blind or fault not in BY_REQUEST or sender_of(episode.principal).many


def _pins(owner: str, sign: Sign, asked: Asked) -> tuple[str, tuple[str, ...]]:
    """What gateways know this conversation by, and may have known it by before: names of fixed form."""
    if sign.source is Source.GIVEN:
        own = _pin(f"{owner}\0{sign.name}")
        return own, (own,)
    now, beside = spoken(asked.messages)
    return (
        _spoken_pin(owner, sign, now),
        tuple(_spoken_pin(owner, sign, each) for each in reversed(beside)),
    )


def _spoken_pin(owner: str, sign: Sign, told: str) -> str:
    known_by = "" if sign.source is Source.CONVERSATION else sign.name
    return _pin(f"{owner}\0{sign.source}\0{known_by}\0{told}")


def _pin(name: str) -> str:
    return sha256(name.encode()).hexdigest()[:40]


def _foreign(told: FallbackConfig) -> Model:
    """A model that is none of ours: what it says is not taken for the word of one."""
    return Model(f"fallback:{told.model}", told.url, told.model, told.timeout_seconds)


def _wished(table: Table, asked: Asked, request: Request) -> str:
    """The model that the client insists on: by header, or a candidate or a withdrawn one by its id.

    A client that names the baseline means whoever stands in its place.
    """
    if header := request.headers.get(b"x-model-id"):
        return text_of(header)
    known = asked.model in table.withdrawn or any(
        asked.model == candidate.model.model_id for candidate in table.candidates
    )
    return asked.model if known else ""


def _name_of(owner: str) -> str:
    """What an agent is called that does not say."""
    return owner.name if isinstance(owner, Holder) else owner or "agent"


def _opened(
    name: str, owner: str, sign: Sign, line: str, asked: Asked, request: Request
) -> Episode:
    """A new episode; what the client says of itself is taken at its first request."""
    about, headers = asked.metadata or {}, request.headers

    def word(header: bytes, key: str) -> str | None:
        if header in headers:
            return short_id(text_of(headers[header]))
        value = about.get(key)
        if isinstance(value, int) and not isinstance(value, bool):
            value = str(value)
        return short_id(value) if isinstance(value, str) and value else None

    episode_id = sign.name if sign.source is Source.GIVEN else name
    session = sign.name if sign.source is Source.SESSION else word(b"x-session-id", "session_id")
    return Episode(
        owner, sign.source, line, episode_id, name, request.at, request.at,
        agent_id=word(b"x-agent-id", "agent_id") or _name_of(owner),
        session_id=session or episode_id, user_id=user_of(headers, asked),
        task_id=word(b"x-task-id", "task_id"), about=about,
    )  # fmt: skip
