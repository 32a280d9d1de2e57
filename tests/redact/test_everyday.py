"""What people and tools write every day goes where it is secret, and only there."""

from __future__ import annotations

import pytest

from upswing.redact import Redactor

REDACTORS = {name: Redactor(engine=name) for name in ("auto", "python")}
VALUES = ("Kartoffel5", "tomate_tomate", "Quitte4711", "wombat-Sofa-77")


def stored(text: str) -> str:
    """What both engines leave of the text."""
    first, second = (redactor.text(text) for redactor in REDACTORS.values())
    assert first.value == second.value
    assert [(f.start, f.end, f.rule) for f in first.findings] == [
        (f.start, f.end, f.rule) for f in second.findings
    ]
    return first.value


def goes(text: str, kind: str) -> None:
    """What stands between « and » goes, and nothing else."""
    before, _, rest = text.partition("«")
    value, _, after = rest.partition("»")
    assert stored(before + value + after) == f"{before}<{kind}-1>{after}"


def stays(text: str) -> None:
    assert stored(text) == text


@pytest.mark.parametrize("value", VALUES)
@pytest.mark.parametrize(
    "command",
    [
        "mysql --password={}",
        "mysql -u root --password='{}' shop",
        "mysqldump --password {} shop",
        "mysqladmin --port=3306 -p{} status",
        "useradd --password {} bob",
        "useradd -p {} bob",
        "useradd -m -p {} bob",
        "curl -su bob:{} https://x.test/",
        "ldapwhoami -w {}",
        "ldapsearch -x -D cn=bob -w {} -b dc=x",
        "openssl enc -k {} -in a",
        "openssl enc -aes-256-cbc -k {}",
        r"net use Z: \\srv\share /user:dom\bob {}",
        r"net use \\srv\share {} /user:dom\bob",
        "net user bobby {} /add",
        "smbclient -U bob%{} //srv/share",
        "smbclient --user=bob%{} //srv/share",
        "htpasswd -b f bob {}",
        "htpasswd -cbB f bob {}",
        "unzip -P {} a.zip",
        "7z a -p{} x.7z",
        r"psexec \\srv -u bob -p {} cmd",
        "mongosh -p {}",
    ],
)
def test_a_command_keeps_its_flags_and_loses_its_password(command: str, value: str):
    goes(command.format(f"«{value}»"), "password")


@pytest.mark.parametrize(
    "command",
    [
        "mysql --print-defaults",
        "mysql --protocol=tcp",
        "curl --url=https://foo.test/abcd",
        "net user bobby",
        "net user bobby /add",
        r"net use \\srv\share /user:dom\bob",
        r"net use Z: \\srv\share /persistent:yes",
        "htpasswd -c file bobby",
        "mongodump --port 27017 --out dump",
    ],
)
def test_a_command_without_a_password_stays(command: str):
    stays(command)


@pytest.mark.parametrize("address", ["83.169.40.22", "84.112.7.199", "91.198.174.192"])
@pytest.mark.parametrize(
    "text",
    [
        "ssh deploy@{}",
        "scp a bob@{}:/tmp",
        "rsync -a x root@{}:/srv",
        "the server {} is down",
        "der Server {} antwortet nicht",
        "le serveur {} ne répond pas",
        "el servidor {} no responde",
        "il server {} non risponde",
        "server={}",
        "Server: {}",
    ],
)
def test_a_public_address_goes_behind_a_user_or_a_word(text: str, address: str):
    goes(text.format(f"«{address}»"), "ip")


@pytest.mark.parametrize(
    "text",
    [
        "appVersion: 91.18.74.19",
        "fileVer 91.18.74.19",
        "ver. 91.18.74.19",
        "v91.18.74.19",
        "driver 91.18.74.19",
        "npm i foo@1.2.3.4",
        "rev 91.18.74.19",
    ],
)
def test_a_version_is_no_address(text: str):
    stays(text)


@pytest.mark.parametrize("place", ["Django", "Jenkins", "Tautulli"])
@pytest.mark.parametrize(
    "text",
    [
        "How do I reset a forgotten password in {}?",
        "change my password in {}",
        "I need to update the password in {} today",
        "Wie ändere ich mein Passwort in {}?",
        "Comment changer mon mot de passe sur {} ?",
        "¿Cómo cambio mi contraseña en {}?",
        "Come cambio la password su {}?",
    ],
)
def test_the_place_where_a_password_is_changed_stays(text: str, place: str):
    stays(text.format(place))


@pytest.mark.parametrize(
    "text",
    [
        "Ho cambiato la password in «Girasole»",
        "Ich habe das Passwort auf «Mondschein» geändert",
        "I changed the password to «marmalade»",
    ],
)
def test_what_a_password_is_changed_to_goes(text: str):
    goes(text, "password")


@pytest.mark.parametrize(
    "text",
    [
        "user's password expires in 30 days",
        "the user's password expires soon",
        "das Passwort läuft in 30 Tagen ab",
        "le mot de passe expire dans 30 jours",
    ],
)
def test_how_long_a_password_lasts_stays(text: str):
    stays(text)


@pytest.mark.parametrize("value", ["Gurke-Sofa", "Sonnenblume", "Sommer!2024"])
@pytest.mark.parametrize(
    "text",
    [
        "Mein WLAN-Passwort ist {}, falls du es brauchst",
        "Das Passwort lautet {}, wenn es jemand sucht",
        "the password is {}, if anybody needs cherries",
        "le mot de passe est {}, si tu en as besoin",
    ],
)
def test_a_clause_behind_the_password_stays(text: str, value: str):
    goes(text.format(f"«{value}»"), "password")


@pytest.mark.parametrize("service", ["Netflix", "Deezer"])
@pytest.mark.parametrize(
    "text",
    [
        "mon mot de passe {} est «Patate55»",
        "mi contraseña {} es «Patata55»",
        "mein Passwort {} ist «Patate55»",
        "la mia password {} è «Patate55»",
        "moje hasło {} to «Patate55»",
        "my password {} is «Patate55»",
    ],
)
def test_whose_password_it_is_stays(text: str, service: str):
    goes(text.format(service), "password")


@pytest.mark.parametrize(
    "text",
    [
        "passphrase: «correcthorse batterystaple»",
        "Passphrase = «gurkensalat mondschein»",
        "password: «gurkensalat wombat»",
        "пароль от почты: «Pelmeni_77»",
        "пароль от вайфая: «pelmeni»",
        "password for the test user -> «tomate_tomate»",
        "password for the guests → «wombat-Sofa-77»",
        "Passwort für die Gäste -> «Kartoffel5»",
        "the wifi here is GuestNet and the key is «wombat-Sofa-77»",
        "wifi: GuestNet, key: «wombat-Sofa-77»",
        "WLAN: Gast, Schlüssel: «Kartoffel5»",
        "wifi GuestNet, clé : «Patate5511»",
        "SSID=GuestNet key=«wombat-Sofa-77»",
        "Login: admin@firma / «Quitte4711»",
        "credentials admin:«Quitte4711»",
        "Zugangsdaten: bob / «Quitte4711»",
        "identifiants : bob / «Patate5511»",
        'psycopg2.connect("dbname=a user=b password=«Kartoffel5»")',
        "connect('host=db password=«Kartoffel» user=b')",
        '"password=«Kartoffel5» user=b"',
        'requests.get(u, auth=("bob", "«Kartoffel5»"))',
        "s.auth = ('bob', '«Kartoffel5»')",
    ],
)
def test_a_password_told_in_passing_goes(text: str):
    goes(text, "password")


@pytest.mark.parametrize("code", ["482913", "7301"])
@pytest.mark.parametrize(
    "text",
    [
        "Ihr TAN lautet {}",
        "TAN: {}",
        "mTAN: {}",
        "OTP: {}",
        "PIN: {}",
        "votre code de vérification est {}",
        "Ihr Bestätigungscode lautet {}",
        "Ihr Einmalcode: {}",
        "code de confirmation : {}",
        "código de confirmación: {}",
        "codice di conferma: {}",
        "uw verificatiecode is {}",
        "kod weryfikacyjny: {}",
        "onay kodu: {}",
        "код подтверждения: {}",
        "ваш код {}",
        "Your code is {}",
        "mon code secret est {}",
        "su código es {}",
        "il tuo codice è {}",
    ],
)
def test_a_code_for_once_goes_behind_its_word(text: str, code: str):
    goes(text.format(f"«{code}»"), "pin")


@pytest.mark.parametrize(
    "text",
    [
        "exit code 1234",
        "error code: 482913",
        "mon code postal est 75011",
        "tan = 482913",
        "Tanzania: 482913",
        "the zip code is 94110",
        "your code has 4829 lines",
        "the wifi is slow and the key is broken",
        "connect(user=name, password=secret_value)",
        "lambda password -> hash_value",
        "passphrase: required field",
        "Password: authentication failed",
        "wlan0: key is not set",
        "Login: see docs / help",
    ],
)
def test_what_only_looks_like_it_stays(text: str):
    stays(text)


@pytest.mark.parametrize(
    "number", ["+4915123456789", "+4366012345678", "+33612345678", "+12025550143", "+8613812345678"]
)
@pytest.mark.parametrize("text", ["{}", "from {} to", '"{}"', "({})"])
def test_an_international_number_goes_alone(text: str, number: str):
    goes(text.format(f"«{number}»"), "phone")


@pytest.mark.parametrize("text", ["+1234567890", "x = y+4915123456789", "+00000000", "1e+12345678"])
def test_a_sum_is_no_phone(text: str):
    stays(text)
