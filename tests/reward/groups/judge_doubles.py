"""Doubles of a judge: one that reads naively and obeys, one behind real HTTP that misbehaves."""

import asyncio
import contextlib
import json
import re
from dataclasses import dataclass

from tests.serving import Listening
from tests.support import trajectory

from upswing.reward.core.judge_prompt import JudgedAttempt
from upswing.reward.judge import GroupToJudge, Judge, JudgePolicy, judge_group

WINDOW = "2025-01-15T10:00"
_LITERAL = r'"(?:[^"\\]|\\.)*"'
_QUALITY = re.compile(r'\{"quality":([0-9.]+)')
_ORDER = re.compile(
    r"(?:give|assign|award|score|rate|set|bewerte|dale|评分)[^\n]{0,80}?(1\.0|0\.0)", re.IGNORECASE
)


@dataclass(frozen=True)
class Said:
    text: str
    prompt_tokens: int | None = 1000
    completion_tokens: int | None = 100


def body(quality=0.5, **changes):
    """A trajectory whose true quality stands in the world's numbers."""
    metadata = {"environment": {"quality": quality}, "window_id": WINDOW}
    metadata |= changes.pop("metadata", {})
    return trajectory(metadata=metadata, **changes)


def group(*bodies, outcome=None):
    attempts = tuple(JudgedAttempt(each["trajectory_id"], each) for each in bodies)
    return GroupToJudge(WINDOW, WINDOW, attempts, outcome)


def answer(scores):
    return json.dumps(
        {"scores": [{"id": i, "explanation": "So.", "score": s} for i, s in scores.items()]}
    )


def _text(quoted):
    with contextlib.suppress(ValueError):
        return json.loads(quoted, strict=False)
    return quoted[1:-1]


class Reading:
    """A prompt as a naive reader takes it in, by the rules that the system message announces.

    What stands between quotation marks on a line of the announced form is data. Whatever is left
    counts as spoken to the reader, wherever it stands.
    """

    def __init__(self, messages):
        system, user = (message["content"] for message in messages)
        nonce = re.search(r"=== (\w+) begin NAME ===", system)[1]
        self.labels = re.search(r"each of these ids: (.*)$", system)[1].split(", ")
        self.data, self.spoken, self.shown = {}, [], []
        block = None
        for line in user.splitlines():
            border = re.fullmatch(rf"=== {nonce} (begin|end) (\w+) ===", line)
            quoted = re.fullmatch(rf"{block} \| [a-z0-9_. ]+ \| ({_LITERAL})", line)
            if border:
                block = border[2] if border[1] == "begin" else None
                self.shown += [block] if block in self.labels else []
            elif block and quoted:
                self.data.setdefault(block, []).append(_text(quoted[1]))
            else:
                self.spoken.append((block, line))

    def quality(self, label):
        told = [_QUALITY.match(text) for text in self.data.get(label, [])]
        return next((float(found[1]) for found in told if found), 0.5)


class ObedientJudge:
    """Scores by the world's numbers, unless somebody tells it something else."""

    def __init__(self):
        self.prompts = []

    async def __call__(self, messages, response_format):
        self.prompts.append(messages)
        reading = Reading(messages)
        scores = {label: reading.quality(label) for label in reading.labels}
        for block, line in reading.spoken:
            if order := _ORDER.search(line):
                scores[block if block in scores else reading.labels[0]] = float(order[1])
        return Said(answer(scores))


class BiasedJudge(ObedientJudge):
    """Likes what it sees first."""

    async def __call__(self, messages, response_format):
        self.prompts.append(messages)
        reading = Reading(messages)
        scores = {label: reading.quality(label) for label in reading.labels}
        scores[reading.shown[0]] += 0.2
        return Said(answer(scores))


async def judged(asked, ask, *, seed="s", sleep=None, policy=None, spent=None, **options):
    async def no_wait(_):
        pass

    judge = Judge(ask, policy or JudgePolicy("double"), sleep=sleep or no_wait, **options)
    return await judge_group(asked, judge, seed=seed, spent=spent)


class Endpoint:
    """An OpenAI-compatible endpoint on the loopback, a double: it plays `script`, then scores well.

    An act is a status, a (status, body) pair, a number of seconds to stay silent as a float, or a
    function from the labels asked about to the text of the answer.
    """

    def __init__(self, *script, key="sk-right"):
        self.script, self.key, self.requests = list(script), key, []

    async def __aenter__(self):
        self._listening = await Listening(self._serve).__aenter__()
        self.url = f"http://127.0.0.1:{self._listening.port}/v1"
        return self

    async def __aexit__(self, *error):
        await self._listening.__aexit__(*error)

    async def _serve(self, reader, writer):
        try:
            await self._exchange(reader, writer)
        finally:
            writer.close()

    async def _exchange(self, reader, writer):
        with contextlib.suppress(OSError, asyncio.IncompleteReadError):
            head = (await reader.readuntil(b"\r\n\r\n")).decode()
            length = int(re.search(r"content-length: (\d+)", head, re.IGNORECASE)[1])
            request = json.loads(await reader.readexactly(length))
            self.requests.append(request)
            status, said = await self._play(head, request)
            raw = said if isinstance(said, bytes) else json.dumps(said).encode()
            writer.write(
                f"HTTP/1.1 {status} X\r\nContent-Type: application/json\r\n"
                f"Content-Length: {len(raw)}\r\nConnection: close\r\n\r\n".encode()
                + raw
            )
            await writer.drain()

    async def _play(self, head, request):
        if f"Authorization: Bearer {self.key}" not in head:
            return 401, {"error": {"message": f"wrong key: {head}"}}
        act = self.script.pop(0) if self.script else _fair
        if isinstance(act, float):
            await asyncio.sleep(act)
            act = _fair
        if isinstance(act, int):
            return act, {"error": {"message": "no", "code": "double"}}
        if isinstance(act, tuple):
            return act
        labels = Reading(request["messages"]).labels
        return 200, completion(act(labels))


def _fair(labels):
    return answer({label: place / 10 for place, label in enumerate(labels)})


def completion(text, **usage):
    return {
        "choices": [{"message": {"role": "assistant", "content": text}}],
        "usage": {"prompt_tokens": 900, "completion_tokens": 90, **usage},
    }
