"""A real loop in trouble: the cause is made, a webhook and the bus hear of it, a person acknowledges it, and it is over."""

import asyncio
import contextlib
import json
import logging

import pytest

from tests.conftest import running_loop
from tests.live.test_foreign_bus import foreign, listening
from tests.monitor.receiving import Receiver
from tests.support import Client, cli, on_bus, raw, small, until
from upswing.config import AlertsConfig, Settings, Surroundings, WebhookConfig
from upswing.contracts import AlertNotice, TrainingRequest, decode
from upswing.contracts.examples import EXAMPLES
from upswing.infra.nats.server import find_server_binary

pytestmark = pytest.mark.live


def settings(*receivers, **alerts):
    hooks = tuple(
        WebhookConfig(name=f"hook-{at}", url=each.url, timeout_seconds=0.5)
        for at, each in enumerate(receivers)
    )
    return Settings(alerts=AlertsConfig(webhooks=hooks, clear_seconds=0, **alerts))


@contextlib.asynccontextmanager
async def watched(data, config, **options):
    """A loop that looks for alerts all the time, and a client of it."""
    async with (
        running_loop(data, settings=config, alert_seconds=0.05, **options) as loop,
        Client(loop.running.http_url, loop.running.key) as client,
    ):
        yield loop, client


async def test_refused_messages_call_a_person_until_they_are_few_again(data):
    async with Receiver() as receiver, watched(data, settings(receiver)) as (loop, client):
        async with on_bus(loop.running.nats_urls["reader"]) as bus:
            heard = await bus.subscribe("agent.rl.alert.v1")
            await bus.flush()
            for _ in range(30):
                assert (await client("POST", "/v1/trajectories", b'{"turns": []}'))[0] == 422
            await until(lambda: ("CollectionErrors", "firing") in receiver.alerts())
            first = decode(AlertNotice, (await heard.next_msg(60)).data)
            assert (first.name, first.state, first.severity) == (
                "CollectionErrors",
                "firing",
                "warning",
            )
            assert first.evidence["reasons"].keys() == {"schema"}
            assert 20 <= first.evidence["refused"] <= 30
            status, seen = await client("GET", "/v1/alerts")
            (alert,) = seen["alerts"]
            assert (status, alert["state"], alert["alert_id"]) == (200, "firing", first.alert_id)
            listed = await asyncio.to_thread(cli, "alerts", data=data)
            assert b"CollectionErrors" in listed.stdout
            note = ("--note", "mending it")
            await asyncio.to_thread(cli, "alerts", "ack", first.alert_id, *note, data=data)
            await until(lambda: ("CollectionErrors", "acknowledged") in receiver.alerts())
            lines = b"\n".join(raw(small()) for _ in range(300))
            status, _ = await client("POST", "/v1/trajectories", lines, kind="application/x-ndjson")
            assert status == 202
            await until(lambda: ("CollectionErrors", "resolved") in receiver.alerts())
        status, seen = await client("GET", "/v1/alerts?state=all&name=CollectionErrors")
        (over,) = seen["alerts"]
        assert (over["state"], over["note"]) == ("resolved", "mending it")
        await until(lambda: _all_sent(client, over["alert_id"]))
    assert receiver.alerts("CollectionErrors") == [
        ("CollectionErrors", state) for state in ("firing", "acknowledged", "resolved")
    ]


async def _all_sent(client, alert_id):
    _, one = await client("GET", f"/v1/alerts/{alert_id}")
    return {each["state"] for each in one["deliveries"]} == {"sent"}


class Nats:
    """A nats-server of somebody's own that can be ended and started again on its port."""

    def __init__(self, folder):
        self.folder, self.port = folder, -1

    async def start(self, sync=""):
        self.folder.mkdir(exist_ok=True)
        config = self.folder / "nats.conf"
        config.write_text(
            f'listen: "127.0.0.1:{self.port}"\nhttp: "127.0.0.1:-1"\n'
            f'jetstream {{ store_dir: "{self.folder}/js"\n{sync} }}\n'
        )
        self.process = await asyncio.create_subprocess_exec(
            find_server_binary(),
            "-c",
            str(config),
            "--ports_file_dir",
            str(self.folder),
            stderr=asyncio.subprocess.DEVNULL,
        )
        path = self.folder / f"nats-server_{self.process.pid}.ports"
        ports = await until(lambda: listening(path))
        self.url = ports["nats"][0]
        self.port = int(self.url.rpartition(":")[2])

    async def end(self):
        if self.process.returncode is None:
            self.process.terminate()
        await self.process.wait()


async def test_a_bus_that_goes_away_is_told_by_webhook_and_on_the_bus_when_it_is_back(
    data, tmp_path
):
    nats = Nats(tmp_path / "nats")
    await nats.start("sync_interval: always")
    try:
        async with Receiver() as receiver:
            config = settings(receiver, bus_minutes=0)
            where = Surroundings(nats_url=nats.url)
            async with watched(data, config, surroundings=where) as (_, client):
                await nats.end()
                await until(lambda: ("BusUnreachable", "firing") in receiver.alerts())
                status, _ = await client.send(small())
                assert status == 202  # the loop takes what comes
                await nats.start("sync_interval: always")
                await until(lambda: ("BusUnreachable", "resolved") in receiver.alerts())
                async with on_bus(nats.url) as bus:
                    notices = await until(lambda: _notices(bus))
        assert ("BusUnreachable", "firing") in notices
    finally:
        await nats.end()


async def _notices(bus):
    """What the stream of notices holds, once both are there."""
    js, found = bus.jetstream(), []
    info = await js.stream_info("RL_NOTICES")
    for seq in range(max(1, info.state.first_seq), info.state.last_seq + 1):
        notice = json.loads((await js.get_msg("RL_NOTICES", seq)).data)
        found.append((notice["name"], notice["state"]))
    return found if ("BusUnreachable", "resolved") in found else None


async def test_a_server_that_fsyncs_later_is_an_alert_of_its_own(data, tmp_path):
    async with foreign(tmp_path / "nats") as (url, monitor), Receiver() as receiver:
        where = Surroundings(nats_url=url, nats_monitor=monitor)
        async with watched(data, settings(receiver), surroundings=where):
            await until(lambda: ("BusMayLoseMessages", "firing") in receiver.alerts())


async def test_an_address_that_hangs_does_not_slow_the_loop(data):
    """However many alerts wait for it: what agents send is taken, rewarded and published meanwhile."""
    async with Receiver(None) as silent, Receiver() as other:
        async with watched(data, settings(silent, other)) as (_, client):
            log = logging.getLogger("upswing.test")
            for number in range(10):
                part = {"action": "alert", "reason": "part_broke", "part": f"part {number}"}
                log.error("part %d broke", number, extra=part)
            await until(lambda: len(other.alerts("PartFailing")) == 10)
            await silent.arrived.wait()
            ids = []
            for _ in range(40):
                document = small()
                ids.append(document["trajectory_id"])
                assert (await client.send(document))[0] == 202
            await until(lambda: _rewarded(client, ids[-1]))
            assert (await client("GET", "/health"))[1]["status"] == "ok"
            _, found = await client("GET", "/v1/alerts?name=PartFailing&limit=1")
            _, one = await client("GET", f"/v1/alerts/{found['alerts'][0]['alert_id']}")
            states = {each["target"]: each["state"] for each in one["deliveries"]}
            assert states == {"hook-0": "waiting", "hook-1": "sent"}


async def _rewarded(client, trajectory_id):
    return (await client("GET", f"/v1/rewards/{trajectory_id}"))[0] == 200


async def test_an_alert_outlives_a_restart_and_is_told_once(data):
    async with Receiver() as receiver:
        config, extra = settings(receiver), {"action": "alert", "reason": "part_broke", "part": "x"}
        log = logging.getLogger("upswing.test")
        for _ in range(2):
            async with watched(data, config) as (_, client):
                log.error("x broke", extra=extra)
                await until(lambda client=client: _times(client))
                await until(lambda: receiver.alerts("PartFailing"))
        assert receiver.alerts("PartFailing") == [("PartFailing", "firing")]


async def _times(client):
    """How often the alert was seen, once it has been in this life of the loop."""
    _, seen = await client("GET", "/v1/alerts")
    return seen["alerts"] and seen["alerts"][0]["times"]


async def test_what_an_alert_says_holds_no_secret_and_no_answer_an_address(data):
    async with Receiver() as receiver, watched(data, settings(receiver)) as (_, client):
        secret = "sk-proj-" + "a1B2" * 12
        message = f"the key {secret} of bob@example.org was refused"
        logging.getLogger("upswing.test").error(message, extra={"action": "alert"})
        await until(lambda: receiver.alerts("OtherAlert"))
        (heard,) = receiver.heard
        _, listed = await client("GET", "/v1/alerts")
        _, one = await client("GET", f"/v1/alerts/{listed['alerts'][0]['alert_id']}")
        _, told = await client("GET", "/v1/settings")
        assert receiver.url not in json.dumps([listed, one, told])
    assert secret.encode() not in heard.body
    assert b"bob@example.org" not in heard.body
    assert b"was refused" in heard.body


async def test_three_jobs_that_fail_call_a_person_and_each_has_its_report(data):
    """There is nothing to train on: every job fails at once, for a reason that the report names."""
    async with Receiver() as receiver, watched(data, settings(receiver)) as (loop, client):
        for number in range(3):
            request = EXAMPLES[TrainingRequest] | {"training_job_id": f"job-{number}"}
            config = request["training_config"] | {"base_model": "tiny"}
            body = request | {"training_config": config}
            status, started = await client("POST", "/training/start", body)
            assert status in {200, 202}, started
            await until(lambda number=number: _ended(client, f"job-{number}"))
        await until(lambda: ("TrainingFailing", "firing") in receiver.alerts())
        assert {name for name, _ in receiver.alerts()} >= {"TrainingNeedsAttention"}
        assert await loop.monitor.reporter.make_due() == [f"job-job-{n}" for n in range(3)]
        await until(lambda: len(_reports(receiver)) == 3)
    report = _reports(receiver)[0]
    assert (report["kind"], report["report_id"]) == ("job", "job-job-0")
    assert "- State: failed (DATA)" in report["text"]
    assert report["figures"]["recommendations"][0]["rule"] == "training_failed"
    assert (data / "reports" / "job-job-0.html").exists()


async def _ended(client, job_id):
    _, status = await client("GET", f"/training/{job_id}/status")
    return status["status"] == "failed"


def _reports(receiver):
    return [each.tree["report"] for each in receiver.heard if each.tree["event"] == "report"]
