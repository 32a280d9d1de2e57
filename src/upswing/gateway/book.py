"""Which episodes are open, who answers each, and what has been heard of them?

The book is bounded three ways: episodes that nobody continues end, the one unused for longest ends
when there are too many, and beyond a number of bytes nothing more is kept (the episode then has a
gap and is not recorded, while its model stays the same).
"""

from __future__ import annotations

import re
from collections import OrderedDict
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from upswing.gateway.episodes import Sign, Source, goes_on
from upswing.gateway.plan import Model
from upswing.gateway.route import Choice, Table

_ACTS = re.compile(rb'"tool_calls"\s*:\s*\[\s*\{|"function_call"\s*:\s*\{')
MOST_CLONES = 64
"""Open episodes of one session, user or beginning; beyond it the oldest ends."""


@dataclass(slots=True)
class Heard:
    """One request and its answer, as they were heard."""

    at: float
    ms: float
    body: bytes
    messages: bytes
    answer: list[bytes]
    stream: bool
    model: Model
    inference_id: str
    size: int = 0
    """Bytes of the request's messages, once a later request holds them."""


@dataclass(slots=True)
class Chain:
    """Requests of which each goes on from the one before: only the last one's body is needed."""

    heard: list[Heard] = field(default_factory=list)

    def takes(self, messages: bytes) -> bool:
        return goes_on(messages, self.heard[-1].messages)

    def add(self, heard: Heard) -> int:
        """How many bytes more are held now."""
        more = len(heard.body) + sum(map(len, heard.answer))
        if self.heard:
            before = self.heard[-1]
            more -= len(before.body)
            before.size, before.body, before.messages = len(before.messages), b"", b""
        heard.size = len(heard.messages)
        self.heard.append(heard)
        return more


@dataclass(slots=True, eq=False)
class Episode:
    """An open episode."""

    principal: str
    source: Source
    line: str
    """What its like are found by."""
    episode_id: str
    trajectory_id: str
    opened: float
    used: float
    agent_id: str
    session_id: str
    user_id: str | None
    task_id: str | None
    about: dict[str, Any]
    model_id: str = ""
    candidate: bool = False
    rollout: str = ""
    named: bool = False
    withdrawn: str = ""
    """A model that was asked for, or had this episode, and answers nobody any more."""
    chosen: str = ""
    """The model of its first request, whose evidence it is."""
    step: str = ""
    """The shares when chance chose; empty where it did not."""
    switch: str = ""
    """The switch because of which its model answers; empty: chance chose by the plan's shares."""
    by_user: bool = False
    """Chance chose for the user, not for this episode."""
    sign: Sign | None = None
    """What its first request was recognised by."""
    pin: str = ""
    """What other gateways know its conversation by."""
    alike: bool = False
    """Another conversation opened just so and got another model: this one is known by its first answer."""
    earlier: tuple[str, ...] = ()
    """What they may know it by from before."""
    models: list[str] = field(default_factory=list)
    chains: list[Chain] = field(default_factory=list)
    failed: bytes = b""
    """The messages of a request that got no answer: the same again is a second try."""
    cancelled: bool = False
    """Its client hung up on its last request."""
    failures: int = 0
    erred: bool = False
    """An error of its model is in the evidence: it has one voice there, however often it asks."""
    fared_well: bool = False
    """An answer of its model is in the evidence, once for the same reason."""
    flights: int = 0
    inferences: int = 0
    size: int = 0
    gap: bool = False
    """Something was heard and not kept."""
    ended: bool = False
    outcome: Any = None
    temperature: float | None = None
    """What it explores at; None: as its client wants it."""
    probe: bool = False
    """Somebody only wants to know whether an answer comes: nothing of it is kept or counted."""
    seat: tuple[Table, Choice] | None = None
    """Who answers while this table holds."""

    def takes(self, messages: bytes) -> bool:
        """Is a request with these messages the next of this episode?"""
        if self.failed and messages == self.failed:
            return True
        return bool(self.chains) and any(chain.takes(messages) for chain in self.chains)

    def acts(self) -> bool:
        """Does its last answer call a tool, so that the agent will come back with the result?"""
        last = max((c.heard[-1] for c in self.chains), key=lambda h: h.at, default=None)
        return last is not None and _ACTS.search(b"".join(last.answer)) is not None

    def said_in(self, messages: bytes) -> bool:
        """Do these messages quote the last answer? Tells apart those that began alike."""
        heard = self.chains[-1].heard[-1]
        quoted = re.findall(rb'"(?:content|id)"\s*:\s*"((?:[^"\\]|\\.)+)"', b"".join(heard.answer))
        return any(text in messages[heard.size :] for text in quoted if text)


class Book:
    """The open episodes."""

    def __init__(self, *, most: int, most_bytes: int, idle: float) -> None:
        self._most, self._most_bytes, self._idle = most, most_bytes, idle
        self._open: OrderedDict[str, Episode] = OrderedDict()
        """By principal and id, the one unused for longest first."""
        self._lines: dict[str, list[Episode]] = {}
        self._trajectories: dict[str, Episode] = {}
        self.size = 0
        self.gaps = 0

    def __len__(self) -> int:
        return len(self._open)

    def get(self, principal: str, episode_id: str) -> Episode | None:
        return self._open.get(f"{principal}\0{episode_id}")

    def of_trajectory(self, trajectory_id: str) -> Episode | None:
        return self._trajectories.get(trajectory_id)

    def find(self, principal: str, sign: Sign, messages: bytes) -> Episode | None:
        """The open episode that this request belongs to."""
        if sign.source is Source.GIVEN:
            return self._open.get(f"{principal}\0{sign.name}")
        line = self._lines.get(line_of(principal, sign), ())
        found = [episode for episode in line if episode.takes(messages)]
        if len(found) > 1:
            quoted = [e for e in found if e.chains and e.said_in(messages)]
            found = quoted or found
        return found[-1] if found else None

    def open(self, episode: Episode) -> None:
        self._open[f"{episode.principal}\0{episode.episode_id}"] = episode
        self._trajectories[episode.trajectory_id] = episode
        if episode.source is not Source.GIVEN:
            self._lines.setdefault(episode.line, []).append(episode)

    def touch(self, episode: Episode, now: float) -> None:
        episode.used = now
        self._open.move_to_end(f"{episode.principal}\0{episode.episode_id}")

    def add(self, episode: Episode, heard: Heard) -> None:
        """Keep an answered request."""
        if episode.ended:
            self.gaps += 1
            return
        episode.failed, episode.cancelled = b"", False
        name = heard.model.model_id
        if name not in episode.models:
            episode.models.append(name)
        if episode.gap:
            return
        if self.size > self._most_bytes:
            episode.gap, self.gaps = True, self.gaps + 1
            self._forget_bytes(episode)
            return
        chain = next((c for c in reversed(episode.chains) if c.takes(heard.messages)), None)
        if chain is None:
            chain = Chain()
            episode.chains.append(chain)
        more = chain.add(heard)
        episode.size += more
        self.size += more

    def remove(self, episode: Episode) -> None:
        """Take it out of the book; what was heard of it is the caller's now."""
        self._open.pop(f"{episode.principal}\0{episode.episode_id}", None)
        self._trajectories.pop(episode.trajectory_id, None)
        if line := self._lines.get(episode.line):
            if episode in line:
                line.remove(episode)
            if not line:
                del self._lines[episode.line]
        self.size -= episode.size
        episode.size = 0
        episode.ended = True

    def ending(self, now: float) -> Iterator[tuple[Episode, str]]:
        """Episodes that have to end, and why; the caller removes each before it asks on."""
        for _ in range(len(self._open)):
            episode = next(iter(self._open.values()))
            if episode.flights:
                self.touch(episode, now)
            elif episode.used + self._idle <= now:
                yield episode, "idle"
            elif len(self._open) > self._most:
                yield episode, "room"
            else:
                return

    def followed(self, line: str, source: Source) -> list[Episode]:
        """Episodes that end because another begins beside them.

        A session's or a user's next conversation ends the one before, unless that one waits for a
        tool: then the new one is probably the tool's own.
        """
        beside = self._lines.get(line, [])
        if source in {Source.SESSION, Source.USER}:
            ended = [e for e in beside if not e.flights and e.chains and not e.acts()]
        else:
            ended = []
        crowd = [e for e in beside if e not in ended and not e.flights]
        return ended + crowd[: max(0, len(beside) - len(ended) - MOST_CLONES + 1)]

    def all(self) -> list[Episode]:
        return list(self._open.values())

    def _forget_bytes(self, episode: Episode) -> None:
        self.size -= episode.size
        episode.size = 0
        episode.chains.clear()


def line_of(principal: str, sign: Sign) -> str:
    """What episodes of the same session, user or beginning have in common."""
    return f"{principal}\0{sign.source}\0{sign.name}"
