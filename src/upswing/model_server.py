"""How does a model server come up, and how does it go? `python -m upswing.model_server --base tiny`.

    engine ─▶ adapters ─▶ port ─▶ "ready URL" ─▶ … ─▶ SIGTERM ─▶ no more requests ─▶ those under way
                                                                  end ─▶ engine closed ─▶ exit 0

It prints its URL when it answers, and not before. What went wrong before that is one sentence on
standard error, and exit code 1.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import logging
import os
import signal
import socket
import sys
import threading
import time
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import uvicorn

from upswing.adapters.adopting import is_held
from upswing.adapters.engines.choosing import WISHES, Wish, open_engine
from upswing.adapters.listening import bound
from upswing.adapters.options import PORT, Number, Whole
from upswing.errors import UpswingError
from upswing.logs import set_up_logging
from upswing.pulse import Beats
from upswing.redact import Redactor, default_rules
from upswing.running import write_private
from upswing.serve.admin_service import is_local
from upswing.serve.limits import Limits
from upswing.serve.service import ModelServer
from upswing.together import begin, end

log = logging.getLogger(__name__)
KEY = "UPSWING_MODEL_SERVER_KEY"
_GOODBYE_SECONDS = 2
_LOOK_SECONDS = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """How a model server is started."""

    base: str
    cache: Path
    host: str = "127.0.0.1"
    port: int = 0
    engine: Wish = "auto"
    adapters: Mapping[str, Path] = field(default_factory=dict)
    seats: int | None = None
    threads: int | None = None
    requests: int = 128
    ready_file: Path | None = None
    state: Path | None = None
    """Where it is kept which adapters are served, and read from at the start."""
    with_parent: bool = False
    main_lock: Path | None = None
    """Held by whoever it serves; without a holder for `orphan_seconds`, it ends."""
    orphan_seconds: float = 60.0
    drain_seconds: float = 30.0
    key: str | None = None


async def serve(options: Options, told: asyncio.Event | None = None) -> int:
    """Run until it is told to stop, by `told` or else by a signal; the exit code."""
    with contextlib.closing(_bound(options.host, options.port)) as port:
        engine = await open_engine(
            options.base, options.cache,
            wish=options.engine, seats=options.seats, threads=options.threads,
        )  # fmt: skip
        try:
            app = ModelServer(
                engine, clock=time.time, new_id=lambda: uuid.uuid4().hex, key=options.key,
                limits=Limits(requests=options.requests), public=not is_local(options.host),
                changed=lambda adapters: _remember(options.state, adapters),
            )  # fmt: skip
            await _load(app, options)
            await _answer(app, port, options, told or _told_to_stop(options))
        finally:
            await engine.close()
    return 0


async def _answer(
    app: ModelServer, port: socket.socket, options: Options, told: asyncio.Event
) -> None:
    server = _Server(
        uvicorn.Config(
            app, lifespan="off", access_log=False, log_config=None, http="httptools",
            proxy_headers=False, server_header=False, date_header=False, backlog=2048,
            timeout_keep_alive=75, timeout_graceful_shutdown=_GOODBYE_SECONDS,
        )
    )  # fmt: skip
    running, listening = begin(server.serve(sockets=[port])), begin(server.ready.wait())
    stopping = begin(told.wait())
    try:
        await asyncio.wait({running, listening}, return_when=asyncio.FIRST_COMPLETED)
        if server.ready.is_set():
            _announce(port, options.ready_file)
            if options.main_lock is not None:
                os.dup2(2, 1)  # whoever reads our standard output may end before us
            await asyncio.wait({running, stopping}, return_when=asyncio.FIRST_COMPLETED)
            if not running.done() and not await app.drained(options.drain_seconds):
                log.warning("requests were cut off", extra={"action": "drain_ran_out"})
    finally:
        await end([listening, stopping])
        server.should_exit = True
        await running


async def _load(app: ModelServer, options: Options) -> None:
    """What was asked for must load; what was served before, as far as it still can be."""
    before = _remembered(options.state)
    for name, path in options.adapters.items():
        await app.admin.add(name, path.absolute())
    for name, place in before.items():
        try:
            await app.admin.add(name, Path(place))
        except UpswingError as error:
            log.error("%s: %s", name, error, extra={"action": "adapter_lost"})  # noqa: TRY400 - a clear sentence


def _remember(state: Path | None, adapters: Mapping[str, str]) -> None:
    if state is not None:
        write_private(state, json.dumps(dict(adapters)))


def _remembered(state: Path | None) -> dict[str, str]:
    try:
        told = json.loads(state.read_bytes()) if state is not None else {}
    except (OSError, ValueError):
        return {}
    return {str(name): str(path) for name, path in told.items()} if isinstance(told, dict) else {}


def _bound(host: str, port: int) -> socket.socket:
    """The port is ours from the first moment on; it answers when there is something to say."""
    made = bound(host, port)
    made.setblocking(False)
    return made


def _announce(port: socket.socket, file: Path | None) -> None:
    host, number = port.getsockname()[:2]
    url = f"http://[{host}]:{number}" if ":" in host else f"http://{host}:{number}"
    if file is not None:
        write_private(file, url)
    print(f"ready {url}", flush=True)  # noqa: T201 - whoever started it reads this
    log.info("the model server is ready at %s", url, extra={"action": "model_server_ready"})


def _told_to_stop(options: Options) -> asyncio.Event:
    """SIGTERM, Ctrl-C, or nobody whom we serve: our standard input has ended, or the lock is free."""
    told, loop = asyncio.Event(), asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, told.set)

    def watch(wait: Callable[[], None]) -> None:
        wait()
        with contextlib.suppress(RuntimeError):  # it has ended already
            loop.call_soon_threadsafe(told.set)

    waits = [_until_no_parent] if options.with_parent else []
    if (lock := options.main_lock) is not None:
        waits.append(lambda: _until_no_main(lock, options.orphan_seconds))
    for wait in waits:
        threading.Thread(target=watch, args=(wait,), name="upswing-parent", daemon=True).start()
    return told


def _until_no_parent() -> None:
    while os.read(0, 1024):  # not through `sys.stdin`, whose lock would be held at our end
        pass


def _until_no_main(lock: Path, seconds: float) -> None:
    """Nobody has held the lock for so long, or the folder is gone."""
    alone = 0.0
    while alone < seconds:
        time.sleep(_LOOK_SECONDS)
        held = is_held(lock)
        if held is None:
            return
        alone = 0.0 if held else alone + _LOOK_SECONDS


class _Server(uvicorn.Server):
    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.ready = asyncio.Event()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets=sockets)
        self.ready.set()

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Leave the signals to us: requests under way end first."""
        yield


def parser() -> argparse.ArgumentParser:
    """The options of `upswing serve model`."""
    made = argparse.ArgumentParser(
        prog="python -m upswing.model_server",
        description="Serve a base and its adapters, OpenAI-shaped.",
    )
    made.add_argument(
        "--base", default="tiny", help="tiny, smollm2, or a folder of a Hugging Face model"
    )
    made.add_argument(
        "--cache", type=Path, default=Path("bases"), help="where bases lie that are made here"
    )
    made.add_argument("--host", default="127.0.0.1")
    made.add_argument("--port", type=PORT, default=0, help="0: any free one")
    made.add_argument("--engine", choices=WISHES, default="auto")
    made.add_argument("--adapter", action="append", default=[], metavar="NAME=PATH", type=_pair)
    made.add_argument(
        "--seats", type=Whole(1, 4096), help="requests in one batch; the engine decides unless told"
    )
    made.add_argument(
        "--threads", type=Whole(1, 1024), help="for computing; the engine decides unless told"
    )
    made.add_argument(
        "--requests", type=Whole(1), default=128, help="under way at once, the rest gets 429"
    )
    made.add_argument("--ready-file", type=Path, help="written with the URL when it answers")
    made.add_argument(
        "--state", type=Path, help="keeps which adapters are served, for the next start"
    )
    made.add_argument(
        "--drain-seconds",
        type=Number(0, 3600),
        default=30.0,
        help="for requests under way at the end",
    )
    made.add_argument(
        "--main-lock", type=Path, help="end when nobody has held this file's lock for a while"
    )
    made.add_argument("--orphan-seconds", type=Number(0), default=60.0, help="how long that is")
    made.add_argument("--with-parent", action="store_true", help="end when standard input does")
    return made


def parsed(words: Sequence[str] | None = None) -> Options:
    """The options of a command line."""
    told = vars(parser().parse_args(words))
    adapters = dict(told.pop("adapter"))
    return Options(**told, adapters=adapters, key=os.environ.get(KEY) or None)


def _pair(text: str) -> tuple[str, Path]:
    """The name and the path of an adapter.

    >>> _pair("a=/b")
    ('a', PosixPath('/b'))
    """
    name, _, path = text.partition("=")
    if not name or not path:
        raise argparse.ArgumentTypeError("write NAME=PATH")
    return name, Path(path)


def main(words: Sequence[str] | None = None) -> int:
    Beats().from_thread()
    options = parsed(words)
    os.environ.setdefault("HF_HUB_OFFLINE", "1")  # nothing is fetched
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    set_up_logging(Redactor(rules=default_rules()))
    try:
        return asyncio.run(serve(options))
    except UpswingError as error:
        sys.stderr.write(f"upswing: {error}\n")
        return 1


if __name__ == "__main__":
    sys.exit(main())
