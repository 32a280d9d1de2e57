"""Sentences in which people tell passwords, codes and their own numbers, in twelve languages.

A second source that the rules were written beside. Each shape is a sentence with `{p}` for a value
(and `{o}` for an older one); clean sentences speak of passwords and tell none.
"""

import random
import string
from collections.abc import Iterator

from bench.redaction_cases import Case

SHAPES = {
    "en": (
        "the password is {p} as always", "The password for the box that we set up last week is {p}.", "The password ({p}) is on the note.",
        "log in as bob with password {p}.", "Set the password to {p} please", "changed the password from {o} to {p} yesterday",
        "Is the password still {p}?", "the password should be {p}", "what was the password again, {p}?", 'the password we used there "{p}"',
        "user bob password {p}", "The wifi password was {p} until May.", "password:\n{p}\n", "**Password**: {p}",
    ),
    "de": (
        "Das Passwort ist {p}, bitte nicht weitersagen", "Das Passwort für den Server, den du meinst, lautet {p}.", "Das Kennwort ({p}) steht auf dem Zettel.",
        "Melde dich mit dem Passwort {p} an.", "Ich habe das Passwort auf {p} gesetzt", "Passwort von {o} auf {p} geändert", "Ist das Passwort noch {p}?",
        "Das Passwort sollte {p} sein", "Benutzer bob, Passwort {p}", "**Kennwort**: {p}",
    ),
    "fr": (
        "Le mot de passe est {p}, merci", "Le mot de passe du compte de Paul est {p}.", "Le mot de passe ({p}) est sur la note.", "Connecte-toi avec le mot de passe {p}.",
        "J'ai mis le mot de passe à {p}", "Le mot de passe devrait être {p}", "identifiant bob mot de passe {p}", "Mot de passe : {p}",
    ),
    "es": (
        "La contraseña es {p}, gracias", "La contraseña de la base debería ser {p}", "La contraseña ({p}) está en la nota.", "Entra con la contraseña {p}.",
        "Cambié la contraseña de {o} a {p}", "usuario bob contraseña {p}", "Contraseña: {p}",
    ),
    "pt": (
        "A senha é {p}.", "A senha do servidor é {p}.", "A senha antiga era {p}.", "A senha ({p}) está no papel.", "Entre com a senha {p} por favor",
        "Mudei a senha de {o} para {p}", "usuário bob senha {p}", "Senha: {p}",
    ),
    "it": (
        "La password è {p}.", "La password di staging è {p}.", "La password ({p}) è sul foglio.", "Accedi con la password {p}.", "Ho cambiato la password da {o} a {p}",
        "utente bob password {p}", "La password dovrebbe essere {p}",
    ),
    "ru": (
        "Пароль: {p}", "пароль от сервера: {p}", "Пароль — это {p}", "вход с паролем {p}", "Логин bob пароль {p}", "пароль должен быть {p}", "Пароль ({p}) на бумажке",
        "пароль сейчас {p}",
    ),
    "zh": ("密码是{p}", "密码：{p}", "密码“{p}”", "用密码{p}登录", "密码从{o}改成{p}", "把密码改成{p}了", "密码（{p}）别忘了", "服务器的密码为 {p}"),
    "ja": ("パスワードは{p}です", "パスワード：{p}", "パスワード「{p}」", "パスワードを{p}に変更しました", "パスワードですが、{p}です", "パスワード（{p}）をどうぞ"),
    "pl": (
        "Hasło to {p}", "Hasło do serwera: {p}", "Zaloguj się jako bob z hasłem {p}.", "Hasło ({p}) jest na kartce.", "Zmieniłem hasło z {o} na {p}", "login bob hasło {p}",
        "Hasło: {p}", "Hasło powinno brzmieć {p}",
    ),
    "nl": (
        "Het wachtwoord is {p}.", "Het wachtwoord van de server is {p}.", "Log in met wachtwoord {p}.", "Wachtwoord gewijzigd van {o} naar {p}", "Het wachtwoord ({p}) staat op het briefje.",
        "gebruiker bob wachtwoord {p}", "Wachtwoord: {p}",
    ),
    "tr": ("Şifre: {p}", "Hesap bob, şifresi {p}.", "şifreyi {p} olarak ayarladım", "şifresi {p} olmalı", "Şifre ({p}) kağıtta yazıyor"),
}  # fmt: skip
CONFIG = (
    'password             = "{p}"',
    "spring.datasource.password={p}",
    "define('DB_PASSWORD', '{p}');",
    "redis-cli -h db -a '{p}' ping",
    "requirepass {p}",
    "keytool -list -storepass '{p}'",
    "wpa_passphrase home '{p}'",
    'if (password === "{p}") {{ ok(); }}',
    'const PASSWORD: &str = "{p}";',
    'conn.setPassword("{p}");',
    'variable "db_password" {{\n  default = "{p}"\n}}',
    '  ~ db_password = "{o}" -> "{p}"',
    "INSERT INTO users (name, password) VALUES ('bob', '{p}');",
    "CREATE LOGIN app WITH PASSWORD = N'{p}';",
    "<password>{p}</password>",
    "name,password\nbob,{p}\n",
)
PINS = (
    "The PIN for the card is {n}.",
    "the pin ({n}) works",
    "die PIN der Karte lautet {n}",
    "le code de sécurité : {n}",
    "O PIN do cartão é {n}",
    "Il PIN della carta è {n}",
    "PIN карты: {n}",
)
PEOPLE = (
    ("birth", "geboren wurde ich am {d}.{m}.{y} in Ulm"),
    ("birth", "Geburtsdatum ist der {d}.{m}.{y}"),
    ("birth", "生年月日は{y}年{m}月{d}日です"),
    ("birth", "name,birth date\nAnn,{y}-{m}-{d}\n"),
    ("phone", "Du erreichst mich unter 0171/{n}{n}"),
    ("phone", "Sie erreichen mich telefonisch unter 030 {n}{n}"),
    ("phone", "name;Telefon;Ort\nAnn;{n} {n};Ulm\n"),
    ("phone", "氏名,電話番号\nAnn,{n}-{n}\n"),
    ("phone", "INSERT INTO people (name, phone) VALUES ('Ann', '{n}{n}');"),
    ("identity", "マイナンバーは {n} {n} {n} です"),
    ("identity", "name,passport,city\nAnn,C{n}{n},Ulm\n"),
)
CLEAN = (
    "the password is kept in the vault",
    "the password field on the page is empty",
    "password hash algorithm is bcrypt",
    "the password reset link in the mail is broken",
    "a password manager is great",
    "Enter your password to continue",
    "Use a password manager to keep them safe.",
    "The password must be at least 8 characters",
    "Das Passwort muss mindestens acht Zeichen haben.",
    "Das Passwort wird per Mail verschickt",
    "das Passwort ist abgelaufen",
    "le mot de passe est incorrect",
    "La contraseña está vacía",
    "La password e il nome utente sono obbligatori",
    "A senha e o usuário são obrigatórios",
    "пароль неверный",
    "пароль был изменён",
    "密码错误",
    "密码是必填的",
    "パスワードは必須です",
    "haslo jest nieprawidlowe",
    "Het wachtwoord is verlopen",
    "Şifre yanlış",
    "set password to the value below",
    "password (optional)",
    "no password found",
    "Pass 0 to switch it off",
    "host, user, passwd, acct, timeout",
    "password VARCHAR(255) NOT NULL",
    "INSERT INTO notes (title, body) VALUES ('a', 'the password policy');",
    "name,city\nAnn,Ulm\n",
    "PIN code is required",
    "He was born in 1985 or so",
)
WORDS = (
    "swordfish",
    "dragonfly",
    "sunflower",
    "Mondschein",
    "butterfly",
    "pumpernickel",
    "girasole",
    "tournesol",
    "kangaroo",
    "waterfall",
)
ROMAN = string.ascii_letters + string.digits


def value(rng: random.Random) -> str:
    kind = rng.randrange(4)
    if kind == 0:
        return rng.choice(WORDS)
    if kind == 1:
        return rng.choice(WORDS).capitalize() + str(rng.randint(10, 2030)) + rng.choice("!#$*")
    if kind == 2:
        return "".join(rng.choice(ROMAN) for _ in range(rng.randint(9, 16))) + "7q"
    return (
        rng.choice(WORDS)[:5]
        + rng.choice("@#%&+")
        + rng.choice(WORDS)[:4]
        + str(rng.randint(1, 99))
    )


def cases(seed: int, count: int) -> Iterator[Case]:
    rng = random.Random(seed)
    for _ in range(count):
        yield _case(rng)


def _case(rng: random.Random) -> Case:
    kind = rng.randrange(10)
    if kind < 5:
        language = rng.choice(list(SHAPES))
        number = rng.randrange(len(SHAPES[language]))
        return _password(rng, SHAPES[language][number], f"shape {number}", language, "prose")
    if kind == 5:
        number = rng.randrange(len(CONFIG))
        return _password(rng, CONFIG[number], f"config {number}", "en", "config")
    if kind == 6:
        code = str(rng.randint(2100, 9876))
        return Case(
            "pin", "credential", "said", "en", "prose", rng.choice(PINS).format(n=code), (code,)
        )
    if kind == 7:
        return _person(rng)
    text = " ".join([rng.choice(CLEAN)]) if rng.random() < 0.5 else rng.choice(CLEAN) + "\n"
    return Case("clean", "clean", "trap", "en", "prose", text, ())


def _password(rng: random.Random, shape: str, form: str, language: str, carrier: str) -> Case:
    new, old = value(rng), value(rng)
    while old in new or new in old:
        old = value(rng)
    secrets = (new, old) if "{o}" in shape else (new,)
    return Case(
        "password", "credential", form, language, carrier, shape.format(p=new, o=old), secrets
    )


def _person(rng: random.Random) -> Case:
    kind, shape = rng.choice(PEOPLE)
    day, month, year = rng.randint(13, 28), rng.randint(10, 12), rng.randint(1950, 2005)
    number = rng.randint(2134, 9876)
    text = shape.format(d=day, m=month, y=year, n=number)
    secret = str(number) if "{n}" in shape else str(year)
    return Case(kind, "person", "told", "en", "prose", text, (secret,))
