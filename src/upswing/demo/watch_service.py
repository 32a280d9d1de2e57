"""What does the loop do right now? Its rows, read as any onlooker could, become a view."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import msgspec
from msgspec.structs import replace

from upswing.adapters.sql.validations import Validations
from upswing.demo.plan import SPEED, Plan
from upswing.demo.view import (
    CanaryView,
    Earned,
    JobView,
    Line,
    ProofView,
    Stage,
    State,
    View,
)
from upswing.ports import Decision, Job
from upswing.runtime import Loop
from upswing.worlds.crowd_service import Played

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
        place = int(second / BIN_SECONDS)
        total, count = self.sums.get(place, (0.0, 0))
        self.sums[place] = (total + score, count + 1)

    def told(self, model_id: str) -> Earned:
        points = tuple(
            ((place + 1) * BIN_SECONDS, total / count)
            for place, (total, count) in sorted(self.sums.items())
        )
        count = sum(count for _, count in self.sums.values())
        mean = sum(total for total, _ in self.sums.values()) / count
        return Earned(model_id, points, mean, count)


class Watch:
    """Follows a loop; what the story does itself is told to it."""

    def __init__(
        self, loop: Loop, plan: Plan, monotonic: Callable[[], float], began: float
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
        self._looked = began

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

    def say(self, sentence: str, kind: str = "story") -> None:
        """The demo itself does something."""
        self._log.append(Line(self.second, "demo", kind, sentence))

    def begin(self, chapter: str) -> None:
        """The story goes on."""
        self.chapter = chapter
        self.say(chapter, "chapter")

    def played(self, played: Played) -> None:
        """An agent has ended an episode."""
        self._episodes += 1
        if played.model is not None:
            self.first.setdefault(played.model, self.second)
        if played.model is not None and not played.fault and not self.measuring:
            self._bins[played.model].add(self.second, played.score)

    def earned(self) -> tuple[Earned, ...]:
        return tuple(bins.told(model) for model, bins in self._bins.items())

    async def prepare(self) -> None:
        """What was decided before this start is no news."""
        self._seen = {each.decision_id for each in await self._loop.decisions.list(limit=100_000)}

    async def look(self) -> View:
        """Everything, as it stands."""
        loop = self._loop
        await self._read_decisions()
        counts = await loop.store.counts()
        jobs = await loop.jobs.list(limit=1)
        job = job_view(jobs[0]) if jobs else None
        shipping = loop.shipping
        rollouts = await shipping.controller.rollouts(1) if shipping else []
        traffic = await shipping.controller.traffic() if shipping else {}
        proof = await self._proof()
        canary = canary_view(rollouts[0]) if rollouts else None
        stages = (
            self._stage("agents", self._episodes, "episodes"),
            self._stage("collect", counts["trajectories"], "trajectories"),
            self._stage("reward", counts["rewards"], "rewards"),
            self._stage("trigger", self._decided("trigger"), "decisions"),
            Stage("train", _train_state(job), job.step if job else 0, job.doing if job else ""),
            Stage("validate", _proof_state(proof), self._decided("validate"), proof.verdict if proof else ""),
            Stage("deploy", _canary_state(canary), self._decided("deploy"), canary.state if canary else ""),
        )  # fmt: skip
        return View(
            title=_title(self._plan),
            second=self.second,
            clock=f"{loop.now():%a %H:%M}",
            speed=SPEED,
            chapter=self.chapter,
            stages=self._timed(stages),
            earned=self.earned(),
            traffic=traffic.get("traffic", {}),
            baseline=str(traffic.get("baseline", "")),
            job=job,
            proof=proof,
            canary=canary,
            log=self.log,
        )

    async def _read_decisions(self) -> None:
        new = [
            each
            for each in reversed(await self._loop.decisions.list(limit=200))
            if each.decision_id not in self._seen
        ]
        for each in new:
            self._seen.add(each.decision_id)
            if each.stage in _SHOWN and not each.kind.startswith("wait"):
                self._log.append(_line(each, self.second))

    def _decided(self, stage: str) -> int:
        return sum(line.stage == stage for line in self._log)

    def _timed(self, stages: tuple[Stage, ...]) -> tuple[Stage, ...]:
        """With the real time that those have worked which begin and end."""
        now = self._monotonic()
        since, self._looked = now - self._looked, now
        for stage in stages:
            if stage.name in _TIMED and stage.state == "working":
                self._worked[stage.name] = self._worked.get(stage.name, 0.0) + since
        return tuple(replace(stage, seconds=self._worked.get(stage.name)) for stage in stages)

    def _stage(self, name: str, count: int, note: str) -> Stage:
        return Stage(name, "working" if count else "waiting", count, note)

    async def _proof(self) -> ProofView | None:
        if self._loop.shipping is None:
            return None
        proving = self._loop.shipping.proving
        rows = await self._validations.newest(1)
        if not rows:
            return None
        row = rows[0]
        if row.report is not None:
            of = 2 * sum(suite.planned for suite in row.report.suites)  # pairs
            return ProofView(row.candidate, row.word or "", of, of, row.sentence or "")
        found = await proving.look(row.run_id)
        progress = found[1] if found else ()
        done, of = sum(p.done for p in progress), sum(p.total for p in progress)
        return ProofView(row.candidate, row.word or row.state, done, of, row.sentence or "")


def beginning(plan: Plan) -> View:
    """Before anything runs that could be looked at."""
    return View(title=_title(plan), second=0.0, clock="", speed=SPEED, chapter=STARTING)


def _title(plan: Plan) -> str:
    return f"Upswing: {plan.model} at the {plan.world}, seed {plan.seed}"


def job_view(job: Job) -> JobView:
    """A job's row, as the screen shows it."""
    told: dict[str, Any] = msgspec.to_builtins(job.status)
    progress, metrics = told.get("progress", {}), told.get("metrics", {}).get("current", {})
    about = told.get("metadata", {})
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
    """A rollout, as `GET /v1/rollouts` tells it."""
    return CanaryView(
        rollout["model_id"],
        rollout["state"],
        rollout["traffic_percentage"],
        tuple(round(share) for share in (*rollout["steps"], 100)),
        rollout.get("sentence") or "",
    )


def _line(decision: Decision, second: float) -> Line:
    return Line(second, decision.stage, decision.kind, decision.sentence, decision.decision_id)


def _train_state(job: JobView | None) -> State:
    if job is None:
        return "waiting"
    if job.status not in _ENDED:
        return "working"
    return "done" if job.status == "completed" else "refused"


def _proof_state(proof: ProofView | None) -> State:
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
