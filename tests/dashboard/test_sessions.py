"""A login holds for a while, a wrong key may be tried a few times, and neither can be used to fill the memory."""

from hypothesis import given
from hypothesis import strategies as some

from upswing.dashboard.core.sessions import (
    AttemptLimits,
    KeyHolder,
    LoginAttempts,
    LoginLimits,
    SessionTable,
)

ANN = KeyHolder("k1", "Ann", "operator")
BOB = KeyHolder("k2", "Bob", "reader")


def test_a_session_is_found_by_its_token_alone():
    table = SessionTable()
    made = table.open("token", "up_secret", ANN, 0.0)
    assert table.find("token", 1.0) is made
    assert table.find("Token", 1.0) is None
    assert "up_secret" not in repr(made)


def test_whoever_only_reads_may_not_act():
    assert ANN.may_act
    assert not BOB.may_act


def test_a_session_ends_when_it_is_too_old_however_often_it_is_used():
    table = SessionTable(LoginLimits(seconds=100, idle_seconds=30))
    table.open("token", "key", ANN, 0.0)
    for now in range(0, 100, 20):
        assert table.find("token", float(now))
    assert table.find("token", 100.0) is None


def test_a_session_ends_when_nobody_uses_it():
    table = SessionTable(LoginLimits(seconds=1000, idle_seconds=30))
    table.open("token", "key", ANN, 0.0)
    assert table.find("token", 29.0)
    assert table.find("token", 60.0) is None


@given(some.lists(some.floats(0, 40), max_size=30), some.booleans())
def test_an_open_page_keeps_a_session_until_it_is_too_old_and_not_a_moment_longer(pauses, closed):
    table = SessionTable(LoginLimits(seconds=100, idle_seconds=30))
    made = table.open("token", "key", ANN, 0.0)
    now = used = 0.0
    for pause in pauses:
        now += pause
        holds = now < 100 and now - used < 30 and not made.ended
        assert table.use(made, now) == holds
        used = now if holds else used
    if closed:
        table.close("token")
        assert not table.use(made, now)


def test_a_session_that_was_closed_is_over_for_whoever_still_holds_it():
    table = SessionTable()
    made = table.open("token", "key", ANN, 0.0)
    assert table.close("token") is made
    assert made.ended
    assert table.find("token", 0.0) is None
    assert table.close("token") is None


def test_more_logins_than_there_is_room_for_end_those_that_nobody_used_for_longest():
    table = SessionTable(LoginLimits(most=3))
    made = [table.open(f"t{n}", "key", ANN, float(n)) for n in range(3)]
    table.find("t0", 3.0)
    table.open("t3", "key", ANN, 4.0)
    assert len(table) == 3
    assert [each.ended for each in made] == [False, True, False]


def test_five_wrong_keys_and_the_sixth_has_to_wait_for_the_first_to_be_a_minute_old():
    attempts = LoginAttempts(AttemptLimits(each=5, seconds=60))
    for now in range(5):
        assert attempts.seconds_until_next("a", float(now)) == 0.0
        attempts.fail("a", float(now))
    assert attempts.seconds_until_next("a", 10.0) == 50.0
    assert attempts.seconds_until_next("b", 10.0) == 0.0
    assert attempts.seconds_until_next("a", 60.0) == 0.0


def test_many_addresses_together_may_not_try_more_than_all_may():
    attempts = LoginAttempts(AttemptLimits(each=5, all=10, seconds=60))
    for number in range(10):
        attempts.fail(f"a{number}", 0.0)
    assert attempts.seconds_until_next("fresh", 1.0) == 59.0


@given(some.lists(some.tuples(some.integers(0, 50), some.floats(0, 0.5)), max_size=300))
def test_no_address_ever_tries_more_than_five_wrong_keys_in_a_minute(tries):
    attempts, now, tried = LoginAttempts(AttemptLimits(each=5, all=60, seconds=60)), 0.0, []
    for address, later in tries:
        now += later
        if not attempts.seconds_until_next(str(address), now):
            attempts.fail(str(address), now)
            tried.append((str(address), now))
    for address, at in tried:
        mine = [t for a, t in tried if a == address and at <= t < at + 60]
        assert len(mine) <= 5
        assert len([t for _, t in tried if at <= t < at + 60]) <= 60


def test_addresses_that_come_and_go_do_not_fill_the_memory():
    attempts = LoginAttempts(AttemptLimits(addresses=10, all=10_000))
    for number in range(1000):
        attempts.fail(f"a{number}", 0.0)
    assert len(attempts._failed) == 10
