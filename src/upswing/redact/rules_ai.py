"""Which credentials open model providers and the tools agents call most?"""

from __future__ import annotations

from .build import ALNUM, HEX, URL64, context, fill, token

RULES = (
    token("openai-project-key", ("sk-proj-", "sk-svcacct-", "sk-admin-"), URL64, 20, 200, kind="openai-key", priority=65, about="OpenAI project, service account and admin keys"),
    token("openai-key", "sk-", ALNUM, 20, 64, about="OpenAI keys of the older form, and the many look-alikes of it"),
    token("anthropic-key", ("sk-ant-api03-", "sk-ant-admin01-", "sk-ant-oat01-", "sk-ant-"), URL64, 20, 160, priority=65, about="Anthropic API, admin and OAuth keys"),
    token("openrouter-key", "sk-or-v1-", HEX, 40, 64, priority=65, about="OpenRouter keys", example="sk-or-v1-" + fill(64, HEX)),
    token("huggingface-token", ("hf_", "api_org_"), ALNUM, 30, 40, about="Hugging Face user and organisation tokens"),
    token("groq-key", "gsk_", ALNUM, 40, 60, about="Groq keys"),
    token("replicate-token", "r8_", ALNUM, 37, 40, about="Replicate tokens"),
    token("xai-key", "xai-", ALNUM, 60, 90, about="xAI keys"),
    token("perplexity-key", "pplx-", ALNUM, 40, 60, about="Perplexity keys"),
    token("fireworks-key", "fw_", ALNUM, 22, 40, about="Fireworks AI keys"),
    token("nvidia-key", "nvapi-", URL64, 40, 80, about="NVIDIA NIM keys"),
    token("cerebras-key", "csk-", ALNUM, 40, 60, about="Cerebras keys"),
    token("langsmith-key", ("lsv2_pt_", "lsv2_sk_"), HEX, 32, tail=r"_[0-9a-f]{10}", example="lsv2_pt_" + fill(32, HEX) + "_" + fill(10, HEX), about="LangSmith keys"),
    token("langfuse-key", ("sk-lf-", "pk-lf-"), r"0-9a-f\-", 36, priority=65, example="sk-lf-" + "-".join(fill(n, HEX) for n in (8, 4, 4, 4, 12)), about="Langfuse keys"),
    token("pinecone-key", "pcsk_", r"A-Za-z0-9_", 50, 90, about="Pinecone keys"),
    token("tavily-key", "tvly-", URL64, 20, 60, about="Tavily search keys"),
    token("firecrawl-key", "fc-", HEX, 32, example="fc-" + fill(32, HEX), about="Firecrawl keys"),
    token("elevenlabs-key", "sk_", HEX, 48, example="sk_" + fill(48, HEX), about="ElevenLabs keys"),
    token("e2b-key", "e2b_", HEX, 40, example="e2b_" + fill(40, HEX), about="E2B sandbox keys"),
    token("llama-cloud-key", "llx-", ALNUM, 40, 60, about="LlamaCloud keys"),
    token("jina-key", "jina_", URL64, 40, 80, about="Jina AI keys"),
    token("voyage-key", "pa-", URL64, 40, 50, about="Voyage AI keys"),
    token("brave-search-key", "BSA", URL64, 28, 28, about="Brave Search keys"),
    token("apify-token", "apify_api_", ALNUM, 30, 45, about="Apify tokens"),
    token("google-api-key", "AIza", URL64, 35, about="Google API keys, Gemini included"),
    context("wandb-key", ("wandb", "weights_and_biases"), "[0-9a-f]{40}", example="WANDB_API_KEY=" + fill(40, HEX), about="Weights & Biases keys"),
    context("cohere-key", ("cohere", "co_api_key"), "[A-Za-z0-9]{40}", example="COHERE_API_KEY=" + fill(40), about="Cohere keys"),
    context("mistral-key", ("mistral",), "[A-Za-z0-9]{32}", example="MISTRAL_API_KEY=" + fill(32), about="Mistral keys"),
    context("deepseek-key", ("deepseek",), "sk-[0-9a-f]{32}", priority=66, example="DEEPSEEK_API_KEY=sk-" + fill(32, HEX), about="DeepSeek keys"),
    context("together-key", ("together",), "[0-9a-f]{64}", example="TOGETHER_API_KEY=" + fill(64, HEX), about="Together AI keys"),
    context("serper-key", ("serper", "serpapi"), "[0-9a-f]{40,64}", example="SERPER_API_KEY=" + fill(40, HEX), about="Serper and SerpApi keys"),
    context("assemblyai-key", ("assemblyai",), "[0-9a-f]{32}", example="ASSEMBLYAI_API_KEY=" + fill(32, HEX), about="AssemblyAI keys"),
    context("deepgram-key", ("deepgram",), "[0-9a-f]{40}", example="DEEPGRAM_API_KEY=" + fill(40, HEX), about="Deepgram keys"),
)  # fmt: skip
