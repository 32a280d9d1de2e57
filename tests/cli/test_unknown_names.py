"""What a command is asked about is not there, or is no such thing: it says which, and claims nothing else."""

import asyncio
import json
from datetime import UTC, datetime
from uuid import UUID

import pytest
from tests.support import cli

from upswing.app.backtest import parse_policy
from upswing.errors import Misuse
from upswing.infra.sql.store import open_store
from upswing.monitor.alert_repository import AlertRepository
from upswing.monitor.core.alert_catalog import CATALOG
from upswing.monitor.core.alert_states import AlertSeen, BeginAlert

NOW = datetime(2026, 1, 2, 12, tzinfo=UTC)


@pytest.fixture
def stopped(data):
    """A store without a process."""

    async def fill():
        store = open_store(data)
        await store.prepare()
        store.close()

    data.mkdir()
    asyncio.run(fill())
    return data


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("report", "job", "nope"), "upswing: There is no job nope that has ended"),
        (("analyse", "nope"), "upswing: No model nope is known here"),
        (("audit", "--verify", "--head", "abc"), "upswing: abc is no hash: --head takes the 64"),
        (("alerts", "--name", "Nope"), "upswing: There is no alert Nope; there are "),
    ],
)
def test_what_is_not_there_is_said_first_and_alone(stopped, words, said):
    done = cli(*words, data=stopped, check=False)
    assert done.returncode == 1
    assert done.stderr.decode().startswith(said)
    assert done.stderr.decode().count("\n") == 1


@pytest.mark.parametrize(("command", "option"), [("decisions", "--stage"), ("dead", "--reason")])
def test_a_word_of_no_closed_set_is_refused(stopped, command, option):
    done = cli(command, option, "bogus", data=stopped, check=False)
    assert done.returncode == 2
    assert b"bogus" in done.stderr


@pytest.mark.parametrize(
    "text",
    [
        '[deploy]\nboldness = "reckless"\n',
        '[deploy.boldness]\nstrategy = "reckless"\n',
        '[trigger]\nschedule = "61 * * * *"\n',
    ],
)
def test_every_mistake_of_a_policy_is_told_with_its_file(text):
    with pytest.raises(Misuse, match=r"^new\.toml: .*(boldness|minute 61)"):
        parse_policy(text, "new.toml")


def test_an_alert_is_found_by_the_beginning_of_its_id(stopped):
    ids = [UUID(f"abcd000{last}-0000-0000-0000-000000000000") for last in (1, 2)]
    ids.append(UUID("ef010000-0000-0000-0000-000000000000"))

    async def fill():
        store = open_store(stopped)
        coming = iter(ids)
        alerts = AlertRepository(store.database, [], new_id=lambda: next(coming))
        for model in "abc":
            seen = AlertSeen("ModelRolledBack", f"About {model}.", {"model": model}, {})
            await alerts.apply([BeginAlert(seen, "urgent")], {}, NOW)
        store.close()

    asyncio.run(fill())
    listed = [each["alert_id"] for each in json.loads(cli("alerts", "--json", data=stopped).stdout)]
    begins = {name: sum(other[:4] == name[:4] for other in listed) for name in listed}
    alone = next(name for name, count in begins.items() if count == 1)
    shown = cli("alerts", "show", alone[:4], data=stopped).stdout.decode()
    assert "About c." in shown
    assert f"what to do    {CATALOG['ModelRolledBack'].remedy}" in shown
    several = cli("alerts", "show", "abcd", data=stopped, check=False).stderr.decode()
    assert all(name in several for name in listed if name.startswith("abcd"))
