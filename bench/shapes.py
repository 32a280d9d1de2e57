"""What does another shape than chat cost at the gateway?

The same conversations in chat completions, in OpenAI's Responses and in Anthropic's Messages, by one client through one
gateway with everything on that it has in production (see `gateway`). The stub behind it speaks chat alone, so each
request and each event of the others is translated. Rounds are interleaved: in each, every shape is asked for a second,
and what the medians differ by is what the translation costs.

    chat added            what a client waits longer than straight at the stub
    Responses, Messages   what it waits longer than for chat through the gateway
"""

import json
import statistics
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

from bench.harness import PEERS, PeerError, Row, interleave, live_peer, versions

KEY = "sk-bench-0123456789abcdef"
ROUNDS, SECONDS = 15, 1.0
SHAPES = {"responses": "Responses", "messages": "Messages"}
KINDS = {"plain": "plain", "stream": "streaming, 20 events"}
CHAT_MS, TRANSLATED_MS = 0.2, 0.3


def rows() -> list[Row]:
    ours, told = Path(sys.executable), versions()
    with live_peer(ours, "chat_stub.py") as ask_stub:
        stub = ask_stub("ready")["url"]
        with live_peer(ours, "upswing_gateway.py", stub, KEY) as ask_us:
            url = ask_us("ready")["url"]
            measures = _measures(stub, url)
            for (
                measure
            ) in measures.values():  # each once, so that nobody is measured while waking up
                measure()
            taken = interleave(measures, ROUNDS)
    return [row for kind in KINDS for row in _rows(kind, taken, told)]


def _measures(stub: str, url: str) -> dict[str, Callable[[], float]]:
    measures: dict[str, Callable[[], float]] = {}
    for kind in KINDS:
        measures[f"{kind} direct"] = partial(_p50, stub, kind, "chat")
        for shape in ("chat", *SHAPES):
            measures[f"{kind} {shape}"] = partial(_p50, url, kind, shape)
    return measures


def _rows(kind: str, taken: list[dict[str, float]], told: dict[str, str]) -> list[Row]:
    def added(name: str, beside: str) -> float:
        return statistics.median(one[f"{kind} {name}"] - one[f"{kind} {beside}"] for one in taken)

    def row(name: str, value: float, target: float, peer: str) -> Row:
        title = f"gateway, {KINDS[kind]}: {name}, added p50, 1 client"
        return Row(
            name=title,
            value=value,
            target=target,
            better="lower",
            unit="ms",
            peer=peer,
            versions=told,
        )

    return [
        row("chat", added("chat", "direct"), CHAT_MS, "the stub itself"),
        *(
            row(label, added(shape, "chat"), TRANSLATED_MS, "chat through the gateway")
            for shape, label in SHAPES.items()
        ),
    ]


def _p50(url: str, kind: str, shape: str) -> float:
    command = [
        sys.executable,
        str(PEERS / "chat_load.py"),
        url,
        KEY,
        "1",
        str(SECONDS),
        kind,
        shape,
    ]
    done = subprocess.run(command, capture_output=True, check=False)
    if done.returncode:
        raise PeerError(f"chat_load.py: {done.stderr.decode(errors='replace')[-1000:]}")
    measured = json.loads(done.stdout)
    if measured["wrong"]:
        raise PeerError(f"{url}, {kind}, {shape}: {measured['wrong']}")
    print(f"  {kind}, {shape}: p50 {measured['p50_ms']:.3f} ms", file=sys.stderr)
    return float(measured["p50_ms"])
