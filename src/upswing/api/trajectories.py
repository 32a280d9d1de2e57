"""What did agents do? Trajectories, listed, searched and one with all that became of it; and what users said."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from datetime import datetime
from typing import Any

import msgspec
from msgspec import Struct

from upswing.api.paging import ListQuery, PageQuery, integer_of, number_of
from upswing.api.raw_json import raw_json
from upswing.api.router import Problem, Request, Response, Route, answer
from upswing.api.scopes import READER
from upswing.contracts.trajectory import DOMAINS
from upswing.errors import Misuse
from upswing.infra.sql.database import Database
from upswing.infra.sql.trajectory_search import (
    OUTCOMES,
    FoundTrajectory,
    TrajectoryFilter,
    TrajectorySearch,
)
from upswing.infra.sql.trajectory_view import (
    MOST,
    GroupJudgement,
    TrainedWith,
    TrajectoryFeedback,
    TrajectoryReader,
    TrajectoryStory,
)
from upswing.records import INTAKE_ROUTES
from upswing.redact import Redactor
from upswing.redact.identity import redact_identity

MOST_BODY = 2 * 1024 * 1024
"""Bytes of a trajectory that a view holds; a larger one is told by its own endpoint."""
_ID = {"type": "string", "minLength": 1, "maxLength": 200, "pattern": "^[^/]+$"}
_NAME = {"type": "string", "maxLength": 200}
_TRAJECTORIES = ListQuery(
    "trajectories",
    {
        **dict.fromkeys(("model", "agent", "user", "task"), _NAME),
        "domain": {"enum": sorted(DOMAINS)},
        "door": {"enum": list(INTAKE_ROUTES)},
        "outcome": {"enum": list(OUTCOMES)},
        "min_reward": {"type": "number"},
        "max_reward": {"type": "number"},
        "min_turns": {"type": "integer", "minimum": 1, "maximum": 1_000_000},
        "evaluation": {"enum": ["true", "false"]},
        "text": {"type": "string", "minLength": 2, "maxLength": 200},
    },
)
_FEEDBACK = ListQuery("feedback", {"trajectory": _NAME, "user": _NAME})


class TrajectoryItem(Struct, frozen=True):
    """A trajectory in a list."""

    trajectory_id: str
    stored: datetime
    started: datetime
    ended: datetime
    agent_id: str
    agent_type: str
    user_id: str | None
    model: str
    domain: str
    task_id: str
    door: str
    """How it came in: `http`, `sdk`, `nats`, `gateway`, …"""
    turns: int
    evaluation: bool
    practice: bool
    infra_error: bool
    outcome: str
    """`success`, `partial`, `failure` or `unknown`."""
    outcome_source: str | None
    """`verified` or `reported`; None: nobody says how it went."""
    reward: float | None
    """The raw total; None until it is scored."""
    total: float | None
    """Normalised."""
    revision: int | None
    feedback: float | None
    judge: float | None
    excerpt: str | None = None
    """What stands around the text that was looked for."""


class TrajectoryList(Struct, frozen=True):
    trajectories: list[TrajectoryItem]
    next: str | None
    """The cursor of the next page; a page may be short, or empty, and have one."""
    scanned: int
    """Rows that were looked at for this page."""


class FeedbackItem(Struct, frozen=True):
    """What somebody said."""

    feedback_id: str
    trajectory_id: str | None
    episode_id: str | None
    stored: datetime
    user_id: str | None
    principal: str
    """Whose key it came with."""
    type: str
    rating: int | None
    comment: str | None
    source: str | None


class FeedbackList(Struct, frozen=True):
    feedback: list[FeedbackItem]
    next: str | None


class RevisedReward(Struct, frozen=True):
    """A revision of a reward."""

    revision: int
    created: datetime
    reward: msgspec.Raw
    """reward.v1."""


class TrajectoryView(Struct, frozen=True):
    """One trajectory, and what became of it."""

    summary: TrajectoryItem
    trajectory: msgspec.Raw
    """trajectory.v1; null where it is very large: then its own endpoint has it."""
    trajectory_bytes: int
    rewards: list[RevisedReward]
    """The oldest first."""
    feedback: list[FeedbackItem]
    judgement: GroupJudgement | None
    window_id: str
    scenario_id: str
    episode_id: str | None
    used_in: list[TrainedWith]
    pinned: bool | None
    """Whether it is a task of the suite `regression`; None: nothing is validated here."""
    truncated: bool
    """There are more revisions, words or jobs than are shown."""


class TrajectoryRoutes:
    """The handlers."""

    def __init__(
        self,
        database: Database,
        redactor: Redactor,
        *,
        clock: Callable[[], datetime],
        is_pinned: Callable[[str], Awaitable[bool]] | None = None,
    ) -> None:
        self._search, self._reader = TrajectorySearch(database), TrajectoryReader(database)
        self._redactor, self._clock, self._is_pinned = redactor, clock, is_pinned

    def routes(self) -> list[Route]:
        wrong = {422: ("A filter is wrong, or is none.", Problem)}
        return [
            Route(
                "GET",
                "/v1/trajectories",
                "Trajectories, the newest first, by time, model, agent, user, domain, outcome, reward or text.",
                self.trajectories,
                READER,
                query=_TRAJECTORIES.schema,
                answers={200: ("A page of them.", TrajectoryList), **wrong},
            ),
            Route(
                "GET",
                "/v1/trajectories/{trajectory_id}/view",
                "A trajectory with its rewards, what was said of it and what was trained on it.",
                self.trajectory_view,
                READER,
                params={"trajectory_id": _ID},
                answers={200: ("All of it.", TrajectoryView), 404: ("There is none.", Problem)},
            ),
            Route(
                "GET",
                "/v1/feedback",
                "What users said, the newest first.",
                self.feedback,
                READER,
                query=_FEEDBACK.schema,
                answers={200: ("A page of it.", FeedbackList), **wrong},
            ),
        ]

    async def trajectories(self, request: Request) -> Response:
        page = _TRAJECTORIES.read(request, self._clock)
        found = await self._search.page(self._filter(page), before=page.before, limit=page.limit)
        items = [trajectory_item(each) for each in found.found]
        return answer(200, TrajectoryList(items, page.cursor(found.position), found.scanned))

    def _filter(self, page: PageQuery) -> TrajectoryFilter:
        said = page.filters
        text = said.get("text")
        evaluation = said.get("evaluation")
        turns = said.get("min_turns")
        return TrajectoryFilter(
            since=page.since,
            until=page.until,
            **{name: said.get(name) for name in ("model", "agent", "domain", "task", "door")},
            user=self._user(said.get("user")),
            outcome=said.get("outcome"),
            min_reward=number_of(said, "min_reward"),
            max_reward=number_of(said, "max_reward"),
            min_turns=integer_of(said, "min_turns", 1, 1, 1_000_000) if turns else None,
            evaluation=None if evaluation is None else evaluation == "true",
            text=text,
        )

    def _user(self, named: str | None) -> str | None:
        """An e-mail address, say, is known by its pseudonym."""
        return None if named is None else redact_identity(self._redactor, "user", named)

    async def trajectory_view(self, request: Request) -> Response:
        name = request.params["trajectory_id"]
        found = await self._reader.story(name)
        if found is None:
            raise Misuse("No trajectory with this id is stored.")
        pinned = await self._is_pinned(name) if self._is_pinned else None
        return answer(200, _view(*found, pinned=pinned))

    async def feedback(self, request: Request) -> Response:
        page = _FEEDBACK.read(request, self._clock)
        said = page.filters
        user = self._user(said.get("user"))
        wanted = page.wanted(trajectory_id=said.get("trajectory"), user_id=user)
        found, position = await self._reader.feedback(wanted)
        items = [feedback_item(each) for each in found]
        return answer(200, FeedbackList(items, page.cursor(position)))


def trajectory_item(found: FoundTrajectory) -> TrajectoryItem:
    """A trajectory as it is shown."""
    source = "verified" if found.verified is not None else "reported"
    return TrajectoryItem(
        **{
            name: getattr(found, name)
            for name in TrajectoryItem.__struct_fields__
            if name != "outcome_source"
        },
        outcome_source=None if found.outcome == "unknown" else source,
    )


def feedback_item(word: TrajectoryFeedback) -> FeedbackItem:
    """A word as it is shown."""
    said = word.body
    rating, comment, source = said.get("rating"), said.get("comment"), said.get("source")
    return FeedbackItem(
        word.feedback_id,
        word.trajectory_id,
        word.episode_id,
        word.stored,
        word.user_id,
        word.principal,
        str(said.get("type", "")),
        rating if isinstance(rating, int) else None,
        comment if isinstance(comment, str) else None,
        source if isinstance(source, str) else None,
    )


def _view(
    summary: FoundTrajectory, story: TrajectoryStory, *, pinned: bool | None
) -> TrajectoryView:
    large = len(story.body) > MOST_BODY
    lists: tuple[list[Any], ...] = (story.rewards, story.feedback, story.used_in)
    return TrajectoryView(
        trajectory_item(summary),
        raw_json(None if large else story.body),
        len(story.body),
        [RevisedReward(each.revision, each.created, raw_json(each.body)) for each in story.rewards],
        [feedback_item(each) for each in story.feedback],
        story.judgement,
        summary.window_id,
        summary.scenario_id,
        summary.episode_id,
        story.used_in,
        pinned,
        any(len(each) >= MOST for each in lists),
    )
