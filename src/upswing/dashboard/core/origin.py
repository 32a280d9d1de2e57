"""May this request change anything? Only if it comes from our own page, at an address that is ours.

| request                                   | host is ours | origin is the host's | answer |
|-------------------------------------------|--------------|----------------------|--------|
| any                                       | no           | any                  | 421    |
| GET, HEAD of a page                       | yes          | any                  | goes on |
| everything else, and the page's socket     | yes          | yes                  | goes on |
| everything else, and the page's socket     | yes          | no, or not said       | 403    |

A browser says where a form, a script or a socket comes from, and no page can make it say otherwise. The name in the
`Host` header is checked as well: else a foreign name that was pointed to this machine would count as ours.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass
from ipaddress import ip_address

LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})
_SAFE_METHODS = {"GET", "HEAD"}
_HOST = re.compile(r"(?:\[([0-9A-Fa-f:.]+)\]|([A-Za-z0-9._-]{1,253}))(?::([0-9]{1,5}))?\Z")
_ORIGIN = re.compile(r"https?://([^/?#@\s]+)\Z", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class OwnHosts:
    """Under which names browsers may reach the page."""

    listens_on: str
    names: Collection[str] = ()
    """Those of the config: of a reverse proxy, say."""

    def includes(self, host: str) -> bool:
        """Is this `Host` header one of ours?

        >>> OwnHosts("127.0.0.1").includes("localhost:8101"), OwnHosts("127.0.0.1").includes("evil.example:8101")
        (True, False)
        >>> OwnHosts("0.0.0.0").includes("10.0.0.5:8101"), OwnHosts("0.0.0.0").includes("evil.example:8101")
        (True, False)
        >>> OwnHosts("0.0.0.0", ["upswing.example"]).includes("Upswing.example")
        True
        """
        name = host_name(host)
        if name is None:
            return False
        if name in LOOPBACK or name in {each.lower() for each in self.names}:
            return True
        return self.listens_on not in LOOPBACK and (name == self.listens_on or _is_address(name))


def host_name(host: str) -> str | None:
    """The name in a `Host` header, without its port; None: it is none.

    >>> host_name("[::1]:8101"), host_name("a@b"), host_name("x.example:99999")
    ('::1', None, None)
    """
    found = _HOST.match(host)
    if found is None or int(found[3] or 0) > 65535:
        return None
    return (found[1] or found[2]).lower()


def _is_address(name: str) -> bool:
    """A number is nobody's to point elsewhere."""
    try:
        ip_address(name)
    except ValueError:
        return False
    return True


def may_change(method: str, host: str, origin: str | None, *, socket: bool = False) -> bool:
    """Whether a request to one of our own hosts may go on.

    >>> may_change("POST", "127.0.0.1:8101", "http://127.0.0.1:8101")
    True
    >>> may_change("POST", "127.0.0.1:8101", "http://127.0.0.1:9000"), may_change("POST", "x", None)
    (False, False)
    >>> may_change("GET", "x", None), may_change("GET", "x", None, socket=True)
    (True, False)
    """
    if method in _SAFE_METHODS and not socket:
        return True
    found = _ORIGIN.match(origin or "")
    return found is not None and found[1].lower() == host.lower()
