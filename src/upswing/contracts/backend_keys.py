"""Which key does a server of somebody else's get? Only the one whose variable names its URL.

    UPSWING_BACKEND_KEY_OPENAI=https://api.openai.com/v1=sk-…
    UPSWING_BACKEND_KEY_GPU=https://gpu.example:8000=…

A key goes to its URL and below, and nowhere else: not to another host, port, scheme or path.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from upswing.contracts.backend import URL_PATTERN
from upswing.errors import Misuse

PREFIX = "UPSWING_BACKEND_KEY_"
_FORM = "https://host/path=key"
_NO_PATH = re.compile(r"https?://[^/]+")


def read_backend_keys(environment: Mapping[str, str]) -> dict[str, str]:
    """The beginning of a URL → its key; `Misuse` that repeats nothing that may be secret.

    >>> read_backend_keys({"UPSWING_BACKEND_KEY_A": "https://a.example/v1=k=1"})
    {'https://a.example/v1/': 'k=1'}
    >>> read_backend_keys({"UPSWING_BACKEND_KEY_A": "sk-123"})
    Traceback (most recent call last):
    upswing.errors.Misuse: UPSWING_BACKEND_KEY_A is not of the form https://host/path=key.
    """
    keys: dict[str, str] = {}
    for name in sorted(name for name in environment if name.startswith(PREFIX)):
        told = environment[name].strip()
        if not told:
            continue
        url, _, key = (part.strip() for part in told.partition("="))
        if not key or not re.match(URL_PATTERN, url):
            raise Misuse(f"{name} is not of the form {_FORM}.")
        if not (key.isascii() and key.isprintable()):
            raise Misuse(f"{name} holds characters that no HTTP header can carry.")
        if keys.setdefault(url.rstrip("/") + "/", key) != key:
            raise Misuse(f"{name} names a URL that another variable gives another key for.")
    return keys


def key_for(url: str, keys: Mapping[str, str]) -> str:
    """The key of the longest beginning that fits; empty when the URL has none. Without a path, `/v1` is meant.

    >>> keys = {"https://a.example/v1/": "one", "https://a.example/": "two"}
    >>> key_for("https://a.example/v1", keys), key_for("https://a.example.evil/v1", keys)
    ('one', '')
    >>> key_for("https://a.example", keys), key_for("https://a.example/", keys), key_for("https://a.example/v2", keys)
    ('one', 'one', 'two')
    """
    bare = url.rstrip("/")
    whole = f"{bare}/v1/" if _NO_PATH.fullmatch(bare) else f"{bare}/"
    fitting = [start for start in keys if whole.startswith(start)]
    return keys[max(fitting, key=len)] if fitting else ""
