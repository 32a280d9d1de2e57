"""Passwords as people choose them, and keys as services make them; every one is made up."""

import base64
import hashlib
import json
import random
import string
import zlib

from bench.redaction_cases._heldout_fill import Entry, Maker, Value

ALNUM = string.ascii_letters + string.digits
_HEX = "0123456789abcdef"
_URLSAFE = ALNUM + "-_"
_BASE64 = ALNUM + "+/"
_BASE58 = "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz"

WORDS = {
    "en": "sunflower dragonfly buttercup snowflake moonlight peppermint bumblebee waterfall "
    "marmalade gingerbread thunderbolt blackberry starfish tangerine cinnamon walrus hedgehog",
    "de": "Sonnenblume Blumenwiese Marienkäfer Schneeflocke Himbeere Lebkuchen Eichhörnchen "
    "Regenbogen Apfelstrudel Murmeltier Wolkenbruch Zitronenfalter Brombeere Pusteblume",
    "fr": "coquelicot tournesol libellule pamplemousse arc-en-ciel coccinelle framboise "
    "hirondelle papillon marguerite citrouille grenouille noisette",
    "es": "mariposa girasol luciérnaga golondrina mandarina terciopelo madreselva caramelo "
    "amapola murciélago chocolate cangrejo relámpago",
    "pt": "borboleta girassol andorinha tangerina vagalume jabuticaba beija-flor maracujá "
    "tartaruga margarida framboesa caranguejo",
    "it": "farfalla girasole lucciola rondine melograno arcobaleno coccinella mandarino "
    "margherita tartaruga libellula cioccolato",
    "ru": "ромашка подсолнух снежинка ласточка бабочка земляника одуванчик черепаха "
    "стрекоза малина колокольчик смородина",
    "zh": "向日葵 蒲公英 萤火虫 桂花糕 小蜻蜓 西红柿 大熊猫 月亮船 梅花鹿",
    "ja": "ひまわり たんぽぽ さくらもち とんぼ かぶとむし コスモス ほたる あじさい みかん",
    "tr": "papatya kelebek ayçiçeği gökkuşağı kırlangıç mandalina yıldırım kaplumbağa karanfil",
    "pl": "słonecznik stokrotka motylek truskawka biedronka poziomka jaskółka żółwik konwalia",
    "nl": "zonnebloem vlinder libel pannenkoek regenboog madeliefje eekhoorn zwaluw framboos",
}
_HABITS = ("Summer", "Winter", "Autumn", "Juventus", "Liverpool", "Charlie", "Monday", "Arsenal")
_UNICODE = (
    "Grünkohl€",
    "Ærøskøbing",
    "Niño¡",
    "Żubr-",
    "façade£",
    "Ünal§",
    "Ωmega",
    "Ёлка",
    "桜の木",
)


def pick(rng: random.Random, alphabet: str, length: int) -> str:
    return "".join(rng.choices(alphabet, k=length))


def _random(rng: random.Random) -> str:
    made = pick(rng, ALNUM, rng.randint(8, 24))
    return made if any(c.isdigit() for c in made) else made[:-1] + rng.choice("23456789")


def _letters(rng: random.Random) -> str:
    consonants, vowels = "bcdfghjklmnprstvwz", "aeiou"
    if rng.random() < 0.4:
        return pick(rng, string.ascii_letters, rng.randint(8, 16))
    made = "".join(rng.choice(consonants) + rng.choice(vowels) for _ in range(rng.randint(4, 6)))
    return rng.choice((str, str.capitalize, str.upper))(made)


def _word(rng: random.Random, language: str) -> str:
    return rng.choice(WORDS.get(language, WORDS["en"]).split())


def _words(rng: random.Random, language: str) -> str:
    chosen = rng.sample(WORDS.get(language, WORDS["en"]).split(), rng.randint(3, 5))
    return " ".join(chosen)


def _habit(rng: random.Random, language: str) -> str:
    word = rng.choice((*_HABITS, _word(rng, language).capitalize()))
    return (
        f"{word}{rng.choice(('', '_', '@', '.', '-'))}{rng.randint(1, 2026)}{rng.choice('!#*$%+')}"
    )


def _punctuated(rng: random.Random) -> str:
    length = rng.randint(9, 18)
    made = [rng.choice(ALNUM) for _ in range(length)]
    for at in rng.sample(range(1, length - 1), rng.randint(2, 4)):
        made[at] = rng.choice("!@#$%^&*-_+=?.,;:~/")
    return "".join(made)


def _unicode(rng: random.Random) -> str:
    return rng.choice(_UNICODE) + pick(rng, string.digits, rng.randint(2, 5)) + pick(rng, ALNUM, 2)


def _awkward(rng: random.Random) -> str:
    return f"{pick(rng, ALNUM, 5)}{rng.choice(chr(34) + chr(92))}{pick(rng, ALNUM, 5)}&{pick(rng, ALNUM, 3)}"


def password(rng: random.Random, language: str, styles: tuple[str, ...]) -> Value:
    """A password in one of the given styles."""
    style = rng.choice(styles)
    made = {
        "random": lambda: _random(rng),
        "letters": lambda: _letters(rng),
        "word": lambda: _word(rng, language),
        "words": lambda: _words(rng, language),
        "habit": lambda: _habit(rng, language),
        "punctuated": lambda: _punctuated(rng),
        "unicode": lambda: _unicode(rng),
        "awkward": lambda: _awkward(rng),
    }[style]()
    return Value(made, "words" if style == "words" else "halves", style)


_PLAIN = ("random", "letters", "word", "habit", "punctuated", "unicode")
_SAFE = ("random", "random", "letters", "word")


def _of_styles(*styles: str) -> Maker:
    return lambda rng, entry: password(rng, entry.language, styles)


def _safe(rng: random.Random, _entry: Entry) -> Value:
    return password(rng, "en", _SAFE)


def aws_id(rng: random.Random) -> str:
    return rng.choice(("AKIA", "ASIA")) + pick(rng, string.ascii_uppercase + "234567", 16)


def aws_secret(rng: random.Random) -> str:
    return pick(rng, ALNUM, 12) + rng.choice("+/") + pick(rng, _BASE64, 27)


def github(rng: random.Random) -> str:
    if rng.random() < 0.2:
        return f"github_pat_{pick(rng, ALNUM, 22)}_{pick(rng, ALNUM, 59)}"
    body = pick(rng, ALNUM, 30)
    check, digits = zlib.crc32(body.encode()), ""
    for _ in range(6):
        check, rest = divmod(check, 62)
        digits = (string.digits + string.ascii_uppercase + string.ascii_lowercase)[rest] + digits
    return rng.choice(("ghp_", "gho_", "ghs_")) + body + digits


def slack(rng: random.Random) -> str:
    ids = f"{rng.randint(10**11, 10**12 - 1)}-{rng.randint(10**12, 10**13 - 1)}"
    return f"{rng.choice(('xoxb', 'xoxp'))}-{ids}-{pick(rng, ALNUM, 24)}"


def openai(rng: random.Random) -> str:
    if rng.random() < 0.5:
        return f"sk-{pick(rng, ALNUM, 20)}T3BlbkFJ{pick(rng, ALNUM, 20)}"
    return f"sk-proj-{pick(rng, _URLSAFE, 73)}aT3BlbkFJ{pick(rng, _URLSAFE, 73)}A"


def anthropic(rng: random.Random) -> str:
    return f"sk-ant-api03-{pick(rng, _URLSAFE, 93)}AA"


def stripe(rng: random.Random) -> str:
    return rng.choice(("sk_live_", "rk_live_", "sk_live_51")) + pick(
        rng, ALNUM, rng.choice((24, 32))
    )


def google(rng: random.Random) -> str:
    return "AIza" + pick(rng, "SD", 2) + pick(rng, _URLSAFE, 32) + rng.choice(ALNUM)


def sendgrid(rng: random.Random) -> str:
    return f"SG.{pick(rng, _URLSAFE, 21)}A.{pick(rng, _URLSAFE, 42)}A"


def gitlab(rng: random.Random) -> str:
    return "glpat-" + pick(rng, _URLSAFE, 19) + rng.choice(ALNUM)


def npm(rng: random.Random) -> str:
    return "npm_" + pick(rng, ALNUM, 36)


def huggingface(rng: random.Random) -> str:
    return "hf_" + pick(rng, string.ascii_letters, 34)


def telegram(rng: random.Random) -> str:
    return f"{rng.randint(10**8, 10**10 - 1)}:AA{pick(rng, _URLSAFE, 32)}{rng.choice(ALNUM)}"


def azure_client(rng: random.Random) -> str:
    return f"{pick(rng, ALNUM, 3)}8Q~{pick(rng, ALNUM + '_-.~', 33)}{rng.choice(ALNUM)}"


def _unpadded(raw: bytes) -> str:
    return base64.urlsafe_b64encode(raw).rstrip(b"=").decode()


def jwt(rng: random.Random) -> str:
    head = {"alg": rng.choice(("HS256", "RS256")), "typ": "JWT"}
    body = {"sub": str(rng.randint(1000, 10**9)), "iat": rng.randint(17 * 10**8, 18 * 10**8)}
    body |= rng.choice(({}, {"scope": "read write"}, {"role": "admin"}, {"aud": "billing"}))
    parts = [_unpadded(json.dumps(part, separators=(",", ":")).encode()) for part in (head, body)]
    return ".".join([*parts, _unpadded(rng.randbytes(32))])


def pem(rng: random.Random) -> str:
    name = rng.choice(("RSA PRIVATE KEY", "PRIVATE KEY", "EC PRIVATE KEY", "OPENSSH PRIVATE KEY"))
    start = "b3BlbnNzaC1rZXktdjEAAAAA" if "OPENSSH" in name else "MIIEpAIBAAKCAQEA"
    body = start + base64.b64encode(rng.randbytes(rng.choice((120, 300, 600)))).decode()
    lines = [body[at : at + 64] for at in range(0, len(body), 64)]
    return "\n".join([f"-----BEGIN {name}-----", *lines, f"-----END {name}-----"])


def _pem_value(rng: random.Random, _entry: Entry) -> Value:
    made = pem(rng)
    return Value(made, parts=tuple(made.splitlines()[1:-1][:-1]))


def _pem_indented(rng: random.Random, entry: Entry) -> Value:
    made = _pem_value(rng, entry)
    return Value("\n".join("    " + line for line in made.text.splitlines()), parts=made.parts)


def _jwt_value(rng: random.Random, _entry: Entry) -> Value:
    made = jwt(rng)
    return Value(made, parts=(made, made.split(".")[1], made.split(".")[2]))


def wif(rng: random.Random) -> str:
    """A wallet import format key, compressed, with its double hash."""
    raw = b"\x80" + rng.randbytes(32) + b"\x01"
    raw += hashlib.sha256(hashlib.sha256(raw).digest()).digest()[:4]
    number, made = int.from_bytes(raw, "big"), ""
    while number:
        number, rest = divmod(number, 58)
        made = _BASE58[rest] + made
    return made


# Every eighth word of BIP 39's English list, so that a word's number is eight times its place.
_LIST = """
abandon absurd acoustic adapt advice agree alcohol alpha amount animal anxiety arch army artist
asthma audit avoid baby bamboo basic beef bench bid blade blossom boil borrow brand bright brown
bulk business cactus canal capital cart catch celery champion check chimney cinnamon claw climb
clown code come congress copy country craft credit cross crush current damage day decorate
deliver deposit despair dial dignity disease divorce donate dragon drink dune eagle ecology
either elite empower energy enrich equal escape evoke excuse exotic extra faith fantasy favorite
fence figure finish fix flip foam force foster fringe fun gallery gas genre ginger glide goat
govern gravity grow gym harbor head help hire home host humor hybrid illegal improve indoor
inject insect invite jacket job jungle key kitchen lab laptop lawn lecture length library link
loan lottery lunar maid mandate marine math meat mention metal minimum mix monitor mosquito much
must narrow neglect never noodle novel object october old only orchard other own pair parade
patient pear perfect piano pink plastic poem pool poverty present prison project public puppy
pyramid quote rain rare reason reduce relax render require retreat ribbon ring roast rose rug
safe sample scale scissors search seek series shallow ship shove siege simple skate slam slot
snack sock someone source speed spirit spread staff steak stock strike submit suit sure swallow
swing tackle task tenant theme three tilt toast tomato topic toward train trend trouble tube
twelve ugly unfair unlock upper useless valve velvet vessel village vital voyage warfare way
weekend wheel wild winter wonder wrap yellow
"""
_MNEMONIC = _LIST.split()


def mnemonic(rng: random.Random) -> str:
    """Twelve or twenty-four words whose last one carries the right checksum."""
    count = rng.choice((12, 12, 24))
    check_bits = count * 11 // 33
    while True:
        places = [rng.randrange(256) for _ in range(count)]
        number = 0
        for place in places:
            number = number << 11 | place * 8
        entropy = (number >> check_bits).to_bytes(check_bits * 4, "big")
        check = hashlib.sha256(entropy).digest()[0] >> (8 - check_bits)
        if check == number & ((1 << check_bits) - 1):
            return " ".join(_MNEMONIC[place] for place in places)


def crypt_hash(rng: random.Random) -> str:
    """What stands in a shadow file or beside a web server's users."""
    dotted = ALNUM + "./"
    return rng.choice(
        (
            f"$6${pick(rng, dotted, 16)}${pick(rng, dotted, 86)}",
            f"$y$j9T${pick(rng, dotted, 22)}${pick(rng, dotted, 43)}",
            f"$2{rng.choice('aby')}$12${pick(rng, dotted, 53)}",
            f"$5$rounds=5000${pick(rng, dotted, 16)}${pick(rng, dotted, 43)}",
        )
    )


def _basic(rng: random.Random, entry: Entry) -> Value:
    pair = f"{rng.choice(('admin', 'ci', 'api', 'svc-deploy'))}:{_safe(rng, entry).text}"
    return Value(base64.b64encode(pair.encode()).decode())


def _pin(rng: random.Random, _entry: Entry) -> Value:
    return Value(pick(rng, string.digits, rng.choice((4, 4, 6))), "whole")


def _hex(length: int) -> Maker:
    return lambda rng, _entry: Value(pick(rng, _HEX, length))


def _made(maker) -> Maker:
    return lambda rng, _entry: Value(maker(rng))


def _any_key(rng: random.Random, _entry: Entry) -> Value:
    return Value(rng.choice((github, slack, openai, stripe, google, gitlab, npm, aws_id))(rng))


def _opaque(rng: random.Random, _entry: Entry) -> Value:
    """A token of a service that marks its tokens with nothing."""
    return Value(
        rng.choice(
            (
                pick(rng, _HEX, rng.choice((32, 40, 64))),
                pick(rng, ALNUM, rng.choice((24, 32, 40))),
                base64.b64encode(rng.randbytes(rng.choice((24, 32)))).decode(),
                _unpadded(rng.randbytes(32)),
            )
        )
    )


MAKERS: dict[str, Maker] = {
    "pw": _of_styles(*_PLAIN),
    "pwq": _of_styles(*_PLAIN, "words"),
    "pwl": _of_styles(*_PLAIN, "words"),
    "pwj": _of_styles(*_PLAIN, "words", "awkward"),
    "pws": _safe,
    "pwx": _of_styles(*_PLAIN, "random", "habit", "habit"),
    "pin": _pin,
    "awsid": _made(aws_id),
    "awssecret": _made(aws_secret),
    "github": _made(github),
    "slack": _made(slack),
    "openai": _made(openai),
    "anthropic": _made(anthropic),
    "stripe": _made(stripe),
    "google": _made(google),
    "sendgrid": _made(sendgrid),
    "gitlab": _made(gitlab),
    "npm": _made(npm),
    "hf": _made(huggingface),
    "telegram": _made(telegram),
    "azure": _made(azure_client),
    "azurestore": lambda rng, _entry: Value(base64.b64encode(rng.randbytes(64)).decode()),
    "jwt": _jwt_value,
    "pem": _pem_value,
    "pemyaml": _pem_indented,
    "wgkey": lambda rng, _entry: Value(base64.b64encode(rng.randbytes(32)).decode()),
    "wif": _made(wif),
    "mnemonic": lambda rng, _entry: Value(mnemonic(rng), "words"),
    "crypt": _made(crypt_hash),
    "basic": _basic,
    "hexkey": _hex(64),
    "hextoken": _hex(32),
    "opaque": _opaque,
    "anykey": _any_key,
}
