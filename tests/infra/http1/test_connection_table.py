"""Who goes for whom, and who is overdue: over generated lives of connections, with a clock that is told."""

from hypothesis import given, settings
from hypothesis import strategies as st

from upswing.infra.http1.budget import BodyBudget
from upswing.infra.http1.connection_table import ConnectionTable
from upswing.infra.http1.limits import PortLimits

LIMITS = PortLimits(
    peer_keyless=4,
    peer_connections=6,
    keyless_seconds=5,
    head_seconds=3,
    idle_seconds=50,
    client_seconds=20,
    linger_seconds=1,
)
MOST = 9
LINES = ["silent", "head", "body", "busy", "stalled", "idle", "lingering", "closing"]
SECONDS = {"silent": 5, "head": 3, "stalled": 20, "idle": 50, "lingering": 1, "closing": 20}


class One:
    def __init__(self, peer):
        self.peer, self.keyed, self.state, self.since, self.until = peer, False, "silent", 0.0, 1e9

    def body_deadline(self):
        return self.until


STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("join"), st.sampled_from("ab")),
        st.tuples(st.just("move"), st.integers(0, 20), st.sampled_from(LINES)),
        st.tuples(st.just("key"), st.integers(0, 20), st.booleans()),
        st.tuples(st.just("leave"), st.integers(0, 20)),
        st.tuples(st.just("wait"), st.floats(0, 10)),
    ),
    max_size=80,
)


@settings(deadline=None, max_examples=300)
@given(STEPS)
def test_whatever_happens_the_bounds_hold_and_those_without_a_key_go_first(steps):
    crowd, here, now = ConnectionTable(LIMITS, MOST), [], 0.0
    for what, *rest in steps:
        if what == "wait":
            now += rest[0]
        elif what == "join":
            join(crowd, here, One(*rest), now)
        elif here:
            one = here[rest[0] % len(here)]
            if what == "leave":
                here.remove(one)
                crowd.leave(one)
            elif what == "key":
                crowd.note_key_shown(one, keyed=rest[1])
            elif rest[1] != one.state:
                crowd.move_to_state(one, rest[1], now)
                one.since = now
        assert set(crowd) == set(here)
        late = {one for one in here if one.since + SECONDS.get(one.state, 1e9) < now}
        assert set(crowd.overdue_connections(now)) == late
    for one in here:
        crowd.leave(one)
    assert not crowd._of_peer
    assert not crowd._keyless_of


def join(crowd, here, one, now):
    one.since = now
    goes = crowd.join(one, now)
    here.append(one)
    if goes is None:
        assert len(here) <= MOST
        assert sum(each.peer == one.peer for each in here) <= LIMITS.peer_connections
        return
    others = [each for each in here if each is not one]
    near = [each for each in others if each.peer == one.peer]
    assert goes.state != "busy", "somebody was dropped who waits for an answer"
    if goes is one:
        full = near if len(near) >= LIMITS.peer_connections else others
        if sum(not each.keyed for each in near) >= LIMITS.peer_keyless:
            full = [each for each in near if not each.keyed]
        assert all(each.state == "busy" or (each.keyed and each.state != "idle") for each in full)
    elif goes.keyed:
        assert goes.state == "idle", "somebody was dropped who was at work"
        full = near if len(near) >= LIMITS.peer_connections else others
        assert all(each.keyed or each.state == "busy" for each in full)
    here.remove(goes)
    crowd.leave(goes)


def test_a_body_has_the_time_that_it_earns():
    crowd, one = ConnectionTable(LIMITS, MOST), One("a")
    crowd.join(one, 0.0)
    crowd.move_to_state(one, "body", 0.0)
    one.until = 30.0
    assert crowd.overdue_connections(29.0) == []
    assert crowd.overdue_connections(31.0) == [one]


BODIES = st.lists(
    st.tuples(st.integers(0, 400_000), st.sampled_from([None, "a", "b", "c"])), max_size=60
)


@given(BODIES, st.integers(1024, 2_000_000))
def test_reserved_bytes_never_pass_the_total_and_come_back(bodies, total):
    budget, taken = BodyBudget(total), []
    for size, owner in bodies:
        if budget.reserve(size, owner):
            taken.append((size, owner))
        assert budget.reserved == sum(size for size, _ in taken) <= total
        assert budget.held(None) == sum(size for size, owner in taken if owner is None)
        assert budget.held(None) <= total // 16
    for size, owner in taken:
        budget.release(size, owner)
    assert budget.reserved == sum(map(budget.held, [None, "a", "b", "c"])) == 0


@given(BODIES, st.integers(1024, 20_000_000))
def test_whatever_others_hold_a_key_that_holds_nothing_has_a_share(bodies, total):
    budget = BodyBudget(total)
    for size, owner in bodies:
        budget.reserve(size, owner)
    assert budget.reserve(min(total // 32, 256 * 1024), "another")


@given(st.integers(0, 10))
def test_large_bodies_leave_a_quarter_of_a_share_for_small_ones(count):
    budget = BodyBudget(8_000_000)
    for _ in range(count):
        budget.reserve(700_000, "a")
    assert all(budget.reserve(50_000, "a") for _ in range(20))
