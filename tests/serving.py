"""A server of a test's own: when it is over, every connection that it took is closed."""

import asyncio
import contextlib


class Listening:
    """`serve(reader, writer)` is asked for every connection."""

    def __init__(self, serve, **options):
        self._serve, self._options = serve, options
        self._tasks, self._writers = set(), set()

    async def __aenter__(self):
        self._server = await asyncio.start_server(self._connected, "127.0.0.1", 0, **self._options)
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *_):
        loop = asyncio.get_running_loop()
        for listening in self._server.sockets:
            loop.remove_reader(listening.fileno())
        await asyncio.sleep(0)  # who was accepted just now is told to an open server alone
        self._server.close()
        await asyncio.sleep(0)
        for task in self._tasks:
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks)
        for writer in self._writers:
            writer.transport.abort()
            with contextlib.suppress(OSError):
                await writer.wait_closed()

    def _connected(self, reader, writer):
        """Of a task that is cancelled before it begins, nothing would close the connection."""
        self._writers.add(writer)
        task = asyncio.get_running_loop().create_task(self._serve(reader, writer))
        self._tasks.add(task)
        task.add_done_callback(self._done)

    def _done(self, task):
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            task.get_loop().call_exception_handler(
                {"message": "a test's server broke", "exception": error}
            )
