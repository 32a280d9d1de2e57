"""How many trajectories per second does a running upswing acknowledge to 64 clients?

    python upswing_load.py HOST PORT PER_REQUEST SECONDS  < key-and-trajectories

The first line of stdin is the key, for arguments show in a process list. Every trajectory sent has an id of its own: a repeated one would be recognised, and cost nothing.
"""

import json
import secrets
import sys

from load import BodyMaker, run

CLIENTS = 64
ACCEPTED = 202


def _maker(lines: list[bytes], per_request: int) -> BodyMaker:
    """Bodies cut at the id, so that a fresh one costs a join and no parsing."""
    pieces = []
    for line in lines:
        identity = json.loads(line)["trajectory_id"].encode()
        before, _, after = line.partition(identity)
        pieces.append((before, after))
    run_id = secrets.token_hex(4).encode()

    def one(number: int) -> bytes:
        before, after = pieces[number % len(pieces)]
        return b"%s%s-0000-4000-8000-%012x%s" % (before, run_id, number, after)

    def many(number: int) -> bytes:
        first = number * per_request
        return b"\n".join([one(first + place) for place in range(per_request)])

    return one if per_request == 1 else many


def _one_accepted(status: int, _answer: bytes) -> int:
    return int(status == ACCEPTED)


def _lines_accepted(status: int, answer: bytes) -> int:
    """One result per line; a refused line does not refuse its neighbours."""
    if status >= 300:
        return 0
    results = [json.loads(line) for line in answer.splitlines() if line]
    return sum(result.get("status") == ACCEPTED for result in results)


def main() -> None:
    host, port, per_request, seconds = sys.argv[1:]
    batch = int(per_request)
    key, *lines = sys.stdin.buffer.read().splitlines()
    answer = run(
        (host, int(port)),
        "/v1/trajectories",
        {
            "Authorization": f"Bearer {key.decode()}",
            "Content-Type": "application/json" if batch == 1 else "application/x-ndjson",
        },
        _maker(lines, batch),
        _one_accepted if batch == 1 else _lines_accepted,
        clients=CLIENTS,
        seconds=float(seconds),
        items_each=batch,
    )
    print(json.dumps(answer))


if __name__ == "__main__":
    main()
