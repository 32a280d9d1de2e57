"""What happened in one trajectory, what was it worth and why, and what came of it?"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from nicegui import ui

from upswing.dashboard.answers import ApiTrajectoryView
from upswing.dashboard.core.text import as_text, one_line
from upswing.dashboard.core.wording import count, noun, plural, short_id, spoken
from upswing.dashboard.pages.trajectory_aside import TrajectoryAside
from upswing.dashboard.widgets.actions import action_button, confirm
from upswing.dashboard.widgets.context import PageContext
from upswing.dashboard.widgets.elements import Tag, badge, box, button, said
from upswing.dashboard.widgets.frame import page_head
from upswing.dashboard.widgets.panel import Panel

_VIEW = "/v1/trajectories/{trajectory_id}/view"
_MOST_TURNS = 40
"""Drawn at once; each is a dozen elements."""


class TrajectoryDetailView:
    """One trajectory; what is said of it can change, it cannot."""

    def __init__(self, page: PageContext, trajectory_id: str) -> None:
        self.page, self.id = page, trajectory_id
        self.turns_drawn: int | None = None

    def draw(self) -> None:
        with page_head(f"Trajectory {one_line(short_id(self.id), 40)}", one_line(self.id, 80)):
            button("Back", ui.navigate.back, icon="arrow_back")
        with box("grid main-side"):
            self.turn_panel = Panel(self.page, classes="stack", seconds=3600, least_height=400)
            with self.turn_panel:
                self.turns = box("stack")
            with box("stack wide"):
                TrajectoryAside(self.page, self.id, self.view).draw()
        self.turn_panel.loads(self.load_turns)

    async def view(self) -> ApiTrajectoryView:
        return await self.page.loop.get(_VIEW, ApiTrajectoryView, trajectory_id=self.id)

    # --- turn by turn ----------------------------------------------------------------------------

    async def load_turns(self) -> None:
        found = await self.view()
        self.turns.clear()
        with self.turns:
            if found.trajectory is None:
                Tag(
                    "p",
                    f"This trajectory has {count(found.trajectory_bytes)} bytes, too many for a page: GET /v1/trajectories/{self.id} has it.",
                    "soft",
                )
                return
            self._draw_task(found.trajectory)
            self._draw_turns(found.trajectory.get("turns") or [], 0)

    def _draw_task(self, body: Mapping[str, Any]) -> None:
        task = body.get("task_context") or {}
        with box("card"):
            with box("card-head"):
                Tag("h2", "Task")
                Tag("span", one_line(str(task.get("task_id") or ""), 60), "aside wrap-anywhere")
            said(as_text(task.get("instructions")))

    def _draw_turns(self, turns: list[Any], start: int) -> None:
        for turn in turns[start : start + _MOST_TURNS]:
            if isinstance(turn, dict):
                self._draw_turn(turn)
        left = len(turns) - start - _MOST_TURNS
        if left > 0:

            def more() -> None:
                asks.delete()
                with self.turns:
                    self._draw_turns(turns, start + _MOST_TURNS)

            asks = button(f"Show {count(min(left, _MOST_TURNS))} more turns", more)

    def _draw_turn(self, turn: Mapping[str, Any]) -> None:
        seen, action, result = (
            turn.get(name) or {} for name in ("observation", "action", "result")
        )
        with box("turn", "article", aria_label=f"Turn {turn.get('turn_id')}"):
            with box("turn-head"):
                Tag("span", f"Turn {turn.get('turn_id')}", "strong")
                badge(
                    str(action.get("type") or ""),
                    "accent" if action.get("type") == "tool_call" else "",
                )
                if result.get("success") is False:
                    badge("failed")
                if (took := result.get("execution_time_ms")) is not None:
                    Tag("span", f"{count(took)} ms")
                ui.space()
                self._pin_button(turn.get("turn_id"))
            content = seen.get("content")
            _part(
                spoken(str(seen.get("type") or "observation")),
                as_text(content),
                code=not isinstance(content, str),
            )
            if thoughts := turn.get("thought_process"):
                _part("thoughts", "\n".join(map(as_text, thoughts)))
            if action.get("tool_name"):
                arguments = as_text(action.get("tool_args"))
                _part("tool call", f"{action['tool_name']}({arguments})", code=True)
            if action.get("raw_response"):
                _part("answer", as_text(action["raw_response"]))
            if result.get("output") is not None:
                _part(
                    "result", as_text(result["output"]), code=not isinstance(result["output"], str)
                )
            if result.get("error"):
                _part("error", as_text(result["error"]))

    def _pin_button(self, turn_id: Any) -> None:
        async def pin(_: str) -> str:
            made = await self.page.loop.pin(self.id, turn_id if isinstance(turn_id, int) else None)
            known = "Pinned" if made.new else "It was pinned before"
            return f"{known}: every later model has to do better than this. {plural(made.pinned, 'test')} {noun(made.pinned, 'is', 'are')} pinned."

        action_button(
            self.page,
            "Pin as test",
            lambda: confirm(
                "Pin as a test",
                f"Turn {turn_id} becomes a task of the suite `regression`: a later model passes when it does not answer the same again.",
                pin,
                verb="Pin",
                reason=False,
            ),
            "plain",
            icon="push_pin",
        )


def _part(kind: str, text: str, *, code: bool = False) -> None:
    if text:
        with box("turn-part"):
            Tag("div", kind, "kind")
            said(text, "code" if code else "")


def trajectory_page(page: PageContext, trajectory_id: str) -> None:
    view = TrajectoryDetailView(page, trajectory_id)
    with page.begin(view.view):
        view.draw()
