"""Which phone numbers are unmistakable as they are written in their country, without a word beside them?

Not here: forms that other numbers have too. `612 345 678` may be a Spanish mobile or a number in the millions, and
four pairs of digits may be a Danish phone or anything: those need a word (`phone-word`).
"""

from __future__ import annotations

import re
from itertools import pairwise

from . import checks
from .build import fixed_shape_rule
from .rule import Rule

_STEPS = frozenset((0, 1, 2, 5, 10))


def _is_phone_number(value: str) -> bool:
    """Enough different digits, and no series such as `01 02 03 04 05`."""
    groups = [int(group) for group in re.findall("[0-9]+", value)[1:]]
    steps = {b - a for a, b in pairwise(groups)}
    counted = len(groups) > 2 and len(steps) == 1 and steps <= _STEPS
    return 8 <= len(checks.digits_of(value)) <= 12 and len(set(value)) > 4 and not counted


def _national_phone_rule(
    name: str, pattern: str, shapes: tuple[tuple[str, int], ...], example: str, about: str
) -> Rule:
    return fixed_shape_rule(
        name,
        pattern + r"(?![ .\-][0-9])",
        shapes,
        kind="phone",
        validator=_is_phone_number,
        example=example,
        priority=24,
        about=about,
    )


RULES = (
    _national_phone_rule(
        "phone-mobile-de",
        r"01[5-7][0-9](?:[ ][0-9]{6,8}|(?:[ ][0-9]{2}){4}|[ ][0-9]{2,4}[ ][0-9]{2,5}(?:[ ][0-9]{2,3})?)",
        ((r"01[5-7][0-9] [0-9]{6}", 11), (r"01[5-7][0-9] [0-9]{2} [0-9]{2}", 10), (r"01[5-7][0-9] [0-9]{3} [0-9]{2}", 11), (r"01[5-7][0-9] [0-9]{4} [0-9]{2}", 12)),
        "0171 2345" + "987", "German mobile numbers with spaces",
    ),
    _national_phone_rule(
        "phone-mobile-nl",
        r"06[ \-](?:[1-9][0-9]{7}|[1-9][0-9]{3}[ ][0-9]{4})",
        ((r"06[ -][1-9][0-9]{7}", 11), (r"06[ -][1-9][0-9]{3} [0-9]{4}", 12)),
        "06 1234" + "9876", "Dutch mobile numbers",
    ),
    _national_phone_rule(
        "phone-mobile-es",
        r"[67][0-9]{2}(?:[ ][0-9]{2}){3}",
        ((r"[67][0-9]{2} [0-9]{2} [0-9]{2} [0-9]{2}", 12),),
        "612 34 98 " + "71", "Spanish mobile numbers in pairs",
    ),
    _national_phone_rule(
        "phone-mobile-it",
        r"3[1-9][0-9][ ](?:[0-9]{7}|[0-9]{3}[ ][0-9]{4})",
        ((r"3[1-9][0-9] [0-9]{7}", 11), (r"3[1-9][0-9] [0-9]{3} [0-9]{4}", 12)),
        "347 1234" + "987", "Italian mobile numbers",
    ),
    _national_phone_rule(
        "phone-mobile-pl",
        r"[4-8][0-9]{2}-[0-9]{3}-[0-9]{3}",
        ((r"[4-8][0-9]{2}-[0-9]{3}-[0-9]{3}", 11),),
        "601-234-" + "987", "Polish mobile numbers with dashes",
    ),
    _national_phone_rule(
        "phone-mobile-nordic",
        r"0(?:7[02369]-[0-9]{3}[ ]?[0-9]{2}[ ]?[0-9]{2}|[45][0-9][ ][0-9]{3}[ ][0-9]{4}|[45][0-9][ ][0-9]{7})",
        ((r"07[02369]-[0-9]{3} [0-9]{2} [0-9]{2}", 13), (r"07[02369]-[0-9]{7}", 11), (r"0[45][0-9] [0-9]{3} [0-9]{4}", 12), (r"0[45][0-9] [0-9]{7}", 11)),
        "070-123 98 " + "76", "Swedish and Finnish mobile numbers",
    ),
    _national_phone_rule(
        "phone-mobile-hu",
        r"06[ \-](?:20|30|31|50|70)[ \-](?:[0-9]{3}[ \-][0-9]{4}|[0-9]{3}[ \-][0-9]{2}[ \-][0-9]{2})",
        ((r"06[ -][2357][01][ -][0-9]{3}[ -][0-9]{4}", 14), (r"06[ -][2357][01][ -][0-9]{3}[ -][0-9]{2}[ -][0-9]{2}", 15)),
        "06 30 123 " + "9876", "Hungarian mobile numbers",
    ),
    _national_phone_rule(
        "phone-mobile-ru",
        r"8[ \-]?\(?9[0-9]{2}\)?[ \-][0-9]{3}[ \-][0-9]{2}[ \-][0-9]{2}",
        ((r"8[ -]9[0-9]{2}[ -][0-9]{3}[ -][0-9]{2}[ -][0-9]{2}", 15), (r"8 \(9[0-9]{2}\) [0-9]{3}[ -][0-9]{2}[ -][0-9]{2}", 17), (r"8\(9[0-9]{2}\) [0-9]{3}[ -][0-9]{2}[ -][0-9]{2}", 16)),
        "8 916 123 98 " + "76", "Russian mobile numbers",
    ),
    _national_phone_rule(
        "phone-zero-led",
        r"0(?:[2-9][0-9]{1,2}[ ](?:[0-9]{3}[ ][0-9]{2}[ ][0-9]{2}|[0-9]{3}[ ][0-9]{3,4})|[26][ ][0-9]{3,4}[ ][0-9]{4})",
        (*tuple((rf"0[2-9]{area} {rest}", 3 + n + m) for area, n in (("[0-9]", 1), ("[0-9]{2}", 2)) for rest, m in ((r"[0-9]{3} [0-9]{2} [0-9]{2}", 9), (r"[0-9]{3} [0-9]{3}", 7))), (r"0[26] [0-9]{3} [0-9]{4}", 11), (r"0[26] [0-9]{4} [0-9]{4}", 12)),
        "0722 123 " + "987", "Turkish, Romanian, Bulgarian, Ukrainian, Italian and other numbers with a leading zero",
    ),
)  # fmt: skip
