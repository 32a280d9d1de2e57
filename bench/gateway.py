"""What does the gateway add to an answer, and how many does it carry, beside litellm's proxy?

Three ways to the same stub, which answers at once and costs next to nothing: straight to it, through
our gateway, and through litellm's proxy, each gateway in one process. Ours has everything on that it
has in production: a key per client, a canary of 10 %, sticky episodes, recording with redaction in
a child process and a bus that syncs every message; litellm has its master key and nothing else.

    added p50     what one client waits longer than straight at the stub, medians of interleaved rounds
    throughput    of 16 clients that never pause, ours divided by theirs

Episodes of four turns are recorded while the load goes on. What is left of that when the load ends is
worked off before anybody else is measured, and in a row to compare its time counts as ours; one row
says how many of the episodes reached the bus. The last is the slowest of many changes of the traffic plan under that load, from
the moment the bus has stored it to the moment the gateway follows it.
"""

import contextlib
import json
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from functools import partial
from importlib.metadata import version
from pathlib import Path

from bench.harness import (
    PEERS,
    Ask,
    PeerError,
    Row,
    interleave,
    live_peer,
    median_ratio,
    peer_python,
    versions,
)

KEY = "sk-bench-0123456789abcdef"
ROUNDS = 5
ALONE_S, CROWD_S = 2.0, 6.0
"""With one client, and with 16: long enough that recording goes on beside most of it."""
CLIENTS = 16
KINDS = ("plain", "stream")
ADDED_MS = {"plain": 0.5, "stream": 0.7}
TIMES = {"plain": 60.0, "stream": 20.0}
FASTER = 1.0
SETTLE_S = 120.0
CHANGES_S, PLAN_MS = 3.0, 100.0


def rows() -> list[Row]:
    told = versions(uvloop=version("uvloop"), httptools=version("httptools"))
    python = peer_python("litellm", "litellm[proxy]")
    with _ways(python, told) as (ways, ask):
        for url in ways.values():  # every way once, so that nobody is measured while waking up
            for kind in KINDS:
                _load(url, 2, 1.0, kind)
        _settled(ask)
        late: list[dict[str, float]] = []
        taken = interleave(_measures(ways, ask, late), ROUNDS)
        changed = _changed(ways["ours"], ask)
        recorded = _recorded(ask)
    return [*_rows(taken, late, told), recorded, changed]


@contextlib.contextmanager
def _ways(python: Path, told: dict[str, str]) -> Iterator[tuple[dict[str, str], Ask]]:
    """Way → base URL, and how to ask ours for its counts."""
    ours = Path(sys.executable)
    with live_peer(ours, "chat_stub.py") as ask_stub:
        stub = ask_stub("ready")["url"]
        with (
            live_peer(ours, "upswing_gateway.py", stub, KEY) as ask_us,
            live_peer(python, "litellm_proxy.py", stub, KEY) as ask_them,
        ):
            theirs = ask_them("ready")
            told.update(theirs["versions"])
            yield {"direct": stub, "ours": ask_us("ready")["url"], "litellm": theirs["url"]}, ask_us


def _measures(
    ways: dict[str, str], ask: Ask, late: list[dict[str, float]]
) -> dict[str, Callable[[], float]]:
    """`late` gets our rates with the time after the load, until everything is recorded."""
    measures: dict[str, Callable[[], float]] = {}
    for kind in KINDS:
        for way, url in ways.items():
            measures[f"{kind} {way} 1"] = partial(_p50, way, url, kind, ask)
            if way != "direct":
                measures[f"{kind} {way} {CLIENTS}"] = partial(_rate, way, url, kind, ask, late)
    return measures


def _rows(
    taken: list[dict[str, float]], late: list[dict[str, float]], told: dict[str, str]
) -> list[Row]:
    rows = []
    for kind in KINDS:
        name = "plain" if kind == "plain" else "streaming, 20 events"
        ours, theirs = f"{kind} ours {CLIENTS}", f"{kind} litellm {CLIENTS}"
        added = statistics.median(one[f"{kind} ours 1"] - one[f"{kind} direct 1"] for one in taken)
        rates = [one[kind] for one in late if kind in one]
        all_in = [{ours: rate, theirs: one[theirs]} for rate, one in zip(rates, taken, strict=True)]
        many = f"gateway, {name}: throughput, {CLIENTS} clients"
        rows += [
            Row(
                name=f"gateway, {name}: added p50, 1 client",
                value=added,
                target=ADDED_MS[kind],
                better="lower",
                unit="ms",
                peer="the stub itself",
                versions=told,
            ),
            Row(
                name=many,
                value=median_ratio(taken, ours, theirs),
                target=TIMES[kind],
                peer="litellm proxy",
                versions=told,
            ),
            Row(
                name=f"{many}, until all is recorded",
                value=median_ratio(all_in, ours, theirs),
                target=FASTER,
                peer="litellm proxy, to compare",
                versions=told,
            ),
        ]
    return rows


def _p50(way: str, url: str, kind: str, ask: Ask) -> float:
    measured = _load(url, 1, ALONE_S, kind)
    _settled(ask)
    _say(
        f"{kind}, 1 client, {way}: p50 {measured['p50_ms']:.3f} ms, p99 {measured['p99_ms']:.3f} ms"
    )
    return float(measured["p50_ms"])


def _rate(way: str, url: str, kind: str, ask: Ask, late: list[dict[str, float]]) -> float:
    measured = _load(url, CLIENTS, CROWD_S, kind)
    rate = float(measured["per_second"])
    said = ""
    if way == "ours":
        after = _settled(ask)
        late.append({kind: measured["requests"] / (measured["requests"] / rate + after)})
        said = f", all recorded {after:.1f} s later"
    _say(
        f"{kind}, {CLIENTS} clients, {way}: {rate:,.0f}/s, p50 {measured['p50_ms']:.2f} ms, "
        f"p99 {measured['p99_ms']:.2f} ms{said}"
    )
    return rate


def _command(url: str, clients: int, seconds: float, kind: str) -> list[str]:
    script = str(PEERS / "chat_load.py")
    return [sys.executable, script, url, KEY, str(clients), str(seconds), kind]


def _load(url: str, clients: int, seconds: float, kind: str) -> dict:
    done = subprocess.run(_command(url, clients, seconds, kind), capture_output=True, check=False)
    if done.returncode:
        raise PeerError(f"chat_load.py: {done.stderr.decode(errors='replace')[-1000:]}")
    measured = json.loads(done.stdout)
    if measured["wrong"]:
        raise PeerError(f"{url}, {kind}: {measured['wrong']}")
    return measured


def _changed(url: str, ask: Ask) -> Row:
    """Change the plan again and again while 16 clients never pause."""
    command = _command(url, CLIENTS, CHANGES_S, "plain")
    with subprocess.Popen(command, stdout=subprocess.DEVNULL) as load:
        taken: list[list[float]] = []
        while load.poll() is None:
            taken.append(ask("plan")["plan_ms"])
            time.sleep(0.02)
    written, stored = (sorted(column) for column in zip(*taken, strict=True))
    _say(
        f"{len(taken)} plans under load, from the write: p50 {statistics.median(written):.1f} ms, "
        f"worst {written[-1]:.1f} ms; from its acknowledgement: worst {stored[-1]:.1f} ms"
    )
    return Row(
        name=f"gateway, {CLIENTS} clients: a stored plan is followed, worst",
        value=stored[-1],
        target=PLAN_MS,
        better="lower",
        unit="ms",
    )


def _settled(ask: Ask) -> float:
    """Wait until nothing is left to record: nobody works off a backlog while another is measured."""
    begin = time.monotonic()
    while time.monotonic() < begin + SETTLE_S:
        counts = ask("counts")
        if not counts["open"] and not counts["waiting"]:
            break
        time.sleep(0.1)
    return time.monotonic() - begin


def _recorded(ask: Ask) -> Row:
    """The share of all episodes that reached the bus."""
    _settled(ask)
    counts = ask("counts")
    left = counts["open"] + counts["lost"] + counts["gaps"]
    share = counts["recorded"] / max(1, counts["recorded"] + left)
    _say(f"recorded {counts['recorded']:,} episodes, {left:,} not")
    return Row(
        name="gateway: episodes of this load on the bus", value=share, target=1.0, unit="of all"
    )


def _say(sentence: str) -> None:
    print(f"  {sentence}", file=sys.stderr)
