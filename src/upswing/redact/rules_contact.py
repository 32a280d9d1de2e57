"""Where can a person be reached or found: phones, spelt-out addresses, machines, birth dates?"""

from __future__ import annotations

import ipaddress
import re

from . import checks
from .build import fixed_shape_rule
from .near import value_near_names
from .rule import Anchor, Rule
from .words import BIRTH, PASSPORT, PHONE
from .words_people import CALL_WORDS, CALLS

_EDGE = "(?<![A-Za-z])"
_PHONE_WORDS = (
    "phone", "mobile", "tel", "fax", "whatsapp", "telefon", "telephone", "telefono", "telefone", "handy",
    "mobil", "mobilnummer", "rufnummer", "portable", "movil", "celular", "cellulare", "cell", "call", "text me",
    "reach me", "reach us", "contact", "anrufen", "ruf", "nummer", "number", "numero", "appelez", "appeler", "joindre", "llamar", "llama",
    "llame", "ligar", "ligue", "liga", "chiama", "chiamare", "gsm", "telefonnummer", "hotline", "sms", "zadzwon", "numer", "erreich", "telefonisch", "contacter", "contactar", "contattar", "bereik", "ulas", "ara", "mobiel", "telefoon", "ruckruf", "durchwahl", "festnetz", "fon", "mob.", "kom.", "cep", "tfno", "zap", "fone", "contato", "contacto", "kontakt", "telemovel", "privat:", "dienstlich", "meld", "joignable", "rappele", "localizar", "trovi al", "direct line", "office:", "home:", "ph:", "numaram", "numarasindan", "dzwonic", "pod numer", "anytime", "calls back", "mein 06", "mijn 06", "emergency", "notfall", *CALL_WORDS, PHONE,
)  # fmt: skip
_PHONE_NAMES = (
    rf"(?:{_EDGE}(?i:{CALLS}|(?:tele|mobile |cell )?phone(?:[ _-]?(?:number|no|nr|num))?|mobile?(?:[ _-]?(?:number|no|nr|nummer|phone|fon))?|tel(?:efon|ephone|efono|efone|efon)?(?:[ _-]?(?:number|no|nr|nummer))?|fax(?:nummer)?|whatsapp|handy(?:nummer)?"
    r"|rufnummer|portable|movil|celular|cellulare|cell|call|ring|text|reach|contact|anrufen|ruf|nummer|number|numer|numero(?: de (?:telephone|telefono|portable|telefone|celular)| di (?:telefono|cellulare))?|appele[zr]|joindre|llam(?:ar?|e)|lig(?:ar?|ue)|chiam(?:a|are)|gsm|hotline|sms|signal|zadzwon|bel|erreich(?:st|en|bar|t)|telefonisch|contact(?:er|ez|ar|arme)|contattar(?:e|mi|ci)|bereik(?:en|baar)|mobiel|telefoon(?:nummer)?|(?:handy|telefon|mobil|mobiel)nummer|telemovel|ruckruf|durchwahl|festnetz|fon|mob\.|kom\.|cep|tfno|zap|fone|contat?to|contacto|contato|kontakt|privat:|dienstlich|meld(?:en|e)?|joignable|rappelez?|localizar|trovi al|direct line|office:|home:|ph:|[MTOF]:|[MTF](?= [0+(])|numaram|numarasindan|dzwonic|pod numer|anytime|calls back|mijn 06|emergency contact|notfallkontakt)(?![a-z])"
    rf"|{PHONE}{{1,16}})"
)
_DIGITS = r"(?:(?:\+|00[ ]?)?\(?[0-9]{1,5}\)?(?:[ .\-/–]{0,2}\(?[0-9]{1,5}\)?){1,7})(?![A-Za-z0-9@])(?!\.[0-9])"
_DATE_VALUE = (
    r"(?:[0-3]?[0-9][ ]?[./\-][ ]?[0-3]?[0-9][ ]?[./\-][ ]?(?:19|20)?[0-9]{2}(?![0-9])|(?:19|20)[0-9]{2}[./\-][0-9]{1,2}[./\-][0-9]{1,2}"
    r"|(?:19|20)[0-9]{2}[^0-9\s]{1,3}[ ]?[0-9]{1,2}[^0-9\s]{1,3}[ ]?[0-9]{1,2}[^\x00-\x7f]?"
    r"|[0-3]?[0-9]-[A-Za-z]{3}-(?:19|20)?[0-9]{2}|[0-3]?[0-9](?:st|nd|rd|th|er|\.|º)?[ ]?(?:de[ ]|of[ ])?[^\W\d]{3,12}\.?,?[ ](?:de[ ]|del[ ])?(?:19|20)[0-9]{2}|[0-3]?[0-9][ ]\?{3,9}[ ](?:19|20)[0-9]{2}|[A-Z][a-z]{2,9}\.?[ ][0-3]?[0-9](?:st|nd|rd|th)?,?[ ](?:19|20)[0-9]{2})"
)
_BIRTH_WORDS = (
    "born",
    "birth",
    "dob",
    "d.o.b",
    "geboren",
    "geburtsdatum",
    "geburtstag",
    "geb",
    "ne le",
    "nee le",
    "naissance",
    "nacimiento",
    "nacid",
    "nasci",
    "nascita",
    "nato",
    "nata",
    "dogum",
    "urodz",
    "geboorte",
    "fodelse",
    "fodt",
    "bday",
    "birthday",
    "geborene",
    "zur welt",
    "geburt",
    "anniversaire",
    "cumple",
    "aniversario",
    "compleanno",
    "verjaardag",
    "dogdum",
    "dogdu",
    "f. nac",
    "nasc.",
    "naci el",
    "ur.",
    "b.",
    BIRTH,
)
_BIRTH_NAMES = (
    rf"(?:(?i:{_EDGE}(?:born(?: on)?|(?:date of |day of )?birth(?:[ _-]?da(?:te|y))?|d\.?o\.?b\.?|geboren(?: am)?|geburtsdatum|geburtstag|geb\.?(?: am)?|nee? le|(?:date de )?naissance|(?:fecha de )?nacimiento|nacid[oa](?: el)?|(?:data de )?nascimento|nasc(?:id[oa]|i)(?: em)?"
    r"|(?:data di )?nascita|nat[oa](?:/a)?(?: il)?|dogum(?:lu[a-z]{0,4}| tarihi[a-z]{0,2}| gun[a-z]{1,4})?|dogd(?:u|um)|geborene[rsnm]?|zur welt|tag der geburt|geb\.-?[ ]?datum|(?:mon )?anniversaire|cumplean?os|aniversario|compleanno|verjaardag|f\.[ ]?(?:de )?nac\.?|nasc\.|naci el|d\. tarihi|ur\.|b\.(?=[ ][0-9])|(?:data )?urodz(?:enia|ony|ona|ilem sie|ilam sie)|geboortedatum|geboren op|fodelsedatum|fodt|bday))"
    rf"|{BIRTH}{{1,8}})"
)
_PASSPORT_WORDS = (
    "passport",
    "reisepass",
    "passnummer",
    "pass-nr",
    "passnr",
    "ausweis",
    "passeport",
    "pasaporte",
    "passaporte",
    "passaporto",
    "paszport",
    "pasaport",
    "paspoort",
    "identity card",
    "id card",
    "carte d'identite",
    "documento de identidad",
    "carta d'identita",
    "fuhrerschein",
    "dokumentennummer",
    "perso",
    "pass nr",
    "pass (",
    "im pass",
    "id number",
    "driver",
    "driving licen",
    "license no",
    "licence no",
    "permis de conduire",
    "carne de conducir",
    "patente",
    "rijbewijs",
    "dowod",
    "aufenthaltstitel",
    "cni",
    "bilhete de identidade",
    "cartao de cidadao",
    PASSPORT,
)
_PASSPORT_NAMES = (
    r"(?:(?i:passport|reisepass|pass(?:nummer|-?nr\.?)|(?:personal)?ausweis|passeport|pasaporte|passaport[eo]|paszport|pasaport|paspoort|identity card|id card|carte d'identite|documento de identidad|carta d'identita|fuhrerschein|dokumentennummer|perso(?![a-z])|pass[ ]?(?=nr|\()|im pass|id number|driver'?s licen[cs]e|driving licen[cs]e|licen[cs]e no|permis de conduire|carne de conducir|patente|rijbewijs|dow(?:od osobisty|odu?)|aufenthaltstitel|cni|bilhete de identidade|cartao de cidadao)(?i:[ _-]?(?:number|num|no\.?|nr\.?|nummer|n[^\w\s]?|#)|nummer)?"
    rf"|{PASSPORT}{{1,8}})"
)


_WEAK = frozenset(
    "call ring text reach contact number nummer numero numer signal bel ruf liga portable cell mobile joindre kontakt contato contacto privat office home meld melden melde anrufen ara".split()  # noqa: SIM905
)
"""Words that stand beside many numbers."""


def _is_named_phone(name: str, value: str) -> bool:
    count = len(checks.digits_of(value))
    weak = name.lower().rstrip(":. ") in _WEAK and not _PAIRS.fullmatch(value.strip())
    if weak and not value.startswith(("0", "+", "(")) and count < 10:
        return False
    spaced = any(ch in " .-/(" for ch in value.strip())
    if (weak and not spaced and count < 10) or re.fullmatch(
        r"(?:19|20)[0-9]{2}-[0-9]{2}-[0-9]{2}.*", value
    ):
        return False
    return (
        7 <= count <= 15
        and len(set(checks.digits_of(value))) > 2
        and (value.count(".") != 1 or spaced)
        and not _DATED.fullmatch(value)
    )


_PAIRS = re.compile(r"[2-9][0-9]{2}(?:[ ][0-9]{2}){3}|0[0-9](?:[ .][0-9]{2}){4}")
"""Forms that no other number has, so that any word for a call will do."""
_DATED = re.compile(r"[0-3]?[0-9][./\-][0-3]?[0-9][./\-](?:19|20)[0-9]{2}")


def _is_birth_date(_name: str, value: str) -> bool:
    numbers = [int(n) for n in re.findall(r"[0-9]+", value)]
    return len(numbers) < 3 or sum(n <= 12 for n in numbers) >= 1


def _is_passport_number(_name: str, value: str) -> bool:
    value = value.replace(" ", "")
    return (
        4 < sum(ch.isdigit() for ch in value) <= 12
        and len(set(value)) > 1
        and not re.fullmatch(r"(?:19|20)\d\d\d{0,4}", value)
    )


_NOT_IP = re.compile(
    r"(?i)(?:version|release|build|firmware|driver|(?:(?<![a-z])|(?-i:(?<=[a-z])(?=[RV])))(?:ver\.?|v|rev|sec\.?|oid)"
    r"|==|>=|<=|~=|[a-z]-|upgrade to|update to|section|chapter|§)[ :=]{0,3}$"
)
_IP_WORD = re.compile(
    r"(?i)\b(?:ip|ipv4|addr|address|adresse|host|from|client|server|peer|remote|ssh|ping|connect|src|dst|source|gateway|proxy|dns|port|listen|bind|ban|allow|deny|nat|node|scp|sftp|rsync|mosh|rdp|telnet)\b|://"
)


def _is_public_ipv4(match: re.Match[str]) -> bool:
    text, start, end = match.string, match.start(), match.end()
    while start > 0 and text[start - 1].isdigit() and match.start() - start < 3:
        start -= 1
    written = text[start:end].split(".")
    parts = [int(part) for part in written]
    attached = start > 0 and (text[start - 1].isalnum() or text[start - 1] in "._")
    if attached or max(parts) > 255 or any(len(p) > 1 and p[0] == "0" for p in written):
        return False
    address = ipaddress.IPv4Address(".".join(written))
    kept = (
        address.is_loopback
        or address.is_link_local
        or address.is_multicast
        or address.is_unspecified
        or parts[0] in (0, 10, 255)
    )
    if (
        kept
        or parts[0] >= 240
        or parts[:2] == [192, 168]
        or (parts[0] == 172 and 16 <= parts[1] < 32)
        or (parts[0] == 100 and 64 <= parts[1] < 128)
    ):
        return False
    before = text[max(0, start - 40) : start]
    if _NOT_IP.search(before) or re.match(r"[-_+][A-Za-z0-9]", text[end : end + 2]):
        return False
    small = max(parts) < 32 or len(set(parts)) == 1
    return (
        not small
        or (bool(_IP_WORD.search(before)) and len(set(parts)) > 1)
        or bool(re.match(r":[0-9]{2,5}\b", text[end : end + 6]))
    )


def _is_ipv6(value: str) -> bool:
    try:
        address = ipaddress.IPv6Address(value.partition("%")[0])
    except ValueError:
        return False
    return (
        not (address.is_loopback or address.is_unspecified or address.is_multicast)
        and len(value) > 6
    )


def _is_mac_address(value: str) -> bool:
    plain = re.sub(r"[^0-9A-Fa-f]", "", value).lower()
    return len(set(plain)) > 2 and plain != "0123456789ab"


_DIGITS_BEFORE = r"[^\n0-9]{0,34}[0-9][)(0-9 ./-]{6}"
"""A phone number before its word, read from behind."""


def _word_anchors(words: tuple[str, ...], follow: str, before: str = "") -> tuple[Anchor, ...]:
    return tuple(
        Anchor(w, follow, reach=len(w) + 64, caseless=True, late=True, before=before) for w in words
    )


_AT = r"[ ]{0,2}(?:\[[ ]?(?i:at|ät|arroba|a)[ ]?\]|\([ ]?(?i:at|arroba|a)[ ]?\)|\{[ ]?(?i:at)[ ]?\}|<(?i:at)>|_at_|[ ](?:at|AT|arroba|chiocciola)[ ])[ ]{0,2}"
_DOT = r"(?:[ ]{0,2}(?:\[[ ]?(?i:dot|punkt|point|punto|ponto|\.)[ ]?\]|\([ ]?(?i:dot|punkt|point|punto|ponto|\.)[ ]?\)|\{[ ]?(?i:dot)[ ]?\}|<(?i:dot)>|_dot_|[ ](?:dot|DOT|punkt|punto|ponto|point)[ ])[ ]{0,2}|\.)"
_DOMAIN = rf"[A-Za-z0-9\-]{{2,40}}(?:{_DOT}[A-Za-z0-9\-]{{2,30}}){{0,3}}{_DOT}[A-Za-z]{{2,12}}(?![A-Za-z0-9])"
_BRACKETS = (
    "[at]",
    "(at)",
    "{at}",
    "<at>",
    "[ at ]",
    "( at )",
    "(arroba)",
    "[arroba]",
    "_at_",
    "(a)",
    "[a]",
)

IP = (
    Rule(
        "public-ip",
        r"[0-9](?:\.[0-9]{1,3}){3}(?![0-9])(?!\.[0-9A-Za-z])",
        anchors=tuple(
            Anchor("", rf"[0-9]\.[0-9]{{{n}}}\.[0-9]", 4 + n, edged=False) for n in (1, 2, 3)
        ),
        back="[0-9]{1,3}",
        judge=_is_public_ipv4,
        kind="ip",
        priority=20,
        trusted=True,
        about="public IPv4 addresses",
        example="81.23.145.77",
    ),
)

RULES = (
    Rule(
        "ipv6",
        r"(?<![A-Za-z0-9:.])(?:[23][0-9a-fA-F]{3}|[fF][cCdDeE][0-9a-fA-F]{2})(?::[0-9a-fA-F]{0,4}){2,7}(?:%[a-z0-9]{1,12})?(?![A-Za-z0-9:])",
        anchors=tuple(Anchor("", r"(?:[23][0-9a-fA-F]{3}|[fF][cCdDeE][0-9a-fA-F]{2}):" + f"[0-9a-fA-F]{{{n}}}" * (n > 0) + ":", 6 + n) for n in range(5)),
        validator=_is_ipv6, kind="ip", priority=22, trusted=True,
        about="IPv6 addresses", example="2a02:8108:50bf:c7d0::4f1e",
    ),
    Rule(
        "mac",
        r"(?<![A-Za-z0-9:.\-])(?:[0-9A-Fa-f]{2}(?P<s>[:\-])(?:[0-9A-Fa-f]{2}(?P=s)){4}[0-9A-Fa-f]{2}|[0-9a-fA-F]{4}\.[0-9a-fA-F]{4}\.[0-9a-fA-F]{4})(?![A-Za-z0-9]|[:\-.][0-9a-fA-F])",
        anchors=(Anchor("", r"[0-9A-Fa-f]{2}[:-][0-9A-Fa-f]{2}[:-][0-9A-Fa-f]{2}[:-][0-9A-Fa-f]{2}[:-][0-9A-Fa-f]{2}[:-][0-9A-Fa-f]{2}", 17, core=r"[:-][0-9A-Fa-f]{2}[:-][0-9A-Fa-f]{2}[:-][0-9A-Fa-f]{2}"), Anchor("", r"[0-9a-fA-F]{4}\.[0-9a-fA-F]{4}\.[0-9a-fA-F]{4}", 14, core=r"\.[0-9a-fA-F]{4}\.[0-9a-fA-F]{4}")),
        validator=_is_mac_address, kind="mac-address", priority=28, trusted=True,
        about="hardware addresses", example="a4:83:e7:2b:91:0c",
    ),
    Rule(
        "email-spelt",
        _AT + _DOMAIN,
        anchors=tuple(Anchor(p, "[ A-Za-z0-9]", len(p) + 1, caseless=True) for p in _BRACKETS)
        + tuple(Anchor(p, r"[A-Za-z0-9\-]{2,40} (?:dot|punkt|point|punto|ponto) ", reach=60, caseless=True) for p in (" at ", " arroba ", " chiocciola ")),
        back=r"[ ]{0,2}[A-Za-z0-9._%+\-]{1,64}(?:[ ]{1,2}(?i:tod|tknup|otnup|otnop|tniop)[ ]{1,2}[A-Za-z0-9_\-]{1,40}|\]?(?:tod)\[?[A-Za-z0-9_\-]{1,40}){0,2}",
        validator=lambda v: bool(re.match(r"\s*[A-Za-z0-9]", v)) and bool(re.search(r"(?i)dot|punkt|point|punto|ponto|\.[a-z]{2,12}$|\.\]|\.\)", v)),
        kind="email", priority=29, trusted=True,
        about="e-mail addresses spelt out", example="bob [at] example [dot] com",
    ),
    Rule(
        "email-half-spelt",
        r"@[A-Za-z0-9\-]{2,40}(?:[ ]{0,2}(?:\[[ ]?(?:dot|\.)[ ]?\]|\([ ]?(?:dot|\.)[ ]?\))[ ]{0,2}[A-Za-z0-9\-]{2,30}){1,3}",
        anchors=(Anchor("@", "[A-Za-z0-9]", 2),), back=r"[A-Za-z0-9._%+'\-]{1,64}",
        validator=lambda v: not v.startswith("@"), kind="email", priority=29, trusted=True,
        about="e-mail addresses whose dot is spelt out", example="bob@example [dot] com",
    ),
    Rule(
        "phone-word",
        _PHONE_NAMES,
        anchors=(
            *_word_anchors(_PHONE_WORDS, r"[^0-9\n]{0,50}[(+0-9][()0-9+ ./-]{5}"), *_word_anchors(_PHONE_WORDS, "", _DIGITS_BEFORE),
            Anchor("", "[MTOF]: [+(0]", 4), Anchor("", "[MTF] [+(0]", 3),
        ), spans=value_near_names(_PHONE_NAMES, _DIGITS, _is_named_phone),
        kind="phone", priority=25, trusted=True,
        about="a number near a word for phone in twelve languages", example="call me at 0171 2345678",
    ),
    Rule(
        "birth-date",
        _BIRTH_NAMES,
        anchors=(*_word_anchors(_BIRTH_WORDS, r"[^\n]{0,60}[0-9]"), *_word_anchors(_BIRTH_WORDS, "", r"[^\n0-9]{0,34}[0-9]")), spans=value_near_names(_BIRTH_NAMES, _DATE_VALUE, _is_birth_date), priority=30, trusted=True,
        about="a date near a word for birth", example="born on 12 March 1985",
    ),
    Rule(
        "passport-number",
        _PASSPORT_NAMES,
        anchors=_word_anchors(_PASSPORT_WORDS, r"[^\n]{0,60}[0-9]"), spans=value_near_names(_PASSPORT_NAMES, r"[A-Z0-9]{1,4}[ ]?[A-Z0-9]{3,9}(?:[ ][0-9]{2,6})?(?![A-Za-z0-9])", _is_passport_number, back=False), kind="passport", priority=31, trusted=True,
        about="passport and identity card numbers behind their word", example="Reisepass: C01X00T47",
    ),
    fixed_shape_rule("phone-zero-zero", r"00[1-9][0-9]{0,2}(?:[ .\-/]?\(?[0-9]{2,5}\)?){2,6}", ((r"00[1-9][0-9] [0-9]{2}", 7), (r"00[1-9][0-9][1-9][0-9]{7}", 12), (r"00[1-9][0-9]{2} [0-9]{2}", 8)), kind="phone", validator=lambda v: checks.is_phone_number(v) and 10 <= len(checks.digits_of(v)) <= 15, example="0049 30 901820 44", priority=25, about="phone numbers with 00 and a country code"),
    fixed_shape_rule("phone-de", r"0[1-9][0-9]{1,4}(?:/[ ]?[0-9]{3,9}(?:[ \-][0-9]{1,5}){0,3}|[ ]/[ ][0-9]{3,9}(?:[ \-][0-9]{1,5}){0,3}|[ \-][0-9]{3,4}[ ][0-9]{2,4}(?:[ ][0-9]{2,4})?)", ((r"0[1-9][0-9]/[0-9 ][0-9]{3}", 8), (r"0[1-9][0-9]{2}/[0-9 ][0-9]{3}", 9), (r"0[1-9][0-9]{3}/[0-9 ][0-9]{3}", 10), (r"0[1-9][0-9]{4}/[0-9 ][0-9]{3}", 11), (r"0[1-9][0-9]{1} / [0-9]{3}", 9), (r"0[1-9][0-9]{2} / [0-9]{3}", 10), (r"0[1-9][0-9]{3} / [0-9]{3}", 11), (r"0[1-9][0-9][ -][0-9]{3} [0-9]{2}", 10), (r"0[1-9][0-9]{2}[ -][0-9]{3} [0-9]{2}", 11), (r"0[1-9][0-9]{2}[ -][0-9]{4} [0-9]{2}", 12)), kind="phone", validator=lambda v: checks.is_phone_number(v) and 9 <= len(checks.digits_of(v)) <= 13, example="030/901820 44", priority=24, about="German, Austrian and Swiss phone numbers as they are written"),
    fixed_shape_rule("phone-jp", r"0[0-9]{1,3}-[0-9]{2,4}-[0-9]{4}", ((r"0[0-9]-[0-9]{4}-[0-9]{4}", 12), (r"0[0-9]{2}-[0-9]{4}-[0-9]{4}", 13), (r"0[0-9]{2}-[0-9]{3}-[0-9]{4}", 12), (r"0[0-9]{3}-[0-9]{2}-[0-9]{4}", 12)), kind="phone", validator=checks.is_phone_number, example="090-1234-8765", priority=24, about="Japanese phone numbers"),
    fixed_shape_rule("phone-br", r"\([1-9][0-9]\) ?9?[0-9]{4}[- ][0-9]{4}", ((r"\([1-9][0-9]\) [0-9]{4}[- ][0-9]{4}", 14), (r"\([1-9][0-9]\) 9[0-9]{4}[- ][0-9]{4}", 15), (r"\([1-9][0-9]\)9[0-9]{4}[- ][0-9]{4}", 14)), kind="phone", validator=checks.is_phone_number, example="(11) 98765-4021", priority=24, about="Brazilian phone numbers"),
    fixed_shape_rule("phone-cn", r"1[3-9][0-9][ \-][0-9]{4}[ \-][0-9]{4}", ((r"1[3-9][0-9][ -][0-9]{4}[ -][0-9]{4}", 13),), kind="phone", validator=checks.is_phone_number, example="138 1234 8765", priority=24, about="Chinese mobile numbers"),
    fixed_shape_rule("phone-in", r"(?:0?[6-9][0-9]{4}[ \-][0-9]{5})(?![ \-][0-9])", ((r"[6-9][0-9]{4}[ -][0-9]{5}", 11), (r"0[6-9][0-9]{4}[ -][0-9]{5}", 12)), kind="phone", validator=checks.is_phone_number, example="98765 40213", priority=24, about="Indian mobile numbers"),
)  # fmt: skip
