"""How does work leave the agent without holding it up? A thread: redact, spool, send, remove.

```
agent ─▶ queue (bounded) ─▶ redact ─▶ spool (on disk, bounded) ─▶ the loop
                              └▶ cannot be redacted: counted, gone     └▶ acknowledged: removed
```
"""

from __future__ import annotations

import logging
import re
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from threading import Condition, Lock, Thread, current_thread

from upswing.errors import Denied, Misuse, Transient, UpswingError
from upswing.infra.backoff import Backoff
from upswing.infra.spool import Spool
from upswing.infra.spool_log import SpoolEntry
from upswing.sdk.clean import Cleaner, Draft
from upswing.sdk.transport import EntryAccepted, EntryDeferred, EntryRefused, Transport

log = logging.getLogger("upswing.sdk")

QUEUE_COUNT, QUEUE_BYTES = 1_000, 32 * 1024 * 1024
"""What waits in memory for the thread. It is emptied to the spool even while the loop is away,
so it fills only when an agent is faster than the disk; then its oldest entry goes."""
BATCH_COUNT, BATCH_BYTES = 100, 1024 * 1024
RETRIES = Backoff(0.25, 30.0)
"""Seconds between tries while the loop is away; they are spread by chance."""
ADOPT_SECONDS = 60.0
"""Seconds between searches for files of processes that have died."""
WARNING_KINDS = 50
"""Kinds of refused values that get a line in the log; what comes after them is only counted."""
_VALUE = re.compile(r"`[^`]*`|'[^']*'|\"[^\"]*\"|\d+")
"""What differs between two errors of one kind."""


@dataclass(frozen=True, slots=True)
class Stats:
    """What became of everything that was recorded."""

    sent: int = 0
    """Acknowledged by the loop."""
    spooled: int = 0
    """Redacted and on disk now, waiting for the loop."""
    dropped: int = 0
    """Given up for want of room, or torn by a power cut."""
    errors: int = 0
    """Never to be sent: refused by the loop, not redactable, or not a trajectory."""
    pending: int = 0
    """Not acknowledged yet: `spooled`, and what is still in memory."""
    last_error: str | None = None


def wait_before(attempt: int, chance: float) -> float:
    """Seconds before try number `attempt` (from 1): doubling, capped, spread by half.

    >>> [wait_before(n, 1.0) for n in (1, 2, 3, 20)], wait_before(1, 0.0)
    ([0.25, 0.5, 1.0, 30.0], 0.125)
    """
    return RETRIES.seconds(attempt) * (0.5 + chance / 2)


class Worker:
    """The thread and everything it owns. Every public method is safe from any thread."""

    def __init__(
        self,
        *,
        connect: Callable[[], Transport],
        spool: Spool,
        clean: Cleaner,
        chance: Callable[[], float],
    ) -> None:
        self._connect, self._spool, self._clean, self._chance = connect, spool, clean, chance
        self._changed = Condition(Lock())
        self._moving = Lock()
        """Held while a draft goes from the queue to the spool, so that order is kept."""
        self._queue: deque[Draft] = deque()
        self._queued = self._in_hand = 0
        self._sent = self._dropped = self._errors = 0
        self._last_error: str | None = None
        self._warned: set[str] = set()
        """Kinds of errors that have their line in the log."""
        self._failures = 0
        """Tries in a row that failed."""
        self._tries = self._hurry = 0
        """Tries so far; and up to which number they do not wait, because somebody does."""
        self._sending = False
        self._due = 0.0
        self._adopted = 0.0
        self._stopping = False
        self._transport: Transport | None = None
        self._thread = Thread(target=self._run, name="upswing-recorder", daemon=True)

    # --- the agent's side: microseconds, no disk, no network ---------------------------------

    def start(self) -> None:
        self._thread.start()

    def submit(self, draft: Draft) -> None:
        with self._changed:
            if self._stopping:
                self._dropped += 1
                return
            self._queue.append(draft)
            self._queued += len(draft.raw)
            while len(self._queue) > 1 and (
                len(self._queue) > QUEUE_COUNT or self._queued > QUEUE_BYTES
            ):
                self._queued -= len(self._queue.popleft().raw)
                self._dropped += 1
            self._changed.notify_all()

    def failed(self, why: str) -> None:
        """Count something that will never be sent; the first of each kind is a warning in the log."""
        with self._changed:
            self._errors += 1
            self._last_error = why
            warn = self._is_new_kind(why)
        if warn:
            log.warning("not recorded: %s", why, extra={"action": "recorder_refused"})

    def _is_new_kind(self, why: str) -> bool:
        """Whether no sentence like this one, whatever its values, was logged before."""
        kind = _VALUE.sub("…", why)
        if kind in self._warned or len(self._warned) >= WARNING_KINDS:
            return False
        self._warned.add(kind)
        return True

    @property
    def stats(self) -> Stats:
        with self._changed:
            return Stats(
                sent=self._sent,
                spooled=len(self._spool),
                dropped=self._dropped + self._spool.dropped,
                errors=self._errors,
                pending=self._count_pending(),
                last_error=" ".join(
                    filter(None, (self._last_error, self._spool.durability_trouble))
                )
                or None,
            )

    def _count_pending(self) -> int:
        return len(self._queue) + self._in_hand + len(self._spool)

    def flush(self, timeout: float) -> bool:
        """Wait until all is acknowledged. False: what is left is in the spool, or time is up."""
        deadline = time.monotonic() + timeout
        with self._changed:
            # A try that is under way may have begun before the loop came back: wait for the next.
            self._hurry = wanted = self._tries + 1 + self._sending
            self._due = 0.0
            self._changed.notify_all()
            while self._count_pending() or (self._thread.is_alive() and not self._adopted):
                safe = not self._queue and not self._in_hand
                if safe and self._failures and self._tries >= wanted:
                    return False
                if (left := deadline - time.monotonic()) <= 0 or not self._thread.is_alive():
                    return False
                self._changed.wait(min(left, 0.1))
            return True

    def close(self, timeout: float) -> None:
        """Send what can be sent in time, have the rest on disk, end the thread."""
        deadline = time.monotonic() + timeout
        self.flush(timeout * 0.75)
        with self._changed:
            self._stopping = True
            self._changed.notify_all()
        if self._thread.is_alive() and self._thread is not current_thread():
            self._thread.join(max(0.05, timeout * 0.1))
        self._move_to_spool(deadline)  # a thread held up by the network left it in memory

    def forget(self) -> None:
        """In a forked child: all of this is the parent's."""
        self._spool.forget()

    # --- the thread --------------------------------------------------------------------------

    def _run(self) -> None:
        try:
            self._adopt_orphans()
            self._clean.warm()
        except Exception as error:  # noqa: BLE001 - both are tried again when there is work
            log.debug("recorder not ready: %s", type(error).__name__)
        try:
            while self._wait_for_work():
                try:
                    self._run_turn()
                except Exception:  # the spool's disk, say: who records next finds the thread alive
                    log.exception("the recorder broke", extra={"action": "recorder_broke"})
                    time.sleep(RETRIES.first)
        finally:
            self._disconnect()
            with self._moving:
                self._spool.close()

    def _run_turn(self) -> None:
        try:
            self._adopt_orphans()
            self._move_to_spool()
            if not self._stopping and time.monotonic() >= self._due:
                self._deliver_entries()
        except Exception as error:  # noqa: BLE001 - the thread outlives whatever goes wrong in it
            self._postpone_delivery(Transient(f"The recorder met {type(error).__name__}."))

    def _wait_for_work(self) -> bool:
        """Until there is something to do; False when it is time to go."""
        with self._changed:
            while not self._stopping and not self._queue:
                now = time.monotonic()
                next_adoption = self._adopted + ADOPT_SECONDS if self._adopted else now
                wake = min(next_adoption, self._due if len(self._spool) else next_adoption)
                if wake <= now:
                    break
                self._changed.wait(wake - now)
            return not self._stopping or bool(self._queue)

    def _adopt_orphans(self) -> None:
        if (now := time.monotonic()) >= self._adopted + ADOPT_SECONDS or not self._adopted:
            self._spool.adopt()
            with self._changed:
                self._adopted = now
                self._changed.notify_all()

    def _move_to_spool(self, deadline: float | None = None) -> None:
        """From the queue, redacted, into the spool."""
        while deadline is None or time.monotonic() < deadline:
            with self._moving:
                with self._changed:
                    if not self._queue:
                        return
                    draft = self._queue.popleft()
                    self._queued -= len(draft.raw)
                    self._in_hand += 1
                try:
                    if (entry := self._redact_draft(draft)) is not None:
                        self._spool.append(entry)
                finally:
                    with self._changed:
                        self._in_hand -= 1
                        self._changed.notify_all()

    def _redact_draft(self, draft: Draft) -> SpoolEntry | None:
        try:
            return self._clean(draft)
        except UpswingError as error:
            self.failed(str(error))
        except Exception as error:  # noqa: BLE001 - unredacted is never kept, whatever the cause
            self.failed(f"Redaction failed ({type(error).__name__}); nothing was kept.")
        return None

    def _deliver_entries(self) -> None:
        entries = self._spool.peek(BATCH_COUNT, BATCH_BYTES)
        if not entries:
            return
        self._sending = True
        try:
            if self._transport is None:
                self._transport = self._connect()
            answers = self._transport.send(entries[0].kind, [entry.body for entry in entries])
        except (Transient, Denied, Misuse) as error:
            self._postpone_delivery(error)
            return
        finally:
            self._sending = False
        for position, answer in enumerate(answers):
            match answer:
                case EntryAccepted() | EntryRefused():
                    self._settle_entry(entries[position], answer)
                case EntryDeferred(why):
                    self._postpone_delivery(why)
                    return
        with self._changed:
            self._tries += 1
            if self._failures:
                log.info("the loop takes recordings again", extra={"action": "recorder_back"})
            self._failures = 0
            self._changed.notify_all()

    def _settle_entry(self, entry: SpoolEntry, answer: EntryAccepted | EntryRefused) -> None:
        match answer:  # counted first: whoever finds the spool empty finds the count right
            case EntryAccepted():
                with self._changed:
                    self._sent += 1
            case EntryRefused(why):
                self.failed(why)
        self._spool.remove([entry])

    def _postpone_delivery(self, error: UpswingError) -> None:
        """Not now: entries stay where they are, and the next try waits longer."""
        self._disconnect()
        self._spool.sync()
        with self._changed:
            self._failures += 1
            self._tries += 1
            self._last_error = str(error)
            wait = wait_before(self._failures, self._chance()) if self._tries >= self._hurry else 0
            self._due = time.monotonic() + wait
            self._changed.notify_all()
            first = self._failures == 1
        if first:
            log.warning(
                "recordings wait in the spool: %s", error, extra={"action": "recorder_away"}
            )

    def _disconnect(self) -> None:
        if self._transport is not None:
            self._transport.close()
            self._transport = None
