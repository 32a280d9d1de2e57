"""Upswing makes LLM agents better while they work, and never ships a worse one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from upswing.sdk import Recorder

__version__ = "0.1.0"
__all__ = ["Recorder", "__version__"]


def __getattr__(name: str) -> Any:
    """`upswing.Recorder` is loaded when somebody asks for it: the command line need not wait."""
    if name == "Recorder":
        from upswing.sdk import Recorder  # noqa: PLC0415 - that is the point

        return Recorder
    raise AttributeError(f"module 'upswing' has no attribute {name!r}")
