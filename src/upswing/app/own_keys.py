"""Which keys are the loop's own, and what if one was lost, revoked or is too weak?"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from uuid import UUID

from upswing.errors import Misuse
from upswing.infra.instance import renew_secrets
from upswing.infra.sql.keys import OPERATOR_ID, Keys

log = logging.getLogger(__name__)
WEAK_KEY = 20
"""Characters below which a key of the operator's own choice is refused on a public address."""
_OWN_KEYS = (
    (OPERATOR_ID, "made at first start", "operator", "key"),
    ("gateway", "the loop's own gateway", "gateway", "gateway_loop_key"),
)
"""Id, name and scope in the table of keys, and the entry in `secrets.json`."""


def refuse_weak_key(host: str, key: str) -> None:
    """`Misuse` about a key that could be guessed from elsewhere."""
    if host not in {"127.0.0.1", "::1", "localhost"} and len(key) < WEAK_KEY:
        raise Misuse(
            f"AGENTGYM_RL_API_KEY has fewer than {WEAK_KEY} characters, which is too weak for a public "
            "address: leave it out to have one made, or listen on 127.0.0.1."
        )


def admin_token(secrets: Mapping[str, str]) -> str:
    """What our gateway takes as the admin's, in its own order."""
    return os.environ.get("TENSORZERO_ADMIN_TOKEN", "").strip() or secrets["admin_token"]


async def prepare_own_keys(
    keys: Keys,
    folder: Path,
    secrets: dict[str, str],
    *,
    given: str | None,
    lost: bool,
    new_id: Callable[[], UUID],
    at: datetime,
) -> dict[str, str]:
    """The secrets as they are now: those that were revoked are made anew, and the table of keys knows all.

    `given` is the operator's key from the environment. `lost`: there was no `secrets.json`.
    """
    await keys.load()
    await keys.write_down_revoked()
    wanted = {"gateway_loop_key"} | ({"key"} if not given else set())
    if revoked := sorted(name for name in wanted if keys.was_revoked(secrets[name])):
        secrets = renew_secrets(folder, revoked)
    changed = [
        await keys.set_instance_key(key_id, name, scope, secrets[entry], at)
        for key_id, name, scope, entry in _OWN_KEYS
    ]
    await keys.set_operator_key(f"env-{new_id()}", secrets["key"], given, at)
    if any(changed):
        log.warning(*_new_keys_message(lost, revoked), extra={"action": "keys_changed"})
    return secrets


def _new_keys_message(lost: bool, renewed: Sequence[str]) -> tuple[str, ...]:
    """Why keys are others than at the last start, and what to do."""
    show = "`upswing info --show-secrets` shows the new ones"
    if renewed:
        message = "%s in secrets.json was revoked, so another was made; " + show
        return message, " and ".join(f"`{name}`" for name in renewed)
    why = "was missing" if lost else "is not the one of the last start"
    message = "secrets.json %s: all of the loop's own keys are new, and whoever asks with an old one gets 401; "
    return message + show, why
