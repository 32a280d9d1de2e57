"""Ways to tell a password that are classes of their own, each with a twin that tells none."""

import random
import string

import pytest

from upswing.redact import Redactor

REDACTOR = Redactor()
ODD = ("schmetterling", "grenouille", "pumpernickel", "seifenblase", "borboleta", "citronnier")


def generated(chance):
    """As a manager makes it: signs among letters and digits, some of which formats and flags begin with."""
    middle = "".join(chance.choice(string.ascii_letters + string.digits) for _ in range(8))
    return chance.choice(("-", "$", ".", "#7", "")) + chance.choice("QZ") + "%%" + middle + "k7W"


def leet(chance):
    return (
        chance.choice(("s3", "v1", "S3")) + chance.choice(("kur1t4t", "b3nj0ur", "n1ll4x")) + "W9"
    )


def joined(chance):
    return "-".join(chance.sample(ODD, 3))


def digits(chance):
    return str(chance.randrange(10**7, 10**9))


def counted(chance):
    return chance.choice(ODD).title() + str(chance.randrange(100, 9999)) + "?"


def word(chance):
    """Not one that ends as what is said of a password ends."""
    return chance.choice([word for word in ODD if not word.endswith("ing")])


def noun(chance):
    return chance.choice(("Schmetterling", "Frühling", "Sperling"))


def foreign(chance):
    return chance.choice(("さくらもち", "春暖花开", "снегирь"))


TOLD = [
    ("{} is my password.", generated),
    ("wir haben uns auf {} als neues Passwort geeinigt", generated),
    ("the password we agreed upon, {}, works", leet),
    ("Passwort von Bobs Konto, falls du es brauchst: {}", joined),
    ("old password mondlicht12, new password {}", joined),
    ("Ik heb het wachtwoord gewijzigd in {}", digits),
    ("the password there used to be {}", digits),
    ("use `{}` as the password", counted),
    ("Dosya {} parolasıyla korunuyor", counted),
    ("nehmt bitte bis Freitag das Passwort {}", word),
    ("por cierto, el wifi de aquí tiene la contraseña {} :)", word),
    ("Notre code secret est {}, ne le dis à personne", word),
    ("Il nostro codice segreto è {}.", word),
    ("the zip has password {}", noun),
    ("le mot de passe du calendrier a été changé en {}.", foreign),
    ("la contraseña del router de la oficina es {}", foreign),
    ("DB_USER=bob\nDB_PASSWORD={}\nDB_HOST=db\n", foreign),
    ("use pin {}", lambda chance: str(chance.randrange(10**5, 10**6))),
]


@pytest.mark.parametrize(("sentence", "make"), TOLD)
@pytest.mark.parametrize("seed", range(5))
def test_it_goes(sentence, make, seed):
    secret = make(random.Random(seed))
    out = REDACTOR.text(sentence.format(secret)).value
    assert secret.rstrip("?") not in out, out


@pytest.mark.parametrize("make", [word, counted, generated, joined])
def test_p_beside_u_is_a_password_and_alone_a_port(make):
    secret = make(random.Random(3))
    told = REDACTOR.tree({"args": ["-u", "bob", "-p", secret]}).value
    assert told == {"args": ["-u", "bob", "-p", "<password-1>"]}
    assert not REDACTOR.tree({"args": ["-p", "8080", "-v"]}).changed


@pytest.mark.parametrize(
    "text",
    [
        "pass --no-color and the password prompt goes away",
        "the password for kube-prometheus-stack is in the vault",
        "the password is printed with %s and %%",
        "the password is stored in s3-backups",
        "The password changed yesterday in the office",
        "your password must be case-sensitive and up-to-date :)",
        "connect pin 13 to ground",
        "the secret code path is covered by tests",
        "Le mot de passe a été changé en ligne",
        "is the password needed? use the token",
    ],
)
def test_what_only_looks_like_it_stays(text):
    assert not REDACTOR.text(text).changed
