"""How does a model server come up, and how does it go? `python -m upswing.serve.main --base tiny`.

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

from upswing.errors import UpswingError
from upswing.infra.adoption import is_lock_held
from upswing.infra.cli_options import PORT, FloatOption, IntegerOption, add_log_options
from upswing.infra.heartbeat import Beats
from upswing.infra.instance import write_private
from upswing.infra.sockets import bind_port
from upswing.infra.tasks import cancel_all, start_task
from upswing.logs import LogOptions, set_up_logging
from upswing.redact import Redactor, default_rules
from upswing.serve.admin import is_local
from upswing.serve.core.limits import ModelServerLimits
from upswing.serve.engines.selection import ENGINE_CHOICES, EngineChoice, open_engine
from upswing.serve.server import ModelServer

log = logging.getLogger(__name__)
KEY_VARIABLE = "UPSWING_MODEL_SERVER_KEY"
_SHUTDOWN_SECONDS = 2
_LOCK_POLL_SECONDS = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelServerOptions:
    """How a model server is started."""

    base: str
    cache: Path
    host: str = "127.0.0.1"
    port: int = 0
    engine: EngineChoice = "auto"
    adapters: Mapping[str, Path] = field(default_factory=dict)
    slots: int | None = None
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


async def serve(options: ModelServerOptions, stop: asyncio.Event | None = None) -> int:
    """Run until it is told to stop, by `stop` or else by a signal; the exit code."""
    with contextlib.closing(_listening_socket(options.host, options.port)) as port:
        engine = await open_engine(
            options.base,
            options.cache,
            choice=options.engine,
            slots=options.slots,
            threads=options.threads,
        )
        try:
            app = ModelServer(
                engine,
                clock=time.time,
                new_id=lambda: uuid.uuid4().hex,
                key=options.key,
                limits=ModelServerLimits(requests=options.requests),
                public=not is_local(options.host),
                on_adapters_changed=lambda adapters: _save_adapters(options.state, adapters),
            )
            await _load_adapters(app, options)
            await _run_server(app, port, options, stop or _stop_event(options))
        finally:
            await engine.close()
    return 0


async def _run_server(
    app: ModelServer, port: socket.socket, options: ModelServerOptions, stop: asyncio.Event
) -> None:
    server = _UvicornServer(
        uvicorn.Config(
            app,
            lifespan="off",
            access_log=False,
            log_config=None,
            http="httptools",
            proxy_headers=False,
            server_header=False,
            date_header=False,
            backlog=2048,
            timeout_keep_alive=75,
            timeout_graceful_shutdown=_SHUTDOWN_SECONDS,
        )
    )
    running, listening = start_task(server.serve(sockets=[port])), start_task(server.ready.wait())
    stopping = start_task(stop.wait())
    try:
        await asyncio.wait({running, listening}, return_when=asyncio.FIRST_COMPLETED)
        if server.ready.is_set():
            _announce_port(port, options.ready_file)
            if options.main_lock is not None:
                os.dup2(2, 1)  # whoever reads our standard output may end before us
            await asyncio.wait({running, stopping}, return_when=asyncio.FIRST_COMPLETED)
            if not running.done() and not await app.drain(options.drain_seconds):
                log.warning("requests were cut off", extra={"action": "drain_ran_out"})
    finally:
        await cancel_all([listening, stopping])
        server.should_exit = True
        await running


async def _load_adapters(app: ModelServer, options: ModelServerOptions) -> None:
    """What was asked for must load; what was served before, as far as it still can be."""
    saved = _saved_adapters(options.state)
    for name, path in options.adapters.items():
        await app.admin.add_adapter(name, path.absolute())
    for name, saved_path in saved.items():
        try:
            await app.admin.add_adapter(name, Path(saved_path))
        except UpswingError as error:
            log.error("%s: %s", name, error, extra={"action": "adapter_lost"})  # noqa: TRY400 - a clear sentence


def _save_adapters(state: Path | None, adapters: Mapping[str, str]) -> None:
    if state is not None:
        write_private(state, json.dumps(dict(adapters)))


def _saved_adapters(state: Path | None) -> dict[str, str]:
    try:
        saved = json.loads(state.read_bytes()) if state is not None else {}
    except (OSError, ValueError):
        return {}
    return {str(name): str(path) for name, path in saved.items()} if isinstance(saved, dict) else {}


def _listening_socket(host: str, port: int) -> socket.socket:
    """The port is ours from the first moment on; it answers when there is something to say."""
    listener = bind_port(host, port)
    listener.setblocking(False)
    return listener


def _announce_port(port: socket.socket, file: Path | None) -> None:
    host, number = port.getsockname()[:2]
    url = f"http://[{host}]:{number}" if ":" in host else f"http://{host}:{number}"
    if file is not None:
        write_private(file, url)
    print(f"ready {url}", flush=True)  # noqa: T201 - whoever started it reads this
    log.info("the model server is ready at %s", url, extra={"action": "model_server_ready"})


def _stop_event(options: ModelServerOptions) -> asyncio.Event:
    """SIGTERM, Ctrl-C, or nobody whom we serve: our standard input has ended, or the lock is free."""
    stop, loop = asyncio.Event(), asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)

    def watch(wait: Callable[[], None]) -> None:
        wait()
        with contextlib.suppress(RuntimeError):  # it has ended already
            loop.call_soon_threadsafe(stop.set)

    waits = [_wait_for_stdin_end] if options.with_parent else []
    if (lock := options.main_lock) is not None:
        waits.append(lambda: _wait_until_orphaned(lock, options.orphan_seconds))
    for wait in waits:
        threading.Thread(target=watch, args=(wait,), name="upswing-parent", daemon=True).start()
    return stop


def _wait_for_stdin_end() -> None:
    while os.read(0, 1024):  # not through `sys.stdin`, whose lock would be held at our end
        pass


def _wait_until_orphaned(lock: Path, seconds: float) -> None:
    """Nobody has held the lock for so long, or the folder is gone."""
    alone = 0.0
    while alone < seconds:
        time.sleep(_LOCK_POLL_SECONDS)
        held = is_lock_held(lock)
        if held is None:
            return
        alone = 0.0 if held else alone + _LOCK_POLL_SECONDS


class _UvicornServer(uvicorn.Server):
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
    options = argparse.ArgumentParser(
        prog="python -m upswing.serve.main",
        description="Serve a base and its adapters, OpenAI-shaped.",
    )
    options.add_argument(
        "--base", default="tiny", help="tiny, smollm2, or a folder of a Hugging Face model"
    )
    options.add_argument(
        "--cache", type=Path, default=Path("bases"), help="where bases lie that are made here"
    )
    options.add_argument("--host", default="127.0.0.1")
    options.add_argument("--port", type=PORT, default=0, help="0: any free one")
    options.add_argument("--engine", choices=ENGINE_CHOICES, default="auto")
    options.add_argument(
        "--adapter", action="append", default=[], metavar="NAME=PATH", type=_adapter_option
    )
    options.add_argument(
        "--seats",
        dest="slots",
        metavar="SEATS",
        type=IntegerOption(1, 4096),
        help="requests in one batch; default: the engine decides",
    )
    options.add_argument(
        "--threads", type=IntegerOption(1, 1024), help="for computing; default: the engine decides"
    )
    options.add_argument(
        "--requests",
        type=IntegerOption(1),
        default=128,
        help="under way at once, the rest gets 429",
    )
    options.add_argument("--ready-file", type=Path, help="written with the URL when it answers")
    options.add_argument(
        "--state", type=Path, help="keeps which adapters are served, for the next start"
    )
    options.add_argument(
        "--drain-seconds",
        type=FloatOption(0, 3600),
        default=30.0,
        help="for requests under way at the end",
    )
    options.add_argument(
        "--main-lock", type=Path, help="end when nobody has held this file's lock for a while"
    )
    options.add_argument(
        "--orphan-seconds", type=FloatOption(0), default=60.0, help="how long that is"
    )
    options.add_argument("--with-parent", action="store_true", help="end when standard input does")
    add_log_options(options)
    return options


def parse_options(argv: Sequence[str] | None = None) -> tuple[ModelServerOptions, LogOptions]:
    """The options of a command line, and where its log goes."""
    values = vars(parser().parse_args(argv))
    adapters = dict(values.pop("adapter"))
    log_options = LogOptions.chosen(
        values.pop("log_format"), values.pop("log_file"), "model-server"
    )
    key = os.environ.get(KEY_VARIABLE) or None
    return ModelServerOptions(**values, adapters=adapters, key=key), log_options


def _adapter_option(text: str) -> tuple[str, Path]:
    """The name and the path of an adapter.

    >>> _adapter_option("a=/b")
    ('a', PosixPath('/b'))
    """
    name, _, path = text.partition("=")
    if not name or not path:
        raise argparse.ArgumentTypeError("write NAME=PATH")
    return name, Path(path)


def main(argv: Sequence[str] | None = None) -> int:
    Beats().start_in_thread()
    options, log_options = parse_options(argv)
    os.environ.setdefault("HF_HUB_OFFLINE", "1")  # nothing is fetched
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    try:
        set_up_logging(Redactor(rules=default_rules()), log_options)
        return asyncio.run(serve(options))
    except UpswingError as error:
        sys.stderr.write(f"upswing: {error}\n")
        return 1


if __name__ == "__main__":
    sys.exit(main())
