"""Which role may publish and hear what? Server permissions, made from the table of topics.

Everything is denied that the table does not allow. A role reads a stream only through a consumer that bears its name and
that filters on a subject it may hear, and gets replies only on its own inbox, `_INBOX_<role>`.
Only `gateway` publishes what counts as evidence of a rollout; `agent` hears neither the traffic plan nor what is deployed.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass

from upswing.contracts.topics import (
    FEEDBACKS,
    ROLES,
    STATUS_ENQUIRY,
    STREAMS,
    TOPICS,
    TRAINING,
    TRAJECTORIES,
    Topic,
    consumer_name,
)
from upswing.infra.nats.health import HEALTH, INBOX, QUESTION

OPERATOR = "operator"
"""The loop itself when all stages run in one process: it also makes and repairs the streams."""
MAX_PAYLOAD = 8 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Permissions:
    publish: tuple[str, ...]
    subscribe: tuple[str, ...]
    answers: bool = False
    """May reply to requests it received."""


def permissions_of(role: str) -> Permissions:
    """What the table of topics gives to `role`."""
    if role == OPERATOR:
        return Permissions(
            ("agent.rl.>", "$JS.API.>", "$JS.ACK.>", "$KV.>"),
            ("agent.rl.>", "$JS.EVENT.ADVISORY.>", "$KV.>", "_INBOX.>", f"_INBOX_{OPERATOR}.>"),
            answers=True,
        )
    says = [topic.subject for topic in TOPICS if role in topic.publishers]
    hears = [topic for topic in TOPICS if role in topic.subscribers]
    api = ["$JS.API.INFO"] if any(topic.stream for topic in hears) or says else []
    for topic in hears:
        if topic.stream:
            api += _consumer_subjects(topic.stream, topic, role)
    api += _direct_get_subjects({topic.subject for topic in hears})
    api += [f"$JS.API.STREAM.MSG.DELETE.{name}" for name in _ERASES.get(role, ())]
    boards = _BOARDS.get(role, Permissions((), ()))
    return Permissions(
        tuple(dict.fromkeys([*says, *api, *boards.publish])),
        (*(topic.subject for topic in hears), *boards.subscribe, f"_INBOX_{role}.>"),
        answers=any(topic.subject == STATUS_ENQUIRY for topic in hears),
    )


_ERASES = {"collector": (TRAJECTORIES, FEEDBACKS), "trainer": (TRAINING,)}
"""Streams of which a role erases raw messages that it has taken, or refused for what they hold."""
_BOARDS = {
    # The traffic plan is read, and never written; counts and assignments are told and heard.
    "gateway": Permissions(
        (
            "$KV.rl_tally.>",
            "$KV.rl_pins.>",
            "$KV.rl_gateways.>",
            *(
                f"$JS.API.STREAM.INFO.KV_rl_{name}"
                for name in ("traffic", "tally", "pins", "gateways")
            ),
            "$JS.API.STREAM.MSG.GET.KV_rl_traffic",
            "$JS.API.DIRECT.GET.KV_rl_traffic.>",
            "$JS.API.CONSUMER.INFO.KV_rl_pins.>",
            "$JS.API.CONSUMER.DELETE.KV_rl_pins.>",
            "$JS.API.CONSUMER.CREATE.KV_rl_pins",
            "$JS.API.CONSUMER.CREATE.KV_rl_pins.>",
            "$JS.FC.KV_rl_pins.>",
        ),
        ("$KV.rl_traffic.plan", "$KV.rl_pins.>"),
    ),
}
"""What a role may do with the buckets of `infra.nats.traffic`."""


def _consumer_subjects(stream: str, topic: Topic, role: str) -> list[str]:
    """The requests behind the role's own pull consumer, which sees the topic and nothing else."""
    name = consumer_name(topic, role)
    return [
        f"$JS.API.STREAM.INFO.{stream}",
        f"$JS.API.CONSUMER.CREATE.{stream}.{name}.{topic.subject}",
        f"$JS.API.CONSUMER.INFO.{stream}.{name}",
        f"$JS.API.CONSUMER.MSG.NEXT.{stream}.{name}",
        f"$JS.ACK.{stream}.{name}.>",
    ]


def _direct_get_subjects(subjects: set[str]) -> list[str]:
    """Messages by their number, of streams in which the role may hear everything."""
    names = [stream.name for stream in STREAMS if subjects.issuperset(stream.subjects)]
    return [f"$JS.API.DIRECT.GET.{name}{rest}" for name in names for rest in ("", ".>")]


def server_config(
    passwords: Mapping[str, str], *, listen: str, store_dir: str, health_password: str | None = None
) -> str:
    """A complete nats-server configuration: JetStream that fsyncs, and the roles as users.

    No monitoring port is open. With a `health_password`, `infra.nats.health` can ask how the server is.
    """
    users = ",\n    ".join(_role_user_config(role, passwords[role]) for role in (OPERATOR, *ROLES))
    return f"""# Made by Upswing. One user per role; what is not allowed is denied.
listen: {json.dumps(listen)}
server_name: upswing
max_payload: {MAX_PAYLOAD}
jetstream {{
  store_dir: {json.dumps(store_dir)}
  # An acknowledgement means durable: the default would fsync every two minutes.
  sync_interval: always
}}
authorization {{
  users: [
    {users}
  ]
}}
{_health_user_config(health_password) if health_password else ""}"""


def _health_user_config(password: str) -> str:
    """A user of the system account, which has no streams, with one question."""
    user = _user_config(HEALTH, password, Permissions((QUESTION,), (INBOX,)))
    return f"accounts {{ SYS {{ users: [{user}] }} }}\nsystem_account: SYS\n"


def _role_user_config(role: str, password: str) -> str:
    return _user_config(role, password, permissions_of(role))


def _user_config(name: str, password: str, allowed: Permissions) -> str:
    body = {
        "publish": {"allow": list(allowed.publish)},
        "subscribe": {"allow": list(allowed.subscribe)},
    }
    if allowed.answers:
        body["allow_responses"] = {"max": 1, "expires": "1m"}  # type: ignore[dict-item]
    return json.dumps({"user": name, "password": password, "permissions": body})
