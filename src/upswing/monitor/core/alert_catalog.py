"""Which alerts are there, how urgent is each, when is it over, and what does an operator do?

The table is the runbook: `docs/alerts-and-reports.md` says the same, and a test compares them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from upswing.contracts.notices import Severity

PAGE = "docs/alerts-and-reports.md"


@dataclass(frozen=True, slots=True)
class AlertKind:
    """One kind of trouble."""

    name: str
    severity: Severity
    about: str
    """What has happened when it fires."""
    over: str
    """When it resolves."""
    remedy: str
    """What an operator does."""
    lasting: bool = False
    """A condition, which holds or does not; otherwise something that happened."""

    @property
    def runbook(self) -> str:
        return f"{PAGE}#{self.name.lower()}"


_QUIET = "`[alerts] quiet_hours` after it happened last"
_KINDS = (
    AlertKind(
        "TrainingFailing",
        "warning",
        "The newest three training jobs that ended have all failed.",
        "a training job completes",
        "`upswing jobs` lists them with their errors; `upswing jobs show ID` has the traceback. Mend what it names, "
        "then `upswing train`.",
        lasting=True,
    ),
    AlertKind(
        "TrainingNeedsAttention",
        "warning",
        "One job has failed three times in a row without a checkpoint between, or was given up.",
        _QUIET,
        "`upswing jobs show ID` says which error and what was tried. OOM: `[train] memory_gb`, a smaller base or shorter "
        "trajectories (`[trigger] max_turns`). DATA: `upswing train --dry-run`. INFRA: look at the disk and the model storage.",
    ),
    AlertKind(
        "TrainingRequestRefused",
        "warning",
        "The loop's own request to train was refused.",
        _QUIET,
        "The sentence names the setting. Correct `[train]` or `[train.recipe]` and start the loop again.",
    ),
    AlertKind(
        "ValidationFailed",
        "warning",
        "A validation ended with the verdict `fail`, or could not be carried out.",
        "a later validation passes, or " + _QUIET,
        "`upswing decisions --stage validate` gives its id, `upswing explain ID` the suites that fell. Nothing shipped: the "
        "model before it answers on.",
    ),
    AlertKind(
        "ModelRolledBack",
        "urgent",
        "A model that had traffic was rolled back.",
        "a model is promoted, or " + _QUIET,
        "The previous model answers already. `upswing rollouts` gives the reason, `upswing explain ID` the figures behind it; "
        "decide whether to train on, or to hold rollouts.",
    ),
    AlertKind(
        "ModelDegraded",
        "warning",
        "The model that answers does worse than it did, and none stands by that could take its place.",
        "a model is promoted, or " + _QUIET,
        "`upswing rollouts` says how far it fell. Train, or set the traffic by hand: `upswing traffic MODEL=100`.",
    ),
    AlertKind(
        "ModelNotServable",
        "warning",
        "A model that should have got traffic cannot be served.",
        _QUIET,
        "The sentence says what the server refused: a missing or changed checkpoint, or an adapter of another base.",
    ),
    AlertKind(
        "CandidateNotShipped",
        "info",
        "A candidate was not better, did not change, or could not be decided, and does not ship.",
        _QUIET,
        "Nothing has to be done. `upswing explain ID` says what was missing; more data decides most of these.",
    ),
    AlertKind(
        "ApprovalNeeded",
        "warning",
        "A model waits for a person's word before it gets traffic.",
        _QUIET,
        "`upswing rollouts` shows it; `upswing rollouts approve MODEL` lets it go out.",
    ),
    AlertKind(
        "EmergencyOverride",
        "warning",
        "An operator gave traffic to a model without a passed validation.",
        _QUIET,
        "Check that it was meant: `upswing rollouts` says who and why; `upswing rollback MODEL` takes it back.",
    ),
    AlertKind(
        "ControllerFailing",
        "warning",
        "A step of a rollout was refused, or the controller broke and goes on.",
        _QUIET,
        "The log has the sentence or the traceback. Traffic stays as it is until the controller can go on.",
    ),
    AlertKind(
        "ForeignPlan",
        "urgent",
        "Another loop writes the traffic plan of this bus.",
        _QUIET,
        "Two loops with stores of their own share one bus: stop one, or give it another `NATS_URL`.",
    ),
    AlertKind(
        "CollectionErrors",
        "warning",
        "More than a tenth of the messages that came in were refused.",
        "the share is below the limit again, or nothing is refused",
        "`upswing dead` lists what was refused with its reason; mend the sender, then `upswing dead replay ID`.",
        lasting=True,
    ),
    AlertKind(
        "BusUnreachable",
        "urgent",
        "The bus has not been reached for five minutes.",
        "it is connected again",
        "Agents on the bus cannot record; HTTP goes on and the outbox waits. Start the server that `NATS_URL` names; the "
        "embedded one starts again by itself, and its log in the data directory says why not.",
        lasting=True,
    ),
    AlertKind(
        "BusMayLoseMessages",
        "warning",
        "The bus's server does not run with `sync_interval: always`: a power cut may lose what it acknowledged.",
        "it says that it does",
        "Set `sync_interval: always` in the server's `jetstream` block and restart it; `upswing nats-config` prints one.",
        lasting=True,
    ),
    AlertKind(
        "TrainingServiceUnreachable",
        "urgent",
        "The training service does not answer on its port, or a job waits and no worker takes it.",
        "it answers and jobs are taken",
        "Is the loop's port blocked, or were all its connections taken? For a waiting job: is there a worker at all "
        "(`TRAIN_RL_LOCAL`, `[train] workers`)?",
        lasting=True,
    ),
    AlertKind(
        "GatewayUnreachable",
        "urgent",
        "A gateway does not answer, so its agents get nothing.",
        "it answers again",
        "The loop starts its own gateway anew by itself: the log says why it does not come up. One that runs on another "
        "machine has to be looked at there.",
        lasting=True,
    ),
    AlertKind(
        "ModelServerUnreachable",
        "warning",
        "The model server does not answer, or cannot be started.",
        "it answers again",
        "Ours starts again by itself: the log says what it waits for. For `[serve] url`, look at that server; a "
        "`[gateway] fallback` answers meanwhile.",
        lasting=True,
    ),
    AlertKind(
        "DiskNearlyFull",
        "urgent",
        "A disk that the loop writes to has little room left.",
        "there is room again",
        "Make room: old reports and archives, `[train] keep_days`, `[collect] dead_days`. Below 64 MB what arrives is "
        "refused with 503, and senders keep it.",
        lasting=True,
    ),
    AlertKind(
        "JudgeBudgetSpent",
        "warning",
        "The judge's budget of a day allows no further question.",
        "older spending is a day ago, or the budget is raised",
        "Groups stay unjudged until then and are asked about again. Raise `[judge] max_usd_per_day` or "
        "`max_tokens_per_day`, or take a cheaper model.",
        lasting=True,
    ),
    AlertKind(
        "JudgeLate",
        "warning",
        "Groups could not be judged for an hour and more.",
        _QUIET,
        "`upswing judge` gives the reason; `upswing judge retry` asks now.",
    ),
    AlertKind(
        "RewardDrift",
        "warning",
        "The model that answers earns less than it did at first, though no rollout is under way.",
        "the fall is within its limit again, or another model answers",
        "The world around it has changed: look at domains and tools in `upswing export`, then train on what is new.",
        lasting=True,
    ),
    AlertKind(
        "RowsSetAside",
        "warning",
        "A stage met a row that it cannot read; the row became a dead letter and the stage goes on.",
        _QUIET,
        "`upswing dead` shows it with its table and traceback. Many at once: check the disk, `upswing repair`.",
    ),
    AlertKind(
        "DataDamaged",
        "urgent",
        "A file of the store, the bus, the archive or a pinned task is not what was written.",
        _QUIET,
        "The sentence names it. Put a copy back, or run `upswing repair`; then find out what changed it.",
    ),
    AlertKind(
        "PartFailing",
        "warning",
        "A part of the loop broke and was started again.",
        _QUIET,
        "The log has the traceback. A part that breaks again and again is a mistake of ours or a full disk.",
    ),
    AlertKind(
        "GatewayTrouble",
        "warning",
        "A gateway of this loop called a person: a pinned model or the base is missing, or an episode was lost.",
        _QUIET,
        "The sentence says which; `RL_MODEL_VERSION` and `USE_RL_MODEL` decide what a gateway may serve.",
    ),
    AlertKind(
        "WebhookFailing",
        "warning",
        "A notice could not be delivered to a webhook and was given up.",
        _QUIET,
        "`upswing alerts show ID` names the address's name and its last answer. Correct `[[alerts.webhooks]]`.",
    ),
    AlertKind(
        "OtherAlert",
        "warning",
        "A part logged an alert of a kind that has no entry here.",
        _QUIET,
        "The sentence is the log's; the lines around it say more.",
    ),
)
CATALOG: Mapping[str, AlertKind] = {kind.name: kind for kind in _KINDS}
