"""A sentence speaks of a password: does this word of it tell the password?"""

from __future__ import annotations

import re

from .cues import ADVERBS, CUES, SERVICES
from .ordinary import is_ordinary_word
from .strength import is_strong_token
from .values import (
    DOTTED,
    IDENTIFIER,
    LETTERS,
    count_digits,
    has_mixed_characters,
    is_dummy,
    is_in_code,
    is_label,
)
from .words import IDENTIFIERS, describes_password

COMPOUNDS = frozenset(
    """
    manager managers reset resets hash hashes hashing field fields policy policies prompt prompts protection strength change changes
    authentication auth file files list lists entry entries rotation rules rule requirement requirements column columns parameter
    parameters input inputs form forms generator generators length lengths box database store storage vault option options flag flags
    argument arguments error errors attempt attempts login logins recovery expiry expiration history complexity validation
    verification verifier validator check checks checker encryption encoder encoding algorithm algorithms token tokens link links mail
    email emails page pages screen dialog handling handler handlers variable variables value values string strings property properties
    attribute attributes setting settings guess guessing spraying leak leaks breach breaches dump cracking cracker hint hints
    confirmation confirm helper helpers util utils service services module modules class object type types format update updates
    sharing safe sync keeper wallet toggle visibility lock lockout feature features flow flows grant scheme schemes based less free
    protected only safety security hygiene reuse fatigue ticket tickets question questions request requests response endpoint api
    button label placeholder icon text key keys app apps tool tools account accounts user users holder aging age quality test tests
    staging prod production dev wlan wifi vpn optional required admin root twice again correctly incorrectly immediately
    everywhere anywhere somewhere today yesterday tomorrow yet anymore please thanks thank right away together ready yours mine ours
    unique identical similar stale outdated fresh temporary permanent random broken kept held sent made lost found shown chosen
    taken stolen safe sacred important irrelevant obvious impossible possible difficult easy hard simple complex complicated
    confidential sensitive secret secrets personal default initial temporary part parts nothing something everything anything
    someone anyone nobody everybody never case sensitive ours theirs hers his back back-up backup there up down out
    zurucksetzen andern eingeben vergessen speichern verschicken merken teilen prufen wechseln geandert nochmal erneut bitte
    danke heute gestern morgen zweimal eindeutig temporar zufallig geheim vertraulich kaputt fertig bereit verloren gefunden
    weg dabei dort hierfur dafur niemals irgendwo manager-app neu alt deins meins unklar klar egal wichtig einfach schwer
    oublie perdu secret confidentiel unique temporaire aleatoire pret merci demain hier aujourd'hui nouveau ancien nouvelle
    ancienne partout simple complique important introuvable different differente identique
    olvidado perdida secreta unica temporal aleatoria lista gracias hoy manana ayer nueva antigua vieja facil dificil importante distinta igual mismo misma
    perdida secreta unica temporaria pronta obrigado hoje amanha ontem nova antiga facil importante diferente igual mesma
    persa segreta unica temporanea casuale pronta grazie oggi domani ieri nuova vecchia facile difficile importante diversa uguale stessa
    zapomniane tajne unikalne tymczasowe losowe gotowe dzieki dzis jutro nowe stare latwe trudne wazne inne takie samo zmienione zapisane
    vergeten geheim uniek tijdelijk willekeurig klaar bedankt vandaag morgen gisteren nieuw oud makkelijk moeilijk belangrijk gewijzigd opgeslagen hetzelfde
    mindestens hochstens mehr weniger doch mal usuario usuarios utente utenti login nome nombre nom email e-mail conta cuenta account altre altro outra outro
    keep type enter click go see read write use using make get give take send leave try ask tell help work works worked fails failed
    unuttum gizli benzersiz gecici rastgele hazir tesekkurler bugun yarin dun yeni eski kolay zor onemli farkli ayni degistir degisti sifirla
    """.split()  # noqa: SIM905
)
"""What stands behind the name of a password and is none: the rest of a noun, or what is said of it."""

QUALITIES = frozenset(
    "new old neu alt neue alte nueva antigua vieja nova antiga nuova vecchia ancien nouveau nowe stare eski yeni nieuwe oude temporary default initial current admin root staging prod wlan wifi vpn temporal inicial actual temporaire initial atual account user".split()  # noqa: SIM905
)
"""What may be said of the password before its value comes."""

LOGIN = re.compile(
    r"(?i)\b(?:user|username|users|login|log ?in|logged in|logon|sign in|account|with|using|use|try|connect|credentials|benutzer|benutzername|nutzer|anmelden|mit(?: dem| diesem)?|nimm|nehmt|nehmen|verwende[nt]?|benutz(?:e|t|en)?|nutz(?:e|t|en)?|utilisateur|identifiant|compte|avec|connexion|utilise[zr]?|utilisons|prends|prenez|mets|mettez"
    r"|usuario|cuenta|con|usa|usar|usad|usen|usamos|utiliza[dr]?|utilice|entra|accede|utilizador|conta|com|use|entre|usem|utilize|utente|accedi|usate|usiamo|uzytkownik|konto|zaloguj|z|gebruiker|gebruikersnaam|met|gebruik|gebruikt|neem|inloggen|uzyj|uzyjcie|uzywamy|wpiszcie|pouzij|pouzijte|zadej|zadejte|anvand|brug|bruk|kayta|kayttakaa|hasznald|hasznaljatok|foloseste|folositi|kullan|kullanin|kullanici|hesap|giris|ile|admin|root|still|noch|ist|is|est|es|jest|encore|ancora|ainda)\b"
)
STRONG_LOGIN = re.compile(
    r"(?i)\b(?:user|username|login|log ?in|account|benutzer|benutzername|nutzer|konto|utilisateur|identifiant|compte|usuario|cuenta|utente|uzytkownik|gebruiker|kullanici|admin|root)\b"
)
ASKED = re.compile(r"[ ](?:olarak|olmali|idi|oldu|yap|iken|sein\b|moeten|is\b|ist\b|,)|'")
"""What may stand behind the value: Turkish verbs, and those of German and Dutch."""
SETTING = re.compile(
    r"(?i)\b(?:set|sets|setting|chang\w+|reset|updat\w+|rotat\w+|switch\w*|gesetzt|setz\w*|geandert|ander\w*|gestellt|stell\w*|zuruckgesetzt|mis|mettre|mets|mettez|defini\w*|modif\w*|remplac\w*|passe[rz]?|pon\w*|puse|pongan?|cambi\w*|configur\w*|establec\w*|fij\w*"
    r"|alter\w*|mud\w*|defin\w*|coloqu\w*|troc\w*|impost\w*|reimpost\w*|messo|ustaw\w*|zmie\w*|zet|zetten|gezet|verander\w*|wijzig\w*|gewijzigd|ayarla\w*|degistir\w*|yap\w*)\b|[\x0f]"
)
_NEXT = re.compile(r"[ \t]{1,2}([A-Za-z]{1,20})\b(?![=:])")
_GOES_ON = frozenset(
    [
        "and",
        "und",
        "et",
        "y",
        "e",
        "i",
        "en",
        "ve",
        "for",
        "on",
        "but",
        "user",
        "http",
        "https",
        "url",
        "host",
        "from",
        "login",
        "so",
        "then",
        "or",
        "oder",
        "ou",
        "o",
        "lub",
        "of",
        "aber",
        "mais",
        "pero",
        "mas",
        "ma",
        "ale",
        "maar",
        "please",
        "bitte",
        "danke",
        "thanks",
        "merci",
        "gracias",
        "obrigado",
        "grazie",
        "dzieki",
        "as",
        "wie",
        "comme",
        "como",
        "come",
        "jak",
        "zoals",
        "if",
        "wenn",
        "si",
        "se",
        "jesli",
        "als",
        "por",
        "para",
        "no",
        "na",
        "em",
        "en",
        "im",
        "am",
        "an",
        "fur",
        "fuer",
        "to",
        "in",
        "at",
        "w",
        "do",
        "auf",
        "sur",
        "chez",
        "su",
        "per",
        "da",
        "dla",
        "voor",
        "op",
        "bei",
        "acho",
        "creo",
        "credo",
        "penso",
        "viu",
        "ta",
        "ok",
        "ne",
        "je",
        "glaub",
        "glaube",
        "denk",
        "mysle",
    ]
)
_NO_PASSWORD = re.compile(
    r"(?i)(?:sha|md|aes|rsa|utf|base|v|ed|http|win|x|rev|id|tls|ssl|pbkdf|bcrypt|argon|level|step|line|oauth|ipv|s|h|a|p|k|test|user|host|node|key|str)[-_]?[0-9]{1,4}|[0-9]{1,3}[a-z+]{1,10}|[0-9.,:%/x\-]+|[A-Za-z]+(?:[_/][a-z]+)*[_/][0-9]{1,3}"
)
"""Names of algorithms, versions and counts."""
_ADJECTIVE = re.compile(
    r"[a-z]{3,}(?:ad[oa]s?|id[oa]s?|[aei]vel|bile|mente|iert|bar|lich|los|haft|stens|igt|abel|ible|able|ing|ed|ions?|zione|cion|cao|owan[eyao]|lny|lne|ieniu|siz|malidir|meli|lijk|baar)|ge[a-z]{2,}t|ver[a-z]{2,}t"
)
"""How adjectives, participles and adverbs end."""
_TRAIL = ".,;:!?)"


PLACES = frozenset("in en sur su op na auf a".split())  # noqa: SIM905
"""Words behind which the new password stands, or the place where it is changed."""
_HOW = re.compile(
    r"(?i)\b(?:how|where|wie|wo|comment|ou|como|donde|onde|come|dove|hoe|waar|jak|gdzie|nasil|hvordan|hur)\b"
)
_WHOSE = re.compile(
    r"[ ](?:is|was|ist|war|lautet|est|etait|es|era|e|\x15|jest|to)[ ](<?)([^\s<>.,;:!?]{3,64})|[ ]?[:=](?![-']?[)(DP/|])"
)


def asks_how(text: str, position: int) -> bool:
    """Does the line before this place ask how, or where, something is done?"""
    return (
        _HOW.search(text, max(text.rfind("\n", 0, position) + 1, position - 80), position)
        is not None
    )


def names_password_owner(text: str, position: int) -> bool:
    """Is the password told only behind this word, which says whose it is: `password Deezer is …`?"""
    match = _WHOSE.match(text, position)
    if match is None or match.group(2) is None:
        return match is not None
    return bool(match.group(1)) or not (
        describes_password(match.group(2)) or is_ordinary_word(match.group(2))
    )


def ends_sentence(match: re.Match[str]) -> bool:
    """Does the sentence end here, or begin something new?"""
    if match.group(0)[-1] in ".!?,;":
        return True
    word = _NEXT.match(match.string[match.end() : match.end() + 24])
    return word is None or word.group(1)[0].isupper() or word.group(1).lower() in _GOES_ON


def can_be_password(match: re.Match[str], value: str) -> bool:
    """Could this bare word be a password, and not what is said of one?

    A word with digits or signs could; a plain one unless it is known to be said of passwords.
    """
    plain = value.rstrip(_TRAIL)
    low = plain.lower()
    if len(plain) < 4 or is_dummy(plain) or is_label(plain) or "(" in plain or low in IDENTIFIERS:
        return False
    if ("/" in plain and not count_digits(plain)) or plain[0] == "#":
        return False
    if (
        describes_password(plain)
        or low in COMPOUNDS
        or low.startswith(("http", "--", "/", "./", "~/"))
    ):
        return False
    if DOTTED.fullmatch(plain) and not count_digits(plain):
        return False
    if count_digits(plain) and not has_mixed_characters(plain):
        return count_digits(plain) >= 4 and plain.isdigit()
    if has_mixed_characters(plain) or count_digits(plain):
        return value[-1] in "!?" or not _NO_PASSWORD.fullmatch(plain)
    if (
        (plain.isupper() and len(plain) < 6)
        or low in CUES
        or low in ADVERBS
        or low in SERVICES
        or is_ordinary_word(low)
        or (_ADJECTIVE.fullmatch(low) and not plain.istitle() and not is_strong_token(plain))
    ):
        return False
    if is_in_code(match) and IDENTIFIER.fullmatch(plain):
        return False
    return (
        LETTERS.fullmatch(plain.replace("-", "").replace("_", "")) is not None
        or not plain.isalpha()
    )
