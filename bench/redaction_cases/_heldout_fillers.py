"""What stands around a secret and is none: hosts, logins, times, numbers, hashes, versions."""

import base64
import random
import uuid

from bench.redaction_cases._heldout_fill import Entry, Filler

_HEX = "0123456789abcdef"
_SYSTEMS = (
    "VPN",
    "Jira",
    "Grafana",
    "Jenkins",
    "SAP",
    "Confluence",
    "WordPress",
    "phpMyAdmin",
    "Outlook",
    "GitLab",
    "Zoom",
    "Nextcloud",
    "Odoo",
    "Kibana",
    "NAS",
    "Salesforce",
    "TYPO3",
    "Zabbix",
)
_LOGINS = (
    "deploy",
    "backup",
    "svc_report",
    "appuser",
    "readonly",
    "etl",
    "jenkins",
    "webadmin",
    "mfischer",
    "tkowalski",
    "operator",
    "billing",
    "ops01",
    "dev-team",
    "mmartin",
    "shop_rw",
    "crawler",
)
_BASES = ("orders", "billing", "crm", "shop", "inventory", "metrics", "users", "ledger", "tickets")
_STEMS = ("kestrel", "brightfield", "nordlicht", "silverpine", "tamarind", "oakmoor", "bluegate")
_HEADS = ("db", "git", "mail", "api", "stage", "intranet", "vault", "ci", "pg-01", "sql2")
_ENDS = ("internal", "corp.lan", "local", "test", "intern")


def _hex(length: int) -> Filler:
    return lambda rng, _entry: "".join(rng.choices(_HEX, k=length))


def _host(rng: random.Random, _entry: Entry) -> str:
    return f"{rng.choice(_HEADS)}.{rng.choice(_STEMS)}.{rng.choice(_ENDS)}"


def _time(rng: random.Random, _entry: Entry) -> str:
    day = f"2025-{rng.randint(1, 12):02}-{rng.randint(1, 28):02}"
    clock = f"{rng.randint(0, 23):02}:{rng.randint(0, 59):02}:{rng.randint(0, 59):02}"
    return f"{day}T{clock}Z" if rng.random() < 0.5 else f"{day} {clock}"


def _version(rng: random.Random, _entry: Entry) -> str:
    """Mostly three numbers; now and then four, as browsers and Windows have them."""
    first = f"{rng.randint(0, 20)}.{rng.randint(0, 20)}.{rng.randint(0, 40)}"
    chance = rng.random()
    if chance < 0.08:
        return f"{first}.{rng.randint(0, 20)}"
    return (
        f"{rng.randint(90, 140)}.0.{rng.randint(4000, 6999)}.{rng.randint(0, 99)}"
        if chance < 0.2
        else first
    )


def _isbn(rng: random.Random, _entry: Entry) -> str:
    digits = [9, 7, 8, *(rng.randint(0, 9) for _ in range(9))]
    check = -sum(digit * (1, 3)[at % 2] for at, digit in enumerate(digits)) % 10
    plain = "".join(map(str, [*digits, check]))
    return f"{plain[:3]}-{plain[3]}-{plain[4:8]}-{plain[8:12]}-{plain[12]}"


def _price(rng: random.Random, _entry: Entry) -> str:
    return f"{rng.randint(1, 4999)}.{rng.randint(0, 99):02}"


def _bytes(length: int) -> Filler:
    return lambda rng, _entry: base64.b64encode(rng.randbytes(length)).decode()


def _png(rng: random.Random, _entry: Entry) -> str:
    start = bytes.fromhex("89504e470d0a1a0a0000000d49484452")
    return base64.b64encode(start + rng.randbytes(rng.choice((90, 240, 480)))).decode()


def _number(low: int, high: int) -> Filler:
    return lambda rng, _entry: str(rng.randint(low, high))


def _of(words: tuple[str, ...]) -> Filler:
    return lambda rng, _entry: rng.choice(words)


FILLERS: dict[str, Filler] = {
    "sys": _of(_SYSTEMS),
    "user": _of(_LOGINS),
    "db": _of(_BASES),
    "host": _host,
    "uuid": lambda rng, _entry: str(uuid.UUID(int=rng.getrandbits(128), version=4)),
    "num": _number(1000, 99999),
    "small": _number(2, 250),
    "percent": _number(1, 99),
    "order": lambda rng, _entry: (
        f"{rng.choice(('ORD', 'INV', 'PO', 'RMA'))}-{rng.randint(10**5, 10**8)}"
    ),
    "epoch": _number(1_700_000_000, 1_790_000_000),
    "epoch_ms": _number(1_700_000_000_000, 1_790_000_000_000),
    "time": _time,
    "day": lambda rng, _entry: (
        f"{rng.randint(1, 28):02}.{rng.randint(1, 12):02}.{rng.randint(2023, 2026)}"
    ),
    "version": _version,
    "isbn": _isbn,
    "price": _price,
    "addr": _hex(40),
    "commit": _hex(40),
    "short": lambda rng, _entry: "".join(rng.choices(_HEX, k=7)) + "a",
    "sha": _hex(64),
    "md": _hex(32),
    "integrity": _bytes(64),
    "gosum": _bytes(32),
    "png": _png,
    "float": lambda rng, _entry: f"{rng.random():.{rng.randint(3, 12)}f}",
    "word": _of(("alpha", "ledger", "north", "copper", "walnut", "harbor", "violet", "ember")),
}
