"""What does a panel show? A title, its queries, and how they are drawn.

`scripts/ops` turns these values into Grafana's JSON; every query is also put to a real Prometheus by a test.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Drawing = Literal["stat", "lines", "stacked", "bars", "heatmap"]
Unit = Literal["short", "none", "percentunit", "percent", "s", "bytes", "currencyUSD", "reqps"]
"""As Grafana names them."""


@dataclass(frozen=True, slots=True)
class PanelQuery:
    """A question to Prometheus, and what its series are called."""

    expr: str
    legend: str = ""


@dataclass(frozen=True, slots=True)
class DashboardPanel:
    """One panel."""

    title: str
    queries: tuple[PanelQuery, ...]
    about: str
    """What a reader should know, in a sentence or two."""
    drawing: Drawing = "lines"
    unit: Unit = "short"
    width: int = 12
    """Of 24 columns."""
    height: int = 8


@dataclass(frozen=True, slots=True)
class PanelRow:
    """Panels under one heading."""

    title: str
    panels: tuple[DashboardPanel, ...]


@dataclass(frozen=True, slots=True)
class OpsDashboard:
    """One dashboard."""

    name: str
    """Of its file, and of its address in Grafana."""
    title: str
    about: str
    rows: tuple[PanelRow, ...]


def stat(title: str, expr: str, about: str, unit: Unit = "short") -> DashboardPanel:
    """One number."""
    return DashboardPanel(title, (PanelQuery(expr),), about, "stat", unit, width=6, height=4)
