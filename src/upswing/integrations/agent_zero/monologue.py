"""What became of one request? A trajectory in the making, from an agent's first model call to its answer.

```
begin_turn ─▶ answered ─▶ tool_started ─▶ tool_ended ─┐   one turn
    ▲            │ no tool: end_iteration closes it    │
    └────────────┴─────────────────────────────────────┘
end: answered, failed or abandoned ─▶ handed to the recorder
```

A turn is written down when it is over, so a trajectory that ends in the middle has its last turn with what is known of it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from upswing.integrations.agent_zero.transcript import (
    RESPONSE,
    SUBORDINATE,
    Tree,
    action_of,
    looks_failed,
    thoughts_of,
)
from upswing.sdk.recording import Recording

NO_TOOL = "The answer has no tool request that could be read."
UNFINISHED = "It was not finished."


@dataclass(frozen=True, slots=True)
class SuperiorTurn:
    """Where in its superior's work a subordinate was called."""

    trajectory_id: str
    turn_id: int


@dataclass(slots=True)
class _OpenTurn:
    observation: Tree
    began: float
    raw: str | None = None
    """None: the model has not answered."""
    thoughts: list[str] = field(default_factory=list)
    tool: str = ""
    arguments: Any = None
    tool_began: float = 0.0
    error: str = ""


class MonologueRecording:
    """One agent's work on one request. Not for several threads at once."""

    def __init__(
        self,
        recording: Recording,
        observation: Tree,
        *,
        seconds: Callable[[], float],
        superior: SuperiorTurn | None = None,
    ) -> None:
        """`seconds` counts them from anywhere; `observation` is what the first turn sees."""
        self._recording, self._seconds = recording, seconds
        self._observation = observation
        self._turn: _OpenTurn | None = None
        self._turns = 0
        self._subordinates: list[Tree] = []
        self._models: list[str] = []
        self._inferences: list[str] = []
        self.superior = superior
        self.interventions = self.nudges = 0
        self.answer: str | None = None
        """What the user gets, once it is there."""
        self._model_error = ""

    @property
    def trajectory_id(self) -> str:
        return self._recording.id

    @property
    def turn_id(self) -> int:
        """The number of the turn that is open, or of the next one."""
        return self._turns + 1

    @property
    def in_tool(self) -> bool:
        """Whether a tool runs: a model that it asks is not the agent's own turn."""
        return self._turn is not None and bool(self._turn.tool_began)

    @property
    def untouched(self) -> bool:
        """Whether nothing has been asked yet, so that its first observation may be made fuller."""
        return self._turns == 0 and self._turn is None

    def show(self, observation: Tree) -> None:
        """What the next turn sees, instead of what came of the last one."""
        self._observation = observation

    def begin_turn(self) -> None:
        """A model is asked; a turn that got no answer is asked again."""
        if self._turn is not None and self._turn.raw is not None:
            self.end_iteration()
        self._turn = _OpenTurn(self._observation, self._seconds())

    def answered(self, raw: str, reasoning: str = "", model: str = "", inference: str = "") -> None:
        """The model's words, and which model it was where that is known."""
        if self._turn is None:
            self.begin_turn()
        if (turn := self._turn) is not None:
            turn.raw, turn.thoughts = raw, thoughts_of(raw, reasoning)
        self._model_error = ""
        self._models += [model] if model and model not in self._models else []
        self._inferences += [inference] if inference else []

    def tool_started(self, tool: str, arguments: Any, raw: str = "") -> None:
        """`raw` is what the model said, where nobody told of its answer before."""
        if self._turn is None:
            self.begin_turn()
        if (turn := self._turn) is None:
            return
        turn.tool, turn.arguments, turn.tool_began = tool, arguments, self._seconds()
        if turn.raw is None:
            turn.raw, turn.thoughts = raw, thoughts_of(raw)

    def subordinate_began(self, trajectory_id: str, profile: str) -> None:
        """A subordinate works for the turn that is open."""
        link = {"turn_id": self.turn_id, "trajectory_id": trajectory_id, "profile": profile}
        self._subordinates.append(link)

    def tool_ended(self, output: str, *, known: bool = True) -> None:
        """`known`: there is such a tool."""
        if (turn := self._turn) is None or not turn.tool_began:
            return
        took = (self._seconds() - turn.tool_began) * 1000
        failed = not known or looks_failed(output)
        result: Tree = {
            "success": not failed,
            "output": output,
            "execution_time_ms": round(took, 3),
        }
        if failed:
            result["error"] = output[:2000]
        name = turn.tool.partition(":")[0]
        if name == RESPONSE:
            self.answer = output
        kind = "subordinate_response" if name == SUBORDINATE else "tool_result"
        self._close_turn(result, {"type": kind, "content": output})

    def failed(self, error: str) -> None:
        """Something was raised; the turn that is open ends by it."""
        if self._turn is not None:
            self._turn.error = error
            self._model_error = error if self._turn.raw is None else ""

    def intervened(self, text: str) -> None:
        """The user spoke in between: the next turn answers that."""
        self.interventions += 1
        self._settle_open_turn("The user spoke in between.")
        self._observation = {"type": "user_message", "content": text}

    def end_iteration(self) -> None:
        """Whatever is open ends here: a turn without a tool, or one that something was raised in."""
        if (turn := self._turn) is not None:
            self._settle_open_turn(turn.error or (UNFINISHED if turn.tool_began else NO_TOOL))

    def end(self, about: Tree, *, outcome: str = "", reset: bool = False) -> None:
        """Hand it over, unless nothing was even asked. `outcome` is said where the work did not end in an answer."""
        if self.untouched:
            return
        if self._turn is not None:
            self._settle_open_turn(self._turn.error or UNFINISHED, keep=self._turns == 0)
        broken = bool(self._model_error) and self.answer is None and outcome != "abandoned"
        mixed = len(self._models) > 1
        told = {
            **({"subordinates": self._subordinates} if self._subordinates else {}),
            **({"interventions": self.interventions} if self.interventions else {}),
            **({"nudges": self.nudges} if self.nudges else {}),
            **({"inference_ids": self._inferences} if self._inferences else {}),
            **(_superior_link(self.superior) if self.superior else {}),
        }
        more: Tree = {**about, "agent_zero": {**about.get("agent_zero", {}), **told}}
        if self._models:
            more |= {"model": self._models[-1], "policy_version": self._models[-1]}
        if mixed:
            more["mixed_models"] = list(self._models)
        if mixed or broken:
            more["infra_error"] = True
        if reset:
            more["reset"] = True
        self._recording.metadata(**more)
        if outcome:
            self._recording.outcome(outcome)
        self._recording.end()

    def _settle_open_turn(self, error: str, *, keep: bool = False) -> None:
        """Close a turn without a result; one that the model never answered is none, unless it is to be kept."""
        if (turn := self._turn) is None:
            return
        if turn.raw is None and not keep:
            self._turn = None
            return
        took = round((self._seconds() - turn.began) * 1000, 3)
        result = {"success": False, "error": error[:2000], "execution_time_ms": took}
        self._close_turn(result, {"type": "system_message", "content": error[:2000]})

    def _close_turn(self, result: Tree, next_observation: Tree) -> None:
        if (turn := self._turn) is None:
            return
        self._turn = None
        self._turns += 1
        self._recording.turn(
            turn.observation,
            action_of(turn.tool, turn.arguments, turn.raw or ""),
            result,
            thoughts=turn.thoughts,
        )
        self._observation = next_observation


def _superior_link(superior: SuperiorTurn) -> Tree:
    return {"superior": {"trajectory_id": superior.trajectory_id, "turn_id": superior.turn_id}}
