"""What are columns called that hold numbers and dates of people?"""

from __future__ import annotations

from .words import BIRTH, PASSPORT, PHONE

_EDGE = "(?<![A-Za-z])"
PHONE_COLUMNS = (
    rf"(?:{_EDGE}(?i:(?:tele|mobile[ _-]?|cell[ _-]?)?phone(?:[ _-]?(?:number|no|nr|num))?|mobile?(?:[ _-]?(?:number|no|nr|nummer|fon))?|tel(?:efon|ephone|efono|efone|efoon)?(?:[ _-]?(?:number|no|nr|nummer|nummern))?\.?"
    rf"|fax|whatsapp|handy(?:nummer)?|rufnummer|portable|movil|celular|cellulare|telemovel|komorka|numer telefonu|cep|gsm)|{PHONE}{{1,8}})"
)
BIRTH_COLUMNS = (
    rf"(?:{_EDGE}(?i:(?:date[ _-]of[ _-])?birth(?:[ _-]?da(?:te|y))?|d\.?o\.?b\.?|geburtsdatum|geburtstag|geb\.?(?:datum)?|geboren|(?:date[ _]de[ _])?naissance|ne[ _]le|(?:fecha[ _](?:de[ _])?)?nacimiento|(?:data[ _](?:de[ _])?)?nascimento"
    rf"|(?:data[ _](?:di[ _])?)?nascita|dogum(?:[ _]tarihi)?|data[ _]urodzenia|geboortedatum)|{BIRTH}{{1,8}})"
)
IDENTITY_COLUMNS = (
    rf"(?:{_EDGE}(?i:passport(?:[ _-]?(?:number|no|nr))?|reisepass(?:nummer)?|passnummer|ausweis(?:nummer)?|passeport|pasaporte|passaport[eo]|iban|bank[ _]?account|konto(?:nummer)?|kontonr|ssn|social[ _]security(?:[ _]number)?|steuer[ _-]?(?:id|nummer|nr)|tax[ _-]?(?:id|number)"
    rf"|national[ _-]?id|sozialversicherungsnummer|sv[ _-]?(?:nr|nummer)|versicherten(?:nummer|nr)|insurance[ _-]?(?:number|no|nr)|cpf|cnpj|rg|dni|nie|nif|pesel|bsn|nino|nir|ahv(?:[ _-]?(?:nr|nummer))?|aadhaar|codice[ _]?fiscale|tc[ _-]?(?:kimlik)?(?:[ _]?no)?|num[ _]?secu|securite[ _]sociale|compte|cuenta|conta|card[ _]?(?:number|no)?|kreditkarte|kartennummer)|{PASSPORT}{{1,8}})"
)
PEOPLE_WORDS = (
    "phone", "mobile", "mobil", "tel", "telefon", "telephone", "telefono", "telefone", "telefoon", "fax", "whatsapp", "handy", "rufnummer", "portable", "movil", "celular", "cellulare",
    "telemovel", "gsm", "birth", "dob", "geburtsdatum", "geburtstag", "geb", "geboren", "naissance", "nacimiento", "nascimento", "nascita", "dogum", "urodzenia", "geboortedatum", "passport", "reisepass",
    "passnummer", "ausweis", "passeport", "pasaporte", "passaporte", "passaporto", "iban", "konto", "bank account", "bank_account", "ssn", "social security", "steuer", "tax id", "tax_id", "taxid", "national id", "national_id",
    "sozialversicherungsnummer", "svnr", "sv-nr", "sv_nr", "versicherten", "insurance", "cpf", "cnpj", "dni", "nie", "nif", "pesel", "bsn", "nino", "nir", "ahv", "aadhaar", "codice fiscale", "codice_fiscale", "codicefiscale", "compte", "cuenta", "conta", "card number", "card_number", "kreditkarte", "kartennummer",
    BIRTH, PASSPORT, PHONE,
)  # fmt: skip
