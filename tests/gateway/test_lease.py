"""How long does a plan hold at a gateway whose clock shows something else than the controller's?"""

from datetime import UTC, datetime, timedelta
from random import random
from uuid import uuid4

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.gateway.bus import GATEWAY, nats
from tests.gateway.conftest import model, now, plan
from tests.gateway.scripted import Scripted
from tests.gateway.test_bus import bucket, running
from tests.gateway.test_traffic import changed
from tests.support import on_bus, until
from upswing.contracts.traffic import read_plan, write_plan
from upswing.gateway.gateway import Gateway
from upswing.infra.nats.permissions import OPERATOR
from upswing.infra.nats.traffic import age_from_stream_info

DAY = timedelta(days=1)
WRITTEN = datetime(2026, 1, 5, 8, tzinfo=UTC)
skews = st.timedeltas(-timedelta(days=4000), timedelta(days=4000))


def leased(seconds, written=WRITTEN, **options):
    base, new = model("base", "http://127.0.0.1:1"), model("new", "http://127.0.0.1:1")
    until_ = written + timedelta(seconds=seconds)
    given = {"written": written, "lease_until": until_, "lease_seconds": seconds, **options}
    return plan(base, (new, 1.0), **given)


@given(skews, st.floats(0.1, 1000), st.floats(-5, 2000), st.booleans())
def test_no_clock_lengthens_or_shortens_a_lease_whose_age_is_known(skew, seconds, age, told):
    made = leased(seconds) if told else leased(seconds, lease_seconds=None)
    assert made.lease_left(age, WRITTEN + skew) == pytest.approx(seconds - max(0.0, age), abs=1e-5)


@given(skews, st.floats(0.1, 1000))
def test_where_nobody_knows_the_age_a_clock_never_lengthens_a_lease(skew, seconds):
    assert leased(seconds).lease_left(None, WRITTEN + skew) <= seconds


def test_a_plan_that_does_not_run_out_has_no_lease():
    made = leased(45, lease_until=None, lease_seconds=None, operator=True)
    assert made.lease_left(10**9, WRITTEN + 400 * DAY) is None


def test_a_duration_travels_with_the_plan():
    assert read_plan(write_plan(leased(45))).lease_seconds == 45


class Jumping:
    """A wall clock that somebody sets."""

    def __init__(self):
        self.ahead = timedelta()

    def __call__(self):
        return now() + self.ahead


@pytest.mark.parametrize("jump", [DAY, -DAY])
async def test_a_clock_that_jumps_ends_no_lease_and_lengthens_none(jump):
    clock = Jumping()
    gateway = Gateway(clock=clock, new_id=uuid4, draw=random)
    gateway.apply(leased(0.6), 0.0)
    clock.ahead = jump
    assert gateway.traffic.shares() == {"base": 0.0, "new": 1.0}
    assert 0 < gateway.traffic.lease_left() <= 0.6
    await until(lambda: gateway.traffic.shares() == {"base": 1.0}, 60)
    assert gateway.traffic.lease_left() <= 0


async def test_a_plan_that_is_heard_again_is_no_newer():
    gateway = Gateway(clock=now, new_id=uuid4, draw=random)
    made = leased(45)
    gateway.apply(made, 40.0)
    gateway.apply(read_plan(write_plan(made)), 0.0)
    assert gateway.traffic.lease_left() <= 5
    gateway.apply(changed(made, version=2), 0.0)
    assert gateway.traffic.lease_left() > 40
    gateway.traffic.stop()


@pytest.mark.live
@pytest.mark.parametrize("skew", [DAY, -DAY])
async def test_a_gateway_whose_clock_is_a_day_off_follows_a_canary_for_its_lease(tmp_path, skew):
    async with nats(tmp_path) as server, Scripted() as backend:
        base, new = model("base", backend.url), model("new", backend.url)
        url, own = server.url(OPERATOR), server.url(GATEWAY)
        async with (
            bucket(url, "rl_traffic") as traffic,
            running(own, clock=lambda: now() + skew) as gateway,
        ):
            shares = gateway.gateway.traffic.shares
            canary = changed(
                leased(2, now()), baseline=base, candidates=plan(base, (new, 0.25)).candidates
            )
            await traffic.put("plan", write_plan(canary))
            await until(lambda: shares().get("new") == 0.25, 60)
            await until(lambda: shares() == {"base": 1.0}, 60)


@pytest.mark.live
async def test_a_gateway_that_starts_late_gives_an_old_plan_only_what_is_left_of_it(tmp_path):
    """By the bus's clock: the gateway's is a day behind, so that it would believe any lease."""
    async with nats(tmp_path) as server:
        url, own = server.url(OPERATOR), server.url(GATEWAY)
        async with bucket(url, "rl_traffic") as traffic, on_bus(url) as client:
            await traffic.put("plan", write_plan(leased(1.5, now())))

            async def old():
                told = await client.request("$JS.API.STREAM.INFO.KV_rl_traffic", b"")
                return age_from_stream_info(told.data, (await traffic.get("plan")).revision) > 1.5

            await until(old, 60)
            async with running(own, clock=lambda: now() - DAY) as gateway:
                held = gateway.gateway.traffic
                await until(lambda: held.plan, 60)
                assert held.shares() == {"base": 1.0}
            await traffic.put("plan", write_plan(leased(45, now(), version=2)))
            async with running(own, clock=lambda: now() + DAY) as gateway:
                await until(
                    lambda: gateway.gateway.traffic.shares() == {"base": 0.0, "new": 1.0}, 60
                )
