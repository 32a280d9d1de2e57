"""A name, then a value, as people tell each other in chats and mails, in twelve languages.

A template is `form | sentence`; a sentence that ends with a slot ends its line.
"""

import random
from dataclasses import replace

from bench.redaction_cases._heldout_fill import Entry

PASSWORDS = {
    "en": """
bold_name | **Password**: ⟨!pwl⟩
bold_name | *Password:* ⟨!pwl⟩
arrow | ⟨sys⟩ login ⟨user⟩, password -> ⟨!pw⟩
dash | Password - ⟨!pwl⟩
paren | the admin password (⟨!pw⟩) does not work on ⟨host⟩
set_to | please set the password to ⟨!pw⟩ for ⟨user⟩
should_be | the passphrase should be ⟨!pw⟩ if nobody changed it
question | the ⟨sys⟩ password? it's ⟨!pw⟩
is | The password for the ⟨sys⟩ account is ⟨!pw⟩ and the user is ⟨user⟩.
is | my ⟨sys⟩ password is still ⟨!pw⟩, can you check why the login fails?
was | The old password was ⟨!pw⟩ but I changed nothing since then.
colon | user: ⟨user⟩, password: ⟨!pw⟩
colon | Login details for ⟨sys⟩:\\nUsername: ⟨user⟩\\nPassword: ⟨!pwl⟩
colon | pw: ⟨!pw⟩
colon | pass: ⟨!pwl⟩
equals | I exported pwd=⟨!pw⟩ in my terminal and it still says access denied
quotes | log in to ⟨host⟩ as ⟨user⟩ with the password "⟨!pwq⟩" and tell me what you see
quotes | I set the root password to '⟨!pwq⟩' yesterday.
ticks | the passphrase of the key is `⟨!pwq⟩`, please add it to the agent
ticks | use `⟨user⟩` with password `⟨!pwq⟩`
bold | Temporary password: **⟨!pwq⟩** (valid until Friday)
bold | Your new password is **⟨!pwq⟩**. Please keep it for yourself.
space | wifi password ⟨!pwx⟩ for the guest network
changed | I've changed the password for ⟨sys⟩ from ⟨!pw⟩ to ⟨!pw2⟩.
pair | creds are ⟨user⟩ / password ⟨!pw⟩
next_line | Here is the password you asked for:\\n\\n⟨!pwl⟩
far_is | the password they gave us for the ⟨sys⟩ demo last week is ⟨!pw⟩
""",
    "de": """
bold_name | **Passwort:** ⟨!pwl⟩
arrow | Login ⟨user⟩, Passwort -> ⟨!pw⟩
paren | Das Admin-Passwort (⟨!pw⟩) geht auf ⟨host⟩ nicht.
set_to | Setz das Kennwort bitte auf ⟨!pw⟩ zurück.
equals | In der Datei steht passwort=⟨!pw⟩
is | Das Passwort für ⟨sys⟩ ist ⟨!pw⟩, Benutzer ist ⟨user⟩.
is | Mein Kennwort ist übrigens immer noch ⟨!pw⟩.
lautet | Das neue Passwort lautet ⟨!pw⟩ und gilt ab morgen.
lautet | Ihr vorläufiges Kennwort lautet: ⟨!pwl⟩
was | Das alte Passwort war ⟨!pw⟩, das geht aber nicht mehr.
colon | Benutzername: ⟨user⟩\\nKennwort: ⟨!pwl⟩
colon | Zugangsdaten ⟨sys⟩ – Login ⟨user⟩, Passwort: ⟨!pw⟩
colon | PW: ⟨!pw⟩
quotes | Bitte melde dich auf ⟨host⟩ mit dem Passwort „⟨!pwq⟩“ an.
quotes | Ich habe das Kennwort auf "⟨!pwq⟩" gesetzt.
ticks | Nimm `⟨user⟩` und als Passwort `⟨!pwq⟩`.
bold | Das WLAN-Passwort ist **⟨!pwq⟩**, bitte nicht weitergeben.
space | WLAN Passwort ⟨!pwx⟩ für die Gäste
changed | Ich habe das Passwort von ⟨!pw⟩ auf ⟨!pw2⟩ geändert.
far_is | Das Passwort, das ich gestern für ⟨sys⟩ bekommen habe, ist ⟨!pw⟩.
with | Anmelden geht mit Benutzer ⟨user⟩ und Passwort ⟨!pw⟩
""",
    "fr": """
bold_name | **Mot de passe :** ⟨!pwl⟩
paren | Le mot de passe administrateur (⟨!pw⟩) ne marche pas.
set_to | Remets le mot de passe à ⟨!pw⟩ s'il te plaît.
is | Le mot de passe de ⟨sys⟩ est ⟨!pw⟩, l'identifiant est ⟨user⟩.
is | mon mot de passe c'est ⟨!pw⟩ et ça ne marche pas
was | L'ancien mot de passe était ⟨!pw⟩.
colon | Identifiant : ⟨user⟩\\nMot de passe : ⟨!pwl⟩
colon | mdp : ⟨!pw⟩
colon | Voici le mot de passe provisoire : ⟨!pwl⟩
quotes | Connecte-toi à ⟨host⟩ avec le mot de passe « ⟨!pwq⟩ » s'il te plaît.
quotes | J'ai choisi le mot de passe "⟨!pwq⟩" hier, mais il a été refusé.
ticks | utilise `⟨user⟩` et le mot de passe `⟨!pwq⟩`
bold | Votre nouveau mot de passe est **⟨!pwq⟩**.
equals | j'ai mis motdepasse=⟨!pw⟩ dans le fichier
space | mot de passe wifi ⟨!pwx⟩ pour les invités
changed | J'ai changé le mot de passe : ⟨!pw⟩ au lieu de l'ancien.
far_is | Le mot de passe que le support m'a envoyé hier pour ⟨sys⟩ est ⟨!pw⟩.
""",
    "es": """
bold_name | **Contraseña:** ⟨!pwl⟩
arrow | usuario ⟨user⟩, contraseña -> ⟨!pw⟩
paren | La contraseña de administrador (⟨!pw⟩) no funciona.
is | La contraseña de ⟨sys⟩ es ⟨!pw⟩ y el usuario es ⟨user⟩.
is | mi contraseña sigue siendo ⟨!pw⟩, ¿puedes entrar tú?
was | La contraseña anterior era ⟨!pw⟩.
colon | Usuario: ⟨user⟩\\nContraseña: ⟨!pwl⟩
colon | clave: ⟨!pw⟩
colon | Te paso la contraseña del ⟨sys⟩: ⟨!pwl⟩
quotes | Entra en ⟨host⟩ con la contraseña "⟨!pwq⟩" y mira los registros.
quotes | Puse la contraseña «⟨!pwq⟩» en el servidor.
ticks | usuario `⟨user⟩`, contraseña `⟨!pwq⟩`
bold | Su nueva contraseña es **⟨!pwq⟩**, cámbiela al entrar.
equals | en el fichero pone contraseña=⟨!pw⟩
space | contraseña del wifi ⟨!pwx⟩ para las visitas
changed | He cambiado la contraseña de ⟨!pw⟩ a ⟨!pw2⟩.
far_is | La contraseña que me dieron ayer para ⟨sys⟩ es ⟨!pw⟩.
""",
    "pt": """
bold_name | **Senha:** ⟨!pwl⟩
paren | A senha de administrador (⟨!pw⟩) não funciona.
is | A senha do ⟨sys⟩ é ⟨!pw⟩ e o usuário é ⟨user⟩.
is | minha senha ainda é ⟨!pw⟩, pode testar pra mim?
was | A senha antiga era ⟨!pw⟩.
colon | Usuário: ⟨user⟩\\nSenha: ⟨!pwl⟩
colon | Segue a senha de acesso: ⟨!pwl⟩
colon | palavra-passe: ⟨!pw⟩
quotes | Entre em ⟨host⟩ com a senha "⟨!pwq⟩" e veja os logs.
quotes | Coloquei a palavra-passe «⟨!pwq⟩» no router.
ticks | usuário `⟨user⟩`, senha `⟨!pwq⟩`
bold | A sua nova senha é **⟨!pwq⟩**.
equals | no arquivo está senha=⟨!pw⟩
space | senha do wifi ⟨!pwx⟩ para visitantes
changed | Troquei a senha de ⟨!pw⟩ para ⟨!pw2⟩.
far_is | A senha que o suporte me mandou ontem para o ⟨sys⟩ é ⟨!pw⟩.
""",
    "it": """
bold_name | **Password:** ⟨!pwl⟩
paren | La password di amministratore (⟨!pw⟩) non funziona.
is | La password di ⟨sys⟩ è ⟨!pw⟩ e l'utente è ⟨user⟩.
is | la mia parola d'ordine è ⟨!pw⟩, non dirlo a nessuno
was | La vecchia password era ⟨!pw⟩.
colon | Utente: ⟨user⟩\\nPassword: ⟨!pwl⟩
colon | Ti mando la password provvisoria: ⟨!pwl⟩
colon | parola d'ordine: ⟨!pw⟩
quotes | Entra su ⟨host⟩ con la password "⟨!pwq⟩" e guarda i log.
quotes | Ho impostato la password «⟨!pwq⟩» sul router.
ticks | utente `⟨user⟩`, password `⟨!pwq⟩`
bold | La tua nuova password è **⟨!pwq⟩**.
space | password wifi ⟨!pwx⟩ per gli ospiti
changed | Ho cambiato la password da ⟨!pw⟩ a ⟨!pw2⟩.
far_is | La password che mi hanno dato ieri per ⟨sys⟩ è ⟨!pw⟩.
""",
    "ru": """
bold_name | **Пароль:** ⟨!pwl⟩
paren | Пароль администратора (⟨!pw⟩) не подходит.
is | Пароль от ⟨sys⟩ — ⟨!pw⟩, логин ⟨user⟩.
is | мой пароль до сих пор ⟨!pw⟩, проверь, пожалуйста
was | Старый пароль был ⟨!pw⟩, но он больше не подходит.
colon | Логин: ⟨user⟩\\nПароль: ⟨!pwl⟩
colon | Высылаю временный пароль: ⟨!pwl⟩
colon | логин/пароль: ⟨user⟩ / ⟨!pw⟩
quotes | Зайди на ⟨host⟩ с паролем «⟨!pwq⟩» и посмотри логи.
quotes | Я поставил пароль "⟨!pwq⟩" на роутер.
ticks | пользователь `⟨user⟩`, пароль `⟨!pwq⟩`
bold | Ваш новый пароль: **⟨!pwq⟩**
equals | в файле стоит пароль=⟨!pw⟩
space | пароль от вайфая ⟨!pwx⟩ для гостей
changed | Я поменял пароль с ⟨!pw⟩ на ⟨!pw2⟩.
far_is | Пароль, который мне вчера дали для ⟨sys⟩, такой: ⟨!pw⟩
""",
    "zh": """
bold_name | **密码：** ⟨!pwl⟩
paren | 管理员密码（⟨!pw⟩）不能用。
is | ⟨sys⟩ 的密码是 ⟨!pw⟩，用户名是 ⟨user⟩。
is | 我的密码是⟨!pws⟩，帮我看一下为什么登录不了
was | 旧密码是 ⟨!pw⟩，现在不能用了。
colon | 用户名：⟨user⟩\\n密码：⟨!pwl⟩
colon | 临时密码：⟨!pw⟩
colon | 口令: ⟨!pw⟩
quotes | 请用密码“⟨!pwq⟩”登录 ⟨host⟩，然后告诉我结果。
quotes | 我把密码设成了"⟨!pwq⟩"。
ticks | 账号 `⟨user⟩`，密码 `⟨!pwq⟩`
bold | 您的新密码为 **⟨!pwq⟩**，请尽快修改。
equals | 配置里写着 密码=⟨!pw⟩
space | 无线网密码 ⟨!pwx⟩
changed | 我已经把密码从 ⟨!pw⟩ 改成 ⟨!pw2⟩ 了。
far_is | 昨天他们给我的 ⟨sys⟩ 登录密码是 ⟨!pw⟩
""",
    "ja": """
bold_name | **パスワード：** ⟨!pwl⟩
paren | 管理者パスワード（⟨!pw⟩）が使えません。
is | ⟨sys⟩のパスワードは ⟨!pw⟩ です。ユーザー名は ⟨user⟩ です。
is | パスワードは⟨!pws⟩なんですが、ログインできません
was | 以前のパスワードは ⟨!pw⟩ でした。
colon | ユーザー名：⟨user⟩\\nパスワード：⟨!pwl⟩
colon | 仮パスワード: ⟨!pw⟩
colon | 暗証番号：⟨!pin⟩
quotes | パスワード「⟨!pwq⟩」で ⟨host⟩ にログインしてください。
quotes | パスワードを「⟨!pwq⟩」に設定しました。
ticks | ユーザー `⟨user⟩`、パスワード `⟨!pwq⟩`
bold | 新しいパスワードは **⟨!pwq⟩** です。
equals | 設定ファイルには パスワード=⟨!pw⟩ と書いてあります
space | Wi-Fiパスワード ⟨!pwx⟩
changed | パスワードを ⟨!pw⟩ から ⟨!pw2⟩ に変更しました。
far_is | 昨日もらった⟨sys⟩用のパスワードは次のとおりです: ⟨!pw⟩
""",
    "tr": """
is | ⟨sys⟩ için parola ⟨!pw⟩, kullanıcı adı ⟨user⟩.
is | benim şifrem hâlâ ⟨!pw⟩, bir bakar mısın?
colon | Kullanıcı adı: ⟨user⟩\\nParola: ⟨!pwl⟩
colon | Geçici şifreniz: ⟨!pwl⟩
quotes | ⟨host⟩ adresine şifre "⟨!pwq⟩" ile girin.
ticks | kullanıcı `⟨user⟩`, şifre `⟨!pwq⟩`
bold | Yeni parolanız: **⟨!pwq⟩**
equals | dosyada sifre=⟨!pw⟩ yazıyor
space | wifi şifresi ⟨!pwx⟩
""",
    "pl": """
is | Hasło do ⟨sys⟩ to ⟨!pw⟩, użytkownik ⟨user⟩.
is | moje hasło to nadal ⟨!pw⟩, sprawdzisz?
was | Stare hasło brzmiało ⟨!pw⟩.
colon | Użytkownik: ⟨user⟩\\nHasło: ⟨!pwl⟩
colon | Hasło tymczasowe: ⟨!pwl⟩
quotes | Zaloguj się na ⟨host⟩ hasłem „⟨!pwq⟩” i sprawdź logi.
ticks | użytkownik `⟨user⟩`, hasło `⟨!pwq⟩`
bold | Twoje nowe hasło to **⟨!pwq⟩**.
equals | w pliku jest haslo=⟨!pw⟩
space | hasło do wifi ⟨!pwx⟩
changed | Zmieniłem hasło z ⟨!pw⟩ na ⟨!pw2⟩.
""",
    "nl": """
is | Het wachtwoord voor ⟨sys⟩ is ⟨!pw⟩ en de gebruiker is ⟨user⟩.
is | mijn wachtwoord is nog steeds ⟨!pw⟩, kun jij even kijken?
was | Het oude wachtwoord was ⟨!pw⟩.
colon | Gebruikersnaam: ⟨user⟩\\nWachtwoord: ⟨!pwl⟩
colon | Hierbij het tijdelijke wachtwoord: ⟨!pwl⟩
quotes | Log in op ⟨host⟩ met wachtwoord "⟨!pwq⟩" en bekijk de logs.
ticks | gebruiker `⟨user⟩`, wachtwoord `⟨!pwq⟩`
bold | Je nieuwe wachtwoord is **⟨!pwq⟩**.
equals | in het bestand staat wachtwoord=⟨!pw⟩
space | wifi wachtwoord ⟨!pwx⟩ voor gasten
changed | Ik heb het wachtwoord veranderd van ⟨!pw⟩ naar ⟨!pw2⟩.
""",
}

OTHERS = {
    "pin": {
        "en": "colon | SIM PIN: ⟨!pin⟩\nis | The alarm PIN is ⟨!pin⟩, turn it off first.",
        "de": "colon | PIN: ⟨!pin⟩ (Bankkarte)\nlautet | Die PIN für die Karte lautet ⟨!pin⟩.",
        "fr": "colon | Code PIN : ⟨!pin⟩\nis | Le code PIN de la carte est ⟨!pin⟩.",
        "es": "colon | PIN: ⟨!pin⟩\nis | El PIN de la tarjeta es ⟨!pin⟩.",
        "pt": "colon | PIN: ⟨!pin⟩\nis | O PIN do cartão é ⟨!pin⟩.",
        "it": "colon | PIN: ⟨!pin⟩\nis | Il PIN della carta è ⟨!pin⟩.",
        "ru": "colon | ПИН-код: ⟨!pin⟩\nis | ПИН-код карты — ⟨!pin⟩.",
        "nl": "colon | Pincode: ⟨!pin⟩\nis | De pincode van de pas is ⟨!pin⟩.",
    },
    "api_key": {
        "en": "is | here is my api key, it is ⟨!opaque⟩, please try the call again\n"
        "colon | API key: ⟨!opaque⟩\nticks | set the token to `⟨!opaque⟩` and retry\n"
        "colon | access token: ⟨!opaque⟩\ncolon | client secret: ⟨!azure⟩",
        "de": "lautet | Der API-Schlüssel lautet ⟨!opaque⟩.\ncolon | Zugriffstoken: ⟨!opaque⟩",
        "fr": "is | La clé API est ⟨!opaque⟩.\ncolon | Jeton d'accès : ⟨!opaque⟩",
        "es": "is | La clave de API es ⟨!opaque⟩.\ncolon | Token de acceso: ⟨!opaque⟩",
        "pt": "is | A chave de API é ⟨!opaque⟩.\ncolon | Token de acesso: ⟨!opaque⟩",
        "it": "is | La chiave API è ⟨!opaque⟩.\ncolon | Token di accesso: ⟨!opaque⟩",
        "ru": "colon | API-ключ: ⟨!opaque⟩\ncolon | токен доступа: ⟨!opaque⟩",
        "zh": "colon | API 密钥：⟨!opaque⟩\nis | 访问令牌是 ⟨!opaque⟩",
        "ja": "colon | APIキー：⟨!opaque⟩\nis | アクセストークンは ⟨!opaque⟩ です。",
    },
    "vendor_key": {
        "en": "bare | can you see why this one gets a 401? ⟨!anykey⟩\nbare | I pasted ⟨!anykey⟩ into the form.",
        "de": "bare | Warum bekomme ich hiermit einen 401? ⟨!anykey⟩",
        "fr": "bare | pourquoi j'ai un 401 avec ⟨!anykey⟩ ?",
        "zh": "bare | 用 ⟨!anykey⟩ 为什么返回 401？",
        "ja": "bare | ⟨!anykey⟩ を使うと 401 になります。",
    },
    "wallet": {
        "en": "phrase | my seed phrase is ⟨!mnemonic⟩\nphrase | Recovery phrase:\\n⟨!mnemonic⟩\n"
        "hex | wallet private key: 0x⟨!hexkey⟩\nhex | The private key of that wallet is ⟨!hexkey⟩.\n"
        "wif | I imported ⟨!wif⟩ and the balance is zero",
        "de": "phrase | Meine Wiederherstellungsphrase lautet: ⟨!mnemonic⟩\nhex | Privater Schlüssel: ⟨!hexkey⟩",
        "es": "phrase | La frase semilla es ⟨!mnemonic⟩\nhex | clave privada: 0x⟨!hexkey⟩",
        "fr": "phrase | Voici la phrase de récupération : ⟨!mnemonic⟩\nhex | clé privée : ⟨!hexkey⟩",
        "ru": "phrase | Сид-фраза: ⟨!mnemonic⟩\nhex | приватный ключ: ⟨!hexkey⟩",
        "zh": "phrase | 助记词：⟨!mnemonic⟩\nhex | 私钥：⟨!hexkey⟩",
    },
}

LEADS = {
    "en": (
        "Hi,",
        "Hello team,",
        "Thanks for looking into this.",
        "One more thing:",
        "As agreed on the phone,",
    ),
    "de": ("Hallo,", "Guten Morgen zusammen,", "Danke für die schnelle Antwort.", "Noch etwas:"),
    "fr": ("Bonjour,", "Salut,", "Merci de ton aide.", "Encore une chose :"),
    "es": ("Hola,", "Buenos días,", "Gracias por la ayuda.", "Una cosa más:"),
    "pt": ("Oi,", "Bom dia,", "Obrigado pela ajuda.", "Mais uma coisa:"),
    "it": ("Ciao,", "Buongiorno,", "Grazie per l'aiuto.", "Ancora una cosa:"),
    "ru": ("Привет,", "Добрый день!", "Спасибо за помощь.", "И ещё:"),
    "zh": ("你好，", "大家好，", "谢谢帮忙。", "还有一件事："),
    "ja": (
        "お世話になっております。",
        "こんにちは。",
        "ありがとうございます。",
        "もう一点あります。",
    ),
    "tr": ("Merhaba,", "Günaydın,", "Yardımın için teşekkürler."),
    "pl": ("Cześć,", "Dzień dobry,", "Dzięki za pomoc."),
    "nl": ("Hoi,", "Goedemorgen,", "Bedankt voor je hulp."),
}
TAILS = {
    "en": (
        "Let me know if it works.",
        "Cheers",
        "It fails with a timeout every time.",
        "Please try ticket ⟨num⟩ next.",
    ),
    "de": (
        "Sag bitte Bescheid, ob es klappt.",
        "Viele Grüße",
        "Es kommt jedes Mal ein Zeitfehler.",
        "Siehe Ticket ⟨num⟩.",
    ),
    "fr": ("Dis-moi si ça marche.", "Cordialement", "Voir le ticket ⟨num⟩."),
    "es": ("Avísame si funciona.", "Un saludo", "Mira el ticket ⟨num⟩."),
    "pt": ("Me avise se funcionar.", "Abraços", "Veja o chamado ⟨num⟩."),
    "it": ("Fammi sapere se funziona.", "Saluti", "Vedi il ticket ⟨num⟩."),
    "ru": ("Дай знать, если заработает.", "С уважением", "См. заявку ⟨num⟩."),
    "zh": ("可以的话告诉我一声。", "谢谢！", "见工单 ⟨num⟩。"),
    "ja": (
        "よろしくお願いいたします。",
        "動いたら教えてください。",
        "チケット ⟨num⟩ をご覧ください。",
    ),
    "tr": ("Çalışırsa haber ver.", "Selamlar", "Kayıt ⟨num⟩."),
    "pl": ("Daj znać, czy działa.", "Pozdrawiam", "Zgłoszenie ⟨num⟩."),
    "nl": ("Laat weten of het werkt.", "Groeten", "Zie ticket ⟨num⟩."),
}


def _rows(kind: str, language: str, table: str) -> list[Entry]:
    split = (line.split(" | ", 1) for line in table.strip().splitlines())
    return [Entry(kind, form, "prose", text.replace("\\n", "\n"), language) for form, text in split]


ENTRIES = [
    row for language, table in PASSWORDS.items() for row in _rows("password", language, table)
]
ENTRIES += [
    row
    for kind, tables in OTHERS.items()
    for language, table in tables.items()
    for row in _rows(kind, language, table)
]


def dressed(rng: random.Random, entry: Entry) -> Entry:
    """The same sentence, at times inside a message with a greeting and a farewell."""
    parts = [entry.text]
    if rng.random() < 0.5:
        parts.insert(0, rng.choice(LEADS[entry.language]) + rng.choice((" ", "\n", "\n\n")))
    if rng.random() < 0.5:
        between = "\n" if entry.text.endswith("⟩") else rng.choice((" ", "\n", "\n\n"))
        parts.append(between + rng.choice(TAILS[entry.language]))
    return replace(entry, text="".join(parts))
