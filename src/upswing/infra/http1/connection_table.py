"""Who is connected, who has to go for whom, and who is overdue?

Each connection is in one state, in the order in which it entered it, so that the overdue come first
and no other is inspected:

| state       | it                                            | for at most                     |
|-------------|-----------------------------------------------|---------------------------------|
| `silent`    | has shown no key, and asks nothing            | `keyless_seconds`               |
| `head`      | sends a request                               | `head_seconds`                  |
| `body`      | sends a body                                  | `body_seconds`, more as it comes |
| `busy`      | waits for an answer, or gets one              | –                               |
| `stalled`   | does not read on                              | `client_seconds`                |
| `idle`      | has shown a key, and asks nothing             | `idle_seconds`                  |
| `lingering` | has had its last answer and may still send    | `linger_seconds`                |
| `closing`   | has its last answer still to read             | `client_seconds`                |

Where there are too many, those without a key go first, the one longest unused before the others;
then those with one that ask nothing. Nobody goes who waits for an answer.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator
from typing import TYPE_CHECKING, Literal

from upswing.infra.http1.limits import PortLimits

if TYPE_CHECKING:
    from upswing.infra.http1.connection import Connection

ConnectionState = Literal[
    "silent", "head", "body", "busy", "stalled", "idle", "lingering", "closing"
]


class ConnectionTable:
    """All connections of a port."""

    def __init__(self, limits: PortLimits, connections: int) -> None:
        self._limits, self._most = limits, connections
        self._seconds: dict[ConnectionState, float] = {
            "silent": limits.keyless_seconds,
            "head": limits.head_seconds,
            "stalled": limits.client_seconds,
            "idle": limits.idle_seconds,
            "lingering": limits.linger_seconds,
            "closing": limits.client_seconds,
        }
        self._by_state: dict[ConnectionState, dict[Connection, float]] = {
            name: {} for name in (*self._seconds, "body")
        }
        self._members: dict[Connection, None] = {}
        self._keyless: dict[Connection, None] = {}
        self._of_peer: dict[str, int] = {}
        self._keyless_of: dict[str, dict[Connection, None]] = {}

    def __len__(self) -> int:
        return len(self._members)

    def __iter__(self) -> Iterator[Connection]:
        return iter(list(self._members))

    def join(self, member: Connection, now: float) -> Connection | None:
        """Who has to go for it, if anybody: perhaps itself."""
        self._members[member] = None
        self._of_peer[member.peer] = self._of_peer.get(member.peer, 0) + 1
        self._add_keyless(member)
        self._put_in_state(member, now)
        own, limits = self._keyless_of[member.peer], self._limits
        if len(own) > limits.peer_keyless:
            return next((each for each in own if each.state != "busy"), member)
        if self._of_peer[member.peer] > limits.peer_connections:
            return self._connection_to_close(member, own, member.peer)
        if len(self._members) > self._most:
            return self._connection_to_close(member, self._keyless, None)
        return None

    def leave(self, member: Connection) -> None:
        if member not in self._members:
            return
        del self._members[member]
        self._by_state.get(member.state, {}).pop(member, None)
        self._remove_keyless(member)
        left = self._of_peer[member.peer] - 1
        if left:
            self._of_peer[member.peer] = left
        else:
            del self._of_peer[member.peer]

    def move_to_state(self, member: Connection, state: ConnectionState, now: float) -> None:
        """It is in this state from now on; where it is already, it keeps its place in the order."""
        if state == member.state or member not in self._members:
            return
        self._by_state.get(member.state, {}).pop(member, None)
        member.state = state
        self._put_in_state(member, now)
        if state in {"silent", "busy"} and member in self._keyless:  # used just now: the last to go
            self._remove_keyless(member)
            self._add_keyless(member)

    def note_key_shown(self, member: Connection, *, keyed: bool) -> None:
        """It has shown a key, or what is none."""
        if keyed == member.keyed or member not in self._members:
            return
        member.keyed = keyed
        (self._remove_keyless if keyed else self._add_keyless)(member)

    def overdue_connections(self, now: float) -> list[Connection]:
        late = [each for each in self._by_state["body"] if each.body_deadline() < now]
        for state, seconds in self._seconds.items():
            for member, since in self._by_state[state].items():
                if since + seconds >= now:
                    break
                late.append(member)
        return late

    def _connection_to_close(
        self, newest: Connection, keyless: dict[Connection, None], peer: str | None
    ) -> Connection:
        for member in keyless:
            if member is not newest and member.state != "busy":
                return member
        idle = self._by_state["idle"]
        return next((each for each in idle if peer is None or each.peer == peer), newest)

    def _put_in_state(self, member: Connection, now: float) -> None:
        if (members := self._by_state.get(member.state)) is not None:
            members[member] = now

    def _add_keyless(self, member: Connection) -> None:
        self._keyless[member] = None
        self._keyless_of.setdefault(member.peer, {})[member] = None

    def _remove_keyless(self, member: Connection) -> None:
        if self._keyless.pop(member, member) is None:
            own = self._keyless_of[member.peer]
            del own[member]
            if not own:
                del self._keyless_of[member.peer]


def peer_of_address(address: object) -> str:
    """Whom connections are counted for: an address, or the network of one household.

    >>> peer_of_address(("10.0.0.7", 4711)), peer_of_address(("2001:db8:1:2:3::4", 4711, 0, 0)), peer_of_address(None)
    ('10.0.0.7', '2001:db8:1:2::', '')
    >>> peer_of_address(("::ffff:10.0.0.7", 1, 0, 0)), peer_of_address(("::1", 1, 0, 0))
    ('10.0.0.7', '::')
    """
    if not isinstance(address, tuple) or not address:
        return ""
    host = str(address[0])
    if ":" not in host:
        return host
    found = ipaddress.IPv6Address(host.partition("%")[0])
    if found.ipv4_mapped:
        return str(found.ipv4_mapped)
    return str(ipaddress.IPv6Address(int(found) >> 64 << 64))
