"""Is whoever opens the loop's address in a browser led to its page, and is nothing called JSON that is none?"""

import json

import pytest

from upswing.api.page import PageRoutes
from upswing.api.router import JSON, Request
from upswing.errors import Misuse

ASKED = Request({}, {}, b"", "", None, host="gpu.example:8100")


async def test_the_way_to_the_page_has_no_body_and_calls_it_no_json():
    led = await PageRoutes(lambda: "http://0.0.0.0:8101").page(ASKED)
    assert (led.status, dict(led.headers)) == (303, {b"location": b"http://gpu.example:8101/"})
    assert led.content_type != JSON or json.loads(led.body)


async def test_without_a_page_there_is_a_sentence():
    with pytest.raises(Misuse, match="No page runs beside this loop"):
        await PageRoutes(lambda: None).page(ASKED)
