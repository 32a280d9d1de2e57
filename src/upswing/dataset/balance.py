"""How many trajectories of each domain?

A request may say so in its metadata: `domain_shares` such as `{"coding": 0.4, "research": 0.3,
"general": 0.3}`, or `balance: "even"` for as many of each. Without a word they are taken as they
come. A domain that has too few gives what it has: nothing is repeated, and nothing of another
domain takes its place.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from upswing.contracts.steps import number
from upswing.contracts.trajectory import DOMAINS
from upswing.errors import Reason, Rejected


@dataclass(frozen=True, slots=True)
class Balance:
    """The wish of a request: given shares, even ones, or (neither) as it comes."""

    shares: Mapping[str, float] | None = None
    even: bool = False


AS_IT_COMES = Balance()


@dataclass(frozen=True, slots=True)
class Quotas:
    """The most that each domain gives; a domain that is not named gives nothing."""

    most: Mapping[str, int]
    notes: tuple[str, ...] = ()


def balance_of(metadata: Mapping[str, Any]) -> Balance:
    """What the request's metadata ask for, or `Rejected`.

    >>> dict(balance_of({"domain_shares": {"coding": 40, "general": 60}}).shares)
    {'coding': 0.4, 'general': 0.6}
    """
    shares, word = metadata.get("domain_shares"), metadata.get("balance")
    if word not in (None, "even", "none"):
        raise Rejected(Reason.SCHEMA, '`metadata.balance` is "even" or "none".')
    if shares is None:
        return Balance(even=word == "even")
    if word == "even":
        raise Rejected(Reason.SCHEMA, "Either `domain_shares` or an even balance, not both.")
    if not isinstance(shares, Mapping) or not shares:
        raise Rejected(Reason.SCHEMA, "`metadata.domain_shares` is an object: domain → share.")
    told = {str(domain): number(share) for domain, share in shares.items()}
    for domain, share in told.items():
        if domain not in DOMAINS:
            known = ", ".join(sorted(DOMAINS))
            raise Rejected(Reason.SCHEMA, f"`{domain}` is no domain; there are {known}.")
        if share is None or not share >= 0:
            raise Rejected(Reason.SCHEMA, f"The share of `{domain}` is not a number from 0 up.")
    total = sum(share for share in told.values() if share is not None)
    if not total > 0:
        raise Rejected(Reason.SCHEMA, "At least one share is greater than 0.")
    return Balance({domain: (share or 0.0) / total for domain, share in sorted(told.items())})


def quotas(have: Mapping[str, int], size: int, balance: Balance) -> Quotas | None:
    """What each domain may give, of those that there are; None means as it comes.

    The shares are of `size`, or of everything there is when that is less.

    >>> wish = Balance({"coding": 0.4, "general": 0.3, "research": 0.3})
    >>> quotas({"coding": 900, "general": 500, "research": 10}, 100, wish)
    Quotas(most={'coding': 40, 'general': 30, 'research': 30}, notes=('research has 10 of the 30 that its share asks for.',))
    """
    if balance.even:
        shares: Mapping[str, float] = {domain: 1 / len(have) for domain in sorted(have)}
    elif balance.shares is not None:
        shares = balance.shares
    else:
        return None
    most = _rounded(shares, min(size, sum(have.values())))
    notes = tuple(
        f"{domain} has {have.get(domain, 0)} of the {count} that its share asks for."
        for domain, count in most.items()
        if have.get(domain, 0) < count
    )
    return Quotas(most, notes)


def _rounded(shares: Mapping[str, float], total: int) -> dict[str, int]:
    """Whole numbers that add up to `total`: the largest remainders are rounded up."""
    exact = {domain: share * total for domain, share in shares.items()}
    counts = {domain: int(value + 1e-9) for domain, value in exact.items()}
    missing = total - sum(counts.values())
    by_rest = sorted(exact, key=lambda domain: (counts[domain] - exact[domain], domain))
    for domain in by_rest[: max(0, missing)]:
        counts[domain] += 1
    return counts
