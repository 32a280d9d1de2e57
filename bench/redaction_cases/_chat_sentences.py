"""How people tell each other a password in a chat: the word order of twelve languages. `{p}` is the value."""

TOLD = {
    "en": (
        "so the new password on the office router is {p}", "{p} should be the password now", "it's {p}, that is the password for the printer", "the pw for the zip? {p}", "pls use the password {p} till friday", "oh and the wifi here has the password {p}",
        "my old password used to be {p} back then", "you need a password for that one: {p}", "password for bob's account, in case you need it: {p}", "Just got the password from Ann, it's {p}.", "the passcode at the gate is {p}, turn left after it", "passphrase of the key file: {p}",
        "try {p}, that was the password last year", "The login is bob and the password {p}", "(the password is {p})", "the PASSWORD for the demo is {p} !!", "password: {p} (don't share)", "we agreed on {p} as the new password", "whoever locked it chose {p} as a password", "the safe word, I mean the password, is {p}",
    ),
    "de": (
        "das neue Passwort vom Router im Büro lautet {p}", "{p} müsste jetzt das Passwort sein", "das Kennwort für die Präsentation heißt {p}", "das PW fürs Zip? {p}", "nehmt bitte bis Freitag das Passwort {p}", "ach ja, das WLAN hier hat das Passwort {p}",
        "früher hatte ich immer {p} als Passwort", "dafür brauchst du noch ein Passwort: {p}", "Passwort von Bobs Konto, falls du es brauchst: {p}", "Ann hat mir gerade das Passwort gegeben, es ist {p}.", "der Zugangscode am Tor ist {p}", "versuch's mal mit {p}, das war letztes Jahr das Passwort",
        "Der Login ist bob und das Passwort {p}", "(Passwort ist {p})", "wir haben uns auf {p} als neues Passwort geeinigt", "als Kennwort wurde {p} festgelegt", "mein Passwort war schon immer {p}", "Passwort fürs Backup - {p}", "Das Passwort für den Kalender wurde in {p} geändert.", "gebt einfach {p} als Kennwort ein",
    ),
    "fr": (
        "le nouveau mot de passe du routeur au bureau est {p}", "{p} devrait être le mot de passe maintenant", "le mdp du zip ? {p}", "utilisez le mot de passe {p} jusqu'à vendredi", "au fait, le wifi ici a pour mot de passe {p}", "avant j'avais toujours {p} comme mot de passe",
        "il te faut un mot de passe pour ça : {p}", "mot de passe du compte de Bob, au cas où : {p}", "Ann vient de me donner le mot de passe, c'est {p}.", "le code d'accès du portail est {p}", "essaie {p}, c'était le mot de passe l'an dernier", "L'identifiant est bob et le mot de passe {p}",
        "(le mot de passe est {p})", "on a choisi {p} comme nouveau mot de passe", "comme mot de passe il y a {p}", "mon mot de passe a toujours été {p}", "Le mot de passe du calendrier a été changé en {p}.", "tapez simplement {p} comme mot de passe", "le mdp de la box c'est {p} je crois", "Mot de passe de secours : {p}",
    ),
    "es": (
        "la nueva contraseña del router de la oficina es {p}", "{p} debería ser la contraseña ahora", "¿la clave del zip? {p}", "usad la contraseña {p} hasta el viernes", "por cierto, el wifi de aquí tiene la contraseña {p}", "antes siempre tenía {p} como contraseña",
        "para eso necesitas una contraseña: {p}", "contraseña de la cuenta de Bob, por si acaso: {p}", "Ana me acaba de dar la contraseña, es {p}.", "el código de acceso del portal es {p}", "prueba con {p}, era la contraseña del año pasado", "El usuario es bob y la contraseña {p}",
        "(la contraseña es {p})", "quedamos en {p} como nueva contraseña", "mi contraseña siempre ha sido {p}", "La contraseña del calendario se cambió a {p}.", "poned simplemente {p} como contraseña", "la clave de la wifi es {p} creo", "Contraseña de respaldo: {p}", "me dijo que la contraseña era {p}",
    ),
    "pt": (
        "a nova senha do roteador do escritório é {p}", "{p} deve ser a senha agora", "a senha do zip? {p}", "usem a senha {p} até sexta", "aliás, o wifi daqui tem a senha {p}", "antes eu sempre tinha {p} como senha",
        "para isso você precisa de uma senha: {p}", "senha da conta do Bob, por via das dúvidas: {p}", "A Ana acabou de me passar a senha, é {p}.", "o código de acesso do portão é {p}", "tenta {p}, era a senha do ano passado", "O usuário é bob e a senha {p}",
        "(a senha é {p})", "combinamos {p} como nova senha", "minha senha sempre foi {p}", "A senha do calendário foi alterada para {p}.", "coloquem simplesmente {p} como senha", "a palavra-passe do wifi é {p} acho eu", "Senha de reserva: {p}", "ele disse que a senha era {p}",
    ),
    "it": (
        "la nuova password del router in ufficio è {p}", "{p} dovrebbe essere la password adesso", "la password dello zip? {p}", "usate la password {p} fino a venerdì", "comunque il wifi qui ha la password {p}", "prima avevo sempre {p} come password",
        "per quello ti serve una password: {p}", "password del conto di Bob, in caso: {p}", "Anna mi ha appena dato la password, è {p}.", "il mio codice di accesso è {p}", "prova {p}, era la password dell'anno scorso", "L'utente è bob e la password {p}",
        "(la password è {p})", "abbiamo scelto {p} come nuova password", "la mia password è sempre stata {p}", "La password del calendario è stata cambiata in {p}.", "mettete semplicemente {p} come password", "la parola d'ordine è {p}", "Password di riserva: {p}", "mi ha detto che la password era {p}",
    ),
    "nl": (
        "het nieuwe wachtwoord van de router op kantoor is {p}", "{p} zou nu het wachtwoord moeten zijn", "het wachtwoord van de zip? {p}", "gebruik tot vrijdag het wachtwoord {p}", "trouwens, de wifi hier heeft als wachtwoord {p}", "vroeger had ik altijd {p} als wachtwoord",
        "daar heb je een wachtwoord voor nodig: {p}", "wachtwoord van Bobs account, voor het geval dat: {p}", "Anna gaf me net het wachtwoord, het is {p}.", "de toegangscode van de poort is {p}", "probeer {p}, dat was vorig jaar het wachtwoord", "De login is bob en het wachtwoord {p}",
        "(wachtwoord is {p})", "we hebben {p} als nieuw wachtwoord gekozen", "mijn wachtwoord was altijd al {p}", "Het wachtwoord van de agenda is veranderd in {p}.", "vul gewoon {p} in als wachtwoord", "Reservewachtwoord: {p}", "hij zei dat het wachtwoord {p} was", "het ww is {p}",
    ),
    "pl": (
        "nowe hasło do routera w biurze to {p}", "{p} powinno być teraz hasłem", "hasło do zipa? {p}", "używajcie hasła {p} do piątku", "a tak w ogóle wifi ma tu hasło {p}", "kiedyś zawsze miałem {p} jako hasło",
        "do tego potrzebujesz hasła: {p}", "hasło do konta Boba, na wszelki wypadek: {p}", "Ania właśnie dała mi hasło, to {p}.", "kod dostępu do bramy to {p}", "spróbuj {p}, to było hasło z zeszłego roku", "Login to bob, a hasło {p}",
        "(hasło to {p})", "ustaliliśmy {p} jako nowe hasło", "moje hasło to zawsze było {p}", "Hasło do kalendarza zmieniono na {p}.", "wpiszcie po prostu {p} jako hasło", "Hasło zapasowe: {p}", "powiedział, że hasło to {p}", "hasłem jest {p}",
    ),
    "tr": (
        "ofisteki modemin yeni şifresi {p}", "şifre şimdi {p} olmalı", "zip'in şifresi? {p}", "cumaya kadar {p} şifresini kullanın", "bu arada buradaki wifi şifresi {p}", "eskiden şifrem hep {p} idi",
        "bunun için bir şifre lazım: {p}", "Bob'un hesabının şifresi, lazım olursa: {p}", "Ayşe az önce şifreyi verdi, {p}.", "kapının giriş kodu {p}", "{p} dene, geçen yılki şifre oydu", "Kullanıcı adı bob, parola {p}",
        "(şifre {p})", "yeni şifre olarak {p} seçtik", "benim parolam hep {p} oldu", "Takvimin şifresi {p} olarak değiştirildi.", "parola olarak {p} yazın yeter", "Yedek parola: {p}", "şifrenin {p} olduğunu söyledi", "parolanız: {p}",
    ),
    "ru": (
        "новый пароль от роутера в офисе — {p}", "пароль теперь {p}", "пароль от архива? {p}", "до пятницы используйте пароль {p}", "кстати, у вайфая тут пароль {p}", "раньше у меня всегда был пароль {p}",
        "для этого нужен пароль: {p}", "пароль от аккаунта Боба, на всякий случай: {p}", "Аня только что дала мне пароль, это {p}.", "код доступа к воротам {p}", "попробуй {p}, это был прошлогодний пароль", "логин bob, пароль {p}",
        "(пароль {p})", "мы договорились, что новый пароль будет {p}", "мой пароль всегда был {p}", "Пароль от календаря изменён на {p}.", "просто введите {p} в качестве пароля", "Запасной пароль: {p}", "он сказал, что пароль {p}", "пароль от базы — {p}", "паролем было слово {p}", "поставил пароль {p}", "пароль такой: {p}", "Пароль - {p}", "пароль «{p}» больше не работает",
    ),
    "zh": (
        "办公室路由器的新密码是{p}", "现在密码应该是{p}", "压缩包的密码？{p}", "周五之前请用密码{p}", "对了，这里的wifi密码是 {p}", "我以前的密码一直是{p}", "这个需要密码：{p}", "Bob账号的密码，以防万一：{p}", "小安刚刚给了我密码，是{p}。", "大门的口令是{p}", "试试{p}，那是去年的密码", "用户名bob，密码{p}", "（密码：{p}）", "我们决定用{p}作为新密码", "日历的密码已经改成{p}了。", "密码填{p}就行", "备用密码：{p}", "他说密码是{p}", "密码为“{p}”", "解压密码 {p}",
    ),
    "ja": (
        "オフィスのルーターの新しいパスワードは{p}です", "今のパスワードは{p}のはずです", "zipのパスワード？{p}", "金曜まではパスワード{p}を使ってください", "ちなみにここのwifiのパスワードは{p}だよ", "前はいつもパスワードを{p}にしてた", "それにはパスワードが必要です：{p}", "ボブのアカウントのパスワード、念のため：{p}", "さっきアンからパスワードもらった、{p}です。", "門の暗証番号は{p}です", "{p}を試して、去年のパスワードだから", "ユーザー名はbob、パスワードは{p}", "（パスワード：{p}）", "新しいパスワードは{p}に決めました", "カレンダーのパスワードを{p}に変更しました。", "パスワードに{p}と入力してください", "予備のパスワード：{p}", "パスワードは「{p}」です", "パスワード→{p}", "パスは{p}",
    ),
}  # fmt: skip

WORDS = {
    "en": "hedgehog umbrella lighthouse marmalade trombone clementine driftwood snowflake bumblebee cinnamon gargoyle pomegranate".split(),  # noqa: SIM905
    "de": "regenbogen Kartoffelsalat eichhörnchen Zuckerwatte Lebkuchen gänseblümchen Brezel hubschrauber Seifenblase Würstchen pusteblume Kuckucksuhr".split(),  # noqa: SIM905
    "fr": "coquelicot citrouille grenouille Bretagne croissant hirondelle écureuil pamplemousse libellule moustache brouette châtaigne".split(),  # noqa: SIM905
    "es": "calabaza murciélago golondrina Ñandú paraguas cangrejo aguacate chocolate lagartija castañuela guitarra ballena".split(),  # noqa: SIM905
    "pt": "abacaxi jabuticaba girassol tartaruga cachorro coração pipoca Beija-flor guaraná saudade maçaneta jacaré".split(),  # noqa: SIM905
    "it": "zanzara coccinella ombrello girandola carciofo cioccolato perché lucertola pesciolino Farfallina tramonto gelsomino".split(),  # noqa: SIM905
    "nl": "stroopwafel paardenbloem kikker olifant zonnebloem Vuurtoren drop regenjas pannenkoek knoflook schildpad tulpenbol".split(),  # noqa: SIM905
    "pl": "wiewiórka pierogi żubrówka Truskawka biedronka słonecznik krasnal parasolka jaskółka gżegżółka malina dzięcioł".split(),  # noqa: SIM905
    "tr": "karpuz çiçek kaplumbağa Ayçiçeği nargile börek uğurböceği şemsiye leylek kiraz yıldız Pamukkale".split(),  # noqa: SIM905
    "ru": "черепаха снегирь Ромашка подсолнух бабочка пельмени ёжик облако Байкал матрёшка клубника радуга".split(),  # noqa: SIM905
    "zh": "春暖花开 红烧肉 大熊猫 月亮船 小笼包 萤火虫 葡萄树 蓝天白云".split(),  # noqa: SIM905
    "ja": "ひまわり たこやき さくらもち 富士山 ねこじた 花火大会 おにぎり クジラ雲".split(),  # noqa: SIM905
}
"""Plain words, in the language of the sentence."""

STAYS = {
    "en": (
        "the new password on the office router is written underneath", "the password should be changed by friday", "the password for the printer is the same as last year", "pls use the password manager till friday", "the wifi here has no password at all", "my old password used to be terrible back then",
        "you need a password for that one, ask Ann", "password for bob's account, in case you need it, is in the vault", "Just got the password from Ann, thanks.", "the passcode at the gate is four digits long", "try again, that was the password from last year", "The login is disabled and the password expired",
        "we agreed on a rotation every month as the new password policy", "whoever locked it chose a terrible password", "Should I tell you the password here?", "tell me the password when you see me", "the password for the demo is not ready yet !!", "I never remember which password belongs where", "password: same as before", "any password works on the demo instance",
    ),
    "de": (
        "das neue Passwort vom Router im Büro steht unten drauf", "das Passwort müsste jetzt jemand ändern", "das Kennwort für die Präsentation ist dasselbe wie immer", "nehmt bitte bis Freitag den Passwortmanager", "das WLAN hier hat gar kein Passwort", "früher hatte ich überall dasselbe Passwort",
        "dafür brauchst du noch ein Passwort, frag Ann", "Passwort von Bobs Konto liegt im Tresor", "Ann hat mir gerade das Passwort gegeben, danke.", "der Zugangscode am Tor hat vier Stellen", "versuch's noch mal, das war das Passwort vom letzten Jahr", "wir haben uns auf eine neue Passwortrichtlinie geeinigt",
        "das Passwort lautet seit gestern anders", "mein Passwort war schon immer schlecht", "Soll ich dir das Passwort hier schreiben?", "Passwort: wie gehabt", "das Passwort ist nirgends notiert", "ich weiß das Passwort leider auch nicht", "das Passwort verrät er niemandem", "Das Passwort für den Kalender wurde gestern geändert.",
    ),
    "fr": (
        "le nouveau mot de passe du routeur est écrit dessous", "le mot de passe devrait être changé bientôt", "le mdp du zip est le même qu'avant", "utilisez le gestionnaire de mots de passe jusqu'à vendredi", "le wifi ici n'a pas de mot de passe", "avant j'avais toujours le même mot de passe",
        "il te faut un mot de passe pour ça, demande à Ann", "Ann vient de me donner le mot de passe, merci.", "le code d'accès du portail a quatre chiffres", "mon mot de passe a toujours été mauvais", "Le mot de passe du calendrier a été changé hier.", "le mot de passe n'est noté nulle part", "personne ne connaît le mot de passe ici", "Mot de passe : comme d'habitude", "je t'envoie le mot de passe demain",
    ),
    "es": (
        "la nueva contraseña del router está escrita debajo", "la contraseña debería cambiarse pronto", "la clave del zip es la misma que antes", "usad el gestor de contraseñas hasta el viernes", "el wifi de aquí no tiene contraseña", "antes siempre tenía la misma contraseña", "para eso necesitas una contraseña, pregunta a Ana",
        "Ana me acaba de dar la contraseña, gracias.", "el código de acceso del portal tiene cuatro cifras", "mi contraseña siempre ha sido mala", "La contraseña del calendario se cambió ayer.", "la contraseña no está apuntada en ningún sitio", "la clave de todo es la paciencia", "Contraseña: la de siempre", "mañana te mando la contraseña",
    ),
    "pt": (
        "a nova senha do roteador está escrita embaixo", "a senha deve ser trocada em breve", "a senha do zip é a mesma de antes", "usem o gerenciador de senhas até sexta", "o wifi daqui não tem senha", "antes eu sempre tinha a mesma senha", "para isso você precisa de uma senha, pergunta para a Ana", "A Ana acabou de me passar a senha, obrigado.",
        "o código de acesso do portão tem quatro dígitos", "minha senha sempre foi ruim", "A senha do calendário foi alterada ontem.", "a senha não está anotada em lugar nenhum", "ninguém sabe a senha aqui", "Senha: a de sempre", "amanhã te mando a senha",
    ),
    "it": (
        "la nuova password del router è scritta sotto", "la password dovrebbe essere cambiata presto", "la password dello zip è la stessa di prima", "usate il gestore di password fino a venerdì", "il wifi qui non ha nessuna password", "prima avevo sempre la stessa password", "per quello ti serve una password, chiedi ad Anna", "Anna mi ha appena dato la password, grazie.",
        "il codice di accesso del cancello ha quattro cifre", "la mia password è sempre stata pessima", "La password del calendario è stata cambiata ieri.", "la password non è segnata da nessuna parte", "nessuno sa la password qui", "Password: la solita", "domani ti mando la password",
    ),
    "nl": (
        "het nieuwe wachtwoord van de router staat onderop", "het wachtwoord zou snel veranderd moeten worden", "het wachtwoord van de zip is hetzelfde als eerst", "gebruik tot vrijdag de wachtwoordmanager", "de wifi hier heeft geen wachtwoord", "vroeger had ik altijd hetzelfde wachtwoord", "daar heb je een wachtwoord voor nodig, vraag Anna", "Anna gaf me net het wachtwoord, bedankt.",
        "de toegangscode van de poort heeft vier cijfers", "mijn wachtwoord was altijd al slecht", "Het wachtwoord van de agenda is gisteren veranderd.", "het wachtwoord staat nergens genoteerd", "niemand weet hier het wachtwoord", "Wachtwoord: zoals altijd", "morgen stuur ik je het wachtwoord",
    ),
    "pl": (
        "nowe hasło do routera jest napisane pod spodem", "hasło powinno być wkrótce zmienione", "hasło do zipa jest takie samo jak wcześniej", "używajcie menedżera haseł do piątku", "wifi nie ma tu hasła", "kiedyś zawsze miałem to samo hasło", "do tego potrzebujesz hasła, zapytaj Anię", "Ania właśnie dała mi hasło, dzięki.",
        "kod dostępu do bramy ma cztery cyfry", "moje hasło zawsze było słabe", "Hasło do kalendarza zmieniono wczoraj.", "hasło nie jest nigdzie zapisane", "nikt tu nie zna hasła", "Hasło: jak zwykle", "jutro wyślę ci hasło",
    ),
    "tr": (
        "modemin yeni şifresi altında yazıyor", "şifre yakında değiştirilmeli", "zip'in şifresi öncekiyle aynı", "cumaya kadar şifre yöneticisini kullanın", "buradaki wifi'nin şifresi yok", "eskiden hep aynı şifreyi kullanırdım", "bunun için bir şifre lazım, Ayşe'ye sor", "Ayşe az önce şifreyi verdi, teşekkürler.",
        "kapının giriş kodu dört haneli", "benim parolam hep kötüydü", "Takvimin şifresi dün değiştirildi.", "şifre hiçbir yerde yazmıyor", "burada şifreyi kimse bilmiyor", "Parola: her zamanki gibi", "yarın şifreyi gönderirim",
    ),
    "ru": (
        "новый пароль от роутера написан снизу", "пароль надо бы скоро поменять", "пароль от архива такой же, как раньше", "до пятницы используйте менеджер паролей", "у вайфая тут нет пароля", "раньше у меня везде был один пароль", "для этого нужен пароль, спроси Аню", "Аня только что дала мне пароль, спасибо.",
        "код доступа к воротам из четырёх цифр", "мой пароль всегда был плохим", "Пароль от календаря изменили вчера.", "пароль нигде не записан", "пароль тут никто не знает", "Пароль: как обычно", "завтра пришлю тебе пароль", "пароль не подходит, попробуй ещё раз", "пароль — это важно", "введите пароль и нажмите кнопку", "пароль должен содержать буквы и цифры", "пароль хранится в сейфе", "пароль от почты забыл", "Забыл пароль? Нажми сюда.", "пароль слишком короткий", "новый пароль вступит в силу завтра", "пароль знает только начальник", "пароль состоит из восьми символов",
    ),
    "zh": (
        "办公室路由器的新密码写在下面", "密码应该尽快更换", "压缩包的密码和以前一样", "周五之前请用密码管理器", "这里的wifi没有密码", "我以前到处用同一个密码", "这个需要密码，问一下小安", "小安刚刚给了我密码，谢谢。", "大门的口令是四位数", "日历的密码昨天改了。", "密码没有写在任何地方", "这里没人知道密码", "密码：和往常一样", "明天我把密码发给你", "密码是必须的",
    ),
    "ja": (
        "ルーターの新しいパスワードは下に書いてあります", "パスワードは早めに変えたほうがいいです", "zipのパスワードは前と同じです", "金曜まではパスワードマネージャーを使ってください", "ここのwifiにはパスワードがありません", "前はどこでも同じパスワードだった", "それにはパスワードが必要です、アンに聞いて", "さっきアンからパスワードもらった、ありがとう。", "門の暗証番号は四桁です", "カレンダーのパスワードは昨日変更しました。", "パスワードはどこにも書いていません", "パスワードは誰も知りません", "パスワード：いつも通り", "明日パスワードを送ります", "パスワードは定期的に変更してください",
    ),
}  # fmt: skip
"""The same sentences where nothing is told."""
