"""How does PyTorch serve many at once? One thread, in which every model has its turn, token by token.

    event loop                         the engine's thread
    generate ──read the prompt──▶ inbox ─▶ waiting ─▶ a lane per model ─▶ a turn each, over and over
        ◀────────── pieces ───────────────────────────────┘

Requests join and leave between two turns; so do adapters. Nothing of torch runs on the event loop.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import AsyncGenerator, Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from queue import SimpleQueue
from random import Random, SystemRandom
from threading import Lock, Thread
from typing import Any, TypeVar

import torch

from upswing.adapters.bases import Base
from upswing.adapters.checkpoints.checking import verify
from upswing.adapters.checkpoints.manifest import Manifest
from upswing.adapters.engines.fitness import context_of, ends_of, layers_of, prove
from upswing.adapters.engines.lane import Counts, Lane, Said, Speaker
from upswing.adapters.engines.reading import Read, Reader
from upswing.adapters.engines.stock import Stock
from upswing.adapters.models import set_threads
from upswing.errors import Conflict, Misuse, Transient, UpswingError
from upswing.serve.ports import Load, Piece, Prompt
from upswing.serve.schedule import joining, seats_for
from upswing.serve.spelling import Spelling

log = logging.getLogger(__name__)
T = TypeVar("T")
_CLOSED = "The model server is closing."


class TorchEngine:
    """One base and its adapters in PyTorch; made by `start`, since weights take a while."""

    def __init__(
        self, base: Base, *, seats: int = 16, budget: int = 512, threads: int | None = None,
        memory_bytes: int = 4 << 30,
    ) -> None:  # fmt: skip
        """`seats`: requests in the batch, as far as what they have read fits into `memory_bytes`.

        `budget`: tokens of prompts that a model reads in a turn. `threads`: None takes what suits the model.
        """
        self.base, self._base = base.name, base
        self._seats, self._budget, self._memory = seats, budget, memory_bytes
        self._inbox: SimpleQueue[Callable[[], None]] = SimpleQueue()
        self._gate, self._closed = Lock(), False
        self._waiting: list[Speaker] = []
        self._paths: dict[str, Path | None] = {base.name: None}
        self._lanes: dict[str, Lane] = {}
        self._leaving: dict[str, Future[None]] = {}
        self._counts = Counts()
        self._changing = asyncio.Lock()
        self._readers = ThreadPoolExecutor(1, "upswing-reader")
        self._thread = Thread(target=self._run, name="upswing-engine", daemon=True)
        self._thread.start()
        try:
            self._ask(lambda: self._open(threads)).result()
        except BaseException:
            self._end()
            raise

    @classmethod
    async def start(cls, base: Base, **options: Any) -> TorchEngine:
        """An engine that serves this base."""
        return await asyncio.to_thread(cls, base, **options)

    def _open(self, threads: int | None) -> None:
        self._stock = Stock(self._base)
        model, tokenizer = self._stock.base, self._stock.tokenizer
        set_threads(model, threads)
        self._ends, self._layers = ends_of(model, tokenizer), layers_of(model)
        token_bytes = prove(model, self._layers, self.base)
        self._reader = Reader(tokenizer, context_of(model))
        self._seats = seats_for(self._seats, self._memory, token_bytes * self._reader.context)

    # ── what is asked of it ──────────────────────────────────────────────────────────────────────

    def names(self) -> Sequence[str]:
        return tuple(self._paths)

    def busy(self) -> Load:
        running = sum(len(lane) for lane in list(self._lanes.values()))
        counts = self._counts
        return Load(running, len(self._waiting), counts.steps, counts.drawn, counts.cancelled)

    async def load(self, name: str, path: Path) -> None:
        path = _absolute(path)
        async with self._changing:
            if name in self._paths:
                if self._paths[name] == path:
                    return
                raise Conflict(f"The name {name[:200]} is taken by another model.")
            if name in self._leaving:
                raise Transient(f"{name[:200]} is just being unloaded.")
            manifest = await asyncio.to_thread(verify, path, base=self._base.folder)
            await asyncio.wrap_future(self._ask(lambda: self._add(name, path, manifest)))

    async def unload(self, name: str) -> None:
        if self._paths.get(name) is None:
            raise Misuse(f"There is no adapter {name[:200]} here.")
        await asyncio.wrap_future(self._ask(lambda: self._leave(name)))
        if (gone := self._leaving.get(name)) is not None:
            await asyncio.wrap_future(gone)

    async def generate(self, prompt: Prompt) -> AsyncGenerator[Piece, None]:
        loop = asyncio.get_running_loop()
        if prompt.model not in self._paths:
            raise Misuse(f"There is no model {prompt.model[:200]} here.")
        if self._closed:
            raise Transient(_CLOSED)
        read = await loop.run_in_executor(self._readers, self._reader.read, prompt)
        mail: asyncio.Queue[Said] = asyncio.Queue()
        speaker = self._speaker(prompt, read, _teller(loop, mail))
        self._put(lambda: self._join(speaker))
        try:
            while True:
                said = await mail.get()
                if isinstance(said, Exception):
                    raise said
                yield said
                if said.finish:
                    return
        finally:
            speaker.left = True

    async def close(self) -> None:
        await asyncio.to_thread(self._end)

    def _speaker(self, prompt: Prompt, read: Read, tell: Callable[[Said], None]) -> Speaker:
        seed = SystemRandom().getrandbits(63) if prompt.seed is None else prompt.seed
        room = self._reader.context - len(read.ids)
        return Speaker(
            prompt=prompt, read=read, tell=tell,
            chance=Random(seed),  # noqa: S311 - not a secret
            spelling=Spelling(self._reader.decode, prompt.stop),
            limit=min(prompt.max_tokens or room, room),
        )  # fmt: skip

    # ── the way into the thread ──────────────────────────────────────────────────────────────────

    def _put(self, work: Callable[[], None]) -> None:
        with self._gate:
            if self._closed:
                raise Transient(_CLOSED)
            self._inbox.put(work)

    def _ask(self, work: Callable[[], T]) -> Future[T]:
        """Have something done between two turns."""
        answer: Future[T] = Future()
        answer.set_running_or_notify_cancel()  # whoever asked may leave; it is done all the same

        def do() -> None:
            try:
                answer.set_result(work())
            except BaseException as error:  # noqa: BLE001 - whoever asked hears it
                answer.set_exception(error)

        self._put(do)
        return answer

    def _end(self) -> None:
        with self._gate:
            self._closed = True
            self._inbox.put(lambda: None)  # it may be asleep
        self._thread.join()
        self._readers.shutdown(wait=True, cancel_futures=True)

    # ── the thread ───────────────────────────────────────────────────────────────────────────────

    def _run(self) -> None:
        try:
            while not self._closed:
                try:
                    self._round()
                except Exception:  # the thread lives: without it nobody would ever be answered
                    log.exception("a round failed", extra={"action": "round_failed"})
                    self._part(Transient("The engine stumbled."))
        finally:
            self._closed = True
            while not self._inbox.empty():
                self._inbox.get()()
            self._part(Transient(_CLOSED))

    def _round(self) -> None:
        """What came in first; then a turn for every model."""
        working = self._waiting or self._leaving or any(self._lanes.values())
        if not working or not self._inbox.empty():
            self._inbox.get()()
            return
        self._seat()
        for lane in [each for each in self._lanes.values() if each]:
            self._turn(lane)
        self._see_off()

    def _join(self, speaker: Speaker) -> None:
        if speaker.prompt.model not in self._paths:
            speaker.tell(Misuse(f"{speaker.prompt.model[:200]} was unloaded just now."))
        else:
            self._waiting.append(speaker)

    def _add(self, name: str, path: Path, manifest: Manifest) -> None:
        self._stock.add(name, path, manifest)
        self._paths[name] = path

    def _leave(self, name: str) -> None:
        if self._paths.pop(name, None) is not None:
            self._leaving[name] = Future()
            self._leaving[name].set_running_or_notify_cancel()  # as in `_ask`

    def _seat(self) -> None:
        self._counts.cancelled += sum(each.left for each in self._waiting)
        waiting = [each for each in self._waiting if not each.left]
        running = {name: len(lane) for name, lane in self._lanes.items()}
        places = joining([each.prompt.model for each in waiting], running, self._seats)
        for place in places:
            name = waiting[place].prompt.model
            if name not in self._lanes:
                self._lanes[name] = Lane(name, self._layers, self._reader, self._ends)
            self._lanes[name].join(waiting[place])
        seated = set(places)
        self._waiting = [each for at, each in enumerate(waiting) if at not in seated]

    def _turn(self, lane: Lane) -> None:
        try:
            with torch.inference_mode():
                lane.turn(self._stock.use(lane.name), self._budget, self._counts)
        except Exception as error:  # whatever broke, the other models and later requests go on
            log.exception("a turn of %s failed", lane.name, extra={"action": "turn_failed"})
            told = error if isinstance(error, UpswingError) else Transient("The model failed.")
            lane.fail(told)

    def _see_off(self) -> None:
        """A model that is to go goes when the last of its requests has ended."""
        for name in list(self._leaving):
            if self._lanes.get(name) or any(each.prompt.model == name for each in self._waiting):
                continue
            self._lanes.pop(name, None)
            self._stock.remove(name)
            self._leaving.pop(name).set_result(None)

    def _part(self, why: Exception) -> None:
        """Nothing more is done: everybody who waits hears it."""
        for lane in self._lanes.values():
            lane.fail(why)
        for speaker in self._waiting:
            speaker.tell(why)
        for gone in self._leaving.values():
            gone.set_exception(why)
        self._waiting, self._leaving = [], {}


def _absolute(path: Path) -> Path:
    """A matter of names: no disk is asked."""
    return path.absolute()


def _teller(loop: asyncio.AbstractEventLoop, mail: asyncio.Queue[Said]) -> Callable[[Any], None]:
    def tell(said: Said) -> None:
        with contextlib.suppress(RuntimeError):  # the loop is closed: nobody listens
            loop.call_soon_threadsafe(mail.put_nowait, said)

    return tell
