"""What names a person: addresses, numbers, accounts, identities?"""

from __future__ import annotations

from . import checks
from .build import fixed_shape_rule, keyword_context_rule
from .rule import LEFT, Anchor, Rule

_IBAN = "AD|AE|AL|AT|AZ|BA|BE|BG|BH|BR|BY|CH|CR|CY|CZ|DE|DK|DO|EE|EG|ES|FI|FO|FR|GB|GE|GI|GL|GR|GT|HR|HU|IE|IL|IQ|IS|IT|JO|KW|KZ|LB|LI|LT|LU|LV|MC|MD|ME|MK|MR|MT|MU|NL|NO|PK|PL|PS|PT|QA|RO|RS|SA|SE|SI|SK|SM|TN|TR|UA|VA|XK"
_IBAN_LENGTHS = {
    15: "NO",
    16: "BE",
    18: "DK|FI|FO|GL|NL",
    19: "MK|SI",
    20: "AT|BA|EE|KZ|LT|LU|XK",
    21: "CH|CR|HR|LI|LV",
    22: "BG|BH|DE|GB|GE|IE|ME|RS",
    23: "AE|GI|IL|IQ",
    24: "AD|CZ|ES|MD|PK|RO|SA|SE|SK|TN",
    25: "PT",
    26: "IS|TR",
    27: "FR|GR|IT|MC|MR|SM",
    28: "AL|AZ|BY|CY|DO|GT|HU|LB|PL",
    29: "BR|EG|PS|QA|UA",
    30: "JO|KW|MU",
    31: "MT",
    122: "VA",
}
_IBAN_PATTERN = (
    "(?:"
    + "|".join(
        rf"(?i:{countries})[ .\-]?[0-9](?:[ .\-]{{0,2}}[A-Za-z0-9]){{{length % 100 - 3}}}"
        for length, countries in _IBAN_LENGTHS.items()
    )
    + ")"
)
_NEAR = r"""[^0-9\n\x00]{0,60}?[^0-9A-Za-z\n\x00]"""
_EDGE = "(?<![A-Za-z])"
_NEAR_FOLLOW = r"[^0-9\n]{1,60}[0-9]"


def _is_email(value: str) -> bool:
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
        back=r"[A-Za-z0-9._%+'\-]{1,64}", validator=_is_email, split=True, priority=30, trusted=True,
        about="e-mail addresses", example="bob.smith@mail.example.org",
    ),
    Rule(
        "phone-international",
        r"(?<![A-Za-z0-9+])\+[1-9][0-9]{0,3}(?:[ .\-]?(?:\([0-9 ]{1,7}\)|[0-9]{1,5})){1,6}(?![A-Za-z0-9])",
        anchors=(Anchor("+", "[1-9][0-9() .-]{6}", 8),),
        kind="phone", validator=lambda v: v.count(".") != 1 and checks.is_international_phone_number(v), priority=25, trusted=True,
        about="phone numbers with their country code", example="+44 20 7946 0958",
    ),
    fixed_shape_rule("phone-us", r"(?:\([2-9][0-9]{2}\) ?|[2-9][0-9]{2}[-. ])[2-9][0-9]{2}[-.][0-9]{4}", ((r"\([0-9]{3}\) [0-9]{3}[-.][0-9]{4}", 14), (r"\([0-9]{3}\)[0-9]{3}[-.][0-9]{4}", 13), (r"[0-9]{3}[-. ][0-9]{3}[-.][0-9]{4}", 12)), kind="phone", validator=checks.is_phone_number, example="(415) 555-0132", priority=25, about="North American phone numbers"),
    fixed_shape_rule("phone-fr", r"0[1-9](?:(?: [0-9]{2}){4}|(?:\.[0-9]{2}){4})", ((r"0[1-9][ .][0-9]{2}[ .][0-9]{2}[ .][0-9]{2}[ .][0-9]{2}", 14),), kind="phone", validator=checks.is_french_phone_number, example="06 12 34 98 76", priority=25, about="French phone numbers"),
    fixed_shape_rule("phone-uk", r"0(?:20 [0-9]{4} [0-9]{4}|7[0-9]{3} [0-9]{6}|1[0-9]{3} [0-9]{6}|1[0-9]{2} [0-9]{3} [0-9]{4})", ((r"0[0-9]{2} [0-9]{4} [0-9]{4}", 13), (r"0[0-9]{4} [0-9]{6}", 12), (r"0[0-9]{3} [0-9]{3} [0-9]{4}", 13)), kind="phone", validator=checks.is_phone_number, example="020 7946 0958", priority=25, about="British phone numbers"),
    fixed_shape_rule("card", r"(?:[0-9]{13,19}|[0-9]{4}(?:[ -])[0-9]{4}[ -][0-9]{4}[ -][0-9]{1,7}|3[0-9]{3}[ -][0-9]{6}[ -][0-9]{4,5})", ((r"[2-6][0-9]{12}", 13), (r"[2-6][0-9]{3}[ -][0-9]{4}[ -][0-9]{4}[ -][0-9]", 16), (r"3[0-9]{3}[ -][0-9]{6}[ -][0-9]{4}", 16)), validator=checks.is_payment_card, example="4539 1488 0343 6467", priority=35, about="payment cards: known issuers, valid Luhn digit"),
    Rule(
        "iban",
        LEFT + _IBAN_PATTERN + r"(?![A-Za-z0-9])",
        anchors=(Anchor("", rf"(?:{_IBAN})[0-9 .\-]{{2}}[A-Z0-9 .\-]{{8}}", 12, edged=False),),
        validator=checks.is_iban, priority=36, trusted=True,
        about="bank accounts with valid check digits, however they are spaced", example="DE89 3704 0044 0532 0130 00",
    ),
    fixed_shape_rule("us-ssn", r"[0-9]{3}-[0-9]{2}-[0-9]{4}(?!-)", ((r"[0-9]{3}-[0-9]{2}-[0-9]{4}", 11),), validator=checks.is_us_ssn, example="536-22-8726", about="US social security numbers"),
    fixed_shape_rule("es-dni", r"[0-9]{8}-?[A-HJ-NP-TV-Z]", ((r"[0-9]{8}[A-HJ-NP-TV-Z]", 9), (r"[0-9]{8}-[A-HJ-NP-TV-Z]", 10)), kind="national-id", validator=checks.is_spanish_dni, example="12345678Z", about="Spanish DNI"),
    fixed_shape_rule("es-nie", r"[XYZ]-?[0-9]{7}-?[A-HJ-NP-TV-Z]", ((r"[XYZ][0-9]{7}[A-HJ-NP-TV-Z]", 9), (r"[XYZ]-[0-9]{7}-[A-HJ-NP-TV-Z]", 11)), kind="national-id", validator=checks.is_spanish_dni, example="X1234567L", about="Spanish NIE"),
    fixed_shape_rule("it-codice-fiscale", r"[A-Za-z]{6}[0-9]{2}[A-EHLMPR-Ta-ehlmpr-t][0-9]{2}[A-Za-z][0-9]{3}[A-Za-z]", ((r"[A-Za-z]{6}[0-9]{2}[A-Za-z][0-9]{2}[A-Za-z][0-9]{3}[A-Za-z]", 16),), core="[0-9]{2}[A-Za-z][0-9]{2}[A-Za-z][0-9]{3}[A-Za-z]", kind="national-id", validator=checks.is_italian_codice_fiscale, example="RSSMRA85T10A562S", about="Italian codice fiscale"),
    fixed_shape_rule("fr-nir", r"[12][0-9]{2}(?:0[1-9]|1[0-2])(?:[0-9]{2}|2[AB])[0-9]{6}[0-9]{2}|[12] [0-9]{2} [0-9]{2} (?:[0-9]{2}|2[AB]) [0-9]{3} [0-9]{3} [0-9]{2}", ((r"[12][0-9]{4}[0-9][0-9AB][0-9]{8}", 15), (r"[12] [0-9]{2} [0-9]{2} [0-9][0-9AB] [0-9]{3} [0-9]{3} [0-9]{2}", 21)), kind="national-id", validator=checks.is_french_nir, example="2 55 08 14 168 025 38", about="French social security numbers"),
    keyword_context_rule("de-steuer-id", ("steuer", "idnr", "identifikationsnummer", "tax id", "tin"), r"[1-9][0-9](?: ?[0-9]{3}){3}", kind="national-id", gap=_NEAR, edge=_EDGE, follow=_NEAR_FOLLOW, validator=checks.is_german_steuer_id, example="Steuer-ID: 86095742719", about="German tax ids, behind their name"),
    keyword_context_rule("nl-bsn", ("bsn", "burgerservicenummer"), r"[0-9]{9}", kind="national-id", gap=_NEAR, edge=_EDGE, follow=_NEAR_FOLLOW, validator=checks.is_dutch_bsn, example="BSN: 111222333", about="Dutch BSN, behind its name"),
    fixed_shape_rule("br-cpf", r"[0-9]{3}\.[0-9]{3}\.[0-9]{3}-[0-9]{2}", ((r"[0-9]{3}\.[0-9]{3}\.[0-9]{3}-[0-9]{2}", 14),), kind="national-id", validator=checks.is_brazilian_cpf, example="529.982.247-25", about="Brazilian CPF"),
    keyword_context_rule("br-cpf-named", ("cpf",), r"[0-9]{11}", kind="national-id", gap=_NEAR, edge=_EDGE, follow=_NEAR_FOLLOW, validator=checks.is_brazilian_cpf, example="CPF: 52998224725", about="Brazilian CPF without dots, behind its name"),
    keyword_context_rule("pl-pesel", ("pesel",), r"[0-9]{11}", kind="national-id", gap=_NEAR, edge=_EDGE, follow=_NEAR_FOLLOW, validator=checks.is_polish_pesel, example="PESEL: 44051401359", about="Polish PESEL, behind its name"),
    fixed_shape_rule("se-personnummer", r"(?:19|20)?[0-9]{6}[-+][0-9]{4}", ((r"[0-9]{6}[-+][0-9]{4}", 11), (r"(?:19|20)[0-9]{6}[-+][0-9]{4}", 13)), kind="national-id", validator=checks.is_swedish_personnummer, example="811228-9874", about="Swedish personal numbers"),
    fixed_shape_rule("fi-hetu", r"[0-9]{6}[-+A-FU-Y][0-9]{3}[0-9A-FHJ-NPR-Y]", ((r"[0-9]{6}[-+A-FU-Y][0-9]{3}[0-9A-Y]", 11),), kind="national-id", validator=checks.is_finnish_hetu, example="131052-308T", about="Finnish personal codes"),
    fixed_shape_rule("in-aadhaar", r"[2-9][0-9]{3} [0-9]{4} [0-9]{4}(?! [0-9])", ((r"[2-9][0-9]{3} [0-9]{4} [0-9]{4}", 14),), kind="national-id", validator=checks.passes_verhoeff, example="2341 2341 2346", about="Indian Aadhaar numbers"),
    keyword_context_rule("in-aadhaar-named", ("aadhaar", "aadhar"), r"[2-9][0-9]{11}", kind="national-id", gap=_NEAR, edge=_EDGE, follow=_NEAR_FOLLOW, validator=checks.passes_verhoeff, example="Aadhaar: 234123412346", about="Aadhaar without spaces, behind its name"),
    fixed_shape_rule("cn-resident-id", r"[1-6][0-9]{5}(?:19|20)[0-9]{9}[0-9Xx]", ((r"[1-6][0-9]{5}(?:19|20)[0-9]{9}[0-9Xx]", 18),), kind="national-id", validator=checks.is_chinese_resident_id, example="11010519491231002X", about="Chinese resident ids"),
    fixed_shape_rule("uk-nino", r"[A-CEGHJ-PR-TW-Z][A-CEGHJ-NPR-TW-Z](?: ?[0-9]{2}){3} ?[A-D]", ((r"[A-Z]{2}[0-9]{6}[A-D]", 9), (r"[A-Z]{2} [0-9]{2} [0-9]{2} [0-9]{2} [A-D]", 13)), kind="national-id", validator=checks.is_uk_nino, example="AB 12 34 56 C", about="British national insurance numbers"),
    keyword_context_rule("ca-sin", ("social insurance", "sin"), r"[1-9][0-9]{2}[- ]?[0-9]{3}[- ]?[0-9]{3}", kind="national-id", gap=_NEAR, edge=_EDGE, follow=_NEAR_FOLLOW, validator=checks.passes_luhn, example="SIN: 130 692 544", about="Canadian SIN, behind its name"),
    keyword_context_rule("us-ssn-named", ("ssn", "social security"), r"[0-9]{9}", kind="us-ssn", gap=_NEAR, edge=_EDGE, follow=_NEAR_FOLLOW, validator=lambda v: checks.is_us_ssn(f"{v[:3]}-{v[3:5]}-{v[5:]}"), example="ssn: 536228726", about="US social security numbers without hyphens, behind their name"),
    keyword_context_rule("iban-named", ("iban", "konto", "account", "compte", "cuenta", "conta", "conto"), _IBAN_PATTERN, kind="iban", gap=r"""[^0-9\n\x00]{0,24}?[^0-9A-Za-z\n\x00]""", follow=r"[^\n]{0,28}[0-9]", validator=checks.is_iban, example="iban: de89 3704 0044 0532 0130 00", priority=35, about="bank accounts in small letters, behind their name"),
    keyword_context_rule("account-number", ("kontonummer", "konto-nr", "konto nr", "kto.-nr", "kto-nr", "kto. nr", "kto", "account number", "account no", "acct", "numero de compte", "numero de cuenta", "numero da conta", "numero di conto", "rekeningnummer", "numer konta"), r"[0-9]{6,18}", kind="bank-account", gap=r"""[^0-9\n\x00]{0,16}?[^0-9A-Za-z\n\x00]""", edge=_EDGE, follow=r"[^0-9\n]{1,17}[0-9]{6}", validator=lambda v: len(set(v)) > 2, example="Kontonummer: 532013000", priority=30, about="numbers of bank accounts, behind their name"),
    fixed_shape_rule("ch-ahv", r"756[. \-]?[0-9]{4}[. \-]?[0-9]{4}[. \-]?[0-9]{2}", ((r"756[. -][0-9]{4}[. -][0-9]{4}[. -][0-9]{2}", 16), (r"756[0-9]{10}", 13)), kind="national-id", validator=checks.is_swiss_ahv, example="756.9217.0769.85", about="Swiss AHV numbers"),
    fixed_shape_rule("de-insurance", r"(?:[0-9]{2} [0-9]{6} [A-Z] [0-9]{3}|[0-9]{8}[A-Z][0-9]{3})", ((r"[0-9]{8}[A-Z][0-9]{3}", 12), (r"[0-9]{2} [0-9]{6} [A-Z] [0-9]{3}", 15)), kind="national-id", validator=checks.is_german_pension_number, example="15 070649 C 103", about="German pension insurance numbers"),
    keyword_context_rule("de-insurance-named", ("versicherung", "rentenv", "rvnr", "svnr", "sv-nr", "sv-nummer", "rv-nummer", "rv-nr"), r"[0-9]{2}[ ]?[0-3][0-9][ ]?[01][0-9][ ]?[0-9]{2}[ ]?[A-Z][ ]?[0-9]{2}[ ]?[0-9]", kind="national-id", gap=_NEAR, edge="", follow=_NEAR_FOLLOW, validator=checks.is_german_pension_number, example="RVNR: 15 07 06 49 C 103", about="German pension insurance numbers in other spacings, behind their name"),
    keyword_context_rule("de-health", ("versicherten", "krankenv", "kvnr", "health insurance", "krankenkasse", "gesundheitskarte", "egk"), r"[A-Z] ?[0-9]{9}|[A-Z] ?[0-9]{3} ?[0-9]{3} ?[0-9]{3}", kind="national-id", gap=_NEAR, edge="", follow=_NEAR_FOLLOW, validator=checks.is_german_health_number, example="KVNR: A123456703", about="German health insurance numbers, behind their name"),
    keyword_context_rule("de-steuernummer", ("steuernummer", "steuer-nr", "st.-nr", "stnr", "st-nr"), r"[0-9]{2,3}[ /][0-9]{3,4}[ /][0-9]{4,5}|[0-9]{10,13}", kind="national-id", gap=_NEAR, edge="", follow=_NEAR_FOLLOW, validator=lambda v: len(set(v)) > 3, example="Steuernummer: 93/815/08152", about="German tax numbers, behind their name"),
    keyword_context_rule("at-insurance", ("sozialversicherung", "svnr", "sv-nr", "sv-nummer"), r"[0-9]{4} ?[0-9]{6}", kind="national-id", gap=_NEAR, edge="", follow=_NEAR_FOLLOW, validator=checks.is_austrian_insurance_number, example="SVNR: 1018 010180", about="Austrian social insurance numbers, behind their name"),
)  # fmt: skip
