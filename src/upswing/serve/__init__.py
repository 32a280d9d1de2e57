"""The embedded model server: one base and the adapters on it, OpenAI-shaped.

| module                | its question                                                   |
|-----------------------|----------------------------------------------------------------|
| `core.engine`         | what does the server need of whatever runs the model?          |
| `core.chat_request`   | what does a client ask for?                                    |
| `core.chat_response`  | how does an answer look, whole and in a stream?                |
| `core.problems`       | how is a client told that something went wrong?                |
| `core.detokenizing`   | what of the tokens drawn so far can be shown already?          |
| `core.tool_calls`     | does the model want tools called?                              |
| `core.sampling`       | which token comes next, and how likely was it?                 |
| `core.scheduler`      | whose request joins the batch?                                 |
| `core.token_memory`   | which tokens did the model say this text with?                 |
| `core.tool_call_text` | what did the model write when it made this call?               |
| `server`              | the routes                                                     |
| `engines`, `gguf`     | what runs the model: PyTorch, or llama.cpp with GGUF files     |
| `main`, `process`     | how does it come up, and how does a loop keep one running?     |
| `client`, `probing`   | how is a server told to load a model, and what can it do?      |
"""
