"""Texts that speak of passwords, tokens, codes, dates and numbers, and hold none of anybody's."""

CLEAN = {
    "en": (
        "The password must contain at least 12 characters, one digit and one symbol.", "Passwords are hashed with bcrypt and a cost of 12.", "Forgot your password? Click the link below.", "The password you entered is incorrect. Try again.",
        "Please enter the password twice to confirm.", "We never store passwords in plain text.", "Password protection is enabled for this workbook.", "My password manager generated something unreadable.", "If the password expires, an admin resets it.",
        "the password prompt appears twice on macOS", "Add a password field to the form and validate it.", "The password reset email goes out within five minutes.", "password authentication failed for user", "Use a strong password and enable two-factor authentication.",
        "The token limit is 4096 and the context window is 128k.", "Each token is about four characters.", "The access token expires after 3600 seconds.", "tokens per second: 42.7", "The tokenizer splits words into tokens such as ing and ed.", "A PIN pad is mounted next to the door.", "Connect pin 13 to the LED and pin 5 to ground.", "Pin the version to 2.31.0 in the lock file.",
        "The secret to a good risotto is stirring.", "Kubernetes secrets are base64 encoded, not encrypted.", "The secret is mounted as a volume.", "The private key never leaves the device.", "The key is stored in the vault and rotated weekly.", "The company was born in 2012 in a garage.", "Call the function with 3 arguments.", "Call me when you are done, I am at my desk.", "The phone rang 3 times between 10:15 and 10:45.", "Number of rows: 1204567, number of columns: 48.", "The account was opened in 2019 and closed in 2021.",
        "Issue 4821 is about passwords in the log.", "See RFC 7519 for tokens and RFC 6749 for OAuth.", "Released on 12 March 2021, the library has 4512 tests.", "The passport office opens at 9.", "Password policy: rotation every 90 days.", "password strength: weak, medium, strong", "Password requirements apply to all employees.", "The wifi password is on the fridge.", "The password is in the vault under staging.", "I changed the password yesterday.", "Ask Bob for the password.", "She told me the password on the phone.", "Type your password and press Enter.", "Is the password case sensitive?", "What was the password again?", "Password: required", "Password (min. 8 characters)", "Invalid username or password", "Change password every month", "the password for the server is missing", "the new password cannot be the same as the old password", "password reuse is a bad habit", "a password like this is easy to guess", "No password set for root.", "The password hint was useless.", "password-based login is disabled", "Show password", "Remember password", "with password authentication enabled", "Login with password or key", "Sign in with your password instead", "use password authentication instead of keys", "Enter password for sudo", "the password works fine", "my password stopped working yesterday",
    ),
    "de": (
        "Das Passwort muss mindestens zwölf Zeichen enthalten.", "Passwörter werden mit bcrypt gehasht.", "Passwort vergessen? Klicken Sie auf den Link.", "Das eingegebene Passwort ist falsch.", "Bitte geben Sie das Kennwort zweimal ein.", "Das Passwort steht im Tresor unter Staging.", "Ich habe das Passwort gestern geändert.", "Frag Bob nach dem Passwort.",
        "Der Schlüssel zum Erfolg ist Geduld.", "Das Passwort liegt auf dem Kühlschrank.", "Die Firma wurde 2012 in einer Garage gegründet.", "Die Rechnung Nr. 4711 vom 12.03.2021 ist offen.", "Das Treffen ist am 12.03.2024 um 10 Uhr.", "Ruf mich an, wenn du fertig bist.", "Die Nummer der Zeile ist 1204567.", "Das Passwort wird alle 90 Tage gewechselt.", "Passwort ändern", "Passwort wiederholen", "Kennwort anzeigen", "Das Passwort für den Server fehlt.", "Welches Passwort war das nochmal?", "Das Passwort funktioniert nicht mehr.", "Mit dem Passwort komme ich nicht weiter.", "Das Passwort bitte geheim halten.", "Das Passwort darf nicht leer sein.", "Das neue Passwort gilt ab morgen.", "Ein Passwort wie dieses ist leicht zu erraten.", "Der Token läuft nach einer Stunde ab.", "Die PIN wird dreimal falsch eingegeben.", "Der Vertrag gilt ab dem 01.01.2024.", "Passwort falsch eingegeben", "Das Passwort kennt nur Bob", "Dieses Passwort verwendet niemand", "Die Nummer 5 lebt.",
    ),
    "fr": (
        "Le mot de passe doit contenir au moins douze caractères.", "Mot de passe oublié ? Cliquez ici.", "Le mot de passe saisi est incorrect.", "Veuillez saisir le mot de passe deux fois.", "Le mot de passe est dans le coffre.", "J'ai changé le mot de passe hier.", "Demande le mot de passe à Bob.", "La clé du succès est la patience.", "L'entreprise est née en 2012 dans un garage.", "La réunion a lieu le 12/03/2024 à 10 h.", "Changer le mot de passe", "Afficher le mot de passe", "Le mot de passe ne fonctionne plus.", "Le mot de passe expire tous les 90 jours.", "Utilisez un mot de passe fort et unique.", "Un mot de passe facile à deviner.", "Le jeton expire après une heure.", "Quel est le mot de passe ?", "le mot de passe du serveur est perdu", "Mot de passe actuel", "nouveau mot de passe requis",
    ),
    "es": (
        "La contraseña debe tener al menos doce caracteres.", "¿Olvidó su contraseña? Haga clic aquí.", "La contraseña introducida no es correcta.", "Introduzca la contraseña dos veces.", "La contraseña está en la caja fuerte.", "Cambié la contraseña ayer.", "Pídele la contraseña a Bob.", "La clave del éxito es la paciencia.", "La clave está en los detalles.", "La empresa nació en 2012 en un garaje.", "La reunión es el 12/03/2024 a las 10.", "Cambiar contraseña", "Mostrar contraseña", "La contraseña ya no funciona.", "La contraseña caduca cada 90 días.", "Use una contraseña segura y única.", "¿Cuál es la contraseña?", "contraseña actual", "La clave primaria de la tabla es un entero.", "La contraseña es obligatoria.", "La contraseña del servidor se perdió.", "una contraseña fácil de adivinar",
    ),
    "pt": (
        "A senha deve ter pelo menos doze caracteres.", "Esqueceu a senha? Clique aqui.", "A senha digitada está incorreta.", "Digite a senha duas vezes.", "A senha está no cofre.", "Mudei a senha ontem.", "Peça a senha ao Bob.", "A chave do sucesso é a paciência.", "A empresa nasceu em 2012 numa garagem.", "A reunião é em 12/03/2024 às 10h.", "Alterar senha", "Mostrar senha", "A senha não funciona mais.", "A senha expira a cada 90 dias.", "Use uma senha forte e única.", "Qual é a senha?", "senha atual", "A senha é obrigatória.", "A senha do servidor foi perdida.", "uma senha fácil de adivinhar", "A senha é muito curta.", "A senha e o nome de usuário são necessários.",
    ),
    "it": (
        "La password deve contenere almeno dodici caratteri.", "Password dimenticata? Clicca qui.", "La password inserita non è corretta.", "Inserisci la password due volte.", "La password è nella cassaforte.", "Ho cambiato la password ieri.", "Chiedi la password a Bob.", "La chiave del successo è la pazienza.", "L'azienda è nata nel 2012 in un garage.", "La riunione è il 12/03/2024 alle 10.", "Cambia password", "Mostra password", "La password non funziona più.", "La password scade ogni 90 giorni.", "Usa una password forte e unica.", "Qual è la password?", "password attuale", "La password è obbligatoria.", "La password del server è andata persa.", "una password facile da indovinare", "La password è troppo corta.", "Accedi con password oppure con chiave.",
    ),
    "nl": ("Het wachtwoord moet minstens twaalf tekens bevatten.", "Wachtwoord vergeten? Klik hier.", "Het ingevoerde wachtwoord is onjuist.", "Voer het wachtwoord twee keer in.", "Het wachtwoord ligt in de kluis.", "Ik heb het wachtwoord gisteren veranderd.", "Vraag Bob om het wachtwoord.", "Wachtwoord wijzigen", "Wachtwoord tonen", "Het wachtwoord werkt niet meer.", "Gebruik een sterk wachtwoord.", "Wat is het wachtwoord?", "De vergadering is op 12-03-2024.", "Het bedrijf is geboren in 2012."),
    "pl": ("Hasło musi mieć co najmniej dwanaście znaków.", "Nie pamiętasz hasła? Kliknij tutaj.", "Podane hasło jest nieprawidłowe.", "Wpisz hasło dwa razy.", "Hasło jest w sejfie.", "Wczoraj zmieniłem hasło.", "Zapytaj Boba o hasło.", "Zmień hasło", "Pokaż hasło", "Hasło już nie działa.", "Użyj silnego hasła.", "Jakie jest hasło?", "Hasło wygasa co 90 dni.", "Spotkanie jest 12.03.2024 o 10.", "Hasło nie może być puste.", "hasło zostało zmienione", "Hasło do serwera zaginęło."),
    "ru": ("Пароль должен содержать не менее двенадцати символов.", "Забыли пароль? Нажмите здесь.", "Введённый пароль неверен.", "Введите пароль дважды.", "Пароль лежит в сейфе.", "Вчера я сменил пароль.", "Спроси пароль у Боба.", "Сменить пароль", "Показать пароль", "Пароль больше не работает.", "Используйте надёжный пароль.", "Какой пароль?", "Пароль истекает каждые 90 дней.", "Встреча 12.03.2024 в 10 часов.", "Пароль не может быть пустым.", "пароль был изменён вчера", "Пароль от сервера потерян.", "Придумайте пароль и запомните его.", "Ключ к успеху — терпение.", "введите логин и пароль", "пароль пользователя", "пароль администратора утерян", "Номер строки 1204567."),
    "zh": ("密码必须至少包含十二个字符。", "忘记密码？点击这里。", "输入的密码不正确。", "请输入两次密码。", "密码在保险箱里。", "我昨天改了密码。", "向鲍勃要密码。", "修改密码", "显示密码", "密码已经不能用了。", "请使用强密码。", "密码是什么？", "会议在2024年3月12日。", "密码不能为空。", "密码每90天过期。", "令牌一小时后过期。", "公司于2012年成立。", "密码长度8到16位", "第1204567行"),
    "ja": ("パスワードは12文字以上にしてください。", "パスワードをお忘れですか？", "入力されたパスワードが正しくありません。", "パスワードを2回入力してください。", "パスワードは金庫にあります。", "昨日パスワードを変更しました。", "ボブにパスワードを聞いてください。", "パスワードを変更", "パスワードを表示", "パスワードはもう使えません。", "強力なパスワードを使ってください。", "パスワードは何ですか？", "会議は2024年3月12日です。", "パスワードは空にできません。", "パスワードは90日ごとに期限切れになります。", "トークンは1時間で期限切れになります。", "会社は2012年に生まれました。"),
    "tr": ("Şifre en az on iki karakter içermelidir.", "Şifrenizi mi unuttunuz? Buraya tıklayın.", "Girilen şifre yanlış.", "Şifreyi iki kez girin.", "Şifre kasada.", "Dün şifreyi değiştirdim.", "Şifreyi Bob'a sor.", "Şifre değiştir", "Şifreyi göster", "Şifre artık çalışmıyor.", "Güçlü bir şifre kullanın.", "Şifre ne?", "Toplantı 12.03.2024 tarihinde.", "Şifre boş olamaz."),
}  # fmt: skip
"""Language: sentences."""

CODE = (
    "password = input('Password: ')\n", "def set_password(self, password: str) -> None:\n    self._hash = hash_password(password)\n", "if not password:\n    raise ValueError('password is required')\n", "password = os.environ['DB_PASSWORD']\n", "password: ${{ secrets.DB_PASSWORD }}\n", "password: {{ .Values.auth.password }}\n", "password = var.db_password\n", "password = random_password.db.result\n", "PASSWORD=$(openssl rand -hex 16)\n", "read -s -p 'Password: ' password\n",
    "user.password = hash(password)\n", "const password = req.body.password;\n", "password: z.string().min(8)\n", "password = models.CharField(max_length=128)\n", "token = jwt.encode(payload, key, algorithm='HS256')\n", "tokens = tokenizer.encode(text)\n", "token = next(tokens)\n", "const [password, setPassword] = useState('');\n", '<input type="password" autocomplete="current-password" required>\n', '<label for="password">Password</label>\n', "SELECT password FROM users WHERE id = ?;\n", "password VARCHAR(255) NOT NULL,\n", "UPDATE users SET password = ? WHERE id = ?;\n", "String password = config.getPassword();\n", 'password := os.Getenv("DB_PASSWORD")\n', 'let password = env::var("DB_PASSWORD")?;\n', "$password = $_POST['password'];\n", "password = ENV.fetch('DB_PASSWORD')\n", "--password-file /run/secrets/db\n", "secretKeyRef:\n  name: db\n  key: password\n", "pin = machine.Pin(25, machine.Pin.OUT)\n", "pinMode(13, OUTPUT);\n", "assert token.type == TokenType.NAME\n", "self.tokens_per_second = 42\n", "api_key: str = Field(..., description='The API key')\n", "login(username, password)\n", "connect(host, user, password, timeout=30)\n", "throw new Error('Invalid password');\n", "password_confirmation: user.password\n", "// password is checked by the caller\n", "# the password column is nullable\n", '"password": {"type": "string", "format": "password"},\n', "'password' => Hash::make($request->password),\n", "'password' => 'required|min:8|confirmed',\n", "errors.password = 'Password too short'\n", 'placeholder="Password"\n', "t('login.password')\n", "login.password=Passwort\n", "password.too.short=Das Passwort ist zu kurz\n", "test('password is required', () => {})\n", "it('rejects a wrong password', async () => {})\n", "- [ ] add password reset\n", "fix: password reset link (#4821)\n", "password: !vault |\n", "password: ENC(abc)\n", "password: *default_password\n", "args.password or getpass()\n", "password=password, user=user\n", "with_password(password)\n", "FLAG_PASSWORD = 1 << 3\n", "case 'password': return <PasswordField />;\n", "type Credentials = { user: string; password: string };\n", "password?: string;\n", "PasswordEncoder passwordEncoder;\n", "import { hashPassword } from './password';\n", "from django.contrib.auth.password_validation import validate_password\n",
)  # fmt: skip
LOGS = (
    "2024-05-01 12:00:00 INFO password changed for user 42\n",
    "2024-05-01 12:00:00 WARN invalid password from 10.0.0.4\n",
    "sshd[4711]: Failed password for root from 10.0.0.4 port 22 ssh2\n",
    "sshd[4711]: Accepted password for bob from 10.0.0.4 port 51422 ssh2\n",
    "pam_unix(sudo:auth): authentication failure; user=bob\n",
    "auth: token expired, refreshing (attempt 3)\n",
    "usage: prompt_tokens=812 completion_tokens=204 total_tokens=1016\n",
    "PASS tests/test_login.py::test_password_reset (0.31s)\n",
    "password: ********\n",
    "password=[REDACTED]\n",
    "GET /password/reset 200 12ms\n",
    "POST /api/token 401 3ms\n",
    "Collecting passlib==1.7.4\n",
    "Successfully installed keyring-24.3.1 secretstorage-3.3.3\n",
    "step 1204/5000 loss=2.3145 tokens/s=10482\n",
    'FATAL: password authentication failed for user "app"\n',
    "Enter PEM pass phrase:\n",
    "[sudo] password for bob:\n",
    "New password:\nRetype new password:\npasswd: password updated successfully\n",
)
TREES = (
    '{"field": "password", "message": "is required"}',
    '{"type": "object", "properties": {"password": {"type": "string", "description": "The password of the account"}}}',
    '{"errors": {"password": ["is too short (minimum is 8 characters)"]}}',
    '{"usage": {"prompt_tokens": 812, "completion_tokens": 204}}',
    '{"token": "Hello", "logprob": -0.31}',
    '{"password": null, "token": ""}',
    '{"password": "********"}',
    '{"label": "Password", "type": "password", "required": true}',
    '{"name": "password", "in": "body", "schema": {"type": "string"}}',
    '{"id": 4821, "title": "Password reset broken", "state": "open"}',
    '{"key": "theme", "value": "dark"}',
    '{"command": ["pytest", "-p", "no:xdist", "tests"]}',
    '{"i18n": {"password": "Kennwort", "forgot": "Kennwort vergessen?"}}',
    '{"name": "reset_password", "arguments": {"user": "bob"}}',
    '{"born": 1985, "city": "Ulm"}',
    '{"created_at": "2024-05-01", "birthdays": 3}',
    '{"tool": "fill", "args": {"selector": "#username", "text": "bob"}}',
    '{"content": "Please enter your password."}',
    '{"columns": ["user", "role"], "rows": [["bob", "admin"]]}',
    '{"passwordPolicy": {"minLength": 8, "rotation": "90d"}}',
)
