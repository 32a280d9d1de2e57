"""Made-up people's numbers of ten countries, with right checksums where a number has one."""

import ipaddress
import random
import string

from bench.redaction_cases._heldout_fill import Entry, Maker, Value

PLACES = ("DE", "AT", "CH", "FR", "UK", "US", "IN", "BR", "JP", "CN")

# `#` is any digit, `+` one of 2 to 9; the other characters are themselves.
_PHONES = {
    "DE": "0171 +######|+49 171 +######|030/+######|(030) +## ## ##|0049 89 +#####-##|0221-+######|+49 (0)40 +#####|+49151+#######|0160/+######|040 - +## ## ##",
    "AT": "0664 +######|+43 664 +## ## ##|0676/+######|+43 1 +######|01 / +## ## ##|0043 699 +#######|+43 (0)512 +#####",
    "CH": "079 +## ## ##|+41 79 +## ## ##|044 +## ## ##|0041 76 +## ## ##|+41 (0)31 +## ## ##|078/+## ## ##|+4179+######",
    "FR": "06 +# ## ## ##|+33 6 +# ## ## ##|01.+#.##.##.##|06+#######|+33 (0)1 +# ## ## ##|07-+#-##-##-##|0033 6 +# ## ## ##",
    "UK": "07911 +#####|+44 7911 +#####|020 7+## ####|(0161) +## ####|+44 (0)20 7+## ####|07+## ######|0044 7+## ######|01632 +#####",
    "US": "(415) +##-####|312-+##-####|+1 646 +## ####|503.+##.####|+1 (212) +##-####|1-703-+##-####|+1617+######",
    "IN": "+91 98+## #####|098+## #####|98+#######|+91-97+##-#####|080-+### ####|+91 (22) +### ####|9+## ### ###",
    "BR": "(11) 9+###-####|+55 11 9+###-####|21 9+### ####|(31) +###-####|+55 (41) 9+###-####|0xx11 9+###-####|(51)9+###-####",
    "JP": "090-+###-####|03-+###-####|+81 90-+###-####|(06) +###-####|080+#######|+81-3-+###-####|070 +### ####",
    "CN": "138 +### ####|139+#######|+86 137-+###-####|010-+#######|(021) +### ####|+86 15+ #### ####|0755-+#######",
}


def digits(rng: random.Random, count: int) -> str:
    return "".join(rng.choices(string.digits, k=count))


def _phone(rng: random.Random, entry: Entry) -> Value:
    shape = rng.choice(_PHONES[entry.place].split("|"))
    # A leading plus is the one of an international number.
    body = "".join(
        rng.choice("23456789") if c == "+" and at else digits(rng, 1) if c == "#" else c
        for at, c in enumerate(shape)
    )
    return Value(body, parts=(body, body[-8:]))


def luhn(number: str) -> str:
    """The digit that makes the number pass."""
    doubled = [int(c) * (2 if at % 2 == 0 else 1) for at, c in enumerate(reversed(number))]
    return str(-sum(d - 9 if d > 9 else d for d in doubled) % 10)


def _card(rng: random.Random, _entry: Entry) -> Value:
    start, length = rng.choice((("4", 16), ("4", 16), ("53", 16), ("2221", 16), ("37", 15)))
    body = start + digits(rng, length - 1 - len(start))
    plain = body + luhn(body)
    groups = (4, 6, 5) if length == 15 else (4, 4, 4, 4)
    return Value(_grouped(plain, groups, rng.choice(("", " ", "-"))))


def _grouped(text: str, sizes: tuple[int, ...], between: str) -> str:
    parts, at = [], 0
    for size in sizes:
        parts.append(text[at : at + size])
        at += size
    return between.join(part for part in [*parts, text[at:]] if part)


def iban(rng: random.Random, country: str) -> str:
    """An account number with its two check digits."""
    shapes = {
        "DE": "9" * 18,
        "AT": "9" * 16,
        "CH": "9" * 17,
        "FR": "9" * 21 + "99",
        "UK": "A" * 4 + "9" * 14,
        "BR": "9" * 23 + "AA",
        "NL": "A" * 4 + "9" * 10,
        "ES": "9" * 20,
        "IT": "A" + "9" * 22,
    }
    code = {"UK": "GB"}.get(country, country)
    body = "".join(
        rng.choice(string.digits if c == "9" else string.ascii_uppercase) for c in shapes[country]
    )
    number = int("".join(str(int(c, 36)) for c in body + code + "00"))
    return f"{code}{98 - number % 97:02}{body}"


def _iban(rng: random.Random, entry: Entry) -> Value:
    country = entry.place if entry.place in {"DE", "AT", "CH", "FR", "UK", "BR"} else "NL"
    plain = iban(rng, rng.choice((country, country, country, "ES", "IT")))
    fours = tuple([4] * (len(plain) // 4))
    return Value(
        rng.choice(
            (
                plain,
                _grouped(plain, fours, " "),
                _grouped(plain, fours, " "),
                _grouped(plain, fours, "-"),
                _grouped(plain, fours, "\u00a0"),
                _grouped(plain, (2, 2, 8), " "),
                _grouped(plain, (4, 3, 5), " "),
                plain.lower(),
                _grouped(plain.lower(), fours, " "),
            )
        )
    )


def _ahv(rng: random.Random) -> str:
    body = "756" + digits(rng, 9)
    check = -sum(int(c) * (1, 3)[at % 2] for at, c in enumerate(body)) % 10
    plain = f"{body}{check}"
    return rng.choice(
        (_grouped(plain, (3, 4, 4, 2), "."), _grouped(plain, (3, 4, 4, 2), " "), plain)
    )


def _german_tax(rng: random.Random) -> str:
    """Ten digits of which one stands twice, then the check digit of ISO 7064, MOD 11,10."""
    chosen = rng.sample(string.digits, 9)
    chosen.append(chosen[rng.randrange(9)])
    rng.shuffle(chosen)
    if chosen[0] == "0":
        place = next(at for at, c in enumerate(chosen) if c != "0")
        chosen[0], chosen[place] = chosen[place], chosen[0]
    product = 10
    for c in chosen:
        total = (int(c) + product) % 10 or 10
        product = total * 2 % 11
    plain = "".join(chosen) + str((11 - product) % 10)
    return rng.choice((plain, _grouped(plain, (2, 3, 3, 3), " ")))


def _cross(number: int) -> int:
    return number // 10 + number % 10


def _german_pension(rng: random.Random) -> str:
    letter = rng.choice(string.ascii_uppercase)
    area = rng.choice(("12", "15", "24", "53", "65"))
    born = f"{rng.randint(1, 28):02}{rng.randint(1, 12):02}{rng.randint(40, 99)}"
    serial = f"{rng.randint(0, 99):02}"
    as_digits = f"{area}{born}{ord(letter) - 64:02}{serial}"
    weights = (2, 1, 2, 5, 7, 1, 2, 1, 2, 1, 2, 1)
    check = sum(_cross(int(c) * w) for c, w in zip(as_digits, weights, strict=True)) % 10
    plain = f"{area}{born}{letter}{serial}{check}"
    return rng.choice((plain, _grouped(plain, (2, 6, 1, 3), " ")))


def _german_health(rng: random.Random) -> str:
    letter, body = rng.choice(string.ascii_uppercase), digits(rng, 8)
    as_digits = f"{ord(letter) - 64:02}{body}"
    check = sum(_cross(int(c) * (1, 2)[at % 2]) for at, c in enumerate(as_digits)) % 10
    return f"{letter}{body}{check}"


def _austrian_insurance(rng: random.Random) -> str:
    while True:
        serial = str(rng.randint(100, 999))
        born = f"{rng.randint(1, 28):02}{rng.randint(1, 12):02}{rng.randint(40, 99)}"
        weights = (3, 7, 9, 5, 8, 4, 2, 1, 6)
        check = sum(int(c) * w for c, w in zip(serial + born, weights, strict=True)) % 11
        if check < 10:
            return f"{serial}{check}{rng.choice(('', ' '))}{born}"


def _french_insurance(rng: random.Random) -> str:
    body = f"{rng.choice('12')}{rng.randint(40, 99)}{rng.randint(1, 12):02}{rng.randint(1, 95):02}{digits(rng, 6)}"
    key = f"{97 - int(body) % 97:02}"
    return rng.choice((body + key, _grouped(body + key, (1, 2, 2, 2, 3, 3, 2), " ")))


def _nino(rng: random.Random) -> str:
    made = rng.choice(("AB", "CE", "JN", "PK", "SY", "WM")) + digits(rng, 6) + rng.choice("ABCD")
    return rng.choice((made, _grouped(made, (2, 2, 2, 2, 1), " ")))


def _nhs(rng: random.Random) -> str:
    while True:
        body = digits(rng, 9)
        check = 11 - sum(int(c) * (10 - at) for at, c in enumerate(body)) % 11
        if check != 10:
            return _grouped(f"{body}{check % 11}", (3, 3, 4), " ")


def _ssn(rng: random.Random) -> str:
    return f"{rng.randint(100, 665)}-{rng.randint(10, 99)}-{rng.randint(1000, 9999)}"


def _verhoeff(number: str) -> str:
    """The check digit of the dihedral group, as Aadhaar uses it."""

    def times(a: int, b: int) -> int:
        if a < 5:
            return (a + b) % 5 if b < 5 else 5 + (a + b - 5) % 5
        return 5 + (a - 5 - b) % 5 if b < 5 else (a - b) % 5

    rows = [list(range(10)), [1, 5, 7, 6, 2, 8, 3, 0, 9, 4]]
    while len(rows) < 8:
        rows.append([rows[-1][rows[1][at]] for at in range(10)])
    check = 0
    for at, c in enumerate(reversed(number), 1):
        check = times(check, rows[at % 8][int(c)])
    return str(next(d for d in range(10) if times(check, rows[0][d]) == 0))


def _aadhaar(rng: random.Random) -> str:
    body = rng.choice("23456789") + digits(rng, 10)
    return _grouped(body + _verhoeff(body), (4, 4, 4), rng.choice((" ", " ", "", "-")))


def _cpf(rng: random.Random) -> str:
    body = digits(rng, 9)
    for _ in range(2):
        weight = len(body) + 1
        rest = sum(int(c) * (weight - at) for at, c in enumerate(body)) % 11
        body += str(0 if rest < 2 else 11 - rest)
    return rng.choice((body, f"{body[:3]}.{body[3:6]}.{body[6:9]}-{body[9:]}"))


def _my_number(rng: random.Random) -> str:
    body = digits(rng, 11)
    rest = (
        sum(int(c) * (at + 1 if at <= 6 else at - 5) for at, c in enumerate(reversed(body), 1)) % 11
    )
    plain = f"{body}{0 if rest <= 1 else 11 - rest}"
    return rng.choice((plain, _grouped(plain, (4, 4, 4), " "), _grouped(plain, (4, 4, 4), "-")))


def _chinese_id(rng: random.Random) -> str:
    area = rng.choice(("110105", "310115", "440305", "510107", "330106"))
    born = f"{rng.randint(1950, 2004)}{rng.randint(1, 12):02}{rng.randint(1, 28):02}"
    body = area + born + digits(rng, 3)
    weights = (7, 9, 10, 5, 8, 4, 2, 1, 6, 3, 7, 9, 10, 5, 8, 4, 2)
    return body + "10X98765432"[sum(int(c) * w for c, w in zip(body, weights, strict=True)) % 11]


def _german_passport(rng: random.Random) -> str:
    body = rng.choice("CFGHJK") + "".join(rng.choices("CFGHJKLMNPRTVWXYZ0123456789", k=8))
    return body + str(sum(int(c, 36) * (7, 3, 1)[at % 3] for at, c in enumerate(body)) % 10)


def _passport(rng: random.Random, entry: Entry) -> Value:
    letters = string.ascii_uppercase
    two = "".join(rng.choices(letters, k=2))
    return Value(
        {
            "DE": lambda: _german_passport(rng)[: rng.choice((9, 10))],
            "AT": lambda: rng.choice("PU") + digits(rng, 7),
            "CH": lambda: rng.choice("XSC") + digits(rng, 7),
            "FR": lambda: digits(rng, 2) + two + digits(rng, 5),
            "UK": lambda: digits(rng, 9),
            "US": lambda: rng.choice(string.digits + "ABC") + digits(rng, 8),
            "IN": lambda: rng.choice(letters) + digits(rng, 7),
            "BR": lambda: two + digits(rng, 6),
            "JP": lambda: rng.choice(("TK", "TR", "MZ")) + digits(rng, 7),
            "CN": lambda: rng.choice("EG") + digits(rng, 8),
        }[entry.place]()
    )


_MONTHS = {
    "en": "January February March April May June July August September October November December",
    "de": "Januar Februar März April Mai Juni Juli August September Oktober November Dezember",
    "fr": "janvier février mars avril mai juin juillet août septembre octobre novembre décembre",
    "pt": "janeiro fevereiro março abril maio junho julho agosto setembro outubro novembro dezembro",
}


def _birth(rng: random.Random, entry: Entry) -> Value:
    year, month, day = rng.randint(1938, 2009), rng.randint(1, 12), rng.randint(1, 28)
    name = _MONTHS.get(entry.language, _MONTHS["en"]).split()[month - 1]
    iso = f"{year}-{month:02}-{day:02}"
    forms = {
        "de": (
            f"{day:02}.{month:02}.{year}",
            f"{day}. {name} {year}",
            f"{day}.{month}.{year % 100:02}",
        ),
        "fr": (
            f"{day:02}/{month:02}/{year}",
            f"{day} {name} {year}",
            f"{day:02}.{month:02}.{year}",
        ),
        "pt": (f"{day:02}/{month:02}/{year}", f"{day} de {name} de {year}"),
        "ja": (f"{year}年{month}月{day}日", f"{year}/{month:02}/{day:02}"),
        "zh": (f"{year}年{month}月{day}日", f"{year}-{month:02}-{day:02}"),
        "en": (
            f"{month:02}/{day:02}/{year}",
            f"{name} {day}, {year}",
            f"{day} {name} {year}",
            f"{day:02}/{month:02}/{year}",
        ),
    }
    return Value(rng.choice((*forms[entry.language], *forms[entry.language], iso)), "whole")


_FIRST = "anna jonas lea marco priya kenji camille olivia rafael wei sofie tobias nadia hugo"
_LAST = "brandner okafor lindholm castellan varga moreau tanaka silveira ashdown zhao keller"
_DOMAINS = ("nordlichtwerk", "silverpine-labs", "tamarindo-foods", "oakmoorclinic", "bluegate-it")


def _address(rng: random.Random) -> tuple[str, str, str]:
    first, last = rng.choice(_FIRST.split()), rng.choice(_LAST.split())
    local = rng.choice(
        (f"{first}.{last}", f"{first[0]}{last}", f"{first}{rng.randint(1, 99)}", f"{first}_{last}")
    )
    return (
        local,
        rng.choice(_DOMAINS),
        rng.choice(("com", "org", "net", "de", "fr", "io", "co.uk", "ch", "com.br")),
    )


def _email(rng: random.Random, _entry: Entry) -> Value:
    return Value("{}@{}.{}".format(*_address(rng)), "whole")


def _spelt(rng: random.Random, _entry: Entry) -> Value:
    local, name, end = _address(rng)
    at, dot = rng.choice(
        (
            (" [at] ", " [dot] "),
            ("[at]", "[dot]"),
            (" (at) ", " (dot) "),
            ("(at)", "."),
            (" AT ", " DOT "),
            (" at ", " dot "),
            ("[at]", "."),
            (" {at} ", " {dot} "),
            ("_at_", "_dot_"),
            (" <at> ", " <dot> "),
        )
    )
    return Value(f"{local}{at}{name}{dot}{end.replace('.', dot)}", "whole")


def _spelt_german(rng: random.Random, _entry: Entry) -> Value:
    local, name, end = _address(rng)
    at, dot = rng.choice(((" (ät) ", " (punkt) "), (" [at] ", " [punkt] "), ("(at)", "(punkt)")))
    return Value(f"{local}{at}{name}{dot}{end.replace('.', dot)}", "whole")


def _public_v4(rng: random.Random, _entry: Entry) -> Value:
    while True:
        made = ipaddress.IPv4Address(rng.getrandbits(32))
        if made.is_global and not made.is_multicast:
            return Value(str(made), "whole")


def _public_v6(rng: random.Random, _entry: Entry) -> Value:
    start = rng.choice((0x2A02, 0x2A01, 0x2003, 0x2607, 0x2404))
    tail = rng.getrandbits(112)
    if rng.random() < 0.4:
        tail = tail >> 64 << 64 | rng.getrandbits(16)
    made = ipaddress.IPv6Address(start << 112 | tail)
    return Value(
        rng.choice((made.compressed, made.compressed, made.exploded, made.compressed.upper())),
        "whole",
    )


def _mac(rng: random.Random, _entry: Entry) -> Value:
    raw = f"{rng.getrandbits(48) & ~(1 << 40):012x}"
    pairs, fours = (
        [raw[at : at + 2] for at in range(0, 12, 2)],
        [raw[at : at + 4] for at in (0, 4, 8)],
    )
    return Value(
        rng.choice(
            (":".join(pairs), ":".join(pairs).upper(), "-".join(pairs).upper(), ".".join(fours))
        ),
        "whole",
    )


def _made(maker) -> Maker:
    return lambda rng, _entry: Value(maker(rng), "whole")


MAKERS: dict[str, Maker] = {
    "phone": _phone,
    "card": _card,
    "iban": _iban,
    "passport": _passport,
    "birth": _birth,
    "email": _email,
    "spelt": _spelt,
    "spelt_de": _spelt_german,
    "ipv_four": _public_v4,
    "ipv_six": _public_v6,
    "mac": _mac,
    "ahv": _made(_ahv),
    "tax_de": _made(_german_tax),
    "pension_de": _made(_german_pension),
    "health_de": _made(_german_health),
    "insurance_at": _made(_austrian_insurance),
    "insurance_fr": _made(_french_insurance),
    "nino": _made(_nino),
    "nhs": _made(_nhs),
    "ssn": _made(_ssn),
    "aadhaar": _made(_aadhaar),
    "cpf": _made(_cpf),
    "mynumber": _made(_my_number),
    "id_cn": _made(_chinese_id),
}
