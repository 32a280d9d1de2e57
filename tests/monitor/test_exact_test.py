"""Fisher's exact test beside counting, and many of them at once beside chance."""

from math import comb, exp, isclose, log

from hypothesis import example, given
from hypothesis import strategies as st

from upswing.monitor.core.exact_test import CountTable, adjusted, looks_that_count

COUNTS = st.integers(0, 60)


def counted(a, b, c, d):
    """The same by counting all tables with these margins."""
    drawn, marked, total = a + b, a + c, a + b + c + d
    ways = comb(total, drawn)
    return sum(
        comb(marked, x) * comb(total - marked, drawn - x)
        for x in range(a, min(drawn, marked) + 1)
        if drawn - x <= total - marked
    ) / max(ways, 1)


@given(COUNTS, COUNTS, COUNTS, COUNTS)
@example(0, 0, 0, 0)
@example(5, 0, 0, 5)
def test_it_is_what_counting_all_tables_says(a, b, c, d):
    assert isclose(exp(CountTable(a, b, c, d).log_p), counted(a, b, c, d), rel_tol=1e-9)


@given(COUNTS, COUNTS, COUNTS, COUNTS)
def test_more_failures_here_are_never_less_significant(a, b, c, d):
    if b and c:  # one failure moves here from there
        assert CountTable(a + 1, b - 1, c - 1, d + 1).log_p <= CountTable(a, b, c, d).log_p + 1e-9


@given(COUNTS, COUNTS, COUNTS, COUNTS)
def test_no_table_is_more_significant_than_its_margins_allow(a, b, c, d):
    table = CountTable(a, b, c, d)
    assert table.log_least <= table.log_p + 1e-9 <= 1e-8


def test_thousands_of_failures_are_told_apart_though_no_float_holds_their_chance():
    many, more = CountTable(900, 100, 10, 3000), CountTable(950, 50, 10, 3000)
    assert more.log_p < many.log_p < -745
    assert adjusted(more.log_p, 100) == 0.0


def test_looks_that_cannot_be_significant_cost_nothing():
    strong, weak = CountTable(9, 1, 0, 90), CountTable(0, 1, 9, 90)
    assert looks_that_count([strong], 0.05) == 1
    assert looks_that_count([strong] + [weak] * 500, 0.05) == 1
    assert looks_that_count([strong] * 40, 0.05) == 40
    assert looks_that_count([], 0.05) == 1


def test_a_chance_is_multiplied_by_the_looks_and_never_above_one():
    assert isclose(adjusted(log(0.001), 10), 0.01)
    assert adjusted(log(0.5), 10) == 1.0
