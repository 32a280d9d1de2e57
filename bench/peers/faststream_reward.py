"""How does a competent team reward trajectories with FastStream, pydantic, presidio and SQLite?

    python faststream_reward.py NATS_URL FOLDER

Each library is used as its documentation shows: a JetStream subscriber gets a checked model, every
free text is redacted, the clean document is committed, then the reward is published. Only
presidio's regular expressions run, without a language model, and only on text: ids, times and the
words of enumerations are left alone. A line on stdin is answered with the versions.
"""

import asyncio
import json
import sqlite3
import statistics
import sys
import uuid
from collections import deque
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

from faststream.nats import JStream, NatsBroker
from presidio_analyzer import PatternRecognizer, RecognizerRegistry
from pydantic_validation import Trajectory

TRAJECTORY, REWARD = "agent.rl.trajectory.v1", "agent.rl.reward.v1"
WEIGHTS = {
    "task_completion": 0.40,
    "efficiency": 0.20,
    "code_quality": 0.15,
    "user_feedback": 0.25,
}
COMPLETION = {"completed": 1.0, "partial": 0.5, "failed": 0.0}
PLAIN = frozenset({"type", "role", "domain", "model", "tool_name", "window_id"})
TRUSTED = 0.4
"""Of presidio's scores: below, a pattern alone is a guess."""
TRAILING, FEW = 1000, 30


# --- redaction -----------------------------------------------------------------------------------


def _recognizers() -> list[Any]:
    registry = RecognizerRegistry()
    registry.load_predefined_recognizers(languages=["en"])
    return [
        r for r in registry.recognizers if isinstance(r, PatternRecognizer) or "Phone" in r.name
    ]


class Redactor:
    def __init__(self) -> None:
        self._recognizers = _recognizers()
        if "bob.smith@example.org" in self.text("write to bob.smith@example.org, please"):
            raise RuntimeError("presidio is not set up: it does not find a plain e-mail address")

    def text(self, text: str) -> str:
        """Last finding first, so that the places of the others stay true."""
        found = [
            hit
            for recognizer in self._recognizers
            for hit in recognizer.analyze(text, recognizer.supported_entities, None) or ()
            if hit.score >= TRUSTED
        ]
        edge = len(text)
        for hit in sorted(found, key=lambda hit: (hit.end, hit.score), reverse=True):
            if hit.end <= edge:
                text = f"{text[: hit.start]}<{hit.entity_type}>{text[hit.end :]}"
                edge = hit.start
        return text

    def tree(self, node: Any, key: str = "") -> Any:
        if isinstance(node, str):
            plain = key in PLAIN or key.endswith(("_id", "timestamp"))
            return node if plain else self.text(node)
        if isinstance(node, dict):
            return {name: self.tree(value, name) for name, value in node.items()}
        return [self.tree(value, key) for value in node] if isinstance(node, list) else node


# --- storing -------------------------------------------------------------------------------------


def connect(folder: Path) -> sqlite3.Connection:
    database = sqlite3.connect(folder / "trajectories.db")
    database.execute("PRAGMA journal_mode = WAL")
    database.execute("PRAGMA synchronous = FULL")
    database.execute("CREATE TABLE trajectories (id TEXT PRIMARY KEY, body TEXT NOT NULL)")
    database.commit()
    return database


def store(database: sqlite3.Connection, document: dict[str, Any]) -> None:
    row = (document["trajectory_id"], json.dumps(document, ensure_ascii=False))
    with database:
        database.execute("INSERT INTO trajectories VALUES (?, ?) ON CONFLICT DO NOTHING", row)


# --- judging -------------------------------------------------------------------------------------


class Judge:
    def __init__(self) -> None:
        self._turns: deque[float] = deque(maxlen=TRAILING)
        self._scores: dict[str, deque[float]] = {n: deque(maxlen=TRAILING) for n in WEIGHTS}

    def reward(self, document: dict[str, Any]) -> dict[str, Any]:
        scores = self._raw(document)
        present = sum(WEIGHTS[name] for name in scores)
        components, total = {}, 0.0
        for name, score in scores.items():
            weight, normalised = WEIGHTS[name] / present, self._normalised(name, score)
            total += weight * normalised
            components[name] = {
                "score": score,
                "weight": weight,
                "source": "automated",
                "raw_data": {"normalised": normalised},
            }
            self._scores[name].append(score)
        return {
            "reward_id": str(uuid.uuid4()),
            "trajectory_id": document["trajectory_id"],
            "session_id": document["session_id"],
            "timestamp": datetime.now(UTC).isoformat(),
            "reward_components": components,
            "total_reward": total,
            "reward_type": "dense",
            "normalization": {"method": "z-score"},
            "metadata": {"evaluator": "bench", "evaluation_method": "automated"},
        }

    def _raw(self, document: dict[str, Any]) -> dict[str, float]:
        told, turns = document["metadata"], float(len(document["turns"]))
        scores = {
            "task_completion": COMPLETION[told["outcome"]["status"]],
            "efficiency": 0.5 - _z(turns, self._turns) / 4,
            "user_feedback": 0.5,
        }
        if "linter_results" in told:
            scores["code_quality"] = told["linter_results"]["pylint"] / 10
        self._turns.append(turns)
        return scores

    def _normalised(self, name: str, score: float) -> float:
        return min(1.0, max(0.0, 0.5 + _z(score, self._scores[name]) / 6))


def _z(value: float, history: deque[float]) -> float:
    if len(history) < FEW:
        return 0.0
    mean = statistics.fmean(history)
    spread = statistics.pstdev(history, mean)
    return min(2.0, max(-2.0, (value - mean) / spread)) if spread else 0.0


# --- the service ---------------------------------------------------------------------------------


def service(url: str, folder: Path) -> NatsBroker:
    broker = NatsBroker(url, logger=None)
    redactor, judge, database = Redactor(), Judge(), connect(folder)
    trajectories = JStream("RL_TRAJECTORIES", subjects=[TRAJECTORY])
    publisher = broker.publisher(REWARD, stream=JStream("RL_REWARDS", subjects=[REWARD]))

    @broker.subscriber(TRAJECTORY, stream=trajectories, durable="rewarder")
    async def reward(trajectory: Trajectory) -> None:
        clean = redactor.tree(trajectory.model_dump(mode="json", exclude_unset=True))
        store(database, clean)
        await publisher.publish(judge.reward(clean))

    return broker


async def main() -> None:
    url, folder = sys.argv[1], Path(sys.argv[2])
    names = ("faststream", "nats-py", "pydantic", "presidio-analyzer")
    async with service(url, folder) as broker:
        await broker.start()
        while await asyncio.to_thread(sys.stdin.readline):
            print(json.dumps({name: version(name) for name in names}), flush=True)


if __name__ == "__main__":
    asyncio.run(main())
