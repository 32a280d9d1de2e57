"""Which model came from which? A drawing of the family, from left to right, as a value."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from upswing.dashboard.answers import ApiLineageNode
from upswing.dashboard.core.charts import FONT, Option
from upswing.dashboard.core.wording import score, spoken

_COLOURS = {
    "deployed": "var(--good)",
    "canary": "var(--accent)",
    "validating": "var(--accent)",
    "rolled_back": "var(--bad)",
    "failed": "var(--bad)",
    "undecided": "var(--warn)",
}
MOST = 60
"""Models that are drawn: the newest and their ancestors."""


def places(nodes: Sequence[ApiLineageNode]) -> dict[str, tuple[int, int]]:
    """Model → its generation and its row. A child stands in its parent's row if that is free, else below.

    >>> family = [ApiLineageNode("c2", "a"), ApiLineageNode("c1", "a"), ApiLineageNode("a")]
    >>> places(family)
    {'a': (0, 0), 'c1': (1, 0), 'c2': (1, 1)}
    """
    known = {node.model_id: node for node in nodes}
    children: dict[str | None, list[str]] = {}
    for node in reversed(nodes):  # the oldest first
        parent = node.parent if node.parent in known and node.parent != node.model_id else None
        children.setdefault(parent, []).append(node.model_id)
    found: dict[str, tuple[int, int]] = {}
    last_row: dict[int, int] = {}
    waiting = [(name, 0, 0) for name in reversed(children.get(None, []))]
    while waiting:
        name, generation, wanted = waiting.pop()
        if name in found:
            continue
        row = max(wanted, last_row.get(generation, -1) + 1)
        found[name], last_row[generation] = (generation, row), row
        waiting += [(child, generation + 1, row) for child in reversed(children.get(name, []))]
    return found


def lineage_chart(nodes: Sequence[ApiLineageNode]) -> Option:
    """The family as a graph of ECharts; empty for nobody."""
    shown = list(nodes)[:MOST]
    at = places(shown)
    data = [_node(node, at[node.model_id]) for node in shown if node.model_id in at]
    links = [
        {"source": node.parent, "target": node.model_id}
        for node in shown
        if node.parent in at and node.model_id in at and node.parent != node.model_id
    ]
    generations = max((x for x, _ in at.values()), default=0)
    rows = max((y for _, y in at.values()), default=0)
    hidden = {"type": "value", "show": False}
    return {
        "animation": False,
        "textStyle": {"fontFamily": FONT},
        "tooltip": {"show": False},
        "grid": {"left": 70, "right": 70, "top": 24, "bottom": 56},
        "xAxis": {**hidden, "min": 0, "max": max(generations, 1)},
        "yAxis": {**hidden, "min": 0, "max": max(rows, 1), "inverse": True},
        "series": [
            {
                "type": "graph",
                "coordinateSystem": "cartesian2d",
                "symbolSize": 16,
                "data": data,
                "links": links,
                "edgeSymbol": ["none", "arrow"],
                "edgeSymbolSize": 7,
                "lineStyle": {"color": "var(--line-strong)", "width": 1.5, "opacity": 1},
                "emphasis": {"disabled": True},
            }
        ],
    }


def size_of(nodes: Sequence[ApiLineageNode]) -> tuple[int, int]:
    """Height and least width in pixels: a row has 76, a generation 120."""
    at = places(list(nodes)[:MOST]).values()
    generations = max((x for x, _ in at), default=0)
    rows = max((y for _, y in at), default=0)
    return 80 + 76 * max(rows, 1), 140 + 120 * generations


def _node(node: ApiLineageNode, at: tuple[int, int]) -> dict[str, Any]:
    reward = node.reward if isinstance(node.reward, int | float) else None
    if isinstance(node.reward, dict):
        mean = node.reward.get("mean")
        reward = mean if isinstance(mean, int | float) else None
    under = spoken(node.state) + (f", {score(reward, 2)}" if reward is not None else "")
    return {
        "name": node.model_id,
        "value": [at[0], at[1]],
        "itemStyle": {"color": _COLOURS.get(node.state, "var(--series-2)")},
        "label": {
            "show": True,
            "position": "bottom",
            "distance": 7,
            "lineHeight": 15,
            "fontSize": 11.5,
            "color": "var(--ink-2)",
            "formatter": f"{{b}}\n{under}",
        },
    }
