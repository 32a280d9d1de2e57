"""Every rule finds its example, leaves the dummies alone, and refuses to be dangerous."""

from __future__ import annotations

import re

import pytest

from upswing.redact import RedactionFailed, Redactor, Rule, default_rules

REDACTORS = {name: Redactor(engine=name) for name in ("auto", "python")}
RULES = default_rules()


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.name)
@pytest.mark.parametrize("engine", REDACTORS)
def test_a_rule_finds_its_example_and_names_it(rule: Rule, engine: str):
    out = REDACTORS[engine].text(f"see {rule.example} end")
    assert [f.rule for f in out.findings] == [rule.name]
    assert f"<{rule.kind}-1>" in out.value


def test_there_are_at_least_sixty_kinds_and_each_is_described():
    assert len({rule.kind for rule in RULES}) > 60
    assert len({rule.name for rule in RULES}) == len(RULES)
    assert all(rule.about and rule.example for rule in RULES)


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.name)
def test_an_anchor_that_claims_a_width_has_it(rule: Rule):
    for anchor in rule.anchors:
        body = re.escape(anchor.literal) + anchor.follow
        low, high = re._parser.parse(body).getwidth()
        assert (low, high) == (anchor.width, anchor.width) or (
            anchor.width == 0 < anchor.reach >= high
        )


@pytest.mark.parametrize(
    "line",
    [
        "password = getpass()",
        'password = os.environ["PASSWORD"]',
        "def login(user: str, password: str, token: str = None): ...",
        "secret: ${VAR}",
        "password=<password-1>",
        'api_key = "your-api-key-here"',
        'api_key="xxxxxxxxxxxxxxxxxxxxxxxxxxxx"',
        "token = next_token(stream)",
        'password: "changeme"',
        "password: string",
        "max_tokens: 4096, tokens=1234567890123456",
        "client.login(password=password, token=token)",
        "commit 9fceb02d0ae598e95dc970b74767f19372d61af8",
        "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
        "id 123e4567-e89b-12d3-a456-426614174000",
        "2024-05-17T12:30:45.123456Z took 1718123456789 ns, v1.22.333-rc4",
        "1718123456789012345 1234567890 555-1234 10.0.0.1:8080",
        "https://example.org/a/b?q=1&page=2#frag",
        "git@github.com:owner/repo.git",
        "task-management risk-assessment-framework desk-organization-tips-2024",
        '<input type="password" name="pw">',
        "The password must be at least eight characters long.",
        'fields = ["username", "password", "email", "token"]',
        "if token == 'identifier': return tokens[index2]",
        "Authorization: Bearer <token>",
        "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk",
        "from package.module import some_function_with_a_long_name as other",
        "-----BEGIN PRIVATE KEY----- is how such a file begins.",
        "@dataclass(frozen=True) and user@localhost and @pytest.mark.parametrize",
        "x = 3.14159265358979; y = 4539148803436468; z = 0x7fffffffffffffff",
        "postgres://user:${PASSWORD}@host/db and http://user:<password>@host/",
        "auth: required, cookie: str, session=None, secret_name=prod/db",
    ],
)
def test_what_is_no_secret_stays(line: str):
    out = REDACTORS["auto"].text(line)
    assert out.value is line or out.value == line, out
    assert not out.changed


@pytest.mark.parametrize(
    ("line", "left"),
    [
        ('{\\"password\\": \\"hunter2!\\"}', '{\\"password\\": \\"<password-1>\\"}'),
        ("DB_PASS=letmein", "DB_PASS=<password-1>"),
        ("the password is Tr0ub4dor&3.", "the password is <password-1>"),
        ("password: str = 'hunter2'", "password: str = '<password-1>'"),
        ("mysql -u root -phunter2x db", "mysql -u root -p<password-1> db"),
        ("line\\nbob@x.org\\n", "line\\n<email-1>\\n"),
        ("redis://:p4ssw0rd@cache:6379/0", "redis://:<password-1>@cache:6379/0"),
        ("bob@x.org eve@x.org bob@x.org", "<email-1> <email-2> <email-1>"),
        ("already <email-7>, new bob@x.org", "already <email-7>, new <email-8>"),
    ],
)
def test_only_the_value_goes(line: str, left: str):
    assert REDACTORS["auto"].text(line).value == left
    assert REDACTORS["python"].text(line).value == left


@pytest.mark.parametrize(
    ("pattern", "reason"),
    [
        ("(a+)+b", "unbounded"),
        ("a.*b", "unbounded"),
        ("(?:a{1,50}){1,50}b", "ways"),
        ("(?:a|ab|b){1,90}c", "ways"),
        ("[a-z", "not valid"),
        ("x{0,5}", "empty"),
        ("x{1,9000}", "longer"),
    ],
)
def test_a_dangerous_pattern_is_refused_with_a_sentence(pattern: str, reason: str):
    with pytest.raises(ValueError, match=reason):
        Rule("mine", pattern)


def test_a_rule_of_a_user_works_like_the_built_in_ones():
    mine = Rule("employee", r"EMP-[0-9]{6}", literals=("EMP-",))
    for engine in ("auto", "python"):
        redactor = Redactor(rules=(*RULES, mine), engine=engine)
        assert redactor.text("ask EMP-123456 now").value == "ask <employee-1> now"
        assert redactor.text("ask RU1QLTEyMzQ1NiBub3c= now").value == "ask <employee-1> now"


def test_when_a_validator_breaks_nothing_comes_back():
    def broken(value: str) -> bool:
        raise KeyError(value)

    redactor = Redactor(rules=(Rule("mine", "abc", validator=broken),))
    with pytest.raises(RedactionFailed) as caught:
        redactor.text("xx abc xx")
    assert "abc" not in str(caught.value)
    assert caught.value.__cause__ is None
    with pytest.raises(RedactionFailed):
        redactor.tree({"a": ["abc"]})
    with pytest.raises(RedactionFailed):
        redactor.tree({"a": b"bytes"})


@pytest.mark.parametrize(
    "text",
    [
        "<glpat-" + "k7qm2xzr" * 3 + "-1>",
        'password: "$ecret123"',
        'password: "my-s3cret-pw"',
        'password: "xxxSecret1"',
        "password: abc9def<email-1>",
        "log" + "ghp_" + "k7Qm2XzR" * 5,
        '{"pass\u200bword": "hunter2!"}',
        "cGFzc3dvcmQ9aHVudGVyMiE=",
        "<email-999999999> bob@x.org",
        "\ud800 bob@x.org",
        "\\ud835\\udc1a bob@x.org",
        'psql "host=db user=app password=s3cr3tpw sslmode=require"',
        "-H 'X-Api-Key: a8Kd93jfQ0lsPx71mZ5t'",
        "https://x.test/cb?access_token=a8Kd93jfQ0lsPx71mZ5t&state=1",
    ],
)
def test_tricks_do_not_help(text: str):
    for engine in REDACTORS.values():
        out = engine.text(text)
        assert out.changed
        assert engine.text(out.value).value == out.value


def test_a_redactor_is_shared_between_threads():
    from concurrent.futures import ThreadPoolExecutor

    text = "ordinary words " * 2000 + "bob@x.org"
    with ThreadPoolExecutor(8) as pool:
        results = list(pool.map(lambda _: REDACTORS["auto"].text(text).value[-9:], range(64)))
    assert set(results) == {"<email-1>"}
