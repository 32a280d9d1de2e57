"""The same words in Swedish, Danish, Norwegian, Finnish, Hungarian, Czech, Slovak, Romanian, Ukrainian, Bulgarian and Greek.

What is said of passwords and codes, what people do with them, the things that have them, and the small words of
every sentence.
"""

from __future__ import annotations

MORE_LATIN = """
    kort korta kortare langt lang langa langre svagt svag svaga starkt stark starka felaktig felaktigt felaktiga fel ratt korrekt giltigt giltig ogiltigt ogiltig saknas kravs behovs tomt hemligt hemlig hemliga gammalt gammal gamla gamle nytt nya ny
    andrat andrats andra byt bytt byta bytte glomt glomde glommer sparat sparas sparade lagras lagrat krypterat krypterade krypterad skickat skickas skickades utgatt gatt ut loper upphort aterstall aterstallt aterstallas aterstalla forvaras skyddat skyddar unikt
    sakert sakra saker osakert mening menar meningen ord ordet siffra siffror tecken bokstav bokstaver minst hogst anvand anvands anvander anvanda ange anger skriv skriver skrev valj valjer valde samma inte aldrig alltid redan ocksa bara bada alla allting kanske
    troligen fortfarande tidigare senare nyligen idag igar imorgon denna detta dessa mitt din ditt hans hennes vart vara era deras nagon nagot ingen inget nagonstans hemma jobbet kontoret datorn dator telefonen routern skrivaren konto kontot kontona inloggning
    logga loggar inloggad tillfalligt tillfallig sedan eftersom darfor namn namnet fodelsedag fodelsedagen husdjur hund katten filen sidan faltet
    udlobet udlobne udlober ugyldig ugyldigt gyldig gyldigt forkert forkerte rigtig rigtigt glemt glemte glemmer gemt gemmes krypteret krypterede sendt sendes aendret andret skiftet skift skifte nulstil nulstillet nulstilles saetning satning setning ord ordet
    tal bogstaver tegn mindst hojst brug bruger bruges bruke brukes bruk vaelg valg valgte samme ikke aldrig altid allerede ogsa bare kun begge maske stadig tidligere senere nylig dag gar imorgen denne dette disse mit din dit hendes hans vores deres nogen noget ingen
    intet hjemme arbejde kontoret computer computeren telefon telefonen routeren ruteren printeren konto kontoen adgang logget midlertidig midlertidigt fordi derfor navn navnet fodselsdag hund kat filen siden feltet feil riktig utlopt glemte lagret lagres kryptert
    sendt endret bytte byttet tilbakestill tilbakestilt sterkt svakt kreves mangler tomt trengs hemmelig hemmeligt noen noe ingenting hjemme jobben kontoret
    lyhyt pitka pitkaa liian heikko vahva vaara vaarin oikea oikein virheellinen kelvollinen vanhentunut vanhentuu vanha vanhaa uusi uutta uuden tyhja puuttuu vaaditaan tarvitaan salainen salaista muutettu muuttunut vaihdettu vaihda vaihtaa vaihdoin unohtunut unohdin
    unohtui unohtaa tallennettu tallennetaan tallenna salattu salattuna lahetetty lahetetaan lahetettiin nollattu nollaa nollataan palauta palautettu turvallinen turvaton ainutlaatuinen lause lausetta lauseen sana sanaa sanat numero numeroa merkki merkkia merkit
    vahintaan enintaan kayta kaytetaan kaytan kayttaa kaytossa anna annetaan annettu syota syotetaan syottaa kirjoita valitse valitsin sama samaa myos vain aina koskaan viela enaa ehka nyt tanaan eilen huomenna tama tata nama minun sinun hanen meidan teidan
    heidan joku jokin kukaan mikaan missaan kotona toissa toimistolla tietokone puhelin puhelimen reitittimen tulostimen tili tilin kirjaudu kirjautuminen kirjautua valiaikainen vahvistettu siksi koska nimi nimen syntymapaiva lemmikki koira kissa tiedosto sivu
    kentta mahdotonta helppo vaikea murrettu vuotanut jaettu kirjattu minulle sille sita siis ollut pitaa pitaisi
    rovid rovidebb hosszu hosszabb tul gyenge eros hibas helytelen helyes ervenytelen ervenyes lejart lejar lejarnak regi regit uj ujat ures hianyzik szukseges kotelezo titkos megvaltozott megvaltozik valtozott modositva modositas valtoztasd csereld cserelni
    elfelejtettem elfelejtetted elfelejtett felejtettem mentve mentett elmentve tarolva taroljuk taroljak titkositva titkositott elkuldve elkuldtuk kuldtem kuldtuk visszaallitas visszaallitva biztonsagos egyedi mondat mondatot szo szot szavak szam szamot szamok
    karakter karaktert betu betut legalabb legfeljebb hasznalj hasznald hasznalom hasznalni hasznaljuk add adj adtam adta adtad adott meg ird irja irtam valassz valasztott valasztottam ugyanaz ugyanazt nem soha mindig mar csak meg talan most ma tegnap holnap
    ez ezt ezek az azt enyem tied valaki valami senki semmi otthon irodaban munkahelyen gep szamitogep telefon telefonom router nyomtato fiok fiokom belepes belepni bejelentkezes bejelentkezni ideiglenes ezert mert nev nevem szuletesnap kutya macska fajl oldal
    mezo konnyu nehez feltort kiszivargott kerj kerjen kerem varj legyen volt lesz voltak vagyok van vannak kell lehet hogy lepj lepjen lepni lephet mindegyik mindketto mindenkinek
    kratke kratky kratka dlouhe dlouhou dlouha prilis slabe silne spatne spravne nespravne chybne neplatne platne vyprselo vyprsel stare nove noveho prazdne chybi vyzadovano povinne nutne tajne zmeneno zmenil zmenila zmenit zmenen zapomnel zapomnela zapomenute
    zapomnelo ulozeno ulozena ulozene ulozit sifrovano sifrovane zasifrovano zaslano zaslan odeslano odeslan poslano poslal obnovit obnoveno reset bezpecne bezpecna jedinecne vetu veta vety slovo slova slovem cislo cisla znak znaku znaky pismeno pismena alespon
    minimalne maximalne pouzij pouzijte pouzivam pouziva pouzit zadej zadejte zadal zadat napis napiste zvol zvolte zvolil vyber stejne stejny nikdy vzdy uz take jen jenom oba vsechna vsechny mozna ted dnes vcera zitra toto tohle tyto moje tvoje jeho jeji
    nase vase jejich nekdo neco nikdo nic doma praci kancelari pocitac telefon router tiskarna ucet uctu prihlaseni prihlasit prihlas docasne proto protoze jmeno narozeniny datum pes kocka soubor stranka pole nelze snadne tezke uniklo sdilene myslim jsem jsi jste
    nedostanes nedostane muzes muze musi musis mel mela bude byl byla bylo zustava
    scurt scurta lunga lung prea slaba puternica gresita gresit incorecta incorect corecta corect invalida invalid valida expirat expirata expira veche vechi noua nou goala lipseste necesara obligatorie secreta schimbat schimbata schimba schimbati modificata uitat uitata
    uitasem salvata salvat salvate pastrate pastrata pastrat stocate stocata criptat criptata criptate trimis trimisa trimite resetat resetata resetare reseteaza sigura unica propozitie fraza cuvant cuvantul cuvinte numar numere caracter caractere litera litere minim
    maxim cel putin foloseste folosesc folosit folosita folositi introdu introduceti introdus scrie scrieti alege alegeti ales aceeasi acelasi niciodata mereu intotdeauna deja doar numai poate acum azi ieri maine aceasta acesta aceste mea meu tau sau lui ei noastra
    voastra lor cineva ceva nimeni nimic acasa birou calculator telefon router imprimanta cont contul contului autentificare conecta temporara provizorie pentru fiindca nume numele ziua caine pisica fisier pagina camp usoara grea comuna adica vreau trebuie fost erau
    """.split()  # noqa: SIM905

MORE_NATIVE = """
    занадто короткий короткого довгий довгу слабкий сильний неправильний невірний правильний вірний недійсний дійсний старий новий порожній потрібен потрібний обов'язковий секретний змінено змінив змінила змінити забув забула забутий збережено зберігаються зберігається
    зберігати зашифровано зашифрований надіслано надіслали надсилається скинуто скинути відновити безпечний безпечно унікальний речення фразу фраза слово слова число цифри символи символів літери щонайменше використай використовуй використовую введи введіть
    напиши обери вибери той самий ніколи завжди вже також тільки лише може тепер зараз сьогодні вчора завтра цей ця мій твій його її наш ваш їхній хтось щось ніхто ніщо вдома роботі офісі комп'ютер телефон роутер роутера вайфаю вайфай принтер акаунт облікового
    запису вхід увійти увійди тимчасовий тому ім'я день народження файл сторінка поле
    твърде къса къс дълга дълго слаба силна грешна грешен вярна правилна невалидна валидна изтекла изтече стара нова празна липсва необходима задължителна тайна променена смених сменил сменете смени забравих забравена забравил запазена пазят пази криптирани криптирана
    изпратена изпратен изпратихме нулирана нулиране сигурна уникална изречение фраза дума думата число цифри символа символи букви поне най-малко използвай използвам използвайте въведи въведете напиши избери същата същия никога винаги вече също само може сега
    днес вчера утре тази този тези моята твоята неговата нейната нашата вашата някой нещо никой нищо вкъщи работа офиса компютъра телефона рутера принтера акаунта профила вход влез вляза временна затова защото името рожден файла страницата полето
    много малък μικρός μικρή πολύ μεγάλος μεγάλη αδύναμος ισχυρός λάθος λανθασμένος σωστός έγκυρος άκυρος έληξε λήξει λήγει παλιός παλιό παλιά νέος νέο νέα κενός λείπει απαιτείται υποχρεωτικός μυστικός άλλαξε άλλαξα αλλάξει αλλάξτε ξέχασα ξέχασες ξεχασμένος αποθηκεύτηκε
    αποθηκευμένος αποθηκεύεται κρυπτογραφημένος στάλθηκε εστάλη σταλεί επαναφορά ασφαλής μοναδικός πρόταση φράση λέξη αριθμός αριθμό χαρακτήρες γράμματα τουλάχιστον χρησιμοποίησε χρησιμοποιώ χρησιμοποιήστε βάλε έβαλα πληκτρολόγησε γράψε διάλεξε ίδιος ίδιο ποτέ πάντα
    ήδη επίσης μόνο μπορεί τώρα σήμερα χθες αύριο αυτός αυτή αυτό κάποιος κάτι κανείς τίποτα σπίτι γραφείο υπολογιστής τηλέφωνο ρούτερ εκτυπωτής λογαριασμός λογαριασμού σύνδεση προσωρινός γιατί επειδή όνομα γενέθλια αρχείο σελίδα πεδίο απλό απλός εταιρείας ήταν είναι
    """.split()  # noqa: SIM905
