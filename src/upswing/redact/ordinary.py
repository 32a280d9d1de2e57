"""Is this a word that ordinary prose has beside a password, in twenty languages?

Stems of six letters, without accents: the frequent words of programs' messages, and every word of
those messages that speak of passwords. A password may be one of them; then it needs quotes or a sign.
"""

from __future__ import annotations

from functools import cache

from .everyday import LATIN, RUSSIAN
from .everyday_more import MORE_LATIN, MORE_NATIVE
from .fold import fold
from .ordinary_more import STEMS_LATIN, STEMS_NATIVE

_STEM, _LONG = 6, 7


def is_ordinary_word(word: str) -> bool:
    """Whether all parts of a word, or of words joined by hyphens, are ordinary.

    >>> is_ordinary_word("expires"), is_ordinary_word("case-sensitive"), is_ordinary_word("swordfish")
    (True, True, False)
    """
    parts = word.lower().replace("_", "-").replace("'", "-").split("-")
    return all(
        len(part) < 3
        or part[:_STEM] in STEMS
        or part[:_LONG] in EVERYDAY
        or part[:_STEM] in _russian_stems()
        for part in parts
    )


@cache
def _russian_stems() -> frozenset[str]:
    """Stems as folding leaves them, where half of the letters have become Latin ones."""
    return frozenset(fold(word).lower()[:_STEM] for word in (*RUSSIAN, *MORE_NATIVE, *STEMS_NATIVE))


_OF_PROGRAMS = """
    aaaa aan aangem aangep aanmak aanpas aansta aantal abaiss abaixo abajo abando abarca abbrec abbruc abc abd aber aberto abfrag abgebr abgefr abgela
    abgele abgesc abhang abi abiert abilit ablage ablauf aborta aborte about above abrir abschn absolu abstan abstra aby acaba acabar acacak acao acar accao
    accede accele accept acces accesi acceso access accett accion accoes accord accoun accrio aceder aceita aceler acepta acerca acessi acesso achter acik
    acikla acilam acima acl acm acma acoes acordo acresc actie actief actif action activa active activo actual actuel acuerd add added adding additi addres
    adds adecua ademas adi adicio adini adjace adland adlari admin admini admite admiti adr adres adresi adreso adress adresu adresy advert afbeel afbrek
    afdruk afecta afeta affect affich afgebr afgesl afin afmeld afslui after afwezi agac agaci agacin again agains age agente aggior aggiun aggreg aging
    agli agora agotad agrega agrupa aguard ahora aide aidevo ainda ainsi airflo ait aiuto ajout ajoute ajuda ajusta ajuste akcent akis akista aktion aktiv
    aktivi aktual aktuel akzent akzept alan alani alanin albero albo alcanc alcun alcuna alcune alcuni ale aleato alem aleman alemao alfa alfabe algo algori
    algory alguie algum alguma alguna alguno alguns alias aliase alici alicil alicin aligne alinam alindi alinea alinha alir all alla alle alleen allema
    allen aller alles alline allo alloca alloue allow allowe allows almace almak almanc almeno alocac alocar along alors alpha alread alrede als also alt
    alte alten alter altera altere altern altero altes altezz altijd altmod alto altra altre altri altrim altro altura alvo alvore alvos always ama amanha
    ambas ambien ambigu ambos ammess ammini among amont amorca amount amplia amplif ana anade anadid anadir anahta analis analiz analys ancak anche ancho
    anchur ancien ancora and anda ander andere andern anders andert anderu anexa anexar anfang anfitr anford anfrag anfuhr angabe angebe angefo angege
    angeha angele angewe angeze angiel anglai anhand anhang anhmas ani anillo animac anlege anmeld annehm annota annula annule ano anonim anonym anorma anos
    anothe anstat anstel anteri antes antiga antigo antigu antwor anweis anwend any anymor anyone anythi anyway anywhe anzahl anzeig anzich aos aoss apaga
    apagad apagar aparec aparen apenas aperto apertu api apigat apis aplica apos app appara appcon appear appel appele appels appena append appflo appled
    applic applie appliq apply approp apprun apps appstr appsyn apres aprese aprire apropi apropr aps apt apunta aquela aquele aqui ara arabe arabel arac
    aralig aralik arama arasin arbeit arbitr arbol arbre arch archie archit archiv archiw are area areas arg argome args arguma argume arka arm armaze arn
    arnlik around arp arquit arquiv arrast array arrays arregl arrest arret arrete arriba arrier arsiv arsivi art artik arvore asagid asap ascii asgari asi
    asigna asildi asimi asimin ask asked asking asks asla aslind asmak asocia aspas assegn assemb assert assez assign assim assina assist associ assolu
    assume assumi ast asume asumie asumir async atalho atanma atar atau ate atenci athena atime ativa ativad ativar ativas ativo atla atland atlani atlanm
    atras atraso atrave atribu atrybu attach attemp attend attent attenz attesa atteso attiva attivi attivo attr attrav attrib attrs attual atual atuali
    atualm auch aucun aucune audio auf auffor aufful aufgeb aufger aufgru auflis auflos aufruf aujour aun aus ausche ausdru ausent auser auserh ausfuh
    ausgab ausgeb ausgef ausgeg ausgew auslas ausric aussi auswah auswer autent auteur auth authen author auto autoco autofi automa autor autore autori
    autorz autosc autour autre autres aux auxili availa avance avant avanza avec aver averag avere averti avez avico avisa aviso avisos avoid avoir avveni
    avviar avviat avvio avviso await away aws awsser ayant ayari ayarla ayer aygit ayikla ayni aynisi ayrica ayrila ayrilm ayrint ayrist ayuda ayudan azami
    azinda azione azioni back backen backgr backsl backup bad bag bagi bagiml bagims baglam baglan baglar baglay bagli baixo bajo bajt bajtow bajty bakimc
    bakimi bakin balise banco bancos banda bandei bander bar barra barram barras barre barres bas basama basar basari basati bascul base basead based basede
    basemo bases bash basic basina basis baska baslan baslat baslay baslig baslik basso basura basvur batch bayt bayti baytla baytli baz baza bazi bazy
    beacht bearbe becaus beda bedank bedeut bedroc bedzie beeldp been beende befehl befind before begin beginn begint behand behavi beheer behoud bei beide
    beim being beinvl beispi bekann bekijk beklem beklen bekomm belang belge belges belirl belirs belirt bella bellek below bem benar benoti benutz benzer
    bepale berabe berech bereic bereik bereit berich bescha beschi beschr besoin bestaa bestan besteh bestim beteke betigi better betwee bevat bevatt beveil
    bevest bevor bewerk bez bezig bezpie bfd biblio bicem bicemi bicim bicimd bicimi bien biezac big bij bijv bijvoo bijwer bild bildir bildsc bile bilese
    bilgi bilgil bilgin bilgis biline bilinm binair binare binari binary bind binhex binnen bipart bir birak birbir birden biri birinc birini birkac birles
    birlik bis bisect bisogn bit bitesl bitlik bitmap bitow bits bitte bitti blad blanco blank blanks bledna bledne bledny bledow bledu bledy blob bloc
    blocca blocch blocco block blocke blocks blocma bloco blocos blocs blok blokad blokow bloku bloq bloque blue bluepr body bogue bogues boite bolum bolumu
    bon bool boolea borda borde bordo bordur bornes borra borrad borrar boru bos bosluk botao both botoes boton botone bottom boucle bound bouton boven box
    boy boyle boylel boyu boyut boyutu bozuk brak braku brakuj branch branco brauch brazil breach breedt breite breve broken bron bronco bruto bsd btree btw
    bucle budowa bufer buffer bufora bug bugun build buildi built builti buiten buluna bulund bundle bunu bunun burada bureau busca buscan buscar busque
    busta busy but button butun buyuk byc bygrou bylo bypass byte bytea bytes bzw cabeca cabece cache caches cada cadeia cadena cadre caduca caduci caduco
    caduqu cagri cagris caixa caja calcol calcul calha calisi calism calist call callab callba called callin calls cambi cambia cambie cambio came caminh
    campi campo campos can canal canale cancel cannot cantid capaci capo caps capslo captur car carac caract caratt carga cargar carica carimb carlos carpet
    carreg carte cartel cas case cases caso casse casual catalo catego catena cattiv causa cause ceci cel cela celise celle celu celui celula center centra
    cerca cercar cero cerrar certai certif certyf ces cet cette ceux ceviri cevre cfg chain chaine challe chamad champ champs chance change changi chaque
    char charac charge chario charse chave chaves chcesz che check checke checki checko checkp checks chemin cherry chiama chiaro chiave chiavi chiede
    chiffr child chime chiude chiusu choisi choix choose choosi chose chosen chyba ciag ciagu cible cibles ciclo cierre cierto cifra cifrad cifran cifrar
    cifrat cifre cift cijfer cik cikar cikis cikti ciktid ciktil ciktis ciktiy cima cinsin cio cizelg cizgi clair claro clase class classe clause clauso
    clausu clave claved claves clavie cle cleanr clear cleare cleari clef clefs cles clic click client clique close closed cloudf cloudt cloudw cls cluste
    codage code codebu codeco codede codegu codepi codest codice codifi codigo cognit cogul coinci coisa cok coklu colema collat collec colleg coloca colonn
    color colore colors column coluna com coma comand comas combac combin combo come comeca coment comenz comes comien comill comman comme commen commit
    common commun como comodi compac compar compat compen compge compil comple compli compon compor compos compre compri compro compru compte comput comum
    comun comune comunq comuns con conclu concor concue condic condit condiv condiz conduc conect conexa conexi confer conffi confia confid config confir
    confli confor confro conhec conjun conn connec connes connet connex connu conoci conseg consej consen conser consid consol const consta constr consul
    consum conta contac contad contag contai contas conteg contem conten conter contes conteu contex contie contin contor contra contro conver convie cookie
    copia copiar copie copier coppia copy copyri cor core cores coring corpo corps correc correi corren correo corres corret corrig corris corrom corrot
    corrup corso corta corto cosa cost costit cote could couldn couleu count counts couran courri cours court courte cozme cozmek cozule cozulm cozumu cpu
    cracke cracki crea creaci creada creado creand crear creare crears creata create creati creato creazi creden creds cree creee creer creera crees cria
    criaca criado criand criar cripta cripto criter critic critto crl cronol cronta cruz cruzad crypt ctf ctrl ctx cual cualif cualqu cuando cubugu cuenta
    cui cuidad cujo cunku curdo curren curseu cursor curta custom cut cutoff cuyo cycle cycles cyfr cyfre cyfry czas czasie czasu czcion czesc czesci czy
    czytan dabei dactil dada dado dados dafur dag dagen daha daher dahil dai daj dal dali dall dalla dalle dallo damgas dan danado dando dane danke dann
    danneg dano dans danych darf darges das dass dassel dat data databa databr datacl datadi dataex datazo date datei dateid dateie datein dateis daten
    datenb datens datent datenv dates dateti dati dato datos datum daty davver day days dead deadli deakti debajo debba debe deben deberi debes debian
    debido debil deboga debole debord debug debugg debugo debut decala decide decima decir decoda decode decodi decomp decora decryp deel def defaul defaut
    defect defekt defile defina define defini deger degeri degerl degil degild degils degisi degisk degism degist degli degrad degree dehors dei dein deins
    deixad deja dejari dek dekodi del delai delant delete delimi dell della delle dello dem demain demais demand demarr demasi den denega denen denend
    deneti denetl deneyi deneys denied dentre dentro deny depart depass depend deplac depo depois deposi deposu depot deprec depth depuis depura der derde
    derech deren derlen dernie derzei des desabi desact desafi desass desati desblo desbor descar descif descon descre descri descul desde desead deseja
    desenh desesc desest deshab deshac design desire deskry deskto deslig desliz desloc despej despl despla despro despue dessa dessen dessus desta deste
    desteg destek destin destra destro destru desvio detail detalh detall detect deteni determ detrui dettag deutsc deux dev devam deve devem devera deveri
    deverr devez devi device devido devolv devono devops devrai devre devrie devuel deze dezelf dezima dia dialog dias dibuja dica dice dict dictio dicts
    did didn die dienst dient dies diese diesem diesen dieser dieses difere diff differ diffic difici diger digerl digest digit digita digite digito digits
    digrap dikey dil dili dimens diment diminu dinami dio dipend dir dirdad direca direcc direct direit direkt direta direti direto dirett direzi dirmng
    dirs dis disabi disabl disall disco disi disind disk dispar disper displa dispon dispos disque disso distan distin disto distri dit divers diz dizge
    dizges dizgi dizi dizin dizine dizini dizinl dizisi dla dll dluga dlugie dlugos dluzej dluzsz dms dni dns doble doc doch dochte doctes docume dodac
    dodaj dodani dodatk dodawa dode doel doen does doesn dogru dogrud dogrul doing dois doit doiven doklad dokume dokunm dolaca dolayi doldu dolumu domain
    domani domein domena domeny domini domowe domysl don donc donde dondur done doner donne donnee donner dono dont donusu door dopaso dopeln dopo doppel
    dort dos dossie dostep dosya dosyad dosyal dosyan dosyas dosyay dot double dove dovreb dowiaz down downlo dozwol dpkg drapea draw drawin droit droite
    droits drop drs drucke drzewa drzewi drzewo dsacon dso dsp dsql duas dubbel due dueno dugme dugmes duits dummy dump dun duplic dupliq duplo duraci
    durant durata durati durch durchf durchg durchs durdur duree durfen during durum durumd durumu dutch duz duza duze duzelt duzenl duzey duzeyd duzeyi
    duzo duzy dvorak dwa dwarf dwoch dynami dynamo dyrekt dysku dziala dzieki dzien dzis dzwiek each easily easy ebauch ebene eccede eccezi ecdsa echapp
    echec echecs echell echo echoue ecr ecra ecran ecrase ecrire ecrit ecritu ecs eden eder edge edges edildi edilen edilir ediliy edilme edilmi edit edita
    editab editan editar editer editeu editie editio editor ediyor een eendui eens eerder eerste efecto efectu efeito efface effect effet effett egal egalem
    eger egik eigen eigena eigene eigens eigent ein eind einde eindeu eindig eine einem einen einer eines einfac einfug eingab eingeb eingeg einges einhal
    einige einles einlog einmal einste eintra einweg einzel einzug einzus eisent either ejecuc ejecut ejempl ekle ekleme eklend eklene ekler ekran ekrani
    ekranu eks eksik ela elabor elasti elde ele elecci electr elegid elegir elemen elenca elenco eles elevar elf elgama elif elija elimin elk elke elle else
    eltern elveri emacs emacsa email emails emette emettr emin emisor emite emitir emitte empaco empaqu empech empfan empfeh empfoh empiez emplac emplea
    empleo empotr emprei empty emr enable encabe encaja enchav encima encoda encode encodi encont encore encrip encryp enctyp encuen end ende endere endet
    endete endian ending endpoi endung enfant enfoca enforc engels englis enkel enkele enlace enlaza enleve enmasc enough enquan enregi ensamb ensemb ensure
    entao enter entere entero entete entfer enthal entier entonc entorn entrad entram entrar entre entree entrer entrez entrie entry entsch entspe entspr
    entwed enum enumer env envelo envia enviad envian enviar envio enviro envoi envoye eof epilog epuise equal equipo equiva equivo era erfolg erford ergebn
    erhalt erim erisim erkann erkenn erlaub ermitt ermogl erneut errada errado errata errati errato erreic erreur erro errone error errore errori errors
    erros ersche ersetz erst erste erstel ersten erstpa erwart erweit erwuns erzeug erzwin erzwun esa esadec esatta esauri escala escape esce esci esclav
    esclus escoge escolh escond escrev escrib escrit ese esecuz esegue esegui esempi esgota esiste eski eslese eslesm espaca espace espaci espaco espanh
    espans espec especi espera espere esport espres esquec esquem esquer essa essaye esse esseel essere est esta estaba establ estadi estado estamo estan
    estand estao estar estas estati estava este esteja estend estens estern estesa estilo estive esto estos estour estran estrat estraz estruc estrut etabli
    etait etant etat etc ete etendu etes etiche etiket etique etki etkile etkin etkinl etmiyo etre etwas etykie eua even evenem event evento events eventu
    every everyb everyt everyw evitad evitar evitat eviter evrens exact exacta exacte exactl exampl exata exc excede excedi excepc except excess exceto
    exclud exclui exclur exclus exec execuc execut exempl exibe exibic exibid exibir exige exist exista existe existi exists exit exito expand expans expect
    experi expira expire expiro expiry explic exploi expone export expose expr expreg expres extend extens exteri extern extra extrac extrae extrah extrai
    extrem eylem eylemi facil facile facon factor facult faible fail failed fails failur faire fait faixa fakat falha falhas falhou falla fallad fallid
    fallit fallo fallos falls falsa falsch false falso falta faltan famigl famili famill family fanion farbe fare farkli fase fast fatal fatigu fatto fausse
    faut faux favor faz faze fazer fazla featur fecha fechar fechas fehl fehlei fehlen fehler fehlge fehlt feito fel felakt feld felder feldin fenetr fenste
    fermat fermer fermet ferram fertig fest festge festle festpl festst fetch feuill few fiable fica fich fichei ficher fichie field fields figlio figura
    fikir fil fila filas file filena files filho filhos fill fils filter filtr filtre filtro fim fin final finale finali finall find finden findin fine
    finest fino fireho firma firmad firman firmar firmas firme first fixa fixe fixtur flag flagi flags flask flecha float flotan flotta flow flows flujo
    flush flusso flutua flux fluxo foco focus foglio foi fois folder folgen folgt folha follow foncti fond fondo foneti fonety font fonte fontes foo for
    fora forall foram forane forany forbid forca forcag forcar force forcer foreca foreig forem forget fork form forma formac formad formas format forme
    formee forms fornec fornir fornis fornit forse fort forte forwar forza forzar foto fotogr found founda fourni fout fouten fpu fra frac fraca fracas
    fracti frage fragen fragme frame franca france francu frans fransi franzo frase frases fraudd frecci free freie fremdd fremds fremdt french frente fresh
    friday from fronti fsck fsmoni fsx ftp fue fuente fuera fueron fuerte fuerza fuge fugen fuhre fuhren fuhrt full func funcao funcio funcoe functi fundo
    funkcj funkti funzio fuori fur furthe fuseau fusion fuso futur futura future futuro fyi gaan gaat gab galaz galezi gameli gamme gange ganze ganzza
    garant garder gatilh gauche gdy gdzie geande geben gebrui gec gecerl gecers gecici gecis gecmis gedefi gedruc geef geeft geen gefrag gefund gegen gegenw
    gegeve geheel geheim geheug geholt gehort geht geinst gelade geldig geldt gelece gelen gelese geleze geliev gelijk gelir gelosc gemaak gemein genau
    genege genel genera genere generi genero genisl genito genomm genug genuge geo geoffn gepauz gepruf gera gerada gerade gerado geral geralm gerand gerar
    gerat gercek gere gerek gereke gereki gerekl gerekm gerekt gerenc gerer geri gerir german gesagt gesamt gesche geschl geschr geschu gesele gesend gesetz
    gespei gesper gestao gestar gester gestio gestir gestis gestop gestor get getal getbuc getirm getmet getobj getoon getpas getpol getren getrol gets
    gettin geven gevolg gevond gewarn gewart gewijz gewoon gia gib gibi gibst gibt gid gif gilt ging gio giorni giorno girdi girdid girdil girdis girdiy
    girile girin girini girip giris girisl girist girmed girmen gister git gita give given giving gizli gleich gli globai global glowne glowny glue gmail
    gniazd gnome gnu gnupg goes golge gonder good gore gorece goreli goreme gorunm gorunt gorunu goster got gotowe gpg gpl gracia grade gradie grafic grafo
    grafu gran grand grande grant graph graphe graphi graphs gravar grazie greate greeng greffo grelha groep groepe groot groott gros grose groser groter
    group groupe groupi groups grubu grup grupa grupo grupos gruppe gruppi gruppo grupy gssapi gtk guarda guardd guclu guess guessi guilla guille guion
    gultig gun guncel gunluk guter gutes guvenc guvenl guvens guy gzip hab habe haben haber habili habitu hace hacer hacers hachag hacia hacien had haha hai
    hakkin haliha ham han handbu handle handli hangi hanno happen hard harde hardwa harf haric has hasarl hasel hash hashed hashes hashin hashve hasla
    haslam haslem haslo hast hasta hat hata hatala hatali hatasi hatirl hatte haupts haut hauteu have hay haya hazir head header heap hebben hecha hecho
    hedef hedefi heeft heet height heisst held help helper hem hemen hemos henuz her here herhal herhan herite herken hernoe herram hers herunt hesabi hesap
    het hetzel heure heute hex hexade hic hicbir hidden hide hier hierbe hierfu high hijo hilfe hilo hilos hint hinter hints hinwei hinzu hinzuf hinzug his
    histor hizala hizmet hochst hoe hohe hoja hoje holder holds holen home hope hora horair horari horas horizo horoda hors host hosta hostna hote hour
    houver how howeve hoy html http https hubo huella hui huidig hulp hulpte hun hungar hunk huso hygien iam ibm iceren icerig icerik iceris iceriy icermi
    ich ici icin icinde icine icon icona icone icones icono iconos iconv idade idea identi identy idioma ids ieri ifade ifades ignora ignore ignori ignoro
    iguais igual ihn ihnen ihr ihrac ihre ihrem ihren ihrer ihres iki ikili ikinci ikon ikony ile ilegal ilegiv ileti iletis iletiy ilgili ilk illega illisi
    ilosc ils image imageb imagem imagen images imbriq imedia imi immagi immedi immer immess immett impart impass implem implic impliq import impose imposi
    imposs impost impres imprev imprim impron imza imzala imzasi inacti inakti inalte inaspe inativ inatte inatti incapa inchan includ inclui inclur inclus
    incluy incomi incomp inconn incorr increm indefi indeks indeli indem indepe indete index indexe indica indice indici indien indiqu indire indiri indisp
    indivi indiza inesis inespe inexis inferi infini info inform ingebo ingedr ingesc ingest ingevo ingevu ingles ingres inhalt inhoud inicia inicio initia
    inizia inizio inkomp inkorr inmedi inne innerh inny innych innym input inputs inscha insecu insegu inserc insere inseri insert inside insiem insn insns
    inspec instal instan instea instel instru insuff insufi int intege inteir intel intent inter interc interd interf interi interm intern intero interp
    interr interv intest intl into introd introu inutil invali invece invers invert inves invia inviar inviat invio invisi invite invoca invoer iot iotfle
    iotsit iotwir iptal ira irgend iria irrele isa isaret ise isim islem islemc isleme islemi isleml islene islev ismi isn iso isomor isso ist istege istegi
    isteme istiyo istnie isto istruz italia item items itens iterab iterat ithal its itself ivs iwmmxt iye iyi iyimse izin izleme izlenm izquie jak jako
    jamais janela japone java jce jede jedem jeden jeder jedes jedna jednak jedneg jednej jednoc jednym jedoch jego jej jemand jesli jest jeszcz jeton jetzt
    jeu jezeli jjjj job jobser join joinin jour journa jours jpeg json jsonb juist juntas junto juntos jusqu just jutro juz kabuk kabul kadar kafka kaldir
    kaliba kan kanali kann kannst kans kapali kapat kapati kapsam kaputt kar karakt karcie karmas karsil karte kartsi karty kasada katalo kayan kaydet kaydi
    kaydir kayit kaynag kaynak kazdeg kazdej kazdym kdc keep keeper keeps kein keine keinem keinen keiner ken kenar kendi kendil kenne kennt kennun kennwo
    kent kept kerber kere kernel kesin kesinl key keyboa keyed keyerr keygri keys keysal keyser keywor kez kib kiedy kies kiezen kilind kilit kilitl kilits
    kill kimlig kimlik kind kindpr kinesi kip kipi kipind kisa kisise kitapl klaar klappt klar klare klarte klasse klasy klavye klawis klein kleine kleins
    kleur klonen klopt klucz klucza klucze kluczy kluis kms knew know known knows kod kodem kodier kodlam kodowa kodu kok kolay kolejn kolom kolomm kolor
    koloro koloru kolumn komen komma komman kommat komme kommen kommst kommt kompat komple kompon kompre komput komt komuni komut komutl komutu kon konca
    koncu konczy konfig konfli koniec konnen konnte konser konsol kontek kontex kontro kontyn konum konumu konver konwer kop kopert kopier kopii koppel
    korrek korte korter koruma koruya kosong kotu kpassw kravs krawed krijg krijge krotsz krytyc ksprea ktora ktore ktoreg ktorej ktory ktoryc ktorym kucuk
    kullan kumesi kunnen kunt kurali kursor kurulu kurz kurzem kurzer kvno kwargs kword laatst label labels lacins laden lado lados laeuft lag lakefo lambda
    lance lancem lancer lancez lancuc lang langag lange langer langua langue lanzar laquel lar larga largas large largeu larghe largo largos largur las
    lasse lassen last lastui laten later latijn latin latina latino latka latke latki latwe lauft launch lavoro layout lazim ldap ldapba ldapbi ldappr
    ldapse ldapur ldpbr leadin leak leaked leaks least leave lebens lectur lee leeg leer leere leeren leerer leeres leerse leerze left lege legge leggen
    legger leggi legiti legive legt leia leidas leiden leitun leitur lelarg lembra len lengte length lengua lequel ler les lesbar lese lesefe lesen lesezu
    less let letao letra letras letter lettre lettur letzte leur level levens lewej lewy lex lexer lexers leyend lezen lezy lhe liaiso libero librar libre
    librer licenc licens licenz liczba liczbe liczby lida lido lie liegen liegt lien liens lier lies lieu life ligaca ligaco ligado ligar lights ligne
    lignes ligt lijst like limit limite limpar limpez limpia line linea lineas linee lines lingua linha linhas linia linie linii link linke linker links
    lire lisans liscie list lista listad listal listap listar listas listbu listcl liste listel lister listes listet listro lists listta listy lit liter
    litera little livell livre lixo lizenz llamad llave llaves llevan load loaded loc locais local locale locali localm locati locaux lock locked lockou log
    logged logica logici login logins logiqu logisc logite logowa logs lokal lokale lokali lokaln lol long longa longas longer longit longo longos longs
    longte longue look looks lookup loop loro lors lorsqu los losche losowe lost lower lsn lub luego lugar lui lukt lunga lunghe lunghi lungo lutfen maak
    maakt maar macchi machen machin macint macro made mag maggio magic magiqu magisc mai mail mailbo main mainte maior mais maitre maiusc maj maja majusc
    make maken makes makine makkel maksim maksym mal mala malfor man manage manana manca mancan mandat maneja manejo manera manier manipu manqua manque
    mantem manten manter manual manuel manute many map mapa mapead mapeam mapear mapeo mappa mappag mappat mappen mappin maquin marca marcac marcad marcas
    marcha marche marco margem mario mark marked markie markup marque mas masaus mascar masche masked maskel masker maskin maskow masque massim match matche
    matchi materi math matplo matriz mau mauvai max maxima maximo maximu maxren may maybe mayor mayus mayusc mdp mean means mecani mechan medede media
    mediac medial median medio medium meedel meer meerde mehr mehrde mehrer mehrfa mehrma mein meins meio melden meldun member membre membro meme memoir
    memori memory memriz meno menor menos mensag mensaj mentio mentre menu menus menusu merci merge merken mes meses mesma mesmo messag met metada metado
    metain metali meth method meticu metin metni metodo metody mettre mevcut mezcla mgh mgn mib micros midia miec miedzy miejsc miembr mientr might miliss
    millis milo mime mindes mine minima minimo minimu minusc mirand mis mise mises misluk misma mismat mismo missin misto misvor mit mitgli mittel mkeyty
    mkeyvn mmo mobile mochte mock mod modali mode model modele modell modelo modifi modify modo modos modul modula module modulo modus modyfi moeili moet
    moeten moga mogeli mogen moglic moins moldur moment monday monito montaj month montow montre more morgen mornin mortas morte mortes most mostra mot mote
    moteur motif motifs motivo moto motor mots motywu mount mouse move mover movime moze mozesz mozliw mozna msg msgid msgstr mtime much muda mudada mudanc
    mudand mudar mude mudou muerta muestr muito muitos mukerr multi multib multid multig multim multip mumkun musi muss mussen musst must muster musza muti
    mutuam mutuel muy myszy naam naar nach nachde nachri nachsc nachst nada nadal naglow naher najmni najpie najwyz nalezy name named namen namens namere
    names namesp nan nao napis napisa napisu nas nascon nasil nastep nativo natura natych nawet nazw nazwa nazwe nazwie nazwy nbunch nea necesa necesi
    necess need needch needed needs negati negato negere nehmen nei neighb neithe nel nell nella nelle nello nem nenhum nesne nesnel nesnes nesney nessun
    nesta neste nested nettoy networ neu neue neuen neuer neues neulad never new newlin next nic nicht nichts nie nieakt niedos niejed niekto niemal nieman
    niemie niemoz nieobs nieocz niepop niepow niepra nieroz niesle niespo niet niets nieuw nieuwe niewla niezmi niezna nigdy nil nimble nimm nin ningun nis
    niveau nivel niz nobody noch nochma node nodeli nodes nodig nog nogmaa nokta noktal noktas nom nombra nombre nome nomefi nomes nomese nomi nomme nommee
    noms non none nop nor normal nos not nota notas note notes nothin notifi notig notiz notize noto notwen nouvea nouvel nova novame novas novo novos now
    nowe nowego nowej nowy nowych noyau nplura nucleo nuestr nueva nuevas nuevo nuevos nul nula null nulla nulle nullo nulo nulos num numa numara number
    numer numeri numero numeru nummer numpy nunca nuova nuovam nuove nuovi nuovo nur nutze nutzen nutzt oam obblig obecne obecni oben obiekt obiett obj
    object objekt objet objeti objeto objets obliga obliqu obowia obraz obrazu obriga observ obslug obsluz obsole obszar obtain obtem obtene obteni obtent
    obtenu obter obtido obtien obtuvo obviou occorr occupa occupe occurs ocorra ocorre ocsp octal octet octets oculta ocupad oczeki odbezp odblok odczyt
    odebra oder odnale odnies odpowi odstep oferec off offeng offens offnen offset often oge ogesi ogesin oggett oggi ogni ogolni ograni ohne oid okay okien
    okna okno okresl oku okuma okunam okunur okunuy olabil olacak olamad olamaz olan olarak olasi old oldu oldugu olmada olmadi olmaks olmali olmasi olmaya
    olmust olsa oltre olu olumcu olup olur olustu olvida omdat omgevi omics omisio omissa omite omitid omitie omitte omru omzeil omzett onalti onbeke onbell
    once oncede onceki oncesi onde onder onderd onders ondert one onek onemli oneril ones ongeld ongepa onjuis onlari onlees onlenm only onmidd ont ontani
    ontbre ontem ontgre ontled ontvan ontzeg onu onverw onvold onzich ook opacid opcao opcion opcja opcje opcji opcode opcoes opdrac open opened openen
    openpg operac operad operan operat operaz opgege opgesl opgeve ophale opis opisu opkod opmaak opnieu oportu opport oppure oprogr opslaa opslag optie
    opties optimi option opts opvrag opzion ora oracoe orario oraz ordem orden ordena ordene order orderi ordina ordine ordner ordre organi origem origen
    origin orizzo orn ornegi ornek ort ortak ortam oruntu ostatn ostrze other others otherw otomat otra otras otro otros otrzym ottene ottenu oturum otworz
    oublie oud oude our ours out outdat outil outils output outra outras outre outrep outro outros outsid ouvert ouvrir over overee overfl overge overri
    oversc oversl own owner ozel ozelli ozet ozgu oznacz oznite ozyine pacche pack packag packet pacote paczek paczki pad padrao padre padroe page pages
    pagina pagine pai painel pair paire paires pairs paket pakete paketi paketl pakiec pakiet pakket palabr palavr paleta palv pamiec panel pantal papel
    paper paquet par para parado paragr parale parall param parame params parar parca parcac parcal parcan parcas parcay parce parche parcia parcou parece
    pareja parent pari parmi parola parole parse parsed parsen parser parsin part partag parte partes partia partic partie partil partir partit partiz
    partne partou parts pas pasar pasif paska paso pasowa pass passa passad passag passe passed passen passer passin passph passro passt passwd passwo pasta
    pastas pasuja pasuje patch patche path paths patron patroo patter pax paylas payloa pcks pede pedido pedir pek pela pelo pem pencer pendan pep pequen
    per perche percor perdid perdie perdu perfil perfor pergun period periph perman permes permet permis permit permut pero persa person persoo perten
    pesqui peter petici petit petite petli peu peut peuven pewno pfad pfade pfadsp pflege pgp pgpass pgsql phonet phrase piano piatta pic piccol pickle
    pictog pid pida pide pidien pierws pijp pijpli piksel pila pile pilha pin pinent pionow pipe pipeli piu pixbuf pixel pixele pixels pka pkcs pks plaats
    place placeh plage plain plaint plan planer planif planne plano planti plataf platef platfo plattf platz please plein plik plikac pliki plikie plikow
    pliku pls plt plug plugin plurai plural plurie plus plusie plutot plz png pnm pobier pobrac pobran poca poczat poczek pod podac podaj podal podana
    podane podani podano podany podcza pode podem poder podera podido podklu podmod podpis podpow podra podrec podria podsta poedit poiche poids point
    pointe points pois pokaz pokaza pokazu pokazy pol pola polach polacz pole polece police polici policy polish politi poloze polu pomied pomija pomin
    pomini pomoc pomoca pomocy pomysl pone poner poniew ponize ponowi ponown pontei ponto pontos pop popraw poprze popula por porcio porque port porta
    portab portug porzio pos posibl posica posici positi posix posizi posred possa possed possib possiv posson possui post posta postac postep poster postgr
    posto potans potenc potok potoku potomn potreb potrze pour pourra poursu pousse pouvez pouvoi power powini powinn powiod powlok powodu powrot powtor
    poza poziom poziti pozost pozycj pprint prafix prawa prawda prawdo prawej prawid prawy pre preavv preced precis predef predet predic preenc preest
    preexi prefer prefij prefis prefix preimp prelim premat premie premut prend prendr prepar pres presen preset presum pret prev previa previo previs
    prevue prima primai primar primei primer primo princi print printe priori priory pris prise prises privad privat privee privil pro proba probab proban
    probee prober proble proced proces procha procur prod produc produi produj produz profil profon profun progra progre projec projet prolog prompt pronta
    pronto proper propia propie propio propor propos propre propri props prosi prosze protec proteg protez protoc protok proton prova provar provav provee
    provid proxie proxim proxy proxyi prozed prozes pruebe prufe prufen prufsu prufun prywat przech przeci przed przejs przeka przela przeni przepe przerw
    przest przesu przetw przewi przez przy przyci przydz przyjm przyna przypa przyro przysz pseudo psql pubbli public publik publiq pudier pudo pueda puede
    pueden puedes puedo puerto puesto puffer puis puissa puk pulizi pulsac pulsan punctu punt punta puntat punter punti punto puntos puo puoi push pusta
    puste pusty put putlog putmet putobj pwd pydant pygmen pytani python qldb quais quaisq qual quale quali qualit qualqu qualsi quand quando quanti quanto
    que quebra queda quedan quel quell quella quelle quelli quello quelqu quer querer query quest questa questi questo queue qui quicks quiere quiet quindi
    quitar quite quitte quiza quoi qux raccom raccou racine racio radice radius rafael raggiu raggru raise raised raises raison raiz ram rama ramas ramifi
    rand random range rango ranura rapide rapido rappor rastge rastre rather ration rato raton raw raz razem razon rds reache read readin readre ready real
    realiz really realm realme rebasa rebase rebut reca recebe recebi receiv recent recepc recept rechac rechar rechaz recher rechne recht rechte rechts
    recibi recien recome recomm reconf reconh reconn recono recons record recorr recouv recove recu recuer recupe recurs red redact redded rede redefi
    redese redigi redist redond redor redshi reecri reeds reel reempl reentr reessa ref refera refere refier refs refus refuse regel regeln regels regex
    regexp regiao region regist regla reglas regle regles regola regole regra regras regrou regul regula reguli reihen reimme reinde reinic reinit reinte
    reject rekogn rekord relaca relaci relaja relate relati relato relaxa relazi releas relevo rellen reload reloc reloca relogi reloj remain remarq rememb
    remise remoca remota remote remoti remoto remova remove removi rempla rempli rename rencon render rendre rengi renk renomb renome renomm renova renvoi
    renvoy reorde rep repara repass repeat repere repert repeti replac replic replik repons report reposi repozy repr repres req requer reques requet requie
    requir requis res reseau resenh reserv reset resets residu resili resim resize resmi resolu resolv resoud resour resp respal respec respon respos respue
    ressou resta restab restan restau reste restit restor restre restri result resume resumo retape retard rete retice retire reto retorn retour retrie
    return retype reubic reusar reuse rev revers revert revisa revisi revizy revoca revoke rewizj rfc ricari ricerc ricevu richie richti richtl ricono
    ricord ricors riempi rien riferi riga righe right rigido riguar rileva riloca rimane rimoss rimozi rimuov rinomi ripris riprov riserv risolu risolv
    risors rispet rispos risult ritorn riusci riutil rng robocz rodzaj rol rolage rolame role roles rolesa rolle rollen roller rom root roota rosyjs rotate
    rotati rotulo round route row rownie rows rozmia roznia roznic rozsze rozwia rpc rprnt rrrr rsa rtype ruchu ruckga ruckse ruim ruimte rule rules run
    runins runnin runtim ruoli ruolo rusca ruso russa russe russis russo ruta rutas saat sabe sabit sablon sacred sadece safe safely safety sag sagema sagla
    saglam sagst sagt sahibi sahip sai said saida sair saisi saisie saisir saisis sait saklam salage salah sale salida salien salir salt salta saltar saltat
    salted salto salva salvar salvat same samen samo samp sample sanal saniye sans sansti sao sara sarann satir satiri satirl saturd sauf saut sauter sauveg
    saved say sayfa sayfas sayi sayida sayili sayisa sayisi says sbagli sblocc scade scaden scadra scadut scalai scalan scalar scale scalen scansi scaric
    scegli schadu schake schalt scheda schedu scheid schein scheit schema scheme schemi scherm schick schijf schlec schlie schlug schlus schon schowk schrei
    schrij schutz schwac schwer scieze sciezk sconos scorri scram screen script scritt scrive scrivi sea sean search sec secao seccao seccio seccoe secene
    secile secili secim secin secmel secoes second secret sectie sectio secuen secund secure securi see seed seems segmen segnal segret segue seguen seguid
    seguim seguin seguir seguit segund segura seguri seguro sehr sei sein seit seite seiten seja sejam sejfie sekcja sekcji sekild sekizl sekme sektio
    sekund sekwen selben selbst seleca selecc seleci select seleti seleto selett selezi self selinu selon sem sema semana semble sembol sembra sempli sempre
    senal senao send senden sendo senha senhas sens sensit senso sent senten sentid senza separa separe sequen ser sera seraie seran serao serem serial
    serie seront sertif serve server serveu servic servid servis serviz serwer ses sesi sesion sesji sessao sessio set seta setas sets settin setze setzen
    setzt seu seul seule seulem seuls seus severa sevido sey sezion sfondo shall shallo shape shared sharin she shell shift shmall shmmax short shorte
    should show showin shown sia siano sich sicher sicht sichtb sichte sicura sicure sicuro sid side sido sie siehe siempr siendo sifir sifird sifirl sifre
    sifrel sifres sig sign signaa signal signat signau signe signer signie signif signo sigue siguie sikist sil siler silne sim simbol simdi simdik simetr
    simge simila simple simply simult sin sinais sinal sinani since sincro sind single singol sinifi siniri sinist sinon sintac sintas sintax sinyal sirala
    sirasi sirve sistem sitio sito sitzun size sizes sjablo skip skippi skladn skopio skrawe skrawk skrot skroto skrotu skrypt slabe slecht sleute sloppy
    slot slow slowa slowem slowo sluite small sms sns sob sobre sobree sobrep sobres socket soeben sofort softwa soit soket sol sola solame solici solida
    soll sollen sollst sollte solo soluti som soma sombra sombre some soment someon someth somewh somme sommes son sonder sonek sonlan sono sonra sonrak
    sonras sonst sont sonu sonuc sonund soon soort soport sopra soquet sor sorgen sorma sormas sorry sort sorted sorter sortie sortow sorulm sorulu sorun
    sorunu sospec sostit sotto sottoc sottom sottop sottos souhai source souris sous souscr souven sowohl soz sozcuk sozdiz space spaces spacja spalte
    spanis spanni sparse spatie spazi spazia spazio spec specia specif specja specyf speich sperrd sperre split sposob sposta spoza sprach sprawd sprayi
    sprobo sprobu spuri sql sqlwor sqs srk srodow ssh ssl sslpas ssm sso sta staan staat stack stage stagin stai stale stampa stan stand standa standb
    stanie stanu stare stark start starte starti stary stash stashf stat stata state statem states stati static statis stato statt stattd status statut
    statys stderr stdin stdout stehen steht stel stelle step sterk stessa stesso stijl stil stile still stimme stimmt stock stocka stocke stolen stond stop
    stoppe stops storag store stored stosu str straci strate stream streng strg strict string stron strona strong stroni strony stroom struct strume strumi
    strutt sts stub stubs stunde stuur styl style stylu sua sub subcla subgra subkey sublin submit submod subpro subset subskr substi substr succes sucess
    such suche suchen sueco suffis suffix sufici sufijo sufixo sugger sui suite suivan suivi suivis suivre sujet sul sull sulla sulle sullo sum suma sun
    sunday sunu sunucu suo super supera superi superu suport supple suppli suppor suppre suppri suprim sur suraya sure surec sureci suresi surum surumu
    surven sus suscri sustit sutun swap switch swoje swojeg sygnal sym symbol symboo sync synchr synony syntax synthe sys systee system szablo szansa szerok
    taak taalre tab tabela tabeli tabell tabla tablas table tablea tables tablic tablo tablos tabula tache taches tag tage tagen tagkey taglic tagres tags
    tagu tahrip taille tajne tajneg tajny tak take taken takes takie takip takze tal talvez tam tamam tamaml tamanh tamano tambem tambie tampon tamsay
    tanimi taniml tanims taninm tant tanto tape tar tarafi tarea tareas tarefa target tarih tarihi tarjet tarzi tasa tasi tasmas tastat taste tasten tasti
    tastie tasto taux taxa team tecla teclad teclas ted tedesc tego teil teilen tej tek teken tekenr tekens tekrar tekst tekstu tel tela telech tell tells
    tem tema temas temel temell temin temp templa tempo tempor tempos temps ten tendra tenemo tener tenga tenta tentar tentat tente tenzij ter teraz tercei
    tercih terk term terme termin ters terug terugs terwij terzo tesekk test testin testo tests tetikl text texte texto textos texts tez than thank thanks
    that the their theirs them theme then there theref thesau these they think third this those though thread three thresh throug thumb thursd thus thx
    ticket tidak tiempo tiene tienen tiff tijd tijdel tijden tiklam time timeli timeou times timest tip tipi tipo tipogr tipos tirnak titel title titolo
    titre titulo tiver tla tls tlumac tmp toc toch toda todas todavi today todo todos toe toegan toeges toegev toekom toepas toesta toetse toevoe tofu
    togeth toggle token tokens told toma tomar tomorr tomt tonen tonigh too tool tools toont top toplam topo torna tornar torne torno tot totaal totais
    total totale totalm totdat touche toujou tous tout toute toutes tpm tra trabaj trabal tracci trace traceb tracej traci traduc traduz traili train trait
    traite trakci trakto tramit transa transf transi transl transp tras trata tratan travai traves treate tree trees tres tri trier trigge troca trocar
    tronca tronqu trop troppe troppi troppo trotzd trouve trova trovar trovat trudne true trunca trust try tryb trybie trybu trying tsquer tty tua tube
    tuberi tuesda tuhaf tukend tum tun tunel tuo tupel tupla tuplas tuple tuples tur turkis turtle turu tus tuslar tuslu tussen tusu tut tutte tutti tutto
    twee tweede twice two twoje tworze tych tylko tym tymcza typ type typed typen typeof types typing typow typs typu uber uberei uberge uberla uberpr
    ubersc uberse ubersp ubicac ubuntu uczyni udalo ugrar uguale uid uit uitgeb uitges uitgev uitpak uitsch uitvoe ukryci ukryte ukryty ulasil ulteri ultima
    ultimo ulusla uma umbena umbene umgang umgebu umgewa umwand una unable unas unbedi unbeka unbenu unbloc unchan und undefi under underl undire une unencr
    unerwa unexpe ungult unica unicas unico unicod unidad uniek uniewa unikal union unione unique unir unit unita unite unites univer univoc unix unklar
    unknow unless unlock uno unos unprot unread unreco unser unsern unset unsich unspec unsupp untagr unten unter unterb unterd unters until unut unuttu
    unvers unvoll update uplyni uprawn upstre uretil uretir uri url urls urucha urucho urzadz usa usada usadas usado usados usage usager usalo usan usando
    usar usara usaran usare usarla usarlo usarse usata usate usati usato usb usbgua uscita uscito use used useful useles user usermo userna users uses using
    usluge uslugi uso usos ust ustali ustaw ustawi ustkay usuall usuari usun usunac usunie usuwa usuwan uszkod utente utenti utf util utile utilic utilis
    utiliz utils utraci utworz uuid uwag uwaga uwierz uyari uyaris uye uygula uygun uymuyo uyumsu uyusma uzak uzerin uzgunu uzun uzunlu uzyc uzycia uzycie
    uzyciu uzyj uzyska uzyta uzyte uzytko uzyty uzywa uzywac uzywaj uzywan vacia vacio vacios vacuum vai val valabl vale valeur valid valida valide validi
    valido valor valore valori valt value valuee values van vanaf vandaa var varcha vardir variab varian varias variav varios varsa varsay vault vazia vazio
    vazios vea vecchi veces vecteu vedado vedere vedi veel veja vekil vekili veld velden veloci venceu vencid venga vengon venir venste ventan ver veralt
    verand verarb verbeu verbie verbin verbod verbun verdad verdec verder vereis verfal verfug vergeb vergel verges verget vergle vergre verhal veri verifi
    verify verild verile verili verilm verin verini verir verisi verita veriyi verkee verknu verkre verkri verlan verloo verlop verlor vermel vermes vermez
    vero veroud verpla verpli verr verra verran verrou vers versao versch versie versio versle versoe versuc vertal vertex vertic vertik vertra verval
    vervan verwac verwei verwen verwer verwij very verz verzei verzoe veuill veya vez vezes vfp via viaje viaser vida vide video vides vieja viele vielle
    viene vieux view viewpo views vincol vincul vinden vir virgol virgul virtua visao visibi visibl visive vista vistas viste visto visual voce voci voer
    voeren void voir volcad volgen volled vollst volta volte volume volver vom von voor vooral voorda voorlo vor vorabt vorber vorein vorgab vorhan vorher
    vorm vorsch vos votre voulez vous voyez vpc vpn vraag vraagt vragen vrai vraime vrijsc vtable vue vuelva vues vuoi vuota vuoti vuoto waar waarde waarin
    waarsc wachte wachtw waf wahl wahlen wahlt wahr wahren wahrsc wait waitin wajib wal wallet wann wannee want wanted wants war warc warnin warnun warten
    wartos warum was wat watkow way wazne wazneg waznos wczyta weak web wechse weder wedlug wednes weer weerge weet weg wegen wegens weglat weight weil
    weise weiss weiter wejsci welche welke well wenden wenig wenige wenn went werase werd werden were werkbl werkel werkma werkt werkze wersja wersje wersji
    wert werte wewnat wewnet what whatis when where whethe which while whites who whom whose why wiadom wichti wideo widerr widers widget width widzet wie
    wiecej wieder wiek wieksz wiele wielu wiersz wifi wijzig will willek willst win window wird wirkli wisdom with within withou witrui wlacze wlaczo wlan
    wlasci wlasne wobei wokol wollen wollte word worden words wordt work worked worker workin works worksp worktr world wort worter would wpis wpisac wpisow
    wpisu wpisyw wpisz wplywa wprowa wrap wrappe writab write writin writte wrong wsgi wskazu wspier wstepn wszyst wurde wurden wybier wybor wyboru wybrac
    wybran wyeksp wygasa wygasl wygasn wygene wyjsci wykluc wykona wykryt wylacz wylogo wymaga wymusz wynik wyniku wynosi wypisa wypisu wypisy wypisz wyraze
    wyrown wyslac wyslan wysoko wystap wystaw wyswie wyszuk wywola wyzwal wyzwan wzgled wzorca wzorco wzorze xattr xgette xml xor xray yalniz yama yanlis
    yap yapana yapar yapi yapila yapils yapisi yardim yarin yasand yatay yaz yazar yazdir yazi yazici yazila yazild yazili yazin yaziti yazma yazmac year
    yedegi yedek yedekl yeni yenide yenisa yer yerdeg yerel yeri yerine yes yester yet yetene yeterl yeters yetkil yield yields yine yok yoksa yoksay yol
    yollar yolu yonerg yoneti yontem you your yours yuklem yuklen yuksek yururl yuva yyyy zabezp zablok zachow zaczyn zadan zadani zaden zadnej zadnyc
    zagine zahl zahlen zaimpo zainst zajety zakonc zakres zaktua zal zalezn zaman zamana zamani zamias zamkna zanim zapaso zapis zapisa zapiso zapisu zapisy
    zapomn zapyta zarf zaslep zasobo zasobu zaszyf zaten zaufan zawart zawier zawsze zayif zbioru zbyt zdalne zeby zeiche zeige zeigen zeigt zeile zeilen
    zeinle zeit zeitle zeitli zeitst zeitub zero zeros zertif zetten zezwol zgadza zgodni zich zie ziehen ziel ziffer zignor zijn zit zkette zla zle zly
    zmian zmiana zmiane zmiany zmieni zmienn zna znaczn znak znaki znakie znakow znaku znalez znam znanym zoals zobacz zoeken zonder zone zones zor zorla
    zorlan zorlay zorunl zostac zostal zostan zou zowel zrodel zrodla zrodlo zuerst zufall zugang zugegr zugeor zugewi zugrei zugrif zukunf zuletz zum zur
    zuruck zusamm zusatz zustan zuvor zwak zwei zweima zwisch zwraca zwykle zwykly
""".split()  # noqa: SIM905

STEMS = frozenset((*_OF_PROGRAMS, *STEMS_LATIN))
EVERYDAY = frozenset(word[:_LONG] for word in (*LATIN, *MORE_LATIN))
