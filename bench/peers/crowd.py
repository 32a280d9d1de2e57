"""Thousands of connections that ask nothing or slowly: a line of JSON `[url, path, way, count]` opens them, `null` closes them."""

import asyncio
import contextlib
import json
import resource
import sys
from urllib.parse import urlsplit

PER_ADDRESS = 500
EVERY_S = 1.0
"""Between two drops of those that are slow."""


def first(way, path):
    head = f"POST {path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer wrong\r\n".encode()
    return {
        "idle": (b"", b""),
        "slow heads": (head, b"X-Y: z\r\n"),
        "slow bodies": (head + b"Content-Length: 30000\r\n\r\n", b"x" * 50),
        "endless headers": (head + b"X: ", b"y" * 10_000),
        "keyless bodies": (head + b"Content-Length: 33554432\r\n\r\n", b"x" * 50_000),
    }[way]


async def one(where, number, begin, again, up):
    source = (f"127.0.0.{2 + number // PER_ADDRESS}", 0)
    with contextlib.suppress(OSError):
        while True:
            reader, writer = await asyncio.open_connection(
                where.hostname, where.port, local_addr=source
            )
            up()
            writer.write(begin)
            while not reader.at_eof():
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(
                        reader.read(65_536), EVERY_S * 10 if not again else EVERY_S
                    )
                writer.write(again)
            writer.close()
            await asyncio.sleep(EVERY_S * 5)  # it was dropped, and comes back


async def press(url, path, way, count):
    where = urlsplit(url)
    begin, again = first(way, path)
    counted = [0]

    def up():
        counted[0] += 1

    tasks = []
    for number in range(count):
        tasks.append(asyncio.create_task(one(where, number, begin, again, up)))
        if number % 100 == 99:
            await asyncio.sleep(0.05)
    for _ in range(100):
        if counted[0] >= count:
            break
        await asyncio.sleep(0.1)
    return tasks, counted[0]


async def main():
    reader = asyncio.StreamReader()
    await asyncio.get_running_loop().connect_read_pipe(
        lambda: asyncio.StreamReaderProtocol(reader), sys.stdin
    )
    tasks = []
    while line := await reader.readline():
        wanted = json.loads(line)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        tasks, made = await press(*wanted) if wanted else ([], 0)
        print(json.dumps({"made": made}), flush=True)


if __name__ == "__main__":
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    asyncio.run(main())
