"""What llama.cpp reads: a base as it ships, and our adapters beside it.

| module    | its question                                                               |
|-----------|----------------------------------------------------------------------------|
| `base`    | which model is in it, and which of its tokens are only parts of characters? |
| `served`  | where is the copy that llama.cpp is given?                                  |
| `naming`  | what does GGUF call a layer that training knows by its Hugging Face name?   |
| `lora`    | how does an adapter of ours become a GGUF file?                             |
"""
