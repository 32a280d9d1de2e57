"""How does an episode reach the loop without holding an answer up?

    answered ─▶ inbox ─▶ table of open episodes ─▶ ended ─▶ backlog (bounded) ─▶ recorder process ─▶ durable
                                                               ▲                        │
                                                               └───── later, again ─────┘

An answer costs the inbox one entry. The recorder process redacts and publishes; until it says that
an episode is durable, the episode stays in the backlog. One that can never be recorded is refused,
alone, and leaves a dead letter.
"""

from __future__ import annotations

import asyncio
import logging
from collections import OrderedDict, deque
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from hashlib import sha256
from itertools import islice
from typing import Any

import msgspec

from upswing.errors import Reason, Transient
from upswing.gateway.core.dead_letter import RejectedEpisode
from upswing.gateway.core.episode_table import (
    EpisodeTable,
    ExchangeRecord,
    OpenEpisode,
    UnansweredRequest,
)
from upswing.gateway.core.frames import (
    ConversationFrame,
    EpisodeFrame,
    ExchangeFrame,
    RecordOutcome,
    TokenPrice,
    UnansweredFrame,
    encode_frame,
)
from upswing.gateway.core.key_shares import KeyShares
from upswing.gateway.core.keys import sender_of
from upswing.gateway.core.reported_outcome import ReportedOutcome, reported_outcome
from upswing.gateway.limits import GatewayLimits
from upswing.gateway.recorder.client import RecorderClient
from upswing.infra.backoff import Backoff

log = logging.getLogger(__name__)
_BATCH_COUNT, _BATCH_BYTES = 64, 2 * 1024 * 1024
_RETRIES = Backoff(0.2, 5.0)
_INBOX_SIZE = 64
"""Entries that are made at one go: more would be felt by somebody who waits for an answer."""
_MAX_ENDED_AT_ONCE = 100
"""So that answers do not wait for a thousand ends."""
_WORKERS = 2
_MAX_CRASHES = 5
"""Times that the recorder process may die over an episode before the episode is given up."""
_MAX_REMEMBERED = 20_000
"""Ended episodes whose outcome can still be asked for."""
_REMEMBERED_SHARE, _LEAST_REMEMBERED_BYTES = 8, 1024 * 1024
"""They take an eighth of the bytes for recordings, or this much if that is less; the oldest is forgotten first."""
_MAX_DETAIL = 1000
"""Characters of why an episode is not recorded."""
_ENDED_BYTES, _CHARACTER_BYTES = 1024, 4
"""What is remembered of one beside its ids and notes, and what a character takes in memory at most."""
_UNWANTED = "Nothing of it is recorded, as its requests asked (`x-record: off`)."
_NO_ROOM = "There was no room to record this episode."
_INBOX_BYTES = 1024 * 1024
"""Beyond it, what is in the inbox is entered as soon as possible."""


@dataclass(slots=True)
class RecordingCounts:
    """What became of all episodes."""

    recorded: int = 0
    refused: int = 0
    lost: int = 0
    """For want of room, or because the recorder process died of them."""
    empty: int = 0
    """Nothing was answered in them."""


@dataclass(slots=True, eq=False)
class PendingEpisode:
    """An ended episode that is not durable yet."""

    key: str
    """Its principal and episode id."""
    trajectory_id: str
    frame: bytes
    crashes: int = 0
    rejection: RejectedEpisode | None = None
    """It is given up: all that is left to do is a dead letter."""
    waiters: list[asyncio.Future[RecordOutcome]] = field(default_factory=list)

    @property
    def principal(self) -> str:
        return self.key.partition("\0")[0]


class EpisodeRecorder:
    """The table of open episodes, and the backlog of those that wait to be durable."""

    def __init__(
        self,
        recorder_client: RecorderClient | None,
        limits: GatewayLimits,
        *,
        now: Callable[[], float],
        wall_clock: Callable[[], float],
        episode_table: EpisodeTable | None = None,
    ) -> None:
        self._recorder_client, self._limits = recorder_client, limits
        self._now, self._wall_clock = now, wall_clock
        if episode_table is None:  # an empty one is false
            episode_table = EpisodeTable(
                max_episodes=limits.episodes,
                max_bytes=limits.recording_bytes,
                idle_seconds=limits.episode_seconds,
            )
        self.episode_table = episode_table
        self._inbox: list[tuple[OpenEpisode, ExchangeRecord]] = []
        self._inbox_bytes = 0
        self._backlog: deque[PendingEpisode] = deque()
        self._sending = 0
        self._ended: OrderedDict[str, PendingEpisode | RecordOutcome] = OrderedDict()
        """By principal and episode id."""
        self._reported: dict[str, ReportedOutcome] = {}
        """What was reported of them."""
        self._users: dict[str, tuple[str, str | None]] = {}
        """Trajectory → whose it was, of those that ended lately."""
        self._ended_bytes: dict[str, int] = {}
        self._remembered_bytes = 0
        self._max_remembered_bytes = max(
            limits.recording_bytes // _REMEMBERED_SHARE, _LEAST_REMEMBERED_BYTES
        )
        self.backlog_bytes = 0
        self._backlog_of_keys = KeyShares()
        self._wake = asyncio.Event()
        self.counts = RecordingCounts()

    # --- the hot path ----------------------------------------------------------------------------

    def add_exchange(self, episode: OpenEpisode, record: ExchangeRecord) -> None:
        self._inbox.append((episode, record))
        self._inbox_bytes += record.held_bytes
        if len(self._inbox) == _INBOX_SIZE or self._inbox_bytes > _INBOX_BYTES:
            asyncio.get_running_loop().call_soon(self.process_inbox)

    def add_unanswered(self, episode: OpenEpisode, request: UnansweredRequest) -> None:
        """A request got no answer: where its episode never gets one, that is what is recorded."""
        self.episode_table.add_unanswered(episode, request)

    def process_inbox(self) -> None:
        """Enter into the table what was answered since."""
        inbox, self._inbox = self._inbox, []
        self._inbox_bytes = 0
        for episode, record in inbox:
            try:
                self.episode_table.add(episode, record)
            except Exception:  # the next answer has to be entered; this episode has a gap
                episode.has_gap = True
                log.exception("an answer cannot be entered", extra={"action": "unreadable"})

    # --- ends ------------------------------------------------------------------------------------

    def end_due_episodes(self) -> None:
        """End what has to end by itself."""
        self.process_inbox()
        due = self.episode_table.due_to_end(self._now())
        for episode, reason in islice(due, _MAX_ENDED_AT_ONCE):
            try:
                self.end_episode(episode, reason)
            except Exception:
                self.counts.lost += 1
                extra = {
                    "action": "alert",
                    "reason": "episode_lost",
                    "episode": episode.episode_id,
                }
                log.exception("an episode is not recorded", extra=extra)

    def end_episode(self, episode: OpenEpisode, reason: str) -> PendingEpisode | RecordOutcome:
        """Close an episode; what comes under its name from now on is another one."""
        self.process_inbox()
        self.episode_table.remove(episode)
        ended = self._enqueue_or_refuse(episode, reason)
        key = f"{episode.principal}\0{episode.episode_id}"
        if key in self._ended:
            self._forget(key)
        self._ended[key] = ended
        self._reported[key] = report = _report_of(episode, reason)
        self._users[episode.trajectory_id] = (episode.principal, episode.user_id)
        characters = len(key) + len(episode.user_id or "")
        size = _ENDED_BYTES + _CHARACTER_BYTES * characters + report.held_bytes
        self._ended_bytes[key] = size
        self._remembered_bytes += size
        while (
            len(self._ended) > _MAX_REMEMBERED
            or self._remembered_bytes > self._max_remembered_bytes
        ):
            self._forget(next(iter(self._ended)))
        return ended

    def _forget(self, key: str) -> None:
        """What became of this episode cannot be asked for any more."""
        ended = self._ended.pop(key)
        del self._reported[key]
        self._users.pop(ended.trajectory_id, None)
        self._remembered_bytes -= self._ended_bytes.pop(key)

    @property
    def held_bytes(self) -> int:
        """All that is held of episodes: open, ended and not yet durable, or remembered."""
        ended = self.backlog_bytes + self._remembered_bytes
        return self.episode_table.held_bytes + self._inbox_bytes + ended

    def _enqueue_or_refuse(
        self, episode: OpenEpisode, reason: str
    ) -> PendingEpisode | RecordOutcome:
        name = episode.trajectory_id
        if self._recorder_client is None:
            return RecordOutcome(name, "refused", "Recording is off.")
        if not episode.conversations and not episode.has_gap and episode.unanswered is None:
            self.counts.empty += 1
            why = _UNWANTED if episode.unrecorded else "Nothing was answered in this episode."
            return RecordOutcome(name, "refused", why)
        if episode.has_gap or not self._make_room(episode.principal):
            self.counts.lost += 1
            return RecordOutcome(name, "refused", _NO_ROOM)
        pending = self._make_pending(episode, reason)
        episode.conversations.clear()
        episode.unanswered = None
        self._backlog.append(pending)
        self._hold_backlog(pending, len(pending.frame))
        self._wake.set()
        return pending

    def _hold_backlog(self, pending: PendingEpisode, more: int) -> None:
        self.backlog_bytes += more
        self._backlog_of_keys.add(pending.principal, more)

    def _make_room(self, principal: str) -> bool:
        """May one more wait? The key of which most waits gives way, the newest of its episodes first."""
        while self.backlog_bytes > self._limits.recording_bytes:
            heaviest = self._backlog_of_keys.key_to_evict(principal, 0)
            waiting = (each for each in reversed(self._backlog) if each.principal == heaviest)
            if heaviest is None or (newest := next(waiting, None)) is None:
                return False
            self._backlog.remove(newest)
            self.counts.lost += 1
            self._answer(newest, RecordOutcome(newest.trajectory_id, "refused", _NO_ROOM))
        return True

    def _make_pending(self, episode: OpenEpisode, reason: str) -> PendingEpisode:
        pending = PendingEpisode(
            f"{episode.principal}\0{episode.episode_id}", episode.trajectory_id, b""
        )
        try:
            pending.frame = self._encode_episode(episode, reason)
        except Exception as error:  # what a client says may be anything: it costs its own episode
            extra = {"action": "unreadable", "episode": episode.episode_id}
            log.exception("an episode cannot be framed", extra=extra)
            deep = isinstance(error, RecursionError)
            pending.rejection = _reject(
                pending,
                Reason.TOO_DEEP if deep else Reason.UNREADABLE,
                f"The recorder cannot read this episode ({type(error).__name__}).",
            )
        return pending

    def ended_episode(
        self, principal: str, episode_id: str
    ) -> PendingEpisode | RecordOutcome | None:
        """What became of an episode that has ended."""
        return self._ended.get(f"{principal}\0{episode_id}")

    def reported_outcome(self, principal: str, episode_id: str) -> ReportedOutcome:
        """What was reported of an episode that has ended."""
        return self._reported[f"{principal}\0{episode_id}"]

    def open_episode_of(self, principal: str, trajectory_id: str) -> OpenEpisode | None:
        """The open episode of this trajectory with all that was answered in it, if it is of this key."""
        self.process_inbox()
        episode = self.episode_table.by_trajectory(trajectory_id)
        return episode if episode is not None and episode.principal == principal else None

    def find_owner(
        self, principal: str, episode_id: str | None, trajectory_id: str | None
    ) -> tuple[str, str | None] | None:
        """With whose key an episode came and its user, if it is open or ended lately; ids are each key's own."""
        if episode_id is not None:
            if (opened := self.episode_table.get(principal, episode_id)) is not None:
                return principal, opened.user_id
            ended = self.ended_episode(principal, episode_id)
            trajectory_id = ended.trajectory_id if ended else None
        if trajectory_id is None:
            return None
        if (found := self.episode_table.by_trajectory(trajectory_id)) is not None:
            return found.principal, found.user_id
        return self._users.get(trajectory_id)

    async def wait_durable(
        self, ended: PendingEpisode | RecordOutcome, timeout_seconds: float
    ) -> RecordOutcome | None:
        """What became of it, as soon as that is certain; None when it takes longer."""
        if isinstance(ended, RecordOutcome):
            return ended
        waiter: asyncio.Future[RecordOutcome] = asyncio.get_running_loop().create_future()
        ended.waiters.append(waiter)
        try:
            async with asyncio.timeout(timeout_seconds):
                return await waiter
        except TimeoutError:
            return None

    def _encode_episode(self, episode: OpenEpisode, reason: str) -> bytes:
        offset, sender = self._wall_clock() - self._now(), sender_of(episode.principal)
        left = episode.cancelled and reason != "stop"  # else another request might have come
        models = {
            exchange.model.model_id: exchange.model
            for conversation in episode.conversations
            for exchange in conversation.exchanges
        }
        conversations = [
            ConversationFrame(
                conversation.exchanges[-1].body,
                [
                    ExchangeFrame(
                        exchange.started_at + offset,
                        exchange.latency_ms,
                        exchange.messages_size,
                        exchange.answer,
                        exchange.stream,
                        exchange.model.model_id,
                        exchange.inference_id,
                        exchange.first_token_ms,
                        exchange.cancelled,
                        exchange.shape,
                    )
                    for exchange in conversation.exchanges
                ],
            )
            for conversation in episode.conversations
        ]
        return encode_frame(
            EpisodeFrame(
                trajectory_id=episode.trajectory_id,
                episode_id=episode.episode_id,
                agent_id=str(episode.agent_id),
                session_id=episode.session_id,
                source=episode.source,
                ended_by=reason,
                model_id=episode.first_model_id,
                candidate=episode.candidate,
                rollout=episode.rollout,
                conversations=conversations,
                models=episode.models,
                failures=episode.failures,
                faults=[msgspec.structs.replace(e, at=e.at + offset) for e in episode.faults],
                unanswered=_unanswered_frame(episode, offset),
                broken=episode.broken,
                cancelled=left,
                named=episode.requested_by_name,
                switch=episode.switch,
                step=episode.step,
                by_user=episode.by_user,
                withdrawn=episode.withdrawn,
                user_id=episode.user_id,
                key=sender.key_id,
                many=sender.many,
                task_id=episode.task_id,
                about=episode.metadata,
                outcome=msgspec.json.encode(episode.outcome),
                temperature=episode.temperature,
                prices={
                    name: TokenPrice(m.prompt_price, m.completion_price)
                    for name, m in models.items()
                },
            )
        )

    # --- the backlog -----------------------------------------------------------------------------

    def workers(self) -> list[tuple[str, Coroutine[Any, Any, None]]]:
        """Named coroutines: while one batch is acknowledged, the next is redacted."""
        return [(f"recording worker {number}", self._run_worker()) for number in range(_WORKERS)]

    async def _run_worker(self) -> None:
        """Hand ended episodes to the recorder process, for ever."""
        failures = 0
        while True:
            while not self._backlog:
                self._wake.clear()
                await self._wake.wait()
            try:
                must_wait = await self._send_batch()
            except Transient as error:
                must_wait = True
                if not failures:
                    log.warning("recordings wait: %s", error, extra={"action": "recording_waits"})
            except Exception:  # whatever broke, the next batch must go
                must_wait = True
                log.exception("recording failed", extra={"action": "recording_failed"})
            failures = failures + 1 if must_wait else 0
            if failures:
                await asyncio.sleep(_RETRIES.seconds(failures))

    async def _send_batch(self) -> bool:
        """One batch; whether some of it has to wait."""
        batch = self._next_batch()
        self._sending += 1
        try:
            outcomes = await self._record_batch(batch)
        except Exception:
            self._count_crash(batch)
            raise
        finally:
            self._sending -= 1
        requeued = []
        for pending, outcome in zip(batch, outcomes, strict=True):
            if outcome.status == "later":
                requeued.append(pending)
            else:
                self._count_outcome(pending, outcome)
        self._requeue(requeued)
        return bool(requeued)

    async def _record_batch(self, batch: list[PendingEpisode]) -> list[RecordOutcome]:
        """What the recorder process says of each."""
        assert self._recorder_client is not None  # noqa: S101 - without one, the backlog is empty
        rejection = batch[0].rejection
        if rejection is None:
            outcomes = await self._recorder_client.record_episodes(
                [pending.frame for pending in batch]
            )
            if len(outcomes) != len(batch):
                raise Transient("The recorder's answer is not about what it was asked.")
            return outcomes
        outcome = await self._recorder_client.record_dead_letter(rejection)
        if outcome.status == "later":
            return [outcome]
        return [
            RecordOutcome(rejection.trajectory_id, "refused", rejection.detail, rejection.reason)
        ]

    def _count_crash(self, batch: list[PendingEpisode]) -> None:
        """The recorder process died with these in hand; one that it died of alone, and often, is given up."""
        for pending in batch:
            pending.crashes += 1
        if len(batch) == 1 and batch[0].crashes >= _MAX_CRASHES and batch[0].rejection is None:
            detail = "The recorder dies of this episode."
            batch[0].rejection = _reject(batch[0], Reason.POISON, detail)
        self._requeue(batch)

    def _next_batch(self) -> list[PendingEpisode]:
        """The next ones; one that is given up, or was in hand when the recorder process died, goes alone."""
        batch: list[PendingEpisode] = []
        size = 0
        while self._backlog and len(batch) < _BATCH_COUNT and size < _BATCH_BYTES:
            alone = bool(self._backlog[0].crashes or self._backlog[0].rejection)
            if batch and alone:
                break
            batch.append(self._backlog.popleft())
            size += len(batch[-1].frame)
            if alone:
                break
        return batch

    def _requeue(self, batch: list[PendingEpisode]) -> None:
        self._backlog.extendleft(reversed(batch))

    def _count_outcome(self, pending: PendingEpisode, outcome: RecordOutcome) -> None:
        self.counts.recorded += outcome.durable
        self.counts.refused += not outcome.durable
        if not outcome.durable:
            extra = {"action": "not_recorded", "trajectory": pending.trajectory_id}
            log.warning("episode not recorded: %s", outcome.detail, extra=extra)
        self._answer(pending, outcome)

    def _answer(self, pending: PendingEpisode, outcome: RecordOutcome) -> None:
        """It waits no longer, and whoever asks for it hears what became of it."""
        self._hold_backlog(pending, -len(pending.frame))
        pending.frame = b""
        for waiter in pending.waiters:
            if not waiter.done():
                waiter.set_result(outcome)
        if self._ended.get(pending.key) is pending:
            detail = outcome.detail[:_MAX_DETAIL]
            self._ended[pending.key] = msgspec.structs.replace(outcome, detail=detail)
            self._ended_bytes[pending.key] += _CHARACTER_BYTES * len(detail)
            self._remembered_bytes += _CHARACTER_BYTES * len(detail)

    async def flush(self, timeout_seconds: float) -> bool:
        """End everything and wait until it is durable; False when time is up."""
        for episode in self.episode_table.open_episodes():
            self.end_episode(episode, "stop")
        deadline = self._now() + timeout_seconds
        while self._backlog or self._sending:
            if self._now() > deadline:
                return False
            await asyncio.sleep(0.01)
        return True


def _unanswered_frame(episode: OpenEpisode, offset: float) -> UnansweredFrame | None:
    last = episode.unanswered
    if last is None:
        return None
    return UnansweredFrame(last.body, last.started_at + offset, last.waited_ms)


def _report_of(episode: OpenEpisode, reason: str) -> ReportedOutcome:
    try:
        return reported_outcome(msgspec.json.decode(episode.metadata), episode.outcome, reason)
    except Exception:  # what a client says may be anything; the episode itself is refused for it
        log.exception("what was reported of an episode is odd", extra={"action": "unreadable"})
        return reported_outcome({}, None, reason)


def _reject(pending: PendingEpisode, reason: Reason, detail: str) -> RejectedEpisode:
    principal, _, episode_id = pending.key.partition("\0")
    digest = sha256(pending.frame).hexdigest()
    return RejectedEpisode(pending.trajectory_id, episode_id, principal, reason, detail, digest)
