"""Stems of the words that programs' messages have beside a password, in the languages of Northern and Eastern Europe.

The frequent words of such messages in Finnish, Hungarian, Swedish, Danish, Norwegian, Czech, Slovak and Romanian, and
in Bulgarian, Greek, Ukrainian and Russian; `ordinary` asks for them beside those of the other languages.
"""

from __future__ import annotations

STEMS_LATIN = """
    abekre abesky ablak abn abne abnend abning abszol abyste accesa accesu acea aceast acelas acest acestu acolo actiun adatba adatcs adatfo adatok adauga
    adevar adhato adja adnia adresa adskil adva advars aendre afara afbrud afecte afisar afisat afisea afkode afsat afslut afsnit agare agent agenta ahol
    aika aikavi ajossa ajutor akakol akarod akce akkor akkred akkumu ako aktive ala alabbi alaira alaisu alaper alder aldri alebo aleget alegi alene
    alespo alkalm alku alkuos allapo alleki allere allige allitj allits allitv alloke almind aloca alokov alta altal altala alusta amando ambele amely
    amelye anden andet andr andrad andrar andras andre andrer andres andrin angavs anges angett angi angitt angiv angive angivi angivn anglic angol annak
    annan annars annat annen annet annett annu anropa anser anslut ant antal antale antall antanu antas antet antetu anvant anvend aod apare aparti apasat
    aplika apne apning apostr aprazd aprosi arab arata arbeid arbejd arbeta arbets argnum arhite arhiva arhive aritme arkist arkite arkiv arkive arkkit
    arnyek arstal artico arvo arvoa arvon arvoon aseta asetet asetta asetuk asiaki asiden asidos askpas aspekt aspesi asteap astept asztal atenti ateran
    aterst atgard athely ation atkoms atlepv atmene atom att atunci atvalt atvite aug auvnit avaami avaime avain avains avakti avata avbrot avbrut aven
    avgora avr avslut avstan avvik azon azonos azvlas bade bajtok bajtov bajtu bakstr bal balik balika baliko baliku baliky balra ban barn barnet barva
    basere bashe bashin basta bealli bedre bedst beepit befoly begara begran begynn behem behov behove behu bejegy bekere beklag bekref belso belul bemark
    bemene benytt beskri beskyt besta bestam bestem beter beting betuke betyde betyr bevare bevite bezi beziac bezici bezne beznyc bezpec bezpro bigint
    bilde billed billen bitar bitars biti bitov bittia bittin bittis bizton blande blanke ble blev blevet bli blir blitt blive bliver blocat blokk bodkoc
    bogsta boksta bol bola boli bolo booke bor borjan borjar bort bortka bragt bredd bredde bridge broadb bruge brugt bruker brukt budou budouc budu
    buducn bunt byly byste byteor cale calea campul cand capple card care casove casovy cast casti casto casu casute cat catre cauta cautar cautat caz
    cazulu cdable cdpath cele cell cerere cest cesta cestu cesty cez cgen chanse chcete chei cheia cheie cheii chova chovan chybej chybna chybny chybov
    chyby ciest cil cim cimke cinnos cislic cist citani citat citati citeas citera citest citi citire citit clasa cldr cod codul coloan comdat comuta
    contri copil corupt cred credet credit creeaz cserej cserel cseret csomag csopor cteni culoar cum cunosc curent daca daemon dagar dage dager dages
    dalsi dalsim dana dannes darab darlig dataa dataka datele datelo datovi datovy deb decat defino definu deg dekryp delat dele delega deler delka delku
    delsi delstr delt dennes depana deschi despre dess det dets detsam dezact diferi dintre diouxx discar dispoz dlhe dlhsie dlhy dlouhy dlzka dnech dnoch
    dnu dny doba doby docasn dog doilea dokonc domene domeni domovs doplna doriti dosaru dostup dotaz doua dovole dreapt drive druh druhot druhu druhy
    dublet dukke dukker dumnea dumpa dumpu dupa dupla duplik duplis duvodu dvojte dvs dynaam ebben edelli eeee efter efterf efters egen egesz eget egna
    egnet egy egyes egyeze egyezn egysze egyutt ehhez eier eika eivat ejer eksekv eksemp eksist eksklu ekspor ekster ekstra elavul eleg elejen elem elerhe
    elevul elfele elhagy elkeru elleno eller ellers elofor eloszo eloter elott elotte elozet elozme elrejt elso elsodl eltavo elvala emisto emot enda
    endast endnu endre endrer endres endrin eneste engede engine englan englez enhed enhet enhver enkelt enligt enn ennek ennen ennenk ensamt ensimm
    entals enten epaonn erheto eri eroare erofor erotel erre errol ertek erteke ertekk erveny esec eseten esiin esik estaa esteta esuat eszkoz etsita ett
    etta etter etterf evalue evenim evenp exakt existu expanz extind extins ezen face facut fajlat fajlba fajlbo fajlne fajlok fajlt faktis fall falskt
    falt fandt faner fanioa fant far fara farba farby farre farve fata feilet feilme fejl fejlag fejlec fejled fejlme fejlsl feldol felhas felkod felold
    felso felsor felt felter felule fereas fick fie fiecar figyel fikk filatt fildes filene filens filer filnam filnav filpos filslu finde findes finger
    finne finnes finns fixpun fizic fizica fizika fjern fjerne flagen flaget flagg flagga flaggo fler flera flerdi flere flerta flyden flyt flytt flytta
    flytte fmt foglal folg folge folges folgin folja foljan foljs folose folosi folyam foneet fonste forald forbi forbin fordit fore forega foreko foresl
    foresp foretr forgru forhan forhol forker forlop formaz formen forrad forras forrig forske forskj forsog forsok forst forsta forste fortea fortsa
    fortse foruds foruto forval forvan forvar forven foy fraga fram framga framma framti framtv fran franci fransk fraze frazei frem fremti fremtv frissi
    frissu fuggol fuggve fulde fuldst fullfo fullst fundet funguj funkce funkci funksj funnet furniz futo futtat fuzzy fyldes fylla fysisk fyzick galder
    galla galler gammel gang ganger gaseoj gasest gasi gasit gasita gazda gazdei gem gemene genbru genind gennem genom gentag gepen gepet gepnev ges
    gettex gik gir gitt giver givet givna gjelde gjenbr gjenno gjor gjore glem globig glom god godken gol gomb gombos gor gora gpword gren grense grpck
    grund grunn grupp grupul gyerme gyors gyorsc gyorsi haaste hade hagyas hagyom hakemi hakua halott hamta hamtat handhe handte hanter har harmad haszna
    hataro hatasa heks heksad hele helpet helst helt heltal hely helye helyet helyi helyte hemare hemmel henhol hent hente henter hentin hesel hesla
    heslam hesle heslem heslo heslom heslu hesly heti hhhh hhhhhh hianyz hiba hibako hinand histch histfi histig histsi hitele hitta hittad hittas hivatk
    hjalp hjalpe hjalpp hjelp hladat hlavic hledan hode hodnot hoger hojde hojre hoppa hoppar hopper hoppet horiso hossza hostit hostty hoved hoyre hoyst
    hozhat hozzaa hozzaf hukomm huomen huomio huono hur hurtig huruvi hurvid husk huvud hva hver hveran hvert hvilke hvis hvor hvorda hvori iasa iba icke
    iconit idet ido idofor idopon idotul iec iese iesire igaz igazra igen igenye igjen ignoru igy ihag ihned ihop ika ikatio ikkuna illesz ilman ilmoit
    ilyen imagin imorgo impus ina inaint inca incarc incepe incepu incerc inchec incore incred ind indata indbyg inddat indeho inden indexu indfil indhol
    indike indita indlas indled indlej indsat indsti indtas indtil ine inga inlocu inlogg inn innan inndat inneha inneho innhol innkan innled innsti inom
    inregi inseam intai intr intraf intrar intre intreg intret inuti invech ipv iras irasa ismere ismet isr istall istori istrip itt jakako jakozt jalkee
    jarjes jateta jatkaa jedine jednim jednou jeleni jelenl jelent jellel jelsza jelszo jelzi jenek jeste jestli jetoan jina jinak jine jiz jmena jmenem
    jobb jobber jobs jocuri johon joihin joista joita joka jonka jos jossa jotka jotta jovobe jsou juster kaanna kaanne kaikki kaksi kaksin kaksoi kalla
    kallor kansai kanssa kant kap kapcso kapott karban kasite kasitt kasky kaskya kaskyj kaskyk kaskyl kaskyn kaskys kaskyt katsoa kattin kauemm kaynni
    kaytat kaytet kaytos kaytta kaytto kazde kazdeh kazdy kde kdyz ked kehote kehott kellen kelvol kep kepern keres kerese keresv kerlek kerul keruln
    kerult kese keskey ket kettos kezdet kezdo kezdod kezele kezelo kezelt kibovi kieges kif kifeje kigget kihagy kiiras kiirja kijele kilde kildek kilder
    kilep kilepe kimene kirjek kirjoi kisbet kiszol kiterj kivala kiveve kivul kjente kjor kjore kjoren kjorer kjores klarar klarer klaves klic klice
    klicem klici klicu klient kliknu klokke kluc kluca kluce klucom klucov knappe knizni koble koblet kode kodena kodeor kodet koding kodnin kodova kohde
    kohdet kohtee koko kolmas kolon kolond kolonn kolons kom komb kombin komenn koment kommer kompri konci konec konsta konsum kontis kontoe konton kontos
    konvol konyvt koodi koodia koodin kopiro kor kora korand kore korend korer korkei kornye korrig kortar kortno kotele kotial kovete kovetk kozben koze
    kozos kozott kozti kozvet kratsi krava kravde krave kraver kraves kravet kredit krev krever kringg krypte ktar ktera ktere kterem ktery ktorom ktoru
    kuin kuinka kulcs kulcso kulona kulonb kulso kulutt kunde kunna kunne kuolle kurzor kutsu kuva kuvaav kuvakk kuvan kvalit kvoli kvuli kyeta kysein
    kysele kytkea kytket laajen laddas lage lager lagere lagg lagga laggs lagra lagre lahdek langd langde lank lankar lanke lanker lapsen lasa lasas lasd
    lase laser lases lasnin lasrat lastda laste lathat latime lausek lav lavent lavet ldelse leda ledete legala legatu legfel legg legges legkev legtob
    leheto lehets leiro lejara lekere leksik lengde lenge lenger lengre lenke lenker lenne lennie leser lesing leszne letas letezi letilt letolt letre
    letreh lett levele leveys levo levy lige ligger lik likeve likner limita linje linjer linjes linkek linkki lippu lippua lipses liput lisaa listaj
    listan listaz listea listen listq litar lla lld lle logger logind lohko lohkoa lohkon lohkos lohkot lokala lokalt lomitk loppu loppua loppui lopuss
    losen loseno lov loydet loydy loytyi loytyn loytyv lucrar lucru lue luetaa luetta luette lukea lukemi lukkin luku lukual lukuma lungim luo luoda
    luomin luotae lurt luvato lyckad lyhyem lze maa maara maarit machty mahdol mailch mailpa mailur maji maju maks malet mali mall malli mallin malmon
    malych manga mange mangle mappe mapper mappes marad mare mari marime marke marker masca masik masika masina masodi masodl masodp maste mat mata matcha
    matric maxday mbooke mcell mcom mcpu med meddel medfor medier medies mediu medzer medzi megada megado megadv megbuk megegy megfel meghiu megjeg megjel
    meglev megnyi megsza megval meldin meli mellan mellem mellom melo mely men mena meneni meni menim menisa menit meniu menout mens menupo menupu menyob
    mer meret merete merk merkin merkka merkke mesaj mesaje meta metoda metode mezi mezok miatt mica mici midler mielot miesta mika miljov mille mimo min
    mind minday minden mindre minne minnet minsta minste mint minta mintak mintal mintha mips mislyk missly mistni mitaan miten mivel mno mnoho moarte
    mobila modban modosi modtag mohl mohli mohou mojlig monen monia monike monste monstr monta montak motsva mottak mottat mozete mozne moznos mpower mppc
    mpwr msp muilta muisti mukaan mulig mulige mult multe mulva munka munkak munkat muodos muokat muoto muotoi musite muta mutta muu muuta muutta muuttu
    muvele muzete mycket mye mysi mystis nabidk nachad nacist nacita nacten naenna nagra nagy nagyit nagyob nahrad nahrat nahraz nainst najden najedn
    najit najmen najst nakyma naleze nalezt namies namist naozaj nap napad napok napove nappai napr naprav naprik nar naraz narizu narvar nasled nastav
    nastfo navare navne navnen navngi navrat nayta naytet naytta nazev nazevs naznak nazov nazvom nazvov nazvu nazvy neacce neakti neaste nebezp nebo
    nebol nebola neboli nebolo nebude nebyl nebyla nebylo nechce necinn necuno ned neda nedans nedefi nedopo nedost nedovo nedre neexis nefunk nehany
    nejprv nejsou nekoli nelkul nema nemelo nemet nemoze nemozn nemuze nemzet nenast neni nenulo neobsa neocak neocek neodpo nepism neplat nepoda nepodp
    nepraz neprej neprip nepta neptej ner nerecu neschi neshod nesifr nesmi nesmie nespra netrc nevali neve nevei nevet nevidi nevoie nevu nez nezada
    nezahr nezdar nezhod nezkus nezmen neznam nici nicio niciun niiden nimea nimet nimio nimion nincs nincse nivelu nnn nogle noglen nogleo nogler noi
    nojagt nok nokkel nokler noll nolla nollor nollst normaa noroc novem novou novu novy novych nulbre nuller numaru numelu numest numit nuvara nuvare
    nyckel nyckla nye nyere nyers nyil nyitha nykyin nykyis nyni nyrad nyttig obejit obesta obicei obiect objevu oblica obraze obrazk obrazo obsah obsaho
    obsahu obtine obvykl och ochran ociter ocolit octeti odata oddele oddelo oddelu oddp odelag odemkl odemkn odesla odhlas odkaz odkazu odkazy odomkn
    odosla odotet odotta odpove odpovi odstra offent oforan ofset ofta ofte ogilti ohitet ohjaav ohjelm okamzi okand okant okning okolo okraj okt oktal
    oktala oktale oktalv olasba oldpwd ole olemas oletuk oletus olevaa olevan olevie olevis oli olika olla oltava olvasa olvash olvasn oma omdopn omedel
    omezen omezit omgaen omgivn omladd omloka omojli omrade omvend onko onnist opakov opakuj opbygg opdate opdel operar opet oplysn opmark opp oppdat
    oppfor oppgi oppgis oppgit oppmer oppna oppret oppset oppsta opptat opravd opret oprett oprite opstar optage optiun optrad org orice oricum oriznu
    orosz osa oset osoite osoitt ossa osszes osszet ostype osv osynli oszlop osztas ota otaksu oteta otetta otettu otevri otsake otvori ovanta ovat ovenst
    overen overfo overov oversa oversk ovplyv ovre paakay paalla paatet pachet pagald paina paivaa paivan paivas paivia paivit pak pakatt pakke pakkea
    pakken pakker pakkes pakrev palaut paluua palvel pam pamat pamate pamet pameti pana pango paranc parenb parity parodd pasiv pasivn passan passar
    passby passcr passet passii passiv passni passor passzi patvin pavirk pedig peitta peldau pelkan perakk perl physic pidemp pien pienin pikako piksle
    pil pisma pismen pistok pitais pituus pixeli placer plads plass plasse platno platny plats platsh plna plugg pocas pocet pocita pockat podkli podla
    podle podpor podret podrob poista poiste poistu pojmen pokial pokud polich polku polkun polozi polozk polun pomoci pomocn pomoco ponuky popis popisu
    popred poradi pornir posisj poskod poskyt posl posled posten postit postu pot potom potomk potriv potvrd pouze pouziv poveru povole povoli povolo
    powerp poxy pozada pozadi pozado pozast pozice pozici poznam pozor ppc pracis pracov prafik prava pravde prave prazdn prec precf precit precte pred
    predat predbe predch predes predna predpo predty predvo prefik prekla premen prenes prenos prepac prepin prepnu prerus presne presun presup pretoz
    prezen prezer prezin pri pridat prieci priest prihla prijat prijet prikaz prim primaa primi primir primit primul prin printf pripad pripoj pristu
    pritom prizna probal progam prohle prohli promen proses prosim prosto prostr prosty proti protis protoz proudu prov proved prover proxya proxye proxyh
    proxyk proxyl proxyn proxys prvku prvni prvok prvotn prvy psk psw pta ptani ptb punct puncte punkt punkte punktu putea puteti putut puuttu pwait pwck
    pwfile pwprom pwr pwrx pytat qwerty rad radce radek raden rader radku radky rajoje rakke rammen ranska rapida raport ratta rattig reakci realoc redige
    referi regler regn reintr rejtje rekist rekkev rekl rekomm relaxe reloke rendel rendsz repozi rescri resurs resz ret retazc retaze retezc reteze
    retine rettet rezerv rezim rezime rezimu rezolv rezuma riadi riadia riadka riadko riadku riadky riadok ridi ridici rikkin rivi rivill rivima rivin
    rivit rod rog roli roll rossz rosszu rovide rozdil rozebi rozhod rozhra rozlis rozsah rozsir ruleaz rullep rundt rychle ryhma ryhman saa saades saatav
    saatu sade sadvan sagde sajat sajnal saknar saksal salasa salatt salli sallit samla samlin samman sammen samost samotn samsva samt samtid sanca sand
    sann sansa sant sat satt satta satte satter satts schemy schimb scm scrier scris sebou secs sectiu seg sek seka sekcia sekcie sekcii sekciu sekunn
    sekven selekt selhal selhan selv semnal semnat senast sende senest seriov setare setata sett seuraa sever seznam sfarsi shadow shcomp shello shellu
    shmedi shodov sidesk sidor sidst sidste siffer siffro sifrov siirra siirro siirto siirty sijaan sijain sijoit sikere sikerr sikert sikeru sikker sikre
    siltak singur sir sirka sirul siruri sisaan sisain sisall sisalt sista siste sitere sjanse sjekk sjekke ska skabel skal skalet skalfl skalin skall
    skalle skallv skalti skalty skalva skapa skapas skastr ske skete skicka skild skille skilt skjerm skjul skonci skrast skreve skript skriva skrivb
    skrive skrivi skrivn skrivs skryt skryti skrze skugga skuggl skuggr skulle skupin skuste skydda skygge sla slabym slaet slar slatt slet slett slette
    slik slog sloupc sloupe slut slutar slutet slutni slutst slutt slutte sluzbe sluzby sma smazat smaze smi snabb snabbs snedst socksv softve soges
    sognin sok soka sokest soketu sokkel soknam sokvag soli sopiva sorok sorokb sortar soucas soucet sovell spara spat spatiu spatny spesia splejs spojen
    spolas spolni spoofi spor sporg sporgs sporri spraco sprake sprav sprava spravc spravn spravy sprost spus spusta spuste spusti srp ssa sspi stabil
    stall stalla stamde stamma stamme stanga stara starea stari starta startt startu stav stavu ste stedet stemme sterge sti stilus stinav stinov stiskn
    stiva stlact stlpec stocat stod stoder stodje stodjs stods stoler stoppa stor stora storle storre stort stotte strang strank strfti stroja stroje
    strom stromm strukt stubbe stumma stycke styr styrda styrer subor subore suboro suboru subory subsid subsir suffik sugo summer sunt suora suorit sursa
    suuraa suurem suuri svak sve sveho svojho symetr symlan synlig syntak syote syotet syotte szabad szabva szama szamar szamu szeles szerin szerke szigna
    szigor szimbo szin szint szinta szinte szobol szoftv szokas szokoz szolga szoveg szukse tabel tabelu tablaz tabulk tager tagg tahan tahans tai takova
    talala talalh talet tall talla talle tallen tallet talon taman tamoga tangen tapaht tapauk tarjot tarkis tarkoi tarolo tartal tartom tas tasaus tasmaa
    tasoll tassa tast tasta taster tato tauluk tavall tavoli tavols tavua tavun taydel taysin taytyy tcl teckne tee tegnep tegnes tegnet tegyen tehda
    tejto tekste teksti telepi teljes tento tenyle terule testar teto tetszo texten textso textu textul tid tidiga tidlig tidsav tidsgr tidsst tidstr
    tidsud tiedos tiedot tienov tieto tietoj tietok tietue til tila tilaa tilan tilass tilbag tilbak tildel tilfoj tilga tilgan tilgje till tillad tillam
    tillat tillba tillde tillfa tillga tillha tills tillsa tilsid tilsta tilsva tilval tim timefo timing timp timpul tinta tipare tipu tipul tipulu tipus
    tipusa tipusu tittar tjanst tjekke tjener tjenes tlacia tlacid tlacit toate tobb todell todenn tohoto tohto toiden toimii toimin toinen toisen toista
    tolka tolkad tolkar tolker tolkes tolkni tom tomma tomme tomori tomto torles torten totdea toteut totozn tovabb trasig tre treba trebui tredje treff
    treile trenge treti trimit trunke trustd tryck tryk tudom tue tueta tuettu tukema tulajd tulee tuleva tulkin tulkki tulost tunnis tuntem tuodaa tuota
    tuto tva tvar tving tvinga tyo tyon tyonim tyotil typer tyvarr tyyppi uandre ucinit uctech udaje udajov udava uddata udefin udelad uden udfore udfyld
    udlob udlobe udlobn udrzbu udskri udtrak udtryk udvide uendre uetta uforve ugy ugyana ugyldi uhhhh uhhhhh uita ujra ukaze ukendt ukenum ukjent uklart
    ukonci ulkopu uloh uloha ulohy ulozen ulozi ulozis ului umidde umiest umiste umozni unde underh underk undern underp unders undert undga undtag undvig
    undvik unei unifor unixu unnga unohda unui uplna uplynu upozor upp uppdat uppgiv upphor uppkop upplas uppsla uppsta upptag upravi urceny urcit urcity
    urcuje urile urma urmate urmato urmeaz urmeze uroven urovni usann usd useita uspesn usynli utan utanfo utdata uten utenfo utfora utfore utgang utgar
    utlop utlope utlops utmatn utokad utokni utolso utom utotag utrymm utskri uttag uttage uttr uttryc uttryk utvide utvona uudell uudet uveden uvente
    uvnitr uzamkn uzenet uzivat vaadit vaaran vaatii vaatim vad vagy vahint vaihde vaihta vaihto vaikka vaikut vakio vakiot valass valasz valda valein
    valge valgen valget valgfr valgt valill valin valita valits valitt vality valja valo valoar valtas valtot valtoz vanhen vanlig vanste vanta vantan
    varata varatl varde varden vardet vardi vardie vare vari varier varje varjos varkto varlde varnin varoit varova varovn vars varsel varsli varsta
    varten vartsn vasa vaseho vasen vasho vasich vasmu vaxla vazute ved vedlik veget vegreh vegyes vei vektor vela velg velge velger veliko velkos velkyc
    vellyk venala venlig venstr vente venten venter verbos verdie verkli verkto verkty vernes versal versiu versjo vert vertsn verze verzi verzia verzie
    verzii verzio verziu vesz vetsi veve vezerl viac vice vid videre vidite viesti viimei viitor viitta vil vilka vilken vilket vill villko vindu vindue
    virhe virhee vis visa visar visas vise viselk viser vises visnin vissza vist vizszi vizual vlastn vlozit vlozte vnejsi vnitrn vnutor voi voida voidaa
    voitu volani volba volby volieb vore vraci vrak vrati vreun vsech vsechn vsem vsetky vstup vstupe vstupn vstupu vuoksi vvvv vybrat vychoz vydava
    vyhlad vyhled vyhne vyhodn vyhrad vyhraz vykona vynech vynuce vynucu vynute vynuti vypis vypisa vypise vypisu vypnut vyprsa vyprse vyprsi vypsat vyraz
    vyrazu vyrovn vyskyt vystup vytist vytvar vytvor vyzado vyzadu vyziad vyznam vyzvy vzor vzorem vzorie vzorov vzoru vzorum vzory wget xhh yderli yhdell
    yhdess yhteis yhteys yksi yleens yleine yleisi yli ylimaa ylivuo yllapi ympari yrita yritet ytterl zabudn zacatk zacina zadajt zadali zadana zadane
    zadano zadany zadate zadava zadejt zadna zadne zadnou zadny zadost zahlav zajtra zakaza zakaze zakazo zakazt zakodo zalozk zamkne zanepr zapama zapise
    zapnut zapo zarize zarola zarovn zasifr zastav zatial zatim zavisl zaznam zberni zda zdarne zdroj zdroja zdroje zdrojo zeptej zhodov ziadna ziadne
    ziadny zile ziskan ziskat zistit zjiste zjisti zkontr zkusi zkuste zlyhal zlyhan zmena zmenam zmeni zmenou zmente zmenu zmeny znaci znacka znacky
    znakem znakov znamen znamo znamym znova znovu zobraz zodpov zonnal zoznam zpet zpraco zprav zprava zpravy zprist zpusob zrusen zvidit zvolit zvycaj
""".split()  # noqa: SIM905

STEMS_NATIVE = """
    aбудь aвикор aвнутр aдля aпо aподтв aпожал aпуста aспеци aспеці άγνωστ άδειο άκυρη άκυρο άλλοι άνοιγμ έγγραφ έγκυρη έκδοση έκφρασ έλεγχο έλλειψ ένα
    έναν έναρξη ένας έξοδο έξοδος έπεται έπιλογ έχει έχετε έχουν έως ήχος ίδιοι ίσες ίσο αίτηση αγγλικ αδυναμ αδύνατ ακολου ακόλου ακόμα αλγόρι αληθές
    αληθής αληθεί αλλά αλλαγέ αλλαγή αλλαγώ αλλαχθ αλφαρι αμφότε ανά ανάγνω ανάλογ ανάλυσ αναγκα αναγνω αναγνώ αναζήτ αναμεν αναμον ανανέω αναπαρ αναφερ
    αναφορ ανενερ ανοίγμ ανοιγμ αντί αντίλη αντικε αντιστ απέτυχ απαιτο απαρίθ απενερ απλού αποθέσ αποθήκ αποθετ αποκρυ απομακ απομνη αποστο αποσύν αποτέλ
    αποτίμ αποτιμ αποτυχ από απόκρυ αρηθμι αριθμη αριθμο αριθμώ αριστε αρχεία αρχείω αρχειο ασφάλε ασφαλε αυτήν αυτής αυτού αυτόμα αφαίρε αφαιρέ βάζει
    βάσεις βάση βάσης βοήθει βρέθηκ βρίσκε γίνει γίνετα γαλλικ για γλώσσα γράφει γραμμέ γραμμή γραμμα γραμμώ γραφικ γύρω δέντρο δίδετα δίνετα δίσκο δίσκου
    δείτε δεδομέ δεν δεξιά δεξιό δημιου διάβασ διάκεν διάρκε διάστη διάταξ διαβάσ διαγρα διαδρο διακομ διαμεσ διαστή διατήρ διαφυγ διεργα διεύθυ δικαιώ
    δικο δικό διόρθω δοθεί δοκιμά δρομέα δυαδικ δυνατή δυνατό δυνητι δόθηκε δύνατα δύο δώστε εάν είδος είσοδο είτε είχε εαυτόν εγγράψ εγγραφ εγκατά εγχειρ
    ειδικό εικονί εικονι εικονο εικόνα εισάγε εισαγά εισαγμ εισαγω εισερχ εισόδο εκκίνη εκτέλε εκτελέ εκτελε εκτός εκτύπω εκφράσ ελάχισ ελέγχο ελήφθε ελαχ
    εμφάνι εμφανί ενέργε ενα εναλλα ενεργο ενεργό ενημέρ ενημερ εντολέ εντολή εντολώ ενός ενώ εξέτασ εξαγωγ εξαδικ εξακρί εξαναγ εξαρτά εξυπηρ εξόδου
    επίπεδ επεξερ επηρεά επικύρ επιλέξ επιλογ επιπέδ επιστρ επισυν επιτρέ επιτυχ επόμεν εργασί ερμηνε ερώτημ εσάς εστίασ εσφαλμ εσωτερ ετικέτ ευκαιρ
    ευρετή ευρετη εφαρμο εφαρμό εύρεση ζητείτ ημέρα ημερα ημερες ημερομ ημερών θέλετε θέση θυγατρ θύρα κάθε κάνοντ κάτω κέλυφο καθιστ καθορί καθορι καθώς
    και κακό καμία κανένα κανονι κατά κατάλλ κατάλο κατάστ καταγρ κατακό καταλό καταστ καταχώ κατεστ κείμεν κειμέν κελύφο κενή κενό κεφαλί κεφαλα κλάδο
    κλάδος κλείδω κλείσι κλειδί κλειδι κλικ κουδού κουμπί κωδικο κύλιση κώδικα λήξη λήξης λήψη λήψης λίστα λίστας λειτου λεξικο λιγότε λόγω μέγεθο μέγιστ
    μέθοδο μέλλον μέρες μέσα μέσω μέχρι μήκος μήνυμα μία μίας μαζί μεγ μεγάλα μεγέθο μεγαλύ μενού μετά μεταβλ μετακί μεταξύ μετατό μετονο μηδέν μην μηνύμα
    μια μιας μικρά μικρότ μνήμη μνήμης μοντέλ μορφή μοτίβο μπήκε μπλοκ μπορού μπόρεσ μόνιμη νέου νεκρά νεότερ ξανά ξεκλεί ξεκλει ξεχωρι οδηγήσ οδηγού
    οθόνη οθόνης οκταδι ολοκλη ομάδα ομάδας ομάδων ομαδας ομαδικ ονομάτ ονομα ονομαζ ονόματ οποία οποίο ορίζετ ορίσετ ορίσμα ορίστε οριζόν ορισμά ορισμέ
    ορισμο ορισμό οριστε οριστο οφειλό πάλι πάνω πάρα πίνακα πίσω παγκόσ πακέτα πακέτο πακέτω παλαιό παλιού παράθυ παράκα παράμε παρέμε παραθύ παρακά
    παρακα παραλη παραπέ παρασκ παρεχό παρόν πεδία περίοδ περίπτ περιέχ περιβά περιγρ περιεχ περιοχ περισσ πηγής πηγαίο πιο πιστοπ πλάτος πλήκτρ πληροφ
    πολλές πομνημ που πρέπει πριν προβολ προγρά προδια προειδ προεπι προηγε προορι προς προσθή προσκή προσοχ προσπά προτρο προόδο πρωτόκ πρόβλη πρόγρα
    πρόσβα πρόσφα πρώτης πως ρητή ροή ροής ρυθμίσ ρόλο ρόλους ρύθμισ σήμα σήματο σας σειρές σημαίν σημείο σκιώδη στήλη στήλης στα στη στηλών στην στιγμή
    στις στο στοίχι στοιχε στον στυλ συγκεκ συγκρί συμβατ συμβεί συμβολ συμπίε συμπερ συμπιε συνάρτ συνέχε συναγε συναλλ συνδέσ συνδυα συνεχί συνιστ
    συντήρ συντακ συντόμ συστήμ συστατ συχνά σφάλμα σωστού σύμφων σύνθετ σύστημ τέλος ταιριά ταξινό ταυτότ ταυτόχ τεθεί τελεστ τελετα τελευτ τερματ τεστ
    την της τιμές τιμή τιμής τις τμήματ τον τοποθε του τους τρέξτε τρέχου τροποπ τρόπος τυπική των τότε τύπο τύπος τύπου υλικού υπάρχε υπάρχο υπερβο
    υπερχρ υπηρεσ υποβολ υπογρα υποδοχ υποστη υπόδει φάκελο φαίνετ φακέλο φορά φωνητι φόρτωσ χρήση χρήσης χρήστη χρειάζ χρόνος χρόνου χρώμα χρώματ χχχχ
    χωρίς χωρισμ χώρο ψευδές ψευδής ψηφία ψηφίο όλα όλες όλων όπου όπως όριο όρισε όρισμα όταν ότι όχι ύψος ώστε або автент автома агента адміні адрес
    адреса адреси адресо адресу ако актива алгори але америк англий арг аргуме архите архів архіву архіте атрибу аудио аутент багато бажаєт баз базата
    базе бази базово базою базу байт байта байтов байтів батькі безопа безпек беспар библио бит блок блока блоки блокир блоку блокув бракує брой броя буде
    будет будут будуще будь було бути бутон буферо бъдат бъде был была было быть бібліо більше бітови бітів вам вами варто вашего вашему ваши вашого
    введен введён ввели ввести ввод ввода вводе вводу вдало вдалос вдаєть веднаг велики версии версию версия версію версія версії верхне верхнь ветки
    взагал вибачт вибері вибрат вивант виведе вивест виводи виводу вивід вид вида видали видалі виде видими видимы видна визнач вийти виклик викона вилучи
    вимага вимкну вимога вираз виразу вирівн вистач виходу вичерп виявле вкажіт вказан вказат включв включе включи власни вместе вмикає вміст вмісту вне
    внешне вниман внутре внутри внутрі возвра возмож восста врахув време времет время връзка връзки връща все всеки всех всички встано всяка всяко всё всі
    вузла входа входно входны вхідни във въвежд въвели възмож върху вътреш выбери выбира выбрат вывест вывод вывода выводи выгруж выдели вызов вызыва
    выйти выключ выполн выравн выраже выхода выходн вычисл від відбув відкри відмов віднос віднош відобр відпов відсут вік вікна вікно він гггг генери
    гнезда голям гра грешка грешки грешно груп група групат групи групп группа группы даних данни даннит данной данные данный данных дані дата дату двата
    дворак деакти декіль ден дескри джерел диалог диапаз директ диспет длина длинна длинне длину длины дни дні днів добави добавя довжин довший довші
    додати дозвол докуме долго должны домашн допомо допуск допуст дори дорівн достав достъп друга друге други другит другой дублюв думи дълги дължин дърво
    дъщере діалоз діапаз дійнси дії един една едно екрані експор елемен есть етикет еще жодног журнал забага забезп заблок заборо забыть завант завдан
    заверш завърш заглав заголо загото загруз задава зададе задан заданн задано задать задача задачи задаёт задерж задовг заедно зазнал заключ закрит
    закрыт закэши замест замеча замеща замовч замяна заміст запазв запам запис записа записе записі запит запиту запиті заповн запомн започв запраш запрет
    запрос запуск запуст зарежд засобі застар застос зауваж захист захища зачека защиты защища защищё зберег збиран збігаю звичай звіт зміна змінам зміни
    змінна змінно змінну зміну змінюв змініт знайде знайти знак знака знакът знаци знацит значен знову зняття зображ зовніш зразко зразку зробит зсув
    зсуву игнори иденти избере избор извежд извест извън изиска изискв изключ измене изменя изменё изобра изпращ изпълн израз изтегл изтича източн изтрив
    изход изхода изходе изчака изчакв изчист изчита икона има име имеет имена именат именем имени иметь имеют импорт имя имён индекс инстру интерв информ
    искате исполь истече истина истинс источн истёк истёкш исходн каждог както канал картки катало като качест керува кешем кешира кешу клавиш клавіш клас
    клиент клон ключ ключа ключе ключей ключов ключу ключі ключів клієнт когато код кода кодира кодиро кодом коду кодува което кожен кожног които който
    коли количе команд комбин комбін коммит компон конец контек контро конфиг конфли конфлі конфіг конце копии копира копіюв кориги корист коротш короче
    которы която край крапко кратка края кръпка към кілько кількі кінець кінця ласка лента лентат линии локали локалі лъжа літер майбут макс малих мало
    мандат масив маскув мати машина мають має межами межі менше меньше меню меняла меняли мере место местоп метка метки метод метою мин минима мишкат
    множес могат могуи могут можа можете можлив можна можуть момент мъртви мысль място між міняти мініма мініму містит містят надано надані надкор надто
    назад назв назва назван назви назвою назву назнач най найден найти налашт належи намере напр направ наприк наприм настоя настро наступ натиск натисн
    начало начин неакти неалфа небезо невдач невиди невозм невідо невідп негайн него недопу недост незаба незнак неизве некоре некорр неліте немає немедл
    неможл необхі неожид неочак неочік неподд неподх непозн непоср неприп непідт нерасп нерозп нескла нескол несъвм нет неудач неуспе ниво нижнем низ низа
    низове низът ните нито них нов новата нови нових нового новой нової новую нові номера номеро нуль някои няколк няма ніж ніяких обвивк обдума обект
    обекта обекти обектъ обеспе област обмеже обнару обнови обновл обновя обов оболон обрабо образц оброби обробк обробн обслуж обходи обхід объект обычны
    обійде ограни одновр одного одной одноча ожидае ожидал ожидан означа окна окно окреми окруже оновит оновле операн операт операц описан опит опреде
    опции опциит опция опцият освен оскіль останн отваря ответ отворе отвори отделе отдель отказо отключ открив открит открыт отмене отмест отнася отново
    относи отноше отобра отрима отсутс очаква очищен очікув ошибка ошибки ошибок още пакет пакета пакети пакето пакету пакеты пам памет паметт памяти
    память папка параме парче парчет певном первый перебу переви переві перегл переда передб переза переим перейм переме перепо перерв пересу перетв
    период перший період пиксел питати плаваю плот плохая пов поверн повече повине повинн повред повтор повідо погани подава поданн поддер поддръ поддър
    подклю подлин подмод подпис подрав подраз подред подска поза позвол позици позиці познач поиск поиска показ показв показу показы полета ползва получа
    получе получи поля полів помилк помило помощн помощь попере попроб попытк поради порядо посила посл послед послід посмот посред поступ поток потоку
    поточн потреб пошкод пошуку появле прав права празен празни празно пребаз превкл прегле предва предел преди предло предос предст предуп предус предыд
    преиме прекал прекра премах премес преобр преска прив привед привод приема призве призна прилаг прилож примен примус принай принуд приост припус
    присое прихов пришви пробел пробле провер програ продол прозор произо пройти пройшо прокси проксі проме промян пропад пропус пропущ просро прости
    простр прості проток прохож процес прочет прочит прошёл проігн публік пункт пуст пустая пустий пути путь път пъти пътища пътя під підказ підклю підпис
    підтве підтри підход пінкод після работи работн работы равен равно равной равным раз разбло раздел разлик размер разобр разом разреш разів рамка
    распол расшир расшиф реаліз регист регуля регіст ред реда редакт редове режим режима режиме режимі резулт резуль рекоме реплик реплік репози реєстр
    робити роботи роботу розбло розділ розмір розпіз розташ розшир ролей роли ролі рррр рухомо рядка рядки рядку рядків рядок рівень рівні саме самого
    сбой сбрасы сведен свобод свързв сгреши сделат сеанса сеансе сеансу сегмен сек секунд середо сертиф сжатия сигнал симв синони синтак систем скидає
    склада скорис скрива скрипт скрыва след следни сливан слияни словни службе служби службо службы случай слід сменой смещен смяна снятия собой собств
    совпад соедин создав создал создан создат сокет сокето сокрыт солью сообще соотве сортир сортув состав состоя сочи спиран списка списке списку список
    списък според способ спосіб справд справж спроба спроби спробу спрямо співпа спільн средат срока сроком срокът ссылка ссылки ссылку ссылок стан станда
    стану старих старти старых стає створе створи створю сте стека стил стиль стовпе стовпц стойно столбе столбц стосує строк строке строку сум сума
    суперк суперп суфикс суффик суфікс сущест сховищ считат съвпад съдърж съжаля създав създад съобще сървър със състоя същест същото таблиц такъв тег
    теки текст текста тексто тексту текуща текущи текущо тем тенево теневы термин термін тим тип типа типове типови типово типу типів това точки точно
    транза трапля требов требую трохи трябва търсен увага уведен увести увімкн удален удалит удалос удаётс укаже укажет укажит указан указат указва умолча
    уповно употре управл уровен услуга успешн успя устано устаре устрой усі усіх учётны файле файли файлов файлом файлу файлът файлы файлі файлів флаги
    фонети форма формат формі фраз фразам фразой фразы функци функці хеш хибніс хотите хочете хранен хранил цвят цел целта цель цифра цифру цього цьому
    цяло цій ціле цієї час част частью часу чем четене четим числа читанн читать чрез чтение чтении чтения шаблон шанс ширина широчи шифров шифрув шлях
    шрифт щоб щодо щойно экране экспор элемен этого этой этом эту являет являют язково яка який яких якщо які ятати ять яті єднанн єкт єкта єктів ігнору
    іденти іменем іменов імені імпорт індекс інстру інтерв інформ інший інші існує
""".split()  # noqa: SIM905
