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

from upswing.adapters.bases import Base, resolve
from upswing.errors import Misuse
from upswing.serve.ports import Engine

Kind = Literal["torch", "llama"]
Wish = Literal["auto", "torch", "llama"]
WISHES: tuple[str, ...] = get_args(Wish)


def kind_of(wish: Wish, *, gguf: bool, installed: bool) -> Kind:
    """The engine for a base that has a GGUF file or not.

    >>> kind_of("auto", gguf=True, installed=True), kind_of("auto", gguf=False, installed=True)
    ('llama', 'torch')
    """
    if wish != "auto":
        return wish
    return "llama" if gguf and installed else "torch"


async def open_engine(
    base: str, cache: Path, *, wish: Wish = "auto", seats: int | None = None,
    threads: int | None = None,
) -> Engine:  # fmt: skip
    """The engine that serves this base, ready; `Misuse` when it cannot be had.

    `seats` is how many requests are in a batch, of each model with llama.cpp. It and `threads` are
    left to the engine unless told.
    """
    told = {"threads": threads} if threads else {}
    try:
        found = await asyncio.to_thread(resolve, base, cache)
        if _kind(wish, found) == "llama":
            return await _llama(found, cache, told | ({"slots": seats} if seats else {}))
        return await _torch(found, told | ({"seats": seats} if seats else {}))
    except ImportError as error:
        raise Misuse(f"{error.name} is not installed: pip install 'upswing[train]'") from None


def _kind(wish: Wish, base: Base) -> Kind:
    from upswing.adapters.gguf.served import gguf_of  # noqa: PLC0415 - only asked here

    installed = find_spec("xllamacpp") is not None
    return kind_of(wish, gguf=gguf_of(base) is not None, installed=installed)


async def _torch(base: Base, told: dict[str, int]) -> Engine:
    from upswing.adapters.engines.torch_engine import TorchEngine  # noqa: PLC0415 - brings torch

    return await TorchEngine.start(base, **told)


async def _llama(base: Base, cache: Path, told: dict[str, int]) -> Engine:
    from upswing.adapters.engines.llama import LlamaEngine, LlamaOptions  # noqa: PLC0415 - as above

    return await LlamaEngine.start(base, cache, LlamaOptions(**told))  # type: ignore[arg-type]  # counts all
