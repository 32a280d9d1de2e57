"""Is this number real? Checksums of cards, accounts and national identities."""

from __future__ import annotations

import re
from itertools import pairwise

_CARD = re.compile(
    r"4(?:\d{12}|\d{15}|\d{18})|5[1-5]\d{14}|2(?:22[1-9]|2[3-9]\d|[3-6]\d\d|7[01]\d|720)\d{12}"
    r"|3[47]\d{13}|3(?:0[0-5]|[68]\d)\d{11}|6(?:011|4[4-9]\d|5\d\d)\d{12}|35(?:2[89]|[3-8]\d)\d{12}"
    r"|62\d{14,17}|(?:5018|5020|5038|6304|6759|676[1-3])\d{8,15}"
)
_DNI = "TRWAGMYFPDXBNJZSQVHLCKE"
_HETU = "0123456789ABCDEFHJKLMNPRSTUVWXY"
_CF_ODD = dict(
    zip(
        "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ",
        (
            1,
            0,
            5,
            7,
            9,
            13,
            15,
            17,
            19,
            21,
            1,
            0,
            5,
            7,
            9,
            13,
            15,
            17,
            19,
            21,
            2,
            4,
            18,
            20,
            11,
            3,
            6,
            8,
            12,
            14,
            16,
            10,
            22,
            25,
            24,
            23,
        ),
        strict=True,
    )
)
_VERHOEFF_D = (
    "0123456789",
    "1234067895",
    "2340178956",
    "3401289567",
    "4012395678",
    "5987604321",
    "6598710432",
    "7659821043",
    "8765932104",
    "9876543210",
)
_VERHOEFF_P = (
    "0123456789",
    "1576283094",
    "5803796142",
    "8916043527",
    "9453126870",
    "4286573901",
    "2793806415",
    "7046913258",
)


def digits_of(value: str) -> list[int]:
    return [int(ch) for ch in value if ch in "0123456789"]


def _weighted_sum(value: list[int], weights: tuple[int, ...]) -> int:
    return sum(d * w for d, w in zip(value, weights, strict=False))


def passes_luhn(value: str) -> bool:
    """The last digit of cards and many other numbers.

    >>> passes_luhn("79927398713"), passes_luhn("79927398710")
    (True, False)
    """
    total = 0
    for i, d in enumerate(reversed(digits_of(value))):
        total += d if i % 2 == 0 else (d * 2 - 9 if d > 4 else d * 2)
    return total % 10 == 0


def is_payment_card(value: str) -> bool:
    plain = "".join(map(str, digits_of(value)))
    return bool(_CARD.fullmatch(plain)) and passes_luhn(plain)


def is_iban(value: str) -> bool:
    plain = re.sub(r"[^A-Za-z0-9]", "", value).upper()
    if not 15 <= len(plain) <= 34:
        return False
    return int("".join(str(int(ch, 36)) for ch in plain[4:] + plain[:4])) % 97 == 1


def is_us_ssn(value: str) -> bool:
    area, group, serial = value[:3], value[4:6], value[7:]
    return area not in ("000", "666") and area < "900" and group != "00" and serial != "0000"


def is_spanish_dni(value: str) -> bool:
    plain = value.replace("-", "").upper()
    number = plain[:-1].translate(str.maketrans("XYZ", "012"))
    return _DNI[int(number) % 23] == plain[-1]


def is_italian_codice_fiscale(value: str) -> bool:
    plain = value.upper()
    total = sum(
        _CF_ODD[ch] if i % 2 == 0 else (int(ch) if ch.isdigit() else ord(ch) - 65)
        for i, ch in enumerate(plain[:15])
    )
    return chr(65 + total % 26) == plain[15]


def is_french_nir(value: str) -> bool:
    plain = value.replace(" ", "").upper().replace("2A", "19").replace("2B", "18")
    return 97 - int(plain[:13]) % 97 == int(plain[13:])


def is_german_steuer_id(value: str) -> bool:
    plain = digits_of(value)
    product = 10
    for d in plain[:10]:
        product = ((d + product) % 10 or 10) * 2 % 11
    repeats = max(plain[:10].count(d) for d in range(10))
    return plain[0] != 0 and repeats in (2, 3) and (11 - product) % 10 == plain[10]


def is_dutch_bsn(value: str) -> bool:
    return _weighted_sum(digits_of(value), (9, 8, 7, 6, 5, 4, 3, 2, -1)) % 11 == 0


def is_brazilian_cpf(value: str) -> bool:
    d = digits_of(value)
    if len(set(d)) == 1:
        return False
    first = _weighted_sum(d[:9], tuple(range(10, 1, -1))) * 10 % 11 % 10
    second = _weighted_sum(d[:10], tuple(range(11, 1, -1))) * 10 % 11 % 10
    return d[9:] == [first, second]


def is_polish_pesel(value: str) -> bool:
    d = digits_of(value)
    return (10 - _weighted_sum(d[:10], (1, 3, 7, 9, 1, 3, 7, 9, 1, 3)) % 10) % 10 == d[10]


def _is_calendar_date(month: str, day: str) -> bool:
    return 1 <= int(month) <= 12 and 1 <= int(day) <= 31


def is_swedish_personnummer(value: str) -> bool:
    plain = value.replace("-", "").replace("+", "")[-10:]
    return _is_calendar_date(plain[2:4], plain[4:6]) and passes_luhn(plain)


def is_finnish_hetu(value: str) -> bool:
    number = int(value[:6] + value[7:10])
    return _is_calendar_date(value[2:4], value[:2]) and _HETU[number % 31] == value[10].upper()


def passes_verhoeff(value: str) -> bool:
    state = 0
    for i, d in enumerate(reversed(digits_of(value))):
        state = int(_VERHOEFF_D[state][int(_VERHOEFF_P[i % 8][d])])
    return state == 0 and len(set(value)) > 3


def is_chinese_resident_id(value: str) -> bool:
    weights = tuple(2 ** (17 - i) % 11 for i in range(17))
    return (
        _is_calendar_date(value[10:12], value[12:14])
        and "10X98765432"[_weighted_sum(digits_of(value[:17]), weights) % 11] == value[17].upper()
    )


def is_uk_nino(value: str) -> bool:
    head = value[:2].upper()
    return head not in ("BG", "GB", "NK", "KN", "TN", "NT", "ZZ")


def is_phone_number(value: str) -> bool:
    """Enough digits, and not a run such as 0000000 or 1234567."""
    plain = digits_of(value)
    steps = {b - a for a, b in pairwise(plain[-7:])}
    return 8 <= len(plain) <= 15 and len(set(plain)) > 3 and steps != {1}


def is_french_phone_number(value: str) -> bool:
    """Five pairs of digits that are no series: `06 12 34 56 78`, and not `01 02 03 04 05`."""
    pairs = [int(pair) for pair in re.split("[ .]", value)]
    steps = {b - a for a, b in pairwise(pairs[1:])}
    return len(set(digits_of(value))) > 3 and not (len(steps) == 1 and steps <= {0, 1, 2, 5, 10})


def is_international_phone_number(value: str) -> bool:
    """With its country code: enough digits, and not a run as a whole.

    >>> is_international_phone_number("+4915123456789"), is_international_phone_number("+1234567890")
    (True, False)
    """
    plain = digits_of(value)
    steps = [b - a for a, b in pairwise(plain)]
    return 8 <= len(plain) <= 15 and len(set(plain)) > 3 and len([s for s in steps if s != 1]) > 1


def is_swiss_ahv(value: str) -> bool:
    """The number of the Swiss old-age insurance: thirteen digits, the last one as in EAN-13."""
    d = digits_of(value)
    return len(d) == 13 and _weighted_sum(d, (1, 3) * 6 + (1,)) % 10 == 0


def _weighted_digit_sum(numbers: list[int], weights: tuple[int, ...]) -> int:
    products = (n * w for n, w in zip(numbers, weights, strict=False))
    return sum(p // 10 + p % 10 for p in products)


def is_german_pension_number(value: str) -> bool:
    """German pension insurance: area, birth date, letter, serial, check digit.

    >>> is_german_pension_number("15 070649 C 103")
    True
    """
    plain = re.sub(r"[^A-Za-z0-9]", "", value).upper()
    if not re.fullmatch(r"[0-9]{8}[A-Z][0-9]{3}", plain):
        return False
    numbers = [int(n) for n in plain[:8] + f"{ord(plain[8]) - 64:02d}" + plain[9:11]]
    return _weighted_digit_sum(numbers, (2, 1, 2, 5, 7, 1, 2, 1, 2, 1, 2, 1)) % 10 == int(plain[11])


def is_german_health_number(value: str) -> bool:
    """German health insurance: a letter, eight digits, a check digit."""
    plain = value.replace(" ", "").upper()
    if not re.fullmatch(r"[A-Z][0-9]{9}", plain):
        return False
    numbers = [int(n) for n in f"{ord(plain[0]) - 64:02d}" + plain[1:9]]
    return _weighted_digit_sum(numbers, (1, 2) * 5) % 10 == int(plain[9])


def is_austrian_insurance_number(value: str) -> bool:
    """Austrian social insurance: serial, check digit, birth date."""
    d = digits_of(value)
    if len(d) != 10:
        return False
    return _weighted_sum(d[:3] + d[4:], (3, 7, 9, 5, 8, 4, 2, 1, 6)) % 11 == d[3]
