"""The page in a real Chromium, beside a real loop: what a reader sees, and what an operator does."""

import os
import signal

import pytest
import pytest_asyncio

from tests.dashboard.browsing import NARROW, WIDE, staged
from tests.support import raw, trajectory

pytestmark = [pytest.mark.live, pytest.mark.asyncio(loop_scope="module")]
PAGES = (
    "/",
    "/trajectories",
    "/models",
    "/rollouts",
    "/jobs",
    "/alerts",
    "/reports",
    "/decisions",
    "/backtest",
    "/keys",
    "/users",
    "/settings",
)
HOSTILE = (
    "<script>window.owned = 1</script><img src=x onerror='window.owned = 1'>"
    "{{constructor.constructor('window.owned = 1')()}} `${window.owned = 1}` </script><script>window.owned=1</script>"
    " \u202egnp.exe\u2066 \x1b]0;owned\x07 [x](javascript:window.owned=1) ann@example.com"
)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def stage(tmp_path_factory):
    async with staged(tmp_path_factory.mktemp("page")) as made:
        yield made


# ── in and out ───────────────────────────────────────────────────────────────────────────────


async def test_the_loops_own_address_leads_to_the_page(stage):
    async with stage.tab(log_in=False) as page:
        await page.goto(stage.loop.running.http_url)
        await page.wait_for_selector("text=Log in")
        assert page.url.startswith(stage.url)


async def test_a_wrong_key_is_refused_with_a_sentence_and_an_agents_key_with_another(stage):
    agents = await stage.make_key("agent")
    async with stage.tab(log_in=False) as page:
        for key, sentence in (
            ("up_wrong", "does not know this key"),
            (agents, "may record, not read"),
        ):
            await page.fill("#key", key)
            await page.click("text=Log in")
            await page.wait_for_selector(f".problem:has-text('{sentence}')")
        assert await page.locator("nav").count() == 0
        page.complaints.clear()  # the browser reports 401 and 403 in its console


async def test_a_login_leads_to_the_page_that_was_asked_for_and_the_key_is_not_in_the_browser(
    stage,
):
    async with stage.tab("/trajectories?domain=coding") as page:
        await page.wait_for_selector("h1:has-text('Trajectories')")
        assert page.url.endswith("/trajectories?domain=coding")
        (cookie,) = await page.context.cookies()
        assert cookie["httpOnly"]
        assert cookie["sameSite"] == "Strict"
        seen = await page.content() + await page.evaluate(
            "document.cookie + JSON.stringify({...localStorage})"
        )
        assert stage.key not in seen
        assert stage.key not in str(cookie)


async def test_whoever_logs_out_in_one_tab_is_out_in_all(stage):
    async with stage.tab() as page:
        other = await page.context.new_page()
        await other.goto(stage.url + "/models")
        await other.wait_for_selector("h1:has-text('Models')")
        await other.wait_for_selector(".live.on >> visible=true")
        await page.click("button[aria-label='Log out']")
        await page.wait_for_selector("text=Log in")
        await other.wait_for_selector("text=Log in")
        await page.goto(stage.url + "/models")
        await page.wait_for_selector("text=Log in")


async def test_a_page_that_stays_open_after_the_log_out_can_do_nothing(stage):
    async with stage.tab("/keys") as page:
        await page.fill("label:has-text('Name') + input", "after the log-out")
        await page.evaluate("Object.defineProperty(window, 'open', {value: () => null})")
        other = await page.context.new_page()
        await other.goto(stage.url + "/models")
        await other.click("button[aria-label='Log out']")
        await page.click("button:has-text('Make key')")
        await page.wait_for_selector("text=This login is over")
        _, keys = await stage.ask("GET", "/v1/keys")
        assert "after the log-out" not in [each["name"] for each in keys["keys"]]
        page.complaints.clear()


# ── what it shows ────────────────────────────────────────────────────────────────────────────


async def test_an_open_page_shows_the_loop_change_without_loading_anew(stage):
    async with stage.tab() as page:
        await page.wait_for_selector(".live.on >> visible=true")
        counted = "() => parseInt(document.querySelector('.s2 .value').innerText.replace(',', ''))"
        await page.wait_for_function(f"() => !isNaN(({counted})())")
        before = await page.evaluate(counted)
        for _ in range(3):
            await stage.record()
        await page.wait_for_function(f"([n]) => ({counted})() === n", arg=[before + 3])


@pytest.mark.long
@pytest.mark.parametrize(
    ("size", "scheme"), [(WIDE, "light"), (NARROW, "dark")], ids=["1280-light", "390-dark"]
)
async def test_every_page_fits_is_quiet_and_stands_still(stage, size, scheme):
    await stage.record()
    async with stage.tab(size=size, color_scheme=scheme) as page:
        for path in PAGES:
            await page.goto(stage.url + path)
            await page.wait_for_selector("h1")
            await page.wait_for_selector(".live.on >> visible=true")
            await page.wait_for_selector(".page:not(.settling)")
            width = await page.evaluate("document.documentElement.scrollWidth")
            assert width <= size["width"], f"{path} is {width} pixels wide"
            ground = await page.evaluate("getComputedStyle(document.body).backgroundColor")
            assert ground == ("rgb(16, 18, 23)" if scheme == "dark" else "rgb(246, 247, 249)")
            shift = await page.evaluate(
                "() => new Promise(done => { let sum = 0; new PerformanceObserver(list => {"
                " for (const e of list.getEntries()) if (!e.hadRecentInput) sum += e.value; })"
                ".observe({type: 'layout-shift', buffered: true}); requestAnimationFrame(() => setTimeout(() => done(sum), 50)); })"
            )
            assert shift < 0.1, f"{path} jumps: {shift:.3f}"


async def test_the_theme_can_be_chosen_and_is_remembered(stage):
    async with stage.tab(color_scheme="light") as page:
        ground = "getComputedStyle(document.body).backgroundColor"
        light = await page.evaluate(ground)
        button = page.locator("button[aria-label='Light or dark']")
        await button.click()
        await button.click()
        await page.wait_for_function(f"([light]) => {ground} !== light", arg=[light])
        await page.reload()
        await page.wait_for_selector("h1")
        assert await page.evaluate(ground) != light


async def test_it_can_be_used_by_keyboard(stage):
    wanted = await stage.record(task_context={"task_id": "by-keyboard"})
    async with stage.tab("/trajectories?text=by-keyboard") as page:
        await page.wait_for_selector("tr[data-id]")
        await page.keyboard.press("Tab")
        assert await page.evaluate("document.activeElement.innerText") == "Skip to the content"
        for _ in range(60):
            await page.keyboard.press("Tab")
            if wanted in (await page.evaluate("document.activeElement.href || ''")):
                break
        await page.keyboard.press("Enter")
        await page.wait_for_url(f"**/trajectories/{wanted}")


async def test_where_there_is_nothing_it_says_what_to_do_next(stage):
    async with stage.tab("/trajectories?text=nobody-ever-said-this") as page:
        await page.wait_for_selector("text=Nothing matches")
        await page.goto(stage.url + "/jobs")
        await page.wait_for_selector("text=Nothing was trained yet")
        await page.wait_for_selector("code:has-text('upswing train')")


@pytest.mark.parametrize(
    "path",
    [
        "/model?id=nope",
        "/jobs/nope",
        "/rollouts/nope",
        "/decisions/nope-nope",
        "/validations/nope",
        "/reports/nope",
        "/trajectories/nope",
    ],
)
async def test_an_id_that_nobody_knows_is_said_once_and_nothing_is_claimed_of_it(stage, path):
    async with stage.tab(path) as page:
        await page.wait_for_selector(".page:not(.settling) >> text=There is nothing here")
        assert await page.locator(".page .card").count() == 0
        assert "not trained here" not in await page.locator(".page").inner_text()


async def test_a_page_that_does_not_exist_says_so_and_every_page_has_its_title(stage):
    async with stage.tab("/nonsense") as page:
        await page.wait_for_selector("h1:has-text('There is no such page')")
        assert "404" not in await page.locator("#content").inner_text()
        page.complaints.clear()  # the browser's own, of the status 404
        await page.goto(f"{stage.url}/keys")
        await page.wait_for_selector("h1:has-text('Keys')")
        assert await page.title() == "Keys · Upswing"
        await page.click("nav >> text=Models")
        await page.wait_for_selector("h1:has-text('Models')")
        await page.wait_for_function("document.title === 'Models · Upswing'")


async def test_a_search_that_is_refused_shows_the_reason_alone(stage):
    async with stage.tab("/trajectories?min_reward=2&max_reward=1") as page:
        await page.wait_for_selector("text=`min_reward` is above `max_reward`")
        assert not await page.locator("button:has-text('Show more')").is_visible()
        assert not await page.locator("th:has-text('Outcome')").is_visible()


async def test_a_dead_letter_is_shown_whole(stage):
    status, _ = await stage.ask("POST", "/v1/trajectories", b'{"said": "a violet letter"}')
    assert status == 422
    async with stage.tab("/jobs") as page:
        await page.click("button:has-text('Show'):not(:has-text('more')) >> nth=0")
        await page.wait_for_selector("[role=dialog] >> text=a violet letter")


async def test_a_trajectory_is_found_by_its_text_and_shown_turn_by_turn(stage):
    turn = trajectory()["turns"][0]
    turn["observation"] = {
        "type": "user_message",
        "content": "refund the violet umbrella for ann@example.com",
    }
    turn["action"] = {
        "type": "tool_call",
        "tool_name": "lookup_order",
        "tool_args": {"order": 4411},
    }
    turn["result"] = {"success": True, "output": {"found": True}}
    wanted = await stage.record(turns=[turn], task_context={"task_id": "umbrella"})
    async with stage.tab("/trajectories") as page:
        await page.fill("label:has-text('Text') + input", "Violet Umbrella")
        await page.keyboard.press("Enter")
        await page.wait_for_url("**/trajectories?text=Violet+Umbrella")
        await page.click("a:has-text('umbrella')")
        await page.wait_for_url(f"**/trajectories/{wanted}")
        await page.wait_for_selector("text=lookup_order({")
        assert await page.locator("mark.placeholder").first.inner_text() == "<email-1>"
        assert "ann@example.com" not in await page.content()
        await page.wait_for_selector(".term:has-text('task completion')")
        await page.wait_for_selector("text=No model has learned from it.")


async def test_hostile_text_is_text(stage):
    turn = trajectory()["turns"][0]
    turn["observation"] = {"type": "user_message", "content": HOSTILE}
    turn["action"] = {"type": "tool_call", "tool_name": HOSTILE, "tool_args": {HOSTILE: HOSTILE}}
    turn["result"] = {"success": False, "output": HOSTILE, "error": HOSTILE}
    wanted = await stage.record(
        turns=[turn],
        agent_id="<b onmouseover=owned()>agent</b>\u202e",
        task_context={
            "task_id": "</script><script>window.owned=1</script>",
            "instructions": HOSTILE,
        },
        metadata={"model": "<script>window.owned=1</script>", "user_id": "{{7*7}}\u202e"},
    )
    async with stage.tab(f"/trajectories/{wanted}") as page:
        await page.wait_for_selector(".turn")
        await page.wait_for_selector("span.escape:has-text('\\\\u202e')")
        shown = await page.inner_text(".turn")
        assert "<script>window.owned = 1</script>" in shown
        assert "\u202e" not in await page.inner_text("body")
        for path in ("/trajectories", "/trajectories?text=constructor", "/", "/models"):
            await page.goto(stage.url + path)
            await page.wait_for_selector(".live.on >> visible=true")
            await page.wait_for_function("() => document.querySelectorAll('h1').length")
        await page.goto(f"{stage.url}/model?id=%3Cscript%3Ewindow.owned%3D1%3C%2Fscript%3E")
        await page.wait_for_selector("h1:has-text('<script>')")
        assert await page.evaluate("window.owned") is None


async def test_a_line_of_a_megabyte_is_shown_as_far_as_a_person_reads(stage):
    turn = trajectory()["turns"][0]
    turn["action"] = {"type": "response", "raw_response": "x" * 1_000_000}
    wanted = await stage.record(turns=[turn])
    async with stage.tab(f"/trajectories/{wanted}", size=NARROW) as page:
        await page.wait_for_selector("text=/… 996,000 characters more/")
        await page.click("text=Show more")
        await page.wait_for_selector("text=/… 956,000 characters more/")
        assert await page.evaluate("document.documentElement.scrollWidth") <= NARROW["width"]


async def test_a_script_that_gets_into_the_page_does_not_run(stage):
    async with stage.tab() as page:
        await page.evaluate(
            "() => { for (const html of ['<img src=x onerror=\"window.owned=1\">']) document.body.insertAdjacentHTML('beforeend', html);"
            " const s = document.createElement('script'); s.textContent = 'window.owned=1'; document.body.append(s); }"
        )
        await page.wait_for_function("() => true")
        assert await page.evaluate("window.owned") is None
        assert any("Content Security Policy" in said for said in page.complaints)
        page.complaints.clear()


async def test_another_policy_is_tried_on_the_journal_and_a_wrong_one_is_refused(stage):
    async with stage.tab("/backtest") as page:
        area = page.locator("textarea")
        await area.fill("[trigger]\nthreshold = 3\n")
        await page.click("button:has-text('Try it')")
        await page.wait_for_selector("text=Decisions replayed")
        await area.fill("[trigger]\nthreshhold = 3\n")
        await page.click("button:has-text('Try it')")
        await page.wait_for_selector(".q-notification:has-text('threshhold')")


async def test_the_report_of_today_can_be_read(stage):
    async with stage.tab("/reports") as page:
        await page.click("text=Today so far")
        await page.wait_for_selector(".markdown h1")
        assert await page.evaluate("window.owned") is None


# ── what an operator does ────────────────────────────────────────────────────────────────────


async def test_feedback_from_the_page_is_real_feedback_and_the_revision_is_seen(stage):
    wanted = await stage.record()
    async with stage.tab(f"/trajectories/{wanted}") as page:
        await page.wait_for_selector("[data-revision]")
        before = int(await page.get_attribute("[data-revision]", "data-revision"))
        await page.click("button[aria-label='Thumbs up']")
        await page.wait_for_function(
            "([n]) => document.querySelector('[data-revision]')?.dataset.revision > n", arg=[before]
        )
        await page.wait_for_selector(".term:has-text('user feedback'):has-text('1.00 ×')")
        await page.click("button[aria-label='2 of 5 stars']")
        await page.wait_for_selector("text=2 of 5 >> visible=true")
        await page.wait_for_function(
            "([n]) => document.querySelector('[data-revision]')?.dataset.revision > n",
            arg=[before + 1],
        )
    _, seen = await stage.ask("GET", f"/v1/feedback?trajectory={wanted}")
    assert {(each["user_id"], each["source"]) for each in seen["feedback"]} == {
        ("operator", "operator")
    }
    _, audit = await stage.ask("GET", "/v1/audit?what=feedback")
    assert audit["entries"][0]["who"] == "key operator"


async def test_a_failure_is_pinned_as_a_test(stage):
    wanted = await stage.record()
    async with stage.tab(f"/trajectories/{wanted}") as page:
        await page.click("text=Pin as test >> nth=0")
        await page.click(".sheet button:has-text('Pin')")
        await page.wait_for_selector("text=1 test is pinned.")


async def test_a_reader_sees_everything_and_can_do_nothing(stage):
    reader, wanted = await stage.make_key("reader"), await stage.record()
    async with stage.tab(f"/trajectories/{wanted}", key=reader) as page:
        await page.wait_for_selector(".term")
        thumb = page.locator("button[aria-label='Thumbs up']")
        assert await thumb.is_disabled()
        await page.evaluate(
            "document.querySelectorAll('button[disabled]').forEach(b => { b.disabled = false; b.click(); })"
        )
        await page.goto(stage.url + "/keys")
        await page.wait_for_selector("text=/needs a key with scope operator/")
        assert await page.locator("text=Make a key >> visible=true").count() == 0
        await page.goto(stage.url + "/users")
        assert await page.locator("button:has-text('Erase everything')").is_disabled()
    _, seen = await stage.ask("GET", f"/v1/feedback?trajectory={wanted}")
    assert seen["feedback"] == []


async def test_a_model_is_approved_held_let_go_on_and_rolled_back(stage):
    body = {"model_id": "m1", "backend": stage.candidate.url, "name": "candidate"}
    status, made = await stage.ask("POST", "/admin/models", raw(body))
    assert status == 201, made
    async with stage.tab("/rollouts") as page:
        for button, state in (
            ("Approve", "ramping"),
            ("Hold", "paused"),
            ("Go on", "ramping"),
            ("Roll back", "rolled back"),
        ):
            await page.click(f"section button:has-text('{button}')")
            await page.wait_for_selector(".sheet")
            await page.fill(".sheet input", f"because: {button}")
            await page.click(f".sheet button:has-text('{button}')")
            await page.wait_for_selector(f".badge:has-text('{state}') >> visible=true")
            await page.wait_for_selector(".sheet", state="hidden")
        await page.click("tr a:has-text('m1')")
        await page.wait_for_selector("text=Every decision, in words")
        await page.wait_for_selector(".feed li")
        await page.click(".feed li a >> nth=0")
        await page.wait_for_selector("text=What it rested on")
    _, audit = await stage.ask("GET", "/v1/audit?about=m1")
    acts = {each["what"]: each["detail"] for each in audit["entries"]}
    assert {"approve", "pause", "resume", "rollback"} <= acts.keys()
    assert "because: Roll back" in str(acts["rollback"])


async def test_nothing_is_done_that_is_not_confirmed(stage):
    async with stage.tab("/jobs") as page:
        await page.click("text=Train now")
        await page.click(".sheet button:has-text('Cancel')")
        await page.wait_for_selector(".sheet", state="hidden")
        await page.click("text=Train now")
        await page.keyboard.press("Escape")
        await page.wait_for_selector(".sheet", state="hidden")
    _, audit = await stage.ask("GET", "/v1/audit?what=trigger")
    assert audit["entries"] == []


async def test_a_key_is_made_shown_once_and_revoked(stage):
    async with stage.tab("/keys") as page:
        await page.fill("label:has-text('Name') + input", "from the page")
        await page.click("button:has-text('Make key')")
        made = await page.inner_text(".secret code")
        assert (await stage.ask("GET", "/v1/status", key=made))[0] == 200
        await page.click("button:has-text('Hide')")
        await page.wait_for_selector(".secret", state="detached")
        row = page.locator("tr", has_text="from the page")
        await row.locator("button:has-text('Revoke')").click()
        await page.click(".sheet button:has-text('Revoke')")
        await row.locator(".badge:has-text('revoked')").wait_for()
        assert (await stage.ask("GET", "/v1/status", key=made))[0] == 401


async def test_a_user_is_not_recorded_any_more_and_erased_only_by_name(stage):
    await stage.record(metadata={"user_id": "user-17"})
    async with stage.tab("/users") as page:
        await page.fill("label:has-text('User') + input", "user-17")
        await page.click("button:has-text('Erase everything')")
        await page.fill(".sheet input", "user-1")
        await page.click(".sheet button:has-text('Erase')")
        await page.wait_for_selector("text=Type user-17 exactly.")
        await page.fill(".sheet input", "user-17")
        await page.click(".sheet button:has-text('Erase')")
        await page.wait_for_selector("text=/Erased: 1 trajectory/")
        await page.click("button:has-text('Stop recording')")
        await page.click(".sheet button:has-text('Stop recording')")
        await page.wait_for_selector("tr:has-text('user-17')")
        await page.click("tr:has-text('user-17') button")
        await page.wait_for_selector("text=Everybody is recorded")


async def test_a_key_that_is_revoked_while_its_page_is_open_ends_the_session(stage):
    reader = await stage.make_key("reader")
    async with stage.tab("/trajectories", key=reader) as page:
        await page.wait_for_selector(".live.on >> visible=true")
        _, keys = await stage.ask("GET", "/v1/keys")
        mine = [
            each["key_id"]
            for each in keys["keys"]
            if each["scope"] == "reader" and not each["revoked"]
        ]
        for key_id in mine:
            await stage.ask("DELETE", f"/v1/keys/{key_id}")
        await stage.record()
        await page.wait_for_selector("text=Log in")
        page.complaints.clear()


# ── when something is away ───────────────────────────────────────────────────────────────────


async def test_a_page_whose_process_dies_comes_back_and_asks_to_log_in(stage):
    async with stage.tab() as page:
        await page.wait_for_selector(".live.on >> visible=true")
        os.kill(stage.page_pid(), signal.SIGKILL)
        await page.wait_for_selector("text=Log in")
        page.complaints.clear()  # the browser reports that it could not connect
    assert (await stage.ask("GET", "/health"))[0] == 200


@pytest.mark.long
async def test_a_page_of_its_own_tells_that_the_loop_is_away_and_goes_on_when_it_is_back(stage):
    await stage.record()
    async with stage.standing_alone() as alone, alone.tab() as page:
        await page.wait_for_selector(".live.on >> visible=true")
        alone.network.fail()
        await page.wait_for_selector(".banner:has-text('The loop does not answer')")
        await page.click("nav a:has-text('Trajectories')")
        await page.wait_for_selector("text=/Not up to date/")
        alone.network.fails = False
        await page.wait_for_selector(".live.on >> visible=true")
        await page.wait_for_selector("tr[data-id]")


@pytest.mark.long
async def test_after_five_wrong_keys_even_the_right_one_has_to_wait(stage):
    async with stage.standing_alone() as alone, alone.tab(log_in=False) as page:
        for number in range(5):
            await page.fill("#key", f"up_wrong{number}")
            await page.click("text=Log in")
            await page.wait_for_selector(".problem:has-text('does not know this key')")
        await page.fill("#key", alone.key)
        await page.click("text=Log in")
        await page.wait_for_selector(".problem:has-text('Too many wrong keys')")
        page.complaints.clear()  # the browser reports 401 and 429
