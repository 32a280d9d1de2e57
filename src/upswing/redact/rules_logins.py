"""Where does a password stand behind its user, without a name of its own: commands, calls, pairs?"""

from __future__ import annotations

import re

from .ordinary import is_ordinary_word
from .rule import Anchor, Rule
from .said import can_be_password
from .strength import is_strong_token
from .values import is_dummy, is_label
from .words import IDENTIFIERS

_Q = r"""\\{0,3}["'`]"""
_BARE = r"""[^\s"'`$<>|;&\x00\-][^\s"'`<>|;\x00]{2,127}"""
_GIVEN = rf"(?:{_Q}(?P<v>[^\"'`$\n\x00]{{3,128}}){_Q}|(?P<w>{_BARE}))"
_ARGS = r"[^\n|;\x00]{0,120}?"
_COMMANDS = (
    (
        rf"(?:az|docker|podman|helm registry|oc|cf|rdesktop|mongo(?:sh|dump|restore)?|mysql\w{{0,8}}|sqlcmd|isql|mosquitto_\w{{3}})[ ]{_ARGS}(?<=[ ])-[pPw]",
        (
            "az login",
            "docker login",
            "podman login",
            "oc login",
            "cf login",
            "rdesktop ",
            "mongo",
            "sqlcmd ",
            "mosquitto_",
        ),
    ),
    (rf"(?:un)?zip[ ]{_ARGS}(?<=[ ])-P", ("zip ", "unzip ")),
    (rf"7za?[ ]{_ARGS}(?<=[ ])-p", ("7z ", "7za ")),
    (
        rf"ldap(?:search|add|modify|delete|whoami|passwd)[ ]{_ARGS}(?<=[ ])-w",
        ("ldapsearch ", "ldapadd ", "ldapmodify ", "ldapdelete ", "ldapwhoami ", "ldappasswd "),
    ),
    (rf"openssl[ ]enc[ ]{_ARGS}(?<=[ ])-k", ("openssl enc ",)),
    (rf"user(?:add|mod)[ ]{_ARGS}(?<=[ ])-p", ("useradd ", "usermod ")),
    (
        r"htpasswd[ ](?:-[a-zA-Z]{1,6}[ ]){0,3}?-[a-zA-Z]{0,5}b[a-zA-Z]{0,5}[ ](?:-[a-zA-Z]{1,6}[ ](?:[0-9]{1,2}[ ])?){0,3}[^\s\-][^\s]{0,79}[ ][^\s]{1,40}(?=[ ])",
        ("htpasswd ",),
    ),
    (r"net[ ]user[ ][^\s/]{1,40}(?=[ ])", ("net user ",)),
    (
        r"net[ ]use[ ](?:[a-zA-Z*]:?[ ])?\\\\[^\s]{1,80}(?:[ ]/(?i:u|user|persistent|savecred):?[^\s]{0,60}){0,3}(?=[ ])",
        ("net use ",),
    ),
    (rf"(?:xfreerdp|cmdkey)[ ]{_ARGS}(?<=[ ])/p(?:ass)?:", ("xfreerdp ", "cmdkey ")),
    (rf"smbclient[ ]{_ARGS}(?<=[ ])(?:-U[ ]?|--user[ =])[^\s%]{{1,40}}%", ("smbclient ",)),
    (
        rf"(?:cqlsh|psexec(?:\.exe)?|ipmitool|evil-winrm)[ ]{_ARGS}(?<=[ ])-[pP]",
        ("cqlsh ", "psexec ", "psexec.exe ", "ipmitool ", "evil-winrm "),
    ),
    (r"passwd[ ][^\s<]{1,40}[ ]?<<<", ("passwd ",)),
    (r"(?:with-token|password-stdin|login)[ ]?<<<", ("with-token ", "password-stdin ")),
    (r"vault[ ]login", ("vault login ",)),
    (r"sp_addlogin[ ]'[^'\n]{1,60}',", ("sp_addlogin ",)),
    (r"(?i:pragma[ ](?:re)?key[ ]?=)", ("pragma key", "PRAGMA key", "PRAGMA rekey")),
)
"""What stands before the password on a command line, and the words by which the place is found."""
_CALLS = (
    "login(",
    "log_in(",
    "logon(",
    "signin(",
    "sign_in(",
    "authenticate(",
    "basic_auth",
    "basicauth(",
    "setbasicauth(",
    "networkcredential(",
    "passwordauthentication(",
    "usernamepassword",
    "getconnection(",
    "mysqli_connect(",
    "mysql_connect(",
    "pdo(",
    "wifi.begin(",
    "auth=(",
    "auth = (",
    "connect_to(",
    "create_user(",
    "createuser(",
    "create_superuser(",
)
_KEYS = "key|psk|code|schlussel|cle|clave|chiave|chave|sleutel|klucz|nyckel|anahtar"
_ARGUMENT = rf"(?:{_Q}[^\"'`\n]{{1,80}}{_Q}|[A-Za-z_$][\w.$\[\]\"']{{0,60}})"
_PAIRED = "(?i:credentials?|creds|zugangsdaten|login(?:s|daten)?|log[ -]?in with|accesos?|acceso|identifiants?|credenciais|credenziali|inloggegevens|dane logowania|giris bilgileri|(?:user(?:name)?|login|benutzer|usuario|utente|utilisateur)[ ]?/[ ]?(?:pass(?:word)?|pw|pwd))"


def _is_given_login(match: re.Match[str]) -> bool:
    value = match.group("v") or match.group("w")
    return not (
        is_dummy(value)
        or is_label(value)
        or value.lower() in IDENTIFIERS
        or value.startswith(("-", "/", "$", "%", "./"))
    )


def _is_named_login(match: re.Match[str]) -> bool:
    value = match.group("v")
    if (
        is_dummy(value)
        or is_label(value)
        or value.lower() in IDENTIFIERS
        or " " in value
        or "@" in value.lstrip("@")
    ):
        return is_strong_token(value)
    return not re.fullmatch(r"[\w\-]*[._/:][\w.\-/:]*", value) or is_strong_token(value)


def _is_login_pair(match: re.Match[str]) -> bool:
    value = (match.group("v") or match.group("w")).rstrip(".,;")
    if (
        is_dummy(value)
        or is_label(value)
        or len(value) < 4
        or value.lower() in IDENTIFIERS
        or "/" in value
    ):
        return False
    bare = value.rstrip("0123456789")
    counted = len(value) - len(bare) > 1 and len(bare) > 3
    return is_strong_token(value) or bool(match.group("v")) or counted or not is_ordinary_word(bare)


def _is_network_key(match: re.Match[str]) -> bool:
    value = match.group("v") or match.group("u")
    return not (is_dummy(value) or is_label(value)) and (
        bool(match.group("v")) or can_be_password(match, value)
    )


def _is_dsn(value: str) -> bool:
    return not is_dummy(value) and not value.startswith("/")


RULES = (
    Rule(
        "command-login",
        rf"(?<![A-Za-z])(?:{'|'.join(command for command, _ in _COMMANDS)})[ =]{{0,2}}{_GIVEN}",
        anchors=tuple(Anchor(word, "", len(word)) for _, words in _COMMANDS for word in words),
        judge=_is_given_login, kind="password", priority=44, trusted=True,
        about="a password on the command line of tools that call it -p, -P, -w, -k or nothing",
        example="ldapsearch -D cn=bob -w " + "swordfish",
    ),
    Rule(
        "login-call",
        rf"(?:(?i:getconnection|mysqli?_connect|pdo)\((?:{_ARGUMENT},[ ]?){{2}}|(?i:create_?(?:super)?user)\((?:{_ARGUMENT},[ ]?){{1,2}}|(?!(?i:getconn|mysql|pdo|create))(?i:[\w.]{{1,40}})[ ]?=?[ ]?[( ]{_ARGUMENT},[ ]?){_Q}(?P<v>[^\"'`\n\x00]{{3,128}}){_Q}[ ]?(?:[,)]|\.to|$|\n)",
        anchors=tuple(Anchor(word, "", len(word), caseless=True) for word in _CALLS),
        judge=_is_named_login, kind="password", priority=43, trusted=True,
        about="the text behind the user in a call that logs in",
        example='client.login("bob", "' + "swordfish" + '")',
    ),
    Rule(
        "login-pair",
        rf"{_PAIRED}[*_`]{{0,2}}[ ]?[:=\-]?[*_]{{0,2}}[ ]{{0,2}}`?[\w.@+\-]{{2,64}}`?[ ]?(?:/|:|\|)[ ]?(?:{_Q}(?P<v>[^\"'`\n\x00]{{3,64}}){_Q}|(?P<w>[^\s\"'`/|,;<>()\[\]\x00]{{4,64}}))(?=[\s.,;)\"'`<]|$)",
        anchors=tuple(Anchor(word, r"[^\n]{0,80}[/:|]", reach=len(word) + 90, caseless=True, late=True) for word in ("credential", "creds", "zugangsdaten", "login", "log in with", "log-in with", "acceso", "identifiant", "credenciais", "credenziali", "inloggegevens", "dane logowania", "giris bilgileri", "user/pass", "username/pass", "user / pass", "username / pass", "benutzer/pass", "usuario/", "utente/", "utilisateur/")),
        judge=_is_login_pair, kind="password", priority=42, trusted=True,
        about="a user and a password with a stroke between them",
        example="Login: bob / " + "swordfish",
    ),
    Rule(
        "network-key",
        rf"(?i:wi-?fi|w-?lan|ssid|hotspot)(?![A-Za-z])[^\n\x00]{{1,80}}?(?<![A-Za-z])(?i:{_KEYS})(?:[ ](?i:is|ist|lautet|est|es|e|to|jest)[ ]|[ ]?[:=][ ]?)(?:{_Q}(?P<v>[^\"'`\n\x00]{{6,64}}){_Q}|(?P<u>[^\s\"'`<>()\[\]{{}},;|\x00]{{6,64}}(?<![.!?:])))",
        anchors=tuple(Anchor(word, rf"[^\n]{{1,81}}(?:{_KEYS})[ :=]", reach=len(word) + 100, caseless=True, late=True) for word in ("wifi", "wi-fi", "wlan", "w-lan", "ssid", "hotspot")),
        judge=_is_network_key, kind="password", priority=42, trusted=True,
        about="the key of a wireless network behind its name",
        example="wifi: GuestNet, key: " + "wombat-sofa-77",
    ),
    Rule(
        "dsn-password",
        r"(?=@(?:tcp|unix)\()",
        anchors=(Anchor("@tcp(", "", 5), Anchor("@unix(", "", 6)),
        back=r"[^\s\"'`@/:\x00]{3,128}(?=:[\w.\-]{1,40}[\"'`])", validator=_is_dsn, kind="password", priority=44, trusted=True,
        about="user:password@tcp(host) of Go's drivers",
        example='"bob:' + "swordfish" + '@tcp(db:3306)/x"',
    ),
)  # fmt: skip
