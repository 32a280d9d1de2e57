"""How does llama.cpp's server run in a process of its own?

`python -m upswing.adapters.engines.llama_child` reads one line of JSON, a `Task`, from its standard
input and answers with one line, `Told`: its address, or why there is none. It ends when its standard
input does. Whatever llama.cpp itself prints goes to the standard error.
"""

from __future__ import annotations

import os
import sys
from typing import Any

import msgspec

from upswing.contracts.typed import from_json
from upswing.pulse import Beats

_BATCH = 256
"""Tokens of a prompt that are read at once; after each such batch it tells how far it is."""


class Task(msgspec.Struct, frozen=True, kw_only=True):
    """What one server serves."""

    model: str
    """The GGUF file of the base."""
    adapter: str | None = None
    """That of the adapter, which every answer is given with."""
    slots: int
    context: int
    threads: int
    key: str
    """Whoever asks must show it."""


class Told(msgspec.Struct, frozen=True, omit_defaults=True):
    address: str = ""
    refusal: str = ""


def main() -> int:
    """Serve until the parent closes our standard input."""
    Beats().from_thread()
    line = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    task = from_json(sys.stdin.buffer.readline(), Task)
    try:
        from xllamacpp import Server  # noqa: PLC0415 - it prints, and that must not reach the line

        server = Server(_params(task))
    except (RuntimeError, ValueError, TypeError, AttributeError, ImportError) as error:
        line.write(msgspec.json.encode(Told(refusal=str(error) or type(error).__name__)) + b"\n")
        line.close()
        return 1
    line.write(msgspec.json.encode(Told(server.listening_address)) + b"\n")
    line.close()
    sys.stdin.buffer.read()
    os._exit(0)  # llama.cpp's own way to an end sometimes waits for ever


def _params(task: Task) -> Any:
    """llama.cpp's settings; those that are not about size are about exactness and about safety."""
    from xllamacpp import CommonAdapterLoraInfo, CommonParams  # noqa: PLC0415 - as above

    params = CommonParams()
    params.model.path = task.model
    if task.adapter is not None:
        params.lora_adapters = [CommonAdapterLoraInfo(task.adapter, 1.0)]
    params.n_parallel, params.n_ctx = task.slots, task.slots * task.context
    params.n_batch = params.n_ubatch = _BATCH
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = task.threads
    params.fit_params = params.ctx_shift = False  # as large as was asked for, and nothing forgotten
    params.cache_ram_mib = 0  # a second cache of prompts, of gigabytes
    params.hostnames, params.port, params.api_keys = ["127.0.0.1"], 0, [task.key]
    params.ui = params.endpoint_props = False
    params.endpoint_metrics = True
    params.offline, params.verbosity = True, 1
    return params


if __name__ == "__main__":
    sys.exit(main())
