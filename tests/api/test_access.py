"""Who may ask what? Every endpoint of the running loop with every kind of key."""

import pytest
from tests.support import Client, Process, files_with, small, trajectory

pytestmark = pytest.mark.live

AGENT, READER, OPERATOR, GATEWAY = "agent", "reader", "operator", "gateway"
SCOPES = (AGENT, READER, OPERATOR, GATEWAY)
MAY = {
    "GET /": None,
    "GET /health": None,
    "GET /metrics": None,
    "GET /openapi.json": None,
    "POST /v1/traces": {AGENT, OPERATOR},
    "POST /v1/logs": {AGENT, OPERATOR},
    "POST /v1/trajectories": {AGENT, OPERATOR},
    "POST /v1/trajectories/start": {AGENT, OPERATOR},
    "POST /v1/trajectories/{trajectory_id}/steps": {AGENT, OPERATOR},
    "POST /v1/trajectories/{trajectory_id}/end": {AGENT, OPERATOR},
    "POST /v1/feedback": {AGENT, OPERATOR},
    "POST /v1/feedback/check": {OPERATOR, GATEWAY},
    "GET /v1/status": {READER, OPERATOR},
    "GET /v1/rewards/{trajectory_id}": {READER, OPERATOR},
    "GET /v1/windows": {READER, OPERATOR},
    "GET /v1/judgements": {READER, OPERATOR},
    "POST /v1/judgements/retry": {OPERATOR},
    "POST /v1/outcomes": {OPERATOR},
    "GET /v1/trajectories/{trajectory_id}": {READER, OPERATOR},
    "GET /v1/dead": {READER, OPERATOR},
    "GET /v1/dead/{dead_id}": {READER, OPERATOR},
    "POST /v1/dead/{dead_id}/replay": {OPERATOR},
    "GET /v1/alerts": {READER, OPERATOR},
    "GET /v1/alerts/{alert_id}": {READER, OPERATOR},
    "POST /v1/alerts/{alert_id}/acknowledge": {OPERATOR},
    "GET /v1/reports": {READER, OPERATOR},
    "GET /v1/reports/{report_id}": {READER, OPERATOR},
    "GET /v1/reports/{report_id}/html": {READER, OPERATOR},
    "GET /v1/reports/{report_id}/markdown": {READER, OPERATOR},
    "GET /v1/report-previews/{kind}": {READER, OPERATOR},
    "GET /v1/costs": {READER, OPERATOR},
    "GET /v1/keys": {OPERATOR},
    "GET /v1/keys/hashes": {OPERATOR, GATEWAY},
    "POST /v1/keys": {OPERATOR},
    "DELETE /v1/keys/{key_id}": {OPERATOR},
    "PUT /v1/optouts/{user}": {OPERATOR},
    "DELETE /v1/optouts/{user}": {OPERATOR},
    "DELETE /v1/users/{user}/data": {OPERATOR},
    "POST /training/start": {OPERATOR},
    "POST /training/plan": {READER, OPERATOR},
    "GET /training/{job_id}/status": {READER, OPERATOR},
    "POST /training/{job_id}/cancel": {OPERATOR},
    "GET /jobs": {READER, OPERATOR},
    "GET /v1/curriculum": {AGENT, READER, OPERATOR},
    "GET /models": {READER, OPERATOR},
    "POST /api/admin/training/trigger": {OPERATOR},
    "GET /api/admin/training/status": {READER, OPERATOR},
    "GET /v1/overview": {READER, OPERATOR},
    "GET /v1/analysis/{model_id}": {READER, OPERATOR},
    "POST /v1/backtest": {READER, OPERATOR},
    "GET /v1/events": {READER, OPERATOR},
    "GET /v1/trajectories": {READER, OPERATOR},
    "GET /v1/trajectories/{trajectory_id}/view": {READER, OPERATOR},
    "GET /v1/feedback": {READER, OPERATOR},
    "GET /v1/rewards/series": {READER, OPERATOR},
    "GET /v1/traffic/series": {READER, OPERATOR},
    "GET /v1/decisions": {READER, OPERATOR},
    "GET /v1/decisions/{decision_id}": {READER, OPERATOR},
    "GET /v1/decisions/{decision_id}/explain": {READER, OPERATOR},
    "GET /v1/rollouts/{rollout}": {READER, OPERATOR},
    "GET /v1/rollouts/{rollout}/evidence": {READER, OPERATOR},
    "GET /v1/incidents": {READER, OPERATOR},
    "GET /v1/jobs": {READER, OPERATOR},
    "GET /v1/jobs/{job_id}": {READER, OPERATOR},
    "GET /v1/jobs/{job_id}/curves": {READER, OPERATOR},
    "GET /v1/models": {READER, OPERATOR},
    "GET /v1/models/{model_id}": {READER, OPERATOR},
    "GET /v1/lineage": {READER, OPERATOR},
    "GET /v1/validations": {READER, OPERATOR},
    "GET /v1/audit": {READER, OPERATOR},
    "GET /v1/audit/verify": {READER, OPERATOR},
    "GET /v1/settings": {READER, OPERATOR},
    "GET /v1/whoami": {AGENT, READER, OPERATOR, GATEWAY},
    "GET /v1/optouts": {OPERATOR},
}
"""Endpoint → scopes; None: open to everybody."""


async def make_keys(client):
    """A working key of every scope, and one that was revoked."""
    made = {}
    for scope in (AGENT, READER, OPERATOR, GATEWAY, "revoked"):
        wish = {"name": scope, "scope": scope if scope != "revoked" else OPERATOR}
        status, answer = await client("POST", "/v1/keys", wish)
        assert status == 201
        made[scope] = answer["key"]
    assert (await client("DELETE", f"/v1/keys/{answer['key_id']}"))[0] == 204
    return made


@pytest.fixture
async def keys(client):
    return await make_keys(client)


@pytest.fixture(scope="module")
def shared(tmp_path_factory):
    """One loop for the whole table, in a process of its own."""
    process = Process.start(tmp_path_factory.mktemp("access") / "data")
    try:
        process.until_ready()
        yield process.info
        assert process.stop() == 0
    finally:
        process.destroy()


@pytest.fixture
async def shared_client(shared):
    async with Client(shared["http_url"], shared["key"]) as made:
        yield made


def call(endpoint):
    method, path = endpoint.split()
    if path == "/v1/events":  # what is no topic ends at once
        return method, f"{path}?topics=none"
    return method, path.replace("{", "no-such-").replace("}", "")


async def test_the_document_and_this_table_name_the_same_endpoints(client):
    status, document = await client("GET", "/openapi.json", key=None)
    assert status == 200
    operations = {
        f"{method.upper()} {path}": operation
        for path, methods in document["paths"].items()
        for method, operation in methods.items()
    }
    assert operations.keys() == MAY.keys()
    for endpoint, scopes in MAY.items():
        said = operations[endpoint].get("description", "")
        assert bool(operations[endpoint].get("security")) == (scopes is not None), endpoint
        assert (scopes or set()) == {scope for scope in SCOPES if scope in said}


@pytest.mark.parametrize("endpoint", MAY)
async def test_a_key_opens_what_the_table_says(endpoint, shared_client):
    keys = await make_keys(shared_client)
    method, path = call(endpoint)
    answers = {}
    for name, key in {
        "none": None,
        "unknown": "up_" + "x" * 43,
        "empty": " ",
        "operator": keys[OPERATOR],
        "revoked": keys["revoked"],
        AGENT: keys[AGENT],
        READER: keys[READER],
        GATEWAY: keys[GATEWAY],
    }.items():
        answers[name] = (await shared_client(method, path, key=key))[0]
    if MAY[endpoint] is None:
        # This loop has no page to send a browser to.
        assert set(answers.values()) == {404 if path == "/" else 200}
        return
    assert {
        name: answers.pop(name) for name in ("none", "unknown", "empty", "revoked")
    } == dict.fromkeys(("none", "unknown", "empty", "revoked"), 401)
    for scope, status in answers.items():
        if scope in MAY[endpoint]:
            assert status not in {401, 403}, scope
            assert status < 500, scope
        else:
            assert status == 403, scope


async def test_a_refusal_says_what_to_do_and_how_to_ask(client, keys):
    for key, status, error, words in (
        (None, 401, "unauthorized", "Send a key"),
        ("up_guess", 401, "unauthorized", "not known"),
        (keys["revoked"], 401, "unauthorized", "revoked"),
        (keys[AGENT], 403, "forbidden", "scope operator"),
    ):
        got, answer = await client("GET", "/v1/keys", key=key)
        assert (got, answer["error"]) == (status, error)
        assert words in answer["detail"]


@pytest.mark.parametrize(
    "header", ["Bearer", "Bearer ", "Basic {key}", "{key}", "bearer\t{key}", "Bearer {key}x"]
)
async def test_a_key_in_the_wrong_wrapping_is_no_key(client, header):
    line = f"Authorization: {header.format(key=client.key)}"
    assert (await client("GET", "/v1/keys", key=None, headers=(line,)))[0] == 401


async def test_a_key_is_shown_once_and_stops_at_once(client, loop, data):
    _, made = await client("POST", "/v1/keys", {"name": "ci", "scope": "agent"})
    assert (await client.send(small(), key=made["key"]))[0] == 202
    _, listed = await client("GET", "/v1/keys")
    assert made["key_id"] in {key["key_id"] for key in listed["keys"]}
    assert made["key"] not in str(listed)
    assert (await client("DELETE", f"/v1/keys/{made['key_id']}"))[0] == 204
    assert (await client.send(small(), key=made["key"]))[0] == 401
    assert (await client("DELETE", f"/v1/keys/{made['key_id']}"))[0] == 404, "twice is not found"
    assert files_with(data, made["key"]) == [], "only its hash is kept"


async def test_what_a_key_has_begun_no_other_can_go_on_with(client):
    """Steps and the end of an open trajectory are its own key's, and an operator's."""
    mine, other = [
        (await client("POST", "/v1/keys", {"name": name, "scope": AGENT}))[1]["key"]
        for name in ("mine", "other")
    ]
    begun = {
        "trajectory_id": "3b1f8c52-54f5-4b44-9d5b-0d4f2f1c8a01",
        "agent_id": "a",
        "session_id": "s",
    }
    path = f"/v1/trajectories/{begun['trajectory_id']}"
    step = {"observation": {"content": "hi"}, "action": {"type": "response", "content": "yes"}}
    assert (await client("POST", "/v1/trajectories/start", begun, key=mine))[0] == 202
    nothing = await client(
        "POST", "/v1/trajectories/00000000-0000-4000-8000-000000000000/steps", step, key=other
    )
    for way, body in (("steps", step), ("end", {"final_status": "completed"})):
        status, answer = await client("POST", f"{path}/{way}", body, key=other)
        assert (status, answer["error"]) == (nothing[0], nothing[1]["error"]), answer
    assert (await client("POST", "/v1/trajectories/start", begun, key=other))[0] == 409
    whole = trajectory(trajectory_id=begun["trajectory_id"])
    status, answer = await client("POST", "/v1/trajectories", whole, key=other)
    assert (status, answer["error"]) == (403, "not_yours")
    assert (await client("POST", f"{path}/end", {}, key=other))[0] == nothing[0]
    assert (await client("POST", f"{path}/steps", step, key=mine))[0] == 202
    assert (await client("POST", f"{path}/steps", step))[0] == 202  # an operator speaks for all
