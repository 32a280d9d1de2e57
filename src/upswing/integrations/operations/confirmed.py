"""What is only done when a person says so? Whatever gives a model traffic, and whatever cannot be undone.

Keys are made by a person at a terminal alone: a key that an assistant reads is a key that hostile text can ask it for.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

from msgspec import Meta

from upswing.integrations.operations.formatting import Identifier, Name, figure
from upswing.integrations.operations.loop_port import LoopPort, path_of
from upswing.integrations.operations.operation import (
    Access,
    Arguments,
    Operation,
    OperationAnswer,
    PersonStep,
)
from upswing.integrations.operations.quoting import one_line
from upswing.integrations.operations.requesting import Why, rollout_answer


class ApproveArgs(Arguments, frozen=True):
    """Which model."""

    model_id: Name
    reason: Why = ""


async def approve(loop: LoopPort, asked: ApproveArgs) -> OperationAnswer:
    path = path_of("/v1/rollouts/{id}/approve", id=asked.model_id)
    return rollout_answer(await loop.post(path, {"reason": asked.reason}))


class ResumeArgs(Arguments, frozen=True):
    """Which model."""

    model_id: Name
    reason: Why = ""


async def resume(loop: LoopPort, asked: ResumeArgs) -> OperationAnswer:
    path = path_of("/v1/rollouts/{id}/resume", id=asked.model_id)
    return rollout_answer(await loop.post(path, {"reason": asked.reason}))


class SetTrafficArgs(Arguments, frozen=True):
    """Which model, and its share in percent; 100 makes it the baseline."""

    model_id: Name
    percentage: Annotated[float, Meta(ge=0, le=100)]


async def set_traffic(loop: LoopPort, asked: SetTrafficArgs) -> OperationAnswer:
    body = {"model_id": asked.model_id, "traffic_percentage": asked.percentage}
    stands = await loop.ask("PUT", "/admin/traffic", body)
    shares = ", ".join(
        f"{one_line(name)} {figure(share)} %" for name, share in stands["traffic"].items()
    )
    return OperationAnswer(f"Traffic: {shares}; baseline {one_line(stands['baseline'])}.")


class CancelArgs(Arguments, frozen=True):
    """Which job."""

    job_id: Identifier


async def cancel_job(loop: LoopPort, asked: CancelArgs) -> OperationAnswer:
    stands = await loop.post(path_of("/training/{id}/cancel", id=asked.job_id))
    ends = "is to end" if stands["cancelling"] else f"is {stands['status']}"
    return OperationAnswer(f"{one_line(asked.job_id)} {ends}.")


class UserArgs(Arguments, frozen=True):
    """Which user."""

    user: Identifier


async def erase_user(loop: LoopPort, asked: UserArgs) -> OperationAnswer:
    gone = await loop.ask("DELETE", path_of("/v1/users/{user}/data", user=asked.user))
    counts = ", ".join(f"{name} {value}" for name, value in gone.items() if isinstance(value, int))
    return OperationAnswer(f"Erased: {counts}.")


async def opt_out(loop: LoopPort, asked: UserArgs) -> OperationAnswer:
    await loop.ask("PUT", path_of("/v1/optouts/{user}", user=asked.user))
    return OperationAnswer("The user is no longer recorded.")


class KeyArgs(Arguments, frozen=True):
    """Which key, by its id."""

    key_id: Identifier


async def revoke_key(loop: LoopPort, asked: KeyArgs) -> OperationAnswer:
    await loop.ask("DELETE", path_of("/v1/keys/{id}", id=asked.key_id))
    return OperationAnswer(f"Key {one_line(asked.key_id)} no longer works.")


class ReplayArgs(Arguments, frozen=True):
    """Which dead letter."""

    dead_id: Identifier


async def replay(loop: LoopPort, asked: ReplayArgs) -> OperationAnswer:
    done = await loop.post(path_of("/v1/dead/{id}/replay", id=asked.dead_id))
    return OperationAnswer(f"Tried again: {one_line(done.get('result', 'done'))}.")


class AcknowledgeArgs(Arguments, frozen=True):
    """Which alert, and what is being done about it."""

    alert_id: Identifier
    note: Why = ""


async def acknowledge(loop: LoopPort, asked: AcknowledgeArgs) -> OperationAnswer:
    path = path_of("/v1/alerts/{id}/acknowledge", id=asked.alert_id)
    stands = await loop.post(path, {"note": asked.note})
    return OperationAnswer(f"{one_line(stands['name'])} is {one_line(stands['state'])}.")


def _shown(identifier: str) -> str:
    """An id in a sentence that a person agrees to: all of it, and none of its words pass for ours."""
    return one_line(identifier, 200)


CONFIRMED: Sequence[Operation] = (
    Operation(
        "approve",
        "Agree to a model's first traffic, or to all of it. A person has to confirm.",
        ApproveArgs,
        approve,
        Access.PERSON,
        PersonStep(
            lambda asked: f"Let {asked.model_id} answer: its first traffic, or all of it.",
            lambda asked: ["rollouts", "approve", asked.model_id],
        ),
    ),
    Operation(
        "resume",
        "Let a held rollout go on. A person has to confirm.",
        ResumeArgs,
        resume,
        Access.PERSON,
        PersonStep(
            lambda asked: f"Let the rollout of {asked.model_id} go on.",
            lambda asked: ["rollouts", "resume", asked.model_id],
        ),
    ),
    Operation(
        "set_traffic",
        "Give a model a share of the traffic; 100 makes it the baseline. A person has to confirm.",
        SetTrafficArgs,
        set_traffic,
        Access.PERSON,
        PersonStep(
            lambda asked: f"Give {asked.model_id} {asked.percentage:.15g} % of the traffic.",
            lambda asked: ["traffic", f"{asked.model_id}={asked.percentage:.15g}"],
        ),
    ),
    Operation(
        "cancel_job",
        "End a training job. A person has to confirm.",
        CancelArgs,
        cancel_job,
        Access.PERSON,
        PersonStep(
            lambda asked: f"End the training job {_shown(asked.job_id)}.",
            lambda asked: ["jobs", "cancel", asked.job_id],
        ),
    ),
    Operation(
        "erase_user",
        "Erase everything of a user. It cannot be undone. A person has to confirm.",
        UserArgs,
        erase_user,
        Access.PERSON,
        PersonStep(
            lambda asked: (
                f"Erase everything of the user {_shown(asked.user)}. It cannot be undone."
            ),
            lambda asked: ["erase", asked.user],
        ),
    ),
    Operation(
        "opt_out",
        "Stop recording a user. A person has to confirm.",
        UserArgs,
        opt_out,
        Access.PERSON,
        PersonStep(
            lambda asked: f"Stop recording the user {_shown(asked.user)}.",
            lambda asked: ["optout", asked.user],
        ),
    ),
    Operation(
        "revoke_key",
        "Have a key work no more. A person has to confirm. (A person makes keys: `upswing keys add`.)",
        KeyArgs,
        revoke_key,
        Access.PERSON,
        PersonStep(
            lambda asked: f"Have the key {_shown(asked.key_id)} work no more.",
            lambda asked: ["keys", "revoke", asked.key_id],
        ),
    ),
    Operation(
        "replay",
        "Try a dead letter again. A person has to confirm.",
        ReplayArgs,
        replay,
        Access.PERSON,
        PersonStep(
            lambda asked: f"Try the dead letter {_shown(asked.dead_id)} again.",
            lambda asked: ["dead", "replay", asked.dead_id],
        ),
    ),
    Operation(
        "acknowledge",
        "Say that an alert is known and taken care of. A person has to confirm.",
        AcknowledgeArgs,
        acknowledge,
        Access.PERSON,
        PersonStep(
            lambda asked: f"Say that the alert {_shown(asked.alert_id)} is taken care of.",
            lambda asked: ["alerts", "ack", asked.alert_id],
        ),
    ),
)
