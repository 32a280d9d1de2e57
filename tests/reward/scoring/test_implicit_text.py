"""What a user's message says of the answer before it: languages × forms, and what must not be taken for it."""

import random
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from upswing.reward.core.implicit_phrases import LANGUAGES, WITHOUT_SPACES
from upswing.reward.core.implicit_text import (
    NOTHING,
    SignalKind,
    read_text,
    remove_quoted_text,
    request_fingerprint,
    spellings_of_phrase,
)

THANKS, CORRECTION = SignalKind.THANKS, SignalKind.CORRECTION
MOST = 60
"""Spellings of a row that a test tries in each form; which ones, the language decides."""
TAILS = {
    "en": "column B has the totals",
    "de": "in Spalte B stehen die Summen",
    "fr": "la colonne B contient les totaux",
    "es": "la columna B tiene los totales",
    "pt": "a coluna B tem os totais",
    "it": "la colonna B ha i totali",
    "ru": "в столбце B стоят суммы",
    "tr": "B sütununda toplamlar var",
    "zh": "B列是合计",
    "ja": "B列は合計です",
}
"""What says nothing of an answer."""
NEXT = {
    "en": "now sort column B",
    "de": "sortiere jetzt Spalte B",
    "fr": "trie maintenant la colonne B",
    "es": "ahora ordena la columna B",
    "pt": "agora ordene a coluna B",
    "it": "ora ordina la colonna B",
    "ru": "теперь отсортируй столбец B",
    "tr": "şimdi B sütununu sırala",
    "zh": "现在给B列排序",
    "ja": "次はB列を並べ替えて",
}
languages = pytest.mark.parametrize("lang", LANGUAGES)


def ways(lang, row):
    """Spellings of a row."""
    phrases = getattr(LANGUAGES[lang], row)
    found = sorted(
        {way.replace("_", "xyz") for phrase in phrases for way in spellings_of_phrase(phrase)}
    )
    return random.Random(lang).sample(found, min(MOST, len(found)))


def joined(lang, *parts):
    """Words one after the other, as that language writes them."""
    return ("，" if lang in WITHOUT_SPACES else ", ").join(parts)


def stop(lang):
    return "。" if lang in WITHOUT_SPACES else "."


def misread(lang, rows, forms, wanted):
    """Messages that are read otherwise than `wanted(reading)` has it."""
    for words in product(*(ways(lang, row)[:MOST] for row in rows)):
        for form in forms:
            message = form(*words)
            if not wanted(read := read_text(message)):
                yield message, read


@languages
@pytest.mark.parametrize("row", ["wrong", "again"])
def test_a_correction_is_found_in_each_form(lang, row):
    lead, thanks = ways(lang, "lead")[0], ways(lang, "thanks")
    but = LANGUAGES[lang].contrast[0]
    short = min(thanks, key=len)
    forms = [
        lambda p: p,
        lambda p: p + stop(lang),
        lambda p: p.upper() + "!",
        lambda p: p.capitalize() + stop(lang) + " " + TAILS[lang],
        lambda p: joined(lang, lead, p),
        lambda p: joined(lang, short, f"{but} {p}" if lang not in WITHOUT_SPACES else but + p),
        lambda p: p + "\n" + TAILS[lang],
    ]
    wrong = list(
        misread(lang, [row], forms, lambda r: r.kind is CORRECTION and r.confidence >= 0.6)
    )
    assert not wrong, wrong[:10]


@languages
def test_thanks_are_found_in_each_form(lang):
    praise = ways(lang, "praise")[:5]
    forms = [
        lambda p: p,
        lambda p: p.capitalize() + "!",
        lambda p: p + " 🙏",
        lambda p: joined(lang, ways(lang, "lead")[0], p),
        lambda p: joined(lang, p, NEXT[lang]),
        *(lambda p, good=good: joined(lang, good, p) for good in praise),
    ]
    wrong = list(
        misread(lang, ["thanks"], forms, lambda r: r.kind is THANKS and r.confidence >= 0.6)
    )
    assert not wrong, wrong[:10]


@languages
def test_a_no_contradicts_unless_something_was_asked(lang):
    for no in ways(lang, "no"):
        message = joined(lang, no, TAILS[lang])
        assert read_text(message, "Here it is.").kind is CORRECTION, message
        for asking in ("Shall I go on?", "続けますか？", "Voulez-vous la suite ?"):
            assert read_text(message, asking).kind is None, message


@languages
def test_a_polite_no_contradicts_nothing(lang):
    for no, polite in product(
        ways(lang, "no"), [*ways(lang, "no_innocent"), *ways(lang, "thanks")]
    ):
        for message in (joined(lang, no, polite), f"{no} {polite}", joined(lang, no, polite) + "!"):
            written = message.replace(" ", "") if lang in WITHOUT_SPACES else message
            assert read_text(written, "Here it is.").kind is None, written


@languages
def test_bitter_thanks_are_left_undecided(lang):
    trouble = ways(lang, "trouble")
    thanks = min(ways(lang, "thanks"), key=len)
    for word in trouble:
        message = joined(lang, thanks, f"{TAILS[lang]} {word} B1")
        read = read_text(message)
        assert read.kind is not THANKS, (message, read)
    for mocking in ways(lang, "mocking"):
        read = read_text(f"{thanks}{'' if lang in WITHOUT_SPACES else ' '}{mocking}")
        assert read.kind is None, (mocking, read)


@languages
def test_code_quotations_and_copied_lines_are_nobodys_opinion(lang):
    for phrase in [*ways(lang, "wrong")[:15], *ways(lang, "thanks")[:15]]:
        said = f"{phrase} – {TAILS[lang]}, {NEXT[lang]}"
        for message in (
            f"> {phrase}\n{NEXT[lang]}",
            f"```\n{phrase}\n```\n{NEXT[lang]}",
            f"`{phrase}` {TAILS[lang]}",
            f'"{phrase}" {TAILS[lang]}',
            f"„{phrase}“ {TAILS[lang]}",
            f"«{phrase}» {TAILS[lang]}",
            f"「{phrase}」{TAILS[lang]}",
            f"    {phrase}\n{NEXT[lang]}",
            f'{{"{phrase}": 1}}',
            f"<p>{phrase}</p>",
        ):
            assert read_text(message).kind is None, message
        assert read_text(f"{said}\n{NEXT[lang]}", f"Well. {said}").kind is None, said


@languages
def test_below_what_it_quotes_a_message_is_its_writers_own(lang):
    answer = f"Well. {TAILS[lang]}, {NEXT[lang]}, {TAILS[lang]}."
    for phrase in ways(lang, "wrong")[:15]:
        for quoted in (f"> {answer}", f"```\n{answer}\n```", f"    {answer}", answer):
            read = read_text(f"{quoted}\n\n{phrase}{stop(lang)}", answer)
            assert read.kind is CORRECTION, (quoted, phrase)


TEXTS = {
    "en": "Translate it to French",
    "de": "Übersetze das ins Englische",
    "fr": "Traduis en anglais",
    "es": "Traduce al inglés",
    "pt": "Traduza para o inglês",
    "it": "Traduci in inglese",
    "ru": "Переведи на английский",
    "tr": "İngilizceye çevir",
    "zh": "请翻译成英语",
    "ja": "英語に翻訳してください",
}
"""What makes of the words before it a text to work on."""


@languages
@pytest.mark.parametrize("row", ["wrong", "again", "thanks", "maybe"])
def test_the_beginning_of_a_text_to_work_on_is_nobodys_opinion(lang, row):
    filler = f"{TAILS[lang]}{stop(lang)} " * 30
    forms = [
        lambda p: f"{p}{stop(lang)}\n{TEXTS[lang]}",
        lambda p: f"{p}{stop(lang)} {filler}\n{TEXTS[lang]}",
        lambda p: f"{p}: {TAILS[lang]}",
        lambda p: f"{p}\n```\n{TAILS[lang]}\n```",
        lambda p: f'{p}, "{TAILS[lang]}"',
    ]
    assert not list(misread(lang, [row], forms, lambda r: r.kind is None))


@languages
def test_what_may_be_about_something_else_is_left_undecided(lang):
    forms = [lambda p: p, lambda p: p.capitalize() + stop(lang) + " " + TAILS[lang]]
    rows = [phrase for each in LANGUAGES.values() for phrase in (*each.wrong, *each.again)]
    alone = {way.capitalize() for phrase in rows for way in spellings_of_phrase(phrase)}
    wrong = misread(lang, ["maybe"], forms, lambda r: r.kind is None and r.undecided)
    wrong = [m for m, _ in wrong if m.split(stop(lang))[0].capitalize() not in alone]
    assert not wrong, wrong[:10]


@pytest.mark.parametrize("lang", sorted(WITHOUT_SPACES))
def test_inside_a_longer_word_a_complaint_is_undecided(lang):
    phrases = [phrase for phrase in LANGUAGES[lang].wrong if phrase.endswith(".")]
    assert phrases
    for way in (way for phrase in phrases for way in spellings_of_phrase(phrase)):
        read = read_text(f"{way}色書{TAILS[lang]}")
        assert (read.kind, read.undecided) == (None, True), way
        assert read_text(f"{way}{'吧' if lang == 'zh' else 'よね'}").kind is CORRECTION, way


@languages
def test_an_answer_cannot_silence_a_complaint(lang):
    """After a question, or where the answer has the same words, it is for a judge to read."""
    for no in ways(lang, "no"):
        for asking in ("It is Lyon. Anything else?", "Lyon. 続けますか？"):
            assert read_text(joined(lang, no, TAILS[lang]), asking).undecided, no
            assert read_text(no, asking) == NOTHING
    for phrase in ways(lang, "wrong")[:15]:
        message = joined(lang, phrase, TAILS[lang])
        for answer in (
            f"Done.\n{message}",
            f"Done. (You can reply: {message})",
            f'Say "{message}"',
        ):
            for said in (message, f"{message}\n{NEXT[lang]}"):
                assert read_text(said, answer) != NOTHING, (said, answer)
            assert read_text(f"{message}\n\n{phrase}", answer).kind is CORRECTION


@languages
def test_thanks_that_the_answer_asks_for_say_nothing(lang):
    for thanks in ways(lang, "thanks"):
        for answer in (
            f"a, b (say '{thanks}' to see the rest)",
            f"Reply with {thanks}.",
            f"Go on: „{thanks}“",
        ):
            assert read_text(thanks, answer) == NOTHING, (thanks, answer)
        polite = f"{thanks}{stop(lang)} {TAILS[lang]}"
        assert read_text(thanks, polite) != NOTHING, polite


INNOCENT = [
    "No problem, take your time", "No worries, go on", "No one has seen it", "No need to hurry", "No. 5 is the one that I want",
    "no: 5", "Nobody asked for it", "Notice the new file", "Not a problem at all", "No further questions", "Nothing else for now",
    "Wrong cells are marked red, count them", "Incorrect entries should be dropped", "Undo and redo should both work in the editor",
    "Again and again people ask for this feature, so add it", "Translate: thank you very much", "How do I say thank you in French",
    "Thank you notes: write three of them", "Thanks in advance", "Thanks to your fix the build is green", "Thanksgiving dinner for six",
    "But what about column B?", "That is not a problem", "That's right, go on", "You forget nothing, do you", "It works how?",
    "Still life with apples: describe it", "I said goodbye to them yesterday", "I asked my boss for a raise, write the letter",
    "Yes", "ok", "Please continue", "", "   ", "\n", "?!", "42", "No es urgente", "No hay problema, sigue", "Non classé: liste les fichiers",
    "Nein-Stimmen zählen", "Kein Problem", "Falsche Zeilen löschen", "Merci de trier la liste", "Gracias a tu ayuda funciona", "Nonna's recipe",
    "Нет проблем", "Спасибо, что спросил", "不同的颜色", "不要用红色", "没有问题的行", "谢谢信怎么写", "いやし系の音楽", "違いを説明して", "Yok sayılan satırlar",
    "Ma che cos'è questo?", "Nothing", "Note: wrong = True", "wrong_answers = 3", "no_proxy=localhost", "Grazie a te funziona", "Senza errori",
    "Please correct this sentence: He go to school.", "Please fix this code: def f(: pass", "Bitte korrigiere diesen Text: Er gehen", "Undo this commit",
    "Annulla l'ordine 5", "Отмени заказ 5", "Recommence à compter à partir de 5", "Still not tired. Tell me another joke!", "Todavía no tengo hambre",
]  # fmt: skip


@pytest.mark.parametrize("message", INNOCENT)
def test_innocent_sentences_say_nothing(message):
    read = read_text(message, "Here is the list.")
    assert (read.kind, read.undecided) == (None, False)


@pytest.mark.parametrize(
    "message",
    [
        "Great, thanks for nothing.",
        "Wow, great, another error.",
        "Thanks a lot, now everything is broken",
        "Super, jetzt ist alles kaputt",
        "Perfect, it crashes /s",
        "Thanks, but could you make it shorter?",
        "Danke, aber kürzer wäre besser",
        "Merci pour rien",
        "Thank you for your letter of 5 May. "
        + "We have read it with great interest and would like to come back to you. " * 4,
        "Brilliant. You deleted my file.",
        "谢谢，全删了",
        "すごい、全部消えました",
        "Corrige ce texte : il vont bien.",
        "Corrige este texto: ellos va.",
        "Correggi questa frase: io andare.",
        "исправь ошибки в этом тексте: он идут",
        "不对称加密和对称加密的区别是什么？",
        "没用过Python，怎么开始学？",
        "違う色でもう一枚描いてください",
        "The printer is not working. Who do I call?",
        "I asked for a raise yesterday. Write a follow-up email.",
        "Again!",
        "Noch mal!",
        "You missed a call. translate to French",
        "Thank you for your order of 12 May. Translate to German.",
        "Thanks. Again!",
        "It is not right to steal. Translate to French.",
    ],
)
def test_what_may_be_meant_bitterly_is_left_undecided(message):
    read = read_text(message, "Here is the list.")
    assert (read.kind, read.undecided) == (None, True)


@pytest.mark.parametrize(
    ("message", "confidence"),
    [
        ("That is wrong.", 0.9),
        ("Thanks, but that is wrong.", 0.8),
        ("I meant column B", 0.7),
        ("No, column B", 0.7),
        ("👎", 0.9),
        ("Danke, aber das stimmt nicht", 0.8),
    ],
)
def test_how_sure_a_correction_is(message, confidence):
    assert read_text(message).confidence == confidence


@pytest.mark.parametrize(
    ("message", "confidence"),
    [
        ("Thanks!", 0.8),
        ("thanks so much for your help", 0.8),
        ("Thanks, now column B", 0.6),
        ("Perfect!", 0.5),
        ("👍", 0.5),
    ],
)
def test_how_sure_thanks_are(message, confidence):
    read = read_text(message)
    assert (read.kind, read.confidence) == (THANKS, confidence)


@given(st.text(max_size=700), st.text(max_size=300))
def test_any_text_is_read(text, answer):
    read = read_text(text, answer)
    assert 0 <= read.confidence <= 1
    assert (read.kind is None) == (read.confidence == 0)
    assert not (read.undecided and read.kind)
    remove_quoted_text(text, answer)
    request_fingerprint(text)
