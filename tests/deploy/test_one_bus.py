"""Two loops with stores of their own on one bus: which of them writes the traffic plan?"""

from datetime import timedelta

import pytest
from tests.deploy.controlling import BASE, START, Ground

from upswing.contracts.traffic import Model, Plan
from upswing.deploy.core.rows import LEASE, ForeignPlan, LeadershipLost, check_plan_write
from upswing.deploy.in_memory import MemoryRollouts
from upswing.deploy.repository import RolloutRepository

TEN = timedelta(seconds=10)


@pytest.fixture
def pair():
    """Two grounds with one board, whose stores bear different names."""
    one, other = Ground(1), Ground(2)
    other.board, other.ids = one.board, 1000
    return one, other


def pass_on(pair, spent):
    for ground in pair:
        ground.wall += spent


async def test_the_second_loop_on_a_bus_refuses_to_lead_and_says_so_once(pair, caplog):
    mine, theirs = pair
    first = await mine.started()
    second = theirs.controller()
    written = mine.plan
    for _ in range(20):  # much longer than a lease
        pass_on(pair, TEN)
        await first.renew()
        await second._safely(second._round)
    assert first.leading
    assert not second.leading
    assert {plan.origin for plan in mine.board.plans} == {written.origin}
    assert theirs.store.fence is None, "it has not even taken its own fence"
    (alert,) = [each for each in caplog.records if getattr(each, "action", "") == "alert"]
    assert "with another store" in alert.message
    assert "NATS_URL" in alert.message
    with pytest.raises(LeadershipLost):
        await second.set_traffic(BASE, 100, "ann")


async def test_of_two_that_start_at_the_same_moment_one_stands_back(pair):
    mine, theirs = pair
    first, second = mine.controller(), theirs.controller()

    async def nothing():
        return None

    mine.board.instead["read"] = nothing  # neither sees a plan
    await first.start()
    with pytest.raises(ForeignPlan):
        await second.start()
    mine.board.instead.clear()
    assert {plan.origin for plan in mine.board.plans} == {mine.store.name}


async def test_a_bus_that_nobody_keeps_up_can_be_had(pair):
    mine, theirs = pair
    old = await mine.started()
    pass_on(pair, LEASE + TEN)
    new = await theirs.started()
    assert (theirs.plan.origin, theirs.plan.fence) == (theirs.store.name, 2)
    await old._safely(old.renew)  # it was only asleep
    for _ in range(20):
        pass_on(pair, TEN)
        await new.renew()
        await old._safely(old._round)
    assert new.leading
    assert not old.leading
    assert theirs.plan.origin == theirs.store.name


async def test_a_store_that_was_put_back_from_a_copy_leads_its_bus(pair):
    mine, copy = pair
    await mine.started()
    copy.store.name = mine.store.name
    await copy.started(holder="two")
    assert copy.plan.fence == 2


@pytest.mark.parametrize(
    ("held", "error"),
    [
        ({"origin": "there", "fence": 1}, ForeignPlan),
        ({"origin": "there", "fence": 9}, ForeignPlan),
        ({"origin": "there", "fence": 1, "written": START - LEASE}, ForeignPlan),
        ({"origin": "there", "fence": 1, "written": START - LEASE - TEN}, None),
        ({"origin": "there", "fence": 1, "written": START + 400 * LEASE}, None),
        ({"origin": "there", "fence": 9, "written": START - LEASE - TEN}, LeadershipLost),
        ({"origin": "there", "fence": 1, "written": None}, None),
        ({"origin": "here", "fence": 2}, None),
        ({"origin": "here", "fence": 3}, LeadershipLost),
        ({"origin": "", "fence": 2}, None),
        ({"origin": "", "fence": 3}, LeadershipLost),
    ],
)
def test_what_stands_on_the_board_decides_who_may_write(held, error):
    base = Model("base", "http://127.0.0.1:1/v1", "base")
    plan = Plan(2, "r", "r", base, origin="here", written=START)
    found = Plan(**{"rollout": "r", "salt": "r", "baseline": base, "written": START} | held)
    check_plan_write(None, plan)
    if error is None:
        check_plan_write(found, plan)
    else:
        with pytest.raises(error) as raised:
            check_plan_write(found, plan)
        assert type(raised.value) is error


async def test_a_store_keeps_the_name_that_it_first_got(store):
    for rows in (MemoryRollouts(), RolloutRepository(store.database)):
        assert await rows.origin("one") == "one"
        assert await rows.origin("two") == "one"
