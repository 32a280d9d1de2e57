"""What do people call a code that opens, unlocks, activates or confirms something, in eighteen languages?

A code without such a word (*error code*, *code postal*, *Fehlercode*) is a number like any other.
Written without accents, as folding leaves them; both the engines and the rules read this list.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from itertools import product


def _join_parts(firsts: str, lasts: str, between: str = "|") -> tuple[str, ...]:
    """Each first part with each last one; `between` lists what joins them."""
    return tuple(
        (first + join + last).replace("_", " ")
        for first, join, last in product(firsts.split(), between.split("|"), lasts.split())
    )


_ENGLISH = "activation unlock unlocking confirmation verification security one-time door gate entry alarm auth authentication sms release pickup pick-up collection sign-in signin log-in login pairing safe locker two-factor 2-step entrance"
_GERMAN = "aktivierungs freischalt freischaltungs entsperr entsperrungs bestatigungs sicherheits einmal freigabe anmelde verifizierungs verifikations pruf abhol tur haustur tor alarm zutritts tresor safe kopplungs registrierungs authentifizierungs autorisierungs wiederherstellungs login sms"
_DUTCH = "activatie activerings ontgrendel ontgrendelings bevestigings verificatie beveiligings deur poort alarm afhaal inlog controle herstel eenmalige_ sms"
_NORDIC = "aktiverings upplasnings bekraftelse bekraftelses bekreftelses verifierings verifiserings engangs port dorr dor sakerhets sikkerheds sikkerhets oplasnings opplasings opplasnings hamtnings larm inloggnings sms"
_FINNISH = "aktivointi avaus vahvistus varmennus ovi turva kerta nouto vapautus varmistus"
_HUNGARIAN = "aktivalo aktivalasi aktivacios megerosito megerositesi feloldo feloldasi ellenorzo hitelesito biztonsagi belepesi azonosito visszaigazolo egyszeri atveteli kapu"
_TURKISH = "aktivasyon onay dogrulama kilit_acma guvenlik giris etkinlestirme teslimat teslim kapi tek_kullanimlik sms"
_CZECH = "aktivacni aktivacny odblokovaci potvrzovaci potvrdzovaci overovaci pristupovy bezpecnostni bezpecnostny jednorazovy autorizacni"
_FRENCH = "d'activation d'entree d'authentification d'autorisation d'identification de_deverrouillage de_deblocage de_confirmation de_validation de_verification de_securite de_retrait de_connexion de_recuperation de_la_porte du_portail a_usage_unique sms confidentiel"
_SPANISH = "de_activacion de_desbloqueo de_confirmacion de_verificacion de_recogida de_seguridad de_autorizacion de_validacion de_entrada de_un_solo_uso sms"
_PORTUGUESE = "de_ativacao de_activacao de_desbloqueio de_confirmacao de_verificacao de_seguranca de_levantamento de_validacao de_autorizacao de_entrada de_uso_unico"
_ITALIAN = "di_attivazione di_sblocco di_conferma di_verifica di_sicurezza di_ritiro di_autorizzazione di_convalida di_autenticazione monouso sms"
_ROMANIAN = "de_activare de_deblocare de_confirmare de_verificare de_securitate de_siguranta de_ridicare de_autentificare de_validare de_acces"
_POLISH = "aktywacyjn aktywacji odblokowuj odblokowani potwierdz weryfikacyjn weryfikacji odbioru autoryzac jednorazow bezpieczenstwa do_drzwi do_bramy do_domofonu sms"


def any_word_pattern(words: Iterable[str]) -> str:
    """An expression for any of these words, the longest first, that shares their beginnings: it fails fast.

    >>> any_word_pattern(["doorcode", "doorway", "gatecode"])
    '(?:door(?:code|way)|gatecode)'
    """
    return _alternation_of(sorted({word for word in words if word}))


def _alternation_of(words: list[str]) -> str:
    groups: dict[str, list[str]] = {}
    for word in words:
        groups.setdefault(word[:1], []).append(word)
    ends = groups.pop("", None)
    parts = []
    for group in groups.values():
        first, last = group[0], group[-1]  # sorted: what these share, all of them share
        same = [a == b for a, b in zip(first, last, strict=False)]
        common = first[: [*same, False].index(False)]
        rest = [word[len(common) :] for word in group]
        parts.append(re.escape(common) + (_alternation_of(rest) if any(rest) else ""))
    joined = "|".join(parts)
    if ends:
        return f"(?:{joined})?"
    return f"(?:{joined})" if len(parts) > 1 else joined


CODE_WORDS = tuple(
    dict.fromkeys(
        (
            *_join_parts(_ENGLISH, "code", " |-"),
            *_join_parts(_GERMAN, "code", "|-"),
            *_join_parts(_DUTCH, "code", "|-"),
            *_join_parts(_NORDIC, "kod", "|-"),
            *_join_parts(_FINNISH, "koodi"),
            *_join_parts(_HUNGARIAN, "kod", "| "),
            *_join_parts(_TURKISH, "kodu", " "),
            *_join_parts(_CZECH, "kod", " "),
            *_join_parts("code", _FRENCH, " "),
            *_join_parts("codigo", f"{_SPANISH} {_PORTUGUESE}", " "),
            *_join_parts("codice", _ITALIAN, " "),
            *_join_parts(
                "cod codul codul_tau codul_dvs codul_dumneavoastra codul_meu", _ROMANIAN, " "
            ),
            *_join_parts("kod kodu kodem", _POLISH, " "),
            "geheimzahl",
        )
    )
)
"""How such a name begins; endings follow (`aktiveringskoden`, `aktivointikoodisi`, `kodunuz`)."""
