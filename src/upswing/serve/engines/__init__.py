"""Adapters that run a model: the embedded PyTorch, and llama.cpp. Each is imported when asked for."""
