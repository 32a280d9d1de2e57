"""Cron expressions: against a calendar that is walked minute by minute, and against nonsense."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from upswing.errors import Misuse
from upswing.trigger.core.cron import parse_cron

START = datetime(2024, 2, 27, tzinfo=UTC)
MINUTE = timedelta(minutes=1)


def matches(cron, moment):
    """What the definition says, field by field."""
    return (
        moment.minute in cron.minutes
        and moment.hour in cron.hours
        and moment.month in cron.months
        and cron.fires_on(moment.date())
    )


@st.composite
def fields(draw, low, high):
    def item():
        first = draw(st.integers(low, high))
        last = draw(st.integers(first, high))
        step = draw(st.integers(1, high))
        return draw(
            st.sampled_from(
                [
                    "*",
                    f"*/{step}",
                    f"{first}",
                    f"{first}-{last}",
                    f"{first}-{last}/{step}",
                    f"{first}/{step}",
                ]
            )
        )

    return ",".join(item() for _ in range(draw(st.integers(1, 3))))


EXPRESSIONS = st.builds(
    lambda *parts: " ".join(parts),
    fields(0, 59),
    fields(0, 23),
    fields(1, 28),
    fields(1, 12),
    fields(0, 7),
)
MOMENTS = st.integers(0, 3 * 24 * 60).map(lambda minutes: START + minutes * MINUTE)


@given(EXPRESSIONS, MOMENTS, st.integers(0, 2 * 24 * 60))
def test_the_newest_slot_is_the_last_minute_that_matches(text, until, back):
    cron = parse_cron(text)
    after = until - back * MINUTE
    walked = (until - n * MINUTE for n in range(back))
    assert cron.newest(after, until) == next((at for at in walked if matches(cron, at)), None)


@given(EXPRESSIONS, MOMENTS)
def test_the_next_slot_matches_and_nothing_between_does(text, after):
    cron = parse_cron(text)
    found = cron.next(after)
    assert found is not None
    assert matches(cron, found)
    assert cron.newest(after, found) == found
    assert cron.newest(after, found - timedelta(seconds=1)) is None


@given(st.text(alphabet="0123456789*/-, @abcdefg٣", max_size=25))
@example("")
@example("* * * *")
@example("* * * * * *")
@example("*/0 * * * *")
@example("5-1 * * * *")
@example("0 2 30 2 *")
@example("0 2 31 4,6 *")
@example("99999999999 * * * *")
@example("-1 * * * *")
@example("1- * * * *")
@example("a * * * *")
@example("0 24 * * *")
@example("0 0 0 * *")
@example("0 0 * 13 *")
@example("0 0 * * 8")
@example(", * * * *")
@example("@reboot")
@example("٣ * * * *")
def test_a_text_is_a_schedule_or_gets_one_sentence(text):
    try:
        cron = parse_cron(text)
    except Misuse as error:
        cron, sentence = None, str(error)
    if cron:
        assert cron.next(START) is not None
    else:
        assert sentence.startswith("The schedule ")
        assert sentence.endswith(".")


@pytest.mark.parametrize(
    ("text", "same"),
    [
        ("@daily", "0 0 * * *"),
        ("0 2 * JAN-Mar Mon", "0 2 * 1-3 1"),
        ("0 2 * * sun", "0 2 * * 7"),
        ("0 2 * * fri-sun", "0 2 * * 0,5,6"),
        ("  0   2 * * * ", "0 2 * * *"),
        ("*/20 * * * *", "0,20,40 * * * *"),
        ("10/20 * * * *", "10,30,50 * * * *"),
    ],
)
def test_two_ways_to_say_the_same(text, same):
    one, two = parse_cron(text), parse_cron(same)
    assert [one.minutes, one.hours, one.days, one.months, one.weekdays, one.either_day] == [
        two.minutes,
        two.hours,
        two.days,
        two.months,
        two.weekdays,
        two.either_day,
    ]


def test_when_both_days_are_restricted_either_will_do():
    cron = parse_cron("0 0 13 * fri")
    assert cron.fires_on(datetime(2024, 2, 13, tzinfo=UTC).date())  # a Tuesday
    assert cron.fires_on(datetime(2024, 2, 16, tzinfo=UTC).date())  # a Friday
    assert not cron.fires_on(datetime(2024, 2, 14, tzinfo=UTC).date())


def test_a_leap_day_is_waited_for():
    cron = parse_cron("0 0 29 2 *")
    assert cron.next(datetime(2024, 3, 1, tzinfo=UTC)) == datetime(2028, 2, 29, tzinfo=UTC)


def test_a_week_asleep_is_made_up_for_once():
    cron = parse_cron("0 2 * * *")
    slot = cron.newest(datetime(2025, 12, 1, 2, tzinfo=UTC), datetime(2025, 12, 8, 9, tzinfo=UTC))
    assert slot == datetime(2025, 12, 8, 2, tzinfo=UTC)
    assert cron.newest(slot, datetime(2025, 12, 8, 9, tzinfo=UTC)) is None


def test_a_clock_that_was_set_back_fires_nothing():
    cron = parse_cron("* * * * *")
    assert cron.newest(START, START - timedelta(days=400)) is None
