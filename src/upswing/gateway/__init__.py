"""Which model answers this request? An OpenAI-shaped gateway that records what it carries."""
