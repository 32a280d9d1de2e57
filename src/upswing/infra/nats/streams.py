"""Are the streams as they have to be? Make what is missing, repair what differs, drop nothing."""

from __future__ import annotations

import logging
from dataclasses import dataclass

from nats.js import JetStreamContext
from nats.js.api import RetentionPolicy, StorageType, StreamConfig
from nats.js.errors import APIError, NotFoundError

from upswing.contracts.topics import STREAMS, Stream
from upswing.errors import Misuse

log = logging.getLogger(__name__)
_DEDUP_SECONDS = 120.0


@dataclass(frozen=True, slots=True)
class Repair:
    """What to change in an operator's stream, and why."""

    config: StreamConfig
    sentence: str


def wanted_config(stream: Stream) -> StreamConfig:
    return StreamConfig(
        name=stream.name,
        subjects=list(stream.subjects),
        retention=RetentionPolicy.LIMITS,
        storage=StorageType.FILE,
        max_age=stream.max_age.total_seconds(),
        max_msgs=stream.max_msgs,
        duplicate_window=_DEDUP_SECONDS,
        allow_direct=True,
    )


def repair_of_stream(found: StreamConfig, wanted: Stream) -> Repair | None:
    """The change that makes a found stream fit, or None.

    Subjects become exactly ours. Limits are only ever widened: narrowing one would drop messages.
    """
    reasons = []
    changes: dict[str, object] = {}
    if set(found.subjects or []) != set(wanted.subjects):
        changes["subjects"] = list(wanted.subjects)
        reasons.append(f"subjects {found.subjects} become {list(wanted.subjects)}")
    age = wanted.max_age.total_seconds()
    if found.max_age and found.max_age < age:
        changes["max_age"] = age
        reasons.append(f"messages are kept {wanted.max_age.days} days")
    if found.max_msgs and 0 < found.max_msgs < wanted.max_msgs:
        changes["max_msgs"] = wanted.max_msgs
        reasons.append(f"{wanted.max_msgs} messages fit")
    if not changes:
        return None
    return Repair(found.evolve(**changes), f"{wanted.name}: {'; '.join(reasons)}.")


async def ensure_streams(js: JetStreamContext) -> list[str]:
    """Make or repair every stream; the sentences say what was done."""
    done: list[str] = []
    for wanted in STREAMS:
        try:
            found = (await js.stream_info(wanted.name)).config
        except NotFoundError:
            await _create_stream(js, wanted)
            done.append(f"{wanted.name}: made.")
            continue
        if change := repair_of_stream(found, wanted):
            await js.update_stream(change.config)
            done.append(change.sentence)
    for sentence in done:
        log.info("stream %s", sentence, extra={"action": "stream"})
    return done


async def _create_stream(js: JetStreamContext, wanted: Stream) -> None:
    try:
        await js.add_stream(wanted_config(wanted))
    except APIError as error:
        if "overlap" not in (error.description or ""):
            raise
        raise Misuse(
            f"Another stream of this server already takes {', '.join(wanted.subjects)}: "
            f"take these subjects from it, so that {wanted.name} can have them."
        ) from None
