"""What travels between the stages: frozen, versioned messages and the table of their subjects."""

from upswing.contracts.codec import (
    canonical,
    decode,
    decode_trajectory,
    encode,
    from_builtins,
)
from upswing.contracts.dead import DeadLetter
from upswing.contracts.feedback import Feedback
from upswing.contracts.model import ModelDeployed
from upswing.contracts.notices import AlertNotice, ReportNotice
from upswing.contracts.reward import Reward
from upswing.contracts.training import TrainingRequest, TrainingStatus
from upswing.contracts.trajectory import Trajectory, Turn
from upswing.contracts.wire import Message

__all__ = [
    "AlertNotice",
    "DeadLetter",
    "Feedback",
    "Message",
    "ModelDeployed",
    "ReportNotice",
    "Reward",
    "TrainingRequest",
    "TrainingStatus",
    "Trajectory",
    "Turn",
    "canonical",
    "decode",
    "decode_trajectory",
    "encode",
    "from_builtins",
]
