"""The demo is visible in its page while it runs: agents, a training, a promotion, a rollback."""

import json
import os
import subprocess

import pytest

from tests.dashboard.browsing import BROWSER, FLAGS
from tests.support import UPSWING, until

pytestmark = [pytest.mark.live, pytest.mark.learn, pytest.mark.slow]
MINUTES = 45
"""For the whole, on a machine that is busy with others."""


async def test_a_running_demo_changes_its_page_until_the_sabotaged_model_is_rolled_back(tmp_path):
    if BROWSER is None:
        pytest.skip("no Chromium on this machine: apt-get install chromium")
    driver = pytest.importorskip("playwright.async_api", reason="playwright is not installed")
    data, log = tmp_path / "demo", tmp_path / "log"
    command = [UPSWING, "demo", "--data", str(data), "--cycles", "1", "--keep"]
    with log.open("wb") as words:
        demo = subprocess.Popen(command, stdout=words, stderr=words, start_new_session=True)
    try:
        await until((data / "running.json").exists, 300, "the demo does not start")
        where = json.loads((data / "running.json").read_text())
        assert f"The page is at {where['dashboard_url']}" in log.read_text()
        async with driver.async_playwright() as playwright:
            browser = await playwright.chromium.launch(executable_path=BROWSER, args=FLAGS)
            page = await browser.new_page()
            page.set_default_timeout(MINUTES * 60_000)
            complaints = []
            page.on("pageerror", lambda error: complaints.append(str(error)))
            await page.goto(where["dashboard_url"])
            await page.fill("#key", where["key"])
            await page.click("text=Log in")
            await page.wait_for_selector(".s1.busy")
            await page.wait_for_selector(".badge:has-text('running')")
            await page.wait_for_selector(".badge:has-text('ramping')")
            await page.wait_for_selector(".badge:has-text('promoted')")
            await page.click("text=30 d")
            await page.wait_for_selector(".legend:has-text('rolled back')")
            assert complaints == []
            await browser.close()
    finally:
        os.killpg(demo.pid, 15)
        demo.wait(120)
