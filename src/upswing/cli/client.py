"""How does a command that writes reach the loop? Over HTTP, like everybody else."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from upswing.cli.arguments import with_option_names
from upswing.errors import Misuse, Transient

_SECONDS, _SILENCE_SECONDS = 3600.0, 60.0
"""For a whole exchange, and in which nothing comes or goes."""
_MAX_ANSWER_BYTES = 1_000_000_000
"""An export may be large."""


def locate_loop(folder: Path) -> tuple[str, str]:
    """The address and the key of the loop: $AGENTGYM_RL_URL's, else that of the data directory."""
    if url := os.environ.get("AGENTGYM_RL_URL"):
        key = os.environ.get("AGENTGYM_RL_API_KEY")
        if not key:
            raise Misuse("AGENTGYM_RL_URL is set, but AGENTGYM_RL_API_KEY is not: set both.")
        return _checked_url(url), key
    from upswing.infra.instance import no_loop_sentence, read_instance

    if (running := read_instance(folder)) is None:
        raise Misuse(no_loop_sentence(folder))
    return running.http_url, running.key


def _checked_url(url: str) -> str:
    """One that can be asked."""
    try:
        parts = urlsplit(url)
        sound = parts.scheme in {"http", "https"} and parts.hostname and parts.port != 0
    except ValueError:  # a port that is none
        sound = False
    if not sound:
        raise Misuse(f"AGENTGYM_RL_URL is {url!r}: give an address such as http://127.0.0.1:8100.")
    return url.rstrip("/")


def call(
    folder: Path,
    method: str,
    path: str,
    body: bytes | None = None,
    content_type: str = "application/json",
    options: Mapping[str, str] | None = None,
) -> bytes:
    """The answer's body; a refusal becomes the loop's own sentence, about the option that it names.

    `options` says which option makes which field of the request.
    """
    url, key = locate_loop(folder)
    from upswing.infra.http import Unreachable, send_request_blocking

    try:
        reply = send_request_blocking(
            method,
            url + path,
            body=body,
            key=key,
            headers={"Content-Type": content_type},
            seconds=_SECONDS,
            silence_seconds=_SILENCE_SECONDS,
            limit=_MAX_ANSWER_BYTES,
        )
    except Unreachable as error:
        raise Transient(f"The loop at {url} does not answer: {error} Is it running?") from None
    if not 200 <= reply.status < 300:
        raise Misuse(with_option_names(_sentence(reply.body), options))
    return reply.body


def ask(
    folder: Path, method: str, path: str, body: Any = None, options: Mapping[str, str] | None = None
) -> Any:
    """The same with JSON both ways."""
    sent = json.dumps(body).encode() if body is not None else None
    raw = call(folder, method, path, sent, options=options)
    return json.loads(raw) if raw else None


def _sentence(raw: bytes) -> str:
    try:
        return str(json.loads(raw)["detail"])
    except (ValueError, KeyError, TypeError):
        return raw.decode(errors="replace")[:500] or "The loop refused it without giving a reason."
