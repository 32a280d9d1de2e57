"""The other half of `inflected`: measured, and not read by whoever writes rules."""

from collections.abc import Iterator

from bench.redaction_cases import Case
from bench.redaction_cases.inflected import half


def cases(seed: int, count: int) -> Iterator[Case]:
    yield from half(1, seed, count)
