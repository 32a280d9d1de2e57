"""How much sooner do we know that bytes are a trajectory than the usual validators do?"""

import tempfile
from importlib.metadata import version
from pathlib import Path

from bench.corpus import SIZE_BYTES, TURNS, trajectory_bytes
from bench.harness import REPOSITORY, Row, live_peer, peer_python, side_by_side, versions
from bench.peers.rounds import rate

SCHEMA = REPOSITORY / "contracts" / "trajectory.v1.schema.json"
ITEMS = 20
ROUND_S = 0.4
TARGETS = {"jsonschema": 40.0, "pydantic": 2.0}


def rows() -> list[Row]:
    items = [trajectory_bytes(seed=seed) for seed in range(ITEMS)]
    with tempfile.TemporaryDirectory() as folder:
        corpus = Path(folder) / "trajectories.jsonl"
        corpus.write_bytes(b"\n".join(items))
        return [
            _row("jsonschema", items, SCHEMA, corpus),
            _row("pydantic", items, corpus),
        ]


def _row(peer: str, items: list[bytes], *args: object) -> Row:
    from upswing.contracts import decode_trajectory

    told: dict[str, str] = {}
    python = peer_python(peer, peer)
    with live_peer(python, f"{peer}_validation.py", *args) as ask:

        def theirs() -> float:
            answer = ask({"seconds": ROUND_S})
            told.update(answer["versions"])
            return float(answer["per_second"])

        def ours() -> float:
            return rate(decode_trajectory, items, ROUND_S)

        ratio = side_by_side(ours, theirs)
    return Row(
        name=f"bytes → validated trajectory ({SIZE_BYTES // 1000} KB, {TURNS} turns)",
        value=ratio,
        target=TARGETS[peer],
        peer=peer,
        versions=versions(msgspec=version("msgspec"), **told),
    )
