"""Debian's Alertmanager itself: it shows what is open, and no longer what is over."""

import asyncio
import contextlib
import shutil
import socket

import pytest

from tests.monitor.test_webhooks import SECRET, Bench
from tests.support import Client, until
from upswing.config import WebhookConfig
from upswing.infra.clock import wall_time
from upswing.infra.sql.store import open_in_memory_store
from upswing.monitor.webhooks import AlertmanagerSync, WebhookRuntime

PROGRAM = shutil.which("prometheus-alertmanager") or shutil.which("alertmanager")
pytestmark = [
    pytest.mark.live,
    pytest.mark.skipif(PROGRAM is None, reason="apt-get install prometheus-alertmanager"),
]


@contextlib.asynccontextmanager
async def alertmanager(folder):
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    config = folder / "alertmanager.yml"
    config.write_text("route:\n  receiver: none\nreceivers:\n  - name: none\n")
    process = await asyncio.create_subprocess_exec(
        PROGRAM,
        f"--config.file={config}",
        f"--storage.path={folder / 'storage'}",
        f"--web.listen-address=127.0.0.1:{port}",
        "--cluster.listen-address=",
        stderr=asyncio.subprocess.DEVNULL,
    )
    try:
        url = f"http://127.0.0.1:{port}"
        await until(lambda: answers(url))
        yield url
    finally:
        process.terminate()
        await process.wait()


async def answers(url):
    with contextlib.suppress(OSError):
        async with Client(url) as client:
            return (await client("GET", "/-/ready"))[0] == 200
    return False


async def shown(url):
    async with Client(url) as client:
        _, found = await client("GET", "/api/v2/alerts")
        return {each["labels"]["alertname"]: each for each in found}


async def test_alertmanager_shows_what_is_open_and_forgets_what_is_over(tmp_path):
    store = open_in_memory_store()
    await store.prepare()
    try:
        async with alertmanager(tmp_path) as url:
            webhook = WebhookConfig(name="am", url=url, format="alertmanager", severity="warning")
            bench = Bench(store, webhook)

            sync = AlertmanagerSync(
                webhook,
                bench.alerts.open_alerts,
                bench.alerts.resolved_since,
                WebhookRuntime(SECRET, lambda: bench.now, wall_time),
                source="here",
            )
            row = await bench.fire(name="ModelRolledBack", severity="urgent")
            await bench.fire("quiet", name="CandidateNotShipped", severity="info")
            await sync.sync()
            found = await until(lambda: shown(url))
            assert set(found) == {"ModelRolledBack"}
            alert = found["ModelRolledBack"]
            assert alert["labels"]["severity"] == "urgent"
            assert alert["labels"]["instance"] == "here"
            assert alert["annotations"]["runbook"].endswith("#modelrolledback")
            assert alert["status"]["state"] == "active"
            await bench.resolve(row)
            await sync.sync()

            async def gone():
                return not await shown(url)

            await until(gone)
    finally:
        store.close()
