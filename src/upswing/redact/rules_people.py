"""What names a person: addresses, numbers, accounts, identities?"""

from __future__ import annotations

from . import checks
from .build import context, shape
from .rule import Anchor, Rule

_IBAN = "AD|AE|AL|AT|AZ|BA|BE|BG|BH|BR|BY|CH|CR|CY|CZ|DE|DK|DO|EE|EG|ES|FI|FO|FR|GB|GE|GI|GL|GR|GT|HR|HU|IE|IL|IQ|IS|IT|JO|KW|KZ|LB|LI|LT|LU|LV|MC|MD|ME|MK|MR|MT|MU|NL|NO|PK|PL|PS|PT|QA|RO|RS|SA|SE|SI|SK|SM|TN|TR|UA|VA|XK"
_NEAR = r"""[^0-9\n\x00]{0,24}?[^0-9A-Za-z\n\x00]"""
_EDGE = "(?<![A-Za-z])"
_NEAR_FOLLOW = r"[^0-9\n]{1,24}[0-9]"


def _email(value: str) -> bool:
    local, _, domain = value.rpartition("@")
    labels = domain.split(".")
    return (
        bool(local.strip("."))
        and ".." not in value
        and all(labels)
        and (len(labels[-1]) <= 3 or labels[-1].isalpha())
        and not value.startswith("git@git")
    )


RULES = (
    Rule(
        "email",
        r"@(?:[A-Za-z0-9](?:[A-Za-z0-9\-]{0,61}[A-Za-z0-9])?\.){1,8}[A-Za-z]{2,24}(?![A-Za-z0-9(])",
        anchors=(Anchor("@", "[A-Za-z0-9]", 2),),
        back=r"[A-Za-z0-9._%+'\-]{1,64}", validator=_email, split=True, priority=30, trusted=True,
        about="e-mail addresses", example="bob.smith@mail.example.org",
    ),
    Rule(
        "phone-international",
        r"(?<![A-Za-z0-9+])\+[1-9][0-9]{0,3}(?:[ .\-]?\(?[0-9]{1,5}\)?){1,6}(?![A-Za-z0-9])",
        anchors=(Anchor("+", "[1-9][0-9() .-]{6}", 8),),
        kind="phone", validator=lambda v: v.count(".") != 1 and checks.phone(v), priority=25, trusted=True,
        about="phone numbers with their country code", example="+44 20 7946 0958",
    ),
    shape("phone-us", r"(?:\([2-9][0-9]{2}\) ?|[2-9][0-9]{2}[-. ])[2-9][0-9]{2}[-.][0-9]{4}", ((r"\([0-9]{3}\) [0-9]{3}[-.][0-9]{4}", 14), (r"\([0-9]{3}\)[0-9]{3}[-.][0-9]{4}", 13), (r"[0-9]{3}[-. ][0-9]{3}[-.][0-9]{4}", 12)), kind="phone", validator=checks.phone, example="(415) 555-0132", priority=25, about="North American phone numbers"),
    shape("phone-fr", r"0[1-9](?:(?: [0-9]{2}){4}|(?:\.[0-9]{2}){4})", ((r"0[1-9][ .][0-9]{2}[ .][0-9]{2}[ .][0-9]{2}[ .][0-9]{2}", 14),), kind="phone", validator=checks.phone, example="06 12 34 98 76", priority=25, about="French phone numbers"),
    shape("phone-uk", r"0(?:20 [0-9]{4} [0-9]{4}|7[0-9]{3} [0-9]{6}|1[0-9]{3} [0-9]{6}|1[0-9]{2} [0-9]{3} [0-9]{4})", ((r"0[0-9]{2} [0-9]{4} [0-9]{4}", 13), (r"0[0-9]{4} [0-9]{6}", 12), (r"0[0-9]{3} [0-9]{3} [0-9]{4}", 13)), kind="phone", validator=checks.phone, example="020 7946 0958", priority=25, about="British phone numbers"),
    context("phone-named", ("phone", "mobile", "tel", "fax", "whatsapp"), r"\+?\(?[0-9]{1,5}\)?(?:[ .\-/]?[0-9]{2,5}){1,5}", kind="phone", edge=_EDGE, gap=r"""[A-Za-z_. \-]{0,16}?[\\"'`\])]{0,4}[ \t]{0,2}[:=][ \t]{0,2}[\\"'`]{0,4}""", follow=r"""[A-Za-z_. \-]{0,16}[\\"'`\])]{0,4}[ \t]{0,2}[:=][ \t]{0,2}[\\"'`]{0,4}[+(0-9]""", validator=checks.phone, example="phone: 030 901820 44", priority=25, about="a number behind the word phone"),
    shape("card", r"(?:[0-9]{13,19}|[0-9]{4}(?:[ -])[0-9]{4}[ -][0-9]{4}[ -][0-9]{1,7}|3[0-9]{3}[ -][0-9]{6}[ -][0-9]{4,5})", ((r"[2-6][0-9]{12}", 13), (r"[2-6][0-9]{3}[ -][0-9]{4}[ -][0-9]{4}[ -][0-9]", 16), (r"3[0-9]{3}[ -][0-9]{6}[ -][0-9]{4}", 16)), validator=checks.card, example="4539 1488 0343 6467", priority=35, about="payment cards: known issuers, valid Luhn digit"),
    shape("iban", rf"(?:{_IBAN})[0-9]{{2}}(?:[A-Z0-9]{{11,30}}|(?: [A-Z0-9]{{4}}){{2,7}}(?: [A-Z0-9]{{1,3}})?)", ((rf"(?:{_IBAN})[0-9]{{2}}[A-Z0-9]{{11}}", 15), (rf"(?:{_IBAN})[0-9]{{2}} [A-Z0-9]{{4}} [A-Z0-9]{{4}}", 14)), validator=checks.iban, example="DE89 3704 0044 0532 0130 00", priority=36, about="bank accounts with valid check digits"),
    shape("us-ssn", r"[0-9]{3}-[0-9]{2}-[0-9]{4}(?!-)", ((r"[0-9]{3}-[0-9]{2}-[0-9]{4}", 11),), validator=checks.ssn, example="536-22-8726", about="US social security numbers"),
    shape("es-dni", r"[0-9]{8}-?[A-HJ-NP-TV-Z]", ((r"[0-9]{8}[A-HJ-NP-TV-Z]", 9), (r"[0-9]{8}-[A-HJ-NP-TV-Z]", 10)), kind="national-id", validator=checks.dni, example="12345678Z", about="Spanish DNI"),
    shape("es-nie", r"[XYZ]-?[0-9]{7}-?[A-HJ-NP-TV-Z]", ((r"[XYZ][0-9]{7}[A-HJ-NP-TV-Z]", 9), (r"[XYZ]-[0-9]{7}-[A-HJ-NP-TV-Z]", 11)), kind="national-id", validator=checks.dni, example="X1234567L", about="Spanish NIE"),
    shape("it-codice-fiscale", r"[A-Za-z]{6}[0-9]{2}[A-EHLMPR-Ta-ehlmpr-t][0-9]{2}[A-Za-z][0-9]{3}[A-Za-z]", ((r"[A-Za-z]{6}[0-9]{2}[A-Za-z][0-9]{2}[A-Za-z][0-9]{3}[A-Za-z]", 16),), kind="national-id", validator=checks.codice_fiscale, example="RSSMRA85T10A562S", about="Italian codice fiscale"),
    shape("fr-nir", r"[12][0-9]{2}(?:0[1-9]|1[0-2])(?:[0-9]{2}|2[AB])[0-9]{6}[0-9]{2}|[12] [0-9]{2} [0-9]{2} (?:[0-9]{2}|2[AB]) [0-9]{3} [0-9]{3} [0-9]{2}", ((r"[12][0-9]{4}[0-9][0-9AB][0-9]{8}", 15), (r"[12] [0-9]{2} [0-9]{2} [0-9][0-9AB] [0-9]{3} [0-9]{3} [0-9]{2}", 21)), kind="national-id", validator=checks.nir, example="2 55 08 14 168 025 38", about="French social security numbers"),
    context("de-steuer-id", ("steuer", "idnr", "tax id", "tin"), r"[1-9][0-9](?: ?[0-9]{3}){3}", kind="national-id", gap=_NEAR, edge=_EDGE, follow=_NEAR_FOLLOW, validator=checks.steuer_id, example="Steuer-ID: 86095742719", about="German tax ids, behind their name"),
    context("nl-bsn", ("bsn", "burgerservicenummer"), r"[0-9]{9}", kind="national-id", gap=_NEAR, edge=_EDGE, follow=_NEAR_FOLLOW, validator=checks.bsn, example="BSN: 111222333", about="Dutch BSN, behind its name"),
    shape("br-cpf", r"[0-9]{3}\.[0-9]{3}\.[0-9]{3}-[0-9]{2}", ((r"[0-9]{3}\.[0-9]{3}\.[0-9]{3}-[0-9]{2}", 14),), kind="national-id", validator=checks.cpf, example="529.982.247-25", about="Brazilian CPF"),
    context("br-cpf-named", ("cpf",), r"[0-9]{11}", kind="national-id", gap=_NEAR, edge=_EDGE, follow=_NEAR_FOLLOW, validator=checks.cpf, example="CPF: 52998224725", about="Brazilian CPF without dots, behind its name"),
    context("pl-pesel", ("pesel",), r"[0-9]{11}", kind="national-id", gap=_NEAR, edge=_EDGE, follow=_NEAR_FOLLOW, validator=checks.pesel, example="PESEL: 44051401359", about="Polish PESEL, behind its name"),
    shape("se-personnummer", r"(?:19|20)?[0-9]{6}[-+][0-9]{4}", ((r"[0-9]{6}[-+][0-9]{4}", 11), (r"(?:19|20)[0-9]{6}[-+][0-9]{4}", 13)), kind="national-id", validator=checks.personnummer, example="811228-9874", about="Swedish personal numbers"),
    shape("fi-hetu", r"[0-9]{6}[-+A-FU-Y][0-9]{3}[0-9A-FHJ-NPR-Y]", ((r"[0-9]{6}[-+A-FU-Y][0-9]{3}[0-9A-Y]", 11),), kind="national-id", validator=checks.hetu, example="131052-308T", about="Finnish personal codes"),
    shape("in-aadhaar", r"[2-9][0-9]{3} [0-9]{4} [0-9]{4}(?! [0-9])", ((r"[2-9][0-9]{3} [0-9]{4} [0-9]{4}", 14),), kind="national-id", validator=checks.verhoeff, example="2341 2341 2346", about="Indian Aadhaar numbers"),
    context("in-aadhaar-named", ("aadhaar", "aadhar"), r"[2-9][0-9]{11}", kind="national-id", gap=_NEAR, edge=_EDGE, follow=_NEAR_FOLLOW, validator=checks.verhoeff, example="Aadhaar: 234123412346", about="Aadhaar without spaces, behind its name"),
    shape("cn-resident-id", r"[1-6][0-9]{5}(?:19|20)[0-9]{9}[0-9Xx]", ((r"[1-6][0-9]{5}(?:19|20)[0-9]{9}[0-9Xx]", 18),), kind="national-id", validator=checks.resident_id, example="11010519491231002X", about="Chinese resident ids"),
    shape("uk-nino", r"[A-CEGHJ-PR-TW-Z][A-CEGHJ-NPR-TW-Z](?: ?[0-9]{2}){3} ?[A-D]", ((r"[A-Z]{2}[0-9]{6}[A-D]", 9), (r"[A-Z]{2} [0-9]{2} [0-9]{2} [0-9]{2} [A-D]", 13)), kind="national-id", validator=checks.nino, example="AB 12 34 56 C", about="British national insurance numbers"),
    context("ca-sin", ("social insurance", "sin"), r"[1-9][0-9]{2}[- ]?[0-9]{3}[- ]?[0-9]{3}", kind="national-id", gap=_NEAR, edge=_EDGE, follow=_NEAR_FOLLOW, validator=checks.luhn, example="SIN: 130 692 544", about="Canadian SIN, behind its name"),
    context("us-ssn-named", ("ssn", "social security"), r"[0-9]{9}", kind="us-ssn", gap=_NEAR, edge=_EDGE, follow=_NEAR_FOLLOW, validator=lambda v: checks.ssn(f"{v[:3]}-{v[3:5]}-{v[5:]}"), example="ssn: 536228726", about="US social security numbers without hyphens, behind their name"),
    context("passport", ("passport",), r"[A-Z]{0,2}[0-9]{6,9}", gap=_NEAR, follow=r"[^0-9\n]{1,28}[0-9]", validator=lambda v: len(set(v)) > 3, example="passport no. X4837261", about="passport numbers behind the word"),
)  # fmt: skip
