"""What a probe finds of real model servers: ours, with PyTorch and with llama.cpp behind it."""

import pytest
from tests.serve import gguf_cases as cases

from upswing.contracts.backend import Abilities
from upswing.errors import Denied
from upswing.serve.probing import list_models, probe

pytestmark = pytest.mark.live
OURS = Abilities(listed=True, logprobs=True, token_ids=True, tools=True, adapters=True)


async def test_our_own_model_server_is_found_out_as_any_other(serve):
    assert await probe(f"{await serve()}/v1", "tiny", "") == OURS


async def test_llama_cpp_behind_it_is_found_out_too(serve, tmp_path):
    pytest.importorskip("xllamacpp", reason="llama.cpp is not installed")
    base = cases.make_base(tmp_path / "base", endless=True)
    url = await serve(base=base.name, cache=tmp_path / "cache", slots=2)
    assert await probe(f"{url}/v1", base.name, "") == OURS


async def test_llama_cpps_own_server_is_asked_for_what_it_has(tmp_path):
    """Its own HTTP server, with a key, as anybody runs it."""
    pytest.importorskip("xllamacpp", reason="llama.cpp is not installed")
    from upswing.serve.engines.llama_engine import LlamaEngine, LlamaOptions

    base = cases.make_base(tmp_path / "base", endless=True)
    engine = await LlamaEngine.start(
        base, tmp_path / "cache", LlamaOptions(slots=1, context=4096, threads=1)
    )
    try:
        runner = next(iter(engine._processes.values()))
        names = await list_models(f"{runner.address}/v1", runner.key)
        found = await probe(f"{runner.address}/v1", names.pop(), runner.key)
        with pytest.raises(Denied):
            await probe(f"{runner.address}/v1", "any", "")
    finally:
        await engine.close()
    assert (found.listed, found.logprobs, found.token_ids, found.adapters) == (
        True,
        True,
        False,
        False,
    )
    assert found.shapes == ("responses", "messages"), "it speaks them itself"
