"""Nothing reaches the page that does not come from the page: hosts, origins, sessions, and the headers of every answer."""

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as some

from upswing.dashboard.core.origin import OwnHosts, host_name, may_change
from upswing.dashboard.core.sessions import KeyHolder, SessionTable
from upswing.dashboard.gate import NONCE, SESSION, CookieJar, Gate, ScriptNonces

COOKIES = CookieJar("upswing_session_8101")
HOST = "127.0.0.1:8101"
OWN = {"host": HOST, "origin": f"http://{HOST}", "accept": "text/html"}


async def inner(scope, receive, send):
    """Stands in for the page: says who is logged in, in a page with a script."""
    session = scope[SESSION]
    body = f"<script>x</script>{session.holder.key_id if session else 'nobody'}".encode()
    kind = (b"content-type", b"text/html; charset=utf-8")
    length = (b"content-length", str(len(body)).encode())
    await send({"type": "http.response.start", "status": 200, "headers": [kind, length]})
    await send({"type": "http.response.body", "body": body})


@pytest.fixture
def sessions():
    table = SessionTable()
    table.open("good", "key", KeyHolder("k1", "Ann", "reader"), 0.0)
    return table


@pytest.fixture
def ask(sessions):
    gate = Gate(ScriptNonces(inner), sessions, OwnHosts("127.0.0.1"), COOKIES, clock=lambda: 1.0)

    async def send(method, path, headers, token=None):
        cookie = {"cookie": f"{COOKIES.name}={token}"} if token else {}
        async with httpx.AsyncClient(
            transport=httpx.ASGITransport(gate), base_url=f"http://{HOST}"
        ) as client:
            return await client.request(method, path, headers={**headers, **cookie})

    return send


async def test_whoever_is_logged_in_gets_the_page(ask):
    answer = await ask("GET", "/models", OWN, "good")
    assert answer.status_code == 200
    assert answer.text.endswith("k1")


@pytest.mark.parametrize("token", [None, "bad", "go%00od", "x" * 5000])
async def test_whoever_is_not_is_led_to_the_login_and_back(ask, token):
    answer = await ask("GET", "/models?a=1&b=2", OWN, token)
    assert answer.status_code == 303
    assert answer.headers["location"] == "/login?next=/models%3Fa%3D1%26b%3D2"


async def test_a_script_that_is_not_logged_in_is_told_so(ask):
    answer = await ask("GET", "/session", {**OWN, "accept": "text/plain"})
    assert answer.status_code == 401


@pytest.mark.parametrize("path", ["/login", "/health", "/static/upswing.css", "/favicon.ico"])
async def test_the_way_in_is_open(ask, path):
    assert (await ask("GET", path, OWN)).status_code == 200


@pytest.mark.parametrize(
    "path", ["/loginx", "/login/", "/staticx", "/_nicegui/3.18.0/static/vue.js", "/session"]
)
async def test_nothing_else_is(ask, path):
    assert (await ask("GET", path, OWN)).status_code == 303


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH"])
@pytest.mark.parametrize(
    "origin",
    [
        None,
        "null",
        "http://evil.example",
        "http://127.0.0.1:9000",
        f"ftp://{HOST}",
        f"http://{HOST}@evil.example",
        f"http://{HOST}/",
    ],
)
async def test_what_changes_something_has_to_come_from_the_page(ask, method, origin):
    headers = (
        {**OWN, "origin": origin} if origin else {k: v for k, v in OWN.items() if k != "origin"}
    )
    assert (await ask(method, "/logout", headers, "good")).status_code == 403


@pytest.mark.parametrize("origin", [None, "http://evil.example"])
async def test_so_has_the_socket_even_to_be_read(ask, origin):
    headers = (
        {**OWN, "origin": origin} if origin else {k: v for k, v in OWN.items() if k != "origin"}
    )
    answer = await ask("GET", "/_nicegui_ws/socket.io/?transport=polling", headers, "good")
    assert answer.status_code == 403


@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:8101", "127.0.0.1.evil.example", "a@127.0.0.1", ""]
)
async def test_a_foreign_name_that_points_here_is_refused(ask, host):
    headers = {**OWN, "host": host, "origin": f"http://{host}"}
    assert (await ask("GET", "/", headers, "good")).status_code == 421


async def test_every_answer_keeps_the_page_to_itself(ask):
    for token, path in (("good", "/"), (None, "/"), (None, "/login")):
        headers = (await ask("GET", path, OWN, token)).headers
        policy = headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "frame-ancestors 'none'" in policy
        assert "unsafe-inline" not in policy.split("script-src")[1].split(";")[0]
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["referrer-policy"] == "same-origin"
        assert headers["cache-control"] == "no-store"


async def test_the_pages_own_scripts_get_a_nonce_that_is_new_each_time(ask):
    seen = set()
    for _ in range(3):
        answer = await ask("GET", "/", OWN, "good")
        nonce = answer.headers["content-security-policy"].split("'nonce-")[1].split("'")[0]
        assert f'<script nonce="{nonce}">' in answer.text
        assert int(answer.headers["content-length"]) == len(answer.content)
        seen.add(nonce)
    assert len(seen) == 3


async def test_a_socket_without_a_session_or_from_elsewhere_is_closed(sessions):
    opened = []

    async def page(scope, receive, send):
        opened.append(scope[SESSION])

    gate = Gate(page, sessions, OwnHosts("127.0.0.1"), COOKIES, clock=lambda: 1.0)

    async def connect(origin, token):
        sent = []
        headers = [(b"host", HOST.encode()), (b"origin", origin.encode())]
        headers.append((b"cookie", f"{COOKIES.name}={token}".encode()))
        scope = {
            "type": "websocket",
            "path": "/_nicegui_ws/socket.io/",
            "headers": headers,
            "query_string": b"",
        }

        async def send(message):
            sent.append(message["type"])

        await gate(scope, None, send)
        return sent

    assert await connect("http://evil.example", "good") == ["websocket.close"]
    assert await connect(f"http://{HOST}", "bad") == ["websocket.close"]
    assert opened == []
    assert await connect(f"http://{HOST}", "good") == []
    assert len(opened) == 1


def test_the_cookie_is_for_the_server_alone():
    header = COOKIES.header("token")
    assert "HttpOnly" in header
    assert "SameSite=Strict" in header
    assert "Secure" not in header
    assert "Secure" in CookieJar("x", secure=True).header("token")
    assert "Max-Age=0" in COOKIES.header("")


@given(
    some.lists(some.text(some.characters(max_codepoint=255, exclude_characters=";"), max_size=20))
)
def test_no_cookie_of_another_page_hides_the_sessions(others):
    others = [each for each in others if each.partition("=")[0].strip() != COOKIES.name]
    for place in range(len(others) + 1):
        pairs = [*others[:place], f"{COOKIES.name}=token", *others[place:]]
        assert COOKIES.token({b"cookie": "; ".join(pairs).encode("latin-1")}) == "token"
    assert COOKIES.token({b"cookie": "; ".join(others).encode("latin-1")}) is None


@given(some.text(max_size=60))
def test_no_text_is_a_host_of_ours_by_accident(text):
    name = host_name(text)
    assert name is None or (name.strip() == name and "/" not in name and "@" not in name)
    if OwnHosts("127.0.0.1").includes(text):
        assert name in {"localhost", "127.0.0.1", "::1"}


@given(some.text(max_size=60), some.text(max_size=60))
def test_only_the_hosts_own_origin_may_change_anything(host, origin):
    if may_change("POST", host, origin):
        assert origin.lower().endswith(host.lower())
        assert origin.lower().startswith("http")


async def test_a_browser_that_leaves_before_its_answer_is_no_error(sessions):
    async def page(scope, receive, send):
        await receive()
        raise RuntimeError("No response returned.")

    async def gone():
        return {"type": "http.disconnect"}

    async def there():
        return {"type": "http.request", "body": b""}

    gate = Gate(page, sessions, OwnHosts("127.0.0.1"), COOKIES, clock=lambda: 1.0)
    headers = [(b"host", HOST.encode())]
    scope = {
        "type": "http",
        "method": "GET",
        "path": "/login",
        "headers": headers,
        "query_string": b"",
    }
    await gate(dict(scope), gone, None)
    with pytest.raises(RuntimeError):
        await gate(dict(scope), there, None)
    assert NONCE
