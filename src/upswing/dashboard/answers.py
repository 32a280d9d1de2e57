"""What does the loop's API answer, as far as the page shows it?

Everything has a default: a loop of another version may leave a field out, and what it adds is ignored.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any

import msgspec

Tree = dict[str, Any]


class Answer(msgspec.Struct, frozen=True):
    """The base of all answers."""


class ApiWhoami(Answer, frozen=True):
    key_id: str
    name: str
    scope: str
    trusted: bool = False


class ApiDecision(Answer, frozen=True):
    """A decision of the loop; the last three only where one was asked for by its id."""

    decision_id: str = ""
    decided: datetime | None = None
    stage: str = ""
    kind: str = ""
    sentence: str = ""
    model_id: str | None = None
    job_id: str | None = None
    inputs: Tree = {}
    outcome: Tree = {}
    today: Tree | None = None


class ApiDecisions(Answer, frozen=True):
    decisions: list[ApiDecision] = []
    next: str | None = None


class ApiTrajectory(Answer, frozen=True):
    """One row of the list."""

    trajectory_id: str = ""
    stored: datetime | None = None
    started: datetime | None = None
    ended: datetime | None = None
    agent_id: str = ""
    agent_type: str | None = None
    user_id: str | None = None
    model: str = ""
    domain: str | None = None
    task_id: str | None = None
    door: str | None = None
    turns: int = 0
    evaluation: bool = False
    practice: bool = False
    infra_error: Any = None
    outcome: str = "unknown"
    outcome_source: str | None = None
    reward: float | None = None
    total: float | None = None
    revision: int | None = None
    feedback: float | None = None
    judge: float | None = None
    excerpt: str | None = None


class ApiTrajectories(Answer, frozen=True):
    trajectories: list[ApiTrajectory] = []
    next: str | None = None
    scanned: int = 0


class ApiRevision(Answer, frozen=True):
    """One revision of a reward, as reward.v1."""

    revision: int = 0
    created: datetime | None = None
    reward: Tree = {}


class ApiFeedback(Answer, frozen=True):
    feedback_id: str = ""
    trajectory_id: str | None = None
    stored: datetime | None = None
    user_id: str | None = None
    principal: str | None = None
    type: str = ""
    rating: int | None = None
    comment: str | None = None
    source: str | None = None


class ApiUse(Answer, frozen=True):
    """A job that learned from a trajectory."""

    job_id: str = ""
    revision: int | None = None
    model_id: str | None = None
    model_state: str | None = None
    created: datetime | None = None


class ApiTrajectoryView(Answer, frozen=True):
    summary: ApiTrajectory = ApiTrajectory()
    trajectory: Tree | None = None
    trajectory_bytes: int | None = None
    rewards: list[ApiRevision] = []
    feedback: list[ApiFeedback] = []
    judgement: Tree | None = None
    window_id: str | None = None
    scenario_id: str | None = None
    episode_id: str | None = None
    used_in: list[ApiUse] = []
    pinned: bool | None = None
    truncated: bool = False


class ApiRewardPoint(Answer, frozen=True):
    at: datetime
    mean: float | None = None
    count: int = 0
    lower: float | None = None
    upper: float | None = None


class ApiRewardLine(Answer, frozen=True):
    model: str
    points: list[ApiRewardPoint] = []


class ApiMark(Answer, frozen=True):
    """Something that happened: a training, a canary, a promotion, a rollback."""

    at: datetime
    kind: str = ""
    model_id: str | None = None
    sentence: str = ""
    decision_id: str | None = None


class ApiRewardSeries(Answer, frozen=True):
    since: datetime | None = None
    until: datetime | None = None
    series: list[ApiRewardLine] = []
    marks: list[ApiMark] = []
    bucket_seconds: float = 0.0


class ApiObserved(Answer, frozen=True):
    at: datetime
    counts: dict[str, int] = {}


class ApiPlanned(Answer, frozen=True):
    at: datetime
    shares: dict[str, float] = {}


class ApiTrafficSeries(Answer, frozen=True):
    since: datetime | None = None
    until: datetime | None = None
    observed: list[ApiObserved] = []
    planned: list[ApiPlanned] = []
    bucket_seconds: float = 0.0


class ApiEvidence(Answer, frozen=True):
    at: datetime
    share: float | None = None
    rewards: int = 0
    difference: float | None = None
    lower: float | None = None
    upper: float | None = None
    errors: int | None = None
    requests: int | None = None


class ApiRollout(Answer, frozen=True):
    rollout_id: str = ""
    model_id: str = ""
    baseline_id: str = ""
    validation_id: str = ""
    strategy: str = ""
    state: str = ""
    traffic_percentage: float = 0.0
    step: int | None = None
    steps: list[float] = []
    created: datetime | None = None
    began: datetime | None = None
    ended: datetime | None = None
    approved: str | None = None
    reason: str = ""
    sentence: str = ""
    override: str = ""
    canary: Tree | None = None


class ApiRollouts(Answer, frozen=True):
    rollouts: list[ApiRollout] = []
    next: str | None = None


class ApiRolloutDetail(Answer, frozen=True):
    rollout: ApiRollout = ApiRollout()
    figures: Tree | None = None
    health: str | None = None
    verdict: str | None = None
    waits_for: str | None = None
    evidence: list[ApiEvidence] = []
    steps: list[ApiDecision] = []
    incidents: list[Tree] = []


class ApiJob(Answer, frozen=True):
    training_job_id: str = ""
    status: str = ""
    priority: str = ""
    trigger_reason: str = ""
    requester: str = ""
    algorithm: str = ""
    base_model: str = ""
    attempt: int = 0
    created: datetime | None = None
    started: datetime | None = None
    ended: datetime | None = None
    cancelling: bool = False
    latest: Tree = {}

    @property
    def progress(self) -> Tree:
        found = self.latest.get("progress")
        return found if isinstance(found, dict) else {}

    @property
    def percent(self) -> float:
        value = self.progress.get("percent_complete")
        return float(value) if isinstance(value, int | float) else 0.0


class ApiJobs(Answer, frozen=True):
    jobs: list[ApiJob] = []
    next: str | None = None


class ApiJobDetail(Answer, frozen=True):
    job: ApiJob = ApiJob()
    request: Tree | None = None
    recipe: Tree | None = None
    failures: list[Any] = []
    snapshot: Any = None
    trajectories: int | None = None
    model_id: str | None = None


class ApiCurves(Answer, frozen=True):
    job_id: str = ""
    steps: int = 0
    series: dict[str, list[float | None]] = {}
    evaluations: list[Tree] = []
    thinned: bool = False


class ApiReward(Answer, frozen=True):
    mean: float | None = None
    count: int = 0


class ApiModel(Answer, frozen=True):
    model_id: str = ""
    version: Any = None
    job_id: str | None = None
    base_model: str = ""
    parent: str | None = None
    state: str = ""
    samples: int | None = None
    final_reward: float | None = None
    baseline_reward: float | None = None
    created: datetime | None = None
    deployed: datetime | None = None
    reward: ApiReward | None = None


class ApiModels(Answer, frozen=True):
    models: list[ApiModel] = []
    next: str | None = None


class ApiValidation(Answer, frozen=True):
    validation_id: str = ""
    model_id: str = ""
    against: str = ""
    suites: list[str] = []
    state: str = ""
    word: str | None = None
    sentence: str | None = None
    improvement: float | None = None
    started: datetime | None = None
    ended: datetime | None = None
    decision_id: str | None = None
    progress: list[Tree] = []
    report: Tree | None = None


class ApiValidations(Answer, frozen=True):
    validations: list[ApiValidation] = []
    next: str | None = None


class ApiCard(Answer, frozen=True):
    text: str | None = None
    path: str | None = None


class ApiModelDetail(Answer, frozen=True):
    model: ApiModel = ApiModel()
    lineage: list[ApiModel] = []
    children: list[str] = []
    card: ApiCard = ApiCard()
    job: ApiJob | None = None
    validations: list[ApiValidation] = []
    decisions: list[ApiDecision] = []


class ApiLineageNode(Answer, frozen=True):
    model_id: str = ""
    parent: str | None = None
    base_model: str = ""
    state: str = ""
    created: datetime | None = None
    deployed: datetime | None = None
    reward: Any = None


class ApiLineage(Answer, frozen=True):
    nodes: list[ApiLineageNode] = []


class ApiArm(Answer, frozen=True):
    model_id: str = ""
    trajectories: int = 0
    mean: float | None = None


class ApiDifference(Answer, frozen=True):
    difference: float | None = None
    lower: float | None = None
    upper: float | None = None
    compared: int = 0


class ApiSuiteDifference(Answer, frozen=True):
    suite: str = ""
    a: float | None = None
    b: float | None = None
    difference: float | None = None
    lower: float | None = None
    upper: float | None = None


class ApiComparison(Answer, frozen=True):
    a: ApiArm = ApiArm()
    b: ApiArm = ApiArm()
    production: ApiDifference | None = None
    sentence: str = ""
    suites: list[ApiSuiteDifference] = []
    reports: list[str] = []


class ApiTraffic(Answer, frozen=True):
    baseline: str = ""
    holdback: str | None = None
    rollout: str | None = None
    operator: bool = False
    traffic: dict[str, float] = {}


class ApiLiveModel(Answer, frozen=True):
    model_id: str = ""
    traffic_percentage: float = 0.0
    reward: ApiReward | None = None


class ApiReadiness(Answer, frozen=True):
    ready: bool = False
    reason: str = ""


class ApiHealth(Answer, frozen=True):
    status: str = ""
    bus: bool = True
    trouble: str | None = None


class ApiCollected(Answer, frozen=True):
    last_hour: int = 0
    last_24h: int = 0


class ApiOverview(Answer, frozen=True):
    at: datetime | None = None
    counts: dict[str, int] = {}
    collected: ApiCollected = ApiCollected()
    traffic: ApiTraffic | None = None
    rollouts: list[ApiRollout] = []
    job: ApiJob | None = None
    queued_jobs: int = 0
    readiness: ApiReadiness | None = None
    models: list[ApiLiveModel] = []
    decisions: list[ApiDecision] = []
    health: ApiHealth = ApiHealth()


class ApiLetter(Answer, frozen=True):
    """dead.v1"""

    dead_id: str = ""
    timestamp: datetime | None = None
    subject: str = ""
    reason: str = ""
    detail: str = ""
    deliveries: int = 0
    payload: str | None = None


class ApiDeadLetter(Answer, frozen=True):
    stage: str = ""
    replayed: datetime | None = None
    letter: ApiLetter = ApiLetter()
    more: int = 0


class ApiDeadLetters(Answer, frozen=True):
    dead: list[ApiDeadLetter] = []
    next: str | None = None


class ApiAlert(Answer, frozen=True):
    alert_id: str = ""
    name: str = ""
    severity: str = ""
    state: str = ""
    summary: str = ""
    labels: Tree = {}
    evidence: Any = None
    remedy: str = ""
    began: datetime | None = None
    changed: datetime | None = None
    times: int = 1
    acknowledged_by: str | None = None
    note: str | None = None
    resolved: datetime | None = None
    deliveries: list[Tree] = []


class ApiAlerts(Answer, frozen=True):
    alerts: list[ApiAlert] = []
    next: str | None = None


class ApiReport(Answer, frozen=True):
    """One of the list; `figures` and `text` only where it was asked for by its id."""

    report_id: str = ""
    kind: str = ""
    title: str = ""
    start: datetime | None = None
    end: datetime | None = None
    made: datetime | None = None
    job_id: str | None = None
    figures: Tree = {}
    text: str = ""


class ApiReports(Answer, frozen=True):
    reports: list[ApiReport] = []
    next: str | None = None


class ApiModelCost(Answer, frozen=True):
    model_id: str = ""
    training_usd: float | None = None
    judge_usd: float | None = None
    serving_usd: float | None = None
    total_usd: float | None = None
    tokens: Any = None
    trajectories: int = 0
    usd_per_trajectory: float | None = None


class ApiCosts(Answer, frozen=True):
    models: list[ApiModelCost] = []
    total_usd: float | None = None


class ApiKeyRow(Answer, frozen=True):
    key_id: str = ""
    name: str = ""
    scope: str = ""
    created: datetime | None = None
    revoked: datetime | None = None
    trusted: bool = False


class ApiKeys(Answer, frozen=True):
    keys: list[ApiKeyRow] = []


class ApiMadeKey(Answer, frozen=True):
    key_id: str = ""
    name: str = ""
    scope: str = ""
    key: str = ""


class ApiOptOut(Answer, frozen=True):
    user: str = ""
    since: datetime | None = None
    opted_out: bool = True


class ApiOptOuts(Answer, frozen=True):
    optouts: list[ApiOptOut] = []
    next: str | None = None


class ApiErasure(Answer, frozen=True):
    user: str = ""
    trajectories: int = 0
    feedback: int = 0
    dead_letters: int = 0
    pending_stream_messages: int = 0
    pending_archive_copies: int = 0
    models_that_saw: list[str] = []
    jobs_that_see: list[str] = []


class ApiSetting(Answer, frozen=True):
    section: str = ""
    name: str = ""
    value: Any = None
    source: str = ""
    variable: str | None = None
    doc: str | None = None


class ApiSettings(Answer, frozen=True):
    settings: list[ApiSetting] = []


class ApiAuditEntry(Answer, frozen=True):
    seq: int = 0
    at: datetime | None = None
    who: str = ""
    what: str = ""
    about: str = ""
    detail: Any = None
    before: Any = None
    after: Any = None
    hash: str = ""


class ApiAudit(Answer, frozen=True):
    entries: list[ApiAuditEntry] = []
    next: str | None = None


class ApiRolloutAction(Answer, frozen=True):
    model_id: str = ""
    state: str = ""
    traffic_percentage: float = 0.0
    sentence: str = ""


class ApiPinned(Answer, frozen=True):
    task_id: str = ""
    new: bool = True
    pinned: int = 0
