"""Where is the page that shows this loop? Whoever opens the loop's own address in a browser is led there."""

from __future__ import annotations

import re
from collections.abc import Callable
from urllib.parse import urlsplit

from upswing.api.router import Problem, Request, Response, Route
from upswing.errors import Misuse

_HOST = re.compile(r"(\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9._-]{1,253})(?::[0-9]{1,5})?\Z")
_EVERYWHERE = {"0.0.0.0", "::"}  # noqa: S104 - compared, not listened on


class PageRoutes:
    """The handler."""

    def __init__(self, url: Callable[[], str | None]) -> None:
        """`url` of the page, which starts after us; None: there is none."""
        self._url = url

    def routes(self) -> list[Route]:
        return [
            Route(
                "GET",
                "/",
                "The web page.",
                self.page,
                frozenset(),
                answers={
                    303: ("It is there.", None),
                    404: ("None runs beside this loop.", Problem),
                },
            )
        ]

    async def page(self, request: Request) -> Response:
        url = self._url()
        if url is None:
            raise Misuse(
                "No page runs beside this loop: it needs the extra `dashboard` and no --no-dashboard; "
                "GET /openapi.json lists what is here."
            )
        location = page_address(url, request.host).encode()
        return Response(303, b"", "text/plain", headers=((b"location", location),))


def page_address(url: str, host: str) -> str:
    """The page as a browser that asked for `host` reaches it.

    >>> page_address("http://0.0.0.0:8101", "gpu.example:8100"), page_address("http://127.0.0.1:8101", "localhost:8100")
    ('http://gpu.example:8101/', 'http://127.0.0.1:8101/')
    """
    parts = urlsplit(url)
    asked = _HOST.match(host)
    if parts.hostname in _EVERYWHERE and asked is not None:
        return f"http://{asked[1]}:{parts.port}/"
    return f"{url}/"
