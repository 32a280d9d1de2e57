"""What does the loop do? Test agents record 200 trajectories through all three doors, and you see.

A scripted double stands in for the language model; everything else is the real thing: the
embedded nats-server, the store, the recorder, HTTP and a plain NATS publisher.
"""

from __future__ import annotations

import asyncio
import json
import random
import re
import tempfile
import urllib.request
from collections import Counter
from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, TextIO
from uuid import UUID

import nats

from upswing.config import Settings, Surroundings
from upswing.contracts.steps import stamp
from upswing.contracts.topics import TRAJECTORY
from upswing.reward.total import explain
from upswing.running import Running
from upswing.runtime import Address, Loop, now
from upswing.sdk import Recorder

TOTAL = 200
_TASKS = (
    ("Implement binary search in Python.", "python"),
    ("Find out which sources disagree on the date.", "search"),
    ("Debug the failing test of the parser.", "python"),
    ("Write a letter to the customer about the delay.", "editor"),
    ("Analyze the CSV and plot sales per week.", "pandas"),
)
_SLIPS = (
    "the customer is {}@example.org, call back",
    "export GITHUB_TOKEN=ghp_" + "{:0>36}",
    "paid with card 4111 1111 1111 1111 ({})",
)
"""What agents let slip. None of it may be stored."""


async def run(out: TextIO) -> int:
    """Start a loop in a temporary directory, feed it, show what is in it, stop it."""
    with tempfile.TemporaryDirectory(prefix="upswing-demo-") as folder:
        data = Path(folder) / "data"
        loop = Loop(data, Settings(), Surroundings(), Address(port=0, gateway_port=None))
        running = await loop.start()
        try:
            print(
                f"A loop is up at {running.http_url}. {TOTAL} trajectories go in by three doors …",
                file=out,
            )
            started = now()
            await asyncio.gather(
                _by_sdk(running, data, 70), _by_http(running, 70), _by_nats(running, 60)
            )
            while (await loop.store.counts())["rewards"] < TOTAL:  # noqa: ASYNC110 - as any onlooker
                await asyncio.sleep(0.02)
            seconds = (now() - started).total_seconds()
            await _show(loop, out, seconds)
        finally:
            await loop.stop()
    return 0


def _scripted(seed: int, count: int) -> Iterator[dict[str, Any]]:
    """What the test agents do: a few turns each, now and then with something private in them."""
    chance = random.Random(seed)  # noqa: S311 - a script, not a secret
    start = now() - timedelta(hours=3)
    for number in range(count):
        task, tool = chance.choice(_TASKS)
        begin = start + timedelta(minutes=chance.randrange(170))
        slip = (
            chance.choice(_SLIPS).format(chance.randrange(10**6))
            if chance.random() < 0.3
            else "done"
        )
        turns = [
            _turn(
                place,
                begin + timedelta(seconds=5 * place),
                task,
                tool,
                slip if place == 1 else "ok",
            )
            for place in range(1, chance.randint(1, 6) + 1)
        ]
        yield {
            "trajectory_id": str(UUID(int=chance.getrandbits(128), version=4)),
            "session_id": f"demo-{seed}",
            "agent_id": f"agent-{number % 7}",
            "start_timestamp": stamp(begin),
            "end_timestamp": stamp(begin + timedelta(seconds=60)),
            "turns": turns,
            "task_context": {"task_id": f"task-{number}", "instructions": task},
            "metadata": {"model": "scripted-double", "user_id": f"user-{number % 5}"},
        }


def _turn(place: int, when: datetime, task: str, tool: str, output: str) -> dict[str, Any]:
    return {
        "turn_id": place,
        "timestamp": stamp(when),
        "observation": {"type": "user_message", "content": task},
        "action": {"type": "tool_call", "tool_name": tool, "raw_response": f"I use {tool}."},
        "result": {"success": True, "output": output},
    }


async def _by_sdk(running: Running, data: Path, count: int) -> None:
    """The door that Python agents use."""
    recorder = Recorder(url=running.http_url, key=running.key, spool=data.parent / "spool")
    for made in _scripted(1, count):
        async with recorder.trajectory(
            agent_id=made["agent_id"], task=made["task_context"]["instructions"],
            model="scripted-double", user_id=made["metadata"]["user_id"],
        ) as recording:  # fmt: skip
            for turn in made["turns"]:
                recording.turn(
                    observation=turn["observation"]["content"],
                    action=turn["action"],
                    result=turn["result"],
                )
    await asyncio.to_thread(recorder.flush, 30)
    await asyncio.to_thread(recorder.close)


async def _by_http(running: Running, count: int) -> None:
    """The door of every other language: half of them one by one, half as JSON lines."""
    bodies = [json.dumps(made).encode() for made in _scripted(2, count)]
    for body in bodies[: count // 2]:
        await asyncio.to_thread(_post, running, body, "application/json")
    await asyncio.to_thread(
        _post, running, b"\n".join(bodies[count // 2 :]), "application/x-ndjson"
    )


def _post(running: Running, body: bytes, kind: str) -> None:
    request = urllib.request.Request(  # noqa: S310 - our own address
        f"{running.http_url}/v1/trajectories", body,
        {"Authorization": f"Bearer {running.key}", "Content-Type": kind},
    )  # fmt: skip
    urllib.request.urlopen(request, timeout=30).close()  # noqa: S310


async def _by_nats(running: Running, count: int) -> None:
    """The door of whoever can publish on a subject."""
    client = await nats.connect(running.nats_urls["agent"], inbox_prefix=b"_INBOX_agent")
    jetstream = client.jetstream()
    for made in _scripted(3, count):
        await jetstream.publish(TRAJECTORY, json.dumps(made).encode())
    await client.close()


async def _show(loop: Loop, out: TextIO, seconds: float) -> None:
    stored = await loop.store.trajectories_after(0, TOTAL)
    bodies = b"\n".join(row.admitted.body for row in stored)
    print(
        f"{len(stored)} trajectories are stored and scored, {seconds:.1f} s after the first was sent.\n",
        file=out,
    )
    for title, counts in (
        ("door", Counter(row.door for row in stored)),
        ("domain", Counter(row.admitted.domain for row in stored)),
        ("window", Counter(row.admitted.window_id for row in stored)),
    ):
        told = "  ".join(f"{name} {count}" for name, count in sorted(counts.items()))
        print(f"  by {title:8}{told}", file=out)
    found = Counter(re.findall(r"<([a-z-]+)-[0-9]+>", bodies.decode()))
    print(
        f"  redacted   {'  '.join(f'{kind} {count}' for kind, count in sorted(found.items()))}",
        file=out,
    )
    sample = next(row for row in stored if b"-1>" in row.admitted.body)
    output = json.loads(sample.admitted.body)["turns"][0]["result"]["output"]
    print(f"  for example {output!r}", file=out)
    reward = await loop.rewards.newest(sample.admitted.trajectory_id)
    print("  its reward:", file=out)
    for line in explain(reward) if reward else ():
        print(f"    {line}", file=out)
    print(f"\n{json.dumps(await loop.store.counts())}", file=out)
    print(
        "\nStart your own loop with `upswing up`; docs/recording.md shows how an agent joins it.",
        file=out,
    )
