"""Clients that send all the time by every door, and remember what was acknowledged to them."""

import asyncio
import contextlib
import time
import uuid

import nats

from tests.support import Client, on_bus, raw, small
from upswing.contracts.topics import TRAJECTORY

AWAY = (OSError, asyncio.IncompleteReadError, TimeoutError, nats.errors.Error)
DOORS = ("http", "nats")


class Load:
    """Two clients at each door; `info` tells where the doors are now, `pace` how long each rests between two."""

    def __init__(self, info, doors=DOORS, pace=0.0):
        self._info, self._pace = info, pace
        self.acknowledged = {door: {} for door in doors}
        self.sent = {}
        self.statuses = set()
        self._ending = False

    def heard(self):
        return [len(each) for each in self.acknowledged.values()]

    def promised(self):
        """All that was acknowledged so far: id → the document, where the client made it."""
        return {name: made for each in self.acknowledged.values() for name, made in each.items()}

    async def run(self):
        async with asyncio.TaskGroup() as group:
            for door in self.acknowledged:
                for _ in range(2):
                    group.create_task(self._send(door))

    def end(self):
        self._ending = True

    async def _send(self, door):
        """One after the other; each again and again, same id, until it is acknowledged."""
        connect = {"http": self._http, "nats": self._nats, "gateway": self._gateway}[door]
        waiting = None
        while not self._ending or (waiting and door != "gateway"):
            try:
                async with connect(self._info()) as send:
                    while not self._ending or (waiting and door != "gateway"):
                        waiting = waiting or small(f"by {door}, number {len(self.sent)}")
                        if door != "gateway":
                            self.sent[waiting["trajectory_id"]] = waiting
                        name = await send(waiting)
                        self.acknowledged[door][name] = waiting if door != "gateway" else None
                        waiting = None
                        await asyncio.sleep(self._pace)
            except AWAY:
                await asyncio.sleep(0.05)  # a client's back-off, as every client has one

    @contextlib.asynccontextmanager
    async def _http(self, info):
        async with Client(info["http_url"], info["key"]) as client:

            async def send(document):
                await self._ask(client, "/v1/trajectories", document, {202}, 5)
                return document["trajectory_id"]

            yield send

    @contextlib.asynccontextmanager
    async def _nats(self, info):
        url = info["nats_urls"]["agent"]
        async with on_bus(url, allow_reconnect=False, connect_timeout=1) as client:
            js = client.jetstream(timeout=2)

            async def send(document):
                await js.publish(TRAJECTORY, raw(document))
                return document["trajectory_id"]

            yield send

    @contextlib.asynccontextmanager
    async def _gateway(self, info):
        async with Client(info["gateway_url"], info["gateway_key"]) as client:

            async def send(_):
                """An episode of one question, told to be over; a new one each time."""
                name = f"episode-{uuid.uuid4()}"
                asked = {"role": "user", "content": f"go, {name}"}
                body = {"model": "m", "messages": [asked], "max_tokens": 2}
                header = (f"X-Episode-Id: {name}",)
                await self._ask(client, "/v1/chat/completions", body, {200}, 15, header)
                answer = await self._ask(client, f"/v1/episodes/{name}/close", {}, {200}, 15)
                assert answer["recorded"], answer
                return answer["trajectory_id"]

            yield send

    async def _ask(self, client, path, body, well, seconds, headers=()):
        asked = client("POST", path, body, headers=headers)
        status, answer = await asyncio.wait_for(asked, seconds)
        self.statuses.add((path.rpartition("/")[2], status))
        # 404: the gateway that began an episode is gone. 502: so is the model server, in the middle.
        assert status in well | {404, 502, 503} - ({404, 502} if 202 in well else set()), answer
        if status not in well:
            raise TimeoutError
        return answer


async def while_it_gets_less(left, what, seconds=60):
    """Wait for zero. After so many kills much may be left; nothing is lost while it becomes less."""

    async def count():
        found = left()
        return await found if asyncio.iscoroutine(found) else found

    least, since = await count(), time.monotonic()
    while least:
        await asyncio.sleep(0.1)
        if (now := await count()) < least:
            least, since = now, time.monotonic()
        assert time.monotonic() < since + seconds, f"{what}: {least}"
