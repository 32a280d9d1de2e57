"""What an agent imports: the recorder."""

from upswing.sdk.recorder import Recorder
from upswing.sdk.recording import Recording
from upswing.sdk.worker import Stats

__all__ = ["Recorder", "Recording", "Stats"]
