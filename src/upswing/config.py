"""What did the user decide? One file, `upswing.toml`, and the environment, which wins.

The file lies in the data directory, or where UPSWING_CONFIG says:

    [collect]
    max_bytes = 4000000
    window_hours = 1

    [[redact.rules]]
    name = "acme-badge"
    pattern = "ACME-[0-9]{6}"

    [trigger]
    threshold = 5000
    schedule = "0 2 * * *"

    [train]
    algorithm = "grpo"
    base_model = "smollm2"

    [train.recipe]
    learning_rate = 1e-5
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Any, Literal, get_args

import msgspec
from msgspec import Meta

from upswing.contracts.backend_keys import key_for, read_backend_keys
from upswing.contracts.field_errors import locate_mistake, setting_name
from upswing.contracts.notices import Severity
from upswing.contracts.training import Algorithm
from upswing.contracts.typed import from_tree
from upswing.errors import Misuse


class CollectConfig(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What enters the loop."""

    max_bytes: Annotated[int, Meta(ge=1024, le=8 * 1024 * 1024)] = 8 * 1024 * 1024
    """Bytes of one message, 1 KB to 8 MB: a larger one is refused. The bus carries 8 MB."""
    max_depth: Annotated[int, Meta(ge=8, le=500)] = 64
    """Levels of nesting, 8 to 500: a deeper message is refused."""
    window_hours: Annotated[int, Meta(ge=1, le=24)] = 1
    """Hours of a window, 1 to 24: agents that acted in the same window are compared."""
    stale_hours: Annotated[int, Meta(ge=1)] = 24
    """Hours after which a step-wise trajectory that nobody continues is ended as `timeout`."""
    dead_days: Annotated[int, Meta(ge=1, le=3650)] = 90
    """Days after which a dead letter is deleted, 1 to 3650."""


class RedactRule(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A rule of your own, beside the built-in ones."""

    name: Annotated[str, Meta(pattern=r"^[a-z][a-z0-9-]{0,40}$")]
    """Lower case; it becomes the placeholder: `<acme-badge-1>`."""
    pattern: Annotated[str, Meta(min_length=1, max_length=1000)]
    """A Python regular expression."""


class RedactConfig(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What must never be stored."""

    rules: tuple[RedactRule, ...] = ()
    """Your own rules, added to the built-in ones."""
    public_ip: bool = True
    """Whether public IPv4 addresses are replaced; private ones always stay."""


class RewardConfig(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How good it was."""

    method: Literal["z-score", "min-max"] = "z-score"
    """How a score is compared with the last thousand."""
    weights: dict[str, float] = {}
    """By component; they sum to 1. REWARD_WEIGHT_<NAME> in the environment wins."""
    min_agents: Annotated[int, Meta(ge=2, le=1000)] = 5
    """Different agents that make a group worth comparing, 2 to 1000."""
    lint: bool = True
    """Whether Python code that agents wrote is linted when nothing is reported of it."""
    lint_seconds: Annotated[float, Meta(gt=0, le=10)] = 0.3
    """How long a reward waits for the linter, up to 10: then it goes without."""


class JudgeConfig(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Who compares the members of a group. Without a model, the world's own numbers do."""

    model: str | None = None
    """JUDGE_MODEL in the environment wins."""
    base_url: str | None = None
    """Of any OpenAI-compatible endpoint; OPENAI_BASE_URL in the environment wins."""
    rubric: str | None = None
    """What makes one attempt better than another; a general rubric is built in."""
    timeout_seconds: Annotated[float, Meta(gt=0, le=600)] = 100
    max_tokens_per_day: Annotated[int, Meta(ge=0)] | None = 5_000_000
    """Of prompts and answers together; beyond it, groups stay unjudged and say so."""
    max_usd_per_day: Annotated[float, Meta(ge=0)] | None = None
    prompt_price: Annotated[float, Meta(ge=0)] = 0.0
    """US dollars for a million prompt tokens, so that spending can be told and bounded."""
    completion_price: Annotated[float, Meta(ge=0)] = 0.0


class TriggerConfig(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """When the loop trains by itself."""

    threshold: Annotated[int, Meta(ge=1)] = 5000
    """New trajectories since the last training that ask for the next; RL_TRAINING_THRESHOLD wins."""
    schedule: str = "0 2 * * *"
    """A cron expression of five fields, UTC; `off` for none. RL_SCHEDULE_CRON in the environment
    wins."""
    drop: Annotated[float, Meta(gt=0, le=1)] = 0.10
    """How far the deployed model's raw reward may fall below its baseline, 0 to 1."""
    min_sample: Annotated[int, Meta(ge=1)] = 100
    """Trajectories of the deployed model below which a fall counts as noise: with rewards that
    scatter by 0.25, the mean of 100 scatters by 0.025, a quarter of the fall that matters."""
    recent: Annotated[int, Meta(ge=1, le=100_000)] = 500
    """The newest trajectories of the deployed model that its mean is taken of, up to 100,000."""
    pause_minutes: Annotated[float, Meta(ge=0)] = 60
    """After a job has failed for good, how long the same reason waits before it asks again."""
    days: Annotated[int, Meta(ge=1, le=3650)] = 30
    """How far back the data of an automatic training reaches, 1 to 3650 days."""
    max_turns: Annotated[int, Meta(ge=1)] = 50
    """Longer trajectories do not take part in an automatic training."""


class TrainConfig(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How the loop trains, and what a job may take."""

    algorithm: Algorithm | None = None
    """For requests that name none; RL_ALGORITHM in the environment wins. None: what fits the data, GRPO
    wherever there are enough groups to compare."""
    base_model: str | None = None
    """For requests that name none; RL_BASE_MODEL, then BASE_MODEL in the environment win. Without
    any, `tiny`, unless the bus or the store is yours: then training waits until one is named."""
    sample_size: Annotated[int, Meta(ge=1)] = 10_000
    """Trajectories of a data set, for requests that do not say."""
    min_trajectories: Annotated[int, Meta(ge=1)] = 100
    """Trajectories that make the loop ready to train: fewer make a model that knows them by heart."""
    min_agents: Annotated[int, Meta(ge=1, le=1000)] = 5
    """Different agents in the same window and scenario that make a group in a continuous world."""
    min_attempts: Annotated[int, Meta(ge=2, le=1000)] = 4
    """Attempts at the same task by the same policy that make a group, 2 to 1000, by one agent or many."""
    min_groups: Annotated[int, Meta(ge=1)] = 32
    """Groups in which somebody did better than another that make comparing worthwhile; with fewer,
    the loop learns from single attempts, unless an algorithm is named."""
    recipe: dict[str, Any] = {}
    """Knobs of every job (`[train.recipe]`), by the names of `upswing.train.core.recipe`; what a request
    asks for wins."""
    memory_gb: Annotated[float, Meta(gt=0)] | None = None
    """Memory of a training process; beyond it the process ends and the next attempt takes less at a
    time. None: as much as there is."""
    threads: Annotated[int, Meta(ge=1, le=1024)] | None = None
    """For computing, up to 1024. None: one for small bases; for others half of the cores where models are
    served on this machine too, else all."""
    timeout_hours: Annotated[float, Meta(gt=0)] = 24
    """One attempt; a longer one is ended and goes behind the others."""
    heartbeat_seconds: Annotated[float, Meta(ge=5)] = 60
    """Silence, at least 5, after which a training process counts as hung, and a worker that does
    not renew its claim as dead."""
    retry_minutes: Annotated[float, Meta(ge=0)] = 10
    """How long a job waits when the infrastructure failed."""
    status_seconds: Annotated[float, Meta(ge=0)] = 10
    """Between two published statuses of a job that just goes on; a change of state is published at
    once."""
    keep_days: Annotated[int, Meta(ge=1)] = 90
    """Checkpoints are kept so long, those of deployed models for ever."""
    cost_per_hour: Annotated[float, Meta(ge=0)] = 0.0
    """US dollars, so that a job can say what it cost."""
    workers: Annotated[int, Meta(ge=0, le=64)] = 1
    """Jobs that run at once on this machine, up to 64; 0: none, like TRAIN_RL_LOCAL=false."""


class ValidateConfig(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What a model has to show before it ships."""

    suites: tuple[str, ...] | None = None
    """What both models do: our suites, `world:NAME`, `production`, `inspect:TASK`, or names of
    `files`. None: your own tasks, the four abilities, `regression` and `safety`; see
    `upswing.validate.core.default_suites`."""
    files: dict[str, str] = {}
    """Suites of your own: a name and its file, with one task a line."""
    worlds: dict[str, str] = {}
    """Worlds of your own: a name, and `package.module:attribute` or the URL of an AgentGym server."""
    counted: tuple[str, ...] | None = None
    """Suites that count toward the improvement; None: your own tasks, and without any of these every
    suite that measures ability. One in which both models score zero never counts."""
    floors: dict[str, Annotated[float, Meta(ge=0, le=1)]] = {}
    """Safety suite → the score that a candidate must reach, 0 to 1, whatever the current model does."""
    safety_reach: Annotated[float, Meta(ge=0, le=1)] | None = None
    """How far down the interval of safety may reach, where safety is below the current model's, before
    nobody can say whether it is worse. None: 0.05, and 0.20 where the base is `tiny`, which says nothing
    sensible."""
    samples: Annotated[
        tuple[Annotated[int, Meta(ge=1, le=64)], ...], Meta(min_length=1, max_length=5)
    ] = (4, 8, 16)
    """Answers to each of your own tasks at each look, rising, up to 64: after each look the validation
    ends if the interval decides. The looks share an error of 5 %."""
    seeds: Annotated[int, Meta(ge=1, le=20)] | None = None
    """How often every task of every suite is done, 1 to 20, with a single look; None: `samples` for
    your own tasks, once for the others."""
    temperature: Annotated[float, Meta(ge=0, le=2)] | None = None
    """Of all answers, 0 to 2. None: your own tasks are done as the agents do them, with the temperature
    and `top_p` that most of the newest trajectories of the current model have, 1.0 when none is known;
    abilities and safety at 0."""
    tasks: Annotated[int, Meta(ge=20, le=10_000)] = 200
    """Of your own, over all their suites, 20 to 10,000; as many of them as `minutes` allows."""
    max_tokens: Annotated[int, Meta(ge=16, le=32_768)] = 256
    """Of an answer, 16 to 32,768, whatever a task would allow. 256 is enough for every reference
    answer, and lets a model of 135 million weights end in time on two cores."""
    at_once: Annotated[int, Meta(ge=1, le=256)] = 8
    """Requests under way, up to 256; a model server answers several almost as quickly as one."""
    minutes: Annotated[float, Meta(gt=0, le=1440)] = 6
    """When it should be over: no further task of your own and no further look is begun that would
    not end by then."""
    deadline_minutes: Annotated[float, Meta(gt=0, le=1440)] = 28
    """For the whole, up to a day; what is missing then counts as not covered."""

    def __post_init__(self) -> None:
        if any(later <= earlier for earlier, later in pairwise(self.samples)):
            raise ValueError("`samples` in [validate] must rise from look to look")


class ServeConfig(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Where models answer."""

    engine: Literal["auto", "torch", "llama"] = "auto"
    """Of our own model server: `auto` takes llama.cpp for bases that are GGUF files, else PyTorch."""
    threads: Annotated[int, Meta(ge=1, le=1024)] | None = None
    """For computing; None: the engine decides."""
    url: Annotated[str, Meta(pattern=r"^https?://[^\s]+$")] | None = None
    """An OpenAI-compatible server that has the base, and loads adapters as vLLM does if models are trained
    here, instead of our own; UPSWING_MODEL_SERVER_KEY is sent to it, else its UPSWING_BACKEND_KEY_*."""
    platform: Literal["upswing", "vllm", "tgi", "ollama", "tensorzero"] = "vllm"
    """What announcements call the server behind `url`."""
    extra: dict[str, Any] | None = None
    """Fields added to every request for that server's models. None: `logprobs` and `return_token_ids`, as far
    as a probe finds that it has them; exact tokens make the best training."""
    timeout_seconds: Annotated[float, Meta(gt=0, le=3600)] = 60.0
    """Until the first byte of an answer, up to an hour."""


class ExploreConfig(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Episodes that are asked for at a higher temperature than their clients want."""

    share: Annotated[float, Meta(ge=0, le=1)] = 0.1
    """Of the episodes, 0 to 1."""
    temperature: Annotated[float, Meta(gt=0, le=2)] = 1.0
    """Above 0, up to 2; requests that are warmer by themselves stay as they are."""


class FallbackConfig(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A server that is not ours."""

    url: Annotated[
        str,
        Meta(pattern=r"^https?://[A-Za-z0-9.\-_\[\]:]+(/[\x21-\x7e]*)?$(?!\n)", max_length=2000),
    ]
    """Of any OpenAI-compatible server, such as `https://api.openai.com/v1`; UPSWING_BACKEND_KEYS names its
    key."""
    model: Annotated[str, Meta(pattern=r"^[\x21-\x7e]+$(?!\n)", max_length=400)]
    """What that server calls the model."""
    timeout_seconds: Annotated[float, Meta(gt=0, le=3600)] = 60.0
    """Until the first byte of an answer."""


class GatewayConfig(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What the gateway does beside passing on."""

    explore: ExploreConfig | None = None
    """`explore = {share = 0.1, temperature = 1.0}`: where agents ask at temperature 0, all attempts at
    a task are the same and teach nothing; this lets some of them differ. Users see those answers too,
    so it is off unless you say so."""
    sticky: Literal["conversation", "user"] = "conversation"
    """Who keeps a model. `conversation`: chance chooses anew for each episode, whoever asks. `user`: a user
    keeps one model through a step of a rollout; then users, not episodes, are what a canary counts, and it takes
    many of them."""
    fallback: FallbackConfig | None = None
    """`fallback = {url = "https://api.openai.com/v1", model = "gpt-4o-mini"}`: who answers while the server
    of the models themselves is away. Without one, clients get 503 and are told when to try again."""


class WebhookConfig(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """An address that hears of alerts and reports; it stands in this file and nowhere else."""

    name: Annotated[str, Meta(pattern=r"^[a-z][a-z0-9-]{0,39}$(?!\n)")]
    """Lower case; logs, commands and answers call it so, and never by its address."""
    url: Annotated[str, Meta(pattern=r"^https?://[\x21-\x7e]+$(?!\n)", max_length=2000)]
    """Where to; for `alertmanager` its address, such as `http://127.0.0.1:9093`. No redirect is followed."""
    format: Literal["json", "slack", "alertmanager"] = "json"
    """`json`: alert.v1 and report.v1 as on the bus. `slack`: a message for a Slack-compatible address.
    `alertmanager`: its v2 API, alerts alone."""
    severity: Severity = "info"
    """The least urgent alert that it hears of."""
    alerts: bool = True
    reports: bool = True
    timeout_seconds: Annotated[float, Meta(gt=0, le=60)] = 10.0
    """For one delivery, up to a minute; then it counts as failed and is tried again."""


class AlertsConfig(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """When a person is called, and how."""

    webhooks: Annotated[tuple[WebhookConfig, ...], Meta(max_length=20)] = ()
    """`[[alerts.webhooks]]`, up to 20."""
    refused_share: Annotated[float, Meta(gt=0, le=1)] = 0.10
    """Of the messages that come in: from more on, collecting is in trouble."""
    refused_minutes: Annotated[float, Meta(gt=0, le=1440)] = 15
    """The window of that share, up to a day."""
    bus_minutes: Annotated[float, Meta(ge=0, le=1440)] = 5
    """How long the bus may be away."""
    server_minutes: Annotated[float, Meta(ge=0, le=1440)] = 1
    """How long the training service or the model server may be silent."""
    clear_seconds: Annotated[float, Meta(ge=0, le=3600)] = 60
    """How long a condition has to be away until its alert is over: one that flickers is one alert."""
    quiet_hours: Annotated[float, Meta(gt=0, le=720)] = 24
    """Something that happened, such as a rollback, is over when it did not happen again for so long."""
    retry_hours: Annotated[float, Meta(gt=0, le=168)] = 24
    """How long a delivery is tried again, up to a week; then it is given up, which is an alert."""
    keep_days: Annotated[int, Meta(ge=1, le=3650)] = 365
    """Resolved alerts are kept so long."""

    def __post_init__(self) -> None:
        names = [each.name for each in self.webhooks]
        if len(set(names)) < len(names):
            raise ValueError("two webhooks in [[alerts.webhooks]] have the same `name`")


_TIME_OF_DAY = r"^([01]\d|2[0-3]):[0-5]\d$(?!\n)"


class ReportsConfig(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What is reported by itself, and when; all times are UTC."""

    daily: Annotated[str, Meta(pattern=_TIME_OF_DAY)] | Literal["off"] = "08:00"
    """Of every day; `off` for none."""
    weekly: Literal["mon", "tue", "wed", "thu", "fri", "sat", "sun", "off"] = "mon"
    """The day of the weekly report, at the time of the daily one (08:00 where that is off)."""
    jobs: bool = True
    """A report of every training job that ended."""
    job_hours: Annotated[float, Meta(ge=0, le=168)] = 6
    """How long a job's report waits for the validation and the rollout of its model, up to a week."""
    keep_days: Annotated[int, Meta(ge=1, le=3650)] = 730
    """Reports are kept so long."""


class CostsConfig(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Prices in US dollars, for what no other setting prices. The judge's stand in [judge]."""

    training_hour: Annotated[float, Meta(ge=0)] = 0.0
    """For jobs that ran while `[train] cost_per_hour` was 0."""
    million_tokens: Annotated[float, Meta(ge=0)] = 0.0
    """Of a model server: prompts and answers together."""
    models: dict[str, Annotated[float, Meta(ge=0)]] = {}
    """Model → its own price for a million tokens."""


class DashboardConfig(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Who reaches the page, and for how long a login holds."""

    hosts: tuple[Annotated[str, Meta(pattern=r"^[A-Za-z0-9.\-]{1,253}$(?!\n)")], ...] = ()
    """Names under which browsers reach the page, beside its address: that of a reverse proxy, say. Requests for
    other names are refused, so that a foreign name that points here is not taken for the page's own."""
    https: bool = False
    """Whether a reverse proxy speaks https for it: then browsers send the session's cookie over nothing else."""
    session_hours: Annotated[float, Meta(gt=0, le=720)] = 12
    """How long a login holds, up to 30 days: a working day, so that a forgotten tab cannot act next week."""


class OtelConfig(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Traces that come in, and whether the loop is traced itself."""

    grace_seconds: Annotated[float, Meta(ge=0, le=600)] = 5.0
    """After a trace's root has come, how long the rest of it may take, up to ten minutes: exporters send children in
    other requests, and log records beside them."""
    idle_seconds: Annotated[float, Meta(gt=0, le=86_400)] = 300.0
    """Silence after which a trace without a root is closed as it is, up to a day."""
    longest_seconds: Annotated[float, Meta(gt=0, le=604_800)] = 3600.0
    """After so long a trace is closed even if it goes on, up to a week: what waits is in memory."""
    max_traces: Annotated[int, Meta(ge=2, le=1_000_000)] = 10_000
    """That wait for the rest of them; beyond it, exporters are asked to send again later."""
    max_megabytes: Annotated[int, Meta(ge=2, le=16_384)] = 128
    """Of memory for what waits; a key may fill half of what the others leave."""
    endpoint: Annotated[str, Meta(pattern=r"^https?://[^\s]+$(?!\n)", max_length=2000)] | None = (
        None
    )
    """A collector that takes OTLP over HTTP, such as `http://127.0.0.1:4318`: requests to the gateway and training jobs
    become spans there. OTEL_EXPORTER_OTLP_HEADERS is sent along. None: the loop is not traced."""


class Settings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Everything that can be decided."""

    collect: CollectConfig = CollectConfig()
    redact: RedactConfig = RedactConfig()
    reward: RewardConfig = RewardConfig()
    judge: JudgeConfig = JudgeConfig()
    trigger: TriggerConfig = TriggerConfig()
    train: TrainConfig = TrainConfig()
    validate: ValidateConfig = ValidateConfig()
    serve: ServeConfig = ServeConfig()
    gateway: GatewayConfig = GatewayConfig()
    alerts: AlertsConfig = AlertsConfig()
    reports: ReportsConfig = ReportsConfig()
    costs: CostsConfig = CostsConfig()
    dashboard: DashboardConfig = DashboardConfig()
    otel: OtelConfig = OtelConfig()
    deploy: dict[str, Any] = {}
    """Rollouts, by the names of `upswing.deploy.core.policy`."""


class Surroundings(msgspec.Struct, frozen=True):
    """What the environment says."""

    nats_url: str | None = None
    """NATS_URL: use this server or cluster instead of an embedded one."""
    nats_monitor: str | None = None
    """UPSWING_NATS_MONITOR: that server's monitoring, if it is not http:// on its port 8222."""
    database_url: str | None = None
    """DATABASE_URL: use this PostgreSQL instead of SQLite in the data directory."""
    api_key: str | None = None
    """AGENTGYM_RL_API_KEY: the operator's key; made at first start when it is not set."""
    judge_model: str | None = None
    """JUDGE_MODEL: the model that compares the members of a group."""
    judge_key: str | None = None
    """OPENAI_API_KEY: for the judge's endpoint."""
    judge_url: str | None = None
    """OPENAI_BASE_URL: the judge's endpoint, if it is not OpenAI's own."""
    weights: dict[str, str] = {}
    """REWARD_WEIGHT_TASK_COMPLETION, …_EFFICIENCY, …_CODE_QUALITY, …_USER_FEEDBACK, and plugins'."""
    storage_path: str | None = None
    """TRAJECTORY_STORAGE_PATH: archive redacted trajectories there (a path, file:// or s3://)."""
    model_storage_path: str | None = None
    """MODEL_STORAGE_PATH: keep trained models there (a path, file:// or s3://)."""
    algorithm: Algorithm | None = None
    """RL_ALGORITHM: for requests that name none."""
    base_model: str | None = None
    """RL_BASE_MODEL, or else BASE_MODEL: for requests that name none."""
    threshold: int | None = None
    """RL_TRAINING_THRESHOLD: new trajectories that ask for a training."""
    schedule: str | None = None
    """RL_SCHEDULE_CRON: when the loop trains by itself."""
    train_here: bool = True
    """TRAIN_RL_LOCAL: whether this machine trains; if not, jobs wait for another worker."""
    deploy: dict[str, str] = {}
    """CANARY_INITIAL_TRAFFIC, CANARY_RAMP_HOURS, ROLLBACK_ERROR_THRESHOLD and
    ROLLBACK_REWARD_THRESHOLD: how boldly, and when back."""
    serve_key: str | None = None
    """UPSWING_MODEL_SERVER_KEY: for a model server that is not our own."""
    backend_keys: dict[str, str] = {}
    """UPSWING_BACKEND_KEY_*: a server's URL → its key."""
    webhook_secret: str | None = None
    """UPSWING_WEBHOOK_SECRET: signs deliveries to webhooks; made at first start when it is not set."""

    def model_server_key(self, url: str) -> str | None:
        """The key for the server that `url` in [serve] names: its own variable, else the one bound to its URL."""
        return self.serve_key or key_for(url, self.backend_keys) or None


VARIABLES = {
    "nats_url": "NATS_URL",
    "nats_monitor": "UPSWING_NATS_MONITOR",
    "database_url": "DATABASE_URL",
    "api_key": "AGENTGYM_RL_API_KEY",
    "storage_path": "TRAJECTORY_STORAGE_PATH",
    "judge_model": "JUDGE_MODEL",
    "judge_key": "OPENAI_API_KEY",
    "judge_url": "OPENAI_BASE_URL",
    "model_storage_path": "MODEL_STORAGE_PATH",
    "base_model": "RL_BASE_MODEL",
    "schedule": "RL_SCHEDULE_CRON",
    "serve_key": "UPSWING_MODEL_SERVER_KEY",
    "webhook_secret": "UPSWING_WEBHOOK_SECRET",
}
DEPLOY = (
    "CANARY_INITIAL_TRAFFIC",
    "CANARY_RAMP_HOURS",
    "ROLLBACK_ERROR_THRESHOLD",
    "ROLLBACK_REWARD_THRESHOLD",
)
_YES_OR_NO = {"true": True, "1": True, "yes": True, "on": True} | {
    "false": False,
    "0": False,
    "no": False,
    "off": False,
}


WEIGHT = "REWARD_WEIGHT_"


def read_settings(folder: Path, environment: Mapping[str, str]) -> Settings:
    """The settings of a data directory, or `Misuse` with the place that is wrong."""
    path = Path(environment.get("UPSWING_CONFIG") or folder / "upswing.toml")
    if not path.exists():
        if environment.get("UPSWING_CONFIG"):
            raise Misuse(f"UPSWING_CONFIG names {path}, which does not exist.")
        return Settings()
    try:
        tree: Any = tomllib.loads(path.read_text())
        return from_tree(tree, Settings)
    except msgspec.ValidationError as error:
        place, what = locate_mistake(error, Settings)
        raise Misuse(f"{path}: {setting_name(place)}: {what}.") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise Misuse(f"{path}: {error}.") from None


def read_surroundings(environment: Mapping[str, str]) -> Surroundings:
    """The environment variables that concern the loop; empty ones count as not set."""
    found = {name: environment.get(variable) or None for name, variable in VARIABLES.items()}
    url = found["database_url"]
    if url and not url.startswith(("postgres://", "postgresql://")):
        raise Misuse("DATABASE_URL must start with postgresql://; leave it out to use SQLite.")
    nats = found["nats_url"]
    if nats and not nats.startswith(("nats://", "tls://", "ws://", "wss://")):
        raise Misuse(
            "NATS_URL must start with nats:// or tls://; leave it out to run an embedded server."
        )
    if nats and not _has_ports(nats):
        raise Misuse("NATS_URL names a port that is none: ports go from 1 to 65535.")
    if (monitor := found["nats_monitor"]) and not monitor.startswith(("http://", "https://")):
        raise Misuse("UPSWING_NATS_MONITOR must start with http:// or https://.")
    weights = {name: value for name, value in environment.items() if name.startswith(WEIGHT)}
    found["base_model"] = found["base_model"] or environment.get("BASE_MODEL") or None
    return Surroundings(
        **found,
        weights=weights,
        algorithm=_algorithm(environment.get("RL_ALGORITHM", "")),
        threshold=_threshold(environment.get("RL_TRAINING_THRESHOLD", "")),
        train_here=_train_here(environment.get("TRAIN_RL_LOCAL", "")),
        deploy={name: environment[name] for name in DEPLOY if environment.get(name)},
        backend_keys=read_backend_keys(environment),
    )


def _has_ports(urls: str) -> bool:
    """Whether every port in these addresses could be one.

    >>> _has_ports("nats://a:4222,nats://b"), _has_ports("nats://a:99999")
    (True, False)
    """
    ports = (re.search(r":(\d+)(?:[/?#]|$)", url.rpartition("@")[2]) for url in urls.split(","))
    return all(found is None or 0 < int(found[1]) < 65536 for found in ports)


def _algorithm(text: str) -> Algorithm | None:
    for known in get_args(Algorithm):
        if text.strip().lower() == known:
            chosen: Algorithm = known
            return chosen
    if text.strip():
        names = ", ".join(get_args(Algorithm))
        raise Misuse(f"RL_ALGORITHM is {text!r}: take one of {names}.")
    return None


def _threshold(text: str) -> int | None:
    plain = text.strip().replace("_", "").replace(",", "")
    if not plain:
        return None
    if not plain.isascii() or not plain.isdigit() or not 1 <= len(plain) <= 12 or int(plain) < 1:
        raise Misuse(f"RL_TRAINING_THRESHOLD is {text!r}: give a whole number from 1 on.")
    return int(plain)


def _train_here(text: str) -> bool:
    """Anything that is not clearly a no would train, so what is unclear is refused."""
    plain = text.strip().lower()
    if plain and plain not in _YES_OR_NO:
        raise Misuse(f"TRAIN_RL_LOCAL is {text!r}: say true or false.")
    return _YES_OR_NO.get(plain, True)


class Defaults(msgspec.Struct, frozen=True):
    """What a training request means by what it leaves out."""

    algorithm: Algorithm
    base_model: str | None
    """None: nobody has said, so the loop does not train by itself."""
    sample_size: int
    configured: Algorithm | None = None
    """The algorithm that the user has named; None: the loop takes what fits the data."""


def registered_worlds(settings: Settings) -> dict[str, str]:
    """Worlds that the config names, and where they are: those of validation, and the one of fresh rollouts.

    >>> registered_worlds(Settings(train=TrainConfig(recipe={"rollouts": {"world": "shop:Shop"}})))
    {'shop:Shop': 'shop:Shop'}
    """
    rollouts = settings.train.recipe.get("rollouts")
    world = rollouts.get("world") if isinstance(rollouts, dict) else None
    code = isinstance(world, str) and ":" in world
    return {**({str(world): str(world)} if code else {}), **settings.validate.worlds}


def defaults(settings: Settings, surroundings: Surroundings) -> Defaults:
    """The environment's word, else the file's, else ours.

    >>> defaults(Settings(), Surroundings())
    Defaults(algorithm='grpo', base_model='tiny', sample_size=10000, configured=None)
    >>> defaults(Settings(), Surroundings(nats_url="nats://bus")).base_model is None
    True
    """
    train = settings.train
    embedded = not surroundings.nats_url and not surroundings.database_url
    configured = surroundings.algorithm or train.algorithm
    return Defaults(
        configured or "grpo",
        surroundings.base_model or train.base_model or ("tiny" if embedded else None),
        train.sample_size,
        configured,
    )
