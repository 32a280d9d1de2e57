"""How much is there to learn from, for who only looks? Counted anew where that is cheap, else as lately counted.

| what was counted last                      | an answer                                                      |
|--------------------------------------------|----------------------------------------------------------------|
| nothing has changed since                  | is that                                                        |
| at most 1,000 trajectories, or nothing yet | counts again first: it takes milliseconds                      |
| more                                       | is that, with its time; it is counted again beside the answers |

Counting reads up to 20,000 trajectories, which takes a good part of a second: nobody who opens a page waits for
it, and ten pages cost one count. Who decides to train counts for himself.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import datetime, timedelta

from upswing.dataset.groups import Learnable
from upswing.errors import Transient
from upswing.infra.tasks import run_in_background

log = logging.getLogger(__name__)
SMALL = 1000
"""Trajectories that are counted while an answer waits."""
REFRESH = timedelta(seconds=30)
"""Between two counts of a large store, however much comes in."""
_LOOKED_AT = timedelta(minutes=10)
"""After the last look, nobody looks any more, and nothing is counted for lookers."""
_FORGET = timedelta(minutes=10)
"""A count ages although nothing is new: what is too old for a job falls out of it."""
_TRIES = 3
"""Counts that who looks at a small store waits for: one may be under way that began too early."""
Version = tuple[object, ...]


@dataclass(frozen=True, slots=True)
class CountedLearnable:
    """What there was to learn from, and when."""

    learnable: Learnable
    counted: datetime
    version: Version = ()


class LearnableCache:
    """The newest count."""

    def __init__(
        self,
        count: Callable[[], Awaitable[Learnable]],
        version: Callable[[], Awaitable[Version]],
        *,
        clock: Callable[[], datetime],
        small: int = SMALL,
    ) -> None:
        """`version` says cheaply whether anything that is counted may have changed."""
        self._count, self._version, self._clock, self._small = count, version, clock, small
        self._known: CountedLearnable | None = None
        self._asked: datetime | None = None
        self._counting: asyncio.Task[None] | None = None

    async def newest(self) -> CountedLearnable:
        """The count, at once where the store is large."""
        self._asked = self._clock()
        version = await self._version()
        for _ in range(_TRIES):
            known = self._known
            if known is not None and not self._is_outdated(known, version):
                return known
            if known is not None and known.learnable.trajectories > self._small:
                self._refresh(known, version)
                return known
            await asyncio.shield(self._count_once(version))
        if self._known is None:
            raise Transient("What there is to learn from could not be counted; try again.")
        return self._known

    async def keep_fresh(self) -> None:
        """Count once at the start, and then while somebody looks now and then: the next look finds something new."""
        known, asked = self._known, self._asked
        if known is None:  # so that the first one who looks does not wait
            self._count_once(await self._version())
            return
        if asked is None or self._clock() - asked > _LOOKED_AT:
            return
        if known.learnable.trajectories > self._small:
            version = await self._version()
            if self._is_outdated(known, version):
                self._refresh(known, version)

    def _is_outdated(self, known: CountedLearnable, version: Version) -> bool:
        return known.version != version or self._clock() - known.counted > _FORGET

    def _refresh(self, known: CountedLearnable, version: Version) -> None:
        if self._clock() - known.counted >= REFRESH:
            self._count_once(version)

    def _count_once(self, version: Version) -> asyncio.Task[None]:
        """The count that is under way, or a new one: nobody counts beside another."""
        if self._counting is None or self._counting.done():
            self._counting = run_in_background(self._count_now(version), name="count learnable")
        return self._counting

    async def _count_now(self, version: Version) -> None:
        """The version was read before: what comes in meanwhile is found at the next look."""
        try:
            self._known = CountedLearnable(await self._count(), self._clock(), version)
        except Transient as error:
            log.info("%s", error, extra={"action": "count_learnable"})
