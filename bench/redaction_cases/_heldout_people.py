"""People's data with a word beside it, as letters, chats, exports and logs of ten countries hold it."""

from bench.redaction_cases._heldout_fill import Entry, entries
from bench.redaction_cases._heldout_identity import PLACES

_SPOKEN = {
    "DE": "de",
    "AT": "de",
    "CH": "de",
    "FR": "fr",
    "UK": "en",
    "US": "en",
    "IN": "en",
    "BR": "pt",
    "JP": "ja",
    "CN": "zh",
}

# One line is `kind form | sentence`; each is written once for every country of its language.
SENTENCES = {
    "de": """
phone label | Tel.: ⟨!phone⟩
phone label | Mobil: ⟨!phone⟩
phone prose | Sie erreichen mich unter ⟨!phone⟩ oder per Mail.
phone prose | Meine Handynummer ist ⟨!phone⟩, ruf einfach an.
phone prose | Bitte um Rückruf unter der Telefonnummer ⟨!phone⟩ bis Freitag.
phone label | Telefon ⟨!phone⟩, Zimmer ⟨small⟩
birth label | Geburtsdatum: ⟨!birth⟩
birth prose | Die Patientin, geb. am ⟨!birth⟩, wurde heute entlassen.
birth prose | Ich bin am ⟨!birth⟩ geboren.
passport label | Reisepass-Nr.: ⟨!passport⟩
passport prose | Meine Passnummer lautet ⟨!passport⟩, gültig bis 2031.
iban label | IBAN: ⟨!iban⟩
iban prose | Bitte überweisen Sie den Betrag auf das Konto ⟨!iban⟩.
card label | Kreditkarte: ⟨!card⟩
card prose | Die Zahlung mit der Karte ⟨!card⟩ wurde abgelehnt.
email label | E-Mail: ⟨!email⟩
email prose | Schreib mir bitte an ⟨!email⟩.
email spelt | E-Mail: ⟨!spelt_de⟩
""",
    "fr": """
phone label | Tél. : ⟨!phone⟩
phone label | Portable : ⟨!phone⟩
phone prose | Vous pouvez me joindre au ⟨!phone⟩ toute la journée.
phone prose | Mon numéro de téléphone est le ⟨!phone⟩.
birth label | Date de naissance : ⟨!birth⟩
birth prose | Le patient, né le ⟨!birth⟩, est sorti ce matin.
birth prose | Madame, née le ⟨!birth⟩ à Lyon, demande un rendez-vous.
passport label | N° de passeport : ⟨!passport⟩
passport prose | Mon passeport porte le numéro ⟨!passport⟩.
iban label | IBAN : ⟨!iban⟩
iban prose | Merci de virer la somme sur le compte ⟨!iban⟩.
card label | Carte bancaire : ⟨!card⟩
card prose | Le paiement avec la carte ⟨!card⟩ a été refusé.
email prose | Écrivez-moi à ⟨!email⟩.
national_id label | N° de sécurité sociale : ⟨!insurance_fr⟩
national_id prose | Mon numéro de sécu est le ⟨!insurance_fr⟩.
""",
    "en": """
phone label | Phone: ⟨!phone⟩
phone label | Mobile: ⟨!phone⟩
phone label | Tel ⟨!phone⟩
phone prose | You can reach me at ⟨!phone⟩ after five.
phone prose | My number is ⟨!phone⟩, text me when you are there.
phone prose | call me on ⟨!phone⟩ please
phone prose | The customer's phone number is ⟨!phone⟩ and she wants a call back.
birth label | Date of birth: ⟨!birth⟩
birth label | DOB: ⟨!birth⟩
birth prose | The patient was born on ⟨!birth⟩ and has no allergies.
birth prose | my birthday is ⟨!birth⟩
passport label | Passport no. ⟨!passport⟩
passport label | Passport number: ⟨!passport⟩
passport prose | My passport number is ⟨!passport⟩ and it expires in 2030.
iban label | IBAN: ⟨!iban⟩
iban prose | Please send the refund to ⟨!iban⟩, that is my account.
card label | Card number: ⟨!card⟩
card prose | I paid with my credit card ⟨!card⟩ and was charged twice.
email prose | Please send it to ⟨!email⟩ instead.
email label | Email: ⟨!email⟩
email spelt | you can mail me: ⟨!spelt⟩
email spelt | Contact: ⟨!spelt⟩
""",
    "pt": """
phone label | Telefone: ⟨!phone⟩
phone label | Celular: ⟨!phone⟩
phone prose | Pode me ligar no ⟨!phone⟩ depois das cinco.
phone prose | Meu número é ⟨!phone⟩, manda um WhatsApp.
birth label | Data de nascimento: ⟨!birth⟩
birth prose | A paciente, nascida em ⟨!birth⟩, recebeu alta hoje.
passport label | Passaporte nº ⟨!passport⟩
passport prose | O número do meu passaporte é ⟨!passport⟩.
iban label | IBAN: ⟨!iban⟩
card label | Cartão de crédito: ⟨!card⟩
card prose | Paguei com o cartão ⟨!card⟩ e foi recusado.
email prose | Meu e-mail é ⟨!email⟩.
national_id label | CPF: ⟨!cpf⟩
national_id prose | O CPF do cliente é ⟨!cpf⟩, pode emitir a nota.
""",
    "ja": """
phone label | 電話番号：⟨!phone⟩
phone label | 携帯: ⟨!phone⟩
phone label | TEL ⟨!phone⟩
phone prose | お電話は ⟨!phone⟩ までお願いいたします。
phone prose | 私の電話番号は ⟨!phone⟩ です。
birth label | 生年月日：⟨!birth⟩
birth prose | 患者様（⟨!birth⟩生まれ）は本日退院されました。
passport label | パスポート番号：⟨!passport⟩
passport label | 旅券番号: ⟨!passport⟩
card label | クレジットカード番号：⟨!card⟩
card prose | カード ⟨!card⟩ で支払いましたが拒否されました。
email label | メールアドレス：⟨!email⟩
email prose | ⟨!email⟩ までご連絡ください。
national_id label | マイナンバー：⟨!mynumber⟩
national_id prose | 個人番号は ⟨!mynumber⟩ です。
""",
    "zh": """
phone label | 电话：⟨!phone⟩
phone label | 手机号: ⟨!phone⟩
phone label | 联系电话 ⟨!phone⟩
phone prose | 我的手机是⟨!phone⟩，有事打给我。
phone prose | 请拨打 ⟨!phone⟩ 联系张经理。
birth label | 出生日期：⟨!birth⟩
birth prose | 患者生于⟨!birth⟩，今天出院。
passport label | 护照号码：⟨!passport⟩
passport prose | 我的护照号是 ⟨!passport⟩。
card label | 银行卡号：⟨!card⟩
card prose | 我用信用卡 ⟨!card⟩ 付款失败了。
email label | 邮箱：⟨!email⟩
email prose | 请发到 ⟨!email⟩。
national_id label | 身份证号：⟨!id_cn⟩
national_id prose | 我的身份证号码是 ⟨!id_cn⟩，请核对。
""",
}

OWN = """
@@ tax_id label prose none de DE
Steuer-ID: ⟨!tax_de⟩
@@ tax_id prose prose none de DE
Meine Steueridentifikationsnummer lautet ⟨!tax_de⟩.
@@ tax_id label prose none de DE
Steuerliche Identifikationsnummer ⟨!tax_de⟩ (bitte stets angeben)
@@ insurance label prose none de DE
Sozialversicherungsnummer: ⟨!pension_de⟩
@@ insurance prose prose none de DE
Die Rentenversicherungsnummer des Mitarbeiters ist ⟨!pension_de⟩.
@@ insurance label prose none de DE
Versichertennummer: ⟨!health_de⟩
@@ insurance prose prose none de DE
Ich bin bei der Krankenkasse unter der Versichertennummer ⟨!health_de⟩ geführt.
@@ ahv label prose none de CH
AHV-Nr.: ⟨!ahv⟩
@@ ahv prose prose none de CH
Meine AHV-Nummer lautet ⟨!ahv⟩.
@@ ahv label prose none fr CH
N° AVS : ⟨!ahv⟩
@@ ahv bare prose none de CH
Anmeldung der Mitarbeiterin ⟨!ahv⟩ per 1. Juli
@@ insurance label prose none de AT
SVNR: ⟨!insurance_at⟩
@@ insurance prose prose none de AT
Die Sozialversicherungsnummer der Patientin ist ⟨!insurance_at⟩.
@@ national_id label prose none en UK
National Insurance number: ⟨!nino⟩
@@ national_id prose prose none en UK
my NI number is ⟨!nino⟩ if payroll needs it
@@ national_id label prose none en UK
NHS number: ⟨!nhs⟩
@@ national_id label prose none en US
SSN: ⟨!ssn⟩
@@ national_id prose prose none en US
The applicant's social security number is ⟨!ssn⟩.
@@ national_id label prose none en IN
Aadhaar: ⟨!aadhaar⟩
@@ national_id prose prose none en IN
My Aadhaar number is ⟨!aadhaar⟩, please update the KYC.
"""

MACHINES = """
@@ ipv4 access_log log none
⟨!ipv_four⟩ - - [⟨time⟩] "GET /index.html HTTP/1.1" 200 5123 "-" "Mozilla/5.0"
@@ ipv4 sshd log none
sshd[⟨num⟩]: Failed password for root from ⟨!ipv_four⟩ port ⟨num2⟩ ssh2
@@ ipv4 forwarded log none
X-Forwarded-For: ⟨!ipv_four⟩, 10.0.0.3
@@ ipv4 prose prose none
My home connection has the IP address ⟨!ipv_four⟩, can you unblock it?
@@ ipv4 field json json
{"event": "login", "client_ip": "⟨!ipv_four⟩", "status": 200}
@@ ipv6 access_log log none
⟨!ipv_six⟩ - - [⟨time⟩] "POST /login HTTP/2.0" 302 0
@@ ipv6 prose prose none
My IPv6 address is ⟨!ipv_six⟩ according to the router.
@@ ipv6 bracketed log none
⟨time⟩ accepted connection from [⟨!ipv_six⟩]:⟨num⟩
@@ ipv6 ifconfig shell none
    inet6 ⟨!ipv_six⟩  prefixlen 64  scopeid 0x0<global>
@@ ipv6 field json json
{"remote_addr": "⟨!ipv_six⟩", "method": "GET"}
@@ mac ifconfig shell none
    ether ⟨!mac⟩  txqueuelen 1000  (Ethernet)
@@ mac dhcp log none
dhcpd: DHCPACK on 192.168.1.⟨small⟩ to ⟨!mac⟩ via eth0
@@ mac prose prose none
The MAC address of my laptop is ⟨!mac⟩.
@@ mac field json json
{"device": "phone", "mac": "⟨!mac⟩", "rssi": -61}
@@ mac ipconfig shell none
   Physical Address. . . . . . . . . : ⟨!mac⟩
"""

RECORDS = """
@@ several csv csv none de DE
Name;Geburtsdatum;Telefon;IBAN
Mitarbeiter ⟨small⟩;⟨!birth⟩;⟨!phone⟩;⟨!iban⟩
@@ several csv csv none en US
id,name,phone,ssn,email
⟨num⟩,Customer ⟨small⟩,⟨!phone⟩,⟨!ssn⟩,⟨!email⟩
@@ several csv csv none en UK
ref,mobile,date_of_birth,passport_number
⟨num⟩,⟨!phone⟩,⟨!birth⟩,⟨!passport⟩
@@ several csv csv none pt BR
id;nome;cpf;celular;nascimento
⟨num⟩;Cliente ⟨small⟩;⟨!cpf⟩;⟨!phone⟩;⟨!birth⟩
@@ several csv csv none fr FR
nom,téléphone,date_naissance,iban
Client ⟨small⟩,⟨!phone⟩,⟨!birth⟩,⟨!iban⟩
@@ several csv csv none ja JP
氏名,電話番号,生年月日
社員⟨small⟩,⟨!phone⟩,⟨!birth⟩
@@ several csv csv none zh CN
姓名,手机号,身份证号
客户⟨small⟩,⟨!phone⟩,⟨!id_cn⟩
@@ several table markdown none de AT
| Feld | Wert |
|---|---|
| Telefon | ⟨!phone⟩ |
| Geburtsdatum | ⟨!birth⟩ |
| IBAN | ⟨!iban⟩ |
@@ several table markdown none en IN
| Name | Mobile | Aadhaar |
|---|---|---|
| Applicant ⟨small⟩ | ⟨!phone⟩ | ⟨!aadhaar⟩ |
@@ several json json json en US
{"customer": {"id": ⟨num⟩, "phone": "⟨!phone⟩", "ssn": "⟨!ssn⟩", "email": "⟨!email⟩", "date_of_birth": "⟨!birth⟩"}}
@@ several json json json de DE
{"kunde": ⟨num⟩, "telefon": "⟨!phone⟩", "iban": "⟨!iban⟩", "geburtsdatum": "⟨!birth⟩", "steuerId": "⟨!tax_de⟩"}
@@ several json json json pt BR
{"cliente": {"cpf": "⟨!cpf⟩", "telefone": "⟨!phone⟩"}}
@@ several json json json zh CN
{"手机号": "⟨!phone⟩", "身份证": "⟨!id_cn⟩"}
@@ card json json json en US
{"payment": {"card_number": "⟨!card⟩", "exp": "08/29", "amount": ⟨price⟩}}
@@ card log log none en UK
⟨time⟩ ERROR payments charge failed card=⟨!card⟩ amount=⟨price⟩ code=do_not_honor
@@ several form html html en UK
<label>Phone</label><input type="tel" name="phone" value="⟨!phone⟩">
<label>Email</label><input type="email" name="email" value="⟨!email⟩">
@@ several form html html de CH
<tr><th>Telefon</th><td>⟨!phone⟩</td></tr>
<tr><th>AHV-Nummer</th><td>⟨!ahv⟩</td></tr>
@@ several sql sql none en US
INSERT INTO patients (id, phone, ssn, dob) VALUES (⟨num⟩, '⟨!phone⟩', '⟨!ssn⟩', '⟨!birth⟩');
@@ several sql sql none de DE
UPDATE kunden SET telefon = '⟨!phone⟩', iban = '⟨!iban⟩' WHERE kunde_id = ⟨num⟩;
@@ several yaml config none en IN
contact:
  phone: "⟨!phone⟩"
  email: ⟨!email⟩
@@ several vcard config none en US
BEGIN:VCARD
VERSION:3.0
TEL;TYPE=CELL:⟨!phone⟩
EMAIL:⟨!email⟩
END:VCARD
@@ several medical letter none de DE
Sehr geehrte Frau Kollegin,

wir berichten über die gemeinsame Patientin, geboren am ⟨!birth⟩,
Versichertennummer ⟨!health_de⟩, die sich am ⟨day⟩ vorstellte.
Rückfragen bitte unter Tel. ⟨!phone⟩.
@@ several medical letter none en UK
Dear Doctor,

Re: NHS number ⟨!nhs⟩, date of birth ⟨!birth⟩
Thank you for referring this patient. The blood pressure was 130/85.
The patient can be reached on mobile ⟨!phone⟩.
@@ several hr letter none de DE
Personalbogen
Geburtsdatum:             ⟨!birth⟩
Steuer-ID:                ⟨!tax_de⟩
Sozialversicherungsnr.:   ⟨!pension_de⟩
Bankverbindung (IBAN):    ⟨!iban⟩
Telefon privat:           ⟨!phone⟩
@@ several hr letter none en US
New hire form
Date of birth: ⟨!birth⟩
Social Security Number: ⟨!ssn⟩
Home phone: ⟨!phone⟩
Personal email: ⟨!email⟩
@@ several hr letter none de CH
Eintrittsmeldung
AHV-Nr. ⟨!ahv⟩
Geboren: ⟨!birth⟩
Lohnkonto: ⟨!iban⟩
@@ several bank letter none fr FR
Madame, Monsieur,

Nous confirmons le virement de ⟨price⟩ EUR vers le compte IBAN ⟨!iban⟩.
Pour toute question, appelez le ⟨!phone⟩.
@@ several bank letter none de AT
Ihr Dauerauftrag über ⟨price⟩ EUR zugunsten von IBAN ⟨!iban⟩ wurde eingerichtet.
Kundentelefon: ⟨!phone⟩
@@ several bank letter none pt BR
Prezado cliente, CPF ⟨!cpf⟩,
o débito de R$ ⟨price⟩ no cartão ⟨!card⟩ foi aprovado.
Central de atendimento, telefone ⟨!phone⟩.
@@ several travel letter none en IN
Passenger details
Passport No.: ⟨!passport⟩
Date of Birth: ⟨!birth⟩
Contact number: ⟨!phone⟩
@@ several travel letter none ja JP
お客様情報
パスポート番号：⟨!passport⟩
生年月日：⟨!birth⟩
電話番号：⟨!phone⟩
@@ several signature letter none en US
Best regards,
Head of Operations
Office: ⟨!phone⟩
Cell: ⟨!phone2⟩
⟨!email⟩
@@ several signature letter none de DE
Mit freundlichen Grüßen
Abteilung Einkauf
Tel. ⟨!phone⟩ | Fax ⟨!phone2⟩ | ⟨!email⟩
"""


def _sentence(line: str, language: str, place: str) -> Entry:
    head, text = line.split(" | ", 1)
    kind, form = head.split()
    return Entry(kind, form, "prose", text, language, "none", place)


def _spoken() -> list[Entry]:
    return [
        _sentence(line, _SPOKEN[place], place)
        for place in PLACES
        for line in SENTENCES[_SPOKEN[place]].strip().splitlines()
    ]


def _without_iban(entry: Entry) -> bool:
    return entry.kind == "iban" and entry.place in {"US", "IN", "JP", "CN"}


ENTRIES = [entry for entry in _spoken() if not _without_iban(entry)]
ENTRIES += entries(OWN) + entries(MACHINES) + entries(RECORDS)
