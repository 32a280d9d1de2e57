"""A user's own server: probed once, asked for what it has, whatever it lacks or minds."""

import asyncio
import itertools
from datetime import UTC, datetime, timedelta

import pytest
from tests.deploy.controlling import model
from tests.gateway.conftest import plan, started, user
from tests.gateway.profiles import Profile, Profiled
from tests.gateway.talking import streamed

from upswing.contracts.backend import (
    ModelOrigin,
    RemoteModel,
    parse_remote_path,
    path_of_remote,
    resolve_base_and_path,
)
from upswing.contracts.backend_keys import key_for, read_backend_keys
from upswing.errors import Denied, Misuse, Rejected, Transient
from upswing.serve.client import ModelServingClient, ServerConnection
from upswing.serve.probing import PROBE_LIFETIME, ServerProbes, probe
from upswing.train.checkpoints.storage import CheckpointStore
from upswing.validate.model_client import ModelClient

pytestmark = pytest.mark.live
KEY = "sk-theirs-and-nobody-else's"
START = datetime(2026, 1, 5, 12, tzinfo=UTC)
COMBINATIONS = [
    Profile(listing=listing, logprobs=logprobs, token_ids=ids, tools=tools, key=key, strict=strict)
    for listing, logprobs, ids, tools, key, strict in itertools.product(
        (True, False), (True, False), (True, False), (True, False), ("", KEY), (True, False)
    )
]


def told(profile):
    has = ("listing", "logprobs", "token_ids", "tools", "key", "strict")
    return "-".join(name for name in has if getattr(profile, name)) or "nothing"


class Clock:
    now = START

    def __call__(self):
        return self.now


class Ground:
    """Our side: memory on the disk, keys by URL."""

    def __init__(self, folder, keys=()):
        self.folder, self.keys, self.clock = folder, dict(keys), Clock()
        self.begin()

    def begin(self):
        """The loop starts, with nothing but its files."""
        self.probes = ServerProbes(self.folder / "backends.json", self.key_of, clock=self.clock)
        self.serving = ModelServingClient(
            ServerConnection(lambda: "http://127.0.0.1:1"),
            CheckpointStore(str(self.folder / "kept")),
            self.folder / "copies",
            self.probes,
            self.key_of,
        )

    def key_of(self, url):
        return key_for(url, self.keys)


def row(server, **origin):
    base, path = resolve_base_and_path(
        ModelOrigin(backend=server.url, name="theirs", **origin), "mine", None
    )
    return model(7, model_id="mine", base_model=base, path=path)


@pytest.mark.parametrize("profile", COMBINATIONS, ids=told)
async def test_every_server_answers_an_agent_and_is_asked_for_what_it_has(profile, tmp_path):
    async with Profiled(profile) as server:
        ground = Ground(tmp_path, {server.url + "/": profile.key} if profile.key else {})
        served = await ground.serving.ensure(row(server))
        has = {"logprobs": profile.logprobs, "return_token_ids": profile.token_ids}
        uncounted = {"stream_options": None} if profile.strict else {}
        assert served.extra == {name: True for name, value in has.items() if value} | uncounted
        assert served.strict is profile.strict
        odd = [field for fields in server.minded for field in fields]
        assert odd.count("return_token_ids") == (not profile.token_ids), "only a probe asks, once"
        seen, server.minded = len(server.requests), []

        async with started(plan(served), backend_keys=ground.keys) as gateway:
            theirs = {"guided_json": {}, "metadata": {"session_id": "s"}} if profile.strict else {}
            status, answer = await gateway.chat(user("hi"), seed=3, **theirs)
            assert (status, answer["choices"][0]["message"]["content"]) == (200, "hi")
            assert server.minded == [], (
                "an agent's request brings nothing that the server does not know"
            )
            assert len(server.requests) == seen + 1
            asked = {"model": "m", "messages": [user("hi")]}
            assert (await streamed(gateway, asked))[0] == 200
            assert server.minded == ([] if profile.strict else [["stream_options"]])

        for _ in range(2):
            assert await ground.serving.ensure(row(server)) == served
            ground.begin()
        assert len(server.chats()) == sum("/chat" in r["path"] for r in server.requests[: seen + 2])
        assert await ground.serving.alive(served)


@pytest.mark.parametrize("profile", COMBINATIONS[::7], ids=told)
async def test_a_server_that_must_not_be_probed_is_never_asked_anything_but_chats(
    profile, tmp_path
):
    async with Profiled(profile) as server:
        ground = Ground(tmp_path, {server.url + "/": profile.key} if profile.key else {})
        found = await ground.serving.check("mine", row(server, probe=False).path)
        assert found["probed"] is False
        served = await ground.serving.ensure(row(server, probe=False))
        nothing = {"stream_options": None}
        assert (served.extra, served.strict, server.requests) == (nothing, True, [])
        async with started(plan(served), backend_keys=ground.keys) as gateway:
            status, _ = await gateway.chat(user("hi"), guided_json={}, top_k=3)
            assert (await streamed(gateway, {"model": "m", "messages": [user("hi")]}))[0] == 200
        assert (status, server.minded) == (200, [])


async def test_what_is_remembered_lasts_a_week_and_outlives_a_server_that_is_away(tmp_path):
    ground = Ground(tmp_path)
    async with Profiled(Profile(logprobs=False)) as server:
        url = server.url
        assert not (await ground.probes.abilities(url, "theirs")).logprobs
        server.profile = Profile()
        assert not (await ground.probes.abilities(url, "theirs")).logprobs
        ground.clock.now += PROBE_LIFETIME
        ground.begin()
        assert (await ground.probes.abilities(url, "theirs")).logprobs
        ground.clock.now += PROBE_LIFETIME + timedelta(days=1)
    assert (await ground.probes.abilities(url, "theirs")).logprobs, "it is away: the old holds"
    with pytest.raises(Transient):
        await ground.probes.abilities(url, "theirs", force=True)
    (tmp_path / "backends.json").write_text("{damaged")
    ground.begin()
    assert ground.probes.cached(url, "theirs") is None


async def test_many_who_ask_at_once_wait_for_one_probe(tmp_path):
    async with Profiled() as server:
        ground = Ground(tmp_path)
        asked = (ground.probes.abilities(server.url, "theirs") for _ in range(20))
        found = await asyncio.gather(*asked)
        assert len(set(found)) == 1
        once = len(server.requests)
        await ground.probes.abilities(server.url, "theirs", force=True)
        assert len(server.requests) == 2 * once


async def test_no_redirect_is_followed_and_no_key_goes_there(tmp_path):
    async with Profiled(Profile(redirects=True, key=KEY)) as server:
        ground = Ground(tmp_path, {server.url + "/": KEY})
        with pytest.raises(Rejected, match="no redirect is followed"):
            await ground.serving.check("mine", row(server).path)
        with pytest.raises(Rejected, match="no redirect is followed"):
            await ground.serving.ensure(row(server))
        assert server.followed == 0


async def test_a_server_that_wants_a_key_says_which_variable(tmp_path):
    async with Profiled(Profile(key=KEY)) as server, Profiled() as other:
        ground = Ground(tmp_path, {other.url + "/": KEY})
        with pytest.raises(Rejected, match=f"UPSWING_BACKEND_KEY_NAME={server.url}=<its key>"):
            await ground.serving.check("mine", row(server).path)
        with pytest.raises(Transient, match="401"):
            await ground.serving.ensure(row(server))
        assert all("authorization" not in each["headers"] for each in server.requests)
        await ground.serving.ensure(row(other))
        assert other.requests[0]["headers"]["authorization"] == f"Bearer {KEY}"


async def test_a_name_that_the_server_does_not_have_is_refused_with_or_without_a_list(tmp_path):
    for profile, said in (
        (Profile(), "does not serve"),
        (Profile(listing=False), "There is no no"),
    ):
        async with Profiled(profile) as server:
            with pytest.raises(Rejected, match=said):
                await probe(server.url, "no-such", "")


async def test_a_page_a_slow_server_and_none_are_asked_again_and_not_remembered(tmp_path):
    ground = Ground(tmp_path)
    async with Profiled(Profile(page=True)) as server:
        found = await ground.serving.check("mine", row(server).path)
        assert "is no model server" in found["detail"]
        server.profile = Profile()
        assert (await ground.serving.check("mine", row(server).path))["probed"]
        server.hold()
        with pytest.raises(Transient, match="did not answer"):
            await probe(server.url, "theirs", "", seconds=0.2)
        server.gate.set()
        gone = row(server)
    ground = Ground(tmp_path / "new")
    with pytest.raises(Transient):
        await ground.serving.ensure(gone)
    assert "cannot be reached" in (await ground.serving.check("mine", gone.path))["detail"]


async def test_the_kind_of_an_answer_does_not_matter_where_it_is_one(tmp_path):
    async with Profiled(Profile(kind="text/plain")) as server:
        assert (await probe(server.url, "theirs", "")).token_ids


async def test_a_server_that_takes_next_to_nothing_can_be_used(tmp_path):
    few = Profile(
        listing=False,
        logprobs=False,
        token_ids=False,
        tools=False,
        strict=True,
        knows=frozenset({"model", "messages"}),
    )
    async with Profiled(few) as server:
        found = await probe(server.url, "theirs", "")
        refused = {
            "max_tokens",
            "max_completion_tokens",
            "temperature",
            "top_p",
            "seed",
            "metadata",
            "stream_options",
            "tools",
        }
        assert (found.strict, found.unusable) == (True, refused)


async def test_validation_sends_no_field_that_a_probe_found_to_be_refused(tmp_path):
    few = Profile(tools=False, strict=True, knows=frozenset({"model", "messages", "max_tokens"}))
    async with Profiled(few) as server:
        ground = Ground(tmp_path)
        await ground.serving.ensure(row(server))
        server.minded = []

        async def find(_):
            return server.url, "theirs"

        ask = ModelClient(
            find,
            max_tokens=64,
            unusable_fields=lambda *place: ground.probes.cached(*place).unusable,
        )
        tool = {"type": "function", "function": {"name": "look", "parameters": {}}}
        answer = await ask("mine", [user("hi")], seed=1, max_tokens=16, tools=[tool])
        assert (answer.text, server.minded) == ("hi", [])


@pytest.mark.parametrize("elsewhere", ["400", "404", "429", "500", "503", "close"])
async def test_a_server_of_chat_alone_can_be_used_whatever_other_paths_get(tmp_path, elsewhere):
    async with Profiled(Profile(elsewhere=elsewhere, adapters=True)) as server:
        found = await probe(server.url, "theirs", "")
    assert (found.shapes, found.tools, found.logprobs) == ((), True, True)


async def test_adapters_are_seen_by_their_path(tmp_path):
    for has in (True, False):
        async with Profiled(Profile(adapters=has)) as server:
            assert (await probe(server.url, "theirs", "")).adapters is has


async def test_the_base_at_the_users_own_server_is_probed_too(tmp_path):
    async with Profiled(Profile(listing=False, token_ids=False, key=KEY)) as server:
        ground = Ground(tmp_path)
        keys = {"127.0.0.1": KEY}
        probes = ServerProbes(tmp_path / "b.json", lambda _: keys["127.0.0.1"], clock=ground.clock)
        theirs = ServerConnection(lambda: server.url, KEY, None, foreign=True)
        serving = ModelServingClient(
            theirs, CheckpointStore(str(tmp_path / "kept")), tmp_path / "copies", probes
        )
        served = await serving.ensure("theirs")
        assert (served.extra, await serving.alive(served)) == ({"logprobs": True}, True)
        said = ServerConnection(lambda: server.url, KEY, {"top_k": 1}, foreign=True)
        serving = ModelServingClient(
            said, CheckpointStore(str(tmp_path / "kept")), tmp_path / "copies", probes
        )
        assert (await serving.ensure("theirs")).extra == {"top_k": 1}, "the user's word holds"


@pytest.mark.parametrize(
    "url",
    [
        "https://me:pw@gpu",
        "ftp://gpu",
        "https://gpu/v1?key=1",
        "https://gpu/v1#x",
        "gpu:8000",
        "https://gpu/a/../b",
        "https://gpu/%2e%2E/b",
        "https://gpu/v1 x",
        "https://gpu/v1\n",
        "",
    ],
)
def test_an_address_is_plain_or_refused(url):
    with pytest.raises(Rejected):
        path_of_remote(RemoteModel(url, "m"))


@pytest.mark.parametrize("name", ["m", "org/model", "a#b", "ft:gpt-4o:org::id", "größe"])
@pytest.mark.parametrize("asks", [True, False])
def test_a_path_says_the_server_the_name_and_whether_to_probe(name, asks):
    remote = RemoteModel("https://gpu:8000/v1", name, asks)
    assert parse_remote_path(path_of_remote(remote)) == remote


@pytest.mark.parametrize(
    "origin",
    [
        ModelOrigin(),
        ModelOrigin("/models/1", "https://gpu"),
        ModelOrigin("/models/1", name="m"),
        ModelOrigin("/models/1", probe=False),
    ],
)
def test_a_model_is_at_one_place(origin):
    with pytest.raises(Rejected):
        resolve_base_and_path(origin, "mine", "tiny")


def test_a_key_is_bound_to_one_url():
    keys = read_backend_keys(
        {
            "UPSWING_BACKEND_KEY_A": "https://a.example/v1=one=1,x",
            "UPSWING_BACKEND_KEY_B": "http://b:8000=two",
            "UPSWING_BACKEND_KEY_C": "",
            "UPSWING_BACKEND_KEYS": "https://c.example=three",
            "OTHER": "x",
        }
    )
    for url, key in {
        "https://a.example/v1": "one=1,x",
        "https://a.example/v1/": "one=1,x",
        "https://a.example/v2": "",
        "https://a.example/v10": "",
        "http://a.example/v1": "",
        "https://a.example.evil/v1": "",
        "https://evil/https://a.example/v1": "",
        "http://b:8000/v1": "two",
        "http://b:80001/v1": "",
        "http://b/v1": "",
        "https://c.example/v1": "",
    }.items():
        assert key_for(url, keys) == key, url


@pytest.mark.parametrize(
    "said",
    [
        "sk-secret",
        "https://a.example/v1",
        "https://a.example/v1=",
        "https://u:p@a=sk-secret",
        "https://a.example/v1=sk-secret\u20ac",
    ],
)
def test_a_key_that_is_bound_to_nothing_is_refused_and_not_repeated(said):
    with pytest.raises(Misuse, match="UPSWING_BACKEND_KEY_X") as refused:
        read_backend_keys({"UPSWING_BACKEND_KEY_X": said})
    assert "sk-secret" not in str(refused.value)
    with pytest.raises(Misuse, match="another key"):
        read_backend_keys(
            {f"UPSWING_BACKEND_KEY_{n}": f"https://a.example/v1/{'/' * n}={n}" for n in range(2)}
        )


async def test_a_denied_probe_is_told_as_such(tmp_path):
    async with Profiled(Profile(key=KEY)) as server:
        with pytest.raises(Denied):
            await probe(server.url, "theirs", "wrong")
