"""Thumbs, stars and comments in a real browser: the plugin's own script, its own answers, a recorder behind them.

The page stands in for Agent Zero's: it has messages, and calls the script as Agent Zero does after it has drawn them.
"""

import json
import shutil
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from tests.integrations.agent_zero.doubles import Context, Kept
from tests.sdk.loop_double import PlainRedactor
from upswing.integrations.agent_zero.chat_memory import ChatMemory
from upswing.integrations.agent_zero.connection import PluginConnection
from upswing.integrations.agent_zero.feedback import answer_feedback
from upswing.integrations.agent_zero.layout import Layout
from upswing.integrations.agent_zero.plugin_files import plugin_files
from upswing.sdk.recorder import Recorder

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
pytestmark = [
    pytest.mark.live,
    pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium here"),
]
TRAJECTORY = "0d4c7a52-7f2e-4c39-9a4e-6f8d2f0b8a11"
SCRIPT = next(
    text
    for path, text in plugin_files(Layout.PLUGINS, PluginConnection()).items()
    if path.suffix == ".js"
)
API = """
export async function callJsonApi(endpoint, data) {
  const reply = await fetch("/api" + endpoint, { method: "POST", body: JSON.stringify(data) });
  if (!reply.ok) throw new Error(await reply.text());
  return await reply.json();
}
"""
PAGE = """<!doctype html><title>chat</title><div id="chat"></div><script type="module">
import add from "/upswing-feedback.js";
globalThis.getContext = () => "CHAT";
globalThis.shown = [];
globalThis.Alpine = { store: () => ({ frontendError: (text) => globalThis.shown.push(text) }) };
globalThis.draw = async (messages) => {
  const results = messages.map((args) => {
    let element = document.getElementById("message-" + args.id);
    if (!element) {
      element = document.createElement("div");
      element.id = "message-" + args.id;
      document.getElementById("chat").appendChild(element);
    }
    return { args, result: { element } };
  });
  await add({ results });
};
globalThis.ready = true;
</script>"""


class Page:
    """A server of the page, the script and the plugin's answers."""

    def __init__(self, recorder, context):
        self.asked = []
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def log_message(self, *_):
                pass

            def do_GET(self):
                kind, text = {
                    "/": ("text/html", PAGE.replace("CHAT", context.id)),
                    "/js/api.js": ("text/javascript", API),
                    "/upswing-feedback.js": ("text/javascript", SCRIPT),
                }.get(self.path, ("text/plain", ""))
                self.reply(200, kind, text.encode())

            def do_POST(self):
                body = json.loads(self.rfile.read(int(self.headers["content-length"])))
                outer.asked.append((self.path, body))
                found = context if body.get("context") == context.id else None
                status, answer = answer_feedback(body, found, recorder)
                self.reply(status, "application/json", json.dumps(answer).encode())

            def reply(self, status, kind, content):
                self.send_response(status)
                self.send_header("content-type", kind)
                self.send_header("content-length", str(len(content)))
                self.end_headers()
                self.wfile.write(content)

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}/"
        threading.Thread(target=self.server.serve_forever, args=(0.01,), daemon=True).start()

    def close(self):
        self.server.shutdown()
        self.server.server_close()


@pytest.fixture(scope="module")
def browser():
    driver = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    with driver.sync_playwright() as playwright:
        made = playwright.chromium.launch(
            executable_path=CHROMIUM, args=["--no-sandbox", "--disable-background-networking"]
        )
        yield made
        made.close()


@pytest.fixture
def chat(tmp_path):
    kept = Kept()
    recorder = Recorder(transport=lambda: kept, redactor=PlainRedactor, spool=tmp_path / "spool")
    context = Context()
    ChatMemory.of(context).answer_shown("answer-1", TRAJECTORY)
    page = Page(recorder, context)
    yield page, kept, recorder, context
    page.close()
    recorder.close()


def open_page(browser, page):
    opened = browser.new_page()
    opened.set_default_timeout(120_000)
    opened.goto(page.url)
    opened.wait_for_function("globalThis.ready === true")
    return opened


def message(name, *, finished=True, kind="response"):
    return {"id": name, "no": 1, "type": kind, "content": "Done.", "kvps": {"finished": finished}}


def draw(opened, *messages):
    opened.evaluate("(messages) => globalThis.draw(messages)", list(messages))


def pressed(opened, name):
    return opened.locator(name).first.get_attribute("aria-pressed") == "true"


def test_a_recorded_answer_can_be_rated_and_the_rating_changed(browser, chat):
    page, kept, recorder, _ = chat
    opened = open_page(browser, page)
    draw(opened, message("greeting"), message("answer-1"), message("tool-1", kind="tool"))
    assert opened.locator(".upswing-feedback").count() == 1
    assert opened.locator("#message-answer-1 .upswing-feedback").count() == 1
    opened.get_by_label("Bad answer").click()
    opened.wait_for_selector(".upswing-thumb_down[aria-pressed=true]")
    opened.get_by_label("4 of 5 stars").click()
    opened.wait_for_selector(".upswing-star:nth-of-type(6)[aria-pressed=true]")
    assert not pressed(opened, ".upswing-thumb_down"), "the last word counts"
    assert [
        star.get_attribute("aria-pressed") for star in opened.locator(".upswing-star").all()
    ] == [
        "true",
        "true",
        "true",
        "true",
        "false",
    ]
    opened.get_by_label("Comment", exact=True).click()
    opened.locator(".upswing-comment-text").fill("Shorter, please.")
    opened.locator(".upswing-comment-text").press("Enter")
    opened.wait_for_selector(".upswing-comment[aria-pressed=true]")
    opened.get_by_label("Good answer").click()
    opened.wait_for_selector(".upswing-thumb_up[aria-pressed=true]")
    opened.close()
    assert recorder.flush(60)
    assert [(each["type"], each["trajectory_id"]) for each in kept.feedback] == [
        ("thumbs_down", TRAJECTORY),
        ("rating", TRAJECTORY),
        ("comment", TRAJECTORY),
        ("thumbs_up", TRAJECTORY),
    ]
    again = open_page(browser, page)
    draw(again, message("answer-1"))
    assert pressed(again, ".upswing-thumb_up"), "a page that is loaded anew shows what was said"
    again.get_by_label("Comment", exact=True).click()
    assert again.locator(".upswing-comment-text").input_value() == "Shorter, please."
    again.close()


def test_an_answer_in_the_making_has_no_buttons_and_costs_no_request(browser, chat):
    page, *_ = chat
    opened = open_page(browser, page)
    for _ in range(20):
        draw(opened, message("answer-1", finished=False))
    assert page.asked == []
    assert opened.locator(".upswing-feedback").count() == 0
    for _ in range(5):
        draw(opened, message("answer-1"), message("greeting"))
    assert opened.locator(".upswing-feedback").count() == 1, "drawn again, not once more"
    assert len(page.asked) == 1, "what is known is not asked again"
    opened.close()


def test_a_refusal_is_shown_to_the_user(browser, chat):
    page, kept, recorder, context = chat
    opened = open_page(browser, page)
    draw(opened, message("answer-1"))
    context.data.clear()  # the chat's memory is gone: a restart without it, say
    opened.get_by_label("Good answer").click()
    opened.wait_for_function("globalThis.shown.length === 1")
    assert "Nobody recorded this answer" in opened.evaluate("globalThis.shown[0]")
    assert not pressed(opened, ".upswing-thumb_up")
    opened.close()
    assert recorder.flush(60)
    assert kept.feedback == []


def test_names_of_messages_are_text_and_never_markup(browser, chat):
    page, _, _, context = chat
    odd = 'x"]<img src=x onerror=alert(1)>'
    ChatMemory.of(context).answer_shown(odd, TRAJECTORY)
    opened = open_page(browser, page)
    draw(opened, message(odd))
    assert opened.locator("img").count() == 0
    opened.get_by_label("Good answer").click()
    opened.wait_for_selector(".upswing-thumb_up[aria-pressed=true]")
    opened.close()
