"""Which engine runs this base, and how is it had?

| asked for | the base                   | llama.cpp is installed | engine                     |
|-----------|----------------------------|------------------------|----------------------------|
| `auto`    | has a GGUF file            | yes                    | llama                      |
| `auto`    | has a GGUF file            | no                     | torch: slower, the same    |
| `auto`    | has none (`tiny`, …)       | –                      | torch                      |
| by name   | any                        | –                      | that, or a clear refusal   |
"""

from __future__ import annotations

import asyncio
from importlib.util import find_spec
from pathlib import Path
from typing import Literal, get_args

from upswing.errors import Misuse
from upswing.serve.core.engine import InferenceEngine
from upswing.train.bases.catalog import BaseModel, resolve_base

EngineKind = Literal["torch", "llama"]
EngineChoice = Literal["auto", "torch", "llama"]
ENGINE_CHOICES: tuple[str, ...] = get_args(EngineChoice)


def choose_engine(choice: EngineChoice, *, has_gguf: bool, llama_installed: bool) -> EngineKind:
    """The engine for a base that has a GGUF file or not.

    >>> choose_engine("auto", has_gguf=True, llama_installed=True), choose_engine("auto", has_gguf=False, llama_installed=True)
    ('llama', 'torch')
    """
    if choice != "auto":
        return choice
    return "llama" if has_gguf and llama_installed else "torch"


async def open_engine(
    base: str,
    cache: Path,
    *,
    choice: EngineChoice = "auto",
    slots: int | None = None,
    threads: int | None = None,
) -> InferenceEngine:
    """The engine that serves this base, ready; `Misuse` when it cannot be had.

    `slots` is how many requests are in a batch, of each model with llama.cpp. It and `threads` are
    left to the engine unless told.
    """
    options = {"threads": threads} if threads else {}
    try:
        resolved = await asyncio.to_thread(resolve_base, base, cache)
        if _engine_kind(choice, resolved) == "llama":
            return await _start_llama(
                resolved, cache, options | ({"slots": slots} if slots else {})
            )
        return await _start_torch(resolved, options | ({"slots": slots} if slots else {}))
    except ImportError as error:
        raise Misuse(f"{error.name} is not installed: pip install '.[train]'") from None


def _engine_kind(choice: EngineChoice, base: BaseModel) -> EngineKind:
    from upswing.serve.gguf.served_copy import find_gguf  # noqa: PLC0415 - only asked here

    installed = find_spec("xllamacpp") is not None
    return choose_engine(choice, has_gguf=find_gguf(base) is not None, llama_installed=installed)


async def _start_torch(base: BaseModel, options: dict[str, int]) -> InferenceEngine:
    from upswing.serve.engines.torch_engine import TorchEngine  # noqa: PLC0415 - brings torch

    return await TorchEngine.start(base, **options)


async def _start_llama(base: BaseModel, cache: Path, options: dict[str, int]) -> InferenceEngine:
    from upswing.serve.engines.llama_engine import LlamaEngine, LlamaOptions  # noqa: PLC0415 - as above

    return await LlamaEngine.start(base, cache, LlamaOptions(**options))  # type: ignore[arg-type]  # counts all
