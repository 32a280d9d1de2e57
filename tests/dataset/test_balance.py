"""Shares of domains: given, even, or as it comes; nothing is invented."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from upswing.dataset.balance import DomainBalance, domain_quotas, parse_balance
from upswing.errors import Rejected

DOMAINS = ["coding", "general", "research"]
counts = st.dictionaries(st.sampled_from(DOMAINS), st.integers(0, 500), min_size=1)
shares = st.dictionaries(st.sampled_from(DOMAINS), st.floats(0.01, 10), min_size=1)


def test_the_shares_of_a_profile():
    asked = parse_balance({"domain_shares": {"coding": 0.4, "research": 0.3, "general": 0.3}})
    made = domain_quotas({"coding": 900, "research": 900, "general": 900}, 1000, asked)
    assert made.max_per_domain == {"coding": 400, "general": 300, "research": 300}
    assert made.notes == ()


def test_even_means_as_many_of_each_that_there_is():
    made = domain_quotas({"coding": 900, "writing": 20}, 100, parse_balance({"balance": "even"}))
    assert made.max_per_domain == {"coding": 50, "writing": 50}
    assert made.notes == ("writing has 20 of the 50 that its share asks for.",)


def test_shares_are_of_what_there_is_when_that_is_less():
    made = domain_quotas(
        {"coding": 60, "general": 40}, 5000, DomainBalance({"coding": 0.5, "general": 0.5})
    )
    assert made.max_per_domain == {"coding": 50, "general": 50}


def test_without_a_word_they_come_as_they_come():
    assert parse_balance({}) == parse_balance({"balance": "none"}) == DomainBalance()
    assert domain_quotas({"coding": 9}, 5, DomainBalance()) is None


@pytest.mark.parametrize(
    "metadata",
    [
        {"balance": "odd"},
        {"domain_shares": {}},
        {"domain_shares": [0.4]},
        {"domain_shares": {"cooking": 1}},
        {"domain_shares": {"coding": -1}},
        {"domain_shares": {"coding": "much"}},
        {"domain_shares": {"coding": True}},
        {"domain_shares": {"coding": float("nan")}},
        {"domain_shares": {"coding": 0}},
        {"domain_shares": {"coding": 1}, "balance": "even"},
    ],
)
def test_a_wish_that_makes_no_sense_is_refused(metadata):
    with pytest.raises(Rejected):
        parse_balance(metadata)


@given(counts, st.integers(1, 2000), shares)
def test_quotas_add_up_and_are_within_one_of_the_share(have, size, told):
    asked = parse_balance({"domain_shares": told})
    made = domain_quotas(have, size, asked)
    total = min(size, sum(have.values()))
    assert sum(made.max_per_domain.values()) == total
    for domain, share in asked.shares.items():
        assert abs(made.max_per_domain[domain] - share * total) <= 1
