"""Where do programs keep passwords in a form of their own: SQL, netrc, hashes, headers, wallets?"""

from __future__ import annotations

import re

from .build import (
    HEX,
    example_value,
    has_varied_characters,
    keyword_context_rule,
    prefixed_token_rule,
)
from .ordinary import is_ordinary_word
from .rule import LEFT, Anchor, Rule
from .values import is_dummy, is_flag_password, is_label, is_several_words, random_looking
from .wallet import SEED, is_wif_private_key
from .words import LINK, PASSWORD_NAMES, SECRET

_B58 = "1-9A-HJ-NP-Za-km-z"
_Q = r"""\\{0,3}["'`]"""


_STATEMENT = re.compile(
    r"(?i)identified|(?:create|alter)\s+(?:user|role|login|database)|set\s+password|(?:with|encrypted)\s+password"
)


def _line_anchors(*literals: str, follow: str, reach: int) -> tuple[Anchor, ...]:
    return tuple(Anchor(w, follow, reach=len(w) + reach, caseless=True) for w in literals)


def _is_real_value(value: str) -> bool:
    return (
        not is_dummy(value)
        and not is_label(value)
        and not value.startswith((":", "$", "?", "@", "%(", "{"))
    )


def is_boolean_word(value: str) -> bool:
    """One of the words that configuration has for yes, no and nothing."""
    return value.lower() in ("true", "false", "none", "null", "yes", "no", "on", "off")


RULES = (
    SEED,
    Rule(
        "define-secret",
        rf"(?i:define)\([ ]?(?P<q>{_Q})[A-Za-z0-9_]{{0,40}}(?i:pass|pwd|secret|token|key|salt|auth)[A-Za-z0-9_]{{0,16}}(?P=q)[ ]?,[ ]{{0,8}}(?P<r>{_Q})(?P<v>(?:(?!(?P=r))[^\n\x00]){{3,256}})(?P=r)",
        anchors=_line_anchors("define(", follow=rf"[ ]?{_Q}", reach=6),
        validator=lambda v: (len(v) > 31 and len(set(v)) > 16) or (_is_real_value(v) and not is_boolean_word(v)), kind="secret", priority=44, trusted=True,
        about="define('DB_PASSWORD', '…') in PHP",
        example="define('AUTH_KEY', '" + example_value(64) + "');",
    ),
    Rule(
        "tool-password",
        r"(?:redis-cli[ ][^\n|;\x00]{0,80}?-a[ ]|requirepass[ ]|masterauth[ ]|-(?:src|dest)?(?:store|key)pass[ ]|(?:store|key)Password[ ]|wpa_passphrase[ ][^\s\x00]{1,40}[ ]|wpa[-_]psk[ =]|(?<![a-z])psk=|(?<=redis> )AUTH[ ]|(?<![A-Za-z])AUTH[ ](?=[^\s]{3,64}\r?\n)|;P:)(?:[\"'](?P<v>[^\"'\n\x00]{3,128})[\"']|(?P<w>[^\s\"'$<;\x00]{3,128}))",
        anchors=tuple(Anchor(p, "", len(p)) for p in ("redis-cli ", "requirepass ", "masterauth ", "-storepass ", "-keypass ", "-srcstorepass ", "-deststorepass ", "storePassword ", "keyPassword ", "wpa_passphrase ", "wpa-psk ", "wpa_psk=", "psk=", "redis> AUTH ", "AUTH ", ";P:")),
        validator=lambda v: _is_real_value(v) and v.lower() not in ("plain", "login", "cram-md5", "tls", "required"), kind="password", priority=44, trusted=True,
        about="passwords given to redis, keytool and wireless networks",
        example="redis-cli -h db -a " + "swordfish",
    ),
    Rule(
        "terraform-variable",
        rf"variable[ ]\"[\w\-]{{0,40}}?(?:{PASSWORD_NAMES}|(?i:secret|token|api_key))[\w\-]{{0,20}}\"[ ]?\{{[^}}\x00]{{0,300}}?default[ ]{{0,12}}=[ ]\"(?P<v>[^\"\n\x00]{{3,128}})\"",
        anchors=(Anchor('variable "', "[A-Za-z_]", 11),),
        validator=_is_real_value, kind="password", priority=44, trusted=True,
        about="the default of a Terraform variable",
        example='variable "db_password" {\n  default = "' + "swordfish" + '"\n}',
    ),
    Rule(
        "planned-password",
        r"\"[ ]->[ ]\"(?P<v>[^\"\n\x00]{3,128})\"",
        anchors=(Anchor('" -> "', "", 6),),
        judge=lambda m: _is_real_value(m.group("v")) and re.search(rf"(?:{PASSWORD_NAMES}|(?i:secret|token))[\w\-]{{0,16}}\"?[ ]{{0,24}}[=:][ ]\"[^\"\n]{{0,128}}$", m.string[max(0, m.start() - 200) : m.start()]) is not None,
        kind="password", priority=44, trusted=True,
        about="the new password of a Terraform plan",
        example='~ db_password = "<hidden>" -> "' + "swordfish" + '"',
    ),
    Rule(
        "sql-password",
        rf"(?i:identified(?:[ ]with[ ][\w'\"]{{1,40}})?[ ](?:by|as)(?:[ ]password)?|(?:with|encrypted|set)?[ ]?password(?:[ ]for[ ][^=\n]{{1,60}})?|[ ]password)[ ]{{0,2}}[=(]?[ ]?N?(?P<q>{_Q})(?P<v>(?:(?!(?P=q))[^\n\x00]){{2,256}})(?P=q)",
        anchors=_line_anchors("identified ", follow=rf"[^\n]{{0,60}}{_Q}", reach=66) + _line_anchors("password", follow=rf"[ (][^\n]{{0,60}}{_Q}", reach=66),
        judge=lambda m: _is_real_value(m.group("v")) and (" " not in m.group("v").strip() or is_several_words(m.group("v"))) and _is_sql_statement(m.string, m.start()),
        kind="password", priority=46, trusted=True,
        about="IDENTIFIED BY '…', PASSWORD '…' in SQL",
        example="CREATE USER app IDENTIFIED BY '" + "hunter2x" + "'",
    ),
    Rule(
        "sql-password-bare",
        r"(?i:identified by )(?P<v>[^\s\"'`;,<>\x00]{3,128})",
        anchors=_line_anchors("identified by ", follow="[A-Za-z0-9]", reach=2),
        validator=lambda v: is_flag_password(v) and not is_ordinary_word(v), kind="password", priority=45, trusted=True,
        about="IDENTIFIED BY … without quotes",
        example="CREATE USER app IDENTIFIED BY " + "hunter2x" + ";",
    ),
    Rule(
        "netrc-password",
        r"(?i:login|user|account)[ \t\n]{1,8}[^\s\x00]{1,80}\s{1,8}password[ \t]{1,8}(?P<v>[^\s\"'\x00]{2,128})",
        anchors=_line_anchors("login", "user", "account", follow=r"[ \t\n]{1,8}[^\s]{1,80}\s{1,8}password[ \t]", reach=120),
        validator=is_flag_password, kind="password", priority=45, trusted=True,
        about="passwords in .netrc",
        example="machine h.test login bob password " + "swordfish",
    ),
    Rule(
        "pgpass",
        r":(?:[0-9]{4,5}|\*):[A-Za-z_*][\w*\-]{0,40}:[A-Za-z_*][\w*.\-]{0,40}:(?P<v>[^\s:\x00]{3,128})(?=\s|$|\\n|[\"'`])",
        anchors=(Anchor("", r":[0-9]{4}:[A-Za-z_*]", 7, edged=False), Anchor("", r":[0-9]{5}:[A-Za-z_*]", 8, edged=False), Anchor(":*:", "[A-Za-z_*]", 4)),
        back=r"[\w.*\-]{1,100}", judge=lambda m: not is_dummy(m.group("v")), kind="password", priority=45, trusted=True,
        about="lines of .pgpass",
        example="db.test:5432:app:bob:" + "swordfish",
    ),
    Rule(
        "secure-string",
        rf"(?i:convertto-securestring)[ ](?:(?i:-string|-asplaintext|-force)[ ]){{0,3}}(?P<q>{_Q})(?P<v>(?:(?!(?P=q))[^\n\x00]){{2,256}})",
        anchors=_line_anchors("convertto-securestring", follow=rf"[ ][^\n]{{0,40}}{_Q}", reach=48),
        validator=_is_real_value, kind="password", priority=46, trusted=True,
        about="ConvertTo-SecureString in PowerShell",
        example='ConvertTo-SecureString "' + "hunter2x" + '" -AsPlainText -Force',
    ),
    Rule(
        "password-hash",
        r"(?:\$(?:[156]|y|7|gy|sha1|apr1|2[abxy]?|md5)\$[A-Za-z0-9./$=,\-]{20,200}|\$argon2(?:id|i|d)\$[A-Za-z0-9+/=,$]{30,300}|\{S?SHA(?:256|512)?\}[A-Za-z0-9+/=]{20,120}|pbkdf2_sha(?:256|1)\$[0-9]{1,8}\$[A-Za-z0-9+/=$]{20,160})",
        anchors=tuple(Anchor(p, "[A-Za-z0-9./$=]{4}", len(p) + 4) for p in ("$1$", "$5$", "$6$", "$y$", "$7$", "$gy$", "$2$", "$2a$", "$2b$", "$2x$", "$2y$", "$apr1$", "$argon2", "{SSHA}", "{SHA}", "{SSHA256}", "{SSHA512}", "{SHA256}", "{SHA512}", "pbkdf2_sha")),
        priority=60, trusted=True,
        about="hashes of passwords: shadow files, htpasswd, bcrypt, argon2, LDAP, Django",
        example="$6$" + example_value(16) + "$" + example_value(86),
    ),
    Rule(
        "authorization",
        rf"(?i:(?:proxy-)?authorization|x-auth-token|x-api-key|x-access-token|x-vault-token|private-token|job-token|deploy-token|x-amz-security-token|apikey)(?:{_Q}|\]|\)){{0,3}}[ \t]{{0,2}}[:=,][ \t]{{0,2}}(?:{_Q})?(?i:(?:token|bearer|basic|digest|negotiate|api-?key|key|apitoken|ssws|genie-?key|[a-z][a-z0-9-]{{1,20}})[ ]{{1,2}}(?:(?:token|key|username|credential)=(?:{_Q})?)?)?(?P<v>[A-Za-z0-9._~+/=:%\-]{{6,4096}})",
        anchors=_line_anchors("authorization", "x-auth-token", "x-api-key", "x-access-token", "x-vault-token", "private-token", "job-token", "deploy-token", "x-amz-security-token", "apikey", follow=r"""[\\"'`\])]{0,6}[ \t]{0,2}[:=,]""", reach=14),
        validator=lambda v: not is_dummy(v) and (any(ch.isdigit() for ch in v) or (len(v) >= 20 and "." not in v and v.lower() != v)) and len(set(v)) > 4 and not v.startswith(("http", "/")),
        kind="secret", priority=43, trusted=True,
        about="Authorization: Token, ApiKey, … and the headers like it",
        example="Authorization: Token " + example_value(24),
    ),
    Rule(
        "environment-password",
        rf"(?:ENV|ARG|setx|setenv|set -gx|set -x)[ ](?:[A-Za-z0-9]{{1,20}}_){{0,4}}(?:{PASSWORD_NAMES}|SECRET|TOKEN|API_KEY|SECRET_KEY)[ ]{{1,3}}(?P<q>[\"']?)(?P<v>[^\s\"'$<\x00]{{3,256}})",
        anchors=tuple(Anchor(w, "[A-Za-z0-9_]{3}", len(w) + 3) for w in ("ENV ", "ARG ", "setx ", "setenv ", "set -gx ", "set -x ")),
        validator=lambda v: _is_real_value(v) and v != "=", kind="password", priority=44, trusted=True,
        about="ENV DB_PASSWORD … in Dockerfiles and shells",
        example="ENV DB_PASSWORD " + "swordfish",
    ),
    Rule(
        "input-value",
        rf"value=(?P<q>[\"'])(?P<v>[^\"'<>\n\x00]{{2,128}})(?P=q)[^<>\n\x00]{{0,80}}?[ ](?:type|name|id)=[\"'](?:[A-Za-z]{{1,12}}[_-])?{PASSWORD_NAMES}[\"']",
        anchors=(Anchor("value=", r"[\"'][^\"'<>\n]{2,64}[\"'][ ]", reach=74),),
        validator=_is_real_value, kind="password", priority=44, trusted=True,
        about="the value of an HTML field whose name comes after it",
        example='<input value="' + "swordfish" + '" name="password">',
    ),
    Rule(
        "stdin-password",
        r"echo[ ](?:-n[ ])?(?P<q>[\"']?)(?:[a-z_][\w\-]{0,31}:)?(?P<v>[^\s\"'$<>|:\x00]{3,128}|(?<=[\"'])[^\"'$|\n\x00]{3,128})(?P=q)[ ]?\|[ ]?(?:sudo[ ](?:-S[ ])?)?(?:chpasswd|passwd[ ]--stdin|-S\b|[^\n|]{0,60}--password-stdin|[^\n|]{0,60}(?:pass|passwd|sudo)[ ]?-S)",
        anchors=(Anchor("echo ", r"[^\n|]{3,140}\|", reach=150),),
        validator=_is_real_value, kind="password", priority=44, trusted=True,
        about="a password that a shell pipes into chpasswd, sudo -S or --password-stdin",
        example="echo bob:" + "swordfish" + " | chpasswd",
    ),
    Rule(
        "openssl-pass",
        r"(?<![A-Za-z])pass:(?P<v>[^\s\"'$<>\x00]{3,128})",
        anchors=(Anchor("pass:", r"[^\s\"'$<]", 6),),
        judge=lambda m: _is_real_value(m.group("v")) and "pass" in m.string[max(0, m.start() - 12) : m.start()],
        kind="password", priority=46, trusted=True,
        about="openssl -passin pass:…",
        example="openssl rsa -passin pass:" + "swordfish",
    ),
    Rule(
        "azure-client-secret-alone",
        r"[78]Q~[A-Za-z0-9_~.\-]{31,34}(?![A-Za-z0-9_~\-])",
        anchors=tuple(Anchor(p, r"[A-Za-z0-9_~.\-]{31}", 34) for p in ("7Q~", "8Q~")),
        back=r"[A-Za-z0-9_~.\-]{3}", kind="azure-client-secret", split=True, priority=61, trusted=True,
        about="Azure AD client secrets without a name beside them",
        example="k7X" + "8Q~" + example_value(34),
    ),
    prefixed_token_rule("extended-private-key", ("xprv", "yprv", "zprv", "tprv"), _B58, 100, 115, kind="wallet-key", about="extended private keys of wallets", example="xprv" + example_value(107).replace("0", "2").replace("I", "J").replace("O", "P").replace("l", "m")),
    Rule(
        "wallet-key",
        LEFT + rf"[5KLc9][{_B58}]{{50,51}}(?![A-Za-z0-9])",
        anchors=(Anchor("", rf"[5KLc9][{_B58}]{{50}}", 51),),
        validator=is_wif_private_key, split=True, priority=60, trusted=True,
        about="private keys of wallets in WIF, with their checksum",
        example="5HueCGU8rMjxEXxiPuD5BDku4MkFqeZyd4dZ1jvhTVqvbTLvyTJ",
    ),
    keyword_context_rule("hex-private-key", ("private key", "private_key", "privatekey", "privkey", "priv key", "secret key", "secret_key", "wallet key", "wallet", "seed", "privatschlussel", "klucz prywatny", "prive sleutel", "privesleutel", "ozel anahtar", "mnemonic", "ethereum", "bitcoin", "metamask", "keystore", SECRET, "eth key", "signing key", "privater schlussel", "cle privee", "clave privada", "chave privada", "chiave privata"), r"(?:0x)?[0-9a-fA-F]{64}", kind="wallet-key", gap=rf"""[^\n\x00]{{0,60}}?[\s:="'`(>{SECRET}{LINK}]""", example="private key 0x" + example_value(64, HEX), priority=57, validator=has_varied_characters, about="private keys in hexadecimal behind their name"),
    keyword_context_rule("aws-secret-alone", ("aws", "amazon"), r"[A-Za-z0-9/+]{40}", gap=r"""[^\n\x00]{0,60}?[\s:="'`]""", kind="aws-secret-key", example="my aws keys: " + example_value(40), priority=50, validator=lambda v: random_looking(v) and any(ch.isupper() for ch in v) and any(ch.islower() for ch in v), about="forty random characters on a line that speaks of AWS"),
)  # fmt: skip


def _is_sql_statement(text: str, position: int) -> bool:
    """Is this a statement, and not a sentence that mentions a password?"""
    low = max(text.rfind("\n", 0, position) + 1, position - 160)
    return _STATEMENT.search(text[low : position + 16]) is not None
