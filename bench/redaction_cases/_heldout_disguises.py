"""Keys as they look after an encoder, a dump or a careful person had them, up to two layers deep."""

import base64
import codecs
import gzip
import random
import zlib
from collections.abc import Callable
from dataclasses import replace
from urllib.parse import quote

from bench.redaction_cases import Case
from bench.redaction_cases import _heldout_secrets as made
from bench.redaction_cases._heldout_fill import Entry, Value, entries, pieces, render
from bench.redaction_cases._heldout_fillers import FILLERS

_KEYS: dict[str, Callable[[random.Random], str]] = {
    "aws": made.aws_id,
    "github": made.github,
    "slack": made.slack,
    "openai": made.openai,
    "stripe": made.stripe,
    "gitlab": made.gitlab,
    "anthropic": made.anthropic,
    "google": made.google,
    "sendgrid": made.sendgrid,
    "npm": made.npm,
}
_NAMES = {"aws": "AWS_ACCESS_KEY_ID", "github": "GITHUB_TOKEN", "slack": "SLACK_BOT_TOKEN"}

Encoder = Callable[[random.Random, str], str]


def _b64(_rng: random.Random, text: str) -> str:
    return base64.b64encode(text.encode()).decode()


def _b64_url(_rng: random.Random, text: str) -> str:
    return base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")


def _b64_lines(_rng: random.Random, text: str) -> str:
    return base64.encodebytes(text.encode()).decode().rstrip("\n")


def _b32(rng: random.Random, text: str) -> str:
    plain = base64.b32encode(text.encode()).decode()
    return rng.choice((plain, plain, plain.rstrip("="), plain.rstrip("=").lower()))


def _b85(_rng: random.Random, text: str) -> str:
    return base64.b85encode(text.encode()).decode()


def _a85(_rng: random.Random, text: str) -> str:
    return base64.a85encode(text.encode(), adobe=True).decode()


def _hex(rng: random.Random, text: str) -> str:
    plain = text.encode().hex()
    return rng.choice((plain, plain, plain.upper(), "0x" + plain))


def _hex_spaced(rng: random.Random, text: str) -> str:
    return text.encode().hex(rng.choice((" ", ":")))


def _hex_escapes(_rng: random.Random, text: str) -> str:
    return "".join(f"\\x{byte:02x}" for byte in text.encode())


def _utf16(rng: random.Random, text: str) -> str:
    return text.encode(rng.choice(("utf-16-le", "utf-16-be", "utf-16"))).hex()


def _utf16_b64(_rng: random.Random, text: str) -> str:
    return base64.b64encode(text.encode("utf-16-le")).decode()


def _percent(_rng: random.Random, text: str) -> str:
    return "".join(f"%{byte:02X}" for byte in text.encode())


def _unicode(_rng: random.Random, text: str) -> str:
    return "".join(f"\\u{ord(c):04x}" for c in text)


def _entities(rng: random.Random, text: str) -> str:
    shape = rng.choice(("&#{};", "&#x{:x};"))
    return "".join(shape.format(ord(c)) for c in text)


def _rot13(_rng: random.Random, text: str) -> str:
    return codecs.encode(text, "rot13")


def _reversed(_rng: random.Random, text: str) -> str:
    return text[::-1]


def _spaced(_rng: random.Random, text: str) -> str:
    return " ".join(text)


def _gzip(_rng: random.Random, text: str) -> str:
    return base64.b64encode(gzip.compress(text.encode(), mtime=0)).decode()


def _zlib(rng: random.Random, text: str) -> str:
    return base64.b64encode(zlib.compress(text.encode(), rng.choice((1, 6, 9)))).decode()


def _xxd_plain(_rng: random.Random, text: str) -> str:
    plain = text.encode().hex()
    return "\n".join(plain[at : at + 60] for at in range(0, len(plain), 60))


def _readable(raw: bytes) -> str:
    return "".join(chr(byte) if 32 <= byte < 127 else "." for byte in raw)


def _dump_row(at: int, raw: bytes, canonical: bool) -> str:
    if canonical:
        columns = f"{raw[:8].hex(' ')}  {raw[8:].hex(' ')}".rstrip()
        return f"{at:08x}  {columns:<48}  |{_readable(raw)}|"
    return f"{at:08x}: {raw.hex(' ', -2):<39}  {_readable(raw)}"


def _dump(rng: random.Random, text: str, secret: str) -> Value:
    """What `hexdump -C` or `xxd` prints; each eight bytes of the secret are a leak by themselves."""
    raw, canonical = text.encode(), rng.random() < 0.6
    rows = [_dump_row(at, raw[at : at + 16], canonical) for at in range(0, len(raw), 16)]
    rows += [f"{len(raw):08x}"] if canonical else []
    start = text.index(secret)
    parts = []
    for at in range(-(-start // 8) * 8, start + len(secret) - 7, 8):
        eight = raw[at : at + 8]
        parts += [eight.hex(" ", 1 if canonical else -2), _readable(eight)]
    return Value("\n".join(rows), parts=tuple(parts))


def _printable(before: str, secret: str, after: str, *, every: bool) -> Value:
    """Quoted-printable with soft breaks, and what of the secret each line holds."""

    def encode(text: str) -> list[str]:
        return [
            c
            if c.isascii() and c not in "=\n" and not every
            else "".join(f"={b:02X}" for b in c.encode())
            for c in text
        ]

    units = encode(before) + encode(secret) + encode(after)
    start, end = len(before), len(before) + len(secret)
    lines, parts, line, held = [], [], "", ""
    for at, unit in enumerate(units):
        if len(line) + len(unit) > 75:
            lines.append(line + "=")
            parts.append(held)
            line = held = ""
        line += unit
        held += unit if start <= at < end else ""
    kept = tuple(part for part in [*parts, held] if len(part) >= 8)
    return Value("\n".join([*lines, line]), parts=kept)


_BLOCKS: dict[str, Encoder] = {
    "base64": _b64,
    "base64_url": _b64_url,
    "base32": _b32,
    "base85": _b85,
    "ascii85": _a85,
    "hex": _hex,
    "hex_spaced": _hex_spaced,
    "hex_escapes": _hex_escapes,
    "hex_utf16": _utf16,
    "base64_utf16": _utf16_b64,
    "percent": _percent,
    "unicode_escapes": _unicode,
    "html_entities": _entities,
    "gzip_base64": _gzip,
    "zlib_base64": _zlib,
}
_LETTERS: dict[str, Encoder] = {"rot13": _rot13, "reversed": _reversed, "spaced": _spaced}
_LINES: dict[str, Encoder] = {"base64_lines": _b64_lines, "xxd_plain": _xxd_plain}
_NESTED: tuple[tuple[str, str], ...] = (
    ("base64", "base64"),
    ("base64", "hex"),
    ("hex", "base64"),
    ("percent", "base64"),
    ("base64", "percent"),
    ("base32", "base64"),
    ("base64", "base32"),
    ("base64", "gzip_base64"),
    ("base85", "base64"),
    ("base64_url", "zlib_base64"),
    ("hex", "hex"),
    ("gzip_base64", "hex"),
    ("base64", "rot13"),
    ("base64", "reversed"),
    ("hex_utf16", "base64"),
    ("base64", "unicode_escapes"),
    ("hex", "percent"),
)


def _payload(rng: random.Random) -> tuple[str, str, str]:
    """Kind, secret, and the text in which it was before it was disguised."""
    chance = rng.random()
    if chance < 0.1:
        secret = made.jwt(rng)
        return "jwt", secret, rng.choice((secret, f"Authorization: Bearer {secret}"))
    if chance < 0.16:
        secret = made.pem(rng)
        return "private_key", secret, secret
    kind = rng.choice(list(_KEYS))
    secret = _KEYS[kind](rng)
    name = _NAMES.get(kind, "API_KEY")
    return (
        kind,
        secret,
        rng.choice(
            (
                secret,
                secret,
                f"{name}={secret}",
                f'{{"user": "deploy", "token": "{secret}"}}',
                f"[default]\nregion = eu-west-1\n{name.lower()} = {secret}\n",
            )
        ),
    )


_ONE_LINE = """
@@ x blob prose none
Can you tell me what this is? ⟨!d⟩
@@ x blob prose none
The customer pasted ⟨!d⟩ into ticket ⟨num⟩ and wants to know why it fails.
@@ x blob log none
⟨time⟩ DEBUG worker-⟨small⟩ payload=⟨!d⟩ size=⟨num⟩
@@ x blob log none
⟨time⟩ INFO queue ⟨db⟩: received body ⟨!d⟩
@@ x blob json json
{"id": "⟨uuid⟩", "data": "⟨!d⟩", "retries": ⟨small⟩}
@@ x blob json json
{"message": {"publishTime": "⟨time⟩", "payload": "⟨!d⟩"}}
@@ x blob code none
blob = "⟨!d⟩"  # from the ⟨db⟩ export
@@ x blob shell none
$ cat /tmp/⟨db⟩.out
⟨!d⟩
@@ x blob markdown none
Output of step ⟨small⟩:

```
⟨!d⟩
```
@@ x blob html html
<input type="hidden" name="state" value="⟨!d⟩">
@@ x blob config none
user_data: ⟨!d⟩
timeout: ⟨small⟩
@@ x blob prose none de
Kannst du das hier entschlüsseln? ⟨!d⟩
@@ x blob prose none es
¿Puedes decirme qué es esto? ⟨!d⟩
"""
_MANY_LINES = """
@@ x dump shell none
$ xxd /var/run/⟨db⟩.bin
⟨!d⟩
$
@@ x dump markdown none
The file from ⟨host⟩ looks like this:

```
⟨!d⟩
```
@@ x dump log none
⟨time⟩ TRACE frame ⟨num⟩:
⟨!d⟩
⟨time2⟩ TRACE end of frame
@@ x dump json json
{"tool": "read_file", "output": "⟨!d⟩"}
"""
_URLS = """
@@ x percent_before log none
10.0.⟨small⟩.4 - - [⟨time⟩] "GET /cb?state=x%3D⟨!d⟩ HTTP/1.1" 302 0
@@ x percent_before prose none
The redirect goes to https://⟨host⟩/login?next=%2Fhome%3Ftoken%3D⟨!d⟩ and then nothing happens.
@@ x percent_before shell none
curl 'https://⟨host⟩/proxy?url=https%3A%2F%2F⟨!d⟩%40github.com%2Facme'
@@ x percent_before json json
{"url": "https://⟨host⟩/hook?body=%7B%22key%22%3A%22⟨!d⟩%22%7D"}
@@ x percent_before html html
<a href="/go?to=key%20⟨!d⟩">continue</a>
"""
_MAIL = """
@@ x quoted_printable prose none
Content-Type: text/plain; charset=utf-8
Content-Transfer-Encoding: quoted-printable

⟨!d⟩
@@ x quoted_printable log none
⟨time⟩ DEBUG imap message ⟨num⟩ body:
⟨!d⟩
"""
_ONE, _MANY, _URL, _QP = entries(_ONE_LINE), entries(_MANY_LINES), entries(_URLS), entries(_MAIL)
# An entity is not escaped once more, and these quotes would end the string.
_ODD = {("html_entities", "html"), ("html_entities", "json"), ("ascii85", "code")}
_MAILS = (
    ("Grüße aus Köln, der Schlüssel ist key=", ", bis später"),
    ("Voilà la clé à utiliser : token=", " et merci d'avance à tous"),
    ("Hello, here it is: api_key=", " – see you tomorrow"),
    ("Hola, mañana la necesitas: clave=", ". ¡Gracias por todo!"),
)


def _show(
    rng: random.Random, entry: Entry, kind: str, form: str, value: Value, secret: str
) -> Case:
    named = replace(entry, kind=kind, form=form)
    case = render(rng, "disguise", named, {"d": lambda _rng, _entry: value}, FILLERS)
    # A key that is broken over lines stands nowhere as a whole.
    plain = tuple(secret.splitlines()[1:-1][:-1]) if kind == "private_key" else (secret,)
    return replace(case, secrets=tuple(dict.fromkeys((*case.secrets, *plain))))


def _core(kind: str, secret: str) -> str:
    """The first and last line of a private key are no secret."""
    return "\n".join(secret.splitlines()[1:-1]) if kind == "private_key" else secret


def _block(rng: random.Random) -> Case:
    name, twin = rng.choice(list(_BLOCKS)), rng.random()
    kind, secret, text = _payload(rng)
    done = _BLOCKS[name](random.Random(twin), text)
    # Where each letter is written by itself, the secret's own letters are seen in the whole.
    inner = _BLOCKS[name](random.Random(twin), _core(kind, secret))
    inner = inner.removeprefix("0x").removeprefix("fffe")
    parts = (done, *pieces(Value(inner))) if inner in done else (done,)
    entry = rng.choice([e for e in _ONE if (name, e.carrier) not in _ODD])
    return _show(rng, entry, kind, name, Value(done, parts=parts), secret)


def _nest(rng: random.Random) -> Case:
    outer, inner = rng.choice(_NESTED)
    encoders = _BLOCKS | _LETTERS
    kind, secret, text = _payload(rng)
    while inner in _LETTERS and (text != secret or kind in {"private_key", "jwt"}):
        kind, secret, text = _payload(rng)
    done = encoders[outer](rng, encoders[inner](rng, text))
    return _show(
        rng, rng.choice(_ONE), kind, f"{outer}({inner})", Value(done, parts=(done,)), secret
    )


def _letter(rng: random.Random) -> Case:
    name = rng.choice(list(_LETTERS))
    kind = rng.choice(list(_KEYS))
    secret = _KEYS[kind](rng)
    return _show(rng, rng.choice(_ONE), kind, name, Value(_LETTERS[name](rng, secret)), secret)


def _line(rng: random.Random) -> Case:
    kind, secret, text = _payload(rng)
    if rng.random() < 0.5:
        value = _dump(rng, text, _core(kind, secret))
        return _show(rng, rng.choice(_MANY), kind, "hexdump", value, secret)
    name = rng.choice(list(_LINES))
    done = _LINES[name](rng, secret)
    inner = slice(1, -1) if kind == "private_key" else slice(None)
    full = tuple(line for line in done.splitlines()[inner] if len(line) >= 16)
    return _show(rng, rng.choice(_MANY), kind, name, Value(done, parts=full), secret)


def _url(rng: random.Random) -> Case:
    kind = rng.choice(list(_KEYS))
    secret = _KEYS[kind](rng)
    return _show(rng, rng.choice(_URL), kind, "percent_before", Value(quote(secret)), secret)


def _mail(rng: random.Random) -> Case:
    kind = rng.choice(list(_KEYS))
    secret = _KEYS[kind](rng)
    every = rng.random() < 0.2
    before, after = rng.choice(_MAILS)
    value = _printable(before, secret, after, every=every)
    form = "quoted_printable_all" if every else "quoted_printable"
    return _show(rng, rng.choice(_QP), kind, form, value, secret)


def disguised(rng: random.Random) -> Case:
    """One key in one disguise, in something that may hold it."""
    makers = (_block, _nest, _letter, _line, _url, _mail)
    return rng.choices(makers, weights=(34, 20, 16, 14, 8, 8))[0](rng)
