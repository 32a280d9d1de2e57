"""Shares of domains: given, even, or as it comes; nothing is invented."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from upswing.dataset.balance import Balance, balance_of, quotas
from upswing.errors import Rejected

DOMAINS = ["coding", "general", "research"]
counts = st.dictionaries(st.sampled_from(DOMAINS), st.integers(0, 500), min_size=1)
shares = st.dictionaries(st.sampled_from(DOMAINS), st.floats(0.01, 10), min_size=1)


def test_the_shares_of_a_profile():
    asked = balance_of({"domain_shares": {"coding": 0.4, "research": 0.3, "general": 0.3}})
    made = quotas({"coding": 900, "research": 900, "general": 900}, 1000, asked)
    assert made.most == {"coding": 400, "general": 300, "research": 300}
    assert made.notes == ()


def test_even_means_as_many_of_each_that_there_is():
    made = quotas({"coding": 900, "writing": 20}, 100, balance_of({"balance": "even"}))
    assert made.most == {"coding": 50, "writing": 50}
    assert made.notes == ("writing has 20 of the 50 that its share asks for.",)


def test_shares_are_of_what_there_is_when_that_is_less():
    made = quotas({"coding": 60, "general": 40}, 5000, Balance({"coding": 0.5, "general": 0.5}))
    assert made.most == {"coding": 50, "general": 50}


def test_without_a_word_they_come_as_they_come():
    assert balance_of({}) == balance_of({"balance": "none"}) == Balance()
    assert quotas({"coding": 9}, 5, Balance()) is None


@pytest.mark.parametrize(
    "metadata",
    [{"balance": "odd"}, {"domain_shares": {}}, {"domain_shares": [0.4]},
     {"domain_shares": {"cooking": 1}}, {"domain_shares": {"coding": -1}},
     {"domain_shares": {"coding": "much"}}, {"domain_shares": {"coding": True}},
     {"domain_shares": {"coding": float("nan")}}, {"domain_shares": {"coding": 0}},
     {"domain_shares": {"coding": 1}, "balance": "even"}],
)  # fmt: skip
def test_a_wish_that_makes_no_sense_is_refused(metadata):
    with pytest.raises(Rejected):
        balance_of(metadata)


@given(counts, st.integers(1, 2000), shares)
def test_quotas_add_up_and_are_within_one_of_the_share(have, size, told):
    asked = balance_of({"domain_shares": told})
    made = quotas(have, size, asked)
    total = min(size, sum(have.values()))
    assert sum(made.most.values()) == total
    for domain, share in asked.shares.items():
        assert abs(made.most[domain] - share * total) <= 1
