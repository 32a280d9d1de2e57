"""What an agent imports: the recorder, and which model to ask."""

from upswing.sdk.answering import RlModel
from upswing.sdk.models import (
    Inference,
    RlModelConfig,
    is_rl_model_available,
    latest_rl_model,
    model_for_inference,
    rl_model_config,
    should_use_rl_model,
)
from upswing.sdk.recorder import Recorder
from upswing.sdk.recording import Recording
from upswing.sdk.worker import Stats

__all__ = [
    "Inference",
    "Recorder",
    "Recording",
    "RlModel",
    "RlModelConfig",
    "Stats",
    "is_rl_model_available",
    "latest_rl_model",
    "model_for_inference",
    "rl_model_config",
    "should_use_rl_model",
]
