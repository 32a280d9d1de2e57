"""Sentences of chats, mails and tickets that tell a password: `{p}` is the value, `{o}` an older one."""

SENTENCES = {
    "en": {
        "is": (
            "hey, the password is {p}, lmk if it works", "Password's {p}", "the admin password here is just {p}", "btw pass is {p}", "I think the password is {p} but not sure", "pw is {p}",
            "the password for my old laptop is {p} if you need it", "our guest wifi password is {p}!", "my pw is {p} lol", "the password's still {p} I guess", "The new password will be {p} from Monday on.",
            "Fyi the staging db password is now {p}", "your temporary password is {p} - please change it", "The passphrase to unlock the disk is {p}", "passwrod is {p}", "the pasword is {p}",
            "Her password was {p} before she left", "password there used to be {p}", "The password I gave you, {p}, should still work", "password = {p} for all test users",
        ),
        "space": (
            "password {p}", "user admin password {p}", "use password {p} to get in", "pass {p} user root", "I logged in with the password {p} and it worked", "login: bob pass: {p}", "creds bob / {p} (password on the right)",
            "try the password {p} instead", "enter password {p} when it asks", "ssh to box1, password {p}", "It takes user bob and password {p}", "with the pw {p} you get in",
            "the zip has password {p}", "username admin, password {p}, port 8443", "password {p} works on my side", "login admin, pwd {p}", "the account bob with password {p} is locked",
        ),
        "far": (
            "The password for the shared mailbox of the support team is {p}.", "the password that you asked me about on Friday: {p}", "As for the password, I wrote it down for you: {p}", "You asked for the password - here you go: {p}",
            "here's the password you need: {p}", "here is the password again: {p}", "the password to the VPN (the new one) is {p}", "For the password, just type {p}", "when it asks for a password type {p}",
            "if it asks for your password, enter {p}", "You can use {p} as the password", "{p} is the password", "{p} is my password, don't tell anyone", "I use {p} as my password everywhere", "we set {p} as the password", "{p} - that's the wifi password",
            "type in {p} as password", "Log in with {p} as your password", "the password field takes {p}",
        ),
        "set": (
            "I reset the password to {p}", "set your password to {p} for now", "please change the root password to {p}", "password has been changed to {p}", "The password was reset to {p} by the admin.", "Made the password {p}",
            "I changed the password, it is {p} now", "changed my password from {o} to {p}", "old password {o}, new password {p}", "the password is no longer {o}, it is {p}", "pw changed: {o} -> {p}", "rotated the db password ({o} → {p})",
            "Update the password from '{o}' to '{p}'.", "password {o} was replaced with {p}",
        ),
        "line": (
            "Your new password:\n\n{p}\n\nPlease change it.", "Username\nbob\nPassword\n{p}\n", "Password\n{p}", "Here is the password\n\n    {p}\n\nBye", "User: bob\nPassword:\n{p}", "> password?\n{p}", "what's the password?\n{p}",
            "Q: password? A: {p}", "password? {p}", "Password please?\n> {p}\nthanks", "1. user: bob\n2. password: {p}\n3. port: 22", "* user bob\n* password {p}", "- Login: bob\n- Password - {p}", "Host ........ db1\nPassword .... {p}\n",
        ),
        "mark": (
            "Password: [{p}]", "Password: <{p}>", "Password: ({p})", "password → {p}", "password => {p}", "password - {p}", "password — {p}", "password::{p}", "Password ~ {p}", "Password / {p}", "PASSWORD: {p}", "Password:{p}", "Password :{p}",
            "pw:{p}", "pw={p}", "p/w: {p}", "P: {p} (password)", "Password: {p}; user: bob", "Password: {p}, user: bob", "user/password: bob/{p}", "login/pass: bob/{p}", "username:password = bob:{p}", "(password: {p})", "[password={p}]", "{{password: {p}}}",
            "Password: _{p}_", "Password: ***{p}***", "_Password_: `{p}`", "password is: `{p}`", "> Password: {p}", "the password is “{p}”", "the password is ‘{p}’", "password „{p}“", "password «{p}»", "password ``{p}``", "Password: {p}\tRole: admin",
        ),
    },
    "de": {
        "is": (
            "Passwort ist {p}", "das passwort ist übrigens {p}", "das Passwort ist jetzt {p}.", "Das Passwort lautet wie folgt: {p}", "Mein Passwort ist {p}, aber psst", "Dein neues Passwort ist {p}.", "Das WLAN-Passwort ist bei uns {p}",
            "das pw ist {p}", "PW lautet {p}", "Das Kennwort heißt {p}", "Kennwort wäre {p}", "Das Passwort dafür ist {p}.", "Das Passwort war bisher {p}", "das Passwort ist glaube ich {p}", "Das Admin-Passwort ist immer noch {p}",
            "Ihr vorläufiges Passwort ist {p}", "Ihr Kennwort lautet: {p}", "Das Passwort bleibt {p}.", "Passwort is {p} ;)", "Das Passwort müsste {p} sein", "Das Zugangspasswort ist {p}", "Das Masterpasswort ist {p}", "Das Passwort des Servers ist {p}",
        ),
        "space": (
            "Passwort {p}", "Nimm das Passwort {p}", "Benutzer admin Passwort {p}", "mit Passwort {p} einloggen", "Melden Sie sich mit dem Kennwort {p} an", "mit dem Passwort {p} komme ich rein", "Zugang: bob, Kennwort {p}", "User bob PW {p}",
            "Bitte geben Sie das Passwort {p} ein", "gib beim Passwort {p} ein", "das Passwort {p} funktioniert nicht mehr", "Das Konto bob mit dem Passwort {p} ist gesperrt", "Login bob, Passwort {p}, Port 22", "Die Datei ist mit dem Passwort {p} geschützt",
            "ich nutze überall das Passwort {p}", "versuch mal Passwort {p}", "als Passwort {p} verwenden", "Verwende {p} als Passwort", "{p} ist das Passwort", "Als Passwort hab ich {p} genommen", "Als Kennwort ist {p} hinterlegt",
        ),
        "far": (
            "Das Passwort für das gemeinsame Postfach vom Support lautet {p}.", "hier das Passwort, das du wolltest: {p}", "Hier nochmal das Passwort: {p}", "Du hattest nach dem Passwort gefragt: {p}", "Was das Passwort angeht: {p}",
            "Wenn nach dem Passwort gefragt wird, gib {p} ein", "Das Passwort, das wir letzte Woche vergeben haben, ist {p}", "Passwort vom Router (steht unten drauf): {p}", "das Passwort von meinem alten Rechner war glaub {p}",
        ),
        "set": (
            "Ich habe das Passwort auf {p} geändert", "Passwort wurde auf {p} zurückgesetzt", "Bitte setze das Passwort auf {p}", "setz das passwort mal auf {p}", "Das Passwort habe ich in {p} geändert", "neues Passwort: {p}", "Neues Passwort {p}, altes war {o}",
            "Passwort von {o} auf {p} umgestellt", "altes Kennwort {o}, neues Kennwort {p}", "Das Passwort ist nicht mehr {o}, sondern {p}", "hab das Passwort {p} vergeben", "Wir haben {p} als Passwort gesetzt", "Das Passwort wurde geändert und lautet nun {p}",
        ),
        "line": (
            "Ihr neues Kennwort:\n\n{p}\n\nBitte ändern Sie es.", "Benutzername\nbob\nKennwort\n{p}\n", "Passwort?\n{p}", "Wie war das Passwort nochmal? {p}", "Wie lautet das Passwort? – {p}", "Ist das Passwort {p}?", "War das Passwort nicht {p}?",
        ),
        "mark": ("Passwort : {p}", "Passwort:{p}", "PASSWORT: {p}", "Passwort (neu): {p}", "Passwort – {p}", "Passwort → {p}", "Passwort: „{p}“", "Passwort „{p}“", "Passwort ‚{p}‘", "Passwort »{p}«", "Benutzer/Passwort: bob/{p}", "Passwort = {p}", "Zugangsdaten: bob / {p}", "Kennwort: ({p})"),
    },
    "fr": {
        "is": (
            "le mot de passe est {p}", "ton mot de passe est {p} pour l'instant", "le mdp est {p}", "mon mdp c'est {p}", "le mot de passe, c'est {p}", "Votre nouveau mot de passe est {p}.", "Le mot de passe du wifi est toujours {p}", "Le mot de passe était {p} avant",
            "le mot de passe actuel est {p}, ne le partage pas", "Le mot de passe sera {p} à partir de lundi", "le code d'accès est {p}", "Votre mot de passe provisoire est le suivant : {p}", "Le mot de passe administrateur reste {p}.",
        ),
        "space": (
            "mot de passe {p}", "utilise le mot de passe {p} pour entrer", "connecte-toi avec le mdp {p}", "utilisateur admin mot de passe {p}", "login bob, mdp {p}", "avec le mot de passe {p} ça marche", "le compte bob avec le mot de passe {p} est bloqué",
            "saisissez le mot de passe {p}", "entrez le mot de passe {p} puis validez", "Le fichier est protégé par le mot de passe {p}", "essaie le mot de passe {p}", "Utilise {p} comme mot de passe", "{p} est le mot de passe", "j'ai mis {p} comme mot de passe",
        ),
        "far": (
            "Le mot de passe de la boîte partagée du support est {p}.", "voici le mot de passe que tu voulais : {p}", "Pour le mot de passe, tape {p}", "Le mot de passe pour le serveur de test, c'est {p}", "Le mot de passe que je t'ai donné ({p}) marche encore",
            "Quand il demande le mot de passe, mets {p}", "Concernant le mot de passe : {p}", "le mot de passe de mon vieux PC était {p}",
        ),
        "set": (
            "J'ai changé le mot de passe en {p}", "le mot de passe a été réinitialisé à {p}", "mets le mot de passe à {p}", "Nouveau mot de passe : {p}", "J'ai remplacé le mot de passe {o} par {p}", "mot de passe modifié de {o} à {p}", "J'ai défini le mot de passe sur {p}",
            "ancien mot de passe {o}, nouveau mot de passe {p}", "le mot de passe n'est plus {o} mais {p}",
        ),
        "line": ("Votre mot de passe :\n\n{p}\n\nMerci.", "Identifiant\nbob\nMot de passe\n{p}\n", "C'est quoi le mot de passe ? {p}", "Le mot de passe est bien {p} ?", "mot de passe ?\n{p}"),
        "mark": ("mdp : {p}", "mdp:{p}", "Mot de passe: {p}", "Mot de passe = {p}", "Mot de passe – {p}", "Mot de passe : « {p} »", "mot de passe «{p}»", "identifiant/mot de passe : bob/{p}", "MOT DE PASSE : {p}", "Mot de passe → {p}", "Mot de passe (wifi) : {p}"),
    },
    "es": {
        "is": (
            "la contraseña es {p}", "tu contraseña es {p} por ahora", "mi contraseña es {p}, no se la digas a nadie", "La contraseña del wifi sigue siendo {p}", "La clave es {p}", "la clave del wifi es {p}", "La contraseña era {p}", "La contraseña nueva es {p}.",
            "Su contraseña temporal es {p}", "La contraseña será {p} desde el lunes", "la contra es {p}", "La contraseña de acceso es la siguiente: {p}", "La contraseña actual es: {p}",
        ),
        "space": (
            "contraseña {p}", "usa la contraseña {p} para entrar", "entra con la clave {p}", "usuario admin contraseña {p}", "login bob, contraseña {p}", "con la contraseña {p} funciona", "la cuenta bob con contraseña {p} está bloqueada", "introduce la contraseña {p}",
            "El archivo está protegido con la contraseña {p}", "prueba la contraseña {p}", "prueba con la clave {p} a ver", "Usa {p} como contraseña", "{p} es la contraseña", "puse {p} de contraseña", "Puse la contraseña {p} en el router", "ponle contraseña {p}",
        ),
        "far": (
            "La contraseña del correo compartido de soporte es {p}.", "aquí tienes la contraseña: {p}", "te paso la contraseña que pediste: {p}", "Para la contraseña escribe {p}", "La contraseña que te di ({p}) todavía funciona", "Cuando pida la contraseña, pon {p}",
            "la contraseña de mi viejo portátil era {p}",
        ),
        "set": (
            "He cambiado la contraseña a {p}", "cambié la clave por {p}", "la contraseña se ha restablecido a {p}", "pon la contraseña en {p}", "Nueva contraseña: {p}", "Cambié la contraseña de {o} a {p}", "contraseña antigua {o}, contraseña nueva {p}", "La contraseña ya no es {o}, ahora es {p}",
            "Establece la contraseña como {p}",
        ),
        "line": ("Su contraseña:\n\n{p}\n\nGracias.", "Usuario\nbob\nContraseña\n{p}\n", "¿Cuál es la contraseña? {p}", "¿La contraseña es {p}?", "contraseña?\n{p}"),
        "mark": ("contraseña:{p}", "Contraseña = {p}", "Contraseña – {p}", "Contraseña: «{p}»", "contraseña «{p}»", "usuario/contraseña: bob/{p}", "CONTRASEÑA: {p}", "Contraseña → {p}", "Contrasena: {p}", "Clave: {p}", "Contraseña (wifi): {p}", "pass: {p}"),
    },
    "pt": {
        "is": (
            "a senha é {p}", "sua senha é {p} por enquanto", "minha senha é {p}, não conta pra ninguém", "A senha do wifi continua sendo {p}", "A palavra-passe é {p}", "A senha era {p} antes", "A nova senha é {p}.", "Sua senha temporária é {p}", "A senha será {p} a partir de segunda",
            "A senha atual é: {p}", "a senha de acesso é a seguinte: {p}", "a senha do servidor é {p} mesmo",
        ),
        "space": (
            "senha {p}", "usa a senha {p} pra entrar", "entra com a senha {p}", "usuário admin senha {p}", "login bob, senha {p}", "com a senha {p} funciona", "a conta bob com a senha {p} está bloqueada", "digite a senha {p}", "O arquivo está protegido com a senha {p}",
            "tenta a senha {p}", "Use {p} como senha", "{p} é a senha", "coloquei {p} como senha", "Coloquei a senha {p} no roteador", "utilize a palavra-passe {p} para aceder",
        ),
        "far": (
            "A senha do e-mail compartilhado do suporte é {p}.", "aqui está a senha: {p}", "segue a senha que você pediu: {p}", "Para a senha digite {p}", "A senha que te passei ({p}) ainda funciona", "Quando pedir a senha, coloque {p}", "a senha do meu notebook antigo era {p}",
        ),
        "set": (
            "Mudei a senha para {p}", "alterei a senha para {p}", "a senha foi redefinida para {p}", "coloca a senha como {p}", "Nova senha: {p}", "Troquei a senha de {o} para {p}", "senha antiga {o}, senha nova {p}", "A senha não é mais {o}, agora é {p}",
        ),
        "line": ("Sua senha:\n\n{p}\n\nObrigado.", "Usuário\nbob\nSenha\n{p}\n", "Qual é a senha? {p}", "A senha é {p}?", "senha?\n{p}"),
        "mark": ("senha:{p}", "Senha = {p}", "Senha – {p}", "Senha: “{p}”", "senha “{p}”", "usuário/senha: bob/{p}", "SENHA: {p}", "Senha → {p}", "Palavra-passe: {p}", "Senha (wifi): {p}"),
    },
    "it": {
        "is": (
            "la password è {p}", "la tua password è {p} per ora", "la mia password è {p}, non dirla a nessuno", "La password del wifi è sempre {p}", "La password è ancora {p}", "La password era {p} prima", "La nuova password è {p}.", "La Sua password temporanea è {p}",
            "La password sarà {p} da lunedì", "La password attuale è: {p}", "la password di accesso è la seguente: {p}", "la pass è {p}", "La parola d'ordine è {p}", "la password del server resta {p}",
        ),
        "space": (
            "password {p}", "usa la password {p} per entrare", "entra con la password {p}", "utente admin password {p}", "login bob, password {p}", "con la password {p} funziona", "l'account bob con password {p} è bloccato", "inserisci la password {p}", "Il file è protetto dalla password {p}",
            "prova la password {p}", "Usa {p} come password", "{p} è la password", "ho messo {p} come password", "Ho messo la password {p} sul router", "Utilizzi la password {p} per accedere", "come password {p}",
        ),
        "far": (
            "La password della casella condivisa del supporto è {p}.", "ecco la password: {p}", "ti mando la password che volevi: {p}", "Per la password scrivi {p}", "La password che ti ho dato ({p}) funziona ancora", "Quando chiede la password, metti {p}", "la password del mio vecchio portatile era {p}",
        ),
        "set": (
            "Ho cambiato la password in {p}", "ho reimpostato la password a {p}", "la password è stata reimpostata su {p}", "metti la password su {p}", "imposta la password a {p}", "Nuova password: {p}", "Ho cambiato la password da {o} a {p}", "vecchia password {o}, nuova password {p}", "La password non è più {o}, ora è {p}",
        ),
        "line": ("La sua password:\n\n{p}\n\nGrazie.", "Utente\nbob\nPassword\n{p}\n", "Qual è la password? {p}", "La password è {p}?", "password?\n{p}"),
        "mark": ("password:{p}", "Password = {p}", "Password – {p}", "Password: «{p}»", "password «{p}»", "utente/password: bob/{p}", "PASSWORD: {p}", "Password → {p}", "Password (wifi): {p}"),
    },
    "nl": {
        "is": (
            "het wachtwoord is {p}", "je wachtwoord is {p} voorlopig", "mijn wachtwoord is {p}, niet doorvertellen", "Het wifi-wachtwoord is nog steeds {p}", "Het wachtwoord was {p}", "Het nieuwe wachtwoord is {p}.", "Uw tijdelijke wachtwoord is {p}", "Het wachtwoord wordt {p} vanaf maandag",
            "Het huidige wachtwoord is: {p}", "Het wachtwoord luidt {p}", "het ww is {p}", "Het wachtwoord zou {p} moeten zijn",
        ),
        "space": (
            "wachtwoord {p}", "gebruik wachtwoord {p} om in te loggen", "log in met het wachtwoord {p}", "gebruiker admin wachtwoord {p}", "login bob, wachtwoord {p}", "met het wachtwoord {p} lukt het", "het account bob met wachtwoord {p} is geblokkeerd", "voer het wachtwoord {p} in",
            "Het bestand is beveiligd met wachtwoord {p}", "probeer wachtwoord {p}", "Gebruik {p} als wachtwoord", "{p} is het wachtwoord", "ik heb {p} als wachtwoord ingesteld",
        ),
        "far": ("Het wachtwoord van de gedeelde mailbox is {p}.", "hier is het wachtwoord: {p}", "hierbij het wachtwoord waar je om vroeg: {p}", "Vul bij wachtwoord {p} in", "Het wachtwoord dat ik je gaf ({p}) werkt nog"),
        "set": ("Ik heb het wachtwoord gewijzigd in {p}", "wachtwoord is gereset naar {p}", "zet het wachtwoord op {p}", "Nieuw wachtwoord: {p}", "Wachtwoord veranderd van {o} naar {p}", "oud wachtwoord {o}, nieuw wachtwoord {p}", "Het wachtwoord is niet meer {o} maar {p}"),
        "line": ("Uw wachtwoord:\n\n{p}\n\nGroet", "Gebruiker\nbob\nWachtwoord\n{p}\n", "Wat is het wachtwoord? {p}", "Is het wachtwoord {p}?"),
        "mark": ("wachtwoord:{p}", "Wachtwoord = {p}", "Wachtwoord – {p}", "Wachtwoord: “{p}”", "gebruiker/wachtwoord: bob/{p}", "WACHTWOORD: {p}", "Wachtwoord (wifi): {p}", "ww: {p}"),
    },
    "pl": {
        "is": (
            "hasło to {p}", "Twoje hasło to {p} na razie", "moje hasło to {p}, nie mów nikomu", "Hasło do wifi to nadal {p}", "Hasłem jest {p}", "Hasło brzmi {p}", "Hasło było {p}", "Nowe hasło to {p}.", "Tymczasowe hasło to {p}", "Hasło będzie {p} od poniedziałku", "Aktualne hasło: {p}",
            "hasło jest {p}", "Hasło do konta jest następujące: {p}", "haslo to {p}",
        ),
        "space": (
            "hasło {p}", "użyj hasła {p} aby wejść", "zaloguj się hasłem {p}", "użytkownik admin hasło {p}", "login bob, hasło {p}", "z hasłem {p} działa", "konto bob z hasłem {p} jest zablokowane", "wpisz hasło {p}", "podaj hasło {p}", "Plik jest chroniony hasłem {p}", "spróbuj hasła {p}",
            "Użyj {p} jako hasła", "{p} to hasło", "ustawiłem {p} jako hasło", "Ustawiłem hasło {p} na routerze", "Proszę użyć hasła {p} do logowania",
        ),
        "far": ("Hasło do wspólnej skrzynki wsparcia to {p}.", "oto hasło: {p}", "przesyłam hasło, o które prosiłeś: {p}", "W polu hasło wpisz {p}", "Hasło, które ci podałem ({p}), nadal działa", "hasło do mojego starego laptopa to było {p}", "hasło od serwera: {p}"),
        "set": ("Zmieniłem hasło na {p}", "hasło zostało zresetowane na {p}", "ustaw hasło na {p}", "Nowe hasło: {p}", "Zmieniono hasło z {o} na {p}", "stare hasło {o}, nowe hasło {p}", "Hasło to już nie {o}, tylko {p}", "Hasło zmieniłam z {o} na {p}"),
        "line": ("Twoje hasło:\n\n{p}\n\nPozdrawiam", "Użytkownik\nbob\nHasło\n{p}\n", "Jakie jest hasło? {p}", "Czy hasło to {p}?", "hasło?\n{p}"),
        "mark": ("hasło:{p}", "Hasło = {p}", "Hasło – {p}", "Hasło: „{p}”", "hasło „{p}”", "login/hasło: bob/{p}", "HASŁO: {p}", "Hasło (wifi): {p}", "Haslo: {p}", "hasło - {p}"),
    },
    "tr": {
        "is": ("şifre {p}", "şifren {p} şimdilik", "benim şifrem {p}", "Wifi şifresi hâlâ {p}", "parola {p} idi", "Yeni şifreniz {p}.", "Geçici şifreniz: {p}", "Sunucunun şifresi {p} olacak", "Şifremiz {p}, kimseye söyleme", "parolası {p}"),
        "space": ("kullanıcı admin şifre {p}", "{p} şifresiyle gir", "şifre olarak {p} kullan", "{p} şifresini dene", "login bob, şifre {p}", "giriş için şifre {p} yaz", "Dosya {p} parolasıyla korunuyor", "şifre kısmına {p} yaz"),
        "far": ("Destek ekibinin ortak posta kutusunun şifresi {p}.", "istediğin şifre: {p}", "işte şifre: {p}", "Sana verdiğim şifre ({p}) hâlâ çalışıyor"),
        "set": ("Şifreyi {p} olarak değiştirdim", "şifreyi {p} yaptım", "Şifre {o} yerine {p} oldu", "Yeni şifre: {p}", "eski şifre {o}, yeni şifre {p}"),
        "line": ("Şifreniz:\n\n{p}\n\nTeşekkürler", "Kullanıcı\nbob\nŞifre\n{p}\n", "Şifre ne? {p}", "şifre {p} mi?"),
        "mark": ("şifre:{p}", "Şifre = {p}", "Şifre – {p}", "Şifre: “{p}”", "kullanıcı/şifre: bob/{p}", "ŞİFRE: {p}", "Parola: {p}", "Sifre: {p}"),
    },
    "ru": {
        "is": (
            "пароль {p}", "пароль такой: {p}", "мой пароль {p}, никому не говори", "Пароль от вайфая всё ещё {p}", "Пароль был {p}", "Новый пароль {p}.", "Ваш временный пароль: {p}", "Пароль будет {p} с понедельника", "Пароль — {p}", "Пароль это {p}", "паролем является {p}", "пароль вот: {p}", "пасс {p}",
            "Пароль администратора: {p}", "пароль по-прежнему {p}", "пароль по умолчанию {p}", "Пароль следующий: {p}",
        ),
        "space": (
            "используй пароль {p} для входа", "зайди с паролем {p}", "пользователь admin пароль {p}", "логин bob, пароль {p}", "с паролем {p} работает", "аккаунт bob с паролем {p} заблокирован", "введите пароль {p}", "введи пароль {p} и жми ок", "Файл защищён паролем {p}", "попробуй пароль {p}",
            "Используй {p} как пароль", "{p} — это пароль", "поставил {p} в качестве пароля", "Поставил пароль {p} на роутер", "логин: bob пароль: {p}", "Пожалуйста, используйте пароль {p}", "по паролю {p}", "под паролем {p}",
        ),
        "far": ("Пароль от общего ящика поддержки: {p}.", "вот пароль: {p}", "вот пароль, который ты просил: {p}", "В поле пароль введи {p}", "Пароль, который я тебе дал ({p}), ещё работает", "пароль от моего старого ноута был {p}", "Пароль для сервера тестирования - {p}", "пароль на вход {p}"),
        "set": ("Я сменил пароль на {p}", "пароль сброшен на {p}", "поставь пароль {p}", "Новый пароль: {p}", "Сменил пароль с {o} на {p}", "старый пароль {o}, новый пароль {p}", "Пароль уже не {o}, а {p}", "пароль изменён на {p}", "Установите пароль {p}"),
        "line": ("Ваш пароль:\n\n{p}\n\nСпасибо", "Логин\nbob\nПароль\n{p}\n", "Какой пароль? {p}", "Пароль {p}?", "пароль?\n{p}"),
        "mark": ("пароль:{p}", "Пароль = {p}", "Пароль – {p}", "Пароль: «{p}»", "пароль «{p}»", "логин/пароль: bob/{p}", "ПАРОЛЬ: {p}", "Пароль (вайфай): {p}", "пароль - {p}", "Пароль: {p} , логин: bob"),
    },
    "zh": {
        "is": ("密码是{p}", "密码：{p}", "密码为{p}", "你的新密码是 {p}", "我的密码是{p}，别告诉别人", "wifi密码是{p}", "密码还是{p}", "原来的密码是{p}", "临时密码：{p}", "密码就是 {p} 啊", "服务器密码 {p}", "管理员密码是{p}。", "口令是{p}", "登录密码为：{p}", "密碼是{p}", "密碼：{p}"),
        "space": ("用户admin密码{p}", "用密码{p}登录", "密码{p}", "账号bob，密码{p}", "请输入密码{p}", "密码用{p}", "试试密码{p}", "文件用密码{p}加密了", "用{p}作为密码", "{p}是密码", "账号:bob 密码:{p}"),
        "far": ("支持团队共享邮箱的密码是{p}。", "这是你要的密码：{p}", "密码给你：{p}", "我给你的密码（{p}）还能用", "密码栏填{p}"),
        "set": ("密码已改为{p}", "我把密码改成了{p}", "密码重置为{p}", "新密码：{p}", "密码从{o}改成{p}", "旧密码{o}，新密码{p}", "密码不再是{o}，而是{p}", "请将密码设置为{p}"),
        "line": ("您的密码：\n\n{p}\n\n谢谢", "用户\nbob\n密码\n{p}\n", "密码是多少？{p}", "密码是{p}吗？", "密码？\n{p}"),
        "mark": ("密码:{p}", "密码 = {p}", "密码“{p}”", "密码「{p}」", "密码【{p}】", "用户名/密码：bob/{p}", "密码 - {p}", "密码（wifi）：{p}"),
    },
    "ja": {
        "is": ("パスワードは{p}です", "パスワード：{p}", "パスワードは {p} です。", "新しいパスワードは{p}です", "私のパスワードは{p}、内緒だよ", "Wi-Fiのパスワードは{p}です", "パスワードはまだ{p}です", "前のパスワードは{p}でした", "仮パスワードは{p}となります", "サーバのパスワードは{p}だよ", "パスワードが{p}", "管理者パスワードは以下の通りです：{p}"),
        "space": ("ユーザーadmin、パスワード{p}", "パスワード{p}でログインしてください", "パスワード {p}", "{p}というパスワードで入れます", "パスワードに{p}と入力", "パスワードには{p}を使ってください", "パスワード欄に{p}を入力してください", "ファイルはパスワード{p}で保護されています", "{p}をパスワードとして使う", "パスワードとして{p}を設定"),
        "far": ("サポートの共有メールボックスのパスワードは{p}です。", "ご依頼のパスワードです：{p}", "こちらがパスワードになります：{p}", "お渡ししたパスワード（{p}）はまだ使えます"),
        "set": ("パスワードを{p}に変更しました", "パスワードを{p}にリセットしました", "新パスワード：{p}", "パスワードを{o}から{p}に変更しました", "旧パスワード{o}、新パスワード{p}", "パスワードは{o}ではなく{p}です", "パスワードを{p}に設定してください"),
        "line": ("パスワード：\n\n{p}\n\nよろしくお願いします", "ユーザー\nbob\nパスワード\n{p}\n", "パスワードは何ですか？{p}", "パスワードは{p}ですか？", "パスワード？\n{p}"),
        "mark": ("パスワード:{p}", "パスワード = {p}", "パスワード「{p}」", "パスワード『{p}』", "ユーザー名/パスワード：bob/{p}", "パスワード - {p}", "パスワード（Wi-Fi）：{p}", "PW：{p}"),
    },
}  # fmt: skip
"""Language: form: sentences."""
