"""How do tasks end for certain? Told so until they are gone."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Any

_AGAIN_SECONDS = 0.2


async def ended(tasks: Iterable[asyncio.Task[Any]]) -> None:
    """Cancel these and wait until all have ended.

    More than once: Python 3.11's `wait_for`, which libraries use, loses a cancellation that meets
    its result.
    """
    left = set(tasks)
    while left:
        for task in left:
            task.cancel()
        _, left = await asyncio.wait(left, timeout=_AGAIN_SECONDS)
