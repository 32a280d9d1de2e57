"""How does PyTorch serve many at once? One thread that steps the batch of every model in turn, token by token.

    event loop                         the engine's thread
    generate ──tokenize──▶ inbox ─▶ waiting ─▶ a batch per model ─▶ a step each, over and over
        ◀────────── chunks ───────────────────────────┘

Requests join and leave between two steps; so do adapters. Nothing of torch runs on the event loop.
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

from upswing.errors import Conflict, Misuse, Transient, UpswingError
from upswing.serve.core.detokenizer import Detokenizer
from upswing.serve.core.engine import EngineStats, GenerationRequest, TokenChunk
from upswing.serve.core.scheduler import select_for_batch, slots_for_memory
from upswing.serve.engines.batch import Batch, BatchCounts, RunningRequest, StreamItem
from upswing.serve.engines.batch_check import (
    check_batching,
    context_length,
    eos_token_ids,
    layer_count,
)
from upswing.serve.engines.loaded_models import LoadedModels
from upswing.serve.engines.tokenizing import PromptTokenizer, TokenizedPrompt
from upswing.train.bases.catalog import BaseModel
from upswing.train.bases.loading import set_threads
from upswing.train.checkpoints.checking import verify
from upswing.train.checkpoints.manifest import Manifest

log = logging.getLogger(__name__)
T = TypeVar("T")
_CLOSED = "The model server is closing."


class TorchEngine:
    """One base and its adapters in PyTorch; made by `start`, since weights take a while."""

    def __init__(
        self,
        base: BaseModel,
        *,
        slots: int = 16,
        prefill_budget: int = 512,
        threads: int | None = None,
        kv_cache_bytes: int = 4 << 30,
    ) -> None:
        """`slots`: requests in the batch, as far as their keys and values fit into `kv_cache_bytes`.

        `prefill_budget`: prompt tokens that are prefilled in a step. `threads`: None takes what suits the model.
        """
        self.base, self._base = base.name, base
        self._slots, self._prefill_budget, self._kv_cache_bytes = (
            slots,
            prefill_budget,
            kv_cache_bytes,
        )
        self._inbox: SimpleQueue[Callable[[], None]] = SimpleQueue()
        self._lock, self._closed = Lock(), False
        self._waiting: list[RunningRequest] = []
        self._paths: dict[str, Path | None] = {base.name: None}
        self._batches: dict[str, Batch] = {}
        self._unloading: dict[str, Future[None]] = {}
        self._counts = BatchCounts()
        self._change_lock = asyncio.Lock()
        self._tokenizer_pool = ThreadPoolExecutor(1, "upswing-reader")
        self._thread = Thread(target=self._run_loop, name="upswing-engine", daemon=True)
        self._thread.start()
        try:
            self._submit(lambda: self._load_base(threads)).result()
        except BaseException:
            self._shut_down()
            raise

    @classmethod
    async def start(cls, base: BaseModel, **options: Any) -> TorchEngine:
        """An engine that serves this base."""
        return await asyncio.to_thread(cls, base, **options)

    def _load_base(self, threads: int | None) -> None:
        self._models = LoadedModels(self._base)
        model, tokenizer = self._models.base, self._models.tokenizer
        set_threads(model, threads)
        self._eos_ids, self._num_layers = eos_token_ids(model, tokenizer), layer_count(model)
        token_bytes = check_batching(model, self._num_layers, self.base)
        self._tokenizer = PromptTokenizer(tokenizer, context_length(model))
        self._slots = slots_for_memory(
            self._slots, self._kv_cache_bytes, token_bytes * self._tokenizer.context_length
        )

    # ── the engine's interface ──────────────────────────────────────────────────────────────────────

    @property
    def follows_schemas(self) -> bool:
        """It draws from all tokens."""
        return False

    def model_names(self) -> Sequence[str]:
        return tuple(self._paths)

    def stats(self) -> EngineStats:
        running = sum(len(batch) for batch in list(self._batches.values()))
        counts = self._counts
        return EngineStats(
            running, len(self._waiting), counts.steps, counts.generated_tokens, counts.cancelled
        )

    async def load(self, name: str, path: Path) -> None:
        path = _absolute_path(path)
        async with self._change_lock:
            if name in self._paths:
                if self._paths[name] == path:
                    return
                raise Conflict(f"The name {name[:200]} is taken by another model.")
            if name in self._unloading:
                raise Transient(f"{name[:200]} is just being unloaded.")
            manifest = await asyncio.to_thread(verify, path, base=self._base.folder)
            await asyncio.wrap_future(self._submit(lambda: self._add_model(name, path, manifest)))

    async def unload(self, name: str) -> None:
        if self._paths.get(name) is None:
            raise Misuse(f"There is no adapter {name[:200]} here.")
        await asyncio.wrap_future(self._submit(lambda: self._begin_unload(name)))
        if (unloading := self._unloading.get(name)) is not None:
            await asyncio.wrap_future(unloading)

    async def generate(self, request: GenerationRequest) -> AsyncGenerator[TokenChunk, None]:
        loop = asyncio.get_running_loop()
        if request.model not in self._paths:
            raise Misuse(f"There is no model {request.model[:200]} here.")
        if self._closed:
            raise Transient(_CLOSED)
        tokenized = await loop.run_in_executor(
            self._tokenizer_pool, self._tokenizer.encode, request
        )
        items: asyncio.Queue[StreamItem] = asyncio.Queue()
        running = self._running_request(request, tokenized, _thread_safe_emitter(loop, items))
        self._enqueue(lambda: self._add_waiting(running))
        try:
            while True:
                item = await items.get()
                if isinstance(item, Exception):
                    raise item
                yield item
                if item.finish_reason:
                    return
        finally:
            running.cancelled = True

    async def close(self) -> None:
        await asyncio.to_thread(self._shut_down)

    def _running_request(
        self,
        request: GenerationRequest,
        tokenized: TokenizedPrompt,
        emit: Callable[[StreamItem], None],
    ) -> RunningRequest:
        seed = SystemRandom().getrandbits(63) if request.seed is None else request.seed
        free_tokens = self._tokenizer.context_length - len(tokenized.token_ids)
        return RunningRequest(
            request=request,
            tokenized=tokenized,
            emit=emit,
            rng=Random(seed),  # noqa: S311 - not a secret
            detokenizer=Detokenizer(self._tokenizer.decode, request.stop),
            max_new_tokens=min(request.max_tokens or free_tokens, free_tokens),
        )

    # ── calls into the thread ──────────────────────────────────────────────────────────────────

    def _enqueue(self, work: Callable[[], None]) -> None:
        with self._lock:
            if self._closed:
                raise Transient(_CLOSED)
            self._inbox.put(work)

    def _submit(self, work: Callable[[], T]) -> Future[T]:
        """Run a function on the engine's thread, between two steps."""
        result: Future[T] = Future()
        result.set_running_or_notify_cancel()  # the caller may leave; it is done all the same

        def do() -> None:
            try:
                result.set_result(work())
            except BaseException as error:  # noqa: BLE001 - the caller gets it
                result.set_exception(error)

        self._enqueue(do)
        return result

    def _shut_down(self) -> None:
        with self._lock:
            self._closed = True
            self._inbox.put(lambda: None)  # it may be asleep
        self._thread.join()
        self._tokenizer_pool.shutdown(wait=True, cancel_futures=True)

    # ── the thread ───────────────────────────────────────────────────────────────────────────────

    def _run_loop(self) -> None:
        try:
            while not self._closed:
                try:
                    self._run_once()
                except Exception:  # the thread lives: without it nobody would ever be answered
                    log.exception("a round failed", extra={"action": "round_failed"})
                    self._fail_everything(Transient("The engine failed and goes on."))
        finally:
            self._closed = True
            while not self._inbox.empty():
                self._inbox.get()()
            self._fail_everything(Transient(_CLOSED))

    def _run_once(self) -> None:
        """Handle what is in the inbox first; then one step for every batch."""
        working = self._waiting or self._unloading or any(self._batches.values())
        if not working or not self._inbox.empty():
            self._inbox.get()()
            return
        self._fill_slots()
        for batch in [each for each in self._batches.values() if each]:
            self._step_batch(batch)
        self._finish_unloads()

    def _add_waiting(self, request: RunningRequest) -> None:
        if request.request.model not in self._paths:
            request.emit(Misuse(f"{request.request.model[:200]} was unloaded just now."))
        else:
            self._waiting.append(request)

    def _add_model(self, name: str, path: Path, manifest: Manifest) -> None:
        self._models.add(name, path, manifest)
        self._paths[name] = path

    def _begin_unload(self, name: str) -> None:
        if self._paths.pop(name, None) is not None:
            self._unloading[name] = Future()
            self._unloading[name].set_running_or_notify_cancel()  # as in `_submit`

    def _fill_slots(self) -> None:
        self._counts.cancelled += sum(each.cancelled for each in self._waiting)
        waiting = [each for each in self._waiting if not each.cancelled]
        running = {name: len(batch) for name, batch in self._batches.items()}
        positions = select_for_batch([each.request.model for each in waiting], running, self._slots)
        for position in positions:
            name = waiting[position].request.model
            if name not in self._batches:
                self._batches[name] = Batch(name, self._num_layers, self._tokenizer, self._eos_ids)
            self._batches[name].add(waiting[position])
        admitted = set(positions)
        self._waiting = [each for index, each in enumerate(waiting) if index not in admitted]

    def _step_batch(self, batch: Batch) -> None:
        try:
            with torch.inference_mode():
                batch.step(self._models.activate(batch.name), self._prefill_budget, self._counts)
        except Exception as error:  # whatever broke, the other models and later requests go on
            log.exception("a step of %s failed", batch.name, extra={"action": "turn_failed"})
            reported = error if isinstance(error, UpswingError) else Transient("The model failed.")
            batch.fail_all(reported)

    def _finish_unloads(self) -> None:
        """Unload models whose last request has ended."""
        for name in list(self._unloading):
            if self._batches.get(name) or any(each.request.model == name for each in self._waiting):
                continue
            self._batches.pop(name, None)
            self._models.remove(name)
            self._unloading.pop(name).set_result(None)

    def _fail_everything(self, error: Exception) -> None:
        """End every request and every unload with this error."""
        for batch in self._batches.values():
            batch.fail_all(error)
        for request in self._waiting:
            request.emit(error)
        for unloading in self._unloading.values():
            unloading.set_exception(error)
        self._waiting, self._unloading = [], {}


def _absolute_path(path: Path) -> Path:
    """A matter of names: no disk is asked."""
    return path.absolute()


def _thread_safe_emitter(
    loop: asyncio.AbstractEventLoop, items: asyncio.Queue[StreamItem]
) -> Callable[[Any], None]:
    def emit(item: StreamItem) -> None:
        with contextlib.suppress(RuntimeError):  # the loop is closed: no client is left
            loop.call_soon_threadsafe(items.put_nowait, item)

    return emit
