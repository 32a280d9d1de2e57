"""What does the loop do right now? Its rows, read as any onlooker could, become a view."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import msgspec
from msgspec.structs import replace

from upswing.app.loop import Loop
from upswing.demo.plan import SPEED, DemoPlan
from upswing.demo.view import (
    CanaryView,
    JobView,
    Line,
    ModelScores,
    Stage,
    State,
    ValidationView,
    View,
)
from upswing.records import Decision, Job
from upswing.validate.repository import Validations
from upswing.worlds.agent_episodes import EpisodeResult

BIN_SECONDS = 2.0
"""Scores of so many seconds become one point of the chart."""
STARTING = "Everything starts."
_ENDED = ("completed", "failed", "cancelled")
_TIMED = frozenset({"train", "validate", "deploy"})
_SHOWN = frozenset({"trigger", "train", "validate", "deploy"})


@dataclass(slots=True)
class _Bins:
    """Scores of one model, by time."""

    sums: dict[int, tuple[float, int]] = field(default_factory=dict)

    def add(self, second: float, score: float) -> None:
        index = int(second / BIN_SECONDS)
        total, count = self.sums.get(index, (0.0, 0))
        self.sums[index] = (total + score, count + 1)

    def scores(self, model_id: str) -> ModelScores:
        points = tuple(
            ((index + 1) * BIN_SECONDS, total / count)
            for index, (total, count) in sorted(self.sums.items())
        )
        count = sum(count for _, count in self.sums.values())
        mean = sum(total for total, _ in self.sums.values()) / count
        return ModelScores(model_id, points, mean, count)


class Watch:
    """Follows a loop; the story reports what it does itself."""

    def __init__(
        self, loop: Loop, plan: DemoPlan, monotonic: Callable[[], float], began: float
    ) -> None:
        """`began` is when the demo did, by the same clock."""
        self._loop, self._plan, self._monotonic = loop, plan, monotonic
        self._began = began
        self._validations = Validations(loop.store.database)
        self._bins: dict[str, _Bins] = defaultdict(_Bins)
        self._seen: set[str] = set()
        self._log: list[Line] = []
        self._episodes = 0
        self.chapter = STARTING
        self.first: dict[str, float] = {}
        """Model → the second of its first episode's end."""
        self.measuring = False
        """While held-out tasks are done, which are no work."""
        self._worked: dict[str, float] = {}
        self._viewed = began

    @property
    def second(self) -> float:
        """Since the demo began."""
        return self._monotonic() - self._began

    @property
    def log(self) -> tuple[Line, ...]:
        return tuple(self._log)

    @property
    def episodes(self) -> int:
        return self._episodes

    def log_event(self, sentence: str, kind: str = "story") -> None:
        """The demo itself does something."""
        self._log.append(Line(self.second, "demo", kind, sentence))

    def begin(self, chapter: str) -> None:
        """The story goes on."""
        self.chapter = chapter
        self.log_event(chapter, "chapter")

    def add_result(self, result: EpisodeResult) -> None:
        """An agent has ended an episode."""
        self._episodes += 1
        if result.model is not None:
            self.first.setdefault(result.model, self.second)
        if result.model is not None and not result.fault and not self.measuring:
            self._bins[result.model].add(self.second, result.score)

    def earned(self) -> tuple[ModelScores, ...]:
        return tuple(bins.scores(model) for model, bins in self._bins.items())

    async def prepare(self) -> None:
        """What was decided before this start is not shown."""
        self._seen = {each.decision_id for each in await self._loop.decisions.list(limit=100_000)}

    async def view(self) -> View:
        """Everything, as it is now."""
        loop = self._loop
        await self._read_new_decisions()
        counts = await loop.store.counts()
        jobs = await loop.jobs.list(limit=1)
        job = job_view(jobs[0]) if jobs else None
        delivery = loop.delivery
        rollouts = await delivery.controller.rollouts(1) if delivery else []
        traffic = await delivery.controller.traffic() if delivery else {}
        proof = await self._validation_view()
        canary = canary_view(rollouts[0]) if rollouts else None
        stages = (
            self._stage_view("agents", self._episodes, "episodes"),
            self._stage_view("collect", counts["trajectories"], "trajectories"),
            self._stage_view("reward", counts["rewards"], "rewards"),
            self._stage_view("trigger", self._count_decisions("trigger"), "decisions"),
            Stage("train", _train_state(job), job.step if job else 0, job.doing if job else ""),
            Stage(
                "validate",
                _validation_state(proof),
                self._count_decisions("validate"),
                proof.verdict if proof else "",
            ),
            Stage(
                "deploy",
                _canary_state(canary),
                self._count_decisions("deploy"),
                canary.state if canary else "",
            ),
        )
        return View(
            title=_demo_title(self._plan),
            second=self.second,
            clock=f"{loop.now():%a %H:%M}",
            speed=SPEED,
            chapter=self.chapter,
            stages=self._with_seconds(stages),
            earned=self.earned(),
            traffic=traffic.get("traffic", {}),
            baseline=str(traffic.get("baseline", "")),
            page=loop.dashboard_url or "",
            job=job,
            proof=proof,
            canary=canary,
            log=self.log,
        )

    async def _read_new_decisions(self) -> None:
        new = [
            each
            for each in reversed(await self._loop.decisions.list(limit=200))
            if each.decision_id not in self._seen
        ]
        for each in new:
            self._seen.add(each.decision_id)
            if each.stage in _SHOWN and not each.kind.startswith("wait"):
                self._log.append(_decision_line(each, self.second))

    def _count_decisions(self, stage: str) -> int:
        return sum(line.stage == stage for line in self._log)

    def _with_seconds(self, stages: tuple[Stage, ...]) -> tuple[Stage, ...]:
        """With the real time that those have worked which begin and end."""
        now = self._monotonic()
        since, self._viewed = now - self._viewed, now
        for stage in stages:
            if stage.name in _TIMED and stage.state == "working":
                self._worked[stage.name] = self._worked.get(stage.name, 0.0) + since
        return tuple(replace(stage, seconds=self._worked.get(stage.name)) for stage in stages)

    def _stage_view(self, name: str, count: int, note: str) -> Stage:
        return Stage(name, "working" if count else "waiting", count, note)

    async def _validation_view(self) -> ValidationView | None:
        if self._loop.delivery is None:
            return None
        validation = self._loop.delivery.validation
        rows = await self._validations.newest(1)
        if not rows:
            return None
        row = rows[0]
        if row.report is not None:
            of = 2 * sum(suite.planned for suite in row.report.suites)  # pairs
            return ValidationView(row.candidate, row.verdict or "", of, of, row.sentence or "")
        found = await validation.status(row.run_id)
        progress = found[1] if found else ()
        done, of = sum(p.done for p in progress), sum(p.total for p in progress)
        return ValidationView(row.candidate, row.verdict or row.state, done, of, row.sentence or "")


def first_view(plan: DemoPlan) -> View:
    """Before anything runs that could be looked at."""
    return View(title=_demo_title(plan), second=0.0, clock="", speed=SPEED, chapter=STARTING)


def _demo_title(plan: DemoPlan) -> str:
    return f"Upswing: {plan.model} at the {plan.world}, seed {plan.seed}"


def job_view(job: Job) -> JobView:
    """A job's row, as the screen shows it."""
    status: dict[str, Any] = msgspec.to_builtins(job.status)
    progress, metrics = status.get("progress", {}), status.get("metrics", {}).get("current", {})
    about = status.get("metadata", {})
    return JobView(
        job.job_id,
        job.state,
        100.0 if job.state == "completed" else progress.get("percent_complete", 0.0),
        progress.get("current_step", 0),
        progress.get("total_steps", 0),
        metrics.get("loss"),
        metrics.get("reward_mean"),
        str(about.get("recovery") or about.get("note") or about.get("doing") or job.state),
    )


def canary_view(rollout: dict[str, Any]) -> CanaryView:
    """A rollout, as `GET /v1/rollouts` shows it."""
    return CanaryView(
        rollout["model_id"],
        rollout["state"],
        rollout["traffic_percentage"],
        tuple(round(share) for share in (*rollout["steps"], 100)),
        rollout.get("sentence") or "",
    )


def _decision_line(decision: Decision, second: float) -> Line:
    return Line(second, decision.stage, decision.kind, decision.sentence, decision.decision_id)


def _train_state(job: JobView | None) -> State:
    if job is None:
        return "waiting"
    if job.status not in _ENDED:
        return "working"
    return "done" if job.status == "completed" else "refused"


def _validation_state(proof: ValidationView | None) -> State:
    if proof is None:
        return "waiting"
    if proof.verdict == "running":
        return "working"
    return "done" if proof.verdict == "pass" else "refused"


def _canary_state(canary: CanaryView | None) -> State:
    if canary is None:
        return "waiting"
    if canary.state in {"promoted", "succeeded"}:
        return "done"
    return "refused" if canary.state in {"rolled_back", "cancelled", "replaced"} else "working"
