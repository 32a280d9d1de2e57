"""A real nats-server for the gateway's tests, and a look into it."""

import contextlib
import json

from tests.support import on_bus
from upswing.contracts.topics import ROLES, TRAJECTORIES
from upswing.infra.nats.bus import Bus
from upswing.infra.nats.permissions import OPERATOR
from upswing.infra.nats.server import EmbeddedServer
from upswing.infra.nats.traffic import TALLY_SECONDS, make_buckets

GATEWAY = "gateway"
PASSWORDS = {role: f"password-of-{role}" for role in (OPERATOR, *ROLES)}


@contextlib.asynccontextmanager
async def nats(folder, port=0, *, tally_seconds=TALLY_SECONDS, **options):
    """A running server with the streams and buckets as they have to be."""
    server = EmbeddedServer(folder, PASSWORDS, port, **options)
    await server.start()
    try:
        bus = await Bus.connect(server.url(OPERATOR))
        await bus.prepare()
        await make_buckets(bus, tally_seconds)
        await bus.close()
        yield server
    finally:
        await server.stop()


async def published(url, stream=TRAJECTORIES):
    """Every message of a stream, parsed."""
    async with on_bus(url) as client:
        js = client.jetstream()
        info = await js.stream_info(stream)
        seqs = range(max(1, info.state.first_seq), info.state.last_seq + 1)
        return [json.loads((await js.get_msg(stream, seq)).data) for seq in seqs]
