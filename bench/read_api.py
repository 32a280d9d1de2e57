"""Does an answer cost more with a larger store? What pages and tools ask, in stores of several sizes.

python -m bench read_api                       10,000 and 100,000 trajectories
python -m bench read-api --rows 1000000        any sizes, and every endpoint: a table of milliseconds

A store is filled by SQL, with rows as collect and reward leave them (30 days, bodies of 2 KB, four models, 200 agents,
5,000 users), and a real loop for each answers over HTTP. Each request is made 30 times, of all loops in turn; the median
and the slowest are told. What reading finds of a store at its start (the check of every row) goes on meanwhile, as it does for a user.
"""

import argparse
import asyncio
import contextlib
import http.client
import json
import random
import shutil
import statistics
import sys
import tempfile
import time
import uuid
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from pathlib import Path
from typing import Any
from urllib.parse import quote

from bench.harness import Row, versions
from tests.support import Process

from upswing.contracts import canonical
from upswing.infra.sql.database import Tx
from upswing.infra.sql.store import open_store, to_microseconds

SIZES = (10_000, 100_000)
TARGET_MS = 20.0
REPEATS = 30
_BATCH = 10_000
_MODELS = ("tiny", "agent-zero-rl-v1", "agent-zero-rl-v2", "gpt-x")
_DOMAINS = ("coding", "research", "general", "writing")
_SPAN = timedelta(days=30)
_RARE = "needle-in-a-haystack"
_PROMISED = {
    "status": "/v1/status",
    "training status": "/api/admin/training/status",
}
"""The two that must take less than 20 ms at a million."""


def _endpoints(trajectory_id: str) -> dict[str, str]:
    return {
        **_PROMISED,
        "overview": "/v1/overview",
        "trajectories": "/v1/trajectories",
        "… of a model": "/v1/trajectories?model=agent-zero-rl-v2",
        "… of an agent": "/v1/trajectories?agent=agent-7",
        "… of a user": "/v1/trajectories?user=user-42",
        "… of a task": "/v1/trajectories?task=task-9",
        "… failures of a domain": "/v1/trajectories?domain=coding&outcome=failure",
        "… with a reward of 0.99": "/v1/trajectories?min_reward=0.99",
        "… of an agent and a model": "/v1/trajectories?agent=agent-7&model=gpt-x",
        "… of a day, 20 days ago": "/v1/trajectories?since=21d&until=20d",
        "… with a text that few have": f"/v1/trajectories?text={_RARE}",
        "one with all of it": f"/v1/trajectories/{trajectory_id}/view",
        "rewards of an hour": "/v1/rewards/series?since=1h",
        "rewards of 30 days": "/v1/rewards/series?since=30d",
        "traffic of 30 days": "/v1/traffic/series?since=30d",
        "decisions": "/v1/decisions",
        "decisions of a kind": "/v1/decisions?kind=hold",
        "feedback": "/v1/feedback",
        "dead letters": "/v1/dead",
        "models": "/v1/models",
        "audit": "/v1/audit",
        "settings": "/v1/settings",
        "windows (5,000 newest)": "/v1/windows",
    }


def rows() -> list[Row]:
    tables = measure(SIZES, promised_only=True)
    return [
        Row(
            name=f"GET {_PROMISED[name]} at {size:,} trajectories",
            value=median,
            target=TARGET_MS,
            better="lower",
            unit=" ms",
            peer=f"slowest of {REPEATS}: {slowest:.1f} ms",
            versions=versions(),
        )
        for size, times in tables.items()
        for name, (median, slowest) in times.items()
    ]


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m bench read-api")
    parser.add_argument("--rows", default=",".join(map(str, SIZES)), help="sizes, by commas")
    parser.add_argument("--keep", type=Path, help="keep the stores in this folder, and use them")
    options = parser.parse_args(arguments)
    sizes = [int(each) for each in options.rows.split(",")]
    tables = measure(sizes, keep=options.keep)
    print(f"{'median (slowest) in ms':<34}" + "".join(f"{size:>20,}" for size in sizes))
    for name in tables[sizes[0]]:
        cells = (tables[size][name] for size in sizes)
        print(f"{name:<34}" + "".join(f"{a:>12.1f} ({b:>5.0f})" for a, b in cells))
    worst = max(tables[size][name][0] for size in sizes for name in _PROMISED)
    print(json.dumps({"worst_promised_ms": round(worst, 2), "target_ms": TARGET_MS}))
    return 0 if worst < TARGET_MS else 1


class Asking:
    """A client of one loop."""

    def __init__(self, url: str, key: str) -> None:
        self._connection = http.client.HTTPConnection(url.removeprefix("http://"), timeout=600)
        self._headers = {"Authorization": f"Bearer {key}"}
        newest = json.loads(self._get("/v1/trajectories?limit=1"))["trajectories"][0]
        self.paths = _endpoints(quote(newest["trajectory_id"]))

    def ask(self, path: str) -> float:
        """How many milliseconds the answer took."""
        began = time.perf_counter()
        self._get(path)
        return (time.perf_counter() - began) * 1000

    def _get(self, path: str) -> bytes:
        self._connection.request("GET", path, headers=self._headers)
        answer = self._connection.getresponse()
        raw = answer.read()
        if answer.status != 200:
            raise RuntimeError(f"{path}: {answer.status} {raw[:300]!r}")
        return raw


def measure(
    sizes: Sequence[int], *, promised_only: bool = False, keep: Path | None = None
) -> dict[int, dict[str, tuple[float, float]]]:
    """Size → endpoint → (median, slowest) in milliseconds; the loops are asked in turn."""
    with _folder(keep) as home, contextlib.ExitStack() as running:
        asking = {}
        for size in sizes:
            data = home / f"store-{size}"
            if not (data / "upswing.db").exists():
                _fill(data, size)
            process = Process.start(data, env={"TRAIN_RL_LOCAL": "false"})
            running.callback(process.destroy)
            running.callback(process.stop)
            info = process.until_ready(600)
            asking[size] = Asking(info["http_url"], info["key"])
        names = _PROMISED if promised_only else _endpoints("")
        return _asked_in_turn(asking, list(names))


def _asked_in_turn(
    asking: dict[int, Asking], names: list[str]
) -> dict[int, dict[str, tuple[float, float]]]:
    found: dict[int, dict[str, tuple[float, float]]] = {size: {} for size in asking}
    for name in names:
        times: dict[int, list[float]] = {size: [] for size in asking}
        first = {size: each.ask(each.paths[name]) for size, each in asking.items()}
        for _ in range(3 if "windows" in name else REPEATS):
            for size, each in asking.items():
                times[size].append(each.ask(each.paths[name]))
        for size, some in times.items():
            found[size][name] = (statistics.median(some), max(some))
        told = ", ".join(f"{took:.1f}" for took in first.values())
        print(f"  {name}: the first took {told} ms", file=sys.stderr)
    return found


@contextlib.contextmanager
def _folder(keep: Path | None) -> Iterator[Path]:
    if keep is not None:
        keep.mkdir(parents=True, exist_ok=True)
        yield keep
        return
    home = Path(tempfile.mkdtemp(prefix="upswing-read-api-"))
    try:
        yield home
    finally:
        shutil.rmtree(home, ignore_errors=True)


# --- the store -----------------------------------------------------------------------------------


def _fill(data: Path, size: int) -> None:
    began = time.monotonic()
    data.mkdir(parents=True)
    asyncio.run(_fill_store(data, size))
    print(f"  {size:,} rows in {time.monotonic() - began:.0f} s", file=sys.stderr)


async def _fill_store(data: Path, size: int) -> None:
    store = open_store(data)
    try:
        await store.prepare()
        chance = random.Random(size)
        now = datetime.now(UTC)
        for start in range(0, size, _BATCH):
            some = range(start, min(size, start + _BATCH))

            def unit(tx: Tx, some: range = some) -> None:
                for number in some:
                    _add(tx, number, now - _SPAN + _SPAN * (number / size), chance)

            await store.database.write(unit)
        await store.move_cursor("reward", size)
        await store.database.write(lambda tx: _add_others(tx, now, chance))
    finally:
        store.close()


_TRAJECTORY = (
    "INSERT INTO trajectories (trajectory_id, content_hash, body, agent_id, session_id, user_id, agent_type, "
    "domain, complexity, window_id, scenario_id, episode_id, model, started_us, ended_us, turns, infra_error, "
    "door, stored_us, task_id, evaluation, answers) "
    "VALUES (?, ?, ?, ?, 's', ?, 'developer', ?, 0.5, ?, ?, NULL, ?, ?, ?, ?, 0, ?, ?, ?, 0, ?)"
)
_SCORED = (
    "INSERT INTO scored (trajectory_seq, trajectory_id, agent_id, principal, model, window_id, scenario_id, "
    "domain, complexity, turns, infra_error, revision, total, raw_total, reported, task_id, answers, gateway) "
    "VALUES (?, ?, ?, ?, ?, ?, ?, ?, 0.5, ?, 0, 1, ?, ?, ?, ?, ?, ?)"
)
_REWARD = "INSERT INTO rewards (trajectory_id, revision, body, created_us) VALUES (?, 1, ?, ?)"


def _add(tx: Tx, number: int, at: datetime, chance: random.Random) -> None:
    name = str(uuid.UUID(int=chance.getrandbits(128), version=4))
    model, domain = chance.choice(_MODELS), chance.choice(_DOMAINS)
    agent, user = f"agent-{chance.randrange(200)}", f"user-{chance.randrange(5000)}"
    task, turns = f"task-{chance.randrange(max(20, number // 50 + 20))}", chance.randint(1, 6)
    well = chance.choice((0.0, 1.0, 1.0, None))
    reward = min(1.0, max(0.0, chance.gauss(0.6, 0.2)))
    us, window = to_microseconds(at), f"{at:%Y-%m-%dT%H}:00"
    rare = f" {_RARE}" if number % 20_000 == 7 else ""
    body = canonical(_document(name, agent, user, model, domain, task, at, turns, rare))
    tx.execute(
        _TRAJECTORY,
        (
            *(name, sha256(body).digest(), body, agent, user, domain, window, task, model),
            *(us - 1_000_000, us, turns, chance.choice(("gateway", "http")), us, task, name),
        ),
    )
    shared = (name, agent, user, model, window, task, domain, turns, reward, reward, well)
    tx.execute(_SCORED, (number + 1, *shared, task, name, int(number % 2)))
    tx.execute(_REWARD, (name, b'{"reward_components":{},"total_reward":%f}' % reward, us))


def _document(
    name: str,
    agent: str,
    user: str,
    model: str,
    domain: str,
    task: str,
    at: datetime,
    turns: int,
    rare: str,
) -> dict[str, Any]:
    stamp = at.isoformat()
    said = "The invoice of last month is missing, please look it up and say what happened." + rare
    one = {
        "timestamp": stamp,
        "observation": {"type": "user_message", "content": said * 2},
        "action": {"type": "response", "raw_response": said},
        "result": {"success": True, "output": "done"},
    }
    return {
        "trajectory_id": name,
        "session_id": "s",
        "agent_id": agent,
        "start_timestamp": stamp,
        "end_timestamp": stamp,
        "turns": [{"turn_id": turn + 1, **one} for turn in range(turns)],
        "task_context": {"task_id": task, "instructions": said, "domain": domain},
        "metadata": {"model": model, "user_id": user},
    }


def _add_others(tx: Tx, now: datetime, chance: random.Random) -> None:
    """Decisions and words, as a store of a month has them."""
    for number in range(5000):
        at = to_microseconds(now - _SPAN + _SPAN * (number / 5000))
        kind = chance.choice(("wait_for_data", "hold", "set_weight"))
        tx.execute(
            "INSERT INTO decisions (decision_id, stage, kind, sentence, inputs, outcome, decided_us) "
            "VALUES (?, ?, ?, 'It waits.', ?, ?, ?)",
            (
                str(uuid.UUID(int=number)),
                chance.choice(("trigger", "deploy")),
                kind,
                b"{}",
                b"{}",
                at,
            ),
        )
    for number in range(2000):
        body = canonical({"feedback_id": f"f-{number}", "type": "thumbs_up"})
        tx.execute(
            "INSERT INTO feedback (feedback_id, content_hash, body, user_id, principal, stored_us) "
            "VALUES (?, ?, ?, 'u', 'operator', ?)",
            (f"f-{number}", sha256(body).digest(), body, to_microseconds(now)),
        )
