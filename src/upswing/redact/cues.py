"""Which words stand right before a password in a sentence, and which stand in between?"""

from __future__ import annotations

OF = frozenset(
    "for of on at from by user host server version line step page von vom fur bei der des dem du de des pour chez del para en di da per do van voor bij dla od u w".split()  # noqa: SIM905
)
"""Words before the name of a thing: `the password for node14`."""
CUES = frozenset(
    """
    is was are were be been becomes became equals remains stays still now to as called named type types enter enters entered use uses used using try tries tried put put in insert takes say says reads set made make chose choose has have got
    ist war sind waren wird wurde sei ware sein lautet lautete heist heisst bleibt blieb auf als gib gibt gebe geben tippe tippen nimm nehme nehmen nutze nutzt nutzen verwende verwenden probier probiere versuch versuche setze setz stell stelle sondern hab habe haben ich glaub glaube hat hatte
    est etait sera serait c'est reste devient comme tape tapez mets mettez mis entre entrez saisis saisissez utilise utilisez essaie essayez par a en sur mais
    es era sera seria sigue siendo queda como escribe escriba pon ponga puse usa use utiliza prueba pruebe tiene introduce introduzca a por en sino
    e foi era sera continua fica ficou sendo como digite digita escreva coloque coloca coloquei use usa utilize tenta tente tem insira para por
    e era sara resta rimane come scrivi scriva metti metta usa usi utilizza prova provi messo utilizzi ha inserisci inserisca in a su ma
    is was wordt blijft luidt als typ vul gebruik probeer voer zet op naar in maar
    jest to bylo byl brzmi bedzie jako wpisz podaj uzyj sprobuj ustaw ustawilem ma na lecz tylko
    olarak idi oldu yap yaz kullan gir dene hep simdi artik hala
    fue quedo ecrit escribe pra serait schreibt
    ar er var ta satt satte anvand skriv prova testa blir brug bruk prov indtast skriv on oli ovat kayta laita kirjoita anna volt lett legyen hogy ird hasznald je jsou byla bylo zustava pouzij zadej napis este sunt era foloseste introdu
    been sido stata stato ete it's that's es's c'etait
    """.split()  # noqa: SIM905
)
"""Words right before a value: what it is, what it is set to, what is done with it."""
TYPING = frozenset(
    """
    type enter typing entering tipp tippe tippt gib gebt tape tapez taper saisis saisissez saisir mettre mets mettez escribe escriba teclea teclee poner pon digita digite digitar por poe scrivi scriva scrivere inserisci
    mettere typ vul wpisz wpiszcie podaj
    """.split()  # noqa: SIM905
)
"""What is done with a value before the password is asked for: `type … when it asks for the password`."""
SHORT_CUES = frozenset("is be es it's as".split())  # noqa: SIM905
"""Those of two letters, which tell nothing where another word stands between."""
ADVERBS = frozenset(
    """
    still now currently just simply probably again always then only actually apparently maybe following here incidentally
    noch immer jetzt nun derzeit aktuell einfach wieder wohl also doch mal bitte ubrigens bisher nicht mehr nur folgendes nochmal
    toujours encore maintenant desormais actuellement simplement bien juste plus pas
    ahora todavia aun siempre simplemente actualmente ya no
    agora ainda sempre simplesmente atualmente mesmo nao mais
    ora ancora adesso sempre semplicemente attualmente non piu
    nog steeds nu altijd gewoon niet meer
    teraz nadal ciagle obecnie wciaz juz nie
    all both alle beide alles tous toutes todas todos ambas tutte tutti allemaal allebei bada begge alla wszystkie vsechna obe stale porad fortfarande stadig fortsatt yha edelleen mindig meg toate inca tot
    vorerst voorlopig simdilik provisoirement provisoriamente dostepu schon ever altijd al immer toujours ete siempre sempre stata stato zawsze hep suivant siguiente seguinte seguente folgende nastepujace
    new old temporary neu neue neues alt alte altes nuevo nueva antigua vieja novo nova antiga nuova vecchia nouveau nouvelle ancien nowe stare nieuw oud yeni eski temporanea temporaria temporal provisoire
    """.split()  # noqa: SIM905
)
"""Words that may stand between a cue and the value."""

SERVICES = frozenset(
    """
    netflix spotify amazon paypal ebay facebook instagram twitter linkedin whatsapp telegram discord slack zoom teams skype youtube tiktok reddit pinterest snapchat
    google gmail outlook hotmail yahoo icloud apple microsoft office365 onedrive dropbox sharepoint windows linux ubuntu debian fedora android macos bios fritzbox fritz!box steam
    django flask rails laravel symfony spring wordpress drupal joomla magento jenkins jira confluence bitbucket gitlab github gitea docker kubernetes openshift rancher ansible terraform
    grafana kibana prometheus elasticsearch mysql mariadb postgres postgresql mongodb redis oracle sqlite cassandra rabbitmq kafka keycloak nextcloud owncloud odoo moodle salesforce
    bitwarden keepass lastpass 1password firefox chrome safari thunderbird excel word acrobat proxmox vmware synology plesk cpanel phpmyadmin pgadmin portainer superset airflow jupyter
    """.split()  # noqa: SIM905
)
"""Programs and services of which people have a password; a sentence names them to say whose it is."""

LATIN_NAMES = frozenset(
    "root admin administrator wifi wi-fi wlan vpn windows linux gmail google apple icloud github gitlab mysql postgres redis ssh ftp sudo user username login email mail api bios excel pdf zip word docker vps sql ok id qq wechat line pin hash md5 sha256 bcrypt uac ldap admin-user db database reset manager null none".split()  # noqa: SIM905
)
"""Latin words in sentences of other scripts that name whose password it is."""
