"""How are a GGUF base and the adapters on it served? By llama.cpp, a process for each model.

llama.cpp takes adapters only at its start, so a model that is loaded gets a process of its own, and
one that is unloaded ends with its process; nobody else's requests notice. The weights of the base
are the same pages of memory for all of them. Requests are tokenised here, by the tokenizer that
training uses, and the server is given ids.
"""

from __future__ import annotations

import asyncio
import json
import os
import secrets
import shutil
import tempfile
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from upswing.errors import Conflict, Misuse, Transient
from upswing.infra.heartbeat import FROZEN_SECONDS
from upswing.infra.tasks import run_in_background
from upswing.serve.core.engine import GenerationRequest, TokenChunk
from upswing.serve.engines.llama_child import LlamaServerSpec
from upswing.serve.engines.llama_completion import LlamaCompletion, completion_body
from upswing.serve.engines.llama_process import LlamaProcess
from upswing.serve.engines.llama_schemas import TRIAL_SECONDS, SchemaTrials
from upswing.serve.engines.tokenizing import PromptTokenizer
from upswing.serve.gguf.served_copy import ServedGguf, prepare_gguf
from upswing.train.bases.catalog import BaseModel

_PLAIN_TOKENIZERS = ("PreTrainedTokenizerFast", "TokenizersBackend")
"""Tokenizers that are what their file says, and nothing more."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LlamaOptions:
    """How large each model's process is, and how long it may keep silent."""

    slots: int = 4
    """Requests of one model that are answered at once; the others wait."""
    context: int = 4096
    """Tokens of one request, prompt and answer together, as far as the model knows so many. The
    memory for `slots * context` tokens is taken at the start: 23 KB each with `smollm2`."""
    threads: int | None = None
    """Of one model; None: half of the cores. llama.cpp's threads wait for each other after every
    layer, so where they do not all have a core they get slower by far, not faster."""
    silence_timeout: timedelta = timedelta(seconds=120)
    """A process that tells nothing for so long while it should is ended and started anew."""
    frozen_timeout: timedelta = timedelta(seconds=FROZEN_SECONDS)
    """A process that neither beats nor computes for so long is ended and started anew."""
    start_timeout: timedelta = timedelta(seconds=120)
    """How long a start may take."""


class LlamaEngine:
    """`upswing.serve.core.engine.Engine` on llama.cpp; made by `start`."""

    def __init__(
        self, base: BaseModel, gguf: ServedGguf, tokenizer: Any, options: LlamaOptions
    ) -> None:
        self.base = base.name
        self._base, self._gguf, self._options = base, gguf, options
        self._context_length = min(options.context, gguf.facts.context)
        self._tokenizer = PromptTokenizer(tokenizer, self._context_length)
        self._schemas = SchemaTrials(self._tokenizer.closing_brace)
        self._tokenizer_lock, self._change_lock = asyncio.Lock(), asyncio.Lock()
        self._processes = {base.name: self._new_process(None)}
        self._paths: dict[str, Path] = {}
        self._unloading: set[asyncio.Task[None]] = set()
        self._folder = Path(tempfile.mkdtemp(prefix="upswing-llama-"))
        self._adapters_made = 0
        self._closed = False

    @classmethod
    async def start(
        cls,
        base: BaseModel,
        cache: Path,
        options: LlamaOptions | None = None,
        *,
        is_installed: Callable[[str], bool] = lambda package: find_spec(package) is not None,
    ) -> LlamaEngine:
        """An engine that serves this base; what it makes of it for llama.cpp is kept in `cache`."""
        if not is_installed("xllamacpp"):
            raise Misuse("llama.cpp is not installed: pip install '.[llama]'")
        gguf = await asyncio.to_thread(prepare_gguf, base, cache)
        tokenizer = await asyncio.to_thread(_load_tokenizer, base, gguf)
        engine = cls(base, gguf, tokenizer, options or LlamaOptions())
        try:
            await engine._processes[base.name].start()
        except BaseException:
            await engine.close()
            raise
        return engine

    @property
    def follows_schemas(self) -> bool:
        """llama.cpp makes a grammar of a schema."""
        return True

    def model_names(self) -> Sequence[str]:
        return tuple(self._processes)

    def stats(self) -> None:
        """Llama.cpp's servers count for themselves."""

    async def load(self, name: str, path: Path) -> None:
        async with self._change_lock:
            self._check_open()
            if name in self._processes:
                if self._paths.get(name) == path:
                    return
                raise Conflict(f"The name {name[:200]} is taken by another model.")
            file = await asyncio.to_thread(self._convert_adapter, path)
            process = self._new_process(file)
            try:
                await process.start()
                self._check_open()  # it may have been closed meanwhile
            except BaseException:
                await process.stop()
                raise
            self._processes[name], self._paths[name] = process, path

    async def unload(self, name: str) -> None:
        async with self._change_lock:
            if name not in self._paths:
                raise Misuse(f"There is no adapter {name[:200]} here.")
            process = self._processes.pop(name)
            del self._paths[name]
            unloading = run_in_background(self._drain_and_stop(process), name="unloading")
            self._unloading.add(unloading)
            unloading.add_done_callback(self._unloading.discard)
        await asyncio.shield(unloading)

    async def generate(self, request: GenerationRequest) -> AsyncGenerator[TokenChunk]:
        self._check_open()
        process = self._processes.get(request.model)
        if process is None:
            raise Misuse(f"There is no model {request.model[:200]} here.")
        with process.in_use():
            if request.output_schema is not None:
                ask = partial(process.stream_completion, silence_seconds=TRIAL_SECONDS)
                await self._schemas.check(request.output_schema, ask)
            async with self._tokenizer_lock:
                tokenized = await asyncio.to_thread(self._tokenizer.encode, request)
            completion = LlamaCompletion(
                request, tokenized.token_ids, self._tokenizer.decode, self._tokenizer.token_text
            )
            body = completion_body(
                request, tokenized.token_ids, self._context_length - len(tokenized.token_ids)
            )
            async with aclosing(process.stream_completion(body)) as stream:
                async for event in stream:
                    if (chunk := completion.read_event(event)) is None:
                        continue
                    if chunk.finish_reason is not None:
                        self._tokenizer.remember_reply(
                            tokenized, tuple(completion.token_ids), ended=completion.ended_by_eos
                        )
                    yield chunk
                    if chunk.finish_reason is not None:
                        return
        raise Transient("llama.cpp ended its answer without a word.")

    async def close(self) -> None:
        self._closed = True
        processes = [*self._processes.values()]
        for unloading in self._unloading:
            unloading.cancel()
        await asyncio.gather(*self._unloading, return_exceptions=True)
        await asyncio.gather(*(process.stop() for process in processes))
        await asyncio.to_thread(shutil.rmtree, self._folder, ignore_errors=True)

    # ── one model's process ──────────────────────────────────────────────────────────────────────

    def _check_open(self) -> None:
        if self._closed:
            raise Transient("The model server is closing.")

    def _new_process(self, adapter: Path | None) -> LlamaProcess:
        options = self._options
        spec = LlamaServerSpec(
            model=str(self._gguf.file),
            adapter=None if adapter is None else str(adapter),
            slots=options.slots,
            context=self._context_length,
            threads=options.threads or max(1, (os.cpu_count() or 2) // 2),
            key=secrets.token_hex(16),
        )
        return LlamaProcess(
            spec,
            silence_timeout=options.silence_timeout,
            start_timeout=options.start_timeout,
            adapter_file=adapter,
            frozen_seconds=options.frozen_timeout.total_seconds(),
        )

    def _convert_adapter(self, checkpoint: Path) -> Path:
        from upswing.serve.gguf.lora import convert_adapter  # noqa: PLC0415 - brings peft

        self._adapters_made += 1
        file = self._folder / f"{self._adapters_made}.gguf"
        convert_adapter(checkpoint, self._base.folder, self._gguf.facts, file)
        return file

    async def _drain_and_stop(self, process: LlamaProcess) -> None:
        """Requests under way end first."""
        try:
            await process.drain()
        finally:
            await process.stop()


def _load_tokenizer(base: BaseModel, gguf: ServedGguf) -> Any:
    try:
        tokenizer: Any = _tokenizer_class(base.folder).from_pretrained(
            base.folder, local_files_only=True, trust_remote_code=False
        )
    except (OSError, ValueError, KeyError) as error:
        raise Misuse(f"The tokenizer of {base.name} cannot be loaded: {error}") from error
    if len(tokenizer) > gguf.facts.vocabulary:
        raise Misuse(f"The tokenizer of {base.name} knows more tokens than its GGUF file.")
    return tokenizer


def _tokenizer_class(folder: Path) -> Any:
    """The class that reads a tokenizer: where it is the plain one, without the seconds that torch takes."""
    try:
        config = json.loads((folder / "tokenizer_config.json").read_bytes())
    except (OSError, ValueError):
        config = None
    if isinstance(config, dict) and config.get("tokenizer_class") in _PLAIN_TOKENIZERS:
        from transformers import PreTrainedTokenizerFast  # noqa: PLC0415 - takes a second

        return PreTrainedTokenizerFast
    from transformers import AutoTokenizer  # noqa: PLC0415 - brings torch

    return AutoTokenizer
