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
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from datetime import timedelta
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from upswing.adapters.bases import Base
from upswing.adapters.engines.llama_answer import Answer, question
from upswing.adapters.engines.llama_child import Task
from upswing.adapters.engines.llama_runner import Runner
from upswing.adapters.engines.reading import Reader
from upswing.adapters.gguf.served import Served, served
from upswing.errors import Conflict, Misuse, Transient
from upswing.pulse import FROZEN_SECONDS
from upswing.serve.ports import Piece, Prompt
from upswing.together import aside

_PLAIN = ("PreTrainedTokenizerFast", "TokenizersBackend")
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
    silence: timedelta = timedelta(seconds=120)
    """A process that tells nothing for so long while it should is ended and started anew."""
    frozen: timedelta = timedelta(seconds=FROZEN_SECONDS)
    """A process that neither beats nor computes for so long is ended and started anew."""
    patience: timedelta = timedelta(seconds=120)
    """How long a start may take."""


class LlamaEngine:
    """`upswing.serve.ports.Engine` on llama.cpp; made by `start`."""

    def __init__(self, base: Base, made: Served, tokenizer: Any, options: LlamaOptions) -> None:
        self.base = base.name
        self._base, self._served, self._options = base, made, options
        self._context = min(options.context, made.facts.context)
        self._reader = Reader(tokenizer, self._context)
        self._reading, self._changing = asyncio.Lock(), asyncio.Lock()
        self._runners = {base.name: self._runner(None)}
        self._paths: dict[str, Path] = {}
        self._leaving: set[asyncio.Task[None]] = set()
        self._folder = Path(tempfile.mkdtemp(prefix="upswing-llama-"))
        self._made = 0
        self._closed = False

    @classmethod
    async def start(
        cls, base: Base, cache: Path, options: LlamaOptions | None = None
    ) -> LlamaEngine:
        """An engine that serves this base; what it makes of it for llama.cpp is kept in `cache`."""
        if find_spec("xllamacpp") is None:
            raise Misuse("llama.cpp is not installed: pip install 'upswing[llama]'")
        made = await asyncio.to_thread(served, base, cache)
        tokenizer = await asyncio.to_thread(_tokenizer, base, made)
        engine = cls(base, made, tokenizer, options or LlamaOptions())
        try:
            await engine._runners[base.name].start()
        except BaseException:
            await engine.close()
            raise
        return engine

    def names(self) -> Sequence[str]:
        return tuple(self._runners)

    async def load(self, name: str, path: Path) -> None:
        async with self._changing:
            self._check_open()
            if name in self._runners:
                if self._paths.get(name) == path:
                    return
                raise Conflict(f"The name {name[:200]} is taken by another model.")
            file = await asyncio.to_thread(self._converted, path)
            runner = self._runner(file)
            try:
                await runner.start()
                self._check_open()  # it may have been closed meanwhile
            except BaseException:
                await runner.stop()
                raise
            self._runners[name], self._paths[name] = runner, path

    async def unload(self, name: str) -> None:
        async with self._changing:
            if name not in self._paths:
                raise Misuse(f"There is no adapter {name[:200]} here.")
            runner = self._runners.pop(name)
            del self._paths[name]
            leaving = aside(self._leave(runner), name="unloading")
            self._leaving.add(leaving)
            leaving.add_done_callback(self._leaving.discard)
        await asyncio.shield(leaving)

    async def generate(self, prompt: Prompt) -> AsyncGenerator[Piece]:
        self._check_open()
        runner = self._runners.get(prompt.model)
        if runner is None:
            raise Misuse(f"There is no model {prompt.model[:200]} here.")
        with runner.in_use():
            async with self._reading:
                read = await asyncio.to_thread(self._reader.read, prompt)
            answer = Answer(prompt, read.ids, self._reader.decode, self._reader.word)
            body = question(prompt, read.ids, self._context - len(read.ids))
            async with aclosing(runner.ask(body)) as told:
                async for event in told:
                    if (piece := answer.take(event)) is None:
                        continue
                    if piece.finish is not None:
                        self._reader.said(read, tuple(answer.ids), ended=answer.ended)
                    yield piece
                    if piece.finish is not None:
                        return
        raise Transient("llama.cpp ended its answer without a word.")

    async def close(self) -> None:
        self._closed = True
        runners = [*self._runners.values()]
        for leaving in self._leaving:
            leaving.cancel()
        await asyncio.gather(*self._leaving, return_exceptions=True)
        await asyncio.gather(*(runner.stop() for runner in runners))
        await asyncio.to_thread(shutil.rmtree, self._folder, ignore_errors=True)

    # ── one model's process ──────────────────────────────────────────────────────────────────────

    def _check_open(self) -> None:
        if self._closed:
            raise Transient("The model server is closing.")

    def _runner(self, adapter: Path | None) -> Runner:
        options = self._options
        task = Task(
            model=str(self._served.file),
            adapter=None if adapter is None else str(adapter),
            slots=options.slots,
            context=self._context,
            threads=options.threads or max(1, (os.cpu_count() or 2) // 2),
            key=secrets.token_hex(16),
        )
        return Runner(
            task, silence=options.silence, patience=options.patience, owned=adapter,
            frozen_seconds=options.frozen.total_seconds(),
        )  # fmt: skip

    def _converted(self, checkpoint: Path) -> Path:
        from upswing.adapters.gguf.lora import convert  # noqa: PLC0415 - brings peft

        self._made += 1
        file = self._folder / f"{self._made}.gguf"
        convert(checkpoint, self._base.folder, self._served.facts, file)
        return file

    async def _leave(self, runner: Runner) -> None:
        """Requests under way end first."""
        try:
            await runner.drain()
        finally:
            await runner.stop()


def _tokenizer(base: Base, made: Served) -> Any:
    try:
        tokenizer: Any = _class_of(base.folder).from_pretrained(
            base.folder, local_files_only=True, trust_remote_code=False
        )
    except (OSError, ValueError, KeyError) as error:
        raise Misuse(f"The tokenizer of {base.name} cannot be loaded: {error}") from error
    if len(tokenizer) > made.facts.vocabulary:
        raise Misuse(f"The tokenizer of {base.name} knows more tokens than its GGUF file.")
    return tokenizer


def _class_of(folder: Path) -> Any:
    """The class that reads a tokenizer: where it is the plain one, without the seconds that torch takes."""
    try:
        told = json.loads((folder / "tokenizer_config.json").read_bytes())
    except (OSError, ValueError):
        told = None
    if isinstance(told, dict) and told.get("tokenizer_class") in _PLAIN:
        from transformers import PreTrainedTokenizerFast  # noqa: PLC0415 - takes a second

        return PreTrainedTokenizerFast
    from transformers import AutoTokenizer  # noqa: PLC0415 - brings torch

    return AutoTokenizer
