"""What people look at, over HTTP, from one real loop."""

import base64
import json
import random
import uuid
from datetime import timedelta
from urllib.parse import quote, urlencode

import pytest
import pytest_asyncio
from tests.conftest import running_loop
from tests.support import Client, raw, trajectory, until

from upswing.api.auditing import AUDITED
from upswing.api.deployment import DeploymentRoutes
from upswing.api.scopes import GATEWAY, REQUESTER
from upswing.api.validation import ValidationRoutes
from upswing.config import Settings, Surroundings, TriggerConfig
from upswing.contracts import DeadLetter
from upswing.contracts.examples import EXAMPLES
from upswing.contracts.typed import from_tree
from upswing.infra.sql.database import Tx
from upswing.monitor.alert_repository import AlertRepository
from upswing.monitor.core.alert_states import AlertSeen, BeginAlert

pytestmark = [pytest.mark.live, pytest.mark.asyncio(loop_scope="module")]
KEY = "an-operators-own-key-0123456789-abcdef"
LISTS = {
    "/v1/trajectories": "trajectories",
    "/v1/feedback": "feedback",
    "/v1/decisions": "decisions",
    "/v1/jobs": "jobs",
    "/v1/models": "models",
    "/v1/validations": "validations",
    "/v1/incidents": "incidents",
    "/v1/audit": "entries",
    "/v1/judgements": "groups",
    "/v1/dead": "dead",
    "/v1/optouts": "optouts",
}
"""Every list of a loop without models → where its rows stand."""
MOMENTS = {
    "/v1/trajectories",
    "/v1/decisions",
    "/v1/jobs",
    "/v1/audit",
    "/v1/rewards/series",
    "/v1/windows",
}


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def shared(tmp_path_factory):
    """One loop for all of them; what one does the others see."""
    settings = Settings(trigger=TriggerConfig(threshold=123_456))
    surroundings = Surroundings(
        api_key=KEY, judge_key="sk-a-key-of-the-judge", train_here=False, schedule="off"
    )
    folder = tmp_path_factory.mktemp("read") / "data"
    async with running_loop(folder, settings=settings, surroundings=surroundings) as loop:
        yield loop


@pytest_asyncio.fixture(loop_scope="module")
async def ask(shared):
    async with Client(shared.running.http_url, KEY) as client:
        yield client


async def stored(shared, ask, count, **changes):
    """So many trajectories, each with its reward; their ids, the oldest first."""
    made = [trajectory(**changes) for _ in range(count)]
    for each in made:
        assert (await ask.send(each))[0] == 202
    names = [each["trajectory_id"] for each in made]
    await until(lambda: shared.rewards.newest(names[-1]), 120)
    return names


async def pages(ask, path, name, **query):
    """All rows of a list, page by page."""
    found, cursor = [], None
    while True:
        said = {**query, **({"cursor": cursor} if cursor else {})}
        status, answer = await ask("GET", f"{path}?{urlencode(said)}")
        assert status == 200, answer
        found += answer[name]
        cursor = answer["next"]
        if cursor is None:
            return found


# ── trajectories ─────────────────────────────────────────────────────────────────────────────────


async def test_trajectories_are_found_by_what_they_are(shared, ask):
    agent = f"agent-{uuid.uuid4()}"
    metadata = {"model": "m-found", "outcome": {"status": "completed"}}
    task = {"instructions": "Find the Flamingo, please"}
    names = await stored(shared, ask, 5, agent_id=agent, metadata=metadata, task_context=task)
    await stored(shared, ask, 2)
    for query in (
        {"agent": agent},
        {"agent": agent, "model": "m-found"},
        {"model": "m-found", "outcome": "success"},
        {"text": "the FLAMINGO", "agent": agent},
        {"agent": agent, "min_reward": 0.0, "max_reward": 1.0},
        {"agent": agent, "since": "1h", "door": "http"},
    ):
        found = await pages(ask, "/v1/trajectories", "trajectories", limit=2, **query)
        assert [each["trajectory_id"] for each in found] == names[::-1], query
    for query in ({"agent": agent, "outcome": "failure"}, {"agent": agent, "min_reward": 2}):
        assert await pages(ask, "/v1/trajectories", "trajectories", **query) == [], query
    (one,) = (await ask("GET", f"/v1/trajectories?text=flamingo&agent={agent}&limit=1"))[1][
        "trajectories"
    ]
    assert "Flamingo" in one["excerpt"]
    assert (one["outcome"], one["outcome_source"]) == ("success", "reported")


async def test_a_users_address_finds_what_is_kept_under_its_pseudonym(shared, ask):
    await stored(shared, ask, 1, metadata={"user_id": "ann.smith@example.com"})
    query = f"user={quote('ann.smith@example.com')}"
    (found,) = (await ask("GET", f"/v1/trajectories?{query}"))[1]["trajectories"]
    assert "@" not in found["user_id"]


async def test_one_trajectory_with_all_that_became_of_it(shared, ask):
    (name,) = await stored(shared, ask, 1)
    said = {"trajectory_id": name, "type": "thumbs_down", "source": "operator", "user_id": "u"}
    assert (await ask("POST", "/v1/feedback", said))[0] == 202

    async def revised():
        view = (await ask("GET", f"/v1/trajectories/{name}/view"))[1]
        return view if len(view["rewards"]) == 2 else None

    view = await until(revised, 120)
    assert view["trajectory"]["trajectory_id"] == view["summary"]["trajectory_id"] == name
    assert [each["revision"] for each in view["rewards"]] == [1, 2]
    assert view["summary"]["revision"] == 2
    assert [(each["type"], each["source"]) for each in view["feedback"]] == [
        ("thumbs_down", "operator")
    ]
    assert (view["used_in"], view["pinned"], view["truncated"]) == ([], None, False)
    listed = await pages(ask, "/v1/feedback", "feedback", trajectory=name)
    assert listed == view["feedback"]
    assert (await ask("GET", f"/v1/trajectories/{uuid.uuid4()}/view"))[0] == 404


async def test_hostile_text_comes_back_as_the_text_it_is(shared, ask):
    hostile = "<script>alert(1)</script> \u202eevil\u202c \x1b[31m " + "long" * 50_000
    (name,) = await stored(shared, ask, 1, task_context={"instructions": hostile})
    status, view = await ask("GET", f"/v1/trajectories/{name}/view")
    assert status == 200
    assert "<script>" in view["trajectory"]["task_context"]["instructions"]
    query = urlencode({"text": "<script>alert(1)"})
    found = (await ask("GET", f"/v1/trajectories?{query}"))[1]["trajectories"]
    assert found[0]["trajectory_id"] == name
    assert len(found[0]["excerpt"]) < 300


# ── lists ────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("path", [*LISTS, "/v1/rewards/series", "/v1/traffic/series"])
async def test_what_is_no_filter_is_refused_with_those_that_are(ask, path):
    status, answer = await ask("GET", f"{path}?modell=x")
    assert (status, answer["error"]) == (422, "schema")
    assert "There is no filter `modell` here; known: " in answer["detail"]


@pytest.mark.parametrize("path", LISTS)
@pytest.mark.parametrize("limit", ["0", "-1", "1001", "x", "1.5", "9" * 40])
async def test_a_limit_out_of_bounds_is_refused(ask, path, limit):
    status, answer = await ask("GET", f"{path}?limit={limit}")
    assert status == 422
    assert "`limit` is a number from 1 to" in answer["detail"]


def bad_cursors():
    chance = random.Random(4)
    yield from ("x", "====", "a" * 390, base64.urlsafe_b64encode(b"[]").decode())
    for value in (["d", 1], ["", 2**70, None, None], ["d", -5, 0, 0], {"a": 1}, ["d", 1, -1, 0]):
        yield base64.urlsafe_b64encode(json.dumps(value).encode()).decode().rstrip("=")
    for _ in range(5):
        yield base64.urlsafe_b64encode(chance.randbytes(30)).decode()


@pytest.mark.parametrize("path", LISTS)
async def test_a_cursor_is_what_the_list_gave_and_nothing_else(ask, path):
    for cursor in bad_cursors():
        status, answer = await ask("GET", f"{path}?cursor={quote(cursor)}")
        assert status == 422, cursor
        assert "cursor" in answer["detail"]


async def test_a_cursor_of_other_filters_is_refused(shared, ask):
    await stored(shared, ask, 2)
    cursor = (await ask("GET", "/v1/trajectories?limit=1"))[1]["next"]
    for path in ("/v1/trajectories?limit=1&domain=coding", "/v1/decisions?limit=1"):
        status, answer = await ask("GET", f"{path}&cursor={cursor}")
        assert (status, "belongs to another list" in answer["detail"]) == (422, True)


@pytest.mark.parametrize("path", sorted(MOMENTS))
@pytest.mark.parametrize("since", ["yesterday", "7y", "2026-13-01", "99999999d", "d", "٣d"])
async def test_a_time_that_is_none_is_refused(ask, path, since):
    status, answer = await ask("GET", f"{path}?since={quote(since)}")
    assert status == 422
    assert "`since` is a time such as" in answer["detail"]


async def listed_parameters(ask):
    """(path, name, schema) of every parameter of whatever is read without naming one thing."""
    document = (await ask("GET", "/openapi.json"))[1]
    return [
        (path, each["name"], each["schema"])
        for path, methods in document["paths"].items()
        if "{" not in path and "get" in methods and path != "/v1/events"
        for each in methods["get"].get("parameters", [])
    ]


async def test_a_value_outside_a_closed_set_is_refused_with_those_in_it(ask):
    closed = [each for each in await listed_parameters(ask) if "enum" in each[2]]
    assert {(path, name) for path, name, _ in closed} >= {
        ("/v1/trajectories", "door"),
        ("/v1/trajectories", "domain"),
        ("/v1/decisions", "stage"),
        ("/v1/models", "state"),
        ("/v1/dead", "reason"),
        ("/v1/alerts", "name"),
    }
    for path, name, schema in closed:
        status, answer = await ask("GET", f"{path}?{name}=bogus")
        assert (status, answer["error"]) == (422, "schema"), (path, name)
        assert all(choice in answer["detail"] for choice in schema["enum"]), (path, name)
        for choice in schema["enum"]:
            assert (await ask("GET", f"{path}?{name}={choice}"))[0] in {200, 422}


async def test_a_parameter_that_is_said_twice_is_refused(ask):
    for path, name, _ in await listed_parameters(ask):
        status, answer = await ask("GET", f"{path}?{name}=1&{name}=2")
        assert (status, answer["detail"]) == (422, f"`{name}` is said twice: say it once.")


@pytest.mark.parametrize(
    ("path", "said"),
    [
        ("/v1/trajectories?min_reward=0.5&max_reward=0.25", "`min_reward` is above `max_reward`"),
        *((f"{path}?since=1h&until=2h", "`until` lies before `since`") for path in sorted(MOMENTS)),
    ],
)
async def test_a_range_that_holds_nothing_is_refused(ask, path, said):
    status, answer = await ask("GET", path)
    assert status == 422
    assert said in answer["detail"]


async def test_windows_since_then_are_those_in_which_something_was_stored_since(shared, ask):
    names = await stored(shared, ask, 2)
    found = (await ask("GET", "/v1/windows"))[1]["windows"]
    assert found
    for since in ("24h", (shared.now() - timedelta(hours=1)).isoformat()):
        status, answer = await ask("GET", f"/v1/windows?since={quote(since)}")
        assert (status, answer["windows"]) == (200, found), names
    assert (await ask("GET", "/v1/windows?until=24h"))[1]["windows"] == []
    future = quote((shared.now() + timedelta(days=1)).isoformat())
    assert (await ask("GET", f"/v1/windows?since={future}"))[1]["windows"] == []


async def test_pages_of_dead_letters_and_of_the_audit_are_whole(shared, ask):
    for _ in range(5):
        assert (await ask("POST", "/v1/trajectories", b"{}"))[0] == 422
        assert (await ask("PUT", f"/v1/optouts/{uuid.uuid4()}"))[0] == 200
    for path, name, key in (
        ("/v1/dead", "dead", lambda each: each["letter"]["dead_id"]),
        ("/v1/audit", "entries", lambda each: each["seq"]),
        ("/v1/optouts", "optouts", lambda each: each["user"]),
    ):
        whole = [key(each) for each in await pages(ask, path, name, limit=100)]
        parts = [key(each) for each in await pages(ask, path, name, limit=2)]
        assert parts == whole
        assert len(set(parts)) == len(parts) >= 5


# ── the rest ─────────────────────────────────────────────────────────────────────────────────────


async def test_whose_key_it_is(ask):
    _, made = await ask("POST", "/v1/keys", {"name": "page", "scope": "reader"})
    status, who = await ask("GET", "/v1/whoami", key=made["key"])
    assert (status, who) == (
        200,
        {"key_id": made["key_id"], "name": "page", "scope": "reader", "trusted": False},
    )


async def test_a_decision_is_found_by_the_beginning_of_its_id_and_explained(ask):
    decision = (await ask("GET", "/v1/decisions?stage=trigger&limit=1"))[1]["decisions"][0]
    name = decision["decision_id"]
    status, found = await ask("GET", f"/v1/decisions/{name[:8]}")
    assert (status, found["sentence"]) == (200, decision["sentence"])
    assert found["inputs"]["rules"]["threshold"] == 123_456
    _, explained = await ask("GET", f"/v1/decisions/{name}/explain")
    assert explained["today"]["same"] is True
    status, answer = await ask("GET", "/v1/decisions/abc")
    assert (status, "There is no decision abc" in answer["detail"]) == (404, True)


async def test_rewards_over_time_are_of_the_models_that_earned_them(shared, ask):
    model = f"m-{uuid.uuid4().hex[:8]}"
    await stored(shared, ask, 3, metadata={"model": model})
    for since in ("1h", "7d"):
        _, answer = await ask("GET", f"/v1/rewards/series?since={since}&model={model}")
        (series,) = answer["series"]
        assert series["model"] == model
        assert sum(point["count"] for point in series["points"]) == 3
        assert all(p["lower"] <= p["mean"] <= p["upper"] for p in series["points"])
    status, answer = await ask("GET", "/v1/rewards/series?since=1h&until=2h")
    assert (status, "lies before" in answer["detail"]) == (422, True)


async def test_settings_are_told_with_their_sources_and_never_a_secret(ask):
    status, answer = await ask("GET", "/v1/settings")
    assert status == 200
    found = {(each["section"], each["name"]): each for each in answer["settings"]}
    assert found["trigger", "threshold"]["value"] == 123_456
    assert found["trigger", "threshold"]["source"] == "upswing.toml"
    assert found["trigger", "schedule"]["source"] == "environment"
    assert found["collect", "max_depth"]["source"] == "default"
    assert found["environment", "api_key"]["value"] == "set"
    assert found["deploy", "limits.errors"]["variable"] == "ROLLBACK_ERROR_THRESHOLD"
    for secret in (KEY, "sk-a-key-of-the-judge"):
        assert secret not in json.dumps(answer)


async def test_the_overview_is_one_answer(shared, ask):
    await stored(shared, ask, 1)
    status, view = await ask("GET", "/v1/overview")
    assert status == 200
    assert view["health"]["status"] == "ok"
    assert view["counts"] == (await ask("GET", "/v1/status"))[1]
    assert view["collected"]["last_hour"] >= 1
    assert view["readiness"]["ready"] is False
    assert view["decisions"][0]["sentence"].endswith(".")


# ── jobs and models ──────────────────────────────────────────────────────────────────────────────


async def job(ask):
    status, started = await ask("POST", "/training/start", {"algorithm": "grpo"})
    assert status == 202, started
    return started["training_job_id"]


async def test_a_job_with_its_curves(shared, ask):
    name = await job(ask)
    folder = shared.folder / "jobs" / f"job-{name}"
    folder.mkdir(parents=True)
    step = {
        "type": "stepped",
        "epoch": 1,
        **dict.fromkeys(
            ("loss", "reward_mean", "reward_std", "entropy", "kl", "clipped", "grad_norm"), 0.5
        ),
        "learning_rate": 1e-4,
        "tokens": 10,
        "seconds": 0.1,
    }
    lines = [json.dumps({**step, "step": number}) for number in range(1, 101)]
    (folder / "steps.jsonl").write_text("\n".join([*lines, '{"type": "stepped", "st']))
    _, detail = await ask("GET", f"/v1/jobs/{name}")
    assert detail["job"]["status"] == "queued"
    assert detail["request"]["training_config"]["algorithm"] == "grpo"
    assert (detail["model_id"], detail["trajectories"]) == (None, 0)
    _, curves = await ask("GET", f"/v1/jobs/{name}/curves")
    assert (curves["steps"], curves["thinned"], len(curves["series"]["loss"])) == (100, False, 100)
    _, thin = await ask("GET", f"/v1/jobs/{name}/curves?points=10")
    assert (thin["thinned"], thin["series"]["step"][0], thin["series"]["step"][-1]) == (
        True,
        1,
        100,
    )
    assert (await ask("GET", f"/v1/jobs/{name}/curves?points=5"))[0] == 422
    assert (await ask("GET", "/v1/jobs/none/curves"))[0] == 404
    listed = await pages(ask, "/v1/jobs", "jobs", status="queued", limit=1)
    assert name in [each["training_job_id"] for each in listed]


async def test_a_model_with_its_lineage_its_card_and_its_curves(shared, ask):
    root = shared.folder / "models"
    names, parent = [], None
    for number in range(3):
        place = root / f"job-of-{number}" / "artifacts"
        place.mkdir(parents=True)
        (place / "card.md").write_text(f"# Model {number}")
        (place / "steps.jsonl").write_text("")
        parent = await shared.models.register(
            job_id=await job(ask),
            base_model="tiny",
            parent=parent,
            snapshot="",
            path=str(root / f"job-of-{number}" / "final"),
            card=str(place / "card.md"),
            samples=7,
            final_reward=0.5,
            now=shared.now(),
        )
        names.append(parent)
    _, detail = await ask("GET", f"/v1/models/{names[2]}")
    assert [each["model_id"] for each in detail["lineage"]] == names[::-1]
    assert (detail["children"], detail["card"]["text"]) == ([], "# Model 2")
    assert detail["job"]["algorithm"] == "grpo"
    assert (await ask("GET", f"/v1/models/{names[0]}"))[1]["children"] == [names[1]]
    _, lineage = await ask("GET", "/v1/lineage")
    parents = {each["model_id"]: each["parent"] for each in lineage["nodes"]}
    assert [parents[each] for each in (*names, "tiny")] == ["tiny", names[0], names[1], None]
    listed = [each["model_id"] for each in await pages(ask, "/v1/models", "models", limit=2)]
    assert listed[:3] == names[::-1]
    marks = (await ask("GET", "/v1/rewards/series?since=1h"))[1]["marks"]
    assert {mark["model_id"] for mark in marks if mark["kind"] == "trained"} >= set(names)
    assert (await ask("GET", "/v1/models/none"))[0] == 404


# ── the audit ────────────────────────────────────────────────────────────────────────────────────


async def test_every_way_by_which_operators_write_is_audited(shared):
    routes = [
        *shared.app.routes,
        *DeploymentRoutes(None, None).routes(),
        *ValidationRoutes(None, None, None, None, compare=None, current=None, known=None).routes(),
    ]
    writing = {
        (each.method, each.path)
        for each in routes
        if each.method != "GET" and each.scopes and each.scopes <= {*REQUESTER, GATEWAY}
    }
    assert writing - {("POST", "/v1/feedback/check")} == AUDITED.keys()


async def a_dead_letter(shared):
    payload = raw(trajectory()).decode()
    tree = EXAMPLES[DeadLetter] | {"dead_id": str(uuid.uuid4()), "payload": payload}
    letter = from_tree(tree, DeadLetter)
    await shared.store.add_dead_letter(letter, stage="collect")
    return str(letter.dead_id)


async def an_alert(shared):
    seen = AlertSeen("ModelRolledBack", "v4 was rolled back.", {"model": "v4"})
    alerts = AlertRepository(shared.store.database, [], new_id=uuid.uuid4)
    (row,) = await alerts.apply([BeginAlert(seen, "urgent")], {}, shared.now())
    return row.alert_id


async def actions(shared, ask):
    """Of each action of an operator here: what it is called, how it is done, and what changed."""
    _, made = await ask("POST", "/v1/keys", {"name": "k", "scope": "agent"})
    name, user = await job(ask), f"user-{uuid.uuid4()}"
    outcome = {"window_id": "2026-01-01T10:00", "source": "test"}
    (seen,) = await stored(shared, ask, 1)
    word = {"trajectory_id": seen, "type": "thumbs_up", "source": "operator", "user_id": "op"}
    letter = await a_dead_letter(shared)
    return {
        "add-key": ("POST", "/v1/keys", {"name": "k2", "scope": "reader"}),
        "revoke-key": ("DELETE", f"/v1/keys/{made['key_id']}", b""),
        "opt-out": ("PUT", f"/v1/optouts/{user}", b""),
        "opt-in": ("DELETE", f"/v1/optouts/{user}", b""),
        "erase-user": ("DELETE", f"/v1/users/{user}/data", b""),
        "retry-judge": ("POST", "/v1/judgements/retry", b""),
        "outcome": ("POST", "/v1/outcomes", outcome),
        "replay": ("POST", f"/v1/dead/{letter}/replay", b""),
        "acknowledge": ("POST", f"/v1/alerts/{await an_alert(shared)}/acknowledge", {}),
        "train": ("POST", "/training/start", {"algorithm": "grpo"}),
        "cancel": ("POST", f"/training/{name}/cancel", b""),
        "trigger": ("POST", "/api/admin/training/trigger", {"force": True}),
        "feedback": ("POST", "/v1/feedback", word),
    }


async def test_every_action_is_in_the_trail_with_who_and_what_changed(shared, ask):
    by_deploy = {"traffic", "approve", "pause", "resume", "rollback", "override", "revalidate"}
    served = {"register", "validate", "pin"}
    done = await actions(shared, ask)
    assert done.keys() - {"feedback"} == set(AUDITED.values()) - by_deploy - served
    for what, (method, path, body) in done.items():
        status, answer = await ask(method, path, body)
        assert status < 300, (what, answer)
        _, trail = await ask("GET", "/v1/audit?limit=1")
        (entry,) = trail["entries"]
        assert (entry["who"], entry["what"]) == (
            "key " + (await ask("GET", "/v1/whoami"))[1]["key_id"],
            what,
        )
        assert entry["hash"] == trail["head"]
        if what in {"revoke-key", "opt-out", "opt-in", "replay", "cancel", "acknowledge"}:
            assert entry["before"] is not None
            assert entry["before"] != entry["after"]
        if path.startswith(("/v1/optouts", "/v1/users")):
            assert "user-" not in json.dumps(entry), "whoever is erased leaves no name"
    status, chain = await ask("GET", "/v1/audit/verify")
    assert (status, chain["ok"], chain["next"]) == (200, True, None)
    assert chain["rows"] == trail["rows"]


async def test_what_was_refused_is_no_action(ask):
    rows = (await ask("GET", "/v1/audit"))[1]["rows"]
    assert (await ask("DELETE", "/v1/keys/none"))[0] == 404
    assert (await ask("POST", "/v1/keys", {"name": "", "scope": "x"}))[0] == 422
    assert (await ask("POST", "/training/none/cancel"))[0] == 404
    assert (await ask("GET", "/v1/audit"))[1]["rows"] == rows


async def test_an_agents_feedback_with_the_operators_key_fills_no_trail(shared, ask):
    (name,) = await stored(shared, ask, 1)
    rows = (await ask("GET", "/v1/audit"))[1]["rows"]
    said = {"trajectory_id": name, "type": "thumbs_up", "user_id": "u", "source": "app"}
    assert (await ask("POST", "/v1/feedback", said))[0] == 202
    assert (await ask("GET", "/v1/audit"))[1]["rows"] == rows


async def test_a_row_that_is_gone_shows(shared, ask):
    def lose(tx: Tx):
        tx.execute("DELETE FROM audit WHERE seq = (SELECT MIN(seq) + 1 FROM audit)")

    for name in ("a", "b", "c"):
        await ask("POST", "/v1/keys", {"name": name, "scope": "agent"})
    await shared.store.database.write(lose)
    status, chain = await ask("GET", "/v1/audit/verify")
    assert (status, chain["ok"]) == (200, False)
    assert chain["broken"].endswith(".")


async def test_old_times_are_no_trouble(shared, ask):
    for since in ("1970-01-01T00:00:00Z", "0001-01-01T00:00:00Z", "99999w"):
        assert (await ask("GET", f"/v1/decisions?since={quote(since)}"))[0] == 200
    future = (shared.now() + timedelta(days=400)).isoformat()
    status, answer = await ask("GET", f"/v1/decisions?since={quote(future)}")
    assert (status, answer["decisions"]) == (200, [])
