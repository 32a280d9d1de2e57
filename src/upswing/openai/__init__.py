"""What do OpenAI-compatible servers and clients say to each other? Errors and completions as values."""
