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

from upswing.contracts.steps import finite_number_or_none
from upswing.contracts.trajectory import DOMAINS
from upswing.errors import Reason, Rejected


@dataclass(frozen=True, slots=True)
class DomainBalance:
    """The spec of a request: given shares, even ones, or (neither) as it comes."""

    shares: Mapping[str, float] | None = None
    even: bool = False


UNBALANCED = DomainBalance()


@dataclass(frozen=True, slots=True)
class DomainQuotas:
    """The most that each domain gives; a domain that is not named gives nothing."""

    max_per_domain: Mapping[str, int]
    notes: tuple[str, ...] = ()


def parse_balance(metadata: Mapping[str, Any]) -> DomainBalance:
    """What the request's metadata ask for, or `Rejected`.

    >>> dict(parse_balance({"domain_shares": {"coding": 40, "general": 60}}).shares)
    {'coding': 0.4, 'general': 0.6}
    """
    shares, mode = metadata.get("domain_shares"), metadata.get("balance")
    if mode not in (None, "even", "none"):
        raise Rejected(Reason.SCHEMA, '`metadata.balance` is "even" or "none".')
    if shares is None:
        return DomainBalance(even=mode == "even")
    if mode == "even":
        raise Rejected(Reason.SCHEMA, "Either `domain_shares` or an even balance, not both.")
    if not isinstance(shares, Mapping) or not shares:
        raise Rejected(Reason.SCHEMA, "`metadata.domain_shares` is an object: domain → share.")
    parsed = {str(domain): finite_number_or_none(share) for domain, share in shares.items()}
    for domain, share in parsed.items():
        if domain not in DOMAINS:
            known = ", ".join(sorted(DOMAINS))
            raise Rejected(Reason.SCHEMA, f"`{domain}` is no domain; there are {known}.")
        if share is None or not share >= 0:
            raise Rejected(Reason.SCHEMA, f"The share of `{domain}` is not a number from 0 up.")
    total = sum(share for share in parsed.values() if share is not None)
    if not total > 0:
        raise Rejected(Reason.SCHEMA, "At least one share is greater than 0.")
    return DomainBalance(
        {domain: (share or 0.0) / total for domain, share in sorted(parsed.items())}
    )


def domain_quotas(
    available: Mapping[str, int], size: int, balance: DomainBalance
) -> DomainQuotas | None:
    """What each domain may give, of those that there are; None means as it comes.

    The shares are of `size`, or of everything there is when that is less.

    >>> spec = DomainBalance({"coding": 0.4, "general": 0.3, "research": 0.3})
    >>> domain_quotas({"coding": 900, "general": 500, "research": 10}, 100, spec)
    DomainQuotas(max_per_domain={'coding': 40, 'general': 30, 'research': 30}, notes=('research has 10 of the 30 that its share asks for.',))
    """
    if balance.even:
        shares: Mapping[str, float] = {domain: 1 / len(available) for domain in sorted(available)}
    elif balance.shares is not None:
        shares = balance.shares
    else:
        return None
    most = _round_shares(shares, min(size, sum(available.values())))
    notes = tuple(
        f"{domain} has {available.get(domain, 0)} of the {count} that its share asks for."
        for domain, count in most.items()
        if available.get(domain, 0) < count
    )
    return DomainQuotas(most, notes)


def _round_shares(shares: Mapping[str, float], total: int) -> dict[str, int]:
    """Whole numbers that add up to `total`: the largest remainders are rounded up."""
    exact = {domain: share * total for domain, share in shares.items()}
    counts = {domain: int(value + 1e-9) for domain, value in exact.items()}
    missing = total - sum(counts.values())
    by_rest = sorted(exact, key=lambda domain: (counts[domain] - exact[domain], domain))
    for domain in by_rest[: max(0, missing)]:
        counts[domain] += 1
    return counts
