"""Prose that speaks of passwords, keys and numbers and gives none away, in nine languages."""

from bench.redaction_cases._heldout_fill import Entry

SENTENCES = {
    "en": """
The harvest was late this year, so the market opens on Saturday with apples, pears and cider.
Could you summarise the meeting notes in five bullet points and keep the dates?
The train leaves at 8:45 from platform 7 and arrives at 12:10, with ⟨percent⟩ seats left.
The function returns early when the list is empty, which is why the last row is missing.
We measured ⟨float⟩ on the first run and ⟨float2⟩ on the second, so the change is noise.
The invoice of ⟨day⟩ over ⟨price⟩ USD was paid in two parts of ⟨price2⟩ and the rest.
Room ⟨small⟩ on the third floor seats ⟨percent⟩ people; the projector needs an adapter.
I forgot my password and the password reset mail never arrives.
Forgot your password? Click the link below and follow the steps.
The password is wrong, and after three attempts the account is locked.
A password is required to open this file.
Please pass the salt, and tell the secretary that lunch is ready.
The secret of a good soup is time, and a pinch of nutmeg.
Could you explain what an access token is and how long it should live?
The token is expired, so the client asks for a new one.
Your order ⟨order⟩ was shipped on ⟨day⟩ and costs ⟨price⟩ EUR.
The book has the ISBN ⟨isbn⟩ and ⟨small⟩ pages.
We upgraded from version ⟨version⟩ to ⟨version2⟩ and the tests pass.
See commit ⟨short⟩ for the change, the full hash is ⟨commit⟩.
The job ⟨uuid⟩ ran for ⟨small⟩ seconds and used ⟨num⟩ tokens.
The password field must have at least twelve characters and one digit.
Never share your password with anybody, not even with support.
My PIN is blocked, what can I do?
Passwords are hashed with a salt before they are stored.
She keeps the key under the mat, which is no secret in the village.
Ticket ⟨num⟩: the password policy is too strict for the kiosk.
What is the difference between a password and a passphrase?
Use a password manager, and turn on the second factor.
The secret is stored in the vault, so the pipeline reads it from there.
The password was changed yesterday, and the api key was revoked.
In 1998 about ⟨num⟩ people lived there, ⟨percent⟩ % of them on farms.
He passed the exam with ⟨percent⟩ points and was born to teach.
The phone rang twice, but the number was withheld.
""",
    "de": """
Die Ernte war dieses Jahr spät, deshalb öffnet der Markt erst am Samstag.
Kannst du die Notizen der Besprechung in fünf Punkten zusammenfassen?
Der Zug fährt um 8:45 Uhr von Gleis 7 und kommt um 12:10 Uhr an.
Die Funktion kehrt früh zurück, wenn die Liste leer ist, deshalb fehlt die letzte Zeile.
Die Rechnung vom ⟨day⟩ über ⟨price⟩ EUR wurde in zwei Teilen bezahlt.
Raum ⟨small⟩ im dritten Stock hat ⟨percent⟩ Plätze.
Ich habe mein Passwort vergessen, und die Mail zum Zurücksetzen kommt nicht an.
Passwort vergessen? Klicken Sie auf den Link und folgen Sie den Schritten.
Das Passwort ist falsch, nach drei Versuchen wird das Konto gesperrt.
Das Kennwort ist erforderlich, um die Datei zu öffnen.
Das Geheimnis einer guten Suppe ist Zeit und etwas Muskat.
Das Passwort muss mindestens zwölf Zeichen und eine Ziffer haben.
Ihre Bestellung ⟨order⟩ wurde am ⟨day⟩ verschickt und kostet ⟨price⟩ EUR.
Das Buch hat die ISBN ⟨isbn⟩ und ⟨small⟩ Seiten.
Wir sind von Version ⟨version⟩ auf ⟨version2⟩ umgestiegen.
Der Lauf ⟨uuid⟩ hat ⟨small⟩ Sekunden gedauert.
Geben Sie Ihr Kennwort niemals weiter, auch nicht an den Support.
Meine PIN ist gesperrt, was kann ich tun?
Die Passwörter werden mit einem Salz gehasht, bevor sie gespeichert werden.
Das Passwort wurde gestern geändert und der Schlüssel widerrufen.
Wie ändere ich das Passwort meines Kontos in ⟨sys⟩?
Das Token ist abgelaufen, deshalb holt der Client ein neues.
Ticket ⟨num⟩: Das Passwortfeld bleibt nach der Anmeldung leer.
Kannst du erklären, was ein Zugriffstoken ist?
Im Jahr 1998 lebten dort etwa ⟨num⟩ Menschen, ⟨percent⟩ % davon auf Höfen.
Der Personalausweis und die Steuernummer werden erst später gebraucht.
""",
    "fr": """
La récolte a été tardive cette année, le marché ouvre donc samedi.
Peux-tu résumer les notes de la réunion en cinq points ?
Le train part à 8 h 45 de la voie 7 et arrive à 12 h 10.
La facture du ⟨day⟩ de ⟨price⟩ EUR a été payée en deux fois.
La salle ⟨small⟩ au troisième étage a ⟨percent⟩ places.
J'ai oublié mon mot de passe et le courriel de réinitialisation n'arrive pas.
Mot de passe oublié ? Cliquez sur le lien ci-dessous.
Le mot de passe est incorrect, le compte est bloqué après trois essais.
Le mot de passe est obligatoire pour ouvrir ce fichier.
Le secret d'une bonne soupe, c'est le temps et un peu de muscade.
Le mot de passe doit contenir au moins douze caractères et un chiffre.
Votre commande ⟨order⟩ a été expédiée le ⟨day⟩ et coûte ⟨price⟩ EUR.
Le livre porte l'ISBN ⟨isbn⟩ et compte ⟨small⟩ pages.
Nous sommes passés de la version ⟨version⟩ à la version ⟨version2⟩.
La tâche ⟨uuid⟩ a duré ⟨small⟩ secondes.
Ne donnez jamais votre mot de passe, même au support.
Le jeton est expiré, le client en demande un nouveau.
Comment changer le mot de passe de mon compte ⟨sys⟩ ?
Les mots de passe sont hachés avec un sel avant d'être enregistrés.
Le mot de passe a été modifié hier et la clé a été révoquée.
Peux-tu m'expliquer ce qu'est un jeton d'accès ?
En 1998, environ ⟨num⟩ personnes y vivaient, dont ⟨percent⟩ % à la ferme.
""",
    "es": """
La cosecha llegó tarde este año, así que el mercado abre el sábado.
¿Puedes resumir las notas de la reunión en cinco puntos?
El tren sale a las 8:45 de la vía 7 y llega a las 12:10.
La factura del ⟨day⟩ de ⟨price⟩ EUR se pagó en dos partes.
La sala ⟨small⟩ del tercer piso tiene ⟨percent⟩ plazas.
He olvidado mi contraseña y el correo para restablecerla no llega.
¿Olvidó su contraseña? HeartbeatMonitor el enlace y siga los pasos.
La contraseña es incorrecta y la cuenta se bloquea tras tres intentos.
La contraseña es obligatoria para abrir este archivo.
El secreto de una buena sopa es el tiempo y un poco de nuez moscada.
La contraseña debe tener al menos doce caracteres y un número.
Su pedido ⟨order⟩ salió el ⟨day⟩ y cuesta ⟨price⟩ EUR.
El libro tiene el ISBN ⟨isbn⟩ y ⟨small⟩ páginas.
Hemos pasado de la versión ⟨version⟩ a la ⟨version2⟩.
La tarea ⟨uuid⟩ tardó ⟨small⟩ segundos.
No comparta nunca su contraseña, ni siquiera con el soporte.
El token ha caducado, por eso el cliente pide otro.
¿Cómo cambio la contraseña de mi cuenta de ⟨sys⟩?
La clave del éxito es la paciencia.
La contraseña fue cambiada ayer y la clave fue revocada.
Las contraseñas se guardan con sal y con una función de resumen.
En 1998 vivían allí unas ⟨num⟩ personas, el ⟨percent⟩ % en granjas.
""",
    "pt": """
A colheita atrasou este ano, por isso a feira abre no sábado.
Pode resumir as notas da reunião em cinco pontos?
O trem sai às 8:45 da plataforma 7 e chega às 12:10.
A sala ⟨small⟩ no terceiro andar tem ⟨percent⟩ lugares.
Esqueci minha senha e o e-mail de redefinição não chega.
Esqueceu a senha? Clique no link abaixo.
A senha está errada e a conta é bloqueada depois de três tentativas.
A senha é obrigatória para abrir o arquivo.
O segredo de uma boa sopa é o tempo.
A senha deve ter pelo menos doze caracteres e um número.
O seu pedido ⟨order⟩ saiu em ⟨day⟩ e custa ⟨price⟩ EUR.
O livro tem o ISBN ⟨isbn⟩ e ⟨small⟩ páginas.
Passamos da versão ⟨version⟩ para a ⟨version2⟩.
Nunca compartilhe sua senha, nem com o suporte.
Como troco a senha da minha conta no ⟨sys⟩?
A tarefa ⟨uuid⟩ levou ⟨small⟩ segundos.
""",
    "it": """
Il raccolto quest'anno è in ritardo, quindi il mercato apre sabato.
Puoi riassumere gli appunti della riunione in cinque punti?
Il treno parte alle 8:45 dal binario 7 e arriva alle 12:10.
La sala ⟨small⟩ al terzo piano ha ⟨percent⟩ posti.
Ho dimenticato la password e la mail per reimpostarla non arriva.
Password dimenticata? Fai clic sul link qui sotto.
La password è errata e dopo tre tentativi l'account viene bloccato.
La password è obbligatoria per aprire il file.
Il segreto di una buona zuppa è il tempo.
La password deve avere almeno dodici caratteri e una cifra.
Il suo ordine ⟨order⟩ è partito il ⟨day⟩ e costa ⟨price⟩ EUR.
Il libro ha l'ISBN ⟨isbn⟩ e ⟨small⟩ pagine.
Siamo passati dalla versione ⟨version⟩ alla ⟨version2⟩.
Come cambio la password del mio account ⟨sys⟩?
""",
    "ru": """
Урожай в этом году поздний, поэтому рынок откроется в субботу.
Можешь кратко изложить заметки встречи в пяти пунктах?
Поезд отправляется в 8:45 с седьмого пути и прибывает в 12:10.
В зале ⟨small⟩ на третьем этаже ⟨percent⟩ мест.
Я забыл пароль, а письмо для сброса не приходит.
Забыли пароль? Перейдите по ссылке ниже.
Пароль неверный, после трёх попыток учётная запись блокируется.
Пароль обязателен для открытия файла.
Секрет хорошего супа — это время.
Пароль должен содержать не менее двенадцати символов и одну цифру.
Ваш заказ ⟨order⟩ отправлен ⟨day⟩ и стоит ⟨price⟩ EUR.
Мы перешли с версии ⟨version⟩ на ⟨version2⟩.
Никому не сообщайте свой пароль, даже поддержке.
Как поменять пароль от учётной записи ⟨sys⟩?
Задача ⟨uuid⟩ заняла ⟨small⟩ секунд.
""",
    "zh": """
今年收成晚，所以集市星期六才开。
能不能把会议记录总结成五点？
火车 8:45 从 7 号站台出发，12:10 到达。
三楼 ⟨small⟩ 号会议室有 ⟨percent⟩ 个座位。
我忘记了密码，重置密码的邮件一直没有收到。
忘记密码？请点击下面的链接。
密码错误，三次之后账号会被锁定。
密码不能为空，至少需要十二个字符。
请不要把密码告诉任何人，包括客服。
您的订单 ⟨order⟩ 已于 ⟨day⟩ 发货，价格为 ⟨price⟩ 欧元。
我们从版本 ⟨version⟩ 升级到了 ⟨version2⟩。
怎么修改 ⟨sys⟩ 账号的密码？
任务 ⟨uuid⟩ 用了 ⟨small⟩ 秒。
令牌已过期，客户端会重新申请。
""",
    "ja": """
今年は収穫が遅かったので、市場は土曜日に開きます。
会議のメモを五つの要点にまとめてもらえますか？
電車は8時45分に7番線から出発し、12時10分に到着します。
三階の会議室 ⟨small⟩ には ⟨percent⟩ 席あります。
パスワードを忘れてしまい、再設定のメールが届きません。
パスワードをお忘れですか？下のリンクをクリックしてください。
パスワードが間違っています。三回失敗するとロックされます。
パスワードは必須です。十二文字以上にしてください。
パスワードは誰にも教えないでください。
ご注文 ⟨order⟩ は ⟨day⟩ に発送されました。価格は ⟨price⟩ ユーロです。
バージョン ⟨version⟩ から ⟨version2⟩ に更新しました。
⟨sys⟩のパスワードを変更するにはどうすればよいですか？
トークンの有効期限が切れています。
処理 ⟨uuid⟩ は ⟨small⟩ 秒かかりました。
""",
}
BLOCKS = (
    "| Field | Type | Meaning |\n|---|---|---|\n| password | string | at least ⟨percent⟩ characters |\n| token | string | expires after ⟨num⟩ seconds |",
    "## Password reset\n\n1. Open *Settings*\n2. Choose **Change password**\n3. Enter the new password twice",
    "- [ ] rotate the api key every ⟨small⟩ days\n- [ ] delete expired tokens\n- [x] hash the passwords",
    "| Version | Date | SHA-256 |\n|---|---|---|\n| ⟨version⟩ | ⟨day⟩ | `⟨sha⟩` |",
    "```\nexport DB_PASSWORD=<your-password>\nexport TOKEN=$TOKEN\n```\nReplace the placeholder ⟨percent⟩ times if you must.",
    "The flag `--password` asks for the password; `--token` reads the token from a file (see #⟨num⟩).",
    "**Password:** required, at least ⟨percent⟩ characters\n\n**Token:** optional",
    "| Method | Path | Auth |\n|---|---|---|\n| GET | /orders/⟨num⟩ | token |\n| POST | /password/reset | none |",
)


def _markdown(text: str) -> Entry:
    return Entry("prose", "markdown", "markdown", text)


ENTRIES = [
    Entry("prose", "sentence", "prose", line, language)
    for language, lines in SENTENCES.items()
    for line in lines.strip().splitlines()
]
ENTRIES += [_markdown(text) for text in BLOCKS]
