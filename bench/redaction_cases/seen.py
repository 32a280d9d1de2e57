"""The half of the cases that the rules were written beside: forms x languages x carriers."""

import base64
import codecs
import gzip
import itertools
import json
import random
import string
import zlib
from collections.abc import Callable, Iterator

from bench.redaction import KINDS, _iban, _luhn
from bench.redaction_cases import Case
from bench.redaction_cases._clean import clean

ALNUM, HEX = string.ascii_letters + string.digits, "0123456789abcdef"

PASSWORD_NAMES = {
    "en": ("password", "Password", "passphrase", "passcode", "pwd", "DB_PASSWORD"),
    "de": ("Passwort", "Kennwort", "das Passwort", "WLAN-Passwort"),
    "fr": ("mot de passe", "Mot de passe", "mdp"),
    "es": ("contraseña", "Contraseña", "clave"),
    "pt": ("senha", "Senha", "palavra-passe"),
    "it": ("password", "Parola d'ordine"),
    "ru": ("пароль", "Пароль"),
    "zh": ("密码", "口令"),
    "ja": ("パスワード",),
    "tr": ("şifre", "parola"),
    "pl": ("hasło", "Hasło"),
    "nl": ("wachtwoord",),
}
IS = {
    "en": (" is ", " was "),
    "de": (" ist ", " lautet ", " war "),
    "fr": (" est ", " était "),
    "es": (" es ", " era "),
    "pt": (" é ",),
    "it": (" è ",),
    "ru": (" — ", " это "),
    "zh": ("是", "为"),
    "ja": ("は",),
    "tr": (": ",),
    "pl": (" to ", " jest "),
    "nl": (" is ",),
}
SECRET_NAMES = (
    "api_key",
    "API key",
    "api-key",
    "token",
    "access token",
    "client_secret",
    "secret",
    "SECRET_KEY",
    "auth_token",
    "private_token",
)
WORDS = (
    "swordfish",
    "letmein",
    "dragonfly",
    "trustno",
    "sunshine",
    "Mondschein",
    "butterfly",
    "pumpernickel",
    "azucar",
    "iloveyou",
)
FRAMES = {
    "en": "Please log in as {who}. {it} Thanks, and tell me when it works.",
    "de": "Bitte melde dich als {who} an. {it} Danke dir.",
    "fr": "Connecte-toi comme {who}. {it} Merci beaucoup.",
    "es": "Entra como {who}. {it} Gracias.",
    "pt": "Entre como {who}. {it} Obrigado.",
    "it": "Accedi come {who}. {it} Grazie.",
    "ru": "Войдите как {who}. {it} Спасибо.",
    "zh": "请用 {who} 登录。{it} 谢谢。",
    "ja": "{who} でログインしてください。{it} よろしく。",
    "tr": "{who} olarak gir. {it} Sağ ol.",
    "pl": "Zaloguj się jako {who}. {it} Dzięki.",
    "nl": "Log in als {who}. {it} Dank je.",
}


def pick(rng: random.Random, alphabet: str, count: int) -> str:
    return "".join(rng.choice(alphabet) for _ in range(count))


def password(rng: random.Random) -> str:
    """What people choose, and what machines choose for them."""
    kind = rng.randrange(6)
    if kind == 0:
        return rng.choice(WORDS)
    if kind == 1:
        return rng.choice(WORDS).capitalize() + str(rng.randint(1, 2030)) + rng.choice("!?#$%*")
    if kind == 2:
        return pick(rng, ALNUM + "!@#%^*+", rng.randint(10, 20)) + pick(rng, string.digits, 2)
    if kind == 3:
        return pick(rng, string.ascii_lowercase, rng.randint(8, 14))
    if kind == 4:
        return rng.choice(WORDS) + str(rng.randint(1, 99))
    return (
        rng.choice(WORDS).replace("e", "3").replace("o", "0").replace("i", "1")
        + "_"
        + str(rng.randint(1, 9))
    )


def token(rng: random.Random) -> str:
    make = rng.choice(list(KINDS["detect-secrets"].values()))
    return rng.choice(
        [make(rng), pick(rng, ALNUM, 32), pick(rng, HEX, 40), pick(rng, ALNUM + "_-", 43)]
    )


def bare_token(rng: random.Random) -> str:
    return rng.choice(
        [pick(rng, ALNUM, 24) + "7", pick(rng, HEX, 40), "x" + pick(rng, ALNUM, 40) + "3"]
    )


PROSE: dict[str, Callable[[str, str, str], str]] = {
    "colon": lambda n, v, _: f"{n}: {v}",
    "equals": lambda n, v, _: f"{n} = {v}",
    "tight equals": lambda n, v, _: f"{n}={v}",
    "is": lambda n, v, i: f"{n}{i}{v}",
    "colon and quotes": lambda n, v, _: f'{n}: "{v}"',
    "is and quotes": lambda n, v, i: f'{n}{i}"{v}"',
    "back-ticks": lambda n, v, _: f"{n}: `{v}`",
    "space and back-ticks": lambda n, v, _: f"{n} `{v}`",
    "bold": lambda n, v, _: f"**{n}:** {v}",
    "bold value": lambda n, v, _: f"{n}: **{v}**",
}
MARKUP: dict[str, tuple[str, Callable[[str, str], str]]] = {
    "table row": ("markdown", lambda n, v: f"| Name | Value |\n|---|---|\n| {n} | {v} |\n"),
    "table column": (
        "markdown",
        lambda n, v: f"| user | {n} |\n|------|------|\n| bob | {v} |\n\nDone.",
    ),
    "list item": ("markdown", lambda n, v: f"# Access\n\n- User: bob\n- {n}: {v}\n"),
    "csv": ("log", lambda n, v: f"user,{n},role\nbob,{v},admin\n"),
    "html cells": ("html", lambda n, v: f"<tr><td>{n}</td><td>{v}</td></tr>"),
    "html bold": ("html", lambda n, v: f"<p><b>{n}:</b> {v}</p>"),
    "html code": ("html", lambda n, v: f"<li>{n}: <code>{v}</code></li>"),
    "html columns": (
        "html",
        lambda n, v: (
            f"<table><tr><th>user</th><th>{n}</th></tr><tr><td>bob</td><td>{v}</td></tr></table>"
        ),
    ),
}
CODE: dict[str, tuple[str, Callable[[str], str]]] = {
    "python": ("code", lambda v: f'conn = connect(host="db", user="app", password="{v}")\n'),
    "assignment": ("code", lambda v: f"password = '{v}'\nrun(password)\n"),
    "javascript": ("code", lambda v: f'const config = {{ user: "app", password: "{v}" }};\n'),
    "yaml": ("code", lambda v: f"database:\n  user: app\n  password: {v}\n  host: db\n"),
    "ini": ("code", lambda v: f"[db]\nuser = app\npassword = {v}\n"),
    "env": ("shell", lambda v: f"export DB_PASSWORD={v}\n./run.sh\n"),
    "flag": ("shell", lambda v: f"mytool --user app --password {v} --host db\n"),
    "flag equals": ("shell", lambda v: f"mytool --password={v} sync\n"),
    "netrc": ("shell", lambda v: f"machine api.test login bob password {v}\n"),
    "pgpass": ("shell", lambda v: f"db.internal:5432:app:bob:{v}\n"),
    "sql": ("code", lambda v: f"CREATE USER app IDENTIFIED BY '{v}';\n"),
    "sql role": ("code", lambda v: f"ALTER ROLE app WITH LOGIN PASSWORD '{v}';\n"),
    "powershell": ("shell", lambda v: f'$s = ConvertTo-SecureString "{v}" -AsPlainText -Force\n'),
    "url": ("log", lambda v: f"GET /login?user=bob&password={v}&next=/ 200\n"),
    "log": ("log", lambda v: f"2024-05-01 12:00:01 INFO auth: user=bob password={v} ok\n"),
    "dockerfile": ("code", lambda v: f"FROM alpine\nENV POSTGRES_PASSWORD {v}\n"),
    "input": ("html", lambda v: f'<input type="password" name="pw" value="{v}">'),
    "input, value first": ("html", lambda v: f'<input value="{v}" type="text" name="password">'),
    "element": ("html", lambda v: f"<config><user>bob</user><password>{v}</password></config>"),
    "args in text": ("code", lambda v: f'subprocess.run(["tool", "--password", "{v}", "-v"])\n'),
    "pair in text": ("code", lambda v: f'{{"key": "DB_PASSWORD", "val": "{v}"}}'),
    "k8s": ("code", lambda v: f"env:\n  - name: DB_PASSWORD\n    value: {v}\n"),
}
TREES: dict[str, Callable[[str], object]] = {
    "field": lambda v: {"user": "bob", "password": v},
    "pair": lambda v: {"key": "DB_PASSWORD", "val": v},
    "name and value": lambda v: [
        {"name": "user", "value": "bob"},
        {"name": "password", "value": v},
    ],
    "arguments": lambda v: {"cmd": ["mysql", "--password", v, "-u", "bob"]},
    "columns": lambda v: {"columns": ["user", "password"], "rows": [["bob", v], ["eve", "x"]]},
    "rows": lambda v: [["user", "password"], ["bob", v]],
    "german": lambda v: {"benutzer": "bob", "passwort": v},
    "said": lambda v: {"turns": [{"text": f"the password is {v}"}]},
}
HEADERS: dict[str, Callable[[str], str]] = {
    "Token": lambda v: f"Authorization: Token {v}",
    "Bearer": lambda v: f"curl -H 'Authorization: Bearer {v}' https://x.test/",
    "ApiKey": lambda v: f"Authorization: ApiKey {v}",
    "X-Api-Key": lambda v: f"-H 'X-Api-Key: {v}'",
    "json": lambda v: json.dumps({"headers": {"Authorization": f"Token {v}"}}),
}


def credentials(rng: random.Random) -> Iterator[Case]:
    while True:
        language = rng.choice(list(PASSWORD_NAMES))
        name, who = rng.choice(PASSWORD_NAMES[language]), rng.choice(("bob", "admin", "eve"))
        value, link = password(rng), rng.choice(IS[language])
        form = rng.choice(list(PROSE))
        if form == "is" and name == "mdp":
            link = " : "
        it = PROSE[form](name, value, link)
        ends = "" if language == "ja" or value[-1] in "!?" else rng.choice(("", "."))
        prose = FRAMES[language].format(who=who, it=it + ends) if rng.random() < 0.6 else it
        yield Case(
            "password",
            "credential",
            form,
            language,
            "markdown" if "bold" in form else "prose",
            prose,
            (value,),
        )
        form, value = rng.choice(list(MARKUP)), password(rng)
        carrier, write = MARKUP[form]
        name = rng.choice(PASSWORD_NAMES[language])
        yield Case("password", "credential", form, language, carrier, write(name, value), (value,))
        form, value = rng.choice(list(CODE)), password(rng)
        carrier, write_code = CODE[form]
        yield Case("password", "credential", form, "en", carrier, write_code(value), (value,))
        form, value = rng.choice(list(TREES)), password(rng)
        yield Case(
            "password", "credential", form, "en", "json", json.dumps(TREES[form](value)), (value,)
        )
        form, value = (
            rng.choice(("colon", "equals", "tight equals", "is", "colon and quotes", "back-ticks")),
            bare_token(rng),
        )
        yield Case(
            "token",
            "credential",
            form,
            "en",
            "prose",
            PROSE[form](rng.choice(SECRET_NAMES), value, " is "),
            (value,),
        )
        form, value = rng.choice(list(HEADERS)), bare_token(rng)
        carrier = "json" if form == "json" else "shell"
        yield Case("header", "credential", form, "en", carrier, HEADERS[form](value), (value,))
        value = pick(rng, string.digits, rng.choice((4, 6)))
        if len(set(value)) > 1:
            said = rng.choice(
                (
                    "PIN: {}",
                    "my PIN is {}",
                    "PIN={}",
                    "OTP: {}",
                    "verification code: {}",
                    "Geheimzahl: {}",
                    '{{"pin": "{}"}}',
                )
            )
            yield Case("pin", "credential", "number", "en", "prose", said.format(value), (value,))
        yield from wallets(rng)


def wif(rng: random.Random) -> str:
    from hashlib import sha256

    body = b"\x80" + rng.randbytes(32) + b"\x01"
    data = body + sha256(sha256(body).digest()).digest()[:4]
    number, text = int.from_bytes(data), ""
    while number:
        number, rest = divmod(number, 58)
        text = "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz"[rest] + text
    return text


def seed_phrase(rng: random.Random) -> str:
    from hashlib import sha256

    from upswing.redact.bip39 import WORDS as LIST

    size = rng.choice((16, 32))
    entropy = rng.randbytes(size)
    bits = (
        f"{int.from_bytes(entropy):b}".zfill(size * 8)
        + f"{sha256(entropy).digest()[0]:b}".zfill(8)[: size // 4]
    )
    return " ".join(LIST[int(bits[i : i + 11], 2)] for i in range(0, len(bits), 11))


def wallets(rng: random.Random) -> Iterator[Case]:
    hexed = pick(rng, HEX, 64)
    azure = pick(rng, ALNUM, 3) + "8Q~" + pick(rng, ALNUM + "_.-~", 33) + "a"
    shadow = f"$6${pick(rng, ALNUM, 16)}${pick(rng, ALNUM + './', 86)}"
    made = {
        "hex key": (f"my private key is {hexed}", hexed),
        "wif": (f"import {(key := wif(rng))} into the wallet", key),
        "seed phrase": (f"write these down: {(seed := seed_phrase(rng))}", seed),
        "azure secret": (f"the app uses {azure} now", azure),
        "shadow": (f"root:{shadow}:19000:0:99999:7:::", shadow),
    }
    kind = rng.choice(list(made))
    text, value = made[kind]
    yield Case(kind, "credential", "alone", "en", rng.choice(("prose", "log")), text, (value,))


# --- people --------------------------------------------------------------------------------------

PHONES = {
    "de": ("0### ########", "0###/#######", "0##-########", "01## #######", "+49 1## #######"),
    "at": ("0664 #######", "01 ### ## ##", "+43 664 #######"),
    "ch": ("07# ### ## ##", "044 ### ## ##", "+41 7# ### ## ##"),
    "fr": ("06 ## ## ## ##", "01.##.##.##.##", "06########"),
    "uk": ("020 79## ####", "07### ######", "01### ######"),
    "us": ("(415) 55#-####", "415-55#-####", "415.55#.####", "415 55# ####"),
    "in": ("98### #####", "98########", "+91 98### #####", "091-98########"),
    "br": ("(11) 9####-####", "(21) ####-####", "11 9####-####"),
    "ja": ("090-####-####", "03-####-####", "080########"),
    "zh": ("138########", "138 #### ####", "139-####-####", "010-########"),
}
PHONE_WORDS = {
    "de": ("Tel.: {}", "Telefon: {}", "Handy {}", "ruf mich an unter {}", "meine Nummer ist {}"),
    "at": ("Tel. {}", "Telefonnummer: {}"),
    "ch": ("Tel {}", "Mobile: {}"),
    "fr": ("Tél. : {}", "téléphone {}", "appelez-moi au {}"),
    "uk": ("phone: {}", "call me on {}", "Mobile: {}"),
    "us": ("phone: {}", "call {}", "cell: {}", "my number is {}", "Tel: {}"),
    "in": ("mobile {}", "phone no. {}", "WhatsApp: {}"),
    "br": ("telefone: {}", "celular {}", "me liga no {}"),
    "ja": ("電話: {}", "携帯は {}", "TEL {}"),
    "zh": ("电话：{}", "手机 {}", "联系方式: {}"),
}
BIRTHS = {
    "en": ("born on {}", "date of birth: {}", "DOB: {}", '{{"birth_date": "{}"}}'),
    "de": ("geboren am {}", "Geburtsdatum: {}", "geb. {}"),
    "fr": ("né le {}", "date de naissance : {}"),
    "es": ("fecha de nacimiento: {}", "nacido el {}"),
    "pt": ("data de nascimento: {}", "nascida em {}"),
    "it": ("nato il {}", "data di nascita: {}"),
    "ru": ("дата рождения: {}", "родился {}"),
    "zh": ("出生日期：{}", "生日 {}"),
    "ja": ("生年月日: {}",),
    "tr": ("doğum tarihi: {}",),
}
PASSPORTS = (
    "passport number {}",
    "Passport No: {}",
    "Reisepass: {}",
    "passeport n° {}",
    "pasaporte: {}",
    "passaporto {}",
    "паспорт {}",
    "护照号码：{}",
    "パスポート番号: {}",
    "Personalausweis {}",
)


def _digits(rng: random.Random, form: str) -> str:
    return "".join(rng.choice("23456789") if ch == "#" else ch for ch in form)


def _steuer_id(rng: random.Random) -> str:
    from upswing.redact.checks import is_german_steuer_id

    while True:
        digits = rng.sample("123456789", 9)
        body = "".join(digits) + rng.choice(digits)
        for last in "0123456789":
            if is_german_steuer_id(body + last):
                return body + last


def _checked(rng: random.Random, form: str, check: Callable[[str], bool]) -> str:
    while True:
        value = "".join(rng.choice(string.digits) if ch == "#" else ch for ch in form)
        if check(value):
            return value


def _spaced(value: str, rng: random.Random) -> str:
    size, sign = rng.choice((2, 3, 4, 5, 40)), rng.choice((" ", "-", " "))
    return sign.join(value[i : i + size] for i in range(0, len(value), size))


def people(rng: random.Random) -> Iterator[Case]:
    from upswing.redact import checks

    while True:
        country = rng.choice(list(PHONES))
        value = _digits(rng, rng.choice(PHONES[country]))
        text = rng.choice(PHONE_WORDS[country]).format(value)
        yield Case(
            "phone",
            "person",
            "with a word",
            country,
            rng.choice(("prose", "markdown")),
            text,
            (value,),
        )
        value = _spaced(_iban(rng), rng)
        yield Case(
            "iban",
            "person",
            "spaced",
            "de",
            "prose",
            rng.choice(("IBAN: {}", "Konto {}", "bitte auf {} überweisen")).format(value),
            (value,),
        )
        value = _checked(rng, "756.####.####.##", checks.is_swiss_ahv)
        value = rng.choice((value, value.replace(".", ""), value.replace(".", " ")))
        yield Case("ahv", "person", "written", "de", "prose", f"AHV-Nr. {value}", (value,))
        value = _steuer_id(rng)
        value = rng.choice((value, f"{value[:2]} {value[2:5]} {value[5:8]} {value[8:]}"))
        yield Case(
            "tax id",
            "person",
            "written",
            "de",
            "prose",
            rng.choice(("Steuer-ID: {}", "IdNr. {}", "Steueridentifikationsnummer {}")).format(
                value
            ),
            (value,),
        )
        value = _checked(
            rng,
            f"{rng.randint(2, 89):02d} {rng.randint(1, 28):02d}{rng.randint(1, 12):02d}{rng.randint(40, 99)} {rng.choice(string.ascii_uppercase)} ###",
            checks.is_german_pension_number,
        )
        value = rng.choice((value, value.replace(" ", "")))
        yield Case(
            "insurance",
            "person",
            "written",
            "de",
            "prose",
            rng.choice(("Sozialversicherungsnummer: {}", "Rentenversicherung {}")).format(value),
            (value,),
        )
        language = rng.choice(list(BIRTHS))
        day, month, year = rng.randint(1, 28), rng.randint(1, 12), rng.randint(1940, 2010)
        forms = {
            "zh": f"{year}年{month}月{day}日",
            "ja": f"{year}年{month}月{day}日",
            "en": f"{day} March {year}",
            "de": f"{day}. März {year}",
            "es": f"{day} de marzo de {year}",
        }
        value = rng.choice(
            (
                f"{day:02d}.{month:02d}.{year}",
                f"{year}-{month:02d}-{day:02d}",
                f"{day:02d}/{month:02d}/{year}",
                forms.get(language, f"{day}.{month}.{year}"),
            )
        )
        yield Case(
            "birth date",
            "person",
            "with a word",
            language,
            "prose",
            rng.choice(BIRTHS[language]).format(value),
            (value,),
        )
        value = rng.choice(
            (
                pick(rng, "CFGHJK", 1)
                + pick(rng, "0123456789CFGHJKLMNPRTVWXYZ", 2)
                + pick(rng, string.digits, 6),
                pick(rng, string.digits, 9),
                "E" + pick(rng, string.digits, 8),
            )
        )
        yield Case(
            "passport",
            "person",
            "with a word",
            "any",
            "prose",
            rng.choice(PASSPORTS).format(value),
            (value,),
        )
        value = ":".join(f"{rng.randrange(256):02x}" for _ in range(6))
        value = rng.choice((value, value.upper().replace(":", "-")))
        yield Case(
            "mac", "person", "written", "en", "log", f"wlan0: authenticated with {value}", (value,)
        )
        value = f"2a02:8{pick(rng, HEX, 3)}:{pick(rng, HEX, 4)}::{pick(rng, '123456789abcdef', 3)}"
        yield Case("ipv6", "person", "written", "en", "log", f"client {value} connected", (value,))
        value = f"{rng.choice((81, 93, 178, 203, 8, 52))}.{rng.randint(40, 250)}.{rng.randint(1, 250)}.{rng.randint(1, 254)}"
        yield Case(
            "ipv4",
            "person",
            "written",
            "en",
            "log",
            rng.choice(
                (
                    "Failed login from {} port 52211",
                    "client_ip={}",
                    "http://{}:8080/x",
                    "{} - - [01/May/2024] GET / 200",
                )
            ).format(value),
            (value,),
        )
        name, host = pick(rng, string.ascii_lowercase, 6), pick(rng, string.ascii_lowercase, 7)
        value = rng.choice(
            (
                f"{name} [at] {host} [dot] com",
                f"{name}(at){host}.org",
                f"{name} at {host} dot com",
                f"{name} (at) {host} (dot) de",
                f"{name}@{host} [dot] net",
                f"{name} AT {host} DOT com",
            )
        )
        yield Case(
            "address", "person", "spelt out", "en", "prose", f"write to {value} please", (value,)
        )
        value = _luhn(rng, "4", 16)
        yield Case(
            "card",
            "person",
            "written",
            "en",
            "prose",
            f"card {value[:4]} {value[4:8]} {value[8:12]} {value[12:]}",
            (f"{value[:4]} {value[4:8]} {value[8:12]} {value[12:]}",),
        )


# --- disguises -----------------------------------------------------------------------------------


def _dump(value: str, together: int) -> str:
    data, lines = value.encode(), []
    for i in range(0, len(data), 16):
        code = data[i : i + 16].hex()
        body = " ".join(code[j : j + together] for j in range(0, len(code), together))
        shown = "".join(chr(b) if 32 <= b < 127 else "." for b in data[i : i + 16])
        lines.append(
            f"{i:08x}: {body:<47}  {shown}" if together == 4 else f"{i:08x}  {body:<48} |{shown}|"
        )
    return "\n".join(lines)


def _b64(data: bytes) -> str:
    return base64.b64encode(data).decode()


DISGUISES: dict[str, Callable[[str], str]] = {
    "percent before": lambda v: f"x%3D{v}",
    "percent": lambda v: "".join(f"%{b:02X}" for b in v.encode()),
    "base32": lambda v: base64.b32encode(v.encode()).decode(),
    "base32, lower": lambda v: base64.b32encode(v.encode()).decode().lower().rstrip("="),
    "base85": lambda v: base64.b85encode(v.encode()).decode(),
    "ascii85": lambda v: base64.a85encode(v.encode(), adobe=True).decode(),
    "base64": lambda v: _b64(v.encode()),
    "hex": lambda v: v.encode().hex(),
    "hex of UTF-16": lambda v: v.encode("utf-16-le").hex(),
    "hex of UTF-16, big": lambda v: v.encode("utf-16-be").hex(),
    "rot13": lambda v: codecs.encode(v, "rot13"),
    "reversed": lambda v: v[::-1],
    "spaced": " ".join,
    "gzip": lambda v: _b64(gzip.compress(v.encode(), mtime=0)),
    "zlib": lambda v: _b64(zlib.compress(v.encode())),
    "quoted-printable": lambda v: "".join(f"={b:02X}" for b in v.encode()),
    "soft line break": lambda v: f"{v[: len(v) // 2]}=\n{v[len(v) // 2 :]}",
    "hexdump": lambda v: "\n" + _dump(v, 2) + "\n",
    "xxd": lambda v: "\n" + _dump(v, 4) + "\n",
}


def known(rng: random.Random) -> str:
    named = ("aws", "github", "gitlab", "openai", "pypi", "slack", "stripe", "sendgrid")
    return KINDS["detect-secrets"][rng.choice(named)](rng)


def disguises(rng: random.Random) -> Iterator[Case]:
    while True:
        form = rng.choice(list(DISGUISES))
        value = known(rng)
        hidden = DISGUISES[form](value)
        frame = rng.choice(("the tool said {} and went on", "data={}", '{{"blob": "{}"}}', "{}"))
        if "\n" in hidden:
            frame = "it said {} then"
        text = frame.format(hidden)
        yield Case("known token", "disguise", form, "en", "prose", text, (value, hidden.strip()))
        if form not in ("rot13", "reversed", "percent before", "soft line break", "spaced"):
            value = f"password: {pick(rng, ALNUM, 12)}7x"
            hidden = DISGUISES[form](value)
            yield Case(
                "password",
                "disguise",
                form,
                "en",
                "prose",
                f"see {hidden} there",
                (value, hidden.strip()),
            )


def cases(seed: int, count: int) -> Iterator[Case]:
    """Two in five are credentials, one people, one disguises, one clean."""
    rng = random.Random(seed)
    kinds = [
        credentials(random.Random(rng.random())),
        people(random.Random(rng.random())),
        credentials(random.Random(rng.random())),
        disguises(random.Random(rng.random())),
        clean(random.Random(rng.random())),
    ]
    yield from itertools.islice((next(kind) for kind in itertools.cycle(kinds)), count)
