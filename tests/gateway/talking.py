"""A client that sees bytes: what exactly comes back, and what if one does not read it?"""

import asyncio
import contextlib
import json


def request(body, *headers, path="/v1/chat/completions", method="POST", close=True):
    body = body if isinstance(body, bytes) else json.dumps(body).encode()
    head = [f"{method} {path} HTTP/1.1", "Host: gateway", f"Content-Length: {len(body)}", *headers]
    head += ["Connection: close"] if close else []
    return "\r\n".join([*head, "", ""]).encode("latin-1") + body


async def connect(gateway, **options):
    return await asyncio.open_connection(gateway.client.host, gateway.client.port, **options)


async def raw(gateway, message):
    """Everything that comes back until the connection is closed."""
    reader, writer = await connect(gateway)
    writer.write(message)
    try:
        return await asyncio.wait_for(reader.read(), 300)
    finally:
        writer.close()
        with contextlib.suppress(OSError):
            await writer.wait_closed()


async def streamed(gateway, body, *headers):
    """(status, headers, events) of a streaming request."""
    whole = await raw(gateway, request({**body, "stream": True}, *headers))
    head, _, rest = whole.partition(b"\r\n\r\n")
    lines = head.decode("latin-1").split("\r\n")
    named = {k.lower(): v.strip() for k, _, v in (line.partition(":") for line in lines[1:])}
    data = unchunked(rest) if named.get("transfer-encoding") == "chunked" else rest
    events = [line[6:] for line in data.decode().splitlines() if line.startswith("data: ")]
    return int(lines[0].split()[1]), named, events or data


def unchunked(rest):
    parts = []
    while rest:
        size, _, rest = rest.partition(b"\r\n")
        count = int(size, 16)
        if count == 0:
            return b"".join(parts)
        parts.append(rest[:count])
        rest = rest[count + 2 :]
    raise AssertionError("the last chunk is missing")
