"""Labelled doubles: OpenAI-shaped servers that differ in what they have and in what they mind."""

import asyncio
from dataclasses import dataclass

from tests.gateway.scripted import Server, chunk, completion, sse

PLAIN = {
    "model",
    "messages",
    "max_tokens",
    "temperature",
    "top_p",
    "seed",
    "stream",
    "stop",
    "user",
}


@dataclass(frozen=True)
class Profile:
    """What a server has: each combination is a server that somebody runs."""

    listing: bool = True
    logprobs: bool = True
    token_ids: bool = True
    tools: bool = True
    key: str = ""
    strict: bool = False
    """Answers 400 to a field that it does not know."""
    adapters: bool = False
    redirects: bool = False
    elsewhere: str = "404"
    """What a path that it does not know gets: a status, or `close` for a connection that just ends."""
    page: bool = False
    """Answers everything with a web page and 200."""
    kind: str = "application/json"
    knows: frozenset = frozenset(PLAIN)

    @property
    def fields(self):
        more = {"logprobs": self.logprobs, "return_token_ids": self.token_ids, "tools": self.tools}
        return self.knows | {name for name, has in more.items() if has}


class Profiled(Server):
    """Behaves as its profile says, and remembers every field that it does not know."""

    def __init__(self, profile=None, name="theirs"):
        super().__init__()
        self.profile, self.name = profile or Profile(), name
        self.gate = None
        """An event that every answer waits for."""
        self.minded = []
        """Requests with fields that it does not know."""
        self.followed = 0

    def chats(self):
        return [each for each in self.requests if each["path"].endswith("/chat/completions")]

    async def answer(self, request, reader, writer):
        profile, path = self.profile, request["path"]
        if self.gate is not None:
            await self.gate.wait()
        if path.startswith("/elsewhere"):
            self.followed += 1
        elif profile.redirects:
            return await self.send(writer, b"", status="307 X", extra="Location: /elsewhere\r\n")
        if profile.page:
            return await self.send(writer, b"<html>Welcome</html>", "text/html")
        if profile.key and request["headers"].get("authorization") != f"Bearer {profile.key}":
            return await self.refuse(writer, 401, "Which key?")
        if path.endswith("/models") and profile.listing:
            return await self.send(
                writer, {"object": "list", "data": [{"id": self.name}]}, profile.kind
            )
        if path.endswith("/load_lora_adapter") and profile.adapters:
            return await self.refuse(writer, 405 if request["method"] == "GET" else 400, "How?")
        if not path.endswith("/chat/completions"):
            if profile.elsewhere == "close":
                return writer.close()
            return await self.refuse(writer, int(profile.elsewhere), "There is no such path.")
        return await self._completed(request["body"], writer)

    async def _completed(self, asked, writer):
        profile = self.profile
        if asked["model"] != self.name:
            return await self.refuse(writer, 404, f"There is no {asked['model']}.")
        if odd := sorted(asked.keys() - profile.fields):
            self.minded.append(odd)
            if profile.strict:
                return await self.refuse(writer, 400, f"Unrecognized request argument: {odd[0]}")
        if asked.get("stream"):
            pieces = [chunk({"role": "assistant", "content": "hi"}), chunk({}, "stop")]
            return await self.stream(writer, [sse(*pieces)])
        body = completion({"content": "hi"})
        if profile.logprobs and asked.get("logprobs"):
            told = {"content": [{"token": "hi", "logprob": -0.5}]}
            body["choices"][0]["logprobs"] = told
        if profile.token_ids and asked.get("return_token_ids"):
            body["prompt_token_ids"] = [1, 2, 3]
            body["choices"][0]["token_ids"] = [7]
        return await self.send(writer, body, profile.kind)

    async def refuse(self, writer, status, message):
        return await self.send(writer, {"error": {"message": message}}, status=f"{status} X")

    def hold(self):
        """Answer nobody until `gate` is set."""
        self.gate = asyncio.Event()
