"""How does llama.cpp's server run in a process of its own?

`python -m upswing.serve.engines.llama_child` reads one line of JSON, a `LlamaServerSpec`, from its standard
input and answers with one line, `LlamaStartup`: its address, or why there is none. It ends when its standard
input does. Whatever llama.cpp itself prints goes to the standard error.
"""

from __future__ import annotations

import os
import sys
from typing import Any

import msgspec

from upswing.contracts.typed import from_json
from upswing.infra.heartbeat import Beats

_PREFILL_BATCH = 256
"""Tokens of a prompt that are read at once; after each such batch it tells how far it is."""


class LlamaServerSpec(msgspec.Struct, frozen=True, kw_only=True):
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


class LlamaStartup(msgspec.Struct, frozen=True, omit_defaults=True):
    address: str = ""
    refusal: str = ""


def main() -> int:
    """Serve until the parent closes our standard input."""
    Beats().start_in_thread()
    reply_pipe = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    spec = from_json(sys.stdin.buffer.readline(), LlamaServerSpec)
    try:
        from xllamacpp import Server  # noqa: PLC0415 - it prints, and that must not reach the line

        server = Server(_llama_params(spec))
    except (RuntimeError, ValueError, TypeError, AttributeError, ImportError) as error:
        reply_pipe.write(
            msgspec.json.encode(LlamaStartup(refusal=str(error) or type(error).__name__)) + b"\n"
        )
        reply_pipe.close()
        return 1
    reply_pipe.write(msgspec.json.encode(LlamaStartup(server.listening_address)) + b"\n")
    reply_pipe.close()
    sys.stdin.buffer.read()
    os._exit(0)  # llama.cpp's own way to an end sometimes waits for ever


def _llama_params(spec: LlamaServerSpec) -> Any:
    """llama.cpp's settings; those that are not about size are about exactness and about safety."""
    from xllamacpp import CommonAdapterLoraInfo, CommonParams  # noqa: PLC0415 - as above

    params = CommonParams()
    params.model.path = spec.model
    if spec.adapter is not None:
        params.lora_adapters = [CommonAdapterLoraInfo(spec.adapter, 1.0)]
    params.n_parallel, params.n_ctx = spec.slots, spec.slots * spec.context
    params.n_batch = params.n_ubatch = _PREFILL_BATCH
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = spec.threads
    params.fit_params = params.ctx_shift = False  # as large as was asked for, and nothing forgotten
    params.cache_ram_mib = 0  # a second cache of prompts, of gigabytes
    params.hostnames, params.port, params.api_keys = ["127.0.0.1"], 0, [spec.key]
    params.ui = params.endpoint_props = False
    params.endpoint_metrics = True
    params.offline, params.verbosity = True, 1
    return params


if __name__ == "__main__":
    sys.exit(main())
