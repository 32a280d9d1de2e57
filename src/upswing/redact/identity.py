"""Who was it, without saying who? Identities that hold something private become pseudonyms.

A placeholder such as `<email-1>` is right for text, but as a user id it would make everybody the
same user, and nobody could opt out. So an id in which the redactor finds something is replaced by
a hash of itself: the same person gets the same id everywhere, at the agent's side as in the loop,
without a secret to share.
"""

from __future__ import annotations

from hashlib import blake2s

from upswing.redact.redactor import Redactor

LONGEST = 256
"""Characters of an id that is kept as it is; databases cannot look up much longer ones."""


def pseudonym_for(kind: str, value: str) -> str:
    """The name we use for `value`: stable, and not reversible without guessing the value.

    >>> pseudonym_for("user", "bob@example.org")
    'user-041decaa013bd3672321'
    """
    return f"{kind}-{blake2s(value.encode(), digest_size=10, person=b'upswing').hexdigest()}"


def redact_identity(redactor: Redactor, kind: str, value: str) -> str:
    """`value`, or its pseudonym when it holds something that must not be stored, or too much."""
    if len(value) > LONGEST or redactor.text(value).changed:
        return pseudonym_for(kind, value)
    return value


def shorten_identity(kind: str, value: str) -> str:
    """`value`, or its pseudonym when it is too long to be kept: what `redact_identity` makes of it, without reading it.

    >>> shorten_identity("user", "bob"), len(shorten_identity("user", "b" * 257))
    ('bob', 25)
    """
    return pseudonym_for(kind, value) if len(value) > LONGEST else value
