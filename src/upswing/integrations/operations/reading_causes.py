"""Why did a model fail, and what would another policy have decided? Both are read from what is stored."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

from msgspec import Meta

from upswing.integrations.operations.formatting import Name, Span, figure
from upswing.integrations.operations.loop_port import LoopPort, path_of
from upswing.integrations.operations.operation import (
    Arguments,
    Link,
    Operation,
    OperationAnswer,
    bounded,
)
from upswing.integrations.operations.quoting import one_line, sentence

_POLICY_CHARS = 10_000


class AnalysisArgs(Arguments, frozen=True):
    """Which model's failures."""

    model_id: Name
    fresh: Annotated[bool, Meta(description="Look anew, where an analysis is there already.")] = (
        False
    )


async def analysis(loop: LoopPort, asked: AnalysisArgs) -> OperationAnswer:
    path = path_of("/v1/analysis/{id}", id=asked.model_id)
    found = await loop.get(path, fresh=asked.fresh or None)
    newest = found["fresh"] or next(iter(found["analyses"]), None)
    if newest is None:
        return OperationAnswer(f"Nothing is known of failures of {one_line(asked.model_id)}.")
    told = [
        sentence(newest["summary"]),
        f"{_share(newest['candidate'])} of its episodes failed, {_share(newest['baseline'])} of the baseline's.",
        *(_finding_line(each) for each in newest["findings"][:8]),
        *(
            f"do: {sentence(each['text'])} ({sentence(each['because'])})"
            for each in newest["remedies"][:5]
        ),
    ]
    link = Link(f"upswing://analysis/{asked.model_id}", "All of it")
    return OperationAnswer(bounded("\n".join(told)), [link])


def _share(counted: Mapping[str, Any]) -> str:
    return f"{counted['failed']} of {counted['seen']}"


def _finding_line(finding: Mapping[str, Any]) -> str:
    whose = "; the baseline fails there, too" if finding["shared"] else ""
    return f"{sentence(finding['sentence'])} (×{figure(finding['lift'], 1)}, p {figure(finding['adjusted'])}{whose})"


class BacktestArgs(Arguments, frozen=True):
    """A policy as in `upswing.toml`: only the knobs that it names are changed."""

    policy: Annotated[str, Meta(min_length=1, max_length=_POLICY_CHARS, description="TOML.")]
    since: Span = "30d"


async def backtest(loop: LoopPort, asked: BacktestArgs) -> OperationAnswer:
    body = {"policy": asked.policy, "since": asked.since}
    found = await loop.post("/v1/backtest", body)
    told = [
        sentence(found["summary"]),
        f"{found['decisions']} decisions from {found['since']} to {found['until']}; {found['total']} would differ.",
        *(sentence(each) for each in found["notes"][:8]),
    ]
    return OperationAnswer(bounded("\n".join(told)))


CAUSES = (
    Operation(
        "analysis",
        "What a model's failures have in common that its successes have not, and what to do about it.",
        AnalysisArgs,
        analysis,
    ),
    Operation(
        "backtest",
        "Replay the loop's decisions under a changed policy; nothing is changed by it.",
        BacktestArgs,
        backtest,
    ),
)
