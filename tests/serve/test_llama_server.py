"""A GGUF base behind the model server's own door: adapters come and go, tokens are told."""

import pytest
from tests.serve import gguf_cases as cases
from tests.support import Client

pytest.importorskip("xllamacpp", reason="llama.cpp is not installed: pip install '.[llama]'")
pytestmark = pytest.mark.live


async def test_an_adapter_is_loaded_asked_and_unloaded_over_http(serve, tmp_path):
    base = cases.make_base(tmp_path / "base", endless=True)
    path = cases.checkpoint(tmp_path, "a", cases.with_adapter(base), base)
    async with Client(await serve(base=base.name, cache=tmp_path / "cache", slots=2)) as server:
        status, _ = await server(
            "POST", "/v1/load_lora_adapter", {"lora_name": "tuned", "lora_path": str(path)}
        )
        assert status == 200
        said = {}
        for model in (base.name, "tuned"):
            status, answer = await server("POST", "/v1/chat/completions", question(model))
            assert status == 200, answer
            [choice] = answer["choices"]
            assert len(choice["token_ids"]) == len(choice["logprobs"]["content"]) == 8
            assert answer["usage"]["prompt_tokens"] == len(answer["prompt_token_ids"])
            said[model] = choice["token_ids"]
        assert said[base.name] != said["tuned"]
        status, _ = await server("POST", "/v1/unload_lora_adapter", {"lora_name": "tuned"})
        assert status == 200
        status, _ = await server("POST", "/v1/chat/completions", question("tuned"))
        assert status == 404


def question(model):
    return {
        "model": model,
        "messages": [{"role": "user", "content": "the thin thread"}],
        "temperature": 0,
        "max_tokens": 8,
        "logprobs": True,
        "return_token_ids": True,
    }
