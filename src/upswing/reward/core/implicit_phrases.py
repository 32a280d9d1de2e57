"""With which words do people thank, contradict, and soften what they say? Ten languages, as data.

Phrases are written as people write them, accents and all; reading folds both sides alike. `{a|b}` stands for
either, `{|a}` for perhaps, `_` for any one word. A phrase that ends with a full stop stands alone: punctuation or the end of the
message follows it. So "wrong." finds "Wrong, look again" and not "Wrong cells are marked red".

| row          | what it holds                                                                          |
|--------------|----------------------------------------------------------------------------------------|
| `wrong`      | it says for sure that the answer was not it                                             |
| `again`      | it asks for another answer; less sure                                                   |
| `maybe`      | it may say so, and may as well be about something else                                  |
| `no`         | a contradiction where a pause or one of `no_goes_on` follows                            |
| `no_innocent`| what makes a "no, …" polite: nothing is contradicted                                    |
| `thanks`     | thanks                                                                                  |
| `thanks_for` | what belongs to the thanks                                                              |
| `not_thanks` | what follows "thanks" where nobody thanks for an answer: in advance, thanks to          |
| `mocking`    | what makes thanks a complaint                                                           |
| `praise`     | before thanks, or alone                                                                 |
| `lead`       | says nothing by itself                                                                  |
| `contrast`   | takes back what stands before it                                                        |
| `trouble`    | words beside which thanks and praise may be bitter                                      |
| `text_work`  | what is done with a text: what stands beside it may be that text, and nobody's opinion  |

Where words are not separated, `wrong` and `again` with a full stop are `maybe` inside a longer word.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Phrases:
    """How one language says it."""

    wrong: tuple[str, ...]
    again: tuple[str, ...]
    maybe: tuple[str, ...]
    no: tuple[str, ...]
    no_goes_on: tuple[str, ...]
    no_innocent: tuple[str, ...]
    thanks: tuple[str, ...]
    thanks_for: tuple[str, ...]
    not_thanks: tuple[str, ...]
    mocking: tuple[str, ...]
    praise: tuple[str, ...]
    lead: tuple[str, ...]
    contrast: tuple[str, ...]
    trouble: tuple[str, ...]
    text_work: tuple[str, ...]


LANGUAGES: dict[str, Phrases] = {
    "en": Phrases(
        wrong=(
            "{that|it|this}{'s|s| is| was} {|still |completely |just |simply }{wrong|incorrect}.",
            "{that|it|this}{'s|s| is| was} {wrong|incorrect} {again|though|too|because|since|and|as}",
            "{that|it|this}{'s|s| is| was} not {right.|correct.|what {i|we|you}|how {i|we|you|it}|quite {right|correct|what|it.|there.}}",
            "{that|it|this}{'s|s| is| was} not it.", "{that|it|this} {isn't|isnt|wasn't} {right.|correct.|what {i|we|you}|it.}",
            "not what i {asked|wanted|meant|said|need}", "not {quite|right|correct}{ what|.}", "wrong.", "wrong {answer|again}.", "incorrect.",
            "you {|have |completely |still }{misunderstood|ignored|misread} {me|my|the|what|it}", "you {|completely |still |again }{forgot|missed} {to|the {column|file|test|second|last|first|rest|point|question}|that|one|something|half}",
            "you {didn't|did not} {do|answer|read|follow|listen|understand}",
            "{|it |this |that |your {code|answer|fix|solution|version} }{|still }{doesn't|doesnt|does not|didn't|did not} {work|help|compile|run}",
            "{it|this|that}{'s|s| is} {|still }not working", "{|it's |it is |that's }{|still |again }the same {error|problem|result|mistake}", "{|still }same {error|problem|mistake}.",
            "{|it |this |that |it's |it is |that's }still {wrong.|broken.|fails|failing|failed.|crashes|not {working|right|correct|fixed|what|it.|there.}|{doesn't|does not} {work|compile|run|help|pass}|{isn't|is not} {working|right|correct|fixed|what|it.|there.}}",
        ),
        again=(
            "i {asked you|meant {the|a|an|that|this|it|in|with|only|not|my|your|for|on|by|column}|said not|told you {to|not|that}}", "as i {said|asked|wrote}",
            "{|please |let's }try {|it |this |that }again{.| please}",
            "your _ {is|was|are|were} {|still |also |just }{wrong|incorrect|broken|missing|not right|not correct|not working}", "your _ {still |}{doesn't|does not|didn't|did not} {work|compile|run|help}",
            "you {got|have|did|put|made} {|_ |_ _ |_ _ _ }wrong", "you {|still |again }{didn't|did not|haven't|have not|left out|skipped|broke|changed} {do|answer|read|follow|include|use|add|the|my|what|it}", "i still {get|got} {|_ }{error|errors}",
            "{re|un}do {it|this|that|everything|your {changes|change|work|last change}}.", "{re|un}do.", "please {fix|correct} {it|this|that|your {answer|code|reply|mistake|mistakes|error|errors|solution}}.",
        ),
        maybe=(
            "{the|this|that|these|those} _ {is|was|are|were} {|still |also |just }{wrong|incorrect|broken|missing|not right|not correct|not working}", "{the|this|that} _ {still |}{doesn't|does not|didn't|did not} {work|compile|run|help}",
            "you {|have |completely |still }{forgot|missed|misunderstood|ignored|misread|skipped|changed}", "i {asked for|wanted {a|an|the|it|only}|said {to|that|it}|told you}", "i {get|got} {|_ }{error|errors}",
            "{|please }do {it|this|that} again{.| please}", "{once |}again{ please|.}", "wrong answer", "{that|it|this}{'s|s| is| was} not {right|correct}",
        ),
        no=("no", "nope", "nah"),
        no_goes_on=("that", "this", "it", "you", "i", "not", "the", "don't", "do not", "please"),
        no_innocent=(
            "{that|it}{'s|s| is| will be} {all|fine|ok|okay|good|it|everything|enough|alright|great|perfect|right|correct}",
            "i{'m| am|m} {good|fine|done|ok|okay|happy|all set}", "nothing {else|more}", "all good", "never mind",
            "{|it's |it is |that's }{no problem|not necessary|not needed|not a problem}", "you {did|are|were} {great|fine|right|good}", "need", "worries",
        ),
        thanks=("thanks", "thank you", "thank u", "thx", "many thanks", "cheers{.| mate}", "tysm.", "ty.", "much appreciated", "{|i }appreciate it"),
        thanks_for=(
            "so much", "very much", "a {lot|bunch|ton|million}", "again", "{|for }{|all |your |the }{help|helping|quick {help|answer|reply}|explanation|explaining}",
            "for {that|this|everything}", "everyone", "buddy", "mate", "you {rock|are great}",
        ),
        not_thanks=("in advance", "to", "but no thanks", "giving", "card", "cards", "note", "notes", "letter", "email", "message", "page", "in {french|german|spanish|chinese|japanese|italian|russian}"),
        mocking=("for {nothing|wasting|breaking|ruining|deleting|losing}", "a lot for {nothing|breaking|wasting}"),
        praise=("{that's |it's |this is |}perfect", "{great|awesome|excellent|brilliant|wonderful|amazing|fantastic|nice|cool|super}", "{|that |it |this |now it }{works|worked}{| now| great| fine| perfectly}", "{well|nicely} done", "{|that |this |it }{fixed|solved|did} {it|the {trick|problem|issue}}", "you{'re| are} {the best|awesome|amazing}", "good {job|work}", "exactly"),
        lead=("{oh|wow|ok|okay|hm|hmm|hmmm|um|uh|ah|well|sorry|hey|yes|yeah|yep|right|please|so|and|actually|wait|listen|look}",),
        contrast=("but", "however", "though", "except", "only", "yet"),
        trouble=("{wrong|incorrect|error|errors|broken|broke|breaks|fail|fails|failed|failing|failure|crash|crashes|crashed|bug|bugs|useless|worse|worst|still|deleted|lost|never|nothing|not|no|cannot|can't|doesn't|didn't|don't|isn't|wasn't|won't|terrible|garbage|unfortunately|disaster}",),
        text_work=("{translate|summarise|summarize|rewrite|rephrase|paraphrase|proofread|reword|{what|who} does {this|it|that} mean|{is|was} this {email|message|sms|mail|letter}|{said|says} the}",),
    ),
    "de": Phrases(
        wrong=(
            "das {ist|war|stimmt} {|so |leider |immer noch |noch }{falsch|nicht richtig|nicht korrekt|nicht das|nicht was|nicht ganz}",
            "{das|es} stimmt {|so |leider |immer noch }nicht", "stimmt {|so |leider }nicht", "falsch.", "leider {falsch|nicht richtig}", "nicht {richtig|ganz}.",
            "nicht das{, was ich| was ich}", "du hast {|mich |das |etwas |die |den |wieder }{vergessen|falsch|missverstanden|übersehen|ignoriert}",
            "{das|es} {funktioniert|geht|klappt|läuft} {|so |leider |immer noch |noch |noch immer }nicht", "{funktioniert|geht|klappt} {|so |leider |immer noch |noch }nicht",
            "{immer noch|noch immer|weiterhin} {falsch.|kaputt.|nicht {richtig|korrekt|das}.|ein fehler|derselbe fehler}",
        ),
        again=("ich {meinte|habe gesagt|sagte doch|hatte gesagt|wollte doch}", "{versuch es |versuche es |versuchs }{noch mal|nochmal|noch einmal|erneut}.", "du hast {_ |_ _ |_ _ _ }{vergessen|übersehen|falsch|ignoriert|weggelassen}", "{dein|deine} _ {ist|sind|war|waren} {|immer noch |leider |noch }{falsch|kaputt|nicht richtig|nicht korrekt}", "{dein|deine} _ {funktioniert|geht|läuft|stimmt} {|immer noch |leider }nicht", "{|immer noch |wieder }{derselbe|der gleiche} fehler", "bitte {korrigiere|korrigier|berichtige} {das|es|dies|deine antwort|deinen {code|fehler}}.", "mach das rückgängig."),
        maybe=("{|bitte |mach es |mach das }{noch mal|nochmal|noch einmal|erneut}", "{der|die|das|diese|dieser} _ {ist|sind|war|waren} {|immer noch |leider |noch }{falsch|kaputt|nicht richtig|nicht korrekt}", "{der|die|das} _ {funktioniert|geht|läuft|stimmt} {|immer noch |leider }nicht"),
        no=("nein", "nee", "nein nein"),
        no_goes_on=("das", "es", "du", "ich", "nicht", "so", "bitte"),
        no_innocent=("das {ist alles|war alles|reicht|passt|ist gut|ist ok|ist okay|ist in ordnung|stimmt so|war's}", "{alles|schon} {gut|klar|okay|in ordnung}", "nichts weiter", "mehr nicht", "nicht nötig", "ich bin {fertig|zufrieden}", "kein problem"),
        thanks=("danke", "danke schön", "dankeschön", "danke sehr", "vielen dank", "besten dank", "herzlichen dank", "tausend dank", "ich danke dir", "merci."),
        thanks_for=("{dir|ihnen|euch}", "{|für }{|die |deine |ihre |das }{hilfe|schnelle hilfe|schnelle antwort|erklärung|antwort}", "dafür", "sehr", "schön", "vielmals", "nochmals"),
        not_thanks=("im voraus", "schon mal im voraus", "der", "des", "sagen", "auf"),
        mocking=("für {nichts|gar nichts}", "auch für nichts"),
        praise=("{perfekt|super|klasse|toll|prima|wunderbar|großartig|spitze|genau|sehr gut|gut gemacht|sehr schön|top}", "{|das |es |jetzt |nun }{funktioniert|klappt|geht|läuft|passt}{| jetzt| nun| super| gut}"),
        lead=("{oh|ok|okay|hm|hmm|äh|ähm|ach|na ja|naja|also|sorry|ja|tja|bitte|und|entschuldigung|moment|halt|doch}",),
        contrast=("aber", "allerdings", "jedoch", "nur", "trotzdem", "leider"),
        trouble=("{falsch|fehler|kaputt|defekt|nicht|kein|keine|nichts|nie|absturz|abgestürzt|gelöscht|verloren|schlimmer|schlecht|leider|immer noch|schrott|mist}",),
        text_work=("{übersetze|übersetz|übersetzen|fasse|zusammenfassen|umschreiben|formuliere|formulier|was bedeutet|was heißt}",),
    ),
    "fr": Phrases(
        wrong=(
            "{c'est|cest|c'était} {|toujours |encore |complètement }{faux|incorrect|erroné|pas ça|pas juste|pas correct|pas ce que|pas bon|pas exact}",
            "ce {n'est|n'était} {pas|toujours pas} {ça|ce que|juste|correct|bon|exact}", "{faux|incorrect}.", "pas {ce que j'ai|exactement|tout à fait}", "{tu as|vous avez|t'as} {|encore |mal }{oublié|compris|ignoré|raté|mal compris}",
            "{|ça |cela |il }{ne |}{marche|fonctionne} {pas|toujours pas}", "toujours {faux.|pas.|la même erreur|une erreur|cassé.}",
        ),
        again=("je {voulais dire|vous ai demandé|t'ai demandé|parlais de|n'ai pas demandé}", "{tu t'es|vous vous êtes} {trompé|trompée|trompés}", "{tu as|vous avez} {_ |_ _ }{oublié|ignoré|raté}", "{ta|ton|votre} _ {est|sont} {|toujours |encore }{faux|fausse|incorrect|incorrecte|cassé}", "{ton|votre} _ ne {marche|fonctionne} pas", "{|toujours |encore }la même erreur", "{|s'il te plaît |s'il vous plaît }{réessaie|réessayez|recommence|recommencez|refais|refaites|{corrige|corrigez}{| ça| cela| ta réponse| votre réponse| ton code}}.", "{essaie encore|essayez encore}."),
        maybe=("{le|la|les|cette|ce} _ {est|sont} {|toujours |encore }{faux|fausse|incorrect|incorrecte|cassé}", "{le|la} _ ne {marche|fonctionne} pas", "j'ai {demandé|dit}", "{corrige|corrigez|refais|refaites}", "encore une fois."),
        no=("non", "nan"),
        no_goes_on=("ce", "c'est", "tu", "vous", "je", "pas", "ça", "il"),
        no_innocent=("{c'est|ce sera|ça sera} {bon|tout|parfait|bien|ok}", "ça {va|ira|suffit}", "rien d'autre", "pas {de problème|besoin|de souci|nécessaire}", "tout va bien"),
        thanks=("merci", "merci beaucoup", "merci bien", "mille mercis", "un grand merci", "je {te|vous} remercie"),
        thanks_for=("beaucoup", "bien", "infiniment", "à {toi|vous|tous}", "{pour |}{|ton |votre |l'|la |cette |ta }{aide|explication|réponse|réponse rapide}", "encore", "mille fois"),
        not_thanks=("d'avance", "par avance", "de", "à l'avance"),
        mocking=("pour rien",),
        praise=("{parfait|super|génial|excellent|bravo|nickel|impeccable|formidable|top|très bien|bien joué|exactement}", "{|ça |cela |maintenant ça }{marche|fonctionne}{| maintenant| bien| parfaitement}"),
        lead=("{oh|ok|hm|hmm|euh|ah|bon|ben|bah|désolé|pardon|oui|alors|et|attends|attendez|en fait|d'accord}",),
        contrast=("mais", "cependant", "par contre", "pourtant", "sauf", "toutefois"),
        trouble=("{faux|erreur|erreurs|cassé|pas|plus rien|jamais|échoue|échoué|planté|plante|bug|perdu|supprimé|pire|nul|malheureusement|toujours pas}",),
        text_work=("{traduis|traduisez|traduire|résume|résumez|résumer|reformule|reformulez|réécris|réécrivez|que veut dire|que signifie}",),
    ),
    "es": Phrases(
        wrong=(
            "{|eso |esto }{está|es|estaba} {mal|incorrecto|equivocado|erróneo}", "{|eso |esto |así }no {es|era} {correcto|eso|lo que|así|cierto}", "{|eso |esto |aún |todavía |sigue }{no funciona|no funcionó|sin funcionar|no sirve|no compila}",
            "{incorrecto|equivocado|mal}.", "te {|has }{olvidaste|olvidado|equivocaste|equivocado|faltó}", "{has|me has} {olvidado|ignorado|entendido mal|malinterpretado}", "no {es lo que|entendiste|has entendido|me has entendido|leíste}", "sigue {mal|fallando|igual|roto|dando error}", "{todavía|aún} {está mal|falla.|no {funciona|está bien|es correcto|compila}}",
        ),
        again=("{quise|quería} decir", "{te |}{pedí|dije|he pedido|había pedido} {que|un|una|el|la|otra}", "{|por favor }{inténtalo|inténtelo|hazlo|intenta} {de nuevo|otra vez}", "tu _ {está|es|sigue} {|siendo }{mal|incorrecto|incorrecta|roto|rota}", "tu _ {|todavía |sigue }{no funciona|sin funcionar|no compila}", "{el|la} mismo error", "{has|te has} {_ |_ _ }{olvidado|ignorado|equivocado}", "{corrige {eso|esto|tu {respuesta|código}}|corrígelo|corríjalo|deshazlo|rehazlo}."),
        maybe=("{el|la|esta|este} _ {está|es|sigue} {|siendo }{mal|incorrecto|incorrecta|roto|rota}", "{el|la|este} _ {|todavía |sigue }{no funciona|sin funcionar|no compila}", "{otra vez|de nuevo}.", "corrige"),
        no=("no",),
        no_goes_on=("eso", "esto", "así no", "yo"),
        no_innocent=("{eso|con eso|así} {es todo|está bien|basta|es suficiente}", "{está|todo} bien", "nada más", "hace falta", "hay {problema|de qué}", "te preocupes", "es necesario", "eso sería todo"),
        thanks=("gracias", "muchas gracias", "mil gracias", "muchísimas gracias", "te lo agradezco", "se lo agradezco"),
        thanks_for=("{por |}{|tu |su |la |toda la |la }{ayuda|explicación|respuesta|rápida respuesta}", "por todo", "a ti", "de nuevo", "de verdad", "amigo"),
        not_thanks=("de antemano", "por adelantado", "a", "al"),
        mocking=("por nada.",),
        praise=("{perfecto|genial|excelente|estupendo|fantástico|bravo|exacto|muy bien|bien hecho|buen trabajo|súper|buenísimo}", "{|ya |ahora |ahora sí }{funciona|sirve}{| ya| bien| perfectamente}"),
        lead=("{oh|ok|okay|vale|hm|hmm|eh|ah|bueno|pues|perdón|perdona|sí|y|oye|espera|mira|en realidad}",),
        contrast=("pero", "sin embargo", "aunque", "salvo", "excepto"),
        trouble=("{mal|error|errores|roto|falla|falló|fallo|no|nada|nunca|perdido|borrado|peor|inútil|todavía|sigue|desgraciadamente|lamentablemente}",),
        text_work=("{traduce|traduzca|traducir|tradúcelo|resume|resúmelo|resumir|reescribe|reescriba|parafrasea|qué significa}",),
    ),
    "pt": Phrases(
        wrong=(
            "{|isso |isto |ainda }{está|é|estava} {errado|incorreto|errada|mal}", "{|isso |isto |ainda |assim |continua }não {está {certo|correto|funcionando|a funcionar}|é {isso|o que|bem isso|assim}|funciona|funcionou|era {isso|o que}|compila}", "{errado|incorreto}.", "você {|se }{esqueceu|ignorou|errou|entendeu errado|não entendeu|não leu}", "{continua|ainda está} {errado|falhando|quebrado|dando erro|a falhar}",
        ),
        again=("{eu |}{quis dizer|queria dizer|pedi {que|um|uma|para|o|a}|disse que}", "{|por favor }{tente|tenta|faça|faz} {novamente|de novo|outra vez}", "{seu|sua} _ {está|é|continua} {errado|errada|incorreto|incorreta|quebrado}", "{seu|sua} _ {|ainda }não {funciona|compila|está certo}", "o mesmo erro", "você {_ |_ _ }{esqueceu|ignorou|errou}", "{corrija|corrige|refaça|desfaça} {isso|isto|sua resposta|seu código}."),
        maybe=("{o|a|este|esta} _ {está|é|continua} {errado|errada|incorreto|incorreta|quebrado}", "{o|a} _ {|ainda }não {funciona|compila|está certo}", "{de novo|outra vez|novamente}.", "{corrija|corrige|refaça}"),
        no=("não", "nao"),
        no_goes_on=("isso", "isto", "é", "você", "eu"),
        no_innocent=("{é só isso|isso é tudo|só isso|era só isso|está {bom|ótimo|bem}|tudo {bem|certo}|tá bom}", "nada mais", "precisa", "há problema", "tem problema", "se preocupe"),
        thanks=("{|muito }{obrigado|obrigada}", "valeu", "{te |}agradeço", "brigado.", "brigada."),
        thanks_for=("{por |pela |pelo |}{|sua |a |tua }{ajuda|explicação|resposta}", "por tudo", "mesmo", "demais", "novamente", "a você"),
        not_thanks=("desde já", "antecipadamente", "a"),
        mocking=("por nada.",),
        praise=("{perfeito|ótimo|excelente|maravilha|maravilhoso|legal|bacana|show|exato|muito bem|bom trabalho|beleza|fantástico}", "{|agora |já |isso }{funciona|funcionou}{| agora| bem| perfeitamente}"),
        lead=("{oh|ok|okay|hm|hmm|eh|ah|bom|bem|desculpe|desculpa|sim|e|então|olha|espera|espere|na verdade}",),
        contrast=("mas", "porém", "contudo", "no entanto", "só que", "exceto"),
        trouble=("{errado|erro|erros|quebrado|falha|falhou|falhando|não|nada|nunca|perdido|apagou|pior|inútil|ainda|infelizmente}",),
        text_work=("{traduza|traduz|traduzir|resuma|resume|resumir|reescreva|reescreve|parafraseie|o que significa}",),
    ),
    "it": Phrases(
        wrong=(
            "{|questo |ancora }{è|era} {|ancora }{sbagliato|errato|scorretto|sbagliata}", "{|questo |così |ancora }non {è {giusto|corretto|quello che|quello|così|ciò che}|era quello che|funziona|ha funzionato|va bene|compila}", "{sbagliato|errato}.", "{hai|ti sei} {dimenticato|ignorato|saltato|sbagliato|frainteso|capito male}", "non hai {capito|letto|fatto|seguito}", "{continua a|ancora} non {funziona|funzionare|va.|è {giusto|corretto}}", "ancora {sbagliato|rotto|un errore|lo stesso errore}",
        ),
        again=("{intendevo|volevo} dire", "intendevo {un|una|il|la|che}", "ti {avevo|ho} {chiesto|detto}", "{|per favore }{riprova|rifallo|rifai|ritenta|correggi{| questo| la tua risposta| il tuo codice}|correggilo|annulla}.", "{il tuo|la tua} _ è {|ancora }{sbagliato|sbagliata|errato|errata|rotto}", "{|ancora |sempre }lo stesso errore", "hai {_ |_ _ }{dimenticato|ignorato|sbagliato}"),
        maybe=("{il|la|lo|questo|questa} _ è {|ancora }{sbagliato|sbagliata|errato|errata|rotto}", "{il|la|lo} _ {|ancora }non funziona", "{avevo|ho} {chiesto|detto}", "volevo {un|una|il|la|che}", "{di nuovo|ancora una volta|un'altra volta}.", "correggi"),
        no=("no",),
        no_goes_on=("non", "questo", "quello", "è", "hai", "così"),
        no_innocent=("{va bene|è tutto|basta così|a posto|tutto bene|tutto a posto|sono a posto}", "nient'altro", "serve", "problema", "c'è {problema|bisogno}", "ti preoccupare"),
        thanks=("grazie", "grazie mille", "molte grazie", "tante grazie", "ti ringrazio", "la ringrazio"),
        thanks_for=("mille", "{per |}{|l'|il tuo |la |il |la tua }{aiuto|spiegazione|risposta|risposta veloce}", "di {tutto|cuore|nuovo}", "tante", "infinite", "per tutto"),
        not_thanks=("in anticipo", "anticipatamente", "a", "al", "alla"),
        mocking=("per niente.", "per nulla.", "di niente"),
        praise=("{perfetto|ottimo|eccellente|fantastico|bravo|brava|benissimo|molto bene|ben fatto|ottimo lavoro|esatto|grande}", "{|ora |adesso |così }funziona{| ora| adesso| bene| perfettamente}"),
        lead=("{oh|ok|okay|hm|hmm|eh|ah|beh|mah|scusa|scusi|sì|e|allora|aspetta|aspetti|senti|veramente|bene}",),
        contrast=("ma", "però", "tuttavia", "tranne", "eppure"),
        trouble=("{sbagliato|errore|errori|rotto|fallisce|fallito|non|niente|nulla|mai|perso|cancellato|peggio|inutile|ancora|purtroppo}",),
        text_work=("{traduci|traduca|tradurre|riassumi|riassuma|riassumere|riscrivi|parafrasa|cosa significa|che significa}",),
    ),
    "ru": Phrases(
        wrong=(
            "{это|так} {|всё ещё |совсем |всё равно }{неправильно|неверно|не то|не так|не верно|не правильно|не работает}.", "{неправильно|неверно|не то|не так}.", "не то{, что| что}", "ты {|меня |опять |снова }{забыл|пропустил|не понял|ошибся|проигнорировал|забыла}", "вы {|меня |опять |снова }{забыли|пропустили|не поняли|ошиблись|проигнорировали}", "{|всё ещё |всё равно |по-прежнему |опять |снова |до сих пор }{не работает.|не помогло|не компилируется|та же ошибка}", "{всё ещё|опять|снова} ошибка.",
        ),
        again=("я {имел в виду|имела в виду|просил|просила|говорил|сказал|хотел другое|спрашивал}", "{|пожалуйста |давай }{попробуй|попробуйте|сделай|сделайте} {ещё раз|снова|заново}", "{код|ответ|результат|программа|скрипт|решение} {|всё ещё |опять |по-прежнему }{неверный|неправильный|неверно|неправильно|не работает|не компилируется}", "{|опять |снова |всё }{та же ошибка|тот же результат}", "{исправь|исправьте|переделай|переделайте|отмени}{| это| {|свой |свою }{ответ|ошибку}}."),
        maybe=("{ещё раз|снова|заново}.", "{|это }ошибка", "{исправь|исправьте|переделай|переделайте}", "не работает"),
        no=("нет", "не-а"),
        no_goes_on=("это", "не", "ты", "вы", "я", "так"),
        no_innocent=("это {всё|нормально|хорошо}", "{всё|больше} {хорошо|нормально|ничего|отлично|не нужно|не надо}", "ничего {больше|страшного}", "проблем", "не {нужно|надо}", "достаточно"),
        thanks=("спасибо", "большое спасибо", "огромное спасибо", "благодарю", "спасибки", "спс."),
        thanks_for=("большое", "огромное", "{вам|тебе}", "за {|вашу |твою |быструю }{помощь|объяснение|ответ|быстрый ответ|всё}", "ещё раз"),
        not_thanks=("заранее", "что"),
        mocking=("за ничего", "за {потраченное|испорченный|сломанный}"),
        praise=("{отлично|супер|прекрасно|замечательно|идеально|класс|круто|здорово|точно|молодец|хорошо|превосходно}", "{|теперь |всё |это }{работает|заработало}{| теперь| отлично| хорошо}"),
        lead=("{о|ок|окей|хм|эм|ну|а|ой|извини|извините|прости|да|так|и|слушай|подожди|вообще-то|ладно|пожалуйста}",),
        contrast=("но", "однако", "только", "хотя", "а вот"),
        trouble=("{неправильно|неверно|ошибка|ошибки|ошибку|сломано|сломал|сломалось|не|нет|ничего|никогда|упало|падает|удалил|потерял|хуже|бесполезно|опять|снова|к сожалению}",),
        text_work=("{переведи|переведите|перевести|перескажи|резюмируй|перефразируй|перепиши|перепишите|что это значит|что значит}",),
    ),
    "tr": Phrases(
        wrong=(
            "{bu|o} {|hâlâ |hala }{yanlış|hatalı|doğru değil|istediğim değil|olmadı}", "{yanlış|hatalı|olmadı}.", "{|bu |hâlâ |hala |bu hâlâ |bu hala }{çalışmıyor|çalışmadı|doğru değil|yanlış.|hata veriyor}", "{istediğim|sorduğum|demek istediğim} bu değil", "{unuttun|unuttunuz|yanlış anladın|yanlış anladınız|beni anlamadın}",
        ),
        again=("{demek istediğim|onu demedim|bunu demedim|sana {söyledim|dedim}}", "{|lütfen }{tekrar|yeniden|bir daha} {dene|deneyin|yap|yapın|yaz}", "{kod|cevap|sonuç|program|bu kod|bu cevap} {|hâlâ |hala }{yanlış|hatalı|çalışmıyor|doğru değil}", "{|hâlâ |hala |yine }aynı hata", "{|lütfen }{|bunu |cevabını }{düzelt|düzeltin|geri al|geri alın}."),
        maybe=("{tekrar|yeniden|bir daha}.", "{|lütfen }{şunu|şu|bu} {_ |}{düzelt|düzeltin}"),
        no=("hayır", "yok"),
        no_goes_on=("bu", "o", "öyle", "ben", "sen"),
        no_innocent=("{bu kadar|hepsi bu|yeterli|böyle iyi|gerek yok|sorun değil|iyiyim|tamam}", "başka {bir şey|bir şey yok}", "sorun", "önemli değil"),
        thanks=("{|çok }{teşekkürler|teşekkür ederim|teşekkür ederiz|teşekkür|sağ ol|sağol|sağ olun|sağolun}", "eyvallah."),
        thanks_for=("çok", "{|yardımın |yardımınız |yardım |her şey |açıklama }için", "tekrar", "ederim"),
        not_thanks=("şimdiden", "mektubu", "kartı"),
        mocking=("hiçbir şey için",),
        praise=("{mükemmel|harika|süper|çok iyi|çok güzel|güzel|aferin|bravo|aynen|tam olarak|iyi iş}", "{|şimdi |artık |bu }{çalışıyor|çalıştı|oldu}{| şimdi| artık}"),
        lead=("{oh|ok|tamam|hm|hmm|şey|ah|peki|pardon|özür dilerim|evet|ve|bak|bekle|aslında|lütfen|yani}",),
        contrast=("ama", "fakat", "ancak", "yalnız", "lakin"),
        trouble=("{yanlış|hata|hatalı|hatası|bozuk|bozuldu|değil|çalışmıyor|hiç|asla|silindi|sildin|kayboldu|daha kötü|işe yaramaz|hala|maalesef|yok}",),
        text_work=("{çevir|çevirin|tercüme et|özetle|özetleyin|ne demek|ne anlama}",),
    ),
    "zh": Phrases(
        wrong=(
            "{|这|这个|那|那个|你|还是|你的答案|答案|结果|这样}{不对|不正确|错了|有错|是错的|不是我要的|不是我想要的|不是我问的|不行|答错了|搞错了|弄错了|理解错了|还是错的}.", "{|这|这个|代码|程序|还是|依然|仍然|它}{不能用|没用|运行不了|不起作用|还是报错|报错了|无法运行|跑不起来}.", "你{忘了|忘记了|漏了|没有回答|没理解|误解了|忽略了|没看|没有理解}", "{错了|错误|不对}.",
        ),
        again=("我{的意思是|是说|要的是|说的是|问的是|指的是}", "{|请|请你|麻烦}{再试一次|再试试|重新来|重来|重做|重新做|改正|纠正}."),
        maybe=("{|请|请你|麻烦}再来一次",),
        no=("不", "不是", "没有"),
        no_goes_on=("是这样", "应该", "是这个"),
        no_innocent=("{用了|需要了|用谢|客气|必了|谢谢|谢|麻烦了}", "{没事|没问题|没关系|就这样|这就够了|这样就好|都好|没有了|够了|可以了}"),
        thanks=("谢谢", "谢谢你", "谢谢您", "多谢", "感谢", "非常感谢", "太感谢了", "十分感谢", "谢了", "谢啦", "多谢了"),
        thanks_for=("你的{帮助|帮忙|回答|解释}", "您的{帮助|帮忙|回答|解释}", "帮助", "帮忙", "了", "你", "您", "啦", "啊"),
        not_thanks=("信", "卡", "用法语", "用英语", "大家的", "贵公司"),
        mocking=("你{什么都没|毁了|弄坏}",),
        praise=("{|太|真|非常}{完美|很好|太好了|好极了|棒|太棒了|不错|厉害|正确|可以了|搞定了|成功了|好的|好}", "{|现在}可以用了"),
        lead=("{嗯|哦|噢|呃|那个|好吧|抱歉|对不起|是的|对|等等|等一下|其实|请}",),
        contrast=("但是", "但", "不过", "可是", "然而", "只是"),
        trouble=("{错|不对|不能|没用|报错|失败|崩溃|坏|没有|删|丢|更差|垃圾|还是|依然|可惜}",),
        text_work=("{翻译成|翻译为|翻译一下|翻译这|请翻译|译成|总结一下|请总结|概括一下|改写|重写|润色|是什么意思}",),
    ),
    "ja": Phrases(
        wrong=(
            "{|それは|これは|その答えは|まだ|答えが|やっぱり|結果が}{違います|違う|違いますよ|違うよ|間違いです|間違っています|間違ってる|間違っている|正しくない|正しくありません|誤りです|間違いだ}.", "{|それ|これ|まだ|コードが|それは|これは|全然}{動きません|動かない|動作しません|使えません|うまくいきません|うまくいかない|エラーになります|エラーが出ます}.", "{そうではなく|そうじゃなくて|そうじゃない|そういう意味では|私が聞いたのは|頼んだのは|欲しいのはそれでは|求めているのは}", "{忘れています|忘れてる|無視しています|抜けています|誤解しています}.",
        ),
        again=("{|もう一度|もう1度|もう一回}{やり直して|やり直してください|直してください|修正してください|試してください}.", "{私が言いたいのは|私が言ったのは|つまり私は|言いたかったのは}"),
        maybe=("もう{一度|1度|一回}お願いします", "もう一度."),
        no=("いいえ", "いや", "いえ"),
        no_goes_on=("それは", "そう"),
        no_innocent=("{大丈夫|結構です|十分です|以上です|これで|問題ありません|それだけ|特に|何も|特にありません|いりません|不要です|平気}",),
        thanks=("ありがとう", "ありがとうございます", "ありがとうございました", "どうもありがとう", "どうも.", "感謝します", "助かりました", "助かります.", "サンキュー", "本当にありがとう", "有難う", "有難うございます"),
        thanks_for=("ございます", "ございました", "ね", "です"),
        not_thanks=("と言", "を英語", "をフランス語", "の手紙", "というメール", "と書"),
        mocking=("全部壊れ", "何の役にも"),
        praise=("{完璧|完璧です|素晴らしい|すばらしい|すごい|さすが|いいね|いいですね|最高|最高です|その通り|その通りです|正解|ばっちり|よくできました|動きました|できました|うまくいきました}",),
        lead=("{あの|えっと|ええと|うーん|うん|はい|ああ|すみません|ごめん|じゃあ|では|ちょっと|まあ|あ|お}",),
        contrast=("でも", "しかし", "ただ", "けど", "ですが", "だけど"),
        trouble=("{違|間違|エラー|動かない|動きません|失敗|壊|ない|ません|消え|消し|ひど|最悪|まだ|役に立た|残念}",),
        text_work=("{翻訳して|訳して|要約して|まとめて|書き換え|言い換え|添削|どういう意味}",),
    ),
}  # fmt: skip
"""By ISO 639-1."""

WITHOUT_SPACES = frozenset({"zh", "ja"})
"""Languages whose words nothing separates."""

PARTICLES = frozenset("吧啊呀呢哦啦嘛よねがけどのですから")
"""What may end a sentence of these languages without another word."""

GO_ON = frozenset({
    "continue", "go on", "next", "yes", "ok", "okay", "more", "again", "another one", "one more", "keep going", "proceed",
    "weiter", "mach weiter", "ja", "noch eins", "continue s'il te plait", "continuez", "oui", "suivant", "encore", "sigue", "continua", "si", "siguiente",
    "otro", "otra", "continue por favor", "sim", "proximo", "avanti", "vai avanti", "prossimo", "продолжаи", "дальше", "да", "далее", "еще",
    "devam", "devam et", "evet", "sonraki", "继续", "下一个", "好的", "是的", "再来一个", "続けて", "続けてください", "次", "はい", "もう一つ",
})  # fmt: skip
"""What is said again because the answer was wanted: folded, without its last punctuation."""
