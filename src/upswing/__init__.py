"""Upswing makes LLM agents better while they work, and never ships a worse one."""

__version__ = "0.1.0"
