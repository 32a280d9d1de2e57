"""How does an episode reach the loop without holding an answer up?

    answered ─▶ inbox ─▶ book of open episodes ─▶ ended ─▶ backlog (bounded) ─▶ keeper ─▶ durable
                                                              ▲                    │
                                                              └── later, again ────┘

An answer costs the inbox one entry. The keeper redacts and publishes elsewhere; until it says that
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
from upswing.gateway.book import Book, Episode, Heard
from upswing.gateway.dead import Refusal
from upswing.gateway.frames import ChainFrame, EpisodeFrame, HeardFrame, Kept, Price, write_frame
from upswing.gateway.keys import sender_of
from upswing.gateway.limits import Limits
from upswing.gateway.ports import Keeper
from upswing.gateway.said import FROM_CLIENT, Said, said_of

log = logging.getLogger(__name__)
_BATCH_COUNT, _BATCH_BYTES = 64, 2 * 1024 * 1024
_FIRST_WAIT, _LONGEST_WAIT = 0.1, 5.0
_INBOX = 64
"""Entries that are made at one go: more would be felt by somebody who waits for an answer."""
_ENDED_AT_ONCE = 100
"""So that answers do not wait for a thousand ends."""
_LANES = 2
_MOST_DEATHS = 5
"""Times that the keeper may die over an episode before the episode is given up."""
_REMEMBERED = 20_000
"""Ended episodes whose fate can still be asked for."""


@dataclass(slots=True)
class Counts:
    """What became of all episodes."""

    recorded: int = 0
    refused: int = 0
    lost: int = 0
    """For want of room, or because the keeper died of them."""
    empty: int = 0
    """Nothing was answered in them."""


@dataclass(slots=True, eq=False)
class Waiting:
    """An ended episode that is not durable yet."""

    name: str
    """Its principal and episode id."""
    trajectory_id: str
    frame: bytes
    deaths: int = 0
    refusal: Refusal | None = None
    """It is given up: all that is left to do is a dead letter."""
    heard: list[asyncio.Future[Kept]] = field(default_factory=list)


class Recorder:
    """The book, and the way out of it."""

    def __init__(
        self, keeper: Keeper | None, limits: Limits, *, now: Callable[[], float],
        wall: Callable[[], float],
    ) -> None:  # fmt: skip
        self._keeper, self._limits, self._now, self._wall = keeper, limits, now, wall
        self.book = Book(
            most=limits.episodes, most_bytes=limits.recording_bytes, idle=limits.episode_seconds
        )
        self._inbox: list[tuple[Episode, Heard]] = []
        self._backlog: deque[Waiting] = deque()
        self._sending = 0
        self._ended: OrderedDict[str, Waiting | Kept] = OrderedDict()
        """By principal and episode id."""
        self._said: dict[str, Said] = {}
        """What was said of them."""
        self._users: OrderedDict[str, tuple[str, str | None]] = OrderedDict()
        """Trajectory → whose it was, of those that ended lately."""
        self.backlog_bytes = 0
        self._wake = asyncio.Event()
        self.counts = Counts()

    # --- the hot path ----------------------------------------------------------------------------

    def heard(self, episode: Episode, heard: Heard) -> None:
        self._inbox.append((episode, heard))
        if len(self._inbox) == _INBOX:
            asyncio.get_running_loop().call_soon(self.catch_up)

    def catch_up(self) -> None:
        """Enter into the book what has been heard since."""
        inbox, self._inbox = self._inbox, []
        for episode, heard in inbox:
            try:
                self.book.add(episode, heard)
            except Exception:  # the next answer has to be entered; this episode has a gap
                episode.gap = True
                log.exception("an answer cannot be entered", extra={"action": "unreadable"})

    # --- ends ------------------------------------------------------------------------------------

    def tend(self) -> None:
        """End what has to end by itself."""
        self.catch_up()
        for episode, why in islice(self.book.ending(self._now()), _ENDED_AT_ONCE):
            try:
                self.end(episode, why)
            except Exception:
                self.counts.lost += 1
                log.exception("an episode is not recorded", extra={"action": "alert"})

    def end(self, episode: Episode, why: str) -> Waiting | Kept:
        """Close an episode; what comes under its name from now on is another one."""
        self.catch_up()
        self.book.remove(episode)
        ended = self._ended_as(episode, why)
        key = f"{episode.principal}\0{episode.episode_id}"
        self._ended[key] = ended
        self._said[key] = _said(episode, why)
        self._users[episode.trajectory_id] = (episode.principal, episode.user_id)
        while len(self._users) > _REMEMBERED:
            self._users.popitem(last=False)
        while len(self._ended) > _REMEMBERED:
            oldest, _ = self._ended.popitem(last=False)
            del self._said[oldest]
        return ended

    def _ended_as(self, episode: Episode, why: str) -> Waiting | Kept:
        name = episode.trajectory_id
        if self._keeper is None:
            return Kept(name, "refused", "Recording is off.")
        if not episode.chains and not episode.gap:
            self.counts.empty += 1
            return Kept(name, "refused", "Nothing was answered in this episode.")
        if episode.gap or self.backlog_bytes > self._limits.recording_bytes:
            self.counts.lost += 1
            return Kept(name, "refused", "There was no room to record this episode.")
        waiting = self._waiting(episode, why)
        episode.chains.clear()
        self._backlog.append(waiting)
        self.backlog_bytes += len(waiting.frame)
        self._wake.set()
        return waiting

    def _waiting(self, episode: Episode, why: str) -> Waiting:
        waiting = Waiting(f"{episode.principal}\0{episode.episode_id}", episode.trajectory_id, b"")
        try:
            waiting.frame = self._framed(episode, why)
        except Exception as error:  # what a client says may be anything: it costs its own episode
            log.exception("an episode cannot be framed", extra={"action": "unreadable"})
            deep = isinstance(error, RecursionError)
            waiting.refusal = _given_up(
                waiting, Reason.TOO_DEEP if deep else Reason.UNREADABLE,
                f"The recorder cannot read this episode ({type(error).__name__}).",
            )  # fmt: skip
        return waiting

    def fate(self, principal: str, episode_id: str) -> Waiting | Kept | None:
        """What became of an episode that has ended."""
        return self._ended.get(f"{principal}\0{episode_id}")

    def said(self, principal: str, episode_id: str) -> Said:
        """What was said of an episode that has ended."""
        return self._said[f"{principal}\0{episode_id}"]

    def recorded(
        self, principal: str, episode_id: str | None, trajectory_id: str | None
    ) -> tuple[str, str | None] | None:
        """With whose key an episode came and its user, if it is open or ended lately; ids are each key's own."""
        if episode_id is not None:
            if (opened := self.book.get(principal, episode_id)) is not None:
                return principal, opened.user_id
            ended = self.fate(principal, episode_id)
            trajectory_id = ended.trajectory_id if ended else None
        if trajectory_id is None:
            return None
        if (found := self.book.of_trajectory(trajectory_id)) is not None:
            return found.principal, found.user_id
        return self._users.get(trajectory_id)

    async def durable(self, ended: Waiting | Kept, seconds: float) -> Kept | None:
        """What became of it, as soon as that is certain; None when it takes longer."""
        if isinstance(ended, Kept):
            return ended
        told: asyncio.Future[Kept] = asyncio.get_running_loop().create_future()
        ended.heard.append(told)
        try:
            async with asyncio.timeout(seconds):
                return await told
        except TimeoutError:
            return None

    def _framed(self, episode: Episode, why: str) -> bytes:
        offset, sender = self._wall() - self._now(), sender_of(episode.principal)
        left = episode.cancelled and why != "stop"  # else another request might have come
        models = {h.model.model_id: h.model for c in episode.chains for h in c.heard}
        chains = [
            ChainFrame(chain.heard[-1].body, [
                HeardFrame(h.at + offset, h.ms, h.size, h.answer, h.stream, h.model.model_id, h.inference_id)
                for h in chain.heard
            ])
            for chain in episode.chains
        ]  # fmt: skip
        return write_frame(EpisodeFrame(
            trajectory_id=episode.trajectory_id, episode_id=episode.episode_id,
            agent_id=str(episode.agent_id), session_id=episode.session_id, source=episode.source,
            ended_by=why, model_id=episode.chosen, candidate=episode.candidate,
            rollout=episode.rollout, chains=chains, models=episode.models,
            failures=episode.failures, broken=bool(episode.failed) and not left, cancelled=left, named=episode.named, switch=episode.switch, step=episode.step, by_user=episode.by_user, withdrawn=episode.withdrawn, user_id=episode.user_id,
            key=sender.key_id, many=sender.many,
            task_id=episode.task_id, about=_about(episode.about), outcome=msgspec.json.encode(episode.outcome),
            temperature=episode.temperature,
            prices={name: Price(m.prompt_price, m.completion_price) for name, m in models.items()},
        ))  # fmt: skip

    # --- the way out -----------------------------------------------------------------------------

    def lanes(self) -> list[tuple[str, Coroutine[Any, Any, None]]]:
        """While one batch is acknowledged, the next is redacted."""
        return [(f"recording lane {number}", self._run()) for number in range(_LANES)]

    async def _run(self) -> None:
        """Hand ended episodes to the keeper, for ever."""
        failures = 0
        while True:
            while not self._backlog:
                self._wake.clear()
                await self._wake.wait()
            try:
                later = await self._send()
            except Transient as error:
                later = True
                if not failures:
                    log.warning("recordings wait: %s", error, extra={"action": "recording_waits"})
            except Exception:  # whatever broke, the next batch must go
                later = True
                log.exception("recording failed", extra={"action": "recording_failed"})
            failures = failures + 1 if later else 0
            if failures:
                await asyncio.sleep(min(_LONGEST_WAIT, _FIRST_WAIT * 2 ** min(failures, 8)))

    async def _send(self) -> bool:
        """One batch; whether some of it has to wait."""
        batch = self._batch()
        self._sending += 1
        try:
            kept = await self._asked(batch)
        except Exception:
            self._died(batch)
            raise
        finally:
            self._sending -= 1
        again = []
        for waiting, outcome in zip(batch, kept, strict=True):
            if outcome.word == "later":
                again.append(waiting)
            else:
                self._settle(waiting, outcome)
        self._again(again)
        return bool(again)

    async def _asked(self, batch: list[Waiting]) -> list[Kept]:
        """What the keeper says of each."""
        assert self._keeper is not None  # noqa: S101 - without one, the backlog is empty
        refusal = batch[0].refusal
        if refusal is None:
            kept = await self._keeper.keep([waiting.frame for waiting in batch])
            if len(kept) != len(batch):
                raise Transient("The recorder's answer is not about what it was asked.")
            return kept
        letter = await self._keeper.bury(refusal)
        if letter.word == "later":
            return [letter]
        return [Kept(refusal.trajectory_id, "refused", refusal.detail, refusal.reason)]

    def _died(self, batch: list[Waiting]) -> None:
        """The keeper died with these in hand; one that it died of alone, and often, is given up."""
        for waiting in batch:
            waiting.deaths += 1
        if len(batch) == 1 and batch[0].deaths >= _MOST_DEATHS and batch[0].refusal is None:
            said = "The recorder dies of this episode."
            batch[0].refusal = _given_up(batch[0], Reason.POISON, said)
        self._again(batch)

    def _batch(self) -> list[Waiting]:
        """The next ones; one that is given up, or was in hand when the keeper died, goes alone."""
        batch: list[Waiting] = []
        size = 0
        while self._backlog and len(batch) < _BATCH_COUNT and size < _BATCH_BYTES:
            alone = bool(self._backlog[0].deaths or self._backlog[0].refusal)
            if batch and alone:
                break
            batch.append(self._backlog.popleft())
            size += len(batch[-1].frame)
            if alone:
                break
        return batch

    def _again(self, batch: list[Waiting]) -> None:
        self._backlog.extendleft(reversed(batch))

    def _settle(self, waiting: Waiting, kept: Kept) -> None:
        self.backlog_bytes -= len(waiting.frame)
        waiting.frame = b""
        self.counts.recorded += kept.durable
        self.counts.refused += not kept.durable
        if not kept.durable:
            log.warning("episode not recorded: %s", kept.detail, extra={"action": "not_recorded"})
        for told in waiting.heard:
            if not told.done():
                told.set_result(kept)
        if self._ended.get(waiting.name) is waiting:
            self._ended[waiting.name] = kept

    async def flush(self, seconds: float) -> bool:
        """End everything and wait until it is durable; False when time is up."""
        for episode in self.book.all():
            self.end(episode, "stop")
        deadline = self._now() + seconds
        while self._backlog or self._sending:
            if self._now() > deadline:
                return False
            await asyncio.sleep(0.01)
        return True


def _said(episode: Episode, why: str) -> Said:
    try:
        return said_of(episode.about, episode.outcome, why)
    except Exception:  # what a client says may be anything; the episode itself is refused for it
        log.exception("what was said of an episode is odd", extra={"action": "unreadable"})
        return said_of({}, None, why)


def _given_up(waiting: Waiting, reason: Reason, detail: str) -> Refusal:
    principal, _, episode_id = waiting.name.partition("\0")
    digest = sha256(waiting.frame).hexdigest()
    return Refusal(waiting.trajectory_id, episode_id, principal, reason, detail, digest)


def _about(said: dict[str, Any]) -> bytes:
    return msgspec.json.encode({key: said[key] for key in FROM_CLIENT if key in said})
