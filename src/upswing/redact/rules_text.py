"""Which secrets are known by what stands around them: keys, headers, URLs, assignments?"""

from __future__ import annotations

import base64
import binascii
import re

from .build import HEX, URL64, example_value, has_varied_characters, keyword_context_rule
from .rule import LEFT, Anchor, Rule
from .values import is_dummy, is_flag_password, is_label, is_several_words, random_looking
from .words import PASSWORD_NAMES, PASSWORD_WORDS

_Q = r"""\\{0,3}["'`]"""
_CLOSE = rf"(?:{_Q}|\]|\)){{0,3}}"
_SEP = r"(?:\s|\\{1,3}[nrt]){0,8}"
_FLAG = re.compile(r"(?:^|[\s\"'`\[(])--?(?:[A-Za-z]{1,12}-){0,3}-?$")
_PEM_KIND = r"(?:[A-Z0-9]{1,12} ){0,3}(?:PRIVATE|SECRET) KEY(?: BLOCK)?"


def _is_basic_credential(value: str) -> bool:
    try:
        return b":" in base64.b64decode(value + "=" * (-len(value) % 4), validate=True)
    except (binascii.Error, ValueError):
        return False


def _word_anchors(words: tuple[str, ...], follow: str, reach: int) -> tuple[Anchor, ...]:
    return tuple(Anchor(w, follow, reach=len(w) + reach, caseless=True, late=True) for w in words)


_KEYWORD = r"(?:user|username|uid|dbname|database|host|hostaddr|port|server|sslmode|charset)"
_BEFORE = re.compile(rf"(?i)\b{_KEYWORD}=[^\s=,()]{{1,60}}[ ]{{1,2}}$")
_AFTER = re.compile(rf"(?i)[ ]{{1,2}}{_KEYWORD}=[^\s=,()]")


def _is_in_connection_string(match: re.Match[str]) -> bool:
    """Do other keywords stand beside this one, with a semicolon or a space between?"""
    before = match.string[max(0, match.start() - 80) : match.start()]
    if (";" in before and "=" in before) or _BEFORE.search(before):
        return True
    return before[-1:] in ("'", '"') and _AFTER.match(match.string, match.end()) is not None


RULES = (
    Rule(
        "private-key",
        rf"-----BEGIN {_PEM_KIND}-----(?:{_SEP}[A-Z][A-Za-z-]{{1,20}}: [^\n\\\x00]{{1,120}}){{0,4}}"
        rf"(?:[^\-\x00]{{10,16384}}-----END {_PEM_KIND}-----"
        rf"|{_SEP}[A-Za-z0-9+/=]{{10,}}(?:{_SEP}[A-Za-z0-9+/=]{{16,}}){{0,2000}}(?:{_SEP}[A-Za-z0-9+/]{{1,15}}={{1,2}}(?![A-Za-z0-9]))?)",
        anchors=(Anchor("-----BEGIN ", r"[A-Z]", 12),),
        split=True, priority=90, trusted=True,
        about="PEM, OpenSSH and PGP private keys, also cut off before their end",
        example="-----BEGIN RSA " + "PRIVATE KEY-----\n" + example_value(64) + "\n" + example_value(40) + "\n-----END RSA " + "PRIVATE KEY-----",
    ),
    Rule(
        "private-key-end",
        rf"-----END {_PEM_KIND}-----",
        anchors=(Anchor("-----END ", r"[A-Z]", 10),),
        back=r"(?:\s|[nrt]\\{1,3}){0,8}[A-Za-z0-9+/=]{1,80}(?:(?:\s|[nrt]\\{1,3}){1,8}[A-Za-z0-9+/=]{16,80}){0,200}",
        back_limit=8192, kind="private-key",
        validator=lambda v: v.index("-----END") > 20,
        priority=80, trusted=True,
        about="the rest of a private key whose beginning is elsewhere",
        example=example_value(64) + "\n" + example_value(40) + "\n-----END EC " + "PRIVATE KEY-----",
    ),
    Rule(
        "putty-key",
        r"PuTTY-User-Key-File-[123]: [^\x00]{20,600}?Private-Lines: [0-9]{1,3}(?:\s|\\[nr]){1,4}(?:[A-Za-z0-9+/=]{20,80}(?:\s|\\[nr]){0,4}){1,80}",
        anchors=(Anchor("PuTTY-User-Key-File-", r"[123]", 21),),
        kind="private-key", priority=85, trusted=True,
        about="PuTTY private keys",
        example="PuTTY-User-Key-File-3: ssh-ed25519\nEncryption: none\nComment: k\nPublic-Lines: 1\n" + example_value(40) + "\nPrivate-Lines: 1\n" + example_value(48),
    ),
    Rule(
        "jwt",
        LEFT + r"eyJ[A-Za-z0-9_\-]{8,2000}\.(?:eyJ)?[A-Za-z0-9_\-]{8,4000}\.[A-Za-z0-9_\-]{0,1000}(?:\.[A-Za-z0-9_\-]{1,2000}){0,2}",
        anchors=(Anchor("eyJ", f"[{URL64}]{{8}}", 11),),
        split=True, priority=62, trusted=True,
        about="JSON web tokens",
        example="eyJ" + "hbGciOiJIUzI1NiJ9" + ".eyJ" + "zdWIiOiI0MiJ9" + "." + example_value(43),
    ),
    Rule(
        "url-password",
        r"://[^\s:/@\"'<>\x00]{0,128}:(?P<v>[^\s/@\"'<>\x00][^\s@\"'<>\x00]{0,255})@[A-Za-z0-9\[$\{_.\-]",
        anchors=(Anchor("://", r"[A-Za-z0-9_.%+\-]{0,100}:", reach=110),),
        validator=lambda v: not is_dummy(v) and "/" not in v[:1],
        kind="password", priority=70, split=True, trusted=True,
        about="the password in scheme://user:password@host",
        example="postgres://app:" + example_value(12) + "@db.internal:5432/x",
    ),
    Rule(
        "odbc-password",
        r"(?i:pwd|password)[ ]?=[ ]?(?P<v>\{[^}\x00]{4,128}\}|[^\s;\"'<>\x00]{4,128})(?=;|\"|'|$|[ ]\w{2,20}=)",
        anchors=_word_anchors(("pwd", "password"), "[ ]?=", 4),
        validator=lambda v: not is_dummy(v) and "(" not in v and "$" not in v,
        judge=_is_in_connection_string,
        kind="password", priority=46, trusted=True,
        about="Pwd= in ODBC, ADO and JDBC connection strings",
        example="Server=db;Database=x;Uid=app;Pwd=correcthorse;",
    ),
    Rule(
        "password-element",
        rf"(?:{PASSWORD_NAMES}|(?i:secret|token))(?:[\"'][^<>\n\x00]{{0,80}}|</key>\s{{0,20}}<string)?>(?P<v>[^<>\n\x00]{{3,128}})</",
        anchors=_word_anchors((*PASSWORD_WORDS, "secret", "token"), r"[A-Za-z]{0,8}(?:[\"'][^<>\n]{0,80}|</key>\s{0,20}<string)?>", 120),
        validator=lambda v: not is_dummy(v) and not is_label(v) and (" " not in v or is_several_words(v)),
        kind="password", priority=44, trusted=True,
        about="<password>…</password>",
        example="<password>" + "hunter2" + "</password>",
    ),
    Rule(
        "password-flag",
        r"(?i:-(?:pass(?:word|wd|phrase|wort)?|pwd|token|secret|api-?key|kennwort|mdp))(?:[ ]{1,3}|=)[\"']?(?P<v>[^\s\"'$<\-\x00][^\s\"'\x00]{2,255})",
        anchors=_word_anchors(("-pass", "-pwd", "-token", "-secret", "-api", "-kennwort", "-mdp"), "[a-z\\-]{0,6}[ =]", 10),
        judge=lambda m: _FLAG.search(m.string[max(0, m.start() - 32) : m.start() + 1]) is not None and is_flag_password(m.group("v")),
        kind="password", priority=46, trusted=True,
        about="--password VALUE on a command line",
        example="mytool --password " + "hunter2!x",
    ),
    Rule(
        "command-password",
        r"(?:sshpass[ ]{1,3}-p[ ]?|mysql(?:dump|admin)?[ ][^\n|;\x00]{0,120}?(?<=[ ])-p|docker login[^\n|;\x00]{0,120}? -p[ ]|curl[ ][^\n|;\x00]{0,200}?(?<=[ ])(?:-[fikLsSv]{0,5}u|--(?:proxy-)?user)[ =]?[\"']?[^\s:\"'\x00]{1,64}:)(?:[\"'](?P<w>[^\"'$<\n\x00]{3,127})[\"']|[\"']?(?P<v>[^\s\"'$<\x00][^\s\"'\x00]{3,127}))",
        anchors=(
            Anchor("sshpass", "[ ]{1,3}-p", reach=16),
            Anchor("mysql", "[a-z]{0,5}[ ]", reach=16),
            Anchor("docker login", "[ ]", 13),
            Anchor("curl", "[ ]", 5),
        ),
        validator=lambda v: not is_dummy(v), kind="password", priority=44, trusted=True,
        about="passwords given to sshpass, mysql -p, docker login and curl -u",
        example="curl -s -u admin:" + "hunter2x" + " https://x.test/",
    ),
    Rule(
        "bearer-token",
        r"(?i:bearer)(?:[ ]|%20|\\?[\"']?:[ ]?\\?[\"']?){1,2}(?P<v>[A-Za-z0-9._~+/=\-]{16,4096})",
        anchors=_word_anchors(("bearer",), r"[ %\\\"':]", 2),
        validator=lambda v: any(ch.isdigit() for ch in v) and random_looking(v),
        split=True, priority=48, trusted=True,
        about="Authorization: Bearer …",
        example="Authorization: Bearer " + example_value(32),
    ),
    Rule(
        "basic-auth",
        r"(?i:basic)[ ](?P<v>[A-Za-z0-9+/_\-]{8,512}={0,2})",
        anchors=_word_anchors(("basic",), "[ ][A-Za-z0-9+/]{8}", 12),
        validator=_is_basic_credential, priority=71, trusted=True,
        about="Authorization: Basic …",
        example="Authorization: Basic " + base64.b64encode(b"app:" + example_value(9).encode()).decode(),
    ),
    Rule(
        "stored-login",
        rf"(?<![A-Za-z])auth{_CLOSE}[ ]?[:=][ ]?{_Q}(?P<v>[A-Za-z0-9+/]{{8,512}}={{0,2}})(?={_Q})",
        anchors=_word_anchors(("auth",), r"""[\\"'`\]]{0,4}[ ]?[:=]""", 12),
        validator=_is_basic_credential, kind="basic-auth", priority=51, trusted=True,
        about="the logins that docker and npm keep: auth, with user:password in base64",
        example='"auth": "' + base64.b64encode(b"app:" + example_value(9).encode()).decode() + '"',
    ),
    Rule(
        "cookie",
        rf"(?i:cookie){_CLOSE}[ \t]{{0,2}}[:=,][ \t]{{0,2}}(?:{_Q})?(?P<v>[\w.\-]{{1,64}}=[^\s;\"'<\x00]{{6,4096}}(?:;[ ]?[^\r\n\"'\x00;]{{0,4096}}){{0,40}})",
        anchors=_word_anchors(("cookie",), r"""[\\"'`\]]{0,4}[ \t]{0,2}[:=,]""", 12),
        validator=lambda v: any(ch.isdigit() for ch in v), priority=52, trusted=True,
        about="Cookie and Set-Cookie headers",
        example="Cookie: session=" + example_value(24) + "; theme=dark",
    ),
    Rule(
        "session-id",
        r"(?i:PHPSESSID|JSESSIONID|connect\.sid|ASP\.NET_SessionId|csrftoken|sessionid|session)=(?P<v>[A-Za-z0-9%._\-]{16,256})",
        anchors=_word_anchors(("phpsessid=", "jsessionid=", "connect.sid=", "sessionid=", "csrftoken=", "session="), "", 2),
        validator=random_looking, priority=47, trusted=True,
        about="session ids by their usual names",
        example="JSESSIONID=" + example_value(32),
    ),
    keyword_context_rule("webhook-url", ("webhook",), r"https://[^\s\"'<>\x00]{20,300}", example="WEBHOOK_URL=https://hooks.corp.test/in/" + example_value(24), validator=lambda v: random_looking(v.rstrip("/").rsplit("/", 1)[-1]), priority=43, about="a webhook's address with a random part"),
    keyword_context_rule("hex-key", ("encryption", "aes_key", "hmac", "signing"), "[0-9a-f]{32,128}", kind="secret", example="HMAC_KEY=" + example_value(64, HEX), validator=has_varied_characters, priority=41, about="raw keys in hexadecimal"),
)  # fmt: skip
