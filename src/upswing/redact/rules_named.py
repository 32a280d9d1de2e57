"""Which secrets are known by their name: a password, a secret, a code, in many languages?

One grammar joins name and value in prose, code, configuration, Markdown and HTML:

    [name] [quotes, bold or a tag closed] [for whom] [: = is …] [quotes, bold or a tag] [value]
"""

from __future__ import annotations

from .build import example_value
from .rule import Anchor, Rule
from .values import is_passphrase, is_password, is_pin, is_secret, is_told_token
from .words import (
    IS,
    LINK,
    OF,
    PASSWORD_NAMES,
    PASSWORD_WORDS,
    PIN_NAMES,
    PIN_WORDS,
    SECRET_NAMES,
    SECRET_WORDS,
    VERB,
)

QUOTE = r"""\\{0,3}["'`]"""
TAG = r"(?:br[ ]?/?|b|strong|em|i|u|code|kbd|tt|samp|pre|span|p|div|li|td|th|dt|dd|label|h[1-6])"
CLOSE = rf"(?:{QUOTE}|(?<=[A-Za-z])_(?![A-Za-z])|\]|\)|\*{{1,3}}|__|</{TAG}>){{0,3}}"
_TYPE = r"(?:[ ](?:string|String|\*?char)[ ]=|\[[0-9]{0,4}\][ ]?=|\{(?=\")|[\"'`\])]{1,4}\.(?:fill|type|send_keys|sendKeys|set_value|setValue|val|input|press_sequentially|clear_and_type)\((?=[\"'`])|:[ \t]{0,2}(?:&?(?:'[a-z]+ )?(?:str|string|String|bytes|char|SecretStr|Final(?:\[str\])?|CharSequence)|Optional\[str\]|str \| None|string \| \w{4,9}|Option<String>)[ \t]{0,2}=)"
_OP = r"(?P<op>:=|=>|->|={2,3}|\?\?=?|\|\|(?=[ ][\"'`])|!==?|=|:|(?<=[\"'`]),|\((?=\\{0,3}[\"'`])|[ ][\-~/](?=[ ])|\.{3,40}(?=[ ])|>(?=[ ]))"
_PAIR = rf"(?P<pair>\s{{0,40}},?\s{{0,40}}(?:{QUOTE})?(?:value|val|v|wert|valor|valeur|content|data|default)(?:{QUOTE})?[ \t]{{0,3}}[:=]|[^<>\n\x00]{{0,80}}?[ ]value[ ]?=)"
_JOIN = (
    rf"(?:{_TYPE}|{_PAIR}|{_OP}|(?P<is>[ ]{IS}(?=[ \"'`*])|{LINK}{{1,8}})|(?<=>)\s{{0,20}}(?=<)|(?P<sp>(?=[ \t])))"
    rf"(?:[*]{{1,3}}|__|</{TAG}>){{0,2}}[ \t]{{0,3}}(?P<line>(?<=[:*>])[ \t]{{0,3}}(?:[|>][+\-]?)?\r?\n(?:[ \t]{{0,8}}\r?\n)?[ \t]{{0,8}}(?!</))?"
)
_WHOSE = rf"(?:[ ]\([^()\n\x00]{{1,30}}\)|[ ]{OF}[ ][^\n:=\"'`|<>*,;.!?\x00]{{1,40}}?(?=[ ]{{0,2}}[:=]|[ ]-?>[ ]|[ ]{IS}[ ]))?"
_BARE = r"(?P<u>(?<==)[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af][^\s\"'`<>,;&|()\[\]{}\x00\\\u3000-\u303f]{1,30}|(?:[^\s\"'`<>,;&|()\[\]{}\x00\\\u3000-\u9fff\uac00-\ud7af]|[,;&|](?=[^\s\"'`<>,;&|()\[\]{}\x00\\])(?![\w.\-]{1,40}[=:])|&(?!\w{1,40}=)|(?<=[^\s\"'`]){(?=\w)|(?<=\w)}(?=\w)){1,256})"
_WRAPPED = r"(?:new[ ])?(?:String(?:::from|\.valueOf)?|[A-Za-z]{0,12}Secret[A-Za-z]{0,10}(?:::new|::from|\.of)?|str|bytes|Some|text|std::string|Buffer\.from|SecureString)\("
"""A value inside the call that makes a text of it."""
VALUE = (
    rf"(?:(?:[rbufNL@$]{{0,2}}|{_WRAPPED}|!!?[a-z]{{2,10}}[ ])(?P<q>```|``|\"{{3}}|'{{3}}|{QUOTE})(?P<v>(?:(?!(?P=q))[^\n\x00]){{1,4096}})"
    rf"|(?:\*{{1,3}}|__)(?P<w>[^\s*<>\"'`\x00](?:[^\n*<>\"'`\x00]{{0,120}}[^\s*<>\"'`\x00])?)"
    rf"|(?:<{TAG}(?:[ ][^<>\n]{{0,60}})?>){{1,2}}(?P<x>[^\s<>\x00](?:[^\n<>\x00]{{0,120}}[^\s<>\x00])?)"
    rf"|[\[(<](?P<y>[^\s\[\]()<>\"'`\x00]{{3,128}})[\])>]|(?:!![a-z]{{2,8}}[ ])?{_BARE})"
)
_SUFFIX = r"(?:[_-]?(?:value|val|base64|b64|plain|prod|dev|test|live|new|old|root|admin|user|[0-9]{1,3}))?"
_FOLLOW = (
    r"[A-Za-z0-9_.'\-]{0,16}(?:(?:\\{0,3}[\"'`\])*_]|</[a-z1-6]{1,6}>){1,4}[ \t]{0,3}[:=,!<\-\n]|[ \t]{3,30}=|[ \t]{0,3}[:=!<>*\"'`"
    + LINK
    + "]"
    rf"|[ ](?:[\-(]|{IS}[ ]|(?:for|fur|of|on|from|to|de|du|der|des|vom|zum|pour|para|per|di|del|do|da|voor|dla|{LINK}{{1,8}})[ ][^\n]{{1,42}}(?:[:=]|[ ]-?>|[ ]{IS}[ ])|[^ \n]{{0,20}}[0-9!@#$%^&+~])|[({{]\\{{0,3}}[\"'`]|\[[0-9]{{0,4}}\][ ]?=|[ ](?:string|String|char|str)[ ]=|[\"'`][ ]?[,\n]|[ ]?\n|,[ ]?(?:val|v\b|wert|content|data|default))"
)


def assignment_pattern(keys: str, suffix: str = _SUFFIX) -> str:
    return rf"(?P<k>(?:{keys}){suffix}){CLOSE}{_WHOSE}(?:[ \t]{{0,30}}(?==)|[ \t]{{0,3}}){_JOIN}[ \t]{{0,3}}{VALUE}"


def word_anchors(
    literals: tuple[str, ...], follow: str = _FOLLOW, reach: int = 142, before: str = ""
) -> tuple[Anchor, ...]:
    return tuple(
        Anchor(w, follow, reach=len(w) + reach, caseless=True, late=True, before=before)
        for w in literals
    )


_PHRASE = (
    rf"(?P<k>{PASSWORD_NAMES}){CLOSE}{_WHOSE}[ \t]{{0,3}}(?::|=|[ ]?-(?=[ ])|(?![ ][e{VERB}][ ])[ ]{IS}(?=[ ])|{LINK}{{1,8}})[*_]{{0,3}}[ \t]{{0,3}}"
    r"(?P<v>[^\W_]{2,16}(?:[ -][^\W_]{1,16}){2,7}|(?<=[:=*_ ])[^\W_]{4,16}[ ][^\W_]{4,16}(?=[ ]{0,2}(?:\n|$)))(?=[.!]?[ ]{0,2}(?:\n|$|[,;][ ]|[.!]?[\"'`<*|]|[.!][ ]))"
)

_PLAIN_SECRETS = tuple(
    w
    for w in SECRET_WORDS
    if "secret" in w or w in ("geheimnis", "segredo", "segreto", "recovery code", "backup code")
)
"""Names behind which a plain word may be the value."""
_UNDOTTED = _FOLLOW.replace("[A-Za-z0-9_.'\\-]", "[A-Za-z0-9_'\\-]", 1)
"""Without what programs write: `token.py::test`, `token.value`."""

RULES = (
    Rule(
        "password",
        assignment_pattern(PASSWORD_NAMES),
        anchors=word_anchors(PASSWORD_WORDS),
        judge=is_password,
        priority=45,
        trusted=True,
        about="a password behind its name, in code, configuration, JSON or prose, in twenty languages",
        example='password = "' + "hunter2!" + '"',
    ),
    Rule(
        "passphrase",
        _PHRASE,
        anchors=word_anchors(PASSWORD_WORDS),
        judge=is_passphrase,
        kind="password",
        priority=43,
        trusted=True,
        about="several words behind the name of a password that make no sentence",
        example="password: violet tractor lemon parade",
    ),
    Rule(
        "secret",
        assignment_pattern(
            rf"(?:{SECRET_NAMES})(?i:[_ -]?(?:key|token|secret|api|d'acces|de acces[s]?o|dostepu|dostepowy|secret[oa]|segret[oa]|erisim|i)){{0,2}}s?"
        ),
        anchors=word_anchors(_PLAIN_SECRETS)
        + word_anchors(tuple(w for w in SECRET_WORDS if w not in _PLAIN_SECRETS), _UNDOTTED),
        judge=is_secret,
        priority=42,
        trusted=True,
        about="a random-looking value behind a name such as api_key, token or client_secret",
        example='api_key = "' + example_value(32) + '"',
    ),
    Rule(
        "secret-said",
        rf"(?:{SECRET_NAMES})(?![A-Za-z0-9_])[^\n.!?=;<>|\x00]{{0,70}}?(?:[:({LINK}]|[ ]{IS}(?=[ ])|[\"'`])[\s\"'`*]{{0,3}}(?P<v>[A-Za-z0-9_\-+/=.~]{{16,256}})(?![A-Za-z0-9])",
        anchors=word_anchors(
            SECRET_WORDS,
            r"[^A-Za-z0-9_=\n](?:[A-Za-z0-9_\-+/=.~]{0,15}+[^A-Za-z0-9_\-+/=.~\n]){0,40}+[A-Za-z0-9_\-+/=.~]{16}",
            660,
        ),
        judge=is_told_token,
        kind="secret",
        priority=37,
        trusted=True,
        about="a random value in a sentence that speaks of a key or a token",
        example="the API key that you asked for yesterday: " + example_value(32),
    ),
    Rule(
        "pin",
        assignment_pattern(PIN_NAMES, ""),
        anchors=word_anchors(PIN_WORDS),
        judge=is_pin,
        priority=44,
        trusted=True,
        about="PINs, one-time and security codes behind their name",
        example="PIN: " + "4821",
    ),
)
