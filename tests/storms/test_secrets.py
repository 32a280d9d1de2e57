"""Twenty thousand secrets by every door, also where no text is expected: ids, names, headers, paths.

They stand in no file of the data directory, in no log, and in no answer to somebody else. Doors are the loop's port, the
bus, a gateway in every shape, the page, and an assistant's tools.
"""

import asyncio
import itertools
import json
import uuid
from urllib.parse import quote

import pytest

from tests.integrations.agent_zero.scripted_model import ScriptedModel
from tests.live.test_secrets import (
    KINDS,
    Plants,
    as_feedback,
    files_below,
    in_bad_messages,
    in_lines,
    in_steps,
    leaks,
    summary,
    through_http,
    through_nats,
)
from tests.storms import sized
from tests.storms.doors import questions
from tests.storms.telling import (
    at_a_gateway,
    at_the_page,
    in_every_field,
    in_every_path_and_query,
    in_names_at_a_gateway,
    to_an_assistant,
)
from tests.support import Client, Process, on_bus, raw, small, until
from upswing.contracts.topics import FEEDBACK, FEEDBACKS, TRAJECTORIES, TRAJECTORY

pytestmark = pytest.mark.live
TAKEN_OR_NOT = {200, 201, 202, 400, 401, 404, 405, 409, 413, 422, 431, 502, 503}
"""Whatever is answered to whoever told it. 500 is not among them."""


class Names(Plants):
    """Secrets as they would stand in a name: plain, one of each kind; in a cut, the next few at each door."""

    def __init__(self, each):
        super().__init__()
        self._each, self._next = each, itertools.cycle(KINDS.items())

    def __call__(self, door):
        for kind, make in itertools.islice(self._next, self._each):
            value = make()
            self.planted[door, kind, "plain"] = value
            yield value


def _turn(field, value):
    made = small()
    (turn,) = made["turns"]
    turn["action"] = {"type": "tool_call", "tool_name": "read", "tool_args": {}} | field(value)
    return made


TRAJECTORIES_OF = {
    "trajectory_id": lambda v: small() | {"trajectory_id": v},
    "session_id": lambda v: small() | {"session_id": v},
    "agent_id": lambda v: small() | {"agent_id": v},
    "parent_trajectory_id": lambda v: small() | {"parent_trajectory_id": v},
    "subordinate_profile": lambda v: small() | {"subordinate_profile": v},
    "task id": lambda v: small() | {"task_context": {"task_id": v, "instructions": "go"}},
    "domain of a task": lambda v: (
        small() | {"task_context": {"task_id": "t", "instructions": "go", "domain": v}}
    ),
    "model": lambda v: small(model=v),
    "model with a path": lambda v: small(model=f"/models/{v}/final"),
    "user": lambda v: small(user_id=v),
    "episode": lambda v: small(episode_id=v),
    "window": lambda v: small(window_id=v),
    "scenario": lambda v: small(scenario_id=v),
    "profile": lambda v: small(profile=v),
    "name of a field": lambda v: small(**{v: 1}),
    "deep name": lambda v: small(deep={"list": [{v: {"x": v}}]}),
    "tool": lambda v: _turn(lambda v: {"tool_name": v}, v),
    "name of an argument": lambda v: _turn(lambda v: {"tool_args": {v: 1}}, v),
    "unknown field": lambda v: small() | {v: v},
    "type": lambda v: _turn(lambda v: {"type": v}, v),
    "outcome": lambda v: small(outcome={"status": v, "source": v}),
}


def word(**changes):
    made = {
        "feedback_id": str(uuid.uuid4()),
        "timestamp": "2025-12-08T13:00:00Z",
        "type": "comment",
        "episode_id": "e",
        "comment": "fine",
    } | changes
    return {key: value for key, value in made.items() if value is not None}


WORDS_OF = {
    "feedback_id": lambda v: word(feedback_id=v[:128]),
    "feedback_id in a sentence": lambda v: word(feedback_id=f"said with {v}"[:128]),
    "episode of a word": lambda v: word(episode_id=v),
    "inference": lambda v: word(episode_id=None, inference_id=v),
    "trajectory of a word": lambda v: word(episode_id=None, trajectory_id=v),
    "user of a word": lambda v: word(user_id=v),
    "type of a word": lambda v: word(type=v),
    "metric": lambda v: word(metadata={"metric_name": v}),
}
STEPS_OF = {
    "head": lambda v: {"agentId": v, "scenarioId": v, "windowId": v, "taskId": v},
    "id of a trajectory in steps": lambda v: {"agentId": "a", "trajectoryId": v},
    "profile of a head": lambda v: {"agentId": "a", "profile": v, "domain": v},
    "metadata of a head": lambda v: {"agentId": "a", "metadata": {v: v}},
}
HEADERS = (
    "User-Agent",
    "X-Request-Id",
    "X-Episode-Id",
    "X-Note",
    "Cookie",
    "Referer",
    "Content-Language",
)
ORDERS = {
    "name of a key": ("POST", "/v1/keys", lambda v: {"name": v[:100], "scope": "agent"}),
    "job": ("POST", "/training/start", lambda v: {"training_job_id": v}),
    "requester": ("POST", "/training/start", lambda v: job(requester=v)),
    "base model": ("POST", "/training/start", lambda v: job(base=v)),
    "job's note": ("POST", "/training/start", lambda v: job(metadata={"note": v, v: 1})),
    "model id": (
        "POST",
        "/admin/models",
        lambda v: {"model_id": v[:100], "base_model": "tiny", "checkpoint_path": "/x"},
    ),
    "model's path": (
        "POST",
        "/admin/models",
        lambda v: {"model_id": "m", "base_model": v, "checkpoint_path": f"/x/{v}"},
    ),
    "reason": ("POST", "/v1/rollback", lambda v: {"reason": v}),
    "outcome of a window": (
        "POST",
        "/v1/outcomes",
        lambda v: {"window_id": "2025-01-15T10:00", "outcome": {v: v}},
    ),
    "trigger": ("POST", "/api/admin/training/trigger", lambda v: {"force": v}),
}


def job(*, requester="r", base="tiny", **more):
    config = {
        "algorithm": "grpo",
        "base_model": base,
        "hyperparameters": {},
        "dataset": {"source": "local", "sample_size": 10, "filter": {}},
    }
    return {
        "training_job_id": str(uuid.uuid4()),
        "timestamp": "2025-12-08T13:00:00Z",
        "requester": requester,
        "trigger_reason": "manual",
        "training_config": config,
        **more,
    }


async def say(client, method, path, body=b"", **options):
    status, answer = await client(method, path, body, **options)
    assert status in TAKEN_OR_NOT, (method, path, status, answer)


async def in_names(client, names):
    for door, make in TRAJECTORIES_OF.items():
        for value in names(door):
            await say(client, "POST", "/v1/trajectories", make(value))
    for door, make in WORDS_OF.items():
        for value in names(door):
            await say(client, "POST", "/v1/feedback", make(value))
    for door, make in STEPS_OF.items():
        for value in names(door):
            status, opened = await client("POST", "/v1/trajectories/start", make(value))
            if status in {200, 201, 202}:
                path = f"/v1/trajectories/{quote(str(opened['id']), safe='')}"
                step = {
                    "stepNumber": 1,
                    "action": {"actionType": value, "parameters": {}, "success": True},
                }
                await say(client, "POST", f"{path}/steps", step)
                await say(client, "POST", f"{path}/end", {})


async def in_paths_and_headers(client, names):
    for value in names("path of nothing"):
        await say(client, "GET", f"/{quote(value, safe='')}")
    for header in HEADERS:
        for value in names(f"header {header}"):
            await say(client, "POST", "/v1/trajectories", small(), headers=(f"{header}: {value}",))
    for value in names("wrong key"):
        await say(client, "GET", "/v1/status", key=value)
    for door, (method, path, make) in ORDERS.items():
        for value in names(f"order {door}"):
            await say(client, method, path, make(value))


async def in_messages_of_the_bus(agent, names):
    """Also in their headers, with which JetStream keeps them until they are taken."""
    for header in ("Nats-Msg-Id", "X-Note"):
        for value in names(f"header {header} on the bus"):
            await agent.publish(TRAJECTORY, raw(small()), headers={header: value})
        for value in names(f"header {header} of a bad message"):
            await agent.publish(TRAJECTORY, b"{", headers={header: value})
    for value in names("name of a header"):
        name = "X-Name" if ":" in value else value
        await agent.publish(TRAJECTORY, raw(small()), headers={name: value})
    for door, make in {**TRAJECTORIES_OF}.items():
        for value in names(f"bus: {door}"):
            await agent.publish(TRAJECTORY, raw(make(value)))
    for door, make in WORDS_OF.items():
        for value in names(f"bus: {door}"):
            await agent.publish(FEEDBACK, raw(make(value)))
    await agent.flush()


async def answers(client, key, document, folder):
    """What a reader is told of all that, as files to look through: every path, with ids of what there is."""
    folder.mkdir()
    _, listed = await client("GET", "/v1/trajectories?limit=100", key=key)
    _, dead = await client("GET", "/v1/dead?limit=1000", key=key)
    ids = [each["trajectory_id"] for each in listed["trajectories"][::20]]
    ids += [each["letter"]["dead_id"] for each in dead["dead"][::200]]
    for number, path in enumerate(
        [*questions(document, [*ids, "daily"]), "/v1/dead?limit=1000", "/v1/audit?limit=1000"]
    ):
        status, answer = await client("GET", path, key=key)
        assert status in {200, 303, 403, 404, 409, 422}, (path, status, answer)
        (folder / f"answer-{number}").write_text(
            answer if isinstance(answer, str) else json.dumps(answer)
        )
    return files_below(folder)


async def settled(client, operator):
    for stream in (TRAJECTORIES, FEEDBACKS):
        consumer = await operator.jetstream().consumer_info(stream, "collector")
        if consumer.num_pending or consumer.num_ack_pending:
            return False
    return (await client("GET", "/v1/status"))[1]["outbox"] == 0


def repeated(_, asked):
    """What the model says: all that its tools told it. A piece of a cut secret that stands alone is not found (docs/reliability.md)."""
    told = [each["content"] for each in asked["messages"] if each["role"] == "tool"]
    return "".join(map(str, told))


@pytest.fixture
def told(data):
    """A loop with a gateway, a page, and a model that repeats what it is told."""
    data.mkdir(mode=0o700)
    with ScriptedModel(repeated) as backend:
        (data / "upswing.toml").write_text(
            f'[serve]\nurl = "{backend.url}"\n\n[train]\nbase_model = "scripted"\n'
        )
        process = Process.start(data, gateway=True, dashboard=True)
        try:
            process.until_ready(200)
            yield process
        finally:
            process.destroy()


@pytest.mark.long
@sized("rounds", 0, 5)
async def test_no_secret_in_a_name_a_header_or_a_path_is_kept_or_told(
    told, data, tmp_path, rounds, trials, caplog
):
    names, texts = Names(len(KINDS) if rounds else 2), Plants()
    info = told.info
    async with (
        Client(info["http_url"], info["key"]) as client,
        Client(info["gateway_url"], info["gateway_key"]) as gateway,
        on_bus(info["nats_urls"]["agent"]) as agent,
        on_bus(info["nats_urls"]["operator"]) as operator,
    ):
        _, document = await client("GET", "/openapi.json")
        await until(lambda: answering(gateway), 60, "no model answers")
        await at_once(
            in_messages_of_the_bus(agent, names),
            in_names(client, names),
            in_paths_and_headers(client, names),
            in_every_path_and_query(client, document, names),
            in_every_field(client, document, names),
            in_names_at_a_gateway(gateway, names),
            at_the_page(info["dashboard_url"], names),
            to_an_assistant(data, names),
        )
        for number in range(rounds):
            plants = Round(texts, number)
            by_http = (through_http, in_lines, in_steps, as_feedback, in_bad_messages)
            await at_once(
                through_nats(agent, plants),
                *(send(client, plants) for send in by_http),
                at_a_gateway(gateway, plants),
            )
        await until(lambda: settled(client, operator), 300, "the loop did not settle")
        _, reader = await client("POST", "/v1/keys", {"name": "reader", "scope": "reader"})
        heard = await answers(client, reader["key"], document, tmp_path / "answers")
        for number, other in enumerate((client, gateway)):
            (tmp_path / f"metrics-{number}").write_text((await other("GET", "/metrics"))[1])
            heard.append(tmp_path / f"metrics-{number}")
    assert await asyncio.to_thread(told.stop) == 0
    (tmp_path / "assistant.log").write_text(caplog.text)
    texts.planted |= names.planted
    found = leaks([*files_below(data), told.log, tmp_path / "assistant.log", *heard], texts)
    trials.add(len(texts.planted), lost=len({each[:3] for each in found}))
    print(f"{len(texts.planted)} secrets planted")
    assert not found, summary(found)


async def at_once(*senders):
    async with asyncio.TaskGroup() as group:
        for each in senders:
            group.create_task(each)


async def answering(gateway):
    body = {"model": "m", "messages": [{"role": "user", "content": "hi"}]}
    return (await gateway("POST", "/v1/chat/completions", body))[0] == 200


class Round:
    """The same plants once more, under other names."""

    def __init__(self, plants, number):
        self._plants, self._number = plants, number

    def __call__(self, door):
        return self._plants(f"{door}, round {self._number}")
