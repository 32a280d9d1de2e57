"""Which ids of trajectories may only a gateway give?

The client of a gateway hears its episode's id with the first answer, long before the episode is stored. Whoever
hears it too could store something of their own under that id first. So a gateway gives ids of a form that no other
source may use: version 8 of a UUID, which leaves its bits to whoever makes it, with a mark in 26 of them.

    0d4c7a52-7f2e-8a7e-9a7e-6f8d2f0b8a11
                  ┬    ┬
                  └────┴── the mark; the other 96 bits are random
"""

from __future__ import annotations

from uuid import UUID

_MARK = 0x8A7E_9A7E << 48
_FREE = (0xFFFF_FFFF_FFFF << 80) | 0xFFFF_FFFF_FFFF
"""The bits that are not the mark: the first and the last 48."""


def gateway_id(random: UUID) -> UUID:
    """An id that only gateways give, made of the random bits of another.

    >>> str(gateway_id(UUID("0d4c7a52-7f2e-4c39-9a4e-6f8d2f0b8a11")))
    '0d4c7a52-7f2e-8a7e-9a7e-6f8d2f0b8a11'
    """
    return UUID(int=(random.int & _FREE) | _MARK)


def is_gateway_id(trajectory_id: str) -> bool:
    """Has this id the form that only gateways give, however it is spelled?

    >>> is_gateway_id("0D4C7A527F2E8A7E9A7E6F8D2F0B8A11"), is_gateway_id("run-1")
    (True, False)
    """
    try:
        return UUID(trajectory_id).int & ~_FREE == _MARK
    except ValueError:
        return False
