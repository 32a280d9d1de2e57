"""Does a secret reach a disk of ours? Twenty kinds in ten forms through every door, then the bytes."""

import asyncio
import base64
import contextlib
import json
import random
import sqlite3
import string
import uuid
from collections import defaultdict

import pytest
from tests.support import Client, on_bus, raw, small, until

from upswing.contracts.topics import FEEDBACK, FEEDBACKS, TRAJECTORIES, TRAJECTORY

pytestmark = pytest.mark.live
CHANCE = random.Random(20251208)
ALNUM, HEX = string.ascii_letters + string.digits, "0123456789abcdef"


def some(count, letters=ALNUM):
    return "".join(CHANCE.choice(letters) for _ in range(count))


def jwt():
    head = base64.urlsafe_b64encode(b'{"alg":"HS256","typ":"JWT"}').decode().rstrip("=")
    body = base64.urlsafe_b64encode(json.dumps({"sub": some(12)}).encode()).decode().rstrip("=")
    return f"{head}.{body}.{some(43)}"


# Put together here, so that no credential, not even a made-up one, stands in the source.
KINDS = {
    "openai": lambda: "sk-" + "proj-" + some(48),
    "anthropic": lambda: "sk-" + "ant-api03-" + some(90),
    "github": lambda: "gh" + "p_" + some(36),
    "github fine-grained": lambda: "github" + "_pat_" + some(22) + "_" + some(59),
    "gitlab": lambda: "gl" + "pat-" + some(20),
    "slack": lambda: "xox" + "b-" + some(11, string.digits) + "-" + some(24),
    "stripe": lambda: "sk" + "_live_" + some(32),
    "aws": lambda: "AK" + "IA" + some(16, string.ascii_uppercase + string.digits),
    "google": lambda: "AI" + "za" + some(35),
    "huggingface": lambda: "h" + "f_" + some(34),
    "groq": lambda: "gs" + "k_" + some(52),
    "npm": lambda: "np" + "m_" + some(36),
    "sendgrid": lambda: "S" + "G." + some(22) + "." + some(43),
    "vault": lambda: "hv" + "s." + some(60),
    "digitalocean": lambda: "dop" + "_v1_" + some(64, HEX),
    "databricks": lambda: "da" + "pi" + some(32, HEX),
    "shopify": lambda: "shp" + "at_" + some(32, HEX),
    "telegram": lambda: some(9, "123456789") + ":" + "AA" + some(33),
    "twilio": lambda: "S" + "K" + some(32, HEX),
    "jwt": jwt,
}


def b64(text):
    return base64.b64encode(text.encode()).decode()


LOOK_ALIKES = str.maketrans("aceopxyABEKMHOPCTX", "асеорхуАВЕКМНОРСТХ")
ENCODED = {
    "plain": lambda v: v,
    "base64": b64,
    "nested base64": lambda v: b64(b64(v)),
    "hex": lambda v: v.encode().hex(),
    "percent": lambda v: "".join(f"%{byte:02X}" for byte in v.encode()),
    "escapes": lambda v: "".join(f"\\u{ord(ch):04x}" for ch in v),
    "look-alikes": lambda v: v.translate(LOOK_ALIKES),
    "zero width": "\u200b".join,
}
CUT = {"across turns": 2, "across chunks": 3}
FORMS = [*ENCODED, *CUT]


def cut(value, form):
    size = -(-len(value) // CUT[form])
    return [value[i : i + size] for i in range(0, len(value), size)]


def pieces(value, form):
    """The texts that are sent: one, or several when the value is cut."""
    if form in ENCODED:
        return [f"the tool said {ENCODED[form](value)} and went on"]
    parts = cut(value, form)
    return [f"the tool said {parts[0]}", *parts[1:-1], f"{parts[-1]} and went on"]


def told(value, form):
    """A trajectory that tells the secret."""
    made = small()
    texts = pieces(value, form)
    (turn,) = made["turns"]
    if form == "across chunks":
        turn["action"] = {"type": "tool_call", "tool_name": "read", "tool_args": {"chunks": texts}}
        return made
    made["turns"] = [
        {**turn, "turn_id": number, "result": {"success": True, "output": text}}
        for number, text in enumerate(texts, 1)
    ]
    return made


def said(value, form):
    """Feedback that tells it."""
    first, *rest = pieces(value, form)
    word = {
        "feedback_id": str(uuid.uuid4()),
        "timestamp": "2025-12-08T13:00:00Z",
        "type": "comment",
        "episode_id": "e",
        "comment": first,
    }
    return word | ({"metadata": {"more": rest}} if rest else {})


class Plants:
    """Which secret was planted where; every door, kind and form has one of its own."""

    def __init__(self):
        self.planted = {}

    def __call__(self, door):
        for kind, make in KINDS.items():
            for form in FORMS:
                value = make()
                self.planted[door, kind, form] = value
                yield value, form

    def needles(self):
        """(bytes, where it was planted): the secret, its halves, and how these were written."""
        for where, value in self.planted.items():
            sent = ENCODED.get(where[2], ENCODED["plain"])(value)
            texts = {
                *halves(value),
                *halves(sent),
                *halves(b64(value)),
                *halves(value.encode().hex()),
            }
            texts |= set(cut(value, where[2])) if where[2] in CUT else set()
            for text in texts:
                yield text.encode(), where
                yield json.dumps(text)[1:-1].encode(), where


def halves(text):
    middle = len(text) // 2
    return [part for part in (text, text[:middle], text[middle:]) if len(part) >= 12]


def leaks(paths, plants):
    """Where a needle stands in the bytes. Backslashes are left out, so that escaping hides nothing."""
    heads = defaultdict(set)
    for needle, where in plants.needles():
        bare = needle.replace(b"\\", b"")
        if len(bare) >= 12:
            heads[bare[:12]].add((bare, where))
    found = set()
    for path in paths:
        body = path.read_bytes().replace(b"\\", b"")
        for place in range(len(body) - 11):
            if known := heads.get(body[place : place + 12]):
                found |= {
                    (*where, path.name) for bare, where in known if body.startswith(bare, place)
                }
    return sorted(found)


async def through_http(client, plants):
    for value, form in plants("http"):
        assert (await client.send(told(value, form)))[0] == 202


async def in_lines(client, plants):
    body = b"\n".join(raw(told(value, form)) for value, form in plants("lines"))
    status, _ = await client("POST", "/v1/trajectories", body, kind="application/x-ndjson")
    assert status == 202


async def in_steps(client, plants):
    for value, form in plants("steps"):
        _, opened = await client("POST", "/v1/trajectories/start", {"agentId": "a"})
        path = f"/v1/trajectories/{opened['id']}"
        texts = [pieces(value, form)] if form == "across chunks" else pieces(value, form)
        for number, text in enumerate(texts, 1):
            action = {
                "actionType": "READ",
                "parameters": {},
                "success": True,
                "result": {"text": text},
            }
            status, answer = await client(
                "POST", f"{path}/steps", {"stepNumber": number, "action": action}
            )
            assert status == 202, answer
        assert (await client("POST", f"{path}/end", {}))[0] == 202


async def as_feedback(client, plants):
    for value, form in plants("feedback"):
        assert (await client("POST", "/v1/feedback", said(value, form)))[0] == 202


async def in_bad_messages(client, plants):
    """They become dead letters, which are kept, announced and logged."""
    for value, form in plants("bad http"):
        assert (await client.send({**told(value, form), "surprise": 1}))[0] == 422
    for value, form in plants("broken http"):
        if form in ENCODED:
            assert (await client("POST", "/v1/trajectories", raw(told(value, form))[:-1]))[0] == 400
        else:  # what is no JSON has no turns and no chunks: cut by a line
            body = "\n".join(pieces(value, "plain")).encode() + b"{"
            assert (await client("POST", "/v1/trajectories", body))[0] == 400
    for value, form in plants("bad value"):
        body = {**small(), "session_id": {"x": pieces(value, form)}}
        assert (await client.send(body))[0] == 422


async def through_nats(agent, plants):
    for value, form in plants("nats"):
        await agent.publish(TRAJECTORY, raw(told(value, form)))
    for value, form in plants("bad nats"):
        await agent.publish(TRAJECTORY, raw({**told(value, form), "surprise": 1}))
    for value, form in plants("nats feedback"):
        await agent.publish(FEEDBACK, raw(said(value, form)))
    await agent.flush()


async def test_no_planted_secret_is_in_any_file(start, data):
    plants = Plants()
    process = await asyncio.to_thread(start)
    info = process.info
    async with (
        Client(info["http_url"], info["key"]) as client,
        on_bus(info["nats_urls"]["agent"]) as agent,
        on_bus(info["nats_urls"]["operator"]) as operator,
    ):
        await through_nats(agent, plants)
        for send in (through_http, in_lines, in_steps, as_feedback, in_bad_messages):
            await send(client, plants)

        async def settled():
            for stream in (TRAJECTORIES, FEEDBACKS):
                consumer = await operator.jetstream().consumer_info(stream, "collector")
                if consumer.num_pending or consumer.num_ack_pending:
                    return False
            return (await client("GET", "/v1/status"))[1]["outbox"] == 0

        await until(settled, 60, "the loop did not settle")
        counts = (await client("GET", "/v1/status"))[1]
    assert process.stop() == 0
    assert len(plants.planted) == 10 * len(KINDS) * len(FORMS)
    assert (counts["trajectories"], counts["feedback"]) == (800, 400)
    with contextlib.closing(sqlite3.connect(data / "upswing.db")) as store:
        refused = store.execute("SELECT SUM(1 + more) FROM dead").fetchone()[0]
    assert refused == 800, "the letters, and those of a busy key that are only counted"

    files = [*files_below(data), process.log]
    assert {"upswing.db", "nats.log", "data.log"} <= {path.name for path in files}
    assert sum(path.stat().st_size for path in files) > 1_000_000, "there was something to look at"
    found = leaks(files, plants)
    assert not found, summary(found)


def files_below(folder):
    return [path for path in folder.rglob("*") if path.is_file()]


def summary(found):
    """Kind × form × door of every leak, shortest first."""
    by_place = defaultdict(set)
    for door, kind, form, file in found:
        by_place[kind, form].add(f"{door} ({file})")
    return "\n".join(
        f"{kind}, {form}: {', '.join(sorted(doors))}"
        for (kind, form), doors in sorted(by_place.items())
    )


def test_the_search_finds_what_is_there(tmp_path):
    """It would be easy to find nothing."""
    plants = Plants()
    values = {}
    for value, form in plants("here"):
        values.setdefault(form, value)  # of the first kind
    for form, value in values.items():
        (tmp_path / form.replace(" ", "-")).write_bytes(raw({"text": pieces(value, form)}))
    (tmp_path / "twice").write_bytes(
        raw(json.dumps({"text": pieces(values["escapes"], "escapes")}))
    )
    found = {(form, file) for _, _, form, file in leaks(sorted(tmp_path.iterdir()), plants)}
    assert found == {(form, form.replace(" ", "-")) for form in FORMS} | {("escapes", "twice")}
