"""Which message travels where, how long is it kept, and who may say and hear it?

One table. Stream set-up, server permissions, `contracts/topics.json` and the docs are made from it.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

from upswing.contracts.dead import DeadLetter
from upswing.contracts.feedback import Feedback
from upswing.contracts.model import ModelDeployed
from upswing.contracts.notices import AlertNotice, ReportNotice
from upswing.contracts.reward import Reward
from upswing.contracts.training import TrainingRequest, TrainingStatus
from upswing.contracts.trajectory import Trajectory
from upswing.contracts.wire import Message

ROLES = (
    "collector",
    "rewarder",
    "trainer",
    "deployer",
    "monitor",
    "gateway",
    "agent",
    "requester",
    "reader",
)
"""`requester` is an agent, or a person, who may also ask for training and hear what is deployed."""


@dataclass(frozen=True, slots=True)
class Stream:
    """A JetStream stream as it has to be."""

    name: str
    subjects: tuple[str, ...]
    max_age: timedelta
    max_msgs: int


@dataclass(frozen=True, slots=True)
class Topic:
    """One subject: what travels on it and who may publish and subscribe."""

    subject: str
    message: type[Message] | None
    stream: str | None
    publishers: tuple[str, ...]
    subscribers: tuple[str, ...]
    about: str
    consumer: str = ""
    """Ends the name of a role's consumer, where the stream holds another subject that the role hears."""


TRAJECTORY = "agent.rl.trajectory.v1"
GATEWAY_TRAJECTORY = "agent.rl.gateway.trajectory.v1"
REWARD = "agent.rl.reward.v1"
TRAINING_REQUEST = "agent.rl.training.request.v1"
TRAINING_STATUS = "agent.rl.training.status.v1"
MODEL_DEPLOYED = "agent.rl.model.deployed.v1"
FEEDBACK = "agent.rl.feedback.v1"
GATEWAY_FEEDBACK = "agent.rl.gateway.feedback.v1"
DEAD = "agent.rl.dead.>"
DEAD_GATEWAY = "agent.rl.dead.gateway"
ALERT = "agent.rl.alert.v1"
REPORT = "agent.rl.report.v1"
STATUS_ENQUIRY = "agent.rl.training.status.request"
STORED = "agent.rl.stored"
TRAJECTORIES = "RL_TRAJECTORIES"
FEEDBACKS = "RL_FEEDBACK"
TRAINING = "RL_TRAINING"
DEADS = "RL_DEAD"
NOTICES = "RL_NOTICES"

_MONTH, _WEEK = timedelta(days=30), timedelta(days=7)
STREAMS = (
    Stream(TRAJECTORIES, (TRAJECTORY, GATEWAY_TRAJECTORY), _MONTH, 1_000_000),
    Stream("RL_REWARDS", (REWARD,), _MONTH, 500_000),
    # By name, not `agent.rl.training.>`: that would also swallow the enquiry below, and the
    # stream's own acknowledgement would answer the asker before the training service does.
    Stream(TRAINING, (TRAINING_REQUEST, TRAINING_STATUS), _WEEK, 10_000),
    Stream("RL_MODELS", (MODEL_DEPLOYED,), _MONTH, 100_000),
    Stream(FEEDBACKS, (FEEDBACK, GATEWAY_FEEDBACK), _MONTH, 1_000_000),
    Stream(DEADS, (DEAD,), _MONTH, 100_000),
    Stream(NOTICES, (ALERT, REPORT), _MONTH, 100_000),
)

_STAGES = ("collector", "rewarder", "trainer", "deployer", "monitor")
TOPICS = (
    Topic(
        TRAJECTORY,
        Trajectory,
        TRAJECTORIES,
        ("agent", "requester", "collector"),
        ("collector", "reader"),
        "What agents did.",
    ),
    Topic(
        GATEWAY_TRAJECTORY,
        Trajectory,
        TRAJECTORIES,
        ("gateway",),
        ("collector", "reader"),
        "What a gateway recorded: nothing else is evidence of a rollout.",
        consumer="-gateway",
    ),
    Topic(
        REWARD,
        Reward,
        "RL_REWARDS",
        ("rewarder",),
        ("trainer", "deployer", "agent", "requester", "reader"),
        "How good it was.",
    ),
    Topic(
        TRAINING_REQUEST,
        TrainingRequest,
        TRAINING,
        ("requester", "trainer"),
        ("trainer", "reader"),
        "A wish to train.",
    ),
    Topic(
        TRAINING_STATUS,
        TrainingStatus,
        TRAINING,
        ("trainer",),
        ("agent", "requester", "deployer", "reader"),
        "Where a job stands.",
    ),
    Topic(
        MODEL_DEPLOYED,
        ModelDeployed,
        "RL_MODELS",
        ("deployer",),
        ("requester", "trainer", "reader"),
        "Which model answers now.",
    ),
    Topic(
        FEEDBACK,
        Feedback,
        FEEDBACKS,
        ("agent", "requester", "collector"),
        ("collector", "rewarder", "reader"),
        "What a user said of it.",
    ),
    Topic(
        GATEWAY_FEEDBACK,
        Feedback,
        FEEDBACKS,
        ("gateway",),
        ("collector", "rewarder", "reader"),
        "The same, said to a gateway by a client with a key.",
        consumer="-gateway",
    ),
    Topic(
        DEAD,
        DeadLetter,
        DEADS,
        _STAGES,
        ("reader", *_STAGES),
        "What could not be taken, redacted, with the reason.",
    ),
    Topic(
        DEAD_GATEWAY,
        DeadLetter,
        DEADS,
        ("gateway", *_STAGES),
        ("reader", *_STAGES),
        "Episodes that a gateway could not record; the loop keeps them with its own dead letters.",
    ),
    Topic(
        ALERT,
        AlertNotice,
        NOTICES,
        ("monitor",),
        ("requester", "reader"),
        "Something that a person should know of.",
    ),
    Topic(
        REPORT,
        ReportNotice,
        NOTICES,
        ("monitor",),
        ("requester", "reader"),
        "How a day, a week or a training job went.",
        consumer="-reports",
    ),
    Topic(
        STATUS_ENQUIRY,
        None,
        None,
        ("agent", "requester", "deployer", "reader"),
        ("trainer",),
        'Request and reply: {"job_id": …} is answered with the newest status.',
    ),
    Topic(STORED, None, None, _STAGES, _STAGES, "A nudge after a commit; empty."),
)


def consumer_name(topic: Topic, role: str) -> str:
    """What the consumer is called with which `role` reads a topic."""
    return f"{role}{topic.consumer}"


def topic_of_subject(subject: str) -> Topic:
    """The topic of a subject that stands in the table."""
    return next(topic for topic in TOPICS if topic.subject == subject)


def topic_of_message(message: type[Message]) -> Topic:
    """The topic that carries this kind of message."""
    return next(topic for topic in TOPICS if topic.message is message)
