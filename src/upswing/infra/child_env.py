"""What may a child process know? The environment without credentials, but for those that it needs.

A credential is known by the name of its variable, or by a password inside an address:

| variable                                       | passed on                       |
|------------------------------------------------|---------------------------------|
| `PATH`, `LANG`, `RL_BASE_MODEL`, …             | yes                             |
| `…_KEY`, `…_TOKEN`, `…_SECRET`, `…_PASSWORD`   | only to the child that needs it |
| `scheme://name:password@host`                  | only to the child that needs it |
| whatever `UPSWING_CHILD_ENV` names (`A,B`)     | yes, to every child             |
"""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Mapping

PASSED_ON = "UPSWING_CHILD_ENV"
"""Credentials that a world or plugin of the user's own needs in our children."""
_NAME = re.compile(
    r"(KEYS?|TOKENS?|SECRETS?|PASSWORDS?|PASSWD|PASSPHRASE|CREDENTIALS?)(_|$)", re.IGNORECASE
)
_PASSWORD = re.compile(r"[a-z][a-z0-9+.-]*://[^/@\s]*:[^/@\s]+@", re.IGNORECASE)


def child_environment(
    needed: Collection[str] = (), environment: Mapping[str, str] | None = None
) -> dict[str, str]:
    """Our environment as a child may see it; `needed`: credentials that it cannot do without.

    >>> child_environment({"B_KEY"}, {"PATH": "/bin", "A_KEY": "1", "B_KEY": "2", "U": "x://a:b@c"})
    {'PATH': '/bin', 'B_KEY': '2'}
    """
    own = os.environ if environment is None else environment
    kept = {*needed, *(name.strip() for name in own.get(PASSED_ON, "").split(","))}
    return {
        name: value for name, value in own.items() if name in kept or not is_secret(name, value)
    }


def is_secret(name: str, value: str) -> bool:
    """Whether a variable holds a credential.

    >>> [is_secret(name, "x") for name in ("AWS_ACCESS_KEY_ID", "PGPASSWORD", "TOKENIZERS_PARALLELISM")]
    [True, True, False]
    """
    return bool(_NAME.search(name) or _PASSWORD.search(value))
