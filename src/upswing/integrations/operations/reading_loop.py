"""How does the loop stand, what did it decide, and what is wrong?"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from msgspec import Meta

from upswing.errors import Misuse
from upswing.integrations.operations.formatting import (
    END,
    Identifier,
    Limit,
    NoArgs,
    Span,
    figure,
    lines,
    more_page,
    tree_text,
)
from upswing.integrations.operations.loop_port import LoopPort, path_of
from upswing.integrations.operations.operation import (
    Arguments,
    Link,
    Operation,
    OperationAnswer,
    bounded,
)
from upswing.integrations.operations.quoting import one_line, sentence, visible


async def status(loop: LoopPort, _: NoArgs) -> OperationAnswer:
    """The whole loop at a glance."""
    stands = await loop.get("/api/admin/training/status")
    counts = await loop.get("/v1/status")
    traffic, told_traffic = await _traffic(loop)
    automation, ready = stands["automation"], stands["readiness"]
    collected, training = automation["dataCollection"], automation["training"]
    stored = ", ".join(
        f"{count} {one_line(name)}" for name, count in counts.items() if isinstance(count, int)
    )
    told = [
        f"Training: {stands['status']}; running job: {training['currentJob'] or 'none'}; last completed: {training['lastCompleted'] or 'never'}.",
        f"Collected: {collected['last24h']} in 24 h ({collected['ratePerHour']} an hour); stored: {stored}.",
        told_traffic,
        f"Ready to train: {'yes' if ready['ready'] else 'no'}. {sentence(ready['reason'])}",
    ]
    links = [Link("upswing://models", "Models"), Link("upswing://jobs", "Jobs")]
    return OperationAnswer("\n".join(told), links, {"ready": ready["ready"], "traffic": traffic})


async def _traffic(loop: LoopPort) -> tuple[dict[str, Any], str]:
    """Who answers; a loop without a gateway has nobody."""
    try:
        found = await loop.get("/admin/traffic")
    except Misuse:
        return {}, "Traffic: no gateway runs with this loop."
    shares = ", ".join(f"{one_line(name)} {share:g} %" for name, share in found["traffic"].items())
    rollout = sentence(found["rollout"]) or "none"
    return found["traffic"], (
        f"Traffic: {shares or 'nobody answers'}; baseline {one_line(found['baseline'])}; rollout: {rollout}."
    )


class DecisionsArgs(Arguments, frozen=True):
    """Which ones."""

    stage: Literal["trigger", "train", "validate", "deploy"] | None = None
    since: Span | None = None
    limit: Limit = 10


async def decisions(loop: LoopPort, asked: DecisionsArgs) -> OperationAnswer:
    found = await loop.get("/v1/decisions", stage=asked.stage, since=asked.since, limit=asked.limit)
    told = [
        f"{row['decision_id']}  {row['decided'][:16]}  {row['stage']} {row['kind']}: {sentence(row['sentence'])}"
        for row in found["decisions"]
    ]
    links = [
        Link(f"upswing://decisions/{row['decision_id']}", "It") for row in found["decisions"][:3]
    ]
    return OperationAnswer(lines(told, "Nothing was decided.") + more_page(found), links)


class DecisionArgs(Arguments, frozen=True):
    """Which one."""

    decision_id: Annotated[
        str, Meta(min_length=4, max_length=200, pattern=rf"^[A-Za-z0-9._:\-]+{END}")
    ]


async def explain(loop: LoopPort, asked: DecisionArgs) -> OperationAnswer:
    found = await loop.get(path_of("/v1/decisions/{id}/explain", id=asked.decision_id))
    today = found.get("today") or {}
    told = [
        f"{found['decided']} {found['stage']} {found['kind']}: {sentence(found['sentence'])}",
        f"inputs: {bounded(tree_text(found.get('inputs')), 2000)}",
        f"outcome: {bounded(tree_text(found.get('outcome')), 1000)}",
        f"With today's rules: {sentence(today.get('sentence')) or 'not known'}",
    ]
    return OperationAnswer(
        bounded("\n".join(told)), [Link(f"upswing://decisions/{asked.decision_id}", "All of it")]
    )


class AlertsArgs(Arguments, frozen=True):
    """Which ones; left out: those that are open."""

    state: Literal["open", "firing", "acknowledged", "resolved", "all"] = "open"
    limit: Limit = 20


async def alerts(loop: LoopPort, asked: AlertsArgs) -> OperationAnswer:
    found = await loop.get("/v1/alerts", state=asked.state, limit=asked.limit)
    told = lines(map(alert_line, found["alerts"]), "No alerts.")
    return OperationAnswer(told + more_page(found), [Link("upswing://alerts", "All of it")])


def alert_line(row: Mapping[str, Any]) -> str:
    """One alert in a line."""
    since = str(row.get("began") or "")[:16]
    return f"{row['severity']} {row['state']} since {since}: {one_line(row['name'])}: {sentence(row['summary'])} ({one_line(row['alert_id'])})"


class ReportsArgs(Arguments, frozen=True):
    """Which one; left out: the newest of its kind."""

    report_id: Identifier | None = None
    kind: Literal["daily", "weekly", "job"] = "daily"


async def reports(loop: LoopPort, asked: ReportsArgs) -> OperationAnswer:
    number = asked.report_id
    if number is None:
        listed = (await loop.get("/v1/reports", kind=asked.kind, limit=1))["reports"]
        if not listed:
            return OperationAnswer(f"There is no {asked.kind} report yet.")
        number = listed[0]["report_id"]
    found = await loop.get(path_of("/v1/reports/{id}", id=str(number)))
    told = f"{sentence(found['title'])}\n{bounded(visible(str(found['text'])), 5000)}"
    return OperationAnswer(told, [Link(f"upswing://reports/{number}", "All of it")])


class CostsArgs(Arguments, frozen=True):
    """Of which time."""

    since: Span = "30d"


async def costs(loop: LoopPort, asked: CostsArgs) -> OperationAnswer:
    found = await loop.get("/v1/costs", since=asked.since)
    told = [f"Total {figure(found['total_usd'], 2)} USD since {found['since']}."]
    told += [
        f"{one_line(row['model_id'])}: training {figure(row['training_usd'], 2)}, judge {figure(row['judge_usd'], 2)}, "
        f"serving {figure(row['serving_usd'], 2)}, a trajectory {figure(row['usd_per_trajectory'], 4)}"
        for row in found["models"][:20]
    ]
    return OperationAnswer(bounded("\n".join(told)))


LOOP = (
    Operation(
        "status",
        "How the whole loop stands: training, collected data, who answers, ready to train or not.",
        NoArgs,
        status,
    ),
    Operation("decisions", "What the loop decided, the newest first.", DecisionsArgs, decisions),
    Operation(
        "explain",
        "Why a decision was made: its inputs, and the same with today's rules.",
        DecisionArgs,
        explain,
    ),
    Operation("alerts", "What is wrong now, and what was.", AlertsArgs, alerts),
    Operation(
        "reports", "The daily summary, the weekly one, or a job's report.", ReportsArgs, reports
    ),
    Operation("costs", "What training, judging and serving cost, by model.", CostsArgs, costs),
)
