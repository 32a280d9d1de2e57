"""Which credentials open model providers and the tools agents call most?"""

from __future__ import annotations

from .build import ALNUM, HEX, URL64, example_value, keyword_context_rule, prefixed_token_rule

RULES = (
    prefixed_token_rule("openai-project-key", ("sk-proj-", "sk-svcacct-", "sk-admin-"), URL64, 20, 200, kind="openai-key", priority=65, about="OpenAI project, service account and admin keys"),
    prefixed_token_rule("openai-key", "sk-", ALNUM, 20, 64, about="OpenAI keys of the older form, and the many look-alikes of it"),
    prefixed_token_rule("anthropic-key", ("sk-ant-api03-", "sk-ant-admin01-", "sk-ant-oat01-", "sk-ant-"), URL64, 20, 160, priority=65, about="Anthropic API, admin and OAuth keys"),
    prefixed_token_rule("openrouter-key", "sk-or-v1-", HEX, 40, 64, priority=65, about="OpenRouter keys", example="sk-or-v1-" + example_value(64, HEX)),
    prefixed_token_rule("huggingface-token", ("hf_", "api_org_"), ALNUM, 30, 40, about="Hugging Face user and organisation tokens"),
    prefixed_token_rule("groq-key", "gsk_", ALNUM, 40, 60, about="Groq keys"),
    prefixed_token_rule("replicate-token", "r8_", ALNUM, 37, 40, about="Replicate tokens"),
    prefixed_token_rule("xai-key", "xai-", ALNUM, 60, 90, about="xAI keys"),
    prefixed_token_rule("perplexity-key", "pplx-", ALNUM, 40, 60, about="Perplexity keys"),
    prefixed_token_rule("fireworks-key", "fw_", ALNUM, 22, 40, about="Fireworks AI keys"),
    prefixed_token_rule("nvidia-key", "nvapi-", URL64, 40, 80, about="NVIDIA NIM keys"),
    prefixed_token_rule("cerebras-key", "csk-", ALNUM, 40, 60, about="Cerebras keys"),
    prefixed_token_rule("langsmith-key", ("lsv2_pt_", "lsv2_sk_"), HEX, 32, tail=r"_[0-9a-f]{10}", example="lsv2_pt_" + example_value(32, HEX) + "_" + example_value(10, HEX), about="LangSmith keys"),
    prefixed_token_rule("langfuse-key", ("sk-lf-", "pk-lf-"), r"0-9a-f\-", 36, priority=65, example="sk-lf-" + "-".join(example_value(n, HEX) for n in (8, 4, 4, 4, 12)), about="Langfuse keys"),
    prefixed_token_rule("pinecone-key", "pcsk_", r"A-Za-z0-9_", 50, 90, about="Pinecone keys"),
    prefixed_token_rule("tavily-key", "tvly-", URL64, 20, 60, about="Tavily search keys"),
    prefixed_token_rule("firecrawl-key", "fc-", HEX, 32, example="fc-" + example_value(32, HEX), about="Firecrawl keys"),
    prefixed_token_rule("elevenlabs-key", "sk_", HEX, 48, example="sk_" + example_value(48, HEX), about="ElevenLabs keys"),
    prefixed_token_rule("e2b-key", "e2b_", HEX, 40, example="e2b_" + example_value(40, HEX), about="E2B sandbox keys"),
    prefixed_token_rule("llama-cloud-key", "llx-", ALNUM, 40, 60, about="LlamaCloud keys"),
    prefixed_token_rule("jina-key", "jina_", URL64, 40, 80, about="Jina AI keys"),
    prefixed_token_rule("voyage-key", "pa-", URL64, 40, 50, about="Voyage AI keys"),
    prefixed_token_rule("brave-search-key", "BSA", URL64, 28, 28, about="Brave Search keys"),
    prefixed_token_rule("apify-token", "apify_api_", ALNUM, 30, 45, about="Apify tokens"),
    prefixed_token_rule("google-api-key", "AIza", URL64, 35, about="Google API keys, Gemini included"),
    keyword_context_rule("wandb-key", ("wandb", "weights_and_biases"), "[0-9a-f]{40}", example="WANDB_API_KEY=" + example_value(40, HEX), about="Weights & Biases keys"),
    keyword_context_rule("cohere-key", ("cohere", "co_api_key"), "[A-Za-z0-9]{40}", example="COHERE_API_KEY=" + example_value(40), about="Cohere keys"),
    keyword_context_rule("mistral-key", ("mistral",), "[A-Za-z0-9]{32}", example="MISTRAL_API_KEY=" + example_value(32), about="Mistral keys"),
    keyword_context_rule("deepseek-key", ("deepseek",), "sk-[0-9a-f]{32}", priority=66, example="DEEPSEEK_API_KEY=sk-" + example_value(32, HEX), about="DeepSeek keys"),
    keyword_context_rule("together-key", ("together",), "[0-9a-f]{64}", example="TOGETHER_API_KEY=" + example_value(64, HEX), about="Together AI keys"),
    keyword_context_rule("serper-key", ("serper", "serpapi"), "[0-9a-f]{40,64}", example="SERPER_API_KEY=" + example_value(40, HEX), about="Serper and SerpApi keys"),
    keyword_context_rule("assemblyai-key", ("assemblyai",), "[0-9a-f]{32}", example="ASSEMBLYAI_API_KEY=" + example_value(32, HEX), about="AssemblyAI keys"),
    keyword_context_rule("deepgram-key", ("deepgram",), "[0-9a-f]{40}", example="DEEPGRAM_API_KEY=" + example_value(40, HEX), about="Deepgram keys"),
)  # fmt: skip
