"""Which models are there, what did they come from, and how were they found? Lists, lineage and cards."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Sequence
from datetime import datetime
from typing import Any

from msgspec import Struct

from upswing.api.decisions import DecisionItem, decision_item
from upswing.api.paging import ListQuery
from upswing.api.router import Problem, Request, Response, Route, answer
from upswing.api.scopes import READER
from upswing.api.training_types import JobInfo, job_info
from upswing.deploy.core.states import ModelState
from upswing.errors import Misuse
from upswing.infra.sql.decisions import Decisions
from upswing.infra.sql.models import Models
from upswing.infra.sql.paging import PageWanted
from upswing.records import ModelRow
from upswing.train.jobs.repository import JobRepository
from upswing.validate.repository import ValidationRow, Validations

_MODEL = {"type": "string", "pattern": r"^[A-Za-z0-9][A-Za-z0-9._:\-]{0,199}$"}
_NAME = {"type": "string", "maxLength": 200}
_MODELS = ListQuery("models", {"state": {"enum": [*map(str, ModelState)]}})
_STATES, _VERDICTS = ("running", "done", "failed"), ("pass", "fail", "inconclusive")
_VALIDATIONS = ListQuery(
    "validations",
    {"model": _NAME, "state": {"enum": list(_STATES)}, "verdict": {"enum": list(_VERDICTS)}},
)
_NEWEST = 20
"""Validations and decisions that are told of one model."""
_NODES = 500
"""Of the lineage's drawing."""


class RecentReward(Struct, frozen=True):
    """The mean of a model's newest raw rewards."""

    mean: float
    count: int
    """Of how many, 200 at most."""


class ModelItem(Struct, frozen=True):
    """A model in a list."""

    model_id: str
    version: int
    job_id: str
    base_model: str
    parent: str | None
    """The model that training started from; None: the base."""
    state: str
    samples: int
    final_reward: float | None
    baseline_reward: float | None
    created: datetime
    deployed: datetime | None
    reward: RecentReward | None
    """None: nothing of it is scored."""


class ModelPage(Struct, frozen=True):
    models: list[ModelItem]
    next: str | None


class ValidationItem(Struct, frozen=True):
    """A validation in a list."""

    validation_id: str
    model_id: str
    against: str
    suites: tuple[str, ...]
    state: str
    word: str | None
    """`pass`, `fail` or `inconclusive`, when it is done."""
    sentence: str | None
    improvement: float | None
    started: datetime
    ended: datetime | None
    decision_id: str | None


class ValidationPage(Struct, frozen=True):
    validations: list[ValidationItem]
    next: str | None


class CardView(Struct, frozen=True):
    """What training wrote of a model."""

    text: str | None
    """Markdown; None where it cannot be had."""
    path: str


class ModelDetail(Struct, frozen=True):
    """A model, and all that is known of it."""

    model: ModelItem
    lineage: list[ModelItem]
    """Itself first, then what it began as."""
    children: list[str]
    card: CardView
    job: JobInfo | None
    validations: list[ValidationItem]
    decisions: list[DecisionItem]


class LineageNode(Struct, frozen=True):
    """A model in the drawing of who began as whom; a base has no state of its own."""

    model_id: str
    parent: str | None
    base_model: str
    state: str
    created: datetime | None
    deployed: datetime | None
    reward: RecentReward | None


class Lineage(Struct, frozen=True):
    nodes: list[LineageNode]
    truncated: bool


ReadCard = Callable[[str], Awaitable[str | None]]
"""Where a card lies → its text."""


class ModelRoutes:
    """The handlers."""

    def __init__(
        self,
        models: Models,
        jobs: JobRepository,
        validations: Validations,
        decisions: Decisions,
        *,
        read_card: ReadCard,
        clock: Callable[[], datetime],
    ) -> None:
        self._models, self._jobs, self._validations = models, jobs, validations
        self._decisions, self._read_card, self._clock = decisions, read_card, clock

    def routes(self) -> list[Route]:
        wrong = {422: ("A filter is wrong, or is none.", Problem)}
        return [
            Route(
                "GET",
                "/v1/models",
                "Models that training made or that were registered, the newest first.",
                self.models,
                READER,
                query=_MODELS.schema,
                answers={200: ("A page of them.", ModelPage), **wrong},
            ),
            Route(
                "GET",
                "/v1/models/{model_id}",
                "A model with its lineage, its card and its validations.",
                self.model,
                READER,
                params={"model_id": _MODEL},
                answers={200: ("It.", ModelDetail), 404: ("There is no such model.", Problem)},
            ),
            Route(
                "GET",
                "/v1/lineage",
                "Which model began as which.",
                self.lineage,
                READER,
                answers={200: ("The newest of them, and their bases.", Lineage)},
            ),
            Route(
                "GET",
                "/v1/validations",
                "Validations, the newest first, without their reports.",
                self.validations,
                READER,
                query=_VALIDATIONS.schema,
                answers={200: ("A page of them.", ValidationPage), **wrong},
            ),
        ]

    async def models(self, request: Request) -> Response:
        page = _MODELS.read(request, self._clock)
        found, position = await self._models.page(page.wanted(state=page.filters.get("state")))
        return answer(200, ModelPage(await self._items(found), page.cursor(position)))

    async def model(self, request: Request) -> Response:
        name = request.params["model_id"]
        line, children = await self._models.family(name)
        if not line or line[0].model_id != name:
            raise Misuse(f"There is no model {name}; `upswing models` lists them.")
        items = await self._items(line)
        job = await self._jobs.get(line[0].job_id)
        about = {"candidate": name}
        validations, _ = await self._validations.page(PageWanted(_NEWEST, equal=about))
        decisions, _ = await self._decisions.page(PageWanted(_NEWEST, equal={"about": name}))
        detail = ModelDetail(
            items[0],
            items,
            list(children),
            CardView(await self._read_card(line[0].card), line[0].card),
            job_info(job) if job else None,
            [validation_item(each) for each in validations],
            [decision_item(each) for each in decisions],
        )
        return answer(200, detail)

    async def lineage(self, _: Request) -> Response:
        found, more = await self._models.page(PageWanted(_NODES))
        items = await self._items(found)
        bases = sorted({each.base_model for each in items} - {each.model_id for each in items})
        rewards = await self._models.recent_rewards(bases)
        nodes = [LineageNode(*(_node_values(each))) for each in items]
        nodes += [
            LineageNode(name, None, name, "base", None, None, _reward(rewards.get(name)))
            for name in bases
        ]
        return answer(200, Lineage(nodes, more is not None))

    async def validations(self, request: Request) -> Response:
        page = _VALIDATIONS.read(request, self._clock)
        said = page.filters
        wanted = page.wanted(
            candidate=said.get("model"),
            state=said.get("state"),
            word=said.get("verdict"),
        )
        found, position = await self._validations.page(wanted)
        items = [validation_item(each) for each in found]
        return answer(200, ValidationPage(items, page.cursor(position)))

    async def _items(self, rows: Sequence[ModelRow]) -> list[ModelItem]:
        rewards = await self._models.recent_rewards(row.model_id for row in rows)
        return [model_item(row, rewards.get(row.model_id)) for row in rows]


def model_item(row: ModelRow, reward: tuple[float, int] | None) -> ModelItem:
    """A model as it is shown."""
    return ModelItem(
        row.model_id,
        row.version,
        row.job_id,
        row.base_model,
        row.parent,
        row.state,
        row.samples,
        row.final_reward,
        row.baseline_reward,
        row.created,
        row.deployed,
        _reward(reward),
    )


def validation_item(row: ValidationRow) -> ValidationItem:
    """A validation as it is shown in a list."""
    return ValidationItem(
        row.run_id,
        row.candidate,
        row.against,
        row.suites,
        row.state,
        row.verdict,
        row.sentence,
        row.improvement,
        row.started,
        row.ended,
        row.decision_id,
    )


def _reward(found: tuple[float, int] | None) -> RecentReward | None:
    return None if found is None else RecentReward(*found)


def _node_values(item: ModelItem) -> Iterable[Any]:
    parent = item.parent or (item.base_model if item.base_model != item.model_id else None)
    return (
        item.model_id,
        parent,
        item.base_model,
        item.state,
        item.created,
        item.deployed,
        item.reward,
    )
