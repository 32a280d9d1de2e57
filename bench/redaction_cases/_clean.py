"""Texts in which there is nothing to find, although much of it looks like something."""

import json
import random
import uuid
from collections.abc import Iterator

from bench.redaction_cases import Case

HEX = "0123456789abcdef"
CODE = (
    "password = get_password()\n",
    "def login(user: str, password: str, token: str | None = None) -> bool:\n    return check(user, password, token)\n",
    "if token == 'identifier':\n    return tokens[index]\n",
    "self.password = password\n",
    'parser.add_argument("--password", help="the password to use", required=True)\n',
    "const token = await getToken();\nheaders.set('X-Trace', traceId);\n",
    "password: Optional[str] = None\nsecret: SecretStr\n",
    "for word in words:\n    total += counts.get(word, 0)\n",
    'api_key = os.environ["API_KEY"]\n',
    "pass  # nothing to do\n",
    "assert response.status_code == 200\n",
    "max_tokens: 4096\ntemperature: 0.7\n",
    "SELECT id, name FROM users WHERE created_at > '2024-01-01' ORDER BY id;\n",
    'label.password = "Passwort"\n',
    "git checkout 9fceb02d0ae598e95dc970b74767f19372d61af8\n",
    "pip install requests==2.31.0 numpy==1.26.4.1\n",
    "const { user, password } = req.body;\n",
    "password = request.form.get('password')\n",
    "key = cache_key(user_id, page)\nvalue = store[key]\n",
    "secret = secrets.token_hex(16)\n",
    "x = 3.14159265358979\ny = 0x7fffffffffffffff\n",
    "func Login(user, password string) error {\n\treturn auth.Check(user, password)\n}\n",
    "PASSWORD=${DB_PASSWORD:-}\n",
    "docker run --rm -p 8080:80 -v $PWD:/app nginx:1.25.3\n",
    '<input type="password" name="pw" placeholder="Password">\n',
)
PROSE = {
    "en": (
        "The password must be at least eight characters long.",
        "Could you pass the salt, please?",
        "Your password is expired and the token is invalid.",
        "A PIN code is required at the door.",
        "She forgot her password again, so we reset it.",
        "The price went from 1,299.00 to 999.50 within two weeks.",
        "Version 1.2.3.4 fixes the crash that 10.0.22621.1 had.",
        "Chapter 12 describes how tokens are counted.",
        "The meeting is on 2024-05-17 at 10:30 in room 4021.",
        "The secret of good bread is patience.",
        "The key to success is to start early.",
        "Our password policy is strict but fair.",
        "He was born in a small town near the sea.",
        "The report covers 2019 to 2023 and lists 14 500 cases.",
        "Call me later, I am in a meeting until three.",
        "Use a password manager to keep them safe.",
    ),
    "de": (
        "Das Passwort ist abgelaufen und muss geändert werden.",
        "Bitte gib dein Kennwort ein.",
        "Der Schlüssel liegt unter der Matte.",
        "Das Passwort muss mindestens acht Zeichen haben.",
        "Die Rechnung über 1.299,00 Euro ist vom 17.05.2024.",
        "Passwort vergessen? Hier zurücksetzen.",
        "Die Nummer des Zimmers ist 214.",
        "Er wurde in einer kleinen Stadt geboren.",
    ),
    "fr": (
        "Le mot de passe est incorrect.",
        "Mot de passe oublié ?",
        "La clé est sous le paillasson.",
        "Le prix est de 1 299,00 euros depuis le 17/05/2024.",
        "Le jeton est invalide et doit être renouvelé.",
        "Elle est née dans une petite ville.",
    ),
    "es": (
        "La contraseña es incorrecta.",
        "¿Olvidaste tu contraseña?",
        "La clave del éxito es empezar pronto.",
        "El precio bajó de 1.299,00 a 999,50 euros.",
        "Nació en un pueblo pequeño.",
    ),
    "ru": (
        "Пароль неверный.",
        "Забыли пароль?",
        "Ключ лежит под ковриком.",
        "Цена снизилась с 1299 до 999 рублей.",
        "Он родился в маленьком городе.",
    ),
    "zh": (
        "密码错误，请重试。",
        "忘记密码？",
        "价格从1299元降到999元。",
        "他出生在一个小镇。",
        "请输入密码。",
    ),
}


def _log(rng: random.Random) -> str:
    at = f"2024-05-{rng.randint(1, 28):02d}T{rng.randint(0, 23):02d}:{rng.randint(0, 59):02d}:07.{rng.randint(100, 999)}Z"
    return rng.choice(
        (
            f"{at} INFO worker-{rng.randint(1, 9)} took {rng.randint(10, 9999)} ms id={uuid.UUID(int=rng.getrandbits(128))}",
            f"{at} WARN 10.0.{rng.randint(0, 9)}.{rng.randint(1, 200)}:8080 slow query: {rng.randint(100, 9999)} rows",
            f"--- PASS: TestLogin{rng.randint(1, 99)} (0.{rng.randint(10, 99)}s)",
            f"tests: pass={rng.randint(1, 400)} fail=0 skip=2",
            f"{at} DEBUG commit {''.join(rng.choice(HEX) for _ in range(40))} merged",
            f"GET /api/v1/items?page={rng.randint(1, 99)}&limit=20 200 {rng.randint(100, 99999)}",
            f"sha256:{''.join(rng.choice(HEX) for _ in range(64))} linux/amd64",
            f"{at} ERROR token expired for session, retry in {rng.randint(1, 60)} s",
            f"prompt_tokens={rng.randint(100, 9999)} completion_tokens={rng.randint(10, 999)} model=small-{rng.randint(1, 4)}.{rng.randint(0, 9)}",
        )
    )


def _json(rng: random.Random) -> str:
    return json.dumps(
        rng.choice(
            (
                {
                    "id": str(uuid.UUID(int=rng.getrandbits(128))),
                    "status": "ok",
                    "count": rng.randint(1, 999),
                    "price": 19.99,
                },
                {
                    "token": rng.choice((" the", "function", "return")),
                    "logprob": -0.12,
                    "bytes": [32, 116],
                },
                {
                    "type": "object",
                    "properties": {
                        "password": {"type": "string", "minLength": 8},
                        "token": {"type": "string"},
                    },
                },
                {"labels": {"password": "Passwort", "forgot": "Passwort vergessen"}, "lang": "de"},
                {"name": "search", "arguments": {"query": "weather", "key": "city"}},
                {
                    "version": "1.2.3.4",
                    "commit": "".join(rng.choice(HEX) for _ in range(40)),
                    "ts": 1718123456789,
                },
                {"role": "user", "content": "What is the capital of France?"},
                {"field": "password", "error": "required"},
            )
        )
    )


def clean(rng: random.Random) -> Iterator[Case]:
    while True:
        yield Case("code", "clean", "code", "en", "code", "".join(rng.sample(CODE, 4)), ())
        language = rng.choice(list(PROSE))
        yield Case(
            "prose",
            "clean",
            "prose",
            language,
            "prose",
            " ".join(rng.sample(PROSE[language], 4)),
            (),
        )
        yield Case("log", "clean", "log", "en", "log", "\n".join(_log(rng) for _ in range(5)), ())
        yield Case("json", "clean", "json", "en", "json", _json(rng), ())
