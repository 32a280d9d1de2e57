"""With which words do people announce a secret, and which words are never one?

Words of Latin scripts are written without their accents, as folding leaves them. Words of other
scripts become a run of one control character each (`SIGNS`), so that the engines, which read one
byte per character, see what they mean: "пароль" becomes six times the sign of a password.
"""

from __future__ import annotations

import re

from .words_codes import CODE_WORDS, any_word_pattern

PASSWORD, LINK, SECRET, PHONE, PASSPORT, BIRTH, PIN, VERB = "\x0e\x0f\x10\x11\x12\x13\x14\x15"

_APART = r"(?<!\w)(?:"
_WORDS = {
    PASSWORD: (
        "парол(?:ь(?!н)(?:чик)?|я(?:ми?|х)?|е[мй]?|ю|и(?!р)(?:те)?|ів?|а(?:та|х|ми?)?|у|ой)|код(?:а|ом)? доступ[ау]|пасс(?:ворд)?|кодовое слово|лозинк[а-я]{1,3}|гасло(?= (?:від|до|для)|:)|密[码碼]|口令|パスワード|パスフレーズ|パスコード|パス(?=[は：:])|暗証番号|合言葉"
        "|비밀번호|패스워드|암호|المرور|السر|पासवर्ड|कूटशब्द|סיסמ[האת]|รหัสผ่าน|κωδικ(?:[όο]ς?|ο[ίι]|ο[ύυ]ς?|[ώω]ν)(?![α-ωά-ώ]| (?:(?:σας|σου|μου) )?(?:σφάλμ|προϊόν|χώρα|εξόδ|κατάστ|πελάτ|είδου|ενεργοπ|επιβεβ|επαλήθ|ξεκλείδ|ασφαλ|μ[ιί]ας χρ))(?: πρόσβασης| εισόδου)?|συνθηματικ(?:[όο]|[άα]|[ύυ])|σ[ύυ]νθημ[άα](?= (?:μου|σου|του|της|μας|σας|τους))"
    ),
    SECRET: "приватный ключ|закрытый ключ|секретный ключ|api[- ]?ключ|私[钥鑰]|секрет(?:ный)?|токен(?:а|ом)?|ключ(?:а|ом)?|密[钥鑰]|金鑰|令牌|秘[钥密]|トークン|シークレット|キー|秘密鍵|토큰|비밀키",
    PIN: "пин(?:-?код)?|(?:(?:ваш(?:ият)?|мой|твой|мій|твій|твоят) )?код(?:а|ом|у|ът)?(?= (?:(?:ви|ти|ми|вам) )?(?:подтвержд|из смс|авторизац|активац|активир|разблок|доступ|проверк|безопас|восстанов|входа|від|от (?:домоф|двер|подъез|сейф|замк|кварт|калит|ворот)|для (?:вход|актив|подтв|разбл)|за (?:актив|потв|дост|откл|пров|сигур|вход)|підтв|розблок|безпек|перевір))(?: (?:ви|ти|ми|вам))?(?: (?:из|від|от|для|за))? [а-яёіїєъ]+|(?:проверочн|одноразов|секретн|защитн|смс-?|перевірочн)[а-яёіїє]{0,3} ?код(?:а|ом)?|(?:ваш|мой|твой|мій|твій|вашият|твоят) код|κωδικ(?:[όο]ς?|ο[ύυ])(?: (?:σας|σου|μου))? (?:ενεργοποίησης|επιβεβαίωσης|επαλήθευσης|ξεκλειδώματος|ασφαλείας|μ[ιί]ας χρήσης)|验证码|驗證碼|認証コード|確認コード|인증번호",
    PHONE: "подзвони(?:ть)?|дзвони|обади(?:те)?|τηλ[έε]φων[όο]?|κινητό|κάλεσ[έε]|πάρε με|номер(?:ът)?|моб(?=\\.)|联系我|联系电话|联络|拨打|致电|号码|打我|有事打|请联系|微信同号|連絡先?|問い合わせ|お電話|позвони(?:те)?|телефон(?:а|у|ом)?|тел|мобильн(?:ый|ого)|звони(?:те)?|номер|电话|電話(?:番号)?|手机(?:号码?)?|手機|携帯(?:電話)?|联系方式|传真|전화(?:번호)?|휴대폰|هاتف|फ़?ोन",
    PASSPORT: "身份证(?:号码?)?|身分證|マイナンバー|個人番号|снилс|инн|паспорт(?:а|ные)?|загранпаспорт|护照(?:号码?)?|護照|パスポート(?:番号)?|旅券(?:番号)?|여권(?:번호)?|جواز",
    BIRTH: "生まれ|(?<=日)生|生于|出生于|день рождения|рожд(?=\\.)|рождения|родил(?:ся|ась)|д\\.?р\\.?(?=[: ])|出生(?:日期|年月日?|于|在)?|生日|生年月日|誕生日|생년월일|الميلاد|जन्म",
    LINK: _APART
    + "это(?: был[ао]?)?|всегда был[аио]?|сейчас|там|у меня|у нас|есть|был[аио]?|является|теперь|такой|должен быть|будет|стал|остал(?:ся|ась)|на(?= )|в качестве|как(?= (?:[а-яё]+ )?парол)|як(?= (?:[а-яёі]+ )?парол)|като(?= (?:[а-я]+ )?парол)|за(?= (?:[а-я]+ )?парола)|є(?= )|це(?= )|був|була|було|тепер|зараз|такий|беше|са(?= )|бяха|остава|е(?= )|по-прежнему|следующий|вот)(?![а-яё])|应该是|應該是|设为|设成|设置为|设定为|設為|設定為|改成|改为|改為|换成|换为|換成|更改为|变成|变为|就是|还是|還是|仍是|なら|では|について|から|であり|هو|है|είναι|ήταν(?:ε)?|παραμένει|ως(?= (?:\\w+ )?(?:κωδικ|συνθημ))|για(?= (?:\\w+ )?(?:κωδικ|συνθημ))",
}
_STEMS = (
    "асс", "одовое", "арол", "АРОЛ", "озинка", "риватн", "акрыт", "екрет", "окен", "люч", "密", "私", "口令", "暗証", "合言葉", "パス", "비밀", "패스", "암호", "المرور",
    "السر", "पास", "कूट", "סיסמ", "รหัส", "ωδικ", "ύνθημ", "υνθημ", "асло", "ηλέφ", "ινητό", "άλεσ", "άρε με", "дзвон", "бади", "金鑰", "令牌", "秘", "トーク", "シーク", "キー", "토큰", "код", "Код", "пин", "Пин", "ПИН", "验证", "驗證", "認証", "確認",
    "인증", "елефон", "мо", "拨打", "致电", "号码", "打", "请联", "微信", "連絡", "問い", "生ま", "日生", "生于", "рожд", "тел", "Тел", "обильн", "вони", "омер", "电话", "電話", "手机", "手機", "携帯", "联系", "传真", "전화", "휴대", "هاتف",
    "ोन", "身份证", "身分", "マイナ", "個人番", "нилс", "НИЛС", "инн", "ИНН", "аспорт", "护照", "護照", "旅券", "여권", "جواز", "ождени", "одил", "出生", "生日", "生年", "誕生", "생년", "الميلاد", "जन्म",
)  # fmt: skip
"""Parts of the words below: a text without any of them holds none."""
_GROUPS = {f"w{i}": sign for i, sign in enumerate(_WORDS)}
_FIRST = "".join(
    sorted(
        {
            ch
            for words in _WORDS.values()
            for part in re.split(r"\||\(\?:.*?\)\??", words.removeprefix(_APART))
            for ch in part[:1]
            if ch.isalpha()
        }
    )
)
_FOREIGN = re.compile(
    f"(?=[{re.escape(_FIRST + _FIRST.upper())}])(?i:"
    + "|".join(f"(?P<w{i}>{words})" for i, words in enumerate(_WORDS.values()))
    + ")"
)


LINK_SIGNS = "是为為はがを从從由는은이"
"""Links of one character, which folding turns into the sign by itself."""


def replace_foreign_words(text: str) -> str:
    r"""The text with its words of other scripts replaced by signs of the same length.

    >>> replace_foreign_words("密码是 hunter2")
    '\x0e\x0e是 hunter2'
    """
    if not any(stem in text for stem in _STEMS):
        return text
    return _FOREIGN.sub(_sign_for_word, text)


def _sign_for_word(match: re.Match[str]) -> str:
    """The sign of a word, as often as the word has letters."""
    return _GROUPS[match.lastgroup or ""] * (match.end() - match.start())


PASSWORD_WORDS = (
    "pass", "passw", "passp", "passc", "passk", "passo", "paswo", "paswd", "p/w", "mot de passe", "mots de passe", "motdepasse", "mot_de_passe", "mot-de-passe", "palavra-passe", "palavra passe", "pwd", "pw", "psw", "pword", "paswort", "kennwort", "losungswort", "kodeord", "tunnussan", "salason", "jelszav", "parolel", "parolei", "hesla", "heslem", "heslu", "hesly", "heslum", "hesle", "hesel", "geslo", "gesla", "slaptazod", "codewort", "geheimwort", "geheimcode", "code secret", "secret code", "codigo secreto", "codice segreto", "geheime code", "gizli kod",
    "zugangscode", "mdp", "contrase", "clave", "senha", "parola", "wachtwoord", "haslo", "hasla", "haslem", "haslu", "hasle", "hasel", "sifre",
    "losenord", "adgangskode", "tilgangskode", "salasana", "heslo", "jelszo", "lozink", "parool", "mat khau", "sandi",
    "parola d'ordine", "clave de acceso", "clave secreta", "access code", "accesscode", "login code", "code d'acces", "codigo de acces", "codigo de acesso", "codice di accesso", "codice d'accesso", "kod dostepu", "kodu dostepu", "toegangscode", "giris kodu", "psk", "ww", "credentials", "creds", PASSWORD,
)  # fmt: skip
"""Where a password's name begins; what follows is in `PASSWORD_NAMES`."""

_EDGE = r"(?:(?<![A-Za-z])|(?<=[a-z])(?=[A-Z]))"
PASSWORD_NAMES = (
    r"(?:(?i:mots?[ _-]?de[ _-]?passe|palavra[-_ ]passe|pass?(?:[ _-]?w(?:or|ro)?[dt]|w(?:or)?t|wd|[ _-]?phrase|[ _-]?code|ord|kode|owrd|wrod)(?:s|es|ern?|et|ets|ene?|e)?|p/w"
    r"|pwd|pword|pswd|paswort|kenn?wort(?:s|es|ern?|e)?|losungswort|codewort|geheimwort|geheimcode|zugangscode|codes? secrets?|secret code|codigo secreto|codice segreto|geheime code|gizli kod[a-z]{0,4}|contrase(?:n[a-z]{0,8}|\?a)s?"
    r"|wachtwoord(?:en|jes?)?|losenord(?:ets?|ens?|s)?|(?:adgangs|tilgangs)kode(?:n|ns|r|rne|s)?|kodeord(?:et|ets|ene|er|s)?|(?:sala|tunnus)san[a-z]{1,9}|salason[a-z]{1,6}|jelsz(?:o|av)[a-z]{0,6}|lozink[a-z]{1,3}|parool[a-z]{0,4}|slaptazod[a-z]{1,4}|mat khau)"
    rf"|{_EDGE}(?i:pass(?:e|es)?|pw|psw|mdp|(?<!palabra )(?<!palavra )clave(?! (?:privad|public|primari|foran|de cifr|simetric|de registr))(?: de acceso| secreta)?|senhas?|senhazinhas?|parolel[a-z]{{1,3}}|parolei|parola(?! chiave)(?: d'ordine|[a-z]{{1,6}})?|hasl(?:o|a|em|u|e|ach|ami)|hasel|sifre(?:[a-z]{{1,6}})?"
    r"|hesl(?:o|a|em|u|e|um|ech|y)|hesel|gesl(?:o|a|om)|sandi|creds?|credentials|access ?code|login code|code d'acces|codigo de (?:acceso|acesso)|codice (?:di |d')accesso|kodu? dostepu|toegangscode|giris kodu(?:nuz|n)?|psk|(?<=het )ww|(?<=mijn )ww|ww(?=[ ]?[:=]))"
    rf"|{PASSWORD}{{1,24}})"
)
"""Needs no flags; caseless inside. A short name stands alone: `compass` is none."""

SECRET_CODE = re.compile(
    r"(?i)codes? secrets?|secret code|codigo secreto|codice segreto|geheimcode|geheime code|gizli kod"
)
"""Names of passwords of which a number is a PIN, which has rules of its own."""

SECRET_WORDS = (
    "secret", "secret key", "secret_key", "secret-key", "secretkey", "token", "api_key", "api-key", "api key", "apikey", "access_key", "access-key", "access key",
    "accesskey", "auth_key", "auth key", "auth-key", "authkey", "private_key", "private key", "privatekey",
    "private-key", "privkey", "signing_key", "signing key", "signingkey", "encryption_key", "encryption key",
    "encryptionkey", "master_key", "master key", "masterkey", "account_key", "account key", "service_key",
    "deploy_key", "session_key", "license_key", "license key", "licence key", "recovery key", "recovery code",
    "backup code", "credential", "auth", "auth_token", "authtoken", "jwt", "app_key", "app key", "appkey", "webhook", "schlussel",
    "schluessel", "cle api", "cle d'api", "cle secrete", "cle d'acces", "clave api", "clave de api", "chave api", "chave de api", "chave da api",
    "chave secreta", "chave de acesso", "chiave api", "chiave segreta", "jeton", "geheimnis", "secreto",
    "segredo", "segreto", "klucz", "tokena", "tokenem", "tokenu", "anahtar", "sleutel", "nyckel", SECRET,
)  # fmt: skip
SECRET_NAMES = (
    "(?i:"
    + "|".join(dict.fromkeys(re.sub("[_ -]", "[_ -]?", w) for w in SECRET_WORDS if w != SECRET))
    + ")"
    rf"|{SECRET}{{1,8}}"
)

_OWN_CODES = (
    "your code",
    "ihr code",
    "dein code",
    "mein code",
    "votre code",
    "ton code",
    "mon code",
    "su codigo",
    "tu codigo",
    "mi codigo",
    "seu codigo",
    "meu codigo",
    "tuo codice",
    "suo codice",
    "mio codice",
    "uw code",
    "je code",
    "jouw code",
    "mijn code",
    "twoj kod",
    "moj kod",
    "secret code",
    "code secret",
    "codigo secreto",
    "codice segreto",
    "geheimcode",
)
"""A code that somebody was sent; it needs its number right behind it."""
PIN_WORDS = tuple(
    dict.fromkeys(
        (
            "pin", "pin code", "pin-code", "pin number", "pincode", "pinnummer", "pin kod", "otp", "otp code", "cvv", "cvv2",
            "cvc", "2fa", "2fa code", "tan", *CODE_WORDS, *_OWN_CODES, PIN,
        )
    )
)  # fmt: skip
_CODES = any_word_pattern(CODE_WORDS).replace("\\ ", "[ _]")
PIN_NAMES = (
    rf"(?:{_EDGE}(?i:pin(?:[ -]?(?:code|kod(?:u|um|unuz)?|nummer|number|no|nr)\.?)?|t?otp(?:[ -]code)?|cv[vc]2?|2fa(?:[ -]code)?"
    rf"|{_CODES}[a-z]{{0,9}})|(?<![A-Z0-9_])T(?:AN|an)(?![a-z])(?:-(?:Nummer|Code))?"
    rf"|{_EDGE}(?i:{'|'.join(_OWN_CODES)})(?=[ ](?:is|ist|lautet|est|es|e|{VERB}|jest|to|[0-9])|:)"
    rf"|{PIN}{{1,40}})"
)

IS = (
    r"(?:is|was|are|were|will be|equals|ist|war|sind|waren|lautet|lautete|est|etait|sera|sont|etaient|es|era|sera|son|eran|e|foi|sao|eram|sono|erano|to|jest|sa|bylo|byly|byl|ar|er|var|on|oli|ovat|este|sunt|erau|jsou|zijn|waren|legyen|volt|"
    r"wordt|je|adalah|now|=|:|" + VERB + "|" + LINK + "{1,8})"
)
"""Between a name and its value in prose."""

OF = (
    r"(?:for|of|on|from|to|in|at|fur|vom|von|zum|zur|der|des|du|de|pour|para|per|di|del|della|do|da|voor|van|till|dla|icin|untuk|"
    + LINK
    + "{1,8})"
)
"""Between a name and whose it is: the password *for* the router is …"""

PREDICATES = frozenset(
    """
    wrong right correct incorrect required needed necessary missing empty blank invalid valid expired set unset reset
    stored hashed encrypted protected weak strong safe secure insecure optional mandatory case-sensitive changed known
    unknown hidden visible fine okay good bad old new short long too not the a an in on at for being now still already
    never always also only just used useless checked verified validated compromised leaked exposed shared public
    private here there below above attached what why where when how which that this these those it its their his her
    your my our one ones same different equal longer shorter at least most more less than and or but if so as by from
    with without into under over after before until while because since plus per via using must should shall can
    could may might will would has have had does did do done no none null nil true false yes off very quite rather
    actually currently probably usually often again next previous last first second third either neither both each
    every some any all many few several enough case sensitive plain text plaintext salted field fields value values
    manager managers policy policies prompt prompts hash hashes hashing reset generator strength input form file files
    length rules rule check checks list lists box database store storage vault change update option options flag
    argument parameter error errors attempt attempts protection protected authentication auth login based less free
    only etc be been am were you we they he she i me us them who whom whose however therefore otherwise instead
    really simply safely publicly securely randomly easily incorrectly correctly sent given provided entered typed written saved printed logged returned read generated
    created updated deleted removed rotated revoked rejected accepted denied refused matched mismatched recovery
    falsch richtig korrekt abgelaufen leer ungultig gultig erforderlich notig fehlt kurz lang schwach stark sicher
    unsicher nicht kein keine noch schon bereits jetzt immer nie auch nur sehr zu der die das dem den ein eine einer
    im in am an auf aus bei mit nach seit von vor wird wurde worden werden sein ihr mein dein unser hier dort unten
    oben gespeichert geandert verschlusselt bekannt unbekannt optional vergessen zuruckgesetzt und oder aber wenn
    als wie was wo warum dass gleich anders falls muss soll kann darf hat haben ist war sind geschutzt gesperrt
    incorrect incorrecte invalide valide vide expire expiree requis requise obligatoire faux fausse trop pas plus
    moins le la les un une des du de dans sur sous avec sans pour par et ou mais si que qui quoi dont deja encore
    jamais toujours tres ici correcte oublie oublies change modifie faible fort forte court courte long longue
    enregistre chiffre stocke inconnu connu necessaire facultatif manquant doit peut est sont etait
    incorrecta incorrecto invalida invalido valida valido vacia vacio vencida caducada caducado requerida requerido
    obligatoria falsa debil fuerte corta larga muy no el los las unos unas del al en con sin por para y o pero que
    como donde cuando ya siempre nunca aqui olvidada olvidado cambiada cambiado guardada cifrada necesaria debe puede
    tiene incorreta correta vazia expirada expirou fraca forte curta longa nao o os as um uma do da no na com sem
    mas onde quando ja sempre aqui esquecida alterada salva deve pode tem errata corretta vuota scaduta scaduto
    richiesta obbligatoria debole troppo non il lo gli uno di nel nella con senza per ma se che dove quando gia
    sempre mai qui dimenticata cambiata salvata cifrata deve puo ha bella
    onjuist juist leeg verlopen vereist verplicht zwak sterk te niet geen de het een op met zonder en of maar
    nieprawidlowe poprawne puste wygaslo wymagane slabe silne nie jest w na z bez i lub ale
    yanlis dogru bos gerekli zayif guclu degil ve veya ile icin bir
    felaktigt fel tomt kravs salah benar kosong wajib tidak dan atau
    """.split()  # noqa: SIM905
)
"""What is said of a password, in ten languages; none of it is one."""

_SAID_IN_RUSSIAN = re.compile(
    r"[\w]{2,}(?:[eеё]н[aаoоы]?|[aа]н[aаoоы]?|ный|н[aа]я|н[oо][eе]|ны[eе]|[tт]ь|[tт][cс]я|л[cс]я|л[aа][cс]ь)"
)
"""Participles and verbs, as folding leaves them."""
_ENDINGS = re.compile(r"[a-z]{3,}(?:ed|ing|able|ible|ment|tion|ically|ently|ierte?t?)")

IDENTIFIERS = frozenset(
    """
    value values val data args arg kwargs config configuration cfg settings setting options option opts request req
    response res resp self this user users username name names email result results str string bytes buffer text
    input inputs output key keys field fields form forms param params parameter body payload row item items obj object
    env environ environment os sys getpass prompt raw plain plaintext hashed hash digest hex encoded decoded encrypted
    decrypted salt func function lambda callback default empty none null nil true false undefined required optional
    any unknown never void number boolean bool int float char varchar type types schema model props state ctx context
    conn client session account login auth creds credential credentials secret token tokens pass passwd password
    passphrase pwd pw passwort kennwort contrasena senha parola clave secretstr securestring valor wert
    line lines line1 word words entry entries match matches group node child parent temp tmp foo bar baz qux x y z
    a b c p s v k new old current confirm confirmed repeat again other first second last next prev random generated
    existing stored saved provided given actual expected wrong right correct invalid valid missing hidden masked
    redacted removed filtered placeholder example sample dummy test tests fixture mock stub show hide toggle visible
    label title hint error errors message msg help description info note icon button submit click change on off yes no
    await async return yield not and or if else elif for while in is with new delete typeof function const let var def
    class import from pass raise except try finally print echo read set get put post patch unset reset
    """.split()  # noqa: SIM905
)
"""Names that stand for values in code; none of them is one."""


def describes_password(word: str) -> bool:
    """Is this what is said of a password, and not the password?

    >>> describes_password("expired"), describes_password("swordfish")
    (True, False)
    """
    low = word.lower().rstrip(".,;:!?)")
    if not low.isascii() and _SAID_IN_RUSSIAN.fullmatch(low):
        return True
    return low in PREDICATES or (word[:1].islower() and _ENDINGS.fullmatch(low) is not None)
