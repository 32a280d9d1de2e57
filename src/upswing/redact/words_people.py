"""What are columns called that hold numbers and dates of people?"""

from __future__ import annotations

from .words import BIRTH, PASSPORT, PHONE

_EDGE = "(?<![A-Za-z])"
_OWN_NUMBERS = (
    "my number",
    "meine nummer",
    "mon numero",
    "mi numero",
    "meu numero",
    "minha linha",
    "mio numero",
    "mijn nummer",
    "moj numer",
    "moje cislo",
    "mitt nummer",
    "mit nummer",
    "nummeret mitt",
    "numarul meu",
    "his number",
    "her number",
    "seine nummer",
    "ihre nummer",
    "su numero",
    "seu numero",
    "suo numero",
    "jego numer",
    "jej numer",
)
CALL_WORDS = (
    *_OWN_NUMBERS,
    "appelle", "rappelle", "contacte", "llamame", "llamanos", "llamadme", "marcame", "localizar", "mandame", "escribeme", "chiamami", "chiamaci", "chiamate", "chiamal", "richiama", "mi trovi", "telefonami",
    "liga-me", "ligue-me", "liga-nos", "me liga", "me ligue", "telefona", "contacta", "bel me", "bel hem", "bel haar", "bel ons", "bellen", "app me", "app even", "dzwon", "oddzwon", "pod numerem", "komork", "zavolej", "zavolat", "volejte", "volej", "telefonni cislo",
    "ring mig", "ring meg", "ring til", "ringa", "ringe", "nar mig", "fat i mig", "soita", "numeroni", "puhelin", "tavoitat", "hivj", "hivhat", "szamom", "telefonom", "telefonszam", "elersz", "arayin", "arayabilir", "telefonum", "suna", "telefonul", "ma gasesti", "meldet", "anruf", "give me a ring", "give us a ring", "give me a call",
)  # fmt: skip
CALLS = (
    "|".join(w.replace(" ", "[ ]") for w in _OWN_NUMBERS)
    + r"|r?appelle(?:[rz]|-(?:moi|nous|le|la))?|contacte[rz]?(?:-moi)?|llama(?:me|nos|dme|le|la)|marcame|localizar(?:me|nos|lo|la)|mandame|escribeme|(?:ri)?chiama(?:mi|ci|te|lo|la)|mi[ ]trovi|telefonami"
    r"|ligu?[ae]-(?:me|nos|lhe)|me[ ]ligu?[ae]|telefona(?:-me)?|contacta(?:-me|me)?|bel[ ](?:me|hem|haar|ons)|bellen|app[ ](?:me|even)|(?:za|od)?dzwon(?:cie|ic)?|pod[ ]numerem|komork[aieou]|zavol(?:ej|ejte|at)|volej(?:te)?|telefonni[ ]cislo"
    r"|ring[ae]?[ ](?:mig|meg|til|oss|os)|ring[ae]|nar[ ]mig|fat[ ]i[ ]mig|soita|numeroni|puhelin(?:numero(?:ni)?|meni)?|tavoitat|hivj(?:on)?|hivhat(?:sz|o)?|szamom|telefonom|telefonszam(?:om|a|unk)?|elersz|arayin|arayabilir\w{0,6}|telefonum|suna(?:-ma|-ne|ti)?|telefonul|ma[ ]gasesti|meldet|anruf(?:en|t)?"
    r"|give[ ](?:me|us)[ ]a[ ](?:ring|call)|phone[ ]me"
)
"""What people say when they ask to be called, in sixteen languages."""
PHONE_COLUMNS = (
    rf"(?:{_EDGE}(?i:(?:tele|mobile[ _-]?|cell[ _-]?)?phone(?:[ _-]?(?:number|no|nr|num))?|mobile?(?:[ _-]?(?:number|no|nr|nummer|fon))?|tel(?:efon|ephone|efono|efone|efoon)?(?:[ _-]?(?:number|no|nr|nummer|nummern))?\.?"
    rf"|fax|whatsapp|handy(?:nummer)?|rufnummer|portable|movil|celular|cellulare|telemovel|komorka|numer telefonu|cep|gsm)|{PHONE}{{1,8}})"
)
BIRTH_COLUMNS = (
    rf"(?:{_EDGE}(?i:(?:date[ _-]of[ _-])?birth(?:[ _-]?da(?:te|y))?|d\.?o\.?b\.?|geburtsdatum|geburtstag|geb\.?(?:datum)?|geboren|(?:date[ _]de[ _])?naissance|ne[ _]le|(?:fecha[ _](?:de[ _])?)?nacimiento|(?:data[ _](?:de[ _])?)?nascimento"
    rf"|(?:data[ _](?:di[ _])?)?nascita|dogum(?:[ _]tarihi)?|data[ _]urodzenia|geboortedatum)|(?:[^\W\d_]{{2,6}}[ ])?{BIRTH}{{1,16}})"
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
