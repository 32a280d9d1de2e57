"""How fast are secrets found, how many, and in how many disguises, beside the usual tools?

The text is the agents' work of `bench.corpus`; the planted values are drawn from a seed, of kinds
that the peer itself says it finds. A peer is given every advantage: only its regular expressions
run, without language models or network, and any finding on a line counts as the planted one.
Run as a script by a peer's interpreter, this file is the peer's side: a line of JSON in, one out.
"""

import base64
import contextlib
import json
import random
import string
import sys
import time
from collections.abc import Callable
from typing import Any

SLICE = 256_000
PEER_SLICE = {"detect-secrets": 64_000, "presidio": 64_000}
TARGETS = {"detect-secrets": 20.0, "presidio": 50.0}
REQUIREMENTS = {"detect-secrets": "detect-secrets==1.5.0", "presidio": "presidio-analyzer==2.2.366"}
PER_KIND = 8
HOSTILE_BYTES = 1_000_000

ALNUM, HEX = string.ascii_letters + string.digits, "0123456789abcdef"
UPPER = string.ascii_uppercase + string.digits


def rows():
    found = []
    for peer in ("detect-secrets", "presidio"):
        found += _against(peer)
    return [*found, _ours_alone(), _hostile()]


# --- what is planted -----------------------------------------------------------------------------


def _pick(rng: random.Random, alphabet: str, count: int) -> str:
    return "".join(rng.choice(alphabet) for _ in range(count))


def _luhn(rng: random.Random, prefix: str, length: int) -> str:
    body = prefix + _pick(rng, string.digits, length - len(prefix) - 1)
    total = 0
    for i, digit in enumerate(reversed(body)):
        double = int(digit) * (2 if i % 2 == 0 else 1)
        total += double - 9 if double > 9 else double
    return body + str(-total % 10)


def _iban(rng: random.Random) -> str:
    account = _pick(rng, string.digits, 18)
    return f"DE{98 - int(account + '131400') % 97:02d}{account}"


def _jwt(rng: random.Random) -> str:
    parts = (
        {"alg": "HS256", "typ": "JWT"},
        {"sub": _pick(rng, string.digits, 10), "iat": 1516239022},
    )
    coded = [base64.urlsafe_b64encode(json.dumps(p).encode()).decode().rstrip("=") for p in parts]
    return ".".join([*coded, _pick(rng, ALNUM, 43)])


KINDS: dict[str, dict[str, Callable[[random.Random], str]]] = {
    "detect-secrets": {
        "aws": lambda r: "AKIA" + _pick(r, UPPER, 16),
        "azure": lambda r: "AccountKey=" + _pick(r, ALNUM, 86) + "==",
        "basic auth": lambda r: f"https://app:{_pick(r, ALNUM, 14)}@host.test/x",
        "discord": lambda r: f"M{_pick(r, ALNUM, 23)}.{_pick(r, ALNUM, 6)}.{_pick(r, ALNUM, 27)}",
        "github": lambda r: "ghp_" + _pick(r, ALNUM, 36),
        "gitlab": lambda r: "glpat-" + _pick(r, ALNUM, 20),
        "jwt": _jwt,
        "mailchimp": lambda r: _pick(r, HEX, 32) + "-us7",
        "npm": lambda r: "//registry.npmjs.org/:_authToken=npm_" + _pick(r, ALNUM, 36),
        "openai": lambda r: f"sk-{_pick(r, ALNUM, 20)}T3BlbkFJ{_pick(r, ALNUM, 20)}",
        "pypi": lambda r: "pypi-AgEIcHlwaS5vcmc" + _pick(r, ALNUM, 80),
        "sendgrid": lambda r: f"SG.{_pick(r, ALNUM, 22)}.{_pick(r, ALNUM, 43)}",
        "slack": lambda r: (
            f"xoxb-{_pick(r, string.digits, 12)}-{_pick(r, string.digits, 12)}-{_pick(r, ALNUM, 24)}"
        ),
        "square": lambda r: "sq0csp-" + _pick(r, ALNUM, 43),
        "stripe": lambda r: "sk_live_" + _pick(r, ALNUM, 24),
        "telegram": lambda r: f"{r.randint(10**8, 10**9)}:AA{_pick(r, ALNUM, 33)}",
        "twilio": lambda r: "SK" + _pick(r, HEX, 32),
    },
    "presidio": {
        "e-mail": lambda r: (
            f"{_pick(r, string.ascii_lowercase, 8)}@{_pick(r, string.ascii_lowercase, 6)}.com"
        ),
        "visa": lambda r: _luhn(r, "4", 16),
        "mastercard": lambda r: _luhn(r, "52", 16),
        "iban": _iban,
        "ssn": lambda r: f"{r.randint(100, 600)}-{r.randint(10, 99)}-{r.randint(1000, 9999)}",
        "phone": lambda r: f"({r.randint(201, 899)}) {r.randint(201, 899)}-{r.randint(1000, 9999)}",
    },
}

HIDDEN: dict[str, Callable[[str], str]] = {
    "base64": lambda v: base64.b64encode(v.encode()).decode(),
    "base64 twice": lambda v: base64.b64encode(base64.b64encode(v.encode())).decode(),
    "hex": lambda v: v.encode().hex(),
    "percent": lambda v: "".join(f"%{b:02X}" for b in v.encode()),
    "JSON escapes": lambda v: "".join(f"\\u{ord(ch):04x}" for ch in v),
    "fullwidth": lambda v: "".join(chr(ord(ch) + 0xFEE0) if "!" <= ch <= "~" else ch for ch in v),
    "look-alikes": lambda v: v.translate(
        str.maketrans("aceopxyABEKMHOPCTX0", "асеорхуАВЕКМНОРСТХ０")
    ),
    "zero width": "\u200b".join,
    "string concatenation": lambda v: f'"{v[: len(v) // 2]}" + "{v[len(v) // 2 :]}"',
}


def planted(peer: str) -> list[str]:
    rng = random.Random(7)
    return [make(rng) for make in KINDS[peer].values() for _ in range(PER_KIND)]


def corpus(size: int) -> str:
    """Agents' work as lines of text: what was said, what was run, and some of it as JSON."""
    from bench.corpus import trajectory

    parts: list[str] = []
    length, seed = 0, 0
    while length < size:
        document = trajectory(seed=seed)
        parts += list(_strings(document)) if seed % 4 else [json.dumps(document, indent=1)]
        length, seed = length + 25_000, seed + 1
    return "\n".join(parts)[:size]


def _strings(node: Any):
    if isinstance(node, str):
        yield node
    elif isinstance(node, dict | list):
        for item in node.values() if isinstance(node, dict) else node:
            yield from _strings(item)


# --- side by side --------------------------------------------------------------------------------


def _against(peer: str):
    from bench.harness import Row, live_peer, peer_python, side_by_side, versions

    from upswing.redact import Redactor

    redactor = Redactor()
    text = corpus(SLICE)
    part = text[: PEER_SLICE[peer]]
    values = planted(peer)
    lines = [
        f"the tool said {hide(value)} and went on" for value in values for hide in HIDDEN.values()
    ]
    with live_peer(peer_python(peer, REQUIREMENTS[peer]), __file__, peer) as ask:
        told = versions(**{peer: ask({"version": True})["version"]})
        ratio = side_by_side(
            lambda: _rate(lambda: redactor.text(text), len(text)),
            lambda: len(part) / ask({"text": part})["seconds"],
        )
        their_recall = _share(ask({"lines": [f"the tool said {v} ok" for v in values]})["found"])
        their_leaks = 1 - _share(ask({"lines": lines})["found"])
    our_recall = _share([v not in redactor.text(f"the tool said {v} ok").value for v in values])
    our_leaks = 1 - _share([redactor.text(line).changed for line in lines])
    common = {"peer": peer, "versions": told}
    return [
        Row(
            name=f"redaction, text per second beside {peer}",
            value=ratio,
            target=TARGETS[peer],
            **common,
        ),
        Row(
            name=f"redaction, recall on plain values minus that of {peer}",
            value=our_recall - their_recall,
            target=0.0,
            unit="",
            **common,
        ),
        Row(
            name=f"redaction, leaks in nine disguises beside {peer}",
            value=our_leaks / their_leaks if their_leaks else float("nan"),
            target=0.02,
            better="lower",
            **common,
        ),
    ]


def _share(flags: list[bool]) -> float:
    return sum(flags) / len(flags)


def _rate(work: Callable[[], object], size: int) -> float:
    count, start = 0, time.perf_counter()
    while time.perf_counter() - start < 0.2:
        work()
        count += 1
    return count * size / (time.perf_counter() - start)


def _ours_alone():
    from bench.harness import Row, versions

    from upswing.redact import Redactor

    redactor, text = Redactor(), corpus(4_000_000)
    rate = max(_rate(lambda: redactor.text(text), len(text)) for _ in range(3)) / 1e6
    return Row(
        name="redaction, ordinary text", value=rate, target=40.0, unit="MB/s", versions=versions()
    )


# --- hostile text --------------------------------------------------------------------------------

FLOODS = (
    "a@", "bob.smith@example.org, ", "-----BEGIN PRIVATE KEY-----", "%25", "%25abcdefghijklm ", "sk-",
    " sk-abcdefghijk", "eyJ", "eyJhbGciOiJ.", "4539148803436467", "1 ", "4539 1488 ", "password=",
    'password="a ', "\u200b", "a\u200b", "\\u00", "\\u0073", "\\u0073a", "AKIA", " AKIAABCDEFGHIJ", "6a",
    "73 6b 2d ", "://:@", ' "-----END ', "-----END PRIVATE KEY-----", "привет мир ", "раѕѕ", " ", "token: ",
    "Zm9vYmFyYmF6cXV4 ", "cookie: a=", '"a" + ', "&#65;", "&quot;abcdefghijklmnopqrstuvwxyz 1234 6789 123 456789 abc ", "\x1b[0m", "GB29 NWBK 6016 ", "QUJDREVGR0hJSktM\n",
    "пароль ", "密码是", "password is ", "=3D", "81.2.3.4 ", " g h p _", "00000000: 6768 705f 6b37\n", "password,", "| password |\n",
    "<tr><td>password</td>", "call 0171 ", "eJxabcdefghijklmnopqrstu ", "H4sIAAAAAAAAA0tMSk4BAMLbZCEEAAAA ", "abandon ability able ", "AU&;>",
    "ordinary words ", "abandon ability able about above absent absorb abstract absurd abuse access accident to ",
    "zoo able wrong about world access winter acid window across wolf act to ", "zoo able wrong about world access winter acid window across wolf act in of on at by up so we to ",
)  # fmt: skip


def floods() -> dict[str, str]:
    made = {unit: unit * (HOSTILE_BYTES // len(unit.encode())) for unit in FLOODS}
    nested = "hello world, my friend, " * 13_000
    for _ in range(4):
        nested = base64.b64encode(nested.encode()).decode()
    return made | {"base64 four times": nested[:HOSTILE_BYTES]}


def _hostile():
    from bench.harness import Row, versions

    from upswing.redact import Redactor

    redactor = Redactor()
    worst = 0.0
    for text in floods().values():
        taken = []
        for _ in range(3):  # the least of three: the machine's other work is not the text's fault
            start = time.perf_counter()
            redactor.text(text)
            taken.append(time.perf_counter() - start)
        worst = max(worst, min(taken))
    return Row(
        name="redaction, worst hostile megabyte",
        value=worst,
        target=0.1,
        better="lower",
        unit="s",
        versions=versions(),
    )


# --- the peer's side -----------------------------------------------------------------------------


def _detect_secrets() -> tuple[str, Callable[[str], bool]]:
    from importlib.metadata import version

    from detect_secrets.core.plugins.util import get_mapping_from_secret_type_to_class
    from detect_secrets.core.scan import scan_line
    from detect_secrets.plugins.base import RegexBasedDetector
    from detect_secrets.settings import transient_settings

    plugins = get_mapping_from_secret_type_to_class().values()
    names = [p.__name__ for p in plugins if issubclass(p, RegexBasedDetector)]
    used = [{"name": name} for name in names if "Entropy" not in name]
    settings = contextlib.ExitStack()  # kept by the function below, for settings end with it
    settings.enter_context(transient_settings({"plugins_used": used}))

    def found(line: str, _settings: object = settings) -> bool:
        return bool(list(scan_line(line)))

    if not found("key = AKIA" + "Z7Q2MX9RFL4WVN1P"):
        raise RuntimeError("detect-secrets is not set up: it does not find a plain AWS key")
    return version("detect-secrets"), found


def _presidio() -> tuple[str, Callable[[str], bool]]:
    from importlib.metadata import version

    from presidio_analyzer import PatternRecognizer, RecognizerRegistry

    registry = RecognizerRegistry()
    registry.load_predefined_recognizers(languages=["en"])
    known = [
        r for r in registry.recognizers if isinstance(r, PatternRecognizer) or "Phone" in r.name
    ]

    def found(line: str) -> bool:
        hits = [r.analyze(line, r.supported_entities, None) for r in known]
        return any(hit.score > 0 for some in hits for hit in some or ())

    return version("presidio-analyzer"), found


def _serve(peer: str) -> None:
    number, found = {"detect-secrets": _detect_secrets, "presidio": _presidio}[peer]()
    for question in map(json.loads, sys.stdin):
        answer: dict[str, Any] = {"version": number}
        if "text" in question:
            start = time.perf_counter()
            for line in question["text"].splitlines():
                found(line)
            answer["seconds"] = time.perf_counter() - start
        if "lines" in question:
            answer["found"] = [found(line) for line in question["lines"]]
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    _serve(sys.argv[1])
