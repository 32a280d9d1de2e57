"""Who is logged in, and may somebody try another key?

    a key ──▶ attempts left? ──▶ the loop knows it? ──▶ a session: a random token in a cookie, the key stays here
                  │ no                 │ no
                  ▼                    ▼
             429, in how long     one attempt fewer

A token is kept as its hash: whoever reads this process's memory dump by accident cannot log in with it. A session
ends when it is too old, was not used for too long, or its user logs out; when the process ends, all do.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from dataclasses import dataclass, field
from hashlib import sha256

OPERATOR = "operator"


@dataclass(frozen=True, slots=True)
class LoginLimits:
    """How long a login lasts, and how many there are."""

    seconds: float = 12 * 3600.0
    """From the login on: a working day, so that a forgotten tab does not act next week."""
    idle_seconds: float = 2 * 3600.0
    """Without any page open or request made."""
    most: int = 1000
    """At once; the one that was not used for longest makes room."""


@dataclass(frozen=True, slots=True)
class KeyHolder:
    """Whose key a session acts with, as the loop tells it."""

    key_id: str
    name: str
    scope: str

    @property
    def may_act(self) -> bool:
        return self.scope == OPERATOR


@dataclass(slots=True)
class Session:
    """One login."""

    key: str = field(repr=False)
    holder: KeyHolder
    began: float
    used: float
    ended: bool = False


class SessionTable:
    """All logins. Times are seconds of one clock that never goes back."""

    def __init__(self, limits: LoginLimits = LoginLimits()) -> None:  # noqa: B008 - a frozen value
        self._limits = limits
        self._sessions: OrderedDict[bytes, Session] = OrderedDict()

    def __len__(self) -> int:
        return len(self._sessions)

    def open(self, token: str, key: str, holder: KeyHolder, now: float) -> Session:
        self._drop_expired(now)
        while len(self._sessions) >= self._limits.most:
            self._sessions.popitem(last=False)[1].ended = True
        session = self._sessions[_hashed(token)] = Session(key, holder, now, now)
        return session

    def find(self, token: str, now: float) -> Session | None:
        """The session of this token, which counts as used."""
        session = self._sessions.get(_hashed(token))
        if session is None or not self.is_open(session, now):
            return None
        session.used = now
        self._sessions.move_to_end(_hashed(token))
        return session

    def is_open(self, session: Session, now: float) -> bool:
        limits = self._limits
        fresh = now - session.began < limits.seconds and now - session.used < limits.idle_seconds
        return fresh and not session.ended

    def use(self, session: Session, now: float) -> bool:
        """A page of this session is open, which counts as use; False: the session is over."""
        if not self.is_open(session, now):
            session.ended = True
            return False
        session.used = now
        return True

    def close(self, token: str) -> Session | None:
        session = self._sessions.pop(_hashed(token), None)
        if session is not None:
            session.ended = True
        return session

    def _drop_expired(self, now: float) -> None:
        for name, session in list(self._sessions.items()):
            if not self.is_open(session, now):
                session.ended = True
                del self._sessions[name]


@dataclass(frozen=True, slots=True)
class AttemptLimits:
    """How often a wrong key may be tried. A key has 256 random bits; this is against noise and short keys of one's own."""

    each: int = 5
    """Wrong keys of one address in `seconds`."""
    all: int = 60
    """Wrong keys of all addresses together in `seconds`."""
    seconds: float = 60.0
    addresses: int = 10_000
    """Remembered at once."""


class LoginAttempts:
    """Wrong keys, by address."""

    def __init__(self, limits: AttemptLimits = AttemptLimits()) -> None:  # noqa: B008 - a frozen value
        self._limits = limits
        self._failed: OrderedDict[str, deque[float]] = OrderedDict()
        self._all: deque[float] = deque()

    def seconds_until_next(self, address: str, now: float) -> float:
        """0.0: another key may be tried now."""
        limits = self._limits
        own = self._failed.get(address, deque())
        waits = [
            times[-most] + limits.seconds - now
            for times, most in ((own, limits.each), (self._all, limits.all))
            if len(times) >= most
        ]
        return max(0.0, *waits, 0.0)

    def fail(self, address: str, now: float) -> None:
        """A wrong key came from there."""
        own = self._failed.pop(address, None) or deque(maxlen=self._limits.each)
        own.append(now)
        self._failed[address] = own
        while len(self._failed) > self._limits.addresses:
            self._failed.popitem(last=False)
        self._all.append(now)
        while len(self._all) > self._limits.all:
            self._all.popleft()


def _hashed(token: str) -> bytes:
    return sha256(token.encode()).digest()
