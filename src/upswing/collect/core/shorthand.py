"""What does a word at the HTTP door leave out, and what stands in its place?

| left out      | becomes                                                       |
|---------------|---------------------------------------------------------------|
| `timestamp`   | its arrival                                                   |
| `feedback_id` | made from the key, the content and the time that it has then  |
| `dryrun`      | false; true: it is looked at and answered, and nothing is kept |

So a word that tells its own time may be sent again, and is known then. One that does not is another word of the same
user, which replaces the first.
"""

from __future__ import annotations

from datetime import datetime
from uuid import NAMESPACE_URL, uuid5

import msgspec
from msgspec import Raw

from upswing.contracts.typed import json_decoder

_FIELDS = json_decoder(dict[str, Raw])
_ENCODER = msgspec.json.Encoder(order="deterministic")
_DRY = {b"true": True, b"false": False}


def completed(raw: bytes, *, key: str, now: datetime) -> tuple[bytes, bool]:
    """The whole word, and whether it is a trial; what is no JSON object is left to whoever refuses it.

    >>> from datetime import UTC
    >>> at = datetime(2026, 1, 1, tzinfo=UTC)
    >>> whole, dry = completed(b'{"type":"thumbs_up","episode_id":"e1","dryrun":true}', key="k1", now=at)
    >>> sorted(msgspec.json.decode(whole)), dry
    (['episode_id', 'feedback_id', 'timestamp', 'type'], True)
    """
    try:
        fields = _FIELDS.decode(raw)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return raw, False
    dry = _DRY.get(bytes(fields.get("dryrun", Raw(b""))))
    if dry is not None:
        del fields["dryrun"]
    elif {"feedback_id", "timestamp"} <= fields.keys():
        return raw, False
    if "timestamp" not in fields:
        fields["timestamp"] = Raw(_ENCODER.encode(now))
    if "feedback_id" not in fields:
        identity = f"{key} {_ENCODER.encode(fields).decode()}"
        fields["feedback_id"] = Raw(_ENCODER.encode(uuid5(NAMESPACE_URL, identity)))
    return _ENCODER.encode(fields), bool(dry)
